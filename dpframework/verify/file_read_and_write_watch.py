"""Watch which files code writes, and which files it reads that an earlier run may have written.

A run must not keep anything in a file for later runs, since that would be a release outside the plan. A file that is
read counts as written by an earlier run if it was changed since this module was loaded, or lies in the folder for
temporary files.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT
CODE = (".py", ".pyc", ".nbi", ".nbc")  # files of compiled code do not count, since Python and numba write them
STARTED = time.time()

#: Folders of installed software and of the system's own files, such as time zones. They hold no data of a study.
INSTALLED = (sys.prefix, sys.base_prefix, "/usr", "/etc", "/proc", "/sys", "/dev")

_watched: list[set[str]] = []
_opened: list[set[str]] = []
_hooked: list[bool] = []


def _hook(event: str, given: tuple[Any, ...]) -> None:
    if not (_watched or _opened) or event not in ("open", "sqlite3.connect"):
        return
    path, *rest = given
    if not isinstance(path, str | bytes | os.PathLike):
        return
    name = os.fsdecode(path)
    # A connection to a database has no flags, and counts as a write.
    flags = rest[1] if len(rest) > 1 and isinstance(rest[1], int) else WRITES
    if name == os.devnull or name.startswith("/proc/") or name.endswith(CODE):
        return
    if _opened:
        _opened[-1].add(os.path.realpath(name))
    if _watched and (flags & WRITES or _is_new(name)):
        _watched[-1].add(name)


def _is_new(name: str) -> bool:
    """Tell whether a file may be one that an earlier run wrote."""
    try:
        changed = os.stat(name).st_mtime
    except OSError:
        return False
    return changed >= STARTED or os.path.realpath(name).startswith(os.path.realpath(tempfile.gettempdir()) + os.sep)


@contextlib.contextmanager
def watch_files() -> Iterator[set[str]]:
    """Yield a set that collects the names of opened files.

    A name is collected if its file is opened for writing, or if an earlier run may have written it. At the end, the
    names of files that no longer exist, such as temporary files, are removed from the set. So are those of folders:
    numba opens a folder as a file without a name, to find out whether it can keep code there.
    """
    _hook_once()
    files: set[str] = set()
    _watched.append(files)
    try:
        yield files
    finally:
        _watched.pop()  # the innermost one; `remove` would take another set with the same files
        files.intersection_update([name for name in files if os.path.exists(name) and not os.path.isdir(name)])


@contextlib.contextmanager
def watch_data_files(packages: Iterable[str]) -> Iterator[set[str]]:
    """Yield a set that collects the names of opened files which may hold data.

    These files are left out: files of the given packages, installed files, hidden files, and files in hidden folders,
    which hold caches and settings.
    """
    _hook_once()
    files: set[str] = set()
    # Only a package has a folder of its own. Beside a module that is a single file, data may lie.
    own = [folder for name in packages for folder in getattr(sys.modules.get(name), "__path__", ())]
    folders = [os.path.realpath(folder) for folder in (*own, *INSTALLED)]
    _opened.append(files)
    try:
        yield files
    finally:
        _opened.pop()
        known = tuple(folder + os.sep for folder in folders)
        files.intersection_update([name for name in files if not name.startswith(known) and os.sep + "." not in name])


def _hook_once() -> None:
    """Begin to listen to what Python opens. The hook cannot be removed, but does nothing while no files are watched."""
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
