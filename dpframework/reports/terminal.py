"""The report on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dpframework.checks import Finding, Severity
from dpframework.reports.drawing import tree
from dpframework.reports.facts import assumption_rows, headlines, is_alarming, public_facts
from dpframework.reports.ran import Ran
from dpframework.reports.steps import NONE, step_rows
from dpframework.study.results import Results
from dpframework.study.study_plan import StudyPlan

if TYPE_CHECKING:  # rich's tables take a while to import: only those who print wait for them
    from rich.console import Group, RenderableType
    from rich.text import Text

WIDTH = 120  # of what is written to a file
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "dim"}


def heading(text: str) -> Text:
    """Return a section's heading."""
    from rich.text import Text

    return Text(f"\n{text}", style="bold cyan")


def facts_table(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Return names beside values, without lines."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def plan_tree(plan: StudyPlan) -> Text:
    """Return the plan's tree with its losses and total set off."""
    from rich.text import Text

    text = Text(tree(plan), no_wrap=True, overflow="ignore")
    text.highlight_regex(r"\[[^\[\]]*(epsilon|rho|free)[^\[\]]*\]", "green")
    text.highlight_regex(r"(?m)^total: .*$", "bold")
    text.highlight_regex(r"[├└│]─?", "dim")
    return text


def findings_text(found: Iterable[Finding]) -> Text:
    """Return one line a finding, or a line that there is none."""
    from rich.text import Text

    lines = [Text(str(finding), style=_STYLES[finding.severity]) for finding in found]
    return Text("\n").join(lines or [Text("no findings: every check passes", style="green")])


def headlines_text(ran: Ran | None, plan: StudyPlan) -> Text:
    """Return whether the plan is accepted, or the run came to its end and its results are private, plainly."""
    from rich.text import Text

    return Text("\n").join(
        Text(line, style="bold white on red" if is_alarming(line) else "bold green") for line in headlines(plan, ran)
    )


def terminal_report(
    plan: StudyPlan, results: Results | Ran | None = None, *, title: str = "A differential-privacy study"
) -> Group:
    """Return a plan, and what its run did, as a rich renderable (see `markdown_report`)."""
    from rich.console import Group

    ran = Ran.of(results) if isinstance(results, Results) else results
    return Group(*_parts(plan, ran, title))


def terminal_text(plan: StudyPlan, results: Results | Ran | None = None, *, title: str) -> str:
    """Return the same as plain text."""
    import io

    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, highlight=False, width=WIDTH).print(
        terminal_report(plan, results, title=title), soft_wrap=True
    )
    return stream.getvalue()


def _parts(plan: StudyPlan, ran: Ran | None, title: str) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(title, style="bold")
    yield headlines_text(ran, plan)
    yield facts_table(public_facts(plan))
    yield heading("Plan")
    yield plan_tree(plan)
    yield heading("Steps")
    yield _steps(plan, ran)
    assumptions = assumption_rows(plan)
    if assumptions:
        yield heading("Assumptions")
        yield facts_table((name, f"needed by {who}; allowed by name: {allowed}") for name, who, allowed in assumptions)
    yield heading("Findings")
    yield findings_text(plan.check())
    if ran is not None:
        yield heading("Run")
        yield facts_table(ran.facts(plan))
        for name, text in ran.texts.items():
            yield heading(f"Result: {name}")
            yield Text(text, no_wrap=True, overflow="ignore")


def _steps(plan: StudyPlan, ran: Ran | None) -> RenderableType:
    """Return each step in two lines, since eight columns do not fit beside each other."""
    from rich.text import Text

    made = {} if ran is None else ran.made(plan)
    lines: list[Text] = []
    for row in step_rows(plan):
        times = "" if ran is None else f", releases made: {made.get(row.path, 0)}"
        lines.append(
            Text.assemble((row.path, "bold"), f": {row.query}, by {row.mechanism}, ", (row.loss, "green"), times)
        )
        sides = "monotonic" if row.monotonic == "yes" else "two-sided"
        lines.append(Text(f"    sensitivity {row.sensitivity}, {sides} ({row.source})", style="dim"))
        assumed = "" if row.assumptions == NONE else f"; assumes {row.assumptions}"
        lines.append(Text(f"    expected error: {row.expected}{assumed}", style="dim"))
    return Text("\n").join(lines)
