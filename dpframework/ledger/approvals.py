"""What was approved on a data set, and the runs that were opened under it, as a ledger's entries tell."""

from __future__ import annotations

import os
from typing import Any, final

import attrs

from dpframework.accountant import PlanCharge
from dpframework.ledger.binding import Binding
from dpframework.ledger.signatures import verified as verified_signature


@final
@attrs.define(eq=False)
class Approval:
    """How many runs of one plan are approved, and by whom.

    Attributes
    ----------
    plan
        The plan's hash.
    by
        Who approved it.
    time
        When.
    runs
        For how many runs.
    note
        What the approver added.
    used
        How many of those runs were opened.
    revoked
        Who took it back; None while it holds.
    verified
        The SHA-256 of the file of what was verified that the approver had; None without one.
    data
        Which data it is for; None for any.
    signature
        An SSH signature of it; None if it is unsigned.
    text
        What the signature is of.
    """

    plan: str
    by: str
    time: str
    runs: int
    note: str
    used: int = 0
    revoked: str | None = None
    verified: str | None = attrs.field(default=None, kw_only=True)
    data: Binding | None = attrs.field(default=None, kw_only=True)
    signature: str | None = attrs.field(default=None, kw_only=True)
    text: str = attrs.field(default="", kw_only=True, repr=False)

    @property
    def left(self) -> int:
        """How many more runs may be opened."""
        return 0 if self.revoked is not None else self.runs - self.used

    @property
    def sentence(self) -> str:
        """Who approved it and when, and whether that still holds."""
        left = "taken back by " + self.revoked if self.revoked is not None else f"{self.left} of {self.runs} runs left"
        signed = "unsigned" if self.signature is None else "signed"
        return f"approved by {self.by} on {self.time}, {signed} ({left})"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {**attrs.asdict(self, filter=attrs.filters.exclude("text")), "left": self.left}

    def signer(self, signers: str | os.PathLike[str] | None = None) -> str:
        """Return in words who signed it, verified; that it is unsigned if it is.

        Raises
        ------
        SignatureError
            If the signature is not of this approval, or of nobody who is allowed.
        """
        if self.signature is None:
            return "unsigned"
        whose = verified_signature(self.signature, self.text, signers)
        return f"signed by {whose}" + ("" if signers is not None else ", which nobody vouches for here")


@final
@attrs.define(eq=False)
class RecordedRun:
    """A run and what was recorded of it.

    Attributes
    ----------
    id
        Its name in the ledger.
    plan
        The plan's hash.
    time
        When it was opened, and its plan's whole total charged.
    amount
        That total: pure, and at the order of its data set once that is fixed.
    approval
        The approval that it was opened under.
    charges
        The paths of the releases charged, in order.
    resumed
        How many times it was resumed.
    redrawn
        How many releases were drawn afresh because the run was killed before their outputs were written down.
    end
        "finished", "stopped", "refused: " and why, or None while it may go on. A run that was refused since its rows
        could not be read, or were not as their owner said, has used up an approval; if it was refused before its
        charge, its amount is nothing.
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

    @property
    def revoked(self) -> str | None:
        """Who took its approval back, if somebody did."""
        return self.approval.revoked

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "run": self.id,
            "plan": self.plan,
            "time": self.time,
            "amount": self.amount.to_dict(),
            "releases": len(self.charges),
            "charges": list(self.charges),
            "resumed": self.resumed,
            "redrawn": self.redrawn,
            "end": self.end,
        }
