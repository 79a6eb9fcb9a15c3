"""The miner `synthetic-table`: what it finds, what it writes, and what it refuses."""

import itertools
import json
import math
from fractions import Fraction

import attrs
import numpy as np
import polars as pl
import pytest
from dpframework_tables import SyntheticRows
from dpframework_tables.miner import SyntheticTable
from dpframework_tables.synthetic_rows import MeasuredMarginal

import dpframework as dpf
from dpframework.basics import NoisyHistogram
from dpframework.facts import MOST_ROWS, exact

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill"),
        dpf.Categorical("town", ["A", "B", "C"], missing=True),
        dpf.Numeric("age", 0, 90, cuts=[20, 40, 60]),
        dpf.Numeric("dose", 0, 1, bins=4),
        dpf.Boolean("always"),
    ]
)
ROWS = 3000
ADULT = (14, 9, 10, 16, 16, 7, 15, 6, 5, 2, 7, 7, 12, 42, 2)


def people(schema=SCHEMA):
    """Towns follow from ages, doses from illness and age together; everything else is independent."""
    draw = np.random.default_rng(0)
    ill, age, other = draw.random(ROWS) < 0.4, draw.integers(0, 4, ROWS), draw.random(ROWS) < 0.5
    town = np.where(draw.random(ROWS) < 0.8, age, draw.integers(0, 4, ROWS))
    dose = np.where(draw.random(ROWS) < 0.9, (age + 2 * ill) % 4, draw.integers(0, 4, ROWS))
    return dpf.Table.from_codes(schema, np.array([ill, town, age, dose, other]).astype(int))


def run(seed=1, schema=SCHEMA, delta=0, **parameters):
    study = dpf.Study(schema, epsilon=100, delta=delta)
    study.add("rows", SyntheticTable(**parameters))
    return study.run(people(), seed=seed)["rows"]


def distance(found, exact_table, of):
    """The total variation of two tables of a marginal."""
    tables = []
    for codes in (found.codes, exact_table.codes.T):
        cells = np.ravel_multi_index(tuple(codes[:, a].astype(int) for a in of), [5] * len(of))
        tables.append(np.bincount(cells, minlength=5 ** len(of)) / len(codes))
    return np.abs(tables[0] - tables[1]).sum() / 2


@pytest.mark.parametrize("method", ["tree", "rounds", "adaptive"])
def test_a_budget_that_leaves_no_noise_leaves_the_marginals_as_they_are(method):
    schema = attrs.evolve(SCHEMA, max_rows=ROWS)
    assert SyntheticTable(method=method, epsilon=10**7).method_on(schema).most_cells is None
    study = dpf.Study(schema, epsilon=10**7)
    study.add("rows", SyntheticTable(method=method, epsilon=10**7))
    found = study.run(people(schema), seed=1)["rows"]
    assert distance(found, people(), (1,)) < 0.001
    assert distance(found, people(), (1, 2)) < 0.02


@pytest.mark.parametrize("budget", [{"epsilon": 20}, {"rho": 2}])
def test_rounds_find_what_depends_and_rows_show_it(budget):
    found = run(method="rounds", delta="1e-6", **budget)
    assert any({"ill", "age", "dose"} <= set(one.names) for one in found.measured)
    for of in ((1, 2), (0, 2, 3)):
        assert distance(found, people(), of) < 0.05 < distance(run(epsilon=20, method="independent"), people(), of)
    assert abs(found.rows - ROWS) < 40


def test_a_tree_connects_all_attributes_by_pairs():
    found = run(epsilon=20, method="tree")
    pairs = [one.names for one in found.measured if len(one.names) > 1]
    assert len(pairs) == len(SCHEMA) - 1
    assert {"town", "age"} in map(set, pairs)
    assert distance(found, people(), (1, 2)) < 0.05


def test_an_open_run_releases_what_a_seeded_one_does():
    """Without a seed, drawn exactly: its distance is that of noise, .1 never reached in a thousand runs."""
    assert distance(run(seed=None, epsilon=20, method="tree"), people(), (1, 2)) < 0.1


def test_a_run_with_the_same_seed_is_the_same():
    assert run(epsilon=5) == run(epsilon=5)
    assert run(epsilon=5) != run(epsilon=5, seed=2)


