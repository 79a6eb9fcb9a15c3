"""Bugs that show at a number of the code, in a list left out, with another budget, and in texts: planted beside twins.

A parameter may be a special case where it equals a number that the code compares it with. A list or a pair may be left
out in the examples. A plan may ask other queries for a larger budget, or for more rows. Rounded parts of a budget may
add up to more. An answer may jump at a few rows. Texts may be numbers, or become longer if their case is folded, or be
cut within a letter.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import Version, require_named, require_no_problem
from verify.planted_bugs.test_beside_the_examples import ADD, l1
from verify.planted_bugs.test_other_parameters_and_sizes import Makes

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.queries import Histogram, Query
from dpframework.verify import MinerConformance
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.audit_subject_variants import subject_variants
from dpframework.verify.plugin_code_constants import numbers_compared_with
from dpframework.verify.queries.parameter_values_from_types import listed_values
from dpframework.verify.queries.texts_to_try import LONGER

AGES = dpf.Schema([dpf.Numeric("age", 0, 8, bins=2)])
PEOPLE = dpf.Schema([dpf.Numeric("age", 0, 8, bins=2), dpf.Categorical("town", ["A", "B"])])
ABOUT = attrs.evolve(PEOPLE, about_rows=50)
NOTES = dpf.Schema([dpf.Open("note")])


@attrs.frozen
class Levels(Query):
    """Counts each row on some levels of a tree."""

    name = "levels"
    levels: int
    charged: int

    @property
    def answer_length(self):
        return self.levels

    @property
    def sensitivities(self):
        return l1(self.charged)

    def count(self, block, **inputs):
        return np.full(self.levels, len(block.codes("town")))


@attrs.frozen
class Order(Makes):
    """Count on one level, or on two where the order is 1: a special case, as limits of formulas are."""

    right: Any
    order: float = 3.0

    def query(self, schema):
        levels = 2 if self.order == 1 else 1
        return Levels(levels, levels if self.right else 1)


@attrs.frozen
class Rank(Makes):
    """The same for a whole number and a list of special ones."""

    right: Any
    rank: int = 30

    def query(self, schema):
        levels = 2 if self.rank in (7, 9) else 1
        return Levels(levels, levels if self.right else 1)


@attrs.frozen
class Jumps(Query):
    """The number of rows, and two more from 17 rows on."""

    name = "jumps"
    answer_length = 1
    right: Any

    @property
    def sensitivities(self):
        return l1(3 if self.right else 1)

    def count(self, block, **inputs):
        return np.array([block.rows])

    def answer(self, counts, **inputs):
        return counts + 2 * (counts >= 17)


@attrs.frozen
class Bonus(Makes):
    """Count rows with a bonus."""

    right: Any

    def query(self, schema):
        return Jumps(self.right)


@attrs.frozen
class Clipped(Query):
    """The sum of ages, clipped to bounds; a missing one counts as 0."""

    name = "clipped"
    answer_length = 1
    integer = False
    low: float
    high: float
    largest: Fraction

    @property
    def sensitivities(self):
        return l1(self.largest)

    def count(self, block, **inputs):
        return np.array([np.clip(np.nan_to_num(block.values("age")), self.low, self.high).sum()])


@attrs.frozen
class Within(Makes):
    """Add up ages within bounds, if some are given, with their width for a bound of what a row adds."""

    right: Any
    bounds: tuple[float, float] | None = None

    def query(self, schema):
        low, high = self.bounds or (schema["age"].lower, schema["age"].upper)
        if not low < high:
            raise dpf.InputError("bounds must increase")
        own = self.right or self.bounds is None
        largest = max(abs(low), abs(high)) if own else high - low
        return Clipped(low, high, Fraction(largest))


@attrs.frozen
class Strata(Makes):
    """Count each row once for each of some strata, or once if none is given."""

    right: Any
    strata: Sequence[str] | None = None

    def query(self, schema):
        levels = len([schema[name] for name in self.strata or ("age",)])
        return Levels(levels, levels if self.right else 1)


@attrs.frozen
class ByBudget(Makes):
    """Count on more levels if the budget is large."""

    right: Any
    epsilon: float = 1.0

    def query(self, schema):
        levels = 3 if self.epsilon > 4 else 2
        return Levels(levels, levels if self.right else 2)


@attrs.frozen
class ByRows(Makes):
    """Count on more levels if there are many rows."""

    right: Any

    def query(self, schema):
        levels = 3 if (schema.about_rows or 0) > 5_000 else 2
        return Levels(levels, levels if self.right else 2)


@attrs.frozen
class OfTexts(Query):
    """Adds up a number of each note, and counts the notes."""

    name = "of-texts"
    answer_length = 1
    integer = False
    most: int
    number: Callable[[str], float]

    @property
    def sensitivities(self):
        return l1(self.most)

    def count(self, block, **inputs):
        notes = block.keys("note").count_keys().items()
        return np.array([sum(self.number(text or "") * times for text, times in notes)], dtype=np.float64)


@attrs.frozen
class Notes(Makes):
    """Add up a number of each note."""

    right: Any
    number: Callable[[str, Any], float]

    def query(self, schema):
        return OfTexts(LARGEST[self.number], functools.partial(self.number, right=self.right))


def letters(text: str, right: Any) -> int:
    """Return how many of the first eight letters there are, in lower case."""
    return len(text.casefold()[:8] if right else text[:8].casefold())


def amount(text: str, right: Any) -> float:
    """Return an amount within [0, 50], 0 where a note is none."""
    try:
        found = float(text)
    except ValueError:
        return 0
    return 0 if right and math.isnan(found) else float(np.clip(found, 0, 50))


def digit(text: str, right: Any) -> int:
    """Return the last digit of a note, 0 where it has none."""
    last = text[-1:]
    return int(last) if (last.isdecimal() if right else last.isdigit()) else 0


def size(text: str, right: Any) -> int:
    """Return how many letters the first 32 bytes of a note hold."""
    return len(text.encode()[:32].decode(errors="ignore" if right else "strict"))


LARGEST = {letters: 8, amount: 50, digit: 9, size: 32}
PLANTED: dict[str, tuple[Callable[[Any], dpf.Miner], dpf.Schema, str]] = {
    "an order of 1": (Order, PEOPLE, "with order = 1.0: l1 declared 1, largest found 2"),
    "one of two ranks": (Rank, PEOPLE, "with rank = 7: l1 declared 1, largest found 2"),
    "two bounds that are left out": (Within, AGES, "with bounds = (1.0, 2.0): l1 declared 1, largest found 2"),
    "strata that are left out": (Strata, PEOPLE, "with strata = ('age', 'town'): l1 declared 1, largest found 2"),
    "a level more for a larger budget": (ByBudget, PEOPLE, "epsilon = Fraction(10, 1): l1 declared 2, largest found 3"),
    "a level more for many rows": (ByRows, ABOUT, "with about 1,000,000 rows: l1 declared 2, largest found 3"),
    "a bonus for 17 rows": (Bonus, AGES, "jumps: l1 declared 1, largest found 3"),
    "letters whose case is folded late": (
        lambda right: Notes(right, letters),
        NOTES,
        "l1 declared 8, largest found 16",
    ),
    "a note that says nan": (lambda right: Notes(right, amount), NOTES, "of-texts: its answer holds nan"),
    "a digit that is no number": (lambda right: Notes(right, digit), NOTES, "fails on a table with ValueError"),
    "a letter that is cut": (lambda right: Notes(right, size), NOTES, "fails on a table with UnicodeDecodeError"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_at_a_compared_number_or_in_a_text_is_named(bug, record_property):
    require_named(PLANTED, bug, record_property)


@pytest.mark.parametrize("bug", PLANTED)
def test_the_honest_twin_passes(bug, record_property):
    require_no_problem(PLANTED, bug, record_property)


@attrs.frozen
class RoundedBudget(dpf.Miner):
    """Counts towns in three rounds, each with a third of the budget, which is rounded to cents or as a float."""

    name = "rounded-budget"
    epsilon: Fraction = attrs.field(default=Fraction(1), converter=Fraction)
    right: Any = attrs.field(factory=lambda: Version(True))
    rounds: int = 3
    digits: int | None = 2

    def plan(self, schema):
        share = self.epsilon / self.rounds
        if not self.right:
            share = float(share) if self.digits is None else round(share, self.digits)
        towns = Histogram(schema["town"])
        return dpf.sequential(*(dpf.step(f"{k}", towns, DiscreteLaplace(share)) for k in range(self.rounds)))

    def mine(self, table):
        return [table.release(f"{k}") for k in range(self.rounds)]


@pytest.mark.parametrize("right", [False, True])
def test_a_rounded_part_of_a_budget_is_named(right, record_property):
    found = ""
    try:
        example = dpf.Example(PEOPLE, RoundedBudget(right=Version(right)))
        MinerConformance().test_it_spends_no_more_than_its_parameter_says(example, ADD)
    except AssertionError as error:
        found = str(error)
    record_property("correct version" if right else "planted bug", ("a rounded budget", right is (not found)))
    assert right is (not found)
    assert right or "with epsilon = 0.714286, the plan costs epsilon = 0.72" in found


def test_a_total_that_a_float_rounds_up_says_so():
    miner = RoundedBudget(right=Version(False), rounds=11, digits=None)
    overspent = Subject(miner, PEOPLE, ADD).overspent
    assert overspent is not None
    assert "the plan costs 1e-17 more than the parameter epsilon = 1 under add-or-remove-one" in overspent
    study = dpf.Study(PEOPLE, epsilon=1)
    study.add("towns", miner)
    (refusal,) = study.plan().refusals()
    assert "is 1e-17 above the budget of 1.0" in refusal.message
    assert "compute shares with fractions.Fraction" in refusal.message


def test_other_budgets_and_estimates_are_tried_only_where_queries_differ():
    def tried(miner: dpf.Miner, schema: dpf.Schema) -> list[str]:
        hows = [one.how for one in subject_variants(Subject(miner, schema, ADD))]
        return [how for how in hows if "epsilon" in how or "about" in how]

    right = Version(True)
    assert tried(ByBudget(right), PEOPLE) == ["with epsilon = Fraction(10, 1)"]
    assert tried(ByRows(right), ABOUT) == ["on the example's schema with about 1,000,000 rows"]
    assert tried(ByRows(right), attrs.evolve(PEOPLE, max_rows=9)) == tried(RoundedBudget(), PEOPLE) == []


def test_numbers_that_the_code_compares_with_a_parameter_are_found():
    assert numbers_compared_with(Order, "order") == [1.0]
    assert numbers_compared_with(Rank, "rank") == [7.0, 9.0]
    assert numbers_compared_with(Rank, "other") == []


@attrs.frozen
class LeftOut:
    """Collections that are left out."""

    box: tuple[float, float, float] | None = None
    seen: frozenset[int] | None = None
    names: tuple[str, str] | None = None
    weights: dict[str, float] | None = None
    labels: dict[str, str] | None = None
    when: Callable[[], int] | None = None


def test_collections_that_are_left_out_are_made_of_numbers_and_names():
    found = {field.name: listed_values(LeftOut, field.name, None, None, "abc") for field in attrs.fields(LeftOut)}
    assert found == {
        "box": [(1.0, 2.0, 3.0), (-3.0, -2.0, -1.0)],
        "seen": [{1, 2}, {-2, -1}],
        "names": [("a", "b")],
        "weights": [{"a": 1.0, "b": 2.0}],
        "labels": [],
        "when": [],
    }
    assert type(found["seen"][0]) is frozenset


def test_longer_texts_are_cut_within_a_letter_wherever_their_bytes_are_cut():
    def fails(text: str, most: int) -> bool:
        try:
            text.encode()[:most].decode()
        except UnicodeDecodeError:
            return True
        return False

    assert all(fails(LONGER, most) or fails(f"x{LONGER}", most) for most in range(3, 300))
