"""Checks that a mechanism draws from the randomness that it is handed, anew for each number, and without a cut-off.

These are mistakes that the distribution of single draws does not show. Noise from another generator may have the right
distribution, but whoever knows the seed of that generator knows the noise. Noise that several answers share may be
right for each answer, but it cancels when the releases are subtracted. Noise that is cut off at a large value looks
right in every draw, but some outputs are then impossible on one of two neighbouring tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy_losses import NOTHING, Relation
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import GeneratorNotHandedError, SeededRandomness
from dpframework.verify.mechanisms.output_keys import output_numbers
from dpframework.verify.mechanisms.output_probability_check import total_problems
from dpframework.verify.mechanisms.probe_answers import scale_sensitivity
from dpframework.verify.mechanisms.random_bits import bit_problems
from dpframework.verify.mechanisms.sampler_statistics import OFF, noise_size, with_scale
from dpframework.verify.miners.value_comparison import same

REPEATED = 8  # how many draws are repeated with the same randomness, one by one and together
BATCHES, PAIRS = 10, 10  # how many batches are drawn, and how many pairs of two answers each batch has
FAR = 1000  # how far two answers lie apart, in scales of the noise, so that no output for one comes near the other
FALSE_ALARM = 1e-6  # the largest probability with which one test refuses a correct mechanism
WIDER = 1000  # the factor by which noise is widened, to see whether it is cut off
TOGETHER = 256  # for how many equal answers drawn together the random bits are counted
TELLING = 10_000  # the factor of the sensitivity at which the sizes of independent noise hardly ever agree
NARROW = 0.1  # noise whose median is below this share of its scale is too narrow for sizes to tell it apart
FEW_DIGITS = 6  # to how many decimals the sizes of noise are compared
LONG = 4096  # an answer's length at which noise that is drawn in blocks of a fixed size would end or repeat
REPEATS = 8 / math.sqrt(LONG)  # an autocorrelation that independent noise of this length does not reach
EQUAL = 100  # how many choices are made among equal candidates
CUT = 0.25  # noise counts as cut off if more than this share of much wider draws lie at the same largest distance


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
        if not mechanism.selects and output_numbers(once[0]).size != numbers.size:
            return  # the output does not have a number for each number of the answer
        if mechanism.in_score_order or not mechanism.selects:
            yield from _find_swapped_outputs(mechanism, numbers, calibration, scale)
        if not mechanism.selects:
            yield from _find_cut_off(mechanism, numbers, calibration)
        yield from _test_long_answer(mechanism, numbers, calibration)
        if not mechanism.selects:
            yield from _count_bits(mechanism, numbers, calibration)
    except GeneratorNotHandedError:
        raise
    except Exception as error:
        yield f"a release fails with {type(error).__name__}: {error}"


def _find_swapped_outputs(
    mechanism: Mechanism, one: NDArray[Any], calibration: Calibration, scale: float
) -> Iterator[str]:
    """Draw together for two answers that are far apart.

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
        alone = _errors([mechanism.release(other, calibration, handed)], other)
        if (np.abs(alone) >= np.abs(other - one) / 2)[:, moved].any():
            return  # the range of outputs ends before the other answer
        errors = [_errors(outputs[k::2], answer) for k, answer in enumerate((one, other))]
        crossed = [_errors(outputs[k::2], answer) for k, answer in enumerate((other, one))]
        nearer = [np.abs(own) < np.abs(crosswise) for own, crosswise in zip(errors, crossed, strict=True)]
        right = all(bool(found[:, moved].all()) for found in nearer)
    if not right:
        yield "a release that is drawn together with others has the output of another one"
    elif not mechanism.selects:
        noise = [found[:, 0] for found in errors]
        if all(np.ptp(own) for own in noise) and spearmanr(*noise).pvalue < FALSE_ALARM:
            yield "releases of different answers that are drawn together share their noise"


