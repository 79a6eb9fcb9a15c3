"""Noise that published programs draw too small, or claim too little for."""

from __future__ import annotations

import math
from fractions import Fraction

import attrs
import numpy as np

import dpframework as dpf
from dpframework.facts.privacy_losses import ByRelation, round_up
from dpframework.mechanisms import DiscreteLaplace, Gaussian, Laplace, Losses, PermuteAndFlip
from dpframework.queries import Norm, Query, Sensitivity
from known_bugs.catalogue import KnownBug, Number, Tool, drawn
from known_bugs.vectors import at_most

HALF = Fraction(1, 2)
HIDDEN = -(10**9)  # stands for no release
NARROWER = "fit noise .* narrower|do not have the stated probabilities|do not tell whether its noise"


@attrs.frozen
class ScaleOfEpsilon(DiscreteLaplace):
    """Draws with the scale epsilon rather than 1 / epsilon."""

    name = "scale-of-epsilon"

    def release(self, answer, calibration, randomness):
        return super().release(answer, attrs.evolve(calibration, scale=self.epsilon**2 * calibration.scale), randomness)


@attrs.frozen
class FloatingLaplace(Laplace):
    """Adds Laplace noise in floating point, whose last bits tell the answer."""

    name = "floating-laplace"

    def release(self, answer, calibration, randomness):
        return answer + randomness.generator.laplace(0, float(calibration.scale), np.shape(answer))


@attrs.frozen
class HalfOfIll(Number):
    """A half for each ill row."""

    name = "half-of-ill"
    declared = (0.5, 0.5)

    def count(self, block, **inputs):
        return np.array([block.codes("ill").sum() / 2])


@attrs.frozen
class RoundsFirst(Laplace):
    """Rounds a real answer to a whole number, and adds integer noise for the change that it had before."""

    name = "rounds-first"

    def lattice_unit(self, facts):
        return Fraction(1)


@attrs.frozen
class RoundsAfter(DiscreteLaplace):
    """Rounds Laplace noise down, and takes it for noise that is symmetric about 0."""

    name = "rounds-after"
    assumptions = ("real-arithmetic",)

    def release(self, answer, calibration, randomness):
        noise = randomness.generator.laplace(0, float(calibration.scale), np.shape(answer))
        return answer + np.floor(noise).astype(np.int64)


@attrs.frozen
class FlipsAsExponential(PermuteAndFlip):
    """Claims for permute-and-flip the rho that a bounded range gives."""

    name = "flips-as-exponential"

    def losses(self, change, scale):
        true = super().losses(change, scale)
        return Losses(true.pure, true.pure.map(lambda epsilon: epsilon**2 / 8))


@attrs.frozen
class VarianceForDeviation(Gaussian):
    """Takes the root of the noise's scale once too often."""

    name = "variance-for-deviation"

    def release(self, answer, calibration, randomness):
        narrow = attrs.evolve(calibration, scale=Fraction(math.sqrt(calibration.scale)))
        return super().release(answer, narrow, randomness)


@attrs.frozen
class DividesAgain(DiscreteLaplace):
    """Divides its noise by a batch of 4, when the answer's change was divided by it before."""

    name = "divides-again"

    def release(self, answer, calibration, randomness):
        return super().release(answer, attrs.evolve(calibration, scale=calibration.scale / 4), randomness)


@attrs.frozen
class NoiseOfNoDegree(DiscreteLaplace):
    """Multiplies its noise by the attributes beyond a network's degree, of which there are none."""

    name = "noise-of-no-degree"
    attributes: int = 3
    degree: int = 3

    def release(self, answer, calibration, randomness):
        return (
            super().release(np.zeros_like(answer), calibration, randomness) * (self.attributes - self.degree) + answer
        )


@attrs.frozen
class BlockSums(Query):
    """The numbers of ill rows of two towns, and the sum of both as a block."""

    name = "block-sums"
    answer_length = 3
    sensitivities = (Sensitivity(Norm.L1, 2, source="a row is in one number and in the block"),)

    def count(self, block, **inputs):
        first, second, _ = np.bincount(block.codes("town"), weights=block.codes("ill"), minlength=3).astype(int)
        return np.array([first, first + second, second])


@attrs.frozen
class SmartSum(DiscreteLaplace):
    """Adds noise to each number, and none to the sum of a block."""

    name = "smart-sum"
    right: bool = False

    def release(self, answer, calibration, randomness):
        output = super().release(answer, calibration, randomness)
        return output if self.right else np.where(np.arange(output.size) == 1, answer, output)

    def log_density(self, answer, output, calibration):
        if self.right:
            return super().log_density(answer, output, calibration)
        answer, output = np.asarray(answer), np.asarray(output)
        if answer.shape != output.shape or (answer.size > 1 and answer[1] != output[1]):
            return -math.inf
        return super().log_density(np.delete(answer, 1), np.delete(output, 1), calibration)


@attrs.frozen
class OneTown(Query):
    """How many rows a town has that may have none."""

    name = "one-town"
    answer_length = 1
    sensitivities = dpf.queries.histogram_sensitivities(1)

    def count(self, block, **inputs):
        return np.array([int((block.codes("town") == 0).sum())])


