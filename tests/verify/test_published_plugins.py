"""Three published algorithms, written as a plugin's author would: the suite of a new plugin passes them unedited.

Here with a tenth of its replays; with a quarter of them each reaches the default tightness under both relations.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from verify.planted_bugs.test_first_plugins import failures

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, Laplace
from dpframework.queries import CandidateScores, Histogram, JointHistogram, Norm, Query, Sensitivity

ITEMS = ("bread", "milk", "tea")
BASKETS = dpf.Schema([dpf.Boolean(item) for item in ITEMS])
PEOPLE = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("old"), dpf.Boolean("rural")])
POINTS = dpf.Schema([dpf.Numeric("x", -1, 1, cuts=[0]), dpf.Numeric("y", -1, 1, cuts=[0])])


@attrs.frozen
class Supports(Query):
    """In how many rows all items of each given set are, and 0 for sets that are not asked for."""

    name = "supports"
    sets: tuple[tuple[str, ...], ...]

    @property
    def answer_length(self):
        return len(self.sets)

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.L1, len(self.sets), len(self.sets), source="a row is in all sets at most"),)

    def count(self, block, **inputs):
        asked = inputs.get("asked", self.sets)
        held = {item: block.codes(item) == 1 for item in ITEMS}
        return np.array([np.all([held[i] for i in one], axis=0).sum() if one in asked else 0 for one in self.sets])


@attrs.frozen
class FrequentItemsets(dpf.Miner):
    """Level by level: sets of two are asked for only where both items were frequent (Agrawal and Srikant 1994)."""

    name = "frequent-itemsets"
    epsilon: float = 1.0
    least: int = 20

    def plan(self, schema):
        singles = Supports(tuple((item,) for item in ITEMS))
        pairs = Supports(tuple(itertools.combinations(ITEMS, 2)))
        half = DiscreteLaplace(self.epsilon / 2)
        return dpf.sequential(dpf.step("items", singles, half), dpf.step("pairs", pairs, half))

    def mine(self, table):
        counts = dict(zip(ITEMS, table.release("items").tolist(), strict=True))
        frequent = [item for item, count in counts.items() if count >= self.least]
        pairs = tuple(itertools.combinations(frequent, 2))
        if not pairs:
            return counts
        found = table.release("pairs", asked=pairs)
        return counts | {
            " ".join(pair): int(n) for pair, n in zip(itertools.combinations(ITEMS, 2), found, strict=True)
        }


@attrs.frozen
class Agreement(CandidateScores):
    """How many rows agree in the two attributes of each pair."""

    name = "agreement"
    integer = True
    answer_length = 3
    sensitivities: ClassVar = (Sensitivity(Norm.LINF, 1, 1, fall=0, source="a row agrees or not"),)

    def candidates(self, **inputs):
        return list(itertools.combinations(PEOPLE.names, 2))

    def count(self, block, **inputs):
        return np.array([(block.codes(a) == block.codes(b)).sum() for a, b in self.candidates()])


@attrs.frozen
class MarginalTree(dpf.Miner):
    """One marginal, two chosen edges of a tree, and a two-way table for each (after McKenna, Miklau, Sheldon 2021)."""

    name = "marginal-tree"
    rho: float = 1.0

    def plan(self, schema):
        # Two selections cost epsilon^2 / 4 together, which is less than a quarter of rho.
        epsilon, gaussian = min(1.0, math.sqrt(self.rho)) / 2, Gaussian(self.rho / 4)
        tables = [
            dpf.step("-".join(pair), JointHistogram([schema[name] for name in pair]), gaussian)
            for pair in itertools.combinations(schema.names, 2)
        ]
        rounds = [
            dpf.sequential(dpf.step("edge", Agreement(), Exponential(epsilon)), dpf.either(*tables), name=f"round{k}")
            for k in range(2)
        ]
        return dpf.sequential(dpf.step("root", Histogram(schema["ill"]), gaussian), *rounds)

    def mine(self, table):
        found: dict[str, Any] = {"root": table.release("root")}
        for k in range(2):
            scope = table.scope(f"round{k}")
            pair = scope.release("edge")
            found[f"{k} " + " ".join(pair)] = scope.release("-".join(pair))
        return found


@attrs.frozen
class ClusterSums(Query):
    """The number of rows that are nearest to each centre, and the sums of their coordinates."""

    name = "cluster-sums"
    integer = False
    answer_length = 6
    sensitivities: ClassVar = (Sensitivity(Norm.L1, 3, 6, source="a row is 1 in a count, and at most 1 in two sums"),)

    def count(self, block, **inputs):
        points = np.stack([block.values("x"), block.values("y"), np.ones(block.rows)], axis=1)
        centres = np.array(inputs["centres"])
        nearest = ((points[:, None, :2] - centres) ** 2).sum(axis=2).argmin(axis=1)
        return np.stack([points[nearest == k].sum(axis=0) for k in range(len(centres))]).ravel()


@attrs.frozen
class KMeans(dpf.Miner):
    """Lloyd's algorithm in a fixed number of rounds, with noisy sums and counts (SuLQ, Blum et al. 2005)."""

    name = "k-means"
    epsilon: float = 1.0
    rounds: int = 2

    def plan(self, schema):
        noise = Laplace(self.epsilon / self.rounds)
        return dpf.sequential(*(dpf.step(f"round{k}", ClusterSums(), noise) for k in range(self.rounds)))

    def mine(self, table):
        centres = [(-0.5, -0.5), (0.5, 0.5)]
        for k in range(self.rounds):
            sums = table.release(f"round{k}", centres=tuple(centres)).reshape(2, 3)
            centres = [tuple(np.clip(one[:2] / max(one[2], 1.0), -1, 1).tolist()) for one in sums]
        return centres


@pytest.mark.parametrize(
    ("miner", "schema", "relation"),
    [
        (FrequentItemsets(), BASKETS, dpf.Relation.REPLACE_ONE),
        (MarginalTree(), PEOPLE, dpf.Relation.ADD_OR_REMOVE_ONE),
        (KMeans(), POINTS, dpf.Relation.ADD_OR_REMOVE_ONE),
    ],
)
def test_a_published_algorithm_passes_the_suite(miner, schema, relation):
    assert list(failures(miner, relation, schema, least=0.6)) == []
