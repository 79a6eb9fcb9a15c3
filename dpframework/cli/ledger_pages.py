"""A ledger as a page for a browser, as CSV, or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpframework import ledger as ledgers
from dpframework.facts.output_text import csv_text, format_by_name
from dpframework.facts.outputs import FileKind
from dpframework.facts.privacy import PrivacyLoss, decimal_text, readable
from dpframework.reports import learned, learned_sentence
from dpframework.reports.formats import PAGE_FILE
from dpframework.results.json_safe import json_text

SUFFIXES = {".html": "page", ".htm": "page", ".csv": "csv", ".json": "json"}
CAPS = ("data set", "protects", "relation", "cap", "spent", "left", "runs")
APPROVALS = ("data set", "plan", "approved", "by", "runs", "left", "data", "signature", "note")
RUNS = ("data set", "run", "plan", "opened", "charged", "releases", "resumed", "end")
FILES = {
    "page": PAGE_FILE,
    "csv": FileKind.of_pattern("a list of runs", f"^{','.join(RUNS)}\n"),
    "json": FileKind.of_pattern("a ledger in JSON", r'^\{\s*"data_sets": \['),
}


def kind_of(out: Path) -> FileKind:
    """Return the kind of file that a name stands for, which may be replaced.

    Raises
    ------
    InputError
        If the name stands for none.
    """
    return FILES[format_by_name(out, SUFFIXES)]


def ledger_text(records: ledgers.Records, shown: Sequence[ledgers.DataSet], out: Path) -> str:
    """Return a ledger in the format that a file's name stands for.

    Raises
    ------
    InputError
        If the name stands for none.
    """
    match format_by_name(out, SUFFIXES):
        case "json":
            found = [data_set.to_dict() for data_set in shown]
            signers = None if records.signers is None else dict(records.signers.keys)
            heads = {"entries": records.head.number, "head": records.head.hash}
            return json_text({"data_sets": found, "signers": signers, **heads}) + "\n"
        case "csv":  # a row a run: what was charged to each data set, in order
            return csv_text(RUNS, [row for data_set in shown for row in _runs(data_set)])
        case _:
            return _page(records, shown, out.stem)


def _page(records: ledgers.Records, shown: Sequence[ledgers.DataSet], name: str) -> str:
    from dpframework.reports.html import html_tables

    sentences = [f"{records.authority[0].upper()}{records.authority[1:]}.", f"Head: {records.head}."]
    for data_set in shown:
        for what, loss in (
            ("all that has been charged", data_set.spent),
            ("all that the cap admits", PrivacyLoss(data_set.epsilon, delta=data_set.delta)),
        ):
            meaning = learned_sentence(learned(loss, data_set.relation, data_set.unit))
            sentences.append(f"'{data_set.name}', over {what}: {meaning}.")
    approvals: list[tuple[str, ...]] = [
        (one.name, a.plan[:12], a.time, a.by, str(a.runs),
         str(a.left) if a.revoked is None else f"revoked by {a.revoked}", "any" if a.data is None else "one",
         a.signed, a.note)
        for one in shown
        for a in one.approvals
    ]  # fmt: skip
    sections = [
        ("Data sets", "What each may spend, and has spent.", CAPS, [_cap(one) for one in shown]),
        ("Approvals", "Which plans may be run, who decided it, and how often.", APPROVALS,
         approvals),
        ("Runs", "What was charged, in order.", RUNS, [row for one in shown for row in _runs(one)]),
    ]  # fmt: skip
    return html_tables(sections, sentences, title=name, subtitle="A ledger")


def _cap(one: ledgers.DataSet) -> tuple[str, ...]:
    delta = f", delta {float(one.delta):g}" if one.delta else ""
    spent = readable(one.spent.epsilon or one.epsilon * 0)
    cap = f"epsilon {decimal_text(one.epsilon)}{delta}"
    return one.name, str(one.unit), str(one.relation), cap, spent, readable(one.left), str(len(one.runs))


def _runs(one: ledgers.DataSet) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for run in one.runs.values():
        amount = run.amount.under(one.relation)
        charged = "" if amount is None else readable(amount)
        counts = str(len(run.charges)), str(run.resumed)
        rows.append((one.name, run.id, run.plan[:12], run.time, charged, *counts, run.end or "unfinished"))
    return rows
