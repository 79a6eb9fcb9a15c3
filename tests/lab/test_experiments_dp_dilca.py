"""The experiments of the DP-DILCA paper: tables as published, settings, tasks, and the page's tests."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from dpframework_distance import DPDilca
from dpframework_distance.evaluation import distances

import dpframework as dpf
from dpframework.lab.evaluation import Trial
from dpframework.lab.experiment.user_functions import Code

PAGE = Path(__file__).parents[2] / "docs" / "experiments" / "dp-dilca.md"
FOLDER = PAGE.with_suffix("")
SCHEMA = dpf.Schema(
    [dpf.Categorical(name, list("pqrs")) for name in ("a", "b", "c", "d")] + [dpf.Categorical("class", list("xy"))],
    rows=200,
)


def function(place):
    return Code(place, FOLDER).load()


def table(seed=0):
    """Return rows whose class follows from each of the attributes, which go together."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, 200)
    noisy = [np.where(rng.random(200) < 0.1, first ^ 1, first) for _ in range(3)]
    return dpf.Table.from_codes(SCHEMA, np.array([first, *noisy, first // 2]))


def test_a_table_is_binned_and_completed_and_says_that_its_domains_come_from_the_data(tmp_path):
    numbers = [1, 2, 3, 4, 5, 51, 52, 53, 54, 55]
    rows = [f"{n},{'?' if n == 55 else 'v'},w,{n % 2},{'yes' if n > 9 else 'no'}" for n in numbers]
    rows[0] = rows[0].replace("v", "u")
    (tmp_path / "rows.csv").write_text("\n".join(["age,some,one,few,ill", *rows]) + "\n")
    made = function("generators.py:as_published")(path=str(tmp_path / "rows.csv"), label="ill", seed=3)
    assert made.schema.names == ("age", "some", "few", "class")
    assert made.schema.inferred
    assert made.schema.rows == 10
    assert [attribute.labels for attribute in made.schema][1:] == [("u", "v"), ("0", "1"), ("no", "yes")]
    assert made.schema["age"].size == 5
    assert (np.diff(made.codes[0]) >= 0).all()  # bins are in the order of the numbers
    assert made.codes[1].tolist() == [0] + [1] * 9  # the gap is filled with the most common value


@pytest.mark.parametrize(
    ("settings", "params", "total"),
    [
        ("default", {"each": True}, 2),
        ("default", {}, Fraction(1, 2)),
        ("published", {"each": True}, 2),
        ("published", {"each": True, "context": "baseline"}, Fraction(1, 2)),
        ("published", {"each": True, "context": "baseline-mean-su"}, Fraction(1, 2)),
        ("published", {"for_contexts": True, "target": "b", "context_size": 2}, Fraction(5, 3)),
    ],
)
def test_epsilon_is_for_each_attribute_or_for_all(settings, params, total, monkeypatch):
    learn = function("learning.py:private")
    planned = []
    add = dpf.Study.add
    monkeypatch.setattr(
        dpf.Study, "add", lambda study, name, miner: (planned.append(miner), add(study, name, miner))[1]
    )
    found = learn(table(), seed=1, epsilon=0.5, settings=settings, **{"context": "max-relevance", **params})
    assert list(found) == [params["target"]] if "target" in params else ["a", "b", "c", "d"]  # and not the class
    assert planned[0].epsilon == total
    make = DPDilca.published if settings == "published" else DPDilca
    of = {name: params[name] for name in ("target", "context_size") if name in params}
    assert planned[0] == make(total, context=planned[0].context, attributes=("a", "b", "c", "d"), **of)


def test_zcdp_runs_within_the_same_epsilon():
    private = function("learning.py:private")
    found = private(table(), seed=1, epsilon=1, settings="zcdp", context="max-dependency")
    assert found["a"].context == ("b", "c", "d")


def test_noise_does_not_look_at_the_rows_and_shares_know_no_context():
    noise, shares = function("learning.py:noise"), function("learning.py:shares")
    one, other = (noise(table(rows), seed=5, context="max-relevance")["a"].matrix for rows in (1, 2))
    assert np.allclose(one, other, atol=0.01)
    assert not np.allclose(one, noise(table(1), seed=6, context="max-relevance")["a"].matrix, atol=0.01)
    rows = table()
    share = np.bincount(rows.codes[0]) / 200
    found = shares(rows, seed=0, context="mean-su")["a"]
    assert found.context == ()
    assert found.matrix[1, 3] == pytest.approx(abs(share[1] - share[3]))


def test_the_diagonal_alone_correlates():
    rows = table()
    trial = Trial(function("learning.py:overlap")(rows, seed=0), rows, None, {"context": "max-dependency"})
    assert distances(trial)["pearson"] == 0  # it says nothing of the values
    assert function("measures.py:correlation_with_diagonal")(trial)["pearson_with_diagonal"] > 0.5


def test_tasks_succeed_where_classes_follow_from_the_values():
    rows = table()
    learned = function("learning.py:not_private")(rows, seed=0, context="max-dependency")
    trial = Trial(learned, rows, table(1))
    assert function("measures.py:nearest_neighbours")(trial)["accuracy"] > 0.95
    assert function("measures.py:ward")(trial, rows=100)["ari"] > 0.9


def results():
    """Return results in which figures of the settings grow with epsilon, and those of noise are worse."""
    rng = np.random.default_rng(0)
    rows = []
    for data in ("dermatology", "soybean", "nltcs"):
        for context in ("mean-su", "max-relevance", "max-dependency"):
            for repetition in range(1, 9):
                at = {"data": data, "context": context, "repetition": repetition, "seconds": 0.25}
                for method in ("published settings", "dp-dilca", "noise"):
                    for epsilon in (None,) if method == "noise" else (0.1, 0.5, 1.0):
                        figure = (epsilon or 0) + 0.01 * rng.random() + 0.02 * (context != "mean-su")
                        pearson = float("nan") if data == "nltcs" else figure
                        of = {"method": method, "epsilon": epsilon, "adjusted_f_score": figure, "pearson": pearson}
                        rows.append(at | of)
    return pl.DataFrame(rows)


def test_runs_are_compared_with_those_of_noise():
    found = function("comparison.py:against_noise")(results())
    assert found.shape == (12, 6)
    assert found.row(0) == ("contexts", "published settings", "mean-su", *["3 of 3"] * 3)
    assert found.row(6)[3:] == ("2 of 2",) * 3  # where all attributes have two values, nothing correlates
    same = results().with_columns(pl.lit(0.5).alias("adjusted_f_score"))
    assert function("comparison.py:against_noise")(same).row(0)[3:] == ("0 of 3",) * 3


def test_growth_and_variants_are_tested():
    paper = pl.read_csv(FOLDER / "paper-table-5.csv")
    trends = function("comparison.py:trends")(results(), paper)
    assert trends.filter(context="mean-su")["paper: p"].to_list() == ["1.5e-73", "1e-78"]
    assert trends["subjects"].to_list() == ["24"] * 3 + ["16"] * 3
    assert all(float(p) < 1e-6 for p in trends["dp-dilca: p"])
    variants = function("comparison.py:variants")(results())
    assert set(variants["rank of mean-su"]) == {"3.00"}


def test_times_stand_beside_the_papers():
    paper = pl.read_csv(FOLDER / "paper-table-6.csv")
    found = function("comparison.py:times")(results(), paper)
    assert found.columns == ["context", "seconds of", "dermatology", "soybean", "nltcs"]
    assert found.row(6) == ("max-dependency", "paper", "41.82", "44.37", "6.19")
    assert found.row(7)[2:] == ("0.25",) * 3


def test_the_page_shows_the_committed_tests():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- all of dp-dilca/results/") == 4
    assert function("comparison.py:written")(page) == page


@pytest.mark.parametrize(("kind", "ones", "names"), [("A", 5000, "ccc"), ("B", 2000, "ccc"), ("C", 3000, "ccww")])
def test_a_made_up_table_is_swapped_as_often_as_it_says(kind, ones, names):
    made = function("generators.py:made_up")(kind=kind, noise=0.2, seed=4)
    target, *columns = made.codes
    assert len(columns) == 10
    assert target.sum() == ones
    named = {"c": "context", "w": "weak"}
    assert [name.split()[0] for name in made.schema.names[1 : len(names) + 1]] == [named[k] for k in names]
    assert [int((column != target).sum()) for column in columns[: len(names)]] == [
        2000 if k == "c" else 3500 for k in names
    ]


def test_a_made_up_table_of_blocks_says_its_target_by_all_others_together():
    made = function("generators.py:made_up")(kind="D", noise=0, seed=4)
    blocks = made.codes[:5]
    assert blocks.sum(axis=0).tolist() == [1] * 10_000
    assert blocks.sum(axis=1).tolist() == [2000] * 5
    found = function("learning.py:not_private")(made, seed=0, context="max-dependency", context_size=4, target="target")
    right = function("measures.py:right_context")
    assert right(Trial(found, made)) == {"right": 1}
    fewer = function("learning.py:not_private")(made, seed=0, context="max-dependency", target="target")
    assert right(Trial(fewer, made)) == {"right": 0}


def test_distances_between_rows_are_compared_with_those_without_privacy():
    rows, apart = table(), function("measures.py:rows_apart")
    of = {"context": "max-relevance"}
    exact = function("learning.py:not_private")(rows, seed=0, **of)
    assert apart(Trial(exact, rows, None, of), rows=50) == {"rows_pearson": pytest.approx(1), "rows_l1": 0}
    assert apart(Trial(function("learning.py:overlap")(rows, seed=0), rows, None, of), rows=50)["rows_l1"] > 0.1
    beside = function("measures.py:beside_dilca_m")(Trial(exact, rows, None, of))
    assert beside["pearson_of_m"] == distances(Trial(exact, rows, None, of), context="mean-su")["pearson"]
    assert function("measures.py:agreement")(Trial(rows.codes[4], rows)) == {"ari": 1}


def test_swaps_of_neighbours_are_counted():
    order = np.zeros((4, 4))
    order[np.triu_indices(4, 1)] = [1, 2, 3, 4, 5, 6]
    other = np.zeros((4, 4))
    other[np.triu_indices(4, 1)] = [2, 1, 3, 6, 5, 4]
    swaps = function("adult_contexts.py:swaps")
    assert (swaps(order, order), swaps(order, other)) == (0, 4)


def test_what_a_script_computes_is_written_where_it_is_asked_to(tmp_path, capsys):
    write = Code("table_files.py:write_tables", FOLDER.parent).load()
    (tmp_path / "paper.md").write_text("Before\n\n<!-- t -->\n\n| old |\n\nAfter\n")
    made = {"t": pl.DataFrame({"a": [1], "b": ["x, y"]})}
    pictures = {"p.png": lambda path: path.write_text("drawn")}
    write(made, pictures, None, False, tmp_path / "paper")
    assert capsys.readouterr().out == 't.csv\na,b\n1,"x, y"\n\n'
    write(made, pictures, tmp_path / "out" / "there", False, tmp_path / "paper")
    assert {path.name for path in (tmp_path / "out" / "there").iterdir()} == {"t.csv", "p.png"}
    assert {path.name for path in tmp_path.iterdir()} == {"paper.md", "out"}
    write(made, pictures, None, True, tmp_path / "paper")
    assert (tmp_path / "paper" / "results" / "p.png").read_text() == "drawn"
    assert "<!-- t -->\n\n| a | b |\n| --- | --- |\n| 1 | x, y |\n\nAfter" in (tmp_path / "paper.md").read_text()


def test_the_tables_of_adult_are_the_committed_ones():
    page = PAGE.read_text(encoding="utf-8")
    on_page = Code("table_files.py:on_page", FOLDER.parent).load()
    for name in ("tables-7-8", "order-of-age"):
        text = (FOLDER / "results" / f"{name}.csv").read_text(encoding="utf-8")
        assert f"<!-- {name} -->\n\n| " in page
        assert on_page(page, name, text) == page


def test_tables_by_attribute_are_the_committed_ones():
    text = PAGE.read_text(encoding="utf-8")
    names = ("figure-9", "table-3", "table-4")
    assert all(f"<!-- by attribute: {name} -->\n\n| " in text for name in names)
    assert function("by_attribute.py:written")(text) == text


def test_an_attribute_is_better_than_chance_if_its_own_runs_are():
    rng = np.random.default_rng(0)
    rows = []
    for method, epsilon in (("published settings", 1.0), ("published settings", 2.0), ("chance", None)):
        for run in range(30):
            found = rng.random() + (epsilon or 0)
            rows.append(
                {
                    "data": "cmc",
                    "method": method,
                    "context": "mean-su",
                    "epsilon": epsilon,
                    "repetition": run,
                    "f_score of near": found,
                    "f_score of chance": rng.random(),
                    "f_score of worse": -found,
                    "pearson of near": found,
                }
            )
    tests = function("by_attribute.py:tested")(pl.DataFrame(rows))
    better = {(row["of"], row["attribute"], row["epsilon"]): row["better"] for row in tests.to_dicts()}
    assert {key for key, found in better.items() if found} == {
        (of, "near", epsilon) for of in ("contexts", "distances") for epsilon in (1.0, 2.0)
    }
    assert len(better) == 8
    shares = function("by_attribute.py:share_better")(tests).filter(of="contexts").to_dicts()
    assert [(row["attributes"], row["epsilon 1.0"], row["epsilon 2.0"]) for row in shares] == [(3, 33, 33)]


def test_what_is_drawn_by_chance_depends_on_the_schema_alone():
    found = [function("learning.py:by_chance")(table(seed), seed=4, context="max-relevance") for seed in (0, 1)]
    for name in found[0]:
        assert len(found[0][name].context) == 3
        assert name not in found[0][name].context
        assert np.array_equal(found[0][name].matrix, found[1][name].matrix)
        assert np.array_equal(found[0][name].matrix, found[0][name].matrix.T)
    sizes = {len(function("learning.py:by_chance")(table(), seed=s, context="mean-su")["a"].context) for s in range(30)}
    assert sizes == {1, 2, 3}
