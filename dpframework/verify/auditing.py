"""The replay audit: no neighbour may see a transcript with a larger loss than the plan claims.

A run on one table is recorded and its outputs are forced upon neighbouring tables. The log-densities of the outputs
there differ by the realised privacy loss, exactly and without statistical error. Source: the definition of
differential privacy; a pure claim bounds the loss of every output on every pair of neighbours.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import Any, final

import attrs
import numpy as np

from dpframework.facts.errors import InputError
from dpframework.facts.privacy import Relation, decimal_text
from dpframework.facts.schema import Schema
from dpframework.run.miner import Miner
from dpframework.verify.many import largest_number, pairs_of_many
from dpframework.verify.replay import Replayed, Weigher, replay
from dpframework.verify.search import Found, Labelled, Search, labelled, shrunk, unlabelled
from dpframework.verify.subject import Subject
from dpframework.verify.tables import Rows, Sizes, changes
from dpframework.verify.transcript import Transcript, record

TOLERANCE = 1e-6  # of floating point, in a sum of log-densities
FLATTENINGS = (1, 1, 3, 10)
MOST_ROWS = 60
SMALL = 10
EXHAUSTED = 3  # transcripts that are weighed on all small tables
LOOSE = 0.5  # a tightness below which a replay says little


@final
@attrs.frozen
class Violation:
    """A claim that does not hold, with the smallest pair of tables found that shows it.

    Attributes
    ----------
    what
        What was found, in one sentence.
    one, other
        The two neighbouring tables, row by row; they are made up.
    events
        What the run on the first one made public.
    tables
        The two tables again, as rows of the universe of their schema.
    """

    what: str
    one: tuple[str, ...]
    other: tuple[str, ...]
    events: tuple[str, ...]
    tables: tuple[Rows, Rows] = attrs.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {"what": self.what, "one": list(self.one), "other": list(self.other), "events": list(self.events)}

    def __str__(self) -> str:
        """Write all of it."""
        lines = [self.what]
        for title, rows in (("one table", self.one), ("its neighbour", self.other), ("transcript", self.events)):
            lines.append(f"  {title}:")
            lines += [f"    {row}" for row in rows] or ["    (no rows)"]
        return "\n".join(lines)


@final
@attrs.frozen
class AuditReport:
    """What a replay audit found.

    Attributes
    ----------
    miner
        The miner's name.
    relation
        The neighbouring relation.
    claim
        The plan's epsilon.
    worst
        The largest realised loss found.
    replays
        How often a transcript was forced upon a table.
    reruns
        How many of them ran the miner again, rather than only weighing its releases.
    exhaustive
        Up to how many shared rows all tables of a few kinds of rows were tried; -1 for none.
    most_rows
        How many equal rows the largest tables had.
    seconds
        What it took.
    violations
        What was found wrong; empty if nothing was.
    worst_pair
        The tables and the transcript with the largest loss, where no claim was broken.
    """

    miner: str
    relation: Relation
    claim: float
    worst: float
    replays: int
    reruns: int
    exhaustive: int
    most_rows: int
    seconds: float
    violations: tuple[Violation, ...]
    worst_pair: Violation | None

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.violations

    @property
    def tightness(self) -> float:
        """The largest loss found over the claim: 1 for a claim that cannot be lowered."""
        return self.worst / self.claim if self.claim else math.nan

    @property
    def note(self) -> str:
        """What a reader must know of a loose claim; empty for a tight one."""
        if not self.passed or self.tightness >= LOOSE:
            return ""
        return (
            f"the largest loss found is {self.tightness:.0%} of the claim: a mistake that loses less than "
            f"{1 / max(self.tightness, 1e-9):.3g} times too much would not be seen here"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            **{k: v for k, v in attrs.asdict(self, recurse=False).items() if k not in ("violations", "worst_pair")},
            "relation": self.relation.value,
            "worst": self.worst if math.isfinite(self.worst) else None,
            "tightness": self.tightness if math.isfinite(self.tightness) else None,
            "passed": self.passed,
            "note": self.note,
            "violations": [violation.to_dict() for violation in self.violations],
            "worst_pair": None if self.worst_pair is None else self.worst_pair.to_dict(),
        }


def audit(
    miner: Miner,
    schema: Schema,
    relation: Relation | str,
    *,
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
    replays
        How many to make, about.
    seed
        Of the tables and draws: the same seed gives the same report.
    accounting
        The accountant whose total is the claim; `PureAccountant` by default.

    Raises
    ------
    InputError
        If the miner has no finite pure claim under the relation, or refuses the schema.
    """
    relation = Relation.parse(relation)
    given = {} if accounting is None else {"accounting": accounting}
    if replays < 100:
        raise InputError(f"replays is {replays}; an audit needs 100 or more")
    return _Audit(Subject(miner, schema, relation, **given), replays, seed).report()


