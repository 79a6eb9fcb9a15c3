"""A connection to PostgreSQL that may only read and make temporary tables. Its errors reveal nothing of the rows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError, NotOpened
from dpframework.tables.sql_cell_conversion import CellKind, ColumnType
from dpframework.tables.sql_connection import CANCELLED, TIMED_OUT, SqlConnection

_SETTINGS = (
    "set default_transaction_read_only = off",  # temporary tables need this; the role's rights are checked instead
    "set timezone = 'UTC'",
    "set datestyle = 'ISO'",
    "set extra_float_digits = 1",  # a float is written so that it reads back as the same float
    "set bytea_output = 'hex'",
    'set search_path = "$user", public',
    "set client_min_messages = error",
)
_KINDS = {
    **dict.fromkeys(("int2", "int4", "int8"), CellKind.WHOLE),
    **dict.fromkeys(("float4", "float8"), CellKind.REAL),
    **dict.fromkeys(("text", "varchar", "bpchar", "numeric", "citext", "name"), CellKind.TEXT),
    "bool": CellKind.TRUTH,
    "bytea": CellKind.BYTES,
    "uuid": CellKind.UUID,
    "date": CellKind.DATE,
    "timestamp": CellKind.TIME,
    "timestamptz": CellKind.ZONED,
}
#: PostgreSQL's own roles whose members can do more than read tables.
_ROLES = ("pg_write_all_data", "pg_write_server_files", "pg_execute_server_program", "pg_read_server_files")
#: The test whether a schema is not one of PostgreSQL's own.
_OWNER_SCHEMA = "n.nspname !~ '^pg_' and n.nspname <> 'information_schema'"
_ROLE = "pg_has_role(session_user, r.oid, 'member')"  # the connection's own role, and those that it may assume
#: Rights beyond reading: the words for each right in an error, and the query that tells whether the role has it.
_RIGHTS = {
    "is a superuser": f"select bool_or(r.rolsuper) from pg_roles r where {_ROLE}",
    "may create roles or databases, or bypass row security": (
        f"select bool_or(r.rolcreaterole or r.rolcreatedb or r.rolreplication or r.rolbypassrls) from pg_roles r "
        f"where {_ROLE}"
    ),
    "may write all tables, or use the server's files": (
        f"select bool_or(pg_has_role(r.oid, w.oid, 'MEMBER')) from pg_roles r, pg_roles w where {_ROLE} and "
        f"w.rolname in ({', '.join(map(repr, _ROLES))})"
    ),
    "may create schemas in the database": (
        f"select bool_or(has_database_privilege(r.oid, current_database(), 'CREATE')) from pg_roles r where {_ROLE}"
    ),
    "may create tables in a schema": (
        f"select bool_or(has_schema_privilege(r.oid, n.oid, 'CREATE')) from pg_roles r, pg_namespace n where {_ROLE} "
        f"and {_OWNER_SCHEMA}"
    ),
    "may change a table": (
        f"select bool_or(has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER') or "
        f"has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE')) from pg_roles r, pg_class c join pg_namespace n on "
        f"n.oid = c.relnamespace where {_ROLE} and {_OWNER_SCHEMA} and c.relkind in ('r', 'p', 'v', 'm', 'f')"
    ),
}
_TEMPORARY = "select has_database_privilege(current_database(), 'TEMPORARY')"
_ENCODING = "select current_setting('server_encoding') = 'UTF8' and current_setting('client_encoding') = 'UTF8'"


def postgres_module() -> Any:
    """Return the module psycopg.

    Raises
    ------
    InputError
        If the module is not installed.
    """
    try:
        import psycopg
    except ImportError:
        raise InputError(
            "engine 'postgres' needs the package psycopg; install it with: pip install 'dpframework[postgres]'"
        ) from None
    return psycopg


@final
class PostgresConnection(SqlConnection):
    """A connection whose role may only read and create temporary tables.

    Parameters
    ----------
    connection
        How to connect, in libpq's notation.
    shown
        The name of the connection in errors, without a password.
    timeout
        The number of seconds after which a query is ended. None for no limit.

    Raises
    ------
    InputError
        If psycopg is not installed.
    NotOpened
        If the connection fails, the role has other rights or may create no temporary tables, or the encoding is not
        UTF8.
    """

    product = "PostgreSQL"
    begins = "begin isolation level repeatable read"
    whole = {1: "smallint", 2: "integer", 4: "bigint", 8: "bigint"}  # noqa: RUF012 it is never changed

    nan = "({} = cast('NaN' as double precision))"

    def __init__(self, connection: str, shown: str, timeout: float | None = None) -> None:
        super().__init__()
        self._psycopg, self._shown, self._timeout = postgres_module(), shown, timeout
        self._enums: frozenset[int] = frozenset()
        self._names_of_types: dict[int, str] = {}
        try:
            self._connection = self._psycopg.connect(connection, autocommit=True, client_encoding="UTF8")
        except self._psycopg.Error as error:
            kind = type(error).__name__
        else:
            kind = ""
        if kind:
            raise NotOpened(
                f"{shown}: cannot connect ({kind}); nothing was read; check `connection`, and that the server runs"
            )
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        limit = [] if self._timeout is None else [f"set statement_timeout = {max(1, int(self._timeout * 1000))}"]
        for setting in (*_SETTINGS, *limit):
            self.run(setting)
        for may, asked in _RIGHTS.items():
            ((found,),) = self.rows(asked)
            if found:
                raise NotOpened(
                    f"{self._shown}: the connection's role {may}; give one that may select from the study's tables, "
                    "and nothing else"
                )
        ((temporary,),) = self.rows(_TEMPORARY)
        if not temporary:
            raise NotOpened(
                f"{self._shown}: the connection's role may create no temporary tables, which hold the codes; grant it "
                "TEMPORARY on the database"
            )
        ((unicode,),) = self.rows(_ENCODING)
        if not unicode:
            raise NotOpened(
                f"{self._shown}: the database's encoding is not UTF8, so that texts cannot be read exactly; use a "
                "database in UTF8"
            )
        found = self.rows("select oid, typname, typtype from pg_type")
        self._names_of_types = {oid: str(name) for oid, name, _ in found}
        self._enums = frozenset(oid for oid, _, kind in found if kind in ("e", b"e"))

    @property
    def version(self) -> str:
        """See `SqlConnection`."""
        number = self._connection.info.server_version
        return f"PostgreSQL {number // 10000}.{number % 10000}"

    @property
    def alive(self) -> bool:
        """See `SqlConnection`."""
        return not self._connection.closed

    def close(self) -> None:
        """End the connection, and with it drop its temporary tables."""
        self._connection.close()

    @property
    def _errors(self) -> type[Exception]:
        kind: type[Exception] = self._psycopg.Error
        return kind

    def _why_stopped(self, error: Exception) -> str | None:
        errors = self._psycopg.errors
        if isinstance(error, errors.AdminShutdown | errors.CrashShutdown | errors.IdleInTransactionSessionTimeout):
            return CANCELLED
        if not isinstance(error, errors.QueryCanceled):
            return None
        late = self._timeout is not None and time.monotonic() - self._began >= 0.98 * self._timeout
        return TIMED_OUT if late else CANCELLED

    def _execute(self, statement: str) -> Any:
        self._began = time.monotonic()
        return self._connection.execute(statement)

    def _run(self, statement: str) -> None:
        self._execute(statement)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return list(self._execute(query).fetchall())

    def _columns(self, query: str) -> Mapping[str, Any]:
        cursor = self._execute(query)
        # Rows of numbers and nulls become masked arrays by column.
        found, rows = {}, cursor.fetchall()
        for k, one in enumerate(cursor.description):
            cells = [row[k] for row in rows]
            mask = np.array([cell is None for cell in cells], dtype=np.bool_)
            kind = np.float64 if any(isinstance(cell, float) for cell in cells) else np.int64
            found[one.name] = np.ma.MaskedArray(np.array([cell or 0 for cell in cells], dtype=kind), mask)
        return found

    def _names(self, query: str) -> list[str]:
        return [str(one.name) for one in self._execute(query).description]

    def _types(self, query: str) -> list[ColumnType]:
        described = self._execute(f"select * from ({query}) as t limit 0").description
        types = []
        for oid in (one.type_code for one in described):
            name = self._names_of_types.get(oid, "unknown")
            kind = CellKind.TEXT if oid in self._enums else _KINDS.get(name, CellKind.OTHER)
            # Another collation might take two different texts as equal.
            types.append(ColumnType(kind, name, '(cast({} as text) collate "C")', short=name == "float4"))
        return types

    def _upload(self, name: str, columns: Mapping[str, NDArray[Any]], types: Mapping[str, str]) -> None:
        """Upload numbers by COPY, so that they appear in no log of statements."""
        import polars as pl

        listed = ", ".join(f"{key} {types[key]}" for key in columns)
        self._execute(f"create temp table {name} ({listed})")
        frame = pl.DataFrame({key: pl.Series(np.asarray(one)) for key, one in columns.items()})
        frame = frame.with_columns(pl.col(pl.Float64).fill_nan(None))
        text = frame.write_csv(include_header=False, null_value="\\N", separator="\t")
        with self._connection.cursor().copy(f"copy {name} from stdin") as copy:
            copy.write(text)
        self._execute(f"analyze {name}")
