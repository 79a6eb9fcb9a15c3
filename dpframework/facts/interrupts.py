"""Ignoring or delaying Ctrl-C while a block runs that must not stop halfway."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C while the block runs, such as one that writes paid results."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives Ctrl-C
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


@contextlib.contextmanager
def delay_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended, so that the block's resources can always be closed.

    Otherwise an interrupt could come after a lock is taken, and before a variable holds that lock. Then no code could
    release it.
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
