"""The tail test, which estimates the delta at a claimed epsilon, and compares it with the claimed delta.

A plan without a finite pure total, such as one with Gaussian noise, claims an epsilon for every delta. The delta at an
epsilon is the smallest delta for which (epsilon, delta)-privacy holds between two tables. It is the expectation of
max(0, 1 - exp(epsilon - L)) over runs on the first table (Dwork and Rothblum 2016; Balle and Wang 2018, Theorem 5).
Here L is the realised loss of a run: the log-density of its outputs on the first table, minus that on the second.
In messages, "probability beyond epsilon" means the delta at that epsilon. L is exact for each run. So only the
expectation is estimated, and is bounded from below by Hoeffding's inequality.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Amount, Relation, exact
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.run.miner_base_and_examples import Miner
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.neighbour_pair_search import Search
from dpframework.verify.miners.replay_on_other_table import Weigher, difference
from dpframework.verify.miners.transcript import record
from dpframework.verify.queries.large_tables import pairs_of_many
from dpframework.verify.tables.neighbours import Rows, Sizes, changes

FALSE_ALARM = 1e-6  # the largest probability with which tests refuse a claim that is true
DELTAS = tuple(Fraction(text) for text in ("0.3", "0.1", "0.03", "0.01", "0.003", "0.001"))
POINTS = 3  # how many epsilons above 0 are tested, at the largest deltas, where runs tell most
FEWEST = 200  # the fewest runs, however little time there is
MOST_ROWS = 30  # the most rows that two neighbours share, except for very many equal rows
RUNS_PER_PAIR = 8  # the search for the tables tries one pair for every 8 runs of the test
RECORDED = 4  # how many runs estimate the mean loss on a pair of tables
HALVINGS = 40  # how often an interval that holds an epsilon is halved


@final
@attrs.frozen
class Tail:
    """One point of a claim: the delta at `epsilon` is at most `delta`.

    Attributes
    ----------
    epsilon, delta
        The numbers that the plan claims.
    found
        The estimate of the delta at `epsilon`.
    proved
        A lower bound on the delta at `epsilon`. It is wrong with a probability of at most 1e-6.
    needed
        The smallest epsilon at which the estimated delta is at most `delta`.
    charged_by
        A text that names the plugin's accountant with this total; empty for the built-in accountants.
    """

    epsilon: float
    delta: float
    found: float
    proved: float
    needed: float
    charged_by: str = ""

    @property
    def tightness(self) -> float:
        """The epsilon `needed`, divided by the claimed epsilon; NaN if the claimed epsilon is 0."""
        return self.needed / self.epsilon if self.epsilon else math.nan

    @property
    def holds(self) -> bool:
        """Whether the lower bound is at most delta."""
        return self.proved <= self.delta


@final
@attrs.frozen
class TailReport:
    """The findings of a tail test on one pair of neighbouring tables.

    Attributes
    ----------
    miner
        The miner's name.
    relation
        The neighbouring relation.
    tails
        One entry for each delta, with the epsilon that the plan claims at it.
    runs
        How many runs were replayed.
    one, other
        The tables.
    tables
        The tables again, as bytes: the kind of each row (see `Universe`).
    """

    miner: str
    relation: Relation
    tails: tuple[Tail, ...]
    runs: int
    one: tuple[str, ...]
    other: tuple[str, ...]
    tables: tuple[Rows, Rows] = attrs.field(repr=False)

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

    @property
    def worst_point(self) -> Tail:
        """The point that comes nearest to its claim, or is farthest beyond it."""
        return max(self.tails, key=lambda tail: tail.tightness if tail.epsilon else -1.0)

    @property
    def what(self) -> str:
        """One line for each point of the claim."""
        return "\n".join(
            f"probability beyond epsilon {tail.epsilon:.4g}: at most {tail.delta:g} claimed, {tail.found:.3g} found: "
            + ("not refuted" if tail.holds else f"DOES NOT HOLD, at least {tail.proved:.3g}{tail.charged_by}")
            for tail in self.tails
        )

    def __str__(self) -> str:
        """Write one line for each point, and the tables if a point does not hold."""
        lines = [self.what]
        if not self.passed:
            lines += [f"  one table: {row}" for row in self.one] + [f"  its neighbour: {row}" for row in self.other]
        return "\n".join(lines)


def check_tail(
    miner: Miner,
    schema: Schema,
    relation: Relation | str,
    *,
    delta: Amount = 0,
    runs: int = 2_000,
    seed: int = 0,
    unit: PrivacyUnit = ROW,
) -> TailReport:
    """Estimate the deltas at some epsilons that a plan claims, and compare them with the claimed deltas.

    Parameters
    ----------
    miner
        The miner.
    schema
        The schema of its tables.
    relation
        The neighbouring relation.
    delta
        A delta to test besides a few large deltas, at which runs tell more. With 0, only the large ones are tested.
    runs
        How many runs to record. The realised loss of each is computed.
    seed
        The seed of the tables and draws.
    unit
        The privacy unit that the claim is to protect. The tables differ by one such unit.

    Raises
    ------
    InputError
        If the miner has no finite claim with a delta under the relation.
    """
    subject = Subject(miner, schema, Relation.parse(relation), delta=exact(delta, "delta"), unit=unit)
    return check_tail_of(subject, runs=runs, seed=seed)


def check_tail_of(
    subject: Subject, *, runs: int, seed: int, tables: tuple[Rows, Rows] | None = None, tests: int = 1
) -> TailReport:
    """Test the claims of a subject's plan at several deltas (see `check_tail`).

    The runs are on the given tables, or on the pair of tables with the largest losses that a search finds. This test is
    one of `tests` tests. If the claim is true, the probability that any of them fails is at most `FALSE_ALARM`.
    """
    points: list[tuple[float, float, str]] = []
    exact = subject.exact_delta  # nothing is claimed below this delta, and perhaps nothing at it
    deltas = {*DELTAS, subject.delta or DELTAS[0], exact or DELTAS[0]}
    for delta in sorted((delta for delta in deltas if delta >= exact), reverse=True):
        if len([epsilon for epsilon, *_ in points if epsilon]) >= POINTS and delta not in (subject.delta, exact):
            continue
        total = subject.claim_at(delta)
        if total is None and points and delta == exact:
            continue
        if total is None:
            raise InputError(
                f"miner '{subject.miner.name}' claims no finite epsilon under {subject.relation}, not even with a delta"
            )
        points.append((float(total), float(delta), subject.name_accountant(delta)))
    rng = np.random.default_rng(seed)
    if tables is None:
        tables = _worst_pair(subject, rng, searched=runs // RUNS_PER_PAIR)
    # The realised loss of each run on the first table, with its sign.
    realised = []
    for k in range(runs):
        if k >= FEWEST and subject.patience.over:
            break
        weigher = Weigher(subject, record(subject, tables[0], int(rng.integers(2**31))))
        here, there = (weigher.densities(rows) for rows in tables)
        sign = 1 if math.fsum(here) >= math.fsum(there) else -1
        realised.append(sign * difference(here, there))
    losses = np.array(realised)
    runs = len(losses)
    # Hoeffding's inequality, with the false alarm divided among all points of all tests.
    slack = math.sqrt(math.log(tests * len(points) / FALSE_ALARM) / (2 * runs))
    tails = []
    for epsilon, claimed, by in points:
        found = _beyond(losses, epsilon)
        tails.append(Tail(epsilon, claimed, found, max(found - slack, 0.0), _smallest_epsilon(losses, claimed), by))
    one, other = (tuple(subject.universe.describe(rows)) for rows in tables)
    return TailReport(subject.miner.name, subject.relation, tuple(tails), runs, one, other, tables)


def _beyond(losses: NDArray[np.float64], epsilon: float) -> float:
    """Return an estimate of the delta at an epsilon, from the realised losses of runs."""
    return float(np.mean(np.maximum(0.0, -np.expm1(epsilon - np.maximum(losses, epsilon)))))


def _smallest_epsilon(losses: NDArray[np.float64], delta: float) -> float:
    """Return the smallest epsilon whose estimated delta is at most the given one, infinite if there is none."""
    low, high = 0.0, max(float(losses.max(initial=0.0)), 0.0)
    if math.isinf(high):
        finite = losses[np.isfinite(losses)]
        high = max(float(finite.max(initial=0.0)), 0.0)
        if _beyond(losses, high) > delta:
            return math.inf
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(losses, middle) > delta else (low, middle)
    return high


def _worst_pair(subject: Subject, rng: np.random.Generator, searched: int) -> tuple[Rows, Rows]:
    """Return the two neighbours on which runs lose most on average. The first is the table of the runs.

    For every pair, runs are recorded anew on the first table, with the claimed noise. If outputs of one table were
    forced upon all pairs instead, the largest tables would lose most, whatever a row changes there.
    """
    sizes = Sizes.of(subject.schema, subject.relation, subject.most_rows(MOST_ROWS), subject.by.rows)
    among = changes(subject.universe, subject.relation, subject.by)
    search = Search(among, subject.universe.kinds, sizes, rng, subject.patience)
    seeds = [int(rng.integers(2**31)) for _ in range(RECORDED)]

    def mean_loss(one: Rows, other: Rows) -> float:
        found = []
        for seed in seeds:
            weigher = Weigher(subject, record(subject, one, seed))
            here, there = weigher.densities(one), weigher.densities(other)
            found.append(difference(here, there))
        return float(np.mean(found))

    tried = max(searched, 20)
    found = search.at_random(mean_loss, tried)
    many = search.worst(mean_loss, pairs_of_many(subject.universe, among, subject.most))
    climbed = search.climb(mean_loss, found.pair, tried)
    one, other = max(climbed, many, key=lambda one: one.loss).pair.tables
    return (one, other) if mean_loss(one, other) >= mean_loss(other, one) else (other, one)
