"""A private choice among tree miners, with one budget for all of them and for the choice.

A search that compares exact scores on the private rows is not private, since one more row can change which parameters
win. Here each candidate releases its tree at its share of the budget. Permute-and-flip then chooses among the trees,
with the number of correct predictions as the score. Claim: pure epsilon by sequential composition (McSherry 2009,
Theorem 3). No rows are set aside for the choice: the trees are compared on the rows that they were grown from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, Boolean, Cases, Categorical, InputError, Numeric, Schema, positive
from dpframework.mechanisms import PermuteAndFlip
from dpframework.plan import Node, Step, sequential, step, walk
from dpframework.queries import CandidateScores, Norm, ReadsAmong, Sensitivity
from dpframework.results import StoredResult
from dpframework.run import Example, Miner, PrivateTable
from dpframework.tables import Block, Crosstab, JointCounts
from dpframework_trees.dptree import DPTree
from dpframework_trees.id3 import DPID3
from dpframework_trees.tree import DecisionTree, TreeResult
from dpframework_trees.tree_displays import tree_table

if TYPE_CHECKING:
    import polars as pl


@final
@attrs.frozen
class CorrectPredictions(ReadsAmong, CandidateScores):
    """For each released tree, the number of rows whose class it predicts correctly. Trees are given at run time.

    Attributes
    ----------
    target
        The class attribute.
    answer_length
        The number of trees.
    """

    name = "correct-predictions"
    integer = True
    target: Attribute
    answer_length: int

    @property
    def text(self) -> str:
        """Name the class."""
        return f"correct predictions of {self.target.name} by {self.answer_length} trees"

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """1 in the linf norm. An added row raises each number by 0 or 1, and a replaced row moves it by at most 1."""
        return (Sensitivity(Norm.LINF, 1, 1, fall=0, source="a row is predicted correctly or not"),)

    def candidates(self, **inputs: Any) -> Sequence[int]:
        """Return the positions of the trees, which are given as `trees`."""
        trees = inputs["trees"]
        if len(trees) != self.answer_length:
            raise InputError(f"{len(trees)} trees were given where {self.answer_length} are planned")
        return range(self.answer_length)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count the rows of this block that each tree predicts correctly, shape (trees,)."""
        trees: Sequence[DecisionTree] = inputs["trees"]
        classes = block.codes(self.target.name)
        return np.array([int((tree.codes(block) == classes).sum()) for tree in trees], dtype=np.int64)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of each tree's leaves and the class."""
        trees: Sequence[DecisionTree] = inputs["trees"]
        best = [tree.leaf_probabilities.argmax(axis=1) for tree in trees]

        def assemble(counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
            rows = [table[np.arange(len(own)), own].sum() for table, own in zip(counts, best, strict=True)]
            return np.array(rows, dtype=np.int64)

        return JointCounts([Crosstab([_leaves(tree), self.target]) for tree in trees], assemble)


def _leaves(tree: DecisionTree) -> Cases:
    """Return the leaves of the tree that predicts, in tree order, as cells. The cell after them holds no row."""
    return Cases(rule.description for rule in attrs.evolve(tree, root=tree.predicting).rules())


@final
@attrs.frozen
class ChosenTree(StoredResult):
    """The tree that was chosen.

    Attributes
    ----------
    position
        The position of its miner among the candidates, from 0.
    tree
        The tree.
    """

    name_in_errors = "a chosen tree"
    position: int
    tree: DecisionTree

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {"position": self.position, **TreeResult(self.tree).to_dict()}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> ChosenTree:
        """Build a chosen tree from a form that `to_dict` returned."""
        return cls(int(form["position"]), TreeResult.from_dict(form).tree)

    def to_frame(self) -> pl.DataFrame:
        """Return the tree as a polars dataframe (see `DecisionTree.to_frame`)."""
        return self.tree.to_frame()

    def plot(self, ax: Any | None = None) -> Any:
        """Draw the tree with matplotlib, and return the axes."""
        return self.tree.plot(ax)

    def _repr_html_(self) -> str:
        return tree_table(self.tree, f"Candidate {self.position + 1}. ").html()

    def __str__(self) -> str:
        """Write the candidate's number, from 1, then the tree."""
        return f"candidate {self.position + 1}\n{self.tree}"


def _miners(given: Iterable[Miner]) -> tuple[Miner, ...]:
    miners = tuple(given)
    if not miners:
        raise InputError("there is no candidate to choose from; give one set of parameters or more")
    return miners


@final
@attrs.frozen
class TreeChoice(Miner):
    """Several tree miners on one budget. One of their trees, with many correct predictions, is selected privately.

    Parameters
    ----------
    target
        The class attribute of all miners.
    miners
        The candidates, each with its own epsilon.
    choice_epsilon
        The epsilon of the choice, which is spent in addition to the miners' epsilon.
    """

    name = "tree-choice"
    result = ChosenTree
    target: str
    miners: tuple[Miner, ...] = attrs.field(converter=_miners)
    choice_epsilon: Fraction = attrs.field(converter=positive)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return an example that chooses between two miners."""
        schema = Schema([Numeric("size", 0, 8, cuts=[4]), Boolean("ripe"), Categorical("grade", ["good", "bad"])])
        candidates = [
            DPID3("grade", 1, max_depth=1, pruning=False),  # Pruning takes time and does not change predictions.
            DPTree("grade", 1, max_depth=1, sampler="greedy", pruning=False),
        ]
        return {"default": Example(schema, cls("grade", candidates, Fraction(1, 5)))}

    def plan(self, schema: Schema) -> Node:
        """Plan each candidate, then the choice."""
        grown = [sequential(miner.plan(schema), name=_scope(k)) for k, miner in enumerate(self.miners)]
        scores = CorrectPredictions(schema[self.target], len(self.miners), among=_read(grown))
        return sequential(
            *grown, step("choice", scores, PermuteAndFlip(self.choice_epsilon), uses=map(_scope, range(len(grown))))
        )

    def values_read(self, schema: Schema) -> Collection[str] | None:
        """Return the attributes whose values some candidate reads. None stands for all."""
        each = [miner.values_read(schema) for miner in self.miners]
        return None if None in each else {name for names in each if names is not None for name in names}

    def mine(self, table: PrivateTable) -> ChosenTree:
        """Grow the trees, and choose one."""
        trees = [miner.mine(table.scope(_scope(k))).tree for k, miner in enumerate(self.miners)]
        chosen = int(table.release("choice", trees=trees))
        return ChosenTree(chosen, trees[chosen])


def _read(grown: Iterable[Node]) -> tuple[str, ...]:
    """Return the names of the attributes that the candidates' releases read. Empty if a release may read all."""
    each = [node.query.attributes for part in grown for node in walk(part) if isinstance(node, Step)]
    return () if () in each else tuple(dict.fromkeys(name for names in each for name in names))


def _scope(position: int) -> str:
    return f"candidate {position + 1}"
