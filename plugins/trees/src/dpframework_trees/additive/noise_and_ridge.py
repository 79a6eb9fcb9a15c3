"""The noise and the ridge of an additive model's fit, which follow from its design and its epsilon."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from fractions import Fraction

import attrs
import numpy as np

from dpframework.facts import float_above
from dpframework_trees.additive.design import Design, Reals
from dpframework_trees.additive.group_noise import GroupNoise

CURVATURE = 0.15  # the expected curvature p (1 - p) of a row of two classes
SPREAD = 0.25  # the largest expected variance of an attribute's values
SPREAD_OF_MANY = 100.0  # with many attributes, the expected variance times the square of their number
SPREAD_OF_INTERCEPT = 1.0  # the expected variance of the intercept
BLUR = Fraction(1, 1024)  # the share of epsilon that the release's noise costs, once for each neighbouring table
MULTICLASS = Fraction(1, 7)  # the largest share of epsilon for the determinant, with several classes
HALVED = 8  # how often `MULTICLASS` may be halved, if the ridge stays near `suitable_ridge`
# A ridge is near `suitable_ridge` up to this multiple of it. A larger one would cost more accuracy than the noise does.
NEAR = 4.0
BEYOND = 512  # a group's radius practically never exceeds this multiple of its mean
STEPS = 32  # the step of the noise's lattice is at most 2**-32 divided by the largest power of two up to epsilon
LATTICE = Fraction(1, 1 << 20)  # the largest share of epsilon that the noise's lattice costs
OF_NUMBERS = 0.2  # the expected variance for a number as the target, relative to that for classes
BELOW_ONE = Fraction(1) - Fraction(1, 1 << 20)  # the share of epsilon that is left after `LATTICE`
BELOW = 1 - 2.0**-30  # a factor that keeps floats below an exact bound


def expected_spread(attributes: int, numeric: int = 0) -> float:
    """Return the expected variance of the values of each attribute, given the number of attributes.

    Many attributes together say little more than a few do, and each brings noise of its own. So beyond 20 attributes
    the spread falls with their number. A numeric attribute counts twice, since many measures of the same things are
    often alike. The rule was compared with others on wide tables (`tests/benchmarks/additive_spread.py`).

    Parameters
    ----------
    attributes
        The number of attributes.
    numeric
        How many of them are numeric.

    Examples
    --------
    >>> expected_spread(20), expected_spread(40), expected_spread(20, numeric=20)
    (0.25, 0.0625, 0.0625)
    """
    return min(SPREAD, SPREAD_OF_MANY / (attributes + numeric) ** 2)


@attrs.frozen(eq=False)
class NoiseAndRidge:
    """The noise and the ridge of a design at an epsilon (see `perturbation` for the conditions on them).

    Attributes
    ----------
    design
        The columns.
    epsilon
        The epsilon of the fit for a row that is added or removed.
    determinant
        The share of epsilon that is set aside for the Hessian's determinant. For two classes it is 0. For more classes,
        `MULTICLASS` divided by 2, 4, ..., 2**`HALVED` are tried. By default the share is the smallest of these for
        which a ridge of `NEAR` times `suitable_ridge` is large enough. If there is none, the share is `MULTICLASS`. It
        follows from the design and epsilon, which are public.
    """

    design: Design
    epsilon: Fraction
    determinant: Fraction = attrs.field()

    @determinant.default
    def _least_that_is_enough(self) -> Fraction:
        if self.design.classes == 2:
            return Fraction(0)
        for times in range(HALVED, 0, -1):
            tried = NoiseAndRidge(self.design, self.epsilon, MULTICLASS / 2**times)
            if tried.curvature(NEAR * tried.suitable_ridge) <= float(tried.most_curvature) * BELOW:
                return tried.determinant
        return MULTICLASS

    @functools.cached_property
    def step(self) -> Fraction:
        """The step of the noise's lattice, a power of two.

        The lattice costs m_g / s_g for each group g, with m_g its `GroupNoise.rounded` and s_g its scale (see
        `perturbation`). Over all groups, that is at most the step times epsilon times the largest m_g, divided by
        `Design.swing`.
        """
        widest = max(of_group.rounded for of_group in self.design.noises)
        of_cost = math.floor(math.log2(self.design.swing * LATTICE / widest))
        return Fraction(2) ** min(-STEPS - math.floor(math.log2(self.epsilon)), of_cost)

    @functools.cached_property
    def of_gradient(self) -> Fraction:
        """The epsilon of the gradient's noise, without the shares of blur, determinant and lattice."""
        return self.epsilon * (1 - 2 * BLUR - self.determinant) * BELOW_ONE

    @functools.cached_property
    def scales(self) -> tuple[float, ...]:
        """The scale of each group's noise, in steps of the lattice."""
        swing = self.design.swing
        return tuple(float_above(swing / (self.step * self.of_gradient * share)) for share in self.design.shares)

    @property
    def largest_noise(self) -> float:
        """The approximate largest mean of a group's radius, in steps of the lattice."""
        of_groups = zip(self.design.noises, self.scales, strict=True)
        return max((of_group.dimension_of_radius + 1) * scale for of_group, scale in of_groups)

    @functools.cached_property
    def most_curvature(self) -> Fraction:
        """The bound on the largest x' R**-1 x of any row's columns x, with R the ridge (see `perturbation`)."""
        classes = self.design.classes
        if classes == 2:
            return self.spent_by_gradient
        half = self.spent_by_gradient * (classes - 1) / 2
        return min(half, self.determinant * self.epsilon * (classes - 1) / (classes - 2))

    @functools.cached_property
    def spent_by_gradient(self) -> Fraction:
        """The exact epsilon of the gradient's noise, e in `perturbation`, without the cost of the noise's lattice."""
        return sum((Fraction(self.design.swing) / (self.step * Fraction(s)) for s in self.scales), Fraction(0))

    @functools.cached_property
    def claimed(self) -> Fraction:
        """The exact loss for a row that is added or removed, at most epsilon."""
        of_groups = zip(self.design.noises, self.scales, strict=True)
        lattice = sum((of_group.rounded / Fraction(s) for of_group, s in of_groups), Fraction(0))
        classes = self.design.classes
        determinant = self.most_curvature * Fraction(classes - 2, classes - 1)
        return self.spent_by_gradient + lattice + determinant + 2 * self.epsilon * BLUR

    @functools.cached_property
    def deviations(self) -> Reals:
        """The approximate standard deviation of the noise in each column's gradient, shape (columns,).

        For an attribute's columns, it is the deviation of a linear function of them whose coefficients have the sum 0
        and the length 1.
        """
        found = np.empty(self.design.columns)
        for group, of_group, unit in self._groups:
            for j, square in zip(group, of_group.squares, strict=True):
                found[self.design.columns_of(j)] = unit * math.sqrt(square)
        return found

    @functools.cached_property
    def variances_of_means(self) -> Reals:
        """The approximate variance of the noise along the mean of each block's columns, shape (blocks,)."""
        found = np.empty(len(self.design.widths))
        for group, of_group, unit in self._groups:
            for j, square in zip(group, of_group.squares_of_means, strict=True):
                found[j] = unit**2 * square
        return found

    @property
    def _groups(self) -> Iterator[tuple[tuple[int, ...], GroupNoise, float]]:
        """Each group of blocks, its noise, and the noise's scale in units of the gradient."""
        for group, of_group, scale in zip(self.design.groups, self.design.noises, self.scales, strict=True):
            yield group, of_group, scale * float(self.step)

    @functools.cached_property
    def shared(self) -> tuple[tuple[float, float], ...]:
        """The approximate variance of each group's sum, and the group's gain.

        The sum is the one that all blocks of the group share, if it has noise with one sum (see `group_noise`). The
        gain is what the means of the group's blocks of several columns, and the intercept, add to a row's score if the
        ridge times the coefficients has the sum 1 in each of them. Variance and gain are 0 for all other groups.
        """
        found = []
        for group, of_group, unit in self._groups:
            blocks = self.design.summed(group) if of_group.one_sum else []
            gain = sum(1 / (self.design.widths[j] * float(self.ridge[self.design.starts[j]])) for j in blocks)
            found.append((unit**2 * of_group.square_of_sum, gain))
        return tuple(found)

    @functools.cached_property
    def largest_ratio(self) -> float:
        """The approximate largest variance of noise in any direction, in the norm of R**-1, with R the ridge."""
        of_blocks = float((self.deviations**2 / self.ridge).max())
        return max(of_blocks, *(variance * gain for variance, gain in self.shared))

    @property
    def curvatures(self) -> Reals:
        """The expected second derivative of the rows' loss by each column's coefficient, shape (columns,)."""
        classes, rows = self.design.classes, max(self.design.rows, 1.0)
        of_row = 4 * CURVATURE * (classes - 1) / classes**2
        return np.array([of_row * rows / width for width in self.design.widths for _ in range(width)])

    @property
    def suitable_ridge(self) -> Reals:
        """The ridge that suits the noise and the expected spread, shape (columns,). The claim may need a larger one."""
        spread = np.full(self.design.columns, expected_spread(len(self.design.widths) - 1, len(self.design.numeric)))
        spread[-1] = SPREAD_OF_INTERCEPT
        if self.design.whole > 1:
            spread *= OF_NUMBERS
        return np.asarray(self.deviations**2 / (self.curvatures * spread))

    @functools.cached_property
    def ridge(self) -> Reals:
        """The ridge of each column, shape (columns,): `suitable_ridge`, plus a constant that `most_curvature` needs."""
        suitable, most = self.suitable_ridge, float(self.most_curvature) * BELOW
        low, high = 0.0, len(self.design.widths) / most
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.curvature(suitable + middle) <= most else (middle, high)
        return np.asarray(suitable + high)

    def curvature(self, ridge: Reals) -> float:
        """Return the largest x' R**-1 x of any row's columns x, for a ridge R."""
        return float(np.maximum.reduceat(1 / ridge, self.design.starts).sum())

    @functools.cached_property
    def gradient_error(self) -> float:
        """The largest gradient at which the fit may end, in the norm of R**-1 with R the ridge (see `fitting`).

        The claim would hold for any number above the error of the noise's lattice.
        """
        return (2 * self.lattice_error + self.within_reach) / math.sqrt(self.ridge.min())

    @property
    def lattice_error(self) -> float:
        """The largest l2 distance between the noise b and the noise b~ that is computed with (see `perturbation`).

        The distance comes from the lattice. If the noise may have more bits than a float, rounding adds to it.
        """
        halves = math.sqrt(sum(of_group.square_of_half for of_group in self.design.noises))
        largest = BEYOND * self.largest_noise / 2.0**53
        rounded = largest * math.sqrt(self.design.columns * self.design.outputs) if largest > 1 else 0.0
        return float(self.step) * (halves + rounded)

    @property
    def within_reach(self) -> float:
        """The l2 norm to which floats bring the gradient, for up to twice the expected rows, unless scores are large.

        If floats do not reach it, `minimiser_refinement` does.
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
        """The step of the release's lattice, a power of two."""
        return 2.0 ** math.floor(math.log2(self.distance / (self.design.columns * self.design.outputs)))

    @functools.cached_property
    def release_scale(self) -> float:
        """The scale of the release's noise, in steps of its lattice."""
        moved = math.ceil(self.distance / self.release_step) + self.design.columns * self.design.outputs
        return float_above(moved / (self.epsilon * BLUR))
