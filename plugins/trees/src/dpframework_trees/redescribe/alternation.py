"""Trees on the two views in turn, each with the leaves of the tree before as its classes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from dpframework.facts import (
    Attribute,
    Cases,
    Categorical,
    Schema,
    View,
    between_0_and_1,
    one_of,
    share_of_budget,
    whole_number,
)
from dpframework.mechanisms import DiscreteLaplace, Exponential, PermuteAndFlip, PureMechanism
from dpframework.plan import FromRelease, Node, parallel, sequential, step
from dpframework.redescriptions import Redescription
from dpframework.run import Example, PrivateTable
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.criteria import PUBLISHED_GINI, Criterion, KnownRows, criterion_named
from dpframework_trees.queries import JointLeaves, SplitScores, TreeScores
from dpframework_trees.redescribe.tree_redescription_miner_base import (
    EXAMPLE_SCHEMA,
    OTHER,
    STARTING_TEST,
    Start,
    TreeRedescriptions,
)
from dpframework_trees.sampling import ExactTrees, MarkovChainTrees
from dpframework_trees.splits import Candidates, cut_of
from dpframework_trees.tree_counts import counts_suffice
from dpframework_trees.tree_weights import require_feasible


def leaves_attribute(name: str, depth: int) -> Attribute:
    """Return the derived attribute that says in which leaf of a complete tree of this depth a row is."""
    return Categorical(name, [str(k + 1) for k in range(2**depth)])


@final
@attrs.frozen(eq=False)
class TreeOnView:
    """A tree on the attributes of one view, before it is released.

    Attributes
    ----------
    target
        The attribute whose values are the tree's classes.
    tests
        The tests that the tree's nodes may have.
    epsilon
        The tree's budget.
    rows
        A public bound on the number of rows. None if there is none.
    read
        The names of the attributes that the tree's query may read. They are from both views, since derived classes
        depend on the attributes that they were derived from.
    """

    target: Attribute
    tests: Candidates
    epsilon: Fraction
    rows: int | None
    read: tuple[str, ...]

    def scores(self, criterion: Criterion, depth: int, *, gives_counts: bool = False) -> TreeScores:
        """Return the query for the scores of all trees of a depth."""
        return TreeScores(
            criterion, self.target, KnownRows(self.rows), self.tests, depth, gives_counts, among=self.read
        )

    def exact_plan(self, name: str, criterion: Criterion, depth: int) -> Node:
        """Plan the tree's release as one step that draws it exactly.

        Raises
        ------
        InputError
            If the exact sampler would take too long.
        """
        require_feasible(len(self.tests), depth)
        gives_counts = counts_suffice(len(self.tests), self.target.size, depth)
        scores = self.scores(criterion, depth, gives_counts=gives_counts)
        return step(name, scores, ExactTrees(self.epsilon), threshold=self.rows)


@attrs.frozen
class _Alternating(TreeRedescriptions):
    """Trees on the two views in turn, each with the leaves of the tree before as its classes.

    Parameters
    ----------
    rounds
        How many trees follow the first one. Each tree gives redescriptions together with the tree before it.
    tree_share
        The share of the budget for the trees and the selection of a start, which get equal parts of it. The tables get
        the rest. The paper has equal parts for all trees and tables, which is (`rounds` + 1) / (2 `rounds` + 1).
    """

    rounds: int = attrs.field(default=1, validator=whole_number(most=100))
    tree_share: Fraction = attrs.field(
        default=Fraction(1, 2), converter=share_of_budget, validator=between_0_and_1, kw_only=True
    )

    @classmethod
    def settings_of_paper(cls, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return four rounds, and equal parts of the budget for all trees and tables.

        The paper has one start with four alternations or, in its stable setting, four starts with one alternation each
        (`rounds=1`).
        """
        rounds = changes.get("rounds", 4)
        return {"rounds": rounds, "tree_share": Fraction(rounds + 1, 2 * rounds + 1)}

    @property
    def criterion(self) -> Criterion:
        """The criterion that scores a leaf."""
        return criterion_named("norm") if self.sensitivity == "tight" else PUBLISHED_GINI

    def shares(self, schema: Schema) -> tuple[Fraction, Fraction]:
        """Return the epsilon of each selection and each tree, and the epsilon of each table."""
        each, selections = self.epsilon / self.number(schema), self.named_starts(schema) is None
        return each * self.tree_share / (self.rounds + 1 + selections), each * (1 - self.tree_share) / self.rounds

    def plan(self, schema: Schema) -> Node:
        """Plan, for each start, its selection, a tree, then `rounds` times a tree and a table."""
        starts, scopes = self.starts_on(schema), []
        tests, (share, counting) = self.tests(schema), self.shares(schema)
        read = self.read(tests, schema)
        for start in starts:
            view, target = OTHER[start.view], start.target
            parts = self.selection(tests, start, share)
            for i in range(self.rounds + 1):
                tree = TreeOnView(target, tests[view], share, schema.row_bound, read)
                parts.append(self.tree_plan(f"tree {i + 1}", tree))
                if i:
                    counts = JointLeaves(2**self.max_depth, 2**self.max_depth, among=read)
                    uses = [f"tree {k}" for k in (i, i + 1)]
                    parts.append(step(f"leaves {i}", counts, DiscreteLaplace(counting), uses=uses))
                target, view = self.leaves_attribute(i + 1), OTHER[view]
            scopes.append(sequential(*parts, name=start.scope))
        return sequential(*scopes)

    @property
    def derived_names(self) -> tuple[str, ...]:
        """The names of the attributes that the miner derives."""
        return (STARTING_TEST, *(self.leaves_attribute(k + 1).name for k in range(self.rounds)))

    def leaves_attribute(self, number: int) -> Attribute:
        """Return the derived attribute that says in which leaf of tree `number` a row is."""
        return leaves_attribute(f"leaf of tree {number}", self.max_depth)

    def tree_plan(self, name: str, tree: TreeOnView) -> Node:
        """Plan one tree."""
        raise NotImplementedError

    def grow(self, table: PrivateTable, name: str, tests: Candidates) -> CompleteTree:
        """Release one tree, and return it."""
        raise NotImplementedError

    def mine_from(
        self, table: PrivateTable, tests: Mapping[View, Candidates], start: Start
    ) -> list[tuple[list[Redescription], int]]:
        """Release trees on the two views in turn, and the table of each two successive trees."""
        view = OTHER[start.view]
        trees: dict[View, CompleteTree] = {}
        found = []
        for i in range(self.rounds + 1):
            trees[view] = self.grow(table, f"tree {i + 1}", tests[view])
            if i:
                found.append(self.extract(table, f"leaves {i}", trees))
            if i < self.rounds:
                target = self.leaves_attribute(i + 1)
                leaves = [trees[view].description(leaf) for leaf in range(2**self.max_depth - 1)]
                table = table.derive(target, Cases(leaves))
            view = OTHER[view]
        return found


