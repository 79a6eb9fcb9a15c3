"""How near `auto` and the others come at one epsilon for the whole metric, and where a context helps at a task.

    python tests/benchmarks/distance_contexts.py near --out near.json
    python tests/benchmarks/distance_contexts.py tasks --out tasks.json
    python tests/benchmarks/distance_contexts.py blends --out blends.json

`near`: the correlation with the distances without privacy over upper triangles, a mean over attributes of more than two
values, in pure epsilon and in zCDP at delta 1e-6; on the tables of `compare_dp_dilca.py`, and on made ones, which
nothing was tuned on: attributes of 2 to 12 values that each depend on none to two before them.

`tasks`: Ward's clusters against classes (adjusted Rand index), and the accuracy of five neighbours among 20 and 100
labelled rows, at epsilon 1 for the whole metric.

`blends`: the area under the curve of fifteen neighbours among 50 and 400 labelled rows, by overlap, by learned
distances, and by these blended with overlap, at epsilon .1 and 1 for the whole metric.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from compare_dp_dilca import CLASSES, DELTA, REPOSITORY, Data, by_overlap, by_shares, learned, neighbours_accuracy
from dpframework_distance import CategoricalMetric, DPDilca, LearnedDistances, dilca
from dpframework_distance.evaluation import compare

import dpframework as dpf

EPSILONS = ("0.1", "0.3", "1", "3", "10")
CONTEXTS = ("auto", "none", "tree", "max-dependency")
MADE = {"made-a": (38_000, 14, 1), "made-b": (9_881, 20, 2), "made-c": (2_000, 12, 3), "made-d": (600, 30, 4)}
ROWS = 1_500  # that are clustered, and that are told a class
SPLITS = 24  # of labelled rows


def made(rows: int, attributes: int, seed: int) -> dpf.Table:
    """Return a table whose attributes depend on each other as in a Bayesian network drawn at random."""
    rng = np.random.default_rng(seed)
    columns: list[Any] = []
    for k in range(attributes):
        size = int(rng.choice([2, 3, 4, 5, 6, 8, 12], p=[0.3, 0.15, 0.15, 0.15, 0.1, 0.1, 0.05]))
        group = np.zeros(rows, dtype=np.int64)
        for parent in rng.permutation(k)[: rng.integers(0, 3)]:
            group = group * (columns[parent].max() + 1) + columns[parent]
        base = rng.dirichlet(np.full(size, 0.7))
        shares = rng.dirichlet(base * rng.choice([1.0, 3, 10]) + 0.02, size=group.max() + 1).cumsum(axis=1)
        drawn = (rng.random(rows)[:, np.newaxis] > shares[group]).sum(axis=1).clip(0, size - 1)
        columns.append(np.unique(drawn, return_inverse=True)[1])
    known = [
        dpf.Categorical(f"a{k}", [str(v) for v in range(column.max() + 1)])
        for k, column in enumerate(columns)
        if column.max() > 0
    ]
    codes = np.array([column for column in columns if column.max() > 0])
    return dpf.Table.from_codes(dpf.Schema(known, rows=rows, inferred=["domains: from the data"]), codes)


def near(folder: Path, names: list[str], repeats: int) -> Iterator[dict[str, Any]]:
    """Compare with the distances without privacy."""
    for name in names:
        table = made(*MADE[name]) if name in MADE else Data(folder, name).table
        true = dilca(table, context="max-dependency")
        yield {"data": name, "method": "shares, no noise", "pearson": compare(by_shares(table), true).pearson}
        for epsilon in EPSILONS:
            for context in CONTEXTS:
                miners = {"pure": DPDilca(epsilon, context=context)}
                if context in ("auto", "none"):
                    miners["zcdp"] = DPDilca.zcdp(epsilon, DELTA, context=context)
                for notion, miner in miners.items():
                    found = [compare(learned(table, miner, seed), true).pearson for seed in range(repeats)]
                    error = float(np.std(found) / len(found) ** 0.5)
                    row = {"data": name, "epsilon": epsilon, "context": context, "notion": notion}
                    yield {**row, "pearson": round(float(np.mean(found)), 4), "se": round(error, 4)}


def tasks(folder: Path, names: list[str], repeats: int) -> Iterator[dict[str, Any]]:
    """Compare at tasks."""
    for name in names:
        data = Data(folder, name)
        codes, classes = data.table.codes.T.astype(np.int64), len(np.unique(data.y))
        rng = np.random.default_rng(0)
        clustered = rng.permutation(len(data.y))[:ROWS]
        few = {n: [rng.permutation(len(data.y))[: n + ROWS] for _ in range(SPLITS)] for n in (20, 100)}

        def private(table: dpf.Table = data.table, **how: Any) -> Callable[[int], LearnedDistances]:
            return lambda seed: learned(table, DPDilca(1, **how), seed)

        fixed = {
            "overlap": by_overlap(data.table),
            "shares, no noise": by_shares(data.table),
            "not private": dilca(data.table, context="max-dependency"),
            "not private, profiles": dilca(data.table, context="max-dependency", profiles=True),
        }
        noisy = {
            "none": private(context="none"),
            "auto": private(),
            "tree, profiles": private(context="tree", profiles=True),
            "max-dependency": private(context="max-dependency"),
            "max-dependency, profiles": private(context="max-dependency", profiles=True),
        }
        known = {label: [CategoricalMetric(found)] for label, found in fixed.items()}
        known |= {label: [CategoricalMetric(make(s)) for s in range(repeats)] for label, make in noisy.items()}
        for label, metrics in known.items():
            ari = [_agreement(data.y[clustered], metric.clusters(codes[clustered], classes)) for metric in metrics]
            row = {"data": name, "method": label, "ward_ari": round(float(np.mean(ari)), 3)}
            for n, splits in few.items():
                scores = [
                    neighbours_accuracy(metrics[k % len(metrics)], data, chosen[:n], chosen[n:])
                    for k, chosen in enumerate(splits)
                ]
                row[f"labelled_{n}"] = round(float(np.mean(scores)), 3)
            yield row


def blends(folder: Path, names: list[str], repeats: int) -> Iterator[dict[str, Any]]:
    """Compare learned distances, alone and blended with overlap, at neighbours."""
    for name in names:
        data = Data(folder, name)
        rng = np.random.default_rng(0)
        some = {n: [rng.permutation(len(data.y))[: n + 1000] for _ in range(SPLITS)] for n in (50, 400)}
        known = {("overlap", ""): [CategoricalMetric(by_overlap(data.table))]}
        for epsilon in ("0.1", "1"):
            found = [learned(data.table, DPDilca(epsilon), seed) for seed in range(repeats)]
            known["auto", epsilon] = [CategoricalMetric(one) for one in found]
            known["blend", epsilon] = [CategoricalMetric(one, blend=True) for one in found]
        for (label, epsilon), metrics in known.items():
            row = {"data": name, "method": label, "epsilon": epsilon}
            for n, splits in some.items():
                if n + 100 > len(data.y):
                    continue
                areas = [_area(metrics[k % repeats % len(metrics)], data, s[:n], s[n:]) for k, s in enumerate(splits)]
                row[f"labelled_{n}"] = f"{np.mean(areas):.4f}"
            yield row


def _area(metric: CategoricalMetric, data: Data, train: Any, test: Any) -> float:
    """Return the area under the curve, a mean over classes against all others."""
    from sklearn.metrics import roc_auc_score
    from sklearn.neighbors import KNeighborsClassifier

    codes = data.table.codes.T.astype(np.int64)
    model = KNeighborsClassifier(15).fit(metric.embed(codes[train]), data.y[train])
    chances, told = model.predict_proba(metric.embed(codes[test])), data.y[test]
    both = [(told == k, chances[:, i]) for i, k in enumerate(model.classes_) if 0 < (told == k).sum() < len(told)]
    return float(np.mean([roc_auc_score(own, chance) for own, chance in both]))


def _agreement(classes: Any, clusters: Any) -> float:
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(classes, clusters))


def main() -> None:
    """Run one experiment, and write its figures as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=["near", "tasks", "blends"])
    default = Path(os.environ.get("DPFRAMEWORK_DATA", REPOSITORY.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default)
    told = [name for name in CLASSES if CLASSES[name]]
    of_contexts = [name for name in told if name != "nursery"]  # which is there for blends
    parser.add_argument("--sets", nargs="+", choices=[*told, *MADE])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.experiment == "near":
        rows = near(args.data, args.sets or [*of_contexts, *MADE], args.repeats)
    elif args.experiment == "tasks":
        rows = tasks(args.data, [name for name in args.sets or of_contexts if name in told], args.repeats)
    else:
        rows = blends(args.data, [name for name in args.sets or told if name in told], args.repeats)
    found = []
    for row in rows:
        found.append(row)
        print(json.dumps(row), flush=True)
    args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
