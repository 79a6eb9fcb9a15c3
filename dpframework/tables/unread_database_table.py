"""The description of a table, a query or two views in a database, made before anything is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import attrs

from dpframework.facts.attributes_by_side import require_joinable
from dpframework.facts.errors import InputError
from dpframework.facts.schema import Schema
from dpframework.facts.value_checks import printable_name
from dpframework.tables.unread_table_files import UnreadTable

#: Beginnings of names of temporary tables that engines make, and of tables that belong to a database itself.
_RESERVED = ("dpf_", "duckdb_", "pg_", "sqlite_")


def _tables(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def require_table_name(name: str, what: str) -> str:
    """Return the name of a table, unless it belongs to the database itself or to an engine's temporary table.

    Raises
    ------
    InputError
        If the name belongs to the database or to an engine, or cannot be printed.
    """
    printable_name(name, what)
    for part in name.lower().split("."):
        if not part or part == "information_schema" or part.startswith(_RESERVED):
            raise InputError(
                f"{what} is '{name}'; a table or view of the owner is expected, since information_schema and names "
                f"that begin with {', '.join(_RESERVED[:-1])} or {_RESERVED[-1]} belong to the database and to engines"
            )
    return name


@final
@attrs.frozen
class DatabaseTable(UnreadTable):
    """A table, a query or two views in a database. The engine reads and counts the rows there.

    Attributes
    ----------
    table
        The name of a table or view as the database lists it. If the table is in a database schema, the schema's name
        and a dot come first, as in "clinic.visits". Two names, of the left and the right view, if `id` joins them.
    schema
        As for `read_table`.
    order
        The column by which the rows are ordered. No two rows may have the same value there. Samples and the choice of a
        unit's rows follow this order. By default, the rows of a table are in the order in which the database stores
        them. Rows of a view or a query have no order by default.
    query
        Whether `table` is an SQL query instead of a name. If so, the schema's `read` must hold the same query, so that
        plans show it and assume `rows-from-query`.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> DatabaseTable("clinic.visits", Schema([Boolean("smokes")])).shown
    'clinic.visits'
    """

    table: tuple[str, ...] = attrs.field(converter=_tables)
    schema: Schema
    order: str | None = attrs.field(default=None, kw_only=True)
    query: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if len(self.table) != (1 if self.id is None else 2):
            raise InputError(
                "a database's table needs one name, or the names of the left and the right view and the `id` that "
                "joins them"
            )
        for name in self.table:
            if not isinstance(name, str) or not name.strip():
                raise InputError(f"{name!r} is no name of a table; give one such as 'clinic.visits'")
            if not self.query:
                require_table_name(name, "the table")
        # Plans show the table or query that the schema names, so the rows must come from there.
        read = self.schema.read
        if self.query and (self.id is not None or read != attrs.evolve(read, query=self.table[0], table="")):
            raise InputError(
                "the schema must hold the same query, and only one query can be given, since plans show the schema's "
                "query; write "
                'dpf.Schema(attributes, read={"query": "select ..."}), and allow \'rows-from-query\' in the study'
            )
        if not self.query and read.query:
            raise InputError("the schema's [read] has a query; give it as the table, with query=True")
        if read.table and self.table != (read.table,):
            raise InputError(f"the schema's [read] names the table '{read.table}', not '{self.shown}'")
        if self.id is not None:
            require_joinable(self.schema, self.id, self.unit)

    @property
    def shown(self) -> str:
        """The name of the table in errors, plans and reports."""
        return "the query" if self.query else " and ".join(self.table)

    @property
    def sources(self) -> dict[str, str]:
        """The name that errors give to the table of each attribute, by the attribute's name."""
        return self.sources_by([self.shown] if self.id is None else [one.shown for one in self.sides()])

    def sides(self) -> tuple[DatabaseTable, DatabaseTable]:
        """Return the left and the right view, each as a table of its own."""
        left, right = (attrs.evolve(self, table=one, id=None) for one in self.table)
        return left, right
