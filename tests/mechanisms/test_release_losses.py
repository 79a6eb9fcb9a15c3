"""Losses of groups of rows, with an exact delta, beside what rows one after another can lose."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from dpframework.facts.privacy_losses import NOTHING, ByRelation
from dpframework.mechanisms import Losses
from dpframework.mechanisms.release_losses import growth_of_delta

ONE = Losses(ByRelation(Fraction(1, 2), Fraction(1)), ByRelation(Fraction(1, 8), Fraction(1, 2)))


def test_without_a_delta_epsilon_adds_up_and_rho_grows_with_the_square() -> None:
    group = ONE.of_rows(3)
    assert group.pure == ByRelation(Fraction(3, 2), Fraction(3))
    assert group.zcdp == ByRelation(Fraction(9, 8), Fraction(9, 2))
    assert group.delta == NOTHING
    assert ONE.of_rows(1) is ONE


@pytest.mark.parametrize("rows", [2, 3, 4])
@pytest.mark.parametrize(
    ("added", "replaced"),
    [(("0.5", "1/100"), ("1", "1/50")), (("0.5", "1/100"), ("0.5", "0")), (("1", "0"), ("2", "1/1000"))],
)
def test_the_delta_of_a_group_is_at_least_what_each_path_loses(
    rows: int, added: tuple[str, str], replaced: tuple[str, str]
) -> None:
    """Row after row, d + e**epsilon d' and so on; and what some rows lose is at most their share."""
    epsilons, deltas = (ByRelation(*map(Fraction, pair)) for pair in zip(added, replaced, strict=True))
    one = Losses(epsilons, ByRelation(Fraction(9), Fraction(9)), deltas)
    group = one.of_rows(rows)
    assert group.pure == ByRelation(*(rows * e for e in (epsilons.add_or_remove_one, epsilons.replace_one)))  # type: ignore[operator]
    assert group.zcdp == group.pure.map(lambda epsilon: epsilon**2 / 2)
    moves = [(epsilons.add_or_remove_one, deltas.add_or_remove_one), (epsilons.replace_one, deltas.replace_one)]
    whole = [float(amount or 0) for amount in (group.delta.add_or_remove_one, group.delta.replace_one)]
    for path in (p for n in range(1, rows + 1) for p in itertools.product((0, 1), repeat=n)):
        lost, epsilon = 0.0, 0.0
        for kind in path:
            lost += math.exp(epsilon) * float(moves[kind][1] or 0)
            epsilon += float(moves[kind][0] or 0)
        assert lost <= sum(whole[kind] for kind in path) / rows * (1 + 1e-12)
        if len(path) == rows and len(set(path)) == 1 and deltas.add_or_remove_one and not deltas.replace_one:
            assert lost >= whole[path[0]] * (1 - 1e-8) or path[0]


def test_a_group_without_a_claim() -> None:
    """No epsilon, one of 0, a group that is too large, or a delta of 1."""
    for epsilon, delta, rows in ((None, "0.1", 2), ("0", "0.1", 2), ("1", "0.1", 501), ("1", "0.3", 2)):
        pure = ByRelation(*[None if epsilon is None else Fraction(epsilon)] * 2)
        group = Losses(pure, ByRelation(Fraction(1), Fraction(1)), ByRelation(*[Fraction(delta)] * 2)).of_rows(rows)
        assert group == Losses(*[ByRelation(None, None)] * 3)


def test_a_delta_under_one_relation_only_serves_that_relation() -> None:
    one = Losses(ByRelation(None, Fraction(1)), ByRelation(None, Fraction(1, 2)), ByRelation(None, Fraction(1, 100)))
    group = one.of_rows(2)
    assert group.pure == ByRelation(None, Fraction(2))
    assert group.delta.add_or_remove_one is None
    assert float(group.delta.replace_one or 0) == pytest.approx((1 + math.e) / 100)


def test_the_growth_is_never_too_small() -> None:
    for row, group in (("0.1", "0.3"), ("1", "2"), ("3", "30"), ("1/1000", "1/500")):
        exact = math.expm1(Fraction(group)) / math.expm1(Fraction(row))
        assert exact <= float(growth_of_delta(Fraction(row), Fraction(group))) <= exact * (1 + 1e-8)
