"""Rows that change a query's answer most, and rows that hold numbers from the query's code.

A schema may allow more kinds of rows than a search tries, so that the worst kinds may be missing. For example, a score
with weights of both signs is largest for one of many combinations of lowest and highest values. A query may also be
wrong only at a number that its code names, such as one that its author took for a missing value. So the search changes
rows one attribute at a time, as long as the change of the answer grows, and it puts numbers from the code into cells.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.queries import Query
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.verify.plugin_code_constants import constants_of
from dpframework.verify.queries.answer_changes import FALL, RISE, change_or_failure, coordinates_of
from dpframework.verify.queries.telling_number_search import Answer, telling_numbers
from dpframework.verify.tables.neighbours import MOST_KINDS, Rows, Universe
from dpframework.verify.tables.small_table_engine import SmallTables

ROUNDS = 8  # the most rounds of one climb
DIRECTIONS = ("l1", "l1" + RISE, "l1" + FALL)  # what each climb makes as large as it can (see `measure`)
KEPT = 120  # about how many variants of the climbed rows the search uses
BETTER = 1 + 1e-9  # a round must enlarge the change by this factor, or else the climb ends


def find_telling_rows(query: Query, universe: Universe, answer: Answer, least: int) -> Universe | None:
    """Return further kinds of rows to search a query on, as a `Universe`, or None if there are none.

    Parameters
    ----------
    query
        The query.
    universe
        The kinds of rows that the query was searched on already.
    answer
        A function of a universe and a table of its rows, which returns the coordinates of the query's answer.
    least
        The least number of rows that two neighbours share.
    """
    constants = constants_of([query])
    telling = telling_numbers(query, universe, answer, least, constants)
    wider = Universe(
        universe.schema,
        numbers={name: [*own, *constants] for name, own in telling.items()},
        texts=universe.texts,
    )
    if wider.sizes is None or universe.sizes is None or wider.places is None:
        return None
    if not wider.sampled:
        return wider if wider.kinds > universe.kinds else None
    climbed = climb_rows(wider, answer, least)
    if climbed is None:
        return None
    variants = [_beside(row, wider.sizes)[:, : KEPT // climbed.shape[1]] for row in climbed.T]
    return wider.among(np.unique(np.concatenate([wider.places[:, :1], climbed, *variants], axis=1), axis=1))


def climb_rows(universe: Universe, answer: Answer, least: int) -> NDArray[np.int64] | None:
    """Return three rows: one that changes an answer most, one that raises it most and one that lowers it most.

    The result has shape (attributes, 3). It holds the position of each value among the values of its attribute (see
    `Universe.places`). A row on which the query fails counts as one that changes the answer most. The result is None if
    the query fails even on a table of the fewest rows allowed.
    """
    assert universe.places is not None
    assert universe.sizes is not None
    base, starts, sizes, shared = universe.places[:, :1], universe.places, universe.sizes, bytes(least)

    def changes_of(rows: NDArray[np.int64], direction: str) -> NDArray[np.float64]:
        """Return how far adding each row changes the answer in a direction, on a table of the fewest rows allowed."""
        among = universe.among(np.concatenate([base, rows], axis=1))
        before = answer(among, shared)
        rows_of = (functools.partial(answer, among, shared + bytes((k,))) for k in range(1, among.kinds))
        return np.array([change_or_failure(before, one, direction) for one in rows_of])

    def best_of(rows: NDArray[np.int64], direction: str) -> tuple[float, NDArray[np.int64]]:
        changes = changes_of(rows, direction)
        k = int(np.argmax(changes))
        return float(changes[k]), rows[:, k]

    def climb(direction: str) -> NDArray[np.int64]:
        """Return a row that changes the answer as far as possible in a direction, beginning at the best start."""
        reached, best = best_of(starts, direction)
        for _ in range(ROUNDS):
            tried = _beside(best, sizes)
            changes = changes_of(tried, direction)
            together = _best_of_each(best, tried, changes, reached)
            gained, row = best_of(np.column_stack([tried[:, int(np.argmax(changes))], together]), direction)
            if gained <= reached * BETTER:
                break
            reached, best = gained, row
        return best

    try:
        climbed = [climb(direction) for direction in DIRECTIONS]
        # The climb towards any change may end where the answer rises, although it falls further elsewhere, or the
        # reverse.
        _, climbed[0] = best_of(np.stack(climbed, axis=1), DIRECTIONS[0])
    except Exception:  # the query fails on the fewest rows, which a search reports
        return None
    return np.stack(climbed, axis=1)


def answer_among(
    query: Query,
    derived: tuple[tuple[Attribute, Cases], ...],
    inputs: Mapping[str, Any],
    universe: Universe,
    rows: Rows,
    *,
    together: int = 1,
) -> Any:
    """Return the coordinates of a query's answer on a table of given kinds of rows."""
    engine = SmallTables(universe, together)
    return coordinates_of(query, answer_of(query, engine, engine.hold(rows, derived), inputs))


def _beside(row: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return rows that each differ from a row in one attribute, shape (attributes, rows).

    Rows with the first and last values of attributes come first.
    """
    values = [(k, place) for k, size in enumerate(sizes.tolist()) for place in _ends_first(size) if place != row[k]]
    values.sort(key=lambda one: _ends_first(int(sizes[one[0]])).index(one[1]))
    changed = values[: MOST_KINDS - 1]
    others = np.tile(row[:, None], len(changed))
    for number, (k, place) in enumerate(changed):
        others[k, number] = place
    return others


def _ends_first(size: int) -> list[int]:
    return sorted(range(size), key=lambda place: min(place, size - 1 - place))[:MOST_KINDS]


def _best_of_each(
    row: NDArray[np.int64], tried: NDArray[np.int64], changes: NDArray[np.float64], reached: float
) -> NDArray[np.int64]:
    """Return a row with the best value of each attribute, as found by changing that attribute alone.

    This is the best of all rows if the changes of the answer add up over attributes.
    """
    best = row.copy()
    for k in range(len(row)):
        own = np.flatnonzero(tried[k] != row[k])
        if len(own) and changes[own].max() > reached:
            best[k] = tried[k, own[int(np.argmax(changes[own]))]]
    return best
