"""Compare the errors that a miner states with errors that are measured.

A run on a made-up table is recorded. Then it is repeated on the same table, with the exact answer in place of each
noisy number, and with the same choices. The results of both runs differ only by the noise, so each number's error is
known. At most 5 % of the errors may exceed a stated bound (`ErrorBound`), and at most 5 % of the intervals in results
(`Estimate`, `Noisy`, and tables of counts) may miss the exact number.
"""

from __future__ import annotations

import collections
import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

import attrs
import numpy as np

from dpframework.facts.logical_descriptions_of_rows import Description
from dpframework.facts.privacy_losses import exact
from dpframework.mechanisms.base import Mechanism
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.plan.error_bounds_by_result import PlannedPart, planned_parts
from dpframework.results import Estimate, Noisy
from dpframework.results.count_table_base import CountTable
from dpframework.results.error_bounds import BoundKind, ErrorBound
from dpframework.results.noisy_count_with_interval import CONFIDENCE
from dpframework.run.miner_base_and_examples import Miner
from dpframework.run.run_scopes_and_charges import Charge
from dpframework.verify.miners.audit_subject import AMOUNTS, SCOPE, Subject
from dpframework.verify.miners.query_trace import fit_rows
from dpframework.verify.miners.transcript import (
    Event,
    ReleaseEvent,
    RunDiverged,
    Transcript,
    WatchedGate,
    record,
    run_through,
)
from dpframework.verify.miners.value_comparison import same
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import SPENT
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.neighbours import Rows
from dpframework.verify.tables.small_table_engine import RowsHandle

RUNS = 40  # on each of up to three tables; of 120 errors, 25 or so must exceed a bound before it is refused
SIZES = (30, 500)  # the numbers of rows of tables if the schema states none
MOST_ROWS = 10**6  # on larger tables, runs take too long
MISTAKE = 1e-6  # the probability with which the check may refuse an honest bound
ROWS = 400  # the public estimate of the number of rows in another try
HOW = f"a quarter of the budget and about {ROWS} rows"
ROUNDING = 1e-9  # the relative error that sums of floats may have
DEPTH = 12  # how deep numbers may lie in a result

#: A number's place in a result: names and keys that lead to it, joined by `/`, and the texts beside it. If a result
#: lists what was selected, the texts say which selected item the number belongs to.
Place: TypeAlias = tuple[str, str]
Errors: TypeAlias = Mapping[Place, Sequence[float]]
Misses: TypeAlias = Mapping[Place, Sequence[bool]]


@final
@attrs.frozen(eq=False)
class _ExactGate(WatchedGate):
    """A gate that repeats a recorded run without noise: numbers are exact, and all other outputs are the recorded ones.

    A run that then asks for something else, because it depends on a noisy count, cannot be repeated.
    """

    recorded: tuple[ReleaseEvent, ...] = attrs.field(kw_only=True)

    def note(self, event: Event) -> None:
        """Keep no events."""

    def output(self, charge: Charge, rows: RowsHandle, inputs: dict[str, Any], candidates: Any, answer: Any) -> Any:
        made = self.recorded[len(self.events)] if len(self.events) < len(self.recorded) else None
        if made is None or made.charge.path != charge.path or made.rows != rows.number:
            raise RunDiverged(f"the run asks for '{charge.path}', which the recorded run did not")
        if not _adds_noise(charge.step.mechanism):
            if not same(candidates, made.candidates):
                raise RunDiverged(f"the candidates of '{charge.path}' differ")
            self.events.append(made)
            return made.output
        like = np.asarray(made.output)
        exact = np.reshape(np.asarray(answer, dtype=like.dtype), like.shape)
        output = exact if isinstance(made.output, np.ndarray) else type(made.output)(exact.item())
        self.events.append(attrs.evolve(made, output=output))
        return output


def _adds_noise(mechanism: Mechanism) -> bool:
    return type(mechanism).variance is not Mechanism.variance


def error_problems(subject: Subject, seed: int, patience: Patience, left_out: list[str]) -> list[str]:
    """Return a text for each stated error bound, and each interval of a result, that is too small.

    A miner that states bounds of its own is also tried with a quarter of its budget, and with a public estimate of the
    number of rows. A bound may be right for one amount of noise only, and many bounds need the number of rows.

    Parameters
    ----------
    subject
        The miner, schema and relation.
    seed
        The seed of the draws.
    patience
        When this is over, no further runs are made.
    left_out
        The list that gets a text for each bound that does not say which numbers of the result it is about.
    """
    if subject.plan.index.samples:  # a sample differs from its table by more than noise
        return []
    try:
        found = _problems(subject, seed, patience, left_out)
    except Exception as error:  # raised by `error_bounds`, since a run that fails has no numbers
        return [f"the miner fails to state its error bounds ({type(error).__name__}: {error})"]
    if type(subject.miner).error_bounds is not Miner.error_bounds and not found:
        with contextlib.suppress(Exception):  # the miner does not accept these, and so states nothing for them
            found = [f"with {HOW}, {problem}" for problem in _problems(_related(subject), seed, patience, [])]
    return found


