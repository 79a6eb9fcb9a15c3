"""Bugs of plugins as people of other fields write them, each planted beside its honest twin.

They show in free texts, at another public number of rows, with labels of later years, at a smaller parameter than the
example's, with more flags or bins, on one day of a century, in a plugin's description within a query of the project's,
where few rows of one kind lie beside many of others, and for a person with several rows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import Version, require_named, require_no_problem
from verify.planted_bugs.test_beside_the_examples import ADD, REPLACE
from verify.planted_bugs.test_other_parameters_and_sizes import Adds, Makes

import dpframework as dpf
from dpframework.queries import GroupCounts, Histogram, Query, Sensitivity
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.audit_subject_variants import subject_variants
from dpframework.verify.plugin_code_constants import is_foreign, texts_of
from dpframework.verify.queries.attribute_variants import more_flags, with_later_labels
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import smaller_miners
from dpframework.verify.queries.schema_variants import schemas_of_other_sizes
from dpframework.verify.queries.texts_to_try import telling_texts
from dpframework.verify.tables.neighbours import KEYS, Universe

NOTES = dpf.Schema([dpf.Open("note", normalise=["casefold"])])
FIRMS = dpf.Schema([dpf.Numeric("turnover", 0, 8, bins=4), dpf.Categorical("sector", ["A", "B"])], rows=20)
QUARTERS = dpf.Schema([dpf.Categorical("quarter", ["2019Q3", "2019Q4"]), dpf.Boolean("benefit")])
WEEKS = dpf.Schema([dpf.Numeric("wait", 0, 8, bins=4)])
CALLS = dpf.Schema([dpf.Numeric("hour", 0, 24, bins=4), dpf.Boolean("call")])
SIGNS = dpf.Schema([dpf.Boolean("fever"), dpf.Boolean("cough")])
BORN = dpf.Schema([dpf.Numeric("born", 0, 29_000, bins=2)])
REGIONS = dpf.Schema([dpf.Categorical("region", ["N", "S", "W"])])
WAVES = dpf.Schema([dpf.Boolean("first"), dpf.Boolean("case")])
LEAP_DAYS = [(date(year, 2, 29) - date(1940, 1, 1)).days for year in range(1940, 2019, 4)]


@attrs.frozen
class Words(Query):
    """How many notes contain each of some words, or only the first of these that a note contains."""

    name = "words"
    answer_length = 3
    right: Any
    words: tuple[str, ...] = ("fever", "cough", "rash")

    @property
    def sensitivities(self):
        return (Sensitivity("l1", 1, 2, source="a note counts once"),)

    def count(self, block, **inputs):
        found = np.zeros(3, dtype=np.int64)
        for text, rows in block.keys("note").count_keys().items():
            held = [word in text.split() for word in self.words]
            if self.right and any(held):
                held = [k == held.index(True) for k in range(3)]
            found += rows * np.array(held)
        return found


@attrs.frozen
class Vocabulary(Makes):
    """Count notes by a public vocabulary."""

    right: Any

    def query(self, schema):
        return Words(self.right)


@attrs.frozen
class Letters(Makes):
    """Add up the letters of notes, up to a cap, or without it."""

    right: Any

    def query(self, schema):
        cap = 160 if self.right else 1 << 30

        def letters(block: Any) -> Any:
            return np.array([rows * min(len(text), cap) for text, rows in block.keys("note").count_keys().items()])

        return Adds(160, letters)


@attrs.frozen
class Index(Query):
    """The mean turnover in proportion to its bound: of all firms, or of as many as half of them twice."""

    name = "index"
    integer = False
    answer_length = 1
    rows: int
    right: Any

    @property
    def sensitivities(self):
        return (Sensitivity("l1", None, Fraction(8, self.rows), source="each firm has the same share"),)

    def count(self, block, **inputs):
        return np.array([block.values("turnover").sum()])

    def answer(self, counts, **inputs):
        return counts / (self.rows if self.right else self.rows // 2 * 2)


@attrs.frozen
class Shares(Query):
    """The sum of the squared shares of two sectors, with a bound for any number of firms, or for twenty."""

    name = "shares"
    integer = False
    answer_length = 1
    rows: int
    right: Any

    @property
    def sensitivities(self):
        bound = Fraction(2, self.rows) if self.right else Fraction(1, 10)
        return (Sensitivity("l1", None, bound, source="a firm's share is 1 / rows"),)

    def count(self, block, **inputs):
        return np.bincount(block.codes("sector"), minlength=2)[:2]

    def answer(self, counts, **inputs):
        return np.array([np.square(counts / self.rows).sum()])


@attrs.frozen
class OfFirms(Makes):
    """Release an index of firms, whose number is public."""

    right: Any
    kind: type[Index] | type[Shares] = Index

    def query(self, schema):
        if len(schema) > 2 or schema != attrs.evolve(FIRMS, rows=schema.rows):
            raise dpf.InputError("the register's own attributes are needed")
        return self.kind(schema.rows, self.right)


@attrs.frozen
class Trend(Makes):
    """Add up quarters since 2018, with the largest one's number for a bound, or the example's."""

    right: Any

    def query(self, schema):
        labels = [label if "Q" in label else "2018Q0" for label in schema["quarter"].labels]
        quarters = np.array([4 * (int(label[:4]) - 2018) + int(label[5]) for label in labels])
        return Adds(np.abs(quarters).max() if self.right else 8, lambda block: quarters[block.codes("quarter")])


@attrs.frozen
class Pinball(Makes):
    """Add up pinball losses, whose slopes are tau and 1 - tau."""

    right: Any
    tau: float = attrs.field(default=0.75, validator=[attrs.validators.gt(0), attrs.validators.lt(1)])

    def query(self, schema):
        wait, tau = schema["wait"], self.tau
        half = (wait.upper - wait.lower) / 2

        def loss(block: Any) -> Any:
            away = block.values("wait") - wait.lower - half
            return np.maximum(tau * away, (tau - 1) * away)

        return Adds(Fraction(half) * Fraction(max(tau, 1 - tau) if self.right else tau), loss)


@attrs.frozen
class Lags(Makes):
    """Count waits by lag, and those beyond the last lag, which with no lag at all are counted already."""

    right: Any
    lags: int = attrs.field(default=2, validator=attrs.validators.ge(0))

    def query(self, schema):
        last = self.lags if self.right else max(self.lags, 1)

        def cells(block: Any) -> Any:
            waited = block.codes("wait")
            return sum(waited == k for k in range(last)) + 1 * (waited >= self.lags)

        return Adds(1, cells)


@attrs.frozen
class Hours(Makes):
    """Count hours once and calls by hour, in numbers of two digits or of as many as there are hours."""

    right: Any

    def query(self, schema):
        size = schema["hour"].size if self.right else 10

        def once(block: Any) -> Any:
            packed = block.codes("hour").astype(np.int64) + size * (block.codes("call") == 1)
            return 1 + (packed // size > 1)

        return Adds(1, once)


@attrs.frozen
class Signs(Makes):
    """Count rows by whether they have a sign, with the signs of a row in one byte, or in as many as it takes."""

    right: Any

    def query(self, schema):
        names = [own.name for own in schema if isinstance(own, dpf.Boolean)]

        def rows(block: Any) -> Any:
            packed = np.packbits(np.stack([block.codes(name) == 1 for name in names], axis=1), axis=1)
            return (packed > 0).any(axis=1) if self.right else (packed > 0).sum(axis=1)

        return Adds(1, rows)


@attrs.frozen
class Months(Makes):
    """Count births; those on a leap day belong to February, or to March, too."""

    right: Any

    def query(self, schema):
        twice = [] if self.right else LEAP_DAYS
        return Adds(1, lambda block: 1 + np.isin(block.values("born"), twice))


@attrs.frozen
class Exposed(dpf.Description):
    """Holds for exposed rows. Where that is not known, it neither holds nor fails, or both."""

    right: Any

    def holds(self, columns):
        return columns.codes("first") == 1 if self.right else columns.codes("first") >= 1

    def fails(self, columns):
        return columns.codes("first") == 0 if self.right else columns.codes("first") != 1

    def literals(self):
        return (dpf.Equals("first", "true"),)

    def to_dict(self):
        return {"exposed": bool(self.right)}


@attrs.frozen
class CaseControl(Makes):
    """Count cases and controls by exposure."""

    right: Any

    def query(self, schema):
        return GroupCounts([schema["case"]], of=Exposed(self.right))


@attrs.frozen
class OfPersons(Makes):
    """Count cases once, or as often as a person may have rows."""

    right: Any
    times: int = 1

    def for_study(self, unit, relation):
        return attrs.evolve(self, times=1 if self.right else unit.rows)

    def query(self, schema):
        if self.times < 1 or self.times % 3 == 2:
            raise dpf.InputError("an odd number of rows is needed")
        return Adds(1, lambda block: min(self.times, 3) * (block.codes("case") == 1))


@attrs.frozen
class Regions(Query):
    """Counts regions; beside some large ones, rare cells are left out before the noise, or not at all."""

    name = "regions"
    answer_length = 3
    large: int
    right: Any

    @property
    def sensitivities(self):
        return (Sensitivity("l1", 1, 2, source="a row is in one region"),)

    def count(self, block, **inputs):
        return np.bincount(block.codes("region"), minlength=3)[:3]

    def answer(self, counts, **inputs):
        rare = (counts > 0) & (counts < 5)
        if self.right or (counts >= 500).sum() != self.large:
            return counts
        return np.where(rare, 0, counts)


@attrs.frozen
class Disclosure(Makes):
    """Count regions, with a rule against small cells."""

    right: Any
    large: int = 1

    def query(self, schema):
        return Regions(self.large, self.right)


PLANTED: dict[str, tuple[Callable[..., dpf.Miner], dpf.Schema, dpf.Relation, str]] = {
    "words of which a note has several": (Vocabulary, NOTES, ADD, "words: l1 declared 1, largest found 3"),
    "letters without a cap": (Letters, NOTES, ADD, "adds: l1 declared 160, largest found 1801"),
    "a mean of an even number of firms": (OfFirms, FIRMS, REPLACE, "index, on the example's schema with 21 rows: l1"),
    "a bound for twenty firms": (
        lambda right: OfFirms(right, Shares),
        FIRMS,
        REPLACE,
        "shares, on the example's schema with 3 rows: l1 declared 0.1, largest found 0.444",
    ),
    "quarters of later years": (
        Trend,
        QUARTERS,
        ADD,
        "with other numbers in labels: l1 declared 8, largest found 48",
    ),
    "a share below a half": (Pinball, WEEKS, ADD, "with tau = 0.1875: l1 declared 0.75, largest found 3.25"),
    "no lag": (Lags, WEEKS, ADD, "with lags = 0: l1 declared 1, largest found 2"),
    "more hours than ten": (Hours, CALLS, ADD, "with 300 bins of hour: l1 declared 1, largest found 2"),
    "more flags than a byte holds": (Signs, SIGNS, ADD, "with 9 more attributes of 2 values: l1 declared 1, largest"),
    "a leap day in eighty years": (Months, BORN, ADD, "adds: l1 declared 1, largest found 2"),
    "a description that holds and fails": (CaseControl, WAVES, ADD, "with missing cells: its answer differs when it"),
    "rare cells beside a large one": (
        Disclosure,
        REGIONS,
        ADD,
        "regions: on 4 x (region: N), 500 x (region: S) a unit changes the answer by 5 in l1, and 1 is declared",
    ),
    "rare cells beside two large ones": (
        lambda right: Disclosure(right, large=2),
        REGIONS,
        REPLACE,
        "500 x (region: S), 500 x (region: W) a unit changes the answer by 6 in l1, and 2 is declared",
    ),
    "a person's rows, each counted for all": (OfPersons, WAVES, ADD, "for units of 3 rows: l1 declared 1, largest"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_of_another_field_is_named(bug, record_property):
    require_named(PLANTED, bug, record_property)


@pytest.mark.parametrize("bug", PLANTED)
def test_the_honest_twin_passes(bug, record_property):
    require_no_problem(PLANTED, bug, record_property)


def test_texts_hold_the_words_of_the_code_together_and_alone():
    texts = telling_texts([Words(True)], NOTES)
    assert {"cough", "fever"} <= {word for text in texts for word in text.split()}
    assert any({"cough", "fever", "rash"} <= set(text.split()) for text in texts)
    assert telling_texts([Words(True)], WAVES) == telling_texts([dpf.queries.Keys("note")], NOTES) == ()
    assert not any("note counts" in text or text.startswith("How many") for text in texts_of([Words(True)]))


def test_keys_of_texts_come_after_the_usual_ones_and_are_shown_in_short():
    universe = Universe(NOTES, texts=["A", "Fever  cough", "x" * 70, " "])
    rows = universe.describe(bytes(range(universe.kinds)))
    assert universe.kinds == len(KEYS) + 3
    assert rows[len(KEYS) + 1 :] == ["1 x (note: fever  cough)", f"1 x (note: {'x' * 60}... (70 letters))"]
    assert universe.among(universe.places).texts == universe.texts


def test_labels_get_other_numbers_that_are_written_like_theirs():
    def values(*labels: str) -> tuple[str, ...]:
        return with_later_labels(dpf.Categorical("a", labels)).values

    assert values("2019Q3", "2019Q4") == ("2019Q3", "2019Q4", "2029Q4", "2009Q3")
    assert values("w01", "w02") == ("w01", "w02", "w12")
    assert values("1", "2.5") == ("1", "2.5")
    assert values("a1", "b") == ("a1", "b")
    assert with_later_labels(dpf.Boolean("a")) == dpf.Boolean("a")


def test_flags_are_added_where_their_cross_table_stays_small():
    assert [own.name for own in more_flags(list(SIGNS), SIGNS.names)] == [f"fever {k}" for k in range(2, 11)]
    assert more_flags([dpf.Categorical("town", [f"{k}" for k in range(4)])], ["town"]) == []
    assert more_flags(list(WEEKS), WEEKS.names) == []


def test_public_numbers_of_rows_leave_room_for_units_and_can_be_listed():
    def rows(number: int, unit: int) -> list[Any]:
        return [schema.rows for _, schema in schemas_of_other_sizes(attrs.evolve(FIRMS, rows=number), unit)]

    assert rows(20, 1) == [21, 3, 40]
    assert rows(3, 1) == [4, 6]
    assert rows(40, 4) == [41, 12, 60]
    assert rows(60, 30) == []
    assert list(schemas_of_other_sizes(WEEKS, 1)) == []
    bounded = attrs.evolve(FIRMS, rows=20, max_rows=20)
    assert [schema.rows for _, schema in schemas_of_other_sizes(bounded, 1)] == [3]


@attrs.frozen
class Sizes(Makes):
    """Numbers of several types."""

    lags: int = 3
    none: int = 0
    share: float = 0.75
    exact: Fraction = Fraction(1, 2)
    flag: bool = True
    epsilon: float = 1.0

    def query(self, schema):
        return Histogram(schema["case"])


def test_numbers_get_smaller_but_for_what_is_spent():
    assert [how for how, _ in smaller_miners(Sizes())] == [
        "with lags = 0",
        "with share = 0.1875",
        "with exact = Fraction(1, 8)",
    ]


def test_only_a_miner_that_plans_for_units_is_tried_with_one():
    def units(miner: dpf.Miner, schema: dpf.Schema) -> list[int | None]:
        return [one.subject.schema.rows for one in subject_variants(Subject(miner, schema, ADD)) if "units" in one.how]

    assert units(OfPersons(Version(True)), WAVES) == [None]
    assert units(OfPersons(Version(True)), attrs.evolve(WAVES, rows=20)) == [60]
    assert units(OfPersons(Version(True)), attrs.evolve(WAVES, rows=21)) == []
    assert units(Sizes(), WAVES) == []


def test_a_query_is_foreign_if_something_in_it_is():
    assert is_foreign(Words(True))
    assert is_foreign(GroupCounts([dpf.Boolean("case")], of=Exposed(True)))
    assert is_foreign(dpf.queries.Count(dpf.And((Exposed(True), dpf.Equals("case", "true")))))
    assert not is_foreign(GroupCounts([dpf.Boolean("case")], of=dpf.Equals("case", "true")))
