"""Accuracy of DP-DILCA, its own settings and the paper's, beside what should not be beaten by so little.

    python tests/benchmarks/compare_dp_dilca.py contexts --out contexts.json
    python tests/benchmarks/compare_dp_dilca.py whole --out whole.json
    python tests/benchmarks/compare_dp_dilca.py tasks --out tasks.json
    python tests/benchmarks/compare_dp_dilca.py orders --out orders.json
    python tests/benchmarks/compare_dp_dilca.py synthetic --out synthetic.json

The paper's protocols (sections 4.1, 4.2, 4.4, A.1), with two corrections: the Pearson correlation of two distance
matrices is taken over their upper triangles, without the zeros of the diagonals, which alone correlate; and every task
is done with the overlap distance and with a metric made of noise as well. A third baseline knows no context at all: the
distance between the shares of two values.

As in the paper, bins and domains come from the data (k-means with five bins for a numeric column of more than five
values, the most common value for a missing one), which no epsilon covers: these are seeded experiments, not private.
Distances are learned for all attributes but the class. Epsilon is for each attribute, or, in `whole`, `tasks` and
`orders`, for all together.

`orders` is a task on which the metric does matter, with a public schema of Adult: do distances tell the order of ages,
working hours and degrees, which they are not told; and do a few labelled rows tell who earns more.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from dpframework_distance import CategoricalMetric, DPDilca, LearnedDistances, ValueDistances, dilca
from dpframework_distance.evaluation import compare
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.lab.evaluation import select_rows
from dpframework.lab.evaluation.distance_and_context_comparison import pearson

REPOSITORY = Path(__file__).resolve().parents[2]
CLASSES = {
    "adult": "income",
    "mushroom": "class",
    "nltcs": None,
    "cmc": "contraceptive_method_use",
    "soybean": "class",
    "dermatology": "class",
    "nursery": "class",
}
CONTEXTS = ("mean-su", "max-relevance", "max-dependency")
EPSILONS = (0.1, 0.3, 0.5, 1.0, 1.5, 2.5)
DELTA = 1e-6


class Data:
    """A data set on a grid taken from its own rows: every attribute categorical, the class apart."""

    def __init__(self, folder: Path, name: str) -> None:
        frame = pl.read_csv(folder / name / f"{name}.csv", null_values=["?", ""], infer_schema_length=None)
        self.name = name
        columns = {column: _binned(frame[column], column == CLASSES[name]) for column in frame.columns}
        attributes, codes = [], []
        for column, texts in columns.items():
            values, found = np.unique(texts, return_inverse=True)
            if column == CLASSES[name]:
                self.y = found
            elif len(values) > 1:
                attributes.append(dpf.Categorical(column, [str(value) for value in values]))
                codes.append(found)
        schema = dpf.Schema(attributes, rows=len(frame), inferred=["bins and domains: from the data"])
        self.table = dpf.Table.from_codes(schema, np.array(codes))

    @property
    def attributes(self) -> int:
        """Their number."""
        return len(self.table.schema)


def _binned(column: pl.Series, is_class: bool) -> NDArray[Any]:
    from sklearn.cluster import KMeans

    if column.null_count():
        column = column.fill_null(column.drop_nulls().mode().sort()[0])
    if not column.dtype.is_numeric() or is_class or column.n_unique() <= 5:
        return column.cast(pl.String).to_numpy()
    numbers = column.cast(pl.Float64).to_numpy()
    edges = np.linspace(numbers.min(), numbers.max(), 6)  # where scikit-learn's KBinsDiscretizer starts
    centres = KMeans(5, init=((edges[1:] + edges[:-1]) / 2)[:, None], n_init=1).fit(numbers[:, None]).cluster_centers_
    ordered = np.sort(centres.ravel())
    return np.searchsorted((ordered[1:] + ordered[:-1]) / 2, numbers, side="right").astype(str)


def adult(folder: Path) -> tuple[dpf.Table, NDArray[np.bool_]]:
    """Return Adult on a public grid, degrees in their order, and who earns more than 50,000."""
    frame = pl.read_csv(folder / "adult" / "adult.csv", null_values=["?", ""])
    degrees = frame.unique(["education", "education-num"]).sort("education-num")["education"].to_list()
    attributes: list[dpf.Attribute] = [
        dpf.Numeric("age", 17, 90, cuts=list(range(20, 80, 4))),
        dpf.Numeric("hours-per-week", 0, 100, cuts=[10, 20, 30, 35, 40, 45, 50, 60, 70]),
        dpf.Categorical("education", degrees),
    ]
    for name in ("workclass", "marital-status", "occupation", "relationship", "race", "sex"):
        values = sorted(frame[name].drop_nulls().unique())
        attributes.append(dpf.Categorical(name, values, missing=frame[name].null_count() > 0))
    schema = dpf.Schema(attributes, rows=len(frame))
    more = frame["income"].str.contains(">50K").to_numpy()
    return dpf.table_from_frame(frame.select(schema.names), schema), more


class Kept(dpf.InMemory.__mro__[1]):  # type: ignore[misc]
    """The in-memory engine, which keeps a table's block, so that repeated runs count its rows once."""

    name = "kept"

    def __init__(self) -> None:
        super().__init__(blocks=1)
        self.known: dict[int, Any] = {}

    def load(self, table: dpf.Table) -> Any:
        """Return the block that was made before."""
        if id(table) not in self.known:
            self.known = {id(table): (table, super().load(table))}
        return self.known[id(table)][1]

    def map(self, rows: Any, function: Callable[[Any], Any]) -> list[Any]:
        """Evaluate in turn."""
        return [function(block) for block in rows]


