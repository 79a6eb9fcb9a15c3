"""Both miners: what they plan, refuse and find, and mistakes that must not pass."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_greedy import greedy_without_privacy
from dpframework_greedy.budgets import BudgetShares, choices_within
from dpframework_greedy.language import Language
from dpframework_greedy.measurements import average, is_better, measure
from dpframework_greedy.noisy_row_scores import worth_of
from dpframework_greedy.queries import ExtensionScores, LanguageScores, PairPool, PairScores
from dpframework_greedy.scores import Score, spread_of
from dpframework_greedy.serenade import SerenadeCS, SerenadeES
from dpframework_greedy.successive_choices import ROUNDING, CandidatePool, SuccessiveExponential
from dpframework_greedy.surplus_score import Surplus

import dpframework as dpf
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import And, Equals
from dpframework.lab.clinic import DIAGNOSES, clinic_schema, clinic_table
from dpframework.mechanisms.randomness import Noise
from dpframework.redescriptions.redescription import Redescription
from dpframework.redescriptions.redescriptions import Redescriptions
from dpframework.results.noisy_count_with_interval import Noisy
from dpframework.verify import audit, check_sampler
from dpframework.verify.mechanisms.probe_query_answers import Probe

SCHEMA = SerenadeES.examples()["jaccard"].schema
CS, ES = (functools.partial(kind, score="logistic") for kind in (SerenadeCS, SerenadeES))  # by rows: test_match_tables
MINERS = (CS, ES)
ROWS = 4000


@pytest.fixture(scope="module")
def clinic() -> dpf.Table:
    return clinic_table(ROWS)


def run(table: dpf.Table, miner: dpf.Miner, *, seed: int | None = 0, **study: Any) -> Redescriptions:
    opened = dpf.Study(table.schema, epsilon=miner.epsilon, **study)
    opened.add("found", miner)
    return opened.run(table, seed=seed)["found"]


def plan_of(miner: dpf.Miner, schema: dpf.Schema, **study: Any) -> dpf.StudyPlan:
    opened = dpf.Study(schema, epsilon=miner.epsilon, **study)
    opened.add("found", miner)
    return opened.plan()


# What they find


@pytest.mark.parametrize("kind", MINERS)
def test_planted_relations_are_found(kind: type[dpf.Miner], clinic: dpf.Table) -> None:
    found = run(clinic, kind(epsilon=100, min_support=200, max_support=1200, pairs=10))
    texts = [f"{one.left} ~ {one.right}" for one in found]
    assert any("hypothyroidism = true" in text and "TSH >= 4.5" in text for text in texts), texts
    assert all(0 <= one.jaccard <= 1 and one.rows is not None for one in found)
    assert found[0].jaccard > 0.8


def test_intervals_hold_the_exact_counts_as_often_as_they_say(clinic: dpf.Table) -> None:
    miner = ES(epsilon=4, min_support=200, pairs=6)
    block = dpf.InMemory().load(clinic)[0]
    held = []
    for seed in range(8):
        for one in run(clinic, miner, seed=seed):
            left, right = one.left.holds(block), one.right.holds(block)
            both, either = int((left & right).sum()), int((left | right).sum())
            low, high = one.jaccard_interval()
            held += [low <= both / either <= high, one.both.interval()[0] <= both <= one.both.interval()[1]]
    assert len(held) == 2 * 8 * 6
    assert sum(held) >= 0.8 * len(held)  # 95 % each: a chance below 1e-6 of falling to 80 %


def test_client_stops_at_a_bad_noisy_index(clinic: dpf.Table) -> None:
    miner = CS(epsilon=1, min_support=200, pairs=10, extensions=2, min_jaccard=0.5)
    found = run(clinic, miner)
    assert all(one.jaccard > 0.5 for one in found)
    assert len(found) <= 10 <= found.candidates <= 30


def test_each_measured_redescription_of_the_client_is_a_candidate(clinic: dpf.Table) -> None:
    study = dpf.Study(clinic.schema, epsilon=4)
    study.add("found", CS(epsilon=4, min_support=200, pairs=4, extensions=2))
    results = study.run(clinic, seed=0)
    measured = sum(charge.path.endswith("quality") for charge in results.charges)
    assert 4 < measured == results["found"].candidates


@pytest.mark.parametrize("seed", range(3))
def test_client_goes_on_from_an_extension_only_if_it_is_better(
    seed: int, clinic: dpf.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured, compared = [], list[bool]()

    def remember(*given: Any) -> Redescription:
        measured.append(measure(*given))
        return measured[-1]

    def remember_better(*given: Any) -> bool:
        compared.append(is_better(*given))
        return compared[-1]

    monkeypatch.setattr("dpframework_greedy.serenade.measure", remember)
    monkeypatch.setattr("dpframework_greedy.serenade.is_better", remember_better)
    miner = CS(epsilon=20, min_support=200, pairs=1, extensions=12, min_jaccard=0)
    (found,) = run(clinic, miner, seed=seed)
    best = measured[0]
    for other, better in zip(measured[1:], compared, strict=True):
        best = other if better else best
    assert (str(found.left), str(found.right)) == (str(best.left), str(best.right))
    assert 0 < sum(compared) < len(compared)


def test_engine_returns_as_many_as_there_are_pairs(clinic: dpf.Table) -> None:
    found = run(clinic, ES(epsilon=1, min_support=200, pairs=7, rounds=20))
    assert found.candidates == 7
    assert 5 <= len(found) <= 7  # what violates the bounds on the supports beyond the noise is left out
    assert all(one.both.interval()[1] >= 200 for one in found)


def test_maximum_age_changes_nothing(clinic: dpf.Table) -> None:
    results = [run(clinic, ES(epsilon=50, min_support=200, pairs=4, rounds=8, max_age=age)) for age in (0, 2, 40)]
    assert results[0] == results[1] == results[2]


def test_extension_is_kept_only_if_its_noisy_counts_are_better() -> None:
    def counted(both: int, apart: int) -> Redescription:
        return Redescription(Equals("a", "true"), Equals("b", "true"), both=Noisy(both, 50), apart=Noisy(apart, 50))

    score, parent = Score.lowest(100, 900), counted(300, 300)
    assert is_better(counted(400, 300), parent, score)
    assert not is_better(counted(300, 310), parent, score)
    assert not is_better(counted(90, 0), parent, score)
    assert not is_better(counted(900, 10), parent, score)
    assert is_better(counted(90, 10), counted(80, 40), score)
    assert is_better(counted(900, 10), parent, Score())


def test_what_was_counted_twice_has_half_the_variance() -> None:
    counts = {"left_only": Noisy(10, 8), "right_only": Noisy(30, 8)}
    one, again = (
        Redescription(Equals("a", "true"), Equals("b", "true"), both=Noisy(both, 8), **counts, rows=1000)
        for both in (100, 110)
    )
    mean = average(one, again)
    assert (mean.both, mean.left_only, mean.apart) == (Noisy(105, 4), Noisy(10, 4), Noisy(40, 8))
    assert mean.rows == Noisy(1000, 0)


@pytest.mark.parametrize("kind", MINERS)
def test_private_runs_need_no_assumption(kind: type[dpf.Miner], clinic: dpf.Table) -> None:
    miner = kind(epsilon=1, min_support=200, pairs=2)
    assert plan_of(miner, clinic.schema).assumptions == {}
    assert len(run(clinic, miner, seed=None)) <= 2


def test_p_value_filter_is_post_processing(clinic: dpf.Table) -> None:
    settings: dict[str, Any] = {"epsilon": 3, "min_support": 200, "pairs": 10}
    every, few = (run(clinic, ES(**settings, max_p_value=p)) for p in (1.0, 0.01))
    assert list(few) == [one for one in every if one.p_value <= 0.01]
    plans = [plan_of(ES(**settings, max_p_value=p), clinic.schema) for p in (1.0, 0.01)]
    assert plans[0].content()["root"] == plans[1].content()["root"]


def test_baseline_finds_better_ones_and_says_that_it_is_not_private(clinic: dpf.Table) -> None:
    best = greedy_without_privacy(clinic, min_support=200, max_support=1200, pairs=5, extensions=3)
    assert len(best) == 5
    assert all(one.both.variance == 0 and one.both.value >= 200 for one in best)
    assert all(one.both.value + one.apart.value <= 1200 for one in best)
    pairs = greedy_without_privacy(clinic, min_support=200, max_support=1200, pairs=5, extensions=1)
    assert np.median([one.jaccard for one in best]) >= np.median([one.jaccard for one in pairs])
    assert "not private" in (greedy_without_privacy.__doc__ or "")
    with pytest.raises(InputError, match="below max_support"):
        greedy_without_privacy(clinic, min_support=10, max_support=10)


def test_maximum_support_keeps_near_tautologies_out(clinic: dpf.Table) -> None:
    block = dpf.InMemory().load(clinic)[0]

    def supports(most: int) -> list[float]:
        miner = ES(epsilon=20, min_support=200, max_support=most, pairs=10, budget=[0.9, 0, 0.1])
        return [(one.left.holds(block) & one.right.holds(block)).mean() for one in run(clinic, miner)]

    assert np.median(supports(100 * ROWS)) > 0.9
    assert np.median(supports(ROWS // 3)) < 0.5


# What they plan


@pytest.mark.parametrize("kind", MINERS)
@pytest.mark.parametrize("budget", ["d1", "d2", "d3", "d4", "d5", [0.5, 0.2, 0.3], [0.7, 0, 0.3]])
def test_plan_costs_exactly_epsilon(kind: type[dpf.Miner], budget: Any) -> None:
    miner = kind(epsilon="0.7", min_support=4, pairs=3, budget=budget)
    for relation in dpf.Relation:
        plan = plan_of(miner, SCHEMA, relation=relation.value)
        assert plan.total().epsilon == Fraction(7, 10)
        assert not plan.refusals()


@pytest.mark.parametrize("kind", MINERS)
def test_each_step_reads_the_attributes_of_both_views_and_no_other(kind: type[dpf.Miner]) -> None:
    """So that an auditor sees that the attribute in no view is never looked at."""
    schema = dpf.Schema([*SCHEMA.attributes, dpf.Boolean("in no view")])
    plan = plan_of(kind(epsilon=1, min_support=4, pairs=3), schema)
    assert {step.facts.attributes for step in plan.steps()} == {tuple(one.name for one in SCHEMA)}


def test_published_distributions() -> None:
    shares = {name: BudgetShares.of(name) for name in ("d1", "d2", "d3", "d4", "d5")}
    assert shares["d1"] == BudgetShares(Fraction(1, 3), Fraction(1, 3), Fraction(1, 3))
    assert shares["d2"] == BudgetShares(Fraction(9, 20), Fraction(9, 20), Fraction(1, 10))
    assert shares["d3"] == BudgetShares(Fraction(3, 5), Fraction(3, 10), Fraction(1, 10))
    assert shares["d4"] == BudgetShares(Fraction(3, 10), Fraction(3, 5), Fraction(1, 10))
    assert shares["d5"] == BudgetShares(Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))


def test_default_numbers_follow_the_budget() -> None:
    def steps(epsilon: float) -> dict[str, int]:
        root = ES(epsilon=epsilon, min_support=1000).plan(clinic_schema())
        names = {part.name: part.mechanism.rounds for part in root.children if hasattr(part, "mechanism")}
        return {"pairs": names["pairs"], "extensions": names.get("extensions", 0)}

    found = [steps(epsilon) for epsilon in (0.01, 0.1, 1, 10, 100)]
    pairs = [one["pairs"] for one in found]
    assert pairs[0] == 1
    assert pairs == sorted(pairs)
    assert pairs[-1] == 20
    assert found[0]["extensions"] == 0
    assert found[-1]["extensions"] == 80


def swamped(plan: dpf.StudyPlan) -> set[str]:
    """Return the steps that a finding says to be swamped by noise."""
    return {finding.message.split("'")[1].split("/")[-1] for finding in plan.check() if finding.code == "DP007"}


def test_preview_and_a_finding_tell_what_the_budget_carries() -> None:
    poor = plan_of(ES(epsilon=1, min_support=200, pairs=20, rounds=80, budget="d3"), clinic_schema())
    assert swamped(poor) == {"pairs", "extensions"}
    from dpframework.plan.error_bounds_by_result import previews

    texts = {path.split("/")[-1]: preview.text for path, preview in previews(poor).items()}
    assert "this epsilon is enough for" in texts["pairs"]
    assert "this epsilon is enough for one choice within 80" in texts["extensions"]
    rich = plan_of(ES(epsilon=1000, min_support=200, pairs=20, rounds=80), clinic_schema())
    assert not swamped(rich)


SETTINGS = [(pairs, each, budget) for pairs in (1, 5, 20) for each in (1, 4) for budget in ("d3", "d5")]


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 3, 10, 100])
@pytest.mark.parametrize(("rows", "relation"), [(None, "add-or-remove-one"), (20_000, "replace-one")])
def test_extensions_that_cannot_pay_are_warned_of_and_not_planned_by_default(
    epsilon: float, rows: int | None, relation: str
) -> None:
    schema = attrs.evolve(clinic_schema(), rows=rows)
    for pairs, each, budget in SETTINGS:
        for kind, number in ((ES, {"rounds": pairs * each}), (CS, {"extensions": each})):
            asked: dict[str, Any] = {"epsilon": epsilon, "min_support": 2000, "max_support": 14_000, "pairs": pairs}
            explicit = plan_of(kind(**asked, **number, budget=budget), schema, relation=relation)
            chosen = kind(**asked, **number).resolve(schema)
            pays = chosen.choices == pairs * each
            if budget == "d3":  # what the default has, where it extends
                assert pays == (not swamped(explicit)), (kind, pairs, each)
            elif budget == "d5":  # less of everything but quality
                assert pays or swamped(explicit), (kind, pairs, each)
            default = plan_of(kind(**asked, **number), schema, relation=relation)
            assert not swamped(default) & {"extension", "extensions"}
            if not chosen.choices:
                only = plan_of(kind(**asked, budget=[Fraction(6, 7), 0, Fraction(1, 7)]), schema, relation=relation)
                assert default.content()["root"] == only.content()["root"]


def test_zcdp_total_is_less_than_pure_epsilon() -> None:
    miner = ES(epsilon=10, min_support=200, pairs=20, rounds=80)
    study = dpf.Study(clinic_schema(), epsilon=10, delta="1e-6")
    study.add("found", miner)
    assert float(study.plan().total().epsilon) < 0.75 * 10


@pytest.mark.parametrize("score", ["rows", "jaccard", "logistic"])
@pytest.mark.parametrize("least", [None, 1, 49, 50])
def test_supports_reach_up_to_the_rows_and_from_one_bound_to_the_other(least: int | None, score: str) -> None:
    schema, lowest = dpf.Schema(list(SCHEMA), rows=50), 5 if least is None else least  # a tenth of the rows
    for most in (None, lowest + 1):
        found = ES(1, min_support=least, max_support=most, score=score).scored(schema)
        supports = (None, None) if score == "jaccard" else (lowest, max(35, lowest + 1) if most is None else most)
        assert (found.min_support, found.max_support) == supports
    if least is not None or score != "jaccard":  # whose score knows no bounds
        for most in (lowest, max(lowest - 1, 1)):
            with pytest.raises(InputError, match=rf"^max_support is {most}, not above min_support = {lowest}$"):
                ES(1, min_support=least, max_support=most, score=score).scored(schema)
    with pytest.raises(InputError, match=r"^min_support is 51, above the schema's 50 rows; give fewer$"):
        ES(1, min_support=51, score=score).scored(schema)


# What they refuse

LEFT_ONLY = dpf.Schema([dpf.Boolean("a", view="left"), dpf.Boolean("b", view="left")])
CONSTANT = dpf.Schema([dpf.Boolean("a", view="left"), dpf.Categorical("b", ["x"], view="right")])
CONSTANTS = dpf.Schema([*CONSTANT, dpf.Numeric("c", 0, 1, bins=1, view="right")])
PUBLIC = dpf.Schema(list(SCHEMA), rows=50)


@pytest.mark.parametrize(
    ("miner", "schema", "sentence"),
    [
        (ES(1, min_support=4), LEFT_ONLY, "no attribute of the right view"),
        (CS(1, min_support=4), CONSTANT, "'b', has a single value"),
        (CS(1, min_support=4), CONSTANTS, "the attributes of the right view have a single value"),
        (ES(1, min_support=51), PUBLIC, "min_support is 51, above the schema's 50 rows"),
        (ES(1, min_support=51, score="jaccard"), PUBLIC, "above the schema's 50 rows"),
        (ES(1), SCHEMA, "min_support is needed"),
        (ES(1, min_support=9, max_support=9), SCHEMA, "max_support is 9, not above"),
        (ES(1, min_support=4, pairs=5), SCHEMA, "each needs its own pair of attributes; give at most 4"),
        (ES(1, min_support=4, rounds=5, budget=[0.5, 0, 0.5]), SCHEMA, "gives nothing to extensions"),
        (ES(1, min_support=4, left=["wolf", "wolf"]), SCHEMA, "twice"),
        (ES(1, min_support=4, left=["rain"], right=["rain"]), SCHEMA, "attribute 'rain' only"),
        (ES(1, min_support=4, left=["wof"]), SCHEMA, "did you mean 'wolf'"),
        (ES(1, min_support=4, left=[]), SCHEMA, "left names no attribute"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_spent(miner: Any, schema: dpf.Schema, sentence: str) -> None:
    study = dpf.Study(schema, epsilon=1)
    with pytest.raises(InputError, match=sentence) as caught:
        study.add("found", miner)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "parameters",
    [
        {"extensions": 0},
        {"min_jaccard": 2},
        {"pairs": 0},
        {"pairs": True},
        {"min_support": 0},
        {"budget": "d6"},
        {"budget": [0.5, 0.5]},
        {"budget": [0.5, 0.5, 0.5]},
        {"budget": [0, 0.5, 0.5]},
        {"budget": 3},
        {"score": "cosine"},
        {"left": "wolf"},
        {"epsilon": 0},
        {"max_p_value": -1},
    ],
    ids=str,
)
def test_bad_parameters_are_one_sentence(parameters: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        CS(**{"epsilon": 1, **parameters})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("parameters", [{"rounds": 0}, {"max_age": -1}])
def test_bad_parameters_of_the_engine_side(parameters: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ES(1, **parameters)


def test_too_many_pairs_of_values_are_refused_before_they_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [str(k) for k in range(10_000)]
    schema = dpf.Schema([dpf.Categorical("a", many, view="left"), dpf.Categorical("b", many, view="right")])
    with pytest.raises(InputError, match="pairs of values"):
        Language.of_schema(schema)
    fine = [dpf.Numeric(f"{view} {k}", 0, 1, bins=100, view=view) for view in ("left", "right") for k in range(9)]
    with pytest.raises(InputError, match="fewer bins"):
        Language.of_schema(dpf.Schema(fine))
    few = [
        dpf.Categorical(f"{view} {size}", [str(k) for k in range(size)], view=view)
        for view, sizes in (("left", (2, 3, 5)), ("right", (4, 7)))
        for size in sizes
    ]
    monkeypatch.setattr("dpframework_greedy.language.MOST_CELLS", 110)
    language = Language.of_schema(dpf.Schema(few))
    left, right = map(len, language.tests)
    assert (len(language.pairs), language.number_of_extensions) == (6, 1 + 2 * (left + right))
    assert left != right
    monkeypatch.setattr("dpframework_greedy.language.MOST_CELLS", 109)
    with pytest.raises(InputError, match="the two views have 110 pairs of values"):
        Language.of_schema(dpf.Schema(few))


def test_views_of_one_clinic_attribute_each(clinic: dpf.Table) -> None:
    found = run(clinic, ES(1, min_support=100, left=[DIAGNOSES[0]], right=["BNP"], pairs=1))
    assert len(found) == 1
    assert not isinstance(found[0].left, And)


# Mistakes that must be caught: the correct versions pass in test_conformance.py


@attrs.frozen(eq=False)
class SeenPool(PairPool):
    """Offers only literals that some row fits and some row does not, as thresholds between data values do."""

    def scores(self, group, unit):
        positions, scores = super().scores(group, unit)
        seen = scores > 0
        return (positions[seen], scores[seen]) if seen.any() else (positions, scores)


@attrs.frozen(eq=False)
class FilteredPool(PairPool):
    """Leaves candidates below a true support out of the race, by a score that cannot win."""

    def scores(self, group, unit):
        positions, scores = super().scores(group, unit)
        return positions, np.where(scores * unit > 0.2, scores, -np.int64(50 / unit))


class PlantedScores(LanguageScores):
    name = "planted-scores"
    candidate = PairScores.candidate
    pool: type[PairPool] = PairPool
    answer_length, count = PairScores.answer_length, PairScores.count

    def answer(self, counts, **inputs):
        right = PairPool.of(self, counts)
        return self.pool(right.language, right.counts, right.score, right.open)


class FromSeen(PlantedScores):
    pool = SeenPool


class FromFiltered(PlantedScores):
    pool = FilteredPool


@attrs.frozen
class Planted(dpf.Miner):
    """Choose one pair."""

    name = "planted"
    query: type[Any] = PlantedScores

    def plan(self, schema):
        query = self.query(Language.of_schema(schema), Score.lowest(3, 12))
        return dpf.step("pairs", query, SuccessiveExponential(2))

    def mine(self, table):
        return table.release("pairs")


@pytest.mark.parametrize("query", [FromSeen, FromFiltered])
def test_candidates_and_filters_from_true_counts_are_caught(query: type[Any]) -> None:
    assert audit(Planted(), SCHEMA, "add-or-remove-one", replays=300).passed
    # the weights are summed by the kernel over all candidates; a pool that leaves some out sums over its own
    query.pool.log_weights = lambda self, groups, unit, scale: np.array(
        [round(scale * np.log(np.exp(self.scores(g, unit)[1] / scale).sum())) for g in groups]
    )
    assert not audit(Planted(query), SCHEMA, "add-or-remove-one", replays=600).passed


class Small(CandidatePool):
    """Two groups; what is chosen is replaced by something a little worse."""

    def __init__(self, step: float, scores: tuple[tuple[float, ...], ...] = ((2.0, 0.0), (1.9, 0.0))) -> None:
        self.step, self.own_scores = step, scores

    def groups(self):
        from dpframework_greedy.successive_choices import Group

        return [Group(k, own) for k, own in enumerate(self.own_scores)]

    def scores(self, group, unit):
        scores = np.rint(np.array(self.own_scores[group.number]) * self.step / unit).astype(np.int64)
        return np.arange(len(scores)), scores

    def log_weights(self, groups, unit, scale):
        return np.array([round(scale * np.log(np.exp(self.scores(g, unit)[1] / scale).sum())) for g in groups])

    def after(self, group, position):
        return Small(self.step, tuple((1.9, 0.1) if k == group.number else s for k, s in enumerate(self.own_scores)))


def test_noise_pays_for_sixteen_steps_of_rounding_in_every_round() -> None:
    facts = dpf.queries.QueryFacts(
        "s", "s", (), False, 4, [dpf.queries.Sensitivity(dpf.queries.Norm.LINF, 1, fall=0, source="t")]
    )
    calibration = SuccessiveExponential(3, 3).calibrate(facts, dpf.Relation.ADD_OR_REMOVE_ONE)
    assert calibration is not None
    assert calibration.scale == 1 + Fraction(16, 2**20)


@pytest.mark.parametrize(("age", "computed"), [(0, [2, 2, 2, 2]), (1, [2, 1, 2, 1]), (40, [2, 1, 1, 1])])
def test_weights_are_remembered_for_as_many_rounds_as_asked(age: int, computed: list[int]) -> None:
    """Of two groups one is chosen in each round, whose weight is new; the other's is computed when it is too old."""
    from dpframework_greedy.successive_choices import _WeightCache

    seen, remembered = [], _WeightCache(age)

    class Asked(Small):
        def log_weights(self, groups, unit, scale):
            seen.append(len(groups))
            return super().log_weights(groups, unit, scale)

        def after(self, group, position):
            return Asked(
                self.step, tuple((s[0] - 1, 0.0) if k == group.number else s for k, s in enumerate(self.own_scores))
            )

    pool = Asked(1.0)
    for _ in computed:
        groups = pool.groups()
        remembered.log_weights(pool, groups, 1.0, 1.0)
        pool = pool.after(groups[0], 0)
    assert seen == computed


