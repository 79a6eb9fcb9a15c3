"""The miners of the mean and the variance of a numeric attribute, over all rows that have a value or by group."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.basics.basic_miner_base import EXAMPLE_DELTA
from dpframework.basics.share_errors import share_error
from dpframework.basics.sum_miner_and_one_number_base import NumberMiner, number_examples, released_examples
from dpframework.facts.attributes import Boolean, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.schema import Schema
from dpframework.mechanisms.base import Calibration
from dpframework.mechanisms.noise_laws import NoiseLaw
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import Node
from dpframework.queries.group_queries import GroupMoments
from dpframework.queries.released_bounds_queries import ScaledSums
from dpframework.queries.sums import BoundDistances, BoundedSum, WithinBounds
from dpframework.results.error_bounds import ErrorBound
from dpframework.results.estimates import Estimate
from dpframework.results.groups import Groups
from dpframework.results.noisy_count_with_interval import CONFIDENCE
from dpframework.run.miner_base_and_examples import Example
from dpframework.run.private_table import PrivateTable

_GRID = 257  # how many values of `a` are tried for a variance's interval (see `VarianceMiner`)


@final
@attrs.frozen
class MeanMiner(NumberMiner):
    """The mean of a numeric attribute over the rows that have a value. Each value is clamped to bounds.

    **If the number n of these rows is public**, the sum of the differences from the middle of the bounds is released
    and divided by n. For this the schema must have `rows`, no value may be missing, and `where` and `by` must not be
    given. Let w be the width of the bounds. Adding a row changes the sum by at most w / 2, and replacing a row changes
    it by at most w. So under replace-one the noise of the mean has the standard deviation sqrt(2) w / (epsilon n).

    **Otherwise** a pair of numbers is released (`queries.BoundDistances`): A, the sum of the values' distances from the
    lower bound, and B, the sum of their distances from the upper bound, both in units of w. Each row adds 1 to A + B,
    so the mean is lower + w A / (A + B). Let p be A / (A + B). Noise a in A and noise b in B change the mean by w
    ((1 - p) a - p b) / n, to first order. So under add-or-remove-one the standard deviation is sqrt(2) w
    sqrt(p**2 + (1 - p)**2) / (epsilon n), where p**2 + (1 - p)**2 is between 1/2 and 1. A centred sum and a count, at
    half of the epsilon each, would give the mean twice that variance, whatever p is. (With a rho, both ways give the
    mean the same variance.)

    **With `by`** one release holds the pairs of all groups (`queries.GroupMoments`). A row adds 1 to one pair, so each
    pair has the same noise as the pair of the whole table would have.

    A mean that is computed from a pair has Fieller's confidence interval. For exact sums, (1 - m) A - m B is 0 if m is
    the share p. For the noisy sums it differs from 0. The interval contains each share m for which noise, at the level
    of 95 %, explains this difference.

    Parameters
    ----------
    attribute, bounds, by, where
        As for `SumMiner`.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> schema = Schema([Numeric("age", 0, 100, bins=4)])
    >>> MeanMiner("age", epsilon=1).plan(schema).name
    'distances'
    >>> MeanMiner("age", epsilon=1).plan(attrs.evolve(schema, rows=500)).name
    'sum'
    >>> MeanMiner("age", by="town", where={"below": ["age", 65]}, epsilon=1).by
    ('town',)
    """

    name = "mean"
    result = Estimate

    def _centre(self, schema: Schema) -> BoundedSum | ScaledSums | None:
        """Return the query for the centred sum if the number of rows with a value is public, or else None."""
        plain = BoundedSum(**self.within(schema))
        if schema.rows is None or plain.optional or self.by:
            return None
        if self.own_sources:
            return ScaledSums(**self.within(schema), centred=True)
        return attrs.evolve(plain, centre=plain.lower + (plain.upper - plain.lower) / 2)

    def plan_rows(self, schema: Schema) -> Node:
        """Plan one release: the sum, the pair of sums, or the pairs of all groups."""
        centred = self._centre(schema)
        if centred is not None:
            return self.plan_step("sum", centred, self.measurer)
        return self.plan_step("distances", self._distances(schema), self.measurer)

    def _distances(self, schema: Schema) -> BoundDistances | GroupMoments:
        """Return the query for the pair of sums, or for the pairs of all groups."""
        groups = self.groups(schema)
        return GroupMoments(**self.within(schema), by=groups) if groups else BoundDistances(**self.within(schema))

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return an error bound for the number of rows that the plan expects. It holds for every exact mean.

        For a released sum, the bound is the largest noise (at the level of 95 %) divided by the public number of rows.
        For a pair, it is `share_errors.share_error` times the width of the attribute's bounds.
        """
        if part.schema is None:
            return part.bounds_of_steps()
        centred = self._centre(part.schema)
        path = "distances" if centred is None else "sum"
        calibration = part.calibration(path)
        if calibration is None:
            return part.bounds_of_steps()
        query = centred or BoundDistances(**self.within(part.schema))
        width = query.upper - query.lower

        def error(rows: float) -> float:
            if centred is None:
                return width * share_error(rows, calibration.noise_law)
            whole = rows * (2.0 if isinstance(centred, ScaledSums) else width)  # in the unit of the release
            return width * _error_within(calibration.noise_law, whole)

        rows = self.expected_rows(part)
        return [
            ErrorBound(
                self.planned("mean"),
                None if rows is None else error(rows),
                "",
                size=part.size,
                whole=width,
                whole_text=f"the range from {query.lower:,.10g} to {query.upper:,.10g}",
                likely=width / 2,
                likely_text="half of its range, so that the middle would be as good a guess",
                note=self.note(
                    self.errors_by_rows(error) if rows is None else "" if centred else self.worst_rows_note(part)
                ),
                biases=[*self.biases(query)],
                steps=(path,),
            )
        ]

    def mine_rows(self, table: PrivateTable) -> Estimate | Groups:
        """Release the sum or the pairs, and compute the means."""
        centred, rows, what = self._centre(table.schema), table.schema.rows, self.named("mean")
        if centred is not None and rows is not None:
            released, at = self.release(table, "sum", centred)
            return _clamp(what, at, *_of_sum(float(np.ravel(released)[0]), table.calibration("sum"), at, rows))
        released, bounds = self.release(table, "distances", self._distances(table.schema))
        pairs, calibration = np.reshape(released, (-1, 2)), table.calibration("distances")
        means = []
        for pair in pairs.tolist():
            # A share is the position of the mean between the bounds, from 0 to 1.
            shares = _share_of(pair, calibration)
            mean, low, high = (bounds.lower + (bounds.upper - bounds.lower) * share for share in shares)
            means.append(_clamp(what, bounds, mean, low, high))
        return self.table_of(table.schema, what, means) if self.by else means[0]

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return the examples that the miners of sums and of means share."""
        return number_examples(cls)


def _error_within(law: NoiseLaw, width: float) -> float:
    """Return the error bound of a noisy number that is clamped to bounds, as a share of their width.

    The bound holds for every exact number. An error of at most half of the width can occur in both directions, if the
    exact number is in the middle. A larger error can occur in one direction only, so only the noise on that side
    counts, at a one-sided quantile.
    """
    both, one = (float(law.quantile(np.array(1 - error))) / width for error in ((1 - CONFIDENCE) / 2, 1 - CONFIDENCE))
    return both if both <= 0.5 else min(max(one, 0.5), 1.0)


def _clamp(what: str, bounds: WithinBounds, mean: float, low: float, high: float) -> Estimate:
    """Return a mean with its interval, all clamped to the bounds."""
    mean, low, high = (min(max(x, bounds.lower), bounds.upper) for x in (mean, low, high))
    return Estimate(what, mean, min(low, mean), max(high, mean))


def _of_sum(
    released: float, calibration: Calibration, query: BoundedSum | ScaledSums, rows: int
) -> tuple[float, float, float]:
    """Return a mean and the ends of its interval, from a released sum of differences from a centre."""
    unit, centre = query.unit() if isinstance(query, ScaledSums) else (1.0, query.centre)
    mean, within = centre + unit * released / rows, unit * calibration.preview.within / rows
    return mean, mean - within, mean + within


def _share_of(pair: Sequence[float], calibration: Calibration) -> tuple[float, float, float]:
    """Return the position of a mean between the bounds, from 0 to 1, and the ends of its interval.

    The position is 1/2 if both noisy sums are at most 0. The sums are first divided by the step of the noise's lattice,
    which makes them whole numbers like counts.
    """
    unit = float(calibration.unit)
    below, above = pair
    return share_interval(below / unit, above / unit, calibration.variance / unit**2)


def share_interval(one: float, other: float, variance: float) -> tuple[float, float, float]:
    """Return the share of the first of two noisy numbers in their sum, and the ends of Fieller's interval.

    The share is 1/2 if both noisy numbers are at most 0.

    Parameters
    ----------
    one, other
        The two noisy numbers, in whole steps of a lattice, with independent noise.
    variance
        The variance of the noise of each number, in steps squared.
    """
    from dpframework.results.noisy_count_with_interval import Noisy, error_of, quantile
    from dpframework.results.share_intervals import least_share

    first, second, most = Noisy(one, variance), Noisy(other, variance), quantile(error_of(CONFIDENCE))
    one, other = max(one, 0.0), max(other, 0.0)
    share = one / (one + other) if one + other > 0 else 0.5
    low, high = least_share(first, second, most), 1 - least_share(second, first, most)
    return share, min(low, share), max(high, share)


@final
@attrs.frozen
class VarianceMiner(NumberMiner):
    """The variance of a numeric attribute over the rows that have a value. Each value is clamped to bounds.

    The variance is the mean of the squared distances from the mean, with the divisor n and not n - 1. The square roots
    of the variance and of its interval's ends are the standard deviation and its interval.

    Three sums are released (`queries.GroupMoments` with degree 2). Let t be the position of a value between the bounds,
    from 0 to 1. Over the rows, A is the sum of (1 - t)**2, B is the sum of 2 t (1 - t), and C is the sum of t**2. These
    three numbers add up to 1 for each row, so the sensitivity is that of a histogram. The number of rows is n = A + B +
    C, the mean of t is (B / 2 + C) / n, and the mean of t**2 is C / n. So the variance is w**2 (C / n - ((B / 2 + C) /
    n)**2), where w is the width of the bounds.

    **The confidence interval.** For each released sum, take an interval that misses the exact sum with a probability of
    5 % / 3. With a probability of 95 %, all three exact sums are in the box of these intervals. In units of w**2, the
    variance is the smallest value, over all numbers a, of the mean of (t - a)**2. This mean is

        (a**2 A + (a**2 - a) B + (1 - a)**2 C) / (A + B + C).

    For a fixed a, the mean is smallest at one corner of the box, and largest at another corner. So the smallest
    variance in the box is the variance at a corner. It is the lower end of the interval. For each a on a grid, the
    largest mean at a corner bounds every variance in the box. The smallest of these bounds is the upper end. Both ends
    are clamped to the range from 0 to w**2 / 4, which holds every variance.

    Parameters
    ----------
    attribute, bounds, by, where
        As for `SumMiner`.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> VarianceMiner("age", epsilon=1).plan(Schema([Numeric("age", 0, 100, bins=4)])).name
    'moments'
    """

    name = "variance"
    result = Estimate

    def _query(self, schema: Schema) -> GroupMoments:
        return GroupMoments(**self.within(schema), by=self.groups(schema), degree=2)

    def plan_rows(self, schema: Schema) -> Node:
        """Plan one release with the three sums, or with the sums of all groups.

        Raises
        ------
        InputError
            If the bounds are so far apart that the largest variance does not fit a float.
        """
        query = self._query(schema)
        width = query.upper - query.lower
        if math.isinf(width * width):
            raise InputError(
                f"'{self.attribute}' lies between {query.lower:g} and {query.upper:g}, and the square of that width is "
                "too large for a float; give narrower bounds"
            )
        return self.plan_step("moments", query, self.measurer)

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return an error bound for the number of rows that the plan expects. It holds for every exact variance.

        Let the error of each of the three sums be at most r, except with a probability of 5 % / 3. For a fixed a, the
        error of the mean of (t - a)**2 is at most (r + r / 2 + r) / (n - 3 r). The reason: this mean weighs the three
        sums by a**2, a**2 - a and (1 - a)**2. If the variance (in units of w**2) is subtracted from each weight, the
        first and the third are between -1 and 1, and the second is between -1/2 and 0. With the exact mean as a, this
        bounds how far the released variance can be too large. With the released mean as a, it bounds how far the
        released variance can be too small.
        """
        calibration = part.calibration("moments")
        if calibration is None or part.schema is None:
            return part.bounds_of_steps()
        query, reach = self._query(part.schema), _reach(calibration)
        square = (query.upper - query.lower) ** 2

        def error(rows: float) -> float:
            return square * min(2.5 * reach / (rows - 3 * reach), 0.25) if rows > 3 * reach else square / 4

        rows = self.expected_rows(part)
        return [
            ErrorBound(
                self.planned("variance"),
                None if rows is None else error(rows),
                "",
                size=part.size,
                whole=square / 4,
                whole_text=f"the largest variance, {square / 4:,.10g}",
                likely=square / 8,
                likely_text="half of the largest variance, so that the middle would be as good a guess",
                note=self.note(self.errors_by_rows(error) if rows is None else self.worst_rows_note(part)),
                biases=[*self.biases(query)],
                steps=("moments",),
            )
        ]

    def mine_rows(self, table: PrivateTable) -> Estimate | Groups:
        """Release the sums, and compute the variances."""
        released, query = self.release(table, "moments", self._query(table.schema))
        square, reach = (query.upper - query.lower) ** 2, _reach(table.calibration("moments"))
        sums, what = np.reshape(released, (-1, 3)), self.named("variance")
        found = [Estimate(what, *(square * end for end in _variance(own, reach))) for own in sums]
        return self.table_of(table.schema, what, found) if self.by else found[0]

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with a public number of rows, groups, zCDP, released bounds, and released rows per unit."""
        change = Schema([Numeric("change", -3, 5, bins=2)])
        sick = Schema([Numeric("change", -3, 5, bins=2, missing=True), Boolean("ill")])
        return {
            "rows-public": Example(attrs.evolve(change, rows=6), cls("change", epsilon=1)),
            "groups": Example(sick, cls("change", by="ill", epsilon=1)),
            "zcdp": Example(change, cls("change", rho=Fraction(1, 8)), EXAMPLE_DELTA),
            **released_examples(cls),
        }


def _reach(calibration: Calibration) -> float:
    """Return a bound on the errors of three released sums. With a probability of 95 %, all three errors satisfy it."""
    error = (1 - CONFIDENCE) / 3
    return float(calibration.noise_law.quantile(np.array(1 - error / 2))) + float(calibration.unit)


def _variance(sums: NDArray[np.float64], reach: float) -> tuple[float, float, float]:
    """Return the variance in units of w**2, and the ends of its interval (see `VarianceMiner`).

    Parameters
    ----------
    sums
        The released sums A, B and C, shape (3,).
    reach
        The largest error of each sum.
    """
    corners = np.array(list(itertools.product(*([max(s - reach, 0.0), max(s + reach, 0.0)] for s in sums.tolist()))))
    corners = corners[corners.sum(axis=1) > 0]
    if not len(corners):
        return 0.125, 0.0, 0.25
    grid = np.linspace(0, 1, _GRID)
    weights = np.array([grid**2, grid**2 - grid, (1 - grid) ** 2])
    low = float(_variance_of_sums(corners).min())
    high = float((corners @ weights / corners.sum(axis=1)[:, None]).max(axis=0).min())
    inside = np.maximum(sums, 0.0)
    middle = float(_variance_of_sums(inside[None])[0]) if inside.sum() > 0 else 0.125
    low = min(max(low, 0.0), 0.25)
    # If no table has sums in the box, the computed upper end may be below the lower end. Then both ends are equal.
    high = min(max(high, low), 0.25)
    return min(max(middle, low), high), low, high


def _variance_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the variance from each triple of sums: shape (triples, 3) in, shape (triples,) out."""
    rows = sums.sum(axis=1)
    return np.asarray(sums[:, 2] / rows - ((sums[:, 1] / 2 + sums[:, 2]) / rows) ** 2)
