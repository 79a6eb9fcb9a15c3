"""The tree redescription paper's experiments: the generated tables, the drawn starts, and the page's comparisons."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from dpframework_trees.redescribe import AltExpM, AltMCMC, MCMCTreePair

import dpframework as dpf
from dpframework.lab.evaluation import redescription_quality
from dpframework.lab.experiment.user_functions import Code

PAGE = Path(__file__).parents[2] / "docs" / "experiments" / "tree-redescriptions.md"
FOLDER = PAGE.with_suffix("")
tables_command = Code("table_files.py:tables_command", PAGE.parent).load()


def function(place):
    return Code(place, FOLDER).load()


@pytest.mark.parametrize(
    ("generator", "size", "shape"),
    [("mammal_like", {"rows": 300}, (194, 48, 300)), ("cms_like", {"segments": 1}, (452, 152, 7200))],
)
def test_generated_tables_have_the_papers_shape_and_follow_from_the_seed(generator, size, shape):
    generate = function(f"generators.py:{generator}")
    table = generate(seed=1, **size)
    left, right = (table.schema.view(view) for view in dpf.View)
    assert (len(left), len(right), table.codes.shape[1]) == shape
    assert {type(attribute) for attribute in left} == {dpf.Boolean}
    assert {type(attribute) for attribute in right} == {dpf.Numeric}
    assert np.array_equal(table.codes, generate(seed=1, **size).codes)
    assert not np.array_equal(table.codes, generate(seed=2, **size).codes)
    # values and codes agree, and no column of the right view is constant
    assert all(
        np.array_equal(np.searchsorted(a.interior_cuts, table.values[a.name], side="right"), table.codes[k])
        for k, a in enumerate(table.schema)
        if isinstance(a, dpf.Numeric)
    )
    assert (table.codes[len(left) :].max(axis=1) > table.codes[len(left) :].min(axis=1)).all()


@pytest.mark.parametrize("generator", ["mammal_like", "cms_like"])
def test_generated_views_are_related(generator):
    table = function(f"generators.py:{generator}")(seed=1)
    # so large a budget leaves next to no noise: what is found is there
    study = dpf.Study(table.schema, epsilon=100)
    study.add("found", dpf.miner("alt-expm", epsilon=100))
    quality = redescription_quality(study.run(table, seed=0)["found"], table)
    assert quality.significant == 1
    assert quality.quartiles[1] > 0.5


def test_starts_are_drawn_by_the_seed_and_not_from_the_rows(monkeypatch):
    starts, make = [], dpf.miner

    def miner(name, **settings):
        starts.append(settings["starts"])
        return make(name, **settings)

    monkeypatch.setattr(dpf, "miner", miner)
    generate, run = function("generators.py:mammal_like"), function("published.py:from_drawn_starts")
    for rows_of, seed in ((1, 1), (2, 1), (1, 2)):
        run(generate(seed=rows_of, rows=60), seed=seed, epsilon=1, miner="alt-expm", number=3, max_depth=1)
    assert len(set(starts[0])) == 3
    assert starts[0] == starts[1] != starts[2]


def results(**jaccards):
    """Return results at epsilon 1 of methods, with so many redescriptions a run that one of three is significant."""
    rows = [
        {"data": "d", "epsilon": 1.0, "sensitivity": "published", "method": method.replace("_", " ")}
        | {"count": 0.0 if value is None else 3.0 * k + 3, "significant": np.nan if value is None else 1 / (k + 1)}
        | {"jaccard": np.nan if value is None else value, "error": np.nan if value is None else 1 - value}
        for method, values in jaccards.items()
        for k, value in enumerate(values)
    ]
    return pl.DataFrame(rows)


def test_table_3_pools_the_redescriptions_of_all_runs():
    (row,) = function("comparison.py:table_3")(results(AltMCMC=[0.5, 0.6, None])).to_dicts()
    # 3 of 3, then 3 of 6
    assert (row["significant"], row["runs"], row["runs with some"]) == (pytest.approx(66.67), 3, 2)
    assert row["redescriptions"] == 3


def test_tables_4_and_5_compare_the_best_with_those_of_its_setting_that_found_something_often_enough():
    found = function("comparison.py:tables_4_and_5")(
        results(
            AltMCMC=[0.6, 0.61, 0.62, 0.63, 0.64],
            AltMCMC_S=[0.8, 0.81, 0.82, 0.83, 0.84],
            AltExpM=[0.9, 0.9, 0.9, None, None],
            MCMCTreePair=[0.3, 0.31, 0.32, 0.33, 0.34],
        )
    )
    four = found.filter(table=4)
    assert four.select("stable", "best", "other").rows() == [
        ("no", "AltMCMC", "MCMCTreePair"),
        ("yes", "AltMCMC S", "MCMCTreePair"),
    ]
    # all of five runs are better than all of five others, two-sided: 2 / (10 choose 5)
    assert four["p"].to_list() == [pytest.approx(2 / 252, rel=0.02)] * 2
    # the error is 1 minus the index here, and the smaller the better
    assert (
        found.filter(table=5)
        .drop("table", "best median", "other median")
        .equals(four.drop("table", "best median", "other median"))
    )


def test_settings_are_summed_up_over_methods_and_runs():
    frame = results(AltMCMC=[0.5, 0.6, None], AltExpM=[0.9, None, None]).with_columns(support=pl.lit(7.0))
    (row,) = function("comparison.py:table_of_settings")(frame).to_dicts()
    # 3 of 3 and 3 of 6, and 3 of 3, in six runs
    assert row == {"data": "d", "epsilon": 1, "settings": "published"} | {
        "significant": 1.5,
        "support": 7,
        "jaccard": 0.6,
        "error": 0.4,
    }


def test_the_page_shows_the_committed_tables():
    page = PAGE.read_text(encoding="utf-8")
    tables = function("comparison.py:tables_of_the_page")()
    assert len(tables) == 7
    assert all(f"<!-- table {name} -->" in page for name in tables)
    assert function("comparison.py:written")(page, tables) == page


def test_the_command_touches_committed_tables_only_if_asked(tmp_path, capsys):
    made = function("comparison.py:tables")
    runs = results(**{name: [0.6, 0.61, 0.62, 0.63, 0.64] for name in ("AltMCMC", "AltExpM", "MCMCTreePair")})
    runs.with_columns(support=pl.lit(7.0)).write_parquet(tmp_path / "results.parquet")
    command = functools.partial(tables_command, "tables", made, tmp_path / "committed", lambda: filled.append(True))
    filled: list[bool] = []

    command([str(tmp_path / "results.parquet")])
    assert capsys.readouterr().out.startswith("table-3.csv\ndata,epsilon,settings,method,runs")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.parquet"]
    command([str(tmp_path / "results.parquet"), "--out", str(tmp_path / "out")])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "settings.csv",
        "table-3.csv",
        "tables-4-5.csv",
    ]
    assert not (tmp_path / "committed").exists()
    assert not filled
    command([str(tmp_path / "results.parquet"), "--commit"])
    assert len(list((tmp_path / "committed").iterdir())) == 3
    assert filled == [True]


def test_too_few_repetitions_write_nothing(tmp_path, capsys):
    results(AltMCMC=[0.5]).with_columns(support=pl.lit(7.0)).write_parquet(tmp_path / "results.parquet")
    with pytest.raises(SystemExit) as ended:
        tables_command(
            "tables",
            function("comparison.py:tables"),
            tmp_path,
            lambda: None,
            [str(tmp_path / "results.parquet"), "--commit"],
        )
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: too few repetitions for tables-4-5.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["results.parquet"]


def test_what_holds_no_results_is_told_in_a_sentence(tmp_path, capsys):
    (tmp_path / "text.parquet").write_text("no table")
    pl.DataFrame({"other": [1]}).write_parquet(tmp_path / "other.parquet")
    for name in ("missing.parquet", "text.parquet", "other.parquet", ""):
        given = str(tmp_path / name)
        with pytest.raises(SystemExit) as ended:
            tables_command("tables", function("comparison.py:tables"), tmp_path, lambda: None, [given, "--commit"])
        assert ended.value.code == 2
        told = capsys.readouterr().err
        assert told.startswith(f"error: '{given}' holds no results of the experiment, so nothing was written: ")
        assert told.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.parquet", "text.parquet"]


@pytest.mark.parametrize(
    ("name", "kind", "changes"),
    [
        ("AltMCMC", AltMCMC, {}),
        ("AltExpM", AltExpM, {}),
        ("AltMCMC S", AltMCMC, {"rounds": 1}),
        ("AltExpM S", AltExpM, {"rounds": 1}),
        ("MCMCTreePair", MCMCTreePair, {}),
        ("MCMCTreePair b", MCMCTreePair, {"tree_share": "1/2"}),
    ],
)
def test_published_miners_are_those_of_the_papers_tables(name, kind, changes):
    file = tomllib.loads((FOLDER / "tables-3-to-5.toml").read_text(encoding="utf-8"))
    (method,) = [one for one in file["method"] if one["name"] == name]
    values = file["data"][0]["values"]
    filled = {key: values.get(str(value).strip("{}"), value) for key, value in method["params"].items()}
    number = filled.pop("number")
    starts = [f"species {k}" for k in range(number)]
    filled["constraints"] = {"min_support": values["min_support"]}
    paper = kind.published(1, starts, constraints=filled["constraints"], **changes)
    assert paper == dpf.miner(filled.pop("miner"), epsilon=1, starts=starts, sensitivity="published", **filled)


def test_a_followed_walk_comes_to_the_distribution_that_pairs_are_drawn_from():
    scores = np.random.default_rng(2).uniform(0, 5, (2, 2, 2, 3, 3, 3))
    end = np.exp(function("convergence.py:limit")(scores, "1"))
    assert end.sum() == pytest.approx(1)
    walked = dict(function("convergence.py:walked")(scores, "1", (1, 20, 2_000)))
    distances = [np.abs(now - end).sum() / 2 for now in walked.values()]
    assert [now.sum() for now in walked.values()] == pytest.approx([1] * 3)
    assert distances[0] > distances[1] > 1e-3
    assert distances[2] < 1e-9


def test_tables_of_convergence_are_the_committed_ones():
    page = (FOLDER.parent / "tree-redescriptions.md").read_text(encoding="utf-8")
    for name in ("followed", "drawn"):
        text = (FOLDER / "results" / f"convergence-{name}.csv").read_text(encoding="utf-8")
        assert f"<!-- convergence-{name} -->\n\n| epsilon" in page
        assert Code("table_files.py:on_page", PAGE.parent).load()(page, f"convergence-{name}", text) == page


def test_made_up_answers_and_patients_have_the_papers_shapes():
    people = function("generators.py:npas_like")(seed=1, rows=300)
    sides = [list(people.schema.view(view)) for view in (dpf.View.LEFT, dpf.View.RIGHT)]
    assert [len(side) for side in sides] == [17, 47]
    assert sum(isinstance(a, dpf.Categorical) for a in sides[0]) == 16
    assert {a.size for a in sides[1]} == {5}
    again, other = (function("generators.py:npas_like")(seed=seed, rows=300) for seed in (1, 2))
    assert (people.codes == again.codes).all()
    assert (people.codes != other.codes).any()
    patients = function("generators.py:mimic_like")(seed=1, rows=500)
    sides = [list(patients.schema.view(view)) for view in (dpf.View.LEFT, dpf.View.RIGHT)]
    assert [len(side) for side in sides] == [107, 77]
    assert {a.size for a in sides[0]} == {2}
    assert {a.labels for a in sides[1]} == {("not done", "normal", "abnormal")}


@pytest.mark.parametrize("layered", [False, True])
def test_trees_without_privacy_find_what_is_planted_once(layered):
    rng = np.random.default_rng(3)
    a, b = rng.random((2, 400)) < 0.5
    columns = [a, b, a & b, rng.random(400) < 0.5]
    schema = dpf.Schema([dpf.Boolean(f"{view[0]}{k}", view=view) for view in ("left", "right") for k in range(2)])
    table = dpf.Table.from_codes(schema, np.array(columns, dtype=np.uint8))
    found = list(function("clired.py:found_by")(table, layered=layered, least=20))
    assert any((left == (a & b)).all() and (right == (a & b)).all() for left, right in found)
    keys = [(left.tobytes(), right.tobytes()) for left, right in found]
    assert len(set(keys)) == len(keys)
    assert all((left & right).sum() >= 20 and max(left.sum(), right.sum()) <= 320 for left, right in found)


def test_reported_indices_are_ranked_by_run_and_counted_by_band():
    lines = [
        {"data": "species", "method": "AltExpM", "run": run, "noisy": k / 10, "true": k / 10, "kept": k != 1}
        for run in range(2)
        for k in range(1, 7)
    ]
    lines[-1]["true"] = 0.15  # of the second run, the order of one is wrong
    found = pl.DataFrame([line | {"significant": line["run"] == 0} for line in lines])
    table = function("reported.py:correlations")(found).filter(data="species", method="AltExpM")
    assert table.select("rho", "runs").rows() == [("0.5", 2)]  # the mean of 1 and of 0
    bands = function("reported.py:bands")(found, 2).filter(data="species", method="AltExpM")
    assert bands.row(0)[2:] == ("0.5 / 1.5", "2.0 / 2.0", "2.0 / 2.0", "0.5 / 0.5", "0.0 / 0.0", "50%")
    assert (
        function("reported.py:bands")(found, 2).filter(data="species", method="SplitT")["significant"].item() == "none"
    )


def test_tables_of_larger_tables_are_the_committed_ones():
    tables, page = function("larger_tables.py:tables_of_the_page")(), PAGE.read_text(encoding="utf-8")
    assert set(tables) == {"3", "4 and 5"}
    assert all(f"<!-- larger: table {name} -->\n\n| " in page for name in tables)
    assert function("larger_tables.py:written")(page, tables) == page


def test_larger_tables_show_medians_of_runs_that_found_something_in_order():
    rows = []
    for method, jaccard in (("AltMCMC", 0.5), ("AltExpM", 0.7), ("MCMCTreePair", 0.6), ("MCMCTreePair b", 0.9)):
        for run in range(3):
            nothing = method == "MCMCTreePair b" and run > 0
            rows.append(
                {
                    "data": "cms-like-4",
                    "epsilon": 1.0,
                    "method": method,
                    "count": 0.0 if nothing else 2.0,
                    "jaccard": float("nan") if nothing else jaccard + run / 100,
                    "error": float("nan") if nothing else 1 - jaccard,
                }
            )
    found = function("larger_tables.py:medians")(pl.DataFrame(rows))
    paper = pl.DataFrame(
        [
            {"table": table, "data": "cms-like-4", "epsilon": epsilon, "stable": stable, "best": "S"}
            for table in (4, 5)
            for epsilon in (1.0, 0.1, 0.01)
            for stable in ("no", "yes")
        ]
    )
    shown = function("larger_tables.py:shown_medians")(found, paper)
    assert shown[1][3:] == ["S", "**EM 0.71**; M 0.61; S 0.51", "S", "**EM 0.3**; M 0.4; S 0.5"]
    assert shown[2][4] == "too few"  # only one of the stable ones found something twice
    assert shown[3][4] == "too few"
    (_, single, *_) = function("larger_tables.py:shown_medians")(
        function("larger_tables.py:medians")(pl.DataFrame(rows[::3])), paper
    )
    assert single[4] == "**Mb 0.9**; EM 0.7; M 0.6; S 0.5"  # of one run all that it found
