"""Paths that a file from a stranger may name. They lie in a folder and do not lead out of it.

A study may come from anybody. A path in it must not choose a host, read an environment variable, or reach a file that
did not come with it.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath, PureWindowsPath

from dpframework.facts.errors import InputError, NotOpened

_REMEDY = "name a 'place', an entry of the owner's configuration (see the page on study files)"


def inner_path(text: str, folder: Path, where: str) -> Path:
    """Return the file that a relative path names in a folder.

    Symbolic links are not followed here, since the file need not exist yet (see `require_inside`).

    Parameters
    ----------
    text
        The path as it was written.
    folder
        The folder to which the path is relative.
    where
        The name of the key that holds the path, such as "[data] path". It begins an error message.

    Raises
    ------
    InputError
        If the path is a URL, is absolute, has "..", or holds a variable or an unprintable character.

    Examples
    --------
    >>> inner_path("visits/2026.csv", Path("study"), "path").as_posix()
    'study/visits/2026.csv'
    """
    require_relative(text, where)
    return folder / text


def require_relative(text: str, where: str) -> None:
    """Refuse a path that may lead out of its folder (see `inner_path`)."""
    if not text.isprintable():
        raise InputError(f"{where} is {text!r}; a path must not hold characters that cannot be printed")
    if "://" in text:
        raise InputError(f"{where} is the URL '{text}', and a study names no host; {_REMEDY}")
    if "$" in text or text.startswith("~"):
        raise InputError(f"{where} is '{text}', and no variable expands in a study; write the path, or {_REMEDY}")
    windows, posix = (
        PureWindowsPath(text),
        PurePosixPath(text),
    )  # both systems' rules, since a study may be run on either
    if windows.drive or windows.root or posix.root:
        raise InputError(f"{where} is the absolute path '{text}'; write a path relative to its folder, or {_REMEDY}")
    if ".." in windows.parts or ".." in posix.parts:
        raise InputError(
            f"{where} is '{text}', which leaves its folder through '..'; move the file there, or {_REMEDY}"
        )


def require_inside(file: str | os.PathLike[str], folder: Path) -> None:
    """Refuse a file that lies outside a folder once all symbolic links are followed.

    Raises
    ------
    NotOpened
        If the file lies outside.
    """
    real, root = Path(os.path.realpath(file)), Path(os.path.realpath(folder))
    if not real.is_relative_to(root):
        raise NotOpened(
            f"{file}: is a symbolic link that leaves the folder {folder}; move the file there, or {_REMEDY}"
        )
