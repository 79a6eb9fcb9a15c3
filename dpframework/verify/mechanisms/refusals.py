"""Tell whether a mechanism can release an answer, since a refusal depends on the rows and no density shows it.

A mechanism that fails on some tables, or warns on some, tells them from others, whatever it claims to lose: a replay
compares the densities of outputs, and a failure is none. So a release must be possible from every answer.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from dpframework.mechanisms import Calibration, Mechanism, Randomness


def refusal(mechanism: Mechanism, answer: Any, calibration: Calibration, randomness: Randomness) -> str | None:
    """Draw one release, and return its problem in a few words, or None.

    Parameters
    ----------
    mechanism, answer, calibration
        The release.
    randomness
        Where it draws from; what it may not use is withheld.
    """
    with (
        warnings.catch_warnings(record=True) as warned,
        np.errstate(all="warn", under="ignore"),  # whatever numpy was told elsewhere
    ):
        warnings.simplefilter("always")
        try:
            drawn = mechanism.release(answer, calibration, randomness.handed(mechanism.assumptions))
            density = mechanism.log_density(answer, drawn, calibration)
        except Exception as error:
            return f"fails with {type(error).__name__}: {error}"
    if warned:
        return f"warns of something: {warned[0].category.__name__}: {warned[0].message}"
    return None if density > -math.inf else "puts out what by its log-density is impossible"
