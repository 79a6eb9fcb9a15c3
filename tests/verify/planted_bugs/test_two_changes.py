"""Bugs that need two changes to show, one changed attribute among many, or one rare number: planted beside their twins.

A flag together with another schema, a range that only one attribute has, an edge of a plugin's own bins, one day in
four years, the order of very many rows, and a plan that is made of a file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import Version, problems, require_named, require_no_problem
from verify.planted_bugs.test_beside_the_examples import ADD, l1
from verify.planted_bugs.test_other_parameters_and_sizes import Adds, Makes

import dpframework as dpf
from dpframework.queries import Query
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.audit_subject_variants import subject_variants
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import related_miners
from dpframework.verify.queries.schema_variants import far_schema, further_schemas
from dpframework.verify.queries.telling_number_search import telling_numbers
from dpframework.verify.queries.telling_row_search import answer_among
from dpframework.verify.tables.neighbours import Universe

PANEL = dpf.Schema([dpf.Numeric("pay", 0, 10, bins=2), dpf.Numeric("age", 0, 10, bins=2), dpf.Boolean("ill")])
TITLES = dpf.Schema([dpf.Categorical("title", ["jazz", "rock", "folk"]), dpf.Boolean("liked")])
DAYS = dpf.Schema([dpf.Numeric("day", 0, 1826, bins=5)])
PLACES = dpf.Schema([dpf.Numeric("lon", 0, 90, bins=4)])
DAY_0 = np.datetime64("2018-12-31")


def largest(numeric: dpf.Numeric) -> float:
    return max(abs(numeric.lower), abs(numeric.upper))


@attrs.frozen
class Squares(Makes):
    """Add up squares about the middle, where what is missing counts as 0, or not at all."""

    right: Any

    def query(self, schema):
        pay = schema["pay"]
        half = (pay.upper - pay.lower) / 2

        def squares(block: Any) -> Any:
            values = block.values("pay") if self.right else np.nan_to_num(block.values("pay"))
            return (values - pay.lower - half) ** 2

        return Adds(Fraction(half) ** 2, squares)


@attrs.frozen
class Sums(Makes):
    """Add up all numbers of a row, with the first attribute's bound for each, or with that of each."""

    right: Any

    def query(self, schema):
        own = [one for one in schema if isinstance(one, dpf.Numeric)]
        bound = sum(map(largest, own)) if self.right else largest(own[0]) * len(own)
        return Adds(bound, lambda block: sum(np.nan_to_num(block.values(one.name)) for one in own))


@attrs.frozen
class Flags(Makes):
    """Add up how many flags are set, of which the example has one."""

    right: Any

    def query(self, schema):
        flags = [one.name for one in schema if isinstance(one, dpf.Boolean)]
        return Adds(len(flags) if self.right else 1, lambda block: sum(block.codes(name) == 1 for name in flags))


@attrs.frozen
class Missing(Makes):
    """Add up rows and missing cells, if the first attribute may have some, or of all that may."""

    right: Any

    def query(self, schema):
        some = [one for one in schema if one.missing]
        bound = len(some) if self.right or next(iter(schema)).missing else 0

        def count(block: Any) -> Any:
            missing = [block.codes(one.name) == one.size - 1 for one in some]
            return sum(missing, np.ones(block.rows, dtype=np.int64))

        return Adds(1 + bound, count)


@attrs.frozen
class Scales(Makes):
    """Add up scaled values, or values as they are, whose bound is the upper one."""

    right: Any
    scale: bool = True

    def query(self, schema):
        pay = schema["pay"]
        if self.scale:
            return Adds(1, lambda block: (block.values("pay") - pay.lower) / (pay.upper - pay.lower))
        return Adds(largest(pay) if self.right else abs(pay.upper), lambda block: block.values("pay"))


@attrs.frozen
class Lags(Makes):
    """Count who is ill once for each lag, or for each lag and those before it."""

    right: Any
    lags: int = 1
    cumulate: bool = False

    def query(self, schema):
        if self.lags < 1:
            raise dpf.InputError("lags must be above 0")
        times = self.lags * (self.lags + 1) // 2 if self.cumulate else self.lags
        return Adds(times if self.right else self.lags, lambda block: times * (block.codes("ill") == 1))


@attrs.frozen
class OnePass(Query):
    """Squares about the middle, from sums of squares that are large, or of squares that are small."""

    name = "one-pass"
    integer = False
    answer_length = 1
    pay: dpf.Numeric
    right: Any

    @property
    def sensitivities(self):
        return l1((Fraction(self.pay.upper) - Fraction(self.pay.lower)) ** 2 / 4)

    def count(self, block, **inputs):
        values = block.values("pay") - (self.middle if self.right else 0)
        values = values[~np.isnan(values)]
        return np.array([len(values), values.sum(), (values**2).sum()])

    @property
    def middle(self):
        return (self.pay.lower + self.pay.upper) / 2

    def answer(self, counts, **inputs):
        rows, values, squares = counts
        middle = 0 if self.right else self.middle
        return np.array([squares - 2 * middle * values + rows * middle**2])


