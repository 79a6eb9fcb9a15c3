"""The columns of an additive model, and the noise and ridge of its fit, all from public facts.

The scores of a row are the sum of one function of each attribute, and an intercept. A function is a value for each cell
of its attribute, and its columns are these: one for each cell (1 in a row of that cell, else 0), but a single one for
an attribute of two cells (-1 or 1). The intercept is a column of 1. So a row has an l1 norm of 1 in the columns of each
attribute: its block.

With two classes a released tree may be one more attribute, of its leaves. It has a single column, the leaf's log-odds
by the tree as a multiple of 1 / `GRAIN` in [-1, 1], and beside that the score has a part that is not fitted: `offsets`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from fractions import Fraction

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import InputError, float_above

Reals = NDArray[np.float64]

CURVATURE = 0.15  # of a row of two classes: p (1 - p) as it is expected
SPREAD = 0.25  # the most variance that an attribute's values are expected to have
SPREAD_OF_MANY = 100.0  # that times the square of the number of attributes, where they are many
SPREAD_OF_INTERCEPT = 1.0
MOST_COLUMNS = 2_000  # times outputs: the Hessian has so many rows
WIDER = 1.6  # than the smallest block of its group is no block
BLUR = Fraction(1, 1024)  # of epsilon, for each of the two sides that the release's noise is compared on
MULTICLASS = Fraction(1, 13)  # of epsilon, that the determinant may cost with several classes at most
HALVED = 7  # times at most, where the ridge that is asked for costs less
STEPS = 32  # bits: the noise's lattice is at most 2**-32 of one over epsilon
LATTICE = Fraction(1, 1 << 21)  # of epsilon, that the noise's lattice costs at most
GRAIN = 16  # steps of a leaf's value from 0 to 1: a power of two, so that a leaf's part of a score is exact
LOG_ODDS = 4.0  # that are 1 in a leaf's value, and beyond which they are cut off
OFFSET = 0.5  # of a leaf's log-odds is not fitted
OF_NUMBERS = 0.2  # of the variance that is expected of classes' log-odds
FINE = 256  # steps of a centre in 1
MOST_WHOLE = 1 << 15  # steps of an outcome from 0 to 1, so that 16 bits hold it
BELOW_ONE = Fraction(1) - Fraction(1, 1 << 20)
BELOW = 1 - 2.0**-30


def expected_spread(attributes: int, numeric: int = 0) -> float:
    """Return the expected variance of the values of each attribute, given their number.

    Many attributes together tell no more than few do, and each brings noise of its own. So the spread falls with their
    number, beyond 20. Of these a numeric one counts twice: many measures of the same things are often alike. The rule
    was compared with others on wide tables (`tests/benchmarks/additive_spread.py`).

    Examples
    --------
    >>> expected_spread(20), expected_spread(40), expected_spread(20, numeric=20)
    (0.25, 0.0625, 0.0625)
    """
    return min(SPREAD, SPREAD_OF_MANY / (attributes + numeric) ** 2)


def _bins(given: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(cell) for cell in of_one) for of_one in given)


@attrs.frozen
class Design:
    """The columns of an additive model.

    Attributes
    ----------
    bins
        For each attribute the cell of each of its codes, from 0: two cells or more.
    classes
        How many there are. Two have one output, the log-odds of the second; more have one output each.
    rows
        About how many rows there are: a public or noisy number, for the ridge.
    most_rows
        A public bound on the number of rows.
    leaves
        For a released tree, the value of each leaf, as a multiple of 1 / `GRAIN` in [-1, 1]; none without a
        tree.
    whole
        What the outcome 1 is counted in: 1 for classes, and a power of two for numbers in [0, 1].
    centre
        What every score has beside what is fitted, as a multiple of 1 / `FINE`: with numbers, from their released mean.
    numeric
        The positions of the attributes that are numeric.
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
        """Refuse more columns than a fit can have, and a tree that the claim does not cover."""
        if self.leaves and (self.classes != 2 or max(map(abs, self.leaves)) > GRAIN):
            raise InputError("a tree can be part of a fit of two classes only, with leaves' values in [-1, 1]")
        if self.whole != 1 and (self.classes != 2 or self.whole & (self.whole - 1) or not 1 < self.whole <= MOST_WHOLE):
            raise InputError(f"a number's steps are a power of two up to {MOST_WHOLE}, and it has one output")
        if self.centre and self.whole == 1:
            raise InputError("only a number's scores have a centre")
        if self.columns * self.outputs > MOST_COLUMNS:
            raise InputError(
                f"an additive model would have {self.columns * self.outputs} coefficients, more than {MOST_COLUMNS}; "
                "leave out attributes with many values, or give them fewer"
            )

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each attribute, then of the tree, if there is one."""
        leaves = (len(self.leaves),) if self.leaves else ()
        return (*(max(of_one) + 1 for of_one in self.bins), *leaves)

    @property
    def outputs(self) -> int:
        """How many numbers a column adds to."""
        return 1 if self.classes == 2 else self.classes

    @property
    def swing(self) -> int:
        """The l1 norm of a row's probabilities less its outcome, over outputs, as a multiple of 1 - p of its class."""
        return 1 if self.classes == 2 else 2

    @property
    def units_of_row(self) -> int:
        """By how many units of 2**-53 floats may miss a row's residual (see `fitting`)."""
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
        """The first column of each attribute, then of the intercept."""
        return tuple(int(n) for n in np.cumsum([0, *self.widths[:-1]]))

    @functools.cached_property
    def first_cells(self) -> tuple[int, ...]:
        """The first cell of each attribute, then of the intercept."""
        return tuple(int(n) for n in np.cumsum([0, *self.sizes]))

    @functools.cached_property
    def of_cells(self) -> Reals:
        """The entries of a row of each cell, shape (columns, cells), read-only."""
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
        """The fixed part of the score by cell, beside the fitted part, shape (cells, outputs); read-only."""
        found = np.zeros((sum(self.sizes) + 1, self.outputs))
        if self.leaves:
            found[self.first_cells[len(self.bins)] : -1, 0] = np.array(self.leaves) * (OFFSET * LOG_ODDS / GRAIN)
        found[-1] = self.centre / FINE
        found.flags.writeable = False
        return found

    @functools.cached_property
    def grains(self) -> Reals:
        """By how much coarser than others a column's coefficient is, so that cells' scores are on one lattice."""
        found = np.ones(self.columns)
        if self.leaves:
            found[self.starts[len(self.bins)]] = GRAIN
        return found

    @functools.cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Blocks whose noise has one radius, first the intercept's and one column's, then others of similar size."""
        narrow = [j for j, width in enumerate(self.widths) if width == 1]
        wide = sorted((j for j, width in enumerate(self.widths) if width != 1), key=lambda j: self.widths[j])
        groups: list[list[int]] = [narrow]
        for j in wide:
            of_last = groups[-1]
            if len(groups) == 1 or self.widths[j] > WIDER * self.widths[of_last[0]]:
                groups.append([j])
            else:
                of_last.append(j)
        return tuple(map(tuple, groups))

    @functools.cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """Each group's share of the noise's norm. They add up to 1."""
        return tuple(Fraction(part, sum(self._parts)) for part in self._parts)

    @functools.cached_property
    def _parts(self) -> list[int]:
        """Return whole numbers above 0 for the groups' shares of the norm, by the cost of their noise."""
        costs = []
        for group in self.groups:
            d = len(group) * self.outputs
            narrow = self.widths[group[0]] == 1 and self.outputs == 1
            wide = sum(math.sqrt(2) * min(self.widths[j] * self.outputs, 12) for j in group)
            costs.append(math.sqrt(d / 3) * (d + 1) if narrow else wide)
        return [max(round(2**16 * cost ** (2 / 3)), 1) for cost in costs]

    def blocks(self, group: int) -> list[int]:
        """Return the number of coordinates of each block of a group."""
        return [self.widths[j] * self.outputs for j in self.groups[group]]


