"""Engines that count cross tables and nothing else, such as databases.

Anything that can group rows can be such an engine. Public expressions tell it what to count. It never evaluates a
function on rows, so no code of this process needs to reach the rows.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.row_partitions import NOTHING_DERIVED, AttributeSources, Cut, number_of_parts, with_sources
from dpframework.facts.schema import Schema
from dpframework.tables.crosstab_expressions import Column, Crosstab, JointCounts, joint_counts_of
from dpframework.tables.encoded_row_blocks import Block, cells_of
from dpframework.tables.engine_base import Engine, Rows, rows_of


@final
@attrs.frozen
class PartSelection:
    """The rows that are in one part of a cut, which divides rows into parts by their attributes.

    Attributes
    ----------
    by
        The cut.
    part
        The number of the part.
    """

    by: Cut
    part: int


@final
@attrs.frozen
class CaseColumn:
    """One more attribute, which tells the case of each row: the first of several descriptions that holds for the row.

    Attributes
    ----------
    attribute
        The new attribute.
    cases
        The cases. The numbers of the cases are the attribute's codes.
    """

    attribute: Attribute
    cases: Cases


#: A step from the rows of a table to the rows of a handle.
Selection: TypeAlias = "PartSelection | CaseColumn"


@final
@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class SelectedRows:
    """A handle of some rows of an engine's table. Public expressions say which rows these are.

    Attributes
    ----------
    table
        The engine's own handle of its table.
    schema
        The schema of the rows, with derived attributes appended.
    lineage
        The steps from the table's rows to these rows, the first step first.
    attribute_sources
        For each derived attribute, by its name, the attributes of the table that it depends on.
    cache
        Counts that queries made of these rows, so that nothing is counted twice. Each handle has its own.
    """

    table: Any
    schema: Schema
    lineage: tuple[Selection, ...] = ()
    attribute_sources: AttributeSources = NOTHING_DERIVED
    cache: dict[Hashable, Any] = attrs.field(init=False, factory=dict)

    def with_derived(self, attribute: Attribute, cases: Cases) -> SelectedRows:
        """Return the same rows with one more attribute."""
        return attrs.evolve(
            self,
            schema=attrs.evolve(self.schema, attributes=(*self.schema.attributes, attribute)),
            lineage=(*self.lineage, CaseColumn(attribute, cases)),
            attribute_sources=with_sources(self.attribute_sources, attribute, cases),
        )

    def __repr__(self) -> str:
        """Show no row and no count."""
        return f"SelectedRows({len(self.schema)} attributes; rows are private)"


class GroupingEngine(Engine):
    """An engine that counts cross tables.

    A subclass defines `tables`, and `open` or `load`, which return `SelectedRows`. Parts and derived attributes are
    steps of a handle's `lineage`. Queries that do not name their cross tables are refused before anything is read.
    """

    gathers = False
    groups = True

    @abc.abstractmethod
    def tables(self, rows: Rows, tables: Sequence[Crosstab]) -> list[NDArray[np.int64]]:
        """Return the counts or sums of some rows in each cross table, in the table's shape, 0 where there is no row."""

    def tables_of(self, asked: Sequence[tuple[Rows, Sequence[Crosstab]]]) -> list[list[NDArray[np.int64]]]:
        """Return the counts of several sets of rows of one table, each in its own cross tables.

        By default the sets of rows are counted one by one.
        """
        return [self.tables(rows, tables) for rows, tables in asked]

    def counts(self, rows: Rows, functions: Sequence[Callable[[Block], NDArray[Any]]]) -> list[NDArray[Any]]:
        """Return the counts of queries, computed from the cross tables that they name.

        Raises
        ------
        InputError
            If a query names no cross tables, or if a cross table has an attribute that the query does not declare.
        """
        (found,) = self.counts_of([(rows, functions)])
        return found

    @final
    def counts_of(
        self, asked: Sequence[tuple[Rows, Sequence[Callable[[Block], NDArray[Any]]]]]
    ) -> list[list[NDArray[Any]]]:
        """Return the counts of queries on several sets of rows (see `counts`).

        A cross table that several queries name is counted once. A cross table whose columns are all in a larger cross
        table is a margin of that table. Its counts are summed from the counts of the larger table.
        """
        each = [[self._joint(rows, function) for function in functions] for rows, functions in asked]
        wanted = [whole_tables(table for one in own for table in one.tables) for own in each]
        tables = [list(dict.fromkeys(of.values())) for of in wanted]
        counted = self.tables_of([(rows, own) for (rows, _), own in zip(asked, tables, strict=True)])
        found = []
        for own, of, named, counts in zip(each, wanted, tables, counted, strict=True):
            known = dict(zip(named, counts, strict=True))
            for table, array in known.items():
                if array.shape != table.shape or array.dtype != np.int64:
                    raise InputError(f"engine '{self.name}' must count a table in the table's shape, in int64")
            margins = {table: margin_of(table, whole, known[whole]) for table, whole in of.items()}
            found.append([np.asarray(one.assemble([margins[table] for table in one.tables])) for one in own])
        return found

    def _joint(self, rows: SelectedRows, function: Callable[[Block], NDArray[Any]]) -> JointCounts:
        if function is rows_of:
            return JointCounts([Crosstab()], lambda counts: counts[0].reshape(1))
        found = joint_counts_of(function)
        if found is None:
            raise InputError(
                f"engine '{self.name}' counts cross tables only, and this function of rows names none; run it with "
                "engine 'memory' or 'mapped', on one machine"
            )
        found.require_shown(rows.attribute_sources)
        return found

    def cache_of(self, rows: SelectedRows) -> dict[Hashable, Any]:
        """See `Engine`."""
        return rows.cache

    def split(self, rows: SelectedRows, by: Cut) -> list[SelectedRows]:
        """See `Engine`."""
        return [
            attrs.evolve(rows, lineage=(*rows.lineage, PartSelection(by, part))) for part in range(number_of_parts(by))
        ]

    def derive(self, rows: SelectedRows, attribute: Attribute, cases: Cases) -> SelectedRows:
        """See `Engine`."""
        return rows.with_derived(attribute, cases)


