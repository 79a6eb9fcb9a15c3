"""The report in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dpframework.facts.control_character_escapes import printable, printable_lines
from dpframework.reports.formats import MARKDOWN_MARK
from dpframework.reports.report_headlines import About, brief, headlines
from dpframework.reports.run_summary import RunSummary, summarize
from dpframework.reports.section_blocks import Facts, Paragraph, SectionBlock, TableBlock, Text
from dpframework.reports.sections import PlanFacts, ReportSubject, Section, report_sections
from dpframework.study.results import Results
from dpframework.study.study_plan_totals_and_findings import StudyPlan

#: Characters that can begin markup, an entity or a link. Markdown also makes links of bare addresses.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#$&@]|:(?=//)|(?<=www)\.)", re.IGNORECASE)


def cell(text: str) -> str:
    r"""Escape a text for a table's cell, so that it is shown literally and on one line.

    Examples
    --------
    >>> print(cell("a|b <i>"))
    a\|b \<i\>
    """
    return _SPECIAL.sub(r"\\\1", printable(" ".join(text.split())))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|" + " --- |" * len(heads)
    for row in rows:
        yield "| " + " | ".join(map(cell, row)) + " |"
    yield ""


def markdown_report(
    plan: StudyPlan,
    results: Results | RunSummary | None = None,
    *,
    title: str = "A differential-privacy study",
    about: About | None = None,
) -> str:
    """Return a plan and the facts of its run as Markdown.

    Parameters
    ----------
    plan
        The plan.
    results
        The results of the plan's run, or their summary. None before a run.
    title
        The title of the report, which is its first heading.
    about
        The facts that the plan does not hold, such as the data, the date and the approvals. By default they are taken
        from `results`, unless that is a summary.
    """
    run, about = summarize(results, about)
    sections = report_sections(ReportSubject(PlanFacts(plan), run, about))
    return markdown_sections(sections, headlines(plan, run, about), title=title, brief=brief(plan))


def markdown_sections(sections: Iterable[Section], headlines: Iterable[str], *, title: str, brief: str = "") -> str:
    """Return sections as Markdown, below a title, headlines and the sentences of `brief`."""
    lines = [f"# {cell(title)}", ""]
    for headline in headlines:
        lines += [f"**{cell(headline)}.**", ""]
    lines += [cell(brief), ""] if brief else []
    for section in sections:
        lines += [f"## {cell(section.title)}", ""]
        for block in section.blocks:
            lines += _block(block)
    return "\n".join(lines).rstrip("\n") + f"\n\n{MARKDOWN_MARK}\n"


def _block(block: SectionBlock) -> Iterator[str]:
    """Yield the lines of a block in Markdown."""
    match block:
        case Paragraph():
            yield from (cell(block.text), "")
        case Facts():
            yield from _table(("fact", "value"), block.rows)
        case TableBlock():
            if block.title:
                yield from (f"### {cell(block.title)}", "")
            if block.caption:
                yield from (cell(block.caption), "")
            yield from _table(block.heads, block.rows)
        case Text():
            if block.title:
                yield from (f"### {cell(block.title)}", "")
            shown = printable_lines(block.text)
            # The fence is longer than any run of backquotes in the text, so the text cannot close it.
            fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", shown))])
            yield from (f"{fence}text", shown.rstrip("\n"), fence, "")
        case _:
            for plain in block.plain():
                yield from _block(plain)
