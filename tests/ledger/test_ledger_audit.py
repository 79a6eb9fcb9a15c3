"""The audit of a ledger: honest entries pass, and whatever dpframework would not have written is named."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from noisy_runs import TABLE, study_of

import dpframework as dpf
from dpframework.ledger.entry_hash_chain import Chain, Entry, LedgerTampered
from dpframework.ledger.ledger_audit import audit_entries

PATH = Path("l")


@pytest.fixture
def entries(ledger: dpf.Ledger) -> Sequence[Entry]:
    """A data set, an approval, and a run with its releases."""
    study = study_of()
    ledger.approve("people", study.plan(), by="the board")
    study.run(TABLE, ledger=ledger.run("people"))
    with Chain(ledger.path).reading() as transaction:
        return transaction.read()


def run_of(entries: Sequence[Entry]) -> tuple[str, str]:
    (entry,) = (one for one in entries if one.kind == "run")
    return entry.content["run"], entry.hash


def test_each_beginning_of_an_honest_ledger_passes(entries: Sequence[Entry]) -> None:
    for number in range(1, len(entries) + 1):
        assert audit_entries(PATH, entries[:number], None, {}) == entries[number - 1].head
    for entry in entries:
        assert audit_entries(PATH, entries, entry.hash, dict([run_of(entries)])) == entries[-1].head


def test_an_entry_that_is_missing_is_missed(entries: Sequence[Entry]) -> None:
    with pytest.raises(LedgerTampered, match="the first entry is missing"):
        audit_entries(PATH, [], None, {})
    with pytest.raises(LedgerTampered, match="no entry has the hash"):
        audit_entries(PATH, entries[:-1], entries[-1].hash, {})
    run, head = run_of(entries)
    with pytest.raises(LedgerTampered, match=f"run {run} is gone"):
        audit_entries(PATH, [one for one in entries if one.kind in ("ledger", "data set")], None, {run: head})
    with pytest.raises(LedgerTampered, match=f"the last entry of run {run} is gone"):
        audit_entries(PATH, entries, None, {run: "0" * 64})


def changed(entries: Sequence[Entry], kind: str, change: Callable[[Any], None]) -> list[Entry]:
    found = []
    for entry in entries:
        content = copy.deepcopy(dict(entry.content))
        if entry.kind == kind:
            change(content)
        found.append(attrs.evolve(entry, content=content))
    return found


def cheaper(content: Any) -> None:
    content["amount"]["epsilon"] = "1/100"


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("run", cheaper),
        ("run", lambda content: content.pop("amount")),
        ("run", lambda content: content.update(plan="0" * 64)),
        ("plan", lambda content: content["plan"].update(relation="replace-one")),
        ("data set", lambda content: content.update(epsilon="1")),
    ],
    ids=["a smaller charge", "no charge", "another plan", "an edited plan", "a cap that the run does not fit"],
)
def test_what_was_never_written_so_is_named(entries: Sequence[Entry], kind: str, change: Callable[[Any], None]) -> None:
    with pytest.raises(LedgerTampered):
        audit_entries(PATH, changed(entries, kind, change), None, {})
