"""The sparse vectors and noisy maxima of Lyu, Su and Li (2017), Ding et al. (2018) and CheckDP (2020).

Each noise is integer here, so that the probability of every outcome is a sum over the noise of the threshold. An
outcome is the position of a tuple in a list: for each count that was looked at, None if it is below, else what is told.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import attrs
import numpy as np

import dpframework as dpf
from dpframework.mechanisms import PureMechanism
from dpframework.queries import CandidateScores, Norm, QueryFacts, Sensitivity
from known_bugs.catalogue import ADD, KnownBug, Tool, drawn

FURTHEST = 60  # scales of the noise that a probability is added up over
LARGEST = 20  # to which counts are clamped: a sum over the noise of the threshold reaches all of them
MOST = 2  # counts that are told lie between its negative and it


@attrs.frozen
class UpAndDown(CandidateScores):
    """The number of ill rows for the first of some counts, its negative for the others, and zeros after them."""

    name = "up-and-down"
    integer = True
    counts: int = 4
    up: int = 2
    size: int = 16

    @property
    def answer_length(self):
        return self.size

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.LINF, 1, 1, source="a row is ill or not"),)

    def candidates(self, **inputs):
        return range(self.size)

    def count(self, block, **inputs):
        return int(block.codes("ill").sum()) * self.signs

    @property
    def signs(self):
        """How an ill row moves each number."""
        return np.repeat([1, -1, 0], [self.up, self.counts - self.up, self.size - self.counts])


@functools.cache
def outcomes(counts: int, cutoff: int, told: tuple[int, ...]) -> tuple[tuple[Any, ...], ...]:
    """Return what a sparse vector may put out for some counts."""
    found: list[tuple[Any, ...]] = []

    def extend(before: tuple[Any, ...], hits: int) -> None:
        if len(before) == counts or hits == cutoff:
            found.append(before)
            return
        extend((*before, None), hits)
        for one in told:
            extend((*before, one), hits + 1)

    extend((), 0)
    return tuple(found)


def at_most(bound: Any, scale: float) -> Any:
    """Return Pr[noise <= bound] for integer Laplace noise, or none at scale 0."""
    bound = np.asarray(bound, dtype=np.float64)
    if not scale:
        return (bound >= 0).astype(float)
    q = math.exp(-1 / scale)
    return np.where(bound < 0, q ** -np.minimum(bound, 0) / (1 + q), 1 - q ** (np.maximum(bound, 0) + 1) / (1 + q))


def at(place: Any, scale: float) -> Any:
    """Return Pr[noise = place]."""
    place = np.asarray(place, dtype=np.float64)
    return np.exp(-np.abs(place) / scale) * math.tanh(1 / (2 * scale)) if scale else (place == 0).astype(float)


def between(low: Any, high: Any, scale: float) -> Any:
    """Return Pr[low <= noise <= high]."""
    low, high = np.broadcast_arrays(low, high)
    mirrored = low > 0  # the difference of two small probabilities, rather than of two near 1
    one, other = np.where(mirrored, -low, high), np.where(mirrored, -high, low)
    return np.where(high < low, 0.0, at_most(one, scale) - at_most(other - 1, scale)).clip(0)


@attrs.frozen
class _Outcomes(PureMechanism):
    """Puts out the position of an outcome, for queries with as many candidates as there are outcomes."""

    norm = Norm.LINF
    selects = True
    in_score_order = False
    needs_length = False

    def misfit(self, facts: QueryFacts) -> str | None:
        """Refuse queries of another length."""
        return None if facts.answer_length == len(self.outcomes) else "needs one candidate for each outcome"

    def change(self, facts):
        return facts.sensitivity(Norm.LINF).change

    def clamped(self, answer, calibration):
        """Return the counts that are looked at, clamped, which moves no two of them further apart."""
        return calibration.on_lattice(answer)[: self.counts].clip(-LARGEST, LARGEST)

    def log_density(self, answer, output, calibration):
        chance = self.chance(self.clamped(answer, calibration), self.outcomes[int(output)], calibration)
        return math.log(chance) if chance > 0 else -math.inf

    def preview(self, calibration):
        return dpf.mechanisms.Preview(math.nan, math.nan, "not known")


@attrs.frozen
class SparseVector(_Outcomes):
    """Says of each count whether it is above 0, both with noise, and stops after some that are.

    Attributes
    ----------
    counts
        How many counts it looks at.
    threshold, noise, fresh
        The scales of the noise on the threshold, on the counts, and on the counts that are told, in sensitivities over
        epsilon.
    cutoff
        After how many counts above it stops.
    tells
        What it tells of a count above: "nothing", the "count" that was compared, one with "fresh" noise, or the "gap"
        to the noisy threshold.
    """

    name = "sparse-vector"
    counts: int = 4
    threshold: float = 2
    noise: float = 4
    cutoff: int = 1
    tells: str = "nothing"
    fresh: float = 3

    @property
    def told(self) -> tuple[int, ...]:
        if self.tells == "nothing":
            return (1,)
        return tuple(range(0 if self.tells == "gap" else -MOST, MOST + 1))

    @property
    def outcomes(self) -> tuple[tuple[Any, ...], ...]:
        return outcomes(self.counts, self.cutoff, self.told)

    def release(self, answer, calibration, randomness):
        scale, answer = float(calibration.scale), self.clamped(answer, calibration)
        (threshold,) = _noise(randomness, 1, self.threshold * scale)
        noisy = answer + _noise(randomness, self.counts, self.noise * scale)
        fresh = answer + _noise(randomness, self.counts, self.fresh * scale)
        outcome: list[Any] = []
        told = {"nothing": np.ones_like(noisy), "count": noisy, "fresh": fresh, "gap": noisy - threshold}[self.tells]
        for count, tells in zip(noisy, told, strict=True):
            outcome.append(int(np.clip(tells, self.told[0], self.told[-1])) if count >= threshold else None)
            if len(outcome) - outcome.count(None) == self.cutoff:
                break
        return self.outcomes.index(tuple(outcome))

    def chance(self, answer, outcome, calibration):
        """Return the probability of an outcome."""
        scale = float(calibration.scale)
        reach = math.ceil(FURTHEST * max(self.threshold, self.noise) * scale)
        z = np.arange(-reach, reach + 1)
        chances = at(z, self.threshold * scale)
        noise = self.noise * scale
        for count, one in zip(answer, outcome, strict=False):
            chances = chances * (at_most(z - count - 1, noise) if one is None else self.hit(z, count, one, scale))
        return float(chances.sum())

    def hit(self, z, count, one, scale):
        noise, first, last = self.noise * scale, one == self.told[0], one == self.told[-1]
        if self.tells == "nothing":
            return at_most(count - z, noise)
        if self.tells == "count":
            low = z if first else np.maximum(z, one)
            return between(low - count, np.full_like(z, 10**6 if last else one - count), noise)
        if self.tells == "gap":
            return at_most(count - z - one, noise) if last else at(z + one - count, noise)
        shown = at_most(one - count, self.fresh * scale) if first else at(one - count, self.fresh * scale)
        shown = at_most(count - one, self.fresh * scale) if last else shown
        return at_most(count - z, noise) * shown


@attrs.frozen
class NoisyMaximum(_Outcomes):
    """The position of the largest noisy count or, by mistake, the noisy count itself."""

    name = "noisy-maximum"
    counts: int = 4
    right: bool = True
    one_sided: bool = False

    @property
    def outcomes(self):
        return tuple(range(self.counts)) if self.right else tuple(range(-MOST, MOST + 1))

    def release(self, answer, calibration, randomness):
        noise = _noise(randomness, self.counts, 2 * float(calibration.scale))
        if self.one_sided:
            noise = _noise_above(randomness, self.counts, 2 * float(calibration.scale))
        noisy = self.clamped(answer, calibration) + noise
        return int(np.argmax(noisy)) if self.right else int(np.clip(noisy.max(), -MOST, MOST)) + MOST

    def chance(self, answer, outcome, calibration):
        """Return the probability of an outcome, added up over the largest noisy count."""
        scale = 2 * float(calibration.scale)
        reach = math.ceil(FURTHEST * scale)
        z = int(max(answer)) + np.arange(-reach, reach + 1)
        below = np.array([self.at_most(z - count, scale) for count in answer])
        if not self.right:
            largest = below.prod(axis=0)
            chances = np.diff(largest, prepend=0)
            kept = z <= outcome if outcome == -MOST else z >= outcome if outcome == MOST else z == outcome
            return float(chances[kept].sum())
        strictly = np.array([self.at_most(z - count - 1, scale) for count in answer])
        others = [strictly[k] if k < outcome else below[k] for k in range(self.counts) if k != outcome]
        own = below[outcome] - strictly[outcome]
        return float((own * np.prod(others, axis=0)).sum())

    def at_most(self, bound, scale):
        return np.where(bound < 0, 0.0, -np.expm1(-(bound + 1) / scale)) if self.one_sided else at_most(bound, scale)


def _noise(randomness: Any, size: int, scale: float) -> Any:
    return randomness.discrete_laplace(size, scale) if scale else np.zeros(size, dtype=np.int64)


def _noise_above(randomness: Any, size: int, scale: float) -> Any:
    """Return noise k >= 0 of probability proportional to exp(-k / scale): integer Laplace noise, given that it is."""
    found: list[int] = []
    while len(found) < size:
        found += [int(k) for k in randomness.discrete_laplace(size, scale) if k >= 0]
    return np.array(found[:size])


def _bug(name, had, reference, wrong, right, *, up=2):
    def asked(correct: bool) -> UpAndDown:
        return UpAndDown(wrong.counts, up, len((right if correct else wrong).outcomes))

    def pairs(mechanism, calibration, relation):
        signs = UpAndDown(wrong.counts, up, len(mechanism.outcomes)).signs
        for ill in (0, 5):
            yield ill * signs, (ill + 1) * signs

    def example(correct: bool) -> dpf.Example:
        return drawn(lambda right_one: right if right_one else wrong, asked(correct))(correct)

    says = r"epsilon: 1 is claimed, .* found: DOES NOT HOLD"
    return KnownBug(name, had, reference, Tool.LOSSES, says, example, ADD, pairs)


LYU = "Lyu, Su and Li 2017, PVLDB 10(6), "
CHECKDP = "Wang et al. 2020, CCS (CheckDP), "
BUGS = [
    _bug(
        "a sparse vector tells the noisy count that it compared",
        "Roth's lecture notes 2011",
        LYU + "algorithm 3",
        SparseVector(1, noise=2, tells="count"),
        SparseVector(1, threshold=3, noise=6, fresh=3, tells="fresh"),
        up=3,
    ),
    _bug(
        "a sparse vector whose noise does not grow with the cut-off",
        "Lee and Clifton 2014, frequent itemsets",
        LYU + "algorithm 4; " + CHECKDP + "`badsparsevector3`",
        SparseVector(1, threshold=4, noise=4 / 3, cutoff=2),
        SparseVector(1, noise=8, cutoff=2),
    ),
    _bug(
        "a sparse vector without noise on the counts",
        "Stoddard et al. 2014, feature selection",
        LYU + "algorithm 5; " + CHECKDP + "`badsparsevector1`",
        SparseVector(1, noise=0, cutoff=4),
        SparseVector(1, noise=16, cutoff=4),
    ),
    _bug(
        "a sparse vector without a cut-off",
        "Chen et al. 2015, Bayesian networks",
        LYU + "algorithm 6; " + CHECKDP + "`badsparsevector2`",
        SparseVector(1, counts=6, noise=2, cutoff=6),
        SparseVector(1, counts=6, noise=24, cutoff=6),
        up=3,
    ),
    _bug(
        "a sparse vector tells the count, where the gap is free",
        "made for CheckDP",
        CHECKDP + "`badgapsparsevector`",
        SparseVector(1, counts=6, tells="count"),
        SparseVector(1, counts=6, tells="gap"),
        up=5,
    ),
    _bug(
        "a noisy maximum tells its value, Laplace noise",
        "made for StatDP and CheckDP",
        "Ding et al. 2018, CCS, noisy max 1b; " + CHECKDP + "`badnoisymax`",
        NoisyMaximum(1, right=False),
        NoisyMaximum(1),
        up=4,
    ),
    _bug(
        "a noisy maximum tells its value, exponential noise",
        "made for StatDP",
        "Ding et al. 2018, CCS, noisy max 2b",
        NoisyMaximum(1, right=False, one_sided=True),
        NoisyMaximum(1, one_sided=True),
        up=4,
    ),
]