ENGINE = Kept()


def learned(table: dpf.Table, miner: DPDilca, seed: int) -> LearnedDistances:
    """Run a miner, seeded."""
    study = dpf.Study(
        table.schema,
        epsilon=10**9,
        relation="replace-one",
        delta=0 if miner.rho is None else DELTA,
        allow=["schema-inferred-from-data"],
    )
    study.add("distances", miner)
    return study.run(table, seed=seed, engine=ENGINE)["distances"]


def by_shares(table: dpf.Table) -> LearnedDistances:
    """Return the distances that know no context: the difference of two values' shares of the rows; not private."""
    found = {}
    for attribute, codes in zip(table.schema, table.codes, strict=True):
        shares = np.bincount(codes, minlength=attribute.size) / len(codes)
        found[attribute.name] = ValueDistances(attribute, (), abs(shares[:, None] - shares))
    return LearnedDistances(table.schema, found, covered=False)


def by_overlap(table: dpf.Table) -> LearnedDistances:
    """Return the distance 1 between any two values."""
    found = {a.name: ValueDistances(a, (), 1.0 - np.eye(a.size)) for a in table.schema}
    return LearnedDistances(table.schema, found, covered=False)


def by_noise(table: dpf.Table, seed: int) -> LearnedDistances:
    """Return what the published method makes of noise alone."""
    return learned(table, DPDilca.published("0.00001", context="max-relevance"), seed)


def averaged(found: list[dict[str, float]]) -> dict[str, Any]:
    """Return the mean over repeats, and its standard error."""
    keys = found[0]
    mean = {key: round(float(np.mean([f[key] for f in found])), 4) for key in keys}
    error = {f"{key}_se": round(float(np.std([f[key] for f in found]) / np.sqrt(len(found))), 4) for key in keys}
    return {**mean, **error}


def without_privacy(data: Data, context: str) -> LearnedDistances:
    """Return what a method would find without privacy."""
    return dilca(data.table, context="relevant-redundant" if context == "baseline" else context)