def test_it_says_what_was_measured_and_what_is_inferred():
    found = run(epsilon=20, method="tree")
    assert found["age", "town"].standard_error == found["town", "age"].standard_error > 0
    assert len(found["ill"].counts) == 2
    known = {frozenset(one.names) for one in found.measured}
    a, b = next(pair for pair in itertools.combinations(SCHEMA.names, 2) if frozenset(pair) not in known)
    with pytest.raises(dpf.InputError, match=f"{a} by {b} was not measured but inferred"):
        found[a, b]
    assert "measured: town by age, each count within ±" in str(found)
    assert "is post-processing" in str(found)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_is_written_is_read_by_its_own_schema(tmp_path, ending):
    found = run(epsilon=20)
    rows, schema, provenance = found.write(tmp_path / f"people.{ending}")
    assert (schema.name, provenance.name) == ("people.schema.toml", "people.provenance.json")
    told = json.loads(provenance.read_text())
    assert told["post-processing"] is True
    assert told["measured"][0] == {"marginal": ["ill"], "standard error": found["ill"].standard_error}
    again = dpf.read_table(rows, dpf.Schema.load(schema))
    assert again.schema.rows == found.rows
    assert np.array_equal(again.codes, found.codes.T)
    assert np.array_equal(again.codes, found.to_table().codes)
    with pytest.raises(dpf.InputError, match="exists already, and is never replaced"):
        found.write(tmp_path / f"people.{ending}")
    for one in (rows, schema, provenance):
        folder = tmp_path / one.suffix.removeprefix(".")
        folder.mkdir(exist_ok=True)
        (folder / one.name).write_text("another's")
        with pytest.raises(dpf.InputError, match=f"{one.name}: exists already, and is never replaced; give another"):
            found.write(folder / f"people.{ending}")
        assert [(left.name, left.read_text()) for left in folder.iterdir()] == [(one.name, "another's")]
        (folder / one.name).unlink()


def test_another_ending_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(dpf.InputError, match=r"end it in \.csv or \.parquet"):
        run(epsilon=20).write(tmp_path / "people.xlsx")
    assert not list(tmp_path.iterdir())


def test_values_of_a_frame_lie_in_their_bins():
    frame = run(epsilon=20).to_frame()
    assert frame.schema == {
        "ill": pl.Boolean,
        "town": pl.String,
        "age": pl.Int64,
        "dose": pl.Float64,
        "always": pl.Boolean,
    }
    assert frame["town"].null_count() > 0
    assert frame["age"].min() == 0
    assert frame["age"].max() == 90
    assert len(set(frame["age"])) > 80
    assert 0 <= frame["dose"].min() < frame["dose"].max() <= 1


def test_it_is_kept_as_json_and_its_rows_with_it():
    found = run(epsilon=20)
    again = SyntheticRows.from_dict(json.loads(found.to_json()))
    assert again == found
    assert np.array_equal(again.codes, found.codes)


@pytest.mark.parametrize(
    ("place", "value"),
    [("rows", 0), ("rows", 10**18), ("seed", "-1"), ("total", 0), ("measured", None), ("schema", {"attribute": []})],
)
def test_a_changed_file_is_no_synthetic_table(place, value):
    form = json.loads(run(epsilon=20).to_json())
    with pytest.raises(dpf.InputError):
        SyntheticRows.from_dict({**form, place: value})


PLACES = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])])


def drawn(**changes):
    """Return a synthetic table of a measured pair, made by hand."""
    pair = MeasuredMarginal(["ill", "town"], [[5, 0, 1], [2, 2, 0]], 4.0, [[1, -1, 0], [0.5, 0.5, -2]])
    alone = MeasuredMarginal(["ill"], [7, 3], 0.0, [0, 0])
    own = {"method": "rounds", "measured": [alone, pair], "total": 10.5, "rows": 10, "seed": 3}
    return SyntheticRows(PLACES, **(own | changes))


