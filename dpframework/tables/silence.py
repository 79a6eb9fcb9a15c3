"""Silence about private rows, for warnings, arithmetic, logs and the output of libraries.

A warning such as numpy's "divide by zero" may appear on one of two neighbouring tables only, and then tells them apart.
A library that fails on a cell often prints it: polars writes its panics straight to file descriptor 2.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator

import numpy as np

OUT, ERR = 1, 2  # the process's file descriptors


class _Shared:
    """A context of the whole process. The first block that begins enters it, and the last one that ends leaves it."""

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
def silenced(*, streams: bool = False) -> Iterator[None]:
    """Show no warning while the block runs, in any thread, and turn none into an error.

    Warning filters and streams belong to the whole process: runs in several threads do not undo each other's.

    Parameters
    ----------
    streams
        Whether to drop also what is logged or written to standard output and standard error, by C code too: for
        reading, which is left to libraries. A progress bar that must be seen needs a file descriptor of its own.
    """
    with _warnings, _streams if streams else contextlib.nullcontext(), np.errstate(all="ignore"):
        yield


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _without_streams() -> Iterator[None]:
    """Send both standard streams to nowhere, and disable logging."""
    import logging

    level = logging.root.manager.disable
    written = {sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__} - {None}
    with contextlib.ExitStack() as after:
        nowhere = after.enter_context(open(os.devnull, "w", encoding="utf-8", errors="replace"))
        _flush(written)  # what was written before is shown
        for descriptor in (OUT, ERR):
            with contextlib.suppress(OSError):  # closed: nobody sees it
                kept = os.dup(descriptor)
                after.callback(os.close, kept)
                after.callback(os.dup2, kept, descriptor)
                os.dup2(nowhere.fileno(), descriptor)
        after.enter_context(contextlib.redirect_stdout(nowhere))
        after.enter_context(contextlib.redirect_stderr(nowhere))
        after.callback(_flush, written)  # before the descriptors are back: what waits in a buffer is dropped
        after.callback(logging.disable, level)
        logging.disable(sys.maxsize)
        yield


def _flush(files: set[object]) -> None:
    """Write out the buffers of Python's files and of the C library."""
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it
            file.flush()  # type: ignore[attr-defined]
    if _fflush is not None:
        _fflush(None)


_fflush = getattr(ctypes.pythonapi, "fflush", None)  # not on Windows
_warnings, _streams = _Shared(_without_warnings), _Shared(_without_streams)
