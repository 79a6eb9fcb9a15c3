"""Numbers of one numeric attribute: its sum, its mean, its quantiles, over the rows that have a value.

Values are clamped to public bounds, the schema's or tighter ones. Tighter bounds mean less noise and, where values lie
beyond them, a systematic error that no interval shows: choose them from what is publicly known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.basics.budgets import EXAMPLE_DELTA, BasicMiner
from dpframework.facts.attributes import Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.schema import Schema
from dpframework.facts.values import finite_number, listed
from dpframework.plan.nodes import Node, step
from dpframework.queries.ranks import QuantileScores, as_quantile
from dpframework.queries.sums import BoundDistances, BoundedSum
from dpframework.results.estimates import Estimate, QuantileEstimate
from dpframework.run.miner import Example, Witness
from dpframework.run.private_table import PrivateTable


def _bounds(bounds: Iterable[float] | None) -> tuple[float, float] | None:
    if bounds is None:
        return None
    ends = listed(bounds, "bounds")
    if len(ends) != 2:
        raise InputError(f"bounds has {len(ends)} numbers; two are needed, such as [0, 100]")
    return finite_number(ends[0], "a bound"), finite_number(ends[1], "a bound")


@attrs.frozen
class _NumberMiner(BasicMiner):
    """A miner of one number of a numeric attribute."""

    attribute: str
    bounds: tuple[float, float] | None = attrs.field(default=None, converter=_bounds, kw_only=True)

    def within(self, schema: Schema) -> dict[str, Any]:
        """Return what a query of the bounded attribute takes."""
        attribute = schema[self.attribute]
        return {"attribute": attribute} | (
            {} if self.bounds is None else dict(zip(("lower", "upper"), self.bounds, strict=True))
        )

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return the attribute: its values are clamped, added up and ranked."""
        return [self.attribute]


def _examples(cls: type[Any]) -> Mapping[str, Example]:
    """Return a range on both sides of 0, one with missing values, tighter bounds, and a public number of rows."""
    change = Schema([Numeric("change", -3, 5, bins=2)])
    age = Schema([Numeric("age", 0, 90, bins=2, missing=True)])
    return {
        "both-signs": Example(change, cls("change", epsilon=1)),
        "missing": Example(age, cls("age", epsilon=1)),
        "bounds": Example(age, cls("age", bounds=[10, 60], epsilon=1)),
        "rows-public": Example(attrs.evolve(change, rows=6), cls("change", epsilon=1)),
        "rows-public-missing": Example(attrs.evolve(age, rows=6), cls("age", epsilon=1)),
        "zcdp": Example(change, cls("change", rho=Fraction(1, 8)), EXAMPLE_DELTA),
    }


@final
@attrs.frozen
class SumMiner(_NumberMiner):
    """The sum of a numeric attribute, each value clamped to public bounds.

    One number with Laplace (or Gaussian) noise on its lattice; the sensitivity is `queries.BoundedSum`'s. Whole numbers
    are added up exactly before noise is added.

    Parameters
    ----------
    attribute
        The attribute's name.
    bounds
        Two public numbers that values are clamped to, by default the schema's bounds.
    epsilon, rho
        The budget; in zCDP, for a study with a delta, as rho instead.

    Examples
    --------
    >>> SumMiner("hours", bounds=[0, 60], epsilon=0.1).bounds
    (0.0, 60.0)
    """

    name = "sum"
    result = Estimate

    def plan(self, schema: Schema) -> Node:
        """Plan the one sum."""
        return step("sum", BoundedSum(**self.within(schema)), self.measurer)

    def mine(self, table: PrivateTable) -> Estimate:
        """Release it."""
        released, calibration = float(table.release("sum")), table.calibration("sum")
        within = calibration.preview.within
        return Estimate(f"sum of {self.attribute}", released, released - within, released + within)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """See `_examples`."""
        return _examples(cls)


@final
@attrs.frozen
class MeanMiner(_NumberMiner):
    """The mean of a numeric attribute over the rows that have a value, each clamped to public bounds.

    **Where the number of those rows is public** (the schema has `rows`, and no value may be missing), the sum of the
    differences to the middle of the bounds is released, and divided by it. A row moves that sum by half the width w of
    the bounds when it is added, by w when it is replaced: noise of standard deviation sqrt(2) w / (epsilon n) on the
    mean under replace-one.

    **Else** the pair of `queries.BoundDistances` is released: A, the values' distances from the lower bound, and B,
    those from the upper one, in widths. The mean is lower + w A / (A + B). With p = A / (A + B) the errors a and b of
    the pair put it off by w ((1 - p) a - p b) / n, to first order: a standard deviation of
    sqrt(2) w sqrt(p**2 + (1 - p)**2) / (epsilon n) under add-or-remove-one, with p**2 + (1 - p)**2 between 1/2 and 1.
    A centred sum and a count at half the budget each would have twice that variance, whatever p is.

    The interval is Fieller's: it holds all m for which (1 - m) A - m B is within the reach of its noise.

    Parameters
    ----------
    attribute, bounds
        As for `SumMiner`.
    epsilon, rho
        The budget; in zCDP, for a study with a delta, as rho instead.

    Examples
    --------
    >>> schema = Schema([Numeric("age", 0, 100, bins=4)])
    >>> MeanMiner("age", epsilon=1).plan(schema).name
    'distances'
    >>> MeanMiner("age", epsilon=1).plan(attrs.evolve(schema, rows=500)).name
    'sum'
    """

    name = "mean"
    result = Estimate

    def _centred(self, schema: Schema) -> BoundedSum | None:
        """Return the sum to release where the number of rows that have a value is public."""
        plain = BoundedSum(**self.within(schema))
        if schema.rows is None or plain.attribute.missing:
            return None
        return attrs.evolve(plain, centre=plain.lower + (plain.upper - plain.lower) / 2)

    def plan(self, schema: Schema) -> Node:
        """Plan the one sum, or the pair of sums."""
        centred = self._centred(schema)
        if centred is not None:
            return step("sum", centred, self.measurer)
        return step("distances", BoundDistances(**self.within(schema)), self.measurer)

    def mine(self, table: PrivateTable) -> Estimate:
        """Release it, and divide."""
        centred, rows = self._centred(table.schema), table.schema.rows
        if centred is not None and rows is not None:
            lower, upper = centred.lower, centred.upper
            mean, low, high = _of_sum(table, centred.centre, rows)
        else:
            distances = BoundDistances(**self.within(table.schema))
            lower, upper = distances.lower, distances.upper
            mean, low, high = (lower + (upper - lower) * share for share in _of_distances(table))
        mean, low, high = (min(max(x, lower), upper) for x in (mean, low, high))
        return Estimate(f"mean of {self.attribute}", mean, min(low, mean), max(high, mean))

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """See `_examples`."""
        return _examples(cls)