class _Wide(SeededRandomness):  # type: ignore[misc]  # final, except for this test
    """A source of randomness that draws noise of a much larger scale than it is asked for."""

    def discrete_laplace(self, size: int, scale: float) -> NDArray[np.int64]:
        return super().discrete_laplace(size, WIDER * scale)

    def discrete_gaussian(self, size: int, scale: float) -> NDArray[np.int64]:
        return super().discrete_gaussian(size, WIDER * scale)


def _find_cut_off(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> Iterator[str]:
    """Draw much wider noise. If the noise is cut off, many draws lie at the cut.

    Such a cut is wrong only if it moves with the answer. Outputs in a public range also lie at the ends of that range,
    but these are the same for every answer. Two kinds of mechanisms are not tested: those with a delta of their own,
    which may cut off their noise, and those that claim neither epsilon nor rho.
    """
    losses = calibration.losses
    if losses.delta != NOTHING:  # a tail of the noise with that probability may be cut off
        return
    if not any(one.under(relation) is not None for one in (losses.pure, losses.zcdp) for relation in Relation):
        return
    handed = _Wide(3).handed(mechanism.assumptions)
    moved = answer + answer.dtype.type(1)
    number = BATCHES * PAIRS
    for together in (True, False):
        ends = []  # for each answer, the largest of the outputs at the farthest distance, if many lie there
        for one in (answer, moved):
            if together:
                outputs = list(mechanism.release_many([one] * number, calibration, handed))
            else:
                outputs = [mechanism.release(one, calibration, handed) for _ in range(number)]
            errors = np.abs(_errors(outputs, one))[:, 0]
            farthest = np.isclose(errors, errors.max(), rtol=1e-9)
            if errors.max() and farthest.mean() > CUT:
                ends.append(float(np.asarray(outputs, dtype=np.float64).reshape(number, -1)[farthest, 0].max()))
        if len(ends) == 2 and ends[0] != ends[1]:
            cut = abs(ends[0] - float(answer.ravel()[0]))
            yield f"its noise is cut off at {cut:.6g}: outputs beyond are impossible on one neighbour only"
            return


def _calibrate_long(mechanism: Mechanism, calibration: Calibration) -> Calibration | None:
    """Return the calibration for an answer of `LONG` numbers. None for histograms, whose sizes are given."""
    facts = attrs.evolve(calibration.facts, answer_length=LONG)
    return None if facts.histograms else mechanism.calibrate(facts, Relation.ADD_OR_REMOVE_ONE)


def _test_long_answer(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> Iterator[str]:
    """Draw for a very long answer of zeros.

    If the zeros are scores, all candidates should have the same chance. If they are numbers, all should get noise of
    the same distribution and of the claimed scale, and the noise should not repeat.
    """
    longer = _calibrate_long(mechanism, calibration)
    if longer is None or (mechanism.selects and not mechanism.in_score_order):
        return
    zeros, handed = np.zeros(LONG, dtype=answer.dtype), SeededRandomness(4).handed(mechanism.assumptions)
    if mechanism.selects:
        chosen = [int(mechanism.release(zeros, longer, handed)) for _ in range(EQUAL)]
        if _are_unlike(np.array(chosen, dtype=np.float64), (np.arange(LONG * 1.0))):
            yield f"of {LONG} equal candidates some are hardly ever chosen"
        return
    outputs = [mechanism.release(zeros, longer, handed) for _ in range(REPEATED)]
    for factor, words in OFF:
        ratio = math.fsum(
            mechanism.log_density(zeros, one, longer) - mechanism.log_density(zeros, one, with_scale(longer, factor))
            for one in outputs
        )
        if ratio <= math.log(FALSE_ALARM):
            yield f"the noise of an answer of {LONG} numbers is {words} than claimed"
            return
    mixed = np.asarray(outputs[0])[np.random.default_rng(5).permutation(LONG)]
    stated = [mechanism.log_density(zeros, one, longer) for one in (outputs[0], mixed)]
    if not math.isclose(stated[0], stated[1], rel_tol=1e-9):
        return  # by the log-density, the noise of a number depends on the number's place in the answer
    noise = _errors(outputs, zeros)
    spectrum = np.abs(np.fft.rfft(noise[0] - noise[0].mean())) ** 2
    again = np.fft.irfft(spectrum)[1 : LONG // 2]
    if (again > REPEATS * spectrum.mean()).any():
        yield f"the noise of an answer of {LONG} numbers repeats itself"
    elif any(_are_unlike(noise[:, :part].ravel(), noise[:, -part:].ravel()) for part in (LONG // 64, LONG // 4)):
        yield f"the noise of the last of {LONG} numbers has another distribution than that of the first"
    elif _noise_is_reused(mechanism, longer, [zeros]):
        yield f"two numbers of an answer of {LONG} have the same noise, or the same with another sign"


def _noise_is_reused(mechanism: Mechanism, calibration: Calibration, answers: Sequence[NDArray[Any]]) -> bool:
    """Tell whether two numbers, of answers that are drawn together, always have noise of the same size.

    The noise is drawn for a far larger sensitivity, so that the sizes of independent noise hardly ever agree. Numbers
    at an end of the outputs are left out, since outputs may be put into a public range.
    """
    larger = [scale_sensitivity(one, Fraction(TELLING)) for one in calibration.facts.sensitivities]
    wide = mechanism.calibrate(attrs.evolve(calibration.facts, sensitivities=larger), Relation.ADD_OR_REMOVE_ONE)
    if wide is None:
        return False
    handed = SeededRandomness(7).handed(mechanism.assumptions)
    drawn = [
        np.concatenate([output_numbers(one) for one in mechanism.release_many(answers, wide, handed)])
        for _ in range(REPEATED)
    ]
    outputs = np.array(drawn)
    ends = (outputs == outputs.min(axis=1, keepdims=True)) | (outputs == outputs.max(axis=1, keepdims=True))
    sizes = np.abs(outputs - np.concatenate([np.ravel(answer) for answer in answers]).astype(np.float64))
    sizes = sizes[:, ~ends.any(axis=0)].round(FEW_DIGITS).T
    if not sizes.size or np.median(sizes) < NARROW * noise_size(mechanism, wide):
        return False  # the noise is not as wide as it should be, which other tests find
    return len(np.unique(sizes, axis=0)) < len(sizes)


def _count_bits(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> Iterator[str]:
    """Count the random bits of many answers that are drawn together, and of a very long answer."""
    together = [answer] * TOGETHER
    if not calibration.facts.histograms and _noise_is_reused(mechanism, calibration, together):
        yield "two answers that are drawn together have the same noise, or the same with another sign"
        return
    yield from bit_problems(mechanism, together, calibration, f"{TOGETHER} answers that are drawn together")
    longer = _calibrate_long(mechanism, calibration)
    if longer is not None:
        zeros = [np.zeros(LONG, dtype=answer.dtype)]
        yield from bit_problems(mechanism, zeros, longer, f"an answer of {LONG} numbers")


def _are_unlike(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Tell whether two samples are from different distributions, by the test of Kolmogorov and Smirnov."""
    from scipy.stats import ks_2samp

    return bool(ks_2samp(one, other, method="asymp").pvalue < FALSE_ALARM)


def _errors(outputs: Sequence[Any], answer: NDArray[Any]) -> NDArray[np.float64]:
    drawn = np.array([output_numbers(output) for output in outputs])
    return drawn - np.asarray(answer, dtype=np.float64).ravel()


def disagreement(samples: Sequence[tuple[str, NDArray[np.float64]]]) -> Iterator[str]:
    """Yield a sentence for each source of randomness whose outputs are distributed differently from the first source's.

    Only the first number of each output is compared, and nothing if outputs have no numbers. The samples are names of
    sources of randomness, each with the outputs that a mechanism drew from it, as numbers of shape (draws,
    coordinates).
    """
    (first_name, first), *others = samples
    if not first.shape[1]:
        return
    for name, numbers in others:
        if _are_unlike(first[:, 0], numbers[:, 0]):
            yield f"{name} and {first_name} randomness draw from different distributions"
