"""Successive choices: what is said of them before a run, and outputs that no run makes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from dpframework_greedy.successive_choices import CandidatePool, Group, SuccessiveExponential, log_share

import dpframework as dpf
from dpframework.queries import Norm, QueryFacts, Sensitivity

CARRIES = "; this epsilon is enough for"


def facts(candidates: int | None) -> QueryFacts:
    return QueryFacts("toy", "toy pool", (), False, candidates, [Sensitivity(Norm.LINF, 1, fall=0, source="a probe")])


def calibrated(mechanism: SuccessiveExponential, candidates: int | None) -> dpf.mechanisms.Calibration:
    calibration = mechanism.calibrate(facts(candidates), dpf.Relation.ADD_OR_REMOVE_ONE)
    assert calibration is not None
    return calibration


@pytest.mark.parametrize(
    ("epsilon", "rounds", "candidates", "within", "text"),
    [
        (1, 1, 100, "0.5", f"a score within 7.6 of the best of 100 (95 %){CARRIES} no choice within 0.5"),
        (100, 4, 100, "0.5", "4 choices, each a score within 0.304 of the best of 100 (95 %)"),
        (
            50,
            4,
            100,
            "0.2",
            f"4 choices, each a score within 0.608 of the best of 100 (95 %){CARRIES} one choice within 0.2",
        ),
        (
            50,
            4,
            100,
            "0.4",
            f"4 choices, each a score within 0.608 of the best of 100 (95 %){CARRIES} 2 choices within 0.4",
        ),
        (1, 1, None, 50, "a score within 3.69 of the best of 2 (95 %)"),
        (1, 1, 1, 50, "a score within 3.69 of the best of 2 (95 %)"),
        (1, 1, 3, 50, "a score within 4.09 of the best of 3 (95 %)"),
    ],
)
def test_previews_bound_each_choice_s_gap_to_the_best(
    epsilon: float, rounds: int, candidates: int | None, within: float, text: str
) -> None:
    mechanism = SuccessiveExponential(epsilon, rounds, within=within)
    calibration = calibrated(mechanism, candidates)
    found, scale, size = mechanism.preview(calibration), rounds / epsilon, max(candidates or 0, 2)
    assert found.text == text
    assert found.expected == pytest.approx(scale * math.log(size), rel=1e-4)
    assert found.within == pytest.approx(scale * math.log(size / 0.05), rel=1e-4)  # theorem 6, at 5 %
    enough = SuccessiveExponential(epsilon, rounds, within=Fraction(found.within))
    assert CARRIES not in enough.preview(calibration).text, "just within"


def test_the_gap_is_within_the_preview_as_often_as_it_says() -> None:
    """The worst case: one best score, and all others so far below that they are as likely as can be by that bound."""
    mechanism = SuccessiveExponential(2)
    found = mechanism.preview(calibrated(mechanism, 50))
    below = np.full(50, -found.within)
    below[0] = 0
    shares = np.exp(below * 2)
    assert 1 - shares[0] / shares.sum() <= 0.05


class Named(CandidatePool):
    """Two groups that are numbered 3 and 5, of two candidates each, at positions 1 and 4; a choice changes nothing."""

    def groups(self) -> list[Group]:
        return [Group(3), Group(5)]

    def scores(self, group: Group, unit: float) -> tuple[np.ndarray, np.ndarray]:
        return np.array([1, 4]), np.zeros(2, dtype=np.int64)

    def log_weights(self, groups, unit: float, scale: float) -> np.ndarray:
        return np.full(len(groups), round(scale * math.log(2)))

    def after(self, group: Group, position: int) -> Named:
        return self


def test_only_groups_and_positions_of_a_round_have_a_density() -> None:
    mechanism = SuccessiveExponential(2, rounds=2)
    calibration = calibrated(mechanism, 4)
    fine = mechanism.log_density(Named(), [[3, 1], [5, 4]], calibration)
    assert fine == pytest.approx(2 * math.log(1 / 4))
    for wrong in (
        [[3, 1], [4, 1]],
        [[0, 1], [3, 1]],
        [[3, 0], [3, 1]],
        [[3, 1], [5, 2]],
        [[3, 1]],
        [3, 1],
        [[3, 1, 1]] * 2,
    ):
        assert mechanism.log_density(Named(), wrong, calibration) == -math.inf
    with pytest.raises(dpf.InputError, match="'toy pool' must answer with a CandidatePool for successive choices"):
        mechanism.log_density(np.zeros(4), [[3, 1], [5, 4]], calibration)
    with pytest.raises(dpf.InputError, match="'toy pool' must answer with a CandidatePool for successive choices"):
        mechanism.release(np.zeros(4), calibration, None)  # type: ignore[arg-type]


def test_a_share_is_that_of_the_weights() -> None:
    logs = np.array([3, -2, 700_000, 699_999])
    weights = np.exp((logs - 700_000) / 2.0)
    for k in range(4):
        assert log_share(logs, k, 2.0) == pytest.approx((logs[k] - 700_000) / 2 - math.log(weights.sum()))


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"max_age": -1}, {"within": 0}, {"within": -1}, {"epsilon": 0}])
def test_what_makes_no_choice_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(dpf.InputError):
        SuccessiveExponential(**{"epsilon": 1, **wrong})


def test_one_choice_is_made_unless_more_are_asked_for() -> None:
    assert SuccessiveExponential(1) == SuccessiveExponential(1, 1, max_age=40, within=Fraction(1, 2))
