"""A table is `NotOpened` only while no row can have been looked at: a ledger records every other failure."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import dpframework as dpf
from dpframework.facts.errors import NotOpened
from dpframework.tables.sources import open_source

SCHEMA = dpf.Schema([dpf.Numeric("a", 0, 10, bins=2)])
#: The absolute value of the smallest number is an error of SQLite, and here Bob's row alone asks for it.
BOBS = "abs(-9223372036854775807 - (name = 'Bob'))"


def kind_of_failure(read: Any) -> type[BaseException]:
    with pytest.raises(dpf.InputError) as failed:
        read()
    return type(failed.value)


def test_what_lacks_before_any_file_is_looked_at_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "b.txt").write_text("a\n1\n")
    for places in (["none.csv", "a.csv"], ["a.csv", "none.csv"], ["b.txt", "a.csv"]):
        asked = [str(tmp_path / place) for place in places]
        assert kind_of_failure(lambda asked=asked: dpf.read_table(asked, SCHEMA)) is NotOpened


def test_a_file_that_is_opened_after_another_one_is_no_free_question_about_that_one(tmp_path: Path) -> None:
    """A workbook is read whole when it is opened, and refused there for its rows, as with `skip` for their number."""
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "b.txt").write_text("a\n1\n")
    both = [tmp_path / "a.csv", tmp_path / "b.txt"]
    assert kind_of_failure(lambda: dpf.read_table(both, SCHEMA)) is dpf.InputError
    views = dpf.Schema([dpf.Numeric("a", 0, 10, bins=2, view="left"), dpf.Boolean("b", view="right")])
    assert kind_of_failure(lambda: dpf.read_two_views(*both, views)) is dpf.InputError


def test_a_csv_file_that_is_gone_when_its_rows_are_read_is_no_free_question(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    source = open_source(path)
    os.unlink(path)
    assert kind_of_failure(lambda: list(source.blocks(["a"]))) is dpf.InputError
    assert kind_of_failure(lambda: open_source(path)) is NotOpened


@pytest.mark.parametrize("bob", [True, False])
def test_a_query_that_fails_on_a_row_is_recorded_even_where_it_is_asked_for_its_columns_only(
    bob: bool, tmp_path: Path
) -> None:
    """SQLite evaluates a materialized table before it sees that no row is asked for. Then Bob's row is the failure."""
    path = tmp_path / "t.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("create table people (name text)")
    connection.executemany("insert into people values (?)", [("Al",), *([("Bob",)] if bob else [])])
    connection.commit()
    connection.close()
    query = f"with t as materialized (select {BOBS} as a from people limit 9) select x.a from t x join t y on x.a = y.a"
    schema = dpf.Schema(SCHEMA.attributes, read={"query": query})
    if not bob:
        dpf.read_table(path, schema)
        return
    assert kind_of_failure(lambda: dpf.read_table(path, schema)) is dpf.InputError


@pytest.mark.parametrize("ordered", [True, False])
def test_a_query_whose_columns_follow_from_rows_is_no_free_question(ordered: bool, tmp_path: Path) -> None:
    """The columns of a pivot are cells. What lacks whatever the rows are is said before the query is asked."""
    duckdb = pytest.importorskip("duckdb")
    query = "pivot people on name using count(*)"
    schema = dpf.Schema([dpf.Numeric("Bob", 0, 10, bins=2)], read={"query": query})
    found = []
    for names in (["Bob", "Al"], ["Al"]):
        path = str(tmp_path / f"{len(names)}.duckdb")
        with duckdb.connect(path) as connection:
            connection.execute("create table people (name text, place int)")
            connection.executemany("insert into people values (?, 1)", [(name,) for name in names])
        given = dpf.DatabaseTable(query, schema, query=True, order="place" if ordered else None)
        with contextlib.closing(dpf.DuckDB(database=path)) as engine:
            try:
                engine.open(given)
            except dpf.InputError as error:
                found.append(type(error))
            else:
                found.append(None)
    assert found == ([None, dpf.InputError] if ordered else [NotOpened, NotOpened])


def test_a_query_that_a_database_refuses_is_no_free_question(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = str(tmp_path / "t.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("create table people (name text, a int)")
    query = "select none from people"
    schema = dpf.Schema(SCHEMA.attributes, read={"query": query})
    with contextlib.closing(dpf.DuckDB(database=path)) as engine:
        given = dpf.DatabaseTable(query, schema, query=True, order="a")
        assert kind_of_failure(lambda: engine.open(given)) is dpf.InputError
        assert kind_of_failure(lambda: engine.open(dpf.DatabaseTable("none", SCHEMA))) is NotOpened
