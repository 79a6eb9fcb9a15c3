"""What it costs that the rows of one person lie in several files: CPU seconds and memory, on a cluster and in memory.

    python tests/benchmarks/people_on_a_cluster.py                    # 3 * 10^6 rows of 3 * 10^5 people, 2 workers
    python tests/benchmarks/people_on_a_cluster.py --workers 2 4 --cases "3 rows" columns

Each line is a process of its own, on Linux. It opens four Parquet files (of each view, where there are two), and counts
one cross table. Seconds are those of all processes, memory is what the largest one needs more than before it opened
the table: kernels that are loaded then are in it.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframework as dpf

FILES, KEY = 4, b"of this benchmark"
VISITS = dpf.Schema(
    [
        dpf.Boolean("ill", view="left"),
        dpf.Categorical("ward", ["a", "b", "c", "d"], view="left"),
        dpf.Numeric("cost", 0, 100, bins=16, view="right"),
        dpf.Numeric("age", 0, 100, bins=10, view="right"),
    ]
)
PEOPLE = dpf.Schema(
    VISITS.attributes,
    derive=[
        dpf.derive("visits", "count()", per="unit", lower=0, upper=40, bins=8),
        dpf.derive("ever", "any(ill)", per="unit"),
        dpf.derive("total", "sum(cost)", per="unit", lower=0, upper=3000, bins=10),
        dpf.derive("began", "first(ward)", per="unit"),
        dpf.derive("often", "mode(ward)", per="unit"),
        dpf.derive("oldest", "max(age)", per="unit", lower=0, upper=100, bins=5),
    ],
)
CASES = ("rows", "1 row", "3 rows", "columns", "views")


def write(folder: Path, rows: int, people: int) -> None:
    """Write the files of a table of visits, and of two views of as many rows."""
    rng = np.random.default_rng(0)
    orders = {side: rng.permutation(rows + rows // 15)[:rows] for side in ("left", "right")}
    for place in ("visits", *orders):
        (folder / place).mkdir()
    for file, own in enumerate(np.array_split(np.arange(rows), FILES)):
        frame = pl.DataFrame(
            {
                "person": rng.integers(10**15, 10**15 + people, len(own)),
                "ill": rng.random(len(own)) < 0.3,
                "ward": rng.choice(["a", "b", "c", "d"], len(own)),
                "cost": rng.uniform(0, 100, len(own)).round(2),
                "age": rng.integers(0, 100, len(own)),
            }
        )
        frame.write_parquet(folder / "visits" / f"{file}.parquet")
        for side, names in (("left", ("ill", "ward")), ("right", ("cost", "age"))):
            view = frame.select(pl.Series("person", orders[side][own]), *names)
            view.write_parquet(folder / side / f"{file}.parquet")


def table(folder: Path, case: str) -> dpf.TableFiles:
    """Return the files of a case."""
    given: dict[str, Any] = {"key": KEY, "ordered": False}
    if case == "views":
        right, unit = str(folder / "right"), dpf.PrivacyUnit("person")
        return dpf.TableFiles(folder / "left", VISITS, right=right, id="person", unit=unit, **given)
    if case == "columns":
        return dpf.TableFiles(folder / "visits", PEOPLE, unit=dpf.PrivacyUnit("person"), **given)
    kept = re.match(r"\d", case)
    unit = dpf.PrivacyUnit("person", int(kept[0])) if kept else dpf.PrivacyUnit()
    return dpf.TableFiles(folder / "visits", VISITS, unit=unit, **given)


def seconds() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def megabytes(what: str) -> float:
    """Return the memory of this process, now (`VmRSS`) or at most since it was last reset (`VmHWM`)."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) / 1024


def reset() -> None:
    """Let the most memory begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def measure(folder: Path, case: str, workers: int) -> None:
    """Open a table, count, and print what it took."""
    files = table(folder, case)
    engine = dpf.Dask(workers=workers) if workers else dpf.InMemory()
    if isinstance(engine, dpf.Dask):
        engine._connect()

    def everywhere(function: Any, *given: Any) -> list[Any]:
        own = function(*given)
        return [own, *engine._client.run(function, *given).values()] if isinstance(engine, dpf.Dask) else [own]

    before, used = everywhere(megabytes, "VmRSS"), everywhere(seconds)
    everywhere(reset)
    rows = engine.open(files)
    counted = int(dpf.queries.JointHistogram(files.schema.attributes[:2]).evaluate(engine, rows).sum())
    took = sum(after - start for after, start in zip(everywhere(seconds), used, strict=True))
    most = max(after - start for after, start in zip(everywhere(megabytes, "VmHWM"), before, strict=True))
    where = f"{workers} workers" if workers else "in memory"
    print(f"{case:<8}  {where:<10}  {took:6.1f} s  {most:6.0f} MB  {counted:>10,} rows", flush=True)
    engine.close()


def main() -> None:
    """Print a line for each case and engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3 * 10**6)
    parser.add_argument("--people", type=int, default=3 * 10**5)
    parser.add_argument("--workers", type=int, nargs="*", default=[2])
    parser.add_argument("--cases", nargs="*", default=CASES, choices=CASES)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure is not None:
        folder, case, workers = asked.measure
        measure(Path(folder), case, int(workers))
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), asked.rows, asked.people)
        for case in asked.cases:
            for workers in (0, *asked.workers):
                subprocess.run([sys.executable, __file__, "--measure", folder, case, str(workers)], check=True)


if __name__ == "__main__":
    main()
