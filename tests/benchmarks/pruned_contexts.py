"""Whether a pruned search finds better contexts than `max-dependency` selects from all sets at once. Not private.

    DPFRAMEWORK_DATA=FOLDER python tests/benchmarks/pruned_contexts.py --runs 10

A search that is pruned by looking at the rows has to be paid for. The one that is tried here selects the attribute that
says most of the target, then the one that says most together with it, and so on. Each of these selections has an equal
part of what `max-dependency` has for one. It counts a joint histogram for each attribute, not for each set of them.
`max-relevance` also selects one after another, but by what each says alone.

A score is minus N H(target|context). The table shows how much of what can be gained is: 0 for a random context, 1 for
the best one (beyond 64 attributes, for the best that the pruned search finds without noise), a mean over targets and
runs with twice its standard error. Epsilon is for the choice of one context of three attributes. All selections are
permute-and-flip with the tight sensitivity, as in `dp-dilca`.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from compare_dp_dilca import Data
from distance_contexts import made
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.queries import entropy_change

SIZE = 3
EPSILONS = (0.03, 0.1, 0.3, 1, 3)
TABLES = ("cmc", "mushroom", "soybean", "dermatology", "made, 20", "made, 150", "made, 400")
TARGETS, RANDOM = 8, 200  # how many are looked at
ALL_SETS = 64  # attributes up to which all sets of three are scored

Score = Callable[[Sequence[int]], float]


def read(name: str, folder: Path) -> dpf.Table:
    """Return a table of the benchmarks, or 10,000 rows of made-up attributes that depend on some before them."""
    if name.startswith("made"):
        return made(10_000, int(name.split(", ")[1]), 7)
    return Data(folder, name).table


def scores_of(table: dpf.Table, target: int) -> Score:
    """Return what scores a context of a target, and remembers the last many."""
    columns = np.ascontiguousarray(table.codes).astype(np.int64)
    sizes = [attribute.size for attribute in table.schema]

    @functools.lru_cache(maxsize=200_000)
    def known(context: tuple[int, ...]) -> float:
        group = np.zeros(columns.shape[1], dtype=np.int64)
        for k in context:
            group = np.unique(group * sizes[k] + columns[k], return_inverse=True)[1]
        both = np.bincount(group * sizes[target] + columns[target])
        return _entropies(both) - _entropies(np.bincount(group))

    return lambda context: known(tuple(sorted(context)))


def _entropies(counts: NDArray[np.int64]) -> float:
    some = counts[counts > 0]
    return float((some * np.log2(some)).sum())


def permute_and_flip(scores: NDArray[np.float64], epsilon: float, spread: float, rng: np.random.Generator) -> int:
    """Return the position that is selected, of scores that move apart by at most `spread` between neighbours."""
    best = scores.max()
    for k in rng.permutation(len(scores)):
        if rng.random() <= np.exp(epsilon * (scores[k] - best) / spread):
            return int(k)
    return int(scores.argmax())


def one_by_one(
    score: Score, others: Sequence[int], select: Callable[[NDArray[np.float64]], int], together: bool
) -> tuple[int, ...]:
    """Select attributes one after another, by what each says together with those before it, or alone."""
    chosen: tuple[int, ...] = ()
    for _ in range(SIZE):
        left = [k for k in others if k not in chosen]
        values = np.array([score((*chosen, k) if together else (k,)) for k in left])
        chosen += (left[select(values)],)
    return chosen


def measured(table: dpf.Table, runs: int) -> list[tuple[float, dict[str, NDArray[np.float64]]]]:
    """Return for each epsilon what the ways to choose gain, an entry a target and run."""
    rng = np.random.default_rng(1)
    number, rows = table.codes.shape
    targets = rng.permutation(number)[:TARGETS]
    gained: dict[float, dict[str, list[float]]] = {epsilon: {} for epsilon in EPSILONS}
    for target in targets:
        score = scores_of(table, int(target))
        others = [k for k in range(number) if k != target]
        sets = list(itertools.combinations(others, SIZE)) if number <= ALL_SETS else []
        values = np.array([score(one) for one in sets])
        least = float(np.mean([score(rng.choice(others, SIZE, replace=False)) for _ in range(RANDOM)]))
        exact = score(one_by_one(score, others, lambda v: int(v.argmax()), together=True))
        most = float(values.max()) if sets else exact
        spread = float(entropy_change(rows, 1, table.schema.attributes[target].size)) * 2  # one up, the other down
        if most - least < 1e-9:
            continue
        for epsilon, _ in itertools.product(EPSILONS, range(runs)):

            def select(given: Any, epsilon: float = epsilon / SIZE, spread: float = spread) -> int:
                return permute_and_flip(given, epsilon, spread, rng)

            found = {
                "max-relevance": score(one_by_one(score, others, select, together=False)),
                "pruned": score(one_by_one(score, others, select, together=True)),
                "pruned, exact": exact,
            }
            if sets:
                found["max-dependency"] = float(values[permute_and_flip(values, epsilon, spread, rng)])
            for name, value in found.items():
                gained[epsilon].setdefault(name, []).append((value - least) / (most - least))
    return [(epsilon, {name: np.array(of) for name, of in each.items()}) for epsilon, each in gained.items()]


def main() -> None:
    """Print a line for each table and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=TABLES)
    given = parser.parse_args()
    folder = Path(os.environ["DPFRAMEWORK_DATA"])
    ways = ("max-relevance", "pruned", "max-dependency", "pruned, exact")
    print(f"{'table':12} {'epsilon':>7} " + " ".join(f"{way:>15}" for way in ways))
    for name in given.tables:
        for epsilon, found in measured(read(name, folder), given.runs):
            line = f"{name:12} {epsilon:7}"
            for way in ways:
                of = found.get(way)
                cell = "" if of is None else f"{of.mean():.3f} ± {2 * of.std(ddof=1) / len(of) ** 0.5:.3f}"
                line += f" {cell:>15}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
