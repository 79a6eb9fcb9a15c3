"""What a study costs as its table grows: CPU seconds, wall seconds and memory of the whole process.

    python tests/benchmarks/large_tables.py                       # 10^5, 10^6 and 10^7 rows
    python tests/benchmarks/large_tables.py --rows 100000000 --files 20 --engines mapped dask --kinds parquet --four
    python tests/benchmarks/large_tables.py --rows 10000000 --kinds parquet database --engines memory duckdb --depth 5
    python tests/benchmarks/large_tables.py --rows 1000000 --kinds parquet --engines memory duckdb --miner serenade-es
    python tests/benchmarks/large_tables.py --figure growth.svg   # and the growth in rows as a figure

Each line is a process of its own: `dpframework run` on ten attributes (four numeric in 16 bins, four of six texts,
two boolean), of one miner, `dp-id3` by default; with `--four` of `dp-id3`, `dp-tree` of two levels, `serenade-es` and
`dp-dilca`. CPU seconds are those of a cluster's workers too. Memory is that of the largest process, and counts the
pages of a mapped file that the system has kept. Engines must agree: with a seed, their results are the same files. A
`database` is one of DuckDB, which only its engine reads.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import attrs
import numpy as np
import polars as pl

import dpframework as dpf

COLOURS = ("red", "green", "blue", "cyan", "pink", "grey")
SCHEMA = dpf.Schema(
    [
        *(dpf.Numeric(f"n{k}", 0, 100, bins=16, view="left") for k in range(4)),
        *(dpf.Categorical(f"c{k}", COLOURS, view="right") for k in range(4)),
        *(dpf.Boolean(f"b{k}", view="right") for k in range(2)),
    ]
)
STUDY = """
{engine}
[data]
{data}
schema = "schema.toml"
[privacy]
epsilon = 4
"""
STEPS = {
    "dp-id3": 'params = {{ target = "b0", max_depth = {depth} }}',
    "dp-tree": 'params = {{ target = "b0", max_depth = 2 }}',
    "serenade-es": "params = {{ min_support = 1000, max_support = 70000 }}",
    "dp-dilca": "",
}
STEP = """
[[step]]
name = "{miner}"
miner = "{miner}"
epsilon = 1
"""
FEW = 2 * 10**4  # enough for kernels to be compiled
DATA = {"csv": 'path = "*.csv"', "parquet": 'path = "*.parquet"', "database": 'table = "people"'}
PLACES = '[engine.clinic]\nengine = "duckdb"\ndatabase = "{database}"\n'


@attrs.frozen
class Cost:
    """What a run took."""

    seconds: float
    wall: float
    megabytes: float


def made(rows: int, seed: int) -> pl.DataFrame:
    """Return a table of random rows."""
    rng, colours = np.random.default_rng(seed), pl.Series(COLOURS)
    return pl.DataFrame(
        {f"n{k}": np.round(rng.normal(50, 15, rows), 1) for k in range(4)}
        | {f"c{k}": colours.gather(rng.integers(0, 6, rows)) for k in range(4)}
        | {f"b{k}": rng.random(rows) < 0.4 for k in range(2)}
    )


def write(folder: Path, file: int, kind: str, rows: int) -> None:
    """Write one file of the table."""
    frame = made(rows, file)
    if kind == "csv":
        frame.write_csv(folder / f"{file:03}.csv")
    else:
        frame.write_parquet(folder / f"{file:03}.parquet")
    if kind == "database":
        import duckdb

        with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
            rows_of = f"select * from read_parquet('{folder / f'{file:03}.parquet'}')"
            connection.execute(f"{'insert into people' if file else 'create table people as'} {rows_of}")
        (folder / f"{file:03}.parquet").unlink()


def measured(folder: Path, study: str, out: Path) -> Cost:
    """Run a study in a process of its own."""
    command = [sys.executable, "-m", "dpframework", "run", study, "--seed", "1", "--out", str(out)]
    began, others = time.monotonic(), [0.0]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    watching = threading.Thread(target=_watch, args=(process.pid, others))
    watching.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    watching.join()
    if status:
        raise SystemExit(f"the study ended with status {status}")
    largest = usage.ru_maxrss / (1 << 10 if sys.platform != "darwin" else 1 << 20)
    return Cost(usage.ru_utime + usage.ru_stime, time.monotonic() - began, max(largest, others[0]))


def _watch(pid: int, largest: list[float]) -> None:
    """Keep the largest memory of a process's children, which it does not tell."""
    import psutil

    try:
        while True:
            sizes = [child.memory_info().rss for child in psutil.Process(pid).children(recursive=True)]
            largest[0] = max([largest[0], *(size / (1 << 20) for size in sizes)])
            time.sleep(0.25)
    except psutil.Error:
        return


