"""Experiments: what a file means, which cells it has, and what is computed, kept and summarised."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from dpframework_trees.id3 import DPID3
from scipy import stats

import dpframework as dpf
from dpframework import cli
from dpframework.lab.experiment import experiment_file, load_experiment, run_experiment
from dpframework.lab.experiment.cell_group_spreads import _spread_of
from dpframework.lab.experiment.experiment_contents_and_grid import Cell, Experiment
from dpframework.lab.experiment.input_tables import Fold
from dpframework.lab.experiment.job import _reason
from dpframework.lab.experiment.job_list import jobs_of
from dpframework.lab.experiment.results_table import _parameter
from dpframework.lab.experiment.spread_statistics import Spread, median_interval
from dpframework.lab.experiment.summary_tables_plots_and_page import sample_note

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, bins=4)])

FILE = """
title = "Trees"
seed = 3
repetitions = 2
folds = 2
epsilon = [0.1, "1/3"]

[[data]]
name = "people"
path = "people.csv"
schema = "people.schema.toml"
values = { class = "ill" }

[[method]]
name = "tree"
miner = "dp-id3"
params = { target = "{class}" }
grid = { max_depth = [1, 2] }

[[method]]
name = "most"
baseline = "code.py:most"
params = { target = "{class}" }

[[measure]]
measure = "code.py:share"

[[table]]
name = "shares"
value = ["share", "rows"]
rows = ["method", "max_depth"]
columns = ["epsilon"]

[[plot]]
name = "shares"
x = "epsilon"
y = "share"
lines = ["method", "max_depth"]
"""

CODE = """
import os
from pathlib import Path

import numpy as np

import dpframework as dpf

HERE = Path(__file__).parent


def note(what):
    with (HERE / "calls.txt").open("a") as file:
        file.write(f"{what}\\n")


def most(table, *, seed, target, fail=-1):
    note("most")
    if (HERE / "fail").exists():
        raise RuntimeError("the model has not\\nconverged")
    counts = np.bincount(table.codes[table.schema.index(target)], minlength=2)
    return float(counts.argmax()) + np.random.default_rng(seed).random()


def share(trial, *, power=1):
    note("share")
    held_out = trial.table if trial.held_out is None else trial.held_out
    rows = held_out.codes.shape[1]
    leaves = float(trial.result) if isinstance(trial.result, float) else float(len(trial.result.rules()))
    return {"share": leaves ** power, "rows": rows}


def nothing(trial):
    return {"share": float("nan")}


def people(*, seed, rows, low=0):
    note(f"people {rows}")
    random = np.random.default_rng(seed)
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, bins=4)], rows=rows)
    return dpf.Table.from_codes(schema, [random.integers(low, 2, rows), random.integers(0, 4, rows)])


def two(*, seed, rows):
    return people(seed=seed, rows=rows), people(seed=seed + 1, rows=10)
"""


AT = 'path = "people.csv"\nschema = "people.schema.toml"'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with an experiment, its data and its code."""
    SCHEMA.dump(tmp_path / "people.schema.toml")
    (tmp_path / "people.csv").write_text("ill,age\n" + "".join(f"{str(a > 50).lower()},{a}\n" for a in range(101)))
    (tmp_path / "code.py").write_text(CODE)
    (tmp_path / "trees.toml").write_text(FILE)
    return tmp_path


def edited(folder: Path, *changes: tuple[str, str]) -> Experiment:
    """Return the experiment after replacing texts of its file."""
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "trees.toml").write_text(text)
    return load_experiment(folder / "trees.toml")


def keys(experiment: Experiment) -> dict[str, str]:
    """Return the key of each cell, by its coordinates."""
    return {str(job.cell.to_dict()): job.key for job in jobs_of(experiment)}


def changed(folder: Path, *changes: tuple[str, str]) -> set[str]:
    """Return the methods of cells whose key an edit has changed, those that are new left out."""
    before, after = keys(edited(folder)), keys(edited(folder, *changes))
    return {eval(cell)["method"] for cell in before.keys() & after.keys() if before[cell] != after[cell]}


def calls(folder: Path) -> Counter[str]:
    """Return how often functions of the code file were called since the last time."""
    path = folder / "calls.txt"
    found = Counter(path.read_text().splitlines()) if path.exists() else Counter()
    path.unlink(missing_ok=True)
    return found


# What a file means


def test_the_grid_is_every_combination_in_the_order_of_the_file(folder: Path) -> None:
    cells = list(load_experiment(folder / "trees.toml").cells())
    tree = [(c.params["max_depth"], c.epsilon, c.repetition, c.fold) for c in cells if c.method == "tree"]
    wanted = [
        (depth, epsilon, repetition, fold)
        for depth in (1, 2)
        for epsilon in (Fraction(1, 10), Fraction(1, 3))
        for repetition in (1, 2)
        for fold in (1, 2)
    ]
    assert tree == wanted
    most = [(c.params, c.epsilon, c.repetition, c.fold) for c in cells if c.method == "most"]
    assert most == [({"target": "ill"}, None, r, f) for r in (1, 2) for f in (1, 2)]


