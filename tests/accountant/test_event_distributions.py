"""Privacy loss distributions of what dp-accounting has no event for, beside sums over outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from scipy import stats

import dpframework as dpf
from dpframework.accountant import PLDAccountant
from dpframework.accountant.event_distributions import AnyRho, SampledEvent, distribution
from dpframework.accountant.zcdp import zcdp_to_epsilon
from dpframework.mechanisms import DiscreteLaplace, Gaussian
from dpframework.mechanisms.gaussian import DiscreteGaussianEvent, FineGaussianEvent
from dpframework.plan import Step

SCHEMA = dpf.Schema([dpf.Boolean("a")])
ADD = dpf.Relation.ADD_OR_REMOVE_ONE
DELTA = Fraction(1, 10**6)


def count(name: str, epsilon: Any) -> Step:
    return dpf.step(name, dpf.queries.Count(), DiscreteLaplace(epsilon))


def noisy(name: str, rho: Any) -> Step:
    return dpf.step(name, dpf.queries.Count(), Gaussian(rho))


@attrs.frozen
class Real(dpf.Query):
    """Two real numbers, that a row moves by at most the root of `squared` together."""

    name = "real"
    squared: Fraction
    integer = False
    answer_length = 2

    @property
    def sensitivities(self) -> tuple[dpf.Sensitivity, ...]:
        return (dpf.Sensitivity("squared-l2", self.squared, source="by construction of the test"),)

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        raise AssertionError


@attrs.frozen
class Large(Real):
    """The same, in whole numbers."""

    name = "large"
    integer = True


def delta_of_pair(p: Any, q: Any, epsilon: float) -> float:
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


@pytest.mark.parametrize(("change", "rho"), [(10**5, "0.5"), (10**5, "0.01"), (10**6, "20")])
def test_gaussian_noise_on_a_fine_lattice_loses_what_its_event_says(change: int, rho: str) -> None:
    """The largest change lies in one number, whose discrete noise is summed over all points; in the worst direction."""
    calibration = Gaussian(rho).calibrate(Large(Fraction(change**2)).facts(), ADD)
    assert calibration is not None
    event = calibration.mechanism.dp_event(calibration, ADD)
    assert isinstance(event, FineGaussianEvent)
    claimed = distribution({event: 1}, fine=True)
    sigma = math.sqrt(float(calibration.scale))
    assert event.slack == pytest.approx(2 * (14 + change / sigma) ** 2 / (24 * sigma**2), rel=1e-6)  # of two numbers
    points = np.arange(-math.ceil(9 * sigma), math.ceil(9 * sigma) + change)
    p, q = (
        np.exp(-((points - shift) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi)) for shift in (0, change)
    )
    mean = change / sigma
    for epsilon in (mean**2 / 2 + mean * x for x in (-3, -1, 0, 1, 2, 4)):
        lost = delta_of_pair(p, q, epsilon)
        said = float(claimed.get_delta_for_epsilon(epsilon))
        assert lost <= said + 1e-13  # of rounding in these sums
        assert said <= lost * 1.001 + 2 * event.slack
    diagonal = change / math.sqrt(2)  # in both numbers; delta by the losses of independent coordinates
    one = np.exp(-(points**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    loss = (diagonal**2 - 2 * diagonal * points) / (2 * sigma**2)
    grid = np.histogram(loss, bins=400, weights=one, range=(loss.min(), loss.max()))
    middles = (grid[1][1:] + grid[1][:-1]) / 2
    both = np.add.outer(middles, middles)
    for epsilon in (mean**2 / 2, mean**2 / 2 + mean):
        lost = float((np.maximum(0, 1 - np.exp(epsilon - both)) * np.outer(grid[0], grid[0])).sum())
        assert lost == pytest.approx(float(claimed.get_delta_for_epsilon(epsilon)), rel=0.01)


def test_slack_bounds_how_far_discrete_noise_is_from_continuous_noise() -> None:
    for sigma in (2.5, 7.0, 300.0):
        points = np.arange(0, math.ceil(14 * sigma))
        discrete = -(points**2) / (2 * sigma**2)
        discrete = discrete - math.log(1 + 2 * np.exp(discrete[1:]).sum())
        edges = stats.norm.logsf((points - 0.5) / sigma), stats.norm.logsf((points + 0.5) / sigma)
        rounded = edges[0] + np.log1p(-np.exp(edges[1] - edges[0]))
        furthest = np.abs(discrete - rounded)[points >= sigma]
        allowed = (points[points >= sigma] / sigma) ** 2 / (24 * sigma**2)
        assert (furthest <= allowed + 1e-9).all()
        assert furthest[-1] > 0.5 * allowed[-1] - 1e-9


def test_slack_is_paid_for_in_losses_and_in_delta() -> None:
    slack, mean = 0.05, 0.5
    points = np.linspace(-8, 8.5, 4001)
    p, q = (stats.norm.pdf(points - shift) / stats.norm.pdf(points - shift).sum() for shift in (0, mean))
    claimed = distribution({FineGaussianEvent(1 / mean, slack): 1}, fine=True)
    for epsilon in (-0.5, 0.0, 0.3, 1.0):
        bound = 1 - math.exp(-slack) * (1 - delta_of_pair(p, q, epsilon - 2 * slack))
        assert bound - 1e-6 <= float(claimed.get_delta_for_epsilon(epsilon)) <= bound + 1e-4


def test_gaussian_noise_on_real_answers_has_a_pld_total(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    for squared, times in ((Fraction(1), 1), (Fraction(2, 7), 50), (Fraction(10**12), 50)):
        node = dpf.repeat(times, dpf.step("r", Real(squared), Gaussian("0.001")))
        plan = plan_of(node, SCHEMA, delta=DELTA)
        totals = plan.totals()
        exact = stats_of_gaussian(math.sqrt(2 * 0.001 * times))
        assert next(iter(totals)) == "pld"
        assert exact - 1e-6 <= float(totals["pld"].epsilon or 0) <= exact * 1.001 < float(totals["zcdp"].epsilon or 0)


def stats_of_gaussian(mean: float) -> float:
    """Return epsilon at 1e-6 of a Gaussian with that mean over its deviation (Balle and Wang 2018, Theorem 5)."""
    low, high = 0.0, 100.0
    for _ in range(100):
        epsilon = (low + high) / 2
        delta = stats.norm.cdf(mean / 2 - epsilon / mean) - math.exp(epsilon) * stats.norm.cdf(
            -mean / 2 - epsilon / mean
        )
        low, high = (epsilon, high) if delta > 1e-6 else (low, epsilon)
    return high


@pytest.mark.parametrize("rho", ["0.0001", "0.1", "5"])
def test_any_mechanism_of_a_rho_is_dominated_and_costs_what_zcdp_says(rho: str) -> None:
    claimed = distribution({AnyRho(float(rho)): 1}, fine=True)
    assert claimed.get_epsilon_for_delta(1e-6) == pytest.approx(
        float(zcdp_to_epsilon(Fraction(rho), DELTA)), rel=2e-3, abs=1e-3
    )
    sigma = 1 / math.sqrt(2 * float(rho))
    points = np.arange(-400, 400)
    p, q = (np.exp(-((points * sigma / 20 - shift) ** 2) / (2 * sigma**2)) for shift in (0, 1))
    p, q = p / p.sum(), q / q.sum()
    for epsilon in np.linspace(-3 / sigma, 3 / sigma, 13):
        for one, other in ((p, q), (q, p)):
            assert delta_of_pair(one, other, epsilon) <= claimed.get_delta_for_epsilon(epsilon) + 1e-9


def test_what_has_no_event_is_composed_by_its_rho(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    """A number that changes by 10 in small noise is no unit change, and its lattice is not fine."""

    class Steep(Large):
        name = "steep"

    steep = dpf.step("s", Steep(Fraction(100)), Gaussian("0.002"))
    assert steep.mechanism.dp_event(steep.mechanism.calibrate(steep.query.facts(), ADD), ADD) is None
    plan = plan_of(dpf.sequential(dpf.repeat(5, steep), dpf.repeat(5, count("n", "0.1"))), SCHEMA, delta=DELTA)
    totals = {name: float(loss.epsilon or 0) for name, loss in plan.totals().items()}
    assert totals["pld"] < totals["rdp"] < totals["zcdp"]
    assert totals["pld"] <= 0.5 + float(zcdp_to_epsilon(Fraction(1, 100), DELTA))
    alone = PLDAccountant(ADD, delta=DELTA).total(plan_of(dpf.sequential(dpf.repeat(4, steep), steep), SCHEMA))
    assert alone is not None
    assert float(alone.epsilon or 0) == pytest.approx(float(zcdp_to_epsilon(Fraction(1, 100), DELTA)), rel=1e-3)


def test_a_total_is_at_most_pure_parts_and_pld_of_the_rest(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    rest = dpf.repeat(10, noisy("g", "0.001"))
    alone = PLDAccountant(ADD, delta=DELTA).total(plan_of(rest, SCHEMA, delta=DELTA))
    assert alone is not None
    for epsilon in ("0.0001", "0.3", "30", "5000"):  # the last is more than a distribution can hold
        plan = plan_of(dpf.sequential(count("n", epsilon), rest), SCHEMA, delta=DELTA)
        total = PLDAccountant(ADD, delta=DELTA).total(plan)
        assert total is not None
        together = float(epsilon) + float(alone.epsilon or 0)
        assert 0.8 * together <= float(total.epsilon or 0) <= together + 1e-8


def test_a_k_means_in_zcdp_beside_pure_releases_fits_a_budget_of_2(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    """Noisy sums and counts of rounds in zCDP, for 1.118 at delta; two pure releases of 0.35."""
    rounds = dpf.repeat(
        5, dpf.sequential(noisy("sizes", "0.001"), dpf.step("sums", Real(Fraction(4)), Gaussian("0.00499")))
    )
    plan = plan_of(dpf.sequential(rounds, count("a", "0.35"), count("b", "0.35")), SCHEMA, epsilon=2, delta=DELTA)
    totals = {name: float(loss.epsilon or 0) for name, loss in plan.totals().items()}
    alone = plan_of(rounds, SCHEMA, delta=DELTA).totals()
    assert float(alone["zcdp"].epsilon or 0) == pytest.approx(1.118, abs=0.002)
    assert totals["rdp"] <= 1.818
    assert totals["pld"] < totals["rdp"]
    assert not plan.refusals()


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_a_sample_s_distribution_is_that_of_mixtures_in_both_directions(rate: float) -> None:
    sigma = 2.0
    points = np.arange(-60, 62)
    p, q = (np.exp(-((points - shift) ** 2) / (2 * sigma**2)) for shift in (1, 0))
    p, q = p / p.sum(), q / q.sum()
    mixed = rate * p + (1 - rate) * q
    claimed = distribution({SampledEvent(rate, ((DiscreteGaussianEvent(sigma), 1),)): 1}, fine=True)
    for epsilon in (-1.0, -0.2, 0.0, 0.01, 0.1, 0.4, 1.0):
        for pmf, one, other in ((claimed._pmf_remove, mixed, q), (claimed._pmf_add, q, mixed)):
            lost, said = delta_of_pair(one, other, epsilon), float(pmf.get_delta_for_epsilon(epsilon))
            assert lost - 1e-9 <= said <= lost + 1e-6
