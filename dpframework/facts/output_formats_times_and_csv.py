"""Helpers for output: the format that a file's name asks for, readable times, and CSV without spreadsheet formulas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dpframework.facts.control_character_escapes import printable
from dpframework.facts.errors import InputError

T = TypeVar("T")


def format_by_name(path: Path, formats: Mapping[str, T]) -> T:
    """Return the format that belongs to the ending of a file's name.

    Raises
    ------
    InputError
        If no format belongs to that ending.

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


def clock_text(time: str) -> str:
    """Write a ledger's time to the minute, with spaces. Any other text stays as it is.

    Examples
    --------
    >>> clock_text("2026-03-09T14:05:59Z"), clock_text("at noon")
    ('2026-03-09 14:05 UTC', 'at noon')
    """
    return re.sub(r"\A(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\dZ\Z", r"\1 \2 UTC", time)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]], *, quoted: bool = False) -> str:
    """Return rows as CSV. A cell that a spreadsheet would take for a formula gets an apostrophe in front.

    Parameters
    ----------
    header
        The names of the columns.
    rows
        The rows, each with one cell per column.
    quoted
        Whether every text is put in quotes. By default, only texts that need quotes have them.

    Examples
    --------
    >>> print(csv_text(["name", "change"], [["=1+1", -1]]), end="")
    name,change
    '=1+1,-1
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL)
    writer.writerow([_cell(name) for name in header])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return stream.getvalue()


#: Characters that a spreadsheet takes for the beginning of a formula, including the wide forms of East Asian texts.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if _FORMULA.match(value) else text