def test_unknown_data_sets_and_methods_are_named(folder: Path) -> None:
    experiment = load_experiment(folder / "trees.toml")
    with pytest.raises(dpf.InputError, match="data set 'peple' is unknown"):
        experiment.data_set("peple")
    with pytest.raises(dpf.InputError, match="method 'x' is unknown; known: "):
        experiment.method("x")


def test_methods_and_measures_may_be_for_some_data_sets_with_epsilons_and_repetitions_of_their_own(
    folder: Path,
) -> None:
    second = '[[data]]\nname = "made"\ngenerator = "code.py:people"\nparams = { low = 0 }\ngrid = { rows = [50, 60] }\n'
    experiment = edited(
        folder,
        ('[[method]]\nname = "tree"', f'{second}values = {{ class = "ill" }}\n[[method]]\nname = "tree"'),
        ('baseline = "code.py:most"', 'baseline = "code.py:most"\ndata = ["made"]\nrepetitions = 1'),
        ('miner = "dp-id3"', 'miner = "dp-id3"\nepsilon = [2]'),
        ("[[table]]", "[[table]]\nwhere = { data = 'people' }"),
        ("[[plot]]", "[[plot]]\nwhere = { data = 'people' }"),
    )
    cells = list(experiment.cells())
    assert {c.epsilon for c in cells if c.method == "tree"} == {Fraction(2)}
    assert {(c.data, c.data_params.get("rows"), c.repetition) for c in cells if c.method == "most"} == {
        ("made", 50, 1),
        ("made", 60, 1),
    }


def test_what_a_file_does_not_say_has_a_default(folder: Path) -> None:
    said = [(line, "") for line in ('title = "Trees"\n', "seed = 3\n", "repetitions = 2\n", "folds = 2\n")]
    unsaid = ('rows = ["method", "max_depth"]\ncolumns = ["epsilon"]\n', "where = { epsilon = 0.1, max_depth = 1 }\n")
    found = edited(folder, *said, unsaid, ('[[table]]\nname = "shares"', '[[table]]\nname = "all.of-it_1"'))
    assert (found.title, found.seed, found.repetitions, found.folds, dict(found.repetitions_at)) == (
        "trees",
        0,
        1,
        None,
        {},
    )
    assert (str(found.relation), found.delta, found.allow, found.unit) == (
        "add-or-remove-one",
        0,
        (),
        dpf.PrivacyUnit(),
    )
    assert found.data[0].data.out_of_domain.value == "error"  # type: ignore[union-attr]
    (table,), (plot,) = found.tables, found.plots
    assert (table.title, table.statistic, table.rows, table.columns, table.x) == (
        "all.of-it_1",
        "mean",
        ("method",),
        (),
        None,
    )
    assert dict(table.where) == {"epsilon": [Fraction(1, 10)], "max_depth": [1]}
    assert (plot.title, plot.columns, plot.x_scale, plot.y_scale) == ("shares", (), "linear", "linear")
    for one in found.measures + found.methods:
        assert one.data is None
    assert edited(folder, ("seed = 3", "seed = 0"), ("folds = 2", "folds = 2")).seed == 0
    long = "m" * 200
    assert edited(folder, ('name = "most"', f'name = "{long}"')).methods[1].name == long


def test_an_epsilon_may_have_repetitions_of_its_own(folder: Path) -> None:
    more = ("repetitions = 2", 'repetitions = 2\nrepetitions_at = { "0.10" = 5 }')
    experiment = edited(folder, more, ('baseline = "code.py:most"', 'baseline = "code.py:most"\nrepetitions = 1'))
    run = {(c.method, c.epsilon, c.repetition) for c in experiment.cells()}
    trees = {("tree", Fraction(1, 10), r) for r in range(1, 6)} | {("tree", Fraction(1, 3), r) for r in (1, 2)}
    assert run == trees | {("most", None, 1)}
    assert sample_note(experiment).startswith("over 2 repetitions (5 at epsilon 0.1)")
    assert {c.repetition for c in load_experiment(experiment.source, repetitions=1).cells()} == {1}


def test_a_seed_follows_from_a_cells_coordinates_alone(folder: Path) -> None:
    whole, part = edited(folder), edited(folder, ("grid = { max_depth = [1, 2] }", "grid = { max_depth = [2] }"))
    seeds = {str(cell.to_dict()): whole.seed_for(cell) for cell in whole.cells()}
    assert len(set(seeds.values())) == len(seeds)
    assert all(0 <= seed < 2**128 for seed in seeds.values())
    assert all(seeds[str(cell.to_dict())] == part.seed_for(cell) for cell in part.cells())


