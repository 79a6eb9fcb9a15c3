"""DP-ID3 with the sensitivities that Friedman and Schuster 2010 state, which are valid and up to twice too large.

`DPID3.published` has the paper's settings, but calibrates its selections by the sensitivities derived in this project.
Here the same plan gets the paper's: a selection then is as sharp as ours at half of its epsilon.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import attrs
from dpframework_trees import DPID3
from dpframework_trees.criteria import Criterion, criterion_named
from dpframework_trees.queries import CodesByClass, SplitScores, ThresholdScores

import dpframework as dpf
from dpframework.facts.privacy_losses import rational_above
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Either, Node, Parallel, Repeat, Sequential, Step
from dpframework.queries import Norm, Sensitivity

GINI, MAX = 2, 1
"""Sensitivities of the talk's table; that of information gain grows with the number of rows."""


@attrs.frozen
class PublishedCriterion(Criterion):
    """A criterion with the sensitivity of the talk's table, two-sided."""

    @classmethod
    def named(cls, name: str) -> PublishedCriterion:
        """Return one by name."""
        known = criterion_named(name)
        return cls(known.name, known.text, known.formula, known.bounds)

    def sensitivity(self, row_bound: int | None, *, exact: bool = False) -> Sensitivity:
        """Return 2 for Gini, 1 for max, log2(rows + 1) + 1 / ln 2 for information gain."""
        match self.name:
            case "gini":
                value = Fraction(GINI)
            case "information-gain":
                assert row_bound is not None
                value = rational_above(math.log2(row_bound + 1) + 1 / math.log(2))
            case _:
                value = Fraction(MAX)
        return Sensitivity(Norm.LINF, value, source="Friedman and Schuster 2010, table of splitting criteria")


@attrs.frozen
class PublishedDPID3(dpf.Miner):
    """DP-ID3 as published, its sensitivities too."""

    name = "dp-id3-as-published"
    miner: DPID3

    def plan(self, schema: dpf.Schema) -> Node:
        """Return the miner's plan with other sensitivities."""
        return _as_published(self.miner.plan(schema))

    def mine(self, table: dpf.PrivateTable) -> Any:
        """Grow the tree."""
        return self.miner.mine(table)


def _as_published(node: Node) -> Node:
    match node:
        case Step(query=SplitScores() | ThresholdScores() as query):
            criterion = PublishedCriterion.named(query.criterion.name)
            return attrs.evolve(node, query=attrs.evolve(query, criterion=criterion))
        case Step(query=CodesByClass(), mechanism=DiscreteLaplace() as noise):
            # the other half is for counts of values alone, which here are sums of those by class
            return attrs.evolve(node, mechanism=DiscreteLaplace(noise.epsilon / 2))
        case Repeat():
            return Repeat(_as_published(node.part), node.times)
        case Sequential() | Parallel() | Either():
            return attrs.evolve(node, parts=tuple(map(_as_published, node.parts)))
    return node


def dp_id3(table: dpf.Table, *, seed: int, epsilon: float, target: str, criterion: str, max_depth: int) -> Any:
    """Grow a tree with the paper's settings and sensitivities.

    Parameters
    ----------
    table
        The rows.
    seed
        Of the noise.
    epsilon
        The budget of the whole tree.
    target
        The class attribute.
    criterion
        "max", "gini", "information-gain", or "sulq": information gain from noisy counts, on public cuts.
    max_depth
        The longest path.
    """
    exact = Fraction(str(epsilon))
    settings: dict[str, Any] = {"criterion": criterion, "numeric": "density", "max_depth": max_depth}
    if criterion == "sulq":
        settings |= {"criterion": "information-gain", "numeric": "candidates", "selection": "noisy-counts"}
    study = dpf.Study(table.schema, epsilon=exact)
    study.add("tree", PublishedDPID3(DPID3.published(target, exact, **settings)))
    return study.run(table, seed=seed)["tree"]
