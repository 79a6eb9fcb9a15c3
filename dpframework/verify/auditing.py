"""The replay audit: no neighbour may see a transcript with a larger loss than the plan claims.

A run on one table is recorded and its outputs are forced upon neighbouring tables. The log-densities of the outputs
there differ by the realised privacy loss, exactly and without statistical error. Source: the definition of
differential privacy; a pure claim bounds the loss of every output on every pair of neighbours.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any, final

import numpy as np

from dpframework.facts.errors import InputError
from dpframework.facts.privacy import Amount, Relation, decimal_text, exact
from dpframework.facts.schema import Schema
from dpframework.run.miner import Miner
from dpframework.verify.behaviour import MOST_ROWS, SMALL, Behaviour, number
from dpframework.verify.findings import AuditReport, Violation
from dpframework.verify.many import largest_number, pairs_of_many
from dpframework.verify.replay import Weigher
from dpframework.verify.search import Found, Search, labelled, shrunk
from dpframework.verify.subject import Subject
from dpframework.verify.tables import changes
from dpframework.verify.tail import TailReport, check_tail_of
from dpframework.verify.transcript import Transcript, record

FLATTENINGS = (1, 1, 3, 10)
EXHAUSTED = 3  # transcripts that are weighed on all small tables


def audit(
    miner: Miner,
    schema: Schema,
    relation: Relation | str,
    *,
    delta: Amount = 0,
    replays: int = 12_000,
    seed: int = 0,
    accounting: Any = None,
) -> AuditReport:
    """Replay a miner's transcripts on neighbouring small tables and look for the largest loss.

    Transcripts are recorded on random tables, with the claimed noise and with wider noise. Each is replayed, miner
    and all, on its own table, on its own table in another order, on neighbours, and on tables far away, where what the
    miner does must follow from the releases as well; then its releases alone are weighed on pairs of neighbours:
    random ones, all small ones, ones of very many equal rows, and ones climbed to.

    Parameters
    ----------
    miner
        The miner.
    schema
        What its tables are of. A small one (a few attributes of two or three values) comes near the worst case.
    relation
        The neighbouring relation.
    delta
        Above 0, what the plan claims at a delta is tested too; a plan without a pure claim is tested so anyway.
    replays
        How many to make, about.
    seed
        Of the tables and draws: the same seed gives the same report.
    accounting
        The accountant whose total is the claim; `PureAccountant` by default.

    Raises
    ------
    InputError
        If the miner has no finite claim under the relation, not even with a delta, or refuses the schema.
    """
    relation = Relation.parse(relation)
    given = {} if accounting is None else {"accounting": accounting}
    if replays < 100:
        raise InputError(f"replays is {replays}; an audit needs 100 or more")
    subject = Subject(miner, schema, relation, delta=exact(delta, "delta"), **given)
    subject.require_claim()
    return _Audit(subject, replays, seed).report()


@final
class _Audit:
    def __init__(self, subject: Subject, replays: int, seed: int) -> None:
        self.subject, self.replays, self.seed = subject, replays, seed
        self.rng = np.random.default_rng(seed)
        self.behaviour = Behaviour(subject, self.rng)
        self.most = largest_number(subject.schema, subject.relation)
        self.changes = changes(subject.universe, subject.relation)
        if not self.changes:
            raise InputError("the schema allows one kind of row only; neighbours under replace-one are all alike")
        self.search = Search(self.changes, subject.universe.kinds, self.behaviour.sizes, self.rng)
        self.exhaustive = -1

    def report(self) -> AuditReport:
        started = time.perf_counter()
        subject, behaviour = self.subject, self.behaviour
        transcripts = self._transcripts()
        claim, delta, worst, pair = 0.0, 0.0, 0.0, None
        if subject.claim is not None:
            claim = float(subject.claim)
            worst, pair = self._largest_loss(transcripts, subject.claim)
        tail = self._tail()
        if tail is not None and subject.claim is None:
            telling = max(tail.tails, key=lambda one: one.tightness)
            claim, delta, worst = telling.epsilon, telling.delta, telling.needed
            pair = Violation.on(subject, f"the epsilon that the runs need is {worst:.6g} of {claim:.6g}", *tail.tables)
        return AuditReport(
            subject.miner.name,
            subject.relation,
            claim,
            delta,
            worst,
            behaviour.reruns + 2 * self.search.tried + (0 if tail is None else 2 * tail.runs),
            behaviour.reruns,
            self.exhaustive,
            max(self.most, behaviour.sizes.most),
            time.perf_counter() - started,
            tuple(behaviour.violations.values()),
            None if behaviour.violations else pair,
            tail,
        )

    def _transcripts(self) -> list[Transcript]:
        """Record some runs, and see for each that what it does follows from its releases."""
        behaviour, number = self.behaviour, max(8, min(24, self.replays // 400))
        transcripts = []
        for k in range(number):
            # small tables show control that depends on rows, large ones reach further into a plan that may stop early
            table = behaviour.table(SMALL if k % 2 else MOST_ROWS)
            seed, flattening = int(self.rng.integers(2**31)), FLATTENINGS[k // 2 % 4]
            transcripts.append(record(self.subject, table, seed, flattening=flattening))
            behaviour.examine(table, transcripts[-1], most=max(4, self.replays // (40 * number)))
        behaviour.examine_many(transcripts[0], self.most)
        return transcripts

    def _tail(self) -> TailReport | None:
        """Test what the plan claims at a delta, if it has no pure claim or its example carries a delta."""
        subject = self.subject
        if subject.claim is not None and not subject.delta:
            return None
        tail = check_tail_of(subject, runs=max(self.replays // 6, 200), seed=self.seed)
        if not tail.passed:
            self.behaviour.found("tail", tail.what, *tail.tables, None)
        return tail

    def _largest_loss(self, transcripts: list[Transcript], claim: Fraction) -> tuple[float, Violation | None]:
        """Search pairs of tables for the largest realised loss; return it with the smallest pair that shows it."""
        behaviour = self.behaviour
        found, telling = self._weigh(transcripts)
        worst = max(found.loss, 0.0)
        if worst > behaviour.allowed:
            # a pair that was searched for shows more than one that was met
            what = f"a transcript loses {number(worst)}, the plan claims {decimal_text(claim)}"
            behaviour.violations["loss"] = self._shrunk(what, found, telling, lambda loss: loss > behaviour.allowed)
        if behaviour.violations or not worst:
            return worst, None
        what = f"the largest loss found is {number(worst)} of {decimal_text(claim)}"
        return worst, self._shrunk(what, found, telling, lambda loss: loss >= 0.999 * worst)

    def _weigh(self, transcripts: list[Transcript]) -> tuple[Found, Transcript]:
        """Search pairs for each transcript, then go on with the most telling ones."""
        pairs = max(self.replays // 2 - self.behaviour.reruns, 40)
        weighers = [Weigher(self.subject, transcript) for transcript in transcripts]
        each, every = max(pairs // (4 * len(weighers)), 2), pairs // (4 * EXHAUSTED)
        begun = sorted(
            ((self.search.at_random(weigher.loss, each), k) for k, weigher in enumerate(weighers)),
            key=lambda one: -one[0].loss,
        )
        tried = list(begun)
        for k, weigher in enumerate(weighers[:EXHAUSTED]):
            tried.append((self.search.exhaustive(weigher.loss, every), k))
        longest = max(range(len(transcripts)), key=lambda k: len(transcripts[k].events))
        many = pairs_of_many(self.subject.universe, self.changes, self.most)
        tried.append((self.search.worst(weighers[longest].loss, many), longest))
        chosen = begun[: max(len(begun) // 4, 1)]
        left = max(pairs - self.search.tried, 4 * len(chosen)) // len(chosen)
        tried += [(self.search.climb(weighers[k].loss, found.pair, left), k) for found, k in chosen]
        self.exhaustive = self.search.sizes_covered(every)
        found, k = max(tried, key=lambda one: one[0].loss)
        return found, transcripts[k]

    def _shrunk(self, what: str, found: Found, transcript: Transcript, enough: Any) -> Violation:
        """Keep the smallest tables on which a transcript's releases still lose enough."""
        weigher = Weigher(self.subject, transcript)
        shared = labelled(found.pair.shared)
        one, other = (
            (*shared, *(() if kind is None else ((len(shared) + k, kind),)))
            for k, kind in enumerate((found.pair.one, found.pair.other))
        )
        small = shrunk(one, other, lambda a, b: enough(weigher.loss(a, b)), self.behaviour.sizes.least)
        return Violation.on(self.subject, what, *small, transcript)
