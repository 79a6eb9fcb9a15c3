"""Redescriptions from pairs of trees that are sampled together."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.facts import Attribute, Cases, Schema, View, between_0_and_1, one_of, share_of_budget, whole_number
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node, sequential, step
from dpframework.redescriptions import Redescription
from dpframework.run import Example, PrivateTable
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.criteria import PUBLISHED_GINI
from dpframework_trees.exact_pair_sampler import ExactPairs
from dpframework_trees.queries import JointLeaves, TreePairScores
from dpframework_trees.redescribe.alternation import TreeOnView, leaves_attribute
from dpframework_trees.redescribe.tree_redescription_miner_base import EXAMPLE_SCHEMA, OTHER, Start, TreeRedescriptions
from dpframework_trees.splits import Candidates
from dpframework_trees.tree_pair_counts import pairs_misfit, require_feasible_pairs
from dpframework_trees.tree_pairs import MarkovChainPairs, pair_score_named

AUTO = "auto"
SAMPLERS = ("exact", "stepwise", "mcmc")
QUICK_PAIR_WORK = 1 << 23  # the most pairs of tests, over all first trees, that "auto" looks at: a second or two
FIRST_LEAVES = "leaf of the first tree"


@final
@attrs.frozen
class MCMCTreePair(TreeRedescriptions):
    """Redescriptions from pairs of trees sampled together (Mihelčić and Miettinen 2023, MCMCTreePair).

    Parameters
    ----------
    score
        "gain", or "product" for the paper's score with its tight sensitivity. `sensitivity = "published"` takes the
        product in any case, normalised as in the paper (see `tree_pairs.PairScore`).
    tree_share
        The share of the budget for the trees and the selection of a start. It is the paper's omega, which is 0.1
        ("standard") or 0.5 ("balanced").
    sampler
        How a pair is drawn.
        "exact" draws from the exponential mechanism on all pairs, for trees of one or two levels and few tests.
        "stepwise" draws the first tree for the classes of the start, then the second for the leaves of the first. Each
        is drawn exactly and with an equal share of the budget, as `alt-mcmc` does in one round.
        "mcmc" walks towards the distribution of "exact", as in the paper, and assumes that `iterations` steps get
        there.
        "auto" is "exact" if that takes a second or two for the numbers of tests and levels, which are public, else
        "stepwise".
    iterations
        The number of steps of the walk.
    """

    name = "mcmc-tree-pair"
    score: str = attrs.field(default="gain", validator=one_of(("gain", "product")))
    tree_share: Fraction = attrs.field(default=Fraction(1, 2), converter=share_of_budget, validator=between_0_and_1)
    sampler: str = attrs.field(default=AUTO, validator=one_of((AUTO, *SAMPLERS)))
    iterations: int = attrs.field(default=10_000, validator=whole_number())

    @classmethod
    def settings_of_paper(cls, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tenth of the budget for the trees, which come from a walk. The paper has four starts."""
        return {"tree_share": "1/10", "sampler": "mcmc"}

    @property
    def derived_names(self) -> tuple[str, ...]:
        """The names of the attributes that the miner derives."""
        return (*super().derived_names, FIRST_LEAVES)

    def sampler_for(self, first: int, second: int) -> str:
        """Return the sampler for the numbers of tests of the two trees, which are public."""
        if self.sampler != AUTO:
            return self.sampler
        return "stepwise" if pairs_misfit(first, second, self.max_depth, QUICK_PAIR_WORK) else "exact"

    def plan(self, schema: Schema) -> Node:
        """Plan, for each start, its selection, a pair of trees and a table."""
        each = self.epsilon / self.number(schema)
        starts, scopes = self.starts_on(schema), []
        tests = self.tests(schema)
        read = self.read(tests, schema)
        for start in starts:
            sides = tests[OTHER[start.view]], tests[start.view]
            sampler = self.sampler_for(len(sides[0]), len(sides[1]))
            trees = ["first tree", "second tree"] if sampler == "stepwise" else ["pair"]
            share = each * self.tree_share / (len(trees) + start.selected)
            counts = JointLeaves(2**self.max_depth, 2**self.max_depth, among=read)
            table = step("leaves", counts, DiscreteLaplace(each * (1 - self.tree_share)), uses=trees)
            if sampler == "stepwise":
                tight = self.sensitivity == "tight"
                criterion = pair_score_named(self.score).criterion if tight else PUBLISHED_GINI
                classes = start.target, leaves_attribute(FIRST_LEAVES, self.max_depth)
                parts = [
                    TreeOnView(target, own, share, schema.row_bound, read).exact_plan(name, criterion, self.max_depth)
                    for name, target, own in zip(trees, classes, sides, strict=True)
                ]
            else:
                parts = [self._pair(start.target, sides, sampler, share, schema, read)]
            scopes.append(sequential(*self.selection(tests, start, share), *parts, table, name=start.scope))
        return sequential(*scopes)

    def _pair(
        self,
        target: Attribute,
        sides: tuple[Candidates, Candidates],
        sampler: str,
        epsilon: Fraction,
        schema: Schema,
        read: tuple[str, ...],
    ) -> Node:
        """Plan the release of both trees at once. The first tree is for the classes of a target."""
        score = pair_score_named("published" if self.sensitivity == "published" else self.score)
        walks = sampler == "mcmc"
        if not walks:
            require_feasible_pairs(len(sides[0]), len(sides[1]), self.max_depth)
        scores = TreePairScores(score, target, *sides, self.max_depth, schema.rows, gives_counts=not walks, among=read)
        most = 1 if score.normalised else schema.row_bound
        drawn = MarkovChainPairs(epsilon, self.iterations) if walks else ExactPairs(epsilon)
        return step("pair", scores, drawn, threshold=most)

    def mine_from(
        self, table: PrivateTable, tests: Mapping[View, Candidates], start: Start
    ) -> list[tuple[list[Redescription], int]]:
        """Release a pair of trees and its table, and return the pair's redescriptions."""
        views = OTHER[start.view], start.view
        first, second = (tests[view] for view in views)
        if self.sampler_for(len(first), len(second)) == "stepwise":
            tree = CompleteTree(first, table.release("first tree"))
            leaves = Cases([tree.description(leaf) for leaf in range(tree.leaves - 1)])
            with_leaves = table.derive(leaves_attribute(FIRST_LEAVES, self.max_depth), leaves)
            trees = tree, CompleteTree(second, with_leaves.release("second tree"))
        else:
            one, other = table.release("pair")
            trees = CompleteTree(first, one), CompleteTree(second, other)
        return [self.extract(table, "leaves", dict(zip(views, trees, strict=True)))]

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with each score and its sensitivity, and with each sampler."""
        from dpframework_trees.redescribe.witnesses import (
            PUBLISHED_PAIRS,
            pair_by_product,
            pair_of_trees,
            pair_step_by_step,
            published_pair,
        )

        few: dict[str, Any] = {"starts": ["wolf"], "max_depth": 1}
        walk = cls(2, sampler="mcmc", iterations=2000, **few)
        stepwise = cls(2, sampler="stepwise", **few)
        published = cls(2, sensitivity="published", **few)
        return {
            "default": Example(EXAMPLE_SCHEMA, cls(2, starts=["wolf"]), witnesses=pair_of_trees(2)),
            "one level": Example(EXAMPLE_SCHEMA, cls(2, **few), witnesses=pair_of_trees(1)),
            "stepwise": Example(EXAMPLE_SCHEMA, stepwise, witnesses=pair_step_by_step()),
            "mcmc": Example(EXAMPLE_SCHEMA, walk, witnesses=pair_of_trees(1)),
            "product": Example(EXAMPLE_SCHEMA, cls(2, score="product", **few), witnesses=pair_by_product()),
            "published": Example(EXAMPLE_SCHEMA, published, witnesses=published_pair(), loose=PUBLISHED_PAIRS),
        }
