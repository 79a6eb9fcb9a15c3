"""Checks that the probabilities of all different outputs of a mechanism add up to at most 1.

A log-density may ignore a part of the output, such as an exact count next to the noisy one, low bits, or a type that
depends on the answer. Then each of many different outputs gets the probability that belongs to all of them together,
and the sum over them exceeds 1. So outputs are drawn for several answers, and the probabilities of all different
outputs, given one of the answers, are added up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import REAL_ARITHMETIC, SeededRandomness
from dpframework.queries import Norm
from dpframework.verify.mechanisms.long_answer_and_many_candidate_checks import calibrate_for_length
from dpframework.verify.miners.value_comparison import same

STEPS = range(-3, 5)  # how far answers lie from the base answer, in steps of the lattice on which outputs lie
MANY = 10**6  # a large base answer, which is tried in addition to 0
LENGTH = 2  # the most numbers of an answer
DRAWN = 60  # how many outputs are drawn for each answer
SLACK = 1e-6  # how far a sum of probabilities may exceed 1, since it is rounded
# Log-densities are rounded to this many digits, and only outputs with equal log-densities are compared with each other.
DIGITS = 9


def total_problems(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> Iterator[str]:
    """Yield a sentence if the probabilities of different outputs of a mechanism add up to more than 1.

    Parameters
    ----------
    mechanism
        The mechanism. One with noise in floating point is not tested: it has densities, whose sum has no bound.
    answer
        The answer for which a selection draws. For another mechanism, only its type and its length are used.
    calibration
        The mechanism's noise scale and losses for a query. Nothing is tested for a query of several histograms or
        blocks.
    """
    if REAL_ARITHMETIC in mechanism.assumptions or calibration.facts.histograms:
        return
    if mechanism.selects:
        yield from _excess(mechanism, [answer], calibration)
        return
    # For a short answer and noise of one lattice step, few outputs are likely, and most of these are drawn. An answer
    # of one number shows an exact part beside the noisy number. An answer of two shows an order that depends on it.
    power = 2 if mechanism.norm is Norm.SQUARED_L2 else 1
    for length in range(1, min(answer.size, LENGTH) + 1):
        shorter = calibrate_for_length(mechanism, calibration, length)
        if shorter is None:
            return
        likely = attrs.evolve(shorter, scale=shorter.unit**power)
        bases = [np.full(length, base, dtype=answer.dtype) for base in (0, MANY)]
        found = list(_excess(mechanism, bases, likely))
        yield from found
        if found:
            return


def _excess(mechanism: Mechanism, bases: Sequence[NDArray[Any]], calibration: Calibration) -> Iterator[str]:
    """Yield a sentence if the probabilities of outputs for one of the base answers add up to more than 1."""
    handed, step = SeededRandomness(6).handed(mechanism.assumptions), bases[0].dtype.type(float(calibration.unit))
    for base in bases:
        moved = [base.copy() for _ in STEPS]
        for k, one in zip(STEPS, moved, strict=True):
            one.flat[0] += k * step
        outputs = [mechanism.release(one, calibration, handed) for one in moved for _ in range(DRAWN)]
        alike = _group(mechanism, base, outputs, calibration)
        total = math.fsum(math.exp(density) * len(different) for density, different in alike.items())
        if total > 1 + SLACK:
            likeliest = next(outputs for _, outputs in sorted(alike.items(), reverse=True) if len(outputs) > 1)
            two = " and ".join(
                f"{one.tolist()} ({one.dtype})" if isinstance(one, np.ndarray) else repr(one)[:80]
                for one in likeliest[:2]
            )
            yield (
                f"the probabilities of {sum(map(len, alike.values()))} different outputs add up to {total:.3g}: its "
                f"log-density is equal for outputs that a reader can tell apart, such as {two}; let it depend on the "
                "whole output"
            )
            return


def _group(
    mechanism: Mechanism, answer: NDArray[Any], outputs: Sequence[Any], calibration: Calibration
) -> dict[float, list[Any]]:
    """Return the different outputs, by their log-density given an answer. Impossible outputs are left out."""
    found: dict[float, list[Any]] = {}
    for output in outputs:
        density = mechanism.log_density(answer, output, calibration)
        if density > -math.inf:
            alike = found.setdefault(round(density, DIGITS), [])
            if not any(same(output, known) for known in alike):
                alike.append(output)
    return found
