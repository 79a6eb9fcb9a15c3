"""Rules of composition, amplification, and distributions from bounds: each beside its own slow definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import dpframework as dpf
from dpframework.accountant import PureAccountant, ZCDPAccountant, composition
from dpframework.accountant.event_distributions import (
    INTERVAL,
    AnyPure,
    AnyRho,
    SampledEvent,
    _convex,
    _furthest,
    _single,
    distribution,
    from_bound,
)
from dpframework.accountant.pld import (
    COMPOSITION_ERROR,
    AnyPure as PldAnyPure,
    Events,
    PLDAccountant,
    _compose,
    _count_events,
    _dominating,
)
from dpframework.accountant.zcdp import zcdp_to_epsilon
from dpframework.facts import ByRelation
from dpframework.mechanisms import DiscreteLaplace, Gaussian, PermuteAndFlip
from dpframework.mechanisms.gaussian import DiscreteGaussianEvent, FineGaussianEvent

ADD, REPLACE = dpf.Relation
MILLIONTH = Fraction(1, 10**6)
amounts = st.none() | st.fractions(0, 5, max_denominator=12)
pairs = st.builds(ByRelation, amounts, amounts)


# --- rules ----------------------------------------------------------------------------------------------------------


def added_up(amounts: list[Fraction | None]) -> Fraction | None:
    return None if None in amounts else sum((a for a in amounts if a is not None), Fraction(0))


def largest(amounts: list[Fraction | None]) -> Fraction | None:
    return None if None in amounts else max((a for a in amounts if a is not None), default=Fraction(0))


@given(parts=st.lists(pairs, max_size=5), times=st.integers(0, 4))
@settings(max_examples=80)
def test_amounts_compose_by_the_table_of_the_composition_page(parts: list[ByRelation], times: int) -> None:
    added, replaced = [p.add_or_remove_one for p in parts], [p.replace_one for p in parts]
    assert composition.sequential(parts) == ByRelation(added_up(added), added_up(replaced))
    assert composition.either(parts) == ByRelation(largest(added), largest(replaced))
    moves = [added_up(list(two)) for two in itertools.combinations(added, 2)] or added
    moving = None if None in moves else max((m for m in moves if m is not None), default=Fraction(0))
    staying = largest(replaced)
    expected = None if staying is None or moving is None else max(staying, moving)
    assert composition.parallel(parts) == ByRelation(largest(added), expected)
    for part in parts:
        assert composition.repeat(part, times) == composition.sequential([part] * times)


def test_a_row_that_moves_pays_in_the_two_dearest_parts() -> None:
    parts = [ByRelation(Fraction(k), Fraction(4)) for k in (2, 1, 3)]
    for order in itertools.permutations(parts):
        assert composition.parallel(order) == ByRelation(Fraction(3), Fraction(5))


@pytest.mark.parametrize("rate", ["1/1000", "1/3", "0.999"])
@pytest.mark.parametrize("epsilon", ["1e-9", "0.01", "1", "7/3", "40", "499", "500"])
def test_amplification_is_rounded_up_from_its_closed_form(epsilon: str, rate: str) -> None:
    found = composition.amplify(Fraction(epsilon), Fraction(rate))
    with localcontext(prec=300):
        given_, share = (Decimal(x.numerator) / Decimal(x.denominator) for x in map(Fraction, (epsilon, rate)))
        exact = Fraction((1 + share * (given_.exp() - 1)).ln())
    assert exact <= found <= min(exact * (1 + Fraction(1, 10**8)), Fraction(epsilon))


def test_amplification_of_nothing_and_of_what_no_double_holds() -> None:
    half = Fraction(1, 2)
    assert composition.amplify(Fraction(0), half) == 0
    assert composition.amplify(Fraction(501), half) == 501
    assert composition.sample(ByRelation(None, Fraction(1)), half) == ByRelation(None, None)
    rows = composition.amplify_rows(ByRelation(Fraction(3), Fraction(3)), half, 3)
    assert rows == ByRelation(3 * composition.amplify(Fraction(1), half), None)


def test_accountants_of_amounts_compose_by_the_rules() -> None:
    one, two = ByRelation(Fraction(1), Fraction(2)), ByRelation(Fraction(3), Fraction(4))
    half = Fraction(1, 2)
    for accountant in (PureAccountant(ADD), ZCDPAccountant(REPLACE, delta=MILLIONTH)):
        assert accountant.sequential([one, two]) == ByRelation(Fraction(4), Fraction(6))
        assert accountant.either([one, two]) == two
        assert accountant.parallel([one, two]) == accountant.spread([one, two], 3) == two
        assert (
            accountant.parallel([two, two]) == accountant.spread([two, two], 3) == ByRelation(Fraction(3), Fraction(6))
        )
        assert accountant.repeat(one, 3) == ByRelation(Fraction(3), Fraction(6))
    pure, zcdp = PureAccountant(ADD), ZCDPAccountant(ADD, delta=MILLIONTH)
    assert pure.sample(one, half) == composition.sample(one, half)
    assert pure.sample_of_rows(one, half, 3) == composition.amplify_rows(one, half, 3)
    assert zcdp.sample(one, half) == zcdp.sample_of_rows(one, half, 3) == ByRelation(Fraction(1), None)
    assert zcdp.loss(one) == dpf.PrivacyLoss(zcdp_to_epsilon(Fraction(1), MILLIONTH), rho=1, delta=MILLIONTH)
    assert zcdp.loss(ByRelation(None, Fraction(1))) is pure.loss(ByRelation(None, Fraction(1))) is None
    assert pure.loss(one) == dpf.PrivacyLoss(epsilon=1)


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        (dpf.accountant.PureAccountant, (False, True, True)),
        (dpf.accountant.ZCDPAccountant, (True, True, True)),
        (dpf.accountant.RDPAccountant, (True, True, True)),
        (dpf.accountant.PLDAccountant, (True, True, False)),
        (dpf.accountant.Accountant, (False, False, False)),
    ],
)
def test_what_each_notion_needs_and_covers(kind: Any, flags: tuple[bool, bool, bool]) -> None:
    """A delta; units of several rows; releases from a sample that is drawn anew when a run is resumed."""
    assert (kind.needs_delta, kind.of_units, kind.samples_anew) == flags


# --- conversion -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", ["0.01", "1e-6", "1e-30"])
@pytest.mark.parametrize("rho", ["0.0001", "0.03", "1", "50", "3000"])
def test_zcdp_is_converted_at_the_best_of_all_orders(rho: str, delta: str) -> None:
    """The conversion of Canonne, Kamath and Steinke (2020), Proposition 12, at many orders; or the closed form."""
    alpha = 1 + np.geomspace(1e-5, 1e7, 200_001)
    at = alpha * float(rho) + np.log1p(-1 / alpha) - (math.log(Fraction(delta)) + np.log(alpha)) / (alpha - 1)
    best = max(float(at.min()), 0)
    closed = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / Fraction(delta)))
    found = float(zcdp_to_epsilon(Fraction(rho), Fraction(delta)))
    assert best * (1 - 1e-9) <= found <= best * (1 + 2e-4) + 1e-9
    assert found <= closed + 1e-9
    assert zcdp_to_epsilon(Fraction(0), Fraction(delta)) == 0


# --- distributions from bounds --------------------------------------------------------------------------------------


@given(
    ys=st.lists(st.floats(0, 1.5), min_size=1, max_size=7), steps=st.lists(st.floats(0.05, 2), min_size=7, max_size=7)
)
@settings(max_examples=100)
def test_the_hull_is_the_largest_convex_function_below_the_bounds(ys: list[float], steps: list[float]) -> None:
    """At each point: the least of all lines between two of the points that lie on either side of it."""
    x = np.cumsum(steps)[: len(ys)]
    points = [(0.0, 1.0), *zip(x.tolist(), ys, strict=True)]

    def lowest(at: float) -> float:
        own = [y for along, y in points if along == at]
        left = [point for point in points if point[0] < at]
        right = [point for point in points if point[0] > at]
        return min(own + [a[1] + (b[1] - a[1]) * (at - a[0]) / (b[0] - a[0]) for a in left for b in right])

    assert _convex(x, np.array(ys)) == pytest.approx([lowest(at) for at in x.tolist()], abs=1e-9)


def test_a_distribution_from_a_bound_has_it_at_every_point() -> None:
    """Bounds that are convex in e**epsilon are kept; others come down to their hull, and never rise again."""
    epsilons = np.arange(-40, 61) * INTERVAL
    deltas = np.maximum(0, 0.3 * (1 - np.exp(epsilons - 0.04))) + 0.01
    made = from_bound(-40, deltas)
    assert [made.get_delta_for_epsilon(e) for e in epsilons] == pytest.approx(deltas, abs=1e-9)
    assert made.get_delta_for_epsilon(1.0) == pytest.approx(0.01)  # infinite losses
    bumped = deltas.copy()
    bumped[50] += 0.2
    bumped[-1] += 0.1
    again = from_bound(-40, bumped)
    assert [again.get_delta_for_epsilon(e) for e in epsilons] == pytest.approx(deltas, abs=1e-5)
    whole = from_bound(0, np.array([1.7, 0.5]))
    assert whole.get_delta_for_epsilon(0.0) == pytest.approx(0.5 + 0.5 * (1 - 1 / math.exp(INTERVAL)), abs=1e-3)


@pytest.mark.parametrize("rho", [1e-4, 0.1, 5.0])
def test_any_mechanism_of_a_rho_has_the_best_bound_of_all_orders(rho: float) -> None:
    """Proposition 12 at many more orders; the other way round, P and Q are exchanged."""
    made = distribution({AnyRho(rho): 1}, fine=True)
    orders = 1 + np.geomspace(1e-4, 1e5, 20_001)

    def best(epsilon: float) -> float:
        log = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        return min(1.0, math.exp(float(log.min())))

    spread = math.sqrt(2 * rho)
    for epsilon in (math.ceil((rho + k * spread) / INTERVAL) * INTERVAL for k in (0.5, 1, 2, 4, 6)):
        found, bound = made.get_delta_for_epsilon(epsilon), best(epsilon)
        assert found <= bound * 1.01
        assert found >= bound * (0.99 if epsilon > rho + spread and bound < 0.1 else 0.5)
        reverse = 1 - math.exp(-epsilon) + math.exp(-epsilon) * bound
        assert made.get_delta_for_epsilon(-epsilon) == pytest.approx(reverse, rel=0.02)
    for epsilon in (k * rho / 4 for k in range(8)):  # where no order says much, normal noise of this rho says enough
        normal = stats.norm.cdf(spread / 2 - epsilon / spread)
        normal -= math.exp(epsilon) * stats.norm.cdf(-spread / 2 - epsilon / spread)
        assert made.get_delta_for_epsilon(epsilon) >= normal


def grid_of(made: Any) -> tuple[int, int]:
    """Return the first and the last loss of a single event's distribution, in intervals."""
    pmf = made._pmf_remove.to_dense_pmf()
    return pmf._lower_loss, pmf._lower_loss + pmf.size - 1


