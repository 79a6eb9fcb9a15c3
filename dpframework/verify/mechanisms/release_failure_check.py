"""Checks that a mechanism's release and log-density do not fail, and that the output is possible.

A mechanism that fails or warns for some tables reveals that the data is one of them, whatever it claims to lose.
Comparing the densities of outputs does not show this, since a failure has no density. So a release must be possible for
every answer. An output is possible if the mechanism's log-density of it is finite.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.mechanisms import Calibration, Mechanism, Randomness
from dpframework.mechanisms.randomness import GeneratorNotHandedError, SeededRandomness


class MechanismFailedError(Exception):
    """A mechanism's `release` or `log_density` failed. The message is a finding about the mechanism."""


def stated_density(mechanism: Mechanism, answer: Any, output: Any, calibration: Calibration) -> float:
    """Return the log-density that a mechanism states.

    Raises
    ------
    MechanismFailedError
        If the mechanism's `log_density` fails.
    """
    try:
        return mechanism.log_density(answer, output, calibration)
    except Exception as error:  # a plugin's code may raise anything
        raise MechanismFailedError(f"its log_density fails with {type(error).__name__}: {error}") from error


def density_beside(
    mechanism: Mechanism,
    answer: NDArray[Any],
    shift: float,
    calibration: Calibration,
    dtype: np.dtype[Any] | None = None,
) -> float:
    """Return the log-density of an output that is the answer itself, but for a shift of its first number.

    `dtype` is the type of outputs; by default they have the answer's type.

    Raises
    ------
    MechanismFailedError
        If the mechanism's `log_density` fails.
    """
    output = answer.astype(answer.dtype if dtype is None else dtype)
    output.flat[0] += shift
    return stated_density(mechanism, answer, output, calibration)


def drawn_output(mechanism: Mechanism, answer: Any, calibration: Calibration, handed: Randomness) -> Any:
    """Return a release of an answer, drawn with the randomness that the mechanism is handed.

    Raises
    ------
    MechanismFailedError
        If the release fails.
    """
    try:
        return mechanism.release(answer, calibration, handed)
    except GeneratorNotHandedError:
        raise  # the mechanism uses a source that it must not use, which is a finding of its own
    except Exception as error:  # a plugin's code may raise anything
        raise MechanismFailedError(f"its release fails with {type(error).__name__}: {error}") from error


def takes_answer(mechanism: Mechanism, answer: Any, calibration: Calibration) -> bool:
    """Tell whether a mechanism draws for an answer. Mechanisms for answers of another type fail."""
    try:
        mechanism.release(answer, calibration, SeededRandomness(0).handed(mechanism.assumptions))
    except GeneratorNotHandedError:
        raise  # the mechanism uses a source that it must not use, which is a finding of its own
    except (InputError, LookupError, TypeError, ValueError, AttributeError):
        return False
    return True


def refusal(mechanism: Mechanism, answer: Any, calibration: Calibration, randomness: Randomness) -> str | None:
    """Draw one release, and return its problem in a few words; None if there is none.

    Parameters
    ----------
    mechanism
        The mechanism.
    answer
        The answer that is released.
    calibration
        The noise scale and the losses of the mechanism for the query.
    randomness
        The source of randomness. The mechanism gets only what its assumptions allow it to use.
    """
    with (
        warnings.catch_warnings(record=True) as warned,
        np.errstate(all="warn", under="ignore"),  # independent of numpy's settings elsewhere
    ):
        warnings.simplefilter("always")
        try:
            drawn = mechanism.release(answer, calibration, randomness.handed(mechanism.assumptions))
            density = mechanism.log_density(answer, drawn, calibration)
        except Exception as error:
            return f"fails with {type(error).__name__}: {error}"
    if warned:
        return f"warns with {warned[0].category.__name__}: {warned[0].message}"
    return None if density > -math.inf else "gives an output that is impossible by its log-density"
