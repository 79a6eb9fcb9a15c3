"""Tables of very many equal rows, on which integers of few bits overflow and sums are rounded.

Small tables cannot show that. So each of a few kinds of rows is repeated up to 70,000 times. The numbers of rows lie
around the largest integers of 8 and 16 bits, around the number where an answer stops growing by the same amount per
row, and around the number, of up to 30, where one more row changes the answer most.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dpframework.facts.privacy_losses import Relation
from dpframework.facts.schema import Schema
from dpframework.queries import PiecewiseScores, Query
from dpframework.verify.miners.neighbour_pair_search import last_before
from dpframework.verify.plugin_code_constants import constants_of
from dpframework.verify.tables.neighbours import Change, Pair, Universe

MANY = 70_000  # the most rows that two neighbours share, unless the schema's public number of rows is larger
ENDS = (127, 255, 32_767, 65_535)  # the largest numbers of 8 and 16 bits, with and without a sign
MOST_KINDS = 6  # how many kinds of rows are repeated
# For this many of these kinds, tables have each of the numbers of rows in `ENDS`. For the other kinds, they have the
# two numbers of 8 bits only. For all kinds, there is also a table with the most rows that neighbours may share.
AT_EVERY_END = 2
CHANGES_OF_EVERY = 3  # how many changes are tried where each kind of row occurs equally often
MOST_CHANGES = 2  # how many changes are tried for each kind of row; any change makes an integer of few bits overflow
FEW_SIZES = 5  # how many of the smallest numbers in a query's code are tried as numbers of rows
LARGE_SIZES = 2  # how many of the largest numbers in a query's code are tried as numbers of rows
JUMPING = 3  # for how many kinds of rows a jump of the answer is looked for on small tables
REGULAR = 60  # the largest number of rows of small tables, which are searched elsewhere
ROUNDING = 1e-9  # how far an answer may lie, relative and absolute, from one that grows by the same amount per row


def largest_number(schema: Schema, relation: Relation, rows: int, most: int = MANY) -> int:
    """Return how many rows two neighbours may share.

    A public number of rows in the schema fixes this number. Otherwise the number is `most`, or less if the schema
    bounds the number of rows.
    """
    if schema.rows is not None:
        return max(schema.rows - (rows if relation is Relation.REPLACE_ONE else 0), 0)
    return min(most, max(schema.row_bound - rows, 0)) if schema.row_bound is not None else most


def sizes_in_code(query: Query, most: int) -> tuple[list[int], list[int]]:
    """Return a few small and a few large numbers of rows at which a plugin's query may do something else.

    They are 1 and whole numbers in its code: the smallest, and the largest of those that no small table has. None is
    above a quarter of `most`, so that several kinds of rows can each have that many.
    """
    whole = sorted({int(number) for number in constants_of([query]) if number == int(number)})
    found = [number for number in whole if 1 < number <= most // 4]
    return [1, *found[:FEW_SIZES]], [number for number in found if number > REGULAR // 2][-LARGE_SIZES:]


def telling_kinds(universe: Universe) -> list[int]:
    """Return a few kinds of rows that together show as many values of each attribute as possible."""
    chosen: list[int] = []
    seen: set[tuple[int, int]] = set()
    for _ in range(min(MOST_KINDS, universe.kinds)):
        new = [sum(value not in seen for value in enumerate(codes)) for codes in universe.codes.T.tolist()]
        best = int(np.argmax(new))
        if new[best] == 0:
            break
        chosen.append(best)
        seen.update(enumerate(universe.codes[:, best].tolist()))
    return chosen


def pairs_of_many(
    universe: Universe,
    changes: Sequence[Change],
    most: int,
    answer: Callable[[bytes], Any] | None = None,
) -> Iterator[Pair]:
    """Yield neighbours that share very many equal rows.

    Parameters
    ----------
    universe
        The kinds of rows.
    changes
        How neighbours may differ (see `neighbours.changes`).
    most
        The largest number of rows that they may share.
    answer
        A function that returns a query's answer on a table. With it, the search looks for the size where the answer
        stops growing by the same amount per row.
    """
    kinds = telling_kinds(universe)
    for position, kind in enumerate(kinds):
        its_own = [c for c in changes if kind in c[0] + c[1] and all(other in kinds for other in c[0] + c[1])]
        its_own = its_own[:MOST_CHANGES]
        ends = ENDS if position < AT_EVERY_END else ENDS[:2]
        sizes = [size for size in (*ends, most) if size <= most]
        if answer is not None and most > REGULAR:
            of_size: Callable[[int], Any] = functools.partial(_of_repeated, answer, kind)
            sizes += irregular_sizes(of_size, most)
            if position < JUMPING and all(len(rows) < 2 for change in its_own for rows in change[:2]):
                sizes += _small_size_before_jump(of_size)
        for size, change in itertools.product(dict.fromkeys(sizes), its_own):
            yield Pair(bytes((kind,)) * size, *change)


def _of_repeated(answer: Callable[[bytes], Any], kind: int, size: int) -> Any:
    return answer(bytes((kind,)) * size)


def _small_size_before_jump(answer: Callable[[int], Any]) -> list[int]:
    """Return, in a list, the small number of rows after which one more row changes an answer most.

    The answer may jump at a number of rows that random tables hardly ever have, such as 17. The list is empty if no row
    changes the answer more than the first one. If the answer on the largest small table is the one that the first row
    predicts, the sizes between are not tried.

    Parameters
    ----------
    answer
        A function that returns the answer on a table of the given number of equal rows.
    """
    last = REGULAR // 2
    first, second, *_ = ends = [answer(size) for size in (0, 1, last)]
    if any(isinstance(one, PiecewiseScores) or np.shape(one) != np.shape(first) for one in ends):
        return []
    start, step, end = (np.asarray(one, dtype=np.float64) for one in ends)
    if np.allclose(end, start + last * (step - start), rtol=ROUNDING, atol=ROUNDING):
        return []
    answers = [first, second, *(answer(size) for size in range(2, last + 1))]
    if any(np.shape(one) != np.shape(first) for one in answers):
        return []
    changes = np.abs(np.diff(np.array(answers, dtype=np.float64), axis=0)).reshape(last, -1).sum(axis=1)
    largest = int(np.argmax(changes))
    return [largest] if changes[largest] > changes[0] * (1 + ROUNDING) + ROUNDING else []


def irregular_sizes(answer: Callable[[int], Any], most: int, least: int = REGULAR // 2) -> list[int]:
    """Return, in a list, the number of rows after which an answer stops growing by the same amount per row.

    Beyond that number, the answer may grow in jumps, as a number does that is rounded to a few digits. Then the list
    also holds the number of rows before the largest jump that was found.

    The list is empty if the answer does not grow in this way on small tables, if it still does on the largest table,
    or if the answer is made of piecewise scores.

    Parameters
    ----------
    answer
        A function that returns the answer on a table of the given number of equal rows.
    most
        The largest number of rows that is tried.
    least
        A number of rows at which the answer must still grow in this way.
    """
    first = answer(0)
    if isinstance(first, PiecewiseScores):
        return []
    start, step = np.asarray(first, dtype=np.float64), np.asarray(answer(1), dtype=np.float64)

    def regular(size: int) -> bool:
        found = np.asarray(answer(size), dtype=np.float64)
        return found.shape == start.shape and bool(
            np.allclose(found, start + size * (step - start), rtol=ROUNDING, atol=ROUNDING)
        )

    if start.shape != step.shape or not regular(least) or regular(most):
        return []
    low = last_before(lambda size: not regular(size), most, least)
    return list(dict.fromkeys((low, _size_before_jump(answer, low, most))))


def _size_before_jump(answer: Callable[[int], Any], low: int, most: int) -> int:
    """Return a number of rows after which one more row changes an answer much, found by bisection from `low` on.

    Of several intervals, the search begins in the one where the answer changes most per row. Each step takes the half
    where the answer changes more per row, which is at least as much as in the whole interval.
    """
    known: dict[int, Any] = {}

    def slope(one: int, other: int) -> float:
        for size in (one, other):
            known[size] = known[size] if size in known else np.asarray(answer(size), dtype=np.float64)
        if known[one].shape != known[other].shape:
            return math.inf
        return float(np.abs(known[other] - known[one]).max(initial=0.0)) / (other - one)

    ends = [low, *(low + 2**k for k in range(most.bit_length()) if low + 2**k <= most)]
    one, other = max(itertools.pairwise(ends), key=lambda pair: slope(*pair), default=(low, low))
    while other - one > 1:
        middle = (one + other) // 2
        one, other = max(((one, middle), (middle, other)), key=lambda pair: slope(*pair))
    return one


def pairs_of_every_kind(
    universe: Universe, changes: Sequence[Change], most: int, answer: Callable[[bytes], Any]
) -> Iterator[Pair]:
    """Yield neighbours that share equally many rows of each kind, or one row less of one kind.

    On these tables all counts are large at the same time, unlike on the tables of `pairs_of_many`.

    Parameters
    ----------
    universe, changes, answer
        See `pairs_of_many`.
    most
        The largest number of rows that neighbours may share.
    """
    every = bytes(range(universe.kinds))
    times = most // universe.kinds
    if times <= REGULAR // universe.kinds + 1:
        return  # tables of that size are searched elsewhere
    last = irregular_sizes(lambda size: answer(every * size), times, least=REGULAR // universe.kinds)
    some = changes[:: max(len(changes) // CHANGES_OF_EVERY, 1)][:CHANGES_OF_EVERY]
    # Where the answer grows by the same amount per row, one change of the largest table is enough.
    irregular = {*last, *(one + 1 for one in last)} - {times}
    tried = [*itertools.product(sorted(irregular), some), *((times, change) for change in some[:1])]
    for size, change in tried:
        rows = every * size
        if len(rows) <= most:
            yield Pair(rows, *change)
            if len(change[1]) == 1:  # then one table has each kind equally often, and its neighbour has one row less
                yield Pair(rows.replace(change[1], b"", 1), *change)
