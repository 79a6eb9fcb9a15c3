"""Readers that look at a whole column: each reads a cell otherwise alone than in a table, and is found by that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpframework as dpf
from dpframework.verify import Reader, check_reading
from dpframework.verify.tables.row_independence_checks import write_csv

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill"),
        dpf.Categorical("town", ["Ulm", "Bonn", "other"], missing=True),
        dpf.Numeric("age", 0, 100, bins=5, missing=True),
    ]
)
Change = Callable[[pd.DataFrame], pd.DataFrame]


def merges_rare(least: float, *, share: bool = False) -> Change:
    """Towns that occur less often become the other town."""

    def change(cells: pd.DataFrame) -> pd.DataFrame:
        times = cells["town"].map(cells["town"].value_counts(normalize=share))
        return cells.assign(town=cells["town"].where(times >= least, "other"))

    return change


def reads_commas(cells: pd.DataFrame) -> pd.DataFrame:
    """Commas are decimal points in a column without a point."""
    if cells["age"].str.contains(".", regex=False).any():
        return cells
    return cells.assign(age=cells["age"].str.replace(",", "."))


def reads_points_of_sas(cells: pd.DataFrame) -> pd.DataFrame:
    """Right: each point alone is a missing cell."""
    return cells.replace({r"^\.[A-Z_]?$": ""}, regex=True)


def unchanged(cells: pd.DataFrame) -> pd.DataFrame:
    """Right."""
    return cells


def reader(change: Change) -> Reader:
    def read(path: Any, schema: dpf.Schema) -> dpf.Table:
        return dpf.table_from_frame(change(pd.read_csv(path, dtype=str, keep_default_na=False)), schema)

    return Reader("planted", write_csv, read)


def guesses_types(path: Path, schema: dpf.Schema) -> dpf.Table:
    """What a column holds decides how pandas reads each of its cells."""
    return dpf.table_from_frame(pd.read_csv(path), schema)


PLANTED: dict[str, tuple[Reader, str]] = {
    "less than 10 rows": (
        reader(merges_rare(10)),
        "'town' of 'Ulm' is read as 2, but as 0 in a table of 914 rows, 600",
    ),
    "less than 300 rows": (reader(merges_rare(300)), "'town' of 'Ulm' is read as 2, but as 0"),
    "less than a hundredth": (reader(merges_rare(0.01, share=True)), "'town' of 'Bonn' is read as 1, but as 2 in a ta"),
    "less than a half": (reader(merges_rare(0.5, share=True)), "'town' of '1' is read as 3, but as 2"),
    "decimal commas": (reader(reads_commas), "'age' of '0,5' is read as 0, but as 5"),
    "types": (Reader("planted", write_csv, guesses_types), "'ill' of '+1' is read as 1, but as 0"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_reader_that_looks_at_a_column_is_found(name: str) -> None:
    planted, says = PLANTED[name]
    found = check_reading(SCHEMA, readers=[planted], tables=0)
    assert not found.passed
    assert any(text.startswith(f"planted: {says}") for text in found.violations), found


@pytest.mark.parametrize("change", [unchanged, reads_points_of_sas])
def test_a_reader_that_looks_at_each_cell_alone_passes(change: Change) -> None:
    assert check_reading(SCHEMA, readers=[reader(change)], tables=20).passed


def test_rows_of_other_values_than_their_codes_are_found() -> None:
    """A value may be changed within its bin, as by winsorizing."""

    def clips(cells: pd.DataFrame) -> pd.DataFrame:
        age = pd.to_numeric(cells["age"], errors="coerce")
        return cells.assign(age=age.clip(age.min() + 1e-9, None) if len(cells) > 900 else age)

    found = check_reading(dpf.Schema([SCHEMA["age"]]), readers=[reader(clips)], tables=0)
    assert any("in a table of 914 rows" in text for text in found.violations), found
