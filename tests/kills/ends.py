"""A child that does some work, and how it is ended."""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import attrs

#: How a child is ended: before a call, in the middle of a write, or after some time; by SIGKILL or by Ctrl-C.
KILL, TORN, INTERRUPT, LATER = "killed", "killed in a write", "interrupted", "killed at some time"
LIMIT = 60  # seconds


@attrs.frozen
class End:
    """When and how: before a call of a number, or after some seconds."""

    how: str
    call: int = -1
    seconds: float = 0.0


@attrs.frozen
class Done:
    """How it ended: its exit code, None if it was killed; how many calls it made, and what it said."""

    code: int | None
    calls: int = -1
    said: str = ""


def ended(folder: Path, work: Callable[[], int], end: End | None) -> Done:
    """Work in a child, in a folder, and end it so; None lets it come to its end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)
            os.write(write, json.dumps(_worked(work, end)).encode())
        finally:
            os._exit(0)
    os.close(write)
    if end is not None and end.how == LATER:
        time.sleep(end.seconds)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(read, "rb") as pipe:
        if not select.select([pipe], [], [], LIMIT)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"it hung: no word in {LIMIT} s")
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if not told:
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "it ended without a word"
        return Done(None)
    return Done(*json.loads(told))


def _worked(work: Callable[[], int], end: End | None) -> tuple[int, int, str]:
    calls = ctypes.CDLL(None)
    at = -1 if end is None else end.call
    number = signal.SIGINT if end is not None and end.how == INTERRUPT else signal.SIGKILL
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        calls.calls_arm(ctypes.c_long(at), int(number), int(end is not None and end.how == TORN))
        try:
            code = work()
        except KeyboardInterrupt:  # before the command could catch it
            code = 130
        except Exception:
            code = -1
            traceback.print_exc()
        passed = int(calls.calls_passed())
        calls.calls_disarm()
    return code, passed, said.getvalue()[-2000:]
