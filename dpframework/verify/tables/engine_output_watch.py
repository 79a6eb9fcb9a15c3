"""Watch what an engine tells: what it prints and logs, which processes it starts, and which hosts it sends to."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, final

import attrs

#: Audit events of processes that are started, and the position of the command among an event's arguments.
_STARTS = {"subprocess.Popen": 1, "os.system": 0, "os.exec": 1, "os.posix_spawn": 1}
_SENDS = ("socket.connect", "socket.sendto", "socket.sendmsg")
#: A word, or a whole number, perhaps with commas. Numbers with a point do not count, since most of them are durations.
_WORD = re.compile(r"[^\W\d]\w*|(?<![\d.])(?<!\d,)\d+(?:,\d{3})*(?![.,]?\d)")


@final
@attrs.define
class Overheard:
    """What an engine told while it was overheard.

    Attributes
    ----------
    lines
        Printed lines, messages of level INFO or above, and commands.
    commands
        The commands of the processes that it started.
    hosts
        The hosts and ports that it connected or sent to.
    """

    lines: list[str] = attrs.field(factory=list)
    commands: list[str] = attrs.field(factory=list)
    hosts: set[str] = attrs.field(factory=set)


_listening: list[Overheard] = []
_hooked: list[bool] = []


def _hook(event: str, given: tuple[Any, ...]) -> None:
    if not _listening:
        return
    if event in _STARTS:
        command = given[_STARTS[event]]
        parts = command if isinstance(command, list | tuple) else [command]
        _listening[-1].commands.append(" ".join(os.fsdecode(part) for part in parts))
        _listening[-1].lines.append(_listening[-1].commands[-1])
    elif event in _SENDS and isinstance(given[1], tuple):
        _listening[-1].hosts.add(f"{given[1][0]}:{given[1][1]}")


@contextlib.contextmanager
def overhear() -> Iterator[Overheard]:
    """Yield what is told while the block runs. Printed lines, also of C code, are added when the block ends."""
    if not _hooked:
        sys.addaudithook(_hook)  # it cannot be removed, but does nothing while nobody listens
        _hooked.append(True)
    heard = Overheard()
    make_record, disabled, level = logging.getLogRecordFactory(), logging.root.manager.disable, logging.root.level

    def note(*given: Any, **more: Any) -> logging.LogRecord:
        record = make_record(*given, **more)
        heard.lines.append(record.getMessage())
        return record

    logging.setLogRecordFactory(note)
    logging.disable(logging.NOTSET)
    logging.root.setLevel(min(level, logging.INFO))
    _listening.append(heard)
    try:
        with _printed(heard.lines):
            yield heard
    finally:
        _listening.pop()
        logging.root.setLevel(level)
        logging.disable(disabled)
        logging.setLogRecordFactory(make_record)


@contextlib.contextmanager
def _printed(lines: list[str]) -> Iterator[None]:
    """Collect the lines that the block prints to Python's streams, or to the process's descriptors."""
    printed = io.StringIO()
    with contextlib.ExitStack() as after, tempfile.TemporaryFile() as file:
        for stream in filter(None, (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)):
            with contextlib.suppress(OSError, ValueError):  # the stream is closed
                stream.flush()
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):  # the descriptor is closed, so nobody sees its output
                kept = os.dup(descriptor)
                after.callback(os.close, kept)
                after.callback(os.dup2, kept, descriptor)
                os.dup2(file.fileno(), descriptor)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                yield
        finally:
            for stream in filter(None, (sys.__stdout__, sys.__stderr__)):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            file.seek(0)
            lines += printed.getvalue().splitlines() + file.read().decode(errors="replace").splitlines()


def telling_lines(few: Sequence[Sequence[str]], many: Sequence[Sequence[str]]) -> list[str]:
    """Return lines that follow from the rows, since they hold a word or number that differs between two tables.

    Each table is counted several times. A word differs between two tables only if it occurs equally often in all runs
    on each of them. What differs
    between two runs on the same table, such as a time or an address, says nothing about rows, and is left out. A random
    number of d digits is the same in two runs with probability 10^-d, and is then taken to follow from the rows.
    Durations in whole units may indeed follow from the rows.

    Parameters
    ----------
    few
        The lines of each run on a small table.
    many
        The lines of each run on a large table.

    Examples
    --------
    >>> telling_lines([["3 rows in 0.01 s"], ["3 rows in 0.02 s"]], [["900 rows in 0.02 s"], ["900 rows in 0.03 s"]])
    ['900 rows in 0.02 s', '3 rows in 0.01 s']
    >>> telling_lines([["run 1"], ["run 2"]], [["run 3"], ["run 4"]])
    []
    """
    one, other = (
        [Counter(word for line in run for word in _WORD.findall(line)) for run in runs] for runs in (few, many)
    )
    words = {word for found in (*one, *other) for word in found}
    telling = {
        word
        for word in words
        if len({found[word] for found in one}) == len({found[word] for found in other}) == 1
        and one[0][word] != other[0][word]
    }
    return [line for line in (*many[0], *few[0]) if telling.intersection(_WORD.findall(line))]
