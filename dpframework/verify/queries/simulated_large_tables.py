"""Simulated tables of very many equal rows, and of few rows of one kind among many rows of other kinds.

Billions of equal rows show where counts in 32 bits overflow or are rounded.

Such a table is too large to make. But counts add up over blocks of rows, so the counts of a billion copies of a row are
a billion times its counts. From these counts, a query that only counts gives the same answer as from the table. An
integer of 32 bits overflows at 2**31, and a float of 32 bits cannot hold all whole numbers above 2**24. A table may
have almost 2**31 rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.queries import Query, QueryFacts
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.tables.encoded_row_blocks import Block
from dpframework.verify.queries.answer_changes import change_of, coordinates_of
from dpframework.verify.queries.large_tables import irregular_sizes, sizes_in_code, telling_kinds
from dpframework.verify.tables.neighbours import Change, Rows, Universe
from dpframework.verify.tables.small_table_engine import RowsHandle, SmallTables

MOST = 2**31 - 2  # the most rows that neighbours share: a table may have one row more, but not two
MOST_FEW = 2  # how many kinds of rows take turns as the kind with few rows
MOST_MANY = 2  # the most kinds that have many rows
END_OF_FLOATS = 2**24 + 1  # the first number of rows that a float of 32 bits cannot hold
ROUNDING = 2**-46  # the relative error of about a hundred roundings in 64 bits, each of 2**-53


def counts_only(query: Query) -> bool:
    """Tell whether a query's answer depends only on counts that add up over blocks of rows."""
    return (
        type(query).evaluate is Query.evaluate
        and type(query).counting is Query.counting
        and not (query.gathers or query.unlisted or query.places)
    )


@final
class Copies(SmallTables):  # type: ignore[misc]  # final for all but the kit's own engines
    """An engine that counts the first row of a table as if there were `copies` of it."""

    def __init__(self, universe: Universe, copies: int) -> None:
        super().__init__(universe)
        self._copies = copies

    def counts(self, rows: RowsHandle, functions: Sequence[Callable[[Block], NDArray[Any]]]) -> list[NDArray[Any]]:
        """Return the counts of a table, with its first row counted `copies` times."""
        first, others = (RowsHandle(part, rows.derived, 0) for part in (rows.rows[:1], rows.rows[1:]))
        several = zip(super().counts(first, functions), super().counts(others, functions), strict=True)
        return [self._copies * of_first + of_others for of_first, of_others in several]


def pairs_of_copies(
    query: Query,
    universe: Universe,
    changes: Sequence[Change],
    most: int,
    inputs: dict[str, Any],
    derived: tuple[tuple[Attribute, Cases], ...],
) -> Iterator[tuple[str, Any, Any]]:
    """Yield a text that names very many copies of a row, and the answers on two neighbours that share them.

    Parameters
    ----------
    query
        A query for which `counts_only` holds.
    universe
        The kinds of rows.
    changes
        How neighbours may differ.
    most
        The most rows that neighbours may share.
    inputs
        The query's inputs at run time.
    derived
        The derived attributes that the query reads, each with its cases: the descriptions that define its values.
    """
    kinds = telling_kinds(universe)
    for kind in kinds[:2]:

        def answer(copies: int, unit: Rows = b"", kind: int = kind) -> Any:
            rows = RowsHandle(bytes((kind,)) + unit, derived, 0)
            return coordinates_of(query, answer_of(query, Copies(universe, copies), rows, inputs))

        own = next((change for change in changes if change[1] == bytes((kind,)) or change[0] == bytes((kind,))), None)
        if own is None:
            continue
        (row,) = universe.describe(bytes((kind,)))
        for size in sorted({END_OF_FLOATS, *irregular_sizes(answer, most)}):
            if size <= most:
                yield f"{size:,}{row[1:]}", *(answer(size, unit) for unit in own)


@final
class Multiples(SmallTables):  # type: ignore[misc]  # final for all but the kit's own engines
    """An engine that counts a large table, given as a number of rows for each kind of row (`times`).

    Each kind of row is counted once, for all tables. So an engine serves only one query, always with the same inputs.
    """

    def __init__(self, universe: Universe, derived: tuple[tuple[Attribute, Cases], ...]) -> None:
        super().__init__(universe)
        self._derived = derived
        self._known: dict[int, list[NDArray[Any]]] = {}
        self.times: dict[int, int] = {}

    def counts(self, rows: RowsHandle, functions: Sequence[Callable[[Block], NDArray[Any]]]) -> list[NDArray[Any]]:
        """Return the counts of the table that `times` describes. The given rows are ignored."""
        for kind in {*self.times} - {*self._known}:
            self._known[kind] = super().counts(RowsHandle(bytes((kind,)), self._derived, 0), functions)
        counted = [self._known[kind] for kind in self.times]
        several = [zip(self.times.values(), counted, strict=True) for _ in functions]
        return [np.sum([times * own[k] for times, own in each], axis=0) for k, each in enumerate(several)]


def pairs_of_sizes(
    query: Query,
    universe: Universe,
    changes: Sequence[Change],
    most: int,
    inputs: dict[str, Any],
    derived: tuple[tuple[Attribute, Cases], ...],
) -> Iterator[tuple[str, Any, Any]]:
    """Yield a text that names a table with few rows of one kind and many of others, and two neighbours' answers.

    A query may treat a few rows differently if there are many others, such as a small cell in a large region. The
    numbers of rows are numbers in the query's code, or one less (see `sizes_in_code`).

    Parameters
    ----------
    query, universe, changes, inputs, derived
        See `pairs_of_copies`.
    most
        The most rows that neighbours may share.
    """
    engine, kinds = Multiples(universe, derived), telling_kinds(universe)
    small, large = sizes_in_code(query, most)
    about = [size - less for size in {*small, *large} for less in (0, 1)]
    numbers = [(few, many) for few, many in itertools.product(sorted({*about}), large) if few < many]

    def answer(shared: dict[int, int], unit: Rows) -> Any:
        engine.times = {**shared}
        for kind in unit:
            engine.times[kind] = engine.times.get(kind, 0) + 1
        return coordinates_of(query, answer_of(query, engine, RowsHandle(unit, derived, 0), inputs))

    for few in kinds[:MOST_FEW]:
        others = [kind for kind in kinds if kind != few][:MOST_MANY]
        for number in range(1, len(others) + 1):
            # A row of the rare kind or of a frequent one is added or removed, or one replaces the other.
            touched = [{few}, {others[0]}, {few, others[0]}]
            some = [change for change in changes if {*change[0], *change[1]} in touched][:2]
            for change, (rows, many), less in itertools.product(some, numbers, (0, 1)):
                shared = {few: rows, **dict.fromkeys(others[:number], many - less)}
                if sum(shared.values()) <= most:
                    named = (f"{times:,}{universe.describe(bytes((kind,)))[0][1:]}" for kind, times in shared.items())
                    yield ", ".join(named), *(answer(shared, unit) for unit in change)


def change_beyond_rounding(before: Any, after: Any, facts: QueryFacts) -> NDArray[Any]:
    """Return the change between two answers, reduced by the most that rounding in 64 bits may have added to it."""
    change = change_of(before, after)
    if facts.integer:
        return change
    numbers = [np.ravel(getattr(answer, "scores", answer)) for answer in (before, after)]
    largest = np.abs(np.concatenate(numbers)).max(initial=0.0)
    return np.asarray(np.sign(change) * np.maximum(np.abs(change) - float(facts.rounding) - ROUNDING * largest, 0))
