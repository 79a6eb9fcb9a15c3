"""The sum, mean and quantiles of one numeric attribute, over the rows that have a value.

Values are clamped to public bounds, the schema's or tighter ones. Tighter bounds mean less noise and, where values lie
beyond them, a systematic error that no interval shows: choose them from what is publicly known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from dpframework.basics.budgets import EXAMPLE_DELTA, BasicMiner
from dpframework.basics.shares import share_error
from dpframework.facts.attributes import Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.schema import Schema
from dpframework.facts.values import finite_number, listed
from dpframework.mechanisms.laws import NoiseLaw
from dpframework.plan.nodes import Node, step
from dpframework.plan.parts import PlannedPart
from dpframework.queries.ranks import QuantileScores, as_quantile, quantile_text
from dpframework.queries.sums import BoundDistances, BoundedSum, WithinBounds
from dpframework.results.error_bounds import WORST_ROWS, BoundKind, ErrorBound
from dpframework.results.estimates import Estimate, QuantileEstimate
from dpframework.results.noisy import CONFIDENCE
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
        """Return the arguments of a query of the bounded attribute."""
        attribute = schema[self.attribute]
        return {"attribute": attribute} | (
            {} if self.bounds is None else dict(zip(("lower", "upper"), self.bounds, strict=True))
        )

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return the attribute, whose values are clamped, added up and ranked."""
        return [self.attribute]

    def biases(self, query: WithinBounds) -> Iterator[str]:
        """Yield the biases of the number besides noise."""
        yield f"values of '{self.attribute}' beyond [{query.lower:g}, {query.upper:g}] count as the nearer bound"
        if query.attribute.missing:
            yield f"rows without '{self.attribute}' are left out, so fewer rows than the table has may count"
        else:
            yield f"rows without '{self.attribute}' count as {query.lower:g}"


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

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the sum's error, a share of the largest sum that this many rows can have."""
        calibration = part.calibration("sum")
        if calibration is None or part.schema is None:
            return part.bounds_of_steps()
        query = BoundedSum(**self.within(part.schema))
        bound = part.bound_of(f"sum of '{self.attribute}'", calibration)
        rows, largest = part.size.largest, max(abs(query.lower), abs(query.upper))
        if rows is not None:
            bound = attrs.evolve(bound, likely=rows * largest, likely_text="the largest sum that the table can have")
        if part.rows is not None:
            bound = attrs.evolve(bound, whole=part.rows * largest, whole_text=f"the largest sum of {part.size.text}")
        return [attrs.evolve(bound, steps=("sum",), biases=[*self.biases(query)])]

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

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the mean's error, whatever the mean is, for about this many rows with a value.

        A sum's noise divides by the public number of rows, and the mean is kept within its bounds. A pair's error is
        `shares.share_error`'s, in widths.
        """
        if part.schema is None:
            return part.bounds_of_steps()
        centred = self._centred(part.schema)
        path = "distances" if centred is None else "sum"
        calibration = part.calibration(path)
        if calibration is None:
            return part.bounds_of_steps()
        query = centred or BoundDistances(**self.within(part.schema))
        width = query.upper - query.lower

        def error(rows: float) -> float:
            if centred is None:
                return width * share_error(rows, calibration.noise_law)
            return width * _kept_within(calibration.noise_law, rows * width)

        rows = part.rows
        return [
            ErrorBound(
                f"mean of '{self.attribute}'",
                None if rows is None else error(rows),
                "",
                size=part.size,
                whole=width,
                whole_text=f"the range from {query.lower:,.10g} to {query.upper:,.10g}",
                likely=width / 2,
                likely_text="half of its range: the middle would be as good",
                note=_examples_of(error) if rows is None else "" if centred is not None else WORST_ROWS,
                biases=[*self.biases(query)],
                steps=(path,),
            )
        ]

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


def _kept_within(law: NoiseLaw, width: float) -> float:
    """Return the error of a number with noise that is kept within bounds, in widths, wherever it is exactly.

    Up to half of the width it can be off on both sides, which is worst in the middle; beyond, on one side only.
    """
    both, one = (float(law.quantile(np.array(1 - error))) / width for error in ((1 - CONFIDENCE) / 2, 1 - CONFIDENCE))
    return both if both <= 0.5 else min(max(one, 0.5), 1.0)


def _examples_of(error: Callable[[float], float]) -> str:
    some = ", ".join(f"±{error(rows):.3g} for {rows:,}" for rows in (1000, 100_000))
    return f"depends on the number of rows ({some})"


def _of_sum(table: PrivateTable, centre: float, rows: int) -> tuple[float, float, float]:
    """Return the mean from the sum of differences to a centre, with its interval."""
    mean, calibration = centre + float(table.release("sum")) / rows, table.calibration("sum")
    within = calibration.preview.within / rows
    return mean, mean - within, mean + within


def _of_distances(table: PrivateTable) -> tuple[float, float, float]:
    """Return the mean's place between the bounds with its interval, the middle if there seem to be no rows.

    Counted in steps of the noise's lattice, as counts are in rows.
    """
    from dpframework.results.jaccard import least_jaccard
    from dpframework.results.noisy import Noisy, error_of, quantile

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

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the number of rows by which the point may miss the quantile, at most those of the far side."""
        calibration = part.calibration("quantile")
        if calibration is None or part.schema is None:
            return part.bounds_of_steps()
        scores = self._scores(part.schema)
        within, far = calibration.preview.within, float(max(self.quantile, 1 - self.quantile))
        bound = part.rows_bound(f"{quantile_text(self.quantile)} of '{self.attribute}'", within, BoundKind.NUMBER)
        if part.size.largest is not None:
            bound = attrs.evolve(bound, likely=far * part.size.largest, likely_text="any point would miss it by")
        if part.rows is not None:
            bound = attrs.evolve(bound, amount=min(within, far * part.rows))
        bound = attrs.evolve(bound, note=WORST_ROWS)
        grid = f"{scores.answer_length} points, {scores.step:.4g} apart"
        rounded = f"values of '{self.attribute}' count as the nearest of {grid}"
        return [attrs.evolve(bound, steps=("quantile",), biases=[*self.biases(scores), rounded])]

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