def _of_sum(table: PrivateTable, centre: float, rows: int) -> tuple[float, float, float]:
    """Return the mean from the sum of differences to a centre, with its interval."""
    mean, calibration = centre + float(table.release("sum")) / rows, table.calibration("sum")
    within = calibration.preview.within / rows
    return mean, mean - within, mean + within


def _of_distances(table: PrivateTable) -> tuple[float, float, float]:
    """Return where the mean lies between the bounds, with its interval; in the middle, if there seem to be no rows.

    Counted in steps of the noise's lattice, as counts are in rows.
    """
    from dpframework.results.jaccard import least_jaccard
    from dpframework.results.noisy import CONFIDENCE, Noisy, error_of, quantile

    calibration = table.calibration("distances")
    unit = float(calibration.unit)
    variance = calibration.variance / unit**2
    below, above = (Noisy(value / unit, variance) for value in table.release("distances"))
    one, other = max(below.value, 0.0), max(above.value, 0.0)
    most = quantile(error_of(CONFIDENCE))
    share = one / (one + other) if one + other > 0 else 0.5
    return share, least_jaccard(below, above, most), 1 - least_jaccard(above, below, most)


@final
@attrs.frozen
class QuantileMiner(_NumberMiner):
    """A point of a public grid that is, but for a few rows, a quantile of a numeric attribute.

    Selected by permute-and-flip with the scores of `queries.QuantileScores`, which say by how many rows each point
    misses the quantile. The best score is always 0. So the point is off by more than s ln(20 m) rows with a probability
    of 5 % at most, with m points and noise of scale s: max(q, 1 - q) 2 / epsilon under add-or-remove-one, 2 / epsilon
    under replace-one. That bound follows from the plan alone.

    Parameters
    ----------
    attribute
        The attribute's name.
    quantile
        Between 0 and 1, by default 0.5, the median.
    bounds
        Two public numbers that values are clamped to, by default the schema's bounds. The grid has the whole numbers
        between them, if they are whole and at most 4096 apart, else 4096 equal steps; a value counts as the nearest
        point.
    epsilon, rho
        The budget; in zCDP, for a study with a delta, as rho instead.

    Examples
    --------
    >>> QuantileMiner("age", 0.9, epsilon=0.1).quantile
    Fraction(9, 10)
    """

    name = "quantile"
    result = QuantileEstimate
    quantile: Fraction = attrs.field(default=Fraction(1, 2), converter=as_quantile)

    def _scores(self, schema: Schema) -> QuantileScores:
        return QuantileScores(**self.within(schema), quantile=self.quantile)

    def plan(self, schema: Schema) -> Node:
        """Plan the one selection."""
        return step("quantile", self._scores(schema), self.selector)

    def mine(self, table: PrivateTable) -> QuantileEstimate:
        """Release it."""
        scores, calibration = self._scores(table.schema), table.calibration("quantile")
        rows = calibration.preview.within
        return QuantileEstimate(self.attribute, scores.quantile, table.release("quantile"), rows, scores.step)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return the median and another quantile, with missing values, and a public number of rows."""
        age = Schema([Numeric("age", 0, 60, bins=3)])
        missing = Schema([Numeric("age", 0, 60, bins=2, missing=True)])
        # half of the rows old: all ages above 2 are medians, until one row less is; only 0 and 1 come nearer then
        halves = Witness((({"age": 2}, 7), ({"age": 60}, 6)), {"age": 60}, {"age": 0})
        return {
            "median": Example(age, cls("age", epsilon=1)),
            "missing": Example(missing, cls("age", 0.75, epsilon=1)),
            "bounds": Example(age, cls("age", 0.25, bounds=[10, 50], epsilon=1)),
            "rows-public": Example(attrs.evolve(age, rows=14), cls("age", epsilon=1), witnesses=[halves]),
            "zcdp": Example(age, cls("age", rho=Fraction(1, 8)), EXAMPLE_DELTA),
        }