@attrs.frozen
class Variance(Makes):
    """Release squares about the middle."""

    right: Any

    def query(self, schema):
        return OnePass(schema["pay"], self.right)


@attrs.frozen
class Letters(Makes):
    """Add up the bytes of titles, with the largest number of letters, or of bytes, for a bound."""

    right: Any

    def query(self, schema):
        labels = schema["title"].labels
        sizes = np.array([len(label.encode()) for label in labels])
        return Adds(sizes.max() if self.right else max(map(len, labels)), lambda block: sizes[block.codes("title")])


@attrs.frozen
class Levels(Makes):
    """Count rows at each level of a tree, with the depth of the first title, or the largest one, for a bound."""

    right: Any
    parents: Mapping[str, str] = attrs.field(
        factory=lambda: {"jazz": "music", "rock": "music", "folk": "music", "music": "all"}
    )

    def depth(self, title: str) -> int:
        return 1 + self.depth(self.parents[title]) if title in self.parents else 0

    def query(self, schema):
        depths = np.array([self.depth(title) for title in schema["title"].labels])
        return Adds(depths.max() if self.right else depths[0], lambda block: depths[block.codes("title")])


@attrs.frozen
class Cells(Query):
    """Counts rows in cells of its own, which are closed on both sides, or on one."""

    name = "cells"
    edges: tuple[float, ...]
    right: Any

    @property
    def answer_length(self):
        return len(self.edges) - 1

    @property
    def sensitivities(self):
        return l1(1)

    def count(self, block, **inputs):
        lon = block.values("lon")
        above = [lon > edge if self.right else lon >= edge for edge in self.edges[:-1]]
        return np.array([(own & (lon <= edge)).sum() for own, edge in zip(above, self.edges[1:], strict=True)])


@attrs.frozen
class Grid(Makes):
    """Count rows in cells of one width."""

    right: Any
    width: float = 7.3

    def query(self, schema):
        lon = schema["lon"]
        return Cells(tuple(np.arange(lon.lower + 0.1, lon.upper, abs(self.width)).tolist()), self.right)


@attrs.frozen
class Bands(Makes):
    """Count rows in bands with given edges, of which only the smallest one is on both sides."""

    right: Any
    edges: tuple[float, ...] = (0.1, 1.3, 2.7, 5.9, 11.3, 17.1, 29.3, 41.7, 63.3, 88.8)

    def query(self, schema):
        return OneClosed(self.edges, self.right)


@attrs.frozen
class OneClosed(Cells):
    """Counts rows in cells of which only the first one may be closed on both sides."""

    name = "bands"

    def count(self, block, **inputs):
        lon = block.values("lon")
        pairs = enumerate(zip(self.edges, self.edges[1:], strict=False))
        closed = 0 if self.right else 1
        return np.array([((lon >= a) & ((lon < b) | ((k == closed - 1) & (lon == b)))).sum() for k, (a, b) in pairs])


@attrs.frozen
class DaysOfYears(Query):
    """Counts rows by the day of the year, of which there are 366, or 365 except for one day in four years."""

    name = "days"
    answer_length = 366
    right: Any

    @property
    def sensitivities(self):
        return l1(1)

    def count(self, block, **inputs):
        days = block.values("day")
        dates = DAY_0 + days[~np.isnan(days)].astype(np.int64)
        found = np.zeros(366 if self.right else 365, dtype=np.int64)
        np.add.at(found, (dates - dates.astype("datetime64[Y]")).astype(np.int64), 1)
        return found


@attrs.frozen
class Calendar(Makes):
    """Release how many rows each day of the year has."""

    right: Any

    def query(self, schema):
        return DaysOfYears(self.right)


@attrs.frozen
class FirstRows(Query):
    """Counts the first thousands of rows, to be fast, or all."""

    name = "first-rows"
    size: int
    right: Any

    @property
    def answer_length(self):
        return self.size

    @property
    def sensitivities(self):
        return l1(1)

    def count(self, block, **inputs):
        return np.bincount(block.codes("title")[: None if self.right else 20_000], minlength=self.size)


@attrs.frozen
class Fast(Makes):
    """Release how many rows each title has."""

    right: Any

    def query(self, schema):
        return FirstRows(schema["title"].size, self.right)