def test_tables_and_splits_are_shared_by_the_methods_of_a_repetition(folder: Path) -> None:
    jobs = jobs_of(load_experiment(folder / "trees.toml"))
    by_repetition: dict[tuple[int, int | None], set[Fold | None]] = {}
    for job in jobs:
        by_repetition.setdefault((job.cell.repetition, job.cell.fold), set()).add(job.split)
    assert all(len(splits) == 1 for splits in by_repetition.values())
    assert len({split for splits in by_repetition.values() for split in splits}) == 4


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('title = "Trees"', 'titel = "Trees"', "unknown table or key 'titel'; did you mean 'title'?"),
        ('miner = "dp-id3"', 'miner = "dp-id4"', "method 'tree': no miner is named 'dp-id4'; did you mean 'dp-id3'?"),
        ('miner = "dp-id3"', "", "method 'tree': needs either a miner or a baseline"),
        ('measure = "code.py:share"', 'measure = "predicton"', "did you mean 'prediction'?"),
        ('measure = "code.py:share"', 'measure = "code.py:shar"', "there is no function 'shar' in code.py; did you"),
        ('measure = "code.py:share"', 'measure = "cod.py:share"', "'cod.py:share': there is no file"),
        ('measure = "code.py:share"', 'measure = "seconds"', "measure 'seconds': is always taken"),
        ('measure = "code.py:share"', 'measure = "code.py:share"\nparams = { powr = 2 }', "did you mean 'power'?"),
        ('params = { target = "{class}" }\n\n[[', 'params = { traget = "ill" }\n\n[[', "did you mean 'target'?"),
        ('target = "{class}" }\ngrid', 'target = "{clas}" }\ngrid', "no value 'clas'; did you mean 'class'?"),
        ("max_depth = [1, 2]", "max_depth = 1", "method 'tree': grid: max_depth must be a list of values"),
        ("max_depth = [1, 2]", "max_depth = [1, 1]", "method 'tree': grid: max_depth holds a value twice"),
        ("max_depth = [1, 2]", "epsilon = [1, 2]", "method 'tree': epsilon is a key of its own"),
        ("max_depth = [1, 2]", "fold = [1, 2]", "'fold' is the name of a column of the results"),
        ('epsilon = [0.1, "1/3"]', "epsilon = [0.1, 0.1]", "epsilon must be a list of different numbers"),
        ('epsilon = [0.1, "1/3"]', "epsilon = -1", "epsilon is -1.0; it cannot be negative"),
        ('epsilon = [0.1, "1/3"]', "", "method 'tree': has no epsilon; give the experiment epsilon = [...]"),
        ("repetitions = 2", "repetitions = 0", "repetitions must be a whole number from 1 on"),
        ("repetitions = 2", "repetitions = 1_000_000_000_000", "has more than 100,000 cells; take fewer"),
        ("repetitions = 2", 'repetitions_at = { "0.2" = 3 }', "repetitions_at: nothing is run at epsilon 0.2"),
        ("repetitions = 2", 'repetitions_at = { "x" = 3 }', "repetitions_at: "),
        ("repetitions = 2", 'repetitions_at = { "0.1" = 3, "1/10" = 4 }', "repetitions_at holds an epsilon twice"),
        ("repetitions = 2", 'repetitions_at = { "0.1" = 0 }', "repetitions_at: 0.1 must be a whole number from 1 on"),
        ("folds = 2", "folds = 1_000_000_000_000", "has more than 100,000 cells; take fewer"),
        ("folds = 2", "folds = 1", "folds must be a whole number from 2 on"),
        ('path = "people.csv"', 'path = "people.csv"\nparams = {}', "data 'people': without a generator, there can be"),
        ('path = "people.csv"', 'pth = "people.csv"', "data 'people': unknown key 'pth'; did you mean 'path'?"),
        ('columns = ["epsilon"]', 'columns = ["epsilo"]', "no coordinate 'epsilo'; did you mean 'epsilon'?"),
        (
            'columns = ["epsilon"]',
            "",
            "would mix several values of 'epsilon' (1/10 and 1/3); put it in rows",
        ),
        ('lines = ["method", "max_depth"]', "", "plot 'shares': would mix several values of 'max_depth' (1 and 2)"),
        ('columns = ["epsilon"]', 'columns = ["epsilon"]\nwhere = { method = "x" }', "its 'where' selects no cell"),
        ('columns = ["epsilon"]', "where = { epsilon = 0 }", "table 'shares': epsilon is 0; write a number above 0"),
        ('name = "shares"\nvalue', 'name = "a/b"\nvalue', "table 'a/b': its name is used for a file"),
        ('name = "most"', 'name = "tree"', "method 'tree': this name is used twice"),
        (
            'name = "tree"',
            'name = "trees, deep"',
            "method 'trees, deep': the name of a method with a miner cannot hold ','",
        ),
        (
            'name = "most"',
            f'name = "{201 * "m"}"',
            "method number 2: its name has more than 200 characters; shorten it",
        ),
        ('name = "most"\n', "", "method number 2: "),
        ('measure = "code.py:share"\n', 'name = "share"\n', "measure number 1: "),
        ("seed = 3", "seed = -1", "seed must be a whole number from 0 on"),
        ('title = "Trees"', "repetitions_at = 3", "repetitions_at must be a table"),
        ('columns = ["epsilon"]', "columns = [1]", "table 'shares': columns must be a text or a list of texts"),
        ('columns = ["epsilon"]', 'statistic = "modus"', "table 'shares': statistic 'modus' is unknown"),
        ('value = ["share", "rows"]\n', "", "table 'shares': has no 'value'; name the measured value"),
        ('y = "share"', 'y = ["share", "rows"]', "plot 'shares': y has several measured values; make a plot for each"),
        ('y = "share"', 'y = "share"\ny_scale = "cubic"', "plot 'shares': y_scale must be 'linear' or 'log'"),
        ('lines = ["method", "max_depth"]', "lines = []", "of 'max_depth' (1 and 2); put it in lines or panels"),
        ("max_depth = [1, 2]", "max_depth = []", "method 'tree': grid: max_depth must be a list of values"),
        ("max_depth = [1, 2]", 'target = ["ill"]', "method 'tree': target is in params and in grid; give it once"),
        ("max_depth = [1, 2]", "seed = [1, 2]", "method 'tree': seed is not a parameter; each cell is given its own"),
        ('measure = "code.py:share"', 'measure = "code.py:share"\nmethods = ["tre"]', "methods: there is no 'tre'"),
        ("[[measure]]", "[measure]", "each measure must be written under its own [[measure]] heading"),
        ("[[data]]", "[[step]]", "looks like a study"),
    ],
)
def test_a_mistake_is_one_sentence(folder: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(dpf.InputError) as raised:
        run_experiment(edited(folder, (old, new)), folder / "out", processes=1)
    assert sentence in str(raised.value)
    assert str(raised.value).startswith(f"{folder / 'trees.toml'}: ")
    assert "\n" not in str(raised.value)
    assert not (folder / "out").exists()


def test_an_experiment_may_have_100_000_cells_and_its_data_lie_anywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = len(list(load_experiment(folder / "trees.toml").cells()))
    monkeypatch.setattr(experiment_file, "MOST_CELLS", cells)
    assert edited(folder, ('"people.csv"', '"/elsewhere/people.csv"')).data[0].data.unrestricted  # type: ignore[union-attr]
    monkeypatch.setattr(experiment_file, "MOST_CELLS", cells - 1)
    with pytest.raises(dpf.InputError, match=f"has more than {cells - 1} cells; take fewer"):
        load_experiment(folder / "trees.toml")


# What is checked before data is opened


def test_plans_are_refused_before_data_is_looked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "people.csv").unlink()
    dpf.Schema(SCHEMA.attributes, inferred=("bins of age",)).dump(folder / "people.schema.toml")
    assert cli.main(["experiment", str(folder / "trees.toml")]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"refused: {folder / 'trees.toml'}: method 'tree' on data 'people', epsilon 1/10: DP")
    assert "schema-inferred-from-data" in said
    assert len(said.splitlines()) == 1
    assert not (folder / "trees-results").exists()


