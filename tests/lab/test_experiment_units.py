"""Experiments for people with several rows: rows are bounded, folds hold out whole people, and plans protect them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.lab.experiment import load_experiment, run_experiment
from dpframework.lab.experiment.input_tables import Fold, rows_of
from dpframework.lab.experiment.job_list import jobs_of

PEOPLE, ROWS = 30, 2
FILE = """
seed = 3
repetitions = 2
folds = 3
epsilon = 1
unit = "person"
rows_per_unit = 2
method = [
    { name = "counts", miner = "histogram", params = { attribute = "whose" } },
    { name = "exact", baseline = "code.py:exact" },
]
measure = [{ measure = "code.py:shared" }]

[[data]]
name = "visits"
path = "visits.csv"
schema = "visits.schema.toml"
"""
CODE = """
import numpy as np
import polars as pl

import dpframework as dpf

SCHEMA = dpf.Schema.load("SCHEMA")


def exact(table, *, seed):
    return table.unit.rows


def shared(trial):
    whose = [set(rows.codes[0].tolist()) for rows in (trial.table, trial.held_out)]
    return {"people in both": len(whose[0] & whose[1]), "rows": trial.table.codes.shape[1]}


def visits(*, seed, unit=None):
    frame = pl.read_csv("FRAME")
    return dpf.table_from_frame(frame, SCHEMA, unit=dpf.PrivacyUnit(unit, 2) if unit else dpf.PrivacyUnit())
"""
GENERATED = """
epsilon = 1
unit = "person"
rows_per_unit = 2
data = [{ name = "made", generator = "code.py:visits", params = { unit = "person" } }]
method = [{ name = "counts", miner = "histogram", params = { attribute = "whose" } }]
measure = [{ measure = "code.py:shared" }]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    whose = np.repeat(np.arange(PEOPLE), rng.integers(1, 10, PEOPLE))
    rng.shuffle(whose)
    schema = dpf.Schema([dpf.Categorical("whose", [str(k) for k in range(PEOPLE)]), dpf.Boolean("ill")])
    schema.dump(tmp_path / "visits.schema.toml")
    frame = {"person": [f"p{k}" for k in whose], "whose": whose, "ill": rng.integers(0, 2, len(whose))}
    pl.DataFrame(frame).write_csv(tmp_path / "visits.csv")
    code = CODE.replace('SCHEMA")', f'{tmp_path / "visits.schema.toml"}")')
    (tmp_path / "code.py").write_text(code.replace("FRAME", str(tmp_path / "visits.csv")))
    (tmp_path / "visits.toml").write_text(FILE)
    return tmp_path


def test_rows_are_bounded_folds_hold_out_whole_people_and_plans_protect_them(folder: Path) -> None:
    experiment = load_experiment(folder / "visits.toml")
    results = run_experiment(experiment, folder / "out", processes=1)
    assert results.failed == ()
    found = pl.read_parquet(folder / "out" / "results.parquet")
    assert found.height == 2 * 2 * 3
    assert set(found["people in both"].to_list()) == {0.0}
    jobs = jobs_of(experiment)
    tables = [rows_of(job.source)[0] for job in jobs]
    for table in tables:
        assert table.unit == dpf.PrivacyUnit("person", ROWS)
        assert np.bincount(table.codes[0]).max() == ROWS
    by_repetition = {job.cell.repetition: table.codes.tobytes() for job, table in zip(jobs, tables, strict=True)}
    assert by_repetition[1] != by_repetition[2], "each repetition keeps other rows, as each run does"
    assert all(by_repetition[j.cell.repetition] == t.codes.tobytes() for j, t in zip(jobs, tables, strict=True))
    run = next(job.method for job in jobs if job.cell.method == "counts")
    assert run.study(tables[0].schema, jobs[0].cell).plan().unit == dpf.PrivacyUnit("person", ROWS)  # type: ignore[union-attr]


