"""Tables in DuckDB databases and in Postgres have the releases of memory, and leave nothing but counts behind."""

from __future__ import annotations

import datetime
import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import polars as pl
import pytest
from queries.test_crosstab_expressions import study_of
from tables import database_studies as studies
from tables.database_studies import connection_of
from tables.postgres_cluster import Cluster
from tables.test_duckdb import EXAMPLES, SOME, frame_of

import dpframework as dpf
from dpframework.facts.errors import NotOpened
from dpframework.reports.report_headlines import About
from dpframework.tables.sql_connection import SqlConnection
from dpframework.tables.sql_engine import SqlEngine
from dpframework.tables.unread_database_table import DatabaseTable

duckdb = pytest.importorskip("duckdb", reason="the extra 'database' is not installed")
SECRET = "Smallpox-31"


@attrs.frozen
class Server:
    """A database that tests write, and how an engine reads it."""

    name: str
    engine: Callable[..., SqlEngine]
    cancel: Callable[[Any], Any]
    hurry: Callable[[Any], Any]
    write: Callable[[str, pl.DataFrame], None]
    execute: Callable[[str], Any]


def duckdb_server(folder: Path) -> Server:
    place = folder / "clinic.duckdb"

    def execute(statement: str, given: pl.DataFrame | None = None) -> None:
        with duckdb.connect(str(place)) as connection:
            if given is not None:
                connection.register("given", given.to_arrow())
            connection.execute(statement)

    def write(name: str, frame: pl.DataFrame) -> None:
        execute(f'create or replace table "{name}" as select * from given', frame)

    def engine(**given: Any) -> SqlEngine:
        return dpf.DuckDB(threads=1, database=place, **given)

    def cancel(connection: Any) -> None:
        connection._connection.interrupt()

    def hurry(connection: Any) -> None:
        connection._timeout = 0.1

    return Server("duckdb", engine, cancel, hurry, write, execute)