@attrs.frozen(eq=False)
class Tuned:
    """The noise and the ridge of a design at an epsilon (see `perturbation` for the conditions on them).

    Attributes
    ----------
    design
        The columns.
    epsilon
        What the fit may lose for a row that is added or removed.
    determinant
        The part of epsilon that is set aside for the Hessian's determinant: nothing for two classes. For more, by
        default the least of `MULTICLASS` halved up to `HALVED` times at which the ridge that is asked for needs no
        more. It follows from the design and epsilon, which are public.
    """

    design: Design
    epsilon: Fraction
    determinant: Fraction = attrs.field()

    @determinant.default
    def _least_that_is_enough(self) -> Fraction:
        if self.design.classes == 2:
            return Fraction(0)
        for times in range(HALVED, 0, -1):
            tried = Tuned(self.design, self.epsilon, MULTICLASS / 2**times)
            if tried.curvature(tried.asked) <= float(tried.most_curvature) * BELOW:
                return tried.determinant
        return MULTICLASS

    @functools.cached_property
    def step(self) -> Fraction:
        """The noise's lattice, a power of two of which the gradient's noise is a multiple.

        It costs m_g / s_g for each group: at most the step times epsilon times the largest m_g, by the swing.
        """
        widest = max(self.design.widths) * self.design.outputs
        of_cost = math.floor(math.log2(self.design.swing * LATTICE / widest))
        return Fraction(2) ** min(-STEPS - math.floor(math.log2(self.epsilon)), of_cost)

    @functools.cached_property
    def of_gradient(self) -> Fraction:
        """The part of epsilon for the gradient's noise, without blur, determinant and lattice."""
        return self.epsilon * (1 - 2 * BLUR - self.determinant) * BELOW_ONE

    @functools.cached_property
    def scales(self) -> tuple[float, ...]:
        """The scale of each group's noise, in steps of the lattice."""
        swing = self.design.swing
        return tuple(float_above(swing / (self.step * self.of_gradient * share)) for share in self.design.shares)

    @property
    def largest_noise(self) -> float:
        """About the largest mean of a group's radius, in steps of the lattice."""
        groups = range(len(self.design.groups))
        return max((sum(self.design.blocks(g)) + 1) * self.scales[g] for g in groups)

    @functools.cached_property
    def most_curvature(self) -> Fraction:
        """The bound on `max over rows x of x' R**-1 x` (see `perturbation`)."""
        classes = self.design.classes
        if classes == 2:
            return self.spent_by_gradient
        half = self.spent_by_gradient * (classes - 1) / 2
        return min(half, self.determinant * self.epsilon * (classes - 1) / (classes - 2))

    @functools.cached_property
    def spent_by_gradient(self) -> Fraction:
        """The exact cost of the gradient's noise at r = 1, without its lattice."""
        return sum((Fraction(self.design.swing) / (self.step * Fraction(s)) for s in self.scales), Fraction(0))

    @functools.cached_property
    def claimed(self) -> Fraction:
        """The exact loss for a row that is added or removed, at most epsilon."""
        widest = (max(self.design.blocks(g)) for g in range(len(self.design.groups)))
        lattice = sum((m / Fraction(s) for m, s in zip(widest, self.scales, strict=True)), Fraction(0))
        classes = self.design.classes
        determinant = self.most_curvature * Fraction(classes - 2, classes - 1)
        return self.spent_by_gradient + lattice + determinant + 2 * self.epsilon * BLUR

    @functools.cached_property
    def deviations(self) -> Reals:
        """About the standard deviation of the noise of each column's gradient, shape (columns,)."""
        found = np.empty(self.design.columns)
        for g, group in enumerate(self.design.groups):
            blocks = self.design.blocks(g)
            d, unit = sum(blocks), self.scales[g] * float(self.step)
            for j, m in zip(group, blocks, strict=True):
                start = self.design.starts[j]
                # the mean square of a coordinate of an l1 ball of radius t is 2 t**2 / ((m + 1) (m + 2))
                found[start : start + self.design.widths[j]] = unit * math.sqrt(
                    (d + 1) * (d + 2) * 2 / ((m + 1) * (m + 2))
                )
        return found

    @property
    def curvatures(self) -> Reals:
        """The expected second derivative by each column's coefficient, its ridge aside, shape (columns,)."""
        classes, rows = self.design.classes, max(self.design.rows, 1.0)
        of_row = 4 * CURVATURE * (classes - 1) / classes**2
        return np.array([of_row * rows / width for width in self.design.widths for _ in range(width)])

    @property
    def asked(self) -> Reals:
        """The ridge that noise and expected spread ask for, shape (columns,)."""
        spread = np.full(self.design.columns, expected_spread(len(self.design.widths) - 1, len(self.design.numeric)))
        spread[-1] = SPREAD_OF_INTERCEPT
        if self.design.whole > 1:
            spread *= OF_NUMBERS
        return np.asarray(self.deviations**2 / (self.curvatures * spread))

    @functools.cached_property
    def ridge(self) -> Reals:
        """The ridge of each column, shape (columns,), at least a floor."""
        asked, most = self.asked, float(self.most_curvature) * BELOW
        low, high = 0.0, len(self.design.widths) / most
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.curvature(asked + middle) <= most else (middle, high)
        return np.asarray(asked + high)

    def curvature(self, ridge: Reals) -> float:
        """Return the largest x' R**-1 x of any row, for a ridge R."""
        return float(np.maximum.reduceat(1 / ridge, self.design.starts).sum())

    @functools.cached_property
    def gradient_error(self) -> float:
        """How large the gradient may be where the fit ends, in the norm of R**-1 (see `fitting`).

        Any number above that of the noise's lattice would do.
        """
        lattice = math.sqrt(self.design.columns * self.design.outputs) * float(self.step)
        return (lattice + self.within_reach) / math.sqrt(self.ridge.min())

    @property
    def within_reach(self) -> float:
        """How small floats make the rows' gradient, for up to twice as many as are expected, unless scores are large.

        Where they do not, `refinement` does.
        """
        design = self.design
        coarse = float(design.grains.sum()) - design.columns + len(design.widths)
        of_row = max(2.0**-45, design.units_of_row * 2.0**-52, coarse * 2.0**-47)
        return 2 * max(design.rows, 1024.0) * of_row * math.sqrt(design.outputs * len(design.widths))

    @functools.cached_property
    def distance(self) -> float:
        """The largest l1 distance of the computed minimiser from the exact one."""
        return float(np.sqrt(self.design.outputs * (1 / self.ridge).sum())) * self.gradient_error * (1 + 2.0**-30)

    @functools.cached_property
    def release_step(self) -> float:
        """The lattice of the release, a power of two."""
        return 2.0 ** math.floor(math.log2(self.distance / (self.design.columns * self.design.outputs)))

    @functools.cached_property
    def release_scale(self) -> float:
        """The scale of the release's noise, in steps of its lattice."""
        moved = math.ceil(self.distance / self.release_step) + self.design.columns * self.design.outputs
        return float_above(moved / (self.epsilon * BLUR))


def probabilities(scores: Reals) -> Reals:
    """Return probabilities of the classes. A single output is the log-odds of the second of two."""
    both = np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores
    weights = np.exp(both - both.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