def figure(path: Path, costs: dict[tuple[str, str], list[tuple[int, Cost]]]) -> None:
    """Draw how seconds and memory grow."""
    import matplotlib.pyplot as plt

    _, sides = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for (kind, engine), points in costs.items():
        rows = [rows for rows, _ in points]
        sides[0].plot(rows, [cost.seconds for _, cost in points], marker="o", label=f"{kind}, {engine}")
        sides[1].plot(rows, [cost.megabytes for _, cost in points], marker="o")
    for side, name in zip(sides, ("CPU seconds", "memory of the largest process (MB)"), strict=True):
        side.set(xscale="log", yscale="log", xlabel="rows", ylabel=name)
    sides[0].legend()
    plt.savefig(path)


def main() -> None:
    """Read the command line, and print a line a measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--kinds", nargs="+", choices=list(DATA), default=["csv", "parquet"])
    parser.add_argument("--engines", nargs="+", default=["memory", "mapped"])
    parser.add_argument("--files", type=int, default=1, help="into how many the rows are divided")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--miner", choices=list(STEPS), default="dp-id3")
    parser.add_argument("--four", action="store_true", help="a study of all these miners")
    parser.add_argument("--figure", type=Path, help="where the growth is drawn")
    asked = parser.parse_args()
    costs: dict[tuple[str, str], list[tuple[int, Cost]]] = {}
    with tempfile.TemporaryDirectory() as compiled:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each process compiles all modules again
        os.environ["PYTHONPYCACHEPREFIX"] = compiled
        for kind in asked.kinds:
            list(studied(asked, FEW, kind))  # what is compiled once on a machine is compiled then
        print(f"{'rows':>11}  {'file':<8}  {'engine':<8}  CPU s  wall s     MB")
        for rows in asked.rows:
            found = set()
            for kind in asked.kinds:
                for engine, cost, results in studied(asked, rows, kind):
                    found.add(results)
                    costs.setdefault((kind, engine), []).append((rows, cost))
                    told = f"{cost.seconds:5.1f}  {cost.wall:6.1f}  {cost.megabytes:5.0f}"
                    print(f"{rows:>11}  {kind:<8}  {engine:<8}  {told}", flush=True)
            if len(found) > 1:
                raise SystemExit("with one seed, the engines' results differ")
    if asked.figure is not None:
        figure(asked.figure, costs)


def studied(asked: argparse.Namespace, rows: int, kind: str) -> Iterator[tuple[str, Cost, str]]:
    """Write a table, and yield what its study takes on each engine, and its results."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, files = Path(temporary), asked.files
        SCHEMA.dump(folder / "schema.toml")
        with ProcessPoolExecutor(1) as other:  # a process counts the memory of the one that started it
            list(other.map(write, [folder] * files, range(files), [kind] * files, [rows // files] * files))
        places = folder / "places.toml"
        places.write_text(PLACES.format(database=folder / "clinic.duckdb"))
        places.chmod(0o600)
        os.environ["DPFRAMEWORK_PLACES"] = str(places)
        for engine in asked.engines:
            if (kind == "database" and engine != "duckdb") or (kind == "csv" and engine == "duckdb"):
                continue
            name = "clinic" if kind == "database" else engine
            study = STUDY.format(engine=f'engine = "{name}"', data=DATA[kind])
            for miner in STEPS if asked.four else [asked.miner]:
                study += STEP.format(miner=miner) + STEPS[miner].format(depth=asked.depth)
            (folder / "study.toml").write_text(study)
            cost = measured(folder, "study.toml", folder / f"out-{engine}")
            results = json.loads((folder / f"out-{engine}" / "results.json").read_text())
            yield engine, cost, json.dumps(results["results"], sort_keys=True)


if __name__ == "__main__":
    main()
