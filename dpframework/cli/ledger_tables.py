"""Tables and sentences on a ledger for a terminal, and the cells of these tables for other formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dpframework import ledger as ledgers, reports  # both load lazily, so other commands do not wait for them
from dpframework.cli.common import plain_table
from dpframework.facts.control_character_escapes import printable
from dpframework.facts.output_formats_times_and_csv import clock_text
from dpframework.facts.phrases import count_text
from dpframework.facts.privacy_losses import PrivacyLoss, decimal_text, readable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def cap_text(data_set: ledgers.DataSet) -> str:
    """Return the cap in words, with the unit that the cap protects if that is not a row."""
    whom = "" if data_set.unit.is_row else f", protecting {data_set.unit}"
    return f"{bare_cap_text(data_set)}{whom}"


def bare_cap_text(data_set: ledgers.DataSet) -> str:
    """Return the cap in words, without its unit."""
    delta = f" at delta {float(data_set.delta):g}" if data_set.delta else ""
    delta += f", of which {float(data_set.reserve):g} is held back" if data_set.reserve else ""
    cap = f"epsilon {decimal_text(data_set.epsilon)}"
    if data_set.history is not None:
        cap += f" per {data_set.unit.period} and {decimal_text(data_set.history)} over a person's whole history"
    return f"{cap}{delta} under {data_set.relation}"


def text_of_loss(data_set: ledgers.DataSet) -> str:
    """Return the epsilon that all runs on a data set have spent, as text."""
    return readable(data_set.spent.epsilon or data_set.epsilon * 0)


def certainty_sentences(data_set: ledgers.DataSet) -> tuple[str, str]:
    """Say how sure the results can make somebody of a guess about a person: so far, and if the whole cap is spent."""
    spent, whole = (
        reports.certainty_sentence(reports.certainty_gains(loss, data_set.relation, data_set.unit.history))
        for loss in (data_set.spent, PrivacyLoss(data_set.cap, delta=data_set.delta))
    )
    return spent, whole


def records_form(records: ledgers.Records) -> dict[str, Any]:
    """Return the signers of a ledger and its last entry as a JSON-safe form."""
    signers = None if records.signers is None else dict(records.signers.keys)
    return {"signers": signers, "entries": records.head.number, "head": records.head.hash}


def _cell(text: str) -> Text:
    """Return a cell of a table, with control characters written as escapes."""
    from rich.text import Text

    return Text(printable(text), overflow="fold")


def cells_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table without ruled lines, with these heads and rows."""
    table = plain_table(*heads)
    for cells in rows:
        table.add_row(*map(_cell, cells))
    return table


def cap_table(known: Iterable[ledgers.DataSet]) -> Table:
    """Return a table with one line for each data set."""
    from rich.text import Text

    table = plain_table("data set", "cap", "spent", "left", "runs")
    for data_set in known:
        cells = (cap_text(data_set), text_of_loss(data_set), readable(data_set.left))
        table.add_row(Text(printable(data_set.name), style="bold"), *map(_cell, cells), str(len(data_set.runs)))
    return table


def approval_table(data_set: ledgers.DataSet) -> Table:
    """Return a table with one line for each approval."""
    heads = ("plan", "approved", "by", "runs", "left", "data", "signature", "note")
    rows = [
        (one.plan[:12], one.time, one.by, str(one.runs), one.left_text, "any" if one.data is None else "one",
         one.signed, one.note)
        for one in data_set.approvals
    ]  # fmt: skip
    return cells_table(heads, rows)


def run_table(data_set: ledgers.DataSet) -> Table:
    """Return a table with one line for each run, and with the columns of `RUNS` except the plan's hash."""
    return cells_table(RUNS[:-1], [cells[:-1] for cells in run_rows(data_set)])


#: The columns of runs.
RUNS = ("study", "results", "by", "purpose", "approved by", "opened", "charged", "releases", "end", "run", "plan")


def run_rows(data_set: ledgers.DataSet) -> list[tuple[str, ...]]:
    """Return the cells of each run, in the columns of `RUNS`."""
    rows: list[tuple[str, ...]] = []
    for run in data_set.runs.values():
        subject, amount = run.subject, run.amount.under(data_set.relation)
        counts = ((run.resumed, "resumed"), (run.redrawn, "drawn again"))
        end = [
            run.end or ("unfinished" if run.charged else "began to read"),
            *(f"{text} {number}x" for number, text in counts if number),
            *([f"of {subject.period}"] if subject.period else []),
        ]
        rows.append(
            (
                subject.study or "-",
                ", ".join(subject.result_names) or "-",
                subject.by or "-",
                subject.purpose or "-",
                run.approval.by,
                run.time,
                "" if amount is None else readable(amount),
                str(len(run.charges)),
                ", ".join(end),
                run.id,
                run.plan[:12],
            )
        )
    return rows


#: The columns of grouped runs, which follow the column with the group's name.
GROUPS = ("charged", "runs", "results", "by", "purposes")


def group_rows(data_set: ledgers.DataSet, by: ledgers.GroupBy) -> list[tuple[str, ...]]:
    """Return the cells of each group of runs: the name of the group, then the columns of `GROUPS`."""
    return [
        (one.name, one.charged, str(one.runs), ", ".join(one.results) or "-", ", ".join(one.people),
         ", ".join(one.purposes) or "-")
        for one in ledgers.group_runs(data_set, by)
    ]  # fmt: skip


#: The columns of periods.
PERIODS = ("period", "spent", "left")


def period_rows(data_set: ledgers.DataSet) -> list[tuple[str, ...]]:
    """Return the cells of each period that a run has read: its name, the epsilon spent, and the epsilon left."""
    rows: list[tuple[str, ...]] = []
    for name, budget in sorted(data_set.periods.items()):
        loss = budget.loss()
        spent = None if loss is None else loss.epsilon
        left = "" if spent is None else readable(max(data_set.epsilon - spent, data_set.epsilon * 0))
        rows.append((name, "no finite total" if spent is None else readable(spent), left))
    return rows


#: The columns of releases outside the ledger.
OUTSIDE = ("what", "kind", "attributes", "stated by", "on", "effect on the claim")


def outside_rows(data_set: ledgers.DataSet) -> list[tuple[str, ...]]:
    """Return the cells of each release outside the ledger."""
    return [
        (one.what, one.kind.value, ", ".join(one.attributes) or "any", one.by, clock_text(one.time), one.effect)
        for one in data_set.outside
    ]


def claim_sentence(data_set: ledgers.DataSet) -> str:
    """Say how many releases and looks outside the ledger are covered by no privacy claim. Empty if all are covered.

    A look is recorded if somebody looked at the rows before they chose questions or bounds.
    """
    bare = [one for one in data_set.outside if not one.covered]
    if not bare:
        return ""
    found = []
    for kind, what in ((ledgers.OutsideKind.EXACT, "exact release"), (ledgers.OutsideKind.LOOK, "look")):
        number = sum(one.kind is kind for one in bare)
        found += [count_text(number, what)] if number else []
    return f"no claim covers {' and '.join(found)} outside this ledger"
