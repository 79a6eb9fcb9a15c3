"""Decision trees made of releases, which predict, print as rules, draw as text and in Graphviz, and export to JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import And, Attribute, Description, Equals, InputError, Schema, attribute_from_dict, otherwise
from dpframework.results import DrawableResult, StoredResult
from dpframework.tables import Block, NewRows, Table, cells_of
from dpframework_trees.splits import Multiway, Split, cut_of
from dpframework_trees.tree_nodes import (
    Inner,
    Leaf,
    TreeNode,
    best_class,
    leaves_of,
    node_from_dict,
    node_to_dict,
    nodes_of,
)

if TYPE_CHECKING:
    import polars as pl

    from dpframework.results import Pattern


OfNode: TypeAlias = Callable[["TreeNode"], Any]


@attrs.frozen
class TreeRule:
    """A path of the tree as a rule, description -> class.

    Attributes
    ----------
    description
        The conditions on the path.
    label
        The most probable class.
    probability
        The estimated probability of this class.
    rows
        The estimated number of rows in the leaf.
    """

    description: Description
    label: str
    probability: float
    rows: float

    def __str__(self) -> str:
        """Write the rule with its estimated confidence and rows."""
        return f"{self.description}  ->  {self.label} ({self.probability:.0%} of about {self.rows:.0f} rows)"


@final
@attrs.frozen(eq=False, repr=False)
class DecisionTree(DrawableResult):
    """A decision tree over a schema's attributes.

    It is made of releases, so predicting with it, printing it and keeping it costs no privacy.

    Attributes
    ----------
    root
        The top node of the tree that is shown, which gives the rules, the drawings and the depth.
    target
        The class attribute; its labels are the classes, in order.
    schema
        The attributes that the tree tests. None if it tests none.
    whole
        The top node of the tree that predicts, if the tree that is shown was pruned; None if both are the same. The
        leaves that pruning removes predict the same class with different probabilities.
    """

    name_in_errors = "a tree"
    figure: ClassVar[Mapping[str, Any]] = {"figsize": (9, 5), "layout": "constrained"}

    root: TreeNode
    target: Attribute
    schema: Schema | None
    whole: TreeNode | None = None

    @classmethod
    def over(cls, root: TreeNode, target: Attribute, schema: Schema, *, whole: TreeNode | None = None) -> DecisionTree:
        """Return a tree that keeps only the attributes of the schema that it tests."""
        tested = {node.split.attribute for node in nodes_of(whole or root) if isinstance(node, Inner)}
        names = [name for name in schema.names if name in tested]
        return cls(root, target, attrs.evolve(schema.select(names), rows=None) if names else None, whole)

    @property
    def predicting(self) -> TreeNode:
        """The top node of the tree that predicts."""
        return self.whole or self.root

    def predict(
        self, rows: Any, *, out_of_domain: str = "error", costs: Sequence[float] | None = None
    ) -> NDArray[np.str_]:
        """Return the most probable class of each row as text, or with costs the class with the least expected cost.

        A path ends at the first test of an unknown cell (see `NewRows`). The node there predicts by its own counts.

        Parameters
        ----------
        rows
            A table of any schema with the tested attributes, or a dataframe with their columns.
        out_of_domain
            What to do with values of a dataframe outside the schema (see `NewRows.read`).
        costs
            The cost of an error on a row of each class, in the order of the target's labels.

        Raises
        ------
        InputError
            If a tested attribute is missing, if it has values outside its domain and these are refused, or if the
            number of costs differs from the number of classes.
        """
        labels, found = np.array(self.target.cells), self.predict_proba(rows, out_of_domain=out_of_domain)
        if costs is not None:
            if len(costs) != len(labels):
                raise InputError(f"costs has {len(costs)} numbers; '{self.target.name}' has {len(labels)} classes")
            found = found * np.asarray(costs, dtype=np.float64)
        return np.asarray(labels[found.argmax(axis=1)])

    def predict_proba(self, rows: Any, *, out_of_domain: str = "error") -> NDArray[np.float64]:
        """Return class probabilities, shape (rows, classes), in the order of the target's labels."""
        found = np.empty((_length(rows), self.target.size))
        self._route_rows(self.predicting, rows, out_of_domain, found, lambda node: node.probabilities)
        return found

    def apply(self, rows: Any, *, out_of_domain: str = "error") -> NDArray[np.int64]:
        """Return each row's leaf in the tree that is shown, shape (rows,), as a position in `rules()`.

        A row whose path ends at an unknown cell is in no leaf, and gets -1.
        """
        numbers = {id(leaf): k for k, leaf in enumerate(leaves_of(self.root))}
        found = np.empty(_length(rows), dtype=np.int64)
        self._route_rows(self.root, rows, out_of_domain, found, lambda node: numbers.get(id(node), -1))
        return found

    def _route_rows(self, root: TreeNode, rows: Any, out_of_domain: str, found: NDArray[Any], of_node: OfNode) -> None:
        if self.schema is None:  # nothing is tested
            found[:] = of_node(root)
            return
        given = NewRows.read(rows, self.schema, out_of_domain=out_of_domain)
        _route(root, given.block, given.unknown, found, of_node)

    def importances(self) -> dict[str, float]:
        """Return by how many rows the splits on each attribute lower the Gini impurity, estimated from noisy counts."""
        found: dict[str, float] = {}
        for node in nodes_of(self.predicting):
            if isinstance(node, Inner):
                less = _impurity(node) - sum(map(_impurity, node.children))
                found[node.split.attribute] = found.get(node.split.attribute, 0.0) + max(less, 0.0)
        return found

    def codes(self, block: Block) -> NDArray[np.int64]:
        """Return the code of the most probable class of each row of a block, shape (rows,)."""
        found = np.empty((block.length, self.target.size))
        _route(self.predicting, block, {}, found, lambda node: node.probabilities)
        return np.asarray(found[block.index].argmax(axis=1))

    def leaf_codes(self, block: Block) -> NDArray[np.int64]:
        """Return each row's leaf in the tree that predicts, by its position in tree order, shape (rows,)."""
        numbers = {id(leaf): k for k, leaf in enumerate(leaves_of(self.predicting))}
        found = np.empty(block.length, dtype=np.int64)
        _route(self.predicting, block, {}, found, lambda node: numbers[id(node)])
        return found[block.index]

    @property
    def leaf_probabilities(self) -> NDArray[np.float64]:
        """The class probabilities of each leaf of the tree that predicts, in tree order, shape (leaves, classes)."""
        return np.array([leaf.probabilities for leaf in leaves_of(self.predicting)])

    def rules(self) -> list[TreeRule]:
        """Return one rule for each leaf, in tree order."""
        return list(_rules(self.root, (), self.target, self.schema))

    def patterns(self) -> tuple[Pattern, ...]:
        """Return one pattern X -> y for each leaf, in tree order, to measure retention in `dpframework.lab`."""
        from dpframework.results import Pattern

        return tuple(Pattern(rule.description, Equals(self.target.name, rule.label)) for rule in self.rules())

    def leaf_counts(self) -> NDArray[np.float64]:
        """Return the estimated numbers of rows by leaf (as in `rules`) and by class, shape (leaves, classes)."""
        return np.array([leaf.counts for leaf in leaves_of(self.root)])

    @property
    def leaves(self) -> int:
        """The number of leaves of the tree that is shown."""
        return len(leaves_of(self.root))

    @property
    def depth(self) -> int:
        """The number of splits on the longest path of the tree that is shown."""
        return _depth(self.root)

    def __str__(self) -> str:
        """Draw the tree as text with one line for each branch, and class, probability and estimated rows at leaves."""
        from dpframework_trees.tree_displays import tree_text

        return tree_text(self)

    def _repr_html_(self) -> str:
        from dpframework_trees.tree_displays import tree_table

        return tree_table(self).html()

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with one row for each leaf, in the order of `rules`.

        Its columns are the rule, the class, its probability, the rows, and the rows of each class.
        """
        from dpframework_trees.tree_displays import tree_frame

        return tree_frame(self)

    def draw(self, axes: Any) -> None:
        """Draw the tree that is shown, with the root on top, and each leaf with its class, probability and rows."""
        from dpframework_trees.tree_displays import draw_tree

        draw_tree(self, axes)

    def to_dot(self) -> str:
        """Return the tree in Graphviz's DOT."""
        from dpframework_trees.tree_displays import tree_dot

        return tree_dot(self)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {
            "target": self.target.to_dict(),
            "schema": None if self.schema is None else self.schema.to_dict(),
            "root": node_to_dict(self.root),
            "whole": None if self.whole is None else node_to_dict(self.whole),
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> DecisionTree:
        """Build a tree from a form that `to_dict` returned."""
        schema = None if form["schema"] is None else Schema.from_dict(form["schema"])
        whole = None if form.get("whole") is None else node_from_dict(form["whole"])
        return cls(node_from_dict(form["root"]), attribute_from_dict(form["target"], 0), schema, whole)


@final
@attrs.frozen(eq=False, repr=False)
class TreeResult(StoredResult):
    """The result of a tree miner.

    Its stored form holds the tree and its rules, so that the rules can be read without this package.

    Attributes
    ----------
    tree
        The tree, made of releases alone.
    """

    name_in_errors = "a tree"
    tree: DecisionTree

    def predict(
        self, rows: Any, *, out_of_domain: str = "error", costs: Sequence[float] | None = None
    ) -> NDArray[np.str_]:
        """Return the class of each row as text (see `DecisionTree.predict`)."""
        return self.tree.predict(rows, out_of_domain=out_of_domain, costs=costs)

    def predict_proba(self, rows: Any, *, out_of_domain: str = "error") -> NDArray[np.float64]:
        """Return class probabilities (see `DecisionTree.predict_proba`)."""
        return self.tree.predict_proba(rows, out_of_domain=out_of_domain)

    def plot(self, ax: Any | None = None) -> Any:
        """Draw the tree with matplotlib, and return the axes."""
        return self.tree.plot(ax)

    def rules(self) -> list[TreeRule]:
        """Return the tree's rules."""
        return self.tree.rules()

    def to_frame(self) -> pl.DataFrame:
        """Return the tree as a polars dataframe (see `DecisionTree.to_frame`)."""
        return self.tree.to_frame()

    def _repr_html_(self) -> str:
        return self.tree._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads, with the rules as texts."""
        return {"tree": self.tree.to_dict(), "rules": [str(rule) for rule in self.rules()]}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> TreeResult:
        """Build a result from a form that `to_dict` returned."""
        return cls(DecisionTree.from_dict(form["tree"]))

    def __str__(self) -> str:
        """Draw the tree."""
        return str(self.tree)


def _depth(node: TreeNode) -> int:
    return 1 + max(map(_depth, node.children)) if isinstance(node, Inner) else 0


def _length(rows: Any) -> int:
    return rows.rows if isinstance(rows, Table) else len(rows)


def _impurity(node: TreeNode) -> float:
    total = float(node.counts.sum())
    return total - float((node.counts**2).sum()) / total if total > 0 else 0.0


def _route(
    node: TreeNode, block: Block, unknown: Mapping[str, NDArray[np.bool_]], found: NDArray[Any], of_node: OfNode
) -> None:
    """Write `of_node` of each row's last node to `found`: a leaf, or the first node that tests an unknown cell."""
    index = block.index
    if isinstance(node, Leaf):
        found[index] = of_node(node)
        return
    cut = cut_of(node.split)
    cells = cells_of(block.schema[cut] if isinstance(cut, str) else cut, block)
    if node.split.attribute in unknown:
        ends = unknown[node.split.attribute][index]
        found[index[ends]] = of_node(node)
        cells = np.where(ends, -1, cells)
    for k, child in enumerate(node.children):
        _route(child, block.at(index[cells == k]), unknown, found, of_node)


def _branch(split: Split, child: int, schema: Schema) -> Description:
    if isinstance(split, Multiway):
        return Equals(split.attribute, schema[split.attribute].labels[child])
    return split if child == 0 else otherwise(split, schema[split.attribute])


def _rules(node: TreeNode, path: tuple[Description, ...], of: Attribute, schema: Schema | None) -> Iterator[TreeRule]:
    if isinstance(node, Leaf) or schema is None:
        best = best_class(node)
        yield TreeRule(And(path), of.labels[best], float(node.probabilities[best]), float(node.counts.sum()))
        return
    for k, child in enumerate(node.children):
        yield from _rules(child, (*path, _branch(node.split, k, schema)), of, schema)
