"""The probabilities of all outputs that a mechanism can put out add up to 1 at most.

A log-density may ignore a part of an output, such as an exact count next to the noisy one, low bits, or a type that
follows from the answer. Then many outputs that a reader can tell apart share one probability, and each of them counts
it once more. So outputs are drawn from several answers, and the probabilities that one answer gives to all different
outputs are added up: a sum above 1 is the mistake.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy import Relation
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import Norm
from dpframework.verify.miners.sameness import same

STEPS = range(-3, 5)  # of the lattice, by which answers lie beside each other
MANY = 10**6  # rows that answers count, too
DRAWN = 60  # outputs, from each
SLACK = 1e-6  # of a sum of probabilities
DIGITS = 9  # of a log-density: outputs of equal ones are compared
REAL = "real-arithmetic"


def total_problems(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> Iterator[str]:
    """Yield whether different outputs of a mechanism share one probability.

    Parameters
    ----------
    mechanism, answer, calibration
        What is drawn. Noise in floating point has a density, and of densities the sum has no bound.
    """
    if REAL in mechanism.assumptions or calibration.facts.histograms:
        return
    # One number has few likely outputs, and the draws meet most of these.
    if not mechanism.selects:
        answer = answer.ravel()[:1]
        facts = attrs.evolve(calibration.facts, answer_length=1)
        shorter = mechanism.calibrate(facts, Relation.ADD_OR_REMOVE_ONE)
        if shorter is None:
            return
        power = 2 if mechanism.norm is Norm.SQUARED_L2 else 1
        calibration = attrs.evolve(shorter, scale=shorter.unit**power)
    handed, step = SeededRandomness(6).handed(mechanism.assumptions), answer.dtype.type(float(calibration.unit))
    for base in [answer] if mechanism.selects else [np.zeros_like(answer), np.full_like(answer, MANY)]:
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
                f"log-density does not tell apart what a reader can, such as {two}; weigh all that is put out"
            )
            return


def _group(
    mechanism: Mechanism, answer: NDArray[Any], outputs: Sequence[Any], calibration: Calibration
) -> dict[float, list[Any]]:
    """Return the different outputs that are possible from an answer, by their log-densities."""
    found: dict[float, list[Any]] = {}
    for output in outputs:
        density = mechanism.log_density(answer, output, calibration)
        if density > -math.inf:
            alike = found.setdefault(round(density, DIGITS), [])
            if not any(same(output, known) for known in alike):
                alike.append(output)
    return found
