"""The miner: what it plans, what it releases, what it refuses, what comes out."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from dpframework_distance import dilca
from dpframework_distance.miner import DPDilca

import dpframework as dpf
from dpframework.plan import Step, walk
from dpframework.verify import audit


def schema_of(number=5, values=3, **facts):
    return dpf.Schema(
        [dpf.Categorical(f"a{k}", [str(v) for v in range(values)]) for k in range(number)], **(facts or {"rows": 400})
    )


def table_of(schema, rows=400, seed=0):
    """Make a table in which each attribute tells something of the next."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, schema.attributes[0].size, rows)]
    for attribute in schema.attributes[1:]:
        again = rng.random(rows) < 0.7
        codes.append(np.where(again, codes[-1] % attribute.size, rng.integers(0, attribute.size, rows)))
    return dpf.Table.from_codes(schema, np.array(codes))


def study_of(schema, miner, **settings):
    study = dpf.Study(schema, **{"epsilon": 100, "relation": "replace-one", **settings})
    study.add("d", miner)
    return study


@pytest.mark.parametrize(
    ("context", "target"),
    [
        *itertools.product(
            ["max-dependency", "max-relevance", "mean-su", "baseline", "baseline-mean-su"], [None, "a1"]
        ),
        ("common", None),
    ],
)
@pytest.mark.parametrize("sharing", [True, False])
def test_the_plan_costs_exactly_epsilon(context, sharing, target):
    schema = schema_of()
    plan = study_of(schema, DPDilca("0.7", context=context, context_size=2, sharing=sharing, target=target)).plan()
    assert plan.total().epsilon == Fraction(7, 10)
    assert plan.refusals() == []


def test_the_budget_of_each_attribute_is_in_the_plan():
    plan = study_of(schema_of(), DPDilca.published("1", context="max-dependency", context_size=2)).plan()
    steps = dict(plan.placed_steps())
    for k in range(5):
        assert steps[f"d/distances of a{k}/context of a{k}"].mechanism.epsilon == Fraction(3, 50)
        assert steps[f"d/distances of a{k}/histogram of 2"].mechanism.epsilon == Fraction(7, 100)
    shared = dict(study_of(schema_of(), DPDilca(1, context="max-dependency", context_size=2)).plan().placed_steps())
    assert all(shared[f"d/context of a{k}"].mechanism.epsilon == Fraction(3, 50) for k in range(5))


@pytest.mark.parametrize("context", ["max-dependency", "max-relevance", "mean-su", "common"])
def test_a_pair_that_two_targets_need_is_released_once(context):
    schema = schema_of()
    results = study_of(schema, DPDilca(50, context=context, context_size=2)).run(table_of(schema), seed=1)
    counted = [charge for charge in results.charges if charge.step.name.startswith("histogram")]
    pairs = {frozenset((name, x)) for name, context_ in results["d"].contexts.items() for x in context_}
    assert len(counted) == len(pairs)
    rung = int(counted[0].step.name.rpartition(" ")[2])
    assert len(pairs) <= rung
    assert counted[0].step.mechanism.epsilon == Fraction(35) / rung


def test_many_targets_get_a_ladder_of_numbers_that_loses_little():
    schema = schema_of(20, 2)
    plan = study_of(schema, DPDilca(1, context="mean-su")).plan()
    rungs = [int(s.name.rpartition(" ")[2]) for s in plan.steps() if s.name.startswith("histogram")]
    assert rungs[0] == 10
    assert rungs[-1] == 190
    assert len(rungs) <= 40
    assert all(b <= (a + 1) * 1.1 for a, b in itertools.pairwise(rungs))  # a + 1 are needed, b paid for


def test_with_a_large_budget_the_contexts_and_distances_are_those_without_privacy():
    schema = schema_of()
    table = table_of(schema)
    for context in ("max-dependency", "max-relevance", "mean-su"):
        for estimates, profiles in itertools.product(("shrunk", "published"), (False, True)):
            miner = DPDilca(10**7, context=context, context_size=2, estimates=estimates, profiles=profiles)
            found = study_of(schema, miner, epsilon=10**8).run(table, seed=0)["d"]
            true = dilca(table, context=context, context_size=2, profiles=profiles)
            assert found.contexts == true.contexts
            for name in true:
                assert found[name].matrix == pytest.approx(true[name].matrix, abs=1e-3)


def test_the_baseline_finds_rr_contexts_and_needs_no_public_count():
    schema = schema_of(max_rows=1000)
    bare = dpf.Schema(schema.attributes)
    table = dpf.Table.from_codes(bare, table_of(schema).codes)
    study = study_of(bare, DPDilca(10**7, context="baseline"), relation="add-or-remove-one", epsilon=10**8)
    assert study.run(table, seed=0)["d"].contexts == dilca(table, context="relevant-redundant").contexts


