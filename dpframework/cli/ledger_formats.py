"""A ledger as a page for a browser, as CSV, or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpframework import ledger as ledgers
from dpframework.cli.ledger_tables import (
    GROUPS,
    OUTSIDE,
    PERIODS,
    RUNS,
    bare_cap_text,
    certainty_sentences,
    claim_sentence,
    group_rows,
    outside_rows,
    period_rows,
    records_form,
    run_rows,
    text_of_loss,
)
from dpframework.facts.output_formats_times_and_csv import clock_text, csv_text, format_by_name
from dpframework.facts.output_overwrite_rule import FileKind
from dpframework.facts.phrases import count_text
from dpframework.facts.privacy_losses import readable
from dpframework.reports.formats import PAGE_FILE
from dpframework.results.json_safe import json_text

SUFFIXES = {".html": "page", ".htm": "page", ".csv": "csv", ".json": "json"}
CAPS = ("data set", "protects", "cap", "spent", "left", "runs")
APPROVALS = ("data set", "plan", "approved", "by", "runs", "left", "data", "signature", "note")
RUN_COLUMNS = ("data set", *RUNS)
FILES = {
    "page": PAGE_FILE,
    "csv": FileKind.of_pattern("a list of runs", f"^{','.join(RUN_COLUMNS)}\n"),
    "json": FileKind.of_pattern("a ledger in JSON", r'^\{\s*"data_sets": \['),
}


def ledger_form(records: ledgers.Records, shown: Sequence[ledgers.DataSet]) -> dict[str, Any]:
    """Return the given data sets of a ledger as a JSON-safe form, with runs grouped by person, month and attribute."""
    found = []
    for one in shown:
        groups = {by.value: [group.to_dict() for group in ledgers.group_runs(one, by)] for by in ledgers.GroupBy}
        found.append({**one.to_dict(), "would_buy": ledgers.remainder(one), "by": groups})
    return {"data_sets": found, **records_form(records)}


def kind_of(out: Path) -> FileKind:
    """Return the kind of file for the ending of a name. Only a file of this kind may be replaced.

    Raises
    ------
    InputError
        If no format has this ending.
    """
    return FILES[format_by_name(out, SUFFIXES)]


def ledger_text(records: ledgers.Records, shown: Sequence[ledgers.DataSet], out: Path) -> str:
    """Return the given data sets of a ledger as text, in the format for the ending of a file's name.

    Raises
    ------
    InputError
        If no format has this ending.
    """
    match format_by_name(out, SUFFIXES):
        case "json":
            return json_text(ledger_form(records, shown)) + "\n"
        case "csv":  # one row for each run, in order, for one data set after another
            return csv_text(RUN_COLUMNS, [(one.name, *row) for one in shown for row in run_rows(one)])
        case _:
            return _page(records, shown, out.stem)


def _page(records: ledgers.Records, shown: Sequence[ledgers.DataSet], name: str) -> str:
    from dpframework.reports.html import html_tables

    sentences = []
    for one in shown:
        runs = count_text(len(one.runs), "run")
        rest = f"This is enough for {'; or '.join(ledgers.remainder(one))}." if one.left else "No plan fits any more."
        left = f"and {readable(one.left)} is left"
        sentences.append(f"'{one.name}' has spent epsilon {text_of_loss(one)} in {runs}, {left}. {rest}")
        spent, whole = certainty_sentences(one)
        sentences += [f"After all releases charged so far: {spent}.", f"If the whole cap is spent: {whole}."]
        claim = claim_sentence(one)
        sentences += [f"{claim[0].upper()}{claim[1:]}."] if claim else []
    sentences += [f"{records.authority[0].upper()}{records.authority[1:]}.", f"Head: {records.head}."]
    approvals: list[tuple[str, ...]] = [
        (one.name, a.plan[:12], clock_text(a.time), a.by, str(a.runs),
         a.left_text, "any" if a.data is None else "one", a.signed, a.note)
        for one in shown
        for a in one.approvals
    ]  # fmt: skip
    caps: list[tuple[str, ...]] = [
        (one.name, str(one.unit), bare_cap_text(one), text_of_loss(one), readable(one.left), str(len(one.runs)))
        for one in shown
    ]
    grouped = [_group_runs(shown, by) for by in ledgers.GroupBy]
    rows = [(one.name, *row) for one in shown for row in period_rows(one)]
    periods = (
        [("Periods", "What was spent in each period, and what is left.", ("data set", *PERIODS), rows)] if rows else []
    )
    sections = [
        ("Data sets", "What each data set may spend, and what it has spent.", CAPS, caps),
        ("Runs", "What was charged, in order.", _PAGE_RUNS, [row for one in shown for row in _page_runs(one)]),
        *periods,
        *grouped,
        ("Approvals", "Which plans may be run, how often, and who decided this.", APPROVALS, approvals),
        ("Released outside this ledger", "Releases that no run of this ledger made, and how each changes the claim.",
         ("data set", *OUTSIDE), [(one.name, *row) for one in shown for row in outside_rows(one)]),
    ]  # fmt: skip
    if len(shown) == 1:  # the first section names the data set, so the other sections leave its name out
        sections = [sections[0], *((title, about, heads[1:], [row[1:] for row in rows])
                                   for title, about, heads, rows in sections[1:])]  # fmt: skip
    return html_tables(sections, sentences, title=name, subtitle="A ledger")


_CAPTIONS = {
    ledgers.GroupBy.PERSON: "What each person's runs cost together.",
    ledgers.GroupBy.MONTH: "What the runs of each month cost together.",
    ledgers.GroupBy.ATTRIBUTE: "For each attribute, the total cost of the results that may read it.",
}


def _group_runs(
    shown: Sequence[ledgers.DataSet], by: ledgers.GroupBy
) -> tuple[str, str, tuple[str, ...], list[tuple[str, ...]]]:
    """Return the title, caption, heads and rows of the section on groups of runs.

    If runs are grouped by person, the column "by" is left out, since it would repeat the person.
    """
    heads = ("data set", by.value, *GROUPS)
    kept = [k for k, head in enumerate(heads) if by is not ledgers.GroupBy.PERSON or head != "by"]
    rows = [(one.name, *row) for one in shown for row in group_rows(one, by)]
    columns = [tuple(row[k] for k in kept) for row in (heads, *rows)]
    return f"Spent by {by}", _CAPTIONS[by], columns[0], columns[1:]


#: The columns of runs on a page. Several of these columns join columns of `RUNS`, since a page is narrow.
_PAGE_RUNS = ("data set", "study and results", "who and purpose", "approved by", "opened", "charged", "end", "run")


def _page_runs(one: ledgers.DataSet) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for study, results, by, purpose, approved, opened, charged, releases, end, run, plan in run_rows(one):
        told = f"{by}: {purpose}" if purpose != "-" else by
        ended = f"{end}, {count_text(int(releases), 'release')}"
        rows.append(
            (
                one.name,
                f"{study}: {results}",
                told,
                approved,
                clock_text(opened),
                charged,
                ended,
                f"{run} of plan {plan}",
            )
        )
    return rows