def test_missing_data_is_named_after_the_plans_have_passed(folder: Path) -> None:
    (folder / "people.csv").unlink()
    with pytest.raises(dpf.InputError, match=r"data 'people': .*people\.csv: there is no such file"):
        run_experiment(load_experiment(folder / "trees.toml"), folder / "out", processes=1)


def test_an_inferred_schema_has_to_be_allowed(folder: Path) -> None:
    dpf.Schema(SCHEMA.attributes, inferred=("bins of age",)).dump(folder / "people.schema.toml")
    with pytest.raises(dpf.PlanRefused, match="schema-inferred-from-data"):
        jobs_of(edited(folder))
    assert jobs_of(edited(folder, ("seed = 3", 'seed = 3\nallow = ["schema-inferred-from-data"]')))


# Tables and folds


@pytest.mark.parametrize(("rows", "folds"), [(101, 2), (103, 10), (10, 10)])
def test_folds_are_disjoint_and_cover_the_rows(rows: int, folds: int) -> None:
    schema = dpf.Schema([dpf.Numeric("id", 0, rows, bins=rows)], rows=rows)
    table = dpf.Table.from_codes(schema, [range(rows)])
    seen: list[int] = []
    for fold in range(1, folds + 1):
        split = Fold(folds, fold, seed=7)
        train, held_out = split.apply(table)
        assert train.schema == split.schema(schema)
        assert train.schema.rows == train.codes.shape[1] == split.training_rows(rows)
        assert held_out.schema.rows == held_out.codes.shape[1]
        assert sorted([*train.codes[0], *held_out.codes[0]]) == list(range(rows))
        assert np.array_equal(train.values["id"], table.values["id"][train.codes[0]])
        seen += held_out.codes[0].tolist()
    assert sorted(seen) == list(range(rows))


def test_a_plan_of_a_fold_has_the_public_row_count_of_its_training_rows(folder: Path) -> None:
    dpf.Schema(SCHEMA.attributes, rows=101).dump(folder / "people.schema.toml")
    experiment = edited(
        folder,
        ("seed = 3", 'seed = 3\nrelation = "replace-one"'),
        ('target = "{class}" }\ngrid', 'target = "{class}", criterion = "information-gain" }\ngrid'),
    )
    ran = run_experiment(experiment, folder / "out", processes=1)
    assert ran.failed == ()
    assert set(pl.read_parquet(folder / "out" / "results.parquet")["rows"]) == {50, 51}


