"""The noise and the ridge of an additive model's fit, from its columns and public facts."""

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

CURVATURE = 0.15  # of a row of two classes: p (1 - p) as it is expected
SPREAD = 0.25  # the most variance that an attribute's values are expected to have
SPREAD_OF_MANY = 100.0  # that times the square of the number of attributes, where they are many
SPREAD_OF_INTERCEPT = 1.0
BLUR = Fraction(1, 1024)  # of epsilon, for each of the two sides that the release's noise is compared on
MULTICLASS = Fraction(1, 7)  # of epsilon, that the determinant may cost with several classes at most
HALVED = 8  # times at most, where a ridge costs less that is near what is asked for
NEAR = 4.0  # times what is asked for: a larger ridge costs more than noise does
BEYOND = 512  # times its mean, a group's radius is never seen
STEPS = 32  # bits: the noise's lattice is at most 2**-32 of one over epsilon
LATTICE = Fraction(1, 1 << 20)  # of epsilon, that the noise's lattice costs at most
OF_NUMBERS = 0.2  # of the variance that is expected of classes' log-odds
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
        default the least of `MULTICLASS` halved up to `HALVED` times at which a ridge of `NEAR` times what is asked
        for needs no more. It follows from the design and epsilon, which are public.
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
            if tried.curvature(NEAR * tried.asked) <= float(tried.most_curvature) * BELOW:
                return tried.determinant
        return MULTICLASS

    @functools.cached_property
    def step(self) -> Fraction:
        """The noise's lattice, a power of two of which the gradient's noise is a multiple.

        It costs m_g / s_g for each group (`GroupNoise.rounded`): at most the step times epsilon times the largest m_g,
        by the swing.
        """
        widest = max(of_group.rounded for of_group in self.design.noises)
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
        of_groups = zip(self.design.noises, self.scales, strict=True)
        return max((of_group.dimension_of_radius + 1) * scale for of_group, scale in of_groups)

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
        of_groups = zip(self.design.noises, self.scales, strict=True)
        lattice = sum((of_group.rounded / Fraction(s) for of_group, s in of_groups), Fraction(0))
        classes = self.design.classes
        determinant = self.most_curvature * Fraction(classes - 2, classes - 1)
        return self.spent_by_gradient + lattice + determinant + 2 * self.epsilon * BLUR

    @functools.cached_property
    def deviations(self) -> Reals:
        """About the standard deviation of the noise of each column's gradient, shape (columns,).

        In an attribute's columns it is that of a linear function whose coefficients have the sum 0 and the length 1.
        """
        found = np.empty(self.design.columns)
        for group, of_group, unit in self._groups:
            for j, square in zip(group, of_group.squares, strict=True):
                found[self.design.columns_of(j)] = unit * math.sqrt(square)
        return found

    @functools.cached_property
    def variances_of_means(self) -> Reals:
        """About the variance of the noise along the mean of each block's columns, shape (blocks,)."""
        found = np.empty(len(self.design.widths))
        for group, of_group, unit in self._groups:
            for j, square in zip(group, of_group.squares_of_means, strict=True):
                found[j] = unit**2 * square
        return found

    @property
    def _groups(self) -> Iterator[tuple[tuple[int, ...], GroupNoise, float]]:
        """Yield each group with its noise and scale."""
        for group, of_group, scale in zip(self.design.groups, self.design.noises, self.scales, strict=True):
            yield group, of_group, scale * float(self.step)

    @functools.cached_property
    def shared(self) -> tuple[tuple[float, float], ...]:
        """About the variance of each group's sum, and what a score gains if R times the coefficients has the sum 1.

        A row's score has the mean of each block of several columns, and the intercept. Both are 0 without one sum.
        """
        found = []
        for group, of_group, unit in self._groups:
            blocks = self.design.summed(group) if of_group.one_sum else []
            gain = sum(1 / (self.design.widths[j] * float(self.ridge[self.design.starts[j]])) for j in blocks)
            found.append((unit**2 * of_group.square_of_sum, gain))
        return tuple(found)

    @functools.cached_property
    def largest_ratio(self) -> float:
        """About the largest variance of noise in any direction, in the norm of R**-1."""
        of_blocks = float((self.deviations**2 / self.ridge).max())
        return max(of_blocks, *(variance * gain for variance, gain in self.shared))

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
        return (2 * self.lattice_error + self.within_reach) / math.sqrt(self.ridge.min())

    @property
    def lattice_error(self) -> float:
        """How far real noise is from what is computed with, at most, in the l2 norm.

        That is its lattice. Where noise may have more bits than a float, it is rounded, too.
        """
        halves = math.sqrt(sum(of_group.square_of_half for of_group in self.design.noises))
        largest = BEYOND * self.largest_noise / 2.0**53
        rounded = largest * math.sqrt(self.design.columns * self.design.outputs) if largest > 1 else 0.0
        return float(self.step) * (halves + rounded)

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
