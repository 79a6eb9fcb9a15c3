"""Residuals of marginals, in whole numbers: what each marginal adds to the marginals of fewer attributes.

Source: Xiao, He, Zhang and Kifer 2023 (arXiv 2305.08175); Barak and others 2007 for attributes of two values. Let m_A
be the counts in the marginal of a set A of attributes. The residual of A is m_A after its mean is subtracted along each
axis in turn. The marginal of S is a sum over all subsets A of S. Each A adds its residual, repeated along the axes of S
that are not in A, and divided by the sizes of these axes. So noisy residuals of a set and all its subsets give noisy
marginals that agree with each other.

Here each residual is released as a block of whole numbers, from which it can be computed:

- An axis of two values becomes one number, the second count minus the first. Along that axis, the residual is minus
  half of this number for the first value, and plus half of it for the second.
- An axis of n > 2 values is centred and multiplied by n for noise in the l2 norm: n times the count, minus the sum
  along the axis. For the other norms it is left as it is, and centred after noise is added, since centring increases
  the l1 norm of a row's change.
- The block is multiplied by a whole weight. All blocks get noise of the same size, so a residual of a larger weight has
  less noise.

Nothing is rounded. `residual_changes` derives how far a row moves all blocks.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts.attributes import Attribute, as_attributes
from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import as_whole_numbers
from dpframework.queries.base import Norm, Query, Sensitivity
from dpframework.queries.residual_changes import (
    LARGEST_WEIGHT,
    Sets,
    change_by_addition,
    change_by_replacement,
    is_bound,
)
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts

_MOST_NAMED = 4  # the most attributes that the query's text names


def _sets(given: Iterable[Iterable[int]]) -> Sets:
    return tuple(tuple(of) for of in given)


@final
@attrs.frozen
class Residuals(Query):
    """The residuals of the marginals of some sets of attributes, one block of whole numbers after another.

    Attributes
    ----------
    of
        The attributes, each with at least two values.
    sets
        The sets, each given by the increasing positions of its attributes in `of`. The empty set stands for the number
        of rows.
    weights
        The whole number by which each block is multiplied.
    norm
        The norm to which noise is scaled: `Norm.SQUARED_L2` for Gaussian noise, `Norm.L1` for Laplace noise,
        `Norm.BLOCKS` for K-norm noise, whose density depends on the largest l1 norm of a block.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean, Categorical
    >>> query = Residuals([Boolean("ill"), Categorical("town", ["A", "B", "C"])], [(0,), (1,), (0, 1)], [3, 1, 1])
    >>> query.answer_length, query.sensitivities[0].add_or_remove_one
    (7, Fraction(21, 1))
    """

    name = "residuals"
    of: tuple[Attribute, ...] = attrs.field(converter=as_attributes, validator=attrs.validators.min_len(1))
    sets: Sets = attrs.field(converter=_sets, validator=attrs.validators.min_len(1))
    weights: tuple[int, ...] = attrs.field(converter=as_whole_numbers)
    norm: Norm = attrs.field(default=Norm.SQUARED_L2, converter=Norm)

    def __attrs_post_init__(self) -> None:
        """Refuse attributes with one value, invalid sets, and weights that 64 bits may not hold."""
        if any(a.size < 2 for a in self.of):
            raise InputError("an attribute of residuals has one value only; give each at least two values")
        if len(set(self.sets)) < len(self.sets) or len(self.weights) != len(self.sets):
            raise InputError("residuals need each set once, and a weight for each")
        if any(list(one) != sorted(set(one)) or not set(one) <= set(range(len(self.of))) for one in self.sets):
            raise InputError("a set of residuals must hold positions of attributes, each once, in increasing order")
        if self.norm not in (Norm.SQUARED_L2, Norm.L1, Norm.BLOCKS):
            raise InputError(
                f"residuals have a sensitivity in squared-l2, l1 or blocks, not in {self.norm}; choose one of them"
            )
        if any(
            not 1 <= k * self.multiplier(one) <= LARGEST_WEIGHT for one, k in zip(self.sets, self.weights, strict=True)
        ):
            raise InputError(
                f"a weight of residuals times the sizes of its centred attributes must be from 1 to {LARGEST_WEIGHT:,}"
            )

    @property
    def text(self) -> str:
        """Name the attributes, or say how many there are."""
        named = ", ".join(self.attributes) if len(self.of) <= _MOST_NAMED else f"{len(self.of)} attributes"
        return f"residuals of {len(self.sets):,} marginals of {named}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of the residuals."""
        return tuple(a.name for a in self.of)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each attribute."""
        return tuple(a.size for a in self.of)

    @property
    def answer_length(self) -> int:
        """One number for each cell of each block."""
        return sum(self._lengths)

    @property
    def histograms(self) -> tuple[int, ...]:
        """The sizes of the blocks, if noise is scaled to the largest l1 norm of a block."""
        return self._lengths if self.norm is Norm.BLOCKS else ()

    @property
    def _lengths(self) -> tuple[int, ...]:
        sizes = [size if size > 2 else 1 for size in self.sizes]
        return tuple(math.prod(sizes[a] for a in one) for one in self.sets)

    def multiplier(self, one: Sequence[int]) -> int:
        """Return the number by which centring multiplies the block of a set, apart from the block's weight."""
        return math.prod(self.of[a].size for a in one if self.of[a].size > 2) if self.norm is Norm.SQUARED_L2 else 1

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """How far a row moves all blocks together, in the query's norm."""
        facts = self.sizes, self.sets, self.weights, self.norm
        added, replaced = change_by_addition(*facts), change_by_replacement(*facts)
        bounded = self.norm is not Norm.BLOCKS and is_bound(*facts[:3])
        source = "tensor products of one row's values; replaced: " + (
            "the largest change of each block, added up" if bounded else "all sets of attributes that differ were tried"
        )
        return (Sensitivity(self.norm, added, replaced, source=source),)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of each set. For the empty set it has one cell of all rows."""
        tables = [Crosstab([self.of[a] for a in one]) for one in self.sets]
        return JointCounts(tables, lambda counts: np.concatenate([part.ravel() for part in counts]))

    def answer(self, counts: NDArray[Any], **inputs: Any) -> NDArray[np.int64]:
        """Return the blocks, one after another."""
        found, at = [], 0
        for one, weight in zip(self.sets, self.weights, strict=True):
            shape = [self.of[a].size for a in one]
            part = np.asarray(counts[at : at + math.prod(shape)]).reshape(shape)
            at += math.prod(shape)
            for axis, size in enumerate(part.shape):
                if size == 2:
                    part = np.diff(part, axis=axis)
                elif self.norm is Norm.SQUARED_L2:
                    # This is the deviation from the mean, times the size to keep whole numbers.
                    part = size * part - part.sum(axis=axis, keepdims=True)
            found.append((weight * part).ravel())
        return np.concatenate(found)

    def residuals(self, answer: ArrayLike) -> list[NDArray[np.float64]]:
        """Return each set's residual, in units of rows and in the shape of the set's marginal.

        The answer may be exact or noisy.
        """
        blocks = np.split(np.asarray(answer).ravel(), np.cumsum(self._lengths)[:-1])
        residuals = []
        for one, weight, block in zip(self.sets, self.weights, blocks, strict=True):
            sizes = [self.of[a].size for a in one]
            shaped = block.reshape([size if size > 2 else 1 for size in sizes]) / (weight * self.multiplier(one))
            for axis, size in enumerate(sizes):
                if size == 2:
                    # A block holds the difference of the two counts. Each count is half of it away from their mean.
                    shaped = np.concatenate([-shaped / 2, shaped / 2], axis=axis)
                else:
                    shaped = shaped - shaped.mean(axis=axis, keepdims=True)
            residuals.append(np.asarray(shaped, dtype=np.float64))
        return residuals

    def cell_variances(self, variances: Sequence[float]) -> list[float]:
        """Return, for each set, the variance of each number of its residual, in rows squared.

        Parameters
        ----------
        variances
            For each set, the variance of the independent noise on each number of its block.
        """
        return [
            variance * _share_of_variance(tuple(self.of[a].size for a in one)) / (weight * self.multiplier(one)) ** 2
            for one, weight, variance in zip(self.sets, self.weights, variances, strict=True)
        ]


@functools.lru_cache(maxsize=4096)
def _share_of_variance(sizes: tuple[int, ...]) -> float:
    """Return the variance of a number of the residual, after centring and halving, for a block of variance 1."""
    return math.prod(0.25 if size == 2 else 1 - 1 / size for size in sizes)
