"""The check that a run does the same on every table if its releases are the same. Every notion of loss needs this.

A run is recorded, and its record is called a transcript. The run is replayed, miner included, on its own table, on the
same rows in another order, on neighbours, and on tables that have nothing in common with it. Steps, public inputs,
candidates, the result and all printed text must follow from the releases alone. Any difference tells something about
the rows, and no mechanism hides it. Nor may a release fail or warn on any of these tables, since a failure depends on
the rows and no density accounts for it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np

from dpframework.facts.privacy_losses import Relation
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.verify.file_read_and_write_watch import watch_files
from dpframework.verify.miners.audit_report import Violation
from dpframework.verify.miners.audit_subject import SCOPE, Subject
from dpframework.verify.miners.hidden_state import HiddenState, is_cache
from dpframework.verify.miners.neighbour_pair_search import (
    Labelled,
    drop_labels,
    label_pair,
    label_rows,
    last_before,
    shrink_tables,
)
from dpframework.verify.miners.replay_on_other_table import TranscriptReplay, replay
from dpframework.verify.miners.transcript import Transcript
from dpframework.verify.miners.value_comparison import same
from dpframework.verify.queries.large_tables import telling_kinds
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.neighbours import Pair, Rows, Sizes
from dpframework.verify.tables.small_table_engine import units_of

TOLERANCE = 1e-6  # rounding allowed in a sum of log-densities, relative to 1 plus the claim
MOST_ROWS = 60  # the most rows of random tables
SMALL = 10  # the most rows of small random tables
FORGOTTEN = 4  # on this many further tables, a recorded run is replayed as if no run had come before
FEW_UNITS = 3  # a table of more rows or units is also shuffled, with the same shuffle each time
SHOWN = 3  # how many places a message names
ADVICE = (
    "if the miner draws random numbers, take them from table.public_random(), which repeats them; "
    "a result must hold values, and not the table, a generator, a figure or the time"
)
STILL = 8  # how many sizes of tables, each with two tables, show whether a query's answer ever changes


@final
class Behaviour:
    """Replays of one subject's transcripts, and the violations that they show.

    Parameters
    ----------
    subject
        The miner on a schema under a relation, with its plan.
    rng
        The random generator that draws the tables.
    patience
        When this is over, no further tables are tried. Each transcript is still replayed on its own table, and on this
        table's rows in another order.
    memory
        Whether a snapshot of what the code holds is taken before the first run. `examine_memory` needs one.

    Attributes
    ----------
    sizes
        The fewest and the most rows that two neighbours may share.
    keeps_size
        Whether neighbours, and so all tables that a chain of them connects, have the same number of rows.
    allowed
        The largest loss that a pure claim allows, with a margin for rounding; infinite without a pure claim.
    reruns
        How often the miner was run again.
    violations
        The violations found, by kind, at most one of each kind.
    """

    def __init__(self, subject: Subject, rng: np.random.Generator, patience: Patience, *, memory: bool = True) -> None:
        self.subject, self.rng, self.patience = subject, rng, patience
        self.sizes = Sizes.of(subject.schema, subject.relation, subject.most_rows(MOST_ROWS * subject.by.rows))
        self.keeps_size = subject.relation is Relation.REPLACE_ONE or subject.schema.rows is not None
        claim = subject.claim
        self._tolerance = TOLERANCE * (1 + float(claim or 0))
        self.allowed = math.inf if claim is None else float(claim) + self._tolerance
        self.reruns = 0
        self.violations: dict[str, Violation] = {}
        if memory:
            parts = [part for step in subject.plan.steps() for part in (step.query, step.mechanism)]
            self._hidden = HiddenState({id(part): part for part in (*parts, subject.miner)}.values())

    def table(self, most: int) -> Rows:
        """Return a random table of up to `most` rows. With probability 1/2, it has at most three kinds of rows."""
        least = self.sizes.least + (1 if self.subject.relation is Relation.REPLACE_ONE else 0)
        size = int(self.rng.integers(least, max(least, min(self.sizes.most, most)) + 1))
        kinds = self.rng.integers(0, self.subject.universe.kinds, 3 if self.rng.random() < 0.5 else MOST_ROWS)
        return bytes(self.rng.choice(kinds, size).tolist())

    def examine(self, table: Rows, transcript: Transcript, most: int) -> None:
        """Replay a transcript on its own table, on its rows in another order, on neighbours, and on unrelated tables.

        Parameters
        ----------
        table
            The table that the transcript was recorded on.
        transcript
            The transcript to replay.
        most
            The most neighbours to try. At most half as many unrelated tables are tried.
        """
        if transcript.refused is not None:
            self.add("plan", transcript.refused, table, table, transcript)
        elif transcript.outcome.error is not None:
            self.add("error", f"the run fails with {transcript.outcome.error}", table, table, transcript)
        here = self._replay(transcript, table)
        if here.divergence is not None:
            kind, what = "refused", here.divergence
            if not here.refused:
                kind, what = "itself", f"repeated with the same releases on the same rows, {what}; {ADVICE}"
            self.add(kind, what, table, table, transcript)
            return
        rows = label_rows(table)
        self._order(here, rows, transcript)
        for other in self._neighbours(rows, most):
            if self.patience.over:
                return
            there = self._replay(transcript, drop_labels(other))
            loss = there.loss(here)
            if there.divergence is not None:
                self._keep_divergence(kind_of(there), f"on a neighbour, {there.divergence}", rows, other, transcript)
            elif loss > self.allowed:
                what = (
                    f"a transcript loses {loss_text(loss)}, the plan claims {loss_text(float(self.subject.claim or 0))}"
                )
                self._keep_divergence("loss", what, rows, other, transcript)
        for far in self._far_tables(table, most // 2):
            if self.patience.over:
                return
            there = self._replay(transcript, far)
            if there.divergence is not None and kind_of(there) not in self.violations:
                self._walk(table, far, transcript)

    def examine_memory(self, table: Rows, transcript: Transcript) -> None:
        """Replay a transcript on several tables, each time with the hidden state from before the first run.

        The run must do the same on every table, and leave the same state behind.
        """
        # These few replays are not counted, so that the searches are as long as without them.
        replay(self.subject, transcript, table)
        first: dict[str, str] | None = None
        for rows in (table, *(self._unlike(table, k) for k in range(FORGOTTEN))):
            # Each run begins with the same hidden state, so that a difference after it comes from the rows.
            self._hidden.put_back()
            with watch_files() as files:
                there = replay(self.subject, transcript, rows)
            kept = self._hidden.changed_places()
            first = kept if first is None else first
            places = sorted({*files, *(name for name in kept | first if kept.get(name) != first.get(name))})
            if places and (not all(map(is_cache, places)) or self._cache_matters(transcript, table, rows)):
                what = f"a run keeps something of its rows for later runs, in {', '.join(places[:SHOWN])}"
                self.add("kept", what, table, rows, transcript)
            elif there.divergence is not None and kind_of(there) not in self.violations:
                what = f"a run keeps something for later runs: if the first run is on another table, {there.divergence}"
                self.add("kept", what, table, rows, transcript)

    def _cache_matters(self, transcript: Transcript, table: Rows, other: Rows) -> bool:
        """Tell whether evaluating the queries on one table changes their answers on another table.

        The cache of a function that depends on its arguments alone remembers earlier tables, but changes no answer.
        """

        def answers(rows: Rows) -> list[Any]:
            engine, held = self.subject.engine, self.subject.engine.hold(rows)
            whole = [made for made in transcript.releases if made.rows == 0]
            return [answer_of(made.charge.step.query, engine, held, made.inputs) for made in whole]

        self._hidden.put_back()
        alone = answers(other)
        self._hidden.put_back()
        answers(table)
        return not same(alone, answers(other))

    def note_no_loss(self, transcripts: Sequence[Transcript]) -> None:
        """Record that no loss at all was found, and which queries answer the same on every table.

        Under replace-one, nothing is recorded if every answer follows from the number of rows alone: replacing a row
        cannot change such an answer.
        """
        engine, sizes = self.subject.engine, (len(self.table(MOST_ROWS)) for _ in range(STILL))
        # Two tables of each size, one after the other.
        held = [engine.hold((self.table(MOST_ROWS) + bytes(size))[:size]) for size in sizes for _ in range(2)]
        still, moving = {}, False
        for made in (made for one in transcripts for made in one.releases if made.rows == 0):
            answers = [answer_of(made.charge.step.query, engine, rows, made.inputs) for rows in held]
            if all(same(answers[0], other) for other in answers):
                still[made.charge.path.removeprefix(SCOPE + "/")] = made
            moving |= not all(same(*pair) for pair in zip(answers[::2], answers[1::2], strict=True))
        if self.subject.relation is Relation.REPLACE_ONE and not still and not moving:
            return
        what = f"the query of step '{', '.join(still)}' answers the same on every table tried" if still else ""
        what = (
            f"the search found no loss at all, so it tested nothing: {what or 'no row changes what was released'}. "
            "Something other than the rows decides the releases, or no loss can be shown on tables of this schema"
        )
        self.add("no loss", what, held[0].rows, held[1].rows, transcripts[0])

    def examine_many(self, transcript: Transcript, most: int) -> None:
        """Replay a transcript on very many equal rows.

        For each of a few kinds of rows, check that the releases can be made. For one of these kinds, also check that
        the run does the same. The second check is left out under replace-one, and if the number of rows is public. No
        chain of neighbours then leads from the small recorded table to a larger one.
        """
        first = int(self.rng.integers(self.subject.universe.kinds))
        for kind in dict.fromkeys((first, *telling_kinds(self.subject.universe))):
            if self.patience.over:
                return
            row = bytes((kind,))
            there = self._replay(transcript, row * most)
            # For kinds other than the first, only a refused release counts.
            if there.divergence is None or (not there.refused and (self.keeps_size or kind != first)):
                continue

            def stops(size: int, row: bytes = row, refused: bool = there.refused) -> bool:
                found = self._replay(transcript, row * size)
                return found.refused if refused else found.divergence is not None

            if not stops(0):
                low = last_before(stops, most)
                there = self._replay(transcript, row * (low + 1))
                self.add(kind_of(there), f"on a neighbour, {there.divergence}", row * low, row * (low + 1), transcript)
            elif there.refused:
                self.add("refused", f"on this table, {there.divergence}", row * most, row * most, transcript)

    def examine_briefly(self, table: Rows, transcript: Transcript) -> None:
        """Replay a transcript on one very different table and, if something differs, on tables between the two."""
        far = self._unlike(table, 2)
        there = self._replay(transcript, far)
        if there.divergence is not None and kind_of(there) not in self.violations:
            self._walk(table, far, transcript)

    def examine_pair(self, pair: Pair, transcript: Transcript) -> None:
        """Replay a transcript, miner included, on both tables of a pair, such as the pair on which it loses most."""
        one, other = label_pair(pair)
        for here, there in ((one, other), (other, one)):
            replayed = self._replay(transcript, drop_labels(there))
            if replayed.divergence is not None:
                self._keep_divergence(
                    kind_of(replayed), f"on a neighbour, {replayed.divergence}", here, there, transcript
                )

    def add(self, kind: str, what: str, one: Rows, other: Rows, transcript: Transcript | None) -> None:
        """Keep a violation with the tables that show it, if it is the first of its kind."""
        self.violations.setdefault(kind, Violation.on(self.subject, what, one, other, transcript))

    def _order(self, here: TranscriptReplay, rows: Labelled, transcript: Transcript) -> None:
        first = len(rows) % self.subject.together
        units = units_of(rows[first:], self.subject.together)  # rows that are sampled together stay together
        mixed = units[1:] + units[:1]
        if len(units) > FEW_UNITS:  # some answers stay the same if all rows move up by one, and if they are reversed
            mixed = [mixed[k] for k in np.random.default_rng(len(units)).permutation(len(units)).tolist()]
        for order in (mixed, units[::-1]):
            other = _join([rows[:first], *order])
            there = self._replay(transcript, drop_labels(other))
            loss = there.loss(here)
            if there.divergence is not None or loss > self._tolerance:
                how = there.divergence or f"a loss of {loss_text(loss)}"
                what = f"the order of the rows matters: with the rows in another order, {how}"
                self._keep_divergence("order", what, rows, other, transcript)

    def _replay(self, transcript: Transcript, rows: Rows) -> TranscriptReplay:
        self.reruns += 1
        return replay(self.subject, transcript, rows)

    def _neighbours(self, rows: Labelled, most: int) -> list[Labelled]:
        """Return some random neighbours, each with a row at some position added, removed or replaced.

        If the plan reads whole units, a whole unit is added or removed in place of a row.
        """
        number = len(rows)
        neighbours: list[Labelled] = []
        kinds = self.rng.integers(0, self.subject.universe.kinds, (2, number + most)).tolist()
        if self.subject.relation is Relation.REPLACE_ONE:
            neighbours += [(*rows[:k], (number, kinds[0][k]), *rows[k + 1 :]) for k in range(number)]
        else:
            units, size = units_of(rows, self.subject.together), self.subject.together
            if self.subject.schema.rows is None:
                neighbours += [_join(units[:k] + units[k + 1 :]) for k in range(len(units))]
            if number <= self.sizes.most:
                # Only the first unit may have fewer rows, so nothing is put before such a unit.
                least = min(number % size, 1)
                for j, k in enumerate(self.rng.integers(least, len(units) + 1, most).tolist()):
                    added = tuple((number + i, kinds[1][(j + i) % len(kinds[1])]) for i in range(size))
                    neighbours.append(_join([*units[:k], added, *units[k:]]))
        return [neighbours[int(k)] for k in self.rng.permutation(len(neighbours))[:most]]

    def _far_tables(self, table: Rows, most: int) -> Iterator[Rows]:
        """Yield random tables.

        Under replace-one, or if the number of rows is public, they have as many rows as the given table.
        """
        for k in range(most):
            far = self.table(SMALL if k % 2 else MOST_ROWS)
            if self.keeps_size:
                far = (far + self.table(MOST_ROWS) + bytes(len(table)))[: len(table)]
            yield b"" if k == 0 and not self.keeps_size else far

    def _unlike(self, table: Rows, k: int) -> Rows:
        """Return table number `k` of a fixed series of tables that are unlike a given table.

        Under replace-one, or if the number of rows is public, it has as many rows as the given table.
        """
        size = len(table) if self.keeps_size else min(self.sizes.most, k * (len(table) + 1))
        return bytes((k + j * (k + 1)) % self.subject.universe.kinds for j in range(size))

    def _walk(self, table: Rows, far: Rows, transcript: Transcript) -> None:
        """Go from one table to another, neighbour by neighbour, and keep the first divergence."""
        alike = len(far) == len(table)
        steps = (
            [far[:k] + table[k:] for k in range(len(table) + 1)]
            if alike
            else [table[k:] for k in range(len(table) + 1)] + [far[:k] for k in range(len(far) + 1)]
        )
        for one, other in itertools.pairwise(steps):
            there = self._replay(transcript, other)
            if there.divergence is None:
                continue
            shared = label_rows(one)
            if len(one) == len(other):
                beside = tuple(
                    row if row[1] == kind else (len(one) + k, kind)
                    for k, (row, kind) in enumerate(zip(shared, other, strict=True))
                )
            elif len(other) < len(one):
                beside = shared[1:]
            else:
                beside = (*shared, (len(one), other[-1]))
            self._keep_divergence(kind_of(there), f"on a neighbour, {there.divergence}", shared, beside, transcript)
            return

    def _keep_divergence(self, kind: str, what: str, one: Labelled, other: Labelled, transcript: Transcript) -> None:
        """Keep a divergence with the smallest two tables found that show it.

        The run on the first table follows the transcript. The run on the second table does not, or loses too much.
        """
        if kind in self.violations:
            return

        def shows(rows: Rows, neighbour: Rows) -> bool:
            here, there = self._replay(transcript, rows), self._replay(transcript, neighbour)
            if here.divergence is not None:
                return False
            loss = there.loss(here)
            if kind == "loss":
                return loss > self.allowed
            if kind == "refused":
                return there.refused
            return there.divergence is not None or (kind == "order" and loss > self._tolerance)

        tables = drop_labels(one), drop_labels(other)
        # If rows are grouped into units, leaving out one row would regroup the rows of other units.
        if self.subject.together == 1:
            tables = shrink_tables(one, other, shows, self.sizes.least)
        self.add(kind, what, *tables, transcript)


def kind_of(replayed: TranscriptReplay) -> str:
    """Return the kind of violation that a replay shows."""
    return "refused" if replayed.refused else "control"


def _join(units: Sequence[Labelled]) -> Labelled:
    return tuple(itertools.chain.from_iterable(units))


def loss_text(loss: float) -> str:
    """Write a loss with six digits, an infinite one in words."""
    return "infinitely much" if math.isinf(loss) else f"{loss:.6g}"
