"""What the paper does with distances, beside `dpframework_distance.evaluation`: rows, classes, clusters, contexts.

Not private: all of this reads the rows and their classes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
from dpframework_distance import CategoricalMetric, LearnedDistances, dilca
from dpframework_distance.evaluation import distances
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.lab.evaluation import Trial
from dpframework.lab.evaluation.distance_and_context_comparison import f_score, l1, pearson


def correlation_with_diagonal(trial: Trial) -> Mapping[str, float]:
    """Return "pearson_with_diagonal": the mean correlation of the whole matrices with DILCA's, zeros included.

    Attributes with three values or more count; NaN without any. It is what `distances` leaves out, and why.
    """
    asked = str(trial.parameters["context"])
    context = {"baseline": "relevant-redundant", "baseline-mean-su": "mean-su"}.get(asked, asked)
    found: LearnedDistances = trial.result
    true = _without_privacy(trial.table, context, tuple(found))
    wide = [name for name in true if true[name].attribute.size > 2]
    close = [_correlation(found[name].matrix, true[name].matrix) for name in wide]
    return {"pearson_with_diagonal": float(np.mean(close)) if close else float("nan")}


def by_attribute(trial: Trial) -> Mapping[str, float]:
    """Return "f_score of NAME" of each attribute's context, and "pearson of NAME" where it has three values or more."""
    found: LearnedDistances = trial.result
    true = _without_privacy(trial.table, str(trial.parameters["context"]), tuple(found))
    scores = {f"f_score of {name}": f_score(found[name].context, true[name].context) for name in true}
    wide = [name for name in true if true[name].attribute.size > 2]
    return scores | {f"pearson of {name}": pearson(found[name].matrix, true[name].matrix) for name in wide}


@functools.lru_cache(maxsize=8)
def _without_privacy(table: dpf.Table, context: str, attributes: tuple[str, ...]) -> LearnedDistances:
    return dilca(table, context=context, attributes=attributes)


def _correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    constant = np.ptp(one) < 1e-12 or np.ptp(other) < 1e-12
    return 0.0 if constant else float(np.corrcoef(one.ravel(), other.ravel())[0, 1])


def classes_of(table: dpf.Table) -> NDArray[np.int64]:
    """Return the rows' classes, as codes."""
    return np.asarray(table.codes[table.schema.index("class")])


def chosen(table: dpf.Table, rows: int) -> NDArray[np.int64]:
    """Return the positions of so many rows, the same whenever they are asked for; all, if there are fewer."""
    return np.random.default_rng(0).permutation(table.codes.shape[1])[:rows]


def nearest_neighbours(trial: Trial, *, neighbours: int = 5, rows: int = 1000) -> Mapping[str, float]:
    """Return "accuracy": of the class by the nearest rows of the table, on so many of those held out.

    Parameters
    ----------
    trial
        Its result was learned from the table.
    neighbours
        How many vote.
    rows
        How many of the held-out rows are predicted.
    """
    from sklearn.neighbors import KNeighborsClassifier

    assert trial.held_out is not None
    metric = CategoricalMetric(trial.result)
    some = chosen(trial.held_out, rows)
    model = KNeighborsClassifier(neighbours, algorithm="brute").fit(metric.embed(trial.table), classes_of(trial.table))
    asked = metric.embed(metric.encode(trial.held_out)[some])
    return {"accuracy": float(model.score(asked, classes_of(trial.held_out)[some]))}


def ward(trial: Trial, *, rows: int = 2000) -> Mapping[str, float]:
    """Return "ari": the adjusted Rand index of the classes and as many clusters of Ward's, of so many rows."""
    from sklearn.metrics import adjusted_rand_score

    metric, some = CategoricalMetric(trial.result), chosen(trial.table, rows)
    clusters = metric.clusters(metric.encode(trial.table)[some], trial.table.schema["class"].size)
    return {"ari": float(adjusted_rand_score(classes_of(trial.table)[some], clusters))}


def rows_apart(trial: Trial, *, rows: int = 500) -> Mapping[str, float]:
    """Return "rows_pearson" and "rows_l1": how near the distances of so many rows are to those without privacy."""
    some, found = chosen(trial.table, rows), trial.result
    true = _without_privacy(trial.table, str(trial.parameters["context"]), tuple(found))
    one, other = (CategoricalMetric(each) for each in (found, true))
    matrices = [metric.pairwise(metric.encode(trial.table)[some]) for metric in (one, other)]
    return {"rows_pearson": pearson(*matrices), "rows_l1": l1(*matrices)}


def beside_dilca_m(trial: Trial) -> Mapping[str, float]:
    """Return "pearson_of_m": the correlation with the distances of DILCA's M, whatever the size of the context."""
    return {"pearson_of_m": distances(trial, context="mean-su")["pearson"]}


def right_context(trial: Trial) -> Mapping[str, float]:
    """Return "right": 1 if the context of "target" is all attributes that are named after a context, else 0."""
    true = {name for name in trial.table.schema.names if name.startswith("context ")}
    return {"right": float(set(trial.result["target"].context) == true)}


def agreement(trial: Trial) -> Mapping[str, float]:
    """Return "ari": the adjusted Rand index of the classes and of the clusters that the trial found."""
    from sklearn.metrics import adjusted_rand_score

    return {"ari": float(adjusted_rand_score(classes_of(trial.table), trial.result))}
