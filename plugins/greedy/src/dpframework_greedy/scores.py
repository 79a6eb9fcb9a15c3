r"""The scores of redescriptions, with closed forms for their sensitivities that need no number of rows.

Initial pairs have a `Score`, or are scored in rows. Extensions have a `surplus_score.Surplus`, or with the
plain Jaccard index the same `Score` as pairs.

The supports of a redescription are the sets of rows for which its sides hold. Symbols: I is the number of rows in both
supports, A the number of rows in exactly one, and U = I + A. The score is the Jaccard index I / U (0 where I = 0) times
two logistic factors,

    q(I, A) = I / U g(I) t(U),    g(I) = 1 / (1 + exp(-k (I - s))),    t(U) = 1 / (1 + exp(h (U - m))),

with a public minimum support s, maximum support m and steepnesses k and h: Karjalainen, Galbrun and Miettinen 2022,
equation 4, with a second factor against near-tautologies. The second factor depends on U, so it also takes weight from
pairs with one side that holds nearly everywhere, such as a rare species' absence in any climate. With g = t = 1 the
score is the Jaccard index itself. Write w(I) = I g(I), which grows, and f(U) = t(U) / U, which falls.

**One added row.** A row that enters both supports moves (I, U) to (I + 1, U + 1). A row that enters exactly one support
moves it to (I, U + 1). Any other row moves nothing.

- Entering one support lowers the score by w(I) (f(U) - f(U + 1)). Since I <= U and w grows, that is at most its value
  at I = U, which is g(U) (t(U) - t(U + 1) U / (U + 1)). `fall` is the largest of these values over U.
- Entering both changes the score by w(I + 1) f(U + 1) - w(I) f(U). A decrease is smaller than the one above, since w(I
  + 1) >= w(I). An increase is at most w(I + 1) / (U + 1) - w(I) / U, since t(U + 1) <= t(U) <= 1. The derivative of
  this bound in U has the sign of r - U / (U + 1), with r = sqrt(w(I) / w(I + 1)) < 1. The fraction grows with U, so the
  bound grows until U = r / (1 - r) and falls to 0 after that. So its largest value over U >= I is at U = I, or at one
  of the two integers around r / (1 - r). `rise` is the largest of these values over I.

One row changes two candidates independently of each other, so two scores move apart by at most `rise` + `fall`. That is
the spread that a selection pays for, and it is less than twice the larger of the two.

**One replaced row.** Besides the moves above and their reverses, a row may pass from exactly one support to both: (I,
U) to (I + 1, U) with U > I. This raises the score by (w(I + 1) - w(I)) f(U), which is at most its value at U = I + 1.
`replaced` is the largest of all these changes.

All three are maxima over I or U of a few numbers each. Beyond the first few multiples of s and the surroundings of m, g
and t no longer change, and every change is smaller than the one before. Up to there, intervals of supports are bounded
together, and only those are split whose bound is above the largest change found so far. (The published search over all
I and U takes time and memory in the square of the number of rows, and needs that number.)

**Intervals from a to b.** Let dg = g(I + 1) - g(I) and dt = t(U) - t(U + 1), each of which grows up to the middle of
its curve and falls from there on. A fall is g (dt + t(U + 1) / (U + 1)), and passing from one support to both changes
the score by at most t(I + 1) (dg + g / (I + 1)). A rise is dg where r / (1 - r) <= I. Elsewhere it is at most w(I + 1)
(1 - r)^2, its value at U = r / (1 - r). There 1 - r < 1 / (I + 1), so it is also below g(I + 1) / (I + 1). Besides, 1 -
r^2, which is (1 + I dg / g(I + 1)) / (I + 1), falls with I, since g is log-concave. So each change is at most the same
expression with dg and dt where they are steepest, with factors that grow with I or U taken at b, and with factors that
fall taken at a.

**Several rows of one unit.** The score is between 0 and 1, so k rows move it by at most 1, and by at most k times what
one row does. Without the two factors, k rows lower I / U to I / (U + k) at the lowest, which is I k / (U (U + k)) less.
Since I <= U, and U >= 1 where I > 0, that is at most k / (k + 1). So a unit of many rows moves the index itself hardly
further than one row does.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import MOST_ROWS, InputError, rational_above
from dpframework.formulas import Cells, ScoreClaims, cells, score_claims
from dpframework.queries import Norm, Sensitivity
from dpframework_greedy.surplus_score import Surplus

Floats: TypeAlias = "NDArray[np.float64]"

TAIL = 40.0  # beyond this many steps of 1 / k, a logistic curve differs from its limit by less than 1e-17
SEARCH_STEPS = 40  # the steps of the golden-section search for the best steepness
PARTS = 16  # how many parts an interval of supports is split into
ROUNDING = 2.0**-48  # above all rounding errors of a score between 0 and 1, of its changes and of their bounds


@final
@attrs.frozen
class Changes:
    """How far one row can move the score.

    Attributes
    ----------
    rise, fall
        The largest increase and the largest decrease when a row is added.
    replaced
        The largest change when a row is replaced.
    """

    rise: float
    fall: float
    replaced: float

    @property
    def above(self) -> tuple[Fraction, Fraction, Fraction]:
        """Rationals just above the three changes: each is raised by `ROUNDING` and then by a small share of it."""
        rise, fall, replaced = (rational_above(change + ROUNDING) for change in (self.rise, self.fall, self.replaced))
        return rise, fall, replaced


@final
@attrs.frozen
class Score:
    """The Jaccard index, times a logistic factor for each public bound on the support.

    Attributes
    ----------
    min_support, steepness
        The number of rows in both supports at which the first factor is 1/2, and its steepness there. The number is
        None if there is no such factor.
    max_support, descent
        The number of rows in at least one support at which the second factor is 1/2, and its steepness there. The
        number is None if there is no such factor. A steepness must be above 0, since the changes are derived for that.

    Examples
    --------
    >>> round(float(Score.lowest(100, None).sensitivity.spread.add_or_remove_one), 4)
    0.0174
    """

    min_support: int | None = None
    steepness: float = 0.0
    max_support: int | None = None
    descent: float = 0.0

    def __attrs_post_init__(self) -> None:
        for bound, steepness in ((self.min_support, self.steepness), (self.max_support, self.descent)):
            if bound is not None and not 0 < steepness < math.inf:
                raise InputError(f"the steepness at a support of {bound} is {steepness}; a number above 0 is needed")

    @classmethod
    def lowest(cls, min_support: int, max_support: int | None) -> Score:
        """Return the score with the steepness that makes its sensitivity smallest, for given bounds on the support."""
        return _lowest(min_support, max_support)

    def of_both(self, supports: NDArray[Any]) -> Floats:
        """Return the factor g for numbers of rows in both supports."""
        if self.min_support is None:
            return np.ones(len(supports))
        return _logistic(self.steepness * (supports - self.min_support))

    def of_either(self, supports: NDArray[Any]) -> Floats:
        """Return the factor t for numbers of rows in at least one support."""
        if self.max_support is None:
            return np.ones(len(supports))
        return _logistic(-self.descent * (supports - self.max_support))

    def at(self, supports: tuple[int, int] | None) -> Score:
        """Return the score itself, since its bounds on the support are known beforehand."""
        return self

    def surpassing(self, index: float) -> Score:
        """Return the score itself, which does not depend on an earlier index."""
        return self

    def of_supports(self, both: NDArray[Any], either: NDArray[Any]) -> Floats:
        """Return the scores of I and U, shape (redescriptions,)."""
        return of_index(self.of_both(both) * self.of_either(either), both, either)

    @functools.cached_property
    def changes(self) -> Changes:
        """How far one row can move the score, whatever the table: the maxima over all supports.

        Intervals of supports are split until no bound is above the largest change found.
        """
        beyond = min(_turning_support(self), MOST_ROWS) + 2  # from there factors are constant, and changes only shrink
        starts, width = np.zeros(1, dtype=np.int64), 1
        while width < beyond:
            width *= PARTS
        largest = np.zeros(3)
        while len(starts):
            largest = np.maximum(largest, _changes_at(self, starts).max(axis=1))
            open_ones = (_bounds(self, starts, width) > largest[:, None]).any(axis=0)
            width //= PARTS
            starts = (starts[open_ones, None] + width * np.arange(PARTS if width else 0)).ravel()
        return Changes(*map(float, largest))

    @property
    def sensitivity(self) -> Sensitivity:
        """The linf sensitivity of the score (see the module)."""
        rise, fall, replaced = self._at_most(1)
        return Sensitivity(
            Norm.LINF,
            max(rise, fall),
            replaced,
            rise=rise,
            fall=fall,
            source="largest rise and largest fall of the score: derived in dpframework_greedy.scores",
        )

    @property
    def scored(self) -> tuple[ScoreClaims, ...]:
        """The formula of the Jaccard index. A weighted index has none, since formulas have no exponentials."""
        both, one = cells("both", "one")
        plain = self.min_support is None and self.max_support is None
        index = Cells((both, one), both / (both + one))
        return (score_claims("jaccard", index, 1, "1/2", 1, self._score),) if plain else ()

    def _score(self, counts: NDArray[np.int64], parameters: Mapping[str, Any]) -> float:
        """Return the score of a pair, from the numbers of rows in both supports and in exactly one."""
        both, one = counts[:1], counts[1:]
        return float(self.of_supports(both, both + one)[0])

    def for_rows(self, rows: int) -> tuple[Sensitivity, ...]:
        """Return the linf sensitivity for a unit of several rows, where it is less than the sum over the rows."""
        rise, fall, replaced = self._at_most(rows)
        if max(rise, fall, replaced) < 1:
            return ()
        if self.min_support is None and self.max_support is None:
            fall = min(fall, Fraction(rows, rows + 1))
        source = "a score between 0 and 1: derived in dpframework_greedy.scores"
        return (Sensitivity(Norm.LINF, max(rise, fall), replaced, rise=rise, fall=fall, source=source),)

    def _at_most(self, rows: int) -> Sequence[Fraction]:
        """Return bounds on the rise, the fall and the replacement change of several rows, from one row's bounds."""
        return [min(rows * change, Fraction(1)) for change in self.changes.above]

    @property
    def text(self) -> str:
        """Name the score."""
        bounds = [
            f"{word} {bound}"
            for word, bound in (("min", self.min_support), ("max", self.max_support))
            if bound is not None
        ]
        return "Jaccard index" + (f" weighted by support ({', '.join(bounds)})" if bounds else "")


