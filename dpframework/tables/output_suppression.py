"""Silence while code sees private rows: warnings, logs and the output of libraries are dropped.

numpy may warn of a "divide by zero" on only one of two neighbouring tables, and such a warning tells them apart. A
library that fails on a cell often prints that cell. For example, polars writes its panics straight to file descriptor
2.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpframework.facts.errors import clear_locals

OUT, ERR = 1, 2  # the process's file descriptors
STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")


class _Shared:
    """A context shared by the whole process. The first block to begin enters it, and the last to end leaves it."""

    def __init__(self, enter: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        self._enter, self._lock = enter, threading.Lock()
        self._within, self._held = 0, contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._within:
                self._held.enter_context(self._enter())
            self._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                self._held.close()


@contextlib.contextmanager
def silenced(*, streams: bool = False, words: bool = False) -> Iterator[None]:
    """Drop all warnings while the block runs, in every thread. No warning becomes an error either.

    Warning filters and streams belong to the whole process, so blocks in several threads share them.

    Parameters
    ----------
    streams
        Whether to drop logs and all output to standard output and standard error, even by C code. Reading needs this,
        since libraries may print cells. A progress bar that must be seen needs its own file descriptor. An error of the
        block also loses the local variables in its traceback.
    words
        Whether to drop logs and the output of Python code, but not that of C code. This takes only a few microseconds,
        so it can be done at each release.
    """
    with _warnings, _streams if streams else _words if words else contextlib.nullcontext(), np.errstate(all="ignore"):
        try:
            yield
        except BaseException as error:
            if streams:
                clear_locals(error)
            raise


class _Nowhere(io.TextIOBase):
    """A stream that drops all text."""

    def write(self, text: str) -> int:
        """Drop a text."""
        return len(text)


class _Names:
    """The names of Python's standard streams in `sys`.

    The blocks of `silenced` bind these names to other streams, and may end in any order.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: dict[str, Any] = {}  # the streams as they were before the first block
        self._hidden: list[dict[str, Any]] = []  # the streams of the blocks that still run

    def hide(self, hidden: dict[str, Any]) -> None:
        """Bind some names to other streams."""
        with self._lock:
            if not self._hidden:
                self._shown = dict(zip(STREAMS, map(vars(sys).get, STREAMS), strict=True))
            self._hidden.append(hidden)
            vars(sys).update(hidden)

    def show(self, hidden: dict[str, Any]) -> None:
        """Bind the names to the original streams, or to the streams of blocks that still run."""
        with self._lock:
            self._hidden.remove(hidden)
            for standing in (self._shown, *self._hidden):
                vars(sys).update(standing)

    def streams(self) -> set[Any]:
        """Return the streams that the names are bound to, now and before the first block."""
        with self._lock:
            shown = self._shown.values() if self._hidden else ()
            return {*(getattr(sys, name) for name in STREAMS), *shown} - {None}


@contextlib.contextmanager
def _without_words() -> Iterator[None]:
    """Drop all text that is written to Python's streams, by any name in `STREAMS`, and disable logging."""
    _names.hide(_WORDS)
    try:
        with _logs:
            yield
    finally:
        _names.show(_WORDS)


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    level = logging.root.manager.disable
    logging.disable(sys.maxsize)
    try:
        yield
    finally:
        logging.disable(level)


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _without_streams() -> Iterator[None]:
    """Send both standard streams to the null device, and disable logging."""
    written = _names.streams()
    with contextlib.ExitStack() as after:
        nowhere = after.enter_context(open(os.devnull, "w", encoding="utf-8", errors="replace"))
        _flush(written)  # so that earlier output is shown
        for descriptor in (OUT, ERR):
            with contextlib.suppress(OSError):  # the descriptor is closed, so nobody sees its output
                kept = os.dup(descriptor)
                after.callback(os.close, kept)
                after.callback(os.dup2, kept, descriptor)
                os.dup2(nowhere.fileno(), descriptor)
        hidden = {"stdout": nowhere, "stderr": nowhere}
        _names.hide(hidden)
        after.callback(_names.show, hidden)
        # Flush before the descriptors are back, so that output which waits in a buffer is dropped.
        after.callback(_flush, written)
        after.enter_context(_logs)
        yield


def _flush(files: set[object]) -> None:
    """Write out the buffers of Python's files and of the C library."""
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # the file is closed, or nobody reads it
            file.flush()  # type: ignore[attr-defined]
    if _fflush is not None:
        _fflush(None)


_fflush = getattr(ctypes.pythonapi, "fflush", None)  # absent on Windows
_names, _WORDS = _Names(), dict.fromkeys(STREAMS, _Nowhere())
_logs = _Shared(_without_logs)
_warnings, _streams, _words = _Shared(_without_warnings), _Shared(_without_streams), _Shared(_without_words)
