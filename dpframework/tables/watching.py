"""How far the reading of a table has come: in files, which are public, and never in rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_watcher: ContextVar[Callable[[int, int], None] | None] = ContextVar("dpframework_watcher", default=None)


@contextlib.contextmanager
def watched(told: Callable[[int, int], None]) -> Iterator[None]:
    """Call a function with the number of files that were read, and of all, whenever one more was, in this context."""
    token = _watcher.set(told)
    try:
        yield
    finally:
        _watcher.reset(token)


def tell(done: int, files: int) -> None:
    """Say how many files were read, of how many, if somebody watches."""
    told = _watcher.get()
    if told is not None:
        told(done, files)