@pytest.mark.parametrize("mean", [0.02, 0.5, 3.0])
def test_the_losses_of_a_gaussian_are_placed_where_its_mass_is(mean: float) -> None:
    """On a grid that leaves out 1e-17 of it on each side, and is no longer than that takes."""
    first, last = grid_of(_single(FineGaussianEvent(1 / mean, 1e-9), True))
    deviations = [(end * INTERVAL - mean**2 / 2) / mean for end in (first, last)]
    assert stats.norm.cdf(deviations[0]) <= 1e-17 < stats.norm.cdf(deviations[0] + 0.1 + INTERVAL / mean)
    assert stats.norm.sf(deviations[1]) <= 1e-17 < stats.norm.sf(deviations[1] - 0.1 - INTERVAL / mean)


@pytest.mark.parametrize("rho", [1e-3, 0.11, 5.0])
def test_the_losses_of_a_rho_end_where_its_delta_is_next_to_nothing(rho: float) -> None:
    """Delta is at most exp(-(epsilon - rho)**2 / (4 rho)) (Bun and Steinke 2016, Lemma 3.5): e**-40 at the end."""
    first, last = grid_of(_single(AnyRho(rho), True))
    assert first == -last
    bounds = [math.exp(-((end * INTERVAL - rho) ** 2) / (4 * rho)) for end in (last - 1, last)]
    assert bounds[1] <= math.exp(-40) < bounds[0]


