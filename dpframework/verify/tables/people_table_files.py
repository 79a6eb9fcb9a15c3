"""Tables of people in several files, on which engines that read files are tested.

A person's rows may lie in all files. Ids are spelled in several ways, one person has most of the rows, some rows have
no id, and one file is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from dpframework.facts.attributes import Boolean, Categorical, Numeric
from dpframework.facts.derived_columns import derive
from dpframework.facts.open_attribute import Open
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.queries import BoundedSum, Histogram, JointHistogram, Keys
from dpframework.tables.engine_base import Engine, Rows
from dpframework.tables.unread_table_files import TableFiles

Table: TypeAlias = tuple[str, TableFiles]

SIZES = (60, 0, 45, 1, 80)
KEY = b"the rows of a unit are chosen by it"  # the private key
#: All spellings of each person's id. A wrong reader takes two people for one, or one person for two.
PEOPLE = [["7", " 7", "7.0", "70e-1"], ["7.5"], ["ann"], ["Ann"], ["9007199254740993"], ["9007199254740992"], ["b "]]
OFTEN, NOBODY = 0.6, 0.1  # about the share of rows of the first person, and the share of rows without an id
DAYS = ["2026-01-31", "2026-02-01", "2026-02-28", "2026-03-01", None]
VISITS = Schema([Boolean("ill"), Categorical("ward", ["x", "y"], missing=True), Numeric("cost", 0, 100, bins=5)])
TOWNS = Schema([Boolean("ill"), Open("town")])
OF_PEOPLE = Schema(
    VISITS.attributes,
    derive=[
        derive("dear", "cost > 50"),
        derive("visits", "count()", per="unit", lower=0, upper=90, bins=9),
        derive("total", "sum(cost)", per="unit", lower=0, upper=5000, bins=9),
        derive("least", "min(cost)", per="unit", lower=0, upper=100, bins=7),
        derive("most", "max(cost)", per="unit", lower=0, upper=100, bins=7),
        derive("ever", "any(dear)", per="unit"),
        derive("always", "all(ill)", per="unit"),
        derive("began", "first(ward)", per="unit"),
        derive("ended", "last(cost)", per="unit", lower=0, upper=100, bins=7),
        derive("often", "mode(ward)", per="unit"),
        derive("mean", "total / visits", lower=0, upper=100, bins=9),
    ],
)
VIEWS = Schema(
    [
        Boolean("ill", view="left"),
        Numeric("age", 0, 100, bins=5, view="left"),
        Categorical("ward", ["x", "y"], missing=True, view="right"),
        Numeric("cost", 0, 100, bins=5, view="right"),
    ]
)


def write_visits(folder: Path, schema: Schema, unit: PrivacyUnit) -> TableFiles:
    """Write the files of a table of visits, and return the table, to be read for a unit."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(len(schema))
    for file, rows in enumerate(SIZES):
        whose = np.where(rng.random(rows) < OFTEN, 0, rng.integers(0, len(PEOPLE), rows))
        ids = [PEOPLE[k][rng.integers(len(PEOPLE[k]))] if rng.random() > NOBODY else None for k in whose.tolist()]
        columns = {
            "person": pl.Series(ids, dtype=pl.String),
            "day": pl.Series([DAYS[k] for k in rng.integers(0, len(DAYS), rows)], dtype=pl.String),
            "ill": pl.Series(rng.random(rows) < 0.6, dtype=pl.Boolean),
            "ward": _draw(["x", "y", None], rows, rng),
            "cost": pl.Series(rng.uniform(-10, 110, rows), dtype=pl.Float64),
            "town": _draw(["Ulm", "Bonn", "Kiel", None], rows, rng),
        }
        pl.DataFrame(columns).write_parquet(folder / f"{file}.parquet")
    return TableFiles(folder, schema, unit=unit, key=KEY)


def write_views(folder: Path) -> TableFiles:
    """Write the files of two views, and return the table. Some ids occur twice, or in only one view."""
    rng = np.random.default_rng(0)
    for name, side, sizes in (("left", 0, (50, 0, 70)), ("right", 1, (90, 30))):
        (folder / name).mkdir(parents=True, exist_ok=True)
        ids = [str(k) for k in rng.permutation(sum(sizes) + 30)[: sum(sizes)]]
        # Some ids occur twice: in one file, in two files, and in two spellings.
        ids[1], ids[-1], ids[sizes[0]] = ids[0], ids[2], f" {ids[3]}.0"
        for file, own in enumerate(np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])):
            rows = len(own)
            columns = (
                {"ill": pl.Series(rng.random(rows) < 0.4, dtype=pl.Boolean), "age": rng.uniform(0, 100, rows)}
                if side == 0
                else {"ward": _draw(["x", "y", None], rows, rng), "cost": rng.uniform(-10, 110, rows)}
            )
            listed = pl.Series([ids[k] for k in own.tolist()], dtype=pl.String)
            pl.DataFrame({"person": listed, **columns}).write_parquet(folder / name / f"{file}.parquet")
    left, right = folder / "left", folder / "right"
    return TableFiles(left, VIEWS, right=str(right), id="person", unit=PrivacyUnit("person"), key=KEY)


def _draw(texts: Sequence[str | None], rows: int, rng: np.random.Generator) -> pl.Series:
    return pl.Series([texts[k] for k in rng.integers(0, len(texts), rows)], dtype=pl.String)


def tables_of_people(folder: Path) -> Iterator[Table]:
    """Write tables in which the rows that are kept, or their cells, depend on all rows of a person.

    Each table comes with a text that names the rule.
    """
    month: dict[str, Any] = {"period": "month", "date": "day"}
    for rows in (1, 3):
        yield f"at most {rows} rows of a person", write_visits(folder / str(rows), VISITS, PrivacyUnit("person", rows))
    yield (
        "at most 2 rows of a person in a month",
        write_visits(folder / "month", VISITS, PrivacyUnit("person", 2, **month).during("2026-02")),
    )
    yield (
        "rows of a month",
        write_visits(folder / "rows", VISITS, PrivacyUnit(None, 2, **month).during("2026-02")),
    )
    yield "one row of a person", write_visits(folder / "people", OF_PEOPLE, PrivacyUnit("person"))
    yield (
        "one row of a person in a month",
        write_visits(folder / "of month", OF_PEOPLE, PrivacyUnit("person", **month).during("2026-02")),
    )


def people_counts(engine: Engine, rows: Rows, schema: Schema) -> dict[str, Any]:
    """Return counts and sums of each attribute, of all rows and of the parts by the first attribute."""
    parts = {"": rows} | {f", part {k + 1}": part for k, part in enumerate(engine.split(rows, schema.attributes[0]))}
    found: dict[str, Any] = {}
    for where, part in parts.items():
        for attribute in schema:
            if isinstance(attribute, Open):
                keys = Keys(attribute.name).evaluate(engine, part)
                found[f"{attribute.name}{where}"] = keys.at(("Bonn", "Kiel", "Ulm")).tolist()
                found[f"the number of keys of {attribute.name}{where}"] = [len(keys.keys)]
                continue
            found[f"{attribute.name}{where}"] = Histogram(attribute).evaluate(engine, part).tolist()
            if isinstance(attribute, Numeric):
                found[f"the sum of {attribute.name}{where}"] = BoundedSum(attribute).evaluate(engine, part).tolist()
    listed = [attribute for attribute in schema if not isinstance(attribute, Open)]
    found["two attributes"] = JointHistogram(listed[:2]).evaluate(engine, rows).tolist()
    return found