def of_pair(**changes):
    return {"measured": [attrs.evolve(drawn().measured[1], **changes)]}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        *((change, "needs a positive number of rows and total, and a seed") for change in (
            {"rows": 0}, {"rows": MOST_ROWS + 1}, {"seed": -1}, {"seed": 2**64}, {"total": 0}, {"total": math.inf}
        )),
        ({"merged": {"place": [0, 0]}}, "merged has no group for each value of 'place'"),
        ({"merged": {"town": [0, 0]}}, "merged has no group for each value of 'town'"),
        (of_pair(names=["town", "ill"]), "the marginal of town by ill does not have a number for each cell"),
        (of_pair(names=["ill", "ill"]), "the marginal of ill by ill does not have a number for each cell"),
        (of_pair(counts=np.zeros((3, 2))), "ill by town does not have a number for each cell"),
        (of_pair(potential=np.zeros((2, 2))), "ill by town does not have a number for each cell"),
        (of_pair(counts=[[5, 0, 1], [2, math.nan, 0]]), "ill by town has numbers that are not finite"),
        (of_pair(potential=[[5, 0, 1], [2, math.inf, 0]]), "ill by town has numbers that are not finite"),
        (of_pair(variance=-1e-9), "ill by town has numbers that are not finite"),
        ({"measured": [MeasuredMarginal([], 3.0, 1.0, 0.0)]}, "does not have a number for each cell"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_schema_is_no_synthetic_table(changes, sentence):
    assert drawn().rows == 10
    with pytest.raises(dpf.InputError, match=sentence):
        drawn(**changes)


def test_a_model_by_hand_has_the_probabilities_of_its_potentials(monkeypatch):
    """Of 10.5 rows; of a pair both kinds of measurements count, and of two of one marginal the last."""
    found, shares = drawn(total=10.5, seed=2**64 - 1), np.exp([[1, -1, 0], [0.5, 0.5, -2]])
    assert found.model.marginal((0, 1)) == pytest.approx(10.5 * shares / shares.sum())
    assert drawn(rows=1, seed=0, total=1e-9).codes.shape == (1, 2)
    two = drawn(measured=[*drawn().measured, attrs.evolve(drawn().measured[0], variance=9.0)])
    assert (two["ill"].standard_error, two["town", "ill"].standard_error) == (3, 2)
    monkeypatch.setattr("dpframework_tables.synthetic_rows.MOST_CELLS", 6)
    assert drawn().model.tree.cells == 6
    monkeypatch.setattr("dpframework_tables.synthetic_rows.MOST_CELLS", 5)
    with pytest.raises(dpf.InputError, match="the model of a synthetic table has more than 5 cells"):
        drawn()


def test_values_of_the_last_group_are_the_rare_ones_and_are_told():
    merged = {"town": [0, 1, 1]}
    counts, own = [[5, 1], [2, 2]], np.zeros((2, 2))
    towns = MeasuredMarginal(["town"], [6, 3, 1], 1.0, np.log([6, 3, 1]))
    found = drawn(measured=[towns, MeasuredMarginal(["ill", "town"], counts, 4.0, own)], merged=merged, rows=4_000)
    assert found.rare_values() == {"town": ["B", "C"]}
    assert found.provenance()["rare values merged"] == {"town": ["B", "C"]}
    assert "rare values form one group in marginals of several attributes, in town" in str(found)
    assert "rare" not in str(drawn())
    shares = np.bincount(found.codes[:, 1], minlength=3) / 4_000
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.002)  # dealt out, so that they err by rounding


def test_a_number_of_rows_can_be_asked_for():
    assert len(run(epsilon=20, rows=17).to_frame()) == 17


def test_columns_can_be_chosen_and_have_the_order_asked_for():
    found = run(epsilon=20, attributes=["dose", "ill"])
    assert found.to_frame().columns == ["dose", "ill"]
    assert {one.names for one in found.measured} >= {("dose",), ("ill",)}
    assert run(epsilon=20, attributes=["dose"]).to_frame().columns == ["dose"]


def test_the_model_stays_within_its_cells():
    for cells in (150, 400):
        found = run(epsilon=20, method="rounds", rounds=6, max_cells=cells)
        assert found.model.tree.cells <= cells


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({}, "needs a budget: give epsilon, or rho"),
        ({"epsilon": 1, "rho": 1}, "needs a budget: give epsilon, or rho"),
        ({"epsilon": 1, "order": 1}, "order is 1; 2 or 3 is needed"),
        ({"epsilon": 1, "order": 4}, "order is 4; 2 or 3 is needed"),
        ({"epsilon": 1, "method": "tree", "rounds": 3}, "rounds needs method = 'rounds' or 'adaptive'"),
        (
            {"epsilon": 1, "method": "forest"},
            "'forest' is unknown; known: adaptive, auto, independent, rounds, tree",
        ),
        ({"epsilon": 1, "rows": 0}, "rows is 0; a positive whole number"),
        ({"epsilon": 1, "max_cells": 10**9}, "max_cells is 1,000,000,000; at most"),
        ({"epsilon": 1, "singles_share": 1}, "singles_share is 1; a number between 0 and 1 is needed"),
    ],
)
def test_wrong_parameters_are_refused(parameters, sentence):
    with pytest.raises(dpf.InputError, match=sentence):
        SyntheticTable(**parameters)


@pytest.mark.parametrize("order", [2, 3])
def test_marginals_of_rounds_have_as_many_attributes_as_asked_for(order):
    sets = SyntheticTable(epsilon=1, method="rounds", order=order).method_on(SCHEMA).sets
    assert max(map(len, sets)) == order


def test_adaptive_rounds_spend_their_block_and_no_more():
    study = dpf.Study(SCHEMA, epsilon=100, delta="1e-6")
    study.add("rows", SyntheticTable(rho=2, method="adaptive"))
    results = study.run(people(), seed=1)
    spent = [float(one.calibration.losses.zcdp.add_or_remove_one) for one in results.charges]
    assert 1.999 < sum(spent) <= 2
    assert len({one.variance for one in results["rows"].measured[len(SCHEMA) :]}) > 1  # some rounds cost more
    for of in ((1, 2), (0, 2, 3)):
        assert distance(results["rows"], people(), of) < 0.05


