"""What a study of one tree costs as its table grows: CPU seconds and memory of the whole process.

    python tests/benchmarks/large_tables.py                       # 10^5, 10^6 and 10^7 rows
    python tests/benchmarks/large_tables.py --rows 100000000 --files 20 --engines mapped --kinds parquet

Each line is a process of its own: `dpframework run` of `dp-id3` on ten attributes (four numeric in 16 bins, four of six
texts, two boolean). Memory counts the pages of a mapped file that the system has kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl

import dpframework as dpf

COLOURS = ("red", "green", "blue", "cyan", "pink", "grey")
SCHEMA = dpf.Schema(
    [
        *(dpf.Numeric(f"n{k}", 0, 100, bins=16) for k in range(4)),
        *(dpf.Categorical(f"c{k}", COLOURS) for k in range(4)),
        *(dpf.Boolean(f"b{k}") for k in range(2)),
    ]
)
STUDY = """
[data]
path = "{place}"
schema = "schema.toml"
[privacy]
epsilon = 1
[[step]]
name = "tree"
miner = "dp-id3"
epsilon = 1
params = {{ target = "b0", max_depth = {depth} }}
"""


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
    frame, path = made(rows, file), folder / f"{file}.{kind}"
    if kind == "csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)


def measured(folder: Path, engine: str) -> tuple[float, float]:
    """Run the study in a process of its own, and return its CPU seconds and its largest memory in MB."""
    command = [sys.executable, "-m", "dpframework", "run", "study.toml", "--seed", "1", "--engine", engine]
    process = subprocess.Popen([*command, "--out", f"out-{engine}"], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the study ended with status {status}")
    largest = usage.ru_maxrss / (1 << 10 if sys.platform != "darwin" else 1 << 20)
    return usage.ru_utime + usage.ru_stime, largest


def main() -> None:
    """Read the command line, and print a line a measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--kinds", nargs="+", choices=["csv", "parquet"], default=["csv", "parquet"])
    parser.add_argument("--engines", nargs="+", default=["memory", "mapped"])
    parser.add_argument("--files", type=int, default=1, help="into how many the rows are divided; a CSV is always one")
    parser.add_argument("--depth", type=int, default=3)
    asked = parser.parse_args()
    print(f"{'rows':>11}  {'file':<8}  {'engine':<8}  CPU s  MB")
    for rows in asked.rows:
        for kind in asked.kinds:
            with tempfile.TemporaryDirectory() as temporary:
                folder, files = Path(temporary), 1 if kind == "csv" else asked.files
                SCHEMA.dump(folder / "schema.toml")
                (folder / "study.toml").write_text(STUDY.format(place=f"*.{kind}", depth=asked.depth))
                with ProcessPoolExecutor(1) as other:  # a process counts the memory of the one that started it
                    list(other.map(write, [folder] * files, range(files), [kind] * files, [rows // files] * files))
                for engine in asked.engines:
                    seconds, largest = measured(folder, engine)
                    print(f"{rows:>11}  {kind:<8}  {engine:<8}  {seconds:5.1f}  {largest:5.0f}", flush=True)


if __name__ == "__main__":
    main()
