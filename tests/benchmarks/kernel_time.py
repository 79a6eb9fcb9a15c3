"""What counting costs a row and attribute, beside a bare pass over the rows, in one process.

    python tests/benchmarks/kernel_time.py                        # 10^5, 10^6 and 10^7 rows
    python tests/benchmarks/kernel_time.py --rows 1000000 --only histogram serenade-es
    python tests/benchmarks/kernel_time.py --rows 1000000 --tens 10 --only histogram joint dp-id3    # 100 attributes

Nanoseconds of CPU time, the least of two, and MiB by which the process grew beyond what it held before. Tables have
ten attributes: four numeric in 16 bins in the left view; four of six texts and two boolean in the right one, which
follow the left ones half of the time. A bare pass is numba's
fastest histogram of one attribute, with four tables and no index. Miners are seeded, and run as a study is run, plan
and result included: compare them with the passes that their work needs, which the last column names.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from dpframework_distance import DPDilca
from dpframework_greedy import SerenadeES
from dpframework_trees import DPID3, DPTree
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.queries import Histogram, JointHistogram

COLOURS = ("red", "green", "blue", "cyan", "pink", "grey")
MINERS: dict[str, tuple[dpf.Miner, str]] = {
    "dp-id3, depth 3": (DPID3(target="b0", epsilon=1, max_depth=3), "3 passes, 3 splits"),
    "dp-id3, depth 5": (DPID3(target="b0", epsilon=1, max_depth=5), "5 passes, 5 splits"),
    "dp-tree, exact, depth 2": (DPTree(target="b0", epsilon=1, max_depth=2), "pairs of tests"),
    "dp-tree, exact, depth 3": (DPTree(target="b0", epsilon=1, max_depth=3), "triples of tests"),
    "dp-tree, mcmc, depth 5": (DPTree(target="b0", epsilon=1, max_depth=5, sampler="mcmc"), "10,000 steps"),
    "dp-dilca, mean-su": (DPDilca(epsilon=1, context="mean-su"), "45 pairs"),
    "dp-dilca, max-relevance": (DPDilca(epsilon=1, context="max-relevance"), "45 pairs"),
    "dp-dilca, max-dependency": (DPDilca(epsilon=1, context="max-dependency"), "120 triples, 45 pairs"),
    "serenade-es, epsilon 1": (SerenadeES(epsilon=1), "20 choices"),
    "serenade-es, epsilon 10": (SerenadeES(epsilon=10), "20 choices"),
}


def schema(tens: int) -> dpf.Schema:
    """Return the schema of ten attributes or more."""
    return dpf.Schema(
        [
            *(dpf.Numeric(f"n{k}", 0, 100, bins=16, view="left") for k in range(4 * tens)),
            *(dpf.Categorical(f"c{k}", COLOURS, view="right") for k in range(4 * tens)),
            *(dpf.Boolean(f"b{k}", view="right") for k in range(2 * tens)),
        ],
        max_rows=10**8,
    )


def made(rows: int, tens: int) -> dpf.Table:
    """Return a table of random rows."""
    rng = np.random.default_rng(0)
    left = [np.clip(rng.normal(8, 2.4, rows), 0, 15).astype(np.uint8) for _ in range(4 * tens)]
    right = [np.where(rng.random(rows) < 0.5, code // 3, rng.integers(0, 6, rows)).astype(np.uint8) for code in left]
    truths = [(rng.random(rows) < 0.2 + 0.1 * (code > 8)).astype(np.uint8) for code in left[: 2 * tens]]
    return dpf.Table.from_codes(schema(tens), np.stack([*left, *right, *truths]))


def bare_pass() -> Callable[[NDArray[Any]], None]:
    """Return numba's fastest histogram of one attribute."""
    from numba import njit

    @njit(nogil=True)
    def count(column: NDArray[Any]) -> Any:
        tables = np.zeros((4, 256), dtype=np.int32)
        first, second, third, fourth = tables[0], tables[1], tables[2], tables[3]
        for i in range(0, len(column) - 3, 4):
            first[column[i]] += 1
            second[column[i + 1]] += 1
            third[column[i + 2]] += 1
            fourth[column[i + 3]] += 1
        return tables

    return count


def least(function: Callable[[], Any], times: int = 3) -> float:
    """Return the least CPU seconds."""
    seconds = []
    for _ in range(times):
        began = time.process_time()
        function()
        seconds.append(time.process_time() - began)
    return min(seconds)


def grown(function: Callable[[], Any]) -> int:
    """Return by how many MiB the process grows at most while a function runs (Linux)."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")

    def peak() -> int:
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))

    reset.write_text("5")
    before = peak()
    function()
    return (peak() - before) >> 10


def mined(miner: Any, table: dpf.Table) -> None:
    """Plan, check and run, seeded."""
    study = dpf.Study(table.schema, epsilon=miner.epsilon, allow=["mcmc-converged"])
    study.add("mined", miner)
    study.run(table, seed=1)


def main() -> None:
    """Read the command line, and print a line a measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--tens", type=int, default=1, help="ten attributes times this")
    parser.add_argument("--only", nargs="+", default=[""], help="what is measured: beginnings of names")
    asked = parser.parse_args()
    small, bare = made(1000, asked.tens), bare_pass()
    among = small.schema
    histograms = [Histogram(attribute) for attribute in among]
    joint = JointHistogram([among["n0"], among["c0"], among["b0"]])
    print(f"{'rows':>9}  {'work':<25} {'ns':>7}  {'bare passes':>11}  {'MiB':>4}  needs")
    for rows in asked.rows:
        table, engine = made(rows, asked.tens), dpf.InMemory()
        held = engine.load(table)
        bare(table.codes[0])
        one = least(lambda: [bare(column) for column in table.codes], 5) / rows / len(among) * 1e9  # noqa: B023
        works: dict[str, tuple[Callable[[], Any], int, str]] = {
            "histogram": (lambda: [h.evaluate(engine, held) for h in histograms], len(among), "1 pass"),  # noqa: B023
            "joint histogram of three": (lambda: joint.evaluate(engine, held), 3, "1 pass"),  # noqa: B023
        }
        for name, (miner, needs) in MINERS.items():
            works[name] = (lambda miner=miner: mined(miner, table)), len(among), needs  # noqa: B023
        print(f"{rows:>9}  {'bare pass':<25} {one:>7.2f}")
        for name, (work, attributes, needs) in works.items():
            if name.startswith(tuple(asked.only)):
                if name in MINERS:
                    mined(MINERS[name][0], small)  # compiled
                more, found = grown(work), least(work, 2) / rows / attributes * 1e9
                print(f"{rows:>9}  {name:<25} {found:>7.2f}  {found / one:>11.1f}  {more:>4}  {needs}", flush=True)


if __name__ == "__main__":
    main()
