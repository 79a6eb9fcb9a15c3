"""The gate of a run with a journal: each output is stored before the miner or an observer sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.row_partitions import Cut
from dpframework.ledger.release_codec import fingerprint
from dpframework.run.gate import Gate
from dpframework.run.run_scopes_and_charges import Charge, ChargedRelease
from dpframework.tables.engine_base import Rows

if TYPE_CHECKING:
    from dpframework.ledger.ledger_run import LedgerRun


@final
@attrs.frozen(eq=False)
class TracedRows:
    """Private rows, with a public fingerprint of how they were made from the table by cuts, samples and derivations."""

    rows: Rows
    trace: str


def _split_trace(rows: Any) -> tuple[Rows, str]:
    return (rows.rows, rows.trace) if isinstance(rows, TracedRows) else (rows, "")


@final
@attrs.frozen(eq=False)
class JournaledGate(Gate):
    """A gate that stores each output before it is returned, and returns stored outputs when the run is resumed.

    A resumed run must first ask for the same releases from the same rows. Otherwise it could take another branch of an
    `either`, although the plan counts only one branch. It could also cut the same rows in another way.
    """

    run: LedgerRun = attrs.field(kw_only=True)

    def release_many(self, asked: Sequence[ChargedRelease]) -> list[Any]:
        """Evaluate queries together, and then record, draw and store the releases one after another.

        So a run that is killed between two releases is resumed at the second. The ledger records each release before it
        is drawn. This does not add to the cost, since the whole plan was charged before. A single release is recorded
        before its query is evaluated.
        """
        plain = [attrs.evolve(one, rows=_split_trace(one.rows)[0]) for one in asked]
        with self.run.lock:
            if len(asked) == 1:
                return [self._release_next(asked[0], lambda: self.answer(plain[0]))]
            with self.run.asking(asked[0].charge.path):
                answers = self.answers(plain)
            return [
                self._release_next(one, lambda answer=answer: answer)  # type: ignore[misc]
                for one, answer in zip(asked, answers, strict=True)
            ]

    def _release_next(self, one: ChargedRelease, answer: Callable[[], Any]) -> Any:
        """Record the charge of one release in the ledger, and then make the release."""
        self.run.origin = fingerprint(_split_trace(one.rows)[1], one.inputs)
        self._charge(one.charge)
        exact = answer()
        candidates = self._candidates(one.charge, exact, one.inputs)
        (output,) = self.draw(one.charge, [exact])
        return self._tell_output(one, candidates, output)

    def draw(self, charge: Charge, answers: Sequence[Any]) -> list[Any]:
        """Return the stored output, or draw an output and store it."""

        def new() -> Any:
            (output,) = super(JournaledGate, self).draw(charge, answers)
            return output

        return [self.run.output_of(charge.path, new)]

    def split(self, rows: Rows, cut: Cut) -> list[Rows]:
        """Split rows, and extend each part's trace, the fingerprint of how its rows were made."""
        plain, trace = _split_trace(rows)
        parts = super().split(plain, cut)
        return [TracedRows(part, fingerprint(trace, "part", k, cut)) for k, part in enumerate(parts)]

    def sample(self, rows: Rows, rate: Fraction, *, of_units: bool) -> Rows:
        """Sample rows, and extend their trace. A resumed run draws its samples again (see `composition.sample`)."""
        plain, trace = _split_trace(rows)
        return TracedRows(super().sample(plain, rate, of_units=of_units), fingerprint(trace, "sample", rate))

    def derive(self, rows: Rows, attribute: Attribute, cases: Cases) -> Rows:
        """Derive an attribute, and extend the trace of the rows."""
        plain, trace = _split_trace(rows)
        return TracedRows(super().derive(plain, attribute, cases), fingerprint(trace, "derived", attribute, cases))
