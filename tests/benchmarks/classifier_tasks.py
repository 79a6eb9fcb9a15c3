"""The tables that classifiers are compared on, each with a class: two values on most, as the peers need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from benchmark_tasks import Task

import dpframework as dpf

#: The five that means are of, all of two classes.
BINARY = ("adult", "mushroom", "nursery-urgent", "nltcs", "teeth")
#: Several classes, and further ones of two, for which nothing was chosen.
FURTHER = ("nursery", "cmc", "nltcs-money", "mushroom-odour", "adult-sex", "teeth-lophs")
#: A made-up one, whose class follows from pairs of attributes.
MADE = ("interactions",)
#: Whether a species lives at a place, from 40 others.
WIDE = ("species",)
#: Many classes and few rows.
FEW = ("soybean", "dermatology")
TASKS = (*BINARY, *FURTHER, *MADE, *WIDE, *FEW)
CLIMATE = {
    "TMeanY": (-25, 35),
    "TMeanRngD": (0, 25),
    "TIso": (0, 100),
    "TSeason": (0, 2500),
    "TMaxWarmM": (-10, 50),
    "TMinColdM": (-60, 30),
    "TRngY": (0, 80),
    "TMeanWetQ": (-40, 40),
    "TMeanDryQ": (-60, 40),
    "TMeanWarmQuarter": (-10, 40),
    "TMeanColdQ": (-60, 30),
    "PTotY": (0, 4000),
    "PWetM": (0, 600),
    "PDryM": (0, 200),
    "PSeason": (0, 200),
    "PWetQ": (0, 1500),
    "PDryQ": (0, 600),
    "PWarmQ": (0, 1500),
    "PColdQ": (0, 1500),
}


def read_task(data: Path, name: str) -> tuple[dpf.Table, str]:
    """Return a table and the name of its class.

    Attributes and cuts are those of `docs/examples` where there are some; else 16 equal parts of a round range, or
    each value that occurs, which for these tables is public.
    """
    if name.startswith(("adult", "mushroom")):
        task = Task.read(data, name.split("-")[0])
        return _other_class(task.table, task.target, name)
    readers = (_nursery, _nltcs, _cmc, _teeth, _interactions, _species, _soybean, _dermatology)
    read = {reader.__name__[1:]: reader for reader in readers}
    return read[name.split("-")[0]](data, name)


def _other_class(table: dpf.Table, target: str, name: str) -> tuple[dpf.Table, str]:
    if "-" not in name:
        return table, target
    if name == "adult-sex":
        return table, "sex"
    # whether a mushroom smells at all
    at = table.schema.index("odor")
    smells = table.codes[at] != table.schema["odor"].labels.index("n")
    attributes = [a if a.name != "odor" else dpf.Boolean("odor") for a in table.schema]
    codes = table.codes.copy()
    codes[at] = smells
    return dpf.Table.from_codes(dpf.Schema(attributes, max_rows=table.schema.max_rows), codes, table.values), "odor"


def _texts(data: Path, name: str) -> Any:
    import polars as pl

    frame = pl.read_csv(data / name / f"{name}.csv", infer_schema_length=None)
    return frame.select(pl.col(column).cast(pl.String) for column in frame.columns)


def _values(frame: Any, columns: list[str]) -> list[Any]:
    return [dpf.Categorical(column, sorted(set(frame[column].to_list()))) for column in columns]


def _nursery(data: Path, name: str) -> tuple[dpf.Table, str]:
    import polars as pl

    frame = _texts(data, "nursery")
    if name == "nursery-urgent":  # the highest of five priorities, or not
        frame = frame.with_columns((pl.col("class") == "spec_prior").cast(pl.String).alias("class"))
    return dpf.table_from_frame(frame, dpf.Schema(_values(frame, frame.columns), max_rows=100_000)), "class"


def _nltcs(data: Path, name: str) -> tuple[dpf.Table, str]:
    frame = _texts(data, "nltcs")
    target = "traveling" if name == "nltcs" else "managing money"
    return dpf.table_from_frame(frame, dpf.Schema(_values(frame, frame.columns), max_rows=100_000)), target


def _cmc(data: Path, name: str) -> tuple[dpf.Table, str]:
    import polars as pl

    frame = _texts(data, name)
    numbers = {"wife_age": (16, 49), "children_born": (0, 16)}
    others = _values(frame, [column for column in frame.columns if column not in numbers])
    attributes = [*(dpf.Numeric(column, *numbers[column], bins=8) for column in numbers), *others]
    frame = frame.with_columns(pl.col(column).cast(pl.Float64) for column in numbers)
    return dpf.table_from_frame(frame, dpf.Schema(attributes, max_rows=100_000)), frame.columns[-1]


def _teeth(data: Path, name: str) -> tuple[dpf.Table, str]:
    """Whether most mammals of a place have low crowns (or many lophs), from its climate."""
    import polars as pl

    teeth, climate = (
        pl.read_csv(data / "teeth_climate" / f"{side}.csv", infer_schema_length=None)
        for side in ("left_dental_traits", "right_climate")
    )
    column, least = ("MEAN_HYP:1", 0.5) if name == "teeth" else ("MEAN_FCT_SF", 0.25)
    given = {c: c.split(":")[1] for c in climate.columns if c != "id"}
    frame = teeth.join(climate, on="id").select(
        *(pl.col(c).cast(pl.Float64).alias(short) for c, short in given.items()),
        (pl.col(column) >= least).alias("most"),
    )
    attributes = [dpf.Numeric(short, *CLIMATE[short], bins=16) for short in given.values()]
    schema = dpf.Schema([*attributes, dpf.Boolean("most")], max_rows=100_000)
    return dpf.table_from_frame(frame, schema, out_of_domain="clamp"), "most"


def _species(data: Path, name: str) -> tuple[dpf.Table, str]:
    return species(data, 40)


def species(data: Path, others: int) -> tuple[dpf.Table, str]:
    """Return whether the species lives at a place whose share is nearest to 30 %, and others drawn at random."""
    import polars as pl

    frame = pl.read_csv(data / "species_climate_SA" / "left_species.csv", infer_schema_length=None)
    names = [name for name in frame.columns if name != "id"]
    frame = frame.select(pl.col(names).cast(pl.Float64).cast(pl.Boolean))
    target = min(names, key=lambda name: abs(float(frame[name].cast(pl.Float64).mean()) - 0.3))
    rest = [name for name in names if name != target]
    chosen = np.random.default_rng(0).choice(rest, others, replace=False).tolist()
    schema = dpf.Schema([*map(dpf.Boolean, chosen), dpf.Boolean(target)], max_rows=100_000)
    return dpf.table_from_frame(frame, schema), target


def _soybean(data: Path, name: str) -> tuple[dpf.Table, str]:
    import polars as pl

    frame = _texts(data, name).with_columns(pl.all().fill_null("?"))  # a missing value is a value
    return dpf.table_from_frame(frame, dpf.Schema(_values(frame, frame.columns), max_rows=100_000)), "class"


def _dermatology(data: Path, name: str) -> tuple[dpf.Table, str]:
    import polars as pl

    frame = _texts(data, name)
    others = _values(frame, [column for column in frame.columns if column != "age"])
    attributes = [dpf.Numeric("age", 0, 100, bins=8, missing=True), *others]
    frame = frame.with_columns(pl.col("age").cast(pl.Float64, strict=False))
    return dpf.table_from_frame(frame, dpf.Schema(attributes, max_rows=100_000)), "class"


def _interactions(data: Path, name: str) -> tuple[dpf.Table, str]:
    """Return 38,000 rows of 13 attributes, three of whose pairs tell most of the class, and two by themselves a little.

    Nothing is read.
    """
    rng, rows = np.random.default_rng(0), 38_000
    x, b = rng.integers(0, 6, (9, rows)), rng.integers(0, 2, (4, rows))
    score = 0.3 * (x[0] - 2.5) + 2.5 * ((x[1] >= 3) == b[0]) - 2 * ((x[2] < 2) & (x[3] >= 3)) + 0.8 * b[1]
    score += 0.4 * (x[4] - 2.5) * (2 * b[2] - 1) - 1.5
    codes = np.vstack([x, b, rng.random(rows) < 1 / (1 + np.exp(-1.5 * score))])
    numbers = [dpf.Numeric(f"x{k}", 0, 6, bins=6) for k in range(9)]
    schema = dpf.Schema([*numbers, *(dpf.Boolean(f"b{k}") for k in range(4)), dpf.Boolean("y")], max_rows=100_000)
    return dpf.Table.from_codes(schema, codes, {f"x{k}": x[k] + 0.5 for k in range(9)}), "y"


def part(table: dpf.Table, rows: np.ndarray[Any, np.dtype[np.int64]]) -> dpf.Table:
    """Return some rows."""
    values = {column: raw[rows] for column, raw in table.values.items()}
    return dpf.Table.from_codes(table.schema, table.codes[:, rows], values)
