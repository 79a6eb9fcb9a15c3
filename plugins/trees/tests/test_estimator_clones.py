"""Clones of an estimator: which fits may have been chosen by exact scores, and which budgets add up."""

from __future__ import annotations

import copy
import warnings

import pytest
from dpframework_trees.estimator_clones import EstimatorFamily
from dpframework_trees.estimator_inputs import PrivacyWarning


class Estimator:
    """Any object with attributes."""


def may_choose(family: EstimatorFamily, estimator: Estimator) -> bool:
    """Tell it, and see that a warning says so if it may."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = family.may_choose_by_scores(estimator)
    assert [one.category for one in caught] == [PrivacyWarning] * found
    assert all("follows predictions of other clones" in str(one.message) for one in caught)
    return found


def test_a_fit_may_have_been_chosen_once_another_clone_has_predicted() -> None:
    family, one, other = EstimatorFamily(), Estimator(), Estimator()
    assert not may_choose(family, one)
    family.note_prediction(one)
    family.note_prediction(one)
    assert not may_choose(family, one)  # it may predict and be fitted again
    assert may_choose(family, other)
    family.note_prediction(other)
    assert may_choose(family, one)
    family.note_prediction(one)
    assert may_choose(family, one)  # for good


def test_an_estimator_that_was_sent_away_before_its_fit_may_have_been_scored_there() -> None:
    for fitted in (False, True):
        family = EstimatorFamily()
        family.note_pickling(fitted=fitted)
        assert may_choose(family, Estimator()) is not fitted
    family.note_pickling(fitted=False)
    family.note_pickling(fitted=True)
    assert may_choose(family, Estimator())


def test_the_second_clone_that_is_fitted_on_a_budget_of_its_own_warns_and_no_later_one() -> None:
    family, clones = EstimatorFamily(), [Estimator() for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        family.note_fit(clones[3], alone=False)  # on a shared accountant
        family.note_fit(clones[0], alone=True)
        family.note_fit(clones[0], alone=True)  # again: its accountant adds that up
    with pytest.warns(PrivacyWarning, match="two clones of one estimator were fitted without a shared accountant"):
        family.note_fit(clones[1], alone=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        family.note_fit(clones[2], alone=True)
        family.note_fit(clones[1], alone=True)
    assert family.fits == 3


def test_warnings_point_at_the_line_that_called_the_fit() -> None:
    family, one, other = EstimatorFamily(), Estimator(), Estimator()
    family.note_prediction(one)
    family.note_fit(one, alone=True)

    def fit() -> None:
        family.may_choose_by_scores(other)
        family.note_fit(other, alone=True)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    assert [one.lineno for one in caught] == [fit.__code__.co_firstlineno + 6] * 2


def test_a_copy_of_an_estimator_is_of_the_same_family() -> None:
    family = EstimatorFamily()
    assert copy.deepcopy({"clones": family})["clones"] is family
