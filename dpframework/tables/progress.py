"""The progress of reading a table in files and bytes, never in rows.

Blocks have a public number of rows, so the share of a file's rows that one block is would tell how many there are.
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
    """The observers, and the last progress each was told of."""

    told: Callable[[float, int], None]
    done: int = 0
    files: int = 1


_watch: ContextVar[_Watch | None] = ContextVar("dpframework_watch", default=None)


@contextlib.contextmanager
def watch_progress(told: Callable[[float, int], None]) -> Iterator[None]:
    """Call a function with the number of files that were read, and of all, whenever more was read, in this context.

    Of a file that is being read, the share of its bytes counts: 2.25 is a quarter of the third file.
    """
    token = _watch.set(_Watch(told))
    try:
        yield
    finally:
        _watch.reset(token)


def tell(done: int, files: int) -> None:
    """Say how many files were read, of how many, if somebody watches."""
    watch = _watch.get()
    if watch is not None:
        watch.done, watch.files = done, files
        watch.told(done, files)


def tell_share(share: float) -> None:
    """Say which share of the bytes of the file that is being read was read, from 0 to 1, if somebody watches."""
    watch = _watch.get()
    if watch is not None:
        watch.told(watch.done + min(share, 1.0), watch.files)
