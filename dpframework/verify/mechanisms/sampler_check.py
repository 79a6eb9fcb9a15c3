"""Sampler tests, which compare a mechanism's draws with its log-density at its claimed scale.

A replay audit computes losses from the log-density of outputs. So the log-density must be right, which is tested here.
The draws are for probes, made-up answers that show the noise well. Every test refuses a correct sampler with a
probability of at most 1e-6. A noise scale that is 30 % off, by a factor of 1.3 up or down, is accepted with at most
that probability.

If the noise is much larger than the differences within an answer, millions of draws would be needed to find a scale
that is 30 % off. Draws for such an answer are tested twice. The first test, with the noise as it is, finds noise that
is far too small. The second test declares a smaller sensitivity and keeps the mechanism's privacy parameter. The noise
is then smaller, and the test finds a scale that is 30 % off (see `_sharpen`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs

from dpframework.facts.errors import InputError
from dpframework.mechanisms import Mechanism
from dpframework.mechanisms.randomness import (
    GeneratorNotHandedError,
    Randomness,
    SeededRandomness,
    SystemRandomness,
)
from dpframework.verify.mechanisms.long_answer_and_many_candidate_checks import other_amount_problems
from dpframework.verify.mechanisms.noise_shape_check import noise_shape_problems_at_other_amounts
from dpframework.verify.mechanisms.output_keys import puts_out_numbers
from dpframework.verify.mechanisms.probe_query_answers import (
    BELOW,
    FAR_LARGER,
    Probe,
    probes,
    probes_of_one,
    with_changes,
    with_moved_answer,
    with_scaled_sensitivity,
    with_single_changes,
)
from dpframework.verify.mechanisms.randomness_checks import disagreement, draw_problems
from dpframework.verify.mechanisms.release_failure_check import MechanismFailedError, takes_answer
from dpframework.verify.mechanisms.sampler_statistics import OFF, DrawnOutputs, noise_size
from dpframework.verify.problem_report_base import ProblemReport
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import with_other_parameters

TRIED = 500  # how many draws are made to see how well an answer shows the noise
TELLING = 0.01  # the log-likelihood ratio that one draw should give: 1400 draws then reach a probability of 1e-6
FEW = 1_000  # how many draws are made, at most, with another value of one of the mechanism's own parameters
MOST_HALVINGS = 16  # how many sensitivities are tried, each half of the one before


@final
@attrs.frozen
class SamplerReport(ProblemReport):
    """The findings of the sampler tests for one mechanism.

    Attributes
    ----------
    mechanism
        The name of the mechanism.
    tested
        The tests that were made, one entry for each probe, with the sources of randomness.
    wrong
        The problems that were found, one sentence for each.
    draws
        How many outputs were drawn.
    """

    mechanism: str
    tested: tuple[str, ...]
    wrong: tuple[str, ...]
    draws: int

    def __str__(self) -> str:
        """Write the verdict and the problems."""
        if self.passed:
            return f"{self.mechanism}: draws what it states ({self.draws} draws; {'; '.join(self.tested)})"
        return "\n".join(f"{self.mechanism}: {what}" for what in self.wrong)


def check_sampler(
    mechanism: Mechanism,
    *,
    given: Sequence[Probe] | None = None,
    beside: Sequence[Probe] = (),
    settings: bool = True,
    sources: Sequence[Randomness] | None = None,
    draws: int = 2_000,
) -> SamplerReport:
    """Test a mechanism's draws against its log-density and its preview, the bound on errors that it states beforehand.

    - Assumptions: the mechanism asks for NumPy's generator only if it assumes `real-arithmetic`.
    - Scale: the likelihood ratio to a scale that is 30 % larger or smaller must exceed 1e6. By Ville's inequality it
      falls below 1e-6 for a correct sampler with a probability of at most 1e-6. With at most the same probability it
      exceeds 1e6 for a sampler whose scale is off.
    - Shape: the draws fit the stated probabilities, if outputs repeat or the density is piecewise constant. The noise
      of numbers fits the stated distribution function. All sources of randomness give the same distribution.
    - Probabilities: they add up to 1 over candidates, and to at most 1 over the outputs that were drawn. A candidate
      with a higher score is not less likely.
    - Independence: there is no correlation from one draw to the next, between coordinates, or between answers that are
      drawn together.
    - Source: the same randomness gives the same draws.
    - Density: it covers all of the output, so that the probabilities of different outputs add up to at most 1.
    - Range and length: the noise is not cut off. For 4096 numbers it has the same distribution from the first to the
      last, does not repeat, and is independent. Of 4096 candidates none is left out. Short answers are tested, too.
    - Amounts: with a 256th and with 256 times as much to spend, the noise has the claimed scale and shape.
    - Preview: 95 % of errors lie within its bound. Mean and mean square exceed the stated ones by a tenth at most.

    Parameters
    ----------
    mechanism
        The mechanism.
    given
        The probes to draw for. By default, the usual probes that the mechanism serves.
    beside
        Further probes that the mechanism may serve, such as a plan's own answers. Few draws are made for these.
    settings
        Whether to draw in unusual settings, too, such as other values of the mechanism's own parameters and, without
        `given`, another sensitivity, relation and unit, the counts of very many rows, and a table of numbers.
    sources
        The sources of randomness; by default the operating system's and a seeded one.
    draws
        How many outputs to draw for each probe and source. More are drawn if these do not yet decide about the scale.

    Raises
    ------
    InputError
        If the mechanism serves none of the probes.
    """
    tests = _SamplerTests(mechanism, sources or (SystemRandomness(), SeededRandomness(1)), draws)
    try:
        tests.test_all(given, settings=settings)
        for probe in beside:
            if serves(mechanism, probe):
                tests.test(probe, to_tell=False)
    except GeneratorNotHandedError as error:
        return SamplerReport(mechanism.name, (), (str(error),), 0)
    except MechanismFailedError as error:
        tests.wrong.append(str(error))
    return SamplerReport(mechanism.name, tuple(tests.tested), tuple(tests.wrong), tests.drawn)


@final
class _SamplerTests:
    """The tests of one mechanism, and their findings so far."""

    def __init__(self, mechanism: Mechanism, sources: Sequence[Randomness], draws: int) -> None:
        self._mechanism, self._sources, self._draws = mechanism, sources, draws
        self.wrong: list[str] = []
        self.tested: list[str] = []
        self.drawn = 0

    def test_all(self, given: Sequence[Probe] | None, *, settings: bool) -> None:
        """Draw for each probe that the mechanism serves, by default for the usual probes.

        With `settings`, draw for each usual probe also after all changes of `CHANGES` (see `with_changes`), and at a
        far smaller and a far larger epsilon or rho.
        """
        mechanism, changed_too = self._mechanism, settings and given is None
        if given is None:
            given = probes() if any(serves(mechanism, probe) for probe in probes()) else probes_of_one()
        served = [probe for probe in given if serves(mechanism, probe)]
        if not served:
            raise InputError(
                f"mechanism '{mechanism.name}' serves none of the probes; give one with given=[Probe(...)]"
            )
        for probe in served:
            # If the noise is much larger than the probe's scores, its scale shows only with a smaller sensitivity.
            sharp = _sharpen(self._mechanism, probe)
            sample = self.test(probe, to_tell=sharp is probe)
            scale = noise_size(self._mechanism, sample.calibration)
            found = draw_problems(self._mechanism, sample.answer, sample.calibration, scale)
            self.wrong += [f"{probe.facts.text}: {what}" for what in found]
            if sharp is not probe:
                self.test(sharp, to_tell=True, setting=" (a smaller sensitivity)")
            if changed_too and not self.wrong:
                self._test_changed(probe)
            if changed_too and not self.wrong:
                for test in (other_amount_problems, noise_shape_problems_at_other_amounts):
                    found = test(self._mechanism, sample.answer, sample.calibration)
                    self.wrong += [] if self.wrong else [f"{probe.facts.text}, {what}" for what in found]
            if settings and not self.wrong:
                self._test_own_parameters(probe)

    def _test_own_parameters(self, probe: Probe) -> None:
        """Draw a few outputs for a probe with other values of the mechanism's own parameters."""
        for how, other in with_other_parameters(self._mechanism):
            if serves(other, probe):
                sample = DrawnOutputs(other, probe, SeededRandomness(22))
                sample.draw(min(FEW, self._draws))
                self.drawn += len(sample.outputs)
                self.wrong += [f"{probe.facts.text}, with {how}: {what}" for what in sample.problems(to_tell=False)]

    def _test_changed(self, probe: Probe) -> None:
        """Draw for a probe with all changes of `CHANGES`, and for one with a far larger sensitivity.

        If the changes together fail, report those that fail alone.
        """
        mechanism = self._mechanism
        other = with_changes(probe, lambda changed: serves(mechanism, changed))
        before = len(self.wrong)
        self.test(other, to_tell=False, setting=" in another setting")
        if len(self.wrong) == before:
            below = with_moved_answer(probe, -BELOW)
            if below is not probe and serves(mechanism, below):
                # Counts are never below 0, so a mechanism for counts may put out 0 there.
                self.test(below, to_tell=False, setting=", all far below 0", promised=False)
            far = with_scaled_sensitivity(probe, FAR_LARGER)
            if not mechanism.selects and serves(mechanism, far):
                calibration = far.calibrate(mechanism)
                assert calibration is not None  # `serves` has checked that
                # Only numbers are drawn. Other outputs may have densities that take long to compute for wide noise.
                if puts_out_numbers(mechanism, far.answer(noise_size(mechanism, calibration)), calibration):
                    self.test(far, to_tell=False, setting=f", a sensitivity of {FAR_LARGER:,}")
            return
        together = self.wrong[before:]
        del self.wrong[before:]
        for single in with_single_changes(probe):
            if serves(mechanism, single):
                self.test(single, to_tell=False)
        self.wrong += [] if len(self.wrong) > before else together

    def test(self, probe: Probe, *, to_tell: bool, setting: str = "", promised: bool = True) -> DrawnOutputs:
        """Draw for one probe from each source of randomness, and return the outputs of the last source.

        `DrawnOutputs.problems` explains `to_tell` and `promised`. `setting` is added to the probe's text in messages.
        """
        text, samples = f"{probe.facts.text}{setting}", []
        for source in self._sources:
            sample = DrawnOutputs(self._mechanism, probe, source)
            sample.draw(self._draws)
            found = sample.problems(to_tell=to_tell, promised=promised)
            self.wrong += [f"{text}, {sample.source} randomness: {what}" for what in found]
            samples.append(sample)
            self.drawn += len(sample.outputs)
        self.tested.append(f"{text}, {' and '.join(sample.source for sample in samples)} randomness")
        if len(samples) > 1 and not self.wrong:
            found = disagreement([(one.source, one.numbers()) for one in samples])
            self.wrong += [f"{text}: {what}" for what in found]
        return samples[-1]


