"""Private clusters of categorical rows: k-means of diffprivlib on the points of a privately learned metric.

    pip install 'dpframework[kmeans]'
    python docs/examples/distances/private_kmeans.py mushroom.csv

The budget is shared out between the distances and the clusters. Bounds for k-means are those of the released points,
so they are public. The same is done with one-hot points (appendix A.6 of the paper); both are compared with the class,
which is looked at for that alone and makes the printed numbers not private.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from diffprivlib.models import KMeans
from dpframework_distance import CategoricalMetric, DPDilca
from sklearn.metrics import adjusted_rand_score

import dpframework as dpf

SCHEMA = Path(__file__).parents[1] / "mushroom" / "mushroom.schema.toml"


def main() -> None:
    """Cluster the mushrooms several times, and print the mean agreement with their class."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="mushroom.csv, with a class column")
    parser.add_argument("--learn", type=float, default=1.0, help="epsilon of the distances")
    parser.add_argument("--cluster", type=float, default=2.0, help="epsilon of the clusters")
    parser.add_argument("--repeats", type=int, default=10)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", module="diffprivlib")

    schema = dpf.Schema.load(SCHEMA)
    table = dpf.read_table(args.data, schema)
    features = tuple(name for name in schema.names if name != "class")
    classes = table.codes[schema.index("class")]
    study = dpf.Study(schema, epsilon=args.learn)
    study.add("distances", DPDilca(args.learn, attributes=features))

    found: dict[str, list[float]] = {"learned": [], "one-hot": []}
    for _ in range(args.repeats):
        metric = CategoricalMetric(study.run(table)["distances"])
        codes = metric.encode(table)
        lower = np.concatenate([points.min(axis=0) for points in metric.points])
        upper = np.concatenate([points.max(axis=0) for points in metric.points])
        clusters = KMeans(2, epsilon=args.cluster, bounds=(lower, upper)).fit_predict(metric.embed(codes))
        found["learned"].append(adjusted_rand_score(classes, clusters))
        sizes = [metric.distances[name].attribute.size for name in metric.attributes]
        one_hot = np.concatenate([np.eye(size)[codes[:, k]] for k, size in enumerate(sizes)], axis=1)
        bounds = (np.zeros(one_hot.shape[1]), np.ones(one_hot.shape[1]))
        clusters = KMeans(2, epsilon=args.learn + args.cluster, bounds=bounds).fit_predict(one_hot)
        found["one-hot"].append(adjusted_rand_score(classes, clusters))
    for points, scores in found.items():
        print(f"{points}: adjusted Rand index {np.mean(scores):.3f} over {args.repeats} runs")


if __name__ == "__main__":
    main()
