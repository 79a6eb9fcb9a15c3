"""Runs that are steered into code which drawn outputs hardly ever reach, such as a branch on a large noisy count.

A release is public, so code may branch on it, and the code behind the branch must follow from releases, too. Small
tables have small counts, and noise is seldom large. So the outputs of some runs are chosen: very large and very small
numbers, each coordinate the largest in turn, and the constants of the code with the numbers next to them. A run is kept
if it executes code that no run before has executed.
"""

from __future__ import annotations

import collections
import contextlib
import dis
import functools
import math
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, final

import attrs
import numpy as np

from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.run.scope import Charge
from dpframework.verify.mechanisms.output_forms import NUMBERS
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.hidden_state import is_foreign_module
from dpframework.verify.miners.transcript import Event, ReleaseEvent, Transcript, WatchedGate, run_through
from dpframework.verify.patience import Patience
from dpframework.verify.queries.code_constants import constants_of
from dpframework.verify.tables.neighbours import Rows
from dpframework.verify.tables.small_tables import Held

LARGE = 10**6
ALWAYS = ([(LARGE, None)], [(-LARGE, None)])  # code may do the same with them, and something else come of it
USUAL = 100  # a number beyond is hardly ever an input that follows from releases of small tables
MOST_CONSTANTS = 12
COORDINATES = 4  # that are each the largest in turn
OPPOSED = 2  # of these, that lie on the other side of 0 than all others
FEWEST_RUNS = 40
REPLAYS_OF_RUN = 80  # of an audit, for each steered run
MOST_STEPS = 4  # of a run, of which each is aimed otherwise where the run reached something new
LONG = 6  # releases: a run of more takes long, and fewer are made
MOST_KEPT = 6
MOST_CALLS = 20  # of one function in a run that are traced: each operation of it is a call of the tracer
Aim: TypeAlias = "tuple[float, int | None] | tuple[float, int, float] | None"
"""A number, the coordinate that it is for, None for all, and what the others are, 0 by default.

Or None for an output as it is drawn.
"""


@final
@attrs.frozen(eq=False)
class _SteeringGate(WatchedGate):
    """A gate that puts out a wanted number, or candidate, where the mechanism may put it out."""

    aims: Sequence[Aim] = (None,)
    events: list[Event] = attrs.field(factory=list)

    def output(
        self, charge: Charge, rows: Held, inputs: dict[str, Any], candidates: Sequence[Any] | None, answer: Any
    ) -> Any:
        (drawn,) = self.draw(charge, [answer])
        aim = self.aims[len(self.events) % len(self.aims)]
        number, place, *others = aim or (0, None)
        mechanism, calibration = charge.calibration.mechanism, charge.calibration
        wanted = drawn
        if aim is None:
            pass
        elif candidates is not None:
            wanted = (place or 0) % len(candidates)
        elif isinstance(drawn, NUMBERS) and np.asarray(drawn).dtype.kind in "if":
            kind, unit = np.asarray(drawn).dtype, float(calibration.unit)
            point, rest = (kind.type(np.rint(one / unit) * unit) for one in (number, *others, 0)[:2])
            here = np.arange(np.size(drawn)).reshape(np.shape(drawn)) == place
            wanted = np.where(here | (place is None), point, rest)
        if mechanism.log_density(answer, wanted, calibration) == -math.inf:
            wanted = drawn
        self.events.append(ReleaseEvent(charge, dict(inputs), candidates, wanted, rows.number))
        return wanted

    def happened(self, event: Event) -> None:
        self.events.append(event)


