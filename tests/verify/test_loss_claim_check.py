"""How far the sum of a density may be off, where a release has an exact delta."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import ByRelation, Relation
from dpframework.mechanisms import Calibration, DiscreteLaplace, KNorm
from dpframework.queries import Marginals, Norm, QueryFacts, Sensitivity
from dpframework.verify.mechanisms.loss_claim_check import KINK, SLACK, _LossComparison, check_losses
from dpframework.verify.mechanisms.neighbour_answers import invent_answers, shifts
from dpframework.verify.mechanisms.sampler_statistics import with_scale
from dpframework.verify.search_time_limit import Patience


@pytest.mark.parametrize(("integer", "slack"), [(True, SLACK["delta"]), (False, KINK / 10)])
def test_a_sum_of_densities_may_be_off_by_a_share_of_the_delta(
    integer: bool, slack: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ByRelation(Fraction(1), Fraction(1))
    calibration: Any = SimpleNamespace(
        facts=SimpleNamespace(integer=integer), losses=SimpleNamespace(pure=one, zcdp=one)
    )
    monkeypatch.setattr(_LossComparison, "_event", lambda *_: [])
    checked: Any = _LossComparison(Any, Patience())
    pure, rho = checked._beside_delta("here", [], calibration, Relation.ADD_OR_REMOVE_ONE, Fraction(1, 10))
    assert pure.slack <= slack
    assert rho.slack == pytest.approx(slack)


def test_a_mechanism_that_serves_no_query_is_not_passed() -> None:
    """Else it would hold whatever it claims, since nothing was compared."""
    with pytest.raises(InputError, match="'discrete-laplace' serves none of the queries; give answers of its own kind"):
        check_losses(DiscreteLaplace(1), given=[])


@attrs.frozen
class TooLittleKNorm(KNorm):
    """Draws and states two thirds of the noise."""

    name = "too-little-k-norm"

    def calibrate(self, *args: Any, **options: Any) -> Calibration | None:
        found = super().calibrate(*args, **options)
        return found and with_scale(found, Fraction(2, 3))


@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("mechanism", [KNorm, TooLittleKNorm])
def test_noise_that_keeps_a_sum_is_compared_on_its_line(mechanism: type[KNorm], epsilon: str) -> None:
    """Two counts of a public number of rows: of the points of a coarse grid, few lie on the line of all outputs.

    Each stood for as many points as one in the plane. Their probabilities then added up to 2 or more, and a divergence
    of 5.6 was found where 0.006 is claimed.
    """
    counts = Marginals([dpf.Boolean("ill")]).facts()
    report = check_losses(mechanism(epsilon), given=[invent_answers(counts)], relations=[Relation.REPLACE_ONE])
    assert report.passed == (mechanism is KNorm), report


@pytest.mark.parametrize("replaced", [None, 4])
def test_no_number_changes_by_a_rise_and_a_fall_that_a_replaced_row_makes_in_different_numbers(replaced: Any) -> None:
    """Counts of a row in two cells, such as pairs of neighbouring pages: their event was called too small."""
    facts = QueryFacts("pairs", "pairs", (), True, 4, [Sensitivity(Norm.L1, 2, replaced, fall=0, source="a test")])
    changes = {tuple(change) for change in shifts(facts, Relation.REPLACE_ONE, 2)}
    assert (2, -2) in changes
    assert max(abs(number) for change in changes for number in change) == 2
    report = check_losses(DiscreteLaplace(1), given=[invent_answers(facts)])
    assert report.passed, str(report)
    assert report.tightness == pytest.approx(1, abs=0.01)


def test_a_number_that_rows_raise_and_lower_changes_by_both() -> None:
    facts = QueryFacts("changes", "changes", (), True, 2, [Sensitivity(Norm.SQUARED_L2, 4, source="a test")])
    assert max(abs(number) for change in shifts(facts, Relation.REPLACE_ONE, 2) for number in change) == 4
