"""Noise fixed for a query: its exact scale, its lattice, and what it costs a row and a unit, by the formulas stated."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F
from types import SimpleNamespace
from typing import Any

import dp_accounting
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_losses import ByRelation
from dpframework.facts.privacy_unit import UnitChange
from dpframework.mechanisms import DiscreteLaplace, Gaussian, Laplace
from dpframework.mechanisms.base import LARGEST_INTEGER, LARGEST_SCALE, LATTICE_BITS
from dpframework.mechanisms.gaussian import (
    FURTHEST_SHIFT,
    LARGEST_DEVIATION,
    MOST_SLACK,
    DiscreteGaussianEvent,
    FineGaussianEvent,
    event_of,
    log_normalizer,
)
from dpframework.mechanisms.integer_answer_change_bounds import unit_changes, unit_shifts
from dpframework.mechanisms.release_losses import double_at_most, either_way
from dpframework.queries.base import QueryFacts

ADD, REPLACE = dpf.Relation.ADD_OR_REMOVE_ONE, dpf.Relation.REPLACE_ONE
NONE = ByRelation(None, None)


def facts(norm: str, added: Any, replaced: Any, *, integer: bool = True, length: int | None = 4) -> QueryFacts:
    return QueryFacts("q", "q", (), integer, length, (dpf.Sensitivity(norm, added, replaced, source="made up"),))


COUNTS, SQUARES = facts("l1", 1, 2), facts("squared-l2", 3, 5)


@pytest.mark.parametrize(("relation", "in_parts", "change"), [(ADD, False, 1), (ADD, True, 1), (REPLACE, False, 2)])
def test_laplace_noise_has_the_scale_of_the_change_over_epsilon(relation: Any, in_parts: bool, change: int) -> None:
    found = DiscreteLaplace("0.3").calibrate(COUNTS, relation, in_parts=in_parts)
    assert found is not None
    assert (found.scale, found.unit) == (change / F(3, 10), 1)
    assert found.losses.pure == ByRelation(1 / found.scale, 2 / found.scale)
    assert found.losses.zcdp == ByRelation(1 / found.scale**2 / 2, 4 / found.scale**2 / 2)
    assert found.same_rows is (relation is REPLACE)


def test_from_parts_a_replaced_row_costs_no_more_than_the_parameter_where_it_leaves_one_and_enters_another() -> None:
    for replaced, bound in ((1, 2), (2, 2)):
        found = DiscreteLaplace(1).calibrate(facts("l1", 1, replaced), REPLACE, in_parts=True)
        assert found is not None
        assert found.scale == bound
        assert not found.same_rows
    assert DiscreteLaplace(1).calibrate(facts("l1", None, 1), REPLACE, in_parts=True) is None
    assert DiscreteLaplace(1).calibrate(facts("l1", None, 1), ADD) is None
    assert DiscreteLaplace(1).calibrate(facts("l1", 0, 1), ADD) is None


def test_a_unit_that_may_come_without_another_leaving_has_noise_for_both() -> None:
    resized = DiscreteLaplace(1).calibrate(facts("l1", 3, 1), REPLACE, by=UnitChange(1, resizes=True))
    assert resized is not None
    assert (resized.scale, resized.same_rows) == (3, False)
    assert either_way(ByRelation(F(3), F(1))) == ByRelation(F(3), F(3))
    assert either_way(ByRelation(F(1), F(3))) == ByRelation(F(1), F(3))
    assert either_way(ByRelation(F(1), None)) == ByRelation(F(1), None)
    assert either_way(ByRelation(None, F(1))) == NONE
    assert double_at_most(ByRelation(F(1), F(5))) == ByRelation(F(1), F(2)) == double_at_most(ByRelation(F(1), None))
    assert double_at_most(ByRelation(F(1), F(1))) == ByRelation(F(1), F(1))
    assert double_at_most(ByRelation(None, F(5))) == ByRelation(None, F(5))


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_unit_of_k_rows_has_k_times_the_noise_and_the_loss_of_the_parameter(rows: int) -> None:
    by = UnitChange(rows)
    laplace = DiscreteLaplace("0.3").calibrate(COUNTS, ADD, by=by)
    gaussian = Gaussian("0.02").calibrate(SQUARES, ADD, by=by)
    assert laplace is not None
    assert gaussian is not None
    assert laplace.scale == rows / F(3, 10)
    assert laplace.losses.pure.add_or_remove_one == F(3, 10)
    assert gaussian.scale == 3 * rows**2 / (2 * F(2, 100))  # a variance
    assert gaussian.losses.zcdp == ByRelation(F(2, 100), F(2, 100) * 5 / 3)
    assert gaussian.losses.pure == NONE


@pytest.mark.parametrize("norm", ["l1", "squared-l2"])
@pytest.mark.parametrize("change", [F(1), F(3), F(1, 7), F(4), F(4) - F(1, 2**60), F(10**9), F(9, 16)])
def test_the_lattice_is_the_power_of_two_next_below_a_millionth_of_the_smallest_change(norm: str, change: F) -> None:
    mechanism: Any = Laplace(1) if norm == "l1" else Gaussian(1)
    power = 1 if norm == "l1" else 2
    for added, replaced in ((change, 2 * change), (2 * change, change), (change, None), (None, change)):
        unit = mechanism.lattice_unit(facts(norm, added, replaced, integer=False))
        assert (unit * 2**LATTICE_BITS) ** power <= change < (unit * 2 ** (LATTICE_BITS + 1)) ** power
        assert unit == F(2) ** round(math.log2(unit))
        assert mechanism.lattice_unit(facts(norm, added, replaced)) == 1
    assert mechanism.lattice_unit(facts(norm, 0, None, integer=False)) == 1


def test_rounding_to_the_lattice_is_a_part_of_the_sensitivity() -> None:
    """Two steps a coordinate, in every norm; a square grows by the square."""
    grown = 1 + F(2 * 4, 2**LATTICE_BITS)
    assert Laplace(1).change(facts("l1", 1, 2, integer=False)) == ByRelation(grown, 2 * grown)
    assert Gaussian(1).change(facts("squared-l2", 1, 2, integer=False)) == ByRelation(grown**2, 2 * grown**2)
    assert Laplace(1).change(COUNTS) == ByRelation(F(1), F(2))


def test_noise_that_64_bits_do_not_hold_is_refused() -> None:
    most = F(1, LARGEST_SCALE)
    assert DiscreteLaplace(most).calibrate(COUNTS, ADD) is not None
    with pytest.raises(dpf.InputError, match="the noise would be too large for 64-bit integers"):
        DiscreteLaplace(most * F(999, 1000)).calibrate(COUNTS, ADD)
    variance = F(LARGEST_SCALE**2)
    assert Gaussian(3 / (2 * variance)).calibrate(SQUARES, ADD) is not None
    with pytest.raises(dpf.InputError, match="the noise would be too large for 64-bit integers"):
        Gaussian(3 / (2 * variance) * F(999, 1000)).calibrate(SQUARES, ADD)


def test_what_is_left_of_noise_that_is_divided() -> None:
    for mechanism, of in ((DiscreteLaplace("0.3"), COUNTS), (Gaussian("0.02"), SQUARES)):
        whole = mechanism.calibrate(of, REPLACE)
        assert whole is not None
        tenth = whole.divided(10, of)
        assert tenth.unit == F(1, 10)
        assert tenth.variance == pytest.approx(whole.variance / 100)
        assert tenth.lattice_scale == pytest.approx(whole.lattice_scale / (1 if mechanism.norm == "l1" else 10))
        assert whole.same_rows
        assert not tenth.same_rows
        assert tenth.preview.expected == pytest.approx(whole.preview.expected / 10)


@pytest.mark.parametrize(
    ("answer", "integer", "found"),
    [
        ([1, -2], True, [1, -2]),
        ([True, False], True, [1, 0]),
        (np.array([1, 2**63], dtype=np.uint64), True, [1, LARGEST_INTEGER]),
        ([LARGEST_INTEGER + 1, -LARGEST_INTEGER - 1], True, [LARGEST_INTEGER, -LARGEST_INTEGER]),
        ([0.5, -0.25], False, [2 ** (LATTICE_BITS - 1), -(2 ** (LATTICE_BITS - 2))]),
        ([1e300, -1e300], False, [2**52, -(2**52)]),
        ([[1], [2]], True, [[1], [2]]),
        (3, True, 3),
    ],
)
def test_an_answer_is_lattice_points_in_its_own_shape(answer: Any, integer: bool, found: Any) -> None:
    calibration = Laplace(1).calibrate(facts("l1", 1, 1, integer=integer), ADD)
    assert calibration is not None
    assert calibration.on_lattice(answer).tolist() == found
    assert list(np.asarray(calibration.scores(answer))) == np.ravel(found).tolist()


@pytest.mark.parametrize(
    ("answer", "integer", "why"),
    [
        ([0.5], True, "declares integer answers but answered with floats"),
        ([1.0, math.nan], False, "answered with NaN or infinity"),
        ([math.inf, 1.0], False, "answered with NaN or infinity"),
        (["1"], False, "numbers are needed"),
        ([1, 2, 3, 4, 5], True, "answered with more than the 4 numbers of its declared answer_length"),
    ],
)
def test_an_answer_that_is_not_as_declared_is_refused(answer: Any, integer: bool, why: str) -> None:
    calibration = Laplace(1).calibrate(facts("l1", 1, 1, integer=integer), ADD)
    assert calibration is not None
    with pytest.raises(dpf.InputError, match=why):
        calibration.on_lattice(answer)


@pytest.mark.parametrize("epsilon", ["3", "0.4", "0.05"])
def test_previews_are_means_and_quantiles_of_the_noise(epsilon: str) -> None:
    counts = DiscreteLaplace(epsilon).calibrate(COUNTS, ADD)
    reals = Laplace(epsilon).calibrate(facts("l1", 1, 1, integer=False), ADD)
    assert counts is not None
    assert reals is not None
    k = np.arange(-4000, 4001)
    chances = np.exp(-np.abs(k) * float(epsilon))
    chances /= chances.sum()
    assert counts.preview.expected == pytest.approx(chances @ np.abs(k))
    assert counts.variance == pytest.approx(chances @ k**2)
    beyond = [chances[np.abs(k) > m].sum() for m in range(100)]
    assert counts.preview.within == next(m for m, chance in enumerate(beyond) if chance <= 0.05)
    scale = 1 / float(epsilon)
    assert (reals.preview.expected, reals.preview.within) == pytest.approx((scale, math.log(20) * scale), rel=1e-4)
    normal = Gaussian(epsilon).calibrate(SQUARES, ADD)
    assert normal is not None
    sigma = math.sqrt(3 / (2 * float(epsilon)))
    assert normal.preview.expected == pytest.approx(sigma * math.sqrt(2 / math.pi))
    assert normal.preview.within == math.ceil(1.959964 * sigma)
    assert normal.variance == pytest.approx(sigma**2)


@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.9, 1.999999, 2.0, 2.000001, 2.5, 40.0])
def test_the_normalizer_is_the_sum_over_all_whole_numbers(sigma: float) -> None:
    total = math.fsum(math.exp(-(k**2) / (2 * sigma**2)) for k in range(-2000, 2001))
    assert log_normalizer(sigma) == pytest.approx(math.log(total), rel=1e-13)


def test_pld_accounting_knows_each_number_that_a_row_moves_as_an_event() -> None:
    """A row that comes moves one count, one that is replaced two; of a unit of k rows one count moves by k."""
    cells = dpf.queries.Histogram(dpf.Categorical("c", ["x", "y", "z"])).facts()
    one, two = (DiscreteLaplace("0.5").calibrate(cells, relation) for relation in (ADD, REPLACE))
    assert one is not None
    assert two is not None
    single = one.mechanism.dp_event(one, ADD)
    assert single == dp_accounting.dp_event.DiscreteLaplaceDpEvent(1 / one.lattice_scale, 1)
    pair = two.mechanism.dp_event(two, REPLACE)
    assert isinstance(pair, dp_accounting.SelfComposedDpEvent)
    assert pair.count == 2
    assert pair.event == dp_accounting.dp_event.DiscreteLaplaceDpEvent(1 / two.lattice_scale, 1)
    unit = DiscreteLaplace("0.5").calibrate(cells, ADD, by=UnitChange(3))
    assert unit is not None
    of_unit = unit.mechanism.unit_event(unit, ADD)
    assert of_unit == dp_accounting.dp_event.DiscreteLaplaceDpEvent(1 / unit.lattice_scale, 3)


def test_gaussian_noise_is_discrete_events_and_on_a_fine_lattice_one_with_a_slack() -> None:
    def at(sigma: float, *, integer: bool = True) -> Any:
        moved = facts("squared-l2", 3, 5, integer=integer)
        found = Gaussian(3 / (2 * F(sigma) ** 2)).calibrate(moved, ADD)
        assert found is not None
        return found

    coarse = at(2.0)
    assert event_of(coarse, ADD, (1, 1), 1) == DiscreteGaussianEvent(pytest.approx(2.0), 1)
    by_three = DiscreteGaussianEvent(pytest.approx(2.0), 3)
    assert event_of(coarse, ADD, (2, 3), 1) == dp_accounting.SelfComposedDpEvent(by_three, 2)
    assert event_of(coarse, ADD, (1, int(2 * FURTHEST_SHIFT)), 1) is not None
    assert event_of(coarse, ADD, (1, int(2 * FURTHEST_SHIFT) + 1), 1) is None
    assert event_of(at(0.01), ADD, (1, 1), 1) is not None  # one step is always told
    assert event_of(at(0.01), ADD, (1, 2), 1) is None
    assert event_of(coarse, ADD, None, 1) is None  # a lattice that coarse has too large a slack
    assert isinstance(event_of(at(0.999 * LARGEST_DEVIATION), ADD, (1, 1), 1), DiscreteGaussianEvent)
    assert event_of(at(1.001 * LARGEST_DEVIATION), ADD, (1, 1), 1) is None  # the slack is too large, up to 15,700
    for rows, sigma in itertools.product((1, 3), (2e4, 3e5)):
        fine = event_of(at(sigma), ADD, (1, 1), rows)
        moved = rows * math.sqrt(3)
        slack = min(4, 3 * rows) * (14 + moved / sigma) ** 2 / (24 * sigma**2)
        assert fine == FineGaussianEvent(pytest.approx(sigma / moved), pytest.approx(slack))
        assert slack <= MOST_SLACK
    part = Gaussian(F(7, 2) / (2 * F(10) ** 9)).calibrate(facts("squared-l2", "3.5", 5, length=9), ADD)
    assert part is not None
    moved, sigma = 2 * math.sqrt(3.5), math.sqrt(10**9)  # two rows, which change three whole numbers each
    assert event_of(part, ADD, None, 2).slack == pytest.approx(6 * (14 + moved / sigma) ** 2 / (24 * 10**9))
    # of real numbers the lattice is 2**-20 of the sensitivity, and all of them may move
    real = event_of(at(1.0, integer=False), ADD, None, 1)
    assert real.noise_multiplier == pytest.approx(1 / math.sqrt(3), rel=1e-4)
    steps = 1.0 / float(at(1.0, integer=False).unit)
    assert real.slack == pytest.approx(4 * (14 + math.sqrt(3)) ** 2 / (24 * steps**2), rel=1e-3)


def of_norms(*, integer: bool = True, fall: int | None = 0, **norms: tuple[Any, Any]) -> QueryFacts:
    declared = [
        dpf.Sensitivity(norm.replace("_", "-"), *change, **({} if fall is None else {"fall": fall}), source="made up")
        for norm, change in norms.items()
    ]
    return QueryFacts("q", "q", (), integer, 9, declared)


CELLS, ONE_CELL = (of_norms(l1=(1, moved), squared_l2=(1, moved), linf=(1, 1)) for moved in (2, 1))
THREE = {"l1": (3, 6), "squared_l2": (9, 36), "linf": (3, 3)}  # that all may be of one number


@pytest.mark.parametrize(
    ("asked", "added", "replaced"),
    [
        (CELLS, 1, 2),
        (ONE_CELL, 1, 1),
        (of_norms(l1=(3, 6), squared_l2=(3, 6), linf=(1, 1)), 3, 6),  # three histograms
        (of_norms(l1=(4, 8), squared_l2=(3, 6), linf=(1, 1)), 3, 6),  # the least of the two
        (of_norms(l1=(2.5, 5.5), linf=(1, 1)), 2, 5),
        (of_norms(l1=(3, 6), linf=("1.5", "1.9")), 3, 6),  # whole numbers change by 1
        (of_norms(l1=(3, 6), linf=(2, 1)), None, 6),
        (of_norms(l1=(3, 6), linf=(1, 2)), 3, 6),  # no more than a removal and an addition
        (of_norms(l1=("0.5", 1), linf=(1, 1)), None, 1),
        (of_norms(linf=(1, 1)), None, None),
        (of_norms(l1=(1, 2)), 1, 2),  # which bounds the linf norm, too
        (of_norms(integer=False, l1=(1, 2), linf=(1, 1)), None, None),
    ],
)
def test_how_many_whole_numbers_a_unit_changes_by_one(asked: Any, added: int | None, replaced: int | None) -> None:
    assert (unit_changes(asked, ADD), unit_changes(asked, REPLACE)) == (added, replaced)


@pytest.mark.parametrize(
    ("asked", "rows", "added", "replaced"),
    [
        (CELLS, 1, (1, 1), (2, 1)),
        (CELLS, 3, (1, 3), (2, 3)),  # rows that leave lower one count by 3, rows that come raise another
        (ONE_CELL, 3, (1, 3), (1, 3)),
        (of_norms(l1=(3, 6), squared_l2=(3, 6), linf=(1, 1)), 2, None, None),  # three numbers by one each cost less
        (of_norms(**THREE), 1, (1, 3), (2, 3)),
        (of_norms(**THREE), 2, (1, 6), (2, 6)),
        (of_norms(**THREE | {"l1": (3, 3)}), 2, (1, 6), (1, 6)),
        (of_norms(**THREE | {"squared_l2": (8, 32)}), 2, None, None),
        (of_norms(**THREE | {"linf": (2, 2)}), 2, None, None),
        (of_norms(l1=(3, 6)), 2, (1, 6), (2, 6)),
        (of_norms(l1=("2.5", 5), linf=("2.5", "2.5")), 2, (1, 4), (2, 4)),  # whole numbers add up to whole ones
        (of_norms(fall=None, l1=(1, 2), linf=(1, 1)), 2, (1, 2), None),  # rows that come may raise and lower
        (of_norms(linf=(1, 1)), 2, None, None),
        (of_norms(integer=False, l1=(1, 2), linf=(1, 1)), 2, None, None),
    ],
)
def test_a_unit_loses_no_more_than_on_so_many_numbers_that_move_so_far(
    asked: Any, rows: int, added: tuple[int, int] | None, replaced: tuple[int, int] | None
) -> None:
    calibration: Any = SimpleNamespace(facts=asked, by=UnitChange(rows))
    assert (unit_shifts(calibration, ADD), unit_shifts(calibration, REPLACE)) == (added, replaced)
