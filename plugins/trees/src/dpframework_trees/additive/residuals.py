"""How far rows' numbers are from a released model's predictions, counted with noise, for prediction intervals.

A residual is a place between the target's bounds less the predicted one: from -1 to 1. It is counted in one of `BINS`,
whose edges are powers of the root of 2 on either side of 0. So a row is in one bin, or in none without a number.

An exponential may be rounded in another way at another place of an array, and a row's bin must not depend on other
rows. So a score is rounded to a multiple of 2**-8 and its logistic function is looked up in a table: that moves a
prediction by less than .0005 of the range. All else is a sum, a product or a quotient, which are rounded alike
everywhere.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Self, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, InputError, Numeric
from dpframework.queries import Norm, Query, Sensitivity
from dpframework.tables import Block
from dpframework_trees.additive.design import Reals
from dpframework_trees.additive.queries import places

SIDE = 13  # bins on either side of 0
EDGES = np.concatenate([[0.0], 2.0 ** (-(SIDE - 1 - np.arange(SIDE)) / 2)])  # of their sizes, from 0 to 1
FINE, FAR = 256, 16  # steps of a score in 1, and the largest score of the table
COVERED = 0.9
ALLOWED = 1.28  # standard deviations that noise exceeds with a probability of a tenth


@final
@attrs.frozen
class ResidualCounts(Query):
    """The numbers of rows whose residuals lie in each of 2 `SIDE` bins, from -1 to 1.

    The functions of a released model are given at run time: what each code of each attribute adds, and the intercept.

    Attributes
    ----------
    target
        The number that is predicted.
    given
        The attributes that it is predicted by.
    """

    name = "residual-counts"
    target: Numeric
    given: tuple[Attribute, ...]

    @property
    def text(self) -> str:
        """Name the target."""
        return f"rows by how far '{self.target.name}' is from its prediction"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that are read."""
        return (*(attribute.name for attribute in self.given), self.target.name)

    @property
    def answer_length(self) -> int:
        """One count a bin."""
        return 2 * SIDE

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """A row adds 1 to one count or to none; one that is replaced moves two counts by 1 at most."""
        source = "a row's residual is in one bin at most, which follows from the row and the released model"
        return (
            Sensitivity(Norm.L1, 1, 2, fall=0, source=source),
            Sensitivity(Norm.SQUARED_L2, 1, 2, fall=0, source=source),
            Sensitivity(Norm.LINF, 1, 1, fall=0, source=source),
        )

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (2 `SIDE`,).

        Parameters
        ----------
        block
            The rows.
        inputs
            `added`, what each code adds to a score, one attribute after another, the intercept last, shape (codes +
            1,).
        """
        added, first = np.asarray(inputs["added"], dtype=np.float64), 0
        if (codes := sum(attribute.size for attribute in self.given)) != len(added) - 1:
            raise InputError(f"the model adds {len(added) - 1} numbers; the attributes have {codes} codes")
        scores = np.full(block.rows, added[-1])
        for attribute in self.given:
            scores += added[first : first + attribute.size][block.codes(attribute.name)]
            first += attribute.size
        values = places(self.target, block.values(self.target.name))
        off = (values - _table()[np.rint(scores.clip(-FAR, FAR) * FINE).astype(np.intp) + FAR * FINE])[
            ~np.isnan(values)
        ]
        sizes = np.minimum(np.searchsorted(EDGES[1:], np.abs(off)), SIDE - 1)
        return np.bincount(np.where(off < 0, SIDE - 1 - sizes, SIDE + sizes), minlength=2 * SIDE).astype(np.int64)


@functools.cache
def _table() -> Reals:
    """Return the logistic function of the scores from -`FAR` to `FAR`, in steps of 1 / `FINE`."""
    return np.asarray(1 / (1 + np.exp(-np.arange(-FAR * FINE, FAR * FINE + 1) / FINE)))


@final
@attrs.frozen(eq=False)
class NoisyResiduals:
    """Noisy numbers of rows by their residual, and the range of a new row's number that follows.

    Attributes
    ----------
    counts
        The counts of `ResidualCounts`, with noise, shape (2 `SIDE`,).
    deviation
        The standard deviation of a count's noise.
    """

    counts: Reals
    deviation: float

    @property
    def rows(self) -> float:
        """About how many rows are counted, at least 1."""
        return max(float(self.counts.sum()), 1.0)

    def margins(self, share: float = COVERED) -> tuple[float, float]:
        """Return how far below and above a prediction the range of a number reaches, as shares of the target's range.

        Beyond either end lie at most (1 - `share`) / 2 of the rows, by counts that are added up from outside, each sum
        with `ALLOWED` standard deviations of its noise: so by noise more rows may lie there with a probability of a
        tenth. With few rows times epsilon an end is that of the target's range.
        """
        beyond = (1 - share) / 2 * self.rows
        sides = (self.counts[:SIDE], self.counts[::-1][:SIDE])
        below, above = (_margin(side, beyond, ALLOWED * self.deviation) for side in sides)
        return below, above

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {"counts": self.counts.tolist(), "deviation": round(self.deviation, 6)}

    @classmethod
    def from_dict(cls, form: Any) -> Self:
        """Read the form that `to_dict` writes."""
        counts = np.array(form["counts"], dtype=np.float64)
        if counts.shape != (2 * SIDE,):
            raise InputError(f"residuals have {2 * SIDE} counts")
        return cls(counts, float(form["deviation"]))


def _margin(from_outside: Reals, beyond: float, allowed: float) -> float:
    """Return the size of residual beyond which lies a number of rows, of one side's counts, the outermost first."""
    outside = 0.0
    for k, (inner, outer, count) in enumerate(zip(EDGES[-2::-1], EDGES[:0:-1], from_outside, strict=True), 1):
        left = beyond - outside - allowed * math.sqrt(k)
        if count > left:
            return float(outer - (outer - inner) * max(left, 0.0) / max(count, 1.0))
        outside += count
    return 0.0
