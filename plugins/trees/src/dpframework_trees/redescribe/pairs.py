"""Pairs of trees sampled together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.facts import (
    Schema,
    View,
    between_0_and_1,
    one_of,
    share_of_budget,
    whole_number,
)
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node, sequential, step
from dpframework.results import Redescription
from dpframework.run import Example, PrivateTable
from dpframework_trees.complete import CompleteTree
from dpframework_trees.queries import JointLeaves, TreePairScores
from dpframework_trees.redescribe.starts import EXAMPLE_SCHEMA, OTHER, Start, TreeRedescriptions
from dpframework_trees.splits import Candidates
from dpframework_trees.tree_pairs import MarkovChainPairs, pair_score_named


@final
@attrs.frozen
class MCMCTreePair(TreeRedescriptions):
    """Redescriptions from pairs of trees sampled together (Mihelčić and Miettinen 2023, MCMCTreePair).

    Parameters
    ----------
    score
        "gain", or the paper's "product" under its tight sensitivity; `sensitivity = "published"` takes the product as
        published, normalised (see `pairing.PairScore`).
    tree_share
        The share of the budget that the trees get, with the selection of a start: the paper's omega, 0.1 ("standard")
        or 0.5 ("balanced").
    iterations
        Of the walk.
    """

    name = "mcmc-tree-pair"
    score: str = attrs.field(default="gain", validator=one_of(("gain", "product")))
    tree_share: Fraction = attrs.field(default=Fraction(1, 2), converter=share_of_budget, validator=between_0_and_1)
    iterations: int = attrs.field(default=10_000, validator=whole_number())

    @classmethod
    def published(cls, epsilon: Any, starts: Iterable[str], **changes: Any) -> MCMCTreePair:
        """Return the miner with the settings of Mihelčić and Miettinen 2023 (Table 6), but for the parameters given.

        Parameters
        ----------
        epsilon
            The budget.
        starts
            The attributes that pairs start from, drawn without looking at the rows: four in the paper.
        """
        settings = {"max_depth": 4, "sensitivity": "published", "tree_share": "1/10", **changes}
        return cls(epsilon=epsilon, starts=starts, **settings)

    def plan(self, schema: Schema) -> Node:
        """Plan, for each start, a pair of trees and a table."""
        each = self.epsilon / self.number(schema)
        score = pair_score_named("published" if self.sensitivity == "published" else self.score)
        starts, scopes = self.starts_on(schema), []
        tests = self.tests(schema)
        read = self.read(tests)
        for start in starts:
            for_trees = each * self.tree_share / (2 if start.selected else 1)
            scores = TreePairScores(
                score,
                start.target,
                tests[OTHER[start.view]],
                tests[start.view],
                self.max_depth,
                schema.rows,
                among=read,
            )
            most = 1 if score.normalised else schema.row_bound
            pair = step("pair", scores, MarkovChainPairs(for_trees, self.iterations), threshold=most)
            counts = JointLeaves(2**self.max_depth, 2**self.max_depth, among=read)
            table = step("leaves", counts, DiscreteLaplace(each * (1 - self.tree_share)), uses=["pair"])
            scopes.append(sequential(*self.selection(tests, start, for_trees), pair, table, name=start.scope))
        return sequential(*scopes)

    def mine_from(
        self, table: PrivateTable, tests: Mapping[View, Candidates], start: Start
    ) -> list[tuple[list[Redescription], int]]:
        """Release a pair, and its table."""
        released = table.release("pair")
        views = OTHER[start.view], start.view
        trees = {view: CompleteTree(tests[view], chosen) for view, chosen in zip(views, released, strict=True)}
        return [self.extracted(table, "leaves", trees)]

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return each score with its sensitivity."""
        from dpframework_trees.redescribe.witnesses import PUBLISHED_PAIRS, pair_of_trees

        few: dict[str, Any] = {"starts": ["wolf"], "max_depth": 1, "iterations": 2000}
        return {
            "default": Example(EXAMPLE_SCHEMA, cls(2, **few), witnesses=[pair_of_trees()]),
            "product": Example(EXAMPLE_SCHEMA, cls(2, score="product", **few)),
            "published": Example(EXAMPLE_SCHEMA, cls(2, sensitivity="published", **few), loose=PUBLISHED_PAIRS),
        }
