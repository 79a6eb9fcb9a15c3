"""How far the sum of a density may be off, where a release has an exact delta."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import ByRelation, Relation
from dpframework.mechanisms import DiscreteLaplace
from dpframework.verify.mechanisms.loss_claim_check import KINK, SLACK, _LossComparison, check_losses
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