@final
@attrs.frozen
class AltExpM(_Alternating):
    """Redescriptions from alternating trees grown level by level (Mihelčić and Miettinen 2023, AltExpM).

    Every level of a tree gets an equal share of its budget, and siblings are released in parallel.
    """

    name = "alt-expm"

    def tree_plan(self, name: str, tree: TreeOnView) -> Node:
        """Plan the levels of a tree, with siblings in parallel."""
        scores = SplitScores(self.criterion, tree.target, KnownRows(tree.rows), len(tree.tests), among=tree.read)
        epsilon = tree.epsilon / self.max_depth
        tight = self.sensitivity == "tight"
        selector: PureMechanism = PermuteAndFlip(epsilon) if tight else Exponential(epsilon)
        split = step("split", scores, selector, threshold=tree.rows)
        node: Node = split
        for _ in range(self.max_depth - 1):
            node = sequential(split, parallel(node, by=FromRelease("split", attributes=tree.read)))
        return sequential(node, name=name)

    def grow(self, table: PrivateTable, name: str, tests: Candidates) -> CompleteTree:
        """Release the tests of each level, and return the tree."""
        chosen = np.zeros(2**self.max_depth - 1, dtype=np.int64)
        parts = [table.scope(name)]
        while parts:
            node = len(parts) - 1  # the first node of this level
            # A single test needs no release.
            requests = ((part, "split", {"candidates": tests}) for part in parts)
            splits: list[Any] = [tests[0]] * len(parts) if len(tests) == 1 else PrivateTable.release_many(requests)
            chosen[node : node + len(splits)] = [tests.position(split) for split in splits]
            below: list[PrivateTable] = []
            for split in splits if node + len(splits) < len(chosen) else ():
                below += parts.pop(0).partition(cut_of(split))
            parts = below
        return CompleteTree(tests, chosen)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples: the default, the published sensitivity, and several starts and rounds."""
        from dpframework_trees.redescribe.witnesses import pure_leaves, rounds_level_by_level, two_levels

        rounds = cls(3, starts=2, rounds=2, max_depth=1)
        return {
            "default": Example(EXAMPLE_SCHEMA, cls(2, starts=["rain"]), witnesses=[two_levels(), pure_leaves()]),
            "published": _bound_of_paper(cls),
            "rounds": Example(EXAMPLE_SCHEMA, rounds, witnesses=rounds_level_by_level()),
        }


@final
@attrs.frozen
class AltMCMC(_Alternating):
    """Redescriptions from alternating trees, each sampled as a whole (Mihelčić and Miettinen 2023, AltMCMC).

    Parameters
    ----------
    sampler
        "exact" draws from the exponential mechanism on all trees. "mcmc" walks towards it (Bai et al. 2017), for more
        trees than the exact sampler can handle, and assumes that `iterations` steps get there.
    iterations
        The number of steps of a walk.
    """

    name = "alt-mcmc"
    sampler: str = attrs.field(default="exact", validator=one_of(("exact", "mcmc")))
    iterations: int = attrs.field(default=10_000, validator=whole_number())

    @classmethod
    def settings_of_paper(cls, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the paper's settings for alternating trees, with trees that come from a walk."""
        return {**super().settings_of_paper(changes), "sampler": "mcmc"}

    def tree_plan(self, name: str, tree: TreeOnView) -> Node:
        """Plan one release of a whole tree."""
        if self.sampler == "exact":
            return tree.exact_plan(name, self.criterion, self.max_depth)
        walk = MarkovChainTrees(tree.epsilon, self.iterations)
        return step(name, tree.scores(self.criterion, self.max_depth), walk, threshold=tree.rows)

    def grow(self, table: PrivateTable, name: str, tests: Candidates) -> CompleteTree:
        """Release a whole tree, and return it."""
        return CompleteTree(tests, table.release(name))

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples: both samplers, the published sensitivity, and several starts and rounds."""
        from dpframework_trees.redescribe.witnesses import (
            pure_leaves_at_once,
            rounds_of_whole_trees,
            two_levels_at_once,
            whole_trees,
        )

        walk = cls(2, starts=["wolf"], sampler="mcmc", iterations=2000, max_depth=1)
        rounds = cls(3, starts=2, rounds=2, max_depth=1)
        return {
            "exact": Example(
                EXAMPLE_SCHEMA, cls(2, starts=["rain"]), witnesses=[two_levels_at_once(), pure_leaves_at_once(2)]
            ),
            "mcmc": Example(EXAMPLE_SCHEMA, walk, witnesses=[whole_trees(), pure_leaves_at_once(1)]),
            "published": _bound_of_paper(cls),
            "rounds": Example(EXAMPLE_SCHEMA, rounds, witnesses=rounds_of_whole_trees()),
        }


def _bound_of_paper(miner: type[_Alternating]) -> Example:
    """Return an example with the published bound on the scores of trees, and tables that lose as much as possible."""
    from dpframework_trees.redescribe.witnesses import PUBLISHED, other_animals, pure_leaves_at_once

    published = miner(2, starts=["wolf"], sensitivity="published", max_depth=1)
    return Example(EXAMPLE_SCHEMA, published, witnesses=[other_animals(), pure_leaves_at_once(1)], loose=PUBLISHED)