class _Audit:
    def __init__(self, subject: Subject, replays: int, seed: int) -> None:
        self.subject = subject
        self.claim = float(subject.require_claim())
        self.allowed = self.claim + TOLERANCE * (1 + self.claim)
        self.replays = replays
        self.rng = np.random.default_rng(seed)
        self.sizes = Sizes.of(subject.schema, subject.relation, MOST_ROWS)
        self.most = largest_number(subject.schema, subject.relation)
        self.changes = changes(subject.universe, subject.relation)
        if not self.changes:
            raise InputError("the schema allows one kind of row only; neighbours under replace-one are all alike")
        self.search = Search(self.changes, subject.universe.kinds, self.sizes, self.rng)
        self.violations: dict[str, Violation] = {}
        self.reruns = 0
        self.worst: tuple[float, Found | None, Transcript | None] = (0.0, None, None)

    def report(self) -> AuditReport:
        started = time.perf_counter()
        number = max(8, min(24, self.replays // 400))
        transcripts = []
        for k in range(number):
            # small tables show control that depends on rows, large ones reach further into a plan that may stop early
            table = self._table(SMALL if k % 2 else MOST_ROWS)
            seed, flattening = int(self.rng.integers(2**31)), FLATTENINGS[k // 2 % 4]
            transcripts.append(record(self.subject, table, seed, flattening=flattening))
            self._rerun(table, transcripts[-1], most=max(4, self.replays // (40 * number)))
        exhaustive = self._weigh(transcripts)
        worst, found, telling = self.worst
        if worst > self.allowed and found is not None and telling is not None:
            # a pair that was searched for shows more than one that was met
            what = f"a transcript loses {_number(worst)}, the plan claims {decimal_text(self.subject.require_claim())}"
            self.violations["loss"] = self._shrunk(what, found, telling, lambda loss: loss > self.allowed)
        pair = None
        if not self.violations and found is not None and telling is not None:
            what = f"the largest loss found is {_number(worst)} of {decimal_text(self.subject.require_claim())}"
            pair = self._shrunk(what, found, telling, lambda loss: loss >= 0.999 * worst)
        return AuditReport(
            self.subject.miner.name,
            self.subject.relation,
            self.claim,
            worst,
            self.reruns + 2 * self.search.tried,
            self.reruns,
            exhaustive,
            max(self.most, self.sizes.most),
            time.perf_counter() - started,
            tuple(self.violations.values()),
            pair,
        )

    def _table(self, most: int) -> Rows:
        """Return a random table, of few kinds of rows as often as of many."""
        least = self.sizes.least + (1 if self.subject.relation is Relation.REPLACE_ONE else 0)
        size = int(self.rng.integers(least, max(least, min(self.sizes.most, most)) + 1))
        kinds = self.rng.integers(0, self.subject.universe.kinds, 3 if self.rng.random() < 0.5 else MOST_ROWS)
        return bytes(self.rng.choice(kinds, size).tolist())

    def _rerun(self, table: Rows, transcript: Transcript, most: int) -> None:
        """Run the miner again on the table, on its rows in another order, on neighbours, and on tables far away."""
        if transcript.refused is not None:
            self._violated("plan", transcript.refused, table, table, transcript)
        elif transcript.outcome.error is not None:
            self._violated("error", f"the run fails with {transcript.outcome.error}", table, table, transcript)
        here = self._replayed(transcript, table)
        if here.divergence is not None:
            what = f"the same releases from the same rows, and yet {here.divergence}"
            self._violated("itself", what, table, table, transcript)
            return
        rows = labelled(table)
        for other in (rows[1:] + rows[:1], rows[::-1]):
            there = self._replayed(transcript, unlabelled(other))
            loss = abs(there.log_density - here.log_density)
            if there.divergence is not None or loss > TOLERANCE * (1 + self.claim):
                how = there.divergence or f"a loss of {_number(loss)}"
                what = f"the order of the rows matters: with the rows in another order, {how}"
                self._diverged("order", what, rows, other, transcript)
        for other in self._neighbours(rows, most):
            there = self._replayed(transcript, unlabelled(other))
            loss = abs(there.log_density - here.log_density)
            if there.divergence is not None:
                self._diverged("control", f"on a neighbour, {there.divergence}", rows, other, transcript)
            elif loss > self.allowed:
                what = f"a transcript loses {_number(loss)}, the plan claims {_number(self.claim)}"
                self._diverged("loss", what, rows, other, transcript)
        for far in self._far_tables(table, most // 2):
            there = self._replayed(transcript, far)
            if there.divergence is not None and "control" not in self.violations:
                self._walked(table, far, transcript)

    def _replayed(self, transcript: Transcript, rows: Rows) -> Replayed:
        self.reruns += 1
        return replay(self.subject, transcript, rows)

    def _neighbours(self, rows: Labelled, most: int) -> list[Labelled]:
        """Return some neighbours, the row that is added or put in place of another at any position."""
        number = len(rows)
        neighbours: list[Labelled] = []
        kinds = self.rng.integers(0, self.subject.universe.kinds, (2, number + most)).tolist()
        if self.subject.relation is Relation.REPLACE_ONE:
            neighbours += [(*rows[:k], (number, kinds[0][k]), *rows[k + 1 :]) for k in range(number)]
        else:
            if self.subject.schema.rows is None:
                neighbours += [rows[:k] + rows[k + 1 :] for k in range(number)]
            if number <= self.sizes.most:
                places = self.rng.integers(0, number + 1, most).tolist()
                neighbours += [(*rows[:k], (number, kinds[1][j]), *rows[k:]) for j, k in enumerate(places)]
        return [neighbours[int(k)] for k in self.rng.permutation(len(neighbours))[:most]]

    def _far_tables(self, table: Rows, most: int) -> Iterator[Rows]:
        """Yield tables that have little in common with one: of its own size, if that is public, else of any."""
        alike = self.subject.relation is Relation.REPLACE_ONE or self.subject.schema.rows is not None
        for k in range(most):
            far = self._table(SMALL if k % 2 else MOST_ROWS)
            if alike:
                far = (far + self._table(MOST_ROWS) + bytes(len(table)))[: len(table)]
            yield b"" if k == 0 and not alike else far

    def _walked(self, table: Rows, far: Rows, transcript: Transcript) -> None:
        """Go from one table to another, neighbour by neighbour, to where a replay begins to differ."""
        alike = len(far) == len(table)
        steps = (
            [far[:k] + table[k:] for k in range(len(table) + 1)]
            if alike
            else [table[k:] for k in range(len(table) + 1)] + [far[:k] for k in range(len(far) + 1)]
        )
        for one, other in itertools.pairwise(steps):
            there = self._replayed(transcript, other)
            if there.divergence is None:
                continue
            shared = labelled(one)
            if len(one) == len(other):
                beside = tuple(
                    row if row[1] == kind else (len(one) + k, kind)
                    for k, (row, kind) in enumerate(zip(shared, other, strict=True))
                )
            elif len(other) < len(one):
                beside = shared[1:]
            else:
                beside = (*shared, (len(one), other[-1]))
            self._diverged("control", f"on a neighbour, {there.divergence}", shared, beside, transcript)
            return

    def _weigh(self, transcripts: list[Transcript]) -> int:
        """Search pairs for each transcript, then go on with the most telling ones."""
        pairs = max(self.replays // 2 - self.reruns, 40)
        weighers = [Weigher(self.subject, transcript) for transcript in transcripts]
        each, every = max(pairs // (4 * len(weighers)), 2), pairs // (4 * EXHAUSTED)
        begun = [
            (self._seen(self.search.at_random(weigher.loss, each), transcript), k)
            for k, (weigher, transcript) in enumerate(zip(weighers, transcripts, strict=True))
        ]
        for weigher, transcript in list(zip(weighers, transcripts, strict=True))[:EXHAUSTED]:
            self._seen(self.search.exhaustive(weigher.loss, every), transcript)
        longest = max(range(len(transcripts)), key=lambda k: len(transcripts[k].events))
        many = pairs_of_many(self.subject.universe, self.changes, self.most)
        self._seen(self.search.worst(weighers[longest].loss, many), transcripts[longest])
        begun.sort(key=lambda one: -one[0].loss)
        chosen = begun[: max(len(begun) // 4, 1)]
        left = max(pairs - self.search.tried, 4 * len(chosen)) // len(chosen)
        for found, k in chosen:
            self._seen(self.search.climb(weighers[k].loss, found.pair, left), transcripts[k])
        return self.search.sizes_covered(every)

    def _seen(self, found: Found, transcript: Transcript) -> Found:
        if found.loss > self.worst[0]:
            self.worst = found.loss, found, transcript
        return found

    def _violated(self, kind: str, what: str, one: Rows, other: Rows, transcript: Transcript) -> None:
        self.violations.setdefault(kind, self._violation(what, one, other, transcript))

    def _violation(self, what: str, one: Rows, other: Rows, transcript: Transcript) -> Violation:
        describe = self.subject.universe.describe
        events = tuple(map(str, transcript.events))
        return Violation(what, tuple(describe(one)), tuple(describe(other)), events, (one, other))

    def _diverged(self, kind: str, what: str, one: Labelled, other: Labelled, transcript: Transcript) -> None:
        """Keep the smallest tables of which a transcript can be replayed on one, and differs as much on the other."""
        if kind in self.violations:
            return

        def shows(rows: Rows, neighbour: Rows) -> bool:
            here, there = self._replayed(transcript, rows), self._replayed(transcript, neighbour)
            if here.divergence is not None:
                return False
            loss = abs(there.log_density - here.log_density)
            enough = loss > (self.allowed if kind == "loss" else TOLERANCE)
            return enough if kind == "loss" else there.divergence is not None or (kind == "order" and enough)

        self._violated(kind, what, *shrunk(one, other, shows, self.sizes.least), transcript)

    def _shrunk(self, what: str, found: Found, transcript: Transcript, enough: Any) -> Violation:
        """Keep the smallest tables on which a transcript's releases still lose enough."""
        weigher = Weigher(self.subject, transcript)
        shared = labelled(found.pair.shared)
        one, other = (
            (*shared, *(() if kind is None else ((len(shared) + k, kind),)))
            for k, kind in enumerate((found.pair.one, found.pair.other))
        )
        small = shrunk(one, other, lambda a, b: enough(weigher.loss(a, b)), self.sizes.least)
        return self._violation(what, *small, transcript)


def _number(loss: float) -> str:
    return "infinitely much" if math.isinf(loss) else f"{loss:.6g}"
