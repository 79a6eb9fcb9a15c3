"""How processor time grows with labels, attributes, candidates, steps, units, parts and rows: the exponent of each.

    python tests/benchmarks/growth.py                       # all, about two minutes of a processor
    python tests/benchmarks/growth.py --only labels units   # some

Each work is done at several sizes in one process, and the least of a few rounds counts. The exponent is that of the
last step, log(ratio of times) / log(ratio of sizes), so that fixed costs hardly count. Where work should be linear, an
exponent above 1.2 is a FAIL and the command exits with 1. Where it cannot be, one of .2 above that of the work is: 2
for pairs of attributes, 3 for a fit that solves for all coefficients.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import attrs
import numpy as np

import dpframework as dpf
from dpframework.mechanisms.randomness import Noise, Samplers, SystemRandomness

ROWS = 10_000
ROUNDS = 3
MARGIN = 0.2  # of an exponent
LEAST = 0.02  # seconds: what is faster is repeated

Work = Callable[[], object]


@attrs.frozen
class Case:
    """Some work at several sizes.

    Attributes
    ----------
    of
        What grows.
    name
        The work.
    sizes
        The sizes, each larger than the one before.
    prepare
        Returns what is timed at a size.
    power
        The exponent that the work has by its nature: 1 where each is looked at once.
    """

    of: str
    name: str
    sizes: tuple[int, ...]
    prepare: Callable[[int], Work]
    power: int = 1


def table_of(schema: dpf.Schema, rows: int) -> dpf.Table:
    """Return a table of random rows."""
    rng = np.random.default_rng(0)
    return dpf.Table.from_codes(schema, [rng.integers(0, attribute.size, rows) for attribute in schema])


def labelled(size: int) -> dpf.Table:
    """Return a table with an attribute of so many labels, and a class."""
    labels = [f"label {k}" for k in range(size)]
    return table_of(dpf.Schema([dpf.Categorical("a", labels), dpf.Boolean("y")], max_rows=10 * ROWS), ROWS)


def wide(size: int, rows: int = ROWS) -> dpf.Table:
    """Return a table of so many attributes of four labels, and a class."""
    given = [dpf.Categorical(f"a{k}", list("abcd")) for k in range(size)]
    return table_of(dpf.Schema([*given, dpf.Boolean("y")], max_rows=10 * rows), rows)


def run_of(miner: str, table: dpf.Table, **parameters: object) -> Work:
    """Return a whole seeded study of a miner: plan, check and run."""
    return partial(_run, miner, table, parameters)


def _run(miner: str, table: dpf.Table, parameters: dict[str, object]) -> object:
    study = dpf.Study(table.schema, epsilon=1)
    study.add("it", dpf.miner(miner, epsilon=1, **parameters))
    return study.run(table, seed=1)


def planned(nodes: Callable[[], dpf.Node], schema: dpf.Schema) -> Work:
    """Return the planning, the check and the total of what `nodes` builds."""

    def work() -> object:
        study = dpf.Study(schema, epsilon=10**6)
        study.add_plan("all", nodes())
        plan = study.plan()
        plan.check()
        return plan.total()

    return work


def steps_of(size: int) -> tuple[Callable[[], dpf.Node], dpf.Schema]:
    """Return a sequence of so many counts, and its schema."""
    schema = dpf.Schema([dpf.Boolean("y")], max_rows=10 * ROWS)
    query, noise = dpf.queries.Histogram(schema["y"]), dpf.mechanisms.DiscreteLaplace(1)
    return lambda: dpf.sequential(*(dpf.step(f"s{k}", query, noise) for k in range(size))), schema


def parts_of(size: int) -> tuple[Callable[[], dpf.Node], dpf.Schema]:
    """Return a plan with so many different parts in parallel, and its schema."""
    schema = dpf.Schema([dpf.Categorical("a", [f"label {k}" for k in range(size)]), dpf.Boolean("y")], max_rows=ROWS)
    query, noise = dpf.queries.Histogram(schema["y"]), dpf.mechanisms.DiscreteLaplace(1)
    part = dpf.step("s", query, noise)
    return lambda: dpf.parallel(*(attrs.evolve(part) for _ in range(size)), by=schema["a"], name="parts"), schema


def made(nodes: Callable[[], dpf.Node], schema: dpf.Schema) -> Work:
    """Return a whole seeded run of what `nodes` builds, without its planning."""
    study = dpf.Study(schema, epsilon=10**6)
    study.add_plan("all", nodes())
    return partial(study.prepare().make, table_of(schema, ROWS), seed=1)


def bounded(size: int) -> Work:
    """Return the run of a count of people with five rows each, of which two are used."""
    schema = dpf.Schema([dpf.Boolean("y")], max_rows=10**8)
    people = np.repeat(np.arange(size), 5)
    frame = {"pid": people, "y": np.tile([0, 1, 1, 0, 1], size)}
    study = dpf.Study(schema, epsilon=1, unit="pid", rows_per_unit=2)
    study.add("it", dpf.miner("histogram", epsilon=1, attribute="y"))
    return lambda: study.run(dpf.table_from_columns(frame, schema, unit=dpf.PrivacyUnit("pid", 2)), seed=1)


def chosen(noise: Noise, size: int) -> Work:
    """Return a private choice among so many candidates."""
    scores = np.random.default_rng(0).integers(0, 1_000, size)
    return partial(SystemRandomness(Samplers.ARRAYS).noisy_max, scores, 200.0, noise)


def marginals(size: int) -> Work:
    """Return the planning and the check of all pairs of so many attributes."""
    schema = wide(size, 1).schema
    return lambda: _planned_miner(schema, "marginals", order=2)


def _planned_miner(schema: dpf.Schema, miner: str, **parameters: object) -> object:
    study = dpf.Study(schema, epsilon=1)
    study.add("it", dpf.miner(miner, epsilon=1, **parameters))
    return study.plan().check()


def cases() -> Iterator[Case]:
    """Yield all."""
    yield Case(
        "labels", "histogram", (4_000, 16_000, 64_000), lambda n: run_of("histogram", labelled(n), attribute="a")
    )
    yield Case(
        "labels",
        "dp-id3, root",
        (4_000, 16_000, 64_000),
        lambda n: run_of("dp-id3", labelled(n), target="y", max_depth=1),
    )
    yield Case("labels", "dp-additive", (200, 800), lambda n: run_of("dp-additive", labelled(n), target="y"), power=3)
    yield Case("attributes", "dp-id3", (50, 200, 800), lambda n: run_of("dp-id3", wide(n), target="y", max_depth=3))
    yield Case("attributes", "dp-classifier", (50, 200, 800), lambda n: run_of("dp-classifier", wide(n), target="y"))
    yield Case(
        "attributes", "dp-additive", (50, 100, 200), lambda n: run_of("dp-additive", wide(n), target="y"), power=3
    )
    yield Case("attributes", "dp-dilca (pairs)", (10, 20, 40), lambda n: run_of("dp-dilca", wide(n)), power=2)
    yield Case("attributes", "marginals, plan (pairs)", (20, 40, 80), marginals, power=2)
    for noise in (Noise.EXPONENTIAL, Noise.GUMBEL):
        yield Case("candidates", f"choice, {noise.value}", (10**4, 10**5, 10**6), partial(chosen, noise))
    yield Case("steps", "plan, check, total", (100, 400, 1_600), lambda n: planned(*steps_of(n)))
    yield Case("steps", "run", (100, 400, 1_600), lambda n: made(*steps_of(n)))
    yield Case("parts", "plan, check, total", (100, 400, 1_600), lambda n: planned(*parts_of(n)))
    yield Case("parts", "run", (100, 400, 1_600), lambda n: made(*parts_of(n)))
    yield Case("units", "bounding and a histogram", (10**4, 10**5, 10**6), bounded)
    for miner, parameters in (
        ("dp-id3", {"target": "y", "max_depth": 5}),
        ("dp-tree", {"target": "y", "max_depth": 2}),
        ("dp-classifier", {"target": "y"}),
        ("dp-dilca", {}),
    ):
        yield Case("rows", miner, (10**5, 10**6), lambda n, m=miner, p=parameters: run_of(m, wide(10, n), **p))


def seconds(work: Work) -> float:
    """Return the fewest processor seconds that some work took, of a few rounds."""
    found = []
    for _ in range(ROUNDS):
        gc.collect()
        calls, began = 0, time.process_time()
        while (taken := time.process_time() - began) < LEAST:
            work()
            calls += 1
        found.append(taken / calls)
    return min(found)


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = list(dict.fromkeys(case.of for case in cases()))
    parser.add_argument("--only", nargs="+", choices=known, default=known)
    asked, failed = parser.parse_args(), 0
    print("| grows | work | sizes | seconds | exponent | at most | |\n|---|---|---|---|---|---|---|")
    for case in cases():
        if case.of not in asked.only:
            continue
        case.prepare(case.sizes[0])()  # compiles
        taken = [seconds(case.prepare(size)) for size in case.sizes]
        exponent = math.log(taken[-1] / taken[-2]) / math.log(case.sizes[-1] / case.sizes[-2])
        most = case.power + MARGIN
        failed += exponent > most
        sizes, shown = ", ".join(f"{n:,}" for n in case.sizes), ", ".join(f"{t:.3g}" for t in taken)
        verdict = "FAIL" if exponent > most else ""
        print(f"| {case.of} | {case.name} | {sizes} | {shown} | {exponent:.2f} | {most:.1f} | {verdict} |", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
