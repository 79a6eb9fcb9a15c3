"""Releases that a mechanism may refuse: a failure, a warning, or an output that its own density calls impossible."""

from __future__ import annotations

import math
import warnings
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.verify.mechanisms.release_failure_check import refusal

ADD = dpf.Relation.ADD_OR_REMOVE_ONE


@attrs.frozen
class Fails(DiscreteLaplace):
    """Refuses counts above 10."""

    def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
        if answer.max() > 10:
            raise ValueError("too many")
        return super().release(answer, calibration, randomness)


@attrs.frozen
class Warns(DiscreteLaplace):
    """Warns of counts above 10."""

    def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
        if answer.max() > 10:
            warnings.warn("many rows", stacklevel=2)
        return super().release(answer, calibration, randomness)


@attrs.frozen
class Divides(DiscreteLaplace):
    """Divides by how far a count is from 11, of which numpy warns."""

    def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
        np.ones(1) / (answer - 11)
        return super().release(answer, calibration, randomness)


@attrs.frozen
class Denies(DiscreteLaplace):
    """Calls each output impossible where a count is above 10."""

    def log_density(self, answer: Any, output: Any, calibration: Any) -> float:
        return -math.inf if answer.max() > 10 else super().log_density(answer, output, calibration)


def told(mechanism: DiscreteLaplace, count: int) -> str | None:
    calibration = mechanism.calibrate(dpf.queries.Count().facts(), ADD)
    assert calibration is not None
    return refusal(mechanism, np.array([count]), calibration, SeededRandomness(1))


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        (Fails(1), "fails with ValueError: too many"),
        (Warns(1), "warns with UserWarning: many rows"),
        (Divides(1), "warns with RuntimeWarning: divide by zero"),
        (Denies(1), "gives an output that is impossible by its log-density"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_release_that_depends_on_the_answer_is_told(mechanism: DiscreteLaplace, text: str) -> None:
    assert told(mechanism, 10) is None
    found = told(mechanism, 11)
    assert found is not None
    assert found.startswith(text)


def test_warnings_that_somebody_silenced_are_heard_and_stay_silenced() -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert told(Warns(1), 11) is not None
        assert told(Divides(1), 11) is not None
        assert np.geterr()["divide"] == "ignore"


def test_an_honest_mechanism_refuses_nothing() -> None:
    assert [told(DiscreteLaplace(1), count) for count in (0, 11, 10**9)] == [None] * 3
