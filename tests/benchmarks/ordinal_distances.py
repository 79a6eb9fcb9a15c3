"""Whether distances that are projected onto the public order of an attribute's values are better. Not private.

    DPFRAMEWORK_DATA=FOLDER python tests/benchmarks/ordinal_distances.py --repeats 10

Distances of an ordered attribute should grow with the number of values between: d(a, b) <= d(a, c) and d(b, c) <=
d(a, c) for a < b < c. What `dp-dilca` releases is projected onto the nearest distances that do, in the least squares
sense (Dykstra 1983, with a pool of adjacent violators for every row and column). That is post-processing. Attributes
whose values are three numbers or more count as ordered.

`near` is the correlation of the distances of ordered attributes with those without privacy. The other figures are the
accuracy of five neighbours among 100 labelled rows, on 1,000 others at most: with the distances as they are released,
projected, blended with overlap, and with overlap alone.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from dpframework_distance import CategoricalMetric, DPDilca, LearnedDistances, ValueDistances, dilca
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression
from sklearn.neighbors import KNeighborsClassifier

import dpframework as dpf
from dpframework.lab.experiment.user_functions import Code

ROOT = Path(__file__).parents[2]
TABLES = {
    "dermatology": ("dermatology/dermatology.csv", "class"),
    "soybean": ("soybean/soybean.csv", "class"),
    "cmc": ("cmc/cmc.csv", "contraceptive_method_use"),
    "adult": ("adult/adult.csv", "income"),
    "species": ("", "class"),
}
EPSILONS = (0.1, 0.3, 1, 3)
ROUNDS, CLOSE = 200, 1e-6
LABELLED, MOST, SPLITS = 100, 1000, 4

as_published = Code("generators.py:as_published", ROOT / "docs" / "experiments" / "dp-dilca").load()


def in_order(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest distances that grow away from the diagonal, in every row and every column of the triangle.

    Examples
    --------
    >>> in_order(np.array([[0, 3, 1], [3, 0, 2], [1, 2, 0]])).round(2).tolist()
    [[0.0, 2.0, 2.0], [2.0, 0.0, 2.0], [2.0, 2.0, 0.0]]
    """
    size = len(matrix)
    lines = [[(a, b) for b in range(a + 1, size)] for a in range(size)]  # away from a, to the right
    lines += [[(a, b) for a in range(b - 1, -1, -1)] for b in range(size)]  # away from b, to the left
    found, corrections = matrix.astype(np.float64).copy(), [np.zeros(len(line)) for line in lines]
    for _ in range(ROUNDS):
        before = found.copy()
        for k, line in enumerate(lines):
            if len(line) < 2:
                continue
            rows, columns = map(list, zip(*line, strict=True))
            moved = found[rows, columns] + corrections[k]
            projected = isotonic_regression(moved)
            corrections[k] = moved - projected
            found[rows, columns] = projected
        if np.abs(found - before).max() < CLOSE:
            break
    above = np.triu(found, 1)
    return np.asarray(above + above.T)


def is_ordered(attribute: dpf.Attribute) -> bool:
    """Tell whether an attribute's values are three numbers or more, but not whether it is the class."""
    labels = attribute.labels
    return attribute.name != "class" and len(labels) > 2 and all(label.lstrip("-").isdigit() for label in labels)


def projected(learned: LearnedDistances) -> LearnedDistances:
    """Return the distances with those of ordered attributes projected."""
    found = {}
    for name, one in learned.items():
        found[name] = one
        if is_ordered(one.attribute):
            order = np.argsort([int(label) for label in one.attribute.labels])
            back = np.argsort(order)
            matrix = in_order(one.matrix[np.ix_(order, order)])[np.ix_(back, back)]
            found[name] = ValueDistances(one.attribute, one.context, matrix)
    return LearnedDistances(learned.schema, found)