def test_where_a_distribution_ends_there_is_next_to_no_delta_left() -> None:
    for events in ({DiscreteGaussianEvent(2.0): 3}, {AnyPure(0.7): 5}, {AnyRho(0.2): 1}):
        whole = distribution(events, fine=True)
        end = _furthest(whole) * INTERVAL
        infinite = whole.get_delta_for_epsilon(700.0)
        assert whole.get_delta_for_epsilon(end) <= infinite + 1e-15
        assert end == pytest.approx(1.5 ** round(math.log(end, 1.5)), abs=INTERVAL)
        assert end == pytest.approx(1) or whole.get_delta_for_epsilon(end / 1.5 - INTERVAL) > infinite + 1e-16


def test_no_distribution_ends_beyond_the_losses_whose_exponential_is_a_number() -> None:
    assert _furthest(distribution({AnyPure(690.0): 1}, fine=True)) * INTERVAL == pytest.approx(700)


def test_a_sample_of_a_pure_event_costs_what_amplification_says() -> None:
    for rate, epsilon in ((0.25, 1.0), (0.01, 3.0), (0.9, 0.2)):
        made = distribution({SampledEvent(rate, ((AnyPure(epsilon), 1),)): 1}, fine=True)
        amplified = math.log1p(rate * math.expm1(epsilon))
        assert made.get_epsilon_for_delta(1e-12) == pytest.approx(amplified, abs=2 * INTERVAL)
        lost = rate * (1 / (1 + math.exp(-epsilon)) - 1 / (1 + math.exp(epsilon)))
        assert made.get_delta_for_epsilon(0.0) == pytest.approx(lost, rel=1e-3)


