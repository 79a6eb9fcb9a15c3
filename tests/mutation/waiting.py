"""Wait for tests in a fork, and end those that wait in vain, as a mutant can make them do."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

IDLE = 40.0  # seconds in which tests that do not wait in vain have worked a little, even on a busy machine
LITTLE = 5  # hundredths of a second


def status_of(child: int) -> int:
    """Return the status with which a fork ends; end it when neither it nor what it has started works any more."""
    spent, since = 0, time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.05)
        if time.monotonic() - since > IDLE:
            if (now := _ticks_of(child)) - spent < LITTLE:
                os.kill(child, signal.SIGKILL)
            spent, since = now, time.monotonic()


def _ticks_of(session: int) -> int:
    """Return the processor time, in hundredths of a second, of the processes that a fork has started, and its own."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            of_session, *_, user, system, ended_user, ended_system = stat.read_text().rpartition(") ")[2].split()[3:15]
            if int(of_session) == session:
                total += int(user) + int(system) + int(ended_user) + int(ended_system)
    return total
