"""How distances are learned: with the paper's settings, with ours, without privacy, and from nothing at all.

The attribute "class", where there is one, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from dpframework_distance import DPDilca, LearnedDistances, ValueDistances, dilca

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
    table: dpf.Table, *, seed: int, epsilon: float, settings: str, context: str, each: bool = False
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
        much, but for the context "baseline", whose histograms are of all pairs and serve every target at once.
    settings
        "published"; "default"; or "zcdp", the defaults with a delta of 1e-6.
    context
        How contexts are selected.
    each
        Whether epsilon is for each attribute, as in the paper's figures 2 and 3.
    """
    among = attributes_of(table)
    total = dpf.facts.exact(str(epsilon)) * (len(among) if each and context != "baseline" else 1)
    study = dpf.Study(
        table.schema,
        epsilon=total,
        relation="replace-one",
        delta=DELTA if settings == "zcdp" else 0,
        allow=["schema-inferred-from-data"],
    )
    study.add("distances", SETTINGS[settings](total, context=context, attributes=among))
    found: LearnedDistances = study.run(table, seed=seed)["distances"]
    return found


def noise(table: dpf.Table, *, seed: int, context: str) -> LearnedDistances:
    """Return what the published method makes of noise alone: contexts drawn, distances between shares of noise."""
    return private(table, seed=seed, epsilon=float(NOTHING), settings="published", context=context)


def not_private(table: dpf.Table, *, seed: int, context: str) -> LearnedDistances:
    """Return DILCA's distances."""
    return dilca(table, context=context, attributes=attributes_of(table))


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


def _from_matrices(table: dpf.Table, matrices: Mapping[str, Any]) -> LearnedDistances:
    schema = table.schema.select(list(matrices))
    found = {name: ValueDistances(schema[name], (), matrix) for name, matrix in matrices.items()}
    return LearnedDistances(schema, found, covered=False)
