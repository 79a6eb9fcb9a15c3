"""Which way of learning is chosen: its numbers are those of the mechanisms that would be planned."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import pytest
from dpframework_distance import auto_context
from dpframework_distance.auto_context import (
    deviation_of,
    edges_or_contexts,
    edges_worth,
    like_epsilon,
    noise_of_marginals,
    share_of_marginals,
)
from dpframework_distance.distance_budget import DistanceBudget
from dpframework_distance.pair_counts import PairCounts

import dpframework as dpf
from dpframework.basics import OneWayMarginals
from dpframework.mechanisms import Mechanism, cell_variances
from dpframework.queries import Query, Residuals

PURE, RHO = DistanceBudget(Fraction(1, 100), False, False), DistanceBudget(Fraction(1, 1000), True, True)
MIXED = (2, 5, 5, 16, 41)


def attributes(*sizes: int) -> list[dpf.Categorical]:
    return [dpf.Categorical(f"a{k}", [str(v) for v in range(size)]) for k, size in enumerate(sizes)]


def calibrated(mechanism: Mechanism, query: Query) -> dpf.mechanisms.Calibration:
    calibration = mechanism.calibrate(query.facts(), dpf.Relation.REPLACE_ONE)
    assert calibration is not None
    return calibration


def noise_of_a_pair(budget: DistanceBudget, share: Fraction) -> float:
    """Return the deviation of a count that is released with that share."""
    return calibrated(budget.counter(share), PairCounts(attributes(3, 4, 5))).variance ** 0.5


@pytest.mark.parametrize("budget", [PURE, RHO])
@pytest.mark.parametrize("tables", [1, 6, 45])
def test_the_noise_of_tables_that_share_seven_tenths_is_the_mechanism_s(budget: DistanceBudget, tables: int) -> None:
    assert deviation_of(tables, budget) == pytest.approx(noise_of_a_pair(budget, Fraction(7, 10) / tables), rel=1e-4)


@pytest.mark.parametrize("number", [2, 9, 64])
def test_a_rho_is_like_the_epsilon_with_which_a_tree_has_as_much_noise(number: int) -> None:
    like = DistanceBudget(Fraction(like_epsilon(RHO, number)), False, False)
    each = Fraction(1, number - 1)
    assert noise_of_a_pair(like, each) == pytest.approx(noise_of_a_pair(RHO, each), rel=1e-3)
    assert like_epsilon(PURE, number) == 0.01


@pytest.mark.parametrize("sizes", [MIXED, (4, 4, 4), (2, 2, 40)])
@pytest.mark.parametrize("budget", [PURE, RHO])
def test_the_noise_of_marginals_is_that_of_what_is_planned_with_half_of_the_budget(
    sizes: tuple[int, ...], budget: DistanceBudget
) -> None:
    """But for what all counts of a histogram have in common: what is estimated has a given sum."""
    found = []
    for node in OneWayMarginals(attributes(*sizes), budget.zcdp).plan(budget.amount / 2).values():
        calibration = calibrated(node.mechanism, node.query)
        if isinstance(node.query, Residuals):
            _, *residuals = node.query.cell_variances([calibration.variance] * (1 + len(sizes)))
            variances = [own / (1 - 1 / size) for own, size in zip(residuals, sizes, strict=True)]
        else:
            variances = cell_variances(calibration)
        own = [sizes[int(name[1:])] for name in node.query.attributes]
        found += [size * variance**0.5 / 1000 for size, variance in zip(own, variances, strict=True)]
    assert len(found) == len(sizes)
    assert noise_of_marginals(sizes, 1000, budget) == pytest.approx(statistics.fmean(found), rel=1e-4)


@pytest.mark.parametrize("rows", [100_000, 1_000_000])
@pytest.mark.parametrize("sizes", [(4,) * 40, MIXED * 8, (2, 3, 7) * 9])
def test_as_many_edges_share_an_epsilon_as_have_a_relative_noise_of_about_a_sixth(
    sizes: tuple[int, ...], rows: int
) -> None:
    pairs = [a * b for k, a in enumerate(sizes) for b in sizes[k + 1 :]]

    def noise(edges: int) -> float:
        budget = DistanceBudget(Fraction(1, 10), False, False)
        return statistics.median(pairs) * noise_of_a_pair(budget, Fraction(1, edges)) / rows

    found = edges_worth(sizes, rows, 0.1)
    assert 0 <= found <= len(sizes) - 1
    assert found == 0 or noise(found) <= 0.15 * (1 + 1e-4)
    assert found == len(sizes) - 1 or noise(found + 1) > 0.15 * (1 - 1e-4)


def test_marginals_get_five_times_their_relative_noise_in_steps_of_a_twentieth_from_a_tenth_to_a_half() -> None:
    """At half of the budget, which is twice that at the whole: ten times that one."""
    for rows in (10**4, *range(250_000, 1_250_000, 50_000), 10**7):
        noise = noise_of_marginals(MIXED, rows, PURE)
        steps = [Fraction(k, 20) for k in range(2, 11)]
        closest = min(steps, key=lambda share: abs(float(share) - 5 * noise))
        assert share_of_marginals(MIXED, rows, PURE) == closest
    assert share_of_marginals(MIXED, None, PURE) == Fraction(2, 5)


@pytest.mark.parametrize(
    ("sizes", "targets", "context_size", "bound", "cells", "tables"),
    [
        ((4,) * 20, range(20), 3, 0.03, 16, 45),  # three quarters of 60 pairs of a target and its context
        ((4,) * 4, range(4), 3, 0.03, 16, 4.5),  # of all 6 pairs
        ((2, 3, 7, 5), range(4), 1, 0.03, (6 + 14 + 10 + 21 + 15 + 35) / 6, 3),
        ((2, 3, 7, 5), [2], 2, 0.2, 7 * (2 + 3 + 5) / 3, 2),  # one target: its context alone
        ((2, 3, 7, 5), [0], 3, 0.2, 2 * (3 + 7 + 5) / 3, 3),
    ],
)
@pytest.mark.parametrize("zcdp", [False, True])
@pytest.mark.parametrize("public", ["rows", "max_rows"])
def test_contexts_are_chosen_from_the_rows_where_their_tables_have_little_noise(
    sizes: tuple[int, ...],
    targets: list[int],
    context_size: int,
    bound: float,
    cells: float,
    tables: float,
    zcdp: bool,
    public: str,
) -> None:
    """Up to that bound on the noise of a count, next to equal counts."""
    among, schema = attributes(*sizes), dpf.Schema(attributes(*sizes), **{public: 20_000})
    deviation = bound * 20_000 / cells
    amount = tables / deviation**2 / 0.7 if zcdp else 2 * math.sqrt(2) * tables / deviation / 0.7
    for factor in (0.999, 1.001):
        budget = DistanceBudget(Fraction(amount * factor), zcdp, zcdp)
        found = edges_or_contexts(among, targets, schema, budget, context_size)
        assert (found is None) == (factor > 1), found


def test_contexts_are_not_chosen_where_there_are_too_many_or_none_is_smaller() -> None:
    plenty = DistanceBudget(Fraction(10**6), False, False)
    many = attributes(*(16,) * 40)
    schema = dpf.Schema(many, rows=10**6)
    assert edges_or_contexts(many, range(40), schema, plenty, 1) is None
    assert edges_or_contexts(many, range(40), schema, plenty, 3) == 39  # 91,390 tables of 65,536 cells
    assert edges_or_contexts(many, [3], schema, plenty, 3) == 0
    assert edges_or_contexts(many, [3], schema, plenty, 2) is None  # one target has fewer
    few = many[:3]
    assert edges_or_contexts(few, range(3), dpf.Schema(few, rows=10**6), plenty, 2) is None
    assert edges_or_contexts(few, range(3), dpf.Schema(few, rows=10**6), plenty, 3) == 2


def test_a_forest_has_as_many_edges_as_what_marginals_leave_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 17 twentieths; fewer than a context has attributes, or noisy marginals, make none worth it."""
    among = attributes(*(4,) * 12)
    schema = dpf.Schema(among, rows=10_000)
    found = {}
    for number in range(1, 120):
        budget = DistanceBudget(Fraction(number, 200), False, False)
        share = Fraction(17, 20) - share_of_marginals((4,) * 12, 10_000, budget)
        worth = edges_worth((4,) * 12, 10_000, float(budget.amount * share))
        noisy = noise_of_marginals((4,) * 12, 10_000, budget) > 0.1
        found[number] = edges_or_contexts(among, range(12), schema, budget, 3)
        assert found[number] == (0 if worth < 3 or noisy else worth), number
    assert {0, 3, 4, 11} <= set(found.values())
    noise = noise_of_marginals((4,) * 12, 10_000, DistanceBudget(Fraction(1, 10), False, False))
    for bound, edges in ((noise, found[20]), (noise * 0.999, 0)):
        monkeypatch.setattr(auto_context, "NOISY_MARGINALS", bound)
        assert edges_or_contexts(among, range(12), schema, DistanceBudget(Fraction(1, 10), False, False), 3) == edges
    monkeypatch.undo()
    monkeypatch.setattr(auto_context, "MOST_CELLS", 66 * 16)
    assert edges_or_contexts(among, range(12), schema, DistanceBudget(Fraction(1), False, False), 3) == 11
    monkeypatch.setattr(auto_context, "MOST_CELLS", 66 * 16 - 1)
    assert edges_or_contexts(among, range(12), schema, DistanceBudget(Fraction(1), False, False), 3) == 0
