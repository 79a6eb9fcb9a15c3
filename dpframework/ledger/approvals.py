"""The approvals of a data set, the data files that they are for, and the runs that were opened under them."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan, PlanCharge
from dpframework.facts.errors import InputError
from dpframework.facts.files import file_digest
from dpframework.facts.output_format_helpers import clock_text
from dpframework.facts.parameter_checks import is_whole_number
from dpframework.ledger.run_entry_subject import RunSubject, one_line


def data_digests(files: Iterable[Path]) -> list[bytes]:
    """Return the SHA-256 of each file's bytes.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    return [file_digest(path, "a data file") for path in files]


@final
@attrs.frozen
class Binding:
    """The files that an approval is for, as a salted digest that the data's owner makes of them.

    The digest is no private release. Somebody who has the ledger and guesses all bytes of the files can check the
    guess, and can learn nothing else from the digest.

    Attributes
    ----------
    salt
        Random, in hex, so that two approvals of one file have different digests.
    digest
        HMAC-SHA256, in hex, keyed by the salt, of the files' SHA-256 digests, joined in the order of the files.
    """

    salt: str
    digest: str

    @classmethod
    def of(cls, files: Iterable[Path]) -> Binding:
        """Return the binding to some files, whose order matters.

        Raises
        ------
        InputError
            If a file cannot be read.
        """
        salt = secrets.token_hex(16)
        return cls(salt, _digest(salt, data_digests(files)))

    def holds(self, digests: Sequence[bytes]) -> bool:
        """Tell whether these are the SHA-256 digests of the bound files, in their order."""
        return hmac.compare_digest(self.digest, _digest(self.salt, digests))


def _digest(salt: str, digests: Iterable[bytes]) -> str:
    return hmac.new(bytes.fromhex(salt), b"".join(digests), "sha256").hexdigest()


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
        When it was approved.
    runs
        How many runs are approved.
    note
        A note by the approver.
    used
        How many of those runs were opened.
    revoked
        Who revoked the approval; None while it holds.
    verified
        The SHA-256 of the file of verification records that the approver used; None without such a file.
    data
        The data files that the approval is for; None if it is for any data.
    signature
        An SSH signature of the approval; None if it is unsigned.
    signed_by
        The signer of the ledger who signed it; None in a ledger without signers, which verifies no signatures.
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
    signed_by: str | None = attrs.field(default=None, kw_only=True)

    @property
    def left(self) -> int:
        """How many more runs may be opened."""
        return 0 if self.revoked is not None else self.runs - self.used

    @property
    def sentence(self) -> str:
        """Who approved the plan and when, whether that is signed, and how many runs are left."""
        left = self.left_text if self.revoked is not None else f"{self.left} of {self.runs} runs left"
        return f"approved by {self.by} on {clock_text(self.time)}, {self.signed} ({left})"

    @property
    def left_text(self) -> str:
        """How many more runs may be opened, or who revoked the approval."""
        return str(self.left) if self.revoked is None else f"revoked by {self.revoked}"

    @property
    def signed(self) -> str:
        """Whether the approval is signed, and by whom."""
        if self.signature is None:
            return "unsigned"
        return "signed, not verified" if self.signed_by is None else f"signed by {self.signed_by}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {**attrs.asdict(self), "left": self.left}


@final
@attrs.define(eq=False)
class RecordedRun:
    """A run, as the entries of the ledger record it.

    Attributes
    ----------
    id
        The name of the run in the ledger.
    plan
        The plan's hash.
    time
        When the run was opened. This is before its table was read, unless the run was given a table in memory.
    amount
        The plan's total, in pure epsilon and, once the data set's Renyi order is fixed, at that order. It is 0 before
        the charge.
    approval
        The approval that the run was opened under.
    charges
        The paths of the releases charged, in order.
    resumed
        How many times it was resumed.
    redrawn
        How many releases were drawn afresh because the run was killed before their outputs were written down.
    end
        "finished", "stopped", "stopped: " with how a query ended, "refused: " with a reason, or None while the run may
        go on. A run is refused if its rows could not be read, or were not as their owner said. A refused run has used
        up one run of its approval. Its amount is 0 if it was refused before its charge.
    subject
        The study of the run, its results, who ran it and why.
    charged
        Whether the plan's total was charged. It is charged once the table has been read.
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


def approval_entry(
    name: str, plan: AccountedPlan, *, by: str, runs: int, note: str, data: Iterable[str | os.PathLike[str]]
) -> dict[str, Any]:
    """Return the entry for an approval (see `Ledger.approve`), with a digest of the data that it is for.

    Raises
    ------
    InputError
        If a parameter cannot be used, or a file cannot be read.
    """
    if not is_whole_number(runs):
        raise InputError(f"runs is {runs!r}; a positive whole number is needed")
    approval = {"data_set": name, "plan": plan.hash, "by": one_line(by, "by"), "runs": runs}
    approval["note"] = one_line(note, "the note") if note else ""
    if plan.verified is not None:
        approval["verified"] = plan.verified.digest
    if isinstance(data, str):
        raise InputError(f"data is one text, {data!r}; give a list of files")
    bound = [Path(file) for file in data]
    return {**approval, **({"data": attrs.asdict(Binding.of(bound))} if bound else {})}
