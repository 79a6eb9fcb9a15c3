"""The columns of an additive model, which follow from public facts and earlier releases.

Each score of a row is the sum of one function of each attribute, and an intercept. A function has a value for each
cell of its attribute. It has one column for each cell, which is 1 in a row of that cell and else 0. If there are only
two cells, it has a single column, which is -1 or 1. The intercept is a column of 1. The columns of an attribute are a
block, and a row has an l1 norm of 1 in each block.

With two classes a released tree may be one more attribute, whose values are the tree's leaves. It has a single column:
the leaf's log-odds by the tree, as a multiple of 1 / `GRAIN` in [-1, 1]. The score then also has a part that is not
fitted (`offsets`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from fractions import Fraction

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import InputError
from dpframework_trees.additive.block_groups import groups_by_noise, parts_of_norm
from dpframework_trees.additive.group_noise import GroupNoise

Reals = NDArray[np.float64]

MOST_COEFFICIENTS = 2_000  # the most columns times outputs, which is the number of the Hessian's rows
GRAIN = 16  # the number of steps of a leaf's value from 0 to 1. It is a power of two, so that products are exact
LOG_ODDS = 4.0  # the log-odds that a leaf's value of 1 stands for. Larger log-odds are cut off there
OFFSET = 0.5  # the share of a leaf's log-odds that is an offset and not fitted
FINE = 256  # the number of steps of a centre from 0 to 1
MOST_WHOLE = 1 << 15  # the largest number of steps of an outcome from 0 to 1, so that 16 bits hold an outcome


def _bins(given: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(cell) for cell in of_one) for of_one in given)


@attrs.frozen
class Design:
    """The columns of an additive model.

    Attributes
    ----------
    bins
        For each attribute, the cell of each of its codes. Cells are numbered from 0, and there are at least two.
    classes
        The number of classes. Two classes have one output, the log-odds of the second. More have one output each.
    rows
        The approximate number of rows, public or noisy, by which the ridge is chosen.
    most_rows
        A public bound on the number of rows.
    leaves
        The value of each leaf of a released tree, as a multiple of 1 / `GRAIN` in [-1, 1]. Empty without a tree.
    whole
        The number of units that make an outcome of 1: 1 for classes, and a power of two for numbers in [0, 1].
    centre
        An offset of every score that is not fitted, as a multiple of 1 / `FINE`. For numbers it follows from their
        released mean.
    numeric
        The positions of the numeric attributes.
    """

    bins: tuple[tuple[int, ...], ...] = attrs.field(converter=_bins)
    classes: int
    rows: float
    most_rows: int
    leaves: tuple[int, ...] = ()
    whole: int = 1
    centre: int = 0
    numeric: tuple[int, ...] = ()

    def __attrs_post_init__(self) -> None:
        """Refuse too many coefficients, and leaves, outcomes or a centre that the claim does not cover."""
        if self.leaves and (self.classes != 2 or max(map(abs, self.leaves)) > GRAIN):
            raise InputError("a tree needs a fit of two classes, and values of its leaves in [-1, 1]; leave it out")
        several = self.classes != 2 and self.whole != 1
        if several or self.whole & (self.whole - 1) or not 0 < self.whole <= MOST_WHOLE:
            raise InputError(f"whole is {self.whole}; give 1, or with one output a power of two up to {MOST_WHOLE}")
        if self.centre and self.whole == 1:
            raise InputError("a fit to classes has no centre; set centre = 0")
        if self.columns * self.outputs > MOST_COEFFICIENTS:
            raise InputError(
                f"an additive model would have {self.columns * self.outputs} coefficients, more than "
                f"{MOST_COEFFICIENTS}; leave out attributes with many values, or give them fewer values"
            )

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each attribute, then of the tree, if there is one."""
        leaves = (len(self.leaves),) if self.leaves else ()
        return (*(max(of_one) + 1 for of_one in self.bins), *leaves)

    @property
    def outputs(self) -> int:
        """The number of scores of a row, each of which has a coefficient for every column."""
        return 1 if self.classes == 2 else self.classes

    @property
    def swing(self) -> int:
        """The number c for which a row's residual has the l1 norm c (1 - p), with p the probability of its class."""
        return 1 if self.classes == 2 else 2

    @property
    def units_of_row(self) -> int:
        """A bound on what floating-point errors of a row add to the gradient, in units of 2**-53 (see `fitting`)."""
        return 28 + self.classes + 2 * len(self.leaves) + 2 * (self.whole > 1)

    @functools.cached_property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of each attribute, of the tree, if there is one, and of the intercept."""
        of_bins = (1 if size == 2 else size for size in self.sizes[: len(self.bins)])
        return (*of_bins, *(1 for _ in self.sizes[len(self.bins) :]), 1)

    @property
    def columns(self) -> int:
        """The number of columns."""
        return sum(self.widths)

    @functools.cached_property
    def starts(self) -> tuple[int, ...]:
        """The first column of each attribute, of the tree, if there is one, and of the intercept."""
        return tuple(int(n) for n in np.cumsum([0, *self.widths[:-1]]))

    @functools.cached_property
    def first_cells(self) -> tuple[int, ...]:
        """The first cell of each attribute, of the tree, if there is one, and of the intercept."""
        return tuple(int(n) for n in np.cumsum([0, *self.sizes]))

    @functools.cached_property
    def of_cells(self) -> Reals:
        """The entry of each column in a row that is in a given cell, shape (columns, cells), read-only."""
        table = np.zeros((self.columns, sum(self.sizes) + 1))
        for size, width, column, cell in zip((*self.sizes, 1), self.widths, self.starts, self.first_cells, strict=True):
            of_one = np.eye(width) if width == size else np.array([[-1.0, 1.0]])
            if self.leaves and cell == self.first_cells[len(self.bins)]:
                of_one = np.array([self.leaves]) / GRAIN
            table[column : column + width, cell : cell + size] = of_one
        table.flags.writeable = False
        return table

    @functools.cached_property
    def offsets(self) -> Reals:
        """The part of the score that is not fitted, by cell, shape (cells, outputs), read-only."""
        found = np.zeros((sum(self.sizes) + 1, self.outputs))
        if self.leaves:
            found[self.first_cells[len(self.bins)] : -1, 0] = np.array(self.leaves) * (OFFSET * LOG_ODDS / GRAIN)
        found[-1] = self.centre / FINE
        found.flags.writeable = False
        return found

    @functools.cached_property
    def grains(self) -> Reals:
        """How many times coarser each column's lattice is than the lattice of scores.

        With such coefficients, what each cell adds to a score is on the lattice of scores.
        """
        found = np.ones(self.columns)
        if self.leaves:
            found[self.starts[len(self.bins)]] = GRAIN
        return found

    def columns_of(self, block: int) -> slice:
        """Return the range of a block's columns, as a slice. A block is an attribute, the tree or the intercept."""
        return slice(self.starts[block], self.starts[block] + self.widths[block])

    def summed(self, group: Iterable[int]) -> list[int]:
        """Return the positions of those blocks of a group that a row changes by the same sum.

        They are the blocks of several columns, and the intercept's.
        """
        return [j for j in group if self.widths[j] > 1 or j == len(self.widths) - 1]

    @functools.cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of blocks whose noise has one radius (see `block_groups`). The intercept is in the first."""
        return groups_by_noise(self.widths, self.outputs)

    @functools.cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """Each group's share of the noise's norm. The shares add up to 1."""
        parts = parts_of_norm(self.widths, self.groups, self.outputs)
        return tuple(Fraction(part, sum(parts)) for part in parts)

    @functools.cached_property
    def noises(self) -> tuple[GroupNoise, ...]:
        """The noise of each group, for a scale of 1."""
        last = len(self.widths) - 1
        return tuple(
            GroupNoise.of([self.widths[j] for j in group], self.outputs, last in group) for group in self.groups
        )


def probabilities(scores: Reals) -> Reals:
    """Return the probabilities of the classes. A single output is the log-odds of the second of two classes."""
    both = np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores
    weights = np.exp(both - both.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