def test_other_units_are_other_cells_and_none_leaves_keys_as_they_are(folder: Path) -> None:
    def keys(text: str) -> list[str]:
        (folder / "visits.toml").write_text(text)
        return [job.key for job in jobs_of(load_experiment(folder / "visits.toml"))]

    of_rows = keys(FILE.replace('unit = "person"\n', "").replace("rows_per_unit = 2\n", ""))
    two, three = keys(FILE), keys(FILE.replace("rows_per_unit = 2", "rows_per_unit = 3"))
    assert len({*of_rows, *two, *three}) == 3 * len(two)
    assert keys(FILE) == two


def test_folds_are_of_whole_units_of_any_numbers() -> None:
    schema = dpf.Schema([dpf.Categorical("whose", ["a", "b", "c", "d"])])
    table = dpf.Table.from_codes(schema, [[0, 0, 1, 2, 2, 3]], unit=dpf.PrivacyUnit("person", 2))
    with pytest.raises(dpf.InputError, match="does not say which unit each row belongs to"):
        Fold(2, 1, 0).apply(table)
    told = table.with_units([5, 5, 9, 1, 1, 7])
    seen = []
    for fold in (1, 2):
        train, held_out = Fold(2, fold, 0).apply(told)
        assert not set(train.codes[0].tolist()) & set(held_out.codes[0].tolist())
        assert train.rows + held_out.rows == 6
        assert train.unit == told.unit
        seen += held_out.codes[0].tolist()
    assert sorted(seen) == [0, 0, 1, 2, 2, 3]
    with pytest.raises(dpf.InputError, match="fewer units than the 5 folds"):
        Fold(5, 1, 0).apply(told)
    half, _ = Fold(2, 1, 0).apply(told)
    assert Fold(2, 1, 0).apply(half)[0].rows < half.rows


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            ("rows_per_unit = 2", "rows_per_unit = 0"),
            "rows_per_unit is 0; write how many rows of one unit are kept, from 1 to 1000000",
        ),
        (('unit = "person"', 'unit = "ill"'), "data 'visits': unit 'ill' is an attribute of the schema"),
        (('unit = "person"', "unit = 3"), "unit is 3; give the name of the column"),
        (('unit = "person"', 'units = "person"'), "unknown table or key 'units'"),
        (('unit = "person"\n', ""), "the study assumes 'rows-per-unit-asserted'"),
    ],
)
def test_units_that_cannot_be_are_refused_in_one_sentence(folder: Path, changed: Any, sentence: str) -> None:
    (folder / "visits.toml").write_text(FILE.replace(*changed))
    with pytest.raises(dpf.DPFrameworkError, match=sentence):
        jobs_of(load_experiment(folder / "visits.toml"))


def test_folds_of_units_under_a_public_row_count_are_refused(folder: Path) -> None:
    schema = dpf.Schema.load(folder / "visits.schema.toml")
    attrs.evolve(schema, rows=50).dump(folder / "visits.schema.toml")
    with pytest.raises(dpf.InputError, match="rows = 50, and folds of whole units have other numbers of rows"):
        jobs_of(load_experiment(folder / "visits.toml"))


def test_a_generator_must_make_tables_of_the_unit(folder: Path) -> None:
    (folder / "made.toml").write_text(GENERATED)
    (job,) = jobs_of(load_experiment(folder / "made.toml"))
    assert rows_of(job.source)[0].unit == dpf.PrivacyUnit("person", ROWS)
    (folder / "made.toml").write_text(GENERATED.replace(', params = { unit = "person" } }]', " }]", 1))
    with pytest.raises(dpf.InputError, match="data 'made': the experiment protects one person, by at most 2 of its"):
        jobs_of(load_experiment(folder / "made.toml"))


def test_two_views_must_be_joined_by_the_unit(folder: Path) -> None:
    schema = dpf.Schema([dpf.Boolean("l", view="left"), dpf.Boolean("r", view="right")])
    schema.dump(folder / "views.schema.toml")
    place = 'left = "l.csv"\nright = "r.csv"\nid = "place"\nschema = "views.schema.toml"\n'
    text = FILE.replace('path = "visits.csv"\nschema = "visits.schema.toml"\n', place)
    (folder / "visits.toml").write_text(text)
    with pytest.raises(dpf.InputError, match="data 'visits': the rows of two views are joined by 'place'"):
        load_experiment(folder / "visits.toml")
