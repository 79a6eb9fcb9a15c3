"""The progress of a run. A terminal shows how many releases were made, and a pipe shows nothing."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpframework.cli.common import console, on_terminal
from dpframework.run.observers import Observer, Release
from dpframework.tables.reading_progress import watch_progress

if TYPE_CHECKING:
    from rich.console import Console


@contextlib.contextmanager
def progress() -> Iterator[Observer]:
    """Yield an observer that shows a progress bar on standard error while a study runs.

    If standard error is no terminal, or a terminal that cannot move its cursor (`TERM=dumb`), no bar is shown.

    While the table is read, the bar shows which file is read, and what share of its bytes was read. The bar does not
    count rows, since their number is secret.
    """
    if not on_terminal(stderr=True) or console(stderr=True).is_dumb_terminal:
        yield Observer()
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # The bar only pulses, since nobody knows how many releases will be made: a tree, for example, may stop early.
    columns = (
        SpinnerColumn(),
        BarColumn(),
        TextColumn("releases: {task.completed}"),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with _screen_of_its_own() as own, Progress(*columns, console=own, transient=True) as bar:
        task = bar.add_task("reading", total=None)

        class ProgressBar(Observer):
            def released(self, release: Release) -> None:
                bar.update(task, advance=1, description=release.charge.path.split("/")[0])

        with watch_progress(lambda done, files: bar.update(task, description=reading_text(done, files))):
            yield ProgressBar()


@contextlib.contextmanager
def _screen_of_its_own() -> Iterator[Console]:
    """Yield a screen with its own file descriptor, since standard error is closed while a table is read.

    The shared screen stays unchanged for messages after the run.
    """
    from dpframework.cli.escaping_console import Screen

    with contextlib.ExitStack() as ending:
        stream = sys.stderr
        with contextlib.suppress(OSError):  # standard error may be a stream without a file descriptor
            stream = ending.enter_context(open(os.dup(stream.fileno()), "w", encoding="utf-8"))
        yield Screen(file=stream, highlight=False)


def reading_text(done: float, files: int) -> str:
    """Return in words how far reading has come. `done` counts files, with a fraction for the file that is being read.

    Examples
    --------
    >>> reading_text(2, 20), reading_text(2.25, 20)
    ('reading: 2 of 20 files', 'reading: file 3 of 20, 25 %')
    """
    whole = int(done)
    if done == whole:
        return f"reading: {whole} of {files} files"
    return f"reading: file {whole + 1} of {files}, {done - whole:.0%}".replace("%", " %")