def test_an_add_or_remove_study_of_a_published_count_is_a_finding():
    for context in ("max-dependency", "max-relevance", "mean-su", "common"):
        study = study_of(schema_of(), DPDilca(1, context=context, context_size=2), relation="add-or-remove-one")
        found = [finding for finding in study.plan().refusals() if finding.code == "DP002"]
        assert found
        assert 'relation = "replace-one"' in str(found[0])
        with pytest.raises(dpf.PlanRefused):
            study.plan().total()


def test_an_add_or_remove_study_needs_a_public_bound_only():
    schema = schema_of(max_rows=500)
    plan = study_of(schema, DPDilca(1, context="max-dependency", context_size=2), relation="add-or-remove-one").plan()
    assert plan.total().epsilon == 1
    assert plan.refusals() == []
    # the exponent needs no factor 2: scores are monotonic
    step = next(s for s in plan.steps() if s.name == "context of a0")
    spread = step.query.facts().sensitivities[0].spread
    assert spread.replace_one == 2 * spread.add_or_remove_one


@pytest.mark.parametrize(
    ("parameters", "facts", "sentence"),
    [
        ({}, {}, "needs a public row count: set rows in the schema and use replace-one, or set max_rows"),
        ({"context_size": 5}, {"rows": 9}, "context_size = 5 is more than the 4 other attributes"),
        ({"context_size": 0}, {"rows": 9}, "context_size is 0; a positive whole number"),
        ({"target": "one"}, {"rows": 9}, "target 'one' has one value"),
        ({"target": "a9"}, {"rows": 9}, "'a9' is not in the schema"),
        ({"target": "a0", "attributes": ["a1", "a2"]}, {"rows": 9}, "not among the attributes"),
        ({"attributes": ["a1", "a1"]}, {"rows": 9}, "twice"),
        ({"attributes": ["a1", "one"]}, {"rows": 9}, "another attribute"),
        ({"attributes": "a1"}, {"rows": 9}, "is one text"),
        ({"context": "max-relevence"}, {"rows": 9}, "did you mean 'max-relevance'"),
        ({"context_share": 1}, {"rows": 9}, "between 0 and 1"),
        ({"rho": "0.1"}, {"rows": 9}, "needs a budget"),
        ({"epsilon": None}, {"rows": 9}, "needs a budget"),
        ({"epsilon": None, "rho": 1, "selection": "permute-and-flip"}, {"rows": 9}, "take 'exponential'"),
        ({"context": "common", "target": "a0"}, {"rows": 9}, "leave target out"),
        ({"context": "common", "context_size": 1}, {"rows": 9}, "set context_size = 2"),
        ({"sensitivity": "published"}, {"max_rows": 9}, "set rows in the schema"),
        ({"sharing": "yes"}, {"rows": 9}, "true or false"),
        ({"profiles": 1}, {"rows": 9}, "true or false"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_spent(parameters, facts, sentence):
    attributes = [*schema_of(rows=9).attributes, dpf.Categorical("one", ["only"])]
    schema = dpf.Schema(attributes, **facts)
    with pytest.raises(dpf.InputError, match=sentence) as caught:
        study_of(schema, DPDilca(**{"epsilon": 1, "context": "max-dependency", **parameters}))
    assert "\n" not in str(caught.value)


def test_more_subsets_than_memory_allows_are_refused_with_their_number():
    with pytest.raises(dpf.InputError, match=r"needs 575,757 joint histograms .* set context_size = 3 or less"):
        study_of(schema_of(40, 4), DPDilca(1, context="max-dependency", context_size=5))
    study_of(schema_of(40, 4), DPDilca(1, context_size=5, context="max-relevance"))


def test_an_attribute_with_one_value_is_left_out_and_names_may_be_anything():
    odd = [dpf.Categorical("größe/1", ["a", "b"]), dpf.Categorical("gr__e_1", ["a", "b"]), dpf.Boolean("?")]
    schema = dpf.Schema([*odd, dpf.Categorical("one", ["only"])], rows=40)
    rng = np.random.default_rng(0)
    table = dpf.Table.from_codes(schema, np.vstack([rng.integers(0, 2, (3, 40)), np.zeros((1, 40), int)]))
    for sharing in (True, False):
        found = study_of(schema, DPDilca(1, context="max-dependency", context_size=1, sharing=sharing)).run(
            table, seed=0
        )["d"]
        assert list(found) == ["größe/1", "gr__e_1", "?"]


def test_missing_values_and_bins_are_as_the_schema_says():
    schema = dpf.Schema(
        [dpf.Numeric("age", 0, 90, cuts=[30, 60], missing=True), dpf.Boolean("ill", missing=True), dpf.Boolean("old")],
        rows=4,
    )
    table = dpf.table_from_columns(
        {"age": [10, 40, None, 80], "ill": [True, None, False, False], "old": [False, False, False, True]}, schema
    )
    found = study_of(schema, DPDilca(1, context="max-dependency", context_size=1)).run(table, seed=0)["d"]
    assert found["age"].attribute.labels == ("[0, 30)", "[30, 60)", "[60, 90]", "missing")
    assert found["age"].matrix.shape == (4, 4)
    assert found["ill"].matrix.shape == (3, 3)


def test_when_k_takes_all_others_nothing_is_spent_on_the_choice():
    schema = dpf.Schema(schema_of().attributes)  # no public count: none is needed
    plan = study_of(
        schema, DPDilca(1, context="max-dependency", context_size=4, target="a0"), relation="add-or-remove-one"
    ).plan()
    assert {step.name for step in plan.steps()} == {"histogram of 4"}
    assert plan.total().epsilon == 1


def test_a_zcdp_budget_is_used_up_and_buys_more():
    schema = schema_of(20, 3, rows=4000)
    for context in ("max-dependency", "max-relevance", "mean-su", "common", "baseline"):
        miner = DPDilca.zcdp(1, "1e-6", context=context, context_size=2)
        plan = study_of(schema, miner, epsilon=1, delta="1e-6").plan()
        assert plan.refusals() == []
        total = plan.total()
        in_zcdp = dpf.accountant.ZCDPAccountant(plan.relation, delta=total.delta).total(plan)
        assert 0.999 < in_zcdp.epsilon <= 1
        assert total.epsilon <= in_zcdp.epsilon  # another notion may tell that it is less
        assert total.delta == Fraction(1, 10**6)
        pure = {s.name: s for s in study_of(schema, DPDilca(1, context=context, context_size=2)).plan().steps()}
        for step in plan.steps():
            if isinstance(step.mechanism, dpf.mechanisms.Gaussian):
                noise = plan.calibration(step)
                laplace = study_of(schema, DPDilca(1, context=context, context_size=2)).plan()
                other = laplace.calibration(next(s for s in laplace.steps() if s.name == step.name))
                assert float(noise.scale) < 2 * float(other.scale) ** 2 / 2
        assert set(pure) == {s.name for s in plan.steps()}


def test_the_published_settings_are_the_papers():
    schema = schema_of(rows=1000)
    plan = study_of(schema, DPDilca.published(1, target="a0", context="max-relevance", context_size=3)).plan()
    steps = {s.name: s for s in walk(plan.root) if isinstance(s, Step)}
    selection = steps["context of a0"]
    assert selection.mechanism == dpf.mechanisms.Exponential("0.1")
    bound = 2 * (1 / np.log(2) + np.log2(1000))
    assert float(plan.calibration(selection).scale) == pytest.approx(2 * bound / 0.1, rel=1e-5)
    assert plan.calibration(steps["histogram of 3"]).scale == Fraction(60, 7)


def test_the_tight_sensitivity_halves_the_noise_of_the_published_one():
    schema = schema_of(rows=1000)
    scales = []
    for sensitivity in ("published", "tight"):
        plan = study_of(schema, DPDilca(1, context="max-dependency", target="a0", sensitivity=sensitivity)).plan()
        step = next(s for s in plan.steps() if s.name == "context of a0")
        scales.append(float(plan.calibration(step).scale))
    assert scales[1] == pytest.approx(scales[0] / 2, rel=1e-3)


def test_half_the_claimed_noise_is_caught():
    """The audit would see it if the selections' sensitivity were a half of what it is."""
    import attrs
    import dpframework_distance.sensitivities as module

    example = DPDilca.examples()["max-dependency"]
    whole = module.RowBounds.changes
    try:
        module.RowBounds.changes = lambda self, rows, values: whole(self, rows, values) / 2
        report = audit(attrs.evolve(example.miner, context_share="0.9"), example.schema, "replace-one", replays=1000)
    finally:
        module.RowBounds.changes = whole
    assert not report.passed


class Listener(dpf.Observer):
    """Keeps what is released."""

    def __init__(self):
        self.told = []

    def released(self, release):
        self.told.append(release)


@pytest.mark.parametrize("sensitivity", ["tight", "published"])
@pytest.mark.parametrize("only", [None, 2])
def test_mean_su_contexts_follow_from_the_noisy_entropies_alone(only, sensitivity):
    schema = schema_of()
    target = None if only is None else f"a{only}"
    listener = Listener()
    study = study_of(schema, DPDilca("0.5", context="mean-su", target=target, sensitivity=sensitivity))
    found = study.run(table_of(schema), seed=4, observers=[listener])["d"]
    noisy = next(release.value for release in listener.told if release.charge.step.name == "entropies")
    pairs = [pair for pair in itertools.combinations(range(5), 2) if only is None or only in pair]
    alone, joint = np.array(noisy[:5]), dict(zip(pairs, noisy[5:], strict=True))
    if sensitivity == "tight":  # the numbers are weighted, and those of pairs conditional
        alone /= 2 if only is None else np.where(np.arange(5) == only, 1, 0.25)
        joint = {(a, b): value + alone[b if a == only else a] for (a, b), value in joint.items()}
    for t in range(5) if only is None else [only]:
        values = {}
        for other in set(range(5)) - {t}:
            both = alone[t] + alone[other]
            values[f"a{other}"] = 2 * (both - joint[min(t, other), max(t, other)]) / both if both > 0 else 0.0
        mean = sum(values.values()) / 4
        assert found.contexts[f"a{t}"] == tuple(sorted(n for n, v in values.items() if v >= mean))
