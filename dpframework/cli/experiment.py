"""The command `experiment`, which compares methods."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from dpframework.cli.command_classes import Command
from dpframework.cli.common import (
    REFUSED,
    Json,
    console,
    number_option,
    path_argument,
    path_option,
    print_json,
    say,
    warn_of_problems,
    write,
)
from dpframework.facts.errors import InputError
from dpframework.facts.phrases import count_text

# A cell of an experiment is one run of one method.
WHERE = (
    "The folder for the results. A later run finds the finished cells there. By default FILE-results, beside the file."
)
REPETITIONS = (
    "The number of repetitions, instead of the file's. A later run of the whole experiment reuses the finished cells."
)


app = typer.Typer()


@app.command(cls=Command, epilog="Example: dpframework experiment trees.toml --repetitions 3")
def experiment(
    file: Annotated[Path, path_argument("FILE", "An experiment file (.toml).")],
    out: Annotated[Path | None, path_option("FOLDER", WHERE)] = None,
    jobs: Annotated[
        int | None, number_option("The number of processes. By default, and at most, one for each processor.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Allow more processes than there are processors.")] = False,
    repetitions: Annotated[int | None, number_option(REPETITIONS)] = None,
    as_json: Json = False,
) -> None:
    """Compare methods over a grid of data sets, parameters and budgets, measured against the truth. NOT PRIVATE.

    Each cell of the grid is one run of one method. Finished cells are kept. If the command is killed, repeat it to
    continue. Exit code 1 if a cell failed, or a plan is refused.
    """
    warn_of_problems()
    for name, number in (("--jobs", jobs), ("--repetitions", repetitions)):
        if number is not None and number < 1:
            raise InputError(f"{name} is {number}; at least 1 is needed")
    processors = os.cpu_count() or 1
    if jobs is not None and jobs > processors and not force:
        raise InputError(
            f"--jobs is {jobs}; this machine has {count_text(processors, 'processor')}, and more processes only take "
            "memory; add --force if you want them"
        )
    from dpframework.lab.experiment import load_experiment, run_experiment

    wanted = load_experiment(file, repetitions=repetitions)
    folder = file.with_name(f"{file.stem}-results") if out is None else out
    with _progress() as show_progress:
        ran = run_experiment(wanted, folder, processes=-1 if jobs is None else jobs, on_progress=show_progress)
    if as_json:
        tables = {name: groups for (kind, name), groups in ran.report.groups.items() if kind == "table"}
        print_json(
            {
                "title": wanted.title,
                "private": False,
                "cells": ran.cells,
                "finished_before": ran.before,
                "finished_now": ran.now,
                "failed": [{"cell": one.cell.to_dict(), "reason": one.reason} for one in ran.failed],
                "tables": {name: [group.to_dict() for group in groups] for name, groups in tables.items()},
                "files": [str(ran.folder / name) for name in ran.report.files],
            }
        )
    else:
        from dpframework.lab.experiment.summary_tables_plots_and_page import NOT_PRIVATE, STATISTIC_NOTES

        for summary in wanted.tables:
            write(f"{summary.title}: {STATISTIC_NOTES[summary.statistic]}\n\n{ran.report.tables[summary.name]}\n")
        write(f"{count_text(ran.cells, 'cell')}: {ran.before} finished before, {ran.now} now, {len(ran.failed)} failed")
        write(NOT_PRIVATE)
        write(f"wrote {', '.join(str(ran.folder / name) for name in ran.report.files)}")
    if ran.failed:
        from dpframework.lab.experiment.summary_tables_plots_and_page import failures

        for line in failures(ran.failed):
            say(f"failed: {line}")
        say(f"{count_text(len(ran.failed), 'cell')} failed; repeat the command to try again")
        raise typer.Exit(REFUSED)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Yield a function that updates a progress bar on standard error. Without a terminal it does nothing."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda done, cells: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (SpinnerColumn(), TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("cells", total=None)
        yield lambda done, cells: bar.update(task, completed=done, total=cells)
