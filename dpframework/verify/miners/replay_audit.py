"""The replay audit, which looks for runs that lose more between neighbours than the plan claims, or break the plan.

A run on one table is recorded, and its outputs are forced upon neighbouring tables. The realised privacy loss is the
difference of the outputs' log-densities on two tables. It is exact, without statistical error. By the definition of
differential privacy, a pure claim (an epsilon without a delta) bounds the realised loss of every output on every pair
of neighbours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, final

import numpy as np

from dpframework.accountant import Accountant
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Amount, Relation, decimal_text, exact
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.run.miner_base_and_examples import Miner, Witness
from dpframework.verify.miners.audit_report import AuditReport, Violation
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.author_witness_replay import WitnessReplay, replay_witness
from dpframework.verify.miners.behaviour_from_releases_check import MOST_ROWS, SMALL, Behaviour, loss_text
from dpframework.verify.miners.delta_tail_test import TailReport, check_tail_of
from dpframework.verify.miners.large_table_replays import examine_billions, examine_every_kind
from dpframework.verify.miners.loss_search import TIGHT, LossSearch
from dpframework.verify.miners.neighbour_pair_search import MOST_SHRINKS, WorstPair, label_pair, shrink_tables
from dpframework.verify.miners.query_trace import with_climbed_rows
from dpframework.verify.miners.replay_on_other_table import Weigher
from dpframework.verify.miners.runs_steered_to_rare_code import aim_at_constants, steer
from dpframework.verify.miners.transcript import Transcript, record
from dpframework.verify.plugin_code_constants import is_foreign
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.neighbours import Rows, changes

FLATTENINGS = (1, 1, 3, 10)  # the factors by which the noise of recorded runs is widened, in turn
FEWEST_RUNS, MOST_RUNS = 8, 16  # how many runs are recorded: more if there are many replays and runs are short
SHOWN = 100  # how many smaller pairs are tried, at most, to show the largest loss if it breaks no claim
WITNESSED = 4  # the most replays of a witness (see `audit`): chance decides between outputs with nearly the same loss
BEHAVIOUR = 0.4  # the share of a limited time for comparing runs; the rest is for the search for the largest loss
STEERED = 0.3  # of the time left for comparing runs, the share for steered runs, with outputs that are seldom drawn
SHORT = 4  # the most releases of a run whose replay counts as one; the replay of a longer run counts for more


def audit(
    miner: Miner,
    schema: Schema,
    relation: Relation | str,
    *,
    delta: Amount = 0,
    replays: int = 12_000,
    seed: int = 0,
    accounting: type[Accountant[Any]] | None = None,
    witnesses: Iterable[Witness] = (),
    tell: Callable[[str], None] = lambda what: None,
    seconds: float = math.inf,
    unit: PrivacyUnit = ROW,
) -> AuditReport:
    """Replay a miner's recorded runs on neighbouring small tables, and look for the largest loss.

    Transcripts, the records of what runs make public, are made on random tables, with the claimed noise and with wider
    noise. For each transcript, the miner runs again with the same outputs: on the transcript's own table, on the same
    rows in another order, on neighbours, and on unrelated tables. In each of these runs, the miner must follow its
    releases alone, and each release must be possible. Then the outputs' log-densities are compared on random, small and
    very large pairs of neighbours. Finally, two searches alternate: for the worst outputs, and for the worst pair.

    Parameters
    ----------
    miner
        The miner.
    schema
        The schema of the miner's tables. A few attributes of two or three values are best for the search.
    relation
        The neighbouring relation.
    delta
        If above 0, the claim at this delta is tested too. Without a pure claim, a claim with a delta is always tested.
    replays
        About how many replays to make, at least 100.
    seed
        The seed of the tables and draws: the same seed gives the same report.
    accounting
        The accountant whose total is the claim; by default the one that a study would use.
    witnesses
        Tables and outputs to replay before the search. Witnesses under another relation are left out.
    tell
        A function that shows progress. It is called with a text that says what is tried next.
    seconds
        The processor seconds after which the search ends. The report then says so, and depends on the machine.
    unit
        The privacy unit that the claim is to protect. Neighbours differ by as many rows as one unit may have.

    Raises
    ------
    InputError
        If `replays` is below 100, the miner refuses the schema or has no finite claim, or all rows are of one kind.
    """
    relation = Relation.parse(relation)
    given: dict[str, Any] = {"patience": Patience(seconds), "unit": unit, "accounting": accounting}
    if replays < 100:
        raise InputError(f"replays is {replays}; an audit needs 100 or more")
    subject = Subject(miner, schema, relation, delta=exact(delta, "delta"), **given)
    subject.require_claim()
    subject = with_climbed_rows(subject)
    return _Audit(subject, replays, seed, [w for w in witnesses if w.relation is relation], tell).report()


@final
class _Audit:
    """One audit, with its findings so far."""

    def __init__(
        self, subject: Subject, replays: int, seed: int, witnesses: Sequence[Witness], tell: Callable[[str], None]
    ) -> None:
        self.subject, self.replays, self.seed = subject, replays, seed
        self.rng = np.random.default_rng(seed)
        self.behaviour = Behaviour(subject, self.rng, subject.patience.part(BEHAVIOUR))
        self.most = subject.most
        if not changes(subject.universe, subject.relation, subject.by):
            raise InputError(
                "the schema allows one kind of row only, so that replacing a row changes nothing; "
                "give an attribute two or more values"
            )
        self.weighed, self.exhaustive = 0, -1
        self.witnesses, self.tell = witnesses, tell

    def report(self) -> AuditReport:
        started = time.perf_counter()
        subject, behaviour = self.subject, self.behaviour
        transcripts = self._transcripts()
        # Some code is reached only by outputs that are hardly ever drawn.
        steered = []
        self.tell("runs with outputs that are seldom drawn")
        tables = [behaviour.table(SMALL), behaviour.table(MOST_ROWS)]
        for table, transcript in steer(subject, tables, behaviour.patience.part(STEERED), self.replays):
            behaviour.examine(table, transcript, most=8)
            behaviour.examine_many(transcript, self.most)
            examine_every_kind(behaviour, transcript, self.most)
            steered.append(transcript)
        if is_foreign(subject.miner):
            for table, transcript in aim_at_constants(subject, tables, behaviour.patience, self.replays):
                behaviour.examine_briefly(table, transcript)
        claim, delta, worst, pair = 0.0, float(subject.exact_delta), 0.0, None
        if subject.claim is not None:
            claim = float(subject.claim)
            witnessed = self._replay_witnesses(subject.claim)
            worst, pair = self._largest_loss(transcripts, steered, subject.claim, witnessed)
            worst = max(worst, witnessed)
        # Without a pure claim, no single loss can break the plan's claim. Only the probability of large losses can.
        tail = None
        if subject.claim is None or subject.delta or subject.exact_delta:
            self.tell("how much probability lies beyond the claim")
            runs, tests = max(self.replays // 6, 200), 1 + len(self.witnesses)
            tail = check_tail_of(subject, runs=runs, seed=self.seed, tests=tests)
            if not tail.passed:
                behaviour.add("tail", tail.what, *tail.tables, None)
        if tail is not None and subject.claim is None:
            on, worst_tail = self._worst_tail(tail)
            point = worst_tail.worst_point
            claim, delta, worst = point.epsilon, point.delta, point.needed
            pair = Violation.on(on, f"the epsilon that the runs need is {worst:.6g} of {claim:.6g}", *worst_tail.tables)
        # If nothing at all was lost, the search has tested nothing.
        lost = worst or (tail and any(Weigher(subject, one).loss(*tail.tables) for one in [*transcripts, *steered]))
        if claim and not lost and not behaviour.violations and not subject.patience.over:
            behaviour.note_no_loss([*transcripts, *steered])
        return AuditReport(
            subject.miner.name,
            subject.relation,
            claim,
            delta,
            worst,
            behaviour.reruns + 2 * self.weighed + (0 if tail is None else 2 * tail.runs),
            behaviour.reruns,
            self.exhaustive,
            max(self.most, behaviour.sizes.most),
            time.perf_counter() - started,
            tuple(behaviour.violations.values()),
            None if behaviour.violations else pair,
            tail,
            subject.patience.over,
        )

    def _transcripts(self) -> list[Transcript]:
        """Record some runs, and check that each run's actions follow from its releases."""
        behaviour, transcripts = self.behaviour, list[Transcript]()
        number = FEWEST_RUNS
        while len(transcripts) < number and not (transcripts and behaviour.patience.over):
            k = len(transcripts)
            self.tell(f"run {k + 1} of {number}, on neighbours and far away")
            # Small tables show control flow that depends on rows. On large tables, a run that may stop early gets
            # further.
            table = behaviour.table(SMALL if k % 2 else MOST_ROWS)
            seed, flattening = int(self.rng.integers(2**31)), FLATTENINGS[k // 2 % 4]
            transcripts.append(record(self.subject, table, seed, flattening=flattening))
            behaviour.examine(table, transcripts[-1], most=max(8, self.replays // 500))
            if k == 0:
                behaviour.examine_memory(table, transcripts[0])
            if _length(transcripts) <= SHORT:
                number = max(FEWEST_RUNS, min(MOST_RUNS, self.replays // 400))
        if not behaviour.patience.over:
            behaviour.examine_many(transcripts[0], self.most)
            examine_every_kind(behaviour, transcripts[0], self.most)
            if is_foreign(self.subject.miner):
                examine_billions(behaviour, transcripts[0])
        return transcripts

    def _worst_tail(self, tail: TailReport) -> tuple[Subject, TailReport]:
        """Test the claim on the tables of the witnesses, too.

        Return the subject and the report of one test: one that fails, or else the one that comes nearest to failing.
        This may be the test in `tail`.
        """
        found = [(self.subject, tail)]
        for witness in self.witnesses:
            self.tell("how much probability lies beyond the claim, on a witness's tables")
            shown = replay_witness(self.subject, witness, self.rng)
            given: dict[str, Any] = {"runs": tail.runs, "seed": self.seed, "tests": 1 + len(self.witnesses)}
            of_witness = check_tail_of(shown.subject, tables=shown.tables, **given)
            if not of_witness.passed:
                violations = self.behaviour.violations
                violations.setdefault("tail", Violation.on(shown.subject, of_witness.what, *shown.tables))
            found.append((shown.subject, of_witness))
        return max(found, key=lambda one: (not one[1].passed, one[1].worst_point.tightness))

    def _replay_witnesses(self, claim: Fraction) -> float:
        """Replay the witnesses, and return the largest loss that they show."""
        largest, violations = 0.0, self.behaviour.violations
        for witness in self.witnesses:
            self.tell("a witness")
            tried: list[WitnessReplay] = []
            while len(tried) < WITNESSED and (not tried or max(one.loss for one in tried) < TIGHT * float(claim)):
                tried.append(replay_witness(self.subject, witness, self.rng))
            shown = max(tried, key=lambda one: one.loss)
            largest = max(largest, shown.loss)
            where = (*shown.tables, shown.transcript)
            if shown.divergence is not None:
                violations.setdefault("control", Violation.on(shown.subject, shown.divergence, *where))
            if shown.loss > self.behaviour.allowed:
                what = f"a witness loses {loss_text(shown.loss)}, the plan claims {decimal_text(claim)}"
                violations.setdefault("loss", Violation.on(shown.subject, what, *where))
        return largest

    def _largest_loss(
        self, transcripts: list[Transcript], steered: list[Transcript], claim: Fraction, reached: float
    ) -> tuple[float, Violation | None]:
        """Search for the largest realised loss. Return it with small tables that show it, unless a claim is broken."""
        behaviour = self.behaviour
        # The search has its own generator, so that its findings do not depend on how many runs came before.
        rng = np.random.default_rng([self.seed, 3])
        search = LossSearch(self.subject, claim, behaviour.allowed, self.most, rng, self.tell)
        pairs = (self.replays // 2 - behaviour.reruns) * SHORT // max(SHORT, _length(transcripts))
        found, telling = search.worst(transcripts, steered, max(pairs, 40), reached)
        self.weighed, self.exhaustive = search.tried, search.exhaustive
        for ended in search.ends:
            if not self.subject.patience.over:
                behaviour.examine_pair(*ended)
        worst = max(found.loss, 0.0)
        if worst > behaviour.allowed:
            # The search's pair shows more than a pair that was met by chance, so its violation replaces an earlier one.
            claims = f"{decimal_text(claim)}{self.subject.name_accountant(self.subject.exact_delta)}"
            what = f"a transcript loses {loss_text(worst)}, the plan claims {claims}"
            behaviour.violations["loss"] = self._shrink(
                what, found, telling, lambda loss: loss > behaviour.allowed, MOST_SHRINKS
            )
        if behaviour.violations or not worst:
            return worst, None
        what = f"the largest loss found is {loss_text(worst)} of {decimal_text(claim)}"
        return worst, self._shrink(what, found, telling, lambda loss: loss >= 0.999 * worst, SHOWN)

    def _shrink(self, what: str, found: WorstPair, transcript: Transcript, enough: Any, most: int) -> Violation:
        """Return a violation on the smallest tables found on which a transcript's releases still lose enough."""
        weigher = Weigher(self.subject, transcript)
        one, other = label_pair(found.pair)

        def shows(one: Rows, other: Rows) -> bool:
            return not self.subject.patience.over and enough(weigher.loss(one, other))

        small = shrink_tables(one, other, shows, self.behaviour.sizes.least, most=most)
        return Violation.on(self.subject, what, *small, transcript)


def _length(transcripts: Sequence[Transcript]) -> int:
    """Return the number of releases of the longest run."""
    return max(len(transcript.releases) for transcript in transcripts)
