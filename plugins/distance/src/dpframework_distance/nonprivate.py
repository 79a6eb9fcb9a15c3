"""DILCA without privacy, the baseline for DP-DILCA. It reads the rows freely, and its result says so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, InputError, nearest
from dpframework.tables import Engine, InMemory, Table
from dpframework_distance.context_selection import above_the_mean, relevant_not_redundant, su_of_histograms
from dpframework_distance.distance_estimates import NoisyPair, distances_between, points_from, published_estimate
from dpframework_distance.distance_learner import attributes_and_targets
from dpframework_distance.miner import DPDilca
from dpframework_distance.queries import ContextScores
from dpframework_distance.sensitivities import RowBounds
from dpframework_distance.subsets import count_once, require_few_cells, require_few_cells_of, subsets
from dpframework_distance.value_distances import LearnedDistances, ValueDistances

NONPRIVATE_CONTEXTS = ("mean-su", "relevant-redundant", "max-relevance", "max-dependency")


def dilca(
    table: Table,
    *,
    context: str = "mean-su",
    context_size: int = 3,
    target: str | None = None,
    attributes: tuple[str, ...] | None = None,
    profiles: bool = False,
) -> LearnedDistances:
    """Learn distances without privacy (Ienco, Pensa and Meo 2012), for comparison on data that is not secret.

    Parameters
    ----------
    table
        The rows, which are read freely.
    context
        "mean-su" (DILCA's M), "relevant-redundant" (its RR), "max-relevance" or "max-dependency".
    context_size
        The number of attributes in a context, for "max-relevance" and "max-dependency".
    target, attributes, profiles
        See `DPDilca`.

    Raises
    ------
    InputError
        If a parameter is wrong.
    """
    if context not in NONPRIVATE_CONTEXTS:
        raise InputError(f"context {context!r} is unknown; {nearest(str(context), NONPRIVATE_CONTEXTS)}")
    same = "baseline" if context == "relevant-redundant" else context
    asked = DPDilca(1, target=target, context=same, context_size=context_size, attributes=attributes, profiles=profiles)
    among, targets = attributes_and_targets(asked, table.schema)
    engine = InMemory()
    rows = engine.load(table)
    require_few_cells(among, 2, None)
    layout = subsets(tuple(a.size for a in among), 2)
    counts = engine.sum(rows, lambda block: count_once(block, among, 2, None))
    pairs = {(a, b): layout.histogram(counts, a, b).astype(np.float64) for a, b in layout.position}
    if context in ("mean-su", "relevant-redundant"):
        exact = [_exact(among, pairs, a, b) for a, b in pairs]
        su = su_of_histograms(exact, [attribute.name for attribute in among])
        choose = above_the_mean if context == "mean-su" else relevant_not_redundant
        contexts = {t: choose(su, t) for t in targets}
    elif context == "max-relevance":
        contexts = {t: _largest(_scores(engine, rows, among, t, 1), context_size) for t in targets}
    else:
        require_few_cells_of(among, context_size + 1, targets)
        alone = len(targets) == 1
        contexts = {t: _largest(_scores(engine, rows, among, t, context_size, alone=alone), 1) for t in targets}
    learned = {}
    for t, chosen in contexts.items():
        tables = {among[x].name: _exact(among, pairs, min(t, x), max(t, x)) for x in chosen}
        points = points_from(tables, among[t].name, published_estimate, profiles)
        learned[among[t].name] = ValueDistances(among[t], tuple(tables), distances_between(points))
    return LearnedDistances(table.schema.select([a.name for a in among]), learned, covered=False)


def _exact(
    among: tuple[Attribute, ...], pairs: dict[tuple[int, int], NDArray[np.float64]], a: int, b: int
) -> NoisyPair:
    return NoisyPair(among[a].name, among[b].name, pairs[a, b], 0.0)


def _scores(
    engine: Engine, rows: Any, among: tuple[Attribute, ...], target: int, size: int, *, alone: bool = False
) -> dict[tuple[int, ...], float]:
    """Return the score of each context, by the positions of its attributes."""
    query = ContextScores(among, size, RowBounds(1, None), target, alone)
    position = {attribute.name: k for k, attribute in enumerate(among)}
    scores = query.evaluate(engine, rows)
    contexts = [tuple(position[name] for name in context) for context in query.candidates()]
    return dict(zip(contexts, scores.tolist(), strict=True))


def _largest(scores: dict[tuple[int, ...], float], number: int) -> tuple[int, ...]:
    """Return the attributes of the contexts with the largest scores."""
    best = sorted(scores, key=lambda context: -scores[context])[:number]
    return tuple(sorted(k for context in best for k in context))
