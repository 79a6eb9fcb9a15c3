"""How near the default of `synthetic-table` comes beside one-way marginals alone: not private, since it looks at rows.

    python tests/benchmarks/beside_independence.py
    python tests/benchmarks/beside_independence.py --tables skewed species --epsilon 0.1 --seeds 10

A row a table, a column an epsilon (at a delta of 1e-9): the error of `auto`, that of `independent`, and their ratio.
The error is the mean total variation of marginals of three attributes, 300 where there are more. Tables are real
ones (see `classifier_tasks.py`) and made-up ones. Independent attributes: even, skewed, narrow (three of them), binary,
many, or of many values (large). Dependent ones: a chain of few rows (short), a weak chain, one pair, and two attributes
that are each the parity of two others.
"""

from __future__ import annotations

import argparse
import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
from benchmark_tasks import default_data
from compare_tables import DELTA, Codes, largest_rho, rows_of

import dpframework as dpf

REAL = ("interactions", "species", "cmc", "teeth", "soybean", "dermatology")
SIZES = {
    "even": (20_000, [5] * 12),
    "skewed": (20_000, [2, 3, 4, 5, 6, 8, 10, 2, 3, 4, 5, 6]),
    "narrow": (3_000, [2, 4, 8]),
    "binary": (5_000, [2] * 30),
    "many": (20_000, [4] * 40),
    "large": (10_000, [30] * 6),
    "short": (400, [3] * 8),
    "weak": (10_000, [4] * 12),
    "pair": (10_000, [4] * 12),
    "parity": (10_000, [2] * 12),
}
FOLLOWS = {"short": 0.6, "weak": 0.15}  # how often an attribute has the value of the one before it
MOST = 300  # marginals that are compared


def made(name: str) -> tuple[dpf.Schema, Codes]:
    """Return a made-up table."""
    (rows, sizes), rng = SIZES[name], np.random.default_rng(7)
    skewed = {
        "skewed": lambda size: 0.5 ** np.arange(size),
        "large": lambda size: 0.8 ** np.arange(size),
        "binary": lambda size: rng.dirichlet(np.ones(size)),
        "many": lambda size: rng.dirichlet(np.ones(size)),
    }
    shares = [skewed.get(name, np.ones)(size) for size in sizes]
    codes = np.array([rng.choice(len(own), rows, p=own / own.sum()) for own in shares])
    for k in range(1, len(sizes)):
        follows = rng.random(rows) < FOLLOWS.get(name, 0)
        codes[k, follows] = codes[k - 1, follows]
    if name == "pair":
        follows = rng.random(rows) < 0.8
        codes[5, follows] = codes[2, follows]
    if name == "parity":
        codes[10], codes[11] = codes[2] ^ codes[3], codes[0] ^ codes[1]
    return dpf.Schema([dpf.Categorical(f"a{k}", list(map(str, range(size)))) for k, size in enumerate(sizes)]), codes.T


def shares_of(codes: Codes, sizes: list[int]) -> list[np.ndarray]:
    """Return marginals of three attributes, as shares of the rows."""
    sets = list(itertools.combinations(range(len(sizes)), 3))
    if len(sets) > MOST:
        sets = [sets[k] for k in np.random.default_rng(5).choice(len(sets), MOST, replace=False)]
    found = []
    for of in sets:
        shape = tuple(sizes[a] for a in of)
        cells = np.ravel_multi_index(tuple(codes[:, a].astype(int) for a in of), shape)
        found.append(np.bincount(cells, minlength=int(np.prod(shape))) / len(codes))
    return found


def error(schema: dpf.Schema, codes: Codes, method: str, epsilon: str, rho: Fraction, seed: int) -> float:
    """Return the error of a run."""
    about = round(float(f"{len(codes):.0e}"))  # nobody who says it knows more than one digit
    public = dpf.Schema(list(schema), about_rows=about)
    study = dpf.Study(public, epsilon=epsilon, delta=DELTA)
    study.add("rows", dpf.miner("synthetic-table", rho=rho, method=method))
    drawn = study.run(dpf.Table.from_codes(public, codes.T), seed=seed)["rows"].codes
    sizes = [a.size for a in schema]
    pairs = zip(shares_of(codes, sizes), shares_of(drawn, sizes), strict=True)
    return float(np.mean([np.abs(one - other).sum() / 2 for one, other in pairs]))


def main() -> None:
    """Print the table, then the largest ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--tables", nargs="+", default=(*SIZES, *REAL))
    parser.add_argument("--epsilon", nargs="+", default=("0.03", "0.1", "0.3", "1"))
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()
    print("| | " + " | ".join(given.epsilon) + " |\n" + "|---" * (len(given.epsilon) + 1) + "|")
    for name in given.tables:
        cells = []
        for epsilon in given.epsilon:
            rho, off = largest_rho(epsilon), []
            for seed in range(given.seeds):
                schema, codes = made(name) if name in SIZES else rows_of(given.data, name, seed)[:2]
                off.append([error(schema, codes, method, epsilon, rho, seed) for method in ("auto", "independent")])
            ours, alone = np.mean(off, axis=0)
            cells.append(f"{ours:.4f} / {alone:.4f} = {ours / alone:.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
