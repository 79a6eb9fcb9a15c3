"""Statistical tests that compare a mechanism's draws with its log-density at the claimed scale.

The draws are for a probe. A probe is an answer that shows the noise well, with the facts of a query that may give it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.mechanisms import Calibration, Mechanism, Preview
from dpframework.mechanisms.randomness import REAL_ARITHMETIC, Randomness, SeededRandomness
from dpframework.queries import KeyCounts, Norm, PiecewiseScores
from dpframework.verify.mechanisms.output_keys import (
    exchange_last_parts,
    output_key,
    output_numbers,
    signs_in_histograms,
)
from dpframework.verify.mechanisms.probe_query_answers import Probe
from dpframework.verify.mechanisms.release_failure_check import MechanismFailedError, stated_density

FALSE_ALARM = 1e-6  # the largest probability with which one test refuses a correct mechanism
MOST_DRAWS = 1 << 16  # no more draws than about this are made to tell the claimed scale from another scale
FEWEST_EXPECTED = 8  # the fewest expected draws in a cell of the goodness-of-fit test
WITHIN = 0.95  # the probability with which errors stay within the bound of a preview
SLACK = 1.1  # a stated expected error or variance may be rounded, so only means above this multiple of it are refused
STAKES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)  # the stakes in the test of a mean, the smaller ones for heavy tails
# The draws must be able to tell the claimed scale from these multiples of it, which messages describe in words.
OFF = ((Fraction(13, 10), "30 % wider"), (Fraction(10, 13), "30 % narrower"))
SEEN_AT_OTHER_SCALES = 100  # how many outputs show whether the log-density depends on the scale at all
FEWEST_UNLIKE = 100  # a test of correlation needs this many draws that differ from the most frequent value
MIXED = 5  # the number of pairs of collections in the test whether a log-density is a sum over their parts
COMPARED = 4  # how many coordinates of an output are tested for independence, at most


@final
class DrawnOutputs:
    """The outputs that a mechanism draws for one probe from one source of randomness.

    Parameters
    ----------
    mechanism
        The mechanism.
    probe
        The probe with the answer for which the mechanism draws.
    randomness
        The source of randomness.
    """

    def __init__(self, mechanism: Mechanism, probe: Probe, randomness: Randomness) -> None:
        calibration = probe.calibrate(mechanism)
        assert calibration is not None  # `serves` has checked that
        self.mechanism, self.calibration = mechanism, calibration
        self.randomness = randomness.handed(mechanism.assumptions)
        self.answer = probe.answer(noise_size(mechanism, calibration))
        self.source = "private" if randomness.private else "seeded"
        self.outputs: list[Any] = []
        self._stated: dict[Any, float] = {}  # log-densities at the claimed scale, by the keys of their outputs

    @property
    def _numeric(self) -> bool:
        return np.asarray(self.answer).dtype.kind in "iuf"

    def draw(self, number: int) -> None:
        """Draw more outputs, half of them in one call, as in a private run."""
        given = self.calibration, self.randomness
        self.outputs += self.mechanism.release_many([self.answer] * (number // 2), *given)
        self.outputs += [self.mechanism.release(self.answer, *given) for _ in range(number - number // 2)]

    def densities(self, outputs: Sequence[Any], calibration: Calibration) -> NDArray[np.float64]:
        """Return the log-density of each output. It is computed once for equal outputs.

        Raises
        ------
        MechanismFailedError
            If the mechanism's `log_density` fails.
        """
        known = self._stated if calibration is self.calibration else {}
        keys = [output_key(output) for output in outputs]
        for key, output in zip(keys, outputs, strict=True):
            if key not in known:
                known[key] = stated_density(self.mechanism, self.answer, output, calibration)
        return np.array([known[key] for key in keys])

    def problems(self, *, to_tell: bool, promised: bool = True) -> Iterator[str]:
        """Yield the problems with the draws.

        With `to_tell`, draw more until the draws tell the claimed scale from the scales of `OFF`, or until there are
        `MOST_DRAWS` or more. Without `promised`, errors may be larger than the preview says, as for an answer that no
        table gives.
        """
        impossible = int(np.isneginf(self.densities(self.outputs, self.calibration)).sum())
        if impossible:
            yield f"{impossible} of {len(self.outputs)} draws are impossible by its own log-density"
            return
        stated = list(self._total())
        if stated:
            yield from stated  # draws cannot be compared with probabilities that are wrong in themselves
            return
        yield from self._scale(to_tell)
        yield from self._shape()
        yield from self._independence()
        if promised:
            yield from self._promise()

    def _off_densities(self, outputs: Sequence[Any], factor: Fraction) -> NDArray[np.float64]:
        """Return the log-density of each output if the scale were multiplied by a factor.

        Raises
        ------
        MechanismFailedError
            If the mechanism's `log_density` fails at that scale.
        """
        try:
            return self.densities(outputs, with_scale(self.calibration, factor))
        except MechanismFailedError as error:
            raise MechanismFailedError(
                f"{error}, at {float(factor):.3g} times the scale that it draws with; the tests compare its draws with "
                "other scales, so log_density must work with any value of calibration.scale"
            ) from error

    def evidence(self, factor: Fraction) -> float:
        """Return the mean log-likelihood ratio of one draw, between the claimed scale and a multiple of it.

        For scales so close to each other, the mean is about half of the variance of the log-ratio. Half of the variance
        is returned, since the variance hardly changes if the sampler is wrong.
        """
        found = self.densities(self.outputs, self.calibration) - self._off_densities(self.outputs, factor)
        return float(found.var() / 2) if bool(np.isfinite(found).all()) else math.inf

    def _scale(self, to_tell: bool) -> Iterator[str]:
        threshold = -math.log(FALSE_ALARM)
        some = self.outputs[:SEEN_AT_OTHER_SCALES]
        stated = self.densities(some, self.calibration)
        if to_tell and all(np.array_equal(stated, self._off_densities(some, factor)) for factor, _ in OFF):
            yield (
                "its log-density is the same for every calibration.scale, so no number of draws can tell "
                f"whether its noise is {OFF[0][1]}; compute release and log_density from calibration.scale (a pure "
                "epsilon is the change of the answer divided by calibration.scale), and not from the mechanism's own "
                "parameter"
            )
            return
        for factor, words in OFF:
            ratio, seen = 0.0, 0
            while abs(ratio) < threshold and seen < MOST_DRAWS:
                if seen == len(self.outputs):
                    if not to_tell:
                        break
                    self.draw(seen)
                new = self.outputs[seen:]
                ratio += float((self.densities(new, self.calibration) - self._off_densities(new, factor)).sum())
                seen = len(self.outputs)
            if ratio <= -threshold:
                yield (
                    f"the draws fit noise {words} than claimed, and exp({-ratio:.3g}) times better than the claimed "
                    "noise"
                )
            elif ratio < threshold and to_tell:
                yield (
                    f"{seen} draws do not tell whether its noise is {words} than claimed; if its log-density depends "
                    "on calibration.scale, give an answer that shows the noise better (given=[Probe(...)])"
                )

    def _total(self) -> Iterator[str]:
        if self.mechanism.selects:
            size = np.size(self.answer)
            chances = np.exp(self.densities(range(size), self.calibration))
            if abs(chances.sum() - 1) > 1e-6:
                yield f"the probabilities of its {size} candidates add up to {chances.sum():.6g}, not to 1"
            by_score = chances[np.argsort(np.asarray(self.answer).ravel(), kind="stable")]
            if self.mechanism.in_score_order and bool((np.diff(by_score) < -1e-9).any()):
                yield "a candidate with a lower score is likelier to be chosen than one with a higher score"

    def _shape(self) -> Iterator[str]:
        from scipy.stats import chi2

        # The cells of the test are the pieces of an interval, or else single outputs.
        if isinstance(self.answer, PiecewiseScores):
            breaks = self.answer.breaks
            middles, lengths = (breaks[1:] + breaks[:-1]) / 2, np.diff(breaks)
            piece = np.searchsorted(breaks, self.numbers()[:, 0], side="right") - 1
            chances = np.exp(self.densities(list(middles), self.calibration)) * lengths
            counts = np.bincount(piece.clip(0, len(lengths) - 1), minlength=len(lengths))
        else:
            known = Counter(map(output_key, self.outputs))
            if len(known) > len(self.outputs) / 4:
                return  # most outputs occur once, so that frequencies say little
            least = 2 if REAL_ARITHMETIC in self.mechanism.assumptions else 1  # real numbers occur only once
            one_each = list({key: out for out in self.outputs if known[key := output_key(out)] >= least}.values())
            chances = np.exp(self.densities(one_each, self.calibration))
            counts = np.array([known[output_key(output)] for output in one_each])
        expected = len(self.outputs) * chances
        if chances.sum() > 1 + 1e-6:
            yield f"the probabilities of {len(chances)} outputs add up to {chances.sum():.6g}"
            return
        likely = expected >= FEWEST_EXPECTED
        observed, expected = (np.append(n[likely], len(self.outputs) - n[likely].sum()) for n in (counts, expected))
        if expected[-1] < FEWEST_EXPECTED:
            observed, expected = observed[:-1], expected[:-1]
        if len(observed) < 2:
            return
        statistic = float(((observed - expected) ** 2 / expected).sum())
        if chi2.sf(statistic, len(observed)) < FALSE_ALARM:
            yield f"the draws do not have the stated probabilities (chi-square {statistic:.4g}, {len(observed)} cells)"

    def _independence(self) -> Iterator[str]:
        from scipy.stats import spearmanr

        numbers = self.numbers()
        if not numbers.shape[1]:
            return
        pairs = [("from one draw to the next", numbers[:-1, 0], numbers[1:, 0])]
        # If an output has more or fewer numbers than the answer, some numbers may be computed from the others. If the
        # log-density is no sum over numbers, it states that they depend on each other.
        if self._numeric and numbers.shape[1] == np.size(self.answer) and self._adds_up():
            histograms, same_rows = self.calibration.facts.histograms, self.calibration.same_rows
            # The noise of a histogram may be drawn so that its sum is kept if neighbours have the same number of rows.
            most = COMPARED if not histograms else 2 if len(histograms) == 1 and not same_rows else 1
            pairs += [("between coordinates", numbers[:, 0], other) for other in numbers.T[1:most]]
            pairs += signs_in_histograms(numbers - np.asarray(self.answer, dtype=np.float64).ravel(), histograms)
        for words, one, other in pairs:
            if _varies(one) and _varies(other) and spearmanr(one, other).pvalue < FALSE_ALARM:
                yield f"the draws are correlated {words}"

    def _adds_up(self) -> bool:
        """Tell whether the log-density is a sum over numbers. Histograms pass, even if their sums are kept."""
        first = self.outputs[0]
        if self.calibration.facts.histograms:
            return True
        if isinstance(first, np.ndarray):
            return adds_up(self.mechanism, np.asarray(self.answer), first, self.calibration)
        return all(map(self._keeps_sum, self.outputs[:MIXED], self.outputs[MIXED : 2 * MIXED]))

    def _keeps_sum(self, one: Any, other: Any) -> bool:
        """Tell whether the log-densities of two collections add up to the same after they exchange their last parts."""
        mixed = exchange_last_parts(one, other)
        before, after = (self.densities(pair, self.calibration).sum() for pair in ((one, other), mixed))
        return math.isclose(before, after, rel_tol=1e-9)

    def numbers(self) -> NDArray[np.float64]:
        """Return the outputs as numbers, shape (draws, coordinates). A key that is not shown counts as 0.

        If some outputs have more numbers than others, only the first ones that all of them have are returned.
        """
        if isinstance(self.answer, KeyCounts):
            keys = self.answer.keys
            return np.array([[output.get(key, 0) for key in keys] for output in self.outputs], dtype=np.float64)
        drawn = [output_numbers(output) for output in self.outputs]
        fewest = min(map(len, drawn))
        return np.array([numbers[:fewest] for numbers in drawn])

    def _promise(self) -> Iterator[str]:
        if not self._numeric:
            return  # the preview promises a distance from the answer only for numbers
        answer = np.asarray(self.answer, dtype=np.float64).ravel()
        numbers, between = self.numbers(), True
        if self.mechanism.selects:
            errors = (answer.max() - answer[[int(output) for output in self.outputs]])[:, None]
        elif numbers.shape[1] == answer.size:
            errors = np.abs(numbers - answer)
            between = bool(((numbers.min(axis=0) <= answer) & (answer <= numbers.max(axis=0))).all())
        else:
            return  # the output does not have a number for each number of the answer
        # For keys, the expected error is that of shown counts, but a hidden count looks like a shown 0. An answer that
        # does not lie between outputs is beyond the public range to which a mechanism clips its outputs.
        known = between and not self.mechanism.shows_keys
        yield from preview_problems(self.calibration.preview, errors, mean_is_known=known)
        if known and not self.mechanism.selects:
            yield from variance_problems(self.calibration, np.square(errors).mean(axis=1))


def _varies(numbers: NDArray[np.float64]) -> bool:
    """Tell whether numbers differ often enough for a test of correlation, which assumes many different numbers."""
    return len(numbers) - int(np.unique(numbers, return_counts=True)[1].max()) >= FEWEST_UNLIKE


def preview_problems(preview: Preview, errors: NDArray[np.float64], *, mean_is_known: bool = True) -> Iterator[str]:
    """Yield a sentence if errors are larger than a preview says. A correct preview is refused with probability 2e-6.

    Parameters
    ----------
    preview
        The preview. If its bound is NaN, it promises none.
    errors
        The absolute errors of independent draws, shape (draws, numbers). Only the first number is compared with the
        bound that holds at 95 %. The mean of all numbers is compared with the expected error.
    mean_is_known
        Whether the expected error is compared.
    """
    from scipy.stats import binom

    beyond = int((errors[:, 0] > preview.within * (1 + 1e-9)).sum())
    if not math.isnan(preview.within) and binom.sf(beyond - 1, len(errors), 1 - WITHIN) < FALSE_ALARM:
        yield f"{beyond} of {len(errors)} errors are beyond the {preview.within:.3g} that its preview promises at 95 %"
    if mean_is_known and mean_exceeds(errors.mean(axis=1), SLACK * preview.expected):
        yield f"the mean error is {errors.mean():.3g}, more than the {preview.expected:.3g} that its preview expects"


def variance_problems(calibration: Calibration, squares: NDArray[np.float64]) -> Iterator[str]:
    """Yield a sentence if the squares of independent noise are larger on average than the variance that is stated."""
    try:
        stated = calibration.variance
    except InputError:
        return  # the mechanism states no variance
    # The stated variance may be that of noise before it was rounded to the lattice, by half a step at most.
    if mean_exceeds(squares, SLACK * stated + (float(calibration.unit) / 2) ** 2):
        yield f"the mean square of the noise is {squares.mean():.3g}, more than its variance of {stated:.3g}"


def mean_exceeds(numbers: NDArray[np.float64], stated: float) -> bool:
    """Tell whether independent numbers, none negative, are too large for a distribution whose mean is at most `stated`.

    If the mean is at most m, then 1 - s + s x / m has a mean of at most 1 for each stake s from 0 to 1. So has the
    product over independent numbers, and so has the mean of such products over several stakes. By Markov's inequality,
    it exceeds 1e6 with a probability of at most 1e-6, however heavy the tail is.

    Parameters
    ----------
    numbers
        The numbers.
    stated
        The stated mean. If it is not a number, nothing is stated.
    """
    if math.isnan(stated):
        return False
    shares = np.zeros(len(numbers))
    np.divide(numbers, max(stated, np.finfo(np.float64).tiny), out=shares, where=numbers > 0)
    products = [float(np.log1p(stake * (shares - 1)).sum()) for stake in STAKES]
    return float(np.logaddexp.reduce(products)) - math.log(len(STAKES)) > -math.log(FALSE_ALARM)


def noise_size(mechanism: Mechanism, calibration: Calibration) -> float:
    """Return the scale of a mechanism's noise in units of the answer: a standard deviation for Gaussian noise."""
    # In the l2 norm the scale of a calibration is a variance.
    return math.sqrt(calibration.scale) if mechanism.norm is Norm.SQUARED_L2 else float(calibration.scale)


