"""Noisy counts of how far the rows' numbers are from a released model's predictions, for prediction intervals.

A residual is the relative position of a number between the target's bounds, minus the predicted one. So it is from -1
to 1. It is counted in one of 2 `SIDE` bins, whose edges are 0 and powers of the square root of 2 with either sign. So a
row is in one bin, or in none if it has no number.

An exponential may be rounded differently at different positions of an array, but a row's bin must not depend on other
rows. So a score is rounded to a multiple of 2**-8, and its logistic function is looked up in a table. That moves a
prediction by less than .0005 of the range. All other operations are sums, products and quotients, whose rounding does
not depend on the position.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Self, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, InputError, Numeric
from dpframework.queries import Query, Sensitivity, share_sensitivities
from dpframework.tables import Block
from dpframework_trees.additive.design import Reals
from dpframework_trees.additive.fit_rows import relative_positions

SIDE = 13  # the number of bins on each side of 0
EDGES = np.concatenate([[0.0], 2.0 ** (-(SIDE - 1 - np.arange(SIDE)) / 2)])  # the bins' edges on one side of 0
FINE, FAR = 256, 16  # in the table of the logistic function: the steps between scores 0 and 1, and the largest score
COVERED = 0.9  # the default share of rows in a prediction interval
ALLOWED = 1.28  # noise exceeds this number of standard deviations with a probability of about 10 %


@final
@attrs.frozen
class ResidualCounts(Query):
    """The numbers of rows whose residuals lie in each of 2 `SIDE` bins, from -1 to 1.

    A released model is given at run time, as what each code of each attribute adds to a score, and the intercept.

    Attributes
    ----------
    target
        The numeric attribute that is predicted.
    given
        The attributes that predict it.
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
        """The number of bins."""
        return 2 * SIDE

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """An added row raises at most one count, by 1. A replaced row changes at most two counts, by 1 each."""
        return share_sensitivities(
            "a row's residual is in at most one bin, which follows from the row and the released model"
        )

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (2 `SIDE`,).

        Parameters
        ----------
        block
            The rows.
        inputs
            `added` has what each code adds to a score, one attribute after another, and then the intercept, shape
            (codes + 1,).
        """
        added, first = np.asarray(inputs["added"], dtype=np.float64), 0
        if (codes := sum(attribute.size for attribute in self.given)) != len(added) - 1:
            raise InputError(f"the model adds {len(added) - 1} numbers; the attributes have {codes} codes")
        scores = np.full(block.rows, added[-1])
        for attribute in self.given:
            scores += added[first : first + attribute.size][block.codes(attribute.name)]
            first += attribute.size
        values = relative_positions(self.target, block.values(self.target.name))
        off = (values - _table()[np.rint(scores.clip(-FAR, FAR) * FINE).astype(np.intp) + FAR * FINE])[
            ~np.isnan(values)
        ]
        sizes = np.minimum(np.searchsorted(EDGES[1:], np.abs(off)), SIDE - 1)
        return np.bincount(np.where(off < 0, SIDE - 1 - sizes, SIDE + sizes), minlength=2 * SIDE).astype(np.int64)


@functools.cache
def _table() -> Reals:
    """Return the logistic function of all multiples of 1 / `FINE` from -`FAR` to `FAR`."""
    return np.asarray(1 / (1 + np.exp(-np.arange(-FAR * FINE, FAR * FINE + 1) / FINE)))


@final
@attrs.frozen(eq=False)
class NoisyResiduals:
    """Noisy numbers of rows by their residual, and the prediction range of a new row's number that follows from them.

    Attributes
    ----------
    counts
        The noisy counts of `ResidualCounts`, shape (2 `SIDE`,).
    deviation
        The standard deviation of a count's noise.
    """

    counts: Reals
    deviation: float

    @property
    def rows(self) -> float:
        """The approximate number of counted rows, at least 1."""
        return max(float(self.counts.sum()), 1.0)

    def margins(self, share: float = COVERED) -> tuple[float, float]:
        """Return how far below and above a prediction the range of a number reaches, as shares of the target's range.

        Beyond each end lie at most (1 - `share`) / 2 of the rows. Counts are added up from the outside for this, and
        `ALLOWED` standard deviations of the sum's noise are added. So there is a probability of about 10 % that noise
        leaves more rows beyond an end. If rows times epsilon is small, an end is a bound of the target's range.
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
            raise InputError(f"the result has {counts.size} counts of residuals and {2 * SIDE} are needed; fit again")
        return cls(counts, float(form["deviation"]))


def _margin(from_outside: Reals, beyond: float, allowed: float) -> float:
    """Return the absolute residual beyond which at most `beyond` rows lie on one side of 0.

    `from_outside` has the counts of the side, the outermost first. `allowed` is the allowance for the noise of a count.
    """
    outside = 0.0
    for k, (inner, outer, count) in enumerate(zip(EDGES[-2::-1], EDGES[:0:-1], from_outside, strict=True), 1):
        left = beyond - outside - allowed * math.sqrt(k)
        if count > left:
            return float(outer - (outer - inner) * max(left, 0.0) / max(count, 1.0))
        outside += count
    return 0.0