# --- events ---------------------------------------------------------------------------------------------------------


def test_events_are_counted_and_composed_in_one_form() -> None:
    from dp_accounting import ComposedDpEvent, NoOpDpEvent, SelfComposedDpEvent

    one, two = PldAnyPure(0.5), PldAnyPure(0.7)
    nested = SelfComposedDpEvent(ComposedDpEvent([one, SelfComposedDpEvent(two, 3), NoOpDpEvent()]), 2)
    assert _count_events([nested, one]) == {one: 3, two: 6}
    assert _compose([]) == NoOpDpEvent()
    assert _compose([one]) == one
    assert _compose([one, one]) == SelfComposedDpEvent(one, 2)
    assert _compose([two, one]) == _compose([one, two]) == ComposedDpEvent([one, two])
    assert _compose([one, None]) is None


def test_the_event_that_dominates_has_all_that_others_have_and_more() -> None:
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent, SelfComposedDpEvent

    small, large = PldAnyPure(0.5), PldAnyPure(0.7)
    laplace = DiscreteLaplaceDpEvent(0.6, 1)
    thick = DiscreteGaussianEvent(3.0)
    for events, expected in (
        ([small, large], large),
        ([large, small, laplace], large),
        ([laplace, small], laplace),
        ([SelfComposedDpEvent(small, 2), large], None),
        ([SelfComposedDpEvent(large, 2), large, small], SelfComposedDpEvent(large, 2)),
        ([thick, large], None),
        ([_compose([thick, large]), large, thick], _compose([thick, large])),
        ([_compose([thick, large]), SelfComposedDpEvent(thick, 2)], None),
        ([small, None], None),
        ([], None),
    ):
        assert _dominating(events, None, None) == expected
        assert _dominating(events, Fraction(9), None) == (expected or AnyPure(9.0))
        assert _dominating(events, None, Fraction(2)) == (expected or AnyRho(2.0))


