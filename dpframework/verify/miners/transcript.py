"""Transcripts of runs on small tables, and how they are recorded. A transcript holds all that a run made public.

A run gets its rows as handles: objects that stand for the whole table, a part or a sample, and show no rows. In a
transcript, each handle has a number. The whole table has number 0.
"""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, final
from unittest import mock

import attrs
import numpy as np

from dpframework.accountant import PureAccountant
from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import ReleaseRefused
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.privacy_losses import decimal_text
from dpframework.facts.row_partitions import Cut
from dpframework.facts.schema import Schema
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.run.gate import Gate
from dpframework.run.private_table import PrivateTable
from dpframework.run.run_scopes_and_charges import Charge, ChargedRelease, Run
from dpframework.verify.miners.audit_subject import SCOPE, Subject
from dpframework.verify.tables.neighbours import Rows
from dpframework.verify.tables.small_table_engine import RowsHandle

STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime"}  # the attributes that every log record has


@final
@attrs.frozen(eq=False)
class ReleaseEvent:
    """A release, with its charge, inputs, candidates and output, and the number of the handle of its rows."""

    charge: Charge
    inputs: Mapping[str, Any]
    candidates: Sequence[Any] | None
    output: Any
    rows: int

    def __str__(self) -> str:
        """Write the path and the value."""
        value = self.output if self.candidates is None else self.candidates[self.output]
        return f"{self.charge.path} -> {str(value).replace(chr(10), ' ')}"


@final
@attrs.frozen(eq=False)
class PartitionEvent:
    """A partition, with its cut, the number of the handle of the rows that were cut, and the numbers of its parts."""

    cut: Cut
    rows: int
    parts: range

    def __str__(self) -> str:
        """Write the cut."""
        cut = self.cut
        if isinstance(cut, Attribute):
            return f"parts by {cut.name}"
        shown = cut.descriptions if isinstance(cut, Cases) else cut
        return f"parts by {', '.join(map(str, shown))}"


@final
@attrs.frozen(eq=False)
class DerivationEvent:
    """A derivation, with the new attribute, its cases, and the numbers of the handles of rows before and after it."""

    attribute: Attribute
    cases: Cases
    rows: int
    result: int

    def __str__(self) -> str:
        """Write the attribute."""
        return f"derived {self.attribute.name}"


@final
@attrs.frozen(eq=False)
class SampleEvent:
    """A sample, with its rate, and the numbers of two handles: of the rows it is drawn from, and of its own rows."""

    rate: Fraction
    rows: int
    result: int

    def __str__(self) -> str:
        """Write the rate."""
        return f"a sample at rate {decimal_text(self.rate)}"


Event: TypeAlias = "ReleaseEvent | PartitionEvent | DerivationEvent | SampleEvent"


@final
@attrs.frozen(eq=False)
class RunOutcome:
    """The end of a run: its result or its error, and all that it printed, logged or warned of on the way."""

    result: Any
    error: str | None
    printed: str


@final
@attrs.frozen(eq=False)
class Transcript:
    """The record of all that one run made public.

    Attributes
    ----------
    events
        Releases, partitions, derivations and samples, in order.
    outcome
        How the run ended.
    refused
        The message of a release that was refused because it is not in the plan; None if no release was refused.
    public_seed
        The seed of the run's public draws.
    """

    events: tuple[Event, ...]
    outcome: RunOutcome
    refused: str | None
    public_seed: int = 0

    @property
    def releases(self) -> list[ReleaseEvent]:
        """The releases, in order."""
        return [event for event in self.events if isinstance(event, ReleaseEvent)]


class RunDiverged(BaseException):
    """Raised if a run on another table does something else. It is not an `Exception`, so that no miner catches it."""


