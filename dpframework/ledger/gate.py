"""The gate of a run that a journal keeps: each output is kept before it is seen."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.cuts import Cut
from dpframework.facts.descriptions import Cases
from dpframework.ledger.values import fingerprint
from dpframework.run.gate import Asked, Gate
from dpframework.run.scope import Charge
from dpframework.tables.engines import Rows

if TYPE_CHECKING:
    from dpframework.ledger.run import LedgerRun


@final
@attrs.frozen(eq=False)
class Traced:
    """Private rows, with a public trace of how they were made from the whole table: which parts of which cuts."""

    rows: Rows
    trace: str


def _untraced(rows: Any) -> tuple[Rows, str]:
    return (rows.rows, rows.trace) if isinstance(rows, Traced) else (rows, "")


@final
@attrs.frozen(eq=False)
class JournaledGate(Gate):
    """A gate that keeps each output before it is seen, and gives it again when the run is resumed.

    A resumed run must ask for the same releases of the same rows before it makes new ones: else it could make, of two
    branches that the plan totals as one, the second one too, or cut rows anew that were cut before.
    """

    run: LedgerRun = attrs.field(kw_only=True)

    def release(self, charge: Charge, rows: Rows, inputs: dict[str, Any]) -> Any:
        """Make one release at a time."""
        plain, trace = _untraced(rows)
        with self.run.lock:
            self.run.origin = fingerprint(trace, inputs)
            return super().release(charge, plain, inputs)

    def release_many(self, asked: Sequence[Asked]) -> list[Any]:
        """Make releases whose answers are found together; each is charged, drawn and kept before the next is charged.

        So a run that is killed between two of them goes on with the second. (The plan's whole cost was charged before.)
        """
        with self.run.lock:
            with self.run.asking(asked[0].charge.path):
                answers = self.answers([attrs.evolve(one, rows=_untraced(one.rows)[0]) for one in asked])
            return [self._release(one, answer) for one, answer in zip(asked, answers, strict=True)]

    def _release(self, one: Asked, answer: Any) -> Any:
        self.run.origin = fingerprint(_untraced(one.rows)[1], one.inputs)
        self._charged(one.charge)
        return self._made(one.charge, one.inputs, answer)

    def draw(self, charge: Charge, answer: Any) -> Any:
        """Return the output that is kept, or draw one and keep it."""
        return self.run.made(charge.path, lambda: super(JournaledGate, self).draw(charge, answer))

    def split(self, rows: Rows, cut: Cut) -> list[Rows]:
        """Split, and trace each part."""
        plain, trace = _untraced(rows)
        parts = super().split(plain, cut)
        return [Traced(part, fingerprint(trace, "part", k, cut)) for k, part in enumerate(parts)]

    def sample(self, rows: Rows, rate: Fraction, *, of_units: bool) -> Rows:
        """Sample, and trace; a run that is resumed draws its samples anew (see `composition.sampled`)."""
        plain, trace = _untraced(rows)
        return Traced(super().sample(plain, rate, of_units=of_units), fingerprint(trace, "sample", rate))

    def derive(self, rows: Rows, attribute: Attribute, cases: Cases) -> Rows:
        """Derive, and trace."""
        plain, trace = _untraced(rows)
        return Traced(super().derive(plain, attribute, cases), fingerprint(trace, "derived", attribute, cases))
