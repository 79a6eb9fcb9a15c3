"""Replay the transcript of a run on another table, and compute the log-densities of its outputs there.

A transcript is the record of what a run made public.

`replay` runs the miner again and compares the runs. It also tests whether each release can be made on that table at
all. A release that is refused on some tables tells them apart, and no density accounts for that. `Weigher` evaluates
the same releases without the miner. This is many times faster, which the search for the worst case needs.
"""

from __future__ import annotations

import collections
import itertools
import math
import re
import zlib
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from dpframework.facts.privacy_losses import NOTHING
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.plan.plan import Plan
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.results.json_safe import to_json_safe
from dpframework.run.run_scopes_and_charges import Charge
from dpframework.verify.mechanisms.release_failure_check import refusal
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.transcript import (
    DerivationEvent,
    Event,
    PartitionEvent,
    ReleaseEvent,
    RunDiverged,
    SampleEvent,
    Transcript,
    WatchedGate,
    run_through,
)
from dpframework.verify.miners.value_comparison import same
from dpframework.verify.tables.neighbours import Rows
from dpframework.verify.tables.small_table_engine import RowsHandle, SmallTables, with_units

MOST_SAMPLES = 512  # the most samples of one table whose probabilities are added up
MOST_REMEMBERED = 100_000  # the most rows, in total, of tables whose results are cached


@final
@attrs.frozen(eq=False)
class TranscriptReplay:
    """The replay of a transcript on a table.

    Attributes
    ----------
    densities
        The log-density of each output of the transcript on that table, -inf for an impossible output. None if there are
        too many samples to add up, or if the run does not follow the transcript.
    divergence
        How the run differs in what it makes public, in one sentence; None if it does not.
    refused
        Whether the run differs because a release cannot be made on that table.
    caps
        The most that each release may add to a loss (see `caps_of`).
    """

    densities: tuple[float, ...] | None
    divergence: str | None
    refused: bool = False
    caps: tuple[float, ...] = ()

    def loss(self, other: TranscriptReplay) -> float:
        """Return the realised loss between two tables (see `difference`), 0 where nothing is known."""
        if self.densities is None or other.densities is None:
            return 0.0
        return difference(self.densities, other.densities, self.caps)


class ReleaseImpossible(RunDiverged):
    """Raised if a release that was made on one table cannot be made on another."""


@final
@attrs.frozen(eq=False)
class _ForcedGate(WatchedGate):
    """A gate, through which a run reaches its rows. It returns recorded outputs, and stops a run that differs.

    At each release, an output is also drawn and thrown away. This shows whether the mechanism can make the release, and
    whether its density allows what it draws.
    """

    recorded: Sequence[Event] = ()
    densities: list[float] = attrs.field(factory=list)
    position: list[int] = attrs.field(factory=lambda: [0])

    def _next(self, what: str) -> Event:
        if self.position[0] >= len(self.recorded):
            raise RunDiverged(f"the run goes on to {what}, where the recorded run had ended its releases")
        self.position[0] += 1
        return self.recorded[self.position[0] - 1]

    def output(
        self, charge: Charge, rows: RowsHandle, inputs: dict[str, Any], candidates: Sequence[Any] | None, answer: Any
    ) -> Any:
        made = self._next(f"release '{charge.path}'")
        if not isinstance(made, ReleaseEvent) or made.charge.path != charge.path or made.rows != rows.number:
            raise RunDiverged(f"the run releases '{charge.path}' where the recorded run did '{made}'")
        if not same(charge.step.mechanism, made.charge.step.mechanism):
            raise RunDiverged(f"the run asks for '{charge.path}' with other parameters than the recorded run")
        if not same(candidates, made.candidates):
            raise RunDiverged(f"the candidates of '{charge.path}' differ")
        if not same(inputs, made.inputs):
            raise RunDiverged(f"the inputs given to '{charge.path}' differ")
        self.densities.append(charge.calibration.mechanism.log_density(answer, made.output, charge.calibration))
        wrong = refusal(charge.calibration.mechanism, answer, charge.calibration, self.randomness)
        if wrong is not None:
            raise ReleaseImpossible(f"release '{charge.path}' {wrong}")
        return made.output

    def note(self, event: Event) -> None:
        recorded = self._next(str(event))
        if not same(event, recorded):
            raise RunDiverged(f"the run makes {event} where the recorded run did '{recorded}'")


