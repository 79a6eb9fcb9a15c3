"""Forecasts of the time and memory of a run, from runs on made-up rows in another process. No data is opened.

The cost of a run hardly depends on the values in the rows, since candidates, rounds and thresholds are public. So
random rows that fit the schema cost about the same as real ones, and a straight line through two sizes predicts the
cost of more rows.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import final

import attrs
import numpy as np

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.attributes import Numeric
from dpframework.facts.calendar_periods import PeriodKind
from dpframework.facts.errors import DPFrameworkError, InputError, first_line
from dpframework.facts.installed_package_digests import importing_environment
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.facts.open_attribute import Open
from dpframework.facts.value_checks import check_counts
from dpframework.study.study import Study
from dpframework.study.table_place import values_read
from dpframework.tables.coded_table import Table, bin_middles
from dpframework.tables.column_encoding import stored_dtype
from dpframework.tables.open_attribute_keys import keys_of_texts

SIZES = (1_000, 10_000, 100_000, 1_000_000)  # the numbers of rows that are tried, in this order
LEAST_STATED = 0.1  # a forecast of fewer CPU seconds says "less than .1"
ENOUGH = 1.0  # if a trial takes this many CPU seconds more than the first trial, larger ones would tell little more
LONG = 10.0  # in a run of this many CPU seconds or more, loading and compiling hardly count
KEYS = 1_000  # the number of different keys of an open attribute
#: For each kind of period, the period to which made-up rows belong.
PERIODS = {PeriodKind.DAY: "2000-01-01", PeriodKind.WEEK: "2000-W01", PeriodKind.MONTH: "2000-01"}
MEGABYTE = 1 << 20


@final
@attrs.frozen
class TriedRun:
    """A run on made-up rows.

    Attributes
    ----------
    rows
        The number of rows.
    seconds
        The CPU seconds of the run. For a short run, loading and compiling code is left out.
    megabytes
        The most memory that the process used during the run, in MiB.
    """

    rows: int
    seconds: float
    megabytes: float


@final
@attrs.frozen
class Forecast:
    """The expected cost of a run on a machine like this one. The cost of reading the data is not included.

    Attributes
    ----------
    rows
        The number of rows that the forecast is for.
    seconds
        The CPU seconds of the run.
    megabytes
        The most memory of the process, in MiB.
    trials
        The runs on made-up rows from which the forecast was computed.
    """

    rows: int
    seconds: float
    megabytes: float
    trials: tuple[TriedRun, ...]

    def __str__(self) -> str:
        """Write the forecast in a sentence.

        Examples
        --------
        >>> print(Forecast(5_000, 2.51, 92.2, (TriedRun(100, 0.1, 90), TriedRun(200, 0.122, 91))))
        a run on 5,000 rows takes about 2.5 CPU s and 92 MiB, without reading the data (tried on up to 200 made-up rows)
        """
        most = f"{self.trials[-1].rows:,}"
        seconds = "less than .1" if self.seconds < LEAST_STATED else f"about {self.seconds:,.2g}"
        return (
            f"a run on {self.rows:,} rows takes {seconds} CPU s and "
            f"{self.megabytes:.0f} MiB, without reading the data (tried on up to {most} made-up rows)"
        )


@typechecked
def forecast(
    study: Study, rows: int | None = None, *, patience: int = 120, within: int = 3_600, sizes: Sequence[int] = SIZES
) -> Forecast:
    """Forecast the cost of a run of a study, by runs on made-up rows in another process. No data is opened.

    Parameters
    ----------
    study
        The study. Its plan must pass its checks.
    rows
        The number of rows of the run; by default the schema's `rows`, else `about_rows`, else `max_rows`.
    patience
        The most CPU seconds for all runs on made-up rows.
    within
        The most CPU seconds that the real run may take. A forecast above this is refused.
    sizes
        The numbers of rows to try, in increasing order. The trials end once one takes a second longer than the first.

    Raises
    ------
    PlanRefused
        If a check refuses the plan.
    InputError
        If neither `rows` nor the schema says how many rows there are, or if no table can have this number. If the run
        would take more than `within`, or more memory than this machine has. If a trial fails, or if not even the
        smallest trial ends. If a miner cannot be sent to another process.

    Examples
    --------
    >>> import dpframework as dpf
    >>> study = dpf.Study(dpf.Schema([dpf.Boolean("ill")], max_rows=500), epsilon=1)
    >>> study.add("ill", dpf.miner("histogram", epsilon=1, attribute="ill"))
    >>> found = forecast(study)  # doctest: +SKIP
    >>> print(found)  # doctest: +SKIP
    a run on 500 rows takes less than .1 CPU s and 92 MiB, without reading the data (tried on up to 500 made-up rows)
    """
    schema = study.schema
    if rows is not None:
        check_counts(rows, None, None)
    target = rows or schema.rows or schema.about_rows or schema.max_rows
    if target is None:
        raise InputError("the schema does not say how many rows there are; give the number of rows for the forecast")
    study.checked_plan()
    trials = _trials(study, target, sizes, patience)
    seconds, megabytes = (_continue_line([(one.rows, getattr(one, what)) for one in trials], target) for what in _WHAT)
    found = Forecast(target, seconds, megabytes, tuple(trials))
    _require_affordable(found, within)
    return found


_WHAT = ("seconds", "megabytes")
_REMEDY = "mine fewer attributes, give numeric ones fewer bins, or take a miner or parameters that do less"


def _require_affordable(found: Forecast, within: int) -> None:
    if found.seconds > within:
        raise InputError(f"{found}, which is more than the {within:,} CPU s that it may take; {_REMEDY}, or allow more")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / MEGABYTE
    if found.megabytes > memory:
        raise InputError(f"{found}, which is more than the {memory:,.0f} MiB of this machine; {_REMEDY}")


def _continue_line(points: list[tuple[int, float]], target: int) -> float:
    """Continue a straight line through the last two points to `target`, and return its value there.

    The result is never below the value of the last point. If there is a single point, the line begins at 0 for 0 rows.
    Since a run also has costs that do not grow with the rows, such a forecast is too high rather than too low.
    """
    (before, low), (last, high) = points[-2:] if len(points) > 1 else ((0, 0.0), points[0])
    rise = max(high - low, 0) / (last - before)
    return high + rise * (target - last)


def _trials(study: Study, target: int, sizes: Sequence[int], patience: int) -> list[TriedRun]:
    """Run a study in another process, on more and more made-up rows, and return these trials."""
    unsent = InputError("a miner of the study cannot be sent to another process; write it into a module of its own")
    try:
        sent = pickle.dumps((study, [*_sizes(sizes, target)], patience))
    except Exception:  # an object of a plugin may raise any error
        raise unsent from None
    if b"__main__" in sent:
        raise unsent
    environment = importing_environment()
    command = [sys.executable, "-c", f"from {__name__} import try_in_turn; try_in_turn()"]
    ran = subprocess.run(command, input=sent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    printed = [parsed_json(line) for line in ran.stdout.decode().splitlines()]
    for one in printed:
        if "error" in one:
            raise InputError(f"a run on made-up rows failed: {one['error']}")
    if not printed:
        raise InputError(
            f"the run does not end within {patience:,} CPU s on {min(sizes[0], target):,} made-up rows; {_REMEDY}, "
            "or raise patience"
        )
    return list({one["rows"]: TriedRun(**one) for one in printed}.values())


def try_in_turn() -> None:
    """Read a study from standard input, run it on more and more rows, and print each trial as it ends.

    The process that `_trials` starts calls this.
    """
    import resource

    study, sizes, patience = pickle.loads(sys.stdin.buffer.read())
    resource.setrlimit(resource.RLIMIT_CPU, (patience, patience))
    try:
        tried = []
        for rows in sizes:
            tried.append(_try(study, rows))
            if tried[-1].seconds - tried[0].seconds >= ENOUGH:
                break
        # If the last trial was the first to load a library, only its own memory includes the library. So the trial
        # before it is repeated, now that the library is loaded.
        if len(tried) > 1:
            _try(study, tried[-2].rows)
    except DPFrameworkError as error:
        print(json.dumps({"error": first_line(error)}), flush=True)


def _try(study: Study, rows: int) -> TriedRun:
    """Run a study on made-up rows, print the trial as a line of JSON, and return it.

    If the number of rows is public, the trial is of a study of fewer rows, since a run refuses any other table.
    """
    tried = study if study.schema.rows is None else study.with_rows(rows)
    trial = TriedRun(rows, *measure(tried, invent_table(tried, rows)))
    print(json.dumps(attrs.asdict(trial)), flush=True)
    return trial


def _sizes(sizes: Sequence[int], target: int) -> Iterator[int]:
    for size in sizes:
        yield min(size, target)
        if size >= target:
            return


def measure(study: Study, table: Table) -> tuple[float, float]:
    """Run a study, with its plan and checks, and return its CPU seconds and the most memory of the process, in MiB.

    A short run is made twice, and the second one counts, since the first one also loads and compiles code.
    """
    _forget_most_memory()
    for _ in range(2):
        began = time.process_time()
        study.run(table)
        seconds = time.process_time() - began
        if seconds >= LONG:
            break
    return seconds, _most_memory()


def _forget_most_memory() -> None:
    """Reset the system's record of this process's peak memory, on systems that can do it (Linux)."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")


