"""The progress of reading a table, in files and bytes, never in rows.

Blocks have a public number of rows. So if progress were a share of rows, it would reveal how many rows a file has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import final

import attrs


@final
@attrs.define
class _Watch:
    """An observer and the last progress that it was told of.

    Attributes
    ----------
    observer
        The function that is called with the number of files read so far and the number of all files.
    done, files
        These two numbers as they were when a file was last finished.
    """

    observer: Callable[[float, int], None]
    done: int = 0
    files: int = 1


_watch: ContextVar[_Watch | None] = ContextVar("dpframework_watch", default=None)


@contextlib.contextmanager
def watch_progress(observer: Callable[[float, int], None]) -> Iterator[None]:
    """While the context lasts, tell a function how many files have been read and how many there are.

    The function is called whenever more is read. A file that is being read counts as the share of its bytes that
    have been read. So 2.25 means two files and a quarter of the third.
    """
    token = _watch.set(_Watch(observer))
    try:
        yield
    finally:
        _watch.reset(token)


def tell(done: int, files: int) -> None:
    """Tell the observer, if there is one, how many files have been read and how many there are."""
    watch = _watch.get()
    if watch is not None:
        watch.done, watch.files = done, files
        watch.observer(done, files)


def tell_share(share: float) -> None:
    """Tell the observer, if there is one, the share of bytes read of the current file, from 0 to 1."""
    watch = _watch.get()
    if watch is not None:
        watch.observer(watch.done + min(share, 1.0), watch.files)