def of_index(factors: Floats, both: NDArray[Any], either: NDArray[Any]) -> Floats:
    """Return I / U times some factors, or 0 where neither support has a row."""
    return np.asarray(factors * both / np.maximum(either, 1))


def spread_of(score: Score | Surplus, *, rows_public: bool) -> Fraction:
    """Return how far two scores can move apart: under replace-one for a public row count, else add-or-remove-one."""
    spread = score.sensitivity.spread
    found = spread.replace_one if rows_public else spread.add_or_remove_one
    assert found is not None
    return found


def _logistic(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(np.minimum(-x, 700))))


def rises_at(supports: NDArray[Any], here: Floats, above: Floats) -> Floats:
    """Return, for each I, a bound over all U on the score's increase when a row enters both supports.

    Parameters
    ----------
    supports
        The numbers I of rows in both supports.
    here, above
        g(I) and g(I + 1).
    """
    i = np.asarray(supports, dtype=np.float64)
    less, more = i * here, (i + 1) * above
    r = np.sqrt(less / np.maximum(more, np.finfo(float).tiny))
    turn = r / np.maximum(1 - r, np.finfo(float).eps)
    either = np.stack([i, np.maximum(np.floor(turn), i), np.maximum(np.ceil(turn), i)])
    return np.asarray((more / (either + 1) - less / np.maximum(either, 1)).max(axis=0))