@pytest.mark.parametrize("relation", list(dpf.Relation))
def test_a_move_between_parts_is_two_events_under_replace_one(relation: dpf.Relation) -> None:
    accountant = PLDAccountant(relation, delta="0.1")
    one = Events(PldAnyPure(0.5), PldAnyPure(0.8), ByRelation(Fraction(1, 2), Fraction(4, 5)), ByRelation(None, None))
    alone, two = accountant.parallel([one]), accountant.parallel([one, one])
    assert alone.under(ADD) == two.under(ADD) == PldAnyPure(0.5)
    assert alone.under(REPLACE) == PldAnyPure(0.8)
    assert two.under(REPLACE) == AnyPure(1.0)  # neither two of 0.5 nor one of 0.8 dominates the other
    assert two.pure == ByRelation(Fraction(1, 2), Fraction(1))
    spread = accountant.spread([one, one], 2)
    assert (spread.under(ADD), spread.under(REPLACE)) == (AnyPure(0.5), AnyPure(1.0))


def test_events_travel_with_the_pure_epsilon_and_the_rho_of_each_relation() -> None:
    """Four amounts that differ each, of parts that have no event: any mechanism of the largest pure one, or rho."""
    accountant, unclaimed = PLDAccountant(ADD, delta="0.1"), ByRelation(None, None)
    rhos = [ByRelation(Fraction(1, 10), Fraction(3, 10)), ByRelation(Fraction(2, 10), Fraction(5, 10))]
    losses = [ByRelation(Fraction(1), Fraction(3)), ByRelation(Fraction(2), Fraction(5))]
    by_rho = [Events(None, None, unclaimed, rho) for rho in rhos]
    by_loss = [Events(None, None, loss, rho) for loss, rho in zip(losses, rhos, strict=True)]
    for rule, pure, rho in (
        (accountant.either, losses[1], rhos[1]),
        (accountant.parallel, losses[1], rhos[1]),
        (lambda parts: accountant.spread(parts, 2), losses[1], rhos[1]),
    ):
        assert rule(by_rho) == Events(AnyRho(0.2), AnyRho(0.5), unclaimed, rho)
        assert rule(by_loss) == Events(AnyPure(2.0), AnyPure(5.0), pure, rho)
    together = accountant.sequential(by_loss)
    assert together == Events(
        None, None, ByRelation(Fraction(3), Fraction(8)), ByRelation(Fraction(3, 10), Fraction(8, 10))
    )
    cheap = [Events(None, None, unclaimed, ByRelation(rho, rho)) for rho in (Fraction(1, 10), Fraction(2, 10))]
    assert accountant.parallel(cheap).zcdp == ByRelation(Fraction(2, 10), Fraction(3, 10))  # leaving one, entering one
    assert accountant.repeat(by_loss[0], 2).pure == ByRelation(Fraction(2), Fraction(6))
    assert [by_loss[0].under(relation) for relation in dpf.Relation] == [None, None]
    assert [accountant.either(by_rho).under(relation) for relation in dpf.Relation] == [AnyRho(0.2), AnyRho(0.5)]


