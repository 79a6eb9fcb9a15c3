"""A table, a query or two views in a database, described before anything of it is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.policies import OutOfDomain, as_policy
from dpframework.facts.schema import Schema
from dpframework.facts.sides import attributes_of_views, require_joinable
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.facts.value_checks import as_names, printable_name

_RESERVED = ("dpf_", "duckdb_", "pg_", "sqlite_")


def _tables(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def require_table_name(name: str, what: str) -> str:
    """Return the name of a table, unless it is one of the database's own, or of a temporary one of an engine.

    Raises
    ------
    InputError
        If it is, or cannot be printed.
    """
    printable_name(name, what)
    for part in name.lower().split("."):
        if not part or part == "information_schema" or part.startswith(_RESERVED):
            raise InputError(
                f"{what} is '{name}'; a table or view of the owner is expected, and names that begin with "
                f"{', '.join(_RESERVED[:-1])} or {_RESERVED[-1]} are those of the database and of engines"
            )
    return name


@final
@attrs.frozen
class DatabaseTable:
    """A table in the database of an engine, which reads and counts it there.

    Attributes
    ----------
    table
        The name of a table or view as the database lists it, after its schema's name and a dot where it has one. Two
        names, of the left and the right view, if `id` joins them.
    schema, out_of_domain, unit, key, values
        As for `read_table`.
    id
        The column of both views that names each row once (see `read_two_views`).
    order
        The column by which the rows are in order; no two rows have the same value there. Samples, and a choice among
        the rows of a unit, are made by that order. Without it a table's rows are in the order in which the database
        stores them, and those of a view or a query in none.
    query
        Whether `table` is a query in SQL, and no name. Then the schema's `read` must hold the same query: so plans show
        it, and assume `rows-from-query`.
    ordered
        Whether samples may be drawn, for which the database numbers the rows.
    placed
        Whether the place of each row among those of its unit may be asked for, for which the database numbers those.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> DatabaseTable("clinic.visits", Schema([Boolean("smokes")])).shown
    'clinic.visits'
    """

    table: tuple[str, ...] = attrs.field(converter=_tables)
    schema: Schema
    out_of_domain: OutOfDomain = attrs.field(default=OutOfDomain.CLAMP, converter=as_policy, kw_only=True)
    unit: PrivacyUnit = attrs.field(default=ROW, kw_only=True)
    key: bytes | None = attrs.field(default=None, kw_only=True, repr=False)
    values: frozenset[str] | None = attrs.field(default=None, converter=as_names, kw_only=True)
    id: str | None = attrs.field(default=None, kw_only=True)
    order: str | None = attrs.field(default=None, kw_only=True)
    query: bool = attrs.field(default=False, kw_only=True)
    ordered: bool = attrs.field(default=True, kw_only=True)
    placed: bool = attrs.field(default=True, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if len(self.table) != (1 if self.id is None else 2):
            raise InputError(
                "a database's table has one name, or two of the left and the right view and the `id` that joins them"
            )
        for name in self.table:
            if not isinstance(name, str) or not name.strip():
                raise InputError(f"{name!r} is no name of a table; give one such as 'clinic.visits'")
            if not self.query:
                require_table_name(name, "the table")
        # Plans show what the schema says of the place, so the rows must come from there.
        read = self.schema.read
        if self.query and (self.id is not None or read != attrs.evolve(read, query=self.table[0], table="")):
            raise InputError(
                "the schema must hold the same query, one of one table, as in dpf.Schema(attributes, "
                'read={"query": "select ..."}): then plans show it, and a study has to allow \'rows-from-query\''
            )
        if not self.query and read.query:
            raise InputError("the schema's [read] has a query; give it as the table, with query=True")
        if read.table and self.table != (read.table,):
            raise InputError(f"the schema's [read] names the table '{read.table}', not '{self.shown}'")
        if self.id is not None:
            require_joinable(self.schema, self.id, self.unit)

    @property
    def shown(self) -> str:
        """Its name in errors, plans and reports."""
        return "the query" if self.query else " and ".join(self.table)

    @property
    def sources(self) -> dict[str, str]:
        """The name of each attribute's table in errors."""
        if self.id is None:
            return dict.fromkeys(self.schema.names, self.shown)
        left, right = (one.shown for one in self.sides())
        (lefts, rights) = attributes_of_views(self.schema)
        return {one.name: left for one in lefts} | {one.name: right for one in rights}

    def sides(self) -> tuple[DatabaseTable, DatabaseTable]:
        """Return the left and the right view, each as a table of its own."""
        left, right = (attrs.evolve(self, table=one, id=None) for one in self.table)
        return left, right
