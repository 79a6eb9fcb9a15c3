"""Unfinished files and folders, which stand beside their final place and are locked while their process lives.

Such a file or folder is called a part. The system releases a lock when the process that holds it ends in any way. So a
part without a lock was left by a process that was killed. The next process that writes the same output removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import final

try:
    import fcntl
except ImportError:  # Windows has no fcntl, and removes no file that another process has open
    fcntl = None  # type: ignore[assignment]

#: The number of fixed names for parts of one output. If more processes than that write the output at once, the part of
#: each further process has a random name. Such a part is not found and removed if its process is killed.
FIXED_NAMES = 4

_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


@final
class Part:
    """An unfinished file or folder that this process has locked. Make one only within `delay_interrupts`.

    Attributes
    ----------
    path
        The path of the file or folder; None after it is moved to its final place or removed.
    descriptor
        The descriptor of the open file or folder; -1 once it is closed, or where folders have none.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path: Path | None = path
        self.descriptor = descriptor

    def end(self) -> None:
        """Remove the part if it is still there, and release the lock. A second call does nothing."""
        path, descriptor = self.path, self.descriptor
        self.path, self.descriptor = None, -1
        if path is not None:
            _remove(path)
        if descriptor >= 0:
            os.close(descriptor)


def new_part_file(place: Path) -> Part:
    """Make an unfinished file beside its final place.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    return _new_part(place, lambda path: os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o666))


def new_part_folder(place: Path) -> Part:
    """Make an unfinished folder beside its final place.

    Raises
    ------
    OSError
        If it cannot be made.
    """

    def make(path: Path) -> int:
        os.mkdir(path)
        return os.open(path, os.O_RDONLY | _FLAGS) if fcntl is not None else -1

    return _new_part(place, make)


def _new_part(place: Path, make: Callable[[Path], int]) -> Part:
    for path in _names(place):
        _remove_left(path)
        try:
            descriptor = make(path)
        except FileExistsError:  # it belongs to a process that is alive
            continue
        except FileNotFoundError:
            if not path.parent.is_dir():
                raise
            # Another process took the new folder for an abandoned one, and removed it.
            continue
        if descriptor < 0 or (_lock(descriptor) is not False and _is_at(descriptor, path)):
            for other in _names(place):
                if other != path:
                    _remove_left(other)
            return Part(path, descriptor)
        os.close(descriptor)
    raise FileExistsError(errno.EEXIST, "other processes write to it at the same time", str(place))


def _names(place: Path) -> Iterator[Path]:
    """Yield paths for a part: first some fixed names, under which leftovers are found, then a random name."""
    for number in range(FIXED_NAMES):
        yield place.with_name(f".{place.name}.{number}.part")
    yield place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")


def _remove_left(path: Path) -> None:
    """Remove the part at a path, if it was left by a process that was killed."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as closing:
        mode = os.lstat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            return
        if fcntl is not None:
            descriptor = os.open(path, os.O_RDONLY | _FLAGS)
            closing.callback(os.close, descriptor)
            if not (_lock(descriptor) and _is_at(descriptor, path)):
                return
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _lock(descriptor: int) -> bool | None:
    """Lock a part and return True. Return False if another process has locked it, None where files cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(descriptor: int, part: Path) -> bool:
    """Tell whether a descriptor belongs to the file at a path. Another process may have moved or removed that file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(part))
    except FileNotFoundError:
        return False