def _changes_at(score: Score, supports: NDArray[np.int64]) -> Floats:
    """Return the largest rise, fall and change by a replaced row at some supports, shape (3, supports)."""
    i, above = supports, supports + 1
    g, t = score.of_both(i), score.of_either(i)
    more, less = score.of_both(above), score.of_either(above)
    rise = rises_at(i, g, more)
    fall = np.where(i > 0, g * (t - less * i / above), 0.0)
    passed = less * (more - g * i / above)
    return np.stack([rise, fall, np.maximum.reduce([rise, fall, passed])])


def _bounds(score: Score, starts: NDArray[np.int64], width: int) -> Floats:
    """Return upper bounds on the changes in intervals of supports, shape (3, intervals) (see the module)."""
    ends = starts + (width - 1)
    low, high = starts + 1, ends + 1

    def steepest(factor: Callable[[NDArray[Any]], Floats], middle: int | None) -> Floats:
        if middle is None:
            return np.zeros(len(starts))
        place = np.clip(middle, starts, ends)
        return np.asarray(np.abs(factor(place + 1) - factor(place)))

    grown = steepest(score.of_both, score.min_support)
    share = (1 + starts * (1 - score.of_both(starts) / score.of_both(low))) / low
    g, above, t = score.of_both(ends), score.of_both(high), score.of_either(low)
    rise = np.maximum(grown, above * np.minimum(1 / low, high * (1 - np.sqrt(1 - share)) ** 2))
    fall = g * (steepest(score.of_either, score.max_support) + t / low)
    return np.stack([rise, fall, np.maximum.reduce([rise, fall, t * (grown + g / low)])])


def _turning_support(score: Score) -> float:
    """Return the support beyond which the factors no longer change."""
    ends = [0.0]
    if score.min_support is not None:
        ends.append(score.min_support + TAIL / score.steepness)
    if score.max_support is not None:
        ends.append(score.max_support + TAIL / score.descent)
    return max(ends)


@functools.lru_cache(maxsize=64)
def _lowest(min_support: int, max_support: int | None) -> Score:
    """Return the score with the steepness that makes its sensitivity smallest. Any steepness gives a valid score.

    The second factor falls as steeply as it can without adding to `fall`. Around m a row lowers the score by at most h
    / 4 + 1 / (m + 1), and around s it lowers the score by `fall` anyway.
    """

    def spread(log_steepness: float) -> float:
        changes = Score(min_support, math.exp(log_steepness)).changes
        return changes.rise + changes.fall

    low, high = math.log(0.1 / min_support), math.log(50.0)
    ratio = (math.sqrt(5) - 1) / 2
    inner, outer = high - ratio * (high - low), low + ratio * (high - low)
    at_inner, at_outer = spread(inner), spread(outer)
    for _ in range(SEARCH_STEPS):
        if at_inner <= at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - ratio * (high - low)
            at_inner = spread(inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + ratio * (high - low)
            at_outer = spread(outer)
    steepness = math.exp((low + high) / 2)
    if max_support is None:
        return Score(min_support, steepness)
    fall = Score(min_support, steepness).changes.fall
    return Score(min_support, steepness, max_support, 4 * max(fall - 1 / (max_support + 1), fall / 4))
