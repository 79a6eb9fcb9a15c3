"""Errors at epsilon 1 with all 40 rows of a person, with a number that a step of the plan released, and two studies.

    python tests/benchmarks/released_rows.py [--people 5000] [--runs 200]

People have 1 to 40 rows, as many as a geometric distribution says, 4 on average. Each run counts the rows with a label,
takes the mean of a number and counts it in 30 bins. The errors are those of the exact numbers of all rows: what is lost
with rows that are left out is in them. The number of rows costs 0.1 of the epsilon, and is to be enough for 95 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import dpframework as dpf

MOST, OF_NUMBER = 40, "0.1"
SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("cost", 0, 300, bins=30)])
COUNTED = dpf.Schema([dpf.Boolean("ill")], derive=[dpf.derive("rows", "count()", per="unit", upper=MOST)])
STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "ill": ("count", {"where": {"equals": ["ill", "true"]}}),
    "mean": ("mean", {"attribute": "cost"}),
    "bins": ("histogram", {"attribute": "cost"}),
}


def made(people: int) -> pl.DataFrame:
    """Return made-up people's rows, in any order."""
    rng = np.random.default_rng(7)
    sizes = np.minimum(rng.geometric(0.25, people), MOST)
    sizes[0] = MOST
    rows = int(sizes.sum())
    columns = {
        "person": np.repeat(np.arange(people), sizes),
        "ill": rng.random(rows) < 0.2,
        "cost": rng.gamma(2, 30, rows).clip(0, 300),
    }
    return pl.DataFrame(columns).sample(fraction=1, shuffle=True, seed=1)


class Errors:
    """The errors of studies of one table."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame, self.tables = frame, dict[Any, dpf.Table]()
        self.ill, self.mean = float(frame["ill"].sum()), float(frame["cost"].mean())  # type: ignore[arg-type]
        self.bins = np.histogram(frame["cost"].to_numpy(), bins=30, range=(0, 300))[0]

    def table(self, schema: dpf.Schema, unit: Any) -> dpf.Table:
        """Return the table of a unit, read once."""
        if (schema.fingerprint, unit) not in self.tables:
            self.tables[schema.fingerprint, unit] = dpf.table_from_frame(self.frame, schema, unit=unit, key=b"k")
        return self.tables[schema.fingerprint, unit]

    def of(self, study: dpf.Study, epsilon: str, seed: int, **more: Any) -> tuple[list[float], Any]:
        """Return the errors of the three steps, with an epsilon each, and all results."""
        for name, (miner, parameters) in STEPS.items():
            study.add(name, dpf.miner(miner, **parameters, **more, epsilon=epsilon))
        found = study.run(self.table(SCHEMA, study.unit), seed=seed)
        bins = np.abs(np.asarray(found["bins"].counts, dtype=float) - self.bins).mean()
        return [abs(found["ill"].value - self.ill), abs(found["mean"].value - self.mean), float(bins)], found

    def all_rows(self, seed: int) -> tuple[list[float], int]:
        """Keep all rows."""
        study = dpf.Study(SCHEMA, epsilon=1, unit="person", rows_per_unit=MOST)
        return self.of(study, "1/3", seed)[0], MOST

    def one_plan(self, seed: int) -> tuple[list[float], int]:
        """Release the number of rows in the same plan."""
        study = dpf.Study(SCHEMA, epsilon=1, unit="person", rows_per_unit=MOST)
        study.add("most", dpf.miner("rows-per-unit", epsilon=OF_NUMBER))
        errors, found = self.of(study, "0.3", seed, rows_per_unit="most")
        return errors, found["most"].rows

    def two_studies(self, seed: int) -> tuple[list[float], int]:
        """Find the number of rows by a first study, and read the table again."""
        first = dpf.Study(COUNTED, epsilon=OF_NUMBER, unit="person")
        first.add("rows", dpf.miner("quantile", attribute="rows", quantile="0.95", epsilon=OF_NUMBER))
        most = max(1, round(first.run(self.table(COUNTED, first.unit), seed=seed)["rows"].value))
        second = dpf.Study(SCHEMA, epsilon="0.9", unit="person", rows_per_unit=most)
        return self.of(second, "0.3", seed)[0], most


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    errors = Errors(made(options.people))
    ways: dict[str, Callable[[int], tuple[list[float], int]]] = {
        "all rows": errors.all_rows,
        "one plan": errors.one_plan,
        "two studies": errors.two_studies,
    }
    print("              rows kept    count    mean      bin")
    for name, way in ways.items():
        found = [way(seed) for seed in range(options.runs)]
        kept, (ill, mean, bins) = [k for _, k in found], np.mean([own for own, _ in found], axis=0)
        print(f"{name:12}  {min(kept):3} to {max(kept):2}  {ill:7.1f}  {mean:6.3f}  {bins:7.1f}")


if __name__ == "__main__":
    main()
