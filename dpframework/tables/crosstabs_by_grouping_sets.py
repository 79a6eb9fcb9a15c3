"""Count cross tables of several parts of a table in a few SQL queries. Each query scans the table once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.tables.crosstab_engine_base import CaseColumn, SelectedRows
from dpframework.tables.crosstab_expressions import Crosstab
from dpframework.tables.sql_expressions import SqlColumns

MOST_COLUMNS, MOST_SETS = 48, 64  # a query with so many columns or so many grouping sets takes no more tables


@final
@attrs.define(eq=False)
class _Node:
    """A node in the tree of parts: rows that a cut divides further, or a part that is counted.

    Attributes
    ----------
    parts
        For each part, the SQL test whether a row is in it (see `SqlColumns.parts`). None where no cut divides the rows.
    by_code
        Whether each test compares the code of one attribute, so that at most one test holds for a row.
    children
        The nodes of the parts that are asked for, by the number of the part.
    number
        The part's number, if it is counted. None where a cut divides the rows further.
    """

    parts: dict[int, str] | None = None
    by_code: bool = False
    children: dict[int, _Node] = attrs.field(factory=dict)
    number: int | None = None

    @property
    def sql(self) -> str:
        """The SQL expression for the number of the counted part that a row is in, null if it is in none."""
        if self.number is not None:
            return str(self.number)
        assert self.parts is not None
        # Where at most one test holds, the tests of parts that nobody asks for can be left out. They may be thousands.
        needed = self.children if self.by_code else self.parts
        there = [(self.parts[part], self.children.get(part)) for part in needed]
        cases = " ".join(f"when {test} then {'null' if child is None else child.sql}" for test, child in there)
        return f"case {cases.replace('when true then', 'else')} end"


@final
@attrs.define(eq=False)
class Family:
    """Parts of one table. Any two of them are equal or share no row, so one query counts them all.

    Attributes
    ----------
    table
        The table's name.
    places
        The position of each part among all parts that are asked for.
    numbers
        The number of each part in a query. Equal parts have the same number.
    columns
        The SQL expressions for the attributes of each part.
    """

    table: str
    places: list[int] = attrs.field(factory=list)
    numbers: list[int] = attrs.field(factory=list)
    columns: list[SqlColumns] = attrs.field(factory=list)
    _root: _Node = attrs.field(factory=_Node)

    @property
    def sql(self) -> str:
        """The SQL expression for the number of the part that a row is in."""
        return self._root.sql

    def add_if_disjoint(self, place: int, rows: SelectedRows) -> bool:
        """Add a part unless it may share rows with a different part of the family. Return whether it was added."""
        columns: SqlColumns = rows.table.columns
        steps: list[tuple[dict[int, str], bool, int]] = []
        for step in rows.lineage:
            # A derived column selects no rows.
            if isinstance(step, CaseColumn):
                columns = columns.with_derived(step.attribute, step.cases)
            else:
                steps.append((columns.parts(step.by), isinstance(step.by, Attribute), step.part))
        if rows.table.name != self.table or not self._is_free(steps):
            return False
        node = self._root
        for parts, by_code, part in steps:
            node.parts, node.by_code = parts, by_code
            node = node.children.setdefault(part, _Node())
        if node.number is None:
            node.number = len(set(self.numbers))
        self.places.append(place)
        self.numbers.append(node.number)
        self.columns.append(columns)
        return True

    def _is_free(self, steps: Sequence[tuple[dict[int, str], bool, int]]) -> bool:
        """Tell whether the part that some steps select equals, or shares no row with, each part of the family."""
        node = self._root
        for parts, _, part in steps:
            if node.number is not None or node.parts not in (None, parts):
                return False
            if part not in node.children:
                return True
            node = node.children[part]
        return not node.children


def families(handles: Sequence[SelectedRows]) -> list[Family]:
    """Sort parts into families. The cross tables of one family's parts can be counted in the same queries."""
    found: list[Family] = []
    for place, rows in enumerate(handles):
        if not any(family.add_if_disjoint(place, rows) for family in found):
            found.append(Family(rows.table.name))
            found[-1].add_if_disjoint(place, rows)
    return found


