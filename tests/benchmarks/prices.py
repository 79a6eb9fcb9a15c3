"""What privacy, start-up and wide tables cost, each beside what is wanted: one table of ratios and of seconds.

    python tests/benchmarks/prices.py                              # all, some ten minutes of CPU
    python tests/benchmarks/prices.py --only samplers commands     # some parts

A ratio has both its times from one process, taken in turn, the least of several; those of commands are of processes
of their own. What is run once, or may not end, runs in a process of its own too, which is stopped after `--limit`
seconds of CPU. `README.md` has what was found, and says why something is missed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from operator import methodcaller
from pathlib import Path

import attrs
import fixed_costs
import growth
import kernel_time
import numpy as np
import polars as pl
import sampler_times

import dpframework as dpf
from dpframework.mechanisms.randomness import Noise, Samplers, SeededRandomness, SystemRandomness

HERE = Path(__file__).parent
#: A study in a process of its own: it prints the CPU seconds of its run, and the most memory that it had.
ALONE = """
import sys, time
from pathlib import Path
sys.path.insert(0, {here!r})
import numpy as np
import dpframework as dpf
import growth, kernel_time, prices
table = {table}
study = dpf.Study(table.schema, epsilon={epsilon}, relation="replace-one")
began = time.process_time()
try:
    study.add("it", dpf.miner({miner!r}, epsilon={epsilon}, **{parameters!r}))
    study.plan()
except dpf.InputError as error:
    sys.exit(f"refused: {{error}}")
