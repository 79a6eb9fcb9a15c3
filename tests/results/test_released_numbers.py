"""Numbers with their intervals, and points released as quantiles: printed, drawn, kept and refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpframework.facts.errors import InputError
from dpframework.results.estimates import Estimate, QuantileEstimate
from dpframework.results.noisy_count_with_interval import (
    Noisy,
    as_noisy,
    discrete_laplace_variance,
    error_of,
    heavy_deviation,
    quantile,
)

pytest.importorskip("matplotlib").use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")
MEDIAN = QuantileEstimate("age", "0.5", 37, rows=14.2, step=0.25)


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (5, 5, 5, "5.000000  [5.000000, 5.000000]"),  # no interval
        (0.5, 0, 1, "0.5  [0.0, 1.0]"),
        (0.52, 0.04, 0.96, "0.52  [0.04, 0.96]"),
        (1.26, 0.28, 1.27, "1.26  [0.28, 1.27]"),
        (12, 7.15, 17.14, "12.0  [7.1, 17.2]"),  # outwards
        (12, 7.5, 17.6, "12  [7, 18]"),
        (-7.4, -60.4, 39.6, "-7  [-61, 40]"),
        (1234567, 1000000, 2000001, "1234567  [1000000, 2000001]"),
        (-0.2, -30, 30, "0  [-30, 30]"),  # not -0
        (2e-13, 1e-13, 3e-13, "0.000000000000  [0.000000000000, 0.000000000001]"),
    ],
)
def test_as_many_digits_are_shown_as_a_hundredth_of_the_interval_has(
    value: float, low: float, high: float, shown: str
) -> None:
    assert " ".join(str(Estimate("x", value, low, high)).splitlines()[1].split()) == " ".join(f"x {shown}".split())


def test_numbers_of_more_digits_than_a_float_has_are_printed_with_a_power_of_ten() -> None:
    """To four digits, of which the ends of the interval are rounded outwards."""
    assert Estimate("mean", 1.23456e300, -1.00001e300, 1.23461e300).texts == ("1.235e+300", "[-1.001e+300, 1.235e+300]")
    assert Estimate("sum", 7.0, 0.0, 1e16).texts == ("7.000e+00", "[0.000e+00, 1.000e+16]")
    assert Estimate("sum", 7.0, 0.0, 9e15).texts == ("7", "[0, 9000000000000000]")


def test_estimates_are_printed_whole() -> None:
    assert str(Estimate("mean of age", 38.6, 38.2, 39.1)).splitlines() == [
        "what         value  95 %",
        "mean of age  38.60  [38.20, 39.10]",
        "Brackets: the 95 % interval, from the noise alone.",
    ]
    assert str(MEDIAN).splitlines() == [
        "attribute  quantile  value  off by at most",
        "age        0.5       37     15 rows",
        "With 95 % probability, at most that many rows separate the value from the exact quantile; values are rounded "
        "to steps",
        "of 0.25.",
    ]
    assert "  1 row\n" in str(QuantileEstimate("age", "1/3", 1234567891, rows=1, step=1 / 3))
    assert "1/3       1234567891 " in str(QuantileEstimate("age", "1/3", 1234567891, rows=1, step=1 / 3))
    assert "of 0.333333." in str(QuantileEstimate("age", "1/3", 1, rows=0, step=1 / 3))
    assert "  0 rows\n" in str(QuantileEstimate("age", "1/3", 1, rows=0, step=0))


@pytest.mark.parametrize(("value", "low", "high"), [(1, 1.1, 2), (1, 0, 0.9), (1, 2, 0)])
def test_an_interval_holds_its_value(value: float, low: float, high: float) -> None:
    with pytest.raises(InputError, match="the interval of 'x' does not contain its value"):
        Estimate("x", value, low, high)
    assert Estimate("x", 1, 1, 1).low == 1


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(wrong: float) -> None:
    for values, name in (((wrong, 0, 1), "value"), ((0, wrong, 1), "low"), ((0, -1, wrong), "high")):
        with pytest.raises(InputError, match=f"the {name} of an estimate must be finite"):
            Estimate("x", *values)
    for changed, name in (({"value": wrong}, "value"), ({"rows": wrong}, "how far"), ({"step": wrong}, "the step")):
        with pytest.raises(InputError, match=f"{name}.* must be finite"):
            QuantileEstimate("age", "0.5", **{"value": 1, "rows": 2, "step": 1, **changed})
    for negative in ({"rows": -1}, {"step": -1}):
        with pytest.raises(InputError):
            QuantileEstimate("age", "0.5", **{"value": 1, "rows": 2, "step": 1, **negative})


@pytest.mark.parametrize("kept", [Estimate("n", 3, 1, 4), QuantileEstimate("age", "1/3", 37, rows=15, step=1)])
def test_what_is_kept_is_read_again(kept: Any) -> None:
    assert type(kept).from_dict(json.loads(kept.to_json())) == kept
    (row,) = kept.to_frame().to_dicts()
    assert row == {**kept.to_dict(), **({"quantile": 1 / 3} if "quantile" in row else {})}
    assert getattr(kept, "quantile", Fraction(1, 3)) == Fraction(1, 3)
    with pytest.raises(InputError, match=f"this is not {kept.name_in_errors} that dpframework wrote"):
        type(kept).from_dict({"what": "n", "attribute": "age"})


def test_an_estimate_is_drawn_with_its_interval() -> None:
    axes = Estimate("n", 3, 1, 4).plot()
    _, caps, (bar,) = axes.containers[0].lines
    assert bar.get_segments()[0].tolist() == [[1, 0], [4, 0]]
    assert [cap.get_xdata().tolist() for cap in caps] == [[1], [4]]
    assert axes.containers[0].lines[0].get_xydata().tolist() == [[3, 0]]
    assert axes.get_yticks().tolist() == [0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["n"]
    pyplot.close(axes.figure)


def test_a_quantile_is_drawn_where_it_is() -> None:
    axes = MEDIAN.plot()
    assert axes.lines[0].get_xydata().tolist() == [[37, 0]]
    assert axes.get_yticks().tolist() == [0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["quantile 0.5 (± 15 rows)"]
    assert axes.get_xlabel() == "age"
    pyplot.close(axes.figure)


@pytest.mark.parametrize("error", [0.4, 0.2, 0.1, 0.08, 0.05, 0.001])
def test_the_quantile_of_noise_is_the_larger_of_the_normals_and_of_laplaces_of_deviation_one(error: float) -> None:
    one = stats.laplace(scale=1 / math.sqrt(2)).isf(error / 2), stats.norm.isf(error / 2)
    assert quantile(error) == pytest.approx(max(one))
    assert error_of(1 - error) == pytest.approx(error)


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, math.nan])
def test_a_level_is_between_0_and_1(level: float) -> None:
    with pytest.raises(InputError, match="a confidence level must be between 0 and 1"):
        error_of(level)


@pytest.mark.parametrize("scale", [0.1, 0.7, 3.0, 40.0])
def test_whole_noise_has_the_variance_of_its_law_and_continuous_noise_of_its_scale_is_wider(scale: float) -> None:
    k = np.arange(-4000, 4001)
    chances = np.exp(-np.abs(k) / scale)
    variance = float(chances @ k**2 / chances.sum())
    assert discrete_laplace_variance(scale) == pytest.approx(variance)
    assert heavy_deviation(variance) == pytest.approx(math.sqrt(2) * scale)
    assert heavy_deviation(0) == 0


def test_independent_noise_adds_up_and_public_numbers_have_none() -> None:
    assert Noisy(5, 2) - Noisy(3, 4) == Noisy(2, 6)
    assert Noisy(5, 2) + Noisy(3, 4) == Noisy(8, 6)
    assert (Noisy(5, 2) - 3, Noisy(5, 2) + 3) == (Noisy(2, 2), Noisy(8, 2))
    assert as_noisy(4) == Noisy(4, 0)
    assert str(Noisy(4.2, 0)) == "4"
    assert str(Noisy(4.2, 1)).startswith("4 ± ")
