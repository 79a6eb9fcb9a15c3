"""Reports as files, in the format that the file's ending chooses, and the list of releases for other programs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dpframework.facts.files import write_whole
from dpframework.facts.output_formats_times_and_csv import csv_text
from dpframework.plan.error_bounds_by_result import parts_of
from dpframework.reports.formats import REPORT_FILES, ReportFormat, format_of
from dpframework.reports.report_headlines import About
from dpframework.reports.run_summary import RunSummary, summarize
from dpframework.reports.step_row import rows_of_steps
from dpframework.study.results import Results
from dpframework.study.study_plan_totals_and_findings import StudyPlan

ANY = "any"  # how CSV shows the attributes of a step that may read any attribute


def release_rows(plan: StudyPlan, ran: RunSummary | None) -> list[dict[str, Any]]:
    """Return a dict for each planned step: its part of the study, that part's miner, and the facts of its `StepRow`.

    Under `reads` are the attributes that the step may read, or None if it may read any.

    After a run, `released` says how often the step was released.
    """
    rows = rows_of_steps(plan)
    names = [name for name, _ in parts_of(plan)]
    release_counts = None if ran is None else ran.release_counts(plan)
    found = []
    for _, step in plan.placed_steps():
        row, read = rows[id(step)], plan.index.reads[plan.index.place(step).number]
        part = row.path.partition("/")[0]
        part = part if part in names else row.path
        found.append(
            {
                "result": part,
                "miner": plan.miners.get(part, {}).get("miner", ""),
                "reads": None if read is None else list(read),
                **row.to_dict(),
                **({} if release_counts is None else {"released": release_counts.get(row.path, 0)}),
            }
        )
    return found


def releases_json(plan: StudyPlan, ran: RunSummary | None = None) -> str:
    """Return the list of releases as JSON. `reads` is null where a step may read any attribute."""
    return json.dumps({"plan": plan.hash, "releases": release_rows(plan, ran)}, indent=2) + "\n"


def releases_csv(plan: StudyPlan, ran: RunSummary | None = None) -> str:
    """Return the list of releases as CSV, with attributes separated by semicolons."""
    rows = release_rows(plan, ran)
    listed = [row | {"reads": ANY if row["reads"] is None else "; ".join(row["reads"])} for row in rows]
    heads = next(map(list, rows), ["result"])
    return csv_text(heads, [list(row.values()) for row in listed])


def lay_out(
    form: ReportFormat, plan: StudyPlan, results: Results | None = None, *, title: str, about: About | None = None
) -> str:
    """Return the text of a report on a plan, or on a run of the plan, in the format `form`."""
    match form:
        case ReportFormat.HTML:
            from dpframework.reports.html import html_report

            return html_report(plan, results, title=title, about=about)
        case ReportFormat.MARKDOWN:
            from dpframework.reports.markdown import markdown_report

            return markdown_report(plan, results, title=title, about=about)
        case ReportFormat.TERMINAL:
            from dpframework.reports.terminal_renderer import terminal_text

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
        The title of the report; by default the file's name without its ending.
    about
        The facts that neither a plan nor results hold, such as approvals. By default they are taken from the subject.

    Raises
    ------
    InputError
        If the file's name has another ending, if the file cannot be written, or if it exists and is no report of this
        format.
    """
    out = Path(path)
    form = format_of(out)
    plan, results = (subject.plan, subject) if isinstance(subject, Results) else (subject, None)
    text = lay_out(form, plan, results, title=out.stem if title is None else title, about=about)
    write_whole(out, text, REPORT_FILES[form])