MINED = {
    "tree": {"miner": "dp-tree", "target": "ill", "max_depth": 2},
    "doses": dpf.miner("histogram", attribute="dose", epsilon=10**6),
}


def test_miners_on_the_rows_are_planned_as_post_processing_and_cost_nothing():
    study = dpf.Study(SCHEMA, epsilon=20)
    study.add("rows", SyntheticTable(20, miners=MINED))
    plan = study.plan()
    assert plan.total().epsilon == 20
    assert [one.name for one in dpf.plan.walk(plan.root) if isinstance(one, dpf.plan.Post)] == [
        "rows",
        "tree from rows",
        "doses from rows",
    ]
    rows = study.run(people(), seed=1)["rows"]
    exactly = np.bincount(rows.codes[:, 3], minlength=4)
    doses = rows.finding("doses")
    assert [round(doses[label].value) for label in SCHEMA["dose"].labels] == exactly.tolist()
    again = SyntheticRows.from_dict(json.loads(rows.to_json()))
    assert again == rows
    assert str(again.finding("tree")) == str(rows.finding("tree"))
    assert "mined from the rows: tree, by dp-tree" in str(rows)


@pytest.mark.parametrize(
    ("miners", "sentence"),
    [
        ({"a": {"miner": "nope"}}, "miners.a: no miner is named 'nope'"),
        ({"a": {"target": "ill"}}, "miners.a is .* give a miner's name as 'miner'"),
        ({"a": {"miner": "dp-tree", "target": "nope"}}, "miners.a: step 'a': attribute 'nope' is not in the schema"),
    ],
)
def test_a_miner_on_the_rows_that_cannot_be_used_is_refused_by_the_plan(miners, sentence):
    with pytest.raises(dpf.InputError, match=sentence):
        dpf.Study(SCHEMA, epsilon=20).add("rows", SyntheticTable(20, miners=miners))


def test_what_is_not_mined_is_not_found():
    with pytest.raises(dpf.InputError, match="nothing called 'tree' is mined from these rows"):
        run(epsilon=20).finding("tree")


def test_an_open_attribute_is_left_out_and_refused_by_name():
    schema = dpf.Schema([*SCHEMA, dpf.Open("name")])
    assert "name" not in SyntheticTable(1).columns(schema)
    with pytest.raises(dpf.InputError, match="attribute 'name' is open"):
        SyntheticTable(1, attributes=["ill", "name"]).columns(schema)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"attributes": ["ill", "ill"]}, "is empty or names an attribute twice"),
        ({"attributes": []}, "is empty or names an attribute twice"),
        ({"attributes": ["only"]}, "no attribute has two values or more; there is nothing to count"),
    ],
)
def test_a_table_without_anything_to_count_is_refused(parameters, words):
    schema = dpf.Schema([*SCHEMA, dpf.Categorical("only", ["x"])])
    with pytest.raises(dpf.InputError, match=words):
        SyntheticTable(1, **parameters).plan(schema)
    with pytest.raises(dpf.InputError, match="is empty or names an attribute twice"):
        SyntheticTable(1).plan(dpf.Schema([dpf.Open("name")]))


def facts_of(sizes, rows, relation="add-or-remove-one", unit_rows=1, **budget):
    schema = dpf.Schema(
        [dpf.Categorical(f"a{k}", [str(code) for code in range(size)]) for k, size in enumerate(sizes)], about_rows=rows
    )
    study = dpf.Study(
        schema,
        epsilon=10**6,
        delta="1e-6",
        relation=relation,
        rows_per_unit=unit_rows,
        allow=["rows-per-unit-asserted"],
    )
    study.add("rows", SyntheticTable(**budget))
    return study.miners["rows"].facts(schema)


def method_of(sizes, rows, **given):
    facts = facts_of(sizes, rows, **given)
    return facts.method(), facts.rounds(), facts.order(), float(facts.share_of_singles)


def test_the_method_follows_from_predicted_noise():
    assert method_of(ADULT, 39_000, epsilon=1)[0] == "rounds"
    assert method_of([4] * 36, 500, epsilon="0.1")[0] == "independent"  # noise of hundreds of rows on each pair
    assert [method_of([4] * number, 10**6, epsilon=1)[0] for number in (45, 46)] == ["rounds", "tree"]
    few = [method_of([4] * number, 10**4, epsilon="0.3")[:2] for number in (32, 33)]
    assert few == [("rounds", 16), ("tree", 17)]  # the fewest rounds that are worth it
    assert method_of([4], 10**6, epsilon=1)[0] == "independent"
    assert method_of(ADULT, None, epsilon=1)[:2] == ("rounds", 15)  # nobody says how many rows there are