def read(name: str, folder: Path) -> dpf.Table:
    """Return a table; the class of "species" is where the most even species lives, beside nineteen facts of climate."""
    path, label = TABLES[name]
    if path:
        return as_published(path=str(folder / path), label=label, seed=0)
    left, right = (
        pl.read_csv(folder / "species_climate_SA" / file) for file in ("left_species.csv", "right_climate.csv")
    )
    species = min(left.columns[1:], key=lambda column: abs(left[column].mean() - 0.5))
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "species.csv"
        right.drop("id").with_columns(left[species].alias("class")).write_csv(file)
        return as_published(path=str(file), label="class", seed=0)


def measured(table: dpf.Table, true: LearnedDistances, epsilon: float, seed: int) -> dict[str, float]:
    """Return the correlation with the distances without privacy, and the accuracy, of each way."""
    among = [name for name in table.schema.names if name != "class"]
    study = dpf.Study(table.schema, epsilon=epsilon, relation="replace-one", allow=["schema-inferred-from-data"])
    study.add("distances", DPDilca(epsilon, attributes=among))
    released: LearnedDistances = study.run(table, seed=seed)["distances"]
    ordered = projected(released)
    overlap = {n: ValueDistances(one.attribute, (), 1 - np.eye(one.attribute.size)) for n, one in released.items()}
    metrics = {
        "released": CategoricalMetric(released),
        "projected": CategoricalMetric(ordered),
        "blend": CategoricalMetric(released, blend=True),
        "overlap": CategoricalMetric(LearnedDistances(released.schema, overlap)),
    }
    found = {name: _accuracy(metric, table, seed) for name, metric in metrics.items()}
    for name, one in (("near", released), ("near, projected", ordered)):
        pairs = []
        for attribute in filter(is_ordered, table.schema):
            above = np.triu_indices(attribute.size, 1)
            pairs.append((one[attribute.name].matrix[above], true[attribute.name].matrix[above]))
        found[name] = float(np.mean([_correlation(*pair) for pair in pairs]))
    return found


def _accuracy(metric: CategoricalMetric, table: dpf.Table, seed: int) -> float:
    """Return the accuracy of five neighbours among few labelled rows, a mean over some of them."""
    classes, codes = table.codes[table.schema.index("class")], table.codes[:-1].T.astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(classes))
    scores = []
    for k in range(SPLITS):
        chosen = np.roll(order, -k * LABELLED)[: LABELLED + MOST]
        told, asked = chosen[:LABELLED], chosen[LABELLED:]
        model = KNeighborsClassifier(5).fit(metric.embed(codes[told]), classes[told])
        scores.append(float(model.score(metric.embed(codes[asked]), classes[asked])))
    return float(np.mean(scores))


def _correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return Pearson's correlation, 0 where one side is constant."""
    return float(np.corrcoef(one, other)[0, 1]) if min(np.ptp(one), np.ptp(other)) > 0 else 0.0


def main() -> None:
    """Print a line for each table and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--tables", nargs="*", choices=list(TABLES), default=list(TABLES))
    given = parser.parse_args()
    folder = Path(os.environ["DPFRAMEWORK_DATA"])
    ways = ("near", "near, projected", "released", "projected", "blend", "overlap")
    print(f"{'table':12} {'epsilon':>7} " + " ".join(f"{way:>15}" for way in ways) + "  projected - released")
    for name, epsilon in itertools.product(given.tables, EPSILONS):
        table = read(name, folder)
        true = dilca(table, context="max-dependency", attributes=tuple(a for a in table.schema.names if a != "class"))
        runs = [measured(table, true, epsilon, seed) for seed in range(given.repeats)]
        found = {way: np.array([run[way] for run in runs]) for way in ways}
        gained = found["projected"] - found["released"]
        error = 2 * gained.std(ddof=1) / np.sqrt(len(gained))
        line = f"{name:12} {epsilon:7} " + " ".join(f"{found[way].mean():15.3f}" for way in ways)
        print(f"{line}  {gained.mean():+.4f} ± {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