@attrs.frozen
class Threshold(DiscreteLaplace):
    """Releases a noisy count at or above a threshold, and nothing of a town without a row.

    A town's first row is released with the probability that 1 and noise reach the threshold: a delta, which a claim of
    epsilon alone leaves out. The honest twin releases of a town without a row what reaches the threshold, too.
    """

    name = "threshold"
    right: bool = False
    threshold: int = 5

    def misfit(self, facts):
        """Refuse all but counts of one town."""
        return None if facts.name == OneTown.name else "counts one town"

    def release(self, answer, calibration, randomness):
        noisy = super().release(answer, calibration, randomness)
        return np.where((self.right | (np.asarray(answer) > 0)) & (noisy >= self.threshold), noisy, HIDDEN)

    def log_density(self, answer, output, calibration):
        count, told = int(np.asarray(answer).ravel()[0]), int(np.asarray(output).ravel()[0])
        hidden = not self.right and count <= 0
        if told == HIDDEN:
            return 0.0 if hidden else math.log(at_most(self.threshold - 1 - count, float(calibration.scale)))
        if hidden or told < self.threshold:
            return -math.inf
        return super().log_density(answer, output, calibration)


@attrs.frozen
class ThresholdWithDelta(Threshold):
    """The same with a delta that counts from one step beyond the threshold on; the honest twin's counts from it on.

    At scale 1 and threshold 5 that is 0.0049 instead of 0.0134.
    """

    name = "threshold-with-delta"
    whole: bool = False

    def losses(self, change, scale):
        beyond = self.threshold - (1 if self.whole else 0)
        delta = round_up(float(at_most(-beyond, float(scale))))  # noise is symmetric
        return attrs.evolve(super().losses(change, scale), delta=ByRelation(delta, delta))


def _first_row(mechanism, calibration, relation):
    yield np.array([0]), np.array([1])
    yield np.array([4]), np.array([5])


def _bug(name, had, reference, tool, says, make, *, query=None, **more):
    return KnownBug(name, had, reference, tool, says, drawn(make, query), **more)


DING = "Ding et al. 2018, CCS (StatDP), "
BUGS = [
    _bug(
        "noise of scale epsilon",
        "made for StatDP",
        DING + "histogram 2",
        Tool.SAMPLER,
        NARROWER,
        lambda right: DiscreteLaplace(HALF) if right else ScaleOfEpsilon(HALF),
    ),
    _bug(
        "Laplace noise in floating point",
        "PINQ, Airavat, Fuzz and GUPT",
        "Mironov 2012, CCS",
        Tool.SAMPLER,
        "draws in floating point and does not say so",
        lambda right: Laplace(1) if right else FloatingLaplace(1),
        query=HalfOfIll(),
    ),
    _bug(
        "an answer rounded before integer noise",
        "`rounding` of the geometric mechanism on real answers",
        "Casacuberta et al. 2022, CCS",
        Tool.LOSSES,
        "epsilon: 1 is claimed, .* found: DOES NOT HOLD",
        lambda right: Laplace(1) if right else RoundsFirst(1),
        query=HalfOfIll(),
        pairs=lambda mechanism, calibration, relation: iter([(np.array([0.25]), np.array([0.75]))]),
    ),
    _bug(
        "noise rounded down",
        "geometric noise from rounded Laplace noise",
        "Balcer and Vadhan 2019, J. Privacy and Confidentiality 9(2)",
        Tool.SAMPLER,
        "do not have the stated probabilities",
        lambda right: DiscreteLaplace(1) if right else RoundsAfter(1),
    ),
    _bug(
        "permute-and-flip with the rho of a bounded range",
        "OpenDP 0.15.1, `make_noisy_max`",
        "https://github.com/opendp/opendp/issues/2911",
        Tool.LOSSES,
        "rho .* DOES NOT HOLD",
        lambda right: PermuteAndFlip(1) if right else FlipsAsExponential(1),
    ),
    _bug(
        "a root of the Gaussian scale too many",
        "SmartNoise Core, Gaussian mechanisms",
        "https://github.com/opendp/smartnoise-core/issues/316",
        Tool.SAMPLER,
        NARROWER,
        lambda right: Gaussian(Fraction(1, 18)) if right else VarianceForDeviation(Fraction(1, 18)),
    ),
    _bug(
        "noise with a wrong factor of the batch size",
        "Backpropagation Clipping, 2022",
        "Tramèr et al. 2022, arXiv:2202.12219",
        Tool.SAMPLER,
        NARROWER,
        lambda right: DiscreteLaplace(1) if right else DividesAgain(1),
    ),
    _bug(
        "no noise where the degree is the number of attributes",
        "Synthcity, PrivBayes",
        "arXiv:2602.17454, section 4.3.3",
        Tool.SAMPLER,
        NARROWER,
        lambda right: DiscreteLaplace(1) if right else NoiseOfNoDegree(1),
    ),
    _bug(
        "block sums without noise",
        "made for CheckDP",
        "Wang et al. 2020, CCS (CheckDP), `badsmartsum`",
        Tool.AUDIT,
        "a transcript loses infinitely much",
        lambda right: SmartSum(2, right),
        query=BlockSums(),
    ),
    _bug(
        "a threshold with a part of its delta",
        "OpenDP 0.16.0, `make_laplace_threshold`",
        "https://github.com/opendp/opendp/issues/2922",
        Tool.LOSSES,
        "exact delta beyond epsilon 1: 0.0049.* is claimed, 0.0133.* found: DOES NOT HOLD",
        lambda right: ThresholdWithDelta(1, whole=right),
        query=OneTown(),
        pairs=_first_row,
    ),
    _bug(
        "a threshold whose delta is left out",
        "made from the one above",
        "https://github.com/opendp/opendp/issues/2922",
        Tool.LOSSES,
        "epsilon: 1 is claimed, inf found: DOES NOT HOLD",
        lambda right: Threshold(1, right),
        query=OneTown(),
        pairs=_first_row,
    ),
]
