"""Types of columns that hold ids: every container's numbers, texts, truths and bytes, and no dates or lists."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpframework.facts import InputError
from dpframework.tables.ids import ACCEPTED, require_type_of_ids

DAY = datetime.date(2026, 1, 2)
NUMBERS = [1, 2, 1]
UNION = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
SPANS = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array([DAY, DAY])])
IDS: dict[str, Any] = {
    "a list": [object(), DAY],  # has no type of its own
    "polars objects": pl.Series([object()], dtype=pl.Object),
    "numpy numbers": np.array(NUMBERS),
    "numpy texts": np.array(["a", "b"]),
    "numpy bytes": np.array([b"a", b"b"]),
    "numpy truths": np.array([True, False]),
    "numpy objects": np.array([Decimal(1), uuid.UUID(int=1)], dtype=object),
    "pandas texts": pd.Series(["a", "b"]),
    "pandas categories": pd.Series(["a", "b"], dtype="category"),
    "pandas sparse": pd.Series(pd.arrays.SparseArray([1, 0, 0])),
    "pandas of Arrow": pd.Series(NUMBERS, dtype=pd.ArrowDtype(pa.int64())),
    "narwhals": nw.from_native(pd.Series(NUMBERS), series_only=True),
    "Arrow decimals": pa.array([Decimal("1.5")]),
    "Arrow dictionary": pa.array(["a", "b"]).dictionary_encode(),
    "Arrow runs": pa.RunEndEncodedArray.from_arrays([2], pa.array(["a"])),
    "Arrow nulls": pa.nulls(2),
    "Arrow bytes": pa.array([b"a"]),
    "Arrow union of ids": UNION,
}
OTHERS: dict[str, Any] = {
    "numpy dates": np.array(["2026-01-02"], dtype="datetime64[D]"),
    "numpy spans": np.array([1], dtype="timedelta64[D]"),
    "numpy complex": np.array([1j]),
    "pandas dates": pd.Series(pd.to_datetime(["2026-01-02"])),
    "pandas categories of dates": pd.Series(pd.to_datetime(["2026-01-02"]), dtype="category"),
    "pandas intervals": pd.Series(pd.interval_range(0, 2)),
    "Arrow dates": pa.array([DAY]),
    "Arrow lists": pa.array([[1], [2]]),
    "Arrow dictionary of dates": pa.array([DAY]).dictionary_encode(),
    "Arrow union with dates": SPANS,
}


@pytest.mark.parametrize("name", IDS)
def test_a_column_of_ids_is_accepted_in_every_container(name: str) -> None:
    require_type_of_ids(IDS[name], "column 'id'")


@pytest.mark.parametrize("name", OTHERS)
def test_a_column_of_anything_else_is_refused_by_its_type(name: str) -> None:
    with pytest.raises(InputError, match=rf"^column 'id' has the type .*; {ACCEPTED}$"):
        require_type_of_ids(OTHERS[name], "column 'id'")
