"""The projection of numbers on a simplex: on numbers that are not negative and have a given sum, also on whole ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def nearest_on_simplex(values: NDArray[np.float64], total: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the closest numbers, in squared distance, that are not negative and add up to `total`.

    Source: Duchi, Shalev-Shwartz, Singer and Chandra 2008, figure 1.

    Parameters
    ----------
    values
        Any numbers, such as noisy counts, shape (..., n). Each row along the last axis is projected by itself.
    total
        The sum along the last axis, at least 0: one for all rows, or one for each, shape (..., 1).

    Examples
    --------
    >>> nearest_on_simplex(np.array([3.0, 1.0, -2.0]), 3.0)
    array([2.5, 0.5, 0. ])
    """
    ordered = -np.sort(-values, axis=-1)
    # At position k: the amount to subtract from each number if the k + 1 largest numbers stay above 0.
    lacking = (np.cumsum(ordered, axis=-1) - total) / np.arange(1, values.shape[-1] + 1)
    kept = np.maximum((ordered > lacking).sum(axis=-1, keepdims=True), 1)
    return np.asarray(np.maximum(values - np.take_along_axis(lacking, kept - 1, axis=-1), 0.0))


def round_to_sums(values: NDArray[np.float64], sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return whole numbers with given sums: each row is rounded by largest remainders.

    Parameters
    ----------
    values
        Numbers from 0 on, shape (rows, n). The sum of each row is less than 1 away from the given one.
    sums
        The sum of each row after rounding, shape (rows,).

    Examples
    --------
    >>> round_to_sums(np.array([[2.5, 0.5, 0.0], [0.2, 0.2, 0.9]]), np.array([3, 1])).tolist()
    [[3, 0, 0], [0, 0, 1]]
    """
    found = np.floor(values).astype(np.int64)
    ranks = np.argsort(np.argsort(found - values, axis=-1, kind="stable"), axis=-1)
    return np.asarray(found + (ranks < (sums - found.sum(axis=-1))[:, None]))