@pytest.fixture(params=["duckdb", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Server:
    if request.param == "duckdb":
        return duckdb_server(tmp_path)
    one: Cluster = request.getfixturevalue("postgres")
    one.empty()

    def engine(**given: Any) -> SqlEngine:
        return dpf.Postgres(one.reader(), **given)

    def cancel(connection: Any) -> None:
        one.owner.execute(f"select pg_cancel_backend({connection._connection.info.backend_pid})")

    def hurry(connection: Any) -> None:
        connection._timeout = 0.1
        connection._connection.execute("set statement_timeout = 100")  # until the transaction ends

    return Server("postgres", engine, cancel, hurry, one.write, one.owner.execute)


def left_behind(engine: SqlEngine) -> list[str]:
    """Return the temporary tables of the engine's connection, and what it keeps beside them."""
    own = {
        "duckdb": "select table_name from duckdb_tables() where temporary union select name from duckdb_variables()",
        "postgres": "select relname from pg_class where relnamespace = pg_my_temp_schema() and relkind = 'r'",
    }
    return sorted(str(row[0]) for row in connection_of(engine).rows(own[engine.name]))


def counts_of(schema: dpf.Schema, **given: Any) -> dpf.Study:
    study = dpf.Study(schema, epsilon=9, **given)
    for attribute in schema:
        study.add(attribute.name, dpf.miner("histogram", attribute=attribute.name, epsilon=1))
    return study


# Releases: those of memory.


@functools.cache
def case(name: str, folder: Path) -> tuple[studies.Case, Any]:
    one = studies.cases()[name]
    return one, studies.expected(one, folder)


@pytest.mark.parametrize("name", studies.NAMES)
def test_units_samples_periods_and_views_have_the_releases_of_memory(
    name: str, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one, expected = case(name, tmp_path_factory.getbasetemp())
    engine = server.engine()
    assert studies.found(one, engine, server.write, "t") == expected
    assert left_behind(engine) == []
    engine.close()


@pytest.mark.parametrize("names", [SOME[:3], tuple(EXAMPLES)], ids=["some", "all"])
def test_every_miner_of_additive_queries_has_the_releases_of_memory(
    names: tuple[str, ...], server: Server, tmp_path: Path
) -> None:
    for name in names:
        example = EXAMPLES[name]
        study, frame = study_of(example), frame_of(example.schema, example.schema.rows or example.schema.max_rows or 60)
        frame.write_parquet(tmp_path / "t.parquet")
        server.write("t", frame)
        expected = study.run(dpf.read_table(tmp_path / "t.parquet", example.schema), seed=3)
        engine = server.engine()
        found = study.run(DatabaseTable("t", example.schema), seed=3, engine=engine)
        assert studies.releases(found) == studies.releases(expected), name
        engine.close()


LABELS = ["a", "A", "\u00e1", "a\u0301", "1", "1000", "Yes", "0.5", "2026-01-02"]
MOMENT = datetime.datetime(2026, 1, 1, 22, 30, tzinfo=datetime.UTC)
#: Columns of types that databases have: each cell as SQL, and as other tables hold it.
MADE: dict[str, tuple[str, dict[str, Any]]] = {
    "a collation": ("text collate nocase", {"'a'": "a", "'A'": "A", "'á'": "á", "' a'": " a", "null": None}),
    "decimals": ("numeric(20, 2)", {"0.5": "0.50", "1000": "1000.00", "0.3": "0.30", "null": None}),
    "dates": ("date", {"'2026-01-02'": datetime.date(2026, 1, 2), "null": None}),
    "zoned times": ("timestamptz", {"'2026-01-02 00:30:00+02'": MOMENT, "'infinity'": "never", "null": None}),
    "short reals": ("real", {"0.1": np.float32(0.1).item(), "0.3": np.float32(0.3).item(), "'NaN'": None}),
    "reals": ("double precision", {"0.1": 0.1, "-0.0": -0.0, "1e300": 1e300, "0.3": 0.3, "'NaN'": None}),
    "whole numbers": ("bigint", {"1": 1, "9007199254740993": 9007199254740993, "0": 0, "null": None}),
    "truths": ("boolean", {"true": True, "false": False, "null": None}),
}
COLUMNS = dpf.Schema(
    [
        dpf.Categorical("label", LABELS, missing=True),
        dpf.Numeric("number", -10, 5000, cuts=[0, 0.1, 0.3, 1, 28], missing=True),
        dpf.Boolean("truth", missing=True),
        dpf.Numeric("day", 0, 30_000, bins=9, missing=True),
    ],
    read={"columns": {"day": {"date": ["iso"], "date_unit": "days", "null": ["1000"]}}},
)


@pytest.mark.parametrize("made", MADE)
def test_cells_of_a_database_are_read_as_those_of_other_tables(made: str, server: Server) -> None:
    """Of a table and of a view, as labels, numbers, truths and dates."""
    kind, cells = MADE[made]
    listed = ", ".join(f"{name} {kind}" for name in COLUMNS.names)
    rows = ", ".join(f"({', '.join([cell] * len(COLUMNS))})" for cell in cells)
    for statement in (
        f"create table odd ({listed})",
        f"insert into odd values {rows}",
        "create view shown as (table odd)",
    ):
        server.execute(statement)
    if server.name == "postgres":
        server.execute("grant select on odd, shown to reader")
    expected = dpf.table_from_columns({name: list(cells.values()) for name in COLUMNS.names}, COLUMNS)
    for table in ("odd", "shown"):
        engine = server.engine()
        opened = engine.open(DatabaseTable(table, COLUMNS, ordered=table == "odd"))
        order = "place" if table == "odd" else "c0, c1, c2, c3"
        found = connection_of(engine).columns(f"select * from {opened.table.name} order by {order}")
        codes = list(zip(*(np.ma.filled(found[f"c{k}"], 99).tolist() for k in range(4)), strict=True))
        right = list(zip(*(column.tolist() for column in expected.columns), strict=True))
        assert codes == (right if table == "odd" else sorted(right))
        if table == "odd":
            for k, name in ((1, "number"), (3, "day")):
                values = np.ma.filled(found[f"v{k}"].astype(float), np.nan)
                assert np.array_equal(values, expected.values[name], equal_nan=True)
        engine.close()


# The owner's side: rights, errors, tables that are left.


def test_a_view_that_finds_other_rows_each_time_is_asked_once(server: Server) -> None:
    """Else a person could have more rows than the bound, or other rows than were chosen."""
    server.write("t", studies.frame())
    server.execute("create view shuffled as (select *, random() as drawn from t)")
    if server.name == "postgres":
        server.execute("grant select on shuffled to reader")
    study = counts_of(studies.SCHEMA, unit="person", rows_per_unit=1)
    engine = server.engine()
    with pytest.raises(NotOpened, match="shuffled: its rows have no order, which samples and the choice"):
        study.run(DatabaseTable("shuffled", study.schema, unit=study.unit), seed=0, engine=engine)
    opened = engine.open(DatabaseTable("shuffled", study.schema, unit=study.unit, order="drawn"))
    people = dpf.table_from_frame(studies.frame(), study.schema, unit=study.unit).rows
    assert engine.number(opened) == people
    assert sum('from "shuffled"' in one and "limit 0" not in one for one in engine.statements) == 1
    engine.drop(opened)
    with pytest.raises(dpf.InputError, match="t: column 'ill' does not order the rows, since values are equal or miss"):
        engine.open(DatabaseTable("t", study.schema, unit=study.unit, order="ill"))
    assert left_behind(engine) == []
    engine.close()


def test_a_table_that_is_not_there_or_not_the_owners_is_not_opened(server: Server) -> None:
    server.write("t", pl.DataFrame({"ill": [True]}))
    schema, engine = dpf.Schema([dpf.Boolean("ill")]), server.engine()
    with pytest.raises(NotOpened, match="none: the database has no such table or view, or this connection may not"):
        engine.open(DatabaseTable("none", schema))
    with pytest.raises(dpf.InputError, match="t: has no column 'sick'; correct the names in the schema or in the"):
        engine.open(DatabaseTable("t", dpf.Schema([dpf.Boolean("sick")])))
    for name in ("dpf_codes_0", "pg_catalog.pg_stats", "information_schema.tables", "main.", "duckdb_settings"):
        with pytest.raises(dpf.InputError, match="a table or view of the owner is expected"):
            DatabaseTable(name, schema)
    asks = dpf.Schema(schema.attributes, read={"query": "select * from t"})
    assert engine.number(engine.open(DatabaseTable("select * from t", asks, query=True, ordered=False))) == 1
    assert left_behind(engine) != []
    engine.close()


def test_a_query_needs_the_assumption_of_one_in_python_too(server: Server) -> None:
    server.write("t", pl.DataFrame({"ill": [True, False]}))
    schema, query, engine = dpf.Schema([dpf.Boolean("ill")]), "select * from t", server.engine()
    asks = dpf.Schema(schema.attributes, read={"query": f"{query};"})
    for other in (schema, dpf.Schema(schema.attributes, read={"query": "select * from u"})):
        told = "the schema must hold the same query, and only one query can be given"
        with pytest.raises(dpf.InputError, match=told):
            DatabaseTable(query, other, query=True)
    with pytest.raises(
        dpf.InputError, match=r"the schema's \[read\] has a query; give it as the table, with query=True"
    ):
        DatabaseTable("t", asks)
    with pytest.raises(dpf.InputError, match=r"the schema's \[read\] names the table 'u', not 't'"):
        DatabaseTable("t", dpf.Schema(schema.attributes, read={"table": "u"}))
    table = DatabaseTable(query, asks, query=True)
    with pytest.raises(dpf.PlanRefused, match="the study assumes 'rows-from-query'"):
        counts_of(asks).run(table, seed=0, engine=engine)
    allowed = counts_of(asks, allow=["rows-from-query"])
    assert [str(result) for result in allowed.run(table, seed=0, engine=engine).values()] == [
        str(result) for result in counts_of(schema).run(DatabaseTable("t", schema), seed=0, engine=engine).values()
    ]
    with pytest.raises(NotOpened, match="this plan was made from another schema"):
        counts_of(schema).run(table, seed=0, engine=engine)
    engine.close()


def test_what_fails_leaves_no_table_and_quotes_no_cell(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each statement in turn, of reading and of drawing a sample; afterwards the engine serves the next run."""
    server.write("t", studies.frame())
    study = dpf.Study(studies.SCHEMA, epsilon=9, unit="person", rows_per_unit=2)
    one = dpf.step("one", dpf.queries.Histogram(studies.SCHEMA["age"]), dpf.mechanisms.Laplace(1))
    study.add_plan("half", dpf.sample("1/2", one, name="half"))
    table, engine = DatabaseTable("t", study.schema, unit=study.unit, key=studies.KEY), server.engine()
    expected = study.run(table, seed=0, engine=engine).to_dict()["steps"]
    told, rolled, left = SqlConnection._run_remembered, [], list[int]()

    def counting(self: SqlConnection, statement: str, action: Any) -> Any:
        if not rolled and "rollback" not in statement and "drop table" not in statement:
            left[0] -= 1
            if left[0] == 0:
                rolled.append(statement)
                return told(self, statement, lambda: self._run(f"select cast('{SECRET}' as integer)"))
        return told(self, statement, action)

    monkeypatch.setattr(SqlConnection, "_run_remembered", counting)
    for number in range(1, 100, 3 if server.name == "duckdb" else 1):
        rolled.clear()
        left[:] = [number]
        try:
            found, problem = study.run(table, seed=0, engine=engine).to_dict()["steps"], None
        except dpf.InputError as error:
            problem = error
        if problem is None:
            break
        assert SECRET not in repr(problem)
        assert problem.__cause__ is None
        assert SECRET not in repr(problem.__context__)
        assert left_behind(engine) == [], rolled
    assert found == expected
    assert number > 30
    engine.close()


ENDLESS = "select count(*) from generate_series(1, 1000000) a(x), generate_series(1, 1000000) b(y) where x * y % 7 = 3"


@pytest.mark.parametrize("how", ["query timed out", "query cancelled"])
def test_a_query_that_is_ended_is_an_event_of_the_ledger(
    how: str, server: Server, ledger: dpf.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the table is read, and while a release is made. The run tells how, and nothing else."""
    server.write("t", studies.frame())
    late = how == "query timed out"
    engine, study = server.engine(timeout=600), counts_of(studies.SCHEMA)
    plan = study.plan(engine)
    ledger.open("clinic", epsilon=100)
    ledger.approve("clinic", plan, by="b", runs=2)
    told = SqlConnection._run_remembered
    for where, end in (("create temp table dpf_codes", f"refused: {how}"), ("grouping sets", f"stopped: {how}")):

        def replaced(self: SqlConnection, statement: str, action: Any, where: str = where) -> Any:
            if where not in statement:
                return told(self, statement, action)
            if late:
                server.hurry(self)
            else:
                threading.Timer(0.1, server.cancel, [self]).start()
            return told(self, statement, lambda: self._rows(ENDLESS))

        monkeypatch.setattr(SqlConnection, "_run_remembered", replaced)
        run = ledger.run("clinic")
        with pytest.raises(dpf.InputError) as caught:
            study.run(DatabaseTable("t", study.schema), engine=engine, ledger=run)
        monkeypatch.setattr(SqlConnection, "_run_remembered", told)
        connection_of(engine)._timeout = 600
        ended = "which took longer than the engine's timeout" if late else "which was cancelled"
        assert ended in str(caught.value) or how in str(caught.value)
        assert caught.value.__context__ is None
        assert ledger.data_set("clinic").runs[run.id].end == end
        assert left_behind(engine) == []
    ledger.verify()
    engine.close()


def test_a_run_says_who_counted_and_what_was_asked(server: Server, tmp_path: Path) -> None:
    """In its results and its report. What was asked follows from plan and releases, and not from the rows."""
    study, found = counts_of(studies.SCHEMA, unit="person", rows_per_unit=2), []
    few = studies.frame(1).head(30)
    for rows in (studies.frame(), few, few.with_columns(ward=pl.Series([f"w{k}" for k in range(30)]))):
        server.write("t", rows)
        engine = server.engine()
        results = study.run(DatabaseTable("t", study.schema, unit=study.unit), seed=0, engine=engine)
        found.append(results.counting_summary)
        report = dpf.reports.markdown_report(results.plan, dpf.reports.RunSummary.of(results), about=About.of(results))
        assert engine.address in report
        assert results.counting_summary in report
        engine.close()
    assert len(set(found)) == 1
    assert found[0].startswith({"duckdb": "DuckDB ", "postgres": "PostgreSQL "}[server.name])
    assert found[0].endswith("queries that counted: 3; cross tables: 3")
    results.save(tmp_path / "out")
    assert dpf.Results.load(tmp_path / "out").counting_summary == found[1]


def test_the_column_that_joins_two_views_may_be_an_attribute_that_is_read_as_it_is() -> None:
    attributes = [dpf.Categorical("id", ["a", "b"], view="left"), dpf.Boolean("ill", view="right")]
    plain, told = (dpf.Schema(attributes, read=read) for read in ({}, {"columns": {"id": {"null": ["b"]}}}))
    assert DatabaseTable(("l", "r"), plain, id="id").id == "id"
    with pytest.raises(dpf.InputError, match=r"'id' joins the views and is an attribute, so \[read\] must have"):
        DatabaseTable(("l", "r"), told, id="id")
    with pytest.raises(TypeError, match="positional"):  # what is not the table or its schema is named
        DatabaseTable(("l", "r"), plain, "id")  # type: ignore[misc]