def test_noise_is_predicted_as_it_is_drawn():
    """It is larger for a unit of 20 rows and under replace-one, so that a budget buys fewer rounds or none."""
    usual, replaced = (method_of([4] * 8, 4000, relation=own, epsilon="0.5") for own in dpf.Relation)
    assert usual[0] == replaced[0] == "rounds"
    assert usual[1] > replaced[1]
    assert method_of([4] * 8, 2000, unit_rows=20, epsilon="0.5")[0] == "independent"
    share = exact("0.5", "a share")
    for relation, rows in (("add-or-remove-one", 1), ("replace-one", 1), ("add-or-remove-one", 4)):
        for budget in ({"epsilon": 1}, {"rho": "0.5"}):
            facts = facts_of([4, 6], 500, relation, rows, **budget)
            method = SyntheticTable(**budget, method="independent", unit_rows=rows, relation=relation)
            study = dpf.Study(
                dpf.Schema(facts.among), epsilon=100, delta="1e-6", relation=relation, rows_per_unit=rows,
                allow=["rows-per-unit-asserted"],
            )  # fmt: skip
            study.add("rows", method)
            drawn = study.run(dpf.Table.from_codes(study.schema, [[0] * 9] * 2), seed=1)["rows"].measured
            error = sum(len(one.counts) * facts.budget.size_of_noise(one.variance) for one in drawn) / 2
            assert facts.noise_of_singles(2 * share) == pytest.approx(error / (2 * 500))


@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one"])
def test_a_public_number_of_rows_is_not_released_and_predicted_noise_is_without_it(relation):
    schema = dpf.Schema(list(facts_of([4, 6], 500, rho="0.5").among), rows=500)
    miner = SyntheticTable(rho="0.5", method="independent", relation=relation)
    study = dpf.Study(schema, epsilon=100, delta="1e-6", relation=relation)
    study.add("rows", miner)
    found = study.run(dpf.Table.from_codes(schema, [[0] * 500] * 2), seed=1)["rows"]
    assert [one.counts.sum() for one in found.measured] == pytest.approx([500, 500], abs=1e-6)
    facts = miner.facts(schema)
    error = sum(len(one.counts) * facts.budget.size_of_noise(one.variance) for one in found.measured) / 2
    assert facts.noise_of_singles(exact(1, "a share")) == pytest.approx(error / (2 * 500))
    secret = miner.facts(attrs.evolve(schema, rows=None, about_rows=500))
    assert facts.noise_of_singles(exact(1, "a share")) < secret.noise_of_singles(exact(1, "a share"))


def sets_of(epsilon, about_rows, **parameters):
    """The numbers of cells of the marginals that rounds may select."""
    schema = dpf.Schema([dpf.Categorical(f"a{k}", list("abcdef")[: k + 2]) for k in range(5)], about_rows=about_rows)
    method = SyntheticTable(epsilon, method="rounds", rounds=4, singles_share="0.1", **parameters).method_on(schema)
    return sorted(math.prod(method.sizes[a] for a in one) for one in method.sets)


def test_a_marginal_that_would_be_mostly_noise_cannot_be_selected():
    """Each round has an epsilon of .2025, so a cell is off by 5 rows on average: 16 cells are off by 40 rows in all."""
    assert sets_of(1, about_rows=40) == [6, 8, 10, 12, 12, 15]
    assert sets_of(1, about_rows=4) == [6]  # even the smallest pair is, and stays
    assert max(sets_of(1, about_rows=5000)) == max(sets_of(1, about_rows=None)) == 120
    assert max(sets_of(1, about_rows=5000, max_cells=100)) == 90


def test_less_noise_makes_more_rounds_and_leaves_more_for_them():
    few, some, many = (method_of(ADULT, 39_000, epsilon=epsilon) for epsilon in ("0.1", "0.5", 100))
    assert few[1] == 8 < some[1] < many[1] == 45
    assert 0.7 > few[3] > 0.3 > some[3] >= many[3] == 0.1
    assert method_of(ADULT, 20_000, epsilon="0.1")[3] == 0.7
    assert method_of(ADULT, 10_000, rho="0.0001")[3] == pytest.approx(1 / 3)
    assert method_of([2, 4, 8], 1000, rho="0.0001")[3] == pytest.approx(2 / 3)  # a first round of three is dear
    assert method_of([2] * 16, 20_000, rho="0.01")[2] == 3
    assert method_of([2] * 30, 20_000, rho="0.01")[2] == 2


def independent_rows():
    """20,000 rows of attributes of 2 to 10 values that have nothing to do with each other, small values most often."""
    draw, sizes = np.random.default_rng(7), [2, 3, 4, 5, 6, 8, 10, 2, 3, 4, 5, 6]
    schema = dpf.Schema(
        [dpf.Categorical(f"a{k}", [str(code) for code in range(size)]) for k, size in enumerate(sizes)],
        about_rows=20_000,
    )
    shares = [0.5 ** np.arange(size) for size in sizes]
    codes = np.array([draw.choice(len(own), 20_000, p=own / own.sum()) for own in shares])
    return schema, codes


