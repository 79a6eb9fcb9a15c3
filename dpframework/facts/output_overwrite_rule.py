"""The rule by which an output may replace an existing file: only one of its own kind, recognized by its content.

By mistake, somebody may give the name of the data, the ledger or the study as the name of an output. So every kind of
file that dpframework writes can be recognized by its content. An existing file is replaced only by a file of its own
kind.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.input_limits import MOST_JSON_BYTES


@final
@attrs.frozen
class FileKind:
    """A kind of file that dpframework writes.

    Attributes
    ----------
    name
        The name of such a file in errors, with its article, such as "a report".
    holds
        A function that tells whether the content of a file is of this kind.
    """

    name: str
    holds: Callable[[bytes], bool]

    @classmethod
    def of_pattern(cls, name: str, pattern: str) -> FileKind:
        """Return a kind whose files contain a pattern. `^` matches at the file's beginning only, and `$` at its end."""
        found = re.compile(pattern.encode())
        return cls(name, lambda content: found.search(content) is not None)

    @classmethod
    def of_beginning(cls, name: str, text: str) -> FileKind:
        """Return a kind whose files begin with a text, such as the names of their columns."""
        return cls(name, lambda content: content.startswith(text.encode()))


#: Files in a folder that dpframework owns as a whole. They are replaced without looking at their content.
IN_OWN_FOLDER: Final = FileKind("a file", lambda content: True)


def require_output(path: Path, kind: FileKind | None) -> None:
    """Refuse the name of an output that cannot be written, or that would replace something of another kind.

    Parameters
    ----------
    path
        The path of the output.
    kind
        The kind of file that the output may replace; None if the path must not exist yet.

    Raises
    ------
    InputError
        If the name belongs to a link, a folder, a device or a file of another kind, or its folder does not exist or
        cannot be written. The message names the file.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        found = None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or 'it is no path'}") from None
    if found is not None:
        _require_replaceable(path, found.st_mode, found.st_size, kind)
    parent = path.absolute().parent
    if not parent.is_dir():
        raise InputError(f"{path}: cannot be written: its folder does not exist; make it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{path}: cannot be written: its folder takes no new files; choose another one")


def _require_replaceable(path: Path, mode: int, size: int, kind: FileKind | None) -> None:
    if stat.S_ISLNK(mode):
        raise InputError(f"{path}: is a symbolic link; give the name of the file that you mean")
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: cannot be written: it is a folder; give the name of a file")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: cannot be written: it is a pipe, a device or a socket; give the name of a file")
    if kind is IN_OWN_FOLDER:
        return
    if kind is None:
        raise InputError(f"{path}: exists already, and is never replaced; give another name")
    try:
        own = size <= MOST_JSON_BYTES and kind.holds(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: exists already, and cannot be read: {error.strerror}; give another name") from None
    if not own:
        raise InputError(
            f"{path}: exists already, and is not {kind.name} that dpframework wrote, so it is not replaced; "
            "give another name, or remove it first"
        )