class WrongSign(SuccessiveExponential):
    """The published key, log(uniform) exp(epsilon q): the largest belongs to the worst candidate most often."""

    name = "wrong-sign"

    def release(self, answer, calibration, randomness):
        class Turned:
            def noisy_max(self, scores: np.ndarray, scale: float, noise: Noise) -> int:
                return randomness.noisy_max(scores.max() - scores, scale, noise)

        return super().release(answer, calibration, Turned())


class ReusedKeys(SuccessiveExponential):
    """The published memoization: a key that lost a round races against fresh ones in the next."""

    name = "reused-keys"
    assumptions = ("real-arithmetic",)

    def release(self, answer, calibration, randomness):
        pool, unit, scale = answer, float(calibration.unit), calibration.lattice_scale
        kept: dict[Any, tuple[float, int]] = {}
        chosen = np.zeros((self.rounds, 2), dtype=np.int64)
        for k in range(self.rounds):
            for group in pool.groups():
                if group not in kept:
                    positions, scores = pool.scores(group, unit)
                    keys = scores / scale + randomness.generator.gumbel(size=len(scores))
                    kept[group] = float(keys.max()), int(positions[keys.argmax()])
            group = max(pool.groups(), key=lambda group: kept[group][0])
            chosen[k] = group.number, kept[group][1]
            kept.pop(group)
            pool = pool.after(group, chosen[k, 1])
        return chosen


