"""A child that may be killed at any step, and what it wrote before."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path


def forked(folder: Path, work: Callable[[], str]) -> str | None:
    """Work in a child, in a folder; return what the work returns, or None if it was killed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)
            os.write(write, work().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert told, "the work ended without a word"
    return told
