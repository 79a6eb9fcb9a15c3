"""Redescription mining from pairs of trees (Mihelčić and Miettinen 2023): alternating trees, and pairs sampled at once.

A starting attribute of one view gives the classes for a tree on the other view; its leaves give the classes for a tree
on the first view, and so on. The leaves of two trees in turn hold for nearly the same rows if all goes well, and unions
of them are redescriptions. Names of the paper: InTr is the number of `starts`, RMIter `rounds`, omega `tree_share`,
MCIter `iterations`.

Claim: pure epsilon under either relation. What differs from the paper by default, and why:

- thresholds and classes come from the schema's public values and cuts, never from the data;
- trees are complete, drawn for a fixed number of steps or exactly: no leaf closes because it is pure, no walk stops
  because scores settle;
- scores are 3-norms of class counts: monotonic with sensitivity 1, where the paper has 2 (one tree) or n (a pair);
- one noisy table of leaves by leaves, at the whole of its budget, gives all supports;
- trees are shallow: at a small epsilon the number of deep trees is more than the exponent can overcome. Where the
  schema bounds the rows, a plan whose scores drown is warned of (DP007).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from dpframework.facts import (
    Attribute,
    Boolean,
    Cases,
    Categorical,
    Description,
    InputError,
    Literal,
    Numeric,
    Schema,
    View,
    between_0_and_1,
    is_whole_number,
    named_once,
    nearest,
    one_of,
    positive,
    share_of_budget,
    whole_number,
)
from dpframework.mechanisms import DiscreteLaplace, Exponential, PermuteAndFlip, PureMechanism
from dpframework.plan import FromRelease, Node, parallel, sequential, step
from dpframework.results import Redescription, Redescriptions
from dpframework.run import Example, Miner, PrivateTable
from dpframework_trees.complete import CompleteTree
from dpframework_trees.criteria import PUBLISHED_GINI, Criterion, criterion_named
from dpframework_trees.estimates import noise_variance
from dpframework_trees.extraction import Constraints, extract
from dpframework_trees.pairing import MarkovChainPairs, pair_score_named
from dpframework_trees.queries import Associations, JointLeaves, PairScores, SplitScores, TreeScores
from dpframework_trees.sampling import ExactTrees, MarkovChainTrees, require_feasible
from dpframework_trees.splits import Candidates, cut_of

SENSITIVITIES = ("tight", "published")
STARTING_TEST = "starting test"
ROWS_OF_TWO_STARTS, SOME_ROWS = 750, 2_500  # see `_TreeRedescriptions.number`
OTHER = {View.LEFT: View.RIGHT, View.RIGHT: View.LEFT}


def _starts(value: int | Iterable[str] | None) -> int | tuple[str, ...] | None:
    if value is None:
        return None
    many = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    if is_whole_number(value):
        return value
    if not many or not all(isinstance(name, str) for name in many):
        raise InputError(f"starts is {value!r}; give a positive number of tests, or a list of attributes' names")
    named_once("starts", many)
    return many


def _constraints(value: Constraints | Mapping[str, float]) -> Constraints:
    if isinstance(value, Constraints):
        return value
    known = [a.name for a in attrs.fields(Constraints)]
    for name in value:
        if name not in known:
            raise InputError(f"constraint {name!r} is unknown; {nearest(str(name), known)}")
    return Constraints(**value)


@final
@attrs.frozen
class Start:
    """What a pair of trees starts from: an attribute given by name, or the two sides of a test that is selected.

    Attributes
    ----------
    position
        Its place among the starts.
    view
        The view that it is of.
    target
        The classes that it makes.
    selected
        Whether it is a test to be selected.
    """

    position: int
    view: View
    target: Attribute
    selected: bool

    @property
    def scope(self) -> str:
        """The name of its scope in the plan."""
        return f"start {self.position + 1}"


@attrs.frozen
class _TreeRedescriptions(Miner):
    """What the three miners share.

    Parameters
    ----------
    epsilon
        The budget.
    starts
        What the trees start from: a number of tests, selected for their association with the other view (half of them
        from either view, the left first), or names of attributes. Without it, two tests where the budget can carry
        them, else one (see `number`).
    max_depth
        Of every tree.
    constraints
        See `extraction.Constraints`.
    sensitivity
        "tight", or "published" for the paper's scores and their sensitivities.
    """

    epsilon: Fraction = attrs.field(converter=positive)
    starts: int | tuple[str, ...] | None = attrs.field(default=None, converter=_starts)
    max_depth: int = attrs.field(default=2, validator=whole_number(most=6))
    constraints: Constraints = attrs.field(factory=Constraints, converter=_constraints)
    sensitivity: str = attrs.field(default="tight", validator=one_of(SENSITIVITIES))

    @property
    def derived_names(self) -> tuple[str, ...]:
        """The names of the attributes that are derived."""
        return (STARTING_TEST,)

    def number(self, schema: Schema) -> int:
        """Return how many starts there are.

        By default two if epsilon times the rows that the schema allows is 750 or more: then the noise on a cell of
        the alternating miners' tables stays within some 3 % of the rows (95 %). Where the schema says nothing of rows,
        as if there were 2,500.
        """
        if self.starts is None:
            return 2 if self.epsilon * (schema.row_bound or SOME_ROWS) >= ROWS_OF_TWO_STARTS else 1
        return self.starts if isinstance(self.starts, int) else len(self.starts)

    def starts_on(self, schema: Schema) -> list[Start]:
        """Return the starts.

        Raises
        ------
        InputError
            If a view has no attribute, or a starting attribute has one value only or no view.
        """
        for view in View:
            if not schema.view(view):
                raise InputError(f"the schema has no attribute of the {view} view; redescriptions need two views")
        for name in self.derived_names:
            if name in schema:
                raise InputError(f"attribute '{name}' has the name of one that the miner derives; rename it")
        if not isinstance(self.starts, tuple):
            sides = Categorical(STARTING_TEST, ["holds", "does not hold"])
            return [Start(k, (View.LEFT, View.RIGHT)[k % 2], sides, selected=True) for k in range(self.number(schema))]
        found = []
        for k, name in enumerate(self.starts):
            attribute = schema[name]
            if attribute.size < 2:
                raise InputError(f"the starting attribute '{name}' has one value only; choose another")
            if attribute.view is None:
                raise InputError(f"the starting attribute '{name}' belongs to no view")
            found.append(Start(k, attribute.view, attribute, selected=False))
        return found

    def selection(self, tests: Mapping[View, Candidates], start: Start, epsilon: Fraction) -> list[Node]:
        """Plan the selection of a starting test; nothing where the start is an attribute given by name."""
        if not start.selected:
            return []
        scores = Associations(tests[start.view], tests[OTHER[start.view]])
        return [step("start", scores, PermuteAndFlip(epsilon))]

    def begun(self, table: PrivateTable, tests: Candidates, start: Start, taken: list[Literal]) -> PrivateTable:
        """Release a starting test, other than those taken, and derive the class that it makes."""
        if not start.selected:
            return table
        left = tests.without_tests(taken)
        chosen = left[0] if len(left) == 1 else table.release("start", candidates=left)
        assert isinstance(chosen, Literal)
        taken.append(chosen)
        return table.derive(start.target, Cases([chosen]))

    def tests(self, schema: Schema) -> dict[View, Candidates]:
        """Return the binary tests of either view.

        Raises
        ------
        InputError
            If a view has none.
        """
        tests = {}
        for view in View:
            names = [a.name for a in schema.view(view)]
            tests[view] = Candidates.of_schema(schema, names, multiway=False, cuts=True)
            if not len(tests[view]):
                raise InputError(
                    f"no attribute of the {view} view has two values or a cut; nothing can be tested there"
                )
        return tests

    def mine(self, table: PrivateTable) -> Redescriptions:
        """Release trees and tables, start by start; the rest is post-processing."""
        found: dict[tuple[Description, Description], Redescription] = {}
        looked_at = 0
        taken: list[Literal] = []
        tests = self.tests(table.schema)
        for start in self.starts_on(table.schema):
            begun = self.begun(table.scope(start.scope), tests[start.view], start, taken)
            for redescriptions, number in self.mine_from(begun, tests, start):
                looked_at += number
                for one in redescriptions:
                    sides = one.left, one.right
                    if sides not in found or found[sides].support.variance > one.support.variance:
                        found[sides] = one
        return Redescriptions(found.values(), looked_at)

    def mine_from(
        self, table: PrivateTable, tests: Mapping[View, Candidates], start: Start
    ) -> list[tuple[list[Redescription], int]]:
        """Return what one starting attribute gives, pair of trees by pair of trees."""
        raise NotImplementedError

    def extracted(self, table: PrivateTable, name: str, trees: dict[View, CompleteTree]) -> tuple[Any, int]:
        """Release the table of leaves by leaves, and return its redescriptions."""
        counts = np.asarray(table.release(name, left=trees[View.LEFT], right=trees[View.RIGHT]))
        return extract(trees, counts, noise_variance(table.calibration(name)), self.constraints)


@attrs.frozen
class _Alternating(_TreeRedescriptions):
    """Trees on either view in turn, each for the leaves of the last one.

    Parameters
    ----------
    rounds
        How many trees follow the first one: each gives redescriptions together with the one before.
    """

    rounds: int = attrs.field(default=1, validator=whole_number(most=100))

    @property
    def criterion(self) -> Criterion:
        """What scores a leaf."""
        return criterion_named("norm") if self.sensitivity == "tight" else PUBLISHED_GINI

    def share(self, schema: Schema) -> Fraction:
        """Return what each selection, tree and table of a start may cost."""
        parts = 2 * self.rounds + 1 + (not isinstance(self.starts, tuple))
        return self.epsilon / (self.number(schema) * parts)

    def plan(self, schema: Schema) -> Node:
        """Plan, for each start, its selection, a tree, then `rounds` times a tree and a table."""
        starts, scopes = self.starts_on(schema), []
        tests, share = self.tests(schema), self.share(schema)
        for start in starts:
            view, target = OTHER[start.view], start.target
            parts = self.selection(tests, start, share)
            for i in range(self.rounds + 1):
                parts.append(self.tree_plan(f"tree {i + 1}", share, tests[view], target, schema.row_bound))
                if i:
                    counts = JointLeaves(2**self.max_depth, 2**self.max_depth)
                    parts.append(step(f"leaves {i}", counts, DiscreteLaplace(share), uses=self.tree_steps(i)))
                target, view = self.leaves_attribute(i + 1), OTHER[view]
            scopes.append(sequential(*parts, name=start.scope))
        return sequential(*scopes)

    @property
    def derived_names(self) -> tuple[str, ...]:
        """The names of the attributes that are derived."""
        return (STARTING_TEST, *(self.leaves_attribute(k + 1).name for k in range(self.rounds)))

    def leaves_attribute(self, number: int) -> Attribute:
        """Return the derived attribute that says which leaf of a tree a row is in."""
        return Categorical(f"leaf of tree {number}", [str(k + 1) for k in range(2**self.max_depth)])

    def tree_plan(self, name: str, share: Fraction, tests: Candidates, target: Attribute, rows: int | None) -> Node:
        """Plan one tree."""
        raise NotImplementedError

    def tree_steps(self, i: int) -> list[str]:
        """Return the names of the steps or scopes that release the trees i and i + 1."""
        return [f"tree {i}", f"tree {i + 1}"]

    def grow(self, table: PrivateTable, name: str, tests: Candidates) -> CompleteTree:
        """Release one tree."""
        raise NotImplementedError

    def mine_from(
        self, table: PrivateTable, tests: Mapping[View, Candidates], start: Start
    ) -> list[tuple[list[Redescription], int]]:
        """Alternate."""
        view = OTHER[start.view]
        trees: dict[View, CompleteTree] = {}
        found = []
        for i in range(self.rounds + 1):
            trees[view] = self.grow(table, f"tree {i + 1}", tests[view])
            if i:
                found.append(self.extracted(table, f"leaves {i}", trees))
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

    Every level of a tree gets an equal share of its budget; siblings are released in parallel.
    """

    name = "alt-expm"

    def tree_plan(self, name: str, share: Fraction, tests: Candidates, target: Attribute, rows: int | None) -> Node:
        """Plan the levels of a tree, the siblings of each in parallel."""
        scores = SplitScores(self.criterion, target, len(tests), rows)
        epsilon = share / self.max_depth
        tight = self.sensitivity == "tight"
        selector: PureMechanism = PermuteAndFlip(epsilon) if tight else Exponential(epsilon)
        split = step("split", scores, selector, threshold=rows)
        node: Node = split
        for _ in range(self.max_depth - 1):
            node = sequential(split, parallel(node, by=FromRelease("split")))
        return sequential(node, name=name)

    def grow(self, table: PrivateTable, name: str, tests: Candidates) -> CompleteTree:
        """Release the tests of each level."""
        chosen = np.zeros(2**self.max_depth - 1, dtype=np.int64)
        parts = {0: table.scope(name)}
        for node in range(len(chosen)):
            part = parts.pop(node)
            # a choice among one needs no release
            split: Any = tests[0] if len(tests) == 1 else part.release("split", candidates=tests)
            chosen[node] = tests.position(split)
            if 2 * node + 1 < len(chosen):
                parts[2 * node + 1], parts[2 * node + 2] = part.partition(cut_of(split))
        return CompleteTree(tests, chosen)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return the tight and the published settings, two levels deep, and several starts and rounds."""
        return {
            "default": Example(_SCHEMA, cls(2, starts=["rain"])),
            "published": Example(_SCHEMA, cls(2, starts=["wolf"], sensitivity="published")),
            "rounds": Example(_SCHEMA, cls(3, starts=2, rounds=2, max_depth=1)),
        }


@final
@attrs.frozen
class AltMCMC(_Alternating):
    """Redescriptions from alternating trees, each sampled as a whole (Mihelčić and Miettinen 2023, AltMCMC).

    Parameters
    ----------
    sampler
        "exact" draws from the distribution that the claim is about; "mcmc" walks towards it (Bai et al. 2017), for
        trees that are too many for the exact one, and assumes that `iterations` steps get there.
    iterations
        Of a walk.
    """

    name = "alt-mcmc"
    sampler: str = attrs.field(default="exact", validator=one_of(("exact", "mcmc")))
    iterations: int = attrs.field(default=10_000, validator=whole_number())

    def tree_plan(self, name: str, share: Fraction, tests: Candidates, target: Attribute, rows: int | None) -> Node:
        """Plan one release of a whole tree."""
        scores = TreeScores(self.criterion, target, tests, self.max_depth, rows)
        if self.sampler == "exact":
            require_feasible(len(tests), self.max_depth)
            return step(name, scores, ExactTrees(share), threshold=rows)
        return step(name, scores, MarkovChainTrees(share, self.iterations), threshold=rows)

    def grow(self, table: PrivateTable, name: str, tests: Candidates) -> CompleteTree:
        """Release a whole tree."""
        return CompleteTree(tests, table.release(name))

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return both samplers, and the published sensitivity."""
        return {
            "exact": Example(_SCHEMA, cls(2, starts=["rain"])),
            "mcmc": Example(_SCHEMA, cls(2, starts=["wolf"], sampler="mcmc", iterations=2000, max_depth=1)),
            "published": Example(_SCHEMA, cls(2, starts=["wolf"], sensitivity="published", max_depth=1)),
            "rounds": Example(_SCHEMA, cls(3, starts=2, rounds=2, max_depth=1)),
        }


