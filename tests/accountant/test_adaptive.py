"""Budgets for plans that are chosen one after another, and totals of plans at the best Renyi order."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import attrs
import pytest
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from hypothesis import example, given, settings, strategies as st
from scipy.optimize import brentq

import dpframework as dpf
from dpframework.accountant import RDPAccountant, composition, zcdp_to_epsilon
from dpframework.accountant.adaptive_plan_budget import AdaptiveBudget, PlanCharge
from dpframework.accountant.composition import sequential
from dpframework.accountant.rdp import (
    LOWEST,
    ComposedCurve,
    Curve,
    OneRelease,
    best_order,
    conversion,
    epsilon_at,
    order_for,
    order_of_largest_rho,
)
from dpframework.facts import ByRelation
from dpframework.mechanisms import DiscreteLaplace, Gaussian, PartitionSelection

ADD = dpf.Relation.ADD_OR_REMOVE_ONE
SCHEMA = dpf.Schema([dpf.Boolean("ill")])
MILLIONTH = Fraction(1, 10**6)


def both(amount: Fraction | None) -> ByRelation:
    return ByRelation(amount, amount)


def release(epsilon: Fraction | str | None, rho: Fraction | str | None = None) -> Curve:
    """A release of a pure epsilon, or of a rho and no pure epsilon."""
    pure = None if epsilon is None else Fraction(epsilon)
    zcdp = pure**2 / 2 if pure is not None and rho is None else None if rho is None else Fraction(rho)
    return OneRelease(both(pure), both(zcdp))


def tried(budget: AdaptiveBudget, one: Curve) -> AdaptiveBudget | None:
    """The budget with one more release, if it is accepted."""
    loss = (after := budget.after(budget.charge(one.at(Fraction(10**9)), one))).loss()
    return after if loss is not None and loss.epsilon is not None and loss.epsilon <= budget.epsilon else None


def budget_of(epsilon: Fraction | str, delta: Fraction | str) -> AdaptiveBudget:
    return AdaptiveBudget(ADD, Fraction(epsilon), Fraction(delta))


def filled(budget: AdaptiveBudget, *releases: Curve) -> AdaptiveBudget:
    for one in releases:
        accepted = tried(budget, one)
        assert accepted is not None, (one, budget)
        budget = accepted
    return budget


# --- a whole attack -------------------------------------------------------------------------------------------------


@attrs.frozen
class Coin:
    """Randomized response: tells one of two tables by a loss of plus or minus a multiple of half an epsilon."""

    halves: int
    claims_pure: bool

    @property
    def likelier(self) -> float:
        return 1 / (1 + math.exp(-self.halves / 2))

    @property
    def curve(self) -> Curve:
        epsilon = Fraction(self.halves, 2)
        return release(epsilon) if self.claims_pure else release(None, epsilon**2 / 2)


COINS = tuple(Coin(halves, claims) for halves in (1, 2, 4) for claims in (True, False))


def gained(
    budget: AdaptiveBudget, accepts: Callable[[AdaptiveBudget, Curve], AdaptiveBudget | None], releases: int = 7
) -> float:
    """The delta that who chooses each release by the outputs before it gains at best: by dynamic programming."""

    @functools.cache
    def value(state: AdaptiveBudget, halves: int, left: int) -> float:
        best = max(0.0, -math.expm1(float(budget.epsilon) - halves / 2))
        for coin in COINS if left else ():
            after = accepts(state, coin.curve)
            if after is not None:
                more, less = (value(after, halves + way * coin.halves, left - 1) for way in (1, -1))
                best = max(best, coin.likelier * more + (1 - coin.likelier) * less)
        return best

    return value(budget, 0, releases)


@pytest.mark.parametrize("delta", ["1/4", "1/20", "1/1000"])
@pytest.mark.parametrize("epsilon", ["1", "2", "7/2", "5"])
def test_no_choice_of_plans_gains_more_than_delta(epsilon: str, delta: str) -> None:
    budget = budget_of(epsilon, delta)
    assert gained(budget, tried) <= float(budget.delta)


def test_the_attack_finds_budgets_that_do_not_hold() -> None:
    """A mixed total without its conversion, and an order that forgets what was charged before it."""

    def without(state: AdaptiveBudget, one: Curve) -> AdaptiveBudget | None:
        after = state.after(state.charge(one.at(Fraction(10**9)), one))
        loss = after.rdp.under(ADD) if after.order else after.pure.under(ADD)
        return after if loss is not None and loss <= state.epsilon else None

    def forgetful(state: AdaptiveBudget, one: Curve) -> AdaptiveBudget | None:
        accepted = tried(state, one)
        return accepted and attrs.evolve(accepted, before=both(Fraction(0)))

    assert gained(budget_of(5, "1/20"), without, 5) > 1 / 20
    assert gained(budget_of(5, "1/20"), forgetful, 5) > 1 / 20


ORDER, FIRST, RARE = 15, Fraction(1, 2), 3e-3


def telling_loss(divergence: float, chance: float) -> float:
    """The loss of an event of a chance, where a release with no other event diverges so much at the order."""

    def beyond(loss: float) -> float:
        rest = ORDER * math.log1p(-chance) + (1 - ORDER) * math.log1p(-chance * math.exp(-loss))
        event = math.log(chance) + (ORDER - 1) * loss
        return math.log(math.exp(event) + math.exp(rest)) / (ORDER - 1) - divergence

    loss = brentq(beyond, 0, 50)
    p, q = chance, chance * math.exp(-loss)
    other_way = q * (q / p) ** (ORDER - 1) + (1 - q) * ((1 - q) / (1 - p)) ** (ORDER - 1)
    assert math.log(other_way) / (ORDER - 1) <= divergence
    return float(loss)


def gained_by_waiting(epsilon: float, exact: float, converted: float) -> float:
    """The delta of who first makes a release that seldom tells much, and spends exact delta if it did not.

    If it did, a second release takes all of the divergence that is left, with its most telling event.
    """
    left = epsilon - float(FIRST) - conversion(Fraction(ORDER), Fraction(converted))
    told = telling_loss(float(FIRST), RARE)
    chances = [0.7 * math.exp(-j / 20) for j in range(60)] if left > 0 else []
    events = [(chance, telling_loss(left, chance)) for chance in chances]
    second = max((p * -math.expm1(min(epsilon - told - loss, 0.0)) for p, loss in events), default=0.0)
    return (1 - RARE) * exact + RARE * second


def test_converting_at_whatever_delta_is_left_has_it_twice() -> None:
    epsilon, delta = 2.0, 1e-4
    spent = delta * (1 - 1e-6)  # all but what the first release, at what is then left, has room for
    assert float(FIRST) + conversion(Fraction(ORDER), Fraction(delta - spent)) <= epsilon
    assert gained_by_waiting(epsilon, spent, delta) > 1.99 * delta


@pytest.mark.parametrize("share", ["0", "1/2", "9/10"])
def test_a_reserve_stops_who_waits(share: str) -> None:
    """What is held back when the order is fixed may be spent exactly later, and no more."""
    delta = Fraction(1, 10**4)
    budget = AdaptiveBudget(ADD, Fraction(2), delta, reserve=Fraction(share) * delta)
    begun = budget.after(PlanCharge(both(None), both(FIRST), Fraction(ORDER)))
    assert begun.converted == delta - budget.reserve
    assert begun.delta_left == budget.reserve
    exact = PlanCharge(both(Fraction(0)), both(Fraction(0)), Fraction(ORDER), both(budget.reserve))
    after = begun.after(exact)
    assert after.converted == begun.converted
    with pytest.raises(dpf.PlanRefused, match="is left for exact deltas"):
        after.after(attrs.evolve(exact, delta=both(Fraction(1, 10**9))))
    gain = gained_by_waiting(2.0, float(budget.reserve), float(begun.converted))
    assert gain <= float(delta)
    assert gain >= 0.98 * float(delta)


def test_exact_deltas_add_up_to_delta_without_an_order() -> None:
    delta = Fraction(1, 100)
    budget = AdaptiveBudget(ADD, Fraction(5), delta, reserve=delta)
    half = PlanCharge(both(Fraction(1)), delta=both(delta / 2))
    budget = budget.after(half).after(half)
    assert budget.loss() == dpf.PrivacyLoss(2, delta=delta)
    for more in (PlanCharge(both(None), both(FIRST), Fraction(3)), attrs.evolve(half, delta=both(Fraction(1, 10**9)))):
        with pytest.raises(dpf.PlanRefused, match=r"delta is left|is left for exact deltas"):
            budget.after(more)
    with pytest.raises(dpf.PlanRefused, match="an unknown delta"):
        budget.after(attrs.evolve(half, delta=both(None)))


def test_the_order_is_fixed_with_the_delta_that_is_left_then() -> None:
    """A plan of rho after exact deltas, and with one of its own, converts with the rest."""
    delta, own = Fraction(1, 1000), Fraction(1, 10**4)
    budget = AdaptiveBudget(ADD, Fraction(5), delta, reserve=Fraction(2, 10**4))
    budget = budget.after(PlanCharge(both(Fraction(1)), delta=both(own)))
    charge = budget.charge(both(None), release(None, "0.02"), both(own))
    assert charge.delta == both(own)
    assert charge.order is not None
    after = budget.after(charge)
    assert after.converted == delta - 2 * own - budget.reserve
    expected = 1 + epsilon_at(charge.order, charge.rdp.add_or_remove_one, after.converted)  # type: ignore[union-attr,arg-type]
    assert after.loss() == dpf.PrivacyLoss(expected, delta=delta)
    nothing_left = attrs.evolve(budget, reserve=delta - 2 * own)
    assert nothing_left.charge(both(None), release(None, "0.02"), both(own)).order is None


# --- what fits ------------------------------------------------------------------------------------------------------


def test_a_delta_takes_no_room_from_pure_plans() -> None:
    budget = filled(budget_of(5, MILLIONTH), *[release("1")] * 5)
    assert budget.order is None
    assert budget.loss() == dpf.PrivacyLoss(epsilon=5)
    assert tried(budget, release("1/1000")) is None


def test_pure_plans_beside_one_of_zcdp_are_charged_purely() -> None:
    """Three of epsilon 1, and all that the two left of five buy in zCDP."""
    budget = filled(budget_of(5, MILLIONTH), *[release("1")] * 3)
    assert zcdp_to_epsilon(Fraction("0.088"), MILLIONTH) < 2 < zcdp_to_epsilon(Fraction("0.0882"), MILLIONTH)
    assert tried(budget, release(None, "0.0882")) is None
    assert tried(filled(budget, release(None, "0.044")), release(None, "0.044")) is not None
    mixed = filled(budget, release(None, "0.04"))
    loss = filled(mixed, release("1/2")).loss()
    assert loss is not None
    assert mixed.loss().epsilon + Fraction("0.5") - loss.epsilon < Fraction(1, 10**8)  # type: ignore[union-attr]


def test_whatever_fits_in_zcdp_fits() -> None:
    """As many small plans as zCDP has room for, more than pure epsilon has."""
    rho = Fraction(1, 200)
    times = next(n for n in range(1, 1000) if zcdp_to_epsilon((n + 1) * rho, MILLIONTH) > 5)
    assert times / 10 > 5
    filled(budget_of(5, MILLIONTH), *[release("0.1")] * times)


@settings(max_examples=40)
@given(
    epsilons=st.lists(st.fractions(Fraction(1, 10), 2, max_denominator=20), max_size=5),
    rhos=st.lists(st.fractions(Fraction(1, 1000), Fraction(1, 10), max_denominator=1000), min_size=1, max_size=4),
)
@example(epsilons=[Fraction(1, 10)] * 2, rhos=[Fraction(1, 1000), Fraction(20, 829)])  # two valleys of one octave
def test_one_plan_costs_no_more_than_its_pure_parts_and_zcdp_of_the_rest(epsilons, rhos) -> None:
    parts = [*map(release, epsilons), *(release(None, rho) for rho in rhos)]
    plan = ComposedCurve(sequential, tuple(parts))
    total = RDPAccountant(ADD, delta=MILLIONTH).loss(plan)
    assert total is not None
    assert total.epsilon is not None
    split = sum(epsilons, Fraction(0)) + zcdp_to_epsilon(sum(rhos, Fraction(0)), MILLIONTH)
    together = zcdp_to_epsilon(sum(rhos, sum((e**2 / 2 for e in epsilons), Fraction(0))), MILLIONTH)
    assert float(total.epsilon) <= float(min(split, together)) * (1 + 1e-6)
    # and a cap of what a plan costs has room for it
    alone = budget_of(total.epsilon * Fraction("1.000001"), MILLIONTH)
    assert tried(alone, plan) is not None


def test_a_selection_in_zcdp_beside_pure_releases(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    rows = dpf.step("rows", dpf.queries.Count(), DiscreteLaplace("0.7"))
    many = [dpf.step(f"g{k}", dpf.queries.Count(), Gaussian("0.001499")) for k in range(20)]
    plan = plan_of(dpf.sequential(rows, *many), SCHEMA, ADD, delta=MILLIONTH)
    total = RDPAccountant(ADD, delta=MILLIONTH).total(plan)
    assert float(zcdp_to_epsilon(Fraction("0.02998"), MILLIONTH)) == pytest.approx(1.1178, abs=1e-4)
    assert float(total.epsilon) == pytest.approx(1.8178, abs=1e-4)  # type: ignore[union-attr,arg-type]
    assert plan.totals()["zcdp"].epsilon > 3  # type: ignore[operator]


def test_releases_without_a_pure_charge_total_as_zcdp_does(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    nodes = [dpf.step("g", dpf.queries.Count(), Gaussian("0.02")), dpf.step("s", dpf.queries.Count(), Gaussian("0.3"))]
    totals = plan_of(dpf.sequential(*nodes), SCHEMA, ADD, delta=MILLIONTH).totals()
    assert totals["rdp"].epsilon == totals["zcdp"].epsilon
    assert list(totals).index("zcdp") < list(totals).index("rdp")


def test_a_shared_accountant_keeps_the_order_of_its_first_plan(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    small, large = (
        plan_of(dpf.step("g", dpf.queries.Count(), Gaussian(rho)), SCHEMA, ADD, delta=MILLIONTH)
        for rho in ("0.0001", "0.1")
    )
    accountant = RDPAccountant(ADD, epsilon=30, delta=MILLIONTH)
    accountant.open(small)
    accountant.open(large)
    order = order_for(accountant.amount_of(small.root, small), ADD, MILLIONTH)
    assert order is not None
    expected = float(order) * 0.1001 + conversion(order, MILLIONTH)
    assert float(accountant.spent.epsilon) == pytest.approx(expected)  # type: ignore[union-attr,arg-type]
    assert expected > 10 * float(zcdp_to_epsilon(Fraction("0.1001"), MILLIONTH))


# --- the numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["1.5", "3", "17", "400"])
@pytest.mark.parametrize("delta", ["0.01", "1e-6", "1e-12"])
def test_the_conversion_is_dp_accountings(order: str, delta: str) -> None:
    expected, _ = compute_epsilon([float(order)], [0.7], float(delta))
    assert 0.7 + conversion(Fraction(order), Fraction(delta)) == pytest.approx(max(expected, 0.7), rel=1e-12)


def test_a_charge_reads_back() -> None:
    exact = both(Fraction(1, 10**6))
    for charge in (
        PlanCharge(both(Fraction(1, 3))),
        PlanCharge(both(None), both(Fraction(2, 7)), Fraction(9, 2)),
        PlanCharge(both(Fraction(1, 3)), delta=exact),
        PlanCharge(both(None), both(Fraction(2, 7)), Fraction(9, 2), exact),
    ):
        assert PlanCharge.from_dict(charge.to_dict()) == charge


def test_an_order_is_fixed_once() -> None:
    budget = filled(budget_of(5, MILLIONTH), release(None, "0.01"))
    for order in (None, budget.order + 1):  # type: ignore[operator]
        amount = PlanCharge(both(Fraction(1)), order and both(Fraction(1)), order)
        with pytest.raises(dpf.PlanRefused, match="at a different order"):
            budget.after(amount)
    for other, order in ((budget_of(5, MILLIONTH), Fraction(1)), (budget_of(5, 0), Fraction(2))):
        with pytest.raises(dpf.PlanRefused, match="an order that the budget cannot have"):
            other.after(PlanCharge(both(Fraction(1)), both(Fraction(1)), order))


def exponent(order: Fraction) -> float:
    return math.log2(order - 1)


def test_an_order_of_low_cost_is_found_wherever_it_is() -> None:
    """To a thousandth of an octave, between 1 + 2**-11 and 1 + 2**21, in steps of a millionth."""
    for k in range(290):
        least = -7.97 + k / 10
        found = best_order(lambda order: (exponent(order) - least) ** 2)  # noqa: B023
        assert abs(exponent(found) - least) < (4e-4 if least > -6 else 1e-3)
        assert (found * 2**20).denominator == 1
    assert exponent(best_order(lambda order: -order)) == pytest.approx(21, abs=1e-3)
    assert exponent(best_order(lambda order: order)) == pytest.approx(-11, abs=1e-3)
    assert 1 + Fraction(1, 2**20) == LOWEST


@pytest.mark.parametrize("eighths", [k for k in range(-7, 8) if k])
def test_the_lower_of_two_valleys_is_found(eighths: int) -> None:
    """Of one octave: a wide one, and one that is a fifth of an octave wide and lower."""
    for off in (-0.04, 0.0, 0.04):
        narrow = 3 + eighths / 8 + off

        def cost(order: Fraction, narrow: float = narrow) -> float:
            return min((exponent(order) - 3) ** 2, 2 * abs(exponent(order) - narrow) - 0.1)

        assert exponent(best_order(cost)) == pytest.approx(narrow, abs=4e-4)


def test_the_order_with_most_room_is_that_of_the_largest_rho() -> None:
    """Beside all orders of a fine grid: (epsilon - conversion) / order is the rho that an order has room for."""
    for epsilon, delta in ((Fraction(1), MILLIONTH), (Fraction(1, 10), Fraction(1, 100)), (Fraction(9), MILLIONTH)):
        grid = [Fraction(1 + 2 ** (k / 64)) for k in range(-640, 1280)]
        rooms = [(float(epsilon) - conversion(order, delta)) / float(order) for order in grid]
        order = order_of_largest_rho(epsilon, delta)
        assert (float(epsilon) - conversion(order, delta)) / float(order) >= max(rooms) * (1 - 1e-4)


@pytest.mark.parametrize("relation", list(dpf.Relation))
def test_the_order_of_a_plan_is_that_of_its_smallest_epsilon(relation: dpf.Relation) -> None:
    one = OneRelease(ByRelation(Fraction(3), Fraction(2)), ByRelation(Fraction(1, 50), Fraction(1, 5)))
    order = order_for(one, relation, MILLIONTH)
    assert order is not None
    grid = [Fraction(1 + 2 ** (k / 64)) for k in range(-640, 1280)]
    totals = [one.at(each).under(relation) + conversion(each, MILLIONTH) for each in grid]  # type: ignore[operator]
    assert one.at(order).under(relation) + conversion(order, MILLIONTH) <= min(totals) * (1 + 1e-5)  # type: ignore[operator]
    unclaimed = OneRelease(both(None), both(None))
    assert order_for(unclaimed, relation, MILLIONTH) is None
    assert RDPAccountant(relation, delta=MILLIONTH).loss(unclaimed) is None


def test_a_release_loses_the_smaller_of_epsilon_and_order_times_rho() -> None:
    one = OneRelease(ByRelation(Fraction(1), None), ByRelation(Fraction(1, 4), Fraction(1, 3)))
    assert [one.at(Fraction(order)) for order in (2, 4, 8)] == [
        ByRelation(Fraction(1, 2), Fraction(2, 3)),
        ByRelation(Fraction(1), Fraction(4, 3)),
        ByRelation(Fraction(1), Fraction(8, 3)),
    ]
    assert OneRelease(both(Fraction(2)), both(None)).at(Fraction(3)) == both(Fraction(2))


def test_of_nothing_the_epsilon_is_0_at_every_order() -> None:
    assert epsilon_at(Fraction(2), Fraction(0), MILLIONTH) == 0
    assert epsilon_at(Fraction(2), Fraction(1, 10), MILLIONTH) == pytest.approx(0.1 + math.log(10**6 / 4), rel=1e-8)
    assert conversion(Fraction(100), Fraction(1, 2)) == 0.0  # it would be below 0


def test_what_a_charge_adds_to_its_total() -> None:
    pure, rdp = ByRelation(Fraction(1), Fraction(2)), ByRelation(Fraction(3), Fraction(4))
    assert [PlanCharge(pure).under(relation) for relation in dpf.Relation] == [1, 2]
    assert [PlanCharge(pure, rdp, Fraction(2)).under(relation) for relation in dpf.Relation] == [3, 4]


def test_a_budget_without_a_delta_has_pure_totals_only(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(dpf.step("g", dpf.queries.Count(), Gaussian("0.02")), SCHEMA, ADD)
    budget = budget_of(1, 0)
    assert budget.plan_charge(plan) == PlanCharge(ByRelation(None, None))
    assert budget.after(budget.plan_charge(plan)).loss() is None
    assert budget.loss() == dpf.PrivacyLoss(epsilon=0)
    with_delta = budget_of(1, MILLIONTH)
    charge = with_delta.plan_charge(plan)
    assert charge.order is not None
    assert charge.rdp == both(charge.order / 50)
    loss = with_delta.after(charge).loss()
    assert loss == dpf.PrivacyLoss(epsilon_at(charge.order, charge.order / 50, MILLIONTH), delta=MILLIONTH)


def test_a_budget_without_a_delta_refuses_releases_that_have_one(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    keys = dpf.queries.Keys("town")
    step = dpf.step("towns", keys, PartitionSelection("0.5", "0.001"))
    plan = plan_of(step, dpf.Schema([dpf.Open("town")]), ADD, delta="0.001")
    for delta in (0, Fraction("0.0009"), Fraction("0.001")):
        budget = budget_of(1, delta)
        charge = budget.plan_charge(plan)
        assert (charge.pure.under(ADD), charge.delta.under(ADD)) == (Fraction("0.5"), Fraction("0.001"))
        if delta == charge.delta.under(ADD):
            assert budget.after(charge).loss() == dpf.PrivacyLoss("0.5", delta="0.001")
        else:
            with pytest.raises(dpf.PlanRefused, match=r"a delta of 0\.001 of their own, and 0\.\d* is left"):
                budget.after(charge)


def test_what_was_charged_without_a_claim_leaves_no_total() -> None:
    unclaimed = budget_of(5, MILLIONTH).after(PlanCharge(both(None)))
    assert unclaimed.loss() is None
    later = unclaimed.after(PlanCharge(both(Fraction(1)), both(Fraction(1)), Fraction(2)))
    assert (later.before, later.rdp, later.order) == (both(None), both(Fraction(1)), Fraction(2))
    assert later.loss() is None
    known = budget_of(5, MILLIONTH).after(PlanCharge(both(Fraction(1))))
    fixed = known.after(PlanCharge(both(None), both(Fraction(1)), Fraction(20)))
    again = fixed.after(PlanCharge(both(Fraction(1)), both(Fraction(1, 2)), Fraction(20)))
    assert (again.before, again.rdp, again.pure) == (both(Fraction(1)), both(Fraction(3, 2)), both(None))
    mixed = 1 + epsilon_at(Fraction(20), Fraction(3, 2), MILLIONTH)
    assert again.loss() == dpf.PrivacyLoss(mixed, delta=MILLIONTH)


def test_a_budget_that_is_full_takes_nothing_more_and_the_smaller_total_counts() -> None:
    full = filled(budget_of(1, MILLIONTH), release("1"))
    assert full.loss() == dpf.PrivacyLoss(epsilon=1)
    assert tried(full, release("1/1000")) is tried(full, release(None, "1/1000000")) is None
    assert filled(full, release("0")).loss() == dpf.PrivacyLoss(epsilon=1)
    order = Fraction(20)
    cheap = budget_of(5, MILLIONTH).after(PlanCharge(both(Fraction(3)), both(Fraction(1, 10)), order))
    mixed = epsilon_at(order, Fraction(1, 10), MILLIONTH)
    assert mixed < 3
    assert cheap.loss() == dpf.PrivacyLoss(mixed, delta=MILLIONTH)
    dear = budget_of(5, MILLIONTH).after(PlanCharge(both(mixed), both(Fraction(1, 10)), order))
    assert dear.loss() == dpf.PrivacyLoss(mixed)  # equal: the pure one, which has no delta


def test_a_sample_loses_the_smallest_of_its_three_bounds() -> None:
    """Of the part's own loss, its amplified epsilon, and the rho of any mechanism of that; of a rho, its own alone."""
    accountant, half = RDPAccountant(ADD, delta=MILLIONTH), Fraction(1, 2)
    amplified = composition.amplify(Fraction(1), half)
    sampled = accountant.sample(release("1"), half)
    assert sampled.at(Fraction(2)) == ByRelation(amplified**2, None)
    assert sampled.at(Fraction(3)) == ByRelation(3 * amplified**2 / 2, None)
    assert sampled.at(Fraction(10)) == ByRelation(amplified, None)
    cheap = accountant.sample(release("1", "1/100"), half)  # a rho that is less than any of its epsilon
    assert cheap.at(Fraction(2)) == ByRelation(Fraction(2, 100), None)
    gaussian = accountant.sample(release(None, "1/100"), half)
    assert gaussian.at(Fraction(3)) == ByRelation(Fraction(3, 100), None)
    rows = accountant.sample_of_rows(release("1"), half, 2)
    pair = composition.amplify_rows(both(Fraction(1)), half, 2).add_or_remove_one
    assert pair is not None
    assert rows.at(Fraction(100)) == ByRelation(pair, None)
    assert rows.at(Fraction(2)) == ByRelation(pair**2, None)
    assert accountant.sample_of_rows(release(None, "1/100"), half, 2).at(Fraction(2)) == gaussian.at(Fraction(2))
    assert accountant.sample(release(None, None), half).at(Fraction(2)) == both(None)


