"""A number in other units has the same results in those units: nearly every range elsewhere begins at 0.

Each miner is run twice with the same draws, on numbers x between 0 and 16 and on 4 x + 100 between 100 and 164, and on
-16 to 0. What is a place moves along, what is a difference is scaled, and counts stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframework as dpf

X = np.round(np.random.default_rng(6).beta(2, 5, 400) * 16 * 64) / 64  # exact in all units
Y = np.round(np.random.default_rng(7).beta(4, 2, 400) * 16 * 64) / 64
CUTS = [1.0, 2, 3, 5, 8, 12]
UNITS = {"larger": (4.0, 100.0), "lower": (1.0, -16.0)}

MINERS: dict[str, dict[str, Any]] = {
    "mean": {"attribute": "x"},
    "variance": {"attribute": "x"},
    "median": {"attribute": "x"},
    "quantile": {"attribute": "x", "quantile": "0.9"},
    "private-bounds": {"attribute": "x"},
    "histogram": {"attribute": "x"},
    "adaptive-grid": {"attributes": ["x", "y"]},
    "mean by": {"attribute": "x", "by": "ill"},
    "variance by": {"attribute": "x", "by": "ill"},
    "median by": {"attribute": "x", "by": "ill"},
}


def mined(name: str, scale: float = 1.0, offset: float = 0.0) -> tuple[Any, Any]:
    """What a miner finds of numbers in some units, and the errors that its plan states."""
    numbers = [
        dpf.Numeric(of, offset, offset + 16 * scale, cuts=[offset + scale * cut for cut in CUTS]) for of in ("x", "y")
    ]
    schema = dpf.Schema([*numbers, dpf.Boolean("ill")], about_rows=400)
    study = dpf.Study(schema, epsilon=3)
    study.add("it", dpf.miner(name.partition(" ")[0], epsilon=3, **MINERS[name]))
    rows = pl.DataFrame({"x": offset + scale * X, "y": offset + scale * Y, "ill": X > Y / 2})
    return study.run(dpf.table_from_frame(rows, schema), seed=4)["it"], study.plan().error_bounds()["it"]


def numbers_of(found: Any) -> list[Any]:
    return list(found.results) if hasattr(found, "results") else [found]


# The grid of a quantile has whole numbers, more of them in a larger range.
CASES = [
    (name, unit)
    for name in MINERS
    for unit in UNITS
    if unit == "lower" or name.split()[0] not in ("median", "quantile")
]


@pytest.mark.parametrize(("name", "unit"), CASES)
def test_results_in_other_units_are_those_of_the_same_draws(name: str, unit: str) -> None:
    scale, offset = UNITS[unit]
    (one, errors), (other, others) = mined(name), mined(name, scale, offset)
    kind = name.partition(" ")[0]

    def place(number: float) -> Any:
        return pytest.approx(offset + scale * number, rel=1e-9)

    if kind in ("mean", "median", "quantile"):
        for own, moved in zip(numbers_of(one), numbers_of(other), strict=True):
            assert moved.value == place(own.value)
            if kind == "mean":
                assert (moved.low, moved.high) == (place(own.low), place(own.high))
            else:
                assert (moved.rows, moved.step) == (own.rows, pytest.approx(scale * own.step))
    elif kind == "variance":
        for own, moved in zip(numbers_of(one), numbers_of(other), strict=True):
            for end in ("value", "low", "high"):
                assert getattr(moved, end) == pytest.approx(scale**2 * getattr(own, end))
    elif kind == "private-bounds":
        assert (other.lower, other.upper) == (place(one.lower), place(one.upper))
        assert (other.below, other.within, other.above) == (one.below, one.within, one.above)
    elif kind == "histogram":
        assert other.counts.tolist() == one.counts.tolist()
        assert len(set(other.labels[0])) == len(CUTS) + 1
    elif kind == "adaptive-grid":
        assert (other.cells, other.counts) == (one.cells, one.counts)
        assert other.edges[0] == tuple(offset + scale * edge for edge in one.edges[0])
    for own, moved in zip(errors, others, strict=True):
        power = {"mean": 1, "variance": 2}.get(kind, 0)
        if own.amount is not None:
            assert moved.amount == pytest.approx(scale**power * own.amount)
            assert moved.whole == (None if own.whole is None else pytest.approx(scale**power * own.whole))
            assert moved.likely == (None if own.likely is None else pytest.approx(scale**power * own.likely))


@pytest.mark.parametrize("unit", UNITS)
def test_results_between_released_bounds_move_with_them(unit: str) -> None:
    def found(scale: float = 1.0, offset: float = 0.0) -> Any:
        x = dpf.Numeric("x", offset, offset + 16 * scale, cuts=[offset + scale * cut for cut in CUTS])
        study = dpf.Study(dpf.Schema([x, dpf.Boolean("ill")], about_rows=400), epsilon=12)
        study.add("limits", dpf.miner("private-bounds", attribute="x", epsilon=3))
        study.add("bins", dpf.miner("histogram", attribute="x", bins=6, bounds="limits", epsilon=3))
        for name in ("mean", "variance"):
            study.add(name, dpf.miner(name, attribute="x", bounds="limits", epsilon=3))
        rows = pl.DataFrame({"x": offset + scale * X, "ill": X > 4})
        return study.run(dpf.table_from_frame(rows, study.schema), seed=4)

    scale, offset = UNITS[unit]
    one, other = found(), found(scale, offset)
    low, high = one["limits"].lower, one["limits"].upper
    assert (other["limits"].lower, other["limits"].upper) == (offset + scale * low, offset + scale * high)
    assert other["bins"].counts.tolist() == one["bins"].counts.tolist()
    ends = [float(text.strip("[)").split(",")[0]) for text in one["bins"].labels[0][1:]]
    moved = [float(text.strip("[)").split(",")[0]) for text in other["bins"].labels[0][1:]]
    assert moved == pytest.approx([offset + scale * end for end in ends], rel=1e-4)
    assert other["mean"].value == pytest.approx(offset + scale * one["mean"].value)
    assert other["variance"].value == pytest.approx(scale**2 * one["variance"].value)
    exact = np.clip(X, low, high)
    assert one["mean"].low <= exact.mean() <= one["mean"].high
