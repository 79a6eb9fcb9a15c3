"""Sampler tests, which compare a mechanism's draws with its log-density at its claimed scale.

A replay believes the log-density; this is where it is tested. Every test accepts a correct sampler but for a
probability of 1e-6, and a noise scale 30 % off is accepted with at most that probability.

An answer whose differences drown in the noise would need millions of draws to tell a scale 30 % off. Such an answer is
drawn from twice: as it is, which tells noise that is far too small, and with the noise of a smaller declared
sensitivity, at the mechanism's own privacy parameter, which tells 30 % (`_sharpen`).
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
from dpframework.facts.privacy import Relation
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import (
    GeneratorNotHandedError,
    Randomness,
    SeededRandomness,
    SystemRandomness,
)
from dpframework.queries import KeyCounts, Norm, PiecewiseScores, Sensitivity
from dpframework.verify.draws import disagreement, draw_problems
from dpframework.verify.probes import Probe, probes

FALSE_ALARM = 1e-6
MOST_DRAWS = 1 << 16
FEWEST_EXPECTED = 8  # draws in a cell of the goodness-of-fit test
WITHIN = 0.95  # what a preview promises
TRIED = 500  # draws that show how well an answer shows the noise
TELLING = 0.01  # of the log-likelihood a draw: 1400 draws reach `FALSE_ALARM`
MOST_HALVINGS = 16
OFF = ((Fraction(13, 10), "30 % wider"), (Fraction(10, 13), "30 % narrower"))


@final
@attrs.frozen
class SamplerReport:
    """The findings of the sampler tests for one mechanism.

    Attributes
    ----------
    mechanism
        Its name.
    tested
        What was tested, one entry a probe.
    wrong
        What was found wrong, one sentence each.
    draws
        How many outputs were drawn.
    """

    mechanism: str
    tested: tuple[str, ...]
    wrong: tuple[str, ...]
    draws: int

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.wrong

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {**attrs.asdict(self), "passed": self.passed}

    def __str__(self) -> str:
        """Write the verdict and the problems."""
        if self.passed:
            return f"{self.mechanism}: draws what it states ({self.draws} draws; {'; '.join(self.tested)})"
        return "\n".join(f"{self.mechanism}: {what}" for what in self.wrong)


def check_sampler(
    mechanism: Mechanism,
    *,
    given: Sequence[Probe] | None = None,
    sources: Sequence[Randomness] | None = None,
    draws: int = 2_000,
) -> SamplerReport:
    """Test a mechanism's draws against its log-density and its preview.

    - its assumptions: it asks for the generator only if it assumes `real-arithmetic`;
    - its scale: the likelihood ratio to a scale 30 % larger or smaller must exceed 1e6 (Ville's inequality: it falls
      below 1e-6 for a correct sampler, and exceeds 1e6 for one that is off, with a probability of at most 1e-6);
    - its shape: goodness of fit to the stated probabilities, where outputs repeat or the density is piecewise constant,
      and the agreement of all sources of randomness;
    - its probabilities: they add up to 1 over candidates, of which a better one is not less likely, and to no more
      than 1 over what was drawn;
    - independence: no correlation from one draw to the next, between coordinates, or between answers drawn together;
    - its source: the same randomness gives the same draws;
    - its preview: errors lie within the bound 95 % of the time.

    Parameters
    ----------
    mechanism
        The mechanism.
    given
        What to draw from; by default those of `probes` that the mechanism serves.
    sources
        The sources of randomness; by default the operating system's and a seeded one.
    draws
        How many outputs to draw a probe and source; more while the scale is undecided.

    Raises
    ------
    InputError
        If the mechanism serves none of the probes.
    """
    try:
        return _test_draws(
            mechanism,
            probes() if given is None else given,
            sources or (SystemRandomness(), SeededRandomness(1)),
            draws,
        )
    except GeneratorNotHandedError as error:
        return SamplerReport(mechanism.name, (), (str(error),), 0)


def _test_draws(
    mechanism: Mechanism, given: Sequence[Probe], sources: Sequence[Randomness], draws: int
) -> SamplerReport:
    served = [probe for probe in given if serves(mechanism, probe)]
    if not served:
        raise InputError(f"mechanism '{mechanism.name}' serves none of the probes; give one with given=[Probe(...)]")
    wrong: list[str] = []
    tested: list[str] = []
    drawn = 0
    for asked in served:
        sharp = _sharpen(mechanism, asked)
        for probe in dict.fromkeys((asked, sharp)):
            text = probe.facts.text if probe is asked else f"{probe.facts.text} (a smaller sensitivity)"
            samples = []
            for source in sources:
                sample = _Sample(mechanism, probe, source)
                sample.draw(draws)
                of_source = sample.problems(to_tell=probe is sharp)
                wrong += [f"{text}, {sample.source} randomness: {what}" for what in of_source]
                samples.append(sample)
                drawn += len(sample.outputs)
            tested.append(f"{text}, {' and '.join(sample.source for sample in samples)} randomness")
            if len(samples) > 1 and not wrong:
                wrong += [f"{text}: {what}" for what in disagreement([(one.source, one.numbers()) for one in samples])]
            if probe is asked:
                scale = _scale_of(mechanism, sample.calibration)
                found = draw_problems(mechanism, sample.answer, sample.calibration, scale)
                wrong += [f"{text}: {what}" for what in found]
    return SamplerReport(mechanism.name, tuple(tested), tuple(wrong), drawn)


def serves(mechanism: Mechanism, probe: Probe) -> bool:
    """Tell whether a mechanism can draw from a probe's answer."""
    declared = {sensitivity.norm for sensitivity in probe.facts.sensitivities}
    if mechanism.norm not in declared or mechanism.misfit(probe.facts) is not None:
        return False
    calibration = mechanism.calibrate(probe.facts, Relation.ADD_OR_REMOVE_ONE)
    if calibration is None:
        return False
    try:
        handed = SeededRandomness(0).handed(mechanism.assumptions)
        mechanism.release(probe.answer(_scale_of(mechanism, calibration)), calibration, handed)
    except GeneratorNotHandedError:
        raise  # it takes such answers, and draws what it must not
    except (InputError, TypeError, ValueError, AttributeError):  # an answer of another kind than it takes
        return False
    return True