def test_a_generator_draws_a_table_a_repetition_once(folder: Path) -> None:
    experiment = edited(
        folder,
        (
            'path = "people.csv"\nschema = "people.schema.toml"',
            'generator = "code.py:people"\ngrid = { rows = [40, 60] }',
        ),
        ('rows = ["method", "max_depth"]', 'rows = ["method", "max_depth", "rows"]'),
        ('value = ["share", "rows"]', 'value = "share"'),
        ('lines = ["method", "max_depth"]', 'lines = ["method", "max_depth"]\npanels = "rows"'),
        ('measure = "code.py:share"', 'measure = "code.py:share"\nname = "of"'),
        ('value = "share"', 'value = "of.share"'),
        ('y = "share"', 'y = "of.share"'),
    )
    ran = run_experiment(experiment, folder / "out", processes=1)
    assert ran.failed == ()
    assert ran.cells == 2 * (2 * 2 + 1) * 2 * 2
    found = calls(folder)
    assert (found["people 40"], found["people 60"]) == (2, 2)
    frame = pl.read_parquet(folder / "out" / "results.parquet")
    assert frame["rows"].dtype == pl.Int64
    assert dict(frame.group_by("rows").agg(pl.col("of.rows").max()).iter_rows()) == {40: 20, 60: 30}


NAMED = ('measure = "code.py:share"', 'measure = "code.py:share"\nname = "of"')
OF = (('value = ["share", "rows"]', 'value = "of.share"'), ('y = "share"', 'y = "of.share"'))


def test_a_plan_needs_the_schema_of_the_first_generated_table_alone(folder: Path) -> None:
    """A seed has 32 bits, as scikit-learn expects, and the tables of repetitions differ."""
    made = (AT, 'generator = "code.py:people"\ngrid = { rows = [40] }')
    single = edited(folder, made, ("repetitions = 2", "repetitions = 1"), ("folds = 2", ""), NAMED, *OF)
    (once,) = {job.source for job in jobs_of(single)}
    assert run_experiment(single, folder / "out", processes=1).failed == ()
    assert calls(folder)["people 40"] == 1
    both = {job.source for job in jobs_of(edited(folder, made))}
    assert once in both
    assert len(both) == 2
    assert all(0 < source.seed < 2**32 for source in both)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([True, None, False], pl.Series([True, None, False], dtype=pl.Boolean)),
        ([1, None, 2], pl.Series([1, None, 2], dtype=pl.Int64)),
        ([1, None, 0.5], pl.Series([1, None, 0.5], dtype=pl.Float64)),
        ([0.5, 1.5], pl.Series([0.5, 1.5], dtype=pl.Float64)),
        ([None, None], pl.Series([None, None], dtype=pl.String)),
        ([1, "x", None, True, 0.25, [1]], pl.Series(["1", "x", None, "true", "0.25", "[1]"], dtype=pl.String)),
        ([True, 1], pl.Series(["true", "1"], dtype=pl.String)),
    ],
)
def test_a_parameter_is_a_column_of_numbers_where_all_are_and_of_texts_else(values: Any, column: pl.Series) -> None:
    assert _parameter(values).equals(column, check_dtypes=True)


def test_a_generator_may_hold_rows_out_itself(folder: Path) -> None:
    two = (AT, 'generator = "code.py:two"\nparams = { rows = 40 }')
    with pytest.raises(dpf.InputError, match="data 'people': its generator holds rows out already; leave out 'folds'"):
        jobs_of(edited(folder, two))
    ran = run_experiment(edited(folder, two, ("folds = 2\n", "")), folder / "out", processes=1)
    assert ran.failed == ()
    assert set(pl.read_parquet(folder / "out" / "results.parquet")["rows"]) == {10}


def test_a_generator_that_fails_is_named(folder: Path) -> None:
    experiment = edited(
        folder,
        (AT, 'generator = "code.py:people"\nparams = { rows = -1 }'),
    )
    with pytest.raises(dpf.InputError, match=r"data 'people': generator 'code.py:people': rows must be at least 1"):
        jobs_of(experiment)


# Running


def test_results_do_not_depend_on_processes_or_on_the_other_cells(folder: Path) -> None:
    whole = run_experiment(edited(folder), folder / "one", processes=1)
    run_experiment(edited(folder), folder / "two", processes=2)
    one = (folder / "one" / "results.parquet").read_bytes()
    assert one == (folder / "two" / "results.parquet").read_bytes()
    assert (folder / "one" / "plot-shares.png").read_bytes() == (folder / "two" / "plot-shares.png").read_bytes()
    assert (folder / "one" / "summary.md").read_bytes() == (folder / "two" / "summary.md").read_bytes()
    assert (whole.cells, whole.before, whole.now, whole.failed) == (20, 0, 20, ())
    start, tree, most = FILE.split("[[method]]")
    most, rest = most.split("[[measure]]")
    swapped = f"{start}[[method]]{most}[[method]]{tree}[[measure]]{rest}"
    (folder / "trees.toml").write_text(swapped)
    run_experiment(load_experiment(folder / "trees.toml"), folder / "other", processes=1)
    frames = [pl.read_parquet(folder / name / "results.parquet").sort("cell") for name in ("one", "other")]
    assert frames[0].equals(frames[1].select(frames[0].columns))


def test_parquet_types_and_columns(folder: Path) -> None:
    run_experiment(edited(folder), folder / "out", processes=1)
    frame = pl.read_parquet(folder / "out" / "results.parquet")
    assert dict(frame.schema) == {
        "data": pl.String,
        "method": pl.String,
        "max_depth": pl.Int64,
        "epsilon": pl.Float64,
        "repetition": pl.Int64,
        "fold": pl.Int64,
        "rows": pl.Float64,
        "share": pl.Float64,
        "private": pl.Boolean,
        "cell": pl.String,
    }
    assert not frame["private"].any()
    assert frame.filter(pl.col("method") == "most")["epsilon"].null_count() == 4
    times = pl.read_parquet(folder / "out" / "times.parquet")
    assert times["cell"].to_list() == frame["cell"].to_list()
    assert (times["seconds"] >= 0).all()


