"""Decisions: the entries that need a signature in a ledger with signers, such as approvals."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.ledger.entry_hash_chain import Entry, LedgerTampered, Transaction
from dpframework.ledger.signers import Signers
from dpframework.ledger.ssh_signatures import SignatureError, sign, text_to_sign, verify_signature

if TYPE_CHECKING:
    from dpframework.ledger.ledger_state import Records

#: The kinds of entries that are decisions.
DECISIONS = ("data set", "approval", "revocation", "signers", "outside")


@final
@attrs.frozen(eq=False)
class Decision:
    """A decision: an entry that gives or takes authority, such as an approval.

    Attributes
    ----------
    entry
        The entry that records the decision.
    signature
        The SSH signature of the decision; None if it is unsigned.
    text
        The text that a signature of the decision covers.
    """

    entry: Entry
    signature: str | None
    text: str

    def __str__(self) -> str:
        content, time = self.entry.content, self.entry.time
        match self.entry.kind:
            case "data set":
                return f"'{content['data_set']}', opened on {time}"
            case "approval":
                return f"'{content['data_set']}', plan {content['plan'][:12]}, approved by {content['by']} on {time}"
            case "revocation":
                return f"'{content['data_set']}', plan {content['plan'][:12]}, revoked by {content['by']} on {time}"
            case "outside":
                return f"'{content['data_set']}', released outside, stated by {content['by']} on {time}"
        return f"signers, changed by {content['by']} on {time}"

    def signer(self, own: Signers | None, allowed: str | os.PathLike[str] | None) -> str:
        """Verify the signature, and return a phrase that says who signed the decision.

        Parameters
        ----------
        own
            The ledger's signers; None if the ledger has none. Their signatures were verified when the ledger was read.
        allowed
            A file of allowed signers, one of whom must have signed the decision; None to accept any key.

        Raises
        ------
        SignatureError
            If the signature does not fit, if its signer is not allowed, or if `allowed` is given and the decision is
            unsigned.
        """
        if self.signature is None and allowed is None:
            return "unsigned"
        if self.signature is None:
            raise SignatureError("it is not signed")
        vouched = "" if allowed is not None or own is not None else ", whose owner is not known here"
        return f"signed by {verify_signature(self.signature, self.text, allowed)}{vouched}"


def append_decision(
    transaction: Transaction,
    records: Records,
    kind: str,
    content: Mapping[str, Any],
    key: str | os.PathLike[str] | None,
) -> None:
    """Append a decision, and sign it if a key is given. In a ledger with signers a key is required.

    Raises
    ------
    InputError
        If a required key is missing, or if the key belongs to no signer. Also if a key is given in a ledger without
        signers for anything but an approval, since nobody would verify the signature.
    """
    if key is None and records.signers is not None:
        raise InputError(f"this ledger needs a signature by {records.signers}; give the key with --key")
    if key is not None and records.signers is None and kind != "approval":
        raise InputError("this ledger has no signers, so nobody would verify a signature; leave out --key")
    if key is not None:
        text = text_to_sign(records.id, transaction.head.hash, kind, content)
        content = {**content, "signature": sign(key, text)}
        try:
            if records.signers is not None:
                records.signers.signer_of(content["signature"], text)
        except SignatureError:
            raise InputError(
                f"{key}: is not the key of a signer of this ledger; the signers are {records.signers}"
            ) from None
    transaction.append(kind, content)


def signature_lines(
    path: str | os.PathLike[str], records: Records, signers: str | os.PathLike[str] | None
) -> list[str]:
    """Verify the signatures of a ledger's decisions, and return one line for each (see `Ledger.signatures`).

    Raises
    ------
    LedgerTampered
        If a signature does not fit its entry, if its signer is not allowed, or if `signers` is given and a signature is
        missing.
    """
    lines = []
    for decision in records.decisions:
        if records.signers is None and decision.entry.kind != "approval":
            continue
        try:
            lines.append(f"{decision}: {decision.signer(records.signers, signers)}")
        except SignatureError as error:
            raise LedgerTampered(f"{path}: {decision}: {error}") from None
    return lines
