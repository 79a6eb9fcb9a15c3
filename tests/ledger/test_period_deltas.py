"""Budgets over time whose releases have a delta of their own, beside the exact probabilities of all their outputs."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noisy_runs import never
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Gaussian, PartitionSelection
from dpframework.tables import table_from_columns

SCHEMA = dpf.Schema([dpf.Boolean("ill")])
UNIT = dpf.PrivacyUnit("person", 2, period="month", date="on")
ROUNDING = 1e-9
FURTHEST = 200  # of a noisy count from an exact one: what lies beyond has less than 1e-9 of the probability
Sides = tuple[NDArray[np.float64], NDArray[np.float64]]


def study_of(*steps: dpf.Node, delta: Any, **options: Any) -> dpf.Study:
    study = dpf.Study(
        SCHEMA, epsilon=9, delta=delta, unit="person", rows_per_unit=2, period="month", date="on", **options
    )
    study.add_plan("n", dpf.sequential(*steps))
    return study


def selected(epsilon: Any, delta: Any) -> dpf.Node:
    return dpf.step("own", dpf.queries.Count(), PartitionSelection(epsilon, delta))


def opened(folder: Path, **cap: Any) -> dpf.Ledger:
    ledger = dpf.Ledger.create(folder / "l")
    ledger.open("people", unit=UNIT, **cap)
    return ledger


def ran(ledger: dpf.Ledger, study: dpf.Study, *months: str) -> None:
    for month in months:
        columns: dict[str, Any] = {"person": ["a", "a"], "on": [f"{month}-03", f"{month}-05"], "ill": ["true", "false"]}
        study.run(
            table_from_columns(columns, SCHEMA, unit=UNIT.during(month)), ledger=ledger.run("people", period=month)
        )


# --- the exact loss: all outputs of all runs, with their probabilities on two neighbouring data sets ------------------


def outputs(plan: dpf.StudyPlan, before: int, after: int) -> Sides:
    """The probabilities of all outputs of one run on tables with so many rows, on either side."""
    sides: list[Sides] = []
    for step in plan.steps():
        found = plan.calibration(step)
        assert found is not None
        counts = np.arange(-FURTHEST, max(before, after) + FURTHEST + 1)
        own = [
            np.exp([found.mechanism.log_density(np.array([rows]), np.array([k]), found) for k in counts])
            for rows in (before, after)
        ]
        assert all(side.sum() > 1 - 1e-9 for side in own)
        sides.append((own[0], own[1]))
    return functools.reduce(together, sides)


def together(one: Sides, other: Sides) -> Sides:
    """The probabilities of outputs that are drawn apart, those of one ratio added up: no more can be told of them."""
    p, q = (np.outer(a, b).ravel() for a, b in zip(one, other, strict=True))
    some = (p > 0) | (q > 0)
    p, q = p[some], q[some]
    with np.errstate(divide="ignore"):
        ratios = np.round(np.log(p) - np.log(q), 9)
    place = np.unique(ratios, return_inverse=True)[1]
    return np.bincount(place, weights=p), np.bincount(place, weights=q)


def lost(runs: list[Sides], epsilon: Fraction) -> float:
    """The delta that runs together tell beyond an epsilon, the larger of both directions."""
    p, q = functools.reduce(together, runs)
    factor = math.exp(float(epsilon))
    return float(max(np.maximum(p - factor * q, 0).sum(), np.maximum(q - factor * p, 0).sum()))


def worst(plan: dpf.StudyPlan, runs: int, epsilon: Fraction) -> float:
    """The most that a person's rows in so many runs tell, whatever the rows of others."""
    pairs = [outputs(plan, others, others + own) for others, own in itertools.product((0, 1, 3), (1, 2))]
    return max(lost([pair] * runs, epsilon) for pair in pairs)


# --- what the ledger claims -------------------------------------------------------------------------------------------