study.run(table, seed={seed})
taken = time.process_time() - began
(most,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(taken, int(most.split()[1]) / 1024)  # getrusage would count the process that started this one, too
"""


@attrs.frozen
class Price:
    """A line of the table.

    Attributes
    ----------
    work
        What is done.
    found
        What it costs, None if it was stopped.
    unit
        Of both numbers: "x" for a ratio.
    wanted
        At most this.
    """

    work: str
    found: float | None
    unit: str
    wanted: float

    def __str__(self) -> str:
        if self.found is None:
            return f"| {self.work} | stopped | {self.wanted:g} {self.unit} | no |"
        met = "yes" if self.found <= self.wanted else "no"
        return f"| {self.work} | {self.found:.3g} {self.unit} | {self.wanted:g} {self.unit} | {met} |"


def samplers(limit: int) -> Iterator[Price]:
    """Noise on arrays, private over seeded."""
    sources = SystemRandomness(Samplers.ARRAYS), SeededRandomness(1)
    for name in ("discrete_laplace", "discrete_gaussian"):
        for size in (1_000, 100_000, 1_000_000):
            draw = methodcaller(name, size, 40.0)
            taken = [[sampler_times.seconds(draw, source) for source in sources] for _ in range(4)]
            private, seeded = (min(each) for each in zip(*taken, strict=True))
            yield Price(f"{name.replace('_', ' ')}, {size:,} numbers, private / seeded", private / seeded, "x", 3)


def histogram(limit: int) -> Iterator[Price]:
    """A whole run of a histogram of many labels, private over seeded."""
    table = growth.labelled(100_000)
    study = dpf.Study(table.schema, epsilon=1)
    study.add("it", dpf.miner("histogram", epsilon=1, attribute="a"))
    study.run(table)
    private, seeded = (fixed_costs.least_of(partial(study.run, table, seed=seed)) for seed in (None, 1))
    yield Price("histogram of 100,000 labels, a run, private / seeded", private / seeded, "x", 3)


def choices(limit: int) -> Iterator[Price]:
    """Private choices, and the run that is made of them."""
    source = SystemRandomness(Samplers.ARRAYS)
    for size, wanted in ((100_000, 5), (1_000_000, 85)):
        for noise in (Noise.EXPONENTIAL, Noise.GUMBEL):
            scores = np.random.default_rng(0).integers(0, 1_000, size)
            choose = methodcaller("noisy_max", scores, 200.0, noise)
            taken = min(sampler_times.seconds(choose, source) for _ in range(4))
            yield Price(f"exact choice among {size:,} ({noise.value}), private", taken * 1e3, "ms", wanted)
    found = alone("kernel_time.made(10**6, 1)", "serenade-es", 10, {}, limit)
    yield Price("serenade-es at epsilon 10, 10^6 x 10", found and found[0], "s", 4)


def commands(limit: int) -> Iterator[Price]:
    """Whole commands on 1,000 rows, over `import numpy`."""
    least = fixed_costs.costs_of_commands(5)
    wanted = {"plan of a histogram": 3, "run of a histogram": 6}
    for label, seconds in least.items():
        if label != "import numpy":
            yield Price(f"{label} / import numpy", seconds / least["import numpy"], "x", wanted.get(label, 6))


def units(limit: int) -> Iterator[Price]:
    """Reading with at most 2 rows of each person, over reading."""
    rows, schema = 3 * 10**6, dpf.Schema([dpf.Boolean("y"), dpf.Numeric("age", 0, 100, bins=10)], max_rows=10**8)
    rng = np.random.default_rng(0)
    columns = {"pid": rng.integers(0, rows // 10, rows), "y": rng.random(rows) < 0.5, "age": rng.integers(0, 99, rows)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        pl.DataFrame(columns).write_csv(path)
        by_person = dpf.PrivacyUnit("pid", 2)
        bounded = fixed_costs.least_of(lambda: dpf.read_table(path, schema, unit=by_person, key=b"0" * 32))
        plain = fixed_costs.least_of(lambda: dpf.read_table(path, schema))
    yield Price("reading 3 10^6 rows of 3 10^5 people from CSV, bounded / not", bounded / plain, "x", 3)


def labels(limit: int) -> Iterator[Price]:
    """The root of a tree on an attribute of many labels."""
    taken = {}
    for size in (1_000, 10_000, 100_000):
        taken[size] = fixed_costs.least_of(
            growth.run_of("dp-id3", growth.labelled(size), target="y", max_depth=1), rounds=2
        )
    yield Price("dp-id3, root, 100,000 labels", taken[100_000], "s", 0.2)
    yield Price("dp-id3, root, 10,000 to 100,000 labels, power", np.log10(taken[100_000] / taken[10_000]), "", 1.2)


def passes(limit: int) -> Iterator[Price]:
    """A tree, in bare passes over the rows."""
    table, bare = kernel_time.made(10**6, 1), kernel_time.bare_pass()
    bare(table.codes[0])
    miner = kernel_time.MINERS["dp-id3, depth 5"][0]
    kernel_time.mined(miner, table)
    one = kernel_time.least(lambda: [bare(column) for column in table.codes], 5)
    yield Price(
        "dp-id3 of depth 5, 10^6 x 10", kernel_time.least(partial(kernel_time.mined, miner, table)) / one, "passes", 8
    )


def wide(limit: int) -> Iterator[Price]:
    """Wide tables, each in a process of its own."""
    for miner, size, parameters in (
        ("dp-tree", 1_000, {"target": "y", "sampler": "exact", "max_depth": 2}),
        ("dp-additive", 100, {"target": "y"}),
    ):
        found = alone(f"growth.wide({size}, 10**5)", miner, 1, parameters, limit)
        yield Price(f"{miner}, 10^5 x {size:,}", found and found[0], "s", 60)


def memory(limit: int) -> Iterator[Price]:
    """The most memory of a process that mines a table with many attributes and few rows."""
    bounds = {"min_support": 10, "max_support": 150}
    for miner in ("serenade-es", "matched-trees"):
        for kind, seed in (("seeded", 1), ("private", None)):
            found = alone("prices.two_views()", miner, 1, bounds, limit, seed)
            yield Price(f"{miner}, 199 rows x 313 + 52, {kind}, the process", found and found[1], "MB", 300)


def reading(limit: int) -> Iterator[Price]:
    """Reading, and counting pairs, beside polars."""
    ours, theirs = fixed_costs.reading_of("numbers in 16 bins")
    yield Price("Parquet 10^6 x 10 and nine pair tables", ours, "s", 1.2)
    yield Price("Parquet 10^6 x 10 and nine pair tables, ours / polars", ours / theirs, "x", 1.2 / 0.88)


def two_views() -> dpf.Table:
    """Return a table of few rows and many attributes."""
    left = [dpf.Boolean(f"l{k}", view="left") for k in range(313)]
    right = [dpf.Numeric(f"r{k}", 0, 100, bins=16, view="right") for k in range(52)]
    return growth.table_of(dpf.Schema([*left, *right], rows=199), 199)


def alone(
    table: str, miner: str, epsilon: int, parameters: dict[str, object], limit: int, seed: int | None = 1
) -> tuple[float, float] | None:
    """Return the CPU seconds of a run in a process of its own and its memory, None if it was stopped."""
    text = ALONE.format(here=str(HERE), table=table, miner=miner, epsilon=epsilon, parameters=parameters, seed=seed)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, preexec_fn=limited)
    if ran.returncode < 0:
        return None
    if ran.returncode:
        raise SystemExit(ran.stderr.strip().splitlines()[-1])
    seconds, megabytes = map(float, ran.stdout.split())
    return seconds, megabytes


PARTS: dict[str, Callable[[int], Iterator[Price]]] = {
    one.__name__: one for one in (samplers, histogram, choices, commands, units, labels, passes, wide, memory, reading)
}


def main() -> None:
    """Read the command line, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--limit", type=int, default=150, help="CPU seconds of a process that may not end")
    asked = parser.parse_args()
    print("| work | measured | wanted | met |")
    print("|---|---|---|---|")
    for name in asked.only:
        for price in PARTS[name](asked.limit):
            print(price, flush=True)


if __name__ == "__main__":
    main()
