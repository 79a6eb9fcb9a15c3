"""What a release costs: seeded, one by one and together, wherever it stands; and a private run beside a seeded one.

Counting three rows takes no time, so that the rest is what the framework adds: the charge, the gate, the draw.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dpframework as dpf
from dpframework.accountant import PureAccountant
from dpframework.mechanisms import DiscreteLaplace
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.run.gate import Gate

RELEASES = 4_000
ROWS = 2_000  # of the table that dp-id3 is run on
TWO_CELLS = dpf.Schema([dpf.Boolean("ill")])


def opened() -> dpf.PrivateTable:
    """Return a table of three rows, of which two cells may be counted many times."""
    study = dpf.Study(TWO_CELLS, epsilon=10**9)
    counts = dpf.queries.Histogram(TWO_CELLS["ill"])
    study.add_plan("counts", dpf.repeat(RELEASES, dpf.step("n", counts, DiscreteLaplace(1))))
    run, engine = PureAccountant("add-or-remove-one").open(study.plan()), dpf.InMemory()
    rows = engine.load(dpf.Table.from_codes(TWO_CELLS, [[0, 1, 1]]))
    return dpf.PrivateTable(TWO_CELLS, rows, run.scope(), Gate(engine, SeededRandomness(0))).scope("counts")


def taken(function: Callable[..., Any], *given: Any, **named: Any) -> float:
    """Return the CPU seconds of a call."""
    before = time.process_time()
    function(*given, **named)
    return time.process_time() - before


def one_by_one(table: dpf.PrivateTable, number: int) -> None:
    """Make releases in turn."""
    for _ in range(number):
        table.release("n")


def releases(repeats: int) -> None:
    """Print the least time of a release: of the first and the last tenth of a sequence, and of all together."""
    tenth = RELEASES // 10
    first, last, alone, together = [], [], [], []
    for _ in range(repeats):
        table = opened()
        parts = [taken(one_by_one, table, tenth) for _ in range(10)]
        first.append(parts[0])
        last.append(parts[-1])
        alone.append(sum(parts))
        table = opened()
        together.append(taken(table.release_many, [(table, "n", {})] * RELEASES))
    for what, seconds, number in (
        ("one by one, the first tenth", first, tenth),
        ("one by one, the last tenth", last, tenth),
        ("one by one, all", alone, RELEASES),
        ("together", together, RELEASES),
    ):
        print(f"{what:28} {min(seconds) / number * 1e6:6.1f} microseconds a release  {min(seconds):.3f} s")


def grown(repeats: int) -> None:
    """Print the least time of dp-id3 at depth 5, seeded and private, in turn."""
    rng = np.random.default_rng(0)
    attributes = [dpf.Categorical(f"a{k}", [str(v) for v in range(4)]) for k in range(8)]
    schema = dpf.Schema([*attributes, dpf.Numeric("n", 0, 100, bins=16), dpf.Boolean("c")])
    codes = [*rng.integers(0, 4, (8, ROWS)), rng.integers(0, 16, ROWS), rng.integers(0, 2, ROWS)]
    table = dpf.Table.from_codes(schema, codes)
    study = dpf.Study(schema, epsilon=1)
    study.add("tree", dpf.miner("dp-id3", target="c", max_depth=5, epsilon=1))
    study.run(table)  # compiles, and imports OpenDP
    seconds: dict[int | None, list[float]] = {0: [], None: []}
    for _ in range(repeats):
        for seed, own in seconds.items():
            own.append(taken(study.run, table, seed=seed))
    seeded, private = min(seconds[0]), min(seconds[None])
    print(f"dp-id3, depth 5, {ROWS} rows: seeded {seeded * 1e3:.0f} ms, private {private * 1e3:.0f} ms")
    print(f"private over seeded: {private / seeded:.2f}")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    releases(repeats)
    grown(repeats)


if __name__ == "__main__":
    main()
