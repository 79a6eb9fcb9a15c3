"""Pearson's correlations of measures as noise grows (Fletcher and Islam 2015, section 6.2). Not private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import require_known
from dpframework.lab.evaluation.trial_record import NOT_PRIVATE


@final
@attrs.frozen(eq=False)
class Correlations:
    """Pearson's correlations of all pairs of measures. Not private.

    Attributes
    ----------
    names
        The names of the measures, in the order of the rows and columns of `matrix`.
    matrix
        The correlations in [-1, 1], shape (measures, measures). NaN if one of the two measures never changes.
    """

    names: tuple[str, ...]
    matrix: NDArray[np.float64]

    def between(self, one: str, other: str) -> float:
        """Return the correlation of two measures.

        Raises
        ------
        InputError
            If a name is not among the measures.
        """
        for name in (one, other):
            require_known(name, self.names, "measure")
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
    """Correlate measures over the same levels of noise. The first level is without noise.

    As in the paper, each measure's differences from its value without noise are correlated. So the value without noise
    is not a data point itself. For a measure that is 0 without noise, such as PSD (pattern support distance), the
    differences are its values.

    Parameters
    ----------
    measured
        For each measure, by its name, one value for each level: without noise, and at two or more levels of noise.

    Raises
    ------
    InputError
        If measures have different numbers of values, or fewer than three.

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
        raise InputError("each measure needs one value without noise, and one for each of two or more levels of noise")
    # Differences from the value without noise have the same correlations as the values at these levels.
    values = np.array(list(measured.values()), dtype=np.float64)[:, 1:]
    centred = values - values.mean(axis=1, keepdims=True)
    norms = np.sqrt((centred**2).sum(axis=1))
    norms[norms <= 1e-12 * np.abs(values).max(axis=1)] = np.nan  # the measure is constant apart from rounding
    matrix = np.clip((centred @ centred.T) / np.outer(norms, norms), -1, 1)
    return Correlations(tuple(measured), matrix)
