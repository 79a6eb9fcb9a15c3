"""Runs that are steered into code which drawn outputs hardly ever reach, such as a branch on a large noisy count.

A release is public, so code may branch on it. But the code within a branch must also depend on the rows only through
releases. Small tables have small counts, and noise is seldom large, so drawn outputs leave some branches untested.
Therefore the outputs of some runs are chosen: 0; numbers far above and far below 0; outputs in which one of the first
few coordinates is the largest; and the constants in the code, with the numbers next to them. A run is kept if it
reaches something that no earlier run has reached: an operation of the code, a step, another number of releases, or a
large or negative input. Two runs, one with all outputs far above 0 and one with all far below, are kept in any case.
"""

from __future__ import annotations

import collections
import contextlib
import dis
import functools
import itertools
import math
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, final

import attrs
import numpy as np

from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.run.run_scopes_and_charges import Charge
from dpframework.verify.mechanisms.output_keys import NUMBERS
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.transcript import Event, ReleaseEvent, Transcript, WatchedGate, run_through
from dpframework.verify.plugin_code_constants import constants_of, is_foreign_module
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.neighbours import Rows
from dpframework.verify.tables.small_table_engine import RowsHandle

LARGE = 10**6  # a chosen output far above all usual ones
ALWAYS = ([(LARGE, None)], [(-LARGE, None)])  # the aims (see `Aim`) of two runs that are kept whatever they reach
USUAL = 100  # an input larger than this hardly ever comes from a release of a small table
MOST_CONSTANTS = 12  # how many constants of the code, at most, are chosen as outputs
COORDINATES = 4  # how many of the first coordinates of an output are, in turn, made the largest
OPPOSED = 2  # how many coordinates are, in turn, put far on one side of 0, with all others far on the other side
FEWEST_RUNS = 40  # how many runs may be tried, even if an audit makes few replays
REPLAYS_OF_RUN = 80  # one run is tried for each 80 replays, if this gives more than `FEWEST_RUNS`
REPLAYS_OF_AIM = 160  # `aim_at_constants` makes at most one run for each 160 replays
MOST_STEPS = 4  # if a run reaches something new, this many of its events are aimed at other outputs, one at a time
LONG = 6  # variants are tried only of runs with at most this many events, since longer runs take long
MOST_KEPT = 6  # how many runs are kept, at most
MOST_CALLS = 20  # how many calls of one function are traced in a run, since each operation calls the tracer
Aim: TypeAlias = "tuple[float, int | None] | tuple[float, int, float] | None"
"""The output to aim at: a number, the coordinate that it is put into, and the number in the other coordinates.

The number in the other coordinates is 0 by default. The coordinate None stands for all coordinates. Where a mechanism
chooses among candidates, the coordinate is the position of the chosen candidate (None for the first), and the numbers
do not matter. An aim that is None leaves the output as it is drawn.
"""


