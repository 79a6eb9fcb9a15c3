"""Which claims of the project are proved by both solvers, and at what cost; and how fast generated kernels are.

    python tests/benchmarks/formula_proofs.py                      # claims, wrong constants, 10^6 tables, kernels
    python tests/benchmarks/formula_proofs.py --only claims
    python tests/benchmarks/formula_proofs.py --only kernels --tables 1000000

Seconds are those of the processor. An entry is a formula of an example's query, or of `tests/scored_formulas.py`. An
audit asks both solvers again, and compares neighbours with the goals. Kernels score tables of one part, by the
generated code and by the code that trees run; nanoseconds a table, the least of five.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from criterion_kernels import BY_HAND
from dpframework_trees.criteria import CRITERIA, PUBLISHED_GINI
from numba import njit

from dpframework.formulas import Claim, ScoreClaims, audit, find_refutation, kernel_of, prove, scores_of, vacuous
from dpframework.plan import Step, walk
from dpframework.study.plugin_registry import registry

sys.path.insert(0, str(Path(__file__).parents[1]))
import scored_formulas as known


def entries() -> Iterator[ScoreClaims]:
    """Yield the formulas of all miners' examples, by name, then criteria of the literature and several rows."""
    for brought in registry().miners.values():
        for example in brought.component.examples().values():
            for node in walk(example.miner.plan(example.schema)):
                if isinstance(node, Step):
                    yield from node.query.scored_formulas
    yield PUBLISHED_GINI.scored
    names = ("f-measure", "f-measure with a floor", "weighted errors", "Piatetsky-Shapiro", "Jaccard with a floor")
    for name in names:
        shape, bounds = known.DERIVED[name]
        claims = [Claim(change, bound) for change, bound in zip(("rise", "fall", "replaced"), bounds, strict=True)]
        yield ScoreClaims(name, shape, tuple(claims))
    several = [Claim("fall", f"{k}/{k + 1}", group=k) for k in (2, 4)]
    yield ScoreClaims("jaccard, several rows", known.JACCARD, tuple(several))
    yield ScoreClaims("twoing", known.TWOING, tuple(Claim(*one) for one in (("rise", 1), ("fall", 1), ("replaced", 2))))
    smirnov = tuple(Claim(*one) for one in (("rise", 1), ("fall", 1), ("replaced", 1)))
    yield ScoreClaims("Kolmogorov-Smirnov", known.KOLMOGOROV_SMIRNOV, smirnov)


def show_claims() -> None:
    """Prove and audit each entry, and print a line for each."""
    started, whole, number = time.process_time(), 0, 0
    by_name = {(one.name, one.shape): one for one in entries()}
    for one in by_name.values():
        begun = time.process_time()
        proofs = prove(one.shape, one.claims)
        between = time.process_time()
        proved = [proof for proof in proofs if proof.verdict == "proved" and proof.argument is not None]
        problems = [problem for proof in proved if proof.argument for problem in audit(proof.argument)]
        empty = sum(vacuous(proof.argument) for proof in proved if proof.argument)
        ended = time.process_time()
        whole, number = whole + (len(proved) == len(proofs)), number + 1
        figures = f"{between - begun:6.2f} s  audit {ended - between:6.2f} s"
        print(
            f"{one.name:28s} {len(proved)} of {len(proofs)} proved  {figures}  vacuous {empty}  {problems or ''}",
            flush=True,
        )
    print(f"{whole} of {number} entries proved by both solvers and audited; {time.process_time() - started:.0f} s")


def show_refutations() -> None:
    """Refute each wrong constant with a table."""
    found = [find_refutation(shape, claim) for shape, claim in known.WRONG]
    print(f"{sum(one is not None for one in found)} of {len(found)} wrong constants refuted with a table")


@functools.cache
def _by_hand(criterion: str) -> Callable[..., None]:
    """Return a loop over tables with the score by hand of a criterion in it."""
    child_score = BY_HAND[criterion]

    def fill(tables: np.ndarray, scores: np.ndarray) -> None:
        for k in range(len(tables)):
            scores[k] = child_score(tables[k])

    filled: Callable[..., None] = njit(fill)
    return filled


def _least_time(run: Callable[..., Any], *given: Any) -> float:
    """Return the least processor time of five calls, in seconds."""
    times = []
    for _ in range(5):
        begun = time.process_time()
        run(*given)
        times.append(time.process_time() - begun)
    return min(times)


def show_kernels(number: int) -> None:
    """Compare values and times of generated kernels, of kernels by hand, and of the formula."""
    random = np.random.default_rng(1)
    for classes in (2, 4, 10):
        tables = random.integers(0, 10 ** random.integers(1, 6, (number, 1)), (number, classes))
        tables *= random.random(tables.shape) < 0.8
        for criterion in CRITERIA.values():
            parts, by_hand = tables[:, None, :], np.zeros(number)
            generated = scores_of(criterion.formula, parts)
            _by_hand(criterion.name)(tables, by_hand)
            scale = np.maximum(1.0, tables.sum(axis=1))
            apart = max(
                float((abs(generated - other) / scale).max()) for other in (by_hand, criterion.formula.of_parts(tables))
            )
            times = [
                _least_time(kernel_of(criterion.formula), parts, generated),
                _least_time(_by_hand(criterion.name), tables, by_hand),
            ]
            times = [one / number * 1e9 for one in times]
            figures = f"generated {times[0]:6.1f} ns, by hand {times[1]:6.1f} ns, share {times[0] / times[1]:.2f}"
            print(f"{criterion.name:18s} {classes:2d} classes: {figures}; apart by {apart:.1e} a row", flush=True)


def main() -> None:
    """Print all figures, or some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", choices=["claims", "wrong", "kernels"], default=["claims", "wrong", "kernels"]
    )
    parser.add_argument("--tables", type=int, default=10**6)
    given = parser.parse_args()
    if "claims" in given.only:
        show_claims()
    if "wrong" in given.only:
        show_refutations()
    if "kernels" in given.only:
        show_kernels(given.tables)


if __name__ == "__main__":
    main()