def contexts(data: Data, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Sections 4.1 and 4.2: epsilon for each attribute."""
    number = data.attributes
    for context, epsilon in itertools.product((*CONTEXTS, "baseline"), args.epsilon):
        true = without_privacy(data, context)
        whole = dpf.facts.exact(epsilon) * number
        # each target's epsilon for itself; the baseline's histograms are made for one target
        settings = {"published": DPDilca.published(whole if context != "baseline" else epsilon, context=context)}
        if context != "baseline":
            if context != "mean-su":  # whose published sensitivity is all but exact
                settings["exact sensitivity"] = DPDilca.published(whole, context=context, sensitivity="tight")
            settings["alone"] = DPDilca(whole, context=context, sharing=False)
            settings["default"] = DPDilca(whole, context=context)
        for label, miner in settings.items():
            runs = [
                compare(learned(data.table, miner, s), true, any_size=context in ("mean-su", "baseline")).to_dict()
                for s in range(args.repeats)
            ]
            yield {"data": data.name, "context": context, "method": label, "epsilon": epsilon, **averaged(runs)}
        if epsilon == args.epsilon[0] and context != "baseline":
            shares = by_shares(data.table)
            wide = [name for name in true if true[name].attribute.size > 2]
            close = [pearson(shares[name].matrix, true[name].matrix) for name in wide]
            yield {
                "data": data.name,
                "context": context,
                "method": "no context",
                "pearson": float(np.mean(close or [0])),
            }


def whole(data: Data, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Epsilon for the distances of all attributes together."""
    for context, epsilon in itertools.product(("max-relevance", "max-dependency"), args.epsilon):
        true = without_privacy(data, context)
        settings = {
            "published": DPDilca.published(epsilon, context=context),
            "contexts": DPDilca(epsilon, context=context),
            "h = 0.1": DPDilca(epsilon, context=context, context_share="0.1"),
            "zcdp": DPDilca.zcdp(epsilon, DELTA, context=context),
        }
        if context == "max-dependency":
            settings |= {way: DPDilca(epsilon, context=way) for way in ("none", "tree", "auto")}
            settings["common context"] = DPDilca(epsilon, context="common", context_share="0.1")
        for label, miner in settings.items():
            runs = [compare(learned(data.table, miner, s), true).to_dict() for s in range(args.repeats)]
            yield {"data": data.name, "context": context, "method": label, "epsilon": epsilon, **averaged(runs)}


def neighbours_accuracy(metric: CategoricalMetric, data: Data, train: Any, test: Any) -> float:
    """Return the accuracy of the class by the five nearest rows."""
    from sklearn.neighbors import KNeighborsClassifier

    codes = data.table.codes.T.astype(np.int64)
    model = KNeighborsClassifier(5).fit(metric.embed(codes[train]), data.y[train])
    return float(model.score(metric.embed(codes[test]), data.y[test]))


def tasks(data: Data, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Section 4.4: classes by nearest neighbours and by Ward's clusters; besides, classes from few labelled rows."""
    from sklearn.metrics import adjusted_rand_score
    from sklearn.model_selection import StratifiedKFold

    if CLASSES[data.name] is None:
        return
    rng = np.random.default_rng(0)
    folds = list(StratifiedKFold(4, shuffle=True, random_state=0).split(data.y, data.y))
    some = [(train, rng.permutation(test)[:2000]) for train, test in folds]
    clustered = rng.permutation(len(data.y))[:3000]
    few = {n: [rng.permutation(len(data.y))[: n + 2000] for _ in range(args.repeats)] for n in (20, 100)}
    repeats = max(args.repeats // 3, 2)

    def measured(make: Callable[[dpf.Table, int], LearnedDistances], times: int) -> dict[str, float]:
        nearest = [
            neighbours_accuracy(CategoricalMetric(make(select_rows(data.table, train), s)), data, train, test)
            for s in range(min(times, repeats))
            for train, test in some
        ]
        metrics = [CategoricalMetric(make(data.table, s)) for s in range(times)]
        codes = data.table.codes.T.astype(np.int64)
        ari = [
            adjusted_rand_score(data.y[clustered], metric.clusters(codes[clustered], len(np.unique(data.y))))
            for metric in metrics[:repeats]
        ]
        labelled = {
            n: np.mean(
                [
                    neighbours_accuracy(metrics[k % times], data, chosen[:n], chosen[n:])
                    for k, chosen in enumerate(splits)
                ]
            )
            for n, splits in few.items()
        }
        found = {"knn": np.mean(nearest), "ward_ari": np.mean(ari), **{f"labelled_{n}": v for n, v in labelled.items()}}
        return {key: round(float(value), 4) for key, value in found.items()}

    fixed = {
        "overlap": lambda table, seed: by_overlap(table),
        "shares, no context": lambda table, seed: by_shares(table),
        "not private, M": lambda table, seed: dilca(table),
        "not private, max-dependency": lambda table, seed: dilca(table, context="max-dependency"),
        "not private, profiles": lambda table, seed: dilca(table, context="max-dependency", profiles=True),
    }
    for label, make in fixed.items():
        yield {"data": data.name, "method": label, **measured(make, 1)}
    yield {"data": data.name, "method": "noise", **measured(by_noise, args.repeats)}
    for epsilon in args.epsilon:
        private = {
            "published": DPDilca.published(epsilon),
            "default": DPDilca(epsilon),
            "zcdp": DPDilca.zcdp(epsilon, DELTA),
            "profiles": DPDilca(epsilon, profiles=True),
        }
        for label, miner in private.items():
            found = measured(lambda table, seed, miner=miner: learned(table, miner, seed), args.repeats)
            yield {"data": data.name, "method": label, "epsilon": epsilon, **found}


def orders(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rank correlation of distances with differences in rank, and the AUC of 15 neighbours among few labelled rows."""
    from scipy.stats import spearmanr
    from sklearn.metrics import roc_auc_score
    from sklearn.neighbors import KNeighborsClassifier

    table, more = adult(args.data)
    rng = np.random.default_rng(0)
    few = {n: [rng.permutation(len(more))[: n + 2000] for _ in range(6)] for n in (50, 200, 1000)}

    def measured(found: LearnedDistances) -> dict[str, float]:
        scores = {}
        for name in ("age", "hours-per-week", "education"):
            above = np.triu_indices(found[name].attribute.size, 1)
            apart = found[name].matrix[above]
            scores[name] = float(spearmanr(apart, above[1] - above[0]).statistic) if np.ptp(apart) > 0 else 0.0
        points = CategoricalMetric(found).embed(table)
        for n, splits in few.items():
            aucs = []
            for chosen in splits:
                labelled, other = chosen[:n], chosen[n:]
                model = KNeighborsClassifier(15).fit(points[labelled], more[labelled])
                aucs.append(roc_auc_score(more[other], model.predict_proba(points[other])[:, 1]))
            scores[f"labelled_{n}"] = float(np.mean(aucs))
        return scores

    fixed = {
        "overlap": by_overlap(table),
        "shares, no context": by_shares(table),
        "not private": dilca(table, context="max-dependency"),
        "not private, profiles": dilca(table, context="max-dependency", profiles=True),
    }
    for label, found in fixed.items():
        yield {"method": label, **averaged([measured(found)])}
    yield {"method": "noise", **averaged([measured(by_noise(table, s)) for s in range(args.repeats)])}
    for epsilon in args.epsilon:
        private = {
            "published": DPDilca.published(epsilon),
            "default": DPDilca(epsilon),
            "profiles": DPDilca(epsilon, profiles=True),
            "zcdp": DPDilca.zcdp(epsilon, DELTA),
            "zcdp, profiles": DPDilca.zcdp(epsilon, DELTA, profiles=True),
        }
        for label, miner in private.items():
            runs = [measured(learned(table, miner, s)) for s in range(args.repeats)]
            yield {"method": label, "epsilon": epsilon, **averaged(runs)}


def synthetic_table(kind: str, noise: float, seed: int = 0) -> tuple[dpf.Table, set[str]]:
    """Return one of the appendix's 10,000 x 11 Boolean tables, and the right context of its first attribute."""
    rng = np.random.default_rng(seed)
    rows = 10_000

    def blurred(block: NDArray[np.int64], share: float) -> NDArray[np.int64]:
        flat = block.ravel().copy()
        swapped = rng.choice(flat.size, round(flat.size * share), replace=False)
        flat[swapped] ^= 1
        return flat.reshape(block.shape)

    ones = {"A": 5000, "B": 2000, "C": 3000}.get(kind, 0)
    if kind == "D":
        related = blurred(np.kron(np.eye(5, dtype=np.int64), np.ones((rows // 5, 1), dtype=np.int64)), noise)
    else:
        target = (np.arange(rows) >= rows - ones).astype(np.int64)
        related = blurred(np.stack([target, target, target, target], axis=1), noise)
        if kind == "C":
            related = np.concatenate([related, blurred(np.stack([target, target], axis=1), 0.35)], axis=1)
    random = rng.integers(0, 2, (rows, 11 - related.shape[1]))
    codes = np.concatenate([related, random], axis=1)
    schema = dpf.Schema([dpf.Boolean(f"x{k}") for k in range(11)], rows=rows)
    return dpf.Table.from_codes(schema, codes.T), {f"x{k}" for k in range(1, 5 if kind == "D" else 4)}


def synthetic(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Appendix A.1: how often the right context is found; epsilon for its selection alone (half of twice as much)."""
    for kind, noise, epsilon in itertools.product("ABCD", (0.1, 0.2, 0.3), args.epsilon):
        table, right = synthetic_table(kind, noise)
        for context, make in itertools.product(CONTEXTS, (DPDilca.published, DPDilca)):
            miner = make(2 * epsilon, target="x0", context=context, context_size=len(right), context_share="0.5")
            hits = sum(set(learned(table, miner, s)["x0"].context) == right for s in range(args.repeats))
            method = "default" if make is DPDilca else "published"
            yield {
                "data": f"Synth-{kind}",
                "noise": noise,
                "context": context,
                "method": method,
                "epsilon": epsilon,
                "right": hits / args.repeats,
            }


def main() -> None:
    """Run one experiment, and write its figures as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=["contexts", "whole", "tasks", "orders", "synthetic"])
    default = Path(os.environ.get("DPFRAMEWORK_DATA", REPOSITORY.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--sets", nargs="+", default=list(CLASSES), choices=list(CLASSES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    experiments = {"contexts": contexts, "whole": whole, "tasks": tasks}
    found = []
    if args.experiment in ("synthetic", "orders"):
        one_table = synthetic if args.experiment == "synthetic" else orders
        sources: Iterator[Iterator[dict[str, Any]]] = iter([one_table(args)])
    else:
        sources = (experiments[args.experiment](Data(args.data, name), args) for name in args.sets)
    for row in itertools.chain.from_iterable(sources):
        found.append(row)
        print(json.dumps(row), flush=True)
    args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
