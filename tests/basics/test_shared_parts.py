"""What everyday miners share, each by itself: bounds, histograms of a budget's part, and what a step says of itself."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpframework as dpf
from dpframework.basics import CrosstabMiner, HistogramMiner, MarginalsMiner, RowsPerUnitMiner
from dpframework.basics.bounds_argument_check import as_bounds, bounds_misfit
from dpframework.basics.cell_count_mechanism import counting_mechanism
from dpframework.basics.histogram_miner import _cut_between
from dpframework.basics.mean_and_variance_miners import _of_sum, _share_of, share_interval
from dpframework.basics.one_way_marginal_steps import NoisyHistogram, OneWayMarginals
from dpframework.mechanisms import DiscreteLaplace, Gaussian, KNorm
from dpframework.queries import BoundedSum
from dpframework.results.estimates import QuantileEstimate
from dpframework.results.grid_and_bounds_results import FoundBounds
from dpframework.results.noisy_count_with_interval import CONFIDENCE, error_of, quantile

AGE = dpf.Numeric("age", 0, 90, bins=3)
ILL, TOWN = dpf.Boolean("ill", missing=True), dpf.Categorical("town", ["a", "b", "c"])


def test_bounds_are_two_numbers_or_a_step_of_the_same_attribute() -> None:
    assert as_bounds([1, 2.5]) == (1.0, 2.5)
    assert (as_bounds(None), as_bounds("found")) == (None, "found")
    for wrong in ([], [1], [1, 2, 3]):
        with pytest.raises(dpf.InputError, match=f"bounds has {len(wrong)} numbers; two are needed"):
            as_bounds(wrong)
    finds, other = (SimpleNamespace(result=FoundBounds, attribute=name, name="private-bounds") for name in ("x", "y"))
    counts = SimpleNamespace(result=int, attribute="x", name="count")
    of_any = SimpleNamespace(result=FoundBounds, name="a plugin's")
    assert bounds_misfit("x", {"s": finds}) is bounds_misfit("x", {"s": of_any}) is bounds_misfit("x", {}) is None  # type: ignore[dict-item]
    assert "of miner 'count'; name a step" in str(bounds_misfit("x", {"s": finds, "t": counts}))  # type: ignore[dict-item]
    assert "finds bounds of 'y' and not of 'x'" in str(bounds_misfit("x", {"s": other}))  # type: ignore[dict-item]


def test_two_independent_histograms_are_weighted_by_the_inverse_of_their_variances() -> None:
    both = NoisyHistogram(np.array([3.0, 8.0]), 1.0).with_another(NoisyHistogram(np.array([7.0, 4.0]), 3.0))
    assert both.counts.tolist() == [4.0, 7.0]
    assert both.variance == 0.75
    exact = NoisyHistogram(np.array([3.0]), 0.0).with_another(NoisyHistogram(np.array([7.0]), 2.0))
    assert (exact.counts.tolist(), exact.variance) == ([3.0], 0.0)
    none = NoisyHistogram(np.array([5.0]), 0.0).with_another(NoisyHistogram(np.array([5.0]), 0.0))
    assert np.isfinite(none.counts).all()


def test_histograms_are_one_step_in_zcdp_and_one_of_each_size_in_pure_epsilon() -> None:
    """The budget is shared out among the steps, and the variances are those of their attributes in the given order."""
    wide = dpf.Numeric("cost", 0, 100, bins=100)
    among = [ILL, wide, dpf.Boolean("new"), TOWN]
    (rho,) = OneWayMarginals(among, zcdp=True).plan(Fraction(1, 2)).items()
    assert rho[0] == "histograms"
    assert rho[1].mechanism.rho == Fraction(1, 2)  # type: ignore[attr-defined]
    pure = OneWayMarginals(among, zcdp=False)
    steps = pure.plan(Fraction(2))
    assert [(name, [own.name for own in step.query.of]) for name, step in steps.items()] == [  # type: ignore[attr-defined]
        ("histograms 1 of 2", ["ill", "new", "town"]),
        ("histograms 2 of 2", ["cost"]),
    ]
    shares = [step.mechanism.epsilon for step in steps.values()]  # type: ignore[attr-defined]
    assert sum(shares) == 2
    assert shares[0] < shares[1]
    study = dpf.Study(dpf.Schema(among), epsilon=3)
    study.add("n", dpf.miner("count", epsilon=1))
    plan = study.plan()
    of_ill, of_cost, of_new, of_town = pure.variances(Fraction(2), plan) or ()
    assert of_cost < of_ill == of_town < of_new  # K-norm noise is smaller where a histogram has more cells
    of_rho = OneWayMarginals(among, zcdp=True).variances(Fraction(2), plan)
    assert of_rho is not None
    assert 0.5 < min(of_rho) < max(of_rho) < 1  # which noise on each count would have: a row moves four, 4 over 2 rho


def test_counts_say_where_values_without_a_cell_of_their_own_go() -> None:
    cut_off = "counts are not clipped at 0; clipping would make small counts too large on average"
    beyond = "values of 'age' beyond its bounds count in the first or last bin"
    without_age, without_town = "rows without 'age' count as [0, 30)", "rows without 'town' count as a"
    study = dpf.Study(dpf.Schema([AGE, TOWN, ILL]), epsilon=3)
    study.add("age", HistogramMiner("age", epsilon=1))
    study.add("ill", HistogramMiner("ill", epsilon=1))
    study.add("both", CrosstabMiner(["town", "ill"], epsilon=1))
    biases = {name: list(bound.biases) for name, (bound,) in study.plan().error_bounds().items()}
    assert biases == {"age": [beyond, without_age, cut_off], "ill": [cut_off], "both": [without_town, cut_off]}


@pytest.mark.parametrize(("rows", "note"), [(1, "the study keeps one row of each unit"), (2, ""), (5, "")])
def test_the_choice_of_rows_per_unit_says_where_there_is_none(rows: int, note: str) -> None:
    study = dpf.Study(dpf.Schema([AGE]), epsilon=1, unit="id", rows_per_unit=rows)
    study.add("most", RowsPerUnitMiner(epsilon="0.1"))
    (bound,) = study.plan().error_bounds()["most"]
    assert bound.note.startswith(note)
    assert bool(bound.note) == (rows == 1)
    assert bound.unit == "units"


def test_a_mean_is_its_sum_over_the_rows_and_the_noise_of_one_number_apart() -> None:
    """A sum of differences to the middle of [10, 30], of 50 rows: each end is the sum's error over 50 away."""
    calibration: Any = SimpleNamespace(preview=SimpleNamespace(within=25.0))
    query = BoundedSum(dpf.Numeric("age", 0, 90, bins=3), lower=10, upper=30, centre=20)
    assert _of_sum(100.0, calibration, query, 50) == (22.0, 21.5, 22.5)


