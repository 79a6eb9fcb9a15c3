"""The record of a run that loses most on a pair of tables, found by choosing the worst output at each release.

A pure claim must hold for every possible output, however rare. The records of other runs, called transcripts, hold
likely outputs only, since these are drawn. So here an adversary runs the miner on one table, knows a second table, and
chooses each output. The adversary compares positions of candidates, numbers beyond both answers, or drawn outputs. The
output that is taken is much likelier on the first table than on the second. Among outputs that lose nearly the most,
the adversary chooses at random, since some of them lead further into the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.plan.plan import Plan
from dpframework.queries import PiecewiseScores
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.run.run_scopes_and_charges import Charge
from dpframework.verify.mechanisms.output_keys import NUMBERS, puts_out_numbers
from dpframework.verify.miners.audit_subject import SCOPE, Subject
from dpframework.verify.miners.replay_on_other_table import core_loss
from dpframework.verify.miners.transcript import (
    DerivationEvent,
    Event,
    PartitionEvent,
    ReleaseEvent,
    SampleEvent,
    Transcript,
    WatchedGate,
    run_through,
)
from dpframework.verify.tables.neighbours import Rows
from dpframework.verify.tables.small_table_engine import RowsHandle

NEARLY = 0.98  # an output that loses at least this share of a release's largest loss counts as equally bad
MOST_POSITIONS = 12  # the most positions of a selection that are tried: one half loses most, one half is drawn
DRAWN = 16  # how many outputs are drawn if they are not numbers
CROSSED = 32  # how many outputs are made from two others
FLATTENINGS = (1, 3, 10, 100)  # how many times wider than claimed the noise is, for outputs that are drawn
BEYOND = (0, 1, 8)  # how far beyond an answer a number lies, as a multiple of the difference of the answers
ROUNDING = 1e-9  # the relative rounding error of a loss


@final
@attrs.frozen(eq=False)
class _WorstGate(WatchedGate):
    """A gate, through which a run reaches its table. It knows a second table, on which its outputs are less likely."""

    rng: np.random.Generator = attrs.field(kw_only=True)
    others: dict[int, RowsHandle] = attrs.field(kw_only=True)
    given: dict[str, Any] = attrs.field(kw_only=True)
    plan: Plan = attrs.field(kw_only=True)
    tried: list[int] = attrs.field(factory=lambda: [0])

    def output(
        self, charge: Charge, rows: RowsHandle, inputs: dict[str, Any], candidates: Sequence[Any] | None, answer: Any
    ) -> Any:
        other = answer_of(charge.step.query, self.engine, self.others[rows.number], inputs)
        output = self._worst(charge, answer, other)
        self.events.append(ReleaseEvent(charge, dict(inputs), candidates, output, rows.number))
        return output

    def _worst(self, charge: Charge, answer: Any, other: Any) -> Any:
        mechanism, calibration = charge.calibration.mechanism, charge.calibration
        most = core_loss(charge, self.plan) * (1 + ROUNDING)
        given = self.given.get(charge.path.removeprefix(SCOPE + "/"))
        if given is not None:
            return given(answer, calibration) if callable(given) else given

        def lose(output: Any) -> float:
            self.tried[0] += 1
            here = mechanism.log_density(answer, output, calibration)
            loss = -math.inf if here == -math.inf else here - mechanism.log_density(other, output, calibration)
            # A release with a delta of its own may have outputs that lose more, which that delta covers.
            return loss if loss <= most else -math.inf

        tried = [(lose(output), output) for output in outputs(mechanism, calibration, answer, other, self.rng)]
        # If the answer is no number, outputs may be of a type of their own, such as trees. Their parts are exchanged.
        if composite(tried[-1][1]) and not isinstance(answer, NUMBERS):
            tried += _cross(tried, lose, self.rng)
        losses = np.array([loss for loss, _ in tried])
        most = losses.max()
        near = np.flatnonzero(losses >= (most * NEARLY if most > 0 else most))
        return tried[int(near[self.rng.integers(len(near))])][1]

    def sampled_rows(self, rows: RowsHandle, rate: Fraction, *, of_units: bool) -> RowsHandle:
        # All rows are kept, so that the row that tells most is in the sample.
        return RowsHandle(rows.rows, rows.derived, 0, rows.units, rows.places)

    def note(self, event: Event) -> None:
        super().note(event)
        source = self.others[event.rows]
        match event:
            case PartitionEvent():
                self.others.update(zip(event.parts, self.engine.split(source, event.cut), strict=True))
            case SampleEvent():
                self.others[event.result] = RowsHandle(
                    source.rows, source.derived, event.result, source.units, source.places
                )
            case DerivationEvent():
                self.others[event.result] = self.engine.derive(source, event.attribute, event.cases)


def worst_transcript(
    subject: Subject, one: Rows, other: Rows, rng: np.random.Generator, given: Mapping[str, Any] | None = None
) -> tuple[Transcript, int]:
    """Return the transcript of a run on one table, with outputs that are much likelier there than on another table.

    The second value is the number of outputs that were tried.

    Parameters
    ----------
    subject
        The miner on a schema under a relation, with its plan.
    one, other
        The table of the run, and the other table.
    rng
        The random generator, which draws outputs, and chooses between outputs that lose nearly the same.
    given
        Outputs that are fixed, by the path of their release. An output may be a function of an answer and a
        calibration.
    """
    randomness = SeededRandomness(int(rng.integers(2**31)))
    others = {0: subject.engine.hold(other)}
    gate = _WorstGate(subject.engine, randomness, rng=rng, others=others, given=dict(given or {}), plan=subject.plan)
    return run_through(subject, gate, one), gate.tried[0]


def outputs(
    mechanism: Mechanism, calibration: Calibration, one: Any, other: Any, rng: np.random.Generator
) -> Iterator[Any]:
    """Yield outputs whose log-densities are to be compared, for the answers on two tables."""
    if isinstance(one, PiecewiseScores):
        breaks = np.unique(np.concatenate([one.breaks, other.breaks]))
        yield from (breaks[:-1] + breaks[1:]) / 2
    elif mechanism.selects and isinstance(one, np.ndarray):
        yield from _positions(one, other, rng)
    else:
        drawn = DRAWN
        if puts_out_numbers(mechanism, one, calibration):
            yield from _beyond(calibration, one, other)
            drawn = len(FLATTENINGS)
        randomness = SeededRandomness(int(rng.integers(2**31)))
        for k in range(drawn):
            wide = attrs.evolve(calibration, scale=calibration.scale * FLATTENINGS[k % len(FLATTENINGS)])
            yield mechanism.release(one if k % 2 else other, wide, randomness)


def composite(output: Any) -> bool:
    """Tell whether an output consists of several whole numbers, as trees do, so that parts can be exchanged."""
    return isinstance(output, np.ndarray) and output.dtype.kind in "iu" and output.size > 1


def _cross(
    tried: Sequence[tuple[float, Any]], lost: Callable[[Any], float], rng: np.random.Generator
) -> list[tuple[float, Any]]:
    """Put parts of other outputs into the worst output, keeping each change that makes it worse.

    Return all outputs that were tried in this way, each with its loss.
    """
    best, found = max(tried, key=lambda one: one[0]), []
    for k in range(CROSSED):
        donor = tried[int(rng.integers(len(tried)))][1]
        if donor.shape != best[1].shape:
            continue
        child = best[1].copy()
        if k % 2:
            part = int(rng.integers(len(child)))
            child[part] = donor[part]
        else:
            part = int(rng.integers(child.size))
            child.flat[part] = donor.flat[part]
        found.append((lost(child), child))
        best = max(best, found[-1], key=lambda one: one[0])
    return found


def _positions(one: Any, other: Any, rng: np.random.Generator) -> Sequence[int]:
    if one.size <= MOST_POSITIONS:
        return range(one.size)
    order = np.argsort(other.ravel() - one.ravel(), kind="stable")
    half = MOST_POSITIONS // 2
    return [*order[:half].tolist(), *rng.integers(0, one.size, half).tolist()]


def _beyond(calibration: Calibration, one: Any, other: Any) -> Iterator[Any]:
    """Yield lattice points at an answer and beyond it, on the side away from the other answer."""
    here, change = np.asarray(one), np.asarray(one) - np.asarray(other)
    for times in BEYOND:
        point = here + times * change
        yield point if calibration.facts.integer else np.rint(point / float(calibration.unit)) * float(calibration.unit)
