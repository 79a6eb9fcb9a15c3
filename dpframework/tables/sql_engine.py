"""The common base of engines that count in a database, such as DuckDB and Postgres, and their tables of codes."""

from __future__ import annotations

import abc
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar, NoReturn, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes_by_side import attributes_of_views
from dpframework.facts.errors import DoesNotFit, InputError, NotOpened, QueryStopped
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema
from dpframework.facts.value_checks import finite_number
from dpframework.tables.coded_table import Table
from dpframework.tables.column_encoding import Unfit, require_fit
from dpframework.tables.crosstab_engine_base import CaseColumn, GroupingEngine, SelectedRows
from dpframework.tables.crosstab_expressions import Crosstab
from dpframework.tables.crosstabs_by_grouping_sets import families, grouping_queries
from dpframework.tables.database_derived_columns import with_derived_columns
from dpframework.tables.database_row_selection import DAY, ID, NTH, ORDER, PLACE, UNIT, RowChooser, SqlPiece
from dpframework.tables.engine_base import Rows
from dpframework.tables.sources import Source
from dpframework.tables.sql_connection import SqlConnection, identifier, quote_name
from dpframework.tables.sql_encoding import SourceEncoder, SqlSource, needed_values
from dpframework.tables.sql_expressions import SqlColumns
from dpframework.tables.sql_unit_aggregates import table_of_units
from dpframework.tables.table_builder import RowFindings, require_found
from dpframework.tables.unread_database_table import DatabaseTable
from dpframework.tables.unread_table_files import TableFiles

MOST_CELLS = 1 << 26  # the most cells of a cross table, which take 512 MiB


@final
@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class TemporaryTable:
    """A temporary table of codes in the database.

    Attributes
    ----------
    name
        The table's name in the database.
    columns
        The SQL expressions of the codes and values.
    beside
        The names of the table's other columns. If samples may be drawn, these hold each row's place in the table and,
        if ids are known, the number of its unit. If queries may ask for places within units, another column holds each
        row's place within its unit.
    samples
        The names of the temporary tables that hold samples of this table.
    """

    name: str
    columns: SqlColumns
    beside: tuple[str, ...] = ()
    samples: set[str] = attrs.field(factory=set)

    def __repr__(self) -> str:
        """Show no row and no count."""
        return "TemporaryTable(rows are private)"


