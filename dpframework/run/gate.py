"""The gate of a run: the only code that answers queries on private rows and draws the noisy outputs."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import (
    KINDS,
    DPFrameworkError,
    InputError,
    QueryStopped,
    ReleaseRefused,
    RunStopped,
    bare_request,
    is_failure,
    raised_here,
)
from dpframework.facts.fork_detection import ProcessMark, this_process
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.row_partitions import Cut
from dpframework.mechanisms.randomness import Randomness, seed_of
from dpframework.queries.exact_answers_hiding_undeclared_columns import answers_of
from dpframework.run.observers import Observer, Release, require_recorded
from dpframework.run.read_only_release_copies import read_only
from dpframework.run.run_scopes_and_charges import Charge, ChargedRelease, require_own
from dpframework.tables.coded_table import Table
from dpframework.tables.engine_base import Engine, Rows
from dpframework.tables.output_suppression import silenced

T = TypeVar("T")


def _observers(told: Iterable[Observer]) -> tuple[Observer, ...]:
    return tuple(told)


@attrs.frozen(eq=False)
class Gate:
    """The only way out of the private side. The gate evaluates queries, draws mechanisms' outputs and tells observers.

    An observer, an engine or a mechanism may fork the process at any moment. A fork has a copy of the run, and could
    make the same releases a second time. So each charge, each draw and each output first checks that this is still the
    process in which the gate was made.

    Whether a query or a mechanism fails may depend on the rows, and no noise hides that. So a failure ends the run for
    good, even if the miner catches the exception. Otherwise the miner's later actions could reveal whether the failure
    happened.
    """

    engine: Engine
    randomness: Randomness
    observers: tuple[Observer, ...] = attrs.field(default=(), converter=_observers)
    recorder: Observer | None = None  # told of each charge before the observers; if it fails, the run fails
    _copies: dict[tuple[int, int, int], tuple[Charge, Charge]] = attrs.field(factory=dict, init=False, repr=False)
    _failures: list[DPFrameworkError] = attrs.field(factory=list, init=False, repr=False)
    public_seed: int = attrs.field(
        default=attrs.Factory(lambda gate: gate.randomness.public_seed(), takes_self=True), kw_only=True
    )
    process: ProcessMark = attrs.field(factory=this_process, init=False, repr=False)
    _public_draws: collections.Counter[str] = attrs.field(factory=collections.Counter, init=False, repr=False)

    def release_many(self, asked: Sequence[ChargedRelease]) -> list[Any]:
        """Make several releases that were charged before, and return their values in order.

        There are four stages: observers are told of all charges, all queries are evaluated, all outputs are drawn, and
        observers are told of all outputs. The exact answers, and the draws of a seeded run, do not depend on how many
        releases are made together.

        Raises
        ------
        InputError
            If a query or a mechanism fails. If a query fails, nothing has been drawn for these releases. In a private
            run the error names only the step and the kind of failure.
        RunStopped
            If an observer fails.
        """
        # A charge is recorded before a row is read, so that a query is paid for even if it fails.
        for one in asked:
            self._charge(one.charge)
        answers = self.answers(asked)
        candidates = [
            self._candidates(one.charge, answer, one.inputs) for one, answer in zip(asked, answers, strict=True)
        ]
        # A private run draws all outputs with the same calibration in one call, which is faster. A seeded run draws one
        # output after another, so that its numbers do not depend on which releases are made together.
        alike: dict[int, list[int]] = {}
        for k, one in enumerate(asked):
            alike.setdefault(id(one.charge.calibration) if self.randomness.private else k, []).append(k)
        outputs: dict[int, Any] = {}
        for own in alike.values():
            outputs.update(zip(own, self.draw(asked[own[0]].charge, [answers[k] for k in own]), strict=True))
        return [
            self._tell_output(one, among, outputs[k])
            for k, (one, among) in enumerate(zip(asked, candidates, strict=True))
        ]

    def _charge(self, charge: Charge) -> None:
        require_own(self.process)
        self.require_well()
        if self.recorder is not None:
            self.recorder.charged(charge)
        self._tell("charged", charge, self._public)

    def _tell_output(self, one: ChargedRelease, candidates: Sequence[Any] | None, output: Any) -> Any:
        """Tell the observers of an output, and return the miner's copy."""
        require_own(self.process)
        # Observers get copies, so that they cannot change the arrays in the miner's result.
        value = output if candidates is None else candidates[output]
        self._tell(
            "released",
            one.charge,
            lambda own, observer: Release(self._public(own, observer), *read_only((one.inputs, output, value))),
        )
        return value

    def _public(self, charge: Charge, observer: Observer) -> Charge:
        """Return an observer's own copy of a charge. The step and its calibration are copied once per observer."""
        key = id(charge.step), id(charge.calibration), id(observer)
        if key not in self._copies:
            # The original is stored too, so that no other step or calibration can get these ids.
            self._copies[key] = (charge, read_only(charge))
        return attrs.evolve(self._copies[key][1], path=charge.path)

    def _tell(self, event: str, charge: Charge, copied: Callable[[Charge, Observer], Charge | Release]) -> None:
        """Give each observer that overrides the method `event` its own read-only copy.

        Raises
        ------
        RunStopped
            If an observer fails. The message names the observer and the class of the exception. It quotes the text of
            an exception only if that is a `DPFrameworkError`. A seeded run also shows the original exception. What was
            charged stays charged.
        """
        for observer in self.observers:
            if not observer.hears(event):
                continue
            who = "a copy for observers"
            try:
                news = copied(charge, observer)
                who = f"observer '{type(observer).__name__}' of {type(observer).__module__}"
                require_recorded(getattr(observer, event)(news))
            except Exception as error:
                what = type(error).__name__ + (f": {error}" if isinstance(error, DPFrameworkError) else "")
                sentence = f"step '{charge.path}': {who} failed with {what}; what was charged stays charged"
                self._failures.append(RunStopped(sentence))
                raise self._failures[0] from (None if self.randomness.private else error)

    def require_well(self) -> None:
        """Raise an error if the run has ended or failed.

        Raises
        ------
        DPFrameworkError
            The first failure.
        """
        if self._failures:
            raise self._failures[0]

    def end(self) -> None:
        """Allow no more releases.

        Otherwise code that kept a table could make releases after the results are written.
        """
        if not self._failures:
            self._failures.append(ReleaseRefused("the run has ended, and makes no more releases"))

    @contextlib.contextmanager
    def ending(self, *, unless: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """End the run if the `with` block fails, except if `unless()` says that the block fails on every table."""
        try:
            yield
        except DPFrameworkError as error:
            if not unless():
                self._failures.append(error)
            raise

    def answer(self, one: ChargedRelease) -> Any:
        """Return the exact answer of one query (private side only)."""
        (answer,) = self.answers([one])
        return answer

    def answers(self, asked: Sequence[ChargedRelease]) -> list[Any]:
        """Return the exact answers of several queries (private side only)."""
        with self.ending():
            return self._answers(asked)

    def _answers(self, asked: Sequence[ChargedRelease]) -> list[Any]:
        # An engine that sends messages, such as a database, gets all queries in one call. Any other engine is asked one
        # query after another, in an order that lets one query reuse the counts of another.
        if len(asked) > 1 and not self.engine.sends_messages:
            with silenced(words=True) if self.randomness.private else contextlib.nullcontext():
                return self._answers_in_turn(asked)
        first = asked[0].charge
        what = f"step '{first.path}': the query '{first.calibration.facts.text}'"
        if len(asked) > 1:
            what = f"step '{first.path}' and {len(asked) - 1} released with it: a query"
        queries = [(one.charge.step.query, one.rows, one.inputs) for one in asked]
        return self._guard(what, lambda: answers_of(self.engine, queries))

    def _answers_in_turn(self, asked: Sequence[ChargedRelease]) -> list[Any]:
        """Return the answers of queries that are evaluated one by one, in the order that counts the fewest rows.

        This order depends on the rows, so it must not decide which error is raised. After an error all queries are
        evaluated again in the given order, which is public.
        """
        answers: dict[int, Any] = {}
        try:
            for k in self.engine.counting_order([one.rows for one in asked]):
                (answers[k],) = self._answers([asked[k]])
            return [answers[k] for k in range(len(asked))]
        except Exception:
            return [answer for one in asked for answer in self._answers([one])]

    def draw(self, charge: Charge, answers: Sequence[Any]) -> list[Any]:
        """Return the mechanism's outputs for several exact answers with one calibration.

        Errors name the given charge's step.
        """
        require_own(self.process)
        mechanism = charge.calibration.mechanism
        what = f"step '{charge.path}': the mechanism '{mechanism.name}'"
        # A query with unlisted keys gets a generator of its own. The number of its keys depends on the rows, and this
        # number must not change the draws of later steps.
        source = self.randomness.apart() if charge.calibration.facts.unlisted else self.randomness
        handed = source.handed(mechanism.assumptions)
        with self.ending():
            return self._guard(what, lambda: mechanism.release_many(answers, charge.calibration, handed))

    def public_random(self, path: str) -> np.random.Generator:
        """Return a generator of public draws, seeded by the public seed, the path and the number of earlier calls."""
        self._public_draws[path] += 1
        return np.random.default_rng(seed_of(str(self.public_seed), path, str(self._public_draws[path])))

    @property
    def drew_publicly(self) -> bool:
        """Whether `public_random` was called."""
        return bool(self._public_draws)

    def load(self, table: Table) -> Rows:
        """Return the engine's handle of all rows (private side only)."""
        return self._guard(f"engine '{self.engine.name}'", lambda: self.engine.load(table))

    def drop(self, rows: Rows) -> None:
        """Let the engine forget all rows (private side only)."""
        self._guard(f"engine '{self.engine.name}'", lambda: self.engine.drop(rows))

    def counting_summary(self) -> str | None:
        """Return the engine's sentence for reports. If the engine fails to write it, results are not lost."""
        who = f"engine '{self.engine.name}'"
        try:
            return self._guard(who, self.engine.counting_summary)
        except DPFrameworkError as error:
            return f"its summary is missing: {error}"

    def split(self, rows: Rows, cut: Cut) -> list[Rows]:
        """Return the rows of each part of a cut (private side only)."""
        return self._guard("a partition", lambda: self.engine.split(rows, cut))

    def sample(self, rows: Rows, rate: Fraction, *, of_units: bool) -> Rows:
        """Return a sample of the rows, or of units with all their rows (private side only).

        Each row, or unit, is in the sample with exactly the same probability.
        """

        def draw(number: int) -> NDArray[np.bool_]:
            return np.asarray(self.randomness.integers(rate.denominator, number) < rate.numerator)

        sample = self.engine.sample_units if of_units else self.engine.sample
        with self.ending():
            return self._guard("a sample", lambda: sample(rows, draw))

    def derive(self, rows: Rows, attribute: Attribute, cases: Cases) -> Rows:
        """Return the rows with one more attribute (private side only)."""
        return self._guard(f"deriving '{attribute.name}'", lambda: self.engine.derive(rows, attribute, cases))

    def _candidates(self, charge: Charge, answer: Any, inputs: dict[str, Any]) -> Sequence[Any] | None:
        """Return the candidates of a selection, one for each score, or None if the mechanism does not select."""
        if not charge.step.mechanism.selects:
            return None
        query = charge.step.query
        what = f"step '{charge.path}': listing the candidates of '{charge.calibration.facts.text}'"

        def listed() -> tuple[Sequence[Any], int]:
            candidates = query.candidates(**inputs)
            return candidates, len(candidates)

        with self.ending():
            # The query object has seen the rows, so its candidates and errors may depend on them.
            candidates, number = self._guard(what, listed)
            if number == 0:
                raise InputError(f"step '{charge.path}': there is no candidate to select from")
            if np.size(answer) != number:
                raise InputError(
                    f"step '{charge.path}': the query '{charge.calibration.facts.text}' does not answer with one score "
                    "for each of its candidates"
                )
        return candidates

    def _guard(self, what: str, function: Callable[[], T]) -> T:
        """Call a function that sees private rows. In a private run its output, warnings and errors are not shown.

        If the function fails, the message names the class of the error, if that is a class of Python or of dpframework.
        Any other class could be named after a value in the table. The message says nothing else about the error. A
        seeded run shows everything.
        """
        private = self.randomness.private
        try:
            if not private:
                return function()
            with silenced(words=True):
                return function()
        except BaseException as error:
            stopped: BaseException | None = None
            kind = type(error)
            if not is_failure(error):
                if not private:
                    raise
                stopped = bare_request(error)
            elif isinstance(error, QueryStopped) and error.kind in KINDS:
                # dpframework's own message only says how the query ended. The message of a plugin may quote rows.
                says = error if raised_here(error) or not private else error.kind
                stopped = QueryStopped(f"{what} was not answered: {says}", kind=error.kind)
            elif isinstance(error, DPFrameworkError) and not private:
                raise
            known = not private or kind.__module__.split(".")[0] in ("builtins", "dpframework")
            name, cause = kind.__name__ if known else "an error of its own", None if private else error
        # Raised outside of the `except` block, so that Python does not attach the original error.
        if stopped is not None:
            raise stopped
        raise InputError(
            f"{what} failed with {name}; to see where, run with a seed on data that is not private"
        ) from cause
