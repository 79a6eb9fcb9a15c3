"""Scores of the points of a public grid, from the number of rows between each point and a quantile."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Amount, decimal_text, exact
from dpframework.formulas.count_formula import cells, most
from dpframework.formulas.score_structures import Cells
from dpframework.formulas.sensitivity_claims_and_neighbours import ScoreClaims, score_claims
from dpframework.queries.base import Norm, Sensitivity
from dpframework.queries.scores import CandidateScores
from dpframework.queries.sums import WithinBounds
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts, WholeSteps
from dpframework.tables.encoded_row_blocks import Block

MOST_STEPS = 4096  # the most steps of a grid
FINEST = 10**6  # the largest denominator of a quantile
MOST_ROWS = 1 << 31  # scores below -MOST_ROWS are raised to it, so that all are exact up to ROUNDING
ROUNDING = Fraction(1, 2**21)  # the largest rounding error of a quotient below MOST_ROWS in 53 bits


def quantile_text(quantile: Fraction) -> str:
    """Return the name of a quantile.

    Examples
    --------
    >>> quantile_text(Fraction(1, 2)), quantile_text(Fraction(9, 10))
    ('median', 'quantile 0.9')
    """
    return "median" if quantile == Fraction(1, 2) else f"quantile {decimal_text(quantile)}"


def as_quantile(value: Amount) -> Fraction:
    """Return a quantile as the exact rational number that was written.

    Raises
    ------
    InputError
        If the quantile is not between 0 and 1, or if its denominator is above a million (six decimals).
    """
    quantile = exact(value, "a quantile")
    if not 0 < quantile < 1:
        raise InputError(f"a quantile is a number between 0 and 1, not {value}; the median is 0.5")
    if quantile.denominator > FINEST:
        raise InputError(f"the quantile {value} has more than six decimals; round it")
    return quantile


@final
@attrs.frozen
class QuantileScores(CandidateScores, WithinBounds):
    """For each point of a public grid, minus its distance, in rows, from the quantile q of an attribute.

    Each value counts as the nearest point of the grid. Of n rows with a value, let L(y) rows be below the point y, and
    U(y) rows at or below it. Then y is a quantile if L(y) <= q n <= U(y), and the score of y is
    -max(0, L(y) - q n, q n - U(y)). Some point always has the score 0, since L of a point is U of the point before.

    Adding a row raises n by 1, and L and U by 0 or 1. So L - q n and q n - U each move by at most max(q, 1 - q) up or
    down, and so does the score. Replacing a row leaves n as it is and moves L and U by at most 1, so it moves the score
    by at most 1. A row that gains or loses its value changes a score like a row that is added or removed, so by less
    than 1.

    If the query runs in each of several parts (`apart`), a replaced row may leave one part and enter another. The
    scores of the first part then move as if a row were removed, and the scores of the second part as if a row were
    added. The losses of both parts add up. So 2 max(q, 1 - q) is declared under replace-one, which is also enough for a
    row that stays in its part.

    If the bounds are whole numbers at most 4096 apart, the grid is the whole numbers between them. Otherwise it has
    4096 equal steps.

    Attributes
    ----------
    attribute, lower, upper, where
        As for `queries.sums.BoundedSum`.
    quantile
        The quantile q, exact, with at most six decimals. 1/2 is the median.
    apart
        Whether the query runs in each of several parts, between which a replaced row may move.

    Examples
    --------
    >>> from dpframework.facts.attributes import Numeric
    >>> scores = QuantileScores(Numeric("age", 17, 90, bins=8), quantile="0.5")
    >>> scores.answer_length, scores.step, scores.candidates()[:3]
    (74, 1.0, (17.0, 18.0, 19.0))
    """

    name = "quantile-scores"
    quantile: Fraction = attrs.field(default=Fraction(1, 2), converter=as_quantile, kw_only=True)
    apart: bool = attrs.field(default=False, kw_only=True)

    @property
    def text(self) -> str:
        """Name the quantile, the attribute and the bounds."""
        return f"distances in rows from the {quantile_text(self.quantile)} of {self.bounds_text}"

    @functools.cached_property
    def steps(self) -> int:
        """The number of steps of the grid. The grid has one point more than steps."""
        whole = self.lower.is_integer() and self.upper.is_integer() and self.upper - self.lower <= MOST_STEPS
        return int(self.upper - self.lower) if whole else MOST_STEPS

    @property
    def step(self) -> float:
        """The distance between adjacent points of the grid, in the attribute's own unit."""
        return (self.upper - self.lower) / self.steps

    @property
    def answer_length(self) -> int:
        """One score for each point."""
        return self.steps + 1

    @property
    def rounding(self) -> Fraction:
        """The largest rounding error of a score, which is a quotient of exact integers."""
        return ROUNDING

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivities that the docstring of the class derives."""
        moved = max(self.quantile, 1 - self.quantile)
        replaced = 2 * moved if self.apart else Fraction(1)
        return (
            Sensitivity(Norm.LINF, moved, replaced, source="a row moves a rank by 0 or 1, and the one aimed at by q"),
        )

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The score of a point, from the numbers of rows with values below it, at it and above it."""
        below, at, above = counted = cells("below", "at", "above")
        aim = self.quantile * (below + at + above)
        moved = max(self.quantile, 1 - self.quantile)
        shape = Cells(counted, -most(below - aim, aim - below - at, 0))
        return (score_claims(self.name, shape, moved, moved, 1, self._score),)

    def _score(self, counts: NDArray[np.int64], parameters: Mapping[str, Any]) -> float:
        """Return the score of a point from the numbers of rows with values below it, at it and above it."""
        return float(self.answer(counts)[1])

    def candidates(self, **inputs: Any) -> Sequence[float]:
        """Return the points of the grid."""
        step, steps = self.step, self.steps
        return (*(self.lower + step * k for k in range(steps)), self.upper)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows by their nearest point, shape (points,)."""
        nearest = np.floor((self.present(block) - self.lower) / self.step + 0.5).astype(np.int64)
        return np.bincount(nearest.clip(0, self.steps), minlength=self.answer_length)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of rows by their nearest point."""
        points = WholeSteps(self.attribute.name, self.lower, self.upper, self.lower, self.step, half_up=True)
        return JointCounts(
            [Crosstab([*self.where_columns, points])], lambda counts: counts[0].reshape(-1, points.number + 1)[0, :-1]
        )

    def answer(self, counts: NDArray[Any], **inputs: Any) -> NDArray[np.float64]:
        """Return the scores, computed as exact integers and divided by the quantile's denominator at the end."""
        part, whole = self.quantile.numerator, self.quantile.denominator
        upto = np.cumsum(counts)
        aim = part * int(upto[-1])
        short = np.maximum(whole * (upto - counts) - aim, aim - whole * upto).clip(0, whole * MOST_ROWS)
        return np.asarray(-short / whole)
