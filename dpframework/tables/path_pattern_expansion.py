"""Which files a path, a folder, a pattern or a URL stands for."""

from __future__ import annotations

import glob
import os
import posixpath
import re
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dpframework.facts.errors import InputError, NotOpened
from dpframework.facts.files import require_no_stream
from dpframework.facts.phrases import count_text

#: The endings of the names of files that can be read.
KINDS = (".csv", ".csv.gz", ".parquet", ".xlsx", ".sqlite", ".sqlite3", ".db")
#: The endings of the names of SQLite databases.
DATABASES = (".sqlite", ".sqlite3", ".db")


def is_url(place: str) -> bool:
    """Tell whether a place is a URL."""
    return "://" in place


def files_of(place: str | os.PathLike[str]) -> list[str]:
    """Return the files that a path, a folder, a pattern or a URL stands for, in the order of their names.

    In a folder, files and folders whose names begin with a dot or an underline are skipped. Programs that write folders
    of files use such names for marker files, such as `_SUCCESS`, and not for data.

    Raises
    ------
    NotOpened
        If there are no files, or a place is neither a file nor a folder.
    """
    text = os.fspath(place)
    if is_url(text):
        return [text]
    path = Path(text)
    _require_no_stream(path)
    if path.is_dir():
        within = sorted(
            str(found)
            for found in path.rglob("*")
            if found.name.lower().endswith(".parquet")
            and not any(part.startswith((".", "_")) for part in found.relative_to(path).parts)
        )
        for file in within:
            _require_no_stream(Path(file))
        if not within:
            raise NotOpened(
                f"{path}: is a directory without Parquet files; a file of the kind {', '.join(KINDS)} or a "
                "folder of .parquet files is expected"
            )
        return within
    if path.exists():
        return [text]
    found = sorted(glob.glob(text, recursive=True)) if glob.has_magic(text) else []
    if not found:
        raise NotOpened(f"{path}: there is no such file; correct its name, or save it there")
    return [file for one in found for file in files_of(one)]


def files_at(places: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the files of several places, in their order. This raises the errors of `files_of` and `require_once`."""
    files = [file for place in places for file in files_of(place)]
    require_once(files)
    return files


def require_once(files: Iterable[str]) -> None:
    """Refuse a file that occurs twice, even if its two paths differ.

    Rows of such a file would count twice, so one row of the file could cause twice the loss that is claimed for it.

    Raises
    ------
    NotOpened
        If a file occurs twice.
    """
    known: dict[Hashable, str] = {}
    for file in files:
        own = _identity(file)
        if own in known:
            also = "" if known[own] == file else f", also as {known[own]}"
            raise NotOpened(f"{file}: would be read twice{also}, and its rows would count twice; name each file once")
        known[own] = file


def _identity(file: str) -> Hashable:
    """Return a value that is the same for all names of one file, and differs between files.

    Schemes of URLs do not count: `http` and `https`, or `s3` and `s3a`, lead to one file. A URL of the scheme `file` is
    a path.
    """
    if is_url(file):
        parts = urlsplit(file)
        if parts.scheme != "file":
            host = parts.netloc.rpartition("@")[2].lower()
            return re.sub(r":(80|443)?$", "", host), posixpath.normpath(unquote(parts.path)), parts.query
        file = parts.path if os.path.exists(parts.path) else unquote(parts.path)
        if not os.path.exists(file):
            return file  # the reader says that there is no such file
    try:
        found = os.stat(file)
    except OSError as error:
        raise NotOpened(f"{file}: cannot be read: {error.strerror}") from None
    return found.st_dev, found.st_ino


def _require_no_stream(path: Path) -> None:
    """Refuse a pipe, a device or a socket, which may wait forever for a writer."""
    try:
        require_no_stream(path)
    except InputError as error:
        raise NotOpened(str(error)) from None


def name_of(places: Sequence[str | os.PathLike[str]], files: Sequence[str]) -> str:
    """Return the name of a table in errors, given the places of its files and the files.

    Examples
    --------
    >>> name_of(["visits"], ["visits/a.parquet", "visits/b.parquet"])
    'visits'
    >>> name_of(["a.csv", "b.csv"], ["a.csv", "b.csv"])
    'a.csv and 1 more file'
    """
    if len(places) == 1 < len(files):
        return Path(places[0]).name
    more = len(files) - 1
    return Path(files[0]).name + (f" and {count_text(more, 'more file')}" if more else "")
