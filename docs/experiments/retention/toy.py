"""Toy tables with the measures that section 5 of Fletcher and Islam (2015) publishes of its own.

The paper's toy was a picture, which the text that we have has lost. In this one the class follows from `a` in D and
from `b` in M, and the classifiers of both are right for six of the nine rows of T.

    python docs/experiments/retention/toy.py OUT.png

draws it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import dpframework as dpf
from dpframework.lab.evaluation import EncodedClassifier, Trial, cart, prediction_of, retention_of

SCHEMA = dpf.Schema(
    [dpf.Numeric("a", 0, 9, bins=9), dpf.Numeric("b", 0, 9, bins=9), dpf.Categorical("class", ["+", "-"])]
)
# each row: a, b and the class
D = "00+ 01+ 04+ 05+ 12+ 23+ 26+ 28+ 30+ 31+ 35- 43+ 46+ 47- 48- 58+ 63- 66- 67- 70- 71- 72- 81- 85-"
M = "02+ 04+ 06- 07- 16- 18- 23- 24- 32+ 36- 44- 46- 55+ 60+ 61+ 62+ 63- 65- 66- 72+ 75- 80+ 81+ 87-"
T = "00+ 04- 11+ 17+ 22+ 38+ 43- 55- 56+"


def table_of(rows: str) -> dpf.Table:
    """Return rows as a table."""
    a, b = (np.array([float(row[place]) for row in rows.split()]) for place in (0, 1))
    classes = [SCHEMA["class"].labels.index(row[2]) for row in rows.split()]
    return dpf.Table.from_codes(SCHEMA, np.array([a, b, classes]).astype(np.int64), {"a": a, "b": b})


def original(*, seed: int) -> dpf.Table:
    """Return D."""
    return table_of(D)


def unchanged(table: dpf.Table, *, seed: int) -> dpf.Table:
    """Return the table itself."""
    return table


def modified(table: dpf.Table, *, seed: int) -> dpf.Table:
    """Return M, whatever the table is."""
    return table_of(M)


def classifier(table: dpf.Table) -> EncodedClassifier:
    """Learn the tree of a table: three leaves of five rows or more."""
    return cart(table, "class", max_depth=2, min_share=0.2)


def six(trial: Trial) -> Mapping[str, float]:
    """Return the six measures: what the result retains of the table's patterns, and how its own tree predicts T."""
    kept = retention_of(classifier(trial.table).patterns(), trial.table, trial.result)
    predicted = prediction_of(classifier(trial.result), table_of(T), "class", positive="+")
    return {**kept.to_dict(), **predicted.to_dict()}


def draw(out: Path) -> None:
    """Draw D, M and T, with the borders between the leaves of the classifiers of D and of M."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 2.6), layout="constrained")
    for axis, (name, rows) in zip(figure.subplots(1, 3), {"D": D, "M": M, "T": T}.items(), strict=True):
        for label, marker in ("+", "P"), ("-", "_"):
            points = [(int(row[0]), int(row[1])) for row in rows.split() if row[2] == label]
            axis.scatter(*zip(*points, strict=True), marker=marker, s=50, color=f"C{'+-'.index(label)}")
        if name != "T":
            for border in (2.5, 5.5):
                (axis.axvline if name == "D" else axis.axhline)(border, color="0.4", linewidth=1)
        axis.set(title=name, xlabel="a", ylabel="b", xlim=(-0.5, 8.5), ylim=(-0.5, 8.5), xticks=(), yticks=())
    figure.savefig(out, dpi=90, metadata={"Software": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
