"""Reading the files of public tables (CSV, Parquet and Excel) as rows of texts. The first row names the columns.

A public table is small, and everybody may know it. So it is read as a whole, and errors may show its contents.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from dpframework.facts.errors import InputError
from dpframework.facts.files import read_by_library, read_text

MOST_BYTES = 1 << 26
_TOO_LARGE = f"is larger than {MOST_BYTES >> 20} MiB; save only the columns of keys and values"


def rows_of_public_file(path: Path) -> list[list[str]]:
    """Return all rows of a public table, beginning with the names of its columns. Empty cells are empty texts.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    reader = {".parquet": _parquet, ".xlsx": _excel}.get(path.suffix.lower())
    if reader is None:
        rows = csv.reader(io.StringIO(read_text(path, "a public table in CSV")), strict=True)
        try:
            return [row for row in rows if row]
        except csv.Error as error:
            raise InputError(f"is not CSV: {error}") from None
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(_TOO_LARGE)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
    return reader(path)


def _parquet(path: Path) -> list[list[str]]:
    import polars as pl

    frame = read_by_library(lambda: pl.read_parquet(path), "cannot be read as Parquet; save it anew, or as CSV")
    return [frame.columns, *([_text(cell) for cell in row] for row in frame.iter_rows())]


def _excel(path: Path) -> list[list[str]]:
    try:
        import fastexcel
    except ImportError:
        raise InputError(
            "Excel files need the package fastexcel; install it with: pip install 'dpframework[excel]'"
        ) from None
    broken = "cannot be read as an Excel workbook (.xlsx); save it anew, without a password, or as CSV"
    sheet = read_by_library(lambda: fastexcel.read_excel(path).load_sheet(0, header_row=None, dtypes="string"), broken)
    rows = sheet.to_polars().iter_rows()
    return [[_text(cell) for cell in row] for row in rows if any(cell is not None for cell in row)]


def _text(cell: Any) -> str:
    """Return a cell as a CSV file would hold it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return "" if cell is None or cell != cell else repr(cell) if isinstance(cell, float) else str(cell)
