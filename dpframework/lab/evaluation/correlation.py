"""Pearson's correlations of measures as noise grows (Fletcher and Islam 2015, section 6.2). Not private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.lab.evaluation.trial import NOT_PRIVATE


@final
@attrs.frozen(eq=False)
class Correlations:
    """Pearson's correlation of each two measures. Not private.

    Attributes
    ----------
    names
        The measures: each has a row and a column of `matrix`.
    matrix
        Shape (measures, measures), in [-1, 1]; NaN where one of the two never changes.
    """

    names: tuple[str, ...]
    matrix: NDArray[np.float64]

    def between(self, one: str, other: str) -> float:
        """Return the correlation of two measures."""
        return float(self.matrix[self.names.index(one), self.names.index(other)])

    def __str__(self) -> str:
        left = max(map(len, self.names))
        widths = [max(len(name), 5) for name in self.names]
        lines = [" ".join([" " * left, *(f"{n:>{w}}" for n, w in zip(self.names, widths, strict=True))])]
        for name, row in zip(self.names, self.matrix, strict=True):
            cells = ("-".rjust(w) if np.isnan(r) else f"{r:{w}.2f}" for r, w in zip(row, widths, strict=True))
            lines.append(" ".join([f"{name:<{left}}", *cells]))
        return "\n".join([*lines, NOT_PRIVATE])

    def __repr__(self) -> str:
        return f"<correlations of {len(self.names)} measures: not private>"


def correlations(measured: Mapping[str, Sequence[float]]) -> Correlations:
    """Correlate measures over the same levels of noise, of which the first is no noise.

    As in the paper, each measure's differences from its value without noise are correlated. For a measure that is 0
    without noise, such as PSD, the differences are its values.

    Parameters
    ----------
    measured
        By name, the values of a measure at each level; two levels above none at least.

    Raises
    ------
    InputError
        If a measure has not as many values as another, or fewer than three.

    Examples
    --------
    >>> print(correlations({"psd": [0, 0.1, 0.3], "accuracy": [0.9, 0.8, 0.6]}))
                psd accuracy
    psd        1.00    -1.00
    accuracy  -1.00     1.00
    Not private: measured on the rows themselves.
    """
    lengths = {len(values) for values in measured.values()}
    if len(lengths) != 1 or min(lengths) < 3:
        raise InputError("each measure needs one value a level of noise: none, and at least two more")
    # a correlation of values is that of their differences from the value without noise
    values = np.array(list(measured.values()), dtype=np.float64)[:, 1:]
    centred = values - values.mean(axis=1, keepdims=True)
    norms = np.sqrt((centred**2).sum(axis=1))
    norms[norms <= 1e-12 * np.abs(values).max(axis=1)] = np.nan  # constant, but for rounding
    matrix = np.clip((centred @ centred.T) / np.outer(norms, norms), -1, 1)
    return Correlations(tuple(measured), matrix)
