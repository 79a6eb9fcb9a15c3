"""The report on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dpframework.checks import Finding, Severity
from dpframework.reports.about import About, brief, verdict_facts
from dpframework.reports.drawing import tree
from dpframework.reports.facts import assumption_rows, headlines, is_alarming, public_facts
from dpframework.reports.fitting import Fitted, fit_facts, fit_prose, fit_tree
from dpframework.reports.meaning import learned, learned_sentence
from dpframework.reports.ran import Ran, told_of
from dpframework.reports.steps import NONE, step_rows
from dpframework.reports.summary import result_rows
from dpframework.study.results import Results
from dpframework.study.study_plan import StudyPlan

if TYPE_CHECKING:  # rich's tables take a while to import: only those who print wait for them
    from rich.console import Group, RenderableType
    from rich.text import Text

WIDTH = 120  # of what is written to a file
INDENT = "    "
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "dim"}


def heading(text: str) -> Text:
    """Return a section's heading."""
    from rich.text import Text

    return Text(f"\n{text}", style="bold cyan")


def facts_table(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Return names beside values, without lines."""
    from rich.text import Text

    facts = list(rows)

    def made(width: int | None) -> Text:
        lines = (Text.assemble((name, "dim"), value) for name, value in fit_facts(facts, width))
        return Text("\n").join(lines)

    return Fitted(made)


def plan_tree(plan: StudyPlan, width: int | None = None) -> Text:
    """Return the plan's tree with its losses and total set off, its long lines broken between words."""
    from rich.text import Text

    text = Text(fit_tree(tree(plan), width), no_wrap=True, overflow="ignore")
    text.highlight_regex(r"\[[^\[\]]*(epsilon|rho|free)[^\[\]]*\]", "green")
    text.highlight_regex(r"(?m)^total: .*$", "bold")
    text.highlight_regex(r"[├└│]─?", "dim")
    return text


def findings_text(found: Iterable[Finding]) -> Text:
    """Return one line a finding, or a line that there is none."""
    from rich.text import Text

    lines = [Text(str(finding), style=_STYLES[finding.severity]) for finding in found]
    return Text("\n").join(lines or [Text("no findings: every check passes", style="green")])


def headlines_text(ran: Ran | None, plan: StudyPlan, about: About | None = None) -> Text:
    """Return whether the plan is accepted, or the run came to its end and its results are private, plainly."""
    from rich.text import Text

    lines = headlines(plan, ran, About() if about is None else about)
    return Text("\n").join(
        Text(line, style="bold white on red" if is_alarming(line) else "bold green") for line in lines
    )


def terminal_report(
    plan: StudyPlan,
    results: Results | Ran | None = None,
    *,
    title: str = "A differential-privacy study",
    about: About | None = None,
) -> Group:
    """Return a plan, and what its run did, as a rich renderable (see `markdown_report`)."""
    from rich.console import Group

    ran, about = told_of(results, about)
    return Group(*_parts(plan, ran, title, about))


def terminal_text(
    plan: StudyPlan, results: Results | Ran | None = None, *, title: str, about: About | None = None
) -> str:
    """Return the same as plain text."""
    import io

    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, highlight=False, width=WIDTH).print(
        terminal_report(plan, results, title=title, about=about), soft_wrap=True
    )
    return stream.getvalue()


def _parts(plan: StudyPlan, ran: Ran | None, title: str, about: About) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(title, style="bold")
    yield headlines_text(ran, plan, about)
    yield Text(brief(plan))
    yield heading("What is published")
    yield _published(plan)
    yield heading("What somebody could learn about one person")
    yield _learned(plan)
    yield heading("Who is protected, and what this is about")
    yield facts_table((*public_facts(plan), *verdict_facts(plan, about)))
    if ran is not None:
        for name, text in ran.texts.items():
            yield heading(f"Result: {name}")
            yield Text(text, no_wrap=True, overflow="ignore")
    yield heading("Plan")
    yield Fitted(lambda width: plan_tree(plan, width))
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


def _published(plan: StudyPlan) -> RenderableType:
    """Return each result in a few lines."""
    from rich.text import Text

    def made(width: int | None) -> Text:
        lines: list[Text] = []
        for row in result_rows(plan):
            share = "" if row.share is None else f", {100 * row.share:.3g} % of all"
            lines.append(_head(row.name, f": {row.made_by}, {row.loss}{share}", width))
            reads = "any attribute" if row.reads is None else ", ".join(row.reads) or "no attribute: rows are counted"
            lines.append(Text(fit_prose(f"may read {reads}", width, INDENT), style="dim"))
            lines += [
                Text(fit_prose(kind.line, width, INDENT), style="yellow" if kind.warning else "dim")
                for kind in row.published
            ]
        return Text("\n").join(lines)

    return Fitted(made)


def _head(name: str, text: str, width: int | None) -> Text:
    """Return a name set off, and what is said of it."""
    from rich.text import Text

    head = Text(fit_prose(name + text, width))
    head.stylize("bold", 0, len(name))
    head.highlight_regex(r"\b(epsilon|rho) [~0-9.e/-]+", "green")
    return head


def _learned(plan: StudyPlan) -> RenderableType:
    from rich.text import Text

    total = plan.smallest_total()
    return Text(f"At most, from all results together: {learned_sentence(learned(total, plan.relation, plan.unit))}.")


def _steps(plan: StudyPlan, ran: Ran | None) -> RenderableType:
    """Return each step in a few lines, since eight columns do not fit beside each other."""
    from rich.text import Text

    counts = {} if ran is None else ran.made(plan)

    def made(width: int | None) -> Text:
        lines: list[Text] = []
        for row in step_rows(plan):
            times = "" if ran is None else f", releases made: {counts.get(row.path, 0)}"
            lines.append(_head(row.path, f": {row.query}, by {row.mechanism}, {row.loss}{times}", width))
            sides = "monotonic" if row.monotonic == "yes" else "two-sided"
            assumed = "" if row.assumptions == NONE else f"; assumes {row.assumptions}"
            said = (
                f"sensitivity {row.sensitivity}, {sides} ({row.source})",
                f"expected error: {row.expected}{assumed}",
            )
            lines += [Text(fit_prose(text, width, INDENT), style="dim") for text in said]
        return Text("\n").join(lines)

    return Fitted(made)
