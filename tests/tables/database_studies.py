"""Studies whose tables lie in files for memory and in a database for an engine: units, samples, periods, two views."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import polars as pl

import dpframework as dpf

ROWS, PEOPLE, KEY = 900, 160, bytes(range(32))
SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill"),
        dpf.Categorical("ward", ["x", "X", "y"], missing=True),
        dpf.Numeric("age", 0, 100, bins=5, missing=True),
    ]
)
VIEWS = dpf.Schema(
    [
        dpf.Boolean("ill", view="left"),
        dpf.Categorical("ward", ["x", "X", "y"], view="left", missing=True),
        dpf.Numeric("age", 0, 100, bins=5, view="right", missing=True),
    ]
)
PERSON, DAYS = "person", "seen"


def frame(seed: int = 0) -> pl.DataFrame:
    """Return rows of people with few and many rows, in any order, some without an id, an age or a day."""
    rng = np.random.default_rng(seed)
    whose = np.minimum(rng.geometric(0.03, ROWS), PEOPLE)
    # one person may be spelled in several ways, and others differ by a blank within or by their case
    spelled = [(f"{k}", f" {k}", f"{k}.0", f"p {k}", f"P {k}")[rng.integers(0, 5)] for k in whose.tolist()]
    wards = [["x", "X", " y", None, "?"][k] for k in rng.integers(0, 5, ROWS)]
    ages = [None if k % 9 == 0 else x for k, x in enumerate(rng.uniform(-5, 105, ROWS).round(2).tolist())]
    first = datetime.datetime(2026, 1, 1)
    days = [first + datetime.timedelta(hours=int(k)) for k in rng.integers(0, 24 * 90, ROWS)]
    return pl.DataFrame(
        {
            "ill": pl.Series(rng.random(ROWS) < 0.4),
            "ward": pl.Series(wards, dtype=pl.String),
            "age": pl.Series(ages, dtype=pl.Float64),
            PERSON: pl.Series([None if k % 50 == 0 else one for k, one in enumerate(spelled)], dtype=pl.String),
            DAYS: pl.Series([None if k % 40 == 0 else one for k, one in enumerate(days)]),
        }
    )


@attrs.frozen
class Case:
    """A study, and the rows that it reads: of one table, or of two views."""

    study: dpf.Study
    frames: tuple[pl.DataFrame, ...]
    unit: dpf.PrivacyUnit


def _study(schema: dpf.Schema = SCHEMA, **unit: Any) -> dpf.Study:
    return dpf.Study(schema, epsilon=9, **unit)


def _tree() -> dpf.Miner:
    return dpf.miner("dp-id3", target="ill", max_depth=2, epsilon=1)


def _sampled(study: dpf.Study) -> None:
    joint = dpf.step("joint", dpf.queries.JointHistogram(SCHEMA.attributes[:2]), dpf.mechanisms.Laplace(1))
    ages = dpf.step("ages", dpf.queries.Histogram(SCHEMA["age"]), dpf.mechanisms.Laplace(1))
    study.add_plan("half", dpf.sample("1/2", dpf.sequential(joint, dpf.sample("1/3", ages, name="third")), name="half"))
    part = dpf.step("part", dpf.queries.Histogram(SCHEMA["ill"]), dpf.mechanisms.Laplace(1))
    study.add_plan("parts", dpf.parallel(dpf.sample("1/4", part, name="quarter"), by=SCHEMA["ward"]))


NAMES = [
    "units of 1",
    "units of 2",
    "units of 5",
    "a sample of rows",
    "a sample of units of 1",
    "a sample of units of 3",
    "people in a month",
    "two views",
    "derived columns",
    "columns of people",
]


def cases() -> dict[str, Case]:
    """Return the studies by what they show."""
    rows, found = frame(), {}

    def add(name: str, study: dpf.Study, *frames: pl.DataFrame, during: str = "") -> None:
        unit = study.plan().unit
        found[name] = Case(study, frames or (rows,), unit.during(during) if during else unit)

    for k in (1, 2, 5):
        study = _study(unit=PERSON, rows_per_unit=k)
        study.add("tree", _tree())
        study.add("mean", dpf.miner("mean", attribute="age", epsilon=1))
        add(f"units of {k}", study)
    study = _study()
    _sampled(study)
    add("a sample of rows", study)
    for k in (1, 3):
        study = _study(unit=PERSON, rows_per_unit=k)
        _sampled(study)
        add(f"a sample of units of {k}", study)
    study = _study(unit=PERSON, rows_per_unit=2, period="month", date=DAYS)
    study.add("tree", _tree())
    add("people in a month", study, during="2026-02")
    ids = rows.filter(pl.col(PERSON).is_unique() | (pl.col(PERSON).hash(0) % 3 == 0)).sample(fraction=1, seed=1)
    other = ids.sample(fraction=0.8, seed=2, shuffle=True)
    study = _study(VIEWS, unit=PERSON)
    study.add("tree", _tree())
    add("two views", study, ids.select("ill", "ward", PERSON), other.select("age", PERSON))
    derive = [dpf.derive("old", "age > 60.5"), dpf.derive("group", "ward + text(ill)")]
    study = _study(attrs.evolve(SCHEMA, derive=derive), unit=PERSON, rows_per_unit=2)
    study.add("table", dpf.miner("crosstab", attributes=["group", "old"], epsilon=1))
    add("derived columns", study)
    of_people = {"visits": "count()", "ever": "any(ill)", "ward": "last(ward)", "spent": "sum(age)", "old": "max(age)"}
    upper = {"visits": 30, "spent": 500}
    derive = [
        *(dpf.derive(name, value, per="unit", upper=upper.get(name)) for name, value in of_people.items()),
        dpf.derive("often", "visits > 3 and ever"),
    ]
    study = _study(attrs.evolve(SCHEMA, derive=derive), unit=PERSON, period="month", date=DAYS)
    study.add("table", dpf.miner("crosstab", attributes=["often", "ward"], epsilon=1))
    study.add("spent", dpf.miner("mean", attribute="spent", epsilon=1))
    half = dpf.step("half", dpf.queries.Histogram(study.schema["visits"]), dpf.mechanisms.Laplace(1))
    study.add_plan("half", dpf.sample("1/2", half, name="sample"))
    add("columns of people", study, during="2026-02")
    assert list(found) == NAMES
    return found


def expected(case: Case, folder: Path) -> Any:
    """Return the releases in memory."""
    for k, one in enumerate(case.frames):
        one.write_parquet(folder / f"{k}.parquet")
    files = [folder / f"{k}.parquet" for k in range(len(case.frames))]
    if len(files) == 2:
        table = dpf.read_two_views(*files, case.study.schema, id=PERSON, unit=case.unit)
    else:
        table = dpf.read_table(files[0], case.study.schema, unit=case.unit, key=KEY)
    return releases(case.study.run(table, seed=3))


def found(case: Case, engine: dpf.Engine, write: Callable[[str, pl.DataFrame], None], name: str) -> Any:
    """Return the releases of an engine, of tables that are written first."""
    names = [f"{name} {k}" for k in range(len(case.frames))]
    for one, rows in zip(names, case.frames, strict=True):
        write(one, rows)
    given = {"unit": case.unit, "key": KEY, "id": PERSON if len(names) == 2 else None}
    return releases(case.study.run(dpf.DatabaseTable(names, case.study.schema, **given), seed=3, engine=engine))


def releases(results: dpf.Results) -> dict[str, Any]:
    """Return results without what names the engine's code, and the time."""
    return {**results.to_dict(), "plan": None, "about": None, "counted": None}


def connection_of(engine: Any) -> Any:
    """Return the connection of an engine that has opened one: its tables are of no use to who counts."""
    return engine._connection
