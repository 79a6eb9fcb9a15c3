"""The class of recorded runs: what the entries of a ledger say about one run."""

from __future__ import annotations

from typing import Any, final

import attrs

from dpframework.accountant import PlanCharge
from dpframework.ledger.approvals import Approval
from dpframework.ledger.run_results_person_and_purpose import RunSubject


@final
@attrs.define(eq=False)
class RecordedRun:
    """A run, as the ledger's entries describe it.

    Attributes
    ----------
    id
        The id of the run in the ledger.
    plan
        The plan's hash.
    time
        The time at which the run was opened. This is before its table was read, unless the run got a table in memory.
    amount
        The charge for the plan: its pure epsilon and, once the data set's Renyi order is fixed, its divergence at that
        order. It is 0 until the run is charged.
    approval
        The approval under which the run was opened.
    charges
        The paths of the charged releases, in order.
    resumed
        The number of times that the run was resumed.
    redrawn
        The number of releases that were drawn a second time, because the run was killed before it could store their
        outputs.
    end
        None while the run may go on. Otherwise "finished", "stopped", "stopped: " and how a query ended, or "refused: "
        and a reason. A run is refused if its rows could not be read, or break what their owner states. A refused run
        uses up one run of its approval. Its amount is 0 if the run was refused before it was charged.
    subject
        What the run was about: its study, its results, who ran it and for what purpose.
    charged
        Whether the plan was charged. A plan is charged after its table was read.
    """

    id: str
    plan: str
    time: str
    amount: PlanCharge
    approval: Approval
    charges: list[str] = attrs.field(factory=list)
    resumed: int = 0
    redrawn: int = 0
    end: str | None = None
    subject: RunSubject = attrs.field(factory=RunSubject)
    charged: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "run": self.id,
            "plan": self.plan,
            "time": self.time,
            **self.subject.to_dict(),
            "approved_by": self.approval.by,
            "amount": self.amount.to_dict(),
            "releases": len(self.charges),
            "charges": list(self.charges),
            "resumed": self.resumed,
            "redrawn": self.redrawn,
            "end": self.end,
        }
