"""Sums within bounds between which there are few numbers, or none: their sensitivities hold there, too."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework import queries
from dpframework.queries.sums import LARGEST, NARROWEST
from dpframework.tables.encoded_row_blocks import Block
from dpframework.verify import search_sensitivity

ILL, COST = dpf.Boolean("ill"), dpf.Numeric("cost", -10, 10, bins=2)
SCHEMA = dpf.Schema([ILL, COST])
NEXT = math.nextafter(5, 6)
BOUNDS = [(5.0, NEXT), (5.0, math.nextafter(NEXT, 6)), (-NEXT, -5.0), (0.0, NARROWEST), (-NARROWEST / 2, NARROWEST / 2)]
MAKE: list[Callable[[dpf.Numeric], Any]] = [
    lambda cost: queries.ScaledSums(cost, by=[ILL]),
    lambda cost: queries.ScaledSums(cost, by=[ILL], centred=True),
    lambda cost: queries.ScaledSums(cost, centred=True, where=dpf.Equals("ill", "true")),
    lambda cost: queries.AtReleasedBounds(queries.BoundDistances(cost)),
    lambda cost: queries.AtReleasedBounds(queries.GroupMoments(cost, by=[ILL], degree=2)),
    lambda cost: queries.AtReleasedBounds(queries.QuantileScores(cost)),
]


@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one"])
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("make", MAKE)
def test_sensitivities_hold_within_narrow_bounds(
    make: Callable[[dpf.Numeric], Any], bounds: tuple[float, float], relation: str
) -> None:
    """Bounds are released, and a miner may give any. Half of a step, once rounded, is a whole one, or none at all."""
    schema = SCHEMA if relation == "add-or-remove-one" else attrs.evolve(SCHEMA, rows=3)
    report = search_sensitivity(make(COST), schema, relation, inputs={"bounds": bounds}, pairs=60)
    assert report.passed, report


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("make", MAKE)
def test_cross_tables_count_as_kernels_do_within_narrow_bounds(
    make: Callable[[dpf.Numeric], Any], bounds: tuple[float, float]
) -> None:
    """A database is asked for cross tables."""
    query = make(COST)
    values = np.array([-10, *bounds, 10, math.nextafter(bounds[0], 10), 0.0])
    codes = (values >= 0).astype(np.uint8)
    table = dpf.Table.from_codes(SCHEMA, [np.arange(len(values)) % 2, codes], {"cost": values})
    (block,) = dpf.InMemory().load(table)
    assert isinstance(block, Block)
    tables = query.tables(bounds=bounds)
    if tables is None:
        pytest.skip("it is counted by a kernel only")
    assert np.array_equal(query.count(block, bounds=bounds), tables.count(block))


@pytest.mark.parametrize("make", [*MAKE, queries.BoundedSum, lambda cost: queries.GroupSums(cost, by=[ILL])])
def test_bounds_without_a_step_between_them_are_refused(make: Callable[[dpf.Numeric], Any]) -> None:
    for upper in (5e-324, NARROWEST / 2):
        with pytest.raises(dpf.InputError, match=r"are closer than .*, so that numbers between"):
            make(dpf.Numeric("cost", 0, upper, bins=1))
    with pytest.raises(dpf.InputError, match=r"a bound is 1.7e\+308, which is too large for sums"):
        make(dpf.Numeric("cost", 0, 1.7e308, bins=1))
    (declared, *_) = make(dpf.Numeric("cost", 0, LARGEST, bins=1)).sensitivities
    assert declared.change.replace_one
