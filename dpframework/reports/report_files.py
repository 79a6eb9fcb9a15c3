"""A report as a file, in the format of the file's ending."""

from __future__ import annotations

import os
from pathlib import Path

from dpframework.facts.files import write_whole
from dpframework.reports.about import About
from dpframework.reports.formats import REPORT_FILES, ReportFormat, format_of
from dpframework.reports.release_list import releases_csv, releases_json
from dpframework.reports.run_summary import summarize
from dpframework.study.results import Results
from dpframework.study.study_plan import StudyPlan


def laid_out(
    form: ReportFormat, plan: StudyPlan, results: Results | None = None, *, title: str, about: About | None = None
) -> str:
    """Return a report on a plan, or on a run of it, in a format."""
    match form:
        case ReportFormat.HTML:
            from dpframework.reports.html import html_report

            return html_report(plan, results, title=title, about=about)
        case ReportFormat.MARKDOWN:
            from dpframework.reports.markdown import markdown_report

            return markdown_report(plan, results, title=title, about=about)
        case ReportFormat.TERMINAL:
            from dpframework.reports.terminal import terminal_text

            return terminal_text(plan, results, title=title, about=about)
        case ReportFormat.CSV:
            return releases_csv(plan, summarize(results, about)[0])
        case ReportFormat.JSON:
            return releases_json(plan, summarize(results, about)[0])


def write_report(
    subject: StudyPlan | Results, path: str | os.PathLike[str], *, title: str | None = None, about: About | None = None
) -> None:
    """Write the report on a plan or on the results of a run.

    Parameters
    ----------
    subject
        The plan, or the results.
    path
        The file: a page for a browser (.html), Markdown (.md), or the list of releases alone (.csv, .json).
    title
        Its title; by default the file's name.
    about
        The facts that neither holds: names of data files, approvals.

    Raises
    ------
    InputError
        If the name ends otherwise, or the file cannot be written, or is there and is no such report.
    """
    out = Path(path)
    form = format_of(out)
    plan, results = (subject.plan, subject) if isinstance(subject, Results) else (subject, None)
    text = laid_out(form, plan, results, title=out.stem if title is None else title, about=about)
    write_whole(out, text, REPORT_FILES[form])