def serves(mechanism: Mechanism, probe: Probe) -> bool:
    """Tell whether a mechanism can draw for the answer of a probe."""
    declared = {sensitivity.norm for sensitivity in probe.facts.sensitivities}
    if mechanism.norm not in declared or mechanism.misfit(probe.facts) is not None:
        return False
    calibration = probe.calibrate(mechanism)
    return calibration is not None and takes_answer(
        mechanism, probe.answer(noise_size(mechanism, calibration)), calibration
    )


def _sharpen(mechanism: Mechanism, probe: Probe) -> Probe:
    """Return a probe that shows the noise well: with the declared sensitivity, or with half, a quarter and so on of it.

    If no sensitivity makes the draws show the scale well enough, return the probe whose draws show it best.
    """
    found: list[tuple[float, Probe]] = []
    for halvings in range(MOST_HALVINGS):
        smaller = with_scaled_sensitivity(probe, Fraction(1, 2**halvings)) if halvings else probe
        if not serves(mechanism, smaller):
            break
        sample = DrawnOutputs(mechanism, smaller, SeededRandomness(0))
        sample.draw(TRIED)
        found.append((min(sample.evidence(factor) for factor, _ in OFF), smaller))
        if found[-1][0] >= TELLING:
            return smaller
    return max(found, key=lambda one: one[0])[1] if found else probe
