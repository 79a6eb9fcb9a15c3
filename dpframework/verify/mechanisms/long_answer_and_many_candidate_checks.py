"""Checks of the noise of very long answers, and of choices among very many candidates.

A long answer shows in one draw what usual answers show in thousands: whether noise ends or repeats, whether it is the
same from the first number to the last, and whether two of the numbers depend on each other. Among thousands of
candidates, the unlikely ones are together as likely as the best one, so draws show whether they are left out.

Every test refuses a correct mechanism with a probability of at most 1e-6.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import Norm
from dpframework.verify.mechanisms.output_keys import output_numbers, output_step
from dpframework.verify.mechanisms.probe_query_answers import scale_sensitivity
from dpframework.verify.mechanisms.sampler_statistics import (
    FALSE_ALARM,
    OFF,
    adds_up,
    are_unlike,
    errors_of,
    noise_size,
    preview_problems,
    variance_problems,
    with_scale,
)
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import (
    SPENT,
    related_mechanisms,
    with_other_parameters,
)

LONG = 4096  # an answer's length at which noise that is drawn in blocks of a fixed size would end or repeat
REPEATED = 8  # how many times outputs are drawn for a long answer
REPEATS = 8 / math.sqrt(LONG)  # an autocorrelation that independent noise of this length does not reach
EQUAL = 100  # how many choices are made among equal candidates, and among one good and many bad ones
TELLING = 10_000  # the factor of the sensitivity at which the sizes of independent noise hardly ever agree
MANY_STEPS = 1000  # sizes of noise are compared only if its scale is at least this many steps of the outputs' lattice
NARROW = 0.1  # noise whose median size is below this share of its scale is too narrow for a comparison of sizes
FEW_DIGITS = 6  # to how many decimals the sizes of noise are compared
#: For the comparison of ranks: how many numbers an answer has, and how many outputs are drawn for it.
COMPARED = ((64, 128), (8, 128), (24, 128), (LONG, 32))
SHORT = (1, 8, 24)  # lengths of answers for which a mechanism might use other code than for two numbers
SHORT_DRAWN = 1024  # about how many numbers are drawn for each of these lengths
#: A length for which the last number has no partner if noise is drawn in pairs, and how many answers are drawn for it.
ODD, ODD_DRAWN = 7, 150
#: Numbers of candidates besides `LONG`, how many choices are made among each of them, and how far one candidate is
#: ahead of the others, in scales of the noise. If the scale is twice or half the claimed one, the choices show that.
FEW_CANDIDATES, FEW_CHOICES, AHEAD = (2, 3, 7, 16), 400, 2
#: How many standard deviations the mean square of all correlations may lie above that of independent numbers, and how
#: many a single correlation may lie from 0. Independent numbers exceed either limit with a probability below 2e-7.
MEAN_SQUARE, SINGLE = 8.0, 6.5
LARGE = 256  # a factor of what a mechanism spends, beyond which it might use other code
AMOUNTS = (Fraction(1, LARGE), Fraction(5, 9), Fraction(9, 4), Fraction(LARGE))
AMOUNT_LONG = 2048  # how many numbers the answers have that are tried at these amounts


def calibrate_for_length(mechanism: Mechanism, calibration: Calibration, length: int = LONG) -> Calibration | None:
    """Return the calibration for an answer of `length` numbers. None for several histograms, whose sizes are fixed."""
    facts = attrs.evolve(calibration.facts, answer_length=length)
    return None if facts.histograms else mechanism.calibrate(facts, Relation.ADD_OR_REMOVE_ONE)


def puts_out_each_number(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> bool:
    """Tell whether outputs have a number for each number of the answer, also if the answer is longer."""
    lengths = (answer.size,) if calibration.facts.histograms else (answer.size, answer.size + 1)
    for length in lengths:
        fit = calibration if length == answer.size else calibrate_for_length(mechanism, calibration, length)
        if fit is not None:
            longer, handed = np.resize(answer, length), SeededRandomness(0).handed(mechanism.assumptions)
            outputs = [mechanism.release(longer, fit, handed) for _ in range(REPEATED)]
            if any(output_numbers(output).size != length for output in outputs):
                return False
    return True


def long_answer_problems(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> Iterator[str]:
    """Draw for very long answers, and yield the first problem, if there is one.

    The answers are all zeros. As scores, they should all have the same chance. As numbers, they should all get noise of
    the same distribution and of the claimed scale, and the noise should not repeat.

    Parameters
    ----------
    mechanism
        The mechanism. A selection is not tested if a candidate with a higher score may have a lower chance.
    answer
        Any answer. The long answers have its type.
    calibration
        The mechanism's noise scale and losses for a query.
    """
    longer = calibrate_for_length(mechanism, calibration)
    if longer is None or (mechanism.selects and not mechanism.in_score_order):
        return
    zeros = np.zeros(LONG, dtype=answer.dtype)
    tests = (
        (_equal_candidates, _bad_candidates, _few_candidates)
        if mechanism.selects
        else (_off_scale, _changing_noise, _off_scale_if_short, _other_noise_of_last, _dependence)
    )
    for test in tests:
        found = list(test(mechanism, zeros, longer))
        yield from found
        if found:
            return


def _equal_candidates(mechanism: Mechanism, zeros: NDArray[Any], longer: Calibration) -> Iterator[str]:
    handed = SeededRandomness(4).handed(mechanism.assumptions)
    chosen = [int(mechanism.release(zeros, longer, handed)) for _ in range(EQUAL)]
    if are_unlike(np.array(chosen, dtype=np.float64), np.arange(LONG * 1.0)):
        yield f"of {LONG} equal candidates some are hardly ever chosen"


def _bad_candidates(mechanism: Mechanism, zeros: NDArray[Any], longer: Calibration) -> Iterator[str]:
    """Choose between one candidate and thousands of worse ones, which together have about the same chance."""
    from scipy.stats import binom

    scores, unit, best = zeros.copy(), float(longer.unit), zeros.size // 3
    ahead = math.ceil(math.log(zeros.size) * float(longer.scale) / unit) * unit
    scores[best] = ahead
    stated = 1 - math.exp(mechanism.log_density(scores, best, longer))
    handed = SeededRandomness(5).handed(mechanism.assumptions)
    are_bad = np.array([int(mechanism.release(scores, longer, handed)) != best for _ in range(EQUAL)])
    bad = int(are_bad.sum())
    if 2 * min(binom.cdf(bad, EQUAL, stated), binom.sf(bad - 1, EQUAL, stated)) < FALSE_ALARM:
        yield (
            f"of {zeros.size} candidates all but one are bad, and one of the bad is chosen in {bad} of {EQUAL} draws; "
            f"its log-density states a probability of {stated:.2g}: are unlikely candidates left out?"
        )
        return
    yield from preview_problems(longer.preview, are_bad[:, None] * float(ahead))


def _few_candidates(mechanism: Mechanism, zeros: NDArray[Any], longer: Calibration) -> Iterator[str]:
    """Choose among few candidates, of which the last one is ahead, and count how often it is chosen."""
    from scipy.stats import binom

    for size in FEW_CANDIDATES:
        few = calibrate_for_length(mechanism, longer, size)
        if few is None:
            continue
        scores, unit, best = zeros[:size].copy(), float(few.unit), size - 1
        scores[best] = math.ceil(AHEAD * float(few.scale) / unit) * unit
        stated = math.exp(mechanism.log_density(scores, best, few))
        handed = SeededRandomness(16).handed(mechanism.assumptions)
        chosen = sum(int(mechanism.release(scores, few, handed)) == best for _ in range(FEW_CHOICES))
        if 2 * min(binom.cdf(chosen, FEW_CHOICES, stated), binom.sf(chosen - 1, FEW_CHOICES, stated)) < FALSE_ALARM:
            yield (
                f"of {size} candidates the best one is chosen in {chosen / FEW_CHOICES:.0%} of {FEW_CHOICES} draws; "
                f"its log-density states a probability of {stated:.2g}"
            )
            return


def _off_scale(mechanism: Mechanism, zeros: NDArray[Any], longer: Calibration, draws: int = REPEATED) -> Iterator[str]:
    yield from _off_scale_in(_draw(mechanism, zeros, longer, draws), mechanism, zeros, longer)


def _draw(mechanism: Mechanism, zeros: NDArray[Any], calibration: Calibration, draws: int) -> list[Any]:
    handed = SeededRandomness(4).handed(mechanism.assumptions)
    return [mechanism.release(zeros, calibration, handed) for _ in range(draws)]


def _off_scale_in(
    outputs: Sequence[Any], mechanism: Mechanism, zeros: NDArray[Any], longer: Calibration
) -> Iterator[str]:
    for factor, words in OFF:
        off = with_scale(longer, factor)
        ratio = math.fsum(
            mechanism.log_density(zeros, one, longer) - mechanism.log_density(zeros, one, off) for one in outputs
        )
        if ratio <= math.log(FALSE_ALARM):
            yield f"the noise of an answer of length {zeros.size} is {words} than claimed"
            return


def _off_scale_if_short(mechanism: Mechanism, zeros: NDArray[Any], longer: Calibration) -> Iterator[str]:
    """Yield a sentence if the noise of answers of one or of several numbers is not of the claimed scale."""
    for length in SHORT:
        shorter = calibrate_for_length(mechanism, longer, length)
        if shorter is not None:
            yield from _off_scale(mechanism, zeros[:length], shorter, math.ceil(SHORT_DRAWN / length))


def _other_noise_of_last(mechanism: Mechanism, zeros: NDArray[Any], longer: Calibration) -> Iterator[str]:
    """Yield a sentence if the last of an odd number of numbers gets noise of other sizes than those before it."""
    shorter, some = calibrate_for_length(mechanism, longer, ODD), zeros[:ODD]
    if shorter is None:
        return
    handed = SeededRandomness(17).handed(mechanism.assumptions)
    outputs = [mechanism.release(some, shorter, handed) for _ in range(ODD_DRAWN)]
    if not adds_up(mechanism, some, outputs[0], shorter):
        return  # by the log-density, the numbers depend on each other
    turned = [mechanism.log_density(some, one, shorter) for one in (outputs[0], np.roll(outputs[0], 1))]
    sizes = np.abs(errors_of(outputs, some))
    if math.isclose(*turned, rel_tol=1e-9) and are_unlike(sizes[:, :-1].ravel(), sizes[:, -1]):
        yield f"the noise of the last of {ODD} numbers has another distribution than that of the others"


def _changing_noise(mechanism: Mechanism, zeros: NDArray[Any], longer: Calibration) -> Iterator[str]:
    """Yield a sentence if the noise repeats, or changes from the first number to the last."""
    handed = SeededRandomness(4).handed(mechanism.assumptions)
    outputs = [mechanism.release(zeros, longer, handed) for _ in range(REPEATED)]
    if isinstance(outputs[0], np.ndarray):  # other outputs cannot be put in another order
        mixed = outputs[0][np.random.default_rng(5).permutation(LONG)]
        stated = [mechanism.log_density(zeros, one, longer) for one in (outputs[0], mixed)]
        if not math.isclose(stated[0], stated[1], rel_tol=1e-9):
            return  # by the log-density, the noise of a number depends on the number's place in the answer
    noise = errors_of(outputs, zeros)
    spectrum = np.abs(np.fft.rfft(noise[0] - noise[0].mean())) ** 2
    again = np.fft.irfft(spectrum)[1 : LONG // 2]
    if (again > REPEATS * spectrum.mean()).any():
        yield f"the noise of an answer of {LONG} numbers repeats itself"
    elif any(are_unlike(noise[:, :part].ravel(), noise[:, -part:].ravel()) for part in (LONG // 64, LONG // 4)):
        yield f"the noise of the last of {LONG} numbers has another distribution than that of the first"
    elif noise_is_reused(mechanism, longer, [zeros]):
        yield f"two numbers of an answer of {LONG} have the same noise, or the same with another sign"


def _dependence(
    mechanism: Mechanism,
    zeros: NDArray[Any],
    longer: Calibration,
    compared: Sequence[tuple[int, int]] = COMPARED,
) -> Iterator[str]:
    """Yield a sentence if the noise of two numbers is correlated, although the log-density is a sum over numbers."""
    for length, draws in compared:
        shorter = calibrate_for_length(mechanism, longer, length)
        if shorter is None:
            return
        some, handed = zeros[:length], SeededRandomness(10).handed(mechanism.assumptions)
        outputs = [mechanism.release(some, shorter, handed) for _ in range(draws)]
        if not adds_up(mechanism, some, outputs[0], shorter):
            return  # by the log-density, the numbers depend on each other
        problem = _correlation(errors_of(outputs, some).T)
        if problem is not None:
            yield f"the noise of an answer of {length} numbers is not independent: {problem}"
            return


def _correlation(noise: NDArray[np.float64]) -> str | None:
    """Describe a correlation between numbers, by the ranks of their draws. None if there is none.

    If numbers are independent, the ranks of each are a random order of the draws, whatever their distribution. Equal
    draws are ranked at random. The rank correlation of two numbers then has the mean 0 and the variance
    1 / (draws - 1). Whatever the ranks of one number are, each order of the ranks of another is equally likely. So the
    squared correlations of different pairs are uncorrelated. Each has a variance below 2 / (draws - 1)^2.

    Parameters
    ----------
    noise
        The noise of each number in each draw, shape (numbers, draws).
    """
    numbers, draws = noise.shape
    order = np.lexsort((np.random.default_rng(11).random(noise.shape), noise), axis=1)
    ranks = np.argsort(order, axis=1) - (draws - 1) / 2
    ranks /= np.linalg.norm(ranks, axis=1, keepdims=True)
    pairs = numbers * (numbers - 1) / 2
    squares = (np.square(ranks.T @ ranks).sum() - numbers) / 2
    above = (squares * (draws - 1) - pairs) / math.sqrt(2 * pairs)
    if above > MEAN_SQUARE:
        return f"its correlations are {math.sqrt(squares / pairs) * math.sqrt(draws - 1):.3g} times as large as chance"
    if numbers > draws:
        return None
    each = np.abs(ranks @ ranks.T - np.eye(numbers))
    one, other = np.unravel_index(int(each.argmax()), each.shape)
    if each.max() * math.sqrt(draws - 1) > SINGLE:
        return f"numbers {one + 1} and {other + 1} have a rank correlation of {each.max():.2g}"
    return None


def other_amount_problems(mechanism: Mechanism, answer: Any, calibration: Calibration) -> Iterator[str]:
    """Draw at far smaller and far larger epsilon or rho, where a mechanism might use other code or state other errors.

    The parameters are those of `long_answer_problems`. Only arrays of numbers are tried.
    """
    if not isinstance(answer, np.ndarray) or (mechanism.selects and not mechanism.in_score_order):
        return
    some = np.zeros(AMOUNT_LONG, dtype=answer.dtype)
    for how, other, changed in other_amount_calibrations(mechanism, calibration):
        try:
            found = list((_bad_candidates if other.selects else _noise_problems)(other, some, changed))
        except Exception as error:
            found = [f"a release fails with {type(error).__name__}: {error}"]
        if found:
            yield f"{how}, {found[0]}"
            return


def _noise_problems(mechanism: Mechanism, zeros: NDArray[Any], longer: Calibration) -> Iterator[str]:
    """Draw once for many numbers, and compare their noise with the claimed scale and with the preview."""
    (output,) = outputs = _draw(mechanism, zeros, longer, 1)
    yield from _off_scale_in(outputs, mechanism, zeros, longer)
    if not adds_up(mechanism, zeros, output, longer):
        return  # by the log-density, the numbers depend on each other
    yield from _dependence(mechanism, zeros, longer, COMPARED[:1])
    errors = errors_of(outputs, zeros).T
    # If 0 does not lie between the numbers, it is beyond the public range to which the mechanism clips its outputs.
    between = bool(errors.min() <= 0 <= errors.max())
    yield from preview_problems(longer.preview, np.abs(errors), mean_is_known=between)
    if between:
        yield from variance_problems(longer, np.square(errors[:, 0]))


def other_amount_calibrations(
    mechanism: Mechanism, calibration: Calibration
) -> Iterator[tuple[str, Mechanism, Calibration]]:
    """Yield copies of a mechanism with other amounts to spend, and with other parameters of its own.

    The first value says what is changed. The last one is the copy's calibration for `AMOUNT_LONG` numbers.

    With far more to spend, the sensitivity is larger too, so that the noise keeps its scale. Otherwise it would be too
    small to be seen.
    """
    longer = calibrate_for_length(mechanism, calibration, AMOUNT_LONG)
    if longer is None:
        return
    own = ((f"with {how}", other) for how, other in with_other_parameters(mechanism))
    for how, other in itertools.chain(related_mechanisms(mechanism, AMOUNTS), own):
        spent = [(getattr(mechanism, name), getattr(other, name)) for name in SPENT[:2] if hasattr(other, name)]
        facts = longer.facts
        if any(before is not None and after == LARGE * before for before, after in spent):
            factor = Fraction(math.isqrt(LARGE)) if mechanism.norm is Norm.SQUARED_L2 else Fraction(LARGE)
            larger = [scale_sensitivity(one, factor) for one in facts.sensitivities]
            facts = attrs.evolve(facts, sensitivities=larger)
        try:
            changed = other.calibrate(facts, Relation.ADD_OR_REMOVE_ONE)
        except InputError:  # the mechanism refuses this amount, and so claims nothing for it
            continue
        if changed is not None:
            yield how, other, changed


def noise_is_reused(
    mechanism: Mechanism, calibration: Calibration, answers: Sequence[NDArray[Any]], repeated: int = REPEATED
) -> bool:
    """Tell whether two numbers always get noise of the same size, if several answers get their noise in one call.

    The noise is drawn for a far larger sensitivity, so that the sizes of independent noise hardly ever agree. In one
    draw, two given numbers have noise of the same size with a probability below 1 / `TELLING`. Among 5000 numbers, the
    probability that any two agree in all of 4 draws is below 2e-9. Numbers with the smallest or the largest output are
    left out, since outputs may be clipped to a public range. Nothing is compared if a mechanism rounds its outputs to
    steps that grow with the noise.
    """
    larger = [scale_sensitivity(one, Fraction(TELLING)) for one in calibration.facts.sensitivities]
    wide = mechanism.calibrate(attrs.evolve(calibration.facts, sensitivities=larger), Relation.ADD_OR_REMOVE_ONE)
    if wide is None or output_step(mechanism, answers[0], wide) * MANY_STEPS > noise_size(mechanism, wide):
        return False
    handed = SeededRandomness(7).handed(mechanism.assumptions)
    drawn = [
        np.concatenate([output_numbers(one) for one in mechanism.release_many(answers, wide, handed)])
        for _ in range(repeated)
    ]
    outputs = np.array(drawn)
    ends = (outputs == outputs.min(axis=1, keepdims=True)) | (outputs == outputs.max(axis=1, keepdims=True))
    sizes = np.abs(outputs - np.concatenate([np.ravel(answer) for answer in answers]).astype(np.float64))
    sizes = sizes[:, ~ends.any(axis=0)].round(FEW_DIGITS).T
    if not sizes.size or np.median(sizes) < NARROW * noise_size(mechanism, wide):
        return False  # the noise is not as wide as it should be, which other tests find
    return len(np.unique(sizes, axis=0)) < len(sizes)
