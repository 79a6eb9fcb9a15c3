"""The tail test: how much probability lies where the realised loss exceeds epsilon, for claims with a delta.

A plan that has no finite pure total (Gaussian noise) claims, for every delta, an epsilon. The delta that belongs to an
epsilon is the expectation of max(0, 1 - exp(epsilon - L)) over the realised loss L of a run (Dwork and Rothblum 2016;
Balle and Wang 2018, Theorem 5). L is exact for each run, so only that expectation is estimated, and bounded from below
by Hoeffding's inequality.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from dpframework.accountant import ZCDPAccountant
from dpframework.facts.errors import InputError
from dpframework.facts.privacy import Relation
from dpframework.facts.schema import Schema
from dpframework.run.miner import Miner
from dpframework.verify.replay import Weigher, difference
from dpframework.verify.search import Search
from dpframework.verify.subject import Subject
from dpframework.verify.tables import Pair, Sizes, changes
from dpframework.verify.transcript import record

FALSE_ALARM = 1e-6
DELTAS = (Fraction(3, 10), Fraction(1, 10), Fraction(3, 100))
MOST_ROWS = 30
TRANSCRIPTS = 8


@final
@attrs.frozen
class Tail:
    """One point of a claim: at most `delta` beyond `epsilon`.

    Attributes
    ----------
    epsilon, delta
        What the plan claims.
    found
        The estimate.
    proved
        Its lower bound, which holds but for a probability of 1e-6.
    """

    epsilon: float
    delta: float
    found: float
    proved: float

    @property
    def holds(self) -> bool:
        """Whether no more than delta is proved."""
        return self.proved <= self.delta


@final
@attrs.frozen
class TailReport:
    """What a tail test found on the pair of tables with the largest losses.

    Attributes
    ----------
    miner
        Its name.
    relation
        The neighbouring relation.
    tails
        One entry a delta.
    runs
        How many runs were replayed.
    one, other
        The tables.
    """

    miner: str
    relation: Relation
    tails: tuple[Tail, ...]
    runs: int
    one: tuple[str, ...]
    other: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every point of the claim holds."""
        return all(tail.holds for tail in self.tails)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        tails = [{**attrs.asdict(tail), "holds": tail.holds} for tail in self.tails]
        return {
            "miner": self.miner,
            "relation": self.relation.value,
            "tails": tails,
            "runs": self.runs,
            "one": list(self.one),
            "other": list(self.other),
            "passed": self.passed,
        }

    def __str__(self) -> str:
        """Write one line a point, and the tables where one does not hold."""
        lines = [
            f"beyond epsilon {tail.epsilon:.4g} at most {tail.delta:g} is claimed, {tail.found:.3g} found: "
            + ("not refuted" if tail.holds else f"DOES NOT HOLD, at least {tail.proved:.3g}")
            for tail in self.tails
        ]
        if not self.passed:
            lines += [f"  one table: {row}" for row in self.one] + [f"  its neighbour: {row}" for row in self.other]
        return "\n".join(lines)


def check_tail(
    miner: Miner, schema: Schema, relation: Relation | str, *, runs: int = 2_000, seed: int = 0
) -> TailReport:
    """Compare how often a miner's runs lose more than epsilon with what its plan claims.

    Parameters
    ----------
    miner
        The miner.
    schema
        What its tables are of.
    relation
        The neighbouring relation.
    runs
        How many transcripts to record and weigh.
    seed
        Of the tables and draws.

    Raises
    ------
    InputError
        If the miner has no finite claim with a delta under the relation.
    """
    relation = Relation.parse(relation)
    subject = Subject(miner, schema, relation)
    points = []
    for delta in DELTAS:
        total = ZCDPAccountant(relation, delta=delta).total(subject.plan)
        if total is None or total.epsilon is None:
            raise InputError(f"miner '{miner.name}' claims no finite epsilon under {relation}, not even with a delta")
        points.append((float(total.epsilon), float(delta)))
    rng = np.random.default_rng(seed)
    one, other = _worst_pair(subject, rng, searched=runs // TRANSCRIPTS).tables
    losses = []
    for _ in range(runs):
        weigher = Weigher(subject, record(subject, one, int(rng.integers(2**31))))
        here, there = weigher.densities(one), weigher.densities(other)
        sign = 1 if math.fsum(here) >= math.fsum(there) else -1
        losses.append(sign * difference(here, there))
    slack = math.sqrt(math.log(len(points) / FALSE_ALARM) / (2 * runs))
    tails = []
    for epsilon, claimed in points:
        found = float(np.mean(np.maximum(0.0, -np.expm1(epsilon - np.maximum(losses, epsilon)))))
        tails.append(Tail(epsilon, claimed, found, max(found - slack, 0.0)))
    describe = subject.universe.describe
    return TailReport(miner.name, relation, tuple(tails), runs, tuple(describe(one)), tuple(describe(other)))


def _worst_pair(subject: Subject, rng: np.random.Generator, searched: int) -> Pair:
    """Return the neighbours that some transcript with wide noise tells apart best: their answers are far apart."""
    sizes = Sizes.of(subject.schema, subject.relation, MOST_ROWS)
    search = Search(changes(subject.universe, subject.relation), subject.universe.kinds, sizes, rng)
    found = []
    for _ in range(TRANSCRIPTS):
        start = search.random_pair()
        transcript = record(subject, start.tables[0], int(rng.integers(2**31)), flattening=4)
        found.append(search.climb(Weigher(subject, transcript).loss, start, max(searched, 10)))
    return max(found, key=lambda one: one.loss).pair
