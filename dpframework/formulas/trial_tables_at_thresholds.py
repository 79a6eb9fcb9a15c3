"""Tables on which a formula may change more than on the smallest tables.

A comparison in a formula, such as `at_least(n, 20)` or `most(n - 15, 0)`, may have one outcome on all small tables. So
tables are tried on both sides of each count at which the outcome changes. A formula of parts may also change more where
a part has more classes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpframework.formulas.count_formula import AGGREGATES, Formula, Operation, as_formula, n, rows_of_part
from dpframework.formulas.evaluation import value_of
from dpframework.formulas.score_structures import Cells, Parts, Scored

LARGEST_COUNT = 1 << 31  # the largest count at which a comparison is tried
OTHERS = (0, 1, 30, 1000)  # while the count of one cell or class grows: the counts of all others
MOST_TABLES = 4096  # the most combinations of counts that are all tried; if there are more, some are drawn
MANY_CLASSES = 12  # the number of classes of tables with many classes
FEW_CLASSES = 3  # the number of classes of all other tables
SEED = 11

_GRID = np.unique(np.concatenate([np.arange(64), np.geomspace(64, LARGEST_COUNT, 200)]).astype(np.int64))


def thresholds(outcome: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> list[int]:
    """Return counts at which a comparison has another outcome than at the count before.

    Outcomes are compared on a grid, and each change is then found by bisection.

    Examples
    --------
    >>> thresholds(lambda counts: counts >= 777)
    [777]
    """
    found, known = [], outcome(_GRID)
    for k in np.flatnonzero(known[1:] != known[:-1]).tolist():
        low, high = int(_GRID[k]), int(_GRID[k + 1])
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if outcome(np.array([middle]))[0] == known[k] else (low, middle)
        found.append(high)
    return found


def tables_at_thresholds(shape: Cells) -> NDArray[np.int64]:
    """Return tables on both sides of each count at which a comparison changes, shape (tables, cells)."""
    near = [_near_thresholds(shape, cell, len(shape.cells)) for cell in range(len(shape.cells))]
    return _product(near)


def tables_of_parts(shape: Parts) -> list[NDArray[np.int64]]:
    """Return two arrays of tables of one part, shape (tables, classes): with few classes, and with many.

    In some of these tables, a class's count is near a count at which a comparison changes.
    """
    near = _near_thresholds(shape, 0, FEW_CLASSES)
    few = _product([near, [*near, 30, 1000], [0, 1, 5]])
    small = [table for rows in range(MANY_CLASSES) for table in _partitions(rows, rows)]
    many = np.zeros((len(small) + len(near), MANY_CLASSES), dtype=np.int64)
    for row, table in zip(many, small, strict=False):
        row[: len(table)] = table
    many[len(small) :] = 3
    many[len(small) :, 0] = near
    return [few, many]


def _near_thresholds(shape: Scored, place: int, number: int) -> list[int]:
    """Return 0, 1, and counts of one cell or class near those at which a comparison changes."""
    near = {0, 1}
    for one, other in _comparisons(shape):
        for others in OTHERS:
            for count in thresholds(functools.partial(_is_at_least, shape, one, other, place, number, others)):
                near.update(range(max(count - 2, 0), count + 2))
    return sorted(near)


def _comparisons(shape: Scored) -> Iterator[tuple[Formula, Formula]]:
    """Yield the two sides of each comparison in a formula.

    Differences, denominators, and the operands of roots and of largest values are compared with 0. A formula may change
    most where a difference is 0, as 1 / (1 + (n - 5000)^2) does.
    """
    for found in dict.fromkeys(shape.body.walk()):
        match found.operation:
            case Operation.ADD if _is_difference(found):
                yield found, as_formula(0)
            case Operation.LEAST | Operation.MOST | Operation.AT_LEAST:
                yield found.parts[0], found.parts[1]
            case Operation.DIVIDE:
                yield found.parts[1], as_formula(0)
            case Operation.LARGEST | Operation.ROOT:
                yield found.parts[0], as_formula(0)


def _is_difference(formula: Formula) -> bool:
    """Tell whether a sum has a term with a negative factor, so that it may have either sign."""
    numbers = (one.constant for one in formula.walk())
    return any(number is not None and number < 0 for number in numbers)


def _is_at_least(
    shape: Scored, one: Formula, other: Formula, place: int, number: int, others: int, counts: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell, for each of `counts`, whether `one` is at least `other` on the table with this count at `place`.

    All other cells or classes of the table have `others` rows.
    """
    table = np.full((len(counts), number), others, dtype=np.float64)
    table[:, place] = counts
    low, high = (_values(shape, side, table, place) for side in (other, one))
    return np.asarray(np.broadcast_to(high >= low, len(table)))


def _values(shape: Scored, formula: Formula, table: NDArray[np.float64], place: int) -> NDArray[np.float64]:
    """Return the values of a formula for each table. If it reads a class's count, this is the count at `place`."""
    if isinstance(shape, Cells):
        return np.asarray(value_of(formula, {cell: table[:, k] for k, cell in enumerate(shape.cells)}))
    counts = table[:, place] if _reads_class(formula) else table
    return np.asarray(value_of(formula, {n: counts, rows_of_part: table.sum(axis=1)}))


def _reads_class(formula: Formula) -> bool:
    """Tell whether a formula reads the count of one class, apart from its sums and largest values over classes."""
    return formula == n or (formula.operation not in AGGREGATES and any(map(_reads_class, formula.parts)))


def _partitions(rows: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the class counts of parts of `rows` rows. Counts are at most `most`, and the largest stands first."""
    if not rows:
        yield ()
    for first in range(min(rows, most), 0, -1):
        for others in _partitions(rows - first, first):
            yield (first, *others)


def _product(choices: list[list[int]]) -> NDArray[np.int64]:
    """Return all tables with one of the given counts in each cell, or `MOST_TABLES` of them if there are more."""
    number = int(np.prod([len(one) for one in choices]))
    if number <= MOST_TABLES:
        return np.array(list(itertools.product(*choices)), dtype=np.int64).reshape(-1, len(choices))
    random = np.random.default_rng(SEED)
    return np.column_stack([random.choice(one, MOST_TABLES) for one in choices]).astype(np.int64)
