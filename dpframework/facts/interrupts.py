"""Ctrl-C, while something is done that must not be left half done."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C for the moment in which paid results are written."""
    if threading.current_thread() is not threading.main_thread():  # it does not get Ctrl-C
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


@contextlib.contextmanager
def delay_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended, so that whoever closes its resources knows them.

    Between the moment at which a lock is taken, and the one at which a variable holds it, an interrupt would leave a
    lock that nobody can give back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[tuple[int, Any]] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        if waiting and callable(before):
            before(*waiting.pop())
        elif waiting and before is not signal.SIG_IGN:
            signal.raise_signal(signal.SIGINT)
