"""A check that a mechanism can release an answer without an error or a warning, and with a possible output.

A mechanism that fails or warns for some tables reveals that the data is one of them, whatever it claims to lose.
Comparing the densities of outputs does not show this, since a failure has no density. So a release must be possible for
every answer. An output is possible if the mechanism's log-density of it is finite.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from dpframework.mechanisms import Calibration, Mechanism, Randomness


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