def rows_by(method, schema, codes, seed):
    study = dpf.Study(schema, epsilon="0.1", delta="1e-9")
    study.add("rows", SyntheticTable(rho="0.000124", method=method))
    return study.run(dpf.Table.from_codes(schema, codes), seed=seed)["rows"]


def mean_error(method, schema, codes, seeds):
    """The mean total variation of marginals of three neighbouring attributes."""
    errors = []
    for seed in range(seeds):
        found = rows_by(method, schema, codes, seed).codes.astype(int)
        for a in range(len(codes) - 2):
            shape = tuple(schema[f"a{k}"].size for k in range(a, a + 3))
            tables = [
                np.bincount(np.ravel_multi_index(tuple(one[a : a + 3]), shape), minlength=math.prod(shape))
                for one in (found.T, codes)
            ]
            errors.append(np.abs(tables[0] / len(found) - tables[1] / codes.shape[1]).sum() / 2)
    return np.mean(errors)


def test_rows_of_independent_attributes_are_as_near_as_those_of_one_way_marginals():
    """Of 24 other runs the ratio is 1.02; of 12 its standard error is .036, so a false failure has 1 chance in 5,000.

    Without stages it is 1.25.
    """
    schema, codes = independent_rows()
    assert mean_error("auto", schema, codes, 12) < 1.15 * mean_error("independent", schema, codes, 12)


def test_the_noise_in_parts_of_a_table_does_not_come_with_what_the_table_tells():
    """One attribute is the parity of two others: of that table of three attributes, the pairs are all noise.

    What is compared are tables that hold one of the three at most.

    The ratio to independent attributes is .93 to 1.03 in three draws of six runs, and was 1.09 to 1.20 when the pairs
    were believed with the table.
    """
    draw = np.random.default_rng(7).integers(0, 2, (12, 10_000))
    draw[8] = draw[0] ^ draw[4]
    schema = dpf.Schema([dpf.Categorical(f"a{k}", ["0", "1"]) for k in range(12)], about_rows=10_000)
    assert mean_error("auto", schema, draw, 6) < 1.07 * mean_error("independent", schema, draw, 6)


def test_once_rounds_say_no_more_than_noise_one_way_marginals_get_the_rest():
    schema, codes = independent_rows()
    found = rows_by("auto", schema, codes, 1)
    facts = [one.standard_error for one in found.measured if len(one.names) == 1]
    alone = [one.standard_error for one in rows_by("independent", schema, codes, 1).measured]
    assert found.method == "rounds"
    assert len(found.measured) == len(schema) + 1  # one round
    planned = SyntheticTable(rho="0.000124").method_on(schema)
    assert facts == pytest.approx(np.array(alone) / math.sqrt(1 - (1 - planned.share) / planned.times), rel=0.01)


def test_a_tree_stops_after_its_first_pair_once_that_says_no_more_than_noise():
    schema, codes = independent_rows()
    found = rows_by("tree", schema, codes, 1)
    planned = SyntheticTable(rho="0.000124", method="tree").method_on(schema)
    assert planned.stages == [1, 2, 3]
    assert len(found.measured) == len(schema) + 1


