"""CPU time of `schema infer` beside that of reading the same file, and that of each.

    python tests/benchmarks/infer_time.py [FILE.csv ...] [--rows 200000]

Without a file it makes one of 30 columns with labels, numbers, postcodes, decimal commas, null texts and dates. Each
time is the smallest of three, in CPU seconds of all threads.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

import dpframework as dpf


def messy_table(rows: int) -> pl.DataFrame:
    """Return a table of 30 columns as people have them."""
    rng = np.random.default_rng(1)
    columns: dict[str, object] = {
        f"label {k}": rng.choice([f"value {i}" for i in range(8 + k)], rows) for k in range(10)
    }
    columns |= {f"whole {k}": rng.integers(0, 90, rows) for k in range(6)}
    columns |= {f"real {k}": np.round(rng.normal(50, 9, rows), 3) for k in range(6)}
    columns |= {f"flag {k}": rng.random(rows) < 0.3 for k in range(3)}
    columns["postcode"] = [f"{code:05d}" for code in rng.integers(1, 90, rows)]
    for name, null in (("cost", "NULL"), ("fee", "-")):
        amounts = rng.gamma(3, 20, rows)
        columns[name] = [f"{amount:.2f}".replace(".", ",") if amount > 5 else null for amount in amounts]
    days = np.datetime64("2020-01-01") - rng.integers(0, 20_000, rows)
    columns["day"] = pl.Series(days).dt.to_string("%Y-%m-%d")
    columns["born"] = pl.Series(days).dt.to_string("%d.%m.%Y")
    return pl.DataFrame(columns)


def cpu_seconds(action: Callable[[], object]) -> float:
    """Return the smallest time of three."""
    times = []
    for _ in range(3):
        begun = time.process_time()
        action()
        times.append(time.process_time() - begun)
    return min(times)


def main() -> None:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rows", type=int, default=200_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = options.files
        if not files:
            files = [Path(folder) / "messy.csv"]
            messy_table(options.rows).write_csv(files[0])
        print("file                  read    infer   infer / read")
        for file in files:
            schema = dpf.draft_schema(file).schema
            read = cpu_seconds(lambda file=file, schema=schema: dpf.read_table(file, schema))
            infer = cpu_seconds(lambda file=file: dpf.draft_schema(file))
            print(f"{file.name:20}  {read:.2f} s  {infer:.2f} s  {infer / read:.2f}")


if __name__ == "__main__":
    main()