def test_a_share_is_one_half_where_both_seem_to_be_none_and_its_interval_holds_it() -> None:
    assert share_interval(-3, 0, 2.0)[0] == 0.5
    assert share_interval(30, -5, 2.0)[0] == 1.0
    assert share_interval(30, 10, 2.0)[0] == 0.75
    for one, other in ((30, 10), (10, 30), (0, 0), (5, -2)):
        share, low, high = share_interval(one, other, 2.0)
        assert 0 <= low <= share <= high <= 1
        mirrored = share_interval(other, one, 2.0)
        assert mirrored[1:] == pytest.approx((1 - high, 1 - low))
    # far from 0, Fieller's interval is as wide as the delta method says, for the reach of its noise
    share, low, high = share_interval(300_000, 100_000, 100.0)
    deviation = math.sqrt(100 * (0.75**2 + 0.25**2)) / 400_000
    assert (high - low) / 2 == pytest.approx(quantile(error_of(CONFIDENCE)) * deviation, rel=0.03)


def test_a_mean_of_a_pair_is_counted_in_steps_of_its_lattice() -> None:
    """Sums in widths, whose noise has steps of 1/1024: the interval is that of whole steps."""
    calibration: Any = SimpleNamespace(unit=Fraction(1, 1024), variance=2.0)
    assert _share_of([3.0, 1.0], calibration) == share_interval(3 * 1024, 1024, 2.0 * 1024**2)


def test_a_workload_of_marginals_is_planned_as_its_groups() -> None:
    study = dpf.Study(dpf.Schema([AGE, TOWN, ILL]), epsilon=1)
    study.add("tables", MarginalsMiner(epsilon="0.5"))
    assert study.plan().smallest_epsilon() == Fraction(1, 2)


@pytest.mark.parametrize(
    ("lower", "upper", "number", "cuts"),
    [(0, 10, 5, [2, 4, 6, 8]), (-3, 3, 2, [0]), (10, 20, 1, []), (5, 5, 4, []), (0, 1, 4, [0.25, 0.5, 0.75])],
)
def test_equal_bins_are_cut_between_their_bounds(lower: float, upper: float, number: int, cuts: list[float]) -> None:
    assert _cut_between(lower, upper, number) == cuts


@pytest.mark.parametrize(
    ("bins", "cuts"),
    [
        (None, AGE.interior_cuts),
        (2, (45,)),
        ((0, 18, 65, 90), (18, 65)),  # the schema's own bounds are no cuts
        ((18, 65), (18, 65)),
        ((0, 18), (18,)),
        ((18, 90), (18,)),
        ((0, 90), ()),
    ],
)
def test_edges_are_cuts_but_for_the_bounds_of_the_schema(bins: Any, cuts: tuple[float, ...]) -> None:
    (cells,) = HistogramMiner("age", bins=bins, epsilon=1).cells(dpf.Schema([AGE]))
    assert tuple(cells.interior_cuts) == cuts  # type: ignore[attr-defined]


