"""Tables 7 and 8 of the paper: contexts of two attributes of Adult, and the order of the distances of one. Not private.

    python adult_contexts.py                 # prints the two tables
    python adult_contexts.py --out FOLDER    # writes them into a folder, which is made
    python adult_contexts.py --commit        # writes them into results/ and onto the page

It takes --runs (30), and reads DPFRAMEWORK_DATA/adult/adult.csv. Epsilon is 0.5: of the choice of a context in the
first table, of contexts and histograms of one attribute in the second.
"""

from __future__ import annotations

import collections
import itertools
import os
from pathlib import Path

import numpy as np
import polars as pl

import dpframework as dpf
from dpframework.lab.experiment.user_functions import Code

FOLDER = Path(__file__).parent
PAPER = {
    ("age", "mean-su"): "marital-status, relationship, hours-per-week",
    ("age", "max-relevance"): "marital-status, relationship, hours-per-week",
    ("age", "max-dependency"): "marital-status, education, occupation",
    ("race", "mean-su"): "native-country",
    ("race", "max-relevance"): "native-country, marital-status, relationship",
    ("race", "max-dependency"): "native-country, relationship, occupation",
}
SETTINGS = {"published settings": "published", "dp-dilca": "default"}
RUNS, SEED, EPSILON = 30, 2021, 0.5


def adult() -> dpf.Table:
    """Return the rows of Adult as in the other experiments."""
    path = str(Path(os.environ["DPFRAMEWORK_DATA"]) / "adult" / "adult.csv")
    table: dpf.Table = Code("generators.py:as_published", FOLDER).load()(path=path, label="income", seed=0)
    return table


def contexts(table: dpf.Table, runs: int) -> pl.DataFrame:
    """Return the paper's contexts, ours without privacy, and what private runs select, by attribute and kind."""
    not_private, private = (Code(f"learning.py:{name}", FOLDER).load() for name in ("not_private", "private"))
    lines = []
    for (target, context), printed in PAPER.items():
        of = {"context": context, "target": target}
        exact = not_private(table, seed=0, **of)[target].context
        line = {"attribute": target, "context": context, "paper, not private": printed, "not private": ", ".join(exact)}
        for name, settings in SETTINGS.items():
            chosen = collections.Counter[frozenset[str]]()
            for run in range(runs):
                at = {"seed": SEED + run, "epsilon": EPSILON, "for_contexts": True}
                chosen[frozenset(private(table, settings=settings, **at, **of)[target].context)] += 1
            mean = sum(len(one) * times for one, times in chosen.items()) / runs
            line[f"{name}: the same"] = f"{chosen[frozenset(exact)] / runs:.0%}"
            line[f"{name}: attributes"] = f"{mean:.1f}"
        lines.append(line)
    return pl.DataFrame(lines)


def ranks(table: dpf.Table, runs: int) -> pl.DataFrame:
    """Return how the private distances of "age" are ordered beside those without privacy.

    Columns: the share of runs with the same order, and the median and largest number of swaps of two distances that are
    next to each other; and whether d(a, b) < d(a, c) for all values a < b < c without privacy.
    """
    not_private, private = (Code(f"learning.py:{name}", FOLDER).load() for name in ("not_private", "private"))
    lines = []
    for context in ("mean-su", "max-relevance", "max-dependency"):
        exact = not_private(table, seed=0, context=context, target="age")["age"].matrix
        for name, settings in SETTINGS.items():
            at = {"epsilon": EPSILON, "settings": settings, "context": context, "target": "age"}
            found = [private(table, seed=SEED + run, **at)["age"].matrix for run in range(runs)]
            counted = [swaps(exact, one) for one in found]
            ordered = all(exact[a, b] < exact[a, c] for a, b, c in itertools.combinations(range(len(exact)), 3))
            of = {"context": context, "settings": name, "the same order": f"{counted.count(0) / runs:.0%}"}
            of |= {"median swaps": f"{np.median(counted):g}", "most swaps": str(max(counted))}
            lines.append(of | {"in the order of ages, not private": "yes" if ordered else "no"})
    return pl.DataFrame(lines)


def swaps(one: np.ndarray, other: np.ndarray) -> int:
    """Return how many swaps of neighbours bring the distances of one matrix into the order of the other's.

    Examples
    --------
    >>> swaps(np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0]]), np.array([[0, 2, 1], [2, 0, 3], [1, 3, 0]]))
    1
    """
    above = np.triu_indices(len(one), 1)
    pairs = itertools.combinations(zip(one[above], other[above], strict=True), 2)
    return sum(1 for (a, b), (c, d) in pairs if (a - c) * (b - d) < 0)


def main(arguments: list[str] | None = None) -> None:
    """Compute both tables, then write them."""
    given = Code("table_files.py:asked_runs", FOLDER.parent).load()(__doc__, RUNS, "adult/", arguments)
    table = adult()
    tables = {"tables-7-8": contexts(table, given.runs), "order-of-age": ranks(table, given.runs)}
    Code("table_files.py:write_tables", FOLDER.parent).load()(tables, {}, given.out, given.commit, FOLDER)


if __name__ == "__main__":
    main()
