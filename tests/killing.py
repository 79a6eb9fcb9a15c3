"""A child that may be killed at any step, what it wrote before, and the steps."""

from __future__ import annotations

import os
import signal
import sqlite3
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


def steps_tried(steps: int) -> range:
    """Return the steps to kill at: every one if `DPFRAMEWORK_EVERY_STEP` is set, else every second.

    There is a step before and one after each change, and little happens between one change and the next.
    """
    return range(steps) if os.environ.get("DPFRAMEWORK_EVERY_STEP") else range((steps - 1) % 2, steps, 2)


class Crossings:
    """Counts the steps at which a process could be killed, and kills it at one of them."""

    def __init__(self, last: int | None) -> None:
        self.passed, self.last = 0, last

    def cross(self) -> None:
        if self.passed == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed += 1

    def around(self, owner: object, name: str) -> None:
        function = getattr(owner, name)

        def crossing(*arguments, **options):
            self.cross()
            result = function(*arguments, **options)
            self.cross()
            return result

        setattr(owner, name, crossing)

    def install(self, *more: tuple[object, str]) -> None:
        """Count every statement of SQLite, every change of a folder, and more functions: an owner and a name each."""
        crossings = self

        class Counted(sqlite3.Connection):
            def execute(self, *arguments):
                crossings.cross()
                return super().execute(*arguments)

        connect = sqlite3.connect
        sqlite3.connect = lambda *arguments, **options: connect(*arguments, factory=Counted, **options)
        for owner, name in (*more, (os, "fsync"), (os, "replace"), (Path, "mkdir"), (Path, "unlink")):
            self.around(owner, name)
