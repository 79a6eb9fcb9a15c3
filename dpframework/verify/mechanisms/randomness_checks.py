"""Checks that a mechanism draws from the randomness that it is handed, anew for each number, and without a cut-off.

If a mechanism does otherwise, the distribution of single draws does not show it. Noise from another generator may have
the right distribution, but whoever knows the seed of that generator knows the noise. Noise that several answers share
may be right for each answer, but it cancels when the releases are subtracted. Noise that is cut off at a large value
looks right in every draw, but some outputs are then impossible on one of two neighbouring tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import GeneratorNotHandedError, SeededRandomness
from dpframework.verify.mechanisms.cut_off_noise_check import find_cut_off
from dpframework.verify.mechanisms.long_answer_and_many_candidate_checks import (
    LONG,
    calibrate_for_length,
    long_answer_problems,
    noise_is_reused,
    puts_out_each_number,
)
from dpframework.verify.mechanisms.noise_shape_check import noise_shape_problems
from dpframework.verify.mechanisms.output_probability_sum_check import total_problems
from dpframework.verify.mechanisms.sampler_statistics import FALSE_ALARM, are_unlike, errors_of
from dpframework.verify.mechanisms.too_few_random_bits_check import bit_problems, table_problems
from dpframework.verify.mechanisms.unnoised_output_check import exact_part_problems
from dpframework.verify.miners.value_comparison import same

REPEATED = 8  # how many draws are repeated with the same randomness, one by one and together
BATCHES, PAIRS = 10, 10  # how many batches are drawn, and how many pairs of two answers each batch has
FAR = 1000  # how far two answers lie apart, in scales of the noise, so that no output for one comes near the other
TOGETHER = 256  # how many outputs for one answer are drawn in one call, to count their random bits
#: How many numbers are drawn in one call, and in how many calls, if a mechanism has code of its own for several
#: answers. That code may draw in batches.
MANY_TOGETHER, MANY_REPEATED = 5000, 4


def draw_problems(mechanism: Mechanism, answer: Any, calibration: Calibration, scale: float) -> Iterator[str]:
    """Yield the problems that the checks of this module find, except for `disagreement`, which callers run themselves.

    Parameters
    ----------
    mechanism
        The mechanism.
    answer
        The answer for which the mechanism draws.
    calibration
        The mechanism's noise scale and losses for the query.
    scale
        The scale of the noise, in units of the answer.
    """
    for private in (False, True):
        draws = []
        for _ in range(2):
            source = SeededRandomness(0)
            source.private = private  # a mechanism might look at this, and draw differently in a private run
            handed = source.handed(mechanism.assumptions)
            alone = [mechanism.release(answer, calibration, handed) for _ in range(REPEATED)]
            draws.append([*alone, *mechanism.release_many([answer] * REPEATED, calibration, handed)])
        once, again = draws
        if not same(once, again):
            kind = "private" if private else "seeded"
            yield f"the same {kind} randomness gives other draws the second time: another source is used, too"
            return
    numbers = np.asarray(answer)
    if numbers.dtype.kind not in "iuf" or not numbers.any():
        return
    try:
        yield from total_problems(mechanism, numbers, calibration)
        yield from exact_part_problems(mechanism, numbers, calibration)
        if not mechanism.selects and not puts_out_each_number(mechanism, numbers, calibration):
            return  # the output does not have a number for each number of the answer
        if mechanism.in_score_order or not mechanism.selects:
            yield from _find_swapped_outputs(mechanism, numbers, calibration, scale)
        if not mechanism.selects:
            yield from find_cut_off(mechanism, numbers, calibration)
        yield from long_answer_problems(mechanism, numbers, calibration)
        if not mechanism.selects:
            yield from noise_shape_problems(mechanism, numbers, calibration)
            yield from _count_bits(mechanism, numbers, calibration)
    except GeneratorNotHandedError:
        raise
    except Exception as error:
        yield f"a release fails with {type(error).__name__}: {error}"


def _find_swapped_outputs(
    mechanism: Mechanism, one: NDArray[Any], calibration: Calibration, scale: float
) -> Iterator[str]:
    """Draw outputs for two answers that are far apart, all in one call.

    Check that each output belongs to its own answer, and that the noise of the two answers is not correlated.
    """
    from scipy.stats import spearmanr

    if mechanism.selects:
        one = np.where(np.arange(one.size) == 0, int(np.ceil(FAR * scale)), 0).astype(one.dtype)
        other = one[::-1]
    else:
        other = one * (1 + int(np.ceil(FAR * scale / np.abs(one[one != 0]).min())))
    handed = SeededRandomness(2).handed(mechanism.assumptions)
    outputs: list[Any] = []
    for _ in range(BATCHES):
        outputs += mechanism.release_many([one, other] * PAIRS, calibration, handed)
    if mechanism.selects:
        right = all(output == (k % 2) * (one.size - 1) for k, output in enumerate(outputs))
    else:
        moved = np.flatnonzero(one)
        alone = errors_of([mechanism.release(other, calibration, handed)], other)
        if (np.abs(alone) >= np.abs(other - one) / 2)[:, moved].any():
            return  # the range of outputs ends before the other answer
        errors = [errors_of(outputs[k::2], answer) for k, answer in enumerate((one, other))]
        crossed = [errors_of(outputs[k::2], answer) for k, answer in enumerate((other, one))]
        nearer = [np.abs(own) < np.abs(crosswise) for own, crosswise in zip(errors, crossed, strict=True)]
        right = all(bool(found[:, moved].all()) for found in nearer)
    if not right:
        yield "a release that is drawn together with others has the output of another one"
    elif not mechanism.selects:
        noise = [found[:, 0] for found in errors]
        if all(np.ptp(own) for own in noise) and spearmanr(*noise).pvalue < FALSE_ALARM:
            yield "releases of different answers that are drawn together share their noise"


def _count_bits(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> Iterator[str]:
    """Count the random bits of outputs for many answers in one call, and the bits and values for a very long answer."""
    together = [answer] * TOGETHER
    many = [answer] * max(MANY_TOGETHER // answer.size, 2)
    batches = type(mechanism).release_many is not Mechanism.release_many
    if not calibration.facts.histograms and (
        noise_is_reused(mechanism, calibration, together)
        or (batches and noise_is_reused(mechanism, calibration, many, MANY_REPEATED))
    ):
        yield "two answers that are drawn together have the same noise, or the same with another sign"
        return
    yield from bit_problems(mechanism, together, calibration, f"{TOGETHER} answers that are drawn together")
    longer = calibrate_for_length(mechanism, calibration)
    if longer is not None:
        zeros = [np.zeros(LONG, dtype=answer.dtype)]
        yield from bit_problems(mechanism, zeros, longer, f"an answer of {LONG} numbers")
        yield from table_problems(mechanism, zeros[0], longer)


def disagreement(samples: Sequence[tuple[str, NDArray[np.float64]]]) -> Iterator[str]:
    """Yield a sentence for each source of randomness whose outputs are distributed differently from the first source's.

    Only the first number of each output is compared, and nothing if outputs have no numbers. A sample is
    the name of a source of randomness, and the outputs that a mechanism drew from it, as numbers of shape (draws,
    coordinates).
    """
    (first_name, first), *others = samples
    if not first.shape[1]:
        return
    for name, numbers in others:
        if are_unlike(first[:, 0], numbers[:, 0]):
            yield f"{name} and {first_name} randomness draw from different distributions"