def with_scale(calibration: Calibration, factor: Fraction) -> Calibration:
    """Return a calibration with its noise scaled by a factor."""
    power = 2 if calibration.mechanism.norm is Norm.SQUARED_L2 else 1
    return attrs.evolve(calibration, scale=calibration.scale * factor**power)


def adds_up(mechanism: Mechanism, answer: NDArray[Any], output: Any, calibration: Calibration) -> bool:
    """Tell whether the log-density of an array is a sum over its halves, by exchanging those of two arrays."""
    if not isinstance(output, np.ndarray | np.generic | int | float) or np.shape(output) != np.shape(answer):
        return False  # a collection, which has no halves
    output = np.asarray(output)
    other = answer
    if stated_density(mechanism, answer, np.asarray(answer).astype(output.dtype), calibration) == -math.inf:
        other = mechanism.release(answer, calibration, SeededRandomness(23).handed(mechanism.assumptions))
    half = (np.arange(output.size) < output.size // 2).reshape(output.shape)
    split = [output, other, np.where(half, output, other), np.where(half, other, output)]
    whole, none, *halves = (
        stated_density(mechanism, answer, np.asarray(one).astype(output.dtype), calibration) for one in split
    )
    return math.isclose(whole + none, sum(halves), rel_tol=1e-9)


def are_unlike(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Tell whether two samples are from different distributions, by the test of Kolmogorov and Smirnov."""
    from scipy.stats import ks_2samp

    return bool(ks_2samp(one, other, method="asymp").pvalue < FALSE_ALARM)


def errors_of(outputs: Sequence[Any], answer: NDArray[Any]) -> NDArray[np.float64]:
    """Return how far outputs lie from an answer, shape (outputs, numbers)."""
    drawn = np.array([output_numbers(output) for output in outputs])
    return drawn - np.asarray(answer, dtype=np.float64).ravel()


def renyi_at_least(losses: Sequence[NDArray[np.float64]], order: float, bounds: int) -> float:
    """Return a lower bound on the largest Renyi divergence of some pairs at a given order, from losses that were drawn.

    The mean of exp((a - 1) L) for the loss L of an output is exp((a - 1) D), for the divergence D of order a. So of n
    independent outputs, the product of exp((a - 1) (L - D)) has the mean 1. It exceeds x with a probability of at most
    1 / x, by Markov's inequality.

    Parameters
    ----------
    losses
        The losses of the outputs that were drawn, an array for each pair.
    order
        The order, above 1.
    bounds
        How many bounds are computed for one mechanism. All hold together with a probability of 1 - `FALSE_ALARM`.
    """
    beyond = math.log(bounds / FALSE_ALARM) / (order - 1)
    return max(((float(drawn.sum()) - beyond) / drawn.size for drawn in losses), default=0.0)
