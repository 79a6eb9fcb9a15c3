"""The identity of this process. A fork holds copies of rows, budgets and runs, and must not use them."""

from __future__ import annotations

import os
from typing import TypeAlias

#: The number of a process, and how many forks lie between the first process and this one. The number alone is not
#: enough, since systems reuse numbers.
ProcessMark: TypeAlias = tuple[int, int]

_forks = 0


def this_process() -> ProcessMark:
    """Return a mark of this process. Its threads share the mark, and a fork has another mark."""
    return os.getpid(), _forks


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # where there is no fork, nothing is copied
    os.register_at_fork(after_in_child=_count_fork)
