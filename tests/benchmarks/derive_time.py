"""CPU time of reading a table with derived columns beside that of reading the same columns alone.

    python tests/benchmarks/derive_time.py [--rows 1000000]

The table has 8 columns. Twelve derived ones use every kind of operation, and four are looked up in public tables. Then
the rows of people, of whom each has 10 on average, are made one row per person by all nine aggregates. That is compared
with reading the same columns for people with at most 10 rows each. `ratio` is to stay below 1.5. Times are CPU seconds
of all threads.
"""

from __future__ import annotations

import argparse
import functools
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

import dpframework as dpf

COLUMNS = [
    dpf.Numeric("weight", 30, 200, bins=17),
    dpf.Numeric("height", 120, 220, bins=10),
    dpf.Numeric("age", 0, 120, bins=12),
    dpf.Numeric("born", -40_000, 20_000, bins=12),
    dpf.Categorical("sex", ["f", "m", "x"], missing=True),
    dpf.Categorical("region", [f"region {k}" for k in range(16)]),
    dpf.Boolean("smokes"),
    dpf.Boolean("ill", missing=True),
]
READ = {"columns": {"born": {"date": ["iso"], "date_unit": "days"}}}
DERIVED = [
    dpf.derive("bmi", "weight / (height / 100) ** 2", lower=10, upper=60, bins=10),
    dpf.derive("obese", "bmi >= 30"),
    dpf.derive("risk", "obese and (smokes or age > 60)"),
    dpf.derive("band", "cut(age, [18, 40, 65], ['child', 'young', 'middle', 'old'])"),
    dpf.derive("group", "sex + '-' + text(smokes)"),
    dpf.derive("decade", "year(born) // 10 * 10"),
    dpf.derive("month", "month(born)"),
    dpf.derive("north", "region in ['region 1', 'region 3', 'region 5']"),
    dpf.derive("symptoms", "smokes + fill(ill, false) + obese"),
    dpf.derive("known", "not missing(sex) and not missing(ill)"),
    dpf.derive("kind", "'adult' if age >= 18 else region"),
    dpf.derive("excess", "max(weight - (height - 100), 0)"),
]
LOOKED_UP = [
    dpf.derive("country", "region", lookup={f"region {k}": f"country {k % 4}" for k in range(16)}),
    dpf.derive("income", "region", lookup={f"region {k}": 20_000 + 1_000 * k for k in range(15)}),
    dpf.derive("term", "floor(age)", lookup={str(k): k % 7 for k in range(121)}),
    dpf.derive("coast", "fill(region, 'region 1')", lookup={f"region {k}": k % 2 == 0 for k in range(16)}),
]
PEOPLE = [
    dpf.derive("visits", "count()", per="unit", upper=40),
    dpf.derive("ever_ill", "any(ill)", per="unit"),
    dpf.derive("smoked_always", "all(smokes)", per="unit"),
    dpf.derive("years", "sum(age)", per="unit", upper=4_000),
    dpf.derive("lightest", "min(weight)", per="unit"),
    dpf.derive("tallest", "max(height)", per="unit"),
    dpf.derive("began", "first(region)", per="unit"),
    dpf.derive("ended", "last(region, born)", per="unit"),
    dpf.derive("mostly", "mode(sex)", per="unit"),
]
UNIT = dpf.PrivacyUnit("person", 10)


def made(rows: int) -> pl.DataFrame:
    """Return a table of made-up people."""
    rng = np.random.default_rng(1)
    born = np.datetime64("2010-01-01") - rng.integers(0, 30_000, rows)
    return pl.DataFrame(
        {
            "person": rng.integers(0, rows // 10 + 1, rows),
            "weight": rng.normal(75, 15, rows).round(1),
            "height": rng.normal(170, 10, rows).round(1),
            "age": rng.integers(0, 100, rows),
            "born": pl.Series(born).dt.to_string("%Y-%m-%d"),
            "sex": rng.choice(["f", "m", "x"], rows),
            "region": rng.choice([f"region {k}" for k in range(16)], rows),
            "smokes": rng.random(rows) < 0.3,
            "ill": rng.random(rows) < 0.1,
        }
    )


def cpu_seconds(actions: Sequence[Callable[[], object]]) -> list[float]:
    """Return the smallest time of five of each action, all in turn, so that a busy spell slows all."""
    times = [math.inf] * len(actions)
    for _ in range(5):
        for k, action in enumerate(actions):
            begun = time.process_time()
            action()
            times[k] = min(times[k], time.process_time() - begun)
    return times


def main() -> None:
    """Print a line for each kind of file and number of derived columns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    sets = {"none": [], "1": DERIVED[:1], "4": DERIVED[:4], "12": DERIVED, "4 looked up": LOOKED_UP}
    schemas = [dpf.Schema(COLUMNS, read=READ, derive=derived) for derived in sets.values()]
    people, one = dpf.Schema(COLUMNS, read=READ, derive=PEOPLE), dpf.PrivacyUnit("person")
    with tempfile.TemporaryDirectory() as folder:
        csv, parquet = Path(folder, "people.csv"), Path(folder, "people.parquet")
        made(rows).write_csv(csv)
        made(rows).write_parquet(parquet)
        print("file            derived       time    ratio")
        for file in (csv, parquet):
            times = cpu_seconds([functools.partial(dpf.read_table, file, schema, values=[]) for schema in schemas])
            for name, taken in zip(sets, times, strict=True):
                print(f"{file.name:14}  {name:12}  {taken:.2f} s  {taken / times[0]:.2f}")
            reading = functools.partial(dpf.read_table, file, schemas[0], values=[], unit=UNIT)
            making = functools.partial(dpf.read_table, file, people, values=[], unit=one)
            times = cpu_seconds([reading, making])
            for name, taken in zip(("of people", "9 of people"), times, strict=True):
                print(f"{file.name:14}  {name:12}  {taken:.2f} s  {taken / times[0]:.2f}")


if __name__ == "__main__":
    main()
