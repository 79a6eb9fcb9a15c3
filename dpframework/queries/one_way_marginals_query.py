"""The one-way marginals of a table as one answer: the histograms of several attributes."""

from __future__ import annotations

from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, as_attributes
from dpframework.formulas.sensitivity_claims import ScoreClaims
from dpframework.queries.base import Norm, Query, Sensitivity
from dpframework.queries.counts import histogram_claims, marginal_counts
from dpframework.tables.blocks import Block
from dpframework.tables.joint_counts import Crosstab, JointCounts

_MOST_NAMED = 4  # the most attributes that the query's text names


@final
@attrs.frozen
class Marginals(Query):
    """The histograms of several attributes, one after another, in the order of their codes.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean, Categorical
    >>> Marginals([Boolean("ill"), Categorical("town", ["A", "B", "C"])]).histograms
    (2, 3)
    """

    name = "marginals"
    of: tuple[Attribute, ...] = attrs.field(converter=as_attributes, validator=attrs.validators.min_len(1))

    @property
    def text(self) -> str:
        """Name the attributes, or say how many there are."""
        named = ", ".join(self.attributes) if len(self.of) <= _MOST_NAMED else f"{len(self.of)} attributes"
        return f"{'histogram' if len(self.of) == 1 else 'histograms'} of {named}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of the histograms."""
        return tuple(a.name for a in self.of)

    @property
    def answer_length(self) -> int:
        """One count for each code of each attribute, also for the code of a missing value."""
        return sum(self.histograms)

    @property
    def histograms(self) -> tuple[int, ...]:
        """The number of codes of each attribute."""
        return tuple(a.size for a in self.of)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """Return the sensitivities of m histograms that count every row once.

        Adding a row raises one count of each histogram by 1. Replacing a row lowers one count and raises another, in
        each histogram of an attribute with at least two values. So the l1 change of one histogram is 1, or at most 2
        under replace-one. If d of the m attributes have at least two values, the l1 change of all histograms together
        is m, or at most 2 d under replace-one. The same holds for the squared l2 change. A single count changes by at
        most 1.
        """
        source = "each histogram counts every row once"
        added, moved = len(self.of), 2 * sum(a.size > 1 for a in self.of)
        return (
            Sensitivity(Norm.HISTOGRAMS, 1, 2 if moved else 0, fall=0, source=source),
            Sensitivity(Norm.L1, added, moved, fall=0, source=source),
            Sensitivity(Norm.SQUARED_L2, added, moved, fall=0, source=source),
            Sensitivity(Norm.LINF, 1, 1 if moved else 0, fall=0, source=source),
        )

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The claims about one histogram.

        The l1 changes of several histograms add up, and so do the squared l2 changes.
        """
        return histogram_claims(max(self.histograms))

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (sum of sizes,)."""
        return np.concatenate([marginal_counts(block, a) for a in self.of])

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the one-way table of each attribute."""
        return JointCounts([Crosstab([a]) for a in self.of], np.concatenate)