@pytest.mark.parametrize(
    ("mechanism", "right"),
    [
        (SuccessiveExponential(3, rounds=3), True),
        (WrongSign(3, rounds=3), False),
        (ReusedKeys(3, rounds=3), False),
    ],
)
def test_a_wrong_sign_and_reused_keys_are_not_the_stated_draws(mechanism: Any, right: bool) -> None:
    from dpframework.queries import Norm, QueryFacts, Sensitivity

    facts = QueryFacts("small", "small", (), False, 4, [Sensitivity(Norm.LINF, 1, fall=0, source="a probe")])
    assert check_sampler(mechanism, given=[Probe(facts, Small)], draws=2_000).passed is right


@pytest.mark.parametrize("epsilon", ["0.01", "5", "200"])
@pytest.mark.parametrize("surplus", [False, True])
def test_rounding_moves_a_log_probability_by_no_more_than_is_paid_for(epsilon: str, surplus: bool) -> None:
    language, rng = Language.of_schema(SCHEMA), np.random.default_rng(3)
    given = {"pool": [(language.pair(k, 1), 0.3 * k) for k in range(4)]} if surplus else {}
    query = ExtensionScores(language, Surplus(40), 4, 1) if surplus else PairScores(language, Score.lowest(20, 120))
    codes = np.stack([rng.integers(0, attribute.size, 150) for attribute in SCHEMA])
    engine = dpf.InMemory()
    pool = query.evaluate(engine, engine.load(dpf.Table.from_codes(SCHEMA, codes)), **given)
    mechanism = SuccessiveExponential(epsilon)
    for relation in dpf.Relation:
        calibration = mechanism.calibrate(query.facts(), relation)
        assert calibration is not None
        exact = np.concatenate([pool.scores(group, 2.0**-45)[1] for group in pool.groups()]) * 2.0**-45
        exact = (exact - exact.max()) / float(calibration.scale)
        exact -= np.log(np.exp(exact).sum())
        outputs = [[[group.number, k]] for group in pool.groups() for k in pool.scores(group, 1.0)[0]]
        found = np.array([mechanism.log_density(pool, output, calibration) for output in outputs])
        # two tables may be off in opposite ways, so each gets half of what is allowed
        paid = float(ROUNDING * calibration.losses.pure.under(relation)) / 2
        likely = exact > -600  # beyond, neither of both is computed
        assert np.abs(found - exact)[likely].max() <= paid