def test_events_of_a_sample_are_of_rows_that_are_added_or_removed() -> None:
    accountant, half, rho = (
        PLDAccountant(ADD, delta="0.1"),
        Fraction(1, 2),
        ByRelation(Fraction(1, 10), Fraction(3, 10)),
    )
    pure, amplified = ByRelation(Fraction(1), Fraction(3)), composition.amplify(Fraction(1), half)
    part = Events(_compose([AnyPure(1.0), DiscreteGaussianEvent(2.0)]), AnyPure(3.0), pure, rho)
    sampled = accountant.sample(part, half)
    events = ((AnyPure(1.0), 1), (DiscreteGaussianEvent(2.0), 1))
    assert sampled == Events(
        SampledEvent(0.5, events), None, ByRelation(amplified, None), ByRelation(Fraction(1, 10), None)
    )
    unclaimed = accountant.sample(Events(None, AnyPure(3.0), ByRelation(None, Fraction(3)), rho), half)
    assert unclaimed == Events(None, None, ByRelation(None, None), ByRelation(Fraction(1, 10), None))
    of_rows = accountant.sample_of_rows(part, half, 2)
    pair = composition.amplify_rows(pure, half, 2).add_or_remove_one
    assert of_rows.pure == ByRelation(pair, None)
    assert of_rows.zcdp == ByRelation(Fraction(1, 10), None)
    assert isinstance(of_rows.add_or_remove_one, AnyPure)
    assert of_rows.replace_one is None
    assert Fraction(of_rows.add_or_remove_one.epsilon) >= (pair or 0)
    assert accountant.amount(None) == Events(None, None, ByRelation(None, None), ByRelation(None, None))


def test_pure_parts_may_be_added_to_the_epsilon_of_the_rest() -> None:
    """A pure epsilon of 700 still fits a distribution, and one of 701 is added to what the rest comes to."""
    accountant = PLDAccountant(ADD, delta=MILLIONTH)
    rest = DiscreteGaussianEvent(10.0)
    alone = distribution({rest: 1}, fine=True).get_epsilon_for_delta(1e-6)
    for epsilon in (0.5, 700.0, 701.0, 5000.0):
        both = Events(_compose([PldAnyPure(epsilon), rest]), None, ByRelation(None, None), ByRelation(None, None))
        total = accountant.loss(both)
        assert total is not None
        assert total.epsilon is not None
        assert float(total.epsilon) <= epsilon + alone + 1e-6
        assert float(total.epsilon) >= epsilon
    lone = Events(PldAnyPure(0.5), None, ByRelation(Fraction(1, 2), None), ByRelation(None, None))
    assert accountant.loss(lone) == dpf.PrivacyLoss(
        epsilon=accountant.loss(lone).epsilon,  # type: ignore[union-attr]
        delta=MILLIONTH,
    )
    exact = math.log((1 - 1e-6 * (1 + math.exp(-0.5))) * math.exp(0.5))  # of randomized response
    assert float(accountant.loss(lone).epsilon or 0) == pytest.approx(exact, abs=2e-6)  # type: ignore[union-attr]
    assert PLDAccountant(REPLACE, delta=MILLIONTH).loss(lone) is None


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("kind", [DiscreteLaplace, PermuteAndFlip])
def test_no_pure_epsilon_is_too_large_for_the_accountants(
    plan_of: Callable[..., dpf.StudyPlan], kind: Any, sampled: bool
) -> None:
    """Exponentials of more than 709 are no doubles: such a release has no distribution, and no accountant fails."""
    schema = dpf.Schema([dpf.Boolean("ill")])
    for epsilon in (701, 720, 999, 10**6) if sampled else (690, 700, 701, 720, 999, 10**6):
        step = dpf.step("n", dpf.queries.Histogram(schema["ill"]), kind(epsilon))
        node = dpf.sample("0.5", step) if sampled else step
        plan = plan_of(node, schema, delta=MILLIONTH)
        assert plan.failures() == {}
        assert ("pld" in plan.totals()) is (epsilon <= 700)
        with_noise = plan_of(
            dpf.sequential(node, dpf.step("g", dpf.queries.Count(), Gaussian("0.01"))), schema, delta=MILLIONTH
        )
        assert with_noise.failures() == {}
        assert ("pld" in with_noise.totals()) is (epsilon <= 700 or not sampled)