def _sharpen(mechanism: Mechanism, probe: Probe) -> Probe:
    """Return a probe that shows the noise, with the declared sensitivity or a half, a quarter and so on of it.

    Without a declared sensitivity at which the draws tell, the one at which they tell most.
    """
    found: list[tuple[float, Probe]] = []
    for halvings in range(MOST_HALVINGS):
        share = Fraction(1, 2**halvings)
        declared = [_scale_sensitivity(sensitivity, share) for sensitivity in probe.facts.sensitivities]
        smaller = attrs.evolve(probe, facts=attrs.evolve(probe.facts, sensitivities=declared)) if halvings else probe
        if not serves(mechanism, smaller):
            break
        sample = _Sample(mechanism, smaller, SeededRandomness(0))
        sample.draw(TRIED)
        found.append((min(sample.told(factor) for factor, _ in OFF), smaller))
        if found[-1][0] >= TELLING:
            return smaller
    return max(found, key=lambda one: one[0])[1] if found else probe


def _scale_sensitivity(sensitivity: Sensitivity, share: Fraction) -> Sensitivity:
    factor = share**2 if sensitivity.norm is Norm.SQUARED_L2 else share  # an l2 sensitivity is a square
    sizes = {name: getattr(sensitivity, name) for name in ("add_or_remove_one", "replace_one", "rise", "fall")}
    return attrs.evolve(sensitivity, **{name: size and size * factor for name, size in sizes.items()})


