"""Derived columns of a coded table in a database: each row's own, as in memory, with missing cells and without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import dpframework as dpf
from dpframework.tables.column_encoding import EncodedColumn
from dpframework.tables.database_derived_columns import (
    numbers_of,
    read_of,
    read_places,
    with_derived_columns,
    with_numbers,
)
from dpframework.tables.duckdb_connection import DuckDBConnection

pytest.importorskip("duckdb")
A, TOWN = dpf.Numeric("a", -3, 4, bins=7, missing=True), dpf.Categorical("town", ["x", "y"], missing=True)
DERIVED = [dpf.derive("twice", "a * 2"), dpf.derive("large", "twice > 2"), dpf.derive("both", "town == 'x' and large")]
SCHEMA = dpf.Schema([A, TOWN], derive=DERIVED)
CELL = st.none() | st.sampled_from([-3.0, -0.5, 1.5, 4.0])
ROWS = st.lists(st.tuples(CELL, st.sampled_from([None, "x", "y"])), min_size=1, max_size=9)
SHARED = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def connection() -> Iterator[DuckDBConnection]:
    found = DuckDBConnection(1)
    yield found
    found.close()


def in_memory(rows: list[Any]) -> dpf.Table:
    a, town = zip(*rows, strict=True)
    return dpf.table_from_columns({"a": list(a), "town": list(town)}, SCHEMA)


def uploaded(connection: DuckDBConnection, table: dpf.Table) -> str:
    """The codes and values of what a file holds, with the place of each row."""
    name = connection.new_name("codes")
    codes = {f"c{k}": table.columns[k].astype(np.int64) for k in range(2)}
    connection.upload(name, {**codes, "v0": table.values["a"], "place": np.arange(table.rows)})
    return name


@SHARED
@given(ROWS)
def test_derived_columns_are_those_in_memory(connection: DuckDBConnection, rows: list[Any]) -> None:
    table = in_memory(rows)
    name = with_derived_columns(connection, uploaded(connection, table), SCHEMA)
    found = connection.columns(f"select * from {name} order by place")
    for k, attribute in enumerate(SCHEMA.attributes):
        assert found[f"c{k}"].tolist() == table.columns[k].tolist(), attribute.name
    assert np.array_equal(np.ma.filled(found["v2"], np.nan), table.values["twice"], equal_nan=True)


@SHARED
@given(ROWS)
def test_each_distinct_combination_is_derived_once(connection: DuckDBConnection, rows: list[Any]) -> None:
    asked: list[tuple[Any, ...]] = []

    def make(found: Mapping[str, Any]) -> dict[str, Any]:
        values = np.ma.filled(np.ma.asarray(found["v0"]).astype(float), np.nan)
        asked.extend(zip(np.nan_to_num(values, nan=9).tolist(), found["c1"].tolist(), strict=True))
        return {"c9": np.arange(len(values))}

    table = in_memory(rows)
    name = with_numbers(connection, uploaded(connection, table), ["v0", "c1"], make, {"c9": "BIGINT"})
    assert len(asked) == len(set(asked)) == len({*zip(*(one.tolist() for one in table.columns[:2]), strict=True)})
    numbers = connection.columns(f"select c9 from {name} order by place")["c9"].tolist()
    own = list(zip(np.nan_to_num(table.values["a"], nan=9).tolist(), table.columns[1].tolist(), strict=True))
    assert [asked[k] for k in numbers] == own


def test_numbers_are_read_as_values_and_others_as_codes() -> None:
    assert read_places(SCHEMA, ["town", "a", "large"]) == ["c1", "v0", "c3"]
    found = read_of(SCHEMA, ["a", "town"], {"v0": np.ma.array([1.5, 0], mask=[False, True]), "c1": np.array([0, 2])})
    assert np.array_equal(found["a"], [1.5, np.nan], equal_nan=True)
    assert found["town"].tolist() == [0, -1]


def test_a_column_of_numbers_has_values_beside_its_codes() -> None:
    codes = np.array([1, 0], dtype=np.uint8)
    assert [*numbers_of(4, EncodedColumn(codes, None))] == ["c4"]
    found = numbers_of(4, EncodedColumn(codes, np.array([0.5, np.nan])))
    assert [*found] == ["c4", "v4"]
    assert found["c4"].dtype == np.int64
