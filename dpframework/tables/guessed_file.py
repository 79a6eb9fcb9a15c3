"""Guess how a CSV file is written. This reads its rows, and is for the owner's own step (see `infer_schema`)."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from dpframework.facts.read_options import ReadOptions
from dpframework.tables.csv_file import lines_of
from dpframework.tables.places import files_of, is_url

_HEAD = 1 << 20  # bytes that are read together
_LINES = 1 << 17  # bytes by which the separator is guessed
_MOST = 1 << 26  # bytes by which the encoding is
_SEPARATORS = (",", ";", "\t", "|")


def guess_file(data: Any) -> ReadOptions | None:
    """Return the separator and the encoding that a CSV file suggests; None for anything else.

    The encoding is UTF-8 unless a byte contradicts that, and windows-1252 then. The separator is one by which all
    lines at the beginning have the same number of fields, at least two; of several the one with most fields.
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
    except (OSError, EOFError, zlib.error):  # who reads it next says what is wrong
        return None
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head[:_LINES]).encode("utf-8", "replace")
    return ReadOptions(separator=_separator(text.lstrip(b"\r\n")), encoding=encoding)


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
    """Return the separator of lines, the last of which may be cut off."""
    whole = text[: text.rfind(b"\n") + 1] or text
    best, fields_of_best = ",", 0
    for separator in _SEPARATORS:
        _, fields, blank = lines_of(whole, separator)
        fields = fields[~blank]
        if len(fields) and int(fields[0]) > max(fields_of_best, 1) and bool(np.all(fields == fields[0])):
            best, fields_of_best = separator, int(fields[0])
    if fields_of_best:
        return best
    # By none of them do all lines agree: the first line names the columns, so it decides.
    first = {separator: int(lines_of(whole, separator)[1][0]) for separator in _SEPARATORS}
    return max(_SEPARATORS, key=lambda one: first[one])