def planned_and_run(sizes, rows, **parameters):
    """A method as it is planned, and its result on rows of which one in three is equal in all attributes."""
    draw = np.random.default_rng(1)
    codes = np.array([draw.choice(size, rows, p=(own := 0.5 ** np.arange(size)) / own.sum()) for size in sizes])
    codes[:, : rows // 3] = draw.integers(0, 2, rows // 3)
    schema = dpf.Schema(
        [dpf.Categorical(f"a{k}", list(map(str, range(size)))) for k, size in enumerate(sizes)], about_rows=rows
    )
    given = SyntheticTable(**parameters)
    study = dpf.Study(schema, epsilon=100, delta="1e-9")
    study.add("rows", given)
    return given.method_on(schema), study, study.run(dpf.Table.from_codes(schema, codes), seed=1)["rows"]


def share_by_noise(found, sizes, rho):
    """The share of a budget that one-way marginals had, by their noise."""
    whole = facts_of(sizes, None, rho=rho)
    return whole.alone.variances(whole.budget.amount, whole.plan)[0] / found.measured[0].variance


def test_where_one_way_marginals_stay_noisy_they_get_half_of_the_rounds_again():
    """With all of the budget they would be off by .05 of the rows on average: 10 rounds are planned, 5 made."""
    sizes = [5] * 20
    planned, study, found = planned_and_run(sizes, 2000, rho="0.003")
    assert (planned.name, planned.rounds, planned.times, planned.stages) == ("rounds", 10, 5, [2, 3])
    assert len(found.measured) == len(sizes) + planned.times
    assert share_by_noise(found, sizes, 0.003) == pytest.approx(float(1 - (1 - planned.share) / 2), rel=0.02)
    assert float(study.plan().totals()["zcdp"].rho) == pytest.approx(0.003, rel=1e-6)


@pytest.mark.parametrize(
    "parameters",
    [
        {"rho": "0.02"},
        {"rho": "0.003", "rounds": 10},
        {"rho": "0.003", "method": "tree"},
    ],
)
def test_other_rounds_are_all_made(parameters):
    """Where noise is small, where their number is given, and for the pairs of a tree."""
    planned, _, _ = planned_and_run([5] * 20, 2000, **parameters)
    assert planned.times == planned.rounds >= 10


def test_four_rounds_are_made_at_least():
    facts = [facts_of([5] * number, 1000, rho="0.0005") for number in (8, 12, 20)]
    assert [(one.rounds(), one.given_back()) for one in facts] == [(4, 0), (6, 2), (10, 5)]


def test_in_pure_epsilon_one_way_marginals_get_no_rounds_back():
    """They have most of the budget before."""
    facts = facts_of([5] * 20, 2000, epsilon="0.1")
    assert facts.noise_of_singles(Fraction(1)) > 0.1
    assert facts.given_back() == 0


def test_the_pairs_of_a_tree_leave_more_for_one_way_marginals():
    noisy, exact_ones = (facts_of([5] * 40, 20_000, rho=rho) for rho in ("0.0001", 1))
    assert [float(noisy.share_before(name)) for name in ("tree", "rounds")] == pytest.approx([0.6, 1 / 3])
    assert [float(exact_ones.share_before(name)) for name in ("tree", "rounds")] == [0.1, 0.1]
    schema = dpf.Schema(noisy.among, about_rows=20_000)
    assert SyntheticTable(rho="0.0001", method="tree").method_on(schema).share == noisy.share_before("tree")


def test_attributes_that_no_pair_is_measured_of_are_not_merged():
    """Rare values of all ten attributes are one group, until the tree stops after its first pair."""
    shares, draw = np.array([0.6, 0.398, *[0.0002] * 10]), np.random.default_rng(3)
    codes = draw.choice(12, (10, 20_000), p=shares)
    schema = dpf.Schema([dpf.Categorical(f"a{k}", list(map(str, range(12)))) for k in range(10)], about_rows=20_000)
    found = rows_by("tree", schema, codes, 1)
    *alone, pair = found.measured
    assert [len(one.counts) for one in alone] == [12] * 10
    assert set(found.merged) == set(pair.names)
    assert pair.counts.size < 5 * 5


def test_rounds_go_on_while_they_say_more_than_noise():
    found = run(method="rounds", rounds=8, epsilon=20)
    assert len(found.measured) == len(SCHEMA) + 8


@pytest.mark.parametrize("budget", [{"epsilon": 3}, {"rho": 2}])
@pytest.mark.parametrize("method", ["rounds", "tree"])
def test_either_way_costs_the_budget(budget, method):
    study = dpf.Study(independent_rows()[0], epsilon=100, delta="1e-6")
    study.add("rows", SyntheticTable(**budget, method=method, **({"rounds": 20} if method == "rounds" else {})))
    plan = study.plan()
    more = [one for one in dpf.plan.walk(plan.root) if isinstance(one, dpf.plan.Either)]
    assert len(more) == {"rounds": 2, "tree": 3}[method]
    totals = plan.totals()
    spent = totals["pure"].epsilon if "epsilon" in budget else totals["zcdp"].rho
    assert float(next(iter(budget.values()))) == pytest.approx(float(spent), rel=1e-6)


def costs_of(schema, **parameters):
    study = dpf.Study(schema, epsilon=100)
    study.add("rows", SyntheticTable(epsilon=1, **parameters))
    return study.plan().run_costs()["rows"]


def test_the_plan_states_time_and_memory():
    few, many = (costs_of(dpf.Schema(SCHEMA, about_rows=rows)) for rows in (1000, 10**6))
    assert few.seconds < many.seconds
    assert few.memory < many.memory
    assert "16 cells are counted" in costs_of(SCHEMA, method="independent").text
    assert costs_of(SCHEMA).seconds is None  # nobody says how many rows there are
    assert costs_of(SCHEMA, max_cells=10**6).memory - costs_of(SCHEMA, max_cells=10**5).memory == 50 * 9 * 10**5


FEW = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("b", list("xyz")), dpf.Categorical("c", list("wxyz"))])


