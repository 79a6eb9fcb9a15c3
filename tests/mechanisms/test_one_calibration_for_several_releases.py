"""Several releases as one: they cost what they cost together, and make no release."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpframework.facts import InputError
from dpframework.facts.privacy_losses import ByRelation
from dpframework.facts.privacy_unit import UnitChange
from dpframework.mechanisms.one_calibration_for_several_releases import CappedReleases, cap
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.mechanisms.release_losses import Losses

AMOUNT = st.none() | st.fractions(0, 9)
LOSSES = st.builds(Losses, st.builds(ByRelation, AMOUNT, AMOUNT), st.builds(ByRelation, AMOUNT, AMOUNT))
ONE = Losses(ByRelation(Fraction(1), Fraction(2)), ByRelation(Fraction(1), Fraction(2)))


@given(LOSSES, st.integers(1, 9))
def test_the_releases_cost_what_is_given_for_whatever_unit(losses: Losses, rows: int) -> None:
    found = cap(losses, UnitChange(rows))
    assert found.losses == losses
    assert found.by == UnitChange(rows)
    assert found.mechanism.losses(ByRelation(Fraction(7), Fraction(8)), Fraction(9)) == losses
    assert np.isnan(found.preview.within)


@pytest.mark.parametrize(
    "use",
    [
        lambda one, at: one.change(at.facts),
        lambda one, at: one.scale(Fraction(1)),
        lambda one, at: one.release(np.zeros(1), at, SeededRandomness(0)),
        lambda one, at: one.log_density(np.zeros(1), np.zeros(1), at),
    ],
    ids=["change", "scale", "release", "density"],
)
def test_nothing_is_released_by_what_stands_for_releases(use: Any) -> None:
    with pytest.raises(InputError, match="each of them is made by its own mechanism"):
        use(CappedReleases(ONE), cap(ONE))