def _related(subject: Subject) -> Subject:
    """Return a subject with a quarter of the budget, and with about 400 rows if the schema does not bound the rows."""
    miner, schema = subject.miner, subject.schema
    given = {name: getattr(miner, name, None) for name in SPENT[:2]}
    less = {name: exact(spent, name) / 4 for name, spent in given.items() if isinstance(spent, AMOUNTS)}
    if schema.row_bound is None and schema.about_rows is None:
        schema = attrs.evolve(schema, about_rows=ROWS)
    return attrs.evolve(subject, miner=attrs.evolve(miner, **less), schema=schema)


def _problems(subject: Subject, seed: int, patience: Patience, left_out: list[str]) -> list[str]:
    part = next(planned_parts(subject.plan))
    stated = [one for one in _own_bounds(subject, part) if one.amount is not None and math.isfinite(one.amount)]
    errors, missed = _measure(subject, seed, patience, bool(stated))
    left_out += [
        f"comparing the error bound of '{one.what}' with the numbers that it is about, which it does not name "
        "(ErrorBound.numbers); it was compared with all numbers"
        for one in stated
        if one.numbers is None
    ]
    comparisons = len(missed) + len(stated) * len(errors)
    found = [
        f"the intervals of {place.strip('/') or 'the result'} are too narrow: {_share(flags)} miss the exact number, "
        "where 5 % may; compute them from the noise of the step (table.calibration)"
        for (place, _), flags in missed.items()
        if _too_many(flags, comparisons)
    ]
    return found + [text for bound in stated if (text := _bound_problem(bound, errors, comparisons))]


def _own_bounds(subject: Subject, part: PlannedPart) -> list[ErrorBound]:
    """Return the bounds on numbers that the miner states itself. Bounds of its steps are tested with the mechanisms."""
    of_steps = [(one.amount, one.kind, one.what) for one in part.bounds_of_steps()]
    own = [one for one in subject.miner.error_bounds(part) if (one.amount, one.kind, one.what) not in of_steps]
    return [one for one in own if one.kind is not BoundKind.CHOICE and _is_of_numbers(one, part)]


def _is_of_numbers(bound: ErrorBound, part: PlannedPart) -> bool:
    """Tell whether a bound is about numbers: it names them, or one of the steps that cause the error adds noise.

    Any other bound says by how many rows a choice may be off.
    """
    steps = [one for one in part.steps if not bound.steps or one.path in bound.steps]
    return bound.numbers is not None or any(_adds_noise(one.step.mechanism) for one in steps)


def _tables(subject: Subject) -> Iterator[Rows]:
    """Yield tables of as many rows as the schema says, with rows of all kinds or of one."""
    size, kinds = subject.plan.size, subject.universe.kinds
    about, most = size.about, size.most or max(SIZES)
    numbers = (about,) if about else tuple(sorted({min(number, most) for number in SIZES}))
    if max(numbers) > MOST_ROWS:  # a bound for more rows may be smaller than the errors on this many
        return
    for number in numbers:
        yield fit_rows(subject, bytes(k % kinds for k in range(number)))
    yield fit_rows(subject, bytes([kinds - 1]) * numbers[-1])


def _measure(subject: Subject, seed: int, patience: Patience, bounded: bool) -> tuple[Errors, Misses]:
    """Run the miner on several tables, and return all numbers' errors, and which intervals missed the exact number.

    Only one run is made if the miner states no bound and the result has no interval.
    """
    errors: dict[Place, list[float]] = collections.defaultdict(list)
    missed: dict[Place, list[bool]] = collections.defaultdict(list)
    for number, rows in enumerate(_tables(subject)):
        for k in range(RUNS):
            if patience.over:
                return errors, missed
            noisy = record(subject, rows, seed + RUNS * number + k)
            exact = _repeat_without_noise(subject, noisy, rows)
            if exact is None:
                continue
            one, other = _numbers_of(noisy), _numbers_of(exact)
            for place in sorted(one.keys() & other.keys()):
                first, second = one[place], other[place]
                if isinstance(first, float):
                    errors[place].append(abs(first - second) - ROUNDING * abs(second))
                else:
                    missed[place].append(_misses(first, second))
            if not bounded and not missed:
                return {}, {}
    return errors, missed


