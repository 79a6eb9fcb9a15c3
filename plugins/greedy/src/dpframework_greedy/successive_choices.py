"""Choices made one after another, each by the exponential mechanism, from candidates that change with each choice.

**What is released.** A pool holds groups of candidates, each candidate with a score. A round chooses one of all its
candidates with probability proportional to exp(score / scale). The choice is released and changes the pool, so the pool
of a round is a function of the releases before it. So every round is an exponential mechanism that costs spread /
scale, and `rounds` of them cost `rounds` times that in pure epsilon. Each has bounded range, so in zCDP it costs rho =
(spread / scale)**2 / 8 (McSherry and Talwar 2007; Cesar and Rogers 2021, Lemma 3.4).

If a chosen candidate leaves the pool, and nothing else changes it, this is one-shot top-k peeling: adding Gumbel noise
once and taking the `rounds` largest has the same distribution (Durfee and Rogers 2019, Lemma 4.2).

**What is reused, and why that is sound.** Serenade (Karjalainen, Galbrun and Miettinen 2022) remembers, for each
redescription, its best extension with that extension's key, and lets it race again in later rounds. The paper's Lemma 2
takes that for a fresh draw, which it is not. A key that lost a round is known to be below the winner's. Nothing is
known of the keys of extensions that entered later. A key is a function of an arrival time, which is exponential with
rate w = exp(score / scale). By lack of memory, a time that has not arrived by now is distributed as now plus a fresh
time. So remembered and new times race fairly only if the clock of each candidate starts when it enters the pool.
Then, and only then, each round is a fresh exponential mechanism. So reuse cannot save budget. It can only save time,
and for that less is enough. Let W(g) be the sum of the weights w of a group g. For a candidate c of g,

        Pr[c] = (W(g) / sum of all W) (w(c) / W(g)) = w(c) / sum of all w,

    so a round may choose a group by W, and then a candidate of that group by w. W is a function of the rows and of
    releases, and not a draw. So it may be remembered from round to round as long as its group stays, and no claim
    depends on how long. Both draws of a round are fresh. Only the chosen group has changed after a round, so only its W
    is computed anew.

**Rounding.** Scores are rounded to an integer lattice of 2**-20 of their sensitivity, and so is the logarithm of W.
Then both draws are exact (OpenDP's noisy maximum with Gumbel noise). Each of the two roundings moves a log-probability
by at most half a lattice step for the candidate and half for the normalizer, on either of two neighbouring tables. That
makes 4 steps in all, and 12 more are allowed for evaluation in floating point.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import ByRelation, InputError, positive, whole_number
from dpframework.mechanisms import BoundedRange, Calibration, Losses, Noise, Preview, Randomness
from dpframework.queries import QueryFacts

Lattice: TypeAlias = "NDArray[np.int64]"
#: The rounding error of a difference of two log-probabilities, as a share of the sensitivity (see the module).
ROUNDING = Fraction(16, 2**20)


@attrs.frozen(cache_hash=True)
class Group:
    """A group of candidates in a pool, described by public values.

    Attributes
    ----------
    number
        The number that outputs name the group by. No two groups of a pool have the same number.
    what
        A description of its candidates. Groups with the same `number` and the same `what` have the same candidates.
    """

    number: int
    what: Hashable = None


class CandidatePool(abc.ABC):
    """Candidates in groups, with their scores on the private rows. A query for successive choices answers with a pool.

    A pool is private. Its groups, the number of a group's candidates, and the pool after a choice are functions of
    public inputs and of choices alone.
    """

    @abc.abstractmethod
    def groups(self) -> Sequence[Group]:
        """Return the groups of this round."""

    @abc.abstractmethod
    def log_weights(self, groups: Sequence[Group], unit: float, scale: float) -> Lattice:
        """Return scale ln(sum of exp(score / scale)) for each of some groups, in lattice steps of `unit`."""

    @abc.abstractmethod
    def scores(self, group: Group, unit: float) -> tuple[Lattice, Lattice]:
        """Return the positions of a group's candidates, and their scores, in lattice steps of `unit`."""

    @abc.abstractmethod
    def after(self, group: Group, position: int) -> CandidatePool:
        """Return the pool of the next round, after a candidate was chosen."""


