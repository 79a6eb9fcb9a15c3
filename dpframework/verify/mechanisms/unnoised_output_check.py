"""A check that a mechanism with noise in floating point puts nothing exact beside the noise.

The densities of real outputs have no bounded sum (see `output_probability_sum_check`), so that check does not see it if
a log-density ignores an exact part of the output. So outputs are drawn for answers that differ a little, with so much
noise that nearly every output is about as likely for either answer. A part which is the same in all outputs for one
answer, and another in all outputs for the other, tells the answers apart.

The test refuses a correct mechanism with a probability of at most 1e-10. Say that the density of every output drawn for
one answer is at least `LEAST` times as large given the other, and that a part is the same in all of them. If the claim
of the log-density holds, the part is the same in an output for the other answer with a probability of about `LEAST` or
more. So it is in none of `DRAWN` outputs with a probability of at most (1 - `LEAST`)**`DRAWN`, or 3e-13.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import REAL_ARITHMETIC, SeededRandomness
from dpframework.verify.mechanisms.long_answer_and_many_candidate_checks import calibrate_for_length
from dpframework.verify.mechanisms.output_keys import output_key
from dpframework.verify.mechanisms.release_failure_check import stated_density
from dpframework.verify.mechanisms.sampler_statistics import with_scale

STEPS = range(-3, 5)  # how far answers lie from 0, in steps of 1
LENGTH = 2  # the most numbers of an answer
WIDER = Fraction(64)  # by what the claimed scale is multiplied
LEAST = 1 / 4  # given the other answer, an output should have at least this share of its density
DRAWN = 100  # how many outputs are drawn for each answer
MOST_PARTS = 64  # longer outputs are not taken apart


def exact_part_problems(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> Iterator[str]:
    """Yield a sentence if a part of the output follows from the exact answer, and the log-density ignores it.

    Parameters
    ----------
    mechanism
        The mechanism. It is tested only if its noise is in floating point, and if it does not choose candidates.
    answer
        An answer, of which only the type and the length are used.
    calibration
        The mechanism's noise scale and losses for a query. Nothing is tested for a query of several histograms or
        blocks.
    """
    if REAL_ARITHMETIC not in mechanism.assumptions or mechanism.selects:
        return
    for length in range(1, min(answer.size, LENGTH) + 1):
        shorter = calibrate_for_length(mechanism, calibration, length)
        if shorter is None:
            return
        wide = with_scale(shorter, WIDER)
        handed = SeededRandomness(23).handed(mechanism.assumptions)
        answers = [np.array([step] + [0] * (length - 1), dtype=answer.dtype) for step in STEPS]
        drawn = [[mechanism.release(one, wide, handed) for _ in range(DRAWN)] for one in answers]
        for (one, other), (here, there) in zip(pairwise(answers), pairwise(drawn), strict=True):
            exact, other_exact = _equal_parts(here), _equal_parts(there)
            for part in exact:
                other_part = other_exact.get(part, exact[part])
                if exact[part] != other_part and _are_about_as_likely(mechanism, one, other, here, wide):
                    name = f" {part}" if part else ""
                    yield (
                        f"the part{name} of its output is always {exact[part]} for an answer of {one.tolist()}, and "
                        f"always {other_part} for {other.tolist()}, and its log-density does not say so; let it "
                        "depend on the whole output"
                    )
                    return


def _are_about_as_likely(
    mechanism: Mechanism,
    one: NDArray[Any],
    other: NDArray[Any],
    outputs: Sequence[Any],
    calibration: Calibration,
) -> bool:
    """Tell whether each output for one answer has, given the other, at least `LEAST` of its density."""
    return all(
        stated_density(mechanism, other, output, calibration)
        >= stated_density(mechanism, one, output, calibration) + math.log(LEAST)
        for output in outputs
    )


def _equal_parts(outputs: Sequence[Any]) -> dict[str, Any]:
    """Return the parts that are the same in all outputs, as keys that can be compared, by their places."""
    first, *others = (dict(_parts(output)) for output in outputs)
    return {place: part for place, part in first.items() if all(one.get(place, one) == part for one in others)}


def _parts(output: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the place of each part of an output, and the part as a key (see `output_key`)."""
    if isinstance(output, np.ndarray) and output.ndim and output.size <= MOST_PARTS:
        output = output.ravel().tolist()
    if isinstance(output, Mapping) and len(output) <= MOST_PARTS:
        for key, part in output.items():
            yield from _parts(part, f"{place}[{key!r}]")
    elif isinstance(output, list | tuple) and len(output) <= MOST_PARTS:
        for k, part in enumerate(output):
            yield from _parts(part, f"{place}[{k}]")
    else:
        yield place, output_key(output)
