"""Postgres counts what memory counts, of cells as the reader reads them, and its logs tell nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from tables import database_studies as studies
from tables.database_studies import connection_of
from tables.postgres_cluster import Cluster

import dpframework as dpf
from dpframework.facts.errors import NotOpened
from dpframework.tables.postgres_connection import PostgresConnection
from dpframework.tables.postgres_engine import Postgres
from dpframework.tables.unread_table_files import TableFiles
from dpframework.verify import EngineConformance


@pytest.fixture(scope="module", autouse=True)
def server(postgres: Cluster) -> Cluster:
    postgres.empty()
    TestPostgres.server = postgres
    return postgres


class TestPostgres(EngineConformance):
    server: ClassVar[Cluster]

    @classmethod
    def build_engine(cls) -> dpf.Engine:
        return Postgres(cls.server.reader())

    @classmethod
    def source(cls, files: TableFiles) -> Any:
        return in_database(cls.server, files)


def in_database(server: Cluster, files: TableFiles) -> dpf.DatabaseTable:
    """Copy the rows of some files into a table of the name of their folder."""
    name = Path(files.path[0]).name
    if Path(files.path[0]).exists():
        server.write(name, pl.concat([pl.read_parquet(place) for place in files.files()]))
    given = {key: getattr(files, key) for key in ("out_of_domain", "unit", "key", "values")}
    return dpf.DatabaseTable(name, files.schema, **given)


# The owner's side.

ILL = dpf.Schema([dpf.Boolean("ill")])
#: A right too many: how it is given and taken, and what the refusal says of it.
RIGHTS = {
    "superuser": ("alter role reader superuser", "alter role reader nosuperuser", "is a superuser"),
    "roles": ("alter role reader createrole", "alter role reader nocreaterole", "may create roles or databases"),
    "row security": ("alter role reader bypassrls", "alter role reader nobypassrls", "bypass row security"),
    "files": ("grant pg_read_server_files to reader", "revoke pg_read_server_files from reader", "the server's files"),
    "schemas": ("grant create on database clinic to reader", "revoke create on database clinic from reader", "schemas"),
    "tables": (
        "grant create on schema public to public",
        "revoke create on schema public from public",
        "create tables",
    ),
    "rows": ("grant delete on t to reader", "revoke delete on t from reader", "may change a table"),
    "cells": ("grant update (ill) on t to reader", "revoke update (ill) on t from reader", "may change a table"),
    "a role that it can take on": (
        "create role writer; grant insert on t to writer; alter role reader noinherit; grant writer to reader",
        "alter role reader inherit; drop owned by writer; drop role writer",
        "may change a table",
    ),
}


@pytest.mark.parametrize("right", RIGHTS)
def test_a_connection_with_more_rights_than_to_read_is_refused(right: str, server: Cluster) -> None:
    server.write("t", pl.DataFrame({"ill": [True]}))
    give, take, says = RIGHTS[right]
    server.owner.execute(give)
    try:
        with pytest.raises(NotOpened, match=f"the connection's role .*{says}.*may select from the study's tables"):
            Postgres(server.reader()).open(dpf.DatabaseTable("t", ILL))
    finally:
        server.owner.execute(take)


def test_a_role_that_may_read_and_make_temporary_tables_can_do_nothing_else(server: Cluster) -> None:
    server.write("t", pl.DataFrame({"ill": [True]}))
    connection = PostgresConnection(server.reader(), "x")
    for statement in ("delete from t", "create table u (x int)", "create schema v", "drop table t"):
        with pytest.raises(dpf.InputError, match=r"PostgreSQL cannot read or count this table \(Insufficient"):
            connection.run(statement)
    connection.close()
    server.owner.execute("revoke temporary on database clinic from public")
    try:
        with pytest.raises(NotOpened, match="grant it TEMPORARY on the database"):
            PostgresConnection(server.reader(), "x")
    finally:
        server.owner.execute("grant temporary on database clinic to public")


def test_the_servers_log_tells_no_cell_and_no_label(server: Cluster) -> None:
    """The server logs every statement."""
    rows = studies.frame().with_columns(ward=pl.lit("Smallpox-31"), person="Jane-" + pl.col("person"))
    server.write("t", rows)
    schema = dpf.Schema([dpf.Categorical("ward", ["Smallpox-31", "y"]), dpf.Numeric("age", 0, 100, bins=5)])
    study = dpf.Study(schema, epsilon=9, unit="person", rows_per_unit=2)
    study.add("wards", dpf.miner("crosstab", attributes=["ward", "age"], epsilon=1))
    study.add("mean", dpf.miner("mean", attribute="age", epsilon=1))
    before = len(server.log())
    engine = Postgres(server.reader())
    study.run(dpf.DatabaseTable("t", schema, unit=study.unit), engine=engine)
    engine.close()
    log = server.log()[before:]
    assert "grouping sets" in log
    assert "create temp table dpf_" in log
    assert "Smallpox" not in log
    assert "Jane" not in log


def test_a_connection_says_where_it_goes_and_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    given = "host=db.clinic.org dbname=clinic user=reader"
    with pytest.raises(dpf.InputError, match="to another machine must check who answers; write sslmode=verify-full"):
        _ = Postgres(given).address
    monkeypatch.setenv("PGHOST", "db.clinic.org")
    with pytest.raises(dpf.InputError, match="to another machine must check who answers"):
        Postgres("dbname=clinic").open(dpf.DatabaseTable("t", ILL))
    with pytest.raises(dpf.InputError, match="a service hides which database is used"):
        _ = Postgres("service=x").address
    with pytest.raises(dpf.InputError, match="connection must be in libpq's notation"):
        _ = Postgres("password=s3cret x").address
    shown = Postgres(f"{given} password=s3cret sslmode=verify-full").address
    assert shown.startswith("PostgreSQL at db.clinic.org:5432, database clinic as reader, by psycopg 3.")
    assert "s3cret" not in Postgres(f"{given} password=s3cret", trust_network=True).address
    with pytest.raises(NotOpened, match=r"engine 'postgres': cannot connect \(OperationalError\); nothing was read"):
        Postgres("host=/nowhere password=s3cret").open(dpf.DatabaseTable("t", ILL))


def test_a_connection_that_is_lost_ends_the_run_and_the_next_one_connects_anew(server: Cluster) -> None:
    server.write("t", pl.DataFrame({"ill": [True, False]}))
    engine = Postgres(server.reader())
    rows = engine.open(dpf.DatabaseTable("t", ILL))
    pid = connection_of(engine)._connection.info.backend_pid
    server.owner.execute(f"select pg_terminate_backend({pid}, 5000)")
    with pytest.raises(dpf.InputError, match="PostgreSQL"):
        engine.number(rows)
    engine.drop(rows)
    assert engine.number(engine.open(dpf.DatabaseTable("t", ILL))) == 2
    engine.close()