class SqlEngine(GroupingEngine):
    """Keeps the codes of a table in a temporary table of a database, which counts them."""

    sends_messages = True  # requests made together, such as those of one level of a tree, become few queries
    bounds_units = True
    places_rows = True
    reads_tables: ClassVar[bool] = True

    def __init__(self, timeout: float | None) -> None:
        if timeout is not None and not finite_number(timeout, "timeout") > 0:
            raise InputError(f"timeout must be more than 0 seconds, not {timeout}")
        self._timeout = timeout
        self._opened: SqlConnection | None = None
        self._unused: list[str] = []  # tables of samples whose handles are gone
        self._tables_by_query: list[int] = []  # how many cross tables each query counted since the table was opened

    @abc.abstractmethod
    def _connect(self) -> SqlConnection: ...

    @abc.abstractmethod
    def _pieces(
        self, source: TableFiles | DatabaseTable, columns: Mapping[str, str], chooser: RowChooser, placed: bool
    ) -> list[SqlPiece]:
        """Return queries that give the rows. `columns` maps names of columns in the result to names in the source.

        If `placed`, the queries also give the place of each row.
        """

    @abc.abstractmethod
    def _place(self, table: str, columns: Collection[str]) -> str | None:
        """Return an SQL expression of a row's place in a table with these columns. No two rows have the same place.

        The result is None for a view, since the rows of a view have no places.
        """

    @property
    def _connection(self) -> SqlConnection:
        if self._opened is None or not self._opened.alive:
            self._opened = self._connect()
        return self._opened

    @property
    def statements(self) -> tuple[str, ...]:
        """The last statements to the database, in order. A statement holds no cell and no label."""
        return () if self._opened is None else self._opened.statements

    def counting_summary(self) -> str | None:
        """Return a sentence that names the database, and tells how many queries counted how many cross tables.

        The number of statements that opened the table is left out. It depends on the rows, since DuckDB runs other
        statements for a column with few distinct cells.
        """
        if self._opened is None:
            return None
        queries, tables = len(self._tables_by_query), sum(self._tables_by_query)
        return f"{self._opened.version}; queries that counted: {queries}; cross tables: {tables}"

    def load(self, table: Table) -> NoReturn:
        """Refuse any table, since the database reads the rows itself.

        Raises
        ------
        InputError
            Always.
        """
        what = "dpf.TableFiles(path, schema)" if self.reads_files else "dpf.DatabaseTable(name, schema)"
        raise InputError(f"engine '{self.name}' reads tables itself; give the study {what}")

    def open(self, files: TableFiles | DatabaseTable) -> SelectedRows:
        """Have the database read a table, and keep the codes in a temporary table.

        Raises
        ------
        NotOpened
            If there is no such table, its rows lack an order that is needed, or the connection has more rights than
            needed.
        InputError
            If the database cannot read the table, or the engine does not support the schema. If the rows do not fit the
            schema, this raises the errors of `read_table`.
        """
        schema, values, unit = files.schema, needed_values(files.schema, files.values), files.unit
        for attribute in schema:
            if isinstance(attribute, Open):
                raise InputError(
                    f"engine '{self.name}' counts listed values only, and '{attribute.name}' is open; use another "
                    "engine"
                )
        unit.require_fits(schema)
        people = None if schema.per_unit is None else schema.per_unit.select(schema.columns)
        read = schema if people is None else people.schema
        connection, ordered = self._connection, files.ordered or people is not None
        name = connection.new_name("codes")
        nth = files.placed and unit.groups_rows and people is None
        needed = {PLACE: ordered, UNIT: ordered and unit.id is not None, NTH: nth}
        beside = tuple(column for column, is_needed in needed.items() if is_needed)
        chooser = RowChooser(connection, read.read, files.out_of_domain)
        none = (frozenset[Unfit](),) * len(schema)
        with connection.snapshot():
            ways = self._encode(
                name, files, read, chooser, needed_values(read, None if people else files.values), beside
            )
            chooser.forget()
            name = with_derived_columns(connection, name, read)
            if people is not None:
                source = next(iter(files.sources.values()))
                for attribute, own in zip(read, ways, strict=True):
                    if own:
                        require_fit(attribute, own, f"{source}: attribute '{attribute.name}'")
                name = with_derived_columns(connection, table_of_units(connection, name, people, schema), schema)
            connection.analyze(name)
            found = RowFindings(self._count_coded_rows(name, schema.names), none if people is not None else ways)
            require_found(schema, found, files.sources)
        self._tables_by_query = []
        codes = {one: f"c{k}" for k, one in enumerate(schema.names)}
        kept = {one: f"v{k}" for k, one in enumerate(schema.names) if one in values}
        # Without the place of each row, it is known only if each unit has one row. This row has place 0.
        elsewhere = "" if unit.asserted or unit.groups_rows else "0"
        place = NTH if nth else elsewhere
        return SelectedRows(TemporaryTable(name, SqlColumns(schema, codes, kept, unit_place=place), beside), schema)

    def _encode(
        self,
        name: str,
        files: TableFiles | DatabaseTable,
        read: Schema,
        chooser: RowChooser,
        values: frozenset[str],
        beside: Sequence[str],
    ) -> tuple[frozenset[Unfit], ...]:
        """Create the table of codes, and return for each attribute the ways in which some cells do not fit."""
        connection, found = self._connection, RowFindings(0, (frozenset(),) * len(read))
        placed = files.ordered or files.unit.id is not None
        for k, source in enumerate(self._sources(files, read, chooser, placed=placed)):
            encoder = SourceEncoder(connection, source, read, files.out_of_domain, values, beside)
            query, unfit = encoder.encode()
            connection.run(f"{f'create temp table {name} as' if k == 0 else f'insert into {name}'} {query}")
            encoder.forget()
            found += RowFindings(0, unfit)
        return found.unfit

    def _sources(
        self, files: TableFiles | DatabaseTable, schema: Schema, chooser: RowChooser, *, placed: bool
    ) -> list[SqlSource]:
        """Return a query for each source of the table (see `SqlSource`). For columns per unit, it has all rows."""
        unit, span = files.unit, files.unit.require_span()
        attributes = {f"a{schema.index(name)}": name for name in schema.column_names}
        if isinstance(files, DatabaseTable) and files.id is not None:
            unit.require_joined_by(files.id)
            views = attributes_of_views(schema)
            sides = [[a for a, name in attributes.items() if schema[name] in side] for side in views]
            left, right = (
                self._pieces(one, {name: attributes[name] for name in side} | {ID: files.id}, chooser, placed)[0]
                for one, side in zip(files.sides(), sides, strict=True)
            )
            return [chooser.of_views(left, right, sides, files.id)]
        more = {ID: unit.id, DAY: unit.date}
        columns = attributes | {name: column for name, column in more.items() if column is not None}
        pieces = self._pieces(files, columns, chooser, placed)
        if span is not None:
            pieces = [chooser.of_period(piece, span, unit.date or "") for piece in pieces]
        if files.schema.per_unit is not None:
            return chooser.with_units(pieces, unit)
        if unit.id is not None:
            return chooser.of_units(pieces, unit, files.key, placed=files.placed)
        return [SqlSource(piece.query, piece.query) for piece in pieces]

    def _piece_of_table(
        self, source: DatabaseTable, columns: Mapping[str, str], chooser: RowChooser, placed: bool
    ) -> SqlPiece:
        """Return the query of a table's columns.

        The rows of a view or a query are copied first, so that the database evaluates it only once.
        """
        unordered = (
            f"{source.shown}: its rows have no order, which samples and the choice of a unit's rows need; give "
            "the name of a column that orders the rows as order="
        )
        if source.query and placed and source.order is None:
            # Raised before the query runs, since even its columns may depend on rows.
            raise NotOpened(unordered)
        origin = f"({source.table[0]}) as q" if source.query else identifier(source.table[0])
        try:
            there = self._connection.names(f"select * from {origin} limit 0")
            stored = None if source.query else self._place(source.table[0], there)
        except QueryStopped:
            raise
        except InputError:
            if source.query:  # no `NotOpened`, since the database may have evaluated the query on rows
                raise InputError(
                    f"{source.shown}: the database refuses it, or this connection may not read its tables; correct it"
                ) from None
            raise NotOpened(
                f"{source.shown}: the database has no such table or view, or this connection may not read it; correct "
                "the name, or grant the connection's role the right to select from it"
            ) from None
        names = [*columns.values(), *([] if source.order is None else [source.order])]
        # Each name is required together with "", which is always there. If all names were absent, `require` would say
        # that the first line is missing.
        for name in names:
            Source(source.shown, (*there, ""), lambda positions: iter(())).require([name, ""])
        if placed and source.order is None and stored is None:
            raise NotOpened(unordered)
        listed = [f"{quote_name(name)} as {alias}" for alias, name in columns.items()]
        if not placed:
            listed.append(f"cast(null as bigint) as {PLACE}")
        elif source.order is None:
            listed.append(f"{stored} as {PLACE}")
        else:
            listed.append(f"{quote_name(source.order)} as {ORDER}")
        query = f"select {', '.join(listed)} from {origin}"
        if stored is None:
            query = chooser.copy(query)
        if placed and source.order is not None:
            asked = f"select count(*), count(distinct {ORDER}) from ({query}) as o"
            ((rows, different),) = self._connection.rows(asked)
            if rows != different:
                raise DoesNotFit(
                    f"{source.shown}: column '{source.order}' does not order the rows, since values are equal or "
                    "missing; name a column of distinct values"
                )
            number = f"row_number() over (order by {ORDER}) as {PLACE}"
            query = f"select {', '.join(columns)}, {number} from ({query}) as o"
        return SqlPiece(query, source.shown)

    def _count_coded_rows(self, name: str, attributes: Sequence[str]) -> int:
        """Return the number of rows of a table of codes. If a cell has no code, refuse the table: it has changed."""
        known = " and ".join(f"c{k} is not null" for k in range(len(attributes)))
        ((rows, coded),) = self._connection.rows(f"select count(*), count(*) filter (where {known}) from {name}")
        if rows != coded:
            raise InputError("the table changed while it was read; read it again")
        return int(rows)

    def tables(self, rows: SelectedRows, tables: Sequence[Crosstab]) -> list[NDArray[np.int64]]:
        """See `GroupingEngine`."""
        (found,) = self.tables_of([(rows, tables)])
        return found

    def tables_of(self, asked: Sequence[tuple[SelectedRows, Sequence[Crosstab]]]) -> list[list[NDArray[np.int64]]]:
        """Count cross tables of several parts of a table. Parts that share no rows are counted in the same queries.

        Raises
        ------
        InputError
            If a table has very many cells, or the database fails.
        """
        for _, tables in asked:
            for table in tables:
                if table.cells > MOST_CELLS:
                    raise InputError(
                        f"engine '{self.name}' counts tables of up to {MOST_CELLS:,} cells, not {table.cells:,}"
                    )
        found: dict[int, list[NDArray[np.int64]]] = {}
        for family in families([rows for rows, _ in asked]):
            given = [asked[k][1] for k in family.places]
            counted: list[dict[Crosstab, NDArray[np.int64]]] = [{} for _ in given]
            for query in grouping_queries(family, given):
                self._tables_by_query.append(query.number)
                query.read(self._connection.columns(query.text), counted)
            for k, tables, own in zip(family.places, given, counted, strict=True):
                found[k] = [own[table] for table in tables]
        return [found[k] for k in range(len(asked))]

    def sample(self, rows: SelectedRows, drawn: Callable[[int], NDArray[np.bool_]]) -> SelectedRows:
        """Draw a sample of the rows' places in this process, and keep the drawn rows in a table of the database.

        Raises
        ------
        InputError
            If the table was opened without the order of its rows, or the database fails.
        """
        return self._sample(rows, PLACE, "count(*)", f"row_number() over (order by {PLACE})", drawn)

    def sample_units(self, rows: SelectedRows, drawn: Callable[[int], NDArray[np.bool_]]) -> SelectedRows:
        """See `Engine`. This raises the errors of `sample`, and refuses a table that was opened without ids."""
        return self._sample(rows, UNIT, f"count(distinct {UNIT})", f"dense_rank() over (order by {UNIT})", drawn)

    def _sample(
        self, rows: SelectedRows, needed: str, number: str, place: str, drawn: Callable[[int], NDArray[np.bool_]]
    ) -> SelectedRows:
        table: TemporaryTable = rows.table
        if needed not in table.beside:
            raise InputError(
                f"engine '{self.name}' opened this table without the row places or unit numbers that samples need; "
                "open it with ordered=True, and with the unit's ids"
            )
        connection = self._connection
        while self._unused:
            connection.drop(self._unused.pop())
        source = f"{table.name} as s{table.columns.selected(rows.lineage)[1]}"
        chosen, name = connection.new_name("drawn"), connection.new_name("sample")
        with connection.snapshot(), connection.temporary_tables(chosen):
            ((count,),) = connection.rows(f"select {number} from {source}")
            connection.upload(chosen, {"k": np.flatnonzero(drawn(int(count))) + 1})
            held = [*table.columns.codes.values(), *table.columns.values.values(), *table.beside]
            connection.run(
                f"create temp table {name} as select {', '.join(f't.{one}' for one in held)} from "
                f"(select s.*, {place} as k from {source}) as t join {chosen} as c on c.k = t.k"
            )
            connection.analyze(name)
        table.samples.add(name)
        sampled = attrs.evolve(table, name=name)
        weakref.finalize(sampled, self._unused.append, name).atexit = False
        derived = tuple(step for step in rows.lineage if isinstance(step, CaseColumn))
        return attrs.evolve(rows, table=sampled, lineage=derived)

    def drop(self, rows: Rows) -> None:
        """Drop the temporary table and the tables of its samples. Without a connection they are gone already."""
        if self._opened is not None and self._opened.alive:
            for name in (rows.table.name, *sorted(rows.table.samples)):
                self._opened.drop(name)
            rows.table.samples.clear()

    def close(self) -> None:
        """End the connection, and with it drop all temporary tables."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None