def replay(subject: Subject, transcript: Transcript, rows: Rows, engine: SmallTables | None = None) -> TranscriptReplay:
    """Run the miner on a table with the outputs of a transcript forced upon it.

    Parameters
    ----------
    subject
        The miner on a schema under a relation, with its plan.
    transcript
        The transcript.
    rows
        The table.
    engine
        An engine that counts in place of the subject's.
    """
    noise, seed = SeededRandomness(zlib.crc32(rows)), transcript.public_seed
    gate = _ForcedGate(engine or subject.engine, noise, (), public_seed=seed, recorded=transcript.events)
    try:
        outcome = run_through(subject, gate, rows).outcome
    except RunDiverged as diverged:
        return TranscriptReplay(None, str(diverged), isinstance(diverged, ReleaseImpossible))
    if gate.position[0] < len(transcript.events):
        return TranscriptReplay(None, f"the run ends before '{transcript.events[gate.position[0]]}'")
    if outcome.error != transcript.outcome.error:  # it may have failed at a release, which then has no density
        what = "the run fails on one table, and on the other it does not fail or fails in another way"
        return TranscriptReplay(None, what)
    if any(map(math.isnan, gate.densities)):
        return TranscriptReplay(None, "a mechanism's log-density is not a number")
    if not any(isinstance(event, SampleEvent) for event in transcript.events):
        densities = tuple(gate.densities)
    else:
        try:
            densities = tuple(Weigher(subject, transcript).densities(rows))
        except TooManySamplesError:
            densities = None
    caps = caps_of(subject, transcript.events)
    if outcome.printed != transcript.outcome.printed:
        differs = "the run prints, logs or warns of something else with the same releases"
    elif not same(outcome.result, transcript.outcome.result) or _text(outcome.result) != _text(
        transcript.outcome.result
    ):
        differs = "the run's result differs with the same releases: it depends on more than the releases"
    else:
        differs = None
    return TranscriptReplay(densities, differs, caps=caps)


def _text(result: Any) -> str:
    """Return a result as text and as JSON, as a reader sees it, without addresses in memory."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", f"{result} {to_json_safe(result)}")


class TooManySamplesError(Exception):
    """Raised if a table has more samples than can be added up."""


@final
class Weigher:
    """The log-densities of a transcript's outputs on any table. Each event's result is cached by the event's rows.

    A release reads its own rows only. So one more row in the table changes only the densities of releases that read
    this row. The densities of all other releases are in the cache.

    Parameters
    ----------
    subject
        The miner on a schema under a relation, with its plan.
    transcript
        The transcript with the outputs.
    """

    def __init__(self, subject: Subject, transcript: Transcript) -> None:
        self._subject, self._events = subject, transcript.events
        self._caps = caps_of(subject, transcript.events)
        self._known: list[dict[Any, Any]] = [{} for _ in transcript.events]
        self._remembered = 0

    def densities(self, rows: Rows) -> list[float]:
        """Return the log-density of each release, in order.

        All releases from one sample count as one release, whose density is the mean over all samples.

        Raises
        ------
        TooManySamplesError
            If there are too many samples to add up.
        """
        return self._densities({0: self._subject.engine.hold(rows)}, 0)

    def _densities(self, held: dict[int, RowsHandle], first: int) -> list[float]:
        """Return the log-densities of releases from the held rows and their parts, from event number `first` on."""
        densities = []
        for number in range(first, len(self._events)):
            event = self._events[number]
            if event.rows not in held:
                continue  # rows of a sample that was averaged over, or rows outside the sample at hand
            source = held[event.rows]
            if isinstance(event, SampleEvent):
                samples = samples_of(source, event.rate, ordered=self._subject.plan.reads_places)
                if samples is None:
                    raise TooManySamplesError
                # Nobody sees which sample was drawn, so the density is the mean over all of them.
                logs = [
                    chance + math.fsum(self._densities({event.result: drawn}, number + 1)) for chance, drawn in samples
                ]
                densities.append(float(np.logaddexp.reduce(logs)))
                continue
            found = self._result(number, source)
            if isinstance(event, ReleaseEvent):
                densities.append(found)
            elif isinstance(event, PartitionEvent):
                held.update(zip(event.parts, found, strict=True))
            else:
                held[event.result] = found
        return densities

    def _result(self, number: int, held: RowsHandle) -> Any:
        """Return what an event gives for some rows: the log-density of a release, the parts, or the derived rows.

        The result is cached by the rows, unless there are many rows. A full cache is emptied first.
        """
        known, event, engine, key = self._known[number], self._events[number], self._subject.engine, held.key
        if key in known:
            return known[key]
        found: Any = None
        match event:
            case ReleaseEvent():
                calibration = event.charge.calibration
                answer = answer_of(event.charge.step.query, engine, held, event.inputs)
                found = calibration.mechanism.log_density(answer, event.output, calibration)
            case PartitionEvent():
                found = engine.split(held, event.cut)
            case DerivationEvent():
                found = engine.derive(held, event.attribute, event.cases)
        if len(held.rows) <= MOST_REMEMBERED // 100:
            self._remembered += len(held.rows)
            if self._remembered > MOST_REMEMBERED:
                self._remembered = len(held.rows)
                for of_event in self._known:
                    of_event.clear()
            known[key] = found
        return found

    def loss(self, one: Rows, other: Rows) -> float:
        """Return the realised privacy loss between two tables, infinite if only one of them can give the outputs.

        If there are too many samples to add up, nothing is known, and 0 is returned. If a query or a density fails on a
        table, the loss is infinite, since a run would end there.
        """
        try:
            return difference(self.densities(one), self.densities(other), self._caps)
        except TooManySamplesError:
            return 0.0
        except (Exception, SystemExit):
            return math.inf


def caps_of(subject: Subject, events: Iterable[Event]) -> tuple[float, ...]:
    """Return the most that each release may add to a loss: infinite, except for releases with an exact delta.

    An exact delta divides the possible outputs into a core, for which the epsilon holds, and the rest, whose
    probability is at most delta (see `mechanisms.release_losses`). A single output does not show whether it is in the
    core, so each release counts for at most what its core may lose. Whether delta is large enough is tested where all
    outputs of a release are listed (`check_losses`). Releases from a sample count for nothing. So do releases with an
    exact delta if a unit's rows may lie in several parts. The caps are empty for a plan without an exact delta.
    """
    plan, caps, sampled = subject.plan, [], set[int]()
    if not plan.has_exact_delta:
        return ()
    for event in events:
        if event.rows in sampled:
            sampled.update(event.parts if isinstance(event, PartitionEvent) else ())
            sampled.update((event.result,) if isinstance(event, SampleEvent | DerivationEvent) else ())
        elif isinstance(event, SampleEvent):
            sampled.add(event.result)
            caps.append(0.0)
        elif isinstance(event, ReleaseEvent):
            caps.append(core_loss(event.charge, plan))
    return tuple(caps)


def core_loss(charge: Charge, plan: Plan) -> float:
    """Return the most that a release's core (see `caps_of`) may lose, infinite if the release has no exact delta."""
    losses, in_parts = charge.calibration.losses, plan.in_parts(charge.planned)
    if losses.delta == NOTHING:
        return math.inf
    pure = losses.pure.add_or_remove_one if in_parts else losses.pure.under(plan.relation)
    return 0.0 if pure is None or (in_parts and plan.unit.rows > 1) else float(pure)


