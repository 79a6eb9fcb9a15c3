"""Miners that make larger errors than they state, in a bound or an interval of the result, each beside a right one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import PlantedSteps, Version, problems

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.results import BoundKind, ErrorBound, Estimate, Frequencies, Noisy
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.stated_error_check import _tables, error_problems
from dpframework.verify.search_time_limit import Patience

LABELS = ["A", "B", "C", "D", "E"]
SCHEMA = dpf.Schema([dpf.Categorical("town", LABELS), dpf.Numeric("age", 0, 100, bins=2)])
COUNTS, TOTAL, MEAN, INTERVALS = "bound of 'counts'", "bound of 'total'", "bound of 'mean'", "intervals of"


@attrs.frozen
class Counted(dpf.Miner):
    """Release the counts of towns, and state their errors."""

    name = "counted"
    right: Version
    epsilon: Fraction = attrs.field(default=Fraction(1), converter=Fraction)

    def plan(self, schema):
        noise = dpf.mechanisms.DiscreteLaplace(self.epsilon)
        return dpf.step("counts", dpf.queries.Histogram(schema["town"]), noise)

    def mine(self, table):
        return self.shown(table.release("counts"), table.calibration("counts"))

    def shown(self, counts: Any, noise: Any) -> Any:
        return counts.tolist()

    def bound(self, part: Any, amount: float, what: str = "counts", **options: Any) -> list[ErrorBound]:
        return [ErrorBound(what, amount, "rows", BoundKind.COUNTS, part.size, steps=["counts"], **options)]


class TenthOfBound(Counted):
    """States a tenth of the error."""

    def error_bounds(self, part):
        return self.bound(part, part.calibration("counts").preview.within * (1 if self.right else 0.1))


class BoundOfOneCell(Counted):
    """States the error of one count for the sum of five, which the result holds beside shares."""

    def shown(self, counts, noise):
        shares = np.maximum(counts, 0) / max(np.maximum(counts, 0).sum(), 1)
        return {"shares": shares.tolist(), "total": int(counts.sum())}

    def error_bounds(self, part):
        (bound,) = [part.sum_bound("total", ["counts"], len(LABELS) if self.right else 1)]
        return [attrs.evolve(bound, numbers="total")]


class BoundOfExample(Counted):
    """States the error at an epsilon of 1, whatever epsilon is."""

    def error_bounds(self, part):
        return self.bound(part, math.log(20) / float(self.epsilon if self.right else 1))


class BoundFallsWithNoise(Counted):
    """Multiplies by epsilon where it has to divide."""

    epsilon: Fraction = Fraction(1)

    def error_bounds(self, part):
        return self.bound(part, math.log(20) * float(1 / self.epsilon if self.right else self.epsilon), numbers="")


class FailsToState(Counted):
    """Divides by a number of rows that may be unknown."""

    def error_bounds(self, part):
        share = 100 / part.rows if part.rows or not self.right else 1
        return self.bound(part, 4 / self.epsilon * max(share, 1))


class ScaleAsVariance(Counted):
    """Takes the scale of Laplace noise for its variance."""

    epsilon: Fraction = Fraction(1)

    def shown(self, counts, noise):
        variance = noise.variance if self.right else noise.scale / 8
        return [Noisy(count, variance) for count in counts.tolist()]


class TableOfScale(Counted):
    """Gives the table of counts too small a variance."""

    def shown(self, counts, noise):
        return {"towns": Frequencies(["town"], [LABELS], counts, noise.variance if self.right else noise.scale / 8)}


class OneDeviation(Counted):
    """Takes a tenth of the noise of the largest count for its interval, and names the town."""

    def shown(self, counts, noise):
        best, within = int(np.argmax(counts)), noise.preview.within * (3 if self.right else 0.1)
        return [Estimate(f"rows of {LABELS[best]}", counts[best], counts[best] - within, counts[best] + within)]


@attrs.frozen
class Mean(Counted):
    """Divides a noisy sum by a noisy number of rows; states the error that the sum alone would cause."""

    def plan(self, schema):
        half = self.epsilon / 2
        total = dpf.step("sum", dpf.queries.BoundedSum(schema["age"]), dpf.mechanisms.Laplace(half))
        return dpf.sequential(total, dpf.step("rows", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(half)))

    def mine(self, table):
        total, rows = (float(np.ravel(table.release(name))[0]) for name in ("sum", "rows"))
        return {"rows": rows, "mean": float(np.clip(total / max(rows, 1), 0, 100))}

    def error_bounds(self, part):
        amount = None
        if part.rows is not None:
            off = 100 * math.log(40) / float(self.epsilon / 2) / max(part.rows - math.log(40) / (self.epsilon / 2), 1)
            amount = 2 * off if self.right else off / 20
        return [ErrorBound("mean", amount, "", numbers="mean", note="depends on the number of rows")]


PLANTED: PlantedSteps = {
    "a tenth of the bound": (TenthOfBound, SCHEMA, COUNTS),
    "the bound of one cell for a sum": (BoundOfOneCell, SCHEMA, TOTAL),
    "a bound for the epsilon of the example": (BoundOfExample, SCHEMA, COUNTS),
    "a bound that falls as the noise grows": (BoundFallsWithNoise, SCHEMA, COUNTS),
    "a bound that fails without a number of rows": (FailsToState, SCHEMA, "fails to state its error bounds"),
    "a scale taken for a variance": (ScaleAsVariance, SCHEMA, INTERVALS),
    "a table of counts with too small a variance": (TableOfScale, SCHEMA, INTERVALS),
    "the interval of a tenth": (OneDeviation, SCHEMA, INTERVALS),
    "a bound of a mean if rows are public": (Mean, SCHEMA, MEAN),
}


def found(bug: str, right: bool) -> list[str]:
    make, schema, _ = PLANTED[bug]
    return error_problems(Subject(make(Version(right)), schema, Relation.ADD_OR_REMOVE_ONE), 0, Patience(), [])


@pytest.mark.parametrize("bug", PLANTED)
def test_errors_larger_than_stated_are_found(bug: str, record_property: Callable[[str, object], None]) -> None:
    wrong = found(bug, right=False)
    record_property("planted bug", (bug, bool(wrong)))
    assert any(PLANTED[bug][-1] in what for what in wrong), wrong


@pytest.mark.parametrize("bug", PLANTED)
def test_errors_that_are_stated_pass(bug: str, record_property: Callable[[str, object], None]) -> None:
    wrong = found(bug, right=True)
    record_property("correct version", (bug, not wrong))
    assert wrong == []


def test_checks_of_steps_compare_errors_of_plugins() -> None:
    (one,) = [what for what in problems(TenthOfBound(Version(False)), SCHEMA) if COUNTS in what]
    assert one.startswith("add-or-remove-one: the error bound of 'counts' is 0.3, and ")


def test_a_bound_that_does_not_name_its_numbers_is_listed() -> None:
    left_out: list[str] = []
    subject = Subject(TenthOfBound(Version(True)), SCHEMA, Relation.ADD_OR_REMOVE_ONE)
    assert error_problems(subject, 0, Patience(), left_out) == []
    (one,) = left_out
    assert "the error bound of 'counts'" in one
    assert "ErrorBound.numbers" in one


def test_tables_have_as_many_rows_as_the_schema_says() -> None:
    """A bound for about 400 rows says nothing about other numbers of rows."""
    for rows, numbers in ((400, {400}), (None, {30, 500}), (10**7, set())):
        schema = attrs.evolve(SCHEMA, about_rows=rows)
        tables = list(_tables(Subject(TenthOfBound(Version(True)), schema, Relation.ADD_OR_REMOVE_ONE)))
        assert {len(table) for table in tables} == numbers
        assert not tables or len(set(tables[0])) > len(set(tables[-1])) == 1