def _scale_of(mechanism: Mechanism, calibration: Calibration) -> float:
    return math.sqrt(calibration.scale) if mechanism.norm is Norm.SQUARED_L2 else float(calibration.scale)  # a variance


class _Sample:
    def __init__(self, mechanism: Mechanism, probe: Probe, randomness: Randomness) -> None:
        calibration = mechanism.calibrate(probe.facts, Relation.ADD_OR_REMOVE_ONE)
        assert calibration is not None  # `serves` has asked
        self.mechanism, self.calibration = mechanism, calibration
        self.randomness = randomness.handed(mechanism.assumptions)
        self.answer = probe.answer(_scale_of(mechanism, calibration))
        self.source = "private" if randomness.private else "seeded"
        self.outputs: list[Any] = []

    @property
    def _numeric(self) -> bool:
        return np.asarray(self.answer).dtype.kind in "iuf"

    def draw(self, number: int) -> None:
        """Draw more outputs, half of them together, as a private run does."""
        given = self.calibration, self.randomness
        self.outputs += self.mechanism.release_many([self.answer] * (number // 2), *given)
        self.outputs += [self.mechanism.release(self.answer, *given) for _ in range(number - number // 2)]

    def densities(self, outputs: Sequence[Any], calibration: Calibration) -> NDArray[np.float64]:
        """Return the log-density of each output, computed once for equal ones."""
        known: dict[Any, float] = {}
        for output in outputs:
            if (key := _key(output)) not in known:
                known[key] = self.mechanism.log_density(self.answer, output, calibration)
        return np.array([known[_key(output)] for output in outputs])

    def problems(self, *, to_tell: bool) -> Iterator[str]:
        """Yield the problems with the draws. Draw more first if they cannot tell the scale."""
        impossible = int(np.isneginf(self.densities(self.outputs, self.calibration)).sum())
        if impossible:
            yield f"{impossible} of {len(self.outputs)} draws are impossible by its own log-density"
            return
        stated = list(self._total())
        if stated:
            yield from stated  # what is drawn cannot be compared with it
            return
        yield from self._scale(to_tell)
        yield from self._shape()
        yield from self._independence()
        yield from self._promise()

    def _off(self, factor: Fraction) -> Calibration:
        power = 2 if self.mechanism.norm is Norm.SQUARED_L2 else 1
        return attrs.evolve(self.calibration, scale=self.calibration.scale * factor**power)

    def told(self, factor: Fraction) -> float:
        """Return the mean log-likelihood by which a draw tells the noise from noise of another scale.

        That is about half of the variance of the log-ratio, which is hardly another if the sampler is wrong.
        """
        found = self.densities(self.outputs, self.calibration) - self.densities(self.outputs, self._off(factor))
        return float(found.var() / 2) if bool(np.isfinite(found).all()) else math.inf

    def _scale(self, to_tell: bool) -> Iterator[str]:
        threshold = -math.log(FALSE_ALARM)
        for factor, words in OFF:
            off = self._off(factor)
            ratio, seen = 0.0, 0
            while abs(ratio) < threshold and seen < MOST_DRAWS:
                if seen == len(self.outputs):
                    if not to_tell:
                        break
                    self.draw(seen)
                new = self.outputs[seen:]
                ratio += float((self.densities(new, self.calibration) - self.densities(new, off)).sum())
                seen = len(self.outputs)
            if ratio <= -threshold:
                yield f"the draws fit noise {words} than claimed exp({-ratio:.3g}) times better than the claimed noise"
            elif ratio < threshold and to_tell:
                yield f"{seen} draws do not tell its noise from noise {words}"

    def _total(self) -> Iterator[str]:
        if self.mechanism.selects:
            size = np.size(self.answer)
            chances = np.exp(self.densities(range(size), self.calibration))
            if abs(chances.sum() - 1) > 1e-6:
                yield f"the probabilities of its {size} candidates add up to {chances.sum():.6g}, not to 1"
            by_score = chances[np.argsort(np.asarray(self.answer).ravel(), kind="stable")]
            if self.mechanism.in_score_order and bool((np.diff(by_score) < -1e-9).any()):
                yield "a candidate with a lower score is likelier to be chosen than one with a higher"

    def _shape(self) -> Iterator[str]:
        from scipy.stats import chi2

        counts, chances = self._cells()
        expected = len(self.outputs) * chances
        if chances.sum() > 1 + 1e-6:
            yield f"the probabilities of {len(chances)} outputs add up to {chances.sum():.6g}"
            return
        likely = expected >= FEWEST_EXPECTED
        rest = (counts[~likely].sum(), len(self.outputs) - expected[likely].sum())
        observed, expected = counts[likely], expected[likely]
        if rest[1] >= FEWEST_EXPECTED:
            observed, expected = np.append(observed, rest[0]), np.append(expected, rest[1])
        if len(observed) < 2:
            return
        statistic = float(((observed - expected) ** 2 / expected).sum())
        if chi2.sf(statistic, len(observed)) < FALSE_ALARM:
            yield f"the draws do not have the stated probabilities (chi-square {statistic:.4g}, {len(observed)} cells)"

    def _cells(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the number of draws in each piece of an interval or single output, with its stated probability.

        No cells, where outputs hardly repeat.
        """
        if isinstance(self.answer, PiecewiseScores):
            breaks = self.answer.breaks
            middles, lengths = (breaks[1:] + breaks[:-1]) / 2, np.diff(breaks)
            piece = np.searchsorted(breaks, self.numbers()[:, 0], side="right") - 1
            chances = np.exp(self.densities(list(middles), self.calibration)) * lengths
            return np.bincount(piece.clip(0, len(lengths) - 1), minlength=len(lengths)), chances
        counts = Counter(map(_key, self.outputs))
        if len(counts) > len(self.outputs) / 4:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        one_each = list({_key(output): output for output in self.outputs}.values())
        chances = np.exp(self.densities(one_each, self.calibration))
        return np.array([counts[_key(output)] for output in one_each]), chances

    def _independence(self) -> Iterator[str]:
        from scipy.stats import spearmanr

        numbers = self.numbers()
        pairs = [("from one draw to the next", numbers[:-1, 0], numbers[1:, 0])]
        if numbers.shape[1] > 1 and self._numeric:
            pairs.append(("between coordinates", numbers[:, 0], numbers[:, 1]))
        for words, one, other in pairs:
            if np.ptp(one) and np.ptp(other) and spearmanr(one, other).pvalue < FALSE_ALARM:
                yield f"the draws are correlated {words}"

    def numbers(self) -> NDArray[np.float64]:
        """Return the outputs as numbers, shape (draws, coordinates). A key that is not shown counts as 0."""
        if isinstance(self.answer, KeyCounts):
            keys = self.answer.keys
            return np.array([[output.get(key, 0) for key in keys] for output in self.outputs], dtype=np.float64)
        return np.array([np.asarray(output, dtype=np.float64).ravel() for output in self.outputs])

    def _promise(self) -> Iterator[str]:
        if not self._numeric:
            return  # its preview is not about numbers near the answer's
        from scipy.stats import binom

        within = self.calibration.preview.within
        answer = np.asarray(self.answer, dtype=np.float64).ravel()
        if self.mechanism.selects:
            errors = answer.max() - answer[[int(output) for output in self.outputs]]
        else:
            errors = np.abs(self.numbers() - answer)[:, 0]
        if math.isnan(within):
            return
        beyond = int((errors > within * (1 + 1e-9)).sum())
        if binom.sf(beyond - 1, len(errors), 1 - WITHIN) < FALSE_ALARM:
            yield f"{beyond} of {len(errors)} errors are beyond the {within:.3g} that its preview promises at 95 %"


def _key(output: Any) -> Any:
    return output.tobytes() if isinstance(output, np.ndarray) else output