@pytest.mark.parametrize(
    ("parameters", "tables", "counted", "memory", "seconds"),
    [  # of one-way marginals, of all; then beside what each synthetic row takes, and for the rest of a run
        ({"method": "independent"}, 3, 9, 32 * 9 + 50 * 9 + 200_000 * 36, 3e-9 * 3e6 + 2e-7 * 9 * 40),
        ({"method": "tree", "max_cells": 50}, 6, 35, 32 * 35 + 50 * 50, 3e-9 * 9e6 + 2 * 3 * 2e-5 + 2e-7 * 50 * 40),
        (
            {"method": "rounds", "rounds": 4, "order": 2, "max_cells": 1000},
            6,
            35,
            32 * 35 + 50 * 1000 + 200_000 * 36,
            3e-9 * 9e6 + 4 * 3 * (2e-4 + 2e-8 * 200_000) + 2e-7 * 1000 * (4 * 4 + 40),
        ),
    ],
)
def test_what_a_million_rows_of_three_attributes_cost(parameters, tables, counted, memory, seconds):
    schema = attrs.evolve(FEW, about_rows=10**6)
    for rows in (None, 500):
        found, drawn = costs_of(schema, rows=rows, **parameters), rows or 10**6
        assert found.memory == pytest.approx(memory + drawn * (4 * 3 + 200))
        assert found.seconds == pytest.approx(1 + seconds + 1e-6 * drawn * 3)
        cells = parameters.get("max_cells", 9)
        what = f"{tables} tables with {counted} cells are counted, and the model has up to {cells:,} cells"
        assert found.text.endswith(f": {what}")
    unknown = costs_of(FEW, **parameters)
    assert unknown.text.endswith(f": {what}; each row adds to this")
    few = costs_of(attrs.evolve(FEW, about_rows=100), **parameters)  # so many of the model's rows are compared
    compared = 0 if parameters["method"] == "tree" else 36
    assert few.memory - unknown.memory == pytest.approx(100 * (212 + compared))


def test_a_tree_has_no_more_cells_than_planned_and_leaves_out_pairs_that_have_no_room():
    sizes = [2, 3, 40, 50, 4]
    schema = dpf.Schema([dpf.Categorical(f"a{k}", list(map(str, range(size)))) for k, size in enumerate(sizes)])
    table = dpf.Table.from_codes(schema, np.random.default_rng(0).integers(0, 2, (5, 200)))
    for most in (200, 420, 1200, 10**5):
        study = dpf.Study(schema, epsilon=100)
        study.add("rows", SyntheticTable(epsilon=20, method="tree", max_cells=most))
        found = study.run(table, seed=0)["rows"]
        pairs = [one for one in found.measured if len(one.names) == 2]
        assert found.model.tree.cells <= most
        assert all(one.counts.size <= (most - 99) // 4 for one in pairs)
        assert len(pairs) == {200: 2, 420: 3, 1200: 4, 10**5: 4}[most]


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"max_cells": 15}, "all attributes together have 16 values, more than max_cells = 15"),
        ({"max_cells": 15, "method": "independent"}, "all attributes together have 16 values"),
        (
            {"max_cells": 15, "method": "tree", "attributes": ["town", "age"]},
            "with method 'tree', no marginal of two attributes fits into max_cells = 15, "
            "since the smallest has 16 cells",
        ),
        ({"max_cells": 16, "method": "rounds"}, "no marginal of two attributes fits into max_cells = 16"),
    ],
)
def test_a_model_without_room_is_refused_when_it_is_planned(parameters, sentence):
    with pytest.raises(dpf.InputError, match=sentence):
        dpf.Study(SCHEMA, epsilon=20).add("rows", SyntheticTable(20, **parameters))


@pytest.mark.parametrize("method", ["tree", "rounds", "adaptive", "independent"])
@pytest.mark.parametrize("budget", [{"rho": "0.05"}, {"epsilon": 2}])
def test_the_number_of_rows_is_the_mean_of_all_that_was_measured(method, budget):
    """The sums of one-way marginals in zCDP are one number; those in pure epsilon are one for each attribute."""
    found = run(method=method, delta="1e-6", **budget)
    alone = [NoisyHistogram(one.counts, one.variance) for one in found.measured[: len(SCHEMA)]]
    several = found.measured[len(SCHEMA) :]
    assert bool(several) == (method != "independent")
    if "rho" in budget:
        sizes = np.array([one.counts.size for one in alone])
        squares, added = np.sqrt((1 / sizes**2).sum()), (1 - 1 / sizes)
        alone = [
            attrs.evolve(one, sum_variance=one.variance / (added[0] * squares + 1 / sizes[0] ** 2)) for one in alone[:1]
        ]
    weights = [1 / one.sum_variance for one in alone] + [1 / (one.variance * one.counts.size) for one in several]
    sums = [one.counts.sum() for one in [*alone, *several]]
    assert found.total == pytest.approx(np.average(sums, weights=weights), rel=1e-6)
    assert not several or abs(found.total - sums[0]) > 0.01