def test_bins_are_of_numbers_and_of_one_kind() -> None:
    with pytest.raises(dpf.InputError, match="only a numeric one is counted in bins"):
        HistogramMiner("town", bins=3, epsilon=1).cells(dpf.Schema([TOWN]))
    assert HistogramMiner("town", epsilon=1).cells(dpf.Schema([TOWN])) == (TOWN,)
    for wrong, why in ((["a", 3], "names of steps and edges"), ("steps", "a list of edges"), (["a", "a"], "twice")):
        with pytest.raises(dpf.InputError, match=why):
            HistogramMiner("age", bins=wrong, epsilon=1)
    with pytest.raises(dpf.InputError, match="bounds are given without a number of bins"):
        HistogramMiner("age", bounds=[0, 9], epsilon=1)
    steps = HistogramMiner("age", bins=["low", "high"], epsilon=1)
    assert (steps.own_sources, HistogramMiner("age", bins=[3, 4], epsilon=1).own_sources) == (
        ("low", "high"),
        (),
    )
    (of_steps,) = steps.cells(dpf.Schema([AGE]))
    assert len(of_steps.interior_cuts) == 2  # type: ignore[attr-defined]
    assert (list(steps.values_read(dpf.Schema([AGE]))), steps.attribute) == (["age"], "age")
    within = HistogramMiner("age", bins=3, bounds=[10, 40], epsilon=1)
    (of_bounds,) = within.cells(dpf.Schema([AGE]))
    assert tuple(of_bounds.interior_cuts) == (20, 30)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "given", "cuts"),
    [
        ({"bins": ["low", "high"]}, {"low": 20, "high": 60}, (20, 60)),
        ({"bins": ["low", "high"]}, {"low": 60, "high": 20}, (20, 60)),
        ({"bins": ["low", "high"]}, {"low": 30, "high": 30}, (30,)),
        ({"bins": ["low", "high"]}, {"low": 0, "high": 90}, ()),  # released at the public bounds
        ({"bins": ["low", "high"]}, {"low": 0, "high": 60}, (60,)),
        ({"bins": 4, "bounds": "found"}, {"found": (10, 50)}, (20, 30, 40)),
        ({"bins": 1, "bounds": "found"}, {"found": (10, 50)}, ()),
    ],
)
def test_released_points_and_bounds_become_the_cuts_that_are_asked_for(
    options: dict[str, Any], given: dict[str, Any], cuts: tuple[float, ...]
) -> None:
    """The released counts of as many bins as there are cuts are shown, and those of bins that fell together are not."""
    asked: list[tuple[float, ...]] = []

    def release(name: str, cuts: tuple[float, ...]) -> np.ndarray:
        asked.append(cuts)
        return np.arange(5)

    found: dict[str, Any] = {
        name: SimpleNamespace(lower=own[0], upper=own[1]) if isinstance(own, tuple) else SimpleNamespace(value=own)
        for name, own in given.items()
    }
    calibration = SimpleNamespace(same_rows=False, mechanism=None, variance=1.0)
    table: Any = SimpleNamespace(
        schema=dpf.Schema([AGE]), given=found, release=release, calibration=lambda name: calibration
    )
    shown = HistogramMiner("age", epsilon=1, **options).mine_rows(table)
    assert asked == [cuts]
    ends = [0, *cuts, 90]
    assert [label.strip("[]()") for label in shown.labels[0]] == [
        f"{low:g}, {high:g}" for low, high in itertools.pairwise(ends)
    ]
    assert np.asarray(shown.counts).tolist() == list(range(len(cuts) + 1))


def test_bins_are_cut_by_points_of_the_same_attribute() -> None:
    miner = HistogramMiner("age", bins=["p"], epsilon=1)
    point, of_groups, other, count = (
        SimpleNamespace(result=result, name=name, attribute=attribute, by=by)
        for result, name, attribute, by in (
            (QuantileEstimate, "median", "age", ()),
            (QuantileEstimate, "median", "age", ("town",)),
            (QuantileEstimate, "quantile", "cost", ()),
            (int, "count", "age", ()),
        )
    )
    assert miner.own_misfit({"p": point}) is None  # type: ignore[dict-item]
    for wrong, why in ((of_groups, "without by"), (other, "of 'cost' and not of 'age'"), (count, "of miner 'count'")):
        assert why in str(miner.own_misfit({"p": point, "q": wrong}))  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("cells", "rows", "counter", "balanced"),
    [
        (2, 50, DiscreteLaplace(1), True),
        (100, 50, DiscreteLaplace(1), True),
        (101, 50, DiscreteLaplace(1), False),
        (2, None, DiscreteLaplace(1), False),
        (2, 50, Gaussian(1), False),
    ],
)
def test_noise_that_adds_up_to_0_is_for_few_cells_of_a_public_number_of_rows(
    cells: int, rows: int | None, counter: Any, balanced: bool
) -> None:
    attribute = dpf.Numeric("x", 0, cells, bins=cells)
    query = dpf.queries.JointHistogram([attribute])
    found = counting_mechanism(counter, query, dpf.Schema([attribute], rows=rows))
    assert found == (KNorm(1) if balanced else counter)
