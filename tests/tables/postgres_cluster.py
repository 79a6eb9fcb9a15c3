"""A Postgres server of the tests' own, in a folder that goes, started as a user that is not root."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

TYPES = {
    pl.Boolean: "boolean",
    pl.String: "text",
    pl.Float64: "double precision",
    pl.Float32: "real",
    pl.Int64: "bigint",
    pl.Int16: "smallint",
    pl.UInt32: "bigint",
    pl.Date: "date",
    pl.Datetime: "timestamp",
    pl.Null: "text",
}


def programs() -> Path | None:
    """Return the folder of the server's programs, None where it is not installed."""
    found = shutil.which("initdb")
    folders = [os.path.dirname(found)] if found else sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    return Path(folders[-1]) if folders and Path(folders[-1], "postgres").exists() else None


class Cluster:
    """A running server: its owner's connection, and how a reader connects."""

    def __init__(self, folder: Path, owner: Any) -> None:
        self.folder, self.owner = folder, owner

    def empty(self) -> None:
        """Leave nothing but a collation to which case makes no difference."""
        self.owner.execute("drop schema public cascade; create schema public; grant usage on schema public to reader")
        self.owner.execute(
            "create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )

    def reader(self, more: str = "") -> str:
        return f"host={self.folder} dbname=clinic user=reader {more}"

    def write(self, name: str, frame: pl.DataFrame, types: dict[str, str] | None = None) -> None:
        """Make a table of a frame's rows, which the reader may read."""
        quoted = '"' + name.replace('"', '""') + '"'
        kinds = {key: (types or {}).get(key) or TYPES[kind.base_type()] for key, kind in frame.schema.items()}
        listed = ", ".join(f'"{key}" {kind}' for key, kind in kinds.items())
        self.owner.execute(f"drop table if exists {quoted}")
        self.owner.execute(f"create table {quoted} ({listed})")
        text = frame.write_csv(include_header=False, quote_style="non_numeric", null_value="~")
        with self.owner.cursor().copy(f"copy {quoted} from stdin (format csv, null '~')") as copy:
            copy.write(text)
        self.owner.execute(f"grant select on {quoted} to reader")

    def log(self) -> str:
        return (self.folder / "log").read_text()


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """Start a server, or skip the test where there is none."""
    psycopg = pytest.importorskip("psycopg", reason="the extra 'postgres' is not installed")
    at = programs()
    if at is None:
        pytest.skip("Postgres is not installed")
    user = None if os.getuid() else "postgres"
    if user is not None:
        try:
            pwd.getpwnam(user)
        except KeyError:
            pytest.skip("Postgres does not run as root, and there is no user 'postgres'")
    folder = Path(tempfile.mkdtemp(prefix="dpf-postgres-"))
    if user is not None:
        shutil.chown(folder, user)
    folder.chmod(0o700 if user is None else 0o755)

    def run(*command: str) -> None:
        subprocess.run(command, user=user, cwd="/", check=True, capture_output=True, timeout=60)

    try:
        data = str(folder / "data")
        run(str(at / "initdb"), "-D", data, "-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        options = f"-F -k {folder} -c listen_addresses= -c jit=off -c shared_buffers=16MB -c log_statement=all"
        options += " -c max_parallel_workers_per_gather=0 -c autovacuum=off"
        run(str(at / "pg_ctl"), "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            with psycopg.connect(f"host={folder} dbname=postgres user=owner", autocommit=True) as first:
                first.execute("create database clinic")
                first.execute("create role reader login")
            with psycopg.connect(f"host={folder} dbname=clinic user=owner", autocommit=True) as owner:
                yield Cluster(folder, owner)
        finally:
            run(str(at / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
