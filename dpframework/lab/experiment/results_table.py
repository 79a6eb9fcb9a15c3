"""The results of an experiment as one table, with one row for each finished cell in the order of the file."""

from __future__ import annotations

import io
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

from dpframework.facts.errors import InputError
from dpframework.facts.files import write_whole
from dpframework.facts.output_overwrite_rule import IN_OWN_FOLDER
from dpframework.lab.experiment.experiment_contents_and_grid import Experiment, canonical
from dpframework.lab.experiment.job import FinishedCell


def results_frame(experiment: Experiment, finished: Iterable[FinishedCell]) -> pl.DataFrame:
    """Return the coordinates, measured values, CPU seconds and key of each finished cell.

    Columns: data, method, a column for each parameter that varies, epsilon (null for none), repetition, fold (with
    cross-validation only), the measured values in alphabetical order, seconds, private (always false), cell.
    """
    cells = list(finished)
    coordinates = [experiment.coordinates(one.cell) for one in cells]
    columns: dict[str, pl.Series] = {}
    for name in ("data", "method"):
        columns[name] = pl.Series([row[name] for row in coordinates], dtype=pl.String)
    for name in experiment.grid_names():
        columns[name] = _parameter([row[name] for row in coordinates])
    columns["epsilon"] = pl.Series([_float(row["epsilon"]) for row in coordinates], dtype=pl.Float64)
    for name in ("repetition",) if experiment.folds is None else ("repetition", "fold"):
        columns[name] = pl.Series([row[name] for row in coordinates], dtype=pl.Int64)
    for name in sorted({name for one in cells for name in one.values}):
        if name in columns:
            raise InputError(
                f"a measure gives a value named '{name}', and a parameter that varies has this name too; "
                "give the measure a name"
            )
        columns[name] = pl.Series([one.values.get(name) for one in cells], dtype=pl.Float64)
    columns["seconds"] = pl.Series([one.seconds for one in cells], dtype=pl.Float64)
    columns["private"] = pl.Series([False] * len(cells), dtype=pl.Boolean)
    columns["cell"] = pl.Series([one.key for one in cells], dtype=pl.String)
    return pl.DataFrame(columns)


def _parameter(values: list[Any]) -> pl.Series:
    """Return a parameter's values as Booleans, whole numbers or numbers if all are of one such kind, else as texts.

    In the last case, texts stay as they are, floats and fractions are written with six digits, and all else as JSON.
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Series(values, dtype=pl.Boolean)
    if kinds == {int}:
        return pl.Series(values, dtype=pl.Int64)
    if kinds and kinds <= {int, float}:
        return pl.Series([_float(value) for value in values], dtype=pl.Float64)
    return pl.Series([None if value is None else text_of(value) for value in values], dtype=pl.String)


def text_of(value: Any) -> str:
    """Return a coordinate's value as a text."""
    if isinstance(value, str):
        return value
    return f"{float(value):g}" if isinstance(value, Fraction | float) else canonical(value)


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def write_results(folder: Path, frame: pl.DataFrame) -> None:
    """Write results.parquet, whose bytes are the same for the same cells, and times.parquet, with measured times."""
    for name, part in (("results", frame.drop("seconds")), ("times", frame.select("cell", "seconds"))):
        buffer = io.BytesIO()
        part.write_parquet(buffer)
        write_whole(folder / f"{name}.parquet", buffer.getvalue(), IN_OWN_FOLDER)