def test_extension_scores_of_a_redescription_that_is_given() -> None:
    language = Language.of_schema(SCHEMA)
    query = ExtensionScores(language, Score.lowest(3, 12), 2, 4)
    assert query.answer_length == 2 * language.number_of_extensions
    assert set(query.attributes) == {"wolf", "height", "rain", "zone"}


def test_supports_of_a_score_are_a_tenth_and_seven_tenths_of_the_rows_and_pairs_within_a_half_of_the_best():
    schema = attrs.evolve(clinic_schema(), rows=5000, max_rows=None)
    miner = SerenadeES(epsilon=4, score="logistic", budget=[0.5, 0, 0.5])
    score = miner.scored(schema)
    assert (score.min_support, score.max_support) == (500, 3500)
    resolved = miner.resolve(schema)
    error = float(score.sensitivity.spread.replace_one) / 2 * math.log(20 * resolved.language.number_of_pairs)
    assert 1 < resolved.pairs < 20
    assert resolved.pairs == math.floor(0.5 / error)


def test_extensions_that_do_not_divide_evenly_give_each_pair_one_turn_more():
    step = SerenadeES(2, rounds=3, pairs=2, min_support=100, max_support=400, budget="d3")
    of = step.resolve(clinic_schema()).extension_step("x", Fraction(1), 3, 2, uses=[])
    assert of.query.turns == 2


