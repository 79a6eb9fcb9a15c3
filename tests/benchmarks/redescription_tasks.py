"""Two-view tables to mine redescriptions from."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import numpy as np

import dpframework as dpf
from dpframework.lab.clinic import clinic_table

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = {
    "species": ("species_climate_SA/left_species.csv", "species_climate_SA/right_climate.csv"),
    "teeth": ("teeth_climate/left_dental_traits.csv", "teeth_climate/right_climate.csv"),
}
TASKS = (*FILES, "clinic", "nltcs")


def default_data() -> Path:
    """Return the folder of real data sets: $DPFRAMEWORK_DATA, or the shared one beside the repository."""
    return Path(os.environ.get("DPFRAMEWORK_DATA", REPOSITORY.parent / "shared" / "data"))


def two_view_table(left: Path, right: Path, *, key: str | None = None, bins: int = 16) -> dpf.Table:
    """Read two files on a grid of equal bins between the bounds that they have; its row count is public."""
    schema = dpf.infer_two_view_schema(left, right, id=key, bins=bins)
    table = dpf.read_two_views(left, right, schema, id=key)
    # taken for public facts: what is compared are miners, on one grid
    public = attrs.evolve(schema, inferred=(), rows=table.codes.shape[1])
    return dpf.Table.from_codes(public, table.codes, table.values)


def task(name: str, data: Path) -> dpf.Table:
    """Return the table of one of `TASKS`, its row count public."""
    if name == "clinic":
        table = clinic_table()
        return dpf.Table.from_codes(attrs.evolve(table.schema, rows=table.codes.shape[1]), table.codes, table.values)
    if name == "nltcs":  # sixteen questions, eight a view: few enough for pairs of trees to be drawn exactly
        path = data / "nltcs" / "nltcs.csv"
        questions = path.open(encoding="utf-8").readline().strip().split(",")
        attributes = [dpf.Boolean(one, view="left" if k < 8 else "right") for k, one in enumerate(questions)]
        table = dpf.read_table(path, dpf.Schema(attributes))
        return dpf.Table.from_codes(attrs.evolve(table.schema, rows=table.codes.shape[1]), table.codes, table.values)
    left, right = (data / file for file in FILES[name])
    return two_view_table(left, right, key="id")


def repeated(table: dpf.Table, times: int) -> dpf.Table:
    """Return a table with its rows repeated."""
    schema = attrs.evolve(table.schema, rows=table.codes.shape[1] * times)
    values = {name: np.tile(column, times) for name, column in table.values.items()}
    return dpf.Table.from_codes(schema, np.tile(table.codes, times), values)
