"""Run the unfinished cells of an experiment in processes through joblib, and store each when it is done."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError, PlanRefused, RunStopped
from dpframework.lab.experiment.experiment_contents_and_grid import Experiment
from dpframework.lab.experiment.finished_cell_store import open_store, require_ours
from dpframework.lab.experiment.input_tables import TableSource
from dpframework.lab.experiment.job import FailedCell, FinishedCell, Job, compute
from dpframework.lab.experiment.job_list import jobs_of
from dpframework.lab.experiment.summary_tables_plots_and_page import Report, write_summaries


@final
@attrs.frozen
class Outcome:
    """The outcome of running an experiment.

    Attributes
    ----------
    folder
        The folder that the results were written to.
    cells
        The number of cells of the grid.
    before, now
        The number of cells that were finished before this run, and the number of cells that this run finished.
    failed
        The cells that failed, in the order of the grid. The next run tries them again.
    report
        The summaries of the finished cells.
    """

    folder: Path
    cells: int
    before: int
    now: int
    failed: tuple[FailedCell, ...]
    report: Report


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    processes: int | None = None,
    on_progress: Callable[[int, int], None] = lambda finished, cells: None,
) -> Outcome:
    """Compute the cells that are not finished, and write the results of all cells.

    Parameters
    ----------
    experiment
        The experiment (see `load_experiment`).
    folder
        A new or empty folder, or the folder of an earlier run, whose finished cells are not computed again.
    processes
        The number of processes, or -1 for one per processor. By default the `joblib.parallel_config` around the call
        decides, so that Dask or Ray can compute on a cluster whose workers see the same files.
    on_progress
        A function that is called at the start and after each cell, with the numbers of ended cells and of all cells.

    Raises
    ------
    PlanRefused
        If a check refuses a plan of the grid. Then no data file has been read, and nothing has been written.
    InputError
        If a plan, a library or a file lacks something, the folder cannot be written, or another process uses it.
    RunStopped
        If the user interrupts the run, or a process dies. Finished cells are kept.
    """
    try:
        import joblib
    except ModuleNotFoundError:
        raise InputError("experiments need joblib: pip install 'dpframework[experiments]'") from None
    require_ours(folder)
    if experiment.plots and importlib.util.find_spec("matplotlib") is None:
        raise InputError("the experiment's plots need matplotlib: pip install 'dpframework[experiments]'")
    try:
        jobs = jobs_of(experiment)
    except (InputError, PlanRefused) as error:
        raise type(error)(f"{experiment.source}: {error}") from None
    with open_store(folder) as store:
        store.sweep()
        finished = store.load_finished((job.key, job.cell) for job in jobs)
        before = len(finished)
        failed: dict[str, FailedCell] = {}
        on_progress(before, len(jobs))
        waiting = [job for job in jobs if job.key not in finished]
        with _explain_end(len(jobs), finished):
            for job, outcome in _outcomes(joblib, waiting, processes):
                if isinstance(outcome, FinishedCell):
                    store.keep(outcome, job.seed)
                    finished[job.key] = outcome
                else:
                    failed[job.key] = outcome
                on_progress(len(finished) + len(failed), len(jobs))
        failures = tuple(failed[job.key] for job in jobs if job.key in failed)
        in_order = [finished[job.key] for job in jobs if job.key in finished]
        report = write_summaries(experiment, in_order, failures, folder)
        return Outcome(folder, len(jobs), before, len(finished) - before, failures, report)


def _outcomes(
    joblib: Any, jobs: Sequence[Job], processes: int | None
) -> Iterator[tuple[Job, FinishedCell | FailedCell]]:
    """Yield each job with its outcome once it is done. Jobs on one table follow each other, so that it stays cached."""
    by_key = {job.key: job for job in jobs}
    by_source: dict[TableSource, list[Job]] = {}
    for job in jobs:
        by_source.setdefault(job.source, []).append(job)
    # No backend is named, so that the caller's joblib.parallel_config decides. Each batch has one job, so that a
    # finished cell is stored without waiting for others.
    parallel = joblib.Parallel(n_jobs=processes, return_as="generator_unordered", batch_size=1)
    ordered = itertools.chain.from_iterable(by_source.values())
    for key, outcome in parallel(joblib.delayed(_compute_in_worker)(job, os.getpid()) for job in ordered):
        yield by_key[key], outcome


def _compute_in_worker(job: Job, starter: int) -> tuple[str, FinishedCell | FailedCell]:
    if os.getppid() == starter:  # otherwise this is the starter itself, or a worker of a cluster
        _end_with(starter)
    return job.key, compute(job)


@functools.cache
def _end_with(parent: int) -> None:
    """End this process once its parent is gone, since nothing would receive its outcome."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _explain_end(cells: int, finished: Mapping[str, FinishedCell]) -> Iterator[None]:
    """Turn an interrupt, or the death of a process, into an error that says how many cells are finished."""
    try:
        yield
    except (KeyboardInterrupt, BrokenExecutor) as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        what = "interrupted" if interrupted else "a process that computed a cell died, perhaps from lack of memory"
        raise RunStopped(
            f"{what}; {len(finished)} of {cells} cells are finished; repeat the command to compute the others",
            interrupted=interrupted,
        ) from None