def test_fewer_repetitions_share_their_cells_with_the_whole_experiment(folder: Path) -> None:
    small = load_experiment(folder / "trees.toml", repetitions=1)
    assert run_experiment(small, folder / "out", processes=1).now == 10
    ran = run_experiment(load_experiment(folder / "trees.toml"), folder / "out", processes=1)
    assert (ran.before, ran.now) == (10, 10)
    again = run_experiment(small, folder / "out", processes=1)
    assert (again.before, again.now) == (10, 0)
    assert pl.read_parquet(folder / "out" / "results.parquet").height == 10


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        (('title = "Trees"', 'title = "Other"'), set()),
        (("columns = [", 'statistic = "median"\ncolumns = ['), set()),
        (("max_depth = [1, 2]", "max_depth = [2, 3]"), set()),
        (('epsilon = [0.1, "1/3"]', "epsilon = [0.1, 5]"), set()),
        (("repetitions = 2", "repetitions = 3"), set()),
        (('miner = "dp-id3"', 'miner = "dp-id3"\nepsilon = [0.1, "1/3"]'), set()),
        (('measure = "code.py:share"', 'measure = "code.py:share"\nmethods = ["tree"]'), {"most"}),
        (("seed = 3", 'seed = 3\nrelation = "replace-one"'), {"tree"}),
        (("seed = 3", "seed = 4"), {"tree", "most"}),
        (('measure = "code.py:share"', 'measure = "code.py:share"\nparams = { power = 2 }'), {"tree", "most"}),
    ],
)
def test_an_edit_concerns_the_cells_that_it_changes_only(
    folder: Path, change: tuple[str, str], concerned: set[str]
) -> None:
    assert changed(folder, change) == concerned


def test_other_code_data_or_folds_are_seen(folder: Path) -> None:
    before = keys(edited(folder))
    (folder / "baselines.py").write_text(CODE)
    apart = (('baseline = "code.py', 'baseline = "baselines.py'),)
    separate = keys(edited(folder, *apart))
    assert separate == before  # the same source under another name
    (folder / "baselines.py").write_text(CODE + "# other\n")
    after = keys(edited(folder, *apart))
    assert {eval(cell)["method"] for cell in before if before[cell] != after[cell]} == {"most"}
    (folder / "people.csv").write_text((folder / "people.csv").read_text() + "true,99\n")
    assert not set(keys(edited(folder)).values()) & set(before.values())
    three = keys(edited(folder, ("folds = 2", "folds = 3")))
    assert not set(three.values()) & set(before.values())


def test_a_failing_cell_does_not_stop_the_others_and_is_tried_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["experiment", str(folder / "trees.toml"), "--jobs", "1"]
    (folder / "fail").touch()
    assert cli.main(command) == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "failed: 'most' on 'people', repetition 1, fold 1: RuntimeError in code.py, line 20: the model has not "
        "(and in 3 other cells)",
        "4 cells failed; repeat the command to try again",
    ]
    assert "20 cells: 0 finished before, 16 now, 4 failed" in printed.out
    page = (folder / "trees-results" / "summary.md").read_text()
    assert "16 of 20 cells" in page
    assert "## Cells that failed" in page
    assert pl.read_parquet(folder / "trees-results" / "results.parquet").height == 16
    (folder / "fail").unlink()
    assert cli.main(command) == 0
    assert "20 cells: 16 finished before, 4 now, 0 failed" in capsys.readouterr().out


def test_a_failure_is_told_even_if_a_table_shows_what_it_would_have_given(folder: Path) -> None:
    only = '\nmethods = ["most"]\n[[measure]]\nmeasure = "tree"\nmethods = ["tree"]'
    (folder / "fail").touch()
    ran = run_experiment(edited(folder, ('"code.py:share"', '"code.py:share"' + only)), folder / "out", processes=1)
    assert (ran.now, len(ran.failed)) == (16, 4)
    assert "the model has not" in (folder / "out" / "summary.md").read_text()


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        ("code.py:silent", "measure 'code.py:silent' gave NoneType, not numbers by name"),
        ("tree", "measure 'tree': a tree is needed, not float"),
        ("retention", "measure 'retention': a tree that releases the counts of its leaves is needed, not float"),
    ],
)
def test_a_measure_that_does_not_fit_is_named(folder: Path, measure: str, reason: str) -> None:
    (folder / "code.py").write_text(f"{CODE}\n\ndef silent(trial):\n    pass\n")
    experiment = edited(folder, ('"code.py:share"', f'"{measure}"\nmethods = ["most"]'))
    assert {one.reason for one in run_experiment(experiment, folder / "out", processes=1).failed} == {reason}