@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(2), Fraction(50)])
def test_curves_compose_at_each_order(order: Fraction) -> None:
    accountant = RDPAccountant(ADD, delta=MILLIONTH)
    one = OneRelease(ByRelation(Fraction(1), Fraction(2)), ByRelation(Fraction(1, 10), Fraction(1, 4)))
    two = OneRelease(ByRelation(Fraction(3), Fraction(5)), ByRelation(Fraction(1, 5), Fraction(1, 3)))
    at = [part.at(order) for part in (one, two)]
    assert accountant.sequential([]).at(order) == both(Fraction(0))
    assert accountant.sequential([one, two, one]).at(order) == composition.sequential([at[0], at[1], at[0]])
    assert accountant.sequential([one, one]).at(order) == accountant.repeat(one, 2).at(order)
    assert accountant.sequential([one]) == one
    assert accountant.either([one, two]).at(order) == composition.either(at)
    assert accountant.parallel([one, two]).at(order) == composition.parallel(at)
    nested = accountant.sequential([accountant.repeat(accountant.parallel([one, two]), 3), one])
    parts = composition.parallel(at)
    assert nested.at(order) == composition.sequential([composition.repeat(parts, 3), at[0]])
    spread = accountant.spread([nested, two], 2).at(order)
    assert spread.add_or_remove_one == composition.parallel([nested.at(order), at[1]]).add_or_remove_one
    whole = [
        composition.sequential(
            [composition.repeat(composition.parallel([getattr(p, n) for p in (one, two)]), 3), getattr(one, n)]
        )
        for n in ("pure", "zcdp")
    ]
    notions = [composition.parallel([mine, getattr(two, n)]) for mine, n in zip(whole, ("pure", "zcdp"), strict=True)]
    pure, rho = (notion.replace_one for notion in notions)
    assert pure is not None
    assert rho is not None
    assert spread.replace_one == min(pure, order * rho)
    assert accountant.amount(None) == OneRelease(both(None), both(None))


