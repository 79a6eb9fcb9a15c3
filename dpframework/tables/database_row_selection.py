"""Choose the rows of a database that a table keeps: rows of a period, k rows of each unit, or rows of joined views.

Distinct ids and dates leave the database. So does the number of rows of each unit that has more rows than it may keep.
If a plan asks for the places of rows in units, so does the number of kept rows of each unit that keeps more than one.
Only numbers are sent back. Which rows a unit keeps is chosen as in every other table, by the place of each row among
the unit's own rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.calendar_periods import Period
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import DoesNotFit, InputError
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.read_options import ReadOptions
from dpframework.tables.cell_notation_reader import read_days, read_ids
from dpframework.tables.contribution_bounding import KEY_BYTES, choose_places, order_by_hash, rows_of_each, unit_keys
from dpframework.tables.date_reader import rows_in
from dpframework.tables.ids import ACCEPTED, missing_ids
from dpframework.tables.sql_cell_conversion import CellKind, ColumnType
from dpframework.tables.sql_connection import SqlConnection
from dpframework.tables.sql_encoding import CellNumbers, SqlSource
from dpframework.tables.two_view_reader import id_twice, no_common_id

#: Names of columns in the engine's queries and tables.
ID, DAY, ORDER, PLACE, UNIT, NTH = "unit_id", "on_day", "in_order", "place", "unit", "nth_of_unit"
_ID_KINDS = {CellKind.WHOLE, CellKind.REAL, CellKind.TRUTH, CellKind.TEXT, CellKind.BYTES, CellKind.UUID}


@final
@attrs.frozen
class SqlPiece:
    """Rows that one query reads.

    The columns of the query are a0, a1, ... for the attributes and, where needed, `unit_id`, `on_day` and `place`.

    Attributes
    ----------
    query
        The query.
    name
        The name of the rows' table in errors.
    """

    query: str
    name: str


@final
class RowChooser:
    """Chooses the rows that a table keeps, in temporary tables of the database.

    Parameters
    ----------
    connection
        The database.
    read
        How the columns are written.
    policy
        How to treat rows without an id or a date.
    """

    def __init__(self, connection: SqlConnection, read: ReadOptions, policy: OutOfDomain) -> None:
        self._connection, self._read, self._strict = connection, read, policy is OutOfDomain.ERROR
        self._policy = policy
        self._made: list[str] = []

    def forget(self) -> None:
        """Drop the temporary tables."""
        for name in self._made:
            self._connection.drop(name)

    def copy(self, query: str) -> str:
        """Copy the rows of a query, which may give other rows the next time, and return a query of the copy."""
        name = self._keep(self._connection.new_name("rows"))
        self._connection.run(f"create temp table {name} as {query}")
        return f"select * from {name}"

    def of_period(self, piece: SqlPiece, span: Period, column: str) -> SqlPiece:
        """Return the rows of a piece that have a date in a period, as another piece.

        Raises
        ------
        InputError
            If the column has times of a type that cannot be read as dates, such as times in nanoseconds.
        DoesNotFit
            If the policy refuses rows without a date, and there is such a row.
        """
        where, options = f"{piece.name}: column '{column}'", self._read.of_column(column)
        kind = self._type(piece, DAY).plain(dates=True)
        kind.require_served(where)
        cell = kind.cell(f"s.{DAY}")
        found = CellNumbers.of(self._connection, piece.query, cell, kind)
        inside = []
        for k, values in enumerate(found.columns):
            days = read_days(options, values, where) if options.date or options.null else values
            missing = k == 1
            # The second column is one missing cell. If no row has a missing cell, the policy must not refuse the table
            # because of this one.
            policy = self._policy if not missing or self._has_null(piece, cell) else OutOfDomain.CLAMP
            inside.append(rows_in(span, days, policy, where))
        name = self._keep(found.to_table({"inside": inside[0].astype(np.int64)}))
        kept = f"select s.* from ({piece.query}) as s join {name} as m on {cell} = m.cell where m.inside = 1"
        return attrs.evolve(piece, query=kept)

    def of_units(
        self, pieces: Sequence[SqlPiece], unit: PrivacyUnit, key: bytes | None, *, placed: bool
    ) -> list[SqlSource]:
        """Return, for each piece, the query of all its rows and the query of the rows that units keep.

        The second query also gives a number for each row's `unit`. With `placed`, and if units may have several rows,
        it also gives each row's place within its unit.

        Raises
        ------
        InputError
            If the type of a column cannot hold ids.
        DoesNotFit
            If the policy refuses rows without an id, and there is such a row.
        """
        connection = self._connection
        numbered, ids = self._number(pieces, unit.id or "")
        rows = self._keep(connection.new_name("rows"))
        each = " union all ".join(f"select {PLACE}, unit from ({query}) as s" for query in numbered)
        connection.run(f"create temp table {rows} as {each}")
        # Only units with too many rows are queried. Their rows are chosen by the private key, as in files.
        over = connection.columns(
            f"select unit, count(*) as n from {rows} group by unit having count(*) > {unit.rows} order by unit"
        )
        numbers = _whole(over["unit"])
        own = secrets.token_bytes(KEY_BYTES) if key is None else key
        whose, nth = choose_places(unit_keys(own, ids.gather(numbers)), _whole(over["n"]), unit.rows)
        chosen, kept = connection.new_name("chosen"), self._keep(connection.new_name("kept"))
        with connection.temporary_tables(chosen, rows):
            connection.upload(chosen, {"unit": numbers[whose], "nth": nth})
            by_unit = "over (partition by unit"
            ranked = (
                f"select {PLACE}, unit, count(*) {by_unit}) as n, "
                f"row_number() {by_unit} order by {PLACE}) - 1 as nth from {rows}"
            )
            number = "t.unit" if unit.groups_rows else f"t.{PLACE}"
            connection.run(
                f"create temp table {kept} as select t.{PLACE}, {number} as unit from ({ranked}) as t left join "
                f"{chosen} as c on c.unit = t.unit and c.nth = t.nth where t.n <= {unit.rows} or c.nth is not null"
            )
        listed = f"k.{UNIT}"
        if placed and unit.groups_rows:
            kept, listed = self._in_their_order(kept, ids, own), f"k.{UNIT}, k.{NTH}"
        connection.analyze(kept)
        return [
            SqlSource(
                piece.query,
                f"select s.*, {listed} from ({piece.query}) as s join {kept} as k on k.{PLACE} = s.{PLACE}",
            )
            for piece in pieces
        ]

    def _in_their_order(self, kept: str, ids: Any, key: bytes) -> str:
        """Return the name of a table of the kept rows with the place of each row within its unit (see `RowChoice`)."""
        connection = self._connection
        several = connection.columns(
            f"select unit, count(*) as n from {kept} group by unit having count(*) > 1 order by unit"
        )
        numbers, counts = _whole(several["unit"]), _whole(several["n"])
        units, places = rows_of_each(counts)
        nth = order_by_hash(unit_keys(key, ids.gather(numbers)), units, places)
        order, placed = connection.new_name("nth"), self._keep(connection.new_name("placed"))
        with connection.temporary_tables(order):
            connection.upload(order, {"unit": numbers[units], "k": places, "nth": nth})
            numbered = (
                f"select {PLACE}, unit, row_number() over (partition by unit order by {PLACE}) - 1 as k from {kept}"
            )
            connection.run(
                f"create temp table {placed} as select t.{PLACE}, t.unit, coalesce(o.nth, 0) as {NTH} "
                f"from ({numbered}) as t left join {order} as o on o.unit = t.unit and o.k = t.k"
            )
        return placed

    def with_units(self, pieces: Sequence[SqlPiece], unit: PrivacyUnit) -> list[SqlSource]:
        """Return, for each piece, the query of all its rows and the query of its rows with an id.

        The second query also gives the number of each row's `unit`. This raises the errors of `of_units`.
        """
        numbered, _ = self._number(pieces, unit.id or "")
        return [SqlSource(piece.query, query) for piece, query in zip(pieces, numbered, strict=True)]

    def of_views(self, left: SqlPiece, right: SqlPiece, sides: Sequence[Sequence[str]], column: str) -> SqlSource:
        """Return the query of the joined rows of two views, for the ids that occur once in each view.

        Parameters
        ----------
        left, right
            The views.
        sides
            The columns that are taken from each view.
        column
            The column of ids.

        Raises
        ------
        InputError
            If the type of a column cannot hold ids.
        DoesNotFit
            If the policy is `OutOfDomain.ERROR`, and a row has no id, a view has an id twice, or the views have no id
            in common.
        """
        connection = self._connection
        numbered, _ = self._number((left, right), column)
        if self._strict:
            for query, piece in zip(numbered, (left, right), strict=True):
                twice = f"select 1 from ({query}) as s group by unit having count(*) > 1 limit 1"
                if connection.rows(twice):
                    raise DoesNotFit(id_twice(f"{piece.name}: the id column '{column}'"))
        pairs = self._keep(connection.new_name("pairs"))
        once = [f"(select unit from ({query}) as s group by unit having count(*) = 1)" for query in numbered]
        connection.run(
            f"create temp table {pairs} as select l.unit from {once[0]} as l join {once[1]} as r using (unit)"
        )
        if self._strict and not connection.rows(f"select 1 from {pairs} limit 1"):
            raise DoesNotFit(no_common_id(f"{left.name} and {right.name}", column))
        connection.analyze(pairs)
        taken = [f"{side}.{name}" for side, names in zip("lr", sides, strict=True) for name in names]
        query = (
            f"select {', '.join(taken)}, l.{PLACE}, l.{PLACE} as {UNIT} from {pairs} as p "
            f"join ({numbered[0]}) as l on l.unit = p.unit join ({numbered[1]}) as r on r.unit = p.unit"
        )
        return SqlSource(query, query)

    def _number(self, pieces: Sequence[SqlPiece], column: str) -> tuple[list[str], Any]:
        """Give a number to each id of some pieces.

        Return, for each piece, the query of its rows with an id. The query gives the id's number as `unit`. Also return
        all ids, in the order of their numbers.
        """
        import polars as pl

        found = []
        for piece in pieces:
            kind = self._type(piece, ID)
            if kind.kind not in _ID_KINDS:
                raise InputError(f"{piece.name}: column '{column}' has the type {kind.name}; {ACCEPTED}")
            cell = kind.cell(f"s.{ID}")
            cells = CellNumbers.of(self._connection, piece.query, cell, kind)
            ids = read_ids(self._read.of_column(column), cells.columns[0], f"{piece.name}: column '{column}'")
            if self._strict:
                where = f"{piece.name}: the id column '{column}'"
                ids.require_all(where)
                if self._has_null(piece, cell):
                    raise DoesNotFit(missing_ids(where))
            found.append((cells, cell, ids.series))
        # Ids are sorted, so that their numbers do not depend on the order of a query's result.
        every = pl.concat([series for _, _, series in found]).drop_nulls().unique().sort()
        numbers = pl.DataFrame({"id": every}).with_row_index("number")
        numbered = []
        for piece, (cells, cell, series) in zip(pieces, found, strict=True):
            own = pl.DataFrame({"id": series}).join(numbers, on="id", how="left", maintain_order="left")["number"]
            name = self._keep(self._connection.new_name("ids"))
            mapped = cells.to_table({"unit": own.cast(pl.Float64).fill_null(float("nan")).to_numpy()})
            with self._connection.temporary_tables(mapped):
                self._connection.run(
                    f"create temp table {name} as select cell, cast(unit as bigint) as unit from {mapped} "
                    "where unit is not null"
                )
            self._connection.analyze(name)
            numbered.append(f"select s.*, m.unit from ({piece.query}) as s join {name} as m on {cell} = m.cell")
        return numbered, every

    def _type(self, piece: SqlPiece, column: str) -> ColumnType:
        return self._connection.types(f"select {column} from ({piece.query}) as s")[0]

    def _has_null(self, piece: SqlPiece, cell: str) -> bool:
        ((null,),) = self._connection.rows(f"select bool_or({cell} is null) from ({piece.query}) as s")
        return bool(null)

    def _keep(self, name: str) -> str:
        self._made.append(name)
        return name


def _whole(cells: Any) -> NDArray[np.int64]:
    return np.ma.filled(cells, 0).astype(np.int64)