def test_what_is_beyond_a_bound_by_no_more_than_its_noise_is_kept():
    miner = SerenadeES(1, min_support=100, max_support=200)
    for both, apart, kept in ((85, 0, False), (95, 0, True), (105, 90, True), (105, 100, True), (105, 120, False)):
        one = Redescription(
            Equals("a", "b"), Equals("c", "d"), both=Noisy(both, 9), left_only=Noisy(apart, 9), right_only=Noisy(0, 0)
        )
        assert miner._within(one) == kept


def counted_as(both: float, left_only: float, right_only: float, rows: float = 9000) -> Redescription:
    sides: dict[str, Any] = {"left_only": Noisy(left_only, 8), "right_only": Noisy(right_only, 8)}
    return Redescription(Equals("a", "true"), Equals("b", "true"), both=Noisy(both, 8), **sides, rows=rows)


def test_an_extension_is_better_just_if_its_index_is_higher_and_its_supports_are_no_worse() -> None:
    """Bounds may be met, and where what is extended is beyond one, it need only come no further from it."""
    score, parent = Score(100, 0.1, 900, 0.1), counted_as(300, 200, 100)
    assert not is_better(counted_as(300, 100, 200), parent, score), "the same index"
    assert is_better(counted_as(301, 100, 200), parent, score)
    assert is_better(counted_as(100, 0, 0), parent, score)
    assert not is_better(counted_as(99, 0, 0), parent, score)
    assert is_better(counted_as(800, 60, 40), parent, score)
    assert not is_better(counted_as(800, 60, 41), parent, score)
    small, large = counted_as(60, 30, 10), counted_as(600, 300, 100)
    assert is_better(counted_as(60, 10, 10), small, score)
    assert not is_better(counted_as(59, 0, 0), small, score)
    assert is_better(counted_as(900, 50, 50), large, score)
    assert not is_better(counted_as(900, 50, 51), large, score)
    assert is_better(counted_as(1, 0, 0), parent, Score(max_support=900, descent=0.1))
    assert is_better(counted_as(5000, 0, 0), parent, Score(100, 0.1))


