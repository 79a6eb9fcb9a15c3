"""The report on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dpframework.checks import Finding, Severity
from dpframework.facts.control_character_escapes import printable, printable_lines
from dpframework.reports import section_blocks
from dpframework.reports.epsilon_as_odds import certainty_sentence
from dpframework.reports.planned_result_rows import bound_line, error_lines
from dpframework.reports.report_headlines import About, brief, headlines, is_alarming
from dpframework.reports.run_summary import RunSummary, summarize
from dpframework.reports.sections import PlanFacts, ReportSubject, Section, report_sections
from dpframework.reports.step_table import StepTable
from dpframework.reports.terminal_line_breaks import FittedText, fit_facts, fit_prose, fit_tree
from dpframework.reports.text_plan_drawings import tree
from dpframework.study.results import Results
from dpframework.study.study_plan_totals_and_findings import StudyPlan

if TYPE_CHECKING:  # rich takes a while to import, so functions that print import it themselves
    from rich.console import Group, RenderableType
    from rich.text import Text

WIDTH = 120  # the width, in columns, of a report that is written to a file
INDENT = "    "
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "dim"}


def heading(text: str) -> Text:
    """Return a section's heading, after an empty line."""
    from rich.text import Text

    return Text(f"\n{text}", style="bold cyan")


def facts_table(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Return a table of names beside their values, without ruled lines."""
    from rich.text import Text

    facts = [(printable(name), printable(value)) for name, value in rows]

    def draw(width: int | None) -> Text:
        lines = (Text.assemble((name, "dim"), value) for name, value in fit_facts(facts, width))
        return Text("\n").join(lines)

    return FittedText(draw)


def plan_tree(plan: StudyPlan, width: int | None) -> Text:
    """Return the plan's tree, with its losses and its total in colours, and with long lines broken between words."""
    return _colour_tree(tree(plan), width)


def _colour_tree(drawn: str, width: int | None) -> Text:
    from rich.text import Text

    text = Text(fit_tree(drawn, width), no_wrap=True, overflow="ignore")
    text.highlight_regex(r"\[[^\[\]]*(epsilon|rho|free)[^\[\]]*\]", "green")
    text.highlight_regex(r"(?m)^total: .*$", "bold")
    text.highlight_regex(r"[├└│]─?", "dim")
    return text


def errors_text(plan: StudyPlan, width: int | None) -> Text:
    """Return a line on the number of rows, then one line on the error of each kind of release."""
    from rich.text import Text

    size, *lines = error_lines(plan)
    shown = [Text("\n" + fit_prose(size, width))]
    shown += [Text(fit_prose(line, width, INDENT), style="yellow" if line.endswith("]") else "") for line in lines]
    return Text("\n").join(shown)


def prose_text(lines: Iterable[str], width: int | None) -> Text:
    """Return lines of prose, each broken at the width of the terminal."""
    from rich.text import Text

    return Text("\n".join(fit_prose(line, width, INDENT) for line in lines))


def findings_text(found: Iterable[Finding]) -> Text:
    """Return one line for each finding, or one line that says that there are none."""
    from rich.text import Text

    lines = [Text(str(finding), style=_STYLES[finding.severity]) for finding in found]
    return Text("\n").join(lines or [Text("no findings: every check passes", style="green")])


def headlines_text(ran: RunSummary | None, plan: StudyPlan, about: About | None = None) -> Text:
    """Return the coloured headlines of the plan, or of the run if there was one."""
    from rich.text import Text

    lines = headlines(plan, ran, About() if about is None else about)
    return Text("\n").join(
        Text(line, style="bold white on red" if is_alarming(line) else "bold green") for line in lines
    )


def terminal_report(
    plan: StudyPlan,
    results: Results | RunSummary | None = None,
    *,
    title: str = "A differential-privacy study",
    about: About | None = None,
) -> Group:
    """Return a plan and the facts of its run as a rich renderable. The parameters are those of `markdown_report`."""
    from rich.console import Group
    from rich.text import Text

    run, about = summarize(results, about)
    sections = report_sections(ReportSubject(PlanFacts(plan), run, about))
    top = (Text(printable(title), style="bold"), headlines_text(run, plan, about), Text(brief(plan)))
    return Group(*top, *_sections(sections))


def terminal_text(
    plan: StudyPlan, results: Results | RunSummary | None = None, *, title: str, about: About | None = None
) -> str:
    """Return the report of `terminal_report` as plain text."""
    return _plain(terminal_report(plan, results, title=title, about=about))


def sections_text(sections: Iterable[Section], lines: Iterable[str], *, title: str) -> str:
    """Return sections as plain text, below the title and `lines` as headlines."""
    from rich.console import Group
    from rich.text import Text

    return _plain(Group(Text(printable(title), style="bold"), *map(Text, lines), *_sections(sections)))


def _plain(shown: RenderableType) -> str:
    import io

    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, highlight=False, width=WIDTH).print(shown, soft_wrap=True)
    return printable_lines(stream.getvalue())


