"""How distances are learned: with the paper's settings, with ours, without privacy, and from nothing at all.

The attribute "class", where there is one, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from dpframework_distance import CategoricalMetric, DPDilca, LearnedDistances, ValueDistances, dilca
from numpy.typing import NDArray

import dpframework as dpf

DELTA = "0.000001"
NOTHING = "0.00001"
"""An epsilon at which the noise is all there is."""
SETTINGS: Mapping[str, Callable[..., DPDilca]] = {
    "published": DPDilca.published,
    "default": DPDilca,
    "zcdp": lambda epsilon, **params: DPDilca.zcdp(epsilon, DELTA, **params),
}


def attributes_of(table: dpf.Table) -> tuple[str, ...]:
    """Return the attributes that distances are learned of."""
    return tuple(name for name in table.schema.names if name != "class")


def private(
    table: dpf.Table,
    *,
    seed: int,
    epsilon: float,
    settings: str,
    context: str,
    context_size: int = 3,
    target: str | None = None,
    each: bool = False,
    for_contexts: bool = False,
) -> LearnedDistances:
    """Plan, check and run DP-DILCA for all attributes, under replace-one.

    Parameters
    ----------
    table
        The rows.
    seed
        Of the run.
    epsilon
        The budget of all distances together; or, with `each`, for each attribute: then m attributes have m times as
        much, but for the baselines, whose histograms are of all pairs and serve every target at once.
    settings
        "published"; "default"; or "zcdp", the defaults with a delta of 1e-6.
    context
        How contexts are selected.
    context_size
        How many attributes they have, where that is not found.
    target
        The attribute whose distances are learned; all by default.
    each
        Whether epsilon is for each attribute, as in the paper's figures 2 and 3.
    for_contexts
        Whether epsilon is that of the contexts alone, as in the paper's figure 6: histograms have more beside it.
    """
    among = attributes_of(table)
    total = dpf.facts.exact(str(epsilon)) * (len(among) if each and not context.startswith("baseline") else 1)
    total = total / DPDilca(1).context_share if for_contexts else total
    study = dpf.Study(
        table.schema,
        epsilon=total,
        relation="replace-one",
        delta=DELTA if settings == "zcdp" else 0,
        allow=["schema-inferred-from-data"],
    )
    parameters = {"context": context, "context_size": context_size, "target": target, "attributes": among}
    study.add("distances", SETTINGS[settings](total, **parameters))
    found: LearnedDistances = study.run(table, seed=seed)["distances"]
    return found


def noise(table: dpf.Table, *, seed: int, context: str) -> LearnedDistances:
    """Return what the published method makes of noise alone: contexts drawn, distances between shares of noise."""
    return private(table, seed=seed, epsilon=float(NOTHING), settings="published", context=context)


def by_chance(table: dpf.Table, *, seed: int, context: str) -> LearnedDistances:
    """Return contexts and distances that are drawn without looking at the rows.

    Every context is as likely as any other: of three attributes, or of any number for "mean-su". Distances are between
    0 and 1, each as likely, and symmetric.

    Parameters
    ----------
    table
        Its schema is used alone.
    seed
        Of the drawing.
    context
        How the contexts that they are compared with are selected.
    """
    rng, names = np.random.default_rng(seed), attributes_of(table)
    found = {}
    for name in names:
        others = [other for other in names if other != name]
        if context == "mean-su":
            chosen: list[str] = []
            while not chosen:
                chosen = [other for other, taken in zip(others, rng.random(len(others)) < 0.5, strict=True) if taken]
        else:
            chosen = rng.choice(others, 3, replace=False).tolist()
        attribute = table.schema[name]
        above = np.triu(rng.random((attribute.size, attribute.size)), 1)
        found[name] = ValueDistances(attribute, tuple(chosen), above + above.T)
    return LearnedDistances(table.schema.select(list(names)), found, covered=False)


def not_private(
    table: dpf.Table, *, seed: int, context: str, context_size: int = 3, target: str | None = None
) -> LearnedDistances:
    """Return DILCA's distances."""
    return dilca(table, context=context, context_size=context_size, target=target, attributes=attributes_of(table))


def overlap(table: dpf.Table, *, seed: int) -> LearnedDistances:
    """Return the distance 1 between any two values: the rows are not looked at."""
    return _from_matrices(table, {a.name: 1.0 - np.eye(a.size) for a in table.schema if a.name != "class"})


def shares(table: dpf.Table, *, seed: int, context: str) -> LearnedDistances:
    """Return how far apart two values' shares of the rows are: not private, and without any context.

    `context` is that of the distances they are compared with.
    """
    matrices = {}
    for attribute, codes in zip(table.schema, table.codes, strict=True):
        if attribute.name != "class":
            share = np.bincount(codes, minlength=attribute.size) / len(codes)
            matrices[attribute.name] = np.abs(share[:, None] - share)
    return _from_matrices(table, matrices)


def private_clusters(
    table: dpf.Table, *, seed: int, settings: str, epsilon: float = 0, clusters: float = 2
) -> NDArray[np.int64]:
    """Return the cluster of each row, by diffprivlib's k-means, as many as there are classes.

    Parameters
    ----------
    table
        The rows.
    seed
        Of the distances, and of k-means.
    settings
        Of the distances by which rows are embedded (see `private`); "exact" for DILCA's without privacy; or "one-hot"
        for a column a value, which needs no distances, so that k-means has both budgets.
    epsilon, clusters
        The budgets of the distances and of k-means, whose bounds follow from the distances.
    """
    import warnings

    from diffprivlib.models import KMeans

    if settings == "one-hot":
        names = attributes_of(table)
        codes = table.codes[[table.schema.index(name) for name in names]]
        rows = np.concatenate([np.eye(table.schema[n].size)[own] for n, own in zip(names, codes, strict=True)], axis=1)
        lower, upper, clusters = np.zeros(rows.shape[1]), np.ones(rows.shape[1]), clusters + epsilon
    else:
        of = {"context": "max-dependency", "seed": seed}
        exact = settings == "exact"
        metric = CategoricalMetric(
            not_private(table, **of) if exact else private(table, epsilon=epsilon, settings=settings, **of)
        )
        rows = metric.embed(table)
        lower, upper = (np.concatenate([end(p, axis=0) for p in metric.points]) for end in (np.min, np.max))
    model = KMeans(table.schema["class"].size, epsilon=clusters, bounds=(lower, upper), random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.fit_predict(rows))


def _from_matrices(table: dpf.Table, matrices: Mapping[str, Any]) -> LearnedDistances:
    schema = table.schema.select(list(matrices))
    found = {name: ValueDistances(schema[name], (), matrix) for name, matrix in matrices.items()}
    return LearnedDistances(schema, found, covered=False)
