"""Decisions in a ledger: who made them, in words, and that those of signers need a signature."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import dpframework as dpf
from dpframework.ledger.entry_hash_chain import Entry, LedgerTampered
from dpframework.ledger.signed_decisions import DECISIONS, Decision, append_decision, signature_lines
from dpframework.ledger.ssh_signatures import SignatureError

CONTENT = {"data_set": "people", "plan": "0123456789abcdef", "by": "the board"}


def decision(kind: str, signature: str | None = None) -> Decision:
    return Decision(Entry(1, "2026-01-02", kind, CONTENT, "0" * 64, "1" * 64), signature, "text")


class Written:
    """Stands for a transaction."""

    def __init__(self) -> None:
        self.head, self.entries = SimpleNamespace(hash="0" * 64), list[tuple[str, Any]]()

    def append(self, kind: str, content: Any) -> None:
        self.entries.append((kind, content))


@pytest.mark.parametrize("kind", DECISIONS)
def test_a_decision_says_when_it_was_made_and_by_whom(kind: str) -> None:
    text = str(decision(kind))
    assert text.endswith("on 2026-01-02")
    assert ("by the board" in text) == (kind != "data set")
    assert ("plan 0123456789ab," in text) == (kind in ("approval", "revocation"))


def test_an_unsigned_decision_is_one_of_nobody_who_is_allowed() -> None:
    assert decision("approval").signer(None, None) == "unsigned"
    with pytest.raises(SignatureError, match="it is not signed"):
        decision("approval").signer(None, "allowed-signers")


@pytest.mark.parametrize("kind", DECISIONS)
def test_a_ledger_without_signers_takes_decisions_as_they_are(kind: str) -> None:
    written, records = Written(), SimpleNamespace(signers=None, id="0" * 64)
    append_decision(written, records, kind, CONTENT, None)  # type: ignore[arg-type]
    assert written.entries == [(kind, CONTENT)]
    if kind != "approval":
        with pytest.raises(dpf.InputError, match="leave out --key"):
            append_decision(written, records, kind, CONTENT, "key")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", DECISIONS)
def test_a_ledger_with_signers_takes_none_without_a_key(kind: str) -> None:
    written, records = Written(), SimpleNamespace(signers="the board", id="0" * 64)
    with pytest.raises(dpf.InputError, match="needs a signature by the board"):
        append_decision(written, records, kind, CONTENT, None)  # type: ignore[arg-type]
    assert written.entries == []


@pytest.mark.parametrize("kind", DECISIONS)
def test_each_approval_has_a_line_and_other_decisions_where_somebody_signs(kind: str) -> None:
    unsigned: Any = SimpleNamespace(signers=None, decisions=[decision(kind)])
    assert signature_lines("l", unsigned, None) == [f"{decision(kind)}: unsigned"] * (kind == "approval")
    signed: Any = SimpleNamespace(signers="the board", decisions=[decision(kind)])
    with pytest.raises(LedgerTampered, match="it is not signed"):
        signature_lines("l", signed, "allowed-signers")