@final
@attrs.frozen(eq=False)
class _SteeringGate(WatchedGate):
    """A gate, through which a run reaches its rows. It returns chosen outputs, if the mechanism can give them."""

    aims: Sequence[Aim] = (None,)

    def output(
        self, charge: Charge, rows: RowsHandle, inputs: dict[str, Any], candidates: Sequence[Any] | None, answer: Any
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


def steer(
    subject: Subject, tables: Sequence[Rows], patience: Patience, replays: int = 12_000
) -> Iterator[tuple[Rows, Transcript]]:
    """Yield runs that reach something which no earlier run has reached, each with its table.

    At most `MOST_KEPT` runs are kept. The runs of `ALWAYS` are kept whatever they reach.

    Parameters
    ----------
    subject
        The miner on a schema under a relation, with its plan.
    tables
        The tables, which the runs use in turn. The first two runs return what is drawn. They only show which code
        ordinary runs reach.
    patience
        When this is over, no more runs are tried.
    replays
        How many replays the audit may make. More replays allow more runs.
    """
    steps = list(subject.plan.steps())
    things = [subject.miner, *(part for step in steps for part in (step.query, step.mechanism))]
    modules = {kind.__module__ for thing in things for kind in type(thing).__mro__}
    packages = {module.partition(".")[0] for module in modules if is_foreign_module(module)}
    constants = constants_of(things)[:MOST_CONSTANTS]
    reached, kept = set[Any](), 0
    left: list[Sequence[Aim]] = [(None,), (None,), *_first_aims(constants)]
    for k in range(max(FEWEST_RUNS, replays // REPLAYS_OF_RUN)):
        if not left or kept == MOST_KEPT or (k and patience.over):
            return
        aims, rows = left.pop(0), tables[k % len(tables)]
        gate = _SteeringGate(subject.engine, SeededRandomness(k), aims=aims)
        with _trace(packages) as here:
            transcript = run_through(subject, gate, rows)
        here.update(_paths(transcript.events))
        new, reached = not here <= reached, reached | here
        if (new and aims != (None,)) or aims in ALWAYS:
            kept += 1
            yield rows, transcript
        if new and len(transcript.events) <= LONG:
            left += _variants(aims, len(transcript.events), constants)


def aim_at_constants(
    subject: Subject, tables: Sequence[Rows], patience: Patience, replays: int
) -> Iterator[tuple[Rows, Transcript]]:
    """Yield runs, each with its table, in which all releases are aimed at one number that the code suggests.

    The number is a constant of the code, or the middle between one constant and the next larger one.

    Code may do something else for such numbers without any branch, for example by interpolation. Such runs reach
    nothing new, and `steer` does not keep them.

    Parameters
    ----------
    subject, tables, patience, replays
        See `steer`.
    """
    things = [subject.miner, *(part for step in subject.plan.steps() for part in (step.query, step.mechanism))]
    constants = constants_of(things)[:MOST_CONSTANTS]
    between = [(one + other) / 2 for one, other in itertools.pairwise(sorted(constants)) if other - one > 1]
    for k, number in enumerate([*constants, *between][: replays // REPLAYS_OF_AIM]):
        if patience.over:
            return
        gate, rows = _SteeringGate(subject.engine, SeededRandomness(k), aims=[(number, None)]), tables[k % len(tables)]
        yield rows, run_through(subject, gate, rows)


def _variants(aims: Sequence[Aim], length: int, constants: Sequence[float]) -> Iterator[Sequence[Aim]]:
    """Yield a run's aims, each time with one event aimed at another output."""
    whole = [aims[k % len(aims)] for k in range(length + 1)]
    others: list[Aim] = [(LARGE, None), (-LARGE, None), *((LARGE, place) for place in range(COORDINATES))]
    for k in range(min(length, MOST_STEPS)):
        for other in (*others, *((number, None) for number in constants[:2])):
            yield [*whole[:k], other, *whole[k + 1 :]]


def _paths(events: Sequence[Event]) -> Iterator[Any]:
    """Yield values that stand for what a run has reached besides operations of the code.

    They are the path of each release, the number of releases up to 3, and whether numeric inputs are large or negative.
    """
    made = [event for event in events if isinstance(event, ReleaseEvent)]
    yield from (event.charge.path for event in made)
    yield "number of releases", min(len(made), 3)
    for event in made:
        for name, given in event.inputs.items():
            if isinstance(given, int | float | np.integer | np.floating):
                number = float(given)
                yield event.charge.step.query.name, name, number < 0, abs(number) > USUAL


def _first_aims(constants: Sequence[float]) -> Iterator[Sequence[Aim]]:
    """Yield the aims of the first runs, each a single aim for all releases."""
    yield from ([(number, None)] for number in (0, LARGE, -LARGE))
    yield from ([(number, place, -number)] for place in range(OPPOSED) for number in (LARGE, -LARGE))
    for number in constants:
        yield from ([(beside, None)] for beside in (number + 1, number, number - 1))
    yield from ([(LARGE, place)] for place in range(COORDINATES))


@functools.cache
def _branches(code: types.CodeType) -> bool:
    """Tell whether a function's code branches. If it does not, each call executes all of it."""
    return any(operation.opcode in (*dis.hasjrel, *dis.hasjabs) for operation in dis.get_instructions(code))


@contextlib.contextmanager
def _trace(packages: set[str]) -> Iterator[set[Any]]:
    """Yield a set that collects the executed operations of these packages' code, traced as coverage tools do."""
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
