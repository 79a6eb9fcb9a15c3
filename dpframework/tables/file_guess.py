"""Guess how a CSV file is written, and in which row a table begins in an Excel sheet.

This reads private rows, and is for the data owner only (see `infer_schema`).
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import itertools
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from dpframework.facts.read_options import ReadOptions
from dpframework.tables.csv_file import lines_of
from dpframework.tables.path_pattern_expansion import files_of, is_url

_HEAD = 1 << 20  # how many bytes are read at once
_LINES = 1 << 17  # the most bytes from which the separator is guessed
_MOST = 1 << 26  # if about this number of bytes are valid UTF-8, the file is taken to be UTF-8
_SEPARATORS = (",", ";", "\t", "|")
_ROWS = 30  # how many rows are searched for the column names


def guess_file(data: Any) -> ReadOptions | None:
    """Return the separator, the encoding and the number of lines above the column names of a CSV file.

    Return None for other data.

    The encoding is UTF-16 if the file begins with a byte order mark of UTF-16. Otherwise it is UTF-8 if all bytes that
    are read are valid UTF-8, else windows-1252.

    The separator is found by the first of these rules that some separator fulfils. If several fulfil it, the one that
    gives the most fields is chosen.

    - All lines at the beginning have the same number of fields, at least two.
    - More than 80 % of the lines have the same number of fields, at least three, and the first line has fewer.
    - No other separator is more frequent in the first line.

    Lines at the beginning with far fewer filled fields than the others count as lines above the column names.
    """
    if not isinstance(data, str | os.PathLike) or is_url(os.fspath(data)):
        return None
    files = [Path(file) for file in files_of(data)]
    if not files or not files[0].name.lower().endswith((".csv", ".csv.gz")):
        return None
    try:
        with files[0].open("rb") as file:
            stream: Any = gzip.GzipFile(fileobj=file) if files[0].name.lower().endswith(".gz") else file
            head = stream.read(_HEAD)
            encoding = _encoding(head, stream)
    except (OSError, EOFError, zlib.error):  # the next reader of the file says what is wrong
        return None
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head[:_LINES]).encode("utf-8", "replace")
    separator = _separator(text.lstrip(b"\r\n"))
    return ReadOptions(separator=separator, encoding=encoding, skip=_lines_above(text.decode(), separator))


def guess_skip(data: Any, read: ReadOptions) -> ReadOptions:
    """Return options with the number of rows above the column names of an Excel sheet. Other data keeps its options.

    Raises
    ------
    NotOpened, InputError
        Where `ExcelFile.open` raises them.
    """
    if read.skip or not isinstance(data, str | os.PathLike) or not os.fspath(data).lower().endswith(".xlsx"):
        return read
    from dpframework.tables.excel_file import ExcelFile

    opened = ExcelFile.open(Path(data), read)
    below = [["" if cell is None else cell for cell in row] for row in opened.frame.head(_ROWS).iter_rows()]
    return attrs.evolve(read, skip=_rows_above([list(opened.columns), *below]))


def _lines_above(text: str, separator: str) -> int:
    """Return how many lines, not counting empty ones, stand above the line with the column names of a CSV file."""
    with contextlib.suppress(csv.Error):
        rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator)
        first = list(itertools.islice(filter(None, rows), _ROWS))
        above = _rows_above(first)
        return 0 if any("\n" in cell for row in first[:above] for cell in row) else above
    return 0


def _rows_above(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows at the beginning have far fewer filled cells than the others, such as titles or notes."""
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows]
    most = max(filled, default=0)
    return next(k for k, own in enumerate(filled) if 2 * own > most) if most > 2 else 0


def _encoding(head: bytes, stream: Any) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    decoder, size = codecs.getincrementaldecoder("utf-8")(), 0
    while head and size < _MOST:
        try:
            decoder.decode(head)
        except UnicodeDecodeError:
            return "windows-1252"
        size += len(head)
        head = stream.read(_HEAD)
    return "utf-8"


def _separator(text: bytes) -> str:
    """Return the most likely separator of some lines, the last of which may be cut off."""
    whole = text[: text.rfind(b"\n") + 1] or text
    counted = {separator: lines_of(whole, separator) for separator in _SEPARATORS}
    best, fields_of_best = ",", 0
    for separator, (_, fields, blank) in counted.items():
        match np.unique(fields[~blank]).tolist():
            case [number] if number > max(fields_of_best, 1):
                best, fields_of_best = separator, number
    if fields_of_best:
        return best
    # Titles or notes may stand above the line with the column names.
    for separator, (_, fields, blank) in counted.items():
        most = int(np.bincount(fields[~blank]).argmax()) if not blank.all() else 0
        share = float((fields[~blank] == most).mean()) if most > 2 else 0.0
        if share > 0.8 and most > fields_of_best and fields[0] < most:
            best, fields_of_best = separator, most
    if fields_of_best:
        return best
    # No separator gives most lines the same number of fields. The first line names the columns, so it decides.
    return max(_SEPARATORS, key=lambda separator: int(counted[separator][1][0]))
