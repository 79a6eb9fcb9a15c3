"""Bugs at computed edges, at numbers of a dictionary, for more inputs, and for other queries: planted beside twins.

Edges of bins may be computed, so that no constant tells them. Numbers of special cases may stand in a dictionary. A
query may get more candidates than its bound allows, and a query that wraps another may know one kind of query only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import Version, require_named, require_no_problem
from verify.planted_bugs.test_beside_the_examples import l1
from verify.planted_bugs.test_other_parameters_and_sizes import Adds, Makes

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.queries import Histogram, Marginals, Norm, Query
from dpframework.verify.plugin_code_constants import constants_of
from dpframework.verify.queries.telling_number_search import telling_numbers
from dpframework.verify.queries.telling_row_search import answer_among
from dpframework.verify.tables.neighbours import Universe

LOADS = dpf.Schema([dpf.Numeric("kwh", 0, 1_000, bins=4)])
PLACES = dpf.Schema([dpf.Numeric("lon", 24, 26, bins=2), dpf.Numeric("lat", 60, 61, bins=2)])
ITEMS = dpf.Schema([dpf.Boolean(name) for name in "abcd"])
STATIONS = {"Kaisaniemi": (24.94, 60.17), "Kumpula": (24.96, 60.2)}


@attrs.frozen
class LogBins(Query):
    """Counts rows in bins whose edges are computed, and closed on both sides or on one."""

    name = "log-bins"
    right: Any
    answer_length = 5

    @property
    def sensitivities(self):
        return l1(1)

    def count(self, block, **inputs):
        kwh, edges = block.values("kwh"), np.geomspace(1, 900, 6)
        above = [kwh > low if self.right else kwh >= low for low in edges[:-1]]
        return np.array([(own & (kwh <= high)).sum() for own, high in zip(above, edges[1:], strict=True)])


@attrs.frozen
class Loads(Makes):
    """Release how many households use how much."""

    right: Any

    def query(self, schema):
        return LogBins(self.right)


@attrs.frozen
class NearStations(Makes):
    """Count trips near stations, and those at a station three times."""

    right: Any

    def query(self, schema):
        def points(block: Any) -> Any:
            lon, lat = block.values("lon"), block.values("lat")
            far = [np.hypot((lon - x) / 2, lat - y) for x, y in STATIONS.values()]
            return sum((each < 2) * 1 + 2 * (each < 0.001) for each in far)

        return Adds(4 if self.right else 2, points)


@attrs.frozen
class Supports(Query):
    """The supports of pairs of items, at most as many as are charged, or as many as there are."""

    name = "supports"
    limit: int
    right: Any

    @property
    def sensitivities(self):
        return l1(self.limit)

    def count(self, block, pairs=(("a", "b"),), **inputs):
        pairs = pairs[: self.limit] if self.right else pairs
        return np.array([((block.codes(one) == 1) & (block.codes(other) == 1)).sum() for one, other in pairs])


@attrs.frozen
class FrequentPairs(dpf.Miner):
    """Release the supports of pairs of frequent items."""

    name = "frequent-pairs"
    right: Any

    def plan(self, schema):
        items = dpf.step("items", Marginals(list(schema)), DiscreteLaplace(1))
        return dpf.sequential(items, dpf.step("pairs", Supports(6, self.right), DiscreteLaplace(1), uses=["items"]))

    def mine(self, table):
        counts = table.release("items")
        ends = np.cumsum([own.size for own in table.schema])
        frequent = [own.name for own, end in zip(table.schema, ends, strict=True) if counts[end - own.size + 1] > 0]
        pairs = tuple(itertools.combinations(frequent, 2))
        return table.release("pairs", pairs=pairs) if pairs else None


@attrs.frozen
class Scaled(Query):
    """Another query's counts times a factor."""

    name = "scaled"
    integer = False
    of: Query
    factor: int
    right: Any

    @property
    def answer_length(self):
        return self.of.answer_length

    @property
    def sensitivities(self):
        known = self.of.facts().sensitivity(Norm.L1)
        assert known is not None
        assert known.add_or_remove_one is not None
        return l1(abs(self.factor) * (known.add_or_remove_one if self.right else 1))

    def count(self, block, **inputs):
        return self.of.count(block)

    def answer(self, counts, **inputs):
        return self.factor * np.asarray(self.of.answer(counts), dtype=np.float64)


@attrs.frozen
class Scales(Makes):
    """Release scaled counts of a query."""

    right: Any
    of: Query = attrs.field(factory=lambda: Histogram(ITEMS["a"]))
    factor: int = 3

    def query(self, schema):
        return Scaled(self.of, self.factor, self.right)


PLANTED: dict[str, tuple[Callable[[Any], dpf.Miner], dpf.Schema, str]] = {
    "bins that share a computed edge": (Loads, LOADS, "log-bins: l1 declared 1, largest found 2"),
    "weights at places of a dictionary": (NearStations, PLACES, "adds: l1 declared 2, largest found 4"),
    "more pairs than are charged": (
        FrequentPairs,
        ITEMS,
        "supports, on the example's schema with 9 more attributes of 2 values: l1 declared 6, largest found",
    ),
    "a query of two histograms for one of one": (Scales, ITEMS, "scaled, with of = Marginals("),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_at_a_computed_edge_or_for_other_inputs_is_named(bug, record_property):
    require_named(PLANTED, bug, record_property)


@pytest.mark.parametrize("bug", PLANTED)
def test_the_honest_twin_passes(bug, record_property):
    require_no_problem(PLANTED, bug, record_property)


def test_a_jump_of_an_answer_is_located_to_the_last_bit():
    def numbers(query: Query) -> list[float]:
        def answer(universe: Universe, rows: bytes) -> Any:
            return answer_among(query, (), {}, universe, rows)

        return telling_numbers(query, Universe(LOADS), answer, 0, ())["kwh"]

    edges = np.geomspace(1, 900, 6)[1:-1].tolist()
    (edge,) = numbers(LogBins(Version(False)))
    assert edge in edges
    assert numbers(LogBins(Version(True))) == []
    smooth = numbers(Adds(Fraction(1_000), lambda block: block.values("kwh")))
    assert smooth == [1_000.0]


def test_numbers_of_dictionaries_come_after_those_of_the_code():
    table = {"a": np.array([7.5, 3.0]), "b": {9: ("text", 2.5)}}

    class Looks:
        """Looks numbers up."""

        def look(self) -> Any:
            return table["a"][0] > 4.25 and STATIONS

    found = constants_of([Looks()])
    assert found.index(4.25) < found.index(60.2) < found.index(24.94)

    class Holds(Looks):
        """Holds the numbers in a class attribute, too."""

        held = table

    assert {9.0, 7.5, 3.0, 2.5} <= {*constants_of([Holds()])}
