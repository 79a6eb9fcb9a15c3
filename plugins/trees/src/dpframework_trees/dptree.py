"""A classification tree of fixed depth, which is sampled as a whole before its leaves are counted.

Source: Bai, Yao and Jiang (KDD 2017) draw a tree by the exponential mechanism on all trees of a depth, with a Markov
chain. The exact sampler is ours (see `sampling`). Claim: pure epsilon under either neighbouring relation. The Markov
chain is assumed to have converged; the other samplers assume nothing.

All samplers choose among the same tests, which compare with public values and cuts. A test on a missing value does not
hold.

The default sampler follows from the numbers of tests and levels, which are public. Drawing three levels at once takes
time in proportion to the cube of the number of tests, and drawing two levels in proportion to its square. So with many
tests a tree is drawn from the root with two levels in view. At each node a whole tree of two levels is drawn, and only
its root is kept, except that the last draws keep both levels. This misses only what three tests tell together and no
two of them tell. With very many tests, the test of each node is selected on its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, Schema, between_0_and_1, list_of_names, one_of, share_of_budget, whole_number
from dpframework.mechanisms import DiscreteLaplace, PermuteAndFlip
from dpframework.plan import FromRelease, Node, PlannedPart, parallel, sequential, step
from dpframework.results import ErrorBound
from dpframework.run import Example, PrivateTable
from dpframework_trees import witnesses
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.criteria import Criterion, KnownRows, criterion_named
from dpframework_trees.leaf_count_bounds import OF_TREE, PRUNED, class_count_bounds
from dpframework_trees.parameters import (
    TargetMiner,
    class_and_attributes,
    examples_of_grades,
    nothing_to_split,
    validate_criterion,
)
from dpframework_trees.queries import LeavesByClass, SplitScores, TreeScores
from dpframework_trees.sampling import ExactTrees, MarkovChainTrees
from dpframework_trees.splits import Candidates, Region, cut_of, names_in
from dpframework_trees.tree import TreeResult
from dpframework_trees.tree_counts import counts_suffice
from dpframework_trees.tree_estimates import ReleasedNode, noise_variance, tree_result
from dpframework_trees.tree_weights import exact_work, require_feasible

AUTO = "auto"
SAMPLERS = ("exact", "mcmc", "greedy", "lookahead")
QUICK_WORK = 1 << 22  # the most pairs of tests that the default sampler looks at, in about half a second
AHEAD = 2  # how many levels "lookahead" has in view


@final
@attrs.frozen
class DPTree(TargetMiner):
    """A classification tree of fixed depth sampled as a whole, with noisy leaf counts (Bai, Yao and Jiang 2017).

    Parameters
    ----------
    target
        The class attribute.
    epsilon
        The budget of the whole tree.
    max_depth
        The number of tests on each path, before pruning.
    sampler
        How the tests are chosen.
        "exact" draws from the exponential mechanism on all trees. It is refused if depth and tests make that too slow.
        "mcmc" walks towards the same distribution for a fixed number of steps, and assumes that it has converged.
        "greedy" selects test after test. Each level gets an equal share of the budget, since siblings are disjoint.
        "lookahead" does the same with the level below each test in view, and draws the last two levels together.
        "auto" is "exact" for few tests, "lookahead" for more and "greedy" for very many, so that it takes about a
        second.
    criterion
        The score of a leaf: "norm" (the 3-norm of class counts), "max", "gini" (as purity), or "information-gain".
    attributes
        The attributes to split on; by default all but the target.
    iterations
        The number of steps of "mcmc".
    counts_share
        The share of the budget that the leaves' class counts get.
    pruning
        Whether the shown tree is pruned by its noisy counts (C4.5's error-based pruning). Predictions use the whole
        tree, whose leaves of one class still have different probabilities.

    Examples
    --------
    >>> DPTree(target="income", epsilon=1.0).sampler
    'auto'
    """

    name = "dp-tree"
    result = TreeResult
    max_depth: int = attrs.field(default=3, validator=whole_number(most=10))
    sampler: str = attrs.field(default=AUTO, validator=one_of((AUTO, *SAMPLERS)))
    criterion: str = attrs.field(default="norm", validator=validate_criterion)
    attributes: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names)
    iterations: int = attrs.field(default=10_000, validator=whole_number())
    counts_share: Fraction = attrs.field(default=Fraction(2, 5), converter=share_of_budget, validator=between_0_and_1)
    pruning: bool = True

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return an example of each sampler, a deeper one, and one of each criterion with a sensitivity of its own."""
        variants: dict[str, dict[str, Any]] = {
            "exact": {},
            "deeper": {"max_depth": 2},
            "gini": {"criterion": "gini"},
            "mcmc": {"sampler": "mcmc", "iterations": 2000},
            "greedy": {"sampler": "greedy", "max_depth": 2},
            "lookahead": {"sampler": "lookahead", "max_depth": 3},
        }
        gain = cls("grade", 2, max_depth=1, criterion="information-gain")
        return {
            **witnesses.with_found_tables(cls.name, examples_of_grades(cls, variants, missing=True)),
            "information-gain": Example(witnesses.MANY_CUTS, gain, witnesses=witnesses.INFORMATION_GAIN),
        }

    def plan(self, schema: Schema) -> Node:
        """Plan the tree, then the class counts of its leaves."""
        resolved = _TreeOnSchema.of(self, schema)
        counts = LeavesByClass(resolved.target, 2**self.max_depth, among=resolved.read)
        leaves = step("leaves", counts, DiscreteLaplace(self.epsilon * self.counts_share), uses=["tree"])
        return sequential(resolved.tree_plan(), leaves)

    def tests(self, schema: Schema) -> Candidates:
        """Return the tests that a tree may have, which follow from the schema alone."""
        return _TreeOnSchema.of(self, schema).tests

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the errors of the class counts, and how far the tree's score may be from the best."""
        if part.schema is None:
            return part.bounds_of_steps()
        classes = part.schema[self.target].size
        biases = [PRUNED] if self.pruning else []
        return class_count_bounds(part, ["leaves"], 2**self.max_depth, classes, biases, OF_TREE)

    def mine(self, table: PrivateTable) -> TreeResult:
        """Release the tree and its counts, and finish it by post-processing."""
        resolved = _TreeOnSchema.of(self, table.schema)
        tree = resolved.tree(table)
        counts = np.asarray(table.release("leaves", tree=tree), dtype=np.float64)
        grown = _grow(tree, counts, noise_variance(table.calibration("leaves")), Region.whole(table.schema), 0)
        return tree_result(grown, resolved.target, table.schema, prune=self.pruning)


def default_sampler(tests: int, depth: int) -> str:
    """Return the sampler that "auto" stands for, given the numbers of tests and of levels.

    Examples
    --------
    >>> default_sampler(128, 3), default_sampler(129, 3), default_sampler(2_000, 2), default_sampler(3_000, 3)
    ('exact', 'lookahead', 'exact', 'greedy')
    """
    if exact_work(tests, depth) <= QUICK_WORK:
        return "exact"
    return "lookahead" if depth > AHEAD and exact_work(tests, AHEAD) <= QUICK_WORK else "greedy"


@attrs.frozen(eq=False)
class _TreeOnSchema:
    """A miner's parameters, resolved on a schema."""

    miner: DPTree
    sampler: str
    criterion: Criterion
    target: Attribute
    tests: Candidates
    rows: KnownRows

    @classmethod
    def of(cls, miner: DPTree, schema: Schema) -> _TreeOnSchema:
        """Resolve the parameters, and refuse those that cannot be mined with."""
        target, split_on = class_and_attributes(schema, miner.target, miner.attributes)
        tests = Candidates.of_schema(schema, split_on, multiway=False, cuts=True)
        if not len(tests):
            raise nothing_to_split(target)
        sampler = default_sampler(len(tests), miner.max_depth) if miner.sampler == AUTO else miner.sampler
        if sampler == "exact":
            require_feasible(len(tests), miner.max_depth)
        criterion = criterion_named(miner.criterion)
        criterion.sensitivity(schema.row_bound)
        return cls(miner, sampler, criterion, target, tests, KnownRows.of(schema))

    @property
    def read(self) -> tuple[str, ...]:
        """The names of the attributes that the tree may read, which are its tests' attributes and the class."""
        return (*names_in(self.tests), self.target.name)

    def tree_plan(self) -> Node:
        """Plan the release of all tests at once, or level by level."""
        miner = self.miner
        epsilon = miner.epsilon * (1 - miner.counts_share)
        if self.sampler == "mcmc":
            return step("tree", self._scores(miner.max_depth), MarkovChainTrees(epsilon, miner.iterations))
        if self.sampler == "exact":
            return step("tree", self._scores(miner.max_depth), ExactTrees(epsilon))
        each = epsilon / miner.max_depth
        if self.sampler == "greedy":
            scores = SplitScores(self.criterion, self.target, self.rows, len(self.tests), among=self.read)
            one = step("split", scores, PermuteAndFlip(each))
            return self._levels(one, one, miner.max_depth - 1)
        last = min(AHEAD, miner.max_depth)
        one = step("split", self._scores(AHEAD), ExactTrees(each))
        return self._levels(one, step("last", self._scores(last), ExactTrees(each * last)), miner.max_depth - last)

    def _scores(self, depth: int) -> TreeScores:
        gives_counts = self.sampler != "mcmc" and counts_suffice(len(self.tests), self.target.size, depth)
        of = (self.criterion, self.target, self.rows, self.tests, depth, gives_counts)
        return TreeScores(*of, among=self.read)

    def _levels(self, split: Node, last: Node, levels: int) -> Node:
        """Plan a split on each of `levels` levels, with siblings in parallel, and the last release below them."""
        node = last
        for _ in range(levels):
            node = sequential(split, parallel(node, by=FromRelease("split", attributes=self.read)))
        return sequential(node, name="tree")

    def tree(self, table: PrivateTable) -> CompleteTree:
        """Release the tests, and return the tree."""
        if self.sampler == "greedy":
            return self.grow(table.scope("tree"))
        if self.sampler == "lookahead":
            return self.grow_with_lookahead(table.scope("tree"))
        return CompleteTree(self.tests, table.release("tree"))

    def grow_with_lookahead(self, table: PrivateTable) -> CompleteTree:
        """Release trees of two levels from the root down. Keep the root of each, and all tests of the last ones."""
        depth = self.miner.max_depth
        chosen = np.zeros(2**depth - 1, dtype=np.int64)
        level = {0: table}
        for _ in range(depth - AHEAD):
            nodes = sorted(level)
            below: dict[int, PrivateTable] = {}
            trees = PrivateTable.release_many((level[node], "split", {}) for node in nodes)
            for node, tree in zip(nodes, trees, strict=True):
                chosen[node] = tree[0]
                parts = level[node].partition(cut_of(self.tests[int(tree[0])]))
                below.update(zip((2 * node + 1, 2 * node + 2), parts, strict=True))
            level = below
        trees = PrivateTable.release_many((part, "last", {}) for _, part in sorted(level.items()))
        for node, tree in zip(sorted(level), trees, strict=True):
            chosen[node] = tree[0]
            if len(tree) > 1:
                chosen[[2 * node + 1, 2 * node + 2]] = tree[1:]
        return CompleteTree(self.tests, chosen)

    def grow(self, table: PrivateTable) -> CompleteTree:
        """Release the tests of a tree, node by node from the root.

        A node's only possible test is taken without a release. Where no test has two possible outcomes, all tests have
        the same effect, so no release is made there or below.
        """
        chosen = np.zeros(2**self.miner.max_depth - 1, dtype=np.int64)
        positions = {test: k for k, test in enumerate(self.tests)}
        level = {0: (table, Region.whole(table.schema))}
        while level:
            usable = {node: self.tests.possible(region) for node, (_, region) in level.items()}
            tests = {node: own[0] for node, own in usable.items() if len(own) == 1}
            several = [node for node, own in usable.items() if len(own) > 1]
            requests = ((level[node][0], "split", {"candidates": usable[node]}) for node in several)
            tests.update(zip(several, PrivateTable.release_many(requests), strict=True))
            below: dict[int, tuple[PrivateTable, Region]] = {}
            for node, test in sorted(tests.items()):
                chosen[node] = positions[test]
                if 2 * node + 1 < len(chosen):
                    part, region = level.pop(node)
                    parts = zip(part.partition(cut_of(test)), region.children(test), strict=True)
                    below.update(zip((2 * node + 1, 2 * node + 2), parts, strict=True))
            level = below
        return CompleteTree(self.tests, chosen)


def _grow(tree: CompleteTree, counts: NDArray[np.float64], variance: float, region: Region, node: int) -> ReleasedNode:
    """Return the tree below a node, where a test with one possible outcome is replaced by the child on that side."""
    if node >= len(tree.tests):
        return ReleasedNode(None, (), (counts[node - len(tree.tests)], variance), None)
    test = tree.test(node)
    children = [
        _grow(tree, counts, variance, part, 2 * node + 1 + side)
        for side, part in enumerate(region.children(test))
        if part.allows(test.attribute)
    ]
    return children[0] if len(children) == 1 else ReleasedNode(test, tuple(children), None, None)
