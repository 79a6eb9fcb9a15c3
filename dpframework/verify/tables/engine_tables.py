"""The tables on which engines are tested, the counts of their parts, and sentences about counts that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframework.facts.attributes import Boolean, Categorical, Numeric
from dpframework.facts.derived_columns import derive
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.logical_descriptions_of_rows import And, Below, Cases, Equals, Not, Or
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.row_partitions import Cut
from dpframework.facts.schema import Schema
from dpframework.queries import BoundedSum, GroupSums, Histogram, JointHistogram, Query
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.engine_base import Engine, Rows
from dpframework.tables.unread_table_files import TableFiles

MISSING = 0.1  # the share of missing cells, for an attribute that may have them
SCHEMA = Schema(
    [
        Boolean("ill"),
        Categorical("ward", ["x", "y", "z"]),
        Numeric("age", 0, 100, bins=5, missing=True),
        Categorical("wide", [f"v{k}" for k in range(300)]),
    ]
)
GROUP = Categorical("group", ["ill", "young", "rest"])
CASES = Cases([Equals("ill", "true"), Below("age", 33.3)])
#: Cases of negations. Like `Below`, they hold for no row with a missing cell.
NEGATIONS = Cases(
    [Not(Or([Equals("ward", "x"), Below("age", 60)])), And([Not(Equals("ill", "true")), Not(Below("age", 40))])]
)
DEEP = 20  # how many times a part is split again
#: The ways in which rows are divided into parts, by the names that messages use for them.
CUTS: dict[str, Cut] = {
    "an attribute": SCHEMA["ward"],
    "cases": CASES,
    "cases of negations": NEGATIONS,
    "descriptions": (Equals("ward", "x"), Equals("ward", "z")),
    "an attribute with missing values": SCHEMA["age"],
    "an attribute of many values": SCHEMA["wide"],
}
JOINT = JointHistogram(SCHEMA.attributes[:3])
ALL = JointHistogram(SCHEMA.attributes)  # so many cells that a database may return the first of them only
PERSON = PrivacyUnit("person", 2)
#: Labels that a database may take for one another: they differ in case, accents, spelling, unicode form or zeros only.
LABELS = ["a", "A", "\u00e1", "a\u0301", "\u00df", "ss", "1", "01"]
ODD = Schema(
    [Categorical("label", LABELS, missing=True), Numeric("cost", -(10**6), 10**6, cuts=[0, 0.1, 0.3], missing=True)]
)
_CELLS = [*LABELS, " a", "A ", "\ta", "\u00a0A", "", " ", None, "b", "1.0", "-0", "NaN"]
_COSTS = [-0.0, 0.0, 0.1, 0.3, 1 / 3, 10.0**6, -(10.0**6), 10.0**300, float("inf"), float("nan"), None, 0.1 + 0.2]
PEOPLE = 9  # how many people a table with ids has


@attrs.frozen
class Heavy(Query):
    """Counts each row 2^53 + 1 times, so that floats cannot hold the sum."""

    name = "heavy"

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return the number of rows times 2^53 + 1."""
        return np.array([block.rows * (2**53 + 1)], dtype=np.int64)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the same number, from the cross table of no attributes."""
        return JointCounts([Crosstab()], lambda counts: counts[0].reshape(1) * (2**53 + 1))


def write(folder: Path, sizes: Sequence[int], *, unit: PrivacyUnit = ROW, common: float = 0.0) -> TableFiles:
    """Write a file for each size, and return the table.

    Parameters
    ----------
    folder
        The folder of the files, which is made if it does not exist.
    sizes
        The number of rows of each file.
    unit
        The privacy unit. If it has an id, the rows of each file belong to 9 people in turn, so that a person's rows lie
        in several files.
    common
        The share of rows that are put into ward x. The other rows are in random wards.
    """
    folder.mkdir(exist_ok=True)
    rng, wards, wide = np.random.default_rng(len(sizes)), np.array(list("xyz")), np.array(SCHEMA["wide"].labels)
    for file, rows in enumerate(sizes):
        age = pl.Series(rng.uniform(-10, 110, rows).round(1), dtype=pl.Float64)
        ward = np.where(rng.random(rows) < common, 0, rng.integers(0, 3, rows))
        columns = {
            "ill": pl.Series(rng.random(rows) < 0.4, dtype=pl.Boolean),
            "ward": pl.Series(wards[ward].tolist(), dtype=pl.String),
            "age": age.set(pl.Series(rng.random(rows) < MISSING, dtype=pl.Boolean), None),
            "wide": pl.Series(wide[rng.integers(0, 300, rows)].tolist(), dtype=pl.String),
        }
        if unit.id is not None:
            columns[unit.id] = pl.Series([f"p{k % PEOPLE}" for k in range(rows)], dtype=pl.String)
        pl.DataFrame(columns).write_parquet(folder / f"{file}.parquet")
    return TableFiles(folder, SCHEMA, unit=unit)


def write_odd(folder: Path, rows: int) -> TableFiles:
    """Write a file of labels and numbers that databases confuse, with mostly large costs, and return the table.

    The file also holds columns that are not attributes. Their names differ from those of attributes only in case.
    """
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(rows)
    labels = [_CELLS[k] for k in rng.integers(0, len(_CELLS), rows)]
    odd, large = rng.integers(0, len(_COSTS), rows), rng.uniform(9.99e5, 1e6, rows).tolist()
    costs = [large[k] if at_random else _COSTS[odd[k]] for k, at_random in enumerate(rng.random(rows) < 0.8)]
    others = {"LABEL": pl.Series(["ss"] * rows, dtype=pl.String), "Cost": pl.Series([0.2] * rows, dtype=pl.Float64)}
    columns = {**others, "label": pl.Series(labels, dtype=pl.String), "cost": pl.Series(costs, dtype=pl.Float64)}
    pl.DataFrame(columns).write_parquet(folder / "0.parquet")
    return TableFiles(folder, ODD)


def read_in_each_way(files: TableFiles) -> dict[str, TableFiles]:
    """Return a table from `write_odd`, to be read by each of several rules. Messages name the rules by the keys."""
    nulls = attrs.evolve(ODD, read={"null": ["a", "b"]})
    of_one = attrs.evolve(ODD, read={"columns": {"label": {"null": ["1"]}}})
    derived = attrs.evolve(ODD, derive=[derive("dear", "cost > 0.1"), derive("half", "cost / 2", lower=0, upper=9)])
    return {
        "numbers outside of their bounds are missing": attrs.evolve(files, out_of_domain=OutOfDomain.MISSING),
        "two texts stand for a missing cell": attrs.evolve(files, schema=nulls),
        "a text stands for a missing cell of one column": attrs.evolve(files, schema=of_one),
        "with derived columns": attrs.evolve(files, schema=derived),
    }


def odd_counts(engine: Engine, rows: Rows, schema: Schema = ODD) -> dict[str, Any]:
    """Return the counts and sums of a table from `write_odd`, for all rows and for the parts by label."""
    asked: dict[str, Query] = {
        **{f"the derived column {one.name}": Histogram(one) for one in schema.attributes[len(ODD.attributes) :]},
        "labels": Histogram(ODD["label"]),
        "labels and costs": JointHistogram(ODD.attributes),
        "the sum of costs": BoundedSum(ODD["cost"]),
        "sums of costs by label": GroupSums(ODD["cost"], by=[ODD["label"]]),
    }
    parts = {"": rows} | {f", part {k + 1}": part for k, part in enumerate(engine.split(rows, ODD["label"]))}
    return {
        f"{what}{name}": query.evaluate(engine, part).tolist()
        for name, part in parts.items()
        for what, query in asked.items()
    }


def histograms(engine: Engine, rows: Rows) -> list[Any]:
    """Return the counts of the values of each attribute."""
    return [Histogram(attribute).evaluate(engine, rows).tolist() for attribute in SCHEMA]


def all_counts(engine: Engine, rows: Rows) -> dict[str, Any]:
    """Return counts of all rows, parts, parts of parts, and rows with a derived attribute, by the names of the rows."""
    found: dict[str, Any] = {"all rows": JOINT.evaluate(engine, rows).tolist()}
    for name, cut in CUTS.items():
        for k, part in enumerate(engine.split(rows, cut)[:6]):
            found[f"part {k + 1} by {name}"] = JOINT.evaluate(engine, part).tolist()
    for k, part in enumerate(engine.split(rows, SCHEMA["ill"])):
        for j, inner in enumerate(engine.split(part, CASES)):
            found[f"part {j + 1} by cases of part {k + 1} by an attribute"] = JOINT.evaluate(engine, inner).tolist()
    derived, grouped = engine.derive(rows, GROUP, CASES), JointHistogram([GROUP, SCHEMA["ill"]])
    found["rows with a derived attribute"] = grouped.evaluate(engine, derived).tolist()
    for k, part in enumerate(engine.split(rows, SCHEMA["ward"])):
        counts = grouped.evaluate(engine, engine.derive(part, GROUP, CASES))
        found[f"part {k + 1} with a derived attribute"] = counts.tolist()
    for k, part in enumerate(engine.split(derived, GROUP)):
        found[f"part {k + 1} by a derived attribute"] = grouped.evaluate(engine, part).tolist()
    again = engine.derive(rows, GROUP, NEGATIONS)
    found["rows with an attribute of the same name, derived by other cases"] = grouped.evaluate(engine, again).tolist()
    found["rows with the first of two derived attributes of the same name"] = grouped.evaluate(
        engine, engine.split(derived, GROUP)[0]
    ).tolist()
    part = engine.split(rows, SCHEMA["ward"])[1]
    for _ in range(DEEP):
        part = engine.split(part, SCHEMA["ill"])[1]
    found["the part that is left after many splits"] = JOINT.evaluate(engine, part).tolist()
    for k, part in enumerate(engine.split(engine.split(derived, SCHEMA["ill"])[1], GROUP)):
        found[f"part {k + 1} by a derived attribute of a part"] = grouped.evaluate(engine, part).tolist()
    return found


def difference(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str | None:
    """Describe the first counts that differ from the expected ones, None if all agree."""
    for what, right in expected.items():
        if found[what] != right:
            return f"{what}: {miscount(found[what], right)}"
    return None


def miscount(found: Any, expected: Any) -> str:
    """Describe how counts differ from the expected ones."""
    one, other = np.asarray(found), np.asarray(expected)
    if one.shape != other.shape:
        return f"there are {one.size} counts where {other.size} are expected"
    rows, right = one.sum(), other.sum()
    if rows == right:
        return "as many rows as expected, but in other cells: rows are mixed up or merged"
    at = np.unravel_index(np.abs(one - other).argmax(), one.shape)
    capped = rows < right and one[at] == one.max() and int(one[at]) + 1 in (2**8, 2**15, 2**16, 2**31)
    how = (
        f"a count of {other[at]:,} stops at {one[at]:,}: counts are capped"
        if capped
        else ("rows are lost" if rows < right else "rows are counted twice")
    )
    missing = one.ndim == 3 and rows < right and one[..., :-1].sum() == other[..., :-1].sum()
    return f"{rows:,} rows are counted of {right:,}: " + ("rows with a missing cell are lost" if missing else how)
