"""Tables of a PostgreSQL database, which reads and counts them itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import final

from dpframework.facts.errors import InputError
from dpframework.tables.database_row_selection import RowChooser, SqlPiece
from dpframework.tables.postgres_connection import PostgresConnection, postgres_module
from dpframework.tables.sql_connection import identifier, text
from dpframework.tables.sql_engine import SqlEngine
from dpframework.tables.unread_database_table import DatabaseTable
from dpframework.tables.unread_table_files import TableFiles

_CHECKING_MODES = ("verify-ca", "verify-full")  # modes of libpq in which the server must show a certificate


@final
class Postgres(SqlEngine):
    """PostgreSQL, which keeps the rows' codes in a temporary table and counts them there.

    Rows stay in the database. This process gets counts, distinct ids, the distinct cells of columns that it encodes,
    and the distinct combinations of cells from which it derives columns. The engine needs the extra `postgres`.

    Parameters
    ----------
    connection
        How to connect, in libpq's notation, such as "host=db.clinic.org dbname=clinic user=reader sslmode=verify-full
        sslrootcert=ca.pem". Other settings, such as a file of passwords, come from libpq's environment. The role must
        be allowed to select from the tables of studies and to create temporary tables, and nothing else.
    timeout
        The number of seconds after which a query is ended, which ends the run. By default there is no limit.
    trust_network
        Whether to accept a server on another machine that shows no certificate. By default it is refused.

    Raises
    ------
    InputError
        When the engine is used: if psycopg is not installed, or `connection` cannot be read or names a service. Without
        `trust_network`, also if the server is on another machine and need not show a certificate.
    """

    name = "postgres"

    def __init__(self, connection: str = "", timeout: float | None = None, trust_network: bool = False) -> None:
        super().__init__(timeout)
        self._given, self._trusted = connection, trust_network

    def _parameters(self) -> dict[str, str]:
        """Return the parameters of the connection, without a password.

        Raises
        ------
        InputError
            As the class says.
        """
        psycopg = postgres_module()
        try:
            given = psycopg.conninfo.conninfo_to_dict(self._given)
        except psycopg.Error:
            given = None
        if given is None:
            raise InputError(
                "engine 'postgres': connection must be in libpq's notation, such as \"host=... dbname=...\""
            )
        default = {one.keyword.decode(): one.val for one in psycopg.pq.Conninfo.get_defaults() if one.val is not None}
        given = {key: value.decode() for key, value in default.items()} | given
        if given.get("service"):
            raise InputError("engine 'postgres': a service hides which database is used; write host and dbname instead")
        hosts = str(given.get("hostaddr") or given.get("host") or "").split(",")
        local = all(host.startswith("/") or host in ("", "localhost", "127.0.0.1", "::1") for host in hosts)
        if not (local or self._trusted or given.get("sslmode") in _CHECKING_MODES):
            raise InputError(
                "engine 'postgres': a connection to another machine must check who answers; write sslmode=verify-full "
                "and sslrootcert into it, or set trust_network = true"
            )
        return {key: str(value) for key, value in given.items() if key != "password"}

    @property
    def address(self) -> str:
        """The database's host, port, name and user, and the version of psycopg.

        Plans show this text, and the approval of a plan holds for no other text.
        """
        given = self._parameters()
        at = f"{given.get('hostaddr') or given.get('host') or 'this machine'}:{given.get('port', '5432')}"
        user = f" as {given['user']}" if "user" in given else ""
        return (
            f"PostgreSQL at {at}, database {given.get('dbname', 'by default')}{user}, by psycopg {version('psycopg')}"
        )

    def _connect(self) -> PostgresConnection:
        self._parameters()
        return PostgresConnection(self._given, "engine 'postgres'", self._timeout)

    def _pieces(
        self, source: TableFiles | DatabaseTable, columns: Mapping[str, str], chooser: RowChooser, placed: bool
    ) -> list[SqlPiece]:
        if not isinstance(source, DatabaseTable):
            raise InputError("engine 'postgres' reads tables of its database; give it dpf.DatabaseTable(name, schema)")
        return [self._piece_of_table(source, columns, chooser, placed)]

    def _place(self, table: str, columns: Collection[str]) -> str | None:
        asked = f"select relkind from pg_class where oid = to_regclass({text(identifier(table))})"
        stored = [kind for (kind,) in self._connection.rows(asked) if kind in ("r", "p", "m", b"r", b"p", b"m")]
        return "row_number() over (order by tableoid, ctid)" if stored else None
