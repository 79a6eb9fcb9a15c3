"""What a command costs beside its work, and what reading and grouping cost: processor seconds as ratios in one run.

    python tests/benchmarks/fixed_costs.py                # both
    python tests/benchmarks/fixed_costs.py --rounds 9     # commands only as often as that, in turn
    python tests/benchmarks/fixed_costs.py --only reading

Commands run on a table of 1,000 rows, each in a process of its own, and are divided by `import numpy`. Tables of 10^6
rows and ten columns are read from Parquet, and each column is counted against the first one; polars reads and groups
the same file. Polars groups by values, we by bins and labels. The least of some rounds counts.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

import dpframework as dpf
from dpframework.queries import JointHistogram

ROWS = 10**6
SCHEMA = """
[[attribute]]
name = "age"
kind = "numeric"
lower = 0
upper = 100
bins = 5
[[attribute]]
name = "ill"
kind = "boolean"
"""
STUDY = """
[data]
path = "people.csv"
schema = "schema.toml"
[privacy]
epsilon = 1.0
[[step]]
name = "step"
miner = "{miner}"
epsilon = 1.0
params = {params}
"""
MINERS = {"histogram": '{ attribute = "age" }', "dp-id3": '{ target = "ill", max_depth = 3 }'}
LIBRARIES = ("numpy", "networkx, numpy", "typeguard, numpy", "typer, numpy", "networkx, typeguard, typer, numpy")
COMMANDS = {
    "--help": ["--help"],
    "plan of a histogram": ["plan", "histogram.toml"],
    "run of a histogram": ["run", "histogram.toml", "--out"],
    "run of dp-id3": ["run", "dp-id3.toml", "--out"],
}


def cpu_of(command: list[str], folder: Path) -> float:
    """Return the processor seconds of a process, which must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def costs_of_commands(rounds: int) -> dict[str, float]:
    """Return the least processor seconds of importing libraries that every plan needs, and of commands."""
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), np.random.default_rng(1)
        (folder / "schema.toml").write_text(SCHEMA)
        for miner, params in MINERS.items():
            (folder / f"{miner}.toml").write_text(STUDY.format(miner=miner, params=params))
        ages, ill = rng.integers(0, 101, 1000), rng.integers(0, 2, 1000)
        (folder / "people.csv").write_text("age,ill\n" + "".join(f"{a},{i}\n" for a, i in zip(ages, ill, strict=True)))
        found: dict[str, list[float]] = {}
        for k in range(rounds + 1):  # the first round warms what is kept on the disk
            taken = {f"import {one}": cpu_of([sys.executable, "-c", f"import {one}"], folder) for one in LIBRARIES}
            for label, words in COMMANDS.items():
                out = [f"out {label} {k}"] if words[-1] == "--out" else []
                taken[label] = cpu_of([sys.executable, "-m", "dpframework", *words, *out], folder)
            for label, seconds in taken.items():
                found.setdefault(label, []).extend([seconds] if k else [])
    return {label: min(seconds) for label, seconds in found.items()}


def commands(rounds: int) -> None:
    """Print what commands cost, as multiples of `import numpy`."""
    least = costs_of_commands(rounds)
    for label, seconds in least.items():
        print(f"{label:24} {seconds:6.3f} s  {seconds / least['import numpy']:5.2f} x", flush=True)


def tables() -> dict[str, tuple[pl.DataFrame, dpf.Schema]]:
    """Return tables of ten columns with their schemas."""
    rng = np.random.default_rng(0)
    names = [f"c{k}" for k in range(10)]
    texts = [f"value {k}" for k in range(20)]
    numbers = pl.DataFrame({name: rng.normal(50, 20, ROWS) for name in names})
    labels = pl.DataFrame({name: np.array(texts)[rng.integers(0, 20, ROWS)] for name in names})
    return {
        "numbers in 16 bins": (numbers, dpf.Schema([dpf.Numeric(name, 0, 100, bins=16) for name in names])),
        "numbers in 100 bins": (numbers, dpf.Schema([dpf.Numeric(name, 0, 100, bins=100) for name in names])),
        "20 texts": (labels, dpf.Schema([dpf.Categorical(name, texts) for name in names])),
    }


def reading_of(label: str) -> tuple[float, float]:
    """Return the seconds of reading one of the tables and counting nine pair tables, ours and polars'."""
    frame, schema = tables()[label]
    first, *others = schema.names
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "table.parquet"
        frame.write_parquet(path)

        def ours() -> None:
            engine = dpf.InMemory()
            rows = engine.load(dpf.read_table(path, schema))
            for other in others:
                engine.counts(rows, [JointHistogram([schema[other], schema[first]]).count])

        def theirs() -> None:
            read = pl.read_parquet(path)
            for other in others:
                read.group_by(other, first).len()

        return least_of(ours), least_of(theirs)


def reading() -> None:
    """Print what reading and nine pair tables cost, ours and polars'."""
    for label in tables():
        mine, polars = reading_of(label)
        print(f"{label:24} ours {mine:.2f} s, polars {polars:.2f} s  {mine / polars:5.2f} x", flush=True)


def least_of(work: Callable[[], None], rounds: int = 3) -> float:
    """Return the fewest processor seconds that some work took."""
    taken = []
    for _ in range(rounds):
        before = time.process_time()
        work()
        taken.append(time.process_time() - before)
    return min(taken)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("commands", "reading"))
    asked = parser.parse_args()
    if asked.only != "reading":
        commands(asked.rounds)
    if asked.only != "commands":
        reading()
