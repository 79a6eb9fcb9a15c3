"""Bugs that show with further parameters or with a public number of rows: planted beside their twins.

Two options together, a whole number beyond a constant of the code, a window that is no multiple of its step, bands in a
text that overlap, a set with one more element, another attribute in a list, a weight below 0 in a pair, a mean that is
asked only where the number of rows is public, and a least budget.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import Version, require_named, require_no_problem
from verify.planted_bugs.test_beside_the_examples import ADD
from verify.planted_bugs.test_first_plugins import failures
from verify.planted_bugs.test_other_parameters_and_sizes import Adds, Makes

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.queries import Count, Histogram
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.audit_subject_variants import subject_variants
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import further_miners, with_other_costs

HITS = dpf.Schema([dpf.Numeric("minute", 0, 240, bins=4)])
ITEMS = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("old"), dpf.Categorical("grade", ["a", "b", "c", "d"])])
HOUR = datetime.timedelta(hours=1)


@attrs.frozen
class Funnel(Makes):
    """Count hits for the steps of a funnel before theirs, and clicks twice, with a sum or a product for both."""

    right: Any
    cumulate: bool = False
    assist: bool = False

    def query(self, schema):
        steps, clicks = 3 if self.cumulate else 1, 2 if self.assist else 1
        bound = steps * clicks if self.right else steps + clicks - 1
        return Adds(bound, lambda block: steps * clicks * (block.codes("ill") == 1))


@attrs.frozen
class Retention(Makes):
    """Count a visit in each of the weeks after it, of which at most four are charged."""

    right: Any
    weeks: int = attrs.field(default=2, validator=attrs.validators.ge(1))

    def query(self, schema):
        bound = self.weeks if self.right else min(self.weeks, 4)
        return Adds(bound, lambda block: self.weeks * (block.codes("ill") == 1))


@attrs.frozen
class Rolling(Makes):
    """Count hits in windows that overlap, with a quotient that is rounded up, or to the nearest number."""

    right: Any
    window: datetime.timedelta = HOUR
    step: datetime.timedelta = HOUR

    def query(self, schema):
        if self.step <= 0 * HOUR or self.window <= 0 * HOUR:
            raise dpf.InputError("windows and steps must be above 0")
        window, step = (own.total_seconds() / 60 for own in (self.window, self.step))
        most = -(-self.window // self.step) if self.right else max(round(self.window / self.step), 1)

        def windows(block: Any) -> Any:
            starts = np.arange(0, 240, step)
            minutes = block.values("minute")[:, None]
            return ((minutes >= starts) & (minutes < starts + window)).sum(axis=1)

        return Adds(most, windows)


@attrs.frozen
class Bands(Makes):
    """Count minutes in bands, which may overlap."""

    right: Any
    bands: str = "0-59,60-119,120-240"

    def query(self, schema):
        pairs = [tuple(map(int, band.split("-"))) for band in self.bands.split(",")]

        def inside(block: Any) -> Any:
            minutes = np.floor(block.values("minute"))
            return sum((minutes >= first) & (minutes <= last) for first, last in pairs)

        return Adds(len(pairs) if self.right else 1, inside)


@attrs.frozen
class Lags(Makes):
    """Count who is ill once for each lag."""

    right: Any
    lags: frozenset[int] = frozenset({1, 2})

    def query(self, schema):
        return Adds(len(self.lags) if self.right else 2, lambda block: len(self.lags) * (block.codes("ill") == 1))


@attrs.frozen
class Scale(Makes):
    """Add up the codes of some items, as if all were flags."""

    right: Any
    items: tuple[str, ...] = ("ill", "old")

    def query(self, schema):
        most = sum(schema[item].size - 1 for item in self.items) if self.right else len(self.items)
        return Adds(most, lambda block: sum(block.codes(item).astype(np.int64) for item in self.items))


@attrs.frozen
class Card(Makes):
    """Add up weights of flags, of which one may be below 0."""

    right: Any
    weights: tuple[tuple[str, float], ...] = (("ill", 1.0), ("old", 2.0))

    def query(self, schema):
        weights = [Fraction(weight) for _, weight in self.weights]
        bound = sum(map(abs, weights)) if self.right else max(abs(sum(weights)), 1)
        return Adds(bound, lambda block: sum(weight * (block.codes(name) == 1) for name, weight in self.weights))


@attrs.frozen
class Mean(Makes):
    """Release a mean, if the number of rows is public, with the width of the range or its largest number."""

    right: Any

    def query(self, schema):
        minute = schema["minute"]
        largest = max(abs(minute.lower), abs(minute.upper))
        if schema.rows is None:
            return Adds(largest, lambda block: block.values("minute"))
        most = largest if self.right else minute.upper - minute.lower
        return Adds(Fraction(most) / schema.rows, lambda block: block.values("minute") / schema.rows)


@attrs.frozen
class Hours(Makes):
    """Count hits by the local hour, where the hour in which clocks change counts twice."""

    right: Any
    offset: datetime.timedelta = datetime.timedelta(minutes=45)

    def query(self, schema):
        twice = 0 if self.right else int(self.offset >= HOUR)

        def hits(block: Any) -> Any:
            hours = (block.values("minute") + self.offset.total_seconds() / 60) // 60
            return 1 + twice * (hours % 24 == 2)

        return Adds(1, hits)


PLANTED: dict[str, tuple[Callable[[Any], dpf.Miner], dpf.Schema, str]] = {
    "two options together": (Funnel, ITEMS, "with cumulate = True and assist = True: l1 declared 4, largest found 6"),
    "weeks beyond a constant": (Retention, ITEMS, "with weeks = 5: l1 declared 4, largest found 5"),
    "a window that is no multiple of its step": (Rolling, HITS, "(seconds=4500): l1 declared 1, largest found 2"),
    "an hour that counts twice for later time zones": (Hours, HITS, "(seconds=6075): l1 declared 1, largest found 2"),
    "bands of a text that overlap": (
        Bands,
        HITS,
        "with bands = '0-60,60-119,120-240': l1 declared 1, largest found 2",
    ),
    "a set of three lags": (Lags, ITEMS, "with lags = frozenset({1, 2, 5}): l1 declared 2, largest found 3"),
    "an item of four grades": (Scale, ITEMS, "with items = ('ill', 'grade'): l1 declared 2, largest found 4"),
    "a weight below 0 in a pair": (Card, ITEMS, "with weights = (('ill', -3.0), ('old', 2.0)): l1 declared 1, largest"),
    "a mean of a public number of rows": (
        Mean,
        HITS,
        "on the example's schema with missing cells and numbers above 0 and 12 rows: l1 declared 20, largest found 60",
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_with_further_parameters_is_named(bug, record_property):
    require_named(PLANTED, bug, record_property)


@pytest.mark.parametrize("bug", PLANTED)
def test_the_honest_twin_passes(bug, record_property):
    require_no_problem(PLANTED, bug, record_property)


@attrs.frozen
class LeastBudget(dpf.Miner):
    """Counts rows and grades, where the count of rows has a tenth of the budget, or at least 0.05."""

    name = "least-budget"
    epsilon: Fraction = attrs.field(default=Fraction(1), converter=Fraction)
    right: Any = attrs.field(factory=lambda: Version(True))

    def plan(self, schema):
        tenth = self.epsilon / 10 if self.right else max(self.epsilon / 10, Fraction(1, 20))
        rows = dpf.step("rows", Count(), DiscreteLaplace(tenth))
        return dpf.sequential(rows, dpf.step("ill", Histogram(schema["ill"]), DiscreteLaplace(self.epsilon * 9 / 10)))

    def mine(self, table):
        return table.release("rows"), table.release("ill")


@pytest.mark.parametrize("right", [False, True])
def test_a_least_budget_is_named(right, record_property):
    miner = LeastBudget(right=Version(right))
    found = [what for what in failures(miner, ADD, ITEMS) if "the plan costs" in what]
    record_property("correct version" if right else "planted bug", ("a least budget", right is (found == [])))
    assert right is (found == [])
    assert right or "with epsilon = 0.001, the plan costs epsilon = 0.0509" in found[0]
    assert len(list(with_other_costs(miner, ITEMS))) == 5


@attrs.frozen
class Various(dpf.Miner):
    """Parameters of further kinds."""

    name = "various"
    share: Fraction = Fraction(1, 2)
    hours: np.timedelta64 = attrs.field(factory=lambda: np.timedelta64(3, "h"))
    since: datetime.date = datetime.date(2020, 1, 1)
    seen: range = range(0, 6, 2)
    names: frozenset[str] = frozenset({"ill"})
    cuts: tuple[float, ...] = (1, 2)
    labels: tuple[str, ...] = ("5-9", "b")
    bounds: dict[str, range] = attrs.field(factory=lambda: {"ill": range(2)})
    of: str = "ill"
    exact: bool = True
    epsilon: float = 1.0

    def plan(self, schema):
        return dpf.step("rows", Count(), DiscreteLaplace(self.epsilon))

    def mine(self, table):
        return table.release("rows")


def test_parameters_of_further_kinds_are_changed():
    found = list(further_miners(Various(), ITEMS))
    assert [how for how, _ in found] == [
        "with share = Fraction(5, 8)",
        "with share = Fraction(7, 8)",
        f"with hours = {np.timedelta64(4, 'h')!r}",
        f"with hours = {np.timedelta64(-3, 'h')!r}",
        "with since = datetime.date(2021, 2, 4)",
        "with since = datetime.date(2018, 11, 27)",
        "with seen = range(0, 8, 2)",
        "with names = frozenset({'ill', 'old'})",
        "with names = frozenset({'grade', 'ill'})",
        "with cuts = (1, 5)",
        "with cuts = (1, 2, 5)",
        "with labels = ('6-9', 'b')",
        "with labels = ('5-10', 'b')",
        "with bounds = {'ill': range(0, 3)}",
    ]
    assert found[3][1].hours == np.timedelta64(-3, "h")


def test_no_number_is_made_so_large_that_the_plan_explodes():
    @attrs.frozen
    class Deep(Various):
        """Counts at each node of a tree, whose depth the code compares with 25."""

        depth: int = 2

        def plan(self, schema):
            depth = self.depth if self.depth > 25 else min(self.depth, 25)
            return dpf.sequential(*(dpf.step(f"{k}", Count(), DiscreteLaplace(1)) for k in range(2 ** max(depth, 0))))

    found = [one.how for one in subject_variants(Subject(Deep(), ITEMS, ADD)) if "depth" in one.how]
    assert "with depth = 4" in found
    assert not any("26" in how for how in found)


def test_a_bound_on_the_rows_is_left_as_it_is():
    def sizes(schema: dpf.Schema) -> list[str]:
        subject = Subject(Various(), schema, ADD)
        return [one.how for one in subject_variants(subject) if one.how.endswith("12 rows")]

    assert sizes(ITEMS) == ["on the example's schema with 12 rows", "on the example's schema with at most 12 rows"]
    assert sizes(attrs.evolve(ITEMS, max_rows=7)) == []
