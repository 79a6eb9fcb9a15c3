"""The gate: the one way from the private side, which every release goes through."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.cuts import Cut
from dpframework.facts.descriptions import Cases
from dpframework.facts.errors import DPFrameworkError, InputError
from dpframework.mechanisms.randomness import Randomness
from dpframework.run.observers import Observer, Release
from dpframework.run.scope import Charge
from dpframework.tables.engines import Engine, Rows
from dpframework.tables.silence import silenced
from dpframework.tables.table import Table

T = TypeVar("T")


def _observers(told: Iterable[Observer]) -> tuple[Observer, ...]:
    return tuple(told)


@attrs.frozen(eq=False)
class Gate:
    """The one way from the private side: evaluates a query, draws the mechanism's output, tells the observers."""

    engine: Engine
    randomness: Randomness
    observers: tuple[Observer, ...] = attrs.field(default=(), converter=_observers)

    def release(self, charge: Charge, rows: Rows, inputs: dict[str, Any]) -> Any:
        """Make one release that has been charged.

        Raises
        ------
        InputError
            If the query or the mechanism fails; in a private run the error names the step and the kind of failure only.
        """
        for observer in self.observers:
            observer.charged(charge)
        answer = self.answer(charge, rows, inputs)
        candidates = self._candidates(charge, answer, inputs)
        output = self.draw(charge, answer)
        value = output if candidates is None else candidates[output]
        for observer in self.observers:
            observer.released(Release(charge, inputs, output, value))
        return value

    def answer(self, charge: Charge, rows: Rows, inputs: dict[str, Any]) -> Any:
        """Return the exact answer (private side only)."""
        what = f"step '{charge.path}': the query '{charge.calibration.facts.text}'"
        return self._guarded(what, lambda: charge.step.query.evaluate(self.engine, rows, **inputs))

    def draw(self, charge: Charge, answer: Any) -> Any:
        """Return the mechanism's output."""
        mechanism = charge.calibration.mechanism
        what = f"step '{charge.path}': the mechanism '{mechanism.name}'"
        handed = self.randomness.handed(mechanism.assumptions)
        return self._guarded(what, lambda: mechanism.release(answer, charge.calibration, handed))

    def load(self, table: Table) -> Rows:
        """Return the engine's handle of all rows (private side only)."""
        return self._guarded(f"engine '{self.engine.name}'", lambda: self.engine.load(table))

    def split(self, rows: Rows, cut: Cut) -> list[Rows]:
        """Return the rows of each part of a cut (private side only)."""
        return self._guarded("a partition", lambda: self.engine.split(rows, cut))

    def sample(self, rows: Rows, rate: Fraction, *, of_units: bool) -> Rows:
        """Return a sample of the rows, or of units with all their rows (private side only).

        Each row, or unit, is in it with the same probability, exactly.
        """

        def drawn(number: int) -> NDArray[np.bool_]:
            return np.asarray(self.randomness.integers(rate.denominator, number) < rate.numerator)

        sample = self.engine.sample_units if of_units else self.engine.sample
        return self._guarded("a sample", lambda: sample(rows, drawn))

    def derive(self, rows: Rows, attribute: Attribute, cases: Cases) -> Rows:
        """Return the rows with one more attribute (private side only)."""
        return self._guarded(f"deriving '{attribute.name}'", lambda: self.engine.derive(rows, attribute, cases))

    def _candidates(self, charge: Charge, answer: Any, inputs: dict[str, Any]) -> Sequence[Any] | None:
        """Return what a selection chooses among, if there is one score for each; None for other mechanisms."""
        if not charge.step.mechanism.selects:
            return None
        candidates = charge.step.query.candidates(**inputs)
        if len(candidates) == 0:
            raise InputError(f"step '{charge.path}': there is no candidate to select from")
        if np.size(answer) != len(candidates):
            raise InputError(
                f"step '{charge.path}': the query '{charge.calibration.facts.text}' does not answer with one score for "
                "each of its candidates"
            )
        return candidates

    def _guarded(self, what: str, function: Callable[[], T]) -> T:
        """Call a function that sees private rows; in a private run, show nothing that it says, warns or raises.

        Only the kind of a failure is named, and only if it is a kind that everybody knows: a class may be named after
        a value. A seeded experiment shows all.
        """
        private = self.randomness.private
        try:
            with silenced() if private else contextlib.nullcontext():
                return function()
        except Exception as error:
            if isinstance(error, DPFrameworkError) and not private:
                raise
            kind = type(error)
            known = not private or kind.__module__.split(".")[0] in ("builtins", "dpframework")
            name, cause = kind.__name__ if known else "an error of its own", None if private else error
        raise InputError(
            f"{what} failed with {name}; run with a seed on data that is not private to see where"
        ) from cause