def test_a_plan_that_takes_exactly_what_is_left_is_charged_at_the_order_with_most_room() -> None:
    """Beside one that takes a little more, and is charged at the order at which it is itself cheapest."""
    epsilon = Fraction(2)
    order = order_of_largest_rho(epsilon, MILLIONTH)
    fits = OneRelease(both(None), both(next(rho_that_fits(order, epsilon)) / order))
    budget = budget_of(epsilon, MILLIONTH)
    charge = budget.charge(both(None), fits)
    assert epsilon_at(order, fits.at(order).add_or_remove_one or Fraction(0), MILLIONTH) == epsilon
    assert charge == PlanCharge(both(None), fits.at(order), order)
    more = OneRelease(both(None), fits.zcdp.map(lambda rho: rho * Fraction(101, 100)))
    assert budget.charge(both(None), more).order == order_for(more, ADD, MILLIONTH) != order


def rho_that_fits(order: Fraction, epsilon: Fraction) -> Iterator[Fraction]:
    """Yield divergences at an order that come to exactly an epsilon, which is rounded up to nine decimals."""
    near = float(epsilon) - conversion(order, MILLIONTH)
    for k in range(1, 1000):
        divergence = Fraction(near) - Fraction(k, 10**12)
        if epsilon_at(order, divergence, MILLIONTH) == epsilon:
            yield divergence