def test_means_of_two_measurements_are_of_every_count() -> None:
    mean = average(counted_as(10, 20, 30, Noisy(100, 8)), counted_as(20, 40, 60, Noisy(110, 8)))
    assert [mean.both, mean.left_only, mean.right_only] == [Noisy(15, 4), Noisy(30, 4), Noisy(45, 4)]
    assert (mean.apart, mean.rows) == (Noisy(75, 8), Noisy(105, 4))
    assert average(counted_as(1, 1, 1), counted_as(3, 1, 1)).rows == Noisy(9000, 0)


@pytest.mark.parametrize("rows", [None, 1000])
def test_a_measured_redescription_has_the_counts_of_its_cells(rows: int | None) -> None:
    """Without a public number of rows it is the sum of all cells."""
    schema = attrs.evolve(SCHEMA, rows=rows)
    told: list[Any] = []

    class Released:
        def __init__(self) -> None:
            self.schema = schema

        def release(self, step: str, **inputs: Any) -> list[int]:
            told.append((step, inputs))
            return [40, 3, 5, 900]

        def calibration(self, step: str) -> Any:
            assert step == "quality"
            return SimpleNamespace(variance=2.5)

    redescribed = Language.of_schema(SCHEMA).pair(0, 0)
    one = measure(Released(), "quality", redescribed)  # type: ignore[arg-type]
    assert told == [("quality", {"redescribed": redescribed})]
    assert (one.left, one.right) == redescribed.descriptions
    assert (one.both, one.left_only, one.right_only) == (Noisy(40, 2.5), Noisy(3, 2.5), Noisy(5, 2.5))
    assert one.rows == (Noisy(948, 10) if rows is None else Noisy(1000, 0))


