"""How far everyday releases on Adult are from the exact numbers: NOT private, it reads those.

Prints the tables of the page "Everyday releases". DPFRAMEWORK_DATA names the folder that holds adult/adult.csv.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pandas as pd

import dpframework as dpf

HERE = Path(__file__).parent
RELEASES = {
    "`count` of men": ("count", {"where": {"equals": ["sex", "Male"]}}),
    "`histogram` of education, 16 cells": ("histogram", {"attribute": "education"}),
    "`crosstab` of sex and income, 4 cells": ("crosstab", {"attributes": ["sex", "income"]}),
    "`crosstab` of race, sex and income, 20 cells": ("crosstab", {"attributes": ["race", "sex", "income"]}),
    "`sum` of hours per week": ("sum", {"attribute": "hours-per-week"}),
    "`mean` of hours per week": ("mean", {"attribute": "hours-per-week"}),
    "`mean` of capital gain": ("mean", {"attribute": "capital-gain"}),
    "`quantile` 0.5 of age": ("quantile", {"attribute": "age"}),
    "`quantile` 0.9 of fnlwgt": ("quantile", {"attribute": "fnlwgt", "quantile": 0.9}),
}


def run(table: dpf.Table, node: dpf.Miner | dpf.Node, seeds: int) -> list[Any]:
    """Return the results of many seeded runs."""
    found = []
    for seed in range(seeds):
        study = dpf.Study(table.schema, epsilon=100)
        (study.add if isinstance(node, dpf.Miner) else study.add_plan)("one", node)
        found.append(study.run(table, seed=seed)["one"])
    return found


def missed(column: pd.Series, points: Iterable[float], quantile: float) -> np.ndarray:
    """Return by how many rows points miss a quantile."""
    aim = quantile * len(column)
    return np.array([max((column < x).sum() - aim, aim - (column <= x).sum(), 0) for x in points])


def errors(table: dpf.Table, rows: pd.DataFrame, name: str, epsilon: str, seeds: int) -> tuple[np.ndarray, str]:
    """Return the errors of many seeded runs, and the 95 % bound that a result states."""
    kind, parameters = RELEASES[name]
    found = run(table, dpf.miner(kind, **parameters, epsilon=epsilon), seeds)
    if kind == "quantile":
        points = [one.value for one in found]
        return missed(rows[parameters["attribute"]], points, parameters.get("quantile", 0.5)), f"{found[0].rows:.0f}"
    if kind in ("histogram", "crosstab"):
        index = pd.MultiIndex.from_product(found[0].labels, names=found[0].names)
        exact = rows.groupby(list(found[0].names)).size()
        exact.index = pd.MultiIndex.from_arrays([exact.index.get_level_values(k) for k in range(exact.index.nlevels)])
        counts = exact.reindex(index, fill_value=0).to_numpy()
        off = np.concatenate([one.counts.ravel() - counts for one in found])
        return np.abs(off), f"{found[0].to_dict()['within']:.0f}"
    truth = (rows["sex"] == "Male").sum() if kind == "count" else getattr(rows[parameters["attribute"]], kind)()
    half = np.mean([one.high - one.low for one in found]) / 2
    return np.abs(np.array([one.value for one in found]) - truth), f"{half:.3g}"


def lines(table: dpf.Table, rows: pd.DataFrame, seeds: int) -> Iterator[str]:
    """Yield the lines of the table: mean and 95 % quantile of the error, and what the result says of it."""
    for name in RELEASES:
        cells = []
        for epsilon in ("0.1", "1"):
            found, stated = errors(table, rows, name, epsilon, seeds)
            cells.append(f"{found.mean():.3g} | {np.quantile(found, 0.95):.3g} | {stated}")
        yield f"| {name} | {' | '.join(cells)} |"


@attrs.frozen
class IntervalScores(dpf.Query):
    """The usual way: minus the distance in rows from the quantile, between the values of the table."""

    name = "interval-scores"
    integer = False
    attribute: dpf.Numeric
    quantile: float

    @property
    def sensitivities(self) -> tuple[dpf.Sensitivity, ...]:
        moved = dpf.facts.exact(max(self.quantile, 1 - self.quantile))
        return (dpf.Sensitivity("linf", moved, 1, source="a row moves a rank by 0 or 1, and the one aimed at by q"),)

    def count(self, block: dpf.Block, **inputs: Any) -> np.ndarray:
        return block.values(self.attribute.name)

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> dpf.queries.PiecewiseScores:
        values = np.sort(np.concatenate(engine.map(rows, self.count)))
        breaks = np.concatenate([[self.attribute.lower], values, [self.attribute.upper]])
        return dpf.queries.PiecewiseScores(breaks, -np.abs(np.arange(len(values) + 1.0) - self.quantile * len(values)))


def alternatives(table: dpf.Table, rows: pd.DataFrame, seeds: int) -> Iterator[str]:
    """Yield how far a quantile by intervals, and a mean from a sum and a count, are off; at epsilon 0.1."""
    for name, quantile in (("age", 0.5), ("hours-per-week", 0.5), ("hours-per-week", 0.9), ("fnlwgt", 0.9)):
        scores = IntervalScores(table.schema[name], quantile)
        usual = run(table, dpf.step("q", scores, dpf.mechanisms.ExponentialInterval("0.1")), seeds)
        miner = dpf.miner("quantile", attribute=name, quantile=quantile, epsilon="0.1")
        ours = [one.value for one in run(table, miner, seeds)]
        off = [missed(rows[name], points, quantile) for points in (usual, ours)]
        yield f"| quantile {quantile} of {name} | {off[0].mean():.3g} | {off[1].mean():.3g} |"
    half = dpf.mechanisms.Laplace("0.05")
    for name in ("age", "hours-per-week", "capital-gain"):
        numbers = table.schema[name]
        middle = (numbers.lower + numbers.upper) / 2
        total = dpf.step("sum", dpf.queries.BoundedSum(numbers, centre=middle), half)
        number = dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace("0.05"))
        split = run(table, dpf.sequential(total, number), seeds)
        ours = [one.value for one in run(table, dpf.miner("mean", attribute=name, epsilon="0.1"), seeds)]
        means = [middle + one["sum"] / one["n"] for one in split], ours
        off = [np.abs(np.array(some) - rows[name].mean()) for some in means]
        yield f"| mean of {name} | {off[0].mean():.3g} | {off[1].mean():.3g} |"


if __name__ == "__main__":
    data = Path(os.environ["DPFRAMEWORK_DATA"]) / "adult" / "adult.csv"
    schema = dpf.Schema.load(HERE / "adult.schema.toml")
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    table, rows = dpf.read_table(data, schema), pd.read_csv(data)
    print(*lines(table, rows, seeds), "", *alternatives(table, rows, seeds), sep="\n")
