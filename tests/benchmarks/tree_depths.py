"""Accuracy of dp-id3 by depth on few rows: what its default depth follows from.

    python tests/benchmarks/tree_depths.py

Six seeded runs on 1,728 rows of Nursery and Mushroom; accuracy on 4,000 other rows. `-` is the most common class.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from benchmark_tasks import default_data
from classifier_tasks import part, read_task

import dpframework as dpf

ROWS, OTHERS = 1_728, 4_000
DEPTHS = range(1, 6)


def accuracies(data: Path, name: str, epsilon: str, seeds: range) -> list[float]:
    """Return the mean accuracy of each depth, and the share of the most common class."""
    table, target = read_task(data, name)
    found = []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(table.codes.shape[1])
        train, test = part(table, order[:ROWS]), part(table, order[ROWS : ROWS + OTHERS])
        truth = np.asarray(test.schema[target].labels, dtype=object)[test.codes[test.schema.index(target)]]
        shares = [float(np.mean(truth == label)) for label in test.schema[target].labels]
        row = []
        for depth in DEPTHS:
            study = dpf.Study(train.schema, epsilon=epsilon)
            study.add("tree", dpf.miner("dp-id3", target=target, max_depth=depth, epsilon=epsilon))
            tree = study.run(train, seed=seed)["tree"].tree
            row.append(float(np.mean(np.asarray(tree.predict(test), dtype=object) == truth)))
        found.append([*row, max(shares)])
    return [float(mean) for mean in np.mean(found, axis=0)]


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--seeds", type=int, default=6)
    given = parser.parse_args()
    for epsilon in ("0.05", "0.1", "0.3", "1"):
        for name in ("nursery", "mushroom"):
            *by_depth, common = accuracies(given.data, name, epsilon, range(given.seeds))
            shown = " ".join(f"{mean:.2f}" for mean in by_depth)
            print(f"{float(epsilon) * ROWS:7,.0f} rows times epsilon, {name}: {shown} (-: {common:.2f})", flush=True)


if __name__ == "__main__":
    main()
