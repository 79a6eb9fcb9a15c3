"""Answers to draw from, each with the facts of a query that gives such ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.queries import KeyCounts, Norm, PiecewiseScores, QueryFacts, Sensitivity


@final
@attrs.frozen(eq=False)
class Probe:
    """A query's facts, and an answer to it that shows the noise well, given its scale."""

    facts: QueryFacts
    answer: Callable[[float], Any]


def probes() -> tuple[Probe, ...]:
    """Return queries' facts with answers that between them every kind of mechanism can serve."""

    def facts(name: str, integer: bool, size: int | None, *norms: Norm) -> QueryFacts:
        return QueryFacts(name, name, (), integer, size, [Sensitivity(n, 1, fall=0, source="a probe") for n in norms])

    breaks = np.array([0, 0.5, 2, 2.25, 4])
    several = attrs.evolve(facts("two histograms", True, 5, Norm.HISTOGRAMS), histograms=(2, 3))
    blocks = attrs.evolve(facts("two blocks", True, 5, Norm.BLOCKS), histograms=(2, 3))
    by_key = attrs.evolve(facts("counts by key", True, None, Norm.L1, Norm.SQUARED_L2, Norm.LINF), unlisted=True)
    return (
        Probe(several, lambda scale: np.array([5, -3, 2, 0, 0])),
        Probe(blocks, lambda scale: np.array([5, -3, 2, 0, 0])),
        Probe(facts("two counts", True, 2, Norm.L1, Norm.SQUARED_L2), lambda scale: np.array([5, -3])),
        Probe(by_key, lambda scale: KeyCounts.of({"a": 3, "b": 9})),
        Probe(facts("two real numbers", False, 2, Norm.L1, Norm.SQUARED_L2), lambda scale: np.array([0.25, -1.5])),
        Probe(facts("integer scores", True, 60, Norm.LINF), lambda scale: _scores(math.ceil(4 * scale)).astype(int)),
        Probe(facts("real scores", False, 60, Norm.LINF), lambda scale: _scores(4 * scale)),
        Probe(
            facts("scores on an interval", False, 1, Norm.LINF),
            lambda scale: PiecewiseScores(breaks, scale * np.array([0.0, 3.0, 1.0, 2.0])),
        ),
    )


def _scores(best: float) -> NDArray[np.float64]:
    """Return one high score and enough low ones that slightly more or less noise changes much."""
    return np.array([best, best / 2, best / 2, *[0.0] * 57])