PLANTED: dict[str, tuple[Callable[[Any], dpf.Miner], dpf.Schema, str]] = {
    "0 for missing cells": (
        Squares,
        PANEL,
        "with missing cells and numbers above 0: l1 declared 25, largest found 625",
    ),
    "one range for all": (Sums, PANEL, "with a wider range of age alone: l1 declared 20, largest found 30"),
    "as many flags as the example": (
        Flags,
        PANEL,
        "with another attribute of each kind: l1 declared 1, largest found 2",
    ),
    "the first one's missing cells": (
        Missing,
        PANEL,
        "with missing cells of ill alone: l1 declared 1, largest found 2",
    ),
    "a flag, and numbers below 0": (
        Scales,
        PANEL,
        "with numbers below 0, with scale = False: l1 declared 10, largest found 20",
    ),
    "a flag, and a number": (Lags, PANEL, "with cumulate = True and lags = 2: l1 declared 2, largest found 3"),
    "squares of large numbers": (Variance, PANEL, "one-pass, on the example's schema with numbers far above 0: l1"),
    "bytes for letters": (Letters, TITLES, "with one more value: l1 declared 10, largest found 11"),
    "the depth of one leaf": (
        Levels,
        TITLES,
        "'folk': 'jazz', 'jazz': 'music', 'music': 'all', 'rock': 'music'}: l1 declared 2, largest found 3",
    ),
    "cells of one width that share edges": (Grid, PLACES, "cells: l1 declared 1, largest found 2"),
    "two bands that share an edge": (Bands, PLACES, "bands: l1 declared 1, largest found 2"),
    "a leap year's last day": (Calendar, DAYS, "days: fails on a table with IndexError"),
    "the first rows only": (Fast, TITLES, "first-rows: its answer on 69,996 rows depends on their order"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_that_needs_two_changes_or_a_rare_number_is_named(bug, record_property):
    require_named(PLANTED, bug, record_property)


@pytest.mark.parametrize("bug", PLANTED)
def test_the_honest_twin_passes(bug, record_property):
    require_no_problem(PLANTED, bug, record_property)


@attrs.frozen
class Pilot(Makes):
    """Cap pay at a number from a file, or from a parameter."""

    name = "pilot"

    cap: float = 8.0
    path: str | None = None

    def query(self, schema):
        cap = abs(self.cap if self.path is None else json.loads(Path(self.path).read_text())["p99"])
        return Adds(cap, lambda block: np.clip(block.values("pay"), -cap, cap))


def test_a_plan_that_opens_a_file_of_data_is_named(tmp_path):
    file = tmp_path / "pilot.json"
    file.write_text('{"p99": 8}')
    named = f"the plan of 'pilot' opens {file}; a plan must follow from schema and parameters alone"
    assert any(named in what for what in problems(Pilot(path=str(file)), PANEL, ADD))
    assert problems(Pilot(), PANEL, ADD) == []


def test_numbers_far_from_0_are_as_far_apart_as_before():
    far = far_schema(PANEL)
    assert far is not None
    assert [one.upper - one.lower for one in far if isinstance(one, dpf.Numeric)] == [10, 10]
    assert far["pay"].lower > 1e9
    assert far_schema(TITLES) is None


def test_other_attributes_get_names_of_their_own():
    further = dict(further_schemas(PANEL))
    assert further["on the example's schema with another attribute of each kind"].names == (
        *PANEL.names,
        "another age",
        "another ill",
    )
    assert [one.missing for one in further["on the example's schema with missing cells of ill alone"]] == [0, 0, 1]


def test_a_tree_of_parents_gets_deeper_and_no_cycle():
    changed = [miner.parents for _, miner in related_miners(Levels(Version(True)), TITLES)]
    assert {"jazz": "music", "rock": "music", "folk": "jazz", "music": "all"} in changed
    assert all(set(parents.values()) - set(parents) for parents in changed)


def test_a_switch_is_turned_together_with_other_schemas_and_numbers():
    variants = list(subject_variants(Subject(Lags(Version(True)), PANEL, ADD)))
    both = [one.how for one in variants if "cumulate = True" in one.how and one.brief]
    assert "with cumulate = True and lags = 2" in both
    (below_0,) = (one.subject for one in variants if one.how.endswith("with numbers below 0, with cumulate = True"))
    assert below_0.miner.cumulate
    assert below_0.schema["pay"].lower < 0
    assert [one.how for one in variants if one.may_fail] == ["on the example's schema with numbers far above 0"]


def test_telling_numbers_are_peaks_edges_and_days():
    def numbers(query: Query, schema: dpf.Schema, *constants: float) -> list[float]:
        def answer(universe: Universe, rows: bytes) -> Any:
            return answer_among(query, (), {}, universe, rows)

        (found,) = telling_numbers(query, Universe(schema), answer, 0, constants).values()
        return found

    assert numbers(Cells((0.0, 7.3, 14.6), Version(False)), PLACES, 7.3) == [7.3]
    assert numbers(DaysOfYears(Version(False)), DAYS) == [731.0]
    assert numbers(DaysOfYears(Version(True)), DAYS) == []
    (peak,) = numbers(Adds(90, lambda block: 90 - np.abs(block.values("lon") - 61.7)), PLACES)
    assert math.isclose(peak, 61.7, abs_tol=0.1)
