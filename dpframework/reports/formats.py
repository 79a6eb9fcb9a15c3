"""How a report is laid out, and which names of files stand for it."""

from __future__ import annotations

import enum
from pathlib import Path

from dpframework.facts.written import format_by_name


class ReportFormat(enum.StrEnum):
    """How a report is laid out."""

    TERMINAL = "terminal"
    MARKDOWN = "md"
    HTML = "html"
    CSV = "csv"
    JSON = "json"


SUFFIXES = {
    ".html": ReportFormat.HTML,
    ".htm": ReportFormat.HTML,
    ".md": ReportFormat.MARKDOWN,
    ".csv": ReportFormat.CSV,
    ".json": ReportFormat.JSON,
}


def format_of(path: Path) -> ReportFormat:
    """Return the format that a file's name stands for.

    Raises
    ------
    InputError
        If it stands for none.
    """
    return format_by_name(path, SUFFIXES)