@final
@attrs.frozen
class MCMCTreePair(_TreeRedescriptions):
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

    def plan(self, schema: Schema) -> Node:
        """Plan, for each start, a pair of trees and a table."""
        each = self.epsilon / self.number(schema)
        score = pair_score_named("published" if self.sensitivity == "published" else self.score)
        starts, scopes = self.starts_on(schema), []
        tests = self.tests(schema)
        for start in starts:
            for_trees = each * self.tree_share / (2 if start.selected else 1)
            scores = PairScores(
                score, start.target, tests[OTHER[start.view]], tests[start.view], self.max_depth, schema.rows
            )
            most = 1 if score.normalised else schema.row_bound
            pair = step("pair", scores, MarkovChainPairs(for_trees, self.iterations), threshold=most)
            counts = JointLeaves(2**self.max_depth, 2**self.max_depth)
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
        few: dict[str, Any] = {"starts": ["wolf"], "max_depth": 1, "iterations": 2000}
        return {
            "default": Example(_SCHEMA, cls(2, **few)),
            "product": Example(_SCHEMA, cls(2, score="product", **few)),
            "published": Example(_SCHEMA, cls(2, sensitivity="published", **few)),
        }


_SCHEMA = Schema(
    [
        Boolean("wolf", view=View.LEFT),
        Boolean("moose", view=View.LEFT),
        Numeric("rain", 0, 8, cuts=[3, 5], view=View.RIGHT),
        Categorical("zone", ["north", "middle", "south"], view=View.RIGHT),
    ]
)
