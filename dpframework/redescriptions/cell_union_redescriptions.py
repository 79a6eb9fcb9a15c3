"""Redescriptions from a noisy table of the cells of two views, whose sides are unions of cells.

A row is in one cell of the left view and one cell of the right view. A side of a redescription is a union of cells of
its view. So all counts of a redescription are sums of the table's counts. This is post-processing of one release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.logical_descriptions_of_rows import Description
from dpframework.redescriptions.redescription import Redescription
from dpframework.results.noisy_count_with_interval import Noisy

ROUNDS = 6  # rounds in `shown_from`; each divides the error by 5 or more, since supports are >= 4 deviations
DEVIATIONS = 4  # the smallest support, in deviations of its noise
LEAST_SHARE, MOST_SHARE = 0.02, 0.7  # the smallest and the largest support, as shares of the rows
LIKELY_SHARE = (
    0.3  # few redescriptions hold for a larger share, since scores are capped at `affordable_matches_and_row_cap.CAP`
)
# Two unions count as the same if they differ in few rows: fewer than the share `SAYS_NOTHING` of all rows, plus
# `OF_NOISE` deviations of the noise.
SAYS_NOTHING, OF_NOISE = 0.02, 1.5
OVERLAP = 0.8  # if the rows of two redescriptions have at least this Jaccard index, the worse one is left out

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]


@final
@attrs.frozen
class ReportConditions:
    """The conditions on noisy counts that a reported redescription meets.

    Attributes
    ----------
    min_jaccard
        The least Jaccard index, after one deviation of its noise is taken off. The module
        `redescriptions_from_match_combinations` takes off a fixed margin instead.
    min_support
        The fewest rows for which both sides hold, by default a small share of all (`LEAST_SHARE`). In addition, their
        number must be well above its noise (see `DEVIATIONS`).
    max_support
        The most rows for which one side may hold, by default seven tenths of all rows. The bound applies to each side,
        and leaves out descriptions that hold for nearly all rows.
    """

    min_jaccard: float
    min_support: float | None = None
    max_support: float | None = None


@final
@attrs.frozen(eq=False)
class CellTable:
    """The noisy number of rows in each pair of a cell of the left view and a cell of the right view.

    Attributes
    ----------
    counts
        Shape (cells of the left view, cells of the right).
    variance
        The variance of the noise of one count.
    rows
        The number of all rows if it is public. If it is None, the sum of the counts stands for it.
    """

    counts: Floats
    variance: float
    rows: int | None

    @property
    def total(self) -> Noisy:
        """The number of all rows: the public one, or else the sum of all counts."""
        if self.rows is not None:
            return Noisy(self.rows, 0)
        return Noisy(float(self.counts.sum()), self.variance * self.counts.size)

    def redescription(
        self, sides: tuple[Description, Description], left: Masks, right: Masks, min_jaccard: float
    ) -> Redescription:
        """Return the redescription whose sides hold in these cells, with the smallest index at which it is reported."""
        inside, outside = self.counts[left], self.counts[~left]
        parts = inside[:, right], inside[:, ~right], outside[:, right]
        both, left_only, right_only = (Noisy(float(part.sum()), self.variance * part.size) for part in parts)
        floor = self.shown_from(both, left_only + right_only, min_jaccard)
        only: dict[str, Any] = {"left_only": left_only, "right_only": right_only}
        return Redescription(*sides, both=both, **only, rows=self.total, shown_from=floor)

    def shown_from(self, both: Noisy, apart: Noisy, min_jaccard: float) -> float:
        """Return the smallest Jaccard index at which a redescription with this noise is shown (see `reported`)."""
        either = max(max(both.value, 0.0) + max(apart.value, 0.0), 1.0)
        floor = min_jaccard
        for _ in range(ROUNDS):
            floor = min_jaccard + math.sqrt((1 - floor) ** 2 * both.variance + floor**2 * apart.variance) / either
        return floor

    def reported(self, left: Masks, right: Masks, wanted: ReportConditions) -> list[int]:
        """Return the positions of the wanted redescriptions that hold for different rows, the best first.

        A redescription is a pair of unions at one position. The best has the largest Jaccard index minus one deviation
        of its noise. If two redescriptions hold for nearly the same rows according to the noisy counts, only the better
        one is returned.

        Parameters
        ----------
        left, right
            Which cells are in the union of each side, shape (redescriptions, cells of the view).
        wanted
            The conditions on a redescription.
        """
        rows = self.total.value
        both = ((left @ self.counts) * right).sum(axis=1)
        supports = [left @ self.counts.sum(axis=1), right @ self.counts.sum(axis=0)]
        sizes = [mask.sum(axis=1) for mask in (left, right)]
        of_both = sizes[0] * sizes[1]
        of_apart = sizes[0] * right.shape[1] + sizes[1] * left.shape[1] - 2 * of_both
        apart = np.maximum(supports[0] + supports[1] - 2 * both, 0)
        either = np.maximum(both + apart, 1.0)
        index = both / either
        deviation = np.sqrt(self.variance * ((1 - index) ** 2 * of_both + index**2 * of_apart)) / either
        cautious = index - deviation
        least = LEAST_SHARE * rows if wanted.min_support is None else wanted.min_support
        most = MOST_SHARE * rows if wanted.max_support is None else wanted.max_support
        fits = (
            (cautious >= wanted.min_jaccard)
            & (both >= least)
            & (both > DEVIATIONS * np.sqrt(self.variance * of_both))
            & (np.maximum(*supports) <= most)
        )
        kept: list[int] = []
        for k in sorted(np.flatnonzero(fits).tolist(), key=lambda k: -cautious[k]):
            if all(self._overlap(left, right, both, k, other) < OVERLAP for other in kept):
                kept.append(k)
        return kept

    def shortest(self, unions: Masks, literals: Sequence[float], axis: int) -> list[int]:
        """Return, for each union of cells of one view, the position of the union to show in its place.

        Among the unions that hold for nearly the same rows, the one with the fewest literals is shown. Two unions hold
        for nearly the same rows if, beyond noise, they differ in a small share of the rows. A tie goes to the union
        that differs in the fewest rows.

        Parameters
        ----------
        unions
            Which cells are in each union, shape (unions, cells).
        literals
            The number of literals that each union is written with, shape (unions,).
        axis
            The view: 0 for the left one.
        """
        length = np.asarray(literals, dtype=np.float64)
        differ = (unions[:, np.newaxis] != unions).astype(np.float64)
        changed = differ @ self.counts.sum(axis=1 - axis)
        noise = np.sqrt(self.variance * self.counts.shape[1 - axis] * differ.sum(axis=2))
        near = (changed < SAYS_NOTHING * self.total.value + OF_NOISE * noise) & (length < length[:, np.newaxis])
        found = []
        for k, some in enumerate(near):
            others = np.flatnonzero(some)
            best = others[np.lexsort((changed[k, others], length[others]))]  # the first of equal ones
            found.append(int(best[0]) if len(best) else k)
        return found

    def _overlap(self, left: Masks, right: Masks, both: Floats, one: int, other: int) -> float:
        """Return the noisy Jaccard index of the rows for which two redescriptions hold."""
        shared = float(self.counts[np.ix_(left[one] & left[other], right[one] & right[other])].sum())
        return shared / max(float(both[one] + both[other]) - shared, 1.0)


def nothing_above(target: Fraction, variance: float = 0.0, rows: float = math.inf) -> str:
    """Return the sentence for a table in which no redescription is clearly above the target index.

    If noise hides the supports of most redescriptions, a lower target does not help. The sentence then says how many
    times the epsilon or the rows would be enough.

    Parameters
    ----------
    target
        The target for the Jaccard index.
    variance
        The variance of the noise of one released count.
    rows
        The number of rows, public or released.
    """
    least, likely = DEVIATIONS * math.sqrt(variance), LIKELY_SHARE * max(rows, 1.0)
    if least > likely:
        times = f"{least / likely:.2g}"
        return (
            f"Noise hides every support below {least:,.0f} rows, of about {max(rows, 1.0):,.0f} in all, so that hardly "
            f"anything can be found. Try {times} times the epsilon, or {times} times the rows."
        )
    return (
        f"None was clearly above a Jaccard index of {float(target):g} within the bounds on the supports: "
        "lower target_jaccard to look for weaker ties."
    )


def distinct(found: Sequence[Redescription]) -> list[Redescription]:
    """Return each pair of descriptions once, with the counts that have the least noise."""
    best: dict[tuple[Description, Description], Redescription] = {}
    for one in found:
        sides = one.left, one.right
        if sides not in best or best[sides].both.variance > one.both.variance:
            best[sides] = one
    return list(best.values())
