"""Numbers at which a row changes a query's answer most, or at which the query fails.

A query that reads raw numbers may be wrong at a few of them only: at an edge of its own bins, which is no cut of the
schema, at a peak of a weight, or on the one day in four years that its calendar lacks.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Numeric
from dpframework.queries import PiecewiseScores, Query
from dpframework.verify.queries.answer_changes import change_or_failure
from dpframework.verify.tables.neighbours import MOST_KINDS, Rows, Universe

SCANNED = 3  # for how many numeric attributes numbers are looked for
SCANS = 3  # how many scans are made for an attribute, each later one between two numbers of the scan before
POINTS = 33  # how many numbers are tried first
EDGES = 250  # how many numbers that may be edges of a query's own bins are tried
MOST_BINS = 200  # how many bins of its own a query may have
MOST_JUMPS = 4  # how many jumps of an answer are located
HALVINGS = 80  # the most halvings of an interval around a jump; most numbers of 64 bits need about 55
ODD_HALVINGS = 3  # after how many halvings without a jump the answer counts as smooth
WHOLE = 100_000  # the most whole numbers that are tried, such as the days of a century or the seconds of a day
TABLES = 400  # the most tables that these are divided among
FEWEST = 16  # the fewest whole numbers that a table must have room for
ROUNDING = 1e-9  # how far a change by many rows may exceed the bound on it, relative and absolute, since it is rounded

Answer: TypeAlias = Callable[[Universe, Rows], Any]


def telling_numbers(
    query: Query, universe: Universe, answer: Answer, least: int, constants: Sequence[float]
) -> dict[str, list[float]]:
    """Return a few numbers of each numeric attribute at which a row changes an answer most, or the query fails.

    The first numbers that are tried lie at equal distances and in the middles of bins. Later ones lie between the best
    number and those beside it. So the search also finds peaks that are neither at a cut nor at a number of the code.

    If a query reads an attribute's raw values, two more kinds of numbers are tried. These are edges of bins that
    numbers of its code may define, and all whole numbers within the bounds if these are at most `WHOLE`.

    Parameters
    ----------
    query
        The query.
    universe
        Kinds of rows of the query's schema.
    answer
        A function of a universe and a table of its rows, which returns the coordinates of the query's answer.
    least
        The least number of rows that two neighbours share.
    constants
        The numbers of the query's code.
    """
    found: dict[str, list[float]] = {own.name: [] for own in universe.schema.columns if isinstance(own, Numeric)}
    read = [name for name in found if not query.attributes or name in query.attributes]
    for name in read[:SCANNED]:
        numeric = universe.schema.columns[universe.schema.column_names.index(name)]
        assert isinstance(numeric, Numeric)
        scan = _Scan(numeric, universe, answer, least)
        try:
            numbers = scan.peaks()
            if scan.reads_values:
                numbers += [*scan.best_edges(constants), *scan.best_jump(), *scan.odd_whole_numbers()]
        except Exception:  # the query fails on the fewest rows, too, which the search reports
            continue
        found[name] = list(dict.fromkeys(numbers))
    return found


@final
@attrs.define(eq=False)
class _Interval:
    """An interval between two numbers with different answers, which is halved until one jump lies between its ends.

    `odd` says how many halvings in a row found an answer that neither end has.
    """

    low: float
    high: float
    at_low: Any
    at_high: Any
    odd: int = 0

    @property
    def middle(self) -> float:
        """The number in the middle."""
        return self.low + (self.high - self.low) / 2

    @property
    def open(self) -> bool:
        """Whether more than one number lies between the ends, and the answer does not look smooth."""
        return self.odd < ODD_HALVINGS and np.nextafter(np.nextafter(self.low, np.inf), np.inf) < self.high

    def halve(self, answer: Any) -> None:
        """Go on with one half, given the answer at the middle."""
        if np.array_equal(answer, self.at_low):
            self.low, self.odd = self.middle, 0
        elif np.array_equal(answer, self.at_high):
            self.high, self.odd = self.middle, 0
        else:
            self.high, self.at_high, self.odd = self.middle, answer, self.odd + 1


@final
class _Scan:
    """Tables whose rows differ in one numeric attribute, and the changes of an answer by one such row."""

    def __init__(self, numeric: Numeric, universe: Universe, answer: Answer, least: int) -> None:
        self._numeric, self._universe, self._answer, self._least = numeric, universe, answer, least
        self.reads_values = False
        self._largest = 0.0  # the largest finite change by one row so far

    def peaks(self) -> list[float]:
        """Return the number at which a row changes the answer most, found in several scans; none if only bins matter.

        The first scan tries numbers at equal distances and the middles of bins. Each later scan tries numbers between
        the two beside the best number.
        """
        numeric, best = self._numeric, list[float]()
        middles = [(one + other) / 2 for one, other in itertools.pairwise(numeric.edges)][:POINTS]
        points = np.unique([*np.linspace(numeric.lower, numeric.upper, POINTS), *middles])
        for _ in range(SCANS):
            changes = self._changes(points)
            if len(np.unique(changes)) < len(numeric.edges) and np.isfinite(changes).all():
                break  # no more distinct changes than bins: the query seems to read codes only
            k = int(np.argmax(changes))
            best = [float(points[k])]
            if not math.isfinite(changes[k]):
                break
            beside = points[max(k - 1, 0)], points[min(k + 1, len(points) - 1)]
            points = np.unique(np.append(np.linspace(*beside, POINTS // 2), points[k]))
        return best

    def best_edges(self, constants: Sequence[float]) -> list[float]:
        """Return the edge of bins at which a row changes the answer most. Numbers of the code may define the bins.

        A number may be an edge itself, the width of bins, or how many bins there are. Nothing is returned if no edge
        changes the answer more than the numbers that were scanned.
        """
        lower, upper = self._numeric.lower, self._numeric.upper
        edges = [number for number in constants if lower <= number <= upper]
        for number in constants:
            if 2 * number <= upper - lower <= MOST_BINS * number:
                first = math.ceil(lower / number) * number
                edges += [*np.arange(lower, upper, number), *np.arange(first, upper, number)]
            if 2 <= number <= MOST_BINS and number == int(number):
                edges += [*np.linspace(lower, upper, int(number)), *np.linspace(lower, upper, int(number) + 1)]
        return self._best_of(list(dict.fromkeys(map(float, edges)))[:EDGES])

    def best_jump(self) -> list[float]:
        """Return the number at which an answer jumps and a row changes it most, such as an edge that two bins share.

        Edges may be computed, and so be no constants of the code. Each jump is located by bisection, down to
        two numbers with at most one number of 64 bits between them. Nothing is returned if the answer is smooth, or if
        no row at a jump changes it more than the numbers that were tried before.
        """
        points = np.linspace(self._numeric.lower, self._numeric.upper, POINTS)
        answers = self._answers(points)
        if any(isinstance(answer, PiecewiseScores) for answer in answers):
            return []
        jumps = [k for k in range(len(points) - 1) if not np.array_equal(answers[k], answers[k + 1])]
        chosen = jumps[:: max(len(jumps) // MOST_JUMPS, 1)][:MOST_JUMPS]
        ends = [_Interval(points[k], points[k + 1], answers[k], answers[k + 1]) for k in chosen]
        for _ in range(HALVINGS):
            left = [own for own in ends if own.open]
            if not left:
                break
            for own, answer in zip(left, self._answers(np.array([own.middle for own in left])), strict=True):
                own.halve(answer)
        sharp = [own for own in ends if own.odd < ODD_HALVINGS]
        return self._best_of([x for own in sharp for x in (own.low, float(np.nextafter(own.low, np.inf)), own.high)])

    def odd_whole_numbers(self) -> list[float]:
        """Return a whole number at which the query fails, or at which a row changes the answer more than elsewhere.

        Many rows, each with another number, are added at once. If the answer adds up over rows, it changes by at most
        the number of rows times the largest change by one row. If it changes by more, or if the query fails, then the
        same happens with one half of the rows. So bisection finds the number.
        """
        first, last = math.ceil(self._numeric.lower), math.floor(self._numeric.upper)
        room = MOST_KINDS
        if self._universe.schema.row_bound is not None:
            room = min(room, self._universe.schema.row_bound - self._least)
        if last - first >= min(WHOLE, TABLES * room) or room < FEWEST:
            return []
        for start in range(first, last + 1, room):
            numbers = np.arange(start, min(start + room, last + 1), dtype=np.float64)
            if not self._is_odd(numbers):
                continue
            while len(numbers) > 1:
                halves = np.array_split(numbers, 2)
                odd = next((half for half in halves if self._is_odd(half)), None)
                if odd is None:
                    break
                numbers = odd
            else:
                return [float(numbers[0])]
        return []

    def _is_odd(self, numbers: NDArray[np.float64]) -> bool:
        """Tell whether rows with some numbers make the query fail, or change its answer too much for so many rows."""
        among = self._universe.with_numbers(self._numeric.name, numbers)
        before = self._answer(among, bytes(self._least))
        change = change_or_failure(before, lambda: self._answer(among, bytes(self._least) + bytes(range(len(numbers)))))
        return not change <= len(numbers) * self._largest * (1 + ROUNDING) + ROUNDING

    def _best_of(self, points: Sequence[float]) -> list[float]:
        """Return the number at which a row changes the answer most; none if an earlier number changed it as much."""
        before = self._largest
        changes = self._changes(np.array(points))
        return [float(points[int(np.argmax(changes))])] if len(points) and changes.max() > before else []

    def _answers(self, points: NDArray[np.float64]) -> list[Any]:
        """Return, for each number, the answer on a table with one more row that holds this number."""
        among = self._universe.with_numbers(self._numeric.name, np.append(self._numeric.lower, points))
        return [self._answer(among, bytes(self._least) + bytes((k + 1,))) for k in range(len(points))]

    def _changes(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far a row with each of some numbers changes the answer; infinite where the query fails."""
        changes = list[float]()
        for start in range(0, len(points), MOST_KINDS):
            among = self._universe.with_numbers(self._numeric.name, points[start : start + MOST_KINDS])
            before = self._answer(among, bytes(self._least))
            for k in range(among.kinds):
                asked = functools.partial(self._answer, among, bytes(self._least) + bytes((k,)))
                changes.append(change_or_failure(before, asked))
            self.reads_values |= self._numeric.name in among.values_read
        self._largest = max([self._largest, *(change for change in changes if math.isfinite(change))])
        return np.array(changes)