def whole_tables(tables: Iterable[Crosstab]) -> dict[Crosstab, Crosstab]:
    """Return, for each cross table, the table that is counted in its place: itself, or a larger one.

    A table that is no margin of another table is counted itself. A margin is summed from the smallest of the counted
    tables that have all of its columns.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> ill, old = Boolean("ill"), Boolean("old")
    >>> pair = Crosstab([ill, old])
    >>> found = whole_tables([pair, Crosstab([old]), Crosstab()])
    >>> set(found.values()) == {pair}
    True
    """
    ordered = sorted(dict.fromkeys(tables), key=lambda table: -len(table.columns))
    found: dict[Crosstab, Crosstab] = {}
    wholes: list[tuple[Crosstab, set[Column]]] = []
    for table in ordered:
        own = set(table.columns)
        # If a column occurs twice, only the diagonal has rows. A table with that column once has no such diagonal.
        different = len(own) == len(table.columns)
        around = [whole for whole, columns in wholes if own <= columns and table.summed == whole.summed]
        found[table] = min(around, key=lambda whole: whole.cells, default=table) if different else table
        if different and not around:
            wholes.append((table, own))
    return found


def margin_of(table: Crosstab, whole: Crosstab, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts of a cross table, summed from the counts of a larger table that has all of its columns.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> ill, old = Boolean("ill"), Boolean("old")
    >>> margin_of(Crosstab([old]), Crosstab([ill, old]), np.array([[1, 2], [3, 4]])).tolist()
    [4, 6]
    """
    if table == whole:
        return counts
    axes = [whole.columns.index(column) for column in table.columns]
    others = tuple(k for k in range(counts.ndim) if k not in axes)
    summed = np.asarray(counts.sum(axis=others, dtype=np.int64))
    return summed.transpose([sorted(axes).index(axis) for axis in axes])


def select_lineage(block: Block, lineage: Sequence[Selection]) -> Block:
    """Return the rows of a block that a lineage selects, with the attributes that it derives.

    This function defines the meaning of a lineage.
    """
    for step in lineage:
        if isinstance(step, CaseColumn):
            block = block.with_derived(step.attribute, step.cases)
        else:
            block = block.at(block.index[cells_of(step.by, block) == step.part])
    return block
