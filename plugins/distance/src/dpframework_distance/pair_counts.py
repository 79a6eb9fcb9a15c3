"""The query for the joint histogram of a pair of attributes that earlier releases chose."""

from __future__ import annotations

import math
import operator
from typing import Any, final

import attrs
import numpy as np

from dpframework.facts import Attribute, as_attributes
from dpframework.queries import CellCounts
from dpframework.tables import Block, Crosstab, JointCounts
from dpframework_distance.subsets import Counts, count_once, subsets


@final
@attrs.frozen
class PairCounts(CellCounts):
    """The joint histogram of two attributes that are named at run time (`pair`).

    Attributes
    ----------
    of
        The attributes from which pairs may be chosen.
    target
        The position in `of` of one attribute of the pair, if it is known beforehand.
    """

    name = "pair-counts"
    of: tuple[Attribute, ...] = attrs.field(converter=as_attributes)
    target: int | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes that may be in the pair."""
        return tuple(a.name for a in self.of)

    @property
    def text(self) -> str:
        """Name the target, if it is known beforehand."""
        if self.target is None:
            return "joint histogram of a target and an attribute of its context"
        return f"joint histogram of {self.of[self.target].name} and an attribute of its context"

    @property
    def answer_length(self) -> int:
        """The largest number of cells that the histogram of a pair may have."""
        sizes = [a.size for a in self.of]
        if self.target is None:
            return math.prod(sorted(sizes)[-2:])
        return sizes[self.target] * max(size for k, size in enumerate(sizes) if k != self.target)

    def count(self, block: Block, **inputs: Any) -> Counts:
        """Return this block's joint histogram, shape (codes of the first, codes of the second)."""
        names = [a.name for a in self.of]
        first, second = (names.index(name) for name in inputs["pair"])
        layout = subsets(tuple(a.size for a in self.of), 2, self.target)
        return layout.histogram(count_once(block, self.of, 2, self.target), first, second).astype(np.int64)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of the pair."""
        of = {a.name: a for a in self.of}
        return JointCounts([Crosstab([of[name] for name in inputs["pair"]])], operator.itemgetter(0))