def _sections(sections: Iterable[Section]) -> Iterator[RenderableType]:
    for section in sections:
        yield heading(section.title)
        for block in section.blocks:
            yield from _block(block)


def _block(block: section_blocks.SectionBlock) -> Iterator[RenderableType]:
    """Yield what is printed for a block.

    Some kinds of block have a layout for narrow terminals. All others are laid out as their plain blocks.
    """
    from rich.text import Text

    match block:
        case section_blocks.Paragraph():
            yield FittedText(lambda width: Text(fit_prose(block.text, width), style="dim" if block.aside else ""))
        case section_blocks.Facts():
            yield facts_table(block.rows)
        case section_blocks.Text():
            if block.title:
                yield heading(printable(block.title))
            yield Text(printable_lines(block.text), no_wrap=True, overflow="ignore")
        case section_blocks.TableBlock():
            yield _table(block)
        case section_blocks.PlanDrawing():
            yield FittedText(lambda width: _colour_tree(block.tree, width))
        case section_blocks.PublishedResults():
            yield _print_published(block)
        case section_blocks.LearnedShares():
            yield Text(f"From all results together: {certainty_sentence(block.learned)}.")
        case StepTable():
            yield _steps(block)
        case section_blocks.FindingList():
            yield findings_text(one.finding for one in block.findings)
        case _:
            for plain in block.plain():
                yield from _block(plain)


def _table(table: section_blocks.TableBlock) -> RenderableType:
    """Return one paragraph for each row, since columns side by side might not fit a terminal.

    A paragraph has the first cell, then each other cell after the head of its column. A single other cell has no head.
    """
    from rich.text import Text

    def draw(width: int | None) -> Text:
        lines = [Text(f"\n{printable(table.title)}", style="bold")] if table.title else []
        lines += [Text(fit_prose(table.caption, width), style="dim")] if table.caption else []
        for name, *cells in table.rows:
            told = "; ".join(f"{head}: {text}" for head, text in zip(table.heads[1:], cells, strict=True))
            if len(cells) == 1:
                (told,) = cells  # a single cell needs no head
            lines.append(_head(name, f": {told}", width))
        return Text("\n").join(lines)

    return FittedText(draw)


def _print_published(block: section_blocks.PublishedResults) -> RenderableType:
    """Return a few lines for each result, then one line for each bias of results."""
    from rich.text import Text

    def draw(width: int | None) -> Text:
        lines = [Text(fit_prose(block.size, width))]
        for row in block.rows:
            lines.append(_head(row.names, f": {row.made_by}, {row.cost}", width))
            reads = "any attribute" if row.reads is None else ", ".join(row.reads) or "no attribute: rows are counted"
            lines.append(Text(fit_prose(f"may read {reads}", width, INDENT), style="dim"))
            for bound in row.published:
                style = "yellow" if bound.warning else "dim"
                told = filter(None, (bound_line(bound), bound.group_text))
                lines += [Text(fit_prose(text, width, INDENT), style=style) for text in told]
        lines += [Text(fit_prose(f"besides noise: {bias} ({who})", width)) for who, bias in block.biases]
        return Text("\n").join(lines)

    return FittedText(draw)


def _head(name: str, text: str, width: int | None) -> Text:
    """Return a name in bold, with its facts after it."""
    from rich.text import Text

    head = Text(fit_prose(printable(name + text), width))
    head.stylize("bold", 0, len(name))
    head.highlight_regex(r"\b(epsilon|rho) [~0-9.e/-]+", "green")
    return head


def _steps(block: StepTable) -> RenderableType:
    """Return three lines for each step, since the columns of a page would not fit side by side."""
    from rich.text import Text

    def draw(width: int | None) -> Text:
        lines: list[Text] = []
        for row, released in block.in_order:
            times = f", releases made: {released}" if block.ran else ""
            lines.append(_head(row.path, f": {row.query}, by {row.mechanism}, {row.loss}{times}", width))
            sides = "monotonic" if row.monotonic == "yes" else "two-sided"
            assumed = f"; assumes {row.assumptions}" if row.assumes else ""
            said = (
                f"sensitivity {row.sensitivity}, {sides} ({row.source})",
                f"expected error: {row.expected}{assumed}",
            )
            lines += [Text(fit_prose(text, width, INDENT), style="dim") for text in said]
        return Text("\n").join(lines)

    return FittedText(draw)