def test_exact_deltas_add_up_over_a_period_and_over_a_history(tmp_path: Path) -> None:
    study = study_of(selected("0.5", "0.01"), delta="0.01")
    ledger = opened(tmp_path, epsilon=1, history=2, delta="0.04", reserve="0.04")
    ledger.approve("people", study.plan(), by="b", runs=9)
    ran(ledger, study, "2026-03", "2026-03", "2026-04")
    data_set = ledger.data_set("people")
    claims = {2: data_set.periods["2026-03"].loss(), 1: data_set.periods["2026-04"].loss(), 3: data_set.spent}
    for runs, claim in claims.items():
        assert claim == dpf.PrivacyLoss(Fraction(runs, 2), delta=Fraction(runs, 100))
        found = worst(study.plan(), runs, claim.epsilon or Fraction(0))
        assert 0.97 * float(claim.delta) < found <= float(claim.delta) * (1 + ROUNDING)
    with pytest.raises(dpf.PlanRefused, match=r"over the cap of period '2026-03'.*total is 1.5"):
        study.run(never, ledger=ledger.run("people", period="2026-03"))
    ran(ledger, study, "2026-05")
    with pytest.raises(dpf.PlanRefused, match=r"have a delta of 0.01 of their own, and 0.0 is left for exact deltas"):
        study.run(never, ledger=ledger.run("people", period="2026-06"))
    ledger.verify()


def test_a_period_has_no_more_delta_than_its_cap(tmp_path: Path) -> None:
    """An approval is for any period: a plan whose own delta no period admits is refused then."""
    ledger = opened(tmp_path, epsilon=9, history=90, delta="0.03")
    with pytest.raises(dpf.PlanRefused, match=r"data set 'people': .*a delta of 0.04 of their own, and 0.03 is left"):
        ledger.approve("people", study_of(selected("0.5", "0.04"), delta="0.04").plan(), by="b")
    fits = study_of(selected("0.5", "0.02"), delta="0.02")
    ledger.approve("people", fits.plan(), by="b", runs=2)
    ledger.record_outside("people", "a pilot", kind="private", by="b", epsilon="0.1", delta="0.015")
    with pytest.raises(dpf.PlanRefused, match=r"a delta of 0.02 of their own, and 0.015 is left"):
        fits.run(never, ledger=ledger.run("people", period="2026-03"))
    ledger.verify()


@pytest.mark.parametrize("reserve", ["0", "0.02"])
def test_noise_that_is_converted_stays_within_the_delta_beside_exact_ones(tmp_path: Path, reserve: str) -> None:
    """Each month has a release with a delta of its own and one of Gaussian noise, in one plan."""
    gaussian = dpf.step("rho", dpf.queries.Count(), Gaussian("0.02"))
    study = study_of(selected("0.25", "0.01"), gaussian, delta="0.05")
    ledger = opened(tmp_path, epsilon=3, history=6, delta="0.05", reserve=reserve)
    ledger.approve("people", study.plan(), by="b", runs=9)
    ran(ledger, study, "2026-03")
    if reserve == "0":  # the first plan converts with all that is left: later exact deltas have none
        refused = "and 0.0 is left for exact deltas; 0.04 is kept for the conversion, and only a budget with a reserve"
        with pytest.raises(dpf.PlanRefused, match=refused):
            study.run(never, ledger=ledger.run("people", period="2026-04"))
    else:
        ran(ledger, study, "2026-04", "2026-05")
        with pytest.raises(dpf.PlanRefused, match=r"and 0.0 is left for exact deltas"):
            study.run(never, ledger=ledger.run("people", period="2026-06"))
    data_set = ledger.data_set("people")
    months = len(data_set.periods)
    for runs, claim in ((1, data_set.periods["2026-03"].loss()), (months, data_set.spent)):
        assert claim is not None
        assert claim.epsilon is not None
        assert claim.delta == Fraction("0.05")
        assert 0 < worst(study.plan(), runs, claim.epsilon) <= float(claim.delta) * (1 + ROUNDING)
    ledger.verify()


def test_a_persons_rows_of_one_month_tell_nothing_of_another_months_releases(tmp_path: Path) -> None:
    """The claim of one period holds for all runs together, as neighbours that differ in one month only have it."""
    study = study_of(selected("0.5", "0.01"), dpf.step("h", dpf.queries.Count(), DiscreteLaplace("0.25")), delta="0.01")
    plan = study.plan()
    differs, same = outputs(plan, 1, 3), outputs(plan, 2, 2)
    assert lost([same, same], Fraction(0)) == 0
    alone = lost([differs], Fraction("0.6"))
    assert lost([same, differs, same], Fraction("0.6")) == pytest.approx(alone, rel=1e-6)
    assert lost([differs, differs], Fraction("0.6")) > 2 * alone