@attrs.frozen(eq=False)
class WatchedGate(Gate):
    """A gate that numbers each handle of rows that it hands out. A run reaches its rows only through a gate.

    Subclasses define `output`, which chooses the output of each release and records it in `events`.
    """

    counter: list[int] = attrs.field(factory=lambda: [0])
    events: list[Event] = attrs.field(factory=list)

    def release_many(self, asked: Sequence[ChargedRelease]) -> list[Any]:
        """Make releases one by one, with the outputs that `output` chooses.

        Other gates make them together, which only saves time.
        """
        outputs = []
        for one in asked:
            answer = self.answer(one)
            candidates = self._candidates(one.charge, answer, one.inputs)
            output = self.output(one.charge, one.rows, one.inputs, candidates, answer)
            if candidates is not None:
                output = candidates[output]
            elif isinstance(output, np.ndarray):
                output = output.copy()  # the miner may write into the array
            outputs.append(output)
        return outputs

    def output(
        self, charge: Charge, rows: RowsHandle, inputs: dict[str, Any], candidates: Sequence[Any] | None, answer: Any
    ) -> Any:
        """Return the output of a release; for a selection, the position of the chosen candidate."""
        raise NotImplementedError

    def note(self, event: Event) -> None:
        """Record a partition, a derivation or a sample."""
        self.events.append(event)

    def split(self, rows: RowsHandle, cut: Cut) -> list[RowsHandle]:
        """Cut rows into parts, and number the parts."""
        parts: list[RowsHandle] = super().split(rows, cut)
        first = self.counter[0] + 1
        for number, part in enumerate(parts, start=first):
            part.number = number
        self.counter[0] += len(parts)
        self.note(PartitionEvent(cut, rows.number, range(first, first + len(parts))))
        return parts

    def sample(self, rows: RowsHandle, rate: Fraction, *, of_units: bool) -> RowsHandle:
        """Draw a sample, and number it."""
        drawn = self.sampled_rows(rows, rate, of_units=of_units)
        self.counter[0] += 1
        drawn.number = self.counter[0]
        self.note(SampleEvent(rate, rows.number, drawn.number))
        return drawn

    def sampled_rows(self, rows: RowsHandle, rate: Fraction, *, of_units: bool) -> RowsHandle:
        """Return the rows of a sample."""
        kept: RowsHandle = super().sample(rows, rate, of_units=of_units)
        return kept

    def derive(self, rows: RowsHandle, attribute: Attribute, cases: Cases) -> RowsHandle:
        """Derive an attribute, and number the extended rows."""
        extended: RowsHandle = super().derive(rows, attribute, cases)
        self.counter[0] += 1
        extended.number = self.counter[0]
        self.note(DerivationEvent(attribute, cases, rows.number, extended.number))
        return extended


@final
@attrs.frozen(eq=False)
class _RecordingGate(WatchedGate):
    """A gate that draws outputs, with noise `flattening` times as wide as claimed, and keeps every event."""

    schema: Schema = attrs.field(kw_only=True)
    flattening: int = 1

    def output(
        self, charge: Charge, rows: RowsHandle, inputs: dict[str, Any], candidates: Sequence[Any] | None, answer: Any
    ) -> Any:
        wide = attrs.evolve(charge.calibration, scale=charge.calibration.scale * self.flattening)
        (output,) = self.draw(attrs.evolve(charge, calibration=wide), [answer])
        # A copy, since the miner may change its inputs later.
        kept = copy.deepcopy(inputs, {id(self.schema): self.schema})
        self.events.append(ReleaseEvent(charge, kept, copy.copy(candidates), copy.copy(output), rows.number))
        return output


def record(subject: Subject, rows: Rows, seed: int, *, flattening: int = 1) -> Transcript:
    """Run a miner on a small table and return the transcript.

    Parameters
    ----------
    subject
        The miner on a schema under a relation, with its plan.
    rows
        The table.
    seed
        The seed of the draws.
    flattening
        How many times wider than claimed the noise is. A pure claim holds for every possible output, so outputs
        that are rare under the claimed noise are worth looking at too.
    """
    gate = _RecordingGate(subject.engine, SeededRandomness(seed), schema=subject.schema, flattening=flattening)
    return run_through(subject, gate, rows)


def run_through(subject: Subject, gate: WatchedGate, rows: Rows) -> Transcript:
    """Run a miner on a small table through a gate, and return the transcript."""
    result, error, refused = None, None, None
    with _listen() as said:
        # A copy of the miner is run, so that it remembers no other run. A plugin's miner that cannot be copied is run
        # itself.
        miner = subject.miner
        with contextlib.suppress(Exception):
            miner = copy.deepcopy(miner)
        run = Run(subject.plan, PureAccountant(subject.relation))
        table = PrivateTable(subject.schema, subject.engine.hold(rows), run.scope(), gate)
        try:
            result = miner.mine(table.scope(SCOPE))
            str(result)  # a reader sees this text first, so it counts if it prints or fails
        except ReleaseRefused as refusal:
            error = refused = str(refusal)
        except (Exception, SystemExit) as failure:  # code that ends the process would end the audit without a word
            error = f"{type(failure).__name__}: {failure}"
    return Transcript(tuple(gate.events), RunOutcome(result, error, said()), refused, gate.public_seed)


class _Logged(logging.Handler):
    """A handler that records log messages."""

    def __init__(self, stream: io.StringIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        """Record the message and its extra fields."""
        beside = {name: value for name, value in vars(record).items() if name not in STANDARD}
        self._stream.write(f"{record.name}: {record.getMessage()} {beside or ''}\n")


@contextlib.contextmanager
def _listen() -> Iterator[Any]:
    """Catch prints, logs and warnings, and yield a function that returns them."""
    printed = io.StringIO()
    root, logged = logging.getLogger(), _Logged(printed)
    level = root.level
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        mock.patch.multiple(sys, __stdout__=printed, __stderr__=printed),
        warnings.catch_warnings(record=True) as warned,
        np.errstate(all="warn", under="ignore"),  # whatever the settings of numpy are elsewhere
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # it comes when memory is freed, which may be at any time
        root.addHandler(logged)
        root.setLevel(min(level, logging.INFO))
        try:
            yield lambda: printed.getvalue() + "".join(f"{w.category.__name__}: {w.message}\n" for w in warned)
        finally:
            root.setLevel(level)
            root.removeHandler(logged)