@final
@attrs.frozen
class _TableRequest:
    """A cross table of the part with a `place` in the family and a `number` in the query.

    `columns` are the positions of the query's key columns, one for each axis of the table. A key column holds the
    number of a cell along its axis. `summed` is the position of the column with the table's sums, if it has sums.
    """

    place: int
    number: int
    table: Crosstab
    columns: tuple[int, ...]
    summed: int | None

    @property
    def signature(self) -> int:
        """Which columns of the result are not null in rows of this table, as bits."""
        return sum(1 << k for k in set(self.columns))


@final
@attrs.define(eq=False)
class GroupingQuery:
    """One SQL query that counts several cross tables.

    Attributes
    ----------
    family
        The parts that the query counts.
    """

    family: Family
    _columns: dict[str, int] = attrs.field(factory=dict)
    _sums: dict[str, int] = attrs.field(factory=dict)
    _wanted: list[_TableRequest] = attrs.field(factory=list)

    @property
    def is_full(self) -> bool:
        """Whether the query takes no further table."""
        return len(self._columns) >= MOST_COLUMNS or len({one.signature for one in self._wanted}) >= MOST_SETS

    @property
    def number(self) -> int:
        """The number of tables that the query counts."""
        return len(self._wanted)

    def add(self, place: int, table: Crosstab) -> None:
        """Add a table of one of the parts."""
        columns = self.family.columns[place]
        own = tuple(self._columns.setdefault(columns.cell(one), len(self._columns)) for one in table.columns)
        summed = None
        if table.summed is not None:
            summed = self._sums.setdefault(columns.steps(table.summed), len(self._sums))
        self._wanted.append(_TableRequest(place, self.family.numbers[place], table, own, summed))

    @property
    def text(self) -> str:
        """The query, in SQL."""
        cells = [f"{expression} as k{k}" for expression, k in self._columns.items()]
        steps = [f"{expression} as x{k}" for expression, k in self._sums.items()]
        inner = ", ".join([f"{self.family.sql} as p", *cells, *steps])
        asked = ", ".join(
            ["p", *(f"k{k}" for k in self._columns.values()), "cast(count(*) as bigint) as n"]
            + [f"cast(coalesce(sum(x{k}), 0) as bigint) as s{k}" for k in self._sums.values()]
        )
        sets = dict.fromkeys(tuple(sorted(set(one.columns))) for one in self._wanted)
        listed = ", ".join(f"({', '.join(['p', *(f'k{k}' for k in own)])})" for own in sets)
        counted = f"from (select {inner} from {self.family.table}) as t where p is not null"
        return f"select {asked} {counted} group by grouping sets ({listed})"

    def read(self, answer: Mapping[str, Any], tables: Sequence[dict[Crosstab, NDArray[np.int64]]]) -> None:
        """Fill in the tables of each part from the query's result.

        Parameters
        ----------
        answer
            The columns of the query's result, as masked arrays.
        tables
            For each part of the family, counts by `Crosstab`. The counts of the query's tables are added to them.
        """
        cells = [answer[f"k{k}"] for k in self._columns.values()]
        part = np.asarray(answer["p"], dtype=np.int64)
        signatures = np.zeros(len(part), dtype=np.int64)
        for k, column in enumerate(cells):
            signatures |= (~np.ma.getmaskarray(column)).astype(np.int64) << k
        pairs = set(zip(signatures.tolist(), part.tolist(), strict=True))
        of = {(s, p): np.flatnonzero((signatures == s) & (part == p)) for s, p in pairs}
        none = np.zeros(0, dtype=np.int64)
        for one in self._wanted:
            rows = of.get((one.signature, one.number), none)
            counts = np.ma.filled(answer["n" if one.summed is None else f"s{one.summed}"], 0)[rows].astype(np.int64)
            table = np.zeros(one.table.shape, dtype=np.int64)
            if one.columns:
                table[tuple(np.ma.filled(cells[k], 0)[rows].astype(np.int64) for k in one.columns)] = counts
            else:
                table[()] = counts.sum()  # the result has one row for this table, or none
            tables[one.place][one.table] = table


def grouping_queries(family: Family, tables: Sequence[Sequence[Crosstab]]) -> Iterator[GroupingQuery]:
    """Yield the queries that count the tables of each part of a family."""
    query = GroupingQuery(family)
    for place, own in enumerate(tables):
        for table in own:
            if query.is_full:
                yield query
                query = GroupingQuery(family)
            query.add(place, table)
    yield query
