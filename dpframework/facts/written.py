"""What several commands write: the format that a file's name stands for, and CSV that no spreadsheet calculates."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dpframework.facts.errors import InputError

T = TypeVar("T")


def format_by_name(path: Path, formats: Mapping[str, T]) -> T:
    """Return the format that the ending of a file's name stands for.

    Raises
    ------
    InputError
        If it stands for none.

    Examples
    --------
    >>> format_by_name(Path("plan.HTML"), {".html": "a page", ".json": "data"})
    'a page'
    """
    if path.suffix.lower() not in formats:
        *most, last = formats
        endings = f"{', '.join(most)} or {last}"
        raise InputError(f"{path}: its name does not say in which format to write it; end it in {endings}")
    return formats[path.suffix.lower()]


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV; what a spreadsheet would take for a formula begins with an apostrophe.

    Examples
    --------
    >>> print(csv_text(["name", "change"], [["=1+1", -1]]), end="")
    name,change
    '=1+1,-1
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return stream.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
