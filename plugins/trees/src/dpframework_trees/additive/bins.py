"""Merge bins of numeric attributes, by public facts or by noisy counts, until few are left.

More bins need more noise, so an attribute keeps at most `most_bins`. Often a few of its bins hold nearly all rows,
whether the bins have equal widths or cut points that somebody chose. So counts of bins are released with noise, and
bins are merged by these counts (`even_cells`), which is post-processing. If the noise would hide even a merged bin,
nothing is counted (`counts_stand_out`), and about equally many neighbouring bins are merged everywhere.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, Numeric

Reals = NDArray[np.float64]

FEWEST_BINS, MOST_BINS = 4, 64
ROOT_OF_ROWS = 16  # an attribute keeps about sqrt(rows epsilon) / 16 bins
#: The share of epsilon for the counts of one attribute's bins, and the largest share for the counts of all attributes.
SHARE_OF_BINS, MOST_FOR_BINS = Fraction(1, 200), Fraction(1, 10)


def most_bins(row_budget: float) -> int:
    """Return the most bins that a numeric attribute keeps. `row_budget` is the number of rows times epsilon.

    Examples
    --------
    >>> most_bins(4_000), most_bins(40_000), most_bins(10**9)
    (4, 12, 64)
    """
    return min(max(round(math.sqrt(row_budget) / ROOT_OF_ROWS), FEWEST_BINS), MOST_BINS)


def too_fine(attribute: Attribute, most: int) -> bool:
    """Tell whether an attribute is numeric and has more bins than `most`, apart from missing values."""
    return isinstance(attribute, Numeric) and attribute.size - attribute.missing > most


def share_of_counts(attributes: int) -> Fraction:
    """Return the share of epsilon for all counts of bins, given the number of attributes whose bins are counted."""
    return min(SHARE_OF_BINS * attributes, MOST_FOR_BINS)


def counts_stand_out(attributes: int, rows: float, epsilon: float) -> bool:
    """Tell whether the standard deviation of a bin count's noise is at most the mean number of rows in a merged bin.

    Examples
    --------
    >>> counts_stand_out(5, 39_000, 0.1), counts_stand_out(5, 10_000, 0.1)
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
    """Return the cell of each code, with bins merged so that cells hold about equally many rows by noisy counts.

    Parameters
    ----------
    attribute
        An attribute that is `too_fine`.
    most
        The most cells, at least 3, without the cell of missing values.
    counts
        A noisy count of each code, with missing values last, shape (codes,).
    variance
        The variance of a count's noise.
    rows
        The approximate number of rows.
    """
    bins = attribute.size - attribute.missing
    cells = even_cells(cumulative_shares(counts[:bins], variance, max(rows, 1.0)), most)
    return (*cells, max(cells) + 1) if attribute.missing else cells


def cumulative_shares(counts: Reals, variance: float, rows: float) -> Reals:
    """Return an estimate of the share of rows in the first k bins, for k = 1 to b, the number of bins.

    The counts are shifted so that they add up to the number of rows. Then the noise of the sum of the first k counts
    has the variance k (b - k) / b times a count's variance. Before the counts are known, the share is expected around
    k / b. In the middle any share is taken to be equally likely, so the variance there is 1/12. Elsewhere it is
    4 k (b - k) / b^2 times that. The estimate is the mean of the counted and the expected share, weighted by the
    inverses of their variances. The weight is the same for all k, since k (b - k) / b is in both variances.
    """
    b = len(counts)
    k = np.arange(1, b + 1)
    counted = np.cumsum(counts + (rows - counts.sum()) / b) / rows
    expected, known = 4 / b / 12, variance / rows**2
    weight = expected / (expected + known)
    shares = weight * counted + (1 - weight) * k / b
    return np.asarray(np.clip(np.maximum.accumulate(shares), 0, 1))


def even_cells(shares: Reals, most: int) -> tuple[int, ...]:
    """Return the cell of each bin, by the middle of its range of cumulative shares, with at most `most` cells.

    There are at least two cells if `most` is 3 or more. The first bin has its middle at 1/2 or below, the last bin at
    1/2 or above. Both are in one cell only if both middles are at 1/2, which cannot be if the shares end with 1.

    Examples
    --------
    >>> even_cells(np.array([0.7, 0.8, 0.9, 1.0]), 3), even_cells(np.array([0.25, 0.5, 0.75, 1.0]), 3)
    ((0, 1, 1, 1), (0, 1, 1, 2))
    """
    middles = (np.concatenate([[0.0], shares[:-1]]) + shares) / 2
    cells = np.unique(np.minimum((middles * most).astype(int), most - 1), return_inverse=True)[1]
    return tuple(int(cell) for cell in cells)
