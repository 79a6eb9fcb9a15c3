"""Which way wins at equal epsilon, a miner on the rows or on a synthetic table: not private, since it tests on rows.

    python tests/benchmarks/mine_synthetic_rows.py --tables adult nltcs --epsilon 0.1 1 --seeds 2

Measured is the area under the ROC curve on a fifth of the rows, which no method sees, of

- own: `dp-classifier` with the epsilon, on the other rows;
- mined: `dp-classifier` on synthetic rows that cost the epsilon, as the plan's post-processing;
- boosted: boosted trees of scikit-learn on the same synthetic rows.

All in pure epsilon. Runs are seeded.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from benchmark_tasks import default_data
from compare_tables import TABLES, auc, rows_of
from sklearn.metrics import roc_auc_score

import dpframework as dpf
from dpframework.facts import exact


def areas(data: Path, name: str, epsilon: float, seed: int) -> tuple[float, float, float]:
    """Return the three areas."""
    schema, seen, test, target = rows_of(data, name, seed)
    schema = dpf.Schema(list(schema), about_rows=len(seen))
    table, unseen = dpf.Table.from_codes(schema, seen.T), dpf.Table.from_codes(schema, test.T)
    label, amount = schema.names[target], exact(epsilon, "epsilon")
    study = dpf.Study(schema, epsilon=2 * amount)
    study.add("own", dpf.miner("dp-classifier", target=label, epsilon=amount))
    mined = {"model": {"miner": "dp-classifier", "target": label}}
    study.add("rows", dpf.miner("synthetic-table", epsilon=amount, miners=mined))
    found = study.run(table, seed=seed)
    rows = found["rows"]
    chances = [model.predict_proba(unseen)[:, 1] for model in (found["own"], rows.finding("model"))]
    own, of_rows = (float(roc_auc_score(test[:, target], one)) for one in chances)
    boosted = auc(rows.codes.astype(np.int64), test, target, [a.size for a in schema])
    assert boosted is not None  # a class has two values
    return own, of_rows, boosted


def main() -> None:
    """Print a row for each table and epsilon: the means of all seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    print("| | own | mined | boosted |\n|---|---|---|---|")
    for name in given.tables:
        for epsilon in given.epsilon:
            found = np.mean([areas(given.data, name, epsilon, seed) for seed in range(given.seeds)], axis=0)
            print(f"| {name}, {epsilon:g} | " + " | ".join(f"{one:.3f}" for one in found) + " |", flush=True)


if __name__ == "__main__":
    main()
