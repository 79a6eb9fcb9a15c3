"""Merge bins of numeric attributes, by public facts or by noisy counts, until few are left.

More bins need more noise, so an attribute keeps `most_bins`. Often a few of its bins hold nearly all rows, whether they
are of equal width or between cut points that somebody chose. So counts of bins are released with noise, and bins are
merged by these (`even_cells`): post-processing. Where the noise would hide even a merged bin, nothing is counted
(`counts_tell`), and as many neighbours are merged everywhere.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, Numeric

Reals = NDArray[np.float64]

FEWEST_BINS, MOST_BINS = 4, 64
ROOT_OF_ROWS = 16  # sqrt(rows epsilon) / 16 bins: more are merged
SHARE_OF_BINS, MOST_FOR_BINS = Fraction(1, 200), Fraction(1, 10)  # of epsilon: for each attribute, and for all


def most_bins(row_budget: float) -> int:
    """Return how many bins a numeric attribute keeps at most, for rows times epsilon.

    Examples
    --------
    >>> most_bins(4_000), most_bins(40_000), most_bins(10**9)
    (4, 12, 64)
    """
    return min(max(round(math.sqrt(row_budget) / ROOT_OF_ROWS), FEWEST_BINS), MOST_BINS)


def too_fine(attribute: Attribute, most: int) -> bool:
    """Whether an attribute has more bins than it may keep."""
    return isinstance(attribute, Numeric) and attribute.size - attribute.missing > most


def share_of_counts(attributes: int) -> Fraction:
    """Return the share of epsilon for the counts of `attributes` attributes."""
    return min(SHARE_OF_BINS * attributes, MOST_FOR_BINS)


def counts_tell(attributes: int, rows: float, epsilon: float) -> bool:
    """Whether the noise of a bin's count is at most the rows of a merged bin.

    Examples
    --------
    >>> counts_tell(5, 39_000, 0.1), counts_tell(5, 10_000, 0.1)
    (True, False)
    """
    if not attributes:
        return False
    deviation = math.sqrt(2) * attributes / (float(share_of_counts(attributes)) * epsilon)
    return deviation <= rows / most_bins(rows * epsilon)


def merge(attribute: Attribute, most: int) -> tuple[int, ...]:
    """Return the cell of each code, with neighbouring bins of a numeric attribute merged evenly.

    Missing values keep a cell of their own.
    """
    codes = tuple(range(attribute.size))
    if not isinstance(attribute, Numeric):
        return codes
    bins = attribute.size - attribute.missing
    if bins <= most:
        return codes
    cells = tuple(code * most // bins for code in range(bins))
    return (*cells, most) if attribute.missing else cells


def merge_by_counts(attribute: Numeric, most: int, counts: Reals, variance: float, rows: float) -> tuple[int, ...]:
    """Return the cell of each code, with bins merged so that each holds about as many rows by noisy counts.

    Parameters
    ----------
    attribute
        One that is `too_fine`.
    most
        How many cells there may be, missing's aside: 3 or more.
    counts
        A noisy count of each code, missing's last, shape (codes,).
    variance
        The variance of a count's noise.
    rows
        About how many rows there are.
    """
    bins = attribute.size - attribute.missing
    cells = even_cells(cumulative_shares(counts[:bins], variance, max(rows, 1.0)), most)
    return (*cells, max(cells) + 1) if attribute.missing else cells


def cumulative_shares(counts: Reals, variance: float, rows: float) -> Reals:
    """Return about the share of the rows that lie in the first k bins, for each k, in increasing order.

    The counts, scaled to the number of rows, add up with noise of variance k (b - k) / b times that of one, b the
    number of bins. Without them any share is as likely in the middle: a variance of 1/12, and 4 k (b - k) / b^2 times
    that elsewhere, around k / b. What is returned is the mean of the two, weighted by the inverses of their variances:
    by one weight for all k, since k (b - k) / b is in both.
    """
    b = len(counts)
    k = np.arange(1, b + 1)
    counted = np.cumsum(counts + (rows - counts.sum()) / b) / rows
    expected, known = 4 / b / 12, variance / rows**2
    weight = expected / (expected + known)
    shares = weight * counted + (1 - weight) * k / b
    return np.asarray(np.clip(np.maximum.accumulate(shares), 0, 1))


def even_cells(shares: Reals, most: int) -> tuple[int, ...]:
    """Return the cell of each bin by the place of its rows' middle, with `most` cells or fewer.

    They are two or more: the first bin's middle is 1/2 at most, the last one's at least, and with three cells or more
    both are in one cell only if both are at 1/2, which they are not if shares end with 1.

    Examples
    --------
    >>> even_cells(np.array([0.7, 0.8, 0.9, 1.0]), 3), even_cells(np.array([0.25, 0.5, 0.75, 1.0]), 3)
    ((0, 1, 1, 1), (0, 1, 1, 2))
    """
    middles = (np.concatenate([[0.0], shares[:-1]]) + shares) / 2
    cells = np.unique(np.minimum((middles * most).astype(int), most - 1), return_inverse=True)[1]
    return tuple(int(cell) for cell in cells)
