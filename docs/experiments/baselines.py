"""Baselines without privacy that several experiments compare with; CART is `dpframework.lab.evaluation:cart`."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

import dpframework as dpf


@attrs.frozen
class Constant:
    """Predicts one class for every row.

    Attributes
    ----------
    label
        The class.
    classes_, shares
        All classes, and each one's share of the rows that were seen.
    """

    label: str
    classes_: tuple[str, ...]
    shares: tuple[float, ...]

    def predict(self, table: dpf.Table) -> NDArray[np.str_]:
        """Return the class of each row, as text."""
        return np.full(table.codes.shape[1], self.label)

    def predict_proba(self, table: dpf.Table) -> NDArray[np.float64]:
        """Return the shares for each row, shape (rows, classes)."""
        return np.tile(self.shares, (table.codes.shape[1], 1))


def majority(table: dpf.Table, *, seed: int, target: str) -> Constant:
    """Return what predicts the most common class: not private.

    Parameters
    ----------
    table
        The rows, read freely.
    seed
        Not used: nothing is random.
    target
        The class attribute.
    """
    labels = table.schema[target].labels
    codes = table.codes[table.schema.index(target)]
    shares = np.bincount(codes, minlength=len(labels)) / len(codes)
    return Constant(labels[int(shares.argmax())], labels, tuple(map(float, shares)))