def _repeat_without_noise(subject: Subject, transcript: Transcript, rows: Rows) -> Transcript | None:
    """Repeat a run without noise. None if the run does something else without noise."""
    recorded = tuple(transcript.releases)
    seed = transcript.public_seed
    gate = _ExactGate(subject.engine, SeededRandomness(0), (), public_seed=seed, recorded=recorded)
    try:
        exact = run_through(subject, gate, rows)
    except RunDiverged:
        return None
    complete = exact.outcome.error is None and len(gate.events) == len(recorded)
    return exact if complete else None


def _misses(interval: Any, exact: Any) -> bool:
    low, high = interval.interval() if isinstance(interval, Noisy) else (interval.low, interval.high)
    slack = ROUNDING * max(abs(low), abs(high), abs(exact.value))
    return not low - slack <= exact.value <= high + slack


def _numbers_of(transcript: Transcript) -> dict[Place, Any]:
    """Return the numbers and intervals of a run's result by place. A released number's place is `*` and its step."""
    found = dict(_walk("", "", transcript.outcome.result, DEPTH))
    for k, event in enumerate(transcript.releases):
        if _adds_noise(event.charge.step.mechanism):
            path = event.charge.path.removeprefix(f"{SCOPE}/")
            found |= dict(_walk(f"*{path}", f"release {k}", np.asarray(event.output), 1))
    return found


def _walk(place: str, beside: str, value: Any, depth: int) -> Iterator[tuple[Place, Any]]:
    """Yield the numbers in a value as floats, and the intervals, each with its place."""
    if isinstance(value, Estimate | Noisy):
        yield (place, f"{beside} interval {getattr(value, 'what', '')}"), value
        yield (place, beside), float(value.value)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "iuf":
            yield from (((f"{place}/{k}", beside), float(one)) for k, one in enumerate(value.ravel().tolist()))
    elif isinstance(value, bool | str | bytes | type(None)):
        return
    elif isinstance(value, int | float | np.number):
        if math.isfinite(value):
            yield (place, beside), float(value)
    elif depth:
        if isinstance(value, CountTable):
            counts = value.counts.ravel().tolist()
            cells = ((k, Noisy(one, value.variance)) for k, one in enumerate(counts))
            yield from (((f"{place}/{k}", "interval"), cell) for k, cell in cells)
        held = list(_inside(value))
        texts = [str(inner) for _, inner in held if isinstance(inner, str | Description)]
        for key, inner in held:
            yield from _walk(f"{place}/{key}".lstrip("/"), " ".join([beside, *texts]), inner, depth - 1)


def _inside(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what a value holds, by its key, position or name."""
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
    elif attrs.has(type(value)):
        yield from ((field.name, getattr(value, field.name)) for field in attrs.fields(type(value)))
    elif hasattr(value, "to_dicts"):  # a polars dataframe
        yield from enumerate(value.to_dicts())
    else:
        yield from getattr(value, "__dict__", {}).items()


def _bound_problem(bound: ErrorBound, errors: Errors, comparisons: int) -> str | None:
    """Return a text if a stated bound does not hold for 95 % of the errors of the numbers that it is about.

    A bound without `numbers` must hold for at least one number of the result, or of a step that it names.
    """
    assert bound.amount is not None
    own = {
        place: [error > bound.amount for error in known]
        for (place, beside), known in errors.items()
        if any(error > 0 for error in known) and _is_meant(place, bound)
    }
    wrong = [flags for flags in own.values() if _too_many(flags, comparisons)]
    if not wrong or (bound.numbers is None and len(wrong) < len(own)):
        return None
    worst = max(wrong, key=lambda flags: sum(flags) / len(flags))
    return (
        f"the error bound of '{bound.what}' is {bound.amount:.6g}, and {_share(worst)} errors are larger, where 5 % "
        "may be: compute the bound from the noise of the steps (part.calibration), or say in ErrorBound.numbers which "
        "numbers of the result it is about"
    )


def _is_meant(place: str, bound: ErrorBound) -> bool:
    """Tell whether a bound may be about the number at a place. The places of released numbers begin with `*`."""
    if bound.numbers is None:
        return not place.startswith("*") or not bound.steps or place[1:].rpartition("/")[0] in bound.steps
    return not place.startswith("*") and (not bound.numbers or f"{place}/".startswith(f"{bound.numbers}/"))


def _share(flags: Sequence[bool]) -> str:
    return f"{sum(flags) / len(flags):.0%} of {len(flags)}".replace("%", " %")


def _too_many(flags: Sequence[bool], comparisons: int) -> bool:
    """Tell whether more errors exceed a bound than chance explains, given the number of comparisons."""
    from scipy.stats import binom

    return bool(binom.sf(sum(flags) - 1, len(flags), 1 - CONFIDENCE) <= MISTAKE / comparisons)
