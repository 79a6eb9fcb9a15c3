"""AUC and log-loss of `dp-additive` on wide tables, by the spread that many attributes are expected to have.

    python tests/benchmarks/additive_spread.py --rules inf 150 100 75 --epsilon 0.1 1

Real tables: whether a species lives at a place, from 40 or 120 others. Made ones: as many Booleans as their name says,
with weak, correlated or few effects. `constant` is the log-loss of the share of the class alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from benchmark_tasks import default_data
from classifier_tasks import species
from compare_classifiers import FOLDS, classes_of, folds_of, measures
from dpframework_trees import DPAdditive
from dpframework_trees.additive import design, perturbation

import dpframework as dpf

ROWS = {"independent-40": 8_000, "correlated-80": 15_000, "weak-60": 20_000}


def made(kind: str) -> tuple[dpf.Table, str]:
    """Return Booleans and a class that follows from a sum of effects."""
    rng, rows, attributes = np.random.default_rng(0), ROWS[kind], int(kind.split("-")[1])
    shared = 0.0 if kind.startswith("independent") else rng.normal(size=(rows, 1))
    given = (rng.normal(size=(rows, attributes)) + shared > 0.3).astype(int)
    size = {"independent": 0.6, "correlated": 0.3, "weak": 0.12}[kind.split("-")[0]]
    score = given @ (rng.normal(size=attributes) * size * (rng.random(attributes) < 0.5))
    of_class = rng.random(rows) < 1 / (1 + np.exp(0.8 - score + score.mean()))
    names = [f"b{k}" for k in range(attributes)]
    schema = dpf.Schema([*map(dpf.Boolean, names), dpf.Boolean("y")], max_rows=100_000)
    return dpf.Table.from_codes(schema, np.vstack([given.T, of_class])), "y"


def scores(table: dpf.Table, target: str, epsilon: float, fits: int) -> dict[str, float]:
    """Return mean measures of some fits, each on four fifths of the rows."""
    folds, found = list(folds_of(table)), []
    for seed in range(fits):
        train, test = folds[seed % FOLDS]
        study = dpf.Study(train.schema, epsilon=epsilon)
        study.add("model", DPAdditive(target, epsilon))
        model = study.run(train, seed=seed)["model"]
        found.append(measures(model.predict_proba(test), classes_of(test, target)))
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def main() -> None:
    """Print a line for each table, epsilon and rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--rules", type=float, nargs="+", default=[np.inf, 150, 100, 75])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--fits", type=int, default=5)
    args = parser.parse_args()
    tables = {f"species-{n}": species(args.data, n) for n in (40, 120)} | {kind: made(kind) for kind in ROWS}
    for name, (table, target) in tables.items():
        share = float(table.codes[table.schema.index(target)].mean())
        constant = -share * np.log(share) - (1 - share) * np.log(1 - share)
        for epsilon in args.epsilon:
            for rule in args.rules:
                design.SPREAD_OF_MANY = rule
                perturbation._tune.cache_clear()
                found = scores(table, target, epsilon, args.fits)
                shown = f"auc {found['auc']:.3f}  log-loss {found['log-loss']:.3f}  constant {constant:.3f}"
                print(f"{name:15} epsilon {epsilon:<4g} {rule:<4g} / k^2  {shown}", flush=True)


if __name__ == "__main__":
    main()