def test_a_failure_is_told_by_its_cause_if_a_run_stopped_and_else_by_itself() -> None:
    def reason(error: Exception, cause: Exception | None) -> str:
        with pytest.raises(type(error)) as raised:
            raise error from cause
        return _reason(raised.value)

    stopped, own = dpf.InputError("the run has stopped"), ValueError("no rows\nat all")
    assert reason(stopped, None) == "the run has stopped"
    assert reason(stopped, own) == "ValueError: no rows"
    assert reason(own, None).startswith("ValueError in test_experiment.py, line ")
    assert reason(own, KeyError("x")).startswith("ValueError in test_experiment.py, line ")
    assert reason(ArithmeticError(), None).startswith("ArithmeticError in test_experiment.py, line ")
    assert ":" not in reason(ArithmeticError(), None)


def test_an_interrupted_miner_ends_the_run_and_finished_cells_are_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, mined = DPID3.mine, []

    def interrupted(miner: DPID3, table: dpf.PrivateTable) -> object:
        mined.append(miner)
        if len(mined) == 4:
            raise KeyboardInterrupt
        return mine(miner, table)

    monkeypatch.setattr(DPID3, "mine", interrupted)
    with pytest.raises(dpf.RunStopped, match="interrupted; 3 of 20 cells are finished; repeat the command") as raised:
        run_experiment(edited(folder), folder / "out", processes=1)
    assert raised.value.interrupted
    assert len(mined) == 4
    assert run_experiment(edited(folder), folder / "out", processes=1).before == 3


def test_values_of_measures_must_be_told_apart(folder: Path) -> None:
    twice = '[[measure]]\nmeasure = "code.py:nothing"\n'
    ran = run_experiment(edited(folder, ("[[table]]", f"{twice}[[table]]")), folder / "out", processes=1)
    assert len(ran.failed) == 20
    assert {one.reason for one in ran.failed} == {
        "the value 'share' is ambiguous: two measures give it; give the measure a name of its own"
    }
    named = edited(folder, ("[[table]]", f'{twice}name = "no"\n[[table]]'))
    assert not run_experiment(named, folder / "out", processes=1).failed
    assert pl.read_parquet(folder / "out" / "results.parquet")["no.share"].is_nan().all()


def test_a_value_that_no_measure_gives_is_named_and_nothing_is_lost(folder: Path) -> None:
    experiment = edited(folder, ('y = "share"', 'y = "shore"'))
    with pytest.raises(dpf.InputError, match=r"plot 'shares': no measure gave 'shore'; did you mean 'share'\?"):
        run_experiment(experiment, folder / "out", processes=1)
    assert run_experiment(edited(folder), folder / "out", processes=1).before == 20


def test_a_folder_with_other_files_is_refused(folder: Path) -> None:
    with pytest.raises(dpf.InputError, match=r"holds other files, such as 'code.py'; give a new folder with --out"):
        run_experiment(edited(folder), folder, processes=1)
    with pytest.raises(dpf.InputError, match="is a file"):
        run_experiment(edited(folder), folder / "code.py", processes=1)


def test_a_second_process_is_refused_in_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_experiment(edited(folder), folder / "trees-results", processes=1)
    held = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE'); print(); input()"
    command = [sys.executable, "-c", held, str(folder / "trees-results" / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        other.stdout.readline()
        assert cli.main(["experiment", str(folder / "trees.toml"), "--jobs", "1"]) == 2
        other.communicate("\n")
    assert capsys.readouterr().err == (
        f"error: {folder / 'trees-results'}: another process is running an experiment here; wait until it has ended\n"
    )
    assert cli.main(["experiment", str(folder / "trees.toml"), "--jobs", "1"]) == 0


def test_a_cell_that_was_not_written_whole_is_computed_again(folder: Path) -> None:
    run_experiment(edited(folder), folder / "out", processes=1)
    before = (folder / "out" / "results.parquet").read_bytes()
    cells = sorted((folder / "out" / "cells").iterdir())
    cells[0].write_text(cells[0].read_text()[:50])
    cells[1].write_text("")
    ran = run_experiment(edited(folder), folder / "out", processes=1)
    assert (ran.before, ran.now) == (18, 2)
    assert (folder / "out" / "results.parquet").read_bytes() == before


# Summaries


def test_summaries_agree_with_numpy_and_scipy(folder: Path) -> None:
    experiment = edited(folder, ("repetitions = 2", "repetitions = 7"))
    run_experiment(experiment, folder / "out", processes=1)
    frame = pl.read_parquet(folder / "out" / "results.parquet")
    table = pl.read_csv(folder / "out" / "table-shares.csv")
    assert table.height == 5 * 2
    for row in table.iter_rows(named=True):
        same = pl.all_horizontal(pl.col(key).eq_missing(row[key]) for key in ("method", "max_depth", "epsilon"))
        sample = frame.filter(same).group_by("repetition").agg(pl.col(row["value"]).mean())[row["value"]].to_numpy()
        assert row["n"] == len(sample) == 7
        assert row["mean"] == pytest.approx(np.mean(sample))
        assert row["median"] == pytest.approx(np.median(sample))
        assert (row["q1"], row["q3"]) == pytest.approx(tuple(np.quantile(sample, [0.25, 0.75])))
        if np.ptp(sample) > 0:
            interval = stats.t.interval(0.95, 6, np.mean(sample), stats.sem(sample))
            assert (row["mean_low"], row["mean_high"]) == pytest.approx(interval)
        assert (row["median_low"], row["median_high"]) == pytest.approx((min(sample), max(sample)))


def test_with_one_repetition_the_folds_are_the_sample(folder: Path) -> None:
    run_experiment(edited(folder, ("repetitions = 2", "repetitions = 1")), folder / "out", processes=1)
    assert set(pl.read_csv(folder / "out" / "table-shares.csv")["n"]) == {2}


@pytest.mark.parametrize(
    ("sample", "described"),
    [
        ({1: [1, 4], 2: [5, 5, 8], 3: [-2]}, [2.5, 6, -2]),  # the mean of each repetition's folds
        ({1: [1, math.nan], 2: [math.nan], 3: [4, 6]}, [1, 5]),
        ({1: [1, math.nan, 4]}, [1, 4]),  # of a single repetition, its folds
        ({1: [math.nan]}, None),
        ({1: [math.nan], 2: [math.nan]}, None),
    ],
)
def test_folds_are_averaged_where_there_are_repetitions(
    sample: dict[int, list[float]], described: list[float] | None
) -> None:
    assert _spread_of(sample) == (None if described is None else Spread.of(described))


@pytest.mark.filterwarnings("error")  # of a single value, too
@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_the_interval_of_a_mean_is_students(n: int) -> None:
    values = np.random.default_rng(n).exponential(size=n)
    found = Spread.of(values)
    low, high = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values)) if n > 1 else (math.nan, math.nan)
    assert found.n == n
    assert found.mean == pytest.approx(values.mean())
    assert (found.mean_low, found.mean_high) == pytest.approx((low, high), nan_ok=True)
    assert (found.q1, found.median, found.q3) == pytest.approx(tuple(np.percentile(values, [25, 50, 75])))
    assert [found.estimate(one)[0] for one in ("mean", "median", "quartiles")] == [
        found.mean,
        found.median,
        found.median,
    ]
    assert found.estimate("quartiles")[1:] == (found.q1, found.q3)