def difference(one: Sequence[float], other: Sequence[float], caps: Sequence[float] = ()) -> float:
    """Return the absolute difference of two sums of log-densities, 0 if both tables exclude the outputs.

    If a density is not a number, the difference is infinite, which counts as a violation.

    Parameters
    ----------
    one, other
        The log-densities of each release, on one table and on the other.
    caps
        The most that each release may add to the difference, finite for releases with an exact delta. If only one table
        can give the output of such a release, the output lies outside the core. The difference is then 0, since nothing
        is known about such a transcript.
    """
    if any(map(math.isnan, one)) or any(map(math.isnan, other)):
        return math.inf
    if caps:
        pairs = list(zip(one, other, caps, strict=True))
        if any(math.isfinite(cap) and (a == -math.inf) != (b == -math.inf) for a, b, cap in pairs):
            return 0.0
        if not any(-math.inf in (a, b) for a, b, _ in pairs):
            return abs(math.fsum(min(max(a - b, -cap), cap) for a, b, cap in pairs))
    impossible_here, impossible_there = -math.inf in one, -math.inf in other
    if impossible_here or impossible_there:
        return 0.0 if impossible_here and impossible_there else math.inf
    return abs(math.fsum(a - b for a, b in zip(one, other, strict=True)))


def samples_of(held: RowsHandle, rate: Fraction, *, ordered: bool = False) -> list[tuple[float, RowsHandle]] | None:
    """Return every sample of a table without regard to order, with the logarithm of its probability.

    Any subset of the rows may be a sample. If the rows' units are known, a sample holds all rows of a unit or none.
    Return None if there are too many samples to add up. If `ordered`, units with the same rows in another order count
    as different, which is needed if a query reads the places of rows in their units.
    """
    rows = held.rows
    if held.units is None:
        counts = [(bytes((kind,)), rows.count(kind)) for kind in dict.fromkeys(rows)]
    else:
        contents: dict[int, list[int]] = {}
        for unit, kind in zip(held.units.tolist(), rows, strict=True):
            contents.setdefault(unit, []).append(kind)
        alike = collections.Counter(bytes(kinds if ordered else sorted(kinds)) for kinds in contents.values())
        counts = list(alike.items())
    if math.prod(number + 1 for _, number in counts) > MOST_SAMPLES:
        return None
    here, away, found = math.log(rate), math.log1p(-rate), []
    of_all = sum(number for _, number in counts)
    for kept in itertools.product(*(range(number + 1) for _, number in counts)):
        ways = math.prod(math.comb(number, k) for (_, number), k in zip(counts, kept, strict=True))
        chance = math.log(ways) + sum(kept) * here + (of_all - sum(kept)) * away
        units = [unit for (unit, _), k in zip(counts, kept, strict=True) for _ in range(k)]
        drawn = b"".join(units)
        one_each = held.units is None
        found.append(
            (chance, RowsHandle(drawn, held.derived, 0) if one_each else with_units(drawn, units, held.derived))
        )
    return found