@final
@attrs.frozen
class SuccessiveExponential(BoundedRange):
    """Several choices one after another, each by the exponential mechanism among the candidates of its round.

    An output has a row for each round: the number of the chosen group, and the position of the candidate in it.

    Attributes
    ----------
    rounds
        The number of choices. The epsilon is that of all choices together.
    max_age
        For how many rounds the weight of a group is remembered. The distribution of outputs does not depend on it.
    within
        The distance from the best score up to which a choice is of use. The preview says how many choices the epsilon
        pays for within this distance.
    """

    name: ClassVar[str] = "successive-exponential"
    rounds: int = attrs.field(default=1, validator=whole_number())
    max_age: int = attrs.field(default=40, validator=whole_number(0))
    within: Fraction = attrs.field(default=Fraction(1, 2), converter=positive)

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return the spread of the scores with their rounding, multiplied by the number of rounds."""
        return super().change(facts).map(lambda spread: spread * (1 + ROUNDING) * self.rounds)

    def losses(self, change: ByRelation, scale: Fraction) -> Losses:
        """Return `rounds` times spread / scale as pure epsilon, and `rounds` times an eighth of its square as rho."""
        total = super().losses(change, scale)
        return Losses(total.pure, total.zcdp.map(lambda rho: rho / self.rounds))

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> NDArray[np.int64]:
        """Draw a group by its weight, then one of its candidates, in each round."""
        pool, unit, scale = _pool(answer, calibration), float(calibration.unit), calibration.lattice_scale
        chosen = np.zeros((self.rounds, 2), dtype=np.int64)
        weight_cache = _WeightCache(self.max_age)
        for k in range(self.rounds):
            groups = pool.groups()
            weights = weight_cache.log_weights(pool, groups, unit, scale)
            group = groups[randomness.noisy_max(weights, scale, Noise.GUMBEL)]
            positions, scores = pool.scores(group, unit)
            position = int(positions[randomness.noisy_max(scores, scale, Noise.GUMBEL)])
            chosen[k] = group.number, position
            pool = pool.after(group, position)
        return chosen

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the sum, over the rounds, of the log-probabilities of the group and of its candidate."""
        pool, unit, scale = _pool(answer, calibration), float(calibration.unit), calibration.lattice_scale
        if np.shape(output) != (self.rounds, 2):
            return -math.inf
        weight_cache = _WeightCache(self.max_age)
        density = 0.0
        for number, position in np.asarray(output).tolist():
            groups = pool.groups()
            numbers = [group.number for group in groups]
            if number not in numbers:
                return -math.inf
            k = numbers.index(number)
            weights = weight_cache.log_weights(pool, groups, unit, scale)
            positions, scores = pool.scores(groups[k], unit)
            at = np.flatnonzero(positions == position)
            if not len(at):
                return -math.inf
            density += log_share(weights, k, scale) + log_share(scores, at.item(), scale)
            pool = pool.after(groups[k], position)
        return density

    def preview(self, calibration: Calibration) -> Preview:
        """Bound how far each choice is from the best score (McSherry and Talwar 2007, Theorem 6)."""
        scale, size = float(calibration.scale), max(calibration.facts.answer_length or 1, 2)
        expected, within = scale * math.log(size), scale * math.log(20 * size)
        each = "" if self.rounds == 1 else f"{self.rounds} choices, each "
        text = f"{each}a score within {within:.3g} of the best of {size} (95 %)"
        if within > self.within:
            carried = math.floor(self.rounds * float(self.within) / within)
            number = {0: "no choice", 1: "one choice"}.get(carried, f"{carried} choices")
            text += f"; this epsilon is enough for {number} within {float(self.within):g}"
        return Preview(expected, within, text)


def log_share(logs: Lattice, position: int, scale: float) -> float:
    """Return the logarithm of exp(logs[position] / scale), divided by the sum of exp(logs / scale)."""
    relative = (logs - logs.max()) / scale
    return float(relative[position] - np.log(np.exp(relative).sum()))


class _WeightCache:
    """A cache of the log-weights of groups that stay in the pool."""

    def __init__(self, max_age: int) -> None:
        self._max_age = max_age
        self._known: dict[Group, tuple[int, int]] = {}
        self._round = 0

    def log_weights(self, pool: CandidatePool, groups: Sequence[Group], unit: float, scale: float) -> Lattice:
        """Return the log-weights of a round's groups, computing those that are new or too old."""
        self._round += 1
        self._known = {
            group: self._known[group]
            for group in groups
            if group in self._known and self._round - self._known[group][0] <= self._max_age
        }
        new = [group for group in groups if group not in self._known]
        if new:
            found = pool.log_weights(new, unit, scale).tolist()
            self._known.update({group: (self._round, weight) for group, weight in zip(new, found, strict=True)})
        return np.array([self._known[group][1] for group in groups], dtype=np.int64)


def _pool(answer: Any, calibration: Calibration) -> CandidatePool:
    if not isinstance(answer, CandidatePool):
        raise InputError(
            f"the query '{calibration.facts.text}' must answer with a CandidatePool for successive choices"
        )
    return answer
