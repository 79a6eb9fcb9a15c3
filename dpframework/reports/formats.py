"""How a report is laid out, and which names of files stand for it."""

from __future__ import annotations

import enum
from pathlib import Path

from dpframework.facts.errors import InputError


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
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path}: its name does not say how to lay out the report; end it in .html, .md, .csv or .json"
        )
    return SUFFIXES[path.suffix.lower()]
