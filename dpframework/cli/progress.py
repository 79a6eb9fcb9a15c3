"""Progress of a run: releases counted on a terminal, nothing in a pipe."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from dpframework.accountant import Charge
from dpframework.cli.shared import console
from dpframework.observers import Observer, Release


class ReleaseCounter(Observer):
    """Counts charges, and tells a progress bar of each release."""

    def __init__(self, show: Callable[[Release], None] | None = None) -> None:
        self.made = 0
        self._show = show

    def charged(self, charge: Charge) -> None:
        """Count."""
        self.made += 1

    def released(self, release: Release) -> None:
        """Show."""
        if self._show is not None:
            self._show(release)


@contextlib.contextmanager
def progress() -> Iterator[ReleaseCounter]:
    """Yield an observer that shows a progress bar on standard error while a study runs, if that is a terminal."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield ReleaseCounter()
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # How many releases there will be is not known: a tree may stop early. The bar pulses.
    columns = (
        SpinnerColumn(),
        BarColumn(),
        TextColumn("{task.completed} releases"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield ReleaseCounter(lambda release: bar.update(task, advance=1, description=release.charge.path.split("/")[0]))