def _most_memory() -> float:
    """Return this process's peak memory, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # `getrusage` would also count the process that started this one.
        (most,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(most.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE


def invent_table(study: Study, rows: int) -> Table:
    """Return a table of random values for a study, in which each unit has as many rows as it may have.

    Examples
    --------
    >>> import dpframework as dpf
    >>> invent_table(dpf.describe(dpf.Schema([dpf.Boolean("ill")]), epsilon=1), 3)
    Table(1 attributes; rows are private)
    """
    rng, schema, unit = np.random.default_rng(0), study.schema, study.unit
    sizes = [1 if isinstance(attribute, Open) else attribute.size for attribute in schema]
    drawn = [rng.integers(0, size, rows, dtype=stored_dtype(a)) for a, size in zip(schema, sizes, strict=True)]
    columns = dict(zip(schema.names, drawn, strict=True))
    ready = study.prepare()
    read = values_read(ready.miners, ready.nodes, schema)
    numeric = [a for a in schema if isinstance(a, Numeric) and (read is None or a.name in read)]
    values = {a.name: bin_middles(a)[columns[a.name]] for a in numeric}
    keys = {
        a.name: keys_of_texts(a, rng.integers(0, KEYS, rows).astype(str).tolist())
        for a in schema
        if isinstance(a, Open)
    }
    if unit.period is not None:
        unit = unit.during(PERIODS[unit.period])
    table = Table(schema, tuple(columns.values()), values, unit, keys=keys)
    return table if unit.id is None else table.with_units(np.arange(rows) // unit.rows)
