"""The formats of a report, the endings of their files, and how such files are recognized."""

from __future__ import annotations

import enum
from pathlib import Path

from dpframework.facts.output_formats_times_and_csv import format_by_name
from dpframework.facts.output_overwrite_rule import FileKind


class ReportFormat(enum.StrEnum):
    """The format of a report."""

    TERMINAL = "terminal"
    MARKDOWN = "md"
    HTML = "html"
    CSV = "csv"
    JSON = "json"


#: A page for a browser. Such a file is recognized by the generator that its head names.
PAGE_FILE = FileKind.of_pattern("a page", r'^<!doctype html>[^\0]{,4000}<meta name="generator" content="dpframework ')

#: A comment that marks a report in Markdown. No viewer shows it.
MARKDOWN_MARK = "<!-- dpframework report -->"

#: The pattern by which the files of each format are recognized.
REPORT_FILES = {
    ReportFormat.TERMINAL: FileKind.of_pattern(
        "a report", r"(?s)\nWhat is published\n.*\nWhat somebody could learn about"
    ),
    ReportFormat.MARKDOWN: FileKind.of_pattern("a report", rf"(?s)^# .*\n\n{MARKDOWN_MARK}\n$"),
    ReportFormat.HTML: PAGE_FILE,
    ReportFormat.CSV: FileKind.of_pattern("a list of releases", r"^result(,miner,reads,|\n$)"),
    ReportFormat.JSON: FileKind.of_pattern("a list of releases", r'^\{\s*"plan": "[0-9a-f]{64}",\s*"releases": \['),
}

SUFFIXES = {
    ".html": ReportFormat.HTML,
    ".htm": ReportFormat.HTML,
    ".md": ReportFormat.MARKDOWN,
    ".csv": ReportFormat.CSV,
    ".json": ReportFormat.JSON,
}


def format_of(path: Path) -> ReportFormat:
    """Return the format for the ending of a file's name.

    Raises
    ------
    InputError
        If no format has this ending.
    """
    return format_by_name(path, SUFFIXES)
