"""The projection of numbers on a simplex: on numbers that are not negative and have a given sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def nearest_on_simplex(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the closest numbers, in squared distance, that are not negative and add up to `total`.

    Source: Duchi, Shalev-Shwartz, Singer and Chandra 2008, figure 1.

    Parameters
    ----------
    values
        Any numbers, such as noisy counts, shape (..., n). Each row along the last axis is projected by itself.
    total
        The sum along the last axis, at least 0.

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
