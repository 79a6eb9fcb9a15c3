"""How cells of a database are asked for and become columns, without a database."""

from __future__ import annotations

import datetime
from typing import Any

import polars as pl
import pytest

import dpframework as dpf
from dpframework.tables.sql_cell_conversion import CellKind, ColumnType

UTC = datetime.UTC
SUMMER = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("kind", "short", "cells", "dtype"),
    [
        (CellKind.TEXT, False, ["a", b"b", memoryview(b"c"), None], pl.String),
        (CellKind.UUID, False, ["a"], pl.String),
        (CellKind.WHOLE, False, [-1, 2], pl.Int64),
        (CellKind.WHOLE, True, [2**64 - 1], pl.UInt64),
        (CellKind.REAL, False, [0.5, None], pl.Float64),
        (CellKind.REAL, True, [0.5], pl.Float32),
        (CellKind.TRUTH, False, [True, None], pl.Boolean),
        (CellKind.BYTES, False, [b"a", memoryview(b"b")], pl.Binary),
    ],
    ids=lambda given: (
        "" if isinstance(given, list) else str(given)
    ),  # some cells are written with their place in memory
)
def test_cells_become_a_column_of_their_kind(kind: CellKind, short: bool, cells: list[Any], dtype: Any) -> None:
    of = ColumnType(kind, "t", short=short)
    found = of.values(cells)
    assert found.dtype == dtype
    plain = [bytes(cell) if isinstance(cell, memoryview) else cell for cell in cells]
    if dtype == pl.String:
        plain = [cell.decode() if isinstance(cell, bytes) else cell for cell in plain]
    assert found.to_list() == plain
    missing = of.missing()
    assert (missing.dtype, missing.to_list()) == (dtype, [None])


@pytest.mark.parametrize("kind", [CellKind.DATE, CellKind.TIME, CellKind.ZONED])
def test_times_are_read_in_utc_and_one_that_was_asked_in_vain_is_foreign(kind: CellKind) -> None:
    of, noon = ColumnType(kind, "t"), datetime.datetime(2024, 7, 1, 12, tzinfo=SUMMER)
    day, naive = datetime.date(2024, 7, 1), datetime.datetime(2024, 7, 1, 12)
    found = of.values([noon, day, naive, None])
    assert found[0] == datetime.datetime(2024, 7, 1, 10, tzinfo=UTC)
    assert found[0].tzinfo is UTC
    assert found[1:3] == [day, naive]
    assert found[3] is not None
    assert of.values([None])[0] is found[3]
    assert of.missing() == [None]
    assert ColumnType(CellKind.OTHER, "t").values([1, 2]) == [found[3]] * 2


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        (CellKind.WHOLE, "c"),
        (CellKind.DATE, "case when c between '0001-01-01' and '9999-12-31' then c end"),
        (CellKind.TIME, "case when c between '0001-01-01 00:00:00' and '9999-12-31 23:59:59.999999' then c end"),
        (CellKind.ZONED, "case when c between '0001-01-01 00:00:00+00' and '9999-12-31 23:59:59.999999+00' then c end"),
    ],
    ids=str,
)
def test_only_times_that_python_knows_are_asked_for(kind: CellKind, asked: str) -> None:
    assert ColumnType(kind, "t").selection("c") == asked


@pytest.mark.parametrize("kind", CellKind)
def test_what_tells_cells_apart_and_what_a_schema_holds(kind: CellKind) -> None:
    of = ColumnType(kind, "t", "encode({})")
    cell = {
        CellKind.TEXT: "encode(c)",
        CellKind.UUID: "encode(c)",
        CellKind.OTHER: "(case when c is null then null else true end)",
    }
    assert of.cell("c") == cell.get(kind, "c")
    held = kind in (CellKind.WHOLE, CellKind.REAL, CellKind.TRUTH, CellKind.TEXT)
    time = kind in (CellKind.DATE, CellKind.TIME, CellKind.ZONED)
    assert of.plain(dates=False).kind is (kind if held else CellKind.OTHER)
    assert of.plain(dates=True).kind is (kind if held or time else CellKind.OTHER)
    assert of.plain(dates=True).name == "t"


def test_times_of_more_places_are_refused() -> None:
    for kind, name in ((CellKind.OTHER, "blob"), (CellKind.TIME, "timestamp"), (CellKind.DATE, "time")):
        ColumnType(kind, name).require_served("t: column 'c'")
    for name in ("time_ns", "Interval"):
        with pytest.raises(dpf.InputError, match=f"^t: column 'c' has the type {name.upper()}, which cannot be read"):
            ColumnType(CellKind.OTHER, name).require_served("t: column 'c'")
