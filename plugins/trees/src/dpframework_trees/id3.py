"""DP-ID3, a decision tree grown from the root with each split selected privately.

Source: Friedman and Schuster, "Data Mining with Differential Privacy" (KDD 2010 and the talk). Claim: pure epsilon
under either neighbouring relation; no assumptions.

What differs from the paper by default, and why (`DPID3.published` restores the paper's settings):

- binary tests of public values and cuts instead of multiway splits, since they leave more rows in each node;
- the 3-norm criterion: like `max` it is monotonic with sensitivity 1, so its exponent needs no factor 2, and like
  `gini` it tells apart splits whose children have the same majority class;
- permute-and-flip instead of the exponential mechanism, since it is never worse (McKenna and Sheldon 2020);
- no noisy count at each node, since depth and epsilons are fixed beforehand, and deep levels get more of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, InputError, Numeric, Schema, list_of_names, one_of, whole_number
from dpframework.mechanisms import DiscreteLaplace, Exponential, ExponentialInterval, Mechanism, PermuteAndFlip
from dpframework.plan import FromRelease, Node, PlannedPart, either, parallel, repeat, sequential, step
from dpframework.queries import Count, Histogram
from dpframework.results import ErrorBound
from dpframework.run import Example, PrivateTable
from dpframework_trees import witnesses
from dpframework_trees.budgets import DEPTH, TreeBudget, depth_for, tree_budget
from dpframework_trees.criteria import Criterion, KnownRows
from dpframework_trees.leaf_count_bounds import CONSISTENT, OF_SPLITS, PRUNED, STOPPED, class_count_bounds
from dpframework_trees.lockstep_releases import Requests, release_in_step
from dpframework_trees.parameters import (
    TargetMiner,
    class_and_attributes,
    costs_of_errors,
    criterion_with_costs,
    examples_of_grades,
    nothing_to_split,
    validate_costs,
    validate_criterion,
)
from dpframework_trees.queries import CodesByClass, SplitScores, ThresholdScores, table_scores
from dpframework_trees.splits import Candidates, Multiway, Region, Split, cut_of, names_in
from dpframework_trees.tree import TreeResult
from dpframework_trees.tree_estimates import ReleasedNode, noise_variance, tree_result

SELECTIONS = ("permute-and-flip", "exponential", "noisy-counts")
SPLITS = ("binary", "multiway")
NUMERIC = ("candidates", "grid", "density")
STOPPING = ("none", "noisy-count")
#: The settings of Friedman and Schuster 2010.
PUBLISHED: dict[str, Any] = {
    "criterion": "max",
    "selection": "exponential",
    "splits": "multiway",
    "numeric": "grid",
    "stopping": "noisy-count",
    "budget": "published",
}
#: Settings with a privacy argument of their own, beside the published ones.
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "exponential": {"selection": "exponential"},
    "max": {"criterion": "max"},
    "costs": {"criterion": "max", "costs": (1, 3)},
    "gini": {"criterion": "gini"},
    "information-gain": {"criterion": "information-gain"},
    "multiway": {"splits": "multiway"},
    "grid": {"numeric": "grid"},
    "density": {"numeric": "density"},
    "stopping": {"stopping": "noisy-count"},
    "noisy-counts": {"selection": "noisy-counts"},
    "noisy-counts-multiway": {"selection": "noisy-counts", "splits": "multiway", "criterion": "max"},
}


@final
@attrs.frozen
class DPID3(TargetMiner):
    """A decision tree grown from the root, each split selected privately (Friedman and Schuster 2010).

    Parameters
    ----------
    target
        The class attribute.
    epsilon
        The budget of the whole tree.
    max_depth
        The largest number of splits on a path. By default 5, or fewer if the schema's public number of rows is too
        small for 5 at this budget (see `budgets.depth_for`).
    attributes
        The attributes to split on; by default all but the target.
    criterion
        "norm" (the 3-norm of class counts), "max", "gini" (as purity), or "information-gain".
    selection
        "permute-and-flip", "exponential", or "noisy-counts" (SuLQ: the best score on noisy tables).
    splits
        "binary" tests, or "multiway" splits on attributes that are not numeric.
    numeric
        "candidates": every public cut is a candidate split; "grid": first a split point for each numeric attribute,
        selected among its public cuts; "density": the same, but the point is drawn from the attribute's public range.
    stopping
        "none", or "noisy-count": a node becomes a leaf if `N / (t k) < sqrt(2) / epsilon'`, where N is its noisy count,
        t the largest number of children, k the number of classes, and epsilon' the epsilon of its class counts.
    budget
        "growing" with depth, or "published" (see `budgets.tree_budget`).
    pruning
        Whether the shown tree is pruned by its noisy counts (C4.5's error-based pruning). Predictions use the whole
        tree, whose leaves of one class still have different probabilities.
    costs
        For the criterion "max": the cost of an error on a row of each class, in the order of the target's labels, as
        whole numbers; by default 1 each. Splits then lower the total cost, and not the number of errors. Such a tree is
        not pruned. Predict with `tree.predict(rows, costs=...)`.

    Examples
    --------
    >>> DPID3(target="income", epsilon=1.0).criterion
    'norm'
    """

    name = "dp-id3"
    result = TreeResult
    max_depth: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number(most=64)))
    attributes: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names)
    criterion: str = attrs.field(default="norm", validator=validate_criterion)
    selection: str = attrs.field(default="permute-and-flip", validator=one_of(SELECTIONS))
    splits: str = attrs.field(default="binary", validator=one_of(SPLITS))
    numeric: str = attrs.field(default="candidates", validator=one_of(NUMERIC))
    stopping: str = attrs.field(default="none", validator=one_of(STOPPING))
    budget: str = "growing"
    pruning: bool = True
    costs: tuple[int, ...] | None = attrs.field(default=None, converter=costs_of_errors, validator=validate_costs)

    @property
    def prunes(self) -> bool:
        """Whether the tree that is shown is pruned. With costs it is not, since pruning counts errors, not costs."""
        return self.pruning and self.costs is None

    @classmethod
    def published(cls, target: str, epsilon: Any, **changes: Any) -> DPID3:
        """Return the miner with the settings of Friedman and Schuster 2010, except for the parameters in `changes`."""
        return cls(target=target, epsilon=epsilon, **{"max_depth": DEPTH, **PUBLISHED, **changes})

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return an example for each choice with a privacy argument of its own, a deeper one, and one as published."""
        variants = {**VARIANTS, "deeper": {"max_depth": 2}, "published": PUBLISHED}
        examples = examples_of_grades(cls, variants)
        examples["density"] = attrs.evolve(examples["density"], witnesses=witnesses.SPLIT_POINTS)
        published = attrs.evolve(examples["published"], witnesses=[witnesses.FEW_ELSEWHERE])
        examples["published"] = attrs.evolve(published, loose=witnesses.PUBLISHED)
        return witnesses.with_found_tables(cls.name, examples)

    def plan(self, schema: Schema) -> Node:
        """Plan node(0).

        Here node(l) is a noisy count, if the tree stops on counts. Then it is either the class counts of a leaf, or the
        choice of a split with node(l + 1) for its children in parallel.
        """
        growth = _ID3OnSchema.of(self, schema)
        node = growth.leaf_step(growth.depth)
        if growth.stops:
            node = sequential(growth.count_step(growth.depth), node)
        for level in range(growth.depth - 1, -1, -1):
            parts = parallel(node, by=FromRelease("split", attributes=growth.read))
            branches = either(growth.leaf_step(level), sequential(*growth.split_steps(level), parts))
            node = sequential(growth.count_step(level), branches) if growth.stops else branches
        return node

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return all attributes for "density", whose thresholds lie between cuts; else none, since codes are enough."""
        return schema.names if self.numeric == "density" else ()

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the errors of the class counts on the level with the most noise, and of the choices of splits."""
        if part.schema is None:
            return part.bounds_of_steps()
        growth = _ID3OnSchema.of(self, part.schema)
        leaves = growth.most_children(growth.candidates) ** growth.depth
        biases = [*([CONSISTENT, STOPPED] if growth.stops else []), *([PRUNED] if self.prunes else [])]
        paths = [one.path for one in part.steps if one.path.rpartition("/")[2] == "classes"]
        return class_count_bounds(part, paths, leaves, growth.target.size, biases, OF_SPLITS)

    def mine(self, table: PrivateTable) -> TreeResult:
        """Grow the tree from releases, and finish it by post-processing."""
        growth = _ID3OnSchema.of(self, table.schema)
        grown = growth.grow(table)
        return tree_result(grown, growth.target, table.schema, prune=self.prunes)


@attrs.frozen(eq=False)
class _ID3OnSchema:
    """A miner's parameters, resolved on a schema."""

    miner: DPID3
    criterion: Criterion
    target: Attribute
    numerics: tuple[Numeric, ...]
    candidates: Candidates
    depth: int
    rows: KnownRows
    budget: TreeBudget

    @classmethod
    def of(cls, miner: DPID3, schema: Schema) -> _ID3OnSchema:
        """Resolve the parameters, and refuse those that cannot be mined with."""
        target, split_on = class_and_attributes(schema, miner.target, miner.attributes)
        attributes = [schema[name] for name in split_on]
        numerics = tuple(a for a in attributes if isinstance(a, Numeric))
        points = miner.numeric != "candidates"
        if miner.selection == "noisy-counts" and points:
            raise InputError("selection 'noisy-counts' reads public cuts off its tables; use numeric = 'candidates'")
        candidates = Candidates.of_schema(
            schema, split_on, multiway=miner.splits == "multiway", cuts=miner.numeric != "density"
        )
        if not len(candidates) and not (miner.numeric == "density" and numerics):
            raise nothing_to_split(target)
        spent = miner.splits == "multiway" and not numerics  # Then each level uses up one attribute.
        most = depth_for(schema.rows, miner.epsilon) if miner.max_depth is None else miner.max_depth
        depth = min(most, len(candidates.split_on)) if spent else most
        criterion = criterion_with_costs(miner.criterion, miner.costs, target)
        if miner.selection != "noisy-counts":
            criterion.sensitivity(schema.row_bound)
        budget = tree_budget(
            miner.budget,
            miner.epsilon,
            depth,
            thresholds=len(numerics) if points else 0,
            counts=miner.stopping == "noisy-count",
        )
        return cls(miner, criterion, target, numerics, candidates, depth, KnownRows.of(schema), budget)

    @property
    def stops(self) -> bool:
        """Whether nodes release a noisy count, and end where it is small."""
        return self.miner.stopping == "noisy-count"

    @property
    def points(self) -> bool:
        """Whether each numeric attribute gets a split point before the selection."""
        return self.miner.numeric != "candidates"

    def threshold_of_count(self, level: int, children: int) -> float:
        """Return the noisy count below which a node becomes a leaf, given its largest number of children."""
        return children * self.target.size * math.sqrt(2) / float(self.budget.leaf[level])

    def most_children(self, candidates: Candidates) -> int:
        """Return the largest number of children that any of the candidates makes."""
        sizes = [a.size for a in candidates.split_on if self.miner.splits == "multiway" and not isinstance(a, Numeric)]
        return max(sizes, default=2)

    @property
    def read(self) -> tuple[str, ...]:
        """The names of the attributes that a split may read, which are its candidates' attributes and the class."""
        numerics = (a.name for a in self.numerics)  # "density" has no candidates on them
        return tuple(dict.fromkeys((*names_in(self.candidates), *numerics, self.target.name)))

    def count_step(self, level: int) -> Node:
        """Plan a node's noisy count."""
        threshold = str(self.threshold_of_count(level, self.most_children(self.candidates)))
        return step("count", Count(), DiscreteLaplace(self.budget.count), threshold=threshold)

    def leaf_step(self, level: int) -> Node:
        """Plan a leaf's class counts."""
        return step("classes", Histogram(self.target), DiscreteLaplace(self.budget.leaf[level]))

    def split_steps(self, level: int) -> list[Node]:
        """Plan the choice of a node's split: split points and a selection, or noisy tables."""
        epsilon = self.budget.select[level]
        if self.miner.selection == "noisy-counts":
            read = len(self.candidates.split_on)
            tables = read if self.numerics or self.miner.splits == "binary" else read - level
            each = DiscreteLaplace(epsilon / tables)
            return [repeat(tables, step("split", CodesByClass(self.target, among=self.read), each))]
        pointed = self.numerics if self.points else ()
        steps = [step(_point(a), *self.point_of(a, self.budget.threshold[level])) for a in pointed]
        most = len(self.candidates) + len(pointed)
        children = max(self.most_children(self.candidates), 2)
        scores = SplitScores(self.criterion, self.target, self.rows, most, children, among=self.read)
        return [*steps, step("split", scores, self.selector(epsilon), uses=[s.name for s in steps])]

    def selector(self, epsilon: Fraction) -> Mechanism:
        """Return the mechanism that selects splits and, among public cuts, split points."""
        return Exponential(epsilon) if self.miner.selection == "exponential" else PermuteAndFlip(epsilon)

    def point_of(self, attribute: Numeric, epsilon: Fraction) -> tuple[Any, Mechanism]:
        """Return the query and mechanism of an attribute's split point."""
        if self.miner.numeric == "density":
            return ThresholdScores(self.criterion, self.target, self.rows, attribute), ExponentialInterval(epsilon)
        most = max(len(attribute.interior_cuts), 1)
        read = (attribute.name, self.target.name)
        return SplitScores(self.criterion, self.target, self.rows, most, among=read), self.selector(epsilon)

    def grow(self, table: PrivateTable) -> ReleasedNode:
        """Grow the tree level by level, the releases of each level together."""
        root = _GrowingNode(table, Region.whole(table.schema), self.candidates)
        nodes = [root]
        for level in range(self.depth + 1):
            release_in_step(self._release(node, level) for node in nodes)
            nodes = [child for node in nodes for child in node.children]
        return root.grow()

    def _release(self, node: _GrowingNode, level: int) -> Requests[None]:
        """Release a noisy count if the tree stops on counts, then a leaf's class counts or a split of the rows."""
        table, region = node.table, node.region
        del node.table  # so that its memory is freed once the rows are divided
        usable = node.candidates.possible(region)
        splittable = len(usable) or (self.miner.numeric == "density" and self._open(region))
        ends = level == self.depth or not splittable
        if self.stops:
            (count,) = yield [(table, "count", {})]
            counted = float(count)
            node.rows = (counted, noise_variance(table.calibration("count")))
            ends = ends or counted < self.threshold_of_count(level, self.most_children(usable))
        if ends:
            (classes,) = yield [(table, "classes", {})]
            node.leaf = np.asarray(classes, dtype=np.float64), noise_variance(table.calibration("classes"))
            return
        node.split = split = yield from self.split(table, region, usable)
        left = node.candidates.without(split) if isinstance(split, Multiway) else node.candidates
        parts = zip(table.partition(cut_of(split)), region.children(split), strict=True)
        node.children = [_GrowingNode(part, inner, left) for part, inner in parts]

    def _open(self, region: Region) -> list[Numeric]:
        return [a for a in self.numerics if region.bounds[a.name][0] < region.bounds[a.name][1]]

    def split(self, table: PrivateTable, region: Region, usable: Candidates) -> Requests[Split]:
        """Release a node's split, or noisy tables of all usable attributes, on which one split scores best."""
        if self.miner.selection == "noisy-counts":
            counts = yield [(table, "split", {"attribute": a}) for a in usable.split_on]
            tables = {a.name: np.maximum(one, 0) for a, one in zip(usable.split_on, counts, strict=True)}
            return usable[int(np.argmax(table_scores(usable, tables, self.criterion)))]
        if self.points:
            usable = yield from self._with_points(table, region, usable)
        if len(usable) == 1:
            return usable[0]  # A single candidate needs no release.
        chosen: list[Split] = yield [(table, "split", {"candidates": usable})]
        return chosen[0]

    def _with_points(self, table: PrivateTable, region: Region, usable: Candidates) -> Requests[Candidates]:
        """Release a split point for each numeric attribute. Return candidates with that point as its only threshold."""
        given: dict[Numeric, dict[str, Any]]
        if self.miner.numeric == "density":
            bounds = region.bounds
            given = {a: {"lower": bounds[a.name][0], "upper": bounds[a.name][1]} for a in self._open(region)}
        else:
            cuts = {a: usable.of_attribute(a.name) for a in self.numerics}
            given = {a: {"candidates": own} for a, own in cuts.items() if len(own)}
        points = yield [(table, _point(a), inputs) for a, inputs in given.items()]
        released = {a.name: point for a, point in zip(given, points, strict=True)}
        return usable.with_thresholds(released) if self.miner.numeric == "density" else usable.with_one_cut(released)


@attrs.define(eq=False)
class _GrowingNode:
    """A node while the tree grows. `rows` and `leaf` are its noisy counts, each with the variance of its noise."""

    table: PrivateTable
    region: Region
    candidates: Candidates
    split: Split | None = None
    rows: tuple[float, float] | None = None
    leaf: tuple[NDArray[np.float64], float] | None = None
    children: list[_GrowingNode] = attrs.field(factory=list)

    def grow(self) -> ReleasedNode:
        """Return the node with its subtree, as it was released."""
        return ReleasedNode(self.split, tuple(child.grow() for child in self.children), self.leaf, self.rows)


def _point(attribute: Attribute) -> str:
    return f"threshold of {attribute.name}"