@pytest.mark.parametrize(
    ("query", "relation"),
    [
        (dpf.queries.Count(), ADD),
        (dpf.queries.Histogram(dpf.Boolean("ill")), ADD),
        (dpf.queries.Histogram(dpf.Boolean("ill")), REPLACE),
    ],
    ids=str,
)
def test_no_rho_is_too_large_for_the_accountants(
    plan_of: Callable[..., dpf.StudyPlan], query: dpf.queries.Query, relation: dpf.Relation
) -> None:
    """The losses of a rho of a million lie around a million: 24 million points took a minute, and gigabytes."""
    schema = dpf.Schema([dpf.Boolean("ill")])
    for rho in (690, 700, 701, 10**6):
        for node in (dpf.step("g", query, Gaussian(rho)), dpf.repeat(10, dpf.step("g", query, Gaussian(rho / 10)))):
            plan = plan_of(node, schema, relation, delta=MILLIONTH)
            assert plan.failures() == {}
            assert ("pld" in plan.totals()) is (rho <= 700)
            assert plan.totals()["zcdp"].epsilon is not None


def epsilon_of_responses(times: int, epsilon: float, delta: float) -> float:
    """Return the epsilon at delta of so many randomized responses, exactly: their losses are binomial."""
    losses = epsilon * (2 * np.arange(times + 1) - times)
    chances = stats.binom.pmf(np.arange(times + 1), times, 1 / (1 + math.exp(-epsilon)))
    low, high = 0.0, times * epsilon
    for _ in range(100):
        middle = (low + high) / 2
        left = math.fsum(np.maximum(0, -np.expm1(middle - losses)) * chances)
        low, high = (middle, high) if left > delta else (low, middle)
    return high


@pytest.mark.parametrize("delta", ["1e-6", "1e-10", "1e-11", "1e-12"])
@pytest.mark.parametrize(("times", "epsilon"), [(20, 0.1003), (20, 1.0003), (200, 0.0503)])
def test_pld_totals_hold_at_every_delta(times: int, epsilon: float, delta: str) -> None:
    """Losses between two points of the grid: placed exactly while doubles can, and rounded up below that."""
    unclaimed = ByRelation(None, None)
    events = Events(_compose([AnyPure(epsilon)] * times), None, unclaimed, unclaimed)
    total = PLDAccountant(ADD, delta=delta).loss(events)
    assert total is not None
    over = float(total.epsilon or 0) - epsilon_of_responses(times, epsilon, float(delta))
    assert -1e-9 < over < (0.01 if Fraction(delta) >= Fraction(1, 10**10) else times * INTERVAL)
    if times == 200 and Fraction(delta) >= Fraction(1, 10**10):
        assert over < 1e-3


@pytest.mark.parametrize("delta", ["1e-11", "1e-12", "1e-13", "1e-14"])
@pytest.mark.parametrize("epsilon", [0.001, 0.5])
def test_the_errors_of_transforms_are_taken_off_a_small_delta(epsilon: float, delta: str) -> None:
    """A thousand losses on points of the grid, which no rounding makes larger. Below their errors there is no total.

    At a delta of 1e-14 it was 1.17 times as large as claimed.
    """
    times, unclaimed = 1000, ByRelation(None, None)
    total = PLDAccountant(ADD, delta=delta).loss(Events(AnyPure(epsilon), None, unclaimed, unclaimed))
    assert total is not None  # a single loss is not composed
    events = Events(_compose([AnyPure(epsilon)] * times), None, unclaimed, unclaimed)
    total = PLDAccountant(ADD, delta=delta).loss(events)
    if total is None:
        assert Fraction(delta) < COMPOSITION_ERROR * times
        return
    ups = np.arange(times + 1)
    losses = (2 * ups - times) * epsilon - float(total.epsilon or 0)
    logs = [math.lgamma(times + 1) - math.lgamma(k + 1) - math.lgamma(times - k + 1) for k in range(times + 1)]
    chances = np.exp(np.array(logs) + ups * epsilon - times * math.log1p(math.exp(epsilon)))
    lost = -np.expm1(-np.maximum(losses, 0)) * chances
    assert math.fsum(lost.tolist()) <= float(delta)
