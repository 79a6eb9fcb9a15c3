"""The classes of approvals, and of the data files to which an approval is limited."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.facts.errors import InputError
from dpframework.facts.files import file_digest
from dpframework.facts.output_formats_times_and_csv import clock_text
from dpframework.facts.parameter_checks import is_whole_number
from dpframework.ledger.run_results_person_and_purpose import one_line


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
    """The data files to which an approval is limited, as a salted digest that the owner of the data computes.

    The digest is computed without noise, but reveals nearly nothing: someone who has the ledger can only use the
    digest to check a guess of all bytes of the files.

    Attributes
    ----------
    salt
        A random text, in hex. It makes the digests of two approvals for the same file different.
    digest
        The HMAC-SHA256, in hex, of the files' SHA-256 digests, joined in the order of the files. The salt is the key.
    """

    salt: str
    digest: str

    @classmethod
    def of(cls, files: Iterable[Path]) -> Binding:
        """Return the binding to some files. Their order matters.

        Raises
        ------
        InputError
            If a file cannot be read.
        """
        salt = secrets.token_hex(16)
        return cls(salt, _digest(salt, data_digests(files)))

    def holds(self, digests: Sequence[bytes]) -> bool:
        """Tell whether these are the SHA-256 digests of the bound files, in the same order."""
        return hmac.compare_digest(self.digest, _digest(self.salt, digests))


def _digest(salt: str, digests: Iterable[bytes]) -> str:
    return hmac.new(bytes.fromhex(salt), b"".join(digests), "sha256").hexdigest()


@final
@attrs.define(eq=False)
class Approval:
    """The approval of a number of runs of one plan.

    Attributes
    ----------
    plan
        The plan's hash.
    by
        The name of the approver.
    time
        The time of the approval.
    runs
        The number of approved runs.
    note
        A note by the approver.
    used
        The number of these runs that were opened.
    revoked
        The name of the person who revoked the approval; None while it is valid.
    verified
        The SHA-256 of the file of verification records that the approver used; None if there was none.
    data
        The data files to which the approval is limited; None if it is valid for any data.
    signature
        An SSH signature of the approval; None if it is unsigned.
    signed_by
        The name of the ledger's signer who signed the approval; None in a ledger without signers, where signatures are
        not verified.
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
        """The number of runs that may still be opened."""
        return 0 if self.revoked is not None else self.runs - self.used

    @property
    def sentence(self) -> str:
        """A phrase with the approver, the time, the signature and the number of runs left."""
        left = self.left_text if self.revoked is not None else f"{self.left} of {self.runs} runs left"
        return f"approved by {self.by} on {clock_text(self.time)}, {self.signed} ({left})"

    @property
    def left_text(self) -> str:
        """The number of runs left as text, or the name of the person who revoked the approval."""
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


def approval_entry(
    name: str, plan: AccountedPlan, *, by: str, runs: int, note: str, data: Iterable[str | os.PathLike[str]]
) -> dict[str, Any]:
    """Return the content of an approval's entry (see `Ledger.approve`), with a digest of the approved data files.

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
