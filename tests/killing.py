"""Processes that are killed: a child at any step, and what it wrote before; a worker of a cluster."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpframework import Observer

needs_kills = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="needs fork and SIGKILL, which this system does not have"
)


def run_as_script(script: str, folder: str | Path, every: int) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests on a folder, in a process of its own that finds what the tests share.

    It is told to kill at every so-manieth step.
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, script, str(folder), str(every)]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def told_by_itself(script: str, every: int) -> Any:
    """Run a script on a new folder, in a process that has no threads and may fork; return what it prints, as JSON.

    It kills at every so-manieth step, unless `DPFRAMEWORK_EVERY_STEP` is set (see `steps_tried`). A kill loses nothing
    that was written, synchronised or not: in memory many kills take seconds.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        ran = run_as_script(script, folder, every)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


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


def steps_tried(steps: int, every: int) -> range:
    """Return the steps to kill at: every one if `DPFRAMEWORK_EVERY_STEP` is set, else every so-manieth, and the last.

    There is a step before and one after each change, and little happens between one change and the next.
    """
    return range(steps) if os.environ.get("DPFRAMEWORK_EVERY_STEP") else range((steps - 1) % every, steps, every)


class KillsAWorker(Observer):
    """An observer that ends a worker of a cluster before one of the releases, and keeps what is charged.

    The process ends as if the machine had failed: nothing that it holds is handed over.
    """

    def __init__(self, engine: Any, at: int) -> None:
        self.engine, self.at, self.charges = engine, at, []

    def charged(self, charge: Any) -> None:
        self.charges.append(charge.path)
        if len(self.charges) == self.at:
            os.kill(min(self.engine._client.run(os.getpid).values()), signal.SIGKILL)


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


def steps_of(folder: Path, last: int | None, command: Callable[[], int], *more: tuple[object, str]) -> int | None:
    """Give a command in a child that is killed at a step; return the number of steps if it came to its end, well."""

    def work() -> str:
        crossings = Crossings(last)
        crossings.install(*more)
        return json.dumps([command(), crossings.passed])

    told = forked(folder, work)
    if told is None:
        return None
    code, passed = json.loads(told)
    assert code == 0, f"the command ended with exit code {code}"
    return int(passed)
