"""Comparisons of two matrices of distances between the values of an attribute, and of the contexts behind them.

A context is the set of attributes from which the distances are computed. It is judged by its F-score against the true
context, which may be the one found without privacy.

Source: Battaglia, Celano and Pensa 2021, sections 4.1, 4.2 and A.3, with one correction. The correlation is taken over
the upper triangle, since the zeros on both diagonals would raise it. If one of the two matrices or contexts was
computed without privacy, the result is not private.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts.errors import InputError

Matrix = NDArray[np.float64]


def pearson(one: ArrayLike, other: ArrayLike) -> float:
    """Return the correlation of the upper triangles of two symmetric matrices.

    The correlation is NaN for matrices of fewer than three rows, and 0 if one of the triangles is constant.

    Examples
    --------
    >>> pearson([[0, 1, 2], [1, 0, 3], [2, 3, 0]], [[0, 3, 5], [3, 0, 7], [5, 7, 0]])
    1.0
    """
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    _require_alike(first, second)
    if len(first) < 3:
        return math.nan  # There is at most one distance.
    above = np.triu_indices(len(first), 1)
    a, b = first[above] - first[above].mean(), second[above] - second[above].mean()
    scale = math.sqrt((a @ a) * (b @ b))
    return float(np.clip(a @ b / scale, -1, 1)) if scale > 1e-15 else 0.0


def l1(one: ArrayLike, other: ArrayLike) -> float:
    """Return the mean absolute difference of two matrices' entries, including the diagonal (section A.3)."""
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    _require_alike(first, second)
    return float(np.abs(first - second).mean())


def f_score(found: Collection[str], true: Collection[str]) -> float:
    """Return the F-score of a context, the harmonic mean of precision and recall. NaN if both contexts are empty.

    Examples
    --------
    >>> f_score(["age", "sex"], ["age", "town", "work"])
    0.4
    """
    size = len(set(found)) + len(set(true))
    return 2 * len(set(found) & set(true)) / size if size else math.nan


def chance_f_score(true: int, others: int, *, any_size: bool = False) -> float:
    """Return the expected F-score of a random context.

    Parameters
    ----------
    true
        The number of attributes of the true context.
    others
        The number of attributes from which a context is chosen.
    any_size
        Whether all non-empty contexts are equally likely. If False, only contexts of the true context's size occur, and
        all of these are equally likely.

    Raises
    ------
    InputError
        If the true context has no attributes, or more than `others`.

    Examples
    --------
    >>> chance_f_score(3, 12)
    0.25
    """
    if not 1 <= true <= others:
        raise InputError(f"the true context must have from 1 to {others} attributes, not {true}")
    if not any_size:
        return true / others
    contexts = [math.comb(others, size) for size in range(1, others + 1)]
    expected = [2 * size * true / others / (size + true) for size in range(1, others + 1)]
    return sum(n * f for n, f in zip(contexts, expected, strict=True)) / sum(contexts)


def adjust_for_chance(score: float, expected: float) -> float:
    """Return (score - expected) / (1 - expected), which is 0 at the expected score and 1 at best.

    Source: Hubert and Arabie 1985. If the expected score is 1, the result is 1.
    """
    return (score - expected) / (1 - expected) if expected < 1 else 1.0


def _require_alike(one: Matrix, other: Matrix) -> None:
    if one.ndim != 2 or one.shape != other.shape:
        raise InputError(f"two matrices of one shape are needed, not {one.shape} and {other.shape}")