@pytest.mark.parametrize("n", [6, 7, 10, 25, 60])
def test_interval_of_the_median_is_the_narrowest_that_covers_it(n: int) -> None:
    low, high = median_interval(np.arange(1, n + 1))
    assert low + high == n + 1
    k = int(low)

    # P(X_(k) <= median <= X_(n - k + 1)) = P(k <= B <= n - k), B binomial
    def coverage(k: int) -> float:
        return float(stats.binom.cdf(n - k, n, 0.5) - stats.binom.cdf(k - 1, n, 0.5))

    assert coverage(k) >= 0.95
    assert coverage(k + 1) < 0.95


def test_equal_values_have_no_spread_that_rounding_makes() -> None:
    for value in (2 / 3, 0.1, 1e-300):
        found = Spread.of([value] * 3)
        assert (found.mean, found.sd, found.mean_low, found.mean_high) == (value, 0, value, value)
    assert np.isnan(Spread.of([math.inf] * 3).sd)


def test_no_interval_where_there_are_too_few_values() -> None:
    assert all(np.isnan(median_interval([1.0, 2.0, 3.0, 4.0, 5.0])))
    assert np.isnan(Spread.of([1.0]).mean_low)


def test_page_says_that_it_is_not_private_and_names_its_plots(folder: Path) -> None:
    run_experiment(edited(folder), folder / "out", processes=1)
    page = (folder / "out" / "summary.md").read_text()
    assert page.startswith("# Trees\n\nNon-private evaluation: ")
    assert "![shares](plot-shares.png)" in page
    assert "| method | max_depth | epsilon 0.1: share" in page
    assert (folder / "out" / "plot-shares.png").read_bytes().startswith(b"\x89PNG")
    assert all(not json.loads(cell.read_text())["private"] for cell in (folder / "out" / "cells").iterdir())


def test_json_is_the_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["experiment", str(folder / "trees.toml"), "--jobs", "1", "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    form = json.loads(printed.out)
    assert (form["private"], form["cells"], form["finished_now"], form["failed"]) == (False, 20, 20, [])
    assert {row["value"] for row in form["tables"]["shares"]} == {"share", "rows"}


def test_joblibs_configuration_chooses_the_backend(folder: Path) -> None:
    import joblib

    with joblib.parallel_config("threading", n_jobs=2):
        ran = run_experiment(edited(folder), folder / "out")
    assert (ran.now, ran.failed) == (20, ())


def test_a_cell_names_itself() -> None:
    cell = Cell("adult", {}, "tree", {}, Fraction(1, 2), 3, 4)
    assert str(cell) == "'tree' on 'adult', epsilon 1/2, repetition 3, fold 4"


@pytest.mark.parametrize("part", ["data", "method", "measure"])
def test_an_experiment_needs_one_of_each_part(tmp_path: Path, part: str) -> None:
    others = [other for other in ("data", "method", "measure") if other != part]
    (tmp_path / "e.toml").write_text("\n".join(f'[[{other}]]\nname = "x"' for other in others), encoding="utf-8")
    with pytest.raises(dpf.InputError, match=rf"has no \[\[{part}\]\]; an experiment needs at least one"):
        load_experiment(tmp_path / "e.toml")