def test_as_many_extensions_as_pairs_are_worth_planning_and_fewer_are_not() -> None:
    """Or as many as are asked for in all, where those are fewer than the pairs."""
    for epsilon in range(1, 60):
        for asked in (None, 1, 2, 3, 8):
            miner = ES(epsilon, min_support=100, max_support=400, pairs=3, rounds=asked)
            carried = choices_within(
                worth_of(miner.scored(SCHEMA)),
                Fraction(3, 10) * epsilon,
                spread_of(Surplus(400), rows_public=False),
                3 * miner.language(SCHEMA).number_of_extensions,
            )
            pairs = choices_within(
                Fraction(1, 2),
                Fraction(3, 5) * epsilon,
                spread_of(miner.scored(SCHEMA), rows_public=False),
                miner.language(SCHEMA).number_of_pairs,
            )
            wanted = asked or 12
            choices = min(carried, wanted) if carried >= min(3, wanted) and pairs >= 3 else 0
            assert miner.resolve(SCHEMA).choices == choices, (epsilon, asked)


@pytest.mark.parametrize("pairs", [1, 2])
def test_a_pair_after_another_is_extended_among_its_own_candidates(pairs: int) -> None:
    """Each of them as often: what the budget carries of a single pair's candidates, divided evenly."""
    for epsilon in range(1, 60):
        for asked in (None, 1, 3):
            miner = CS(epsilon, min_support=100, max_support=400, pairs=pairs, extensions=asked)
            language, score = miner.language(SCHEMA), miner.scored(SCHEMA)
            spreads = [spread_of(one, rows_public=False) for one in (Surplus(400), score)]
            carried = choices_within(
                worth_of(score), Fraction(3, 10) * epsilon, spreads[0], language.number_of_extensions
            )
            enough = choices_within(Fraction(1, 2), Fraction(3, 5) * epsilon, spreads[1], language.number_of_pairs)
            choices = min(carried, pairs * (asked or 4)) // pairs * pairs
            expected = choices if choices >= pairs and enough >= pairs else 0
            assert miner.resolve(SCHEMA).choices == expected, (epsilon, asked)


def test_the_papers_settings_may_be_changed() -> None:
    published = SerenadeES.published(2, 30, 5_000)
    assert (published.epsilon, published.rounds, published.max_age, published.min_support) == (2, 80, 40, 30)
    assert published.max_support == 10_000  # twice the rows: none
    assert SerenadeES.published(2, 30, 5_000, rounds=5).rounds == 5