def steer(
    subject: Subject, tables: Sequence[Rows], patience: Patience, replays: int = 12_000
) -> Iterator[tuple[Rows, Transcript]]:
    """Yield runs that reach code which none before them has reached, each with its table.

    Parameters
    ----------
    subject
        What is audited.
    tables
        The tables of the runs, by turns. The first ones are drawn on them as claimed: what these reach is known.
    patience
        When no more are tried.
    replays
        How many the audit may make, which limits the number of runs.
    """
    steps = list(subject.plan.steps())
    things = [subject.miner, *(part for step in steps for part in (step.query, step.mechanism))]
    modules = {kind.__module__ for thing in things for kind in type(thing).__mro__}
    packages = {module.partition(".")[0] for module in modules if is_foreign_module(module)}
    constants = constants_of(things)[:MOST_CONSTANTS]
    reached, kept = set[Any](), 0
    left: list[Sequence[Aim]] = [(None,), (None,), *_aims(constants)]
    for k in range(max(FEWEST_RUNS, replays // REPLAYS_OF_RUN)):
        if not left or kept == MOST_KEPT or (k and patience.over):
            return
        aims, rows = left.pop(0), tables[k % len(tables)]
        gate = _SteeringGate(subject.engine, SeededRandomness(k), aims=aims)
        with _trace(packages) as here:
            outcome, refused = run_through(subject, gate, rows)
        here.update(_paths(gate.events))
        new, reached = not here <= reached, reached | here
        if (new and aims != (None,)) or aims in ALWAYS:
            kept += 1
            yield rows, Transcript(tuple(gate.events), outcome, refused, gate.public_seed)
        if new and len(gate.events) <= LONG:
            left += _beside(aims, len(gate.events), constants)


def _beside(aims: Sequence[Aim], length: int, constants: Sequence[float]) -> Iterator[Sequence[Aim]]:
    """Yield a run's outputs, each time with one release aimed at another output."""
    whole = [aims[k % len(aims)] for k in range(length + 1)]
    others: list[Aim] = [(LARGE, None), (-LARGE, None), *((LARGE, place) for place in range(COORDINATES))]
    for k in range(min(length, MOST_STEPS)):
        for other in (*others, *((number, None) for number in constants[:2])):
            yield [*whole[:k], other, *whole[k + 1 :]]


def _paths(events: Sequence[Event]) -> Iterator[Any]:
    """Yield the steps of a run's releases, their number, and whether their inputs are large or below 0."""
    made = [event for event in events if isinstance(event, ReleaseEvent)]
    yield from (event.charge.path for event in made)
    yield "number of releases", min(len(made), 3)
    for event in made:
        for name, given in event.inputs.items():
            if isinstance(given, int | float | np.integer | np.floating):
                number = float(given)
                yield event.charge.step.query.name, name, number < 0, abs(number) > USUAL


def _aims(constants: Sequence[float]) -> Iterator[Sequence[Aim]]:
    """Yield the outputs of all releases of a run."""
    yield from ([(number, None)] for number in (0, LARGE, -LARGE))
    yield from ([(number, place, -number)] for place in range(OPPOSED) for number in (LARGE, -LARGE))
    for number in constants:
        yield from ([(beside, None)] for beside in (number + 1, number, number - 1))
    yield from ([(LARGE, place)] for place in range(COORDINATES))


@functools.cache
def _branches(code: types.CodeType) -> bool:
    """Tell whether a function can go two ways. One that cannot is reached as a whole."""
    return any(operation.opcode in (*dis.hasjrel, *dis.hasjabs) for operation in dis.get_instructions(code))


@contextlib.contextmanager
def _trace(packages: set[str]) -> Iterator[set[Any]]:
    """Yield a set that fills with the operations that code of some packages executes, as coverage tools do it."""
    reached: set[Any] = set()
    calls = collections.Counter[types.CodeType]()
    before = sys.gettrace()

    def inside(frame: types.FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            reached.add((frame.f_code, frame.f_lasti))
        return inside

    def call(frame: types.FrameType, event: str, _: Any) -> Any:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in packages:
            return None
        code = frame.f_code
        calls[code] += 1
        if calls[code] > MOST_CALLS or not _branches(code):
            reached.add((code, 0))
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return inside

    sys.settrace(call)
    try:
        yield reached
    finally:
        sys.settrace(before)
