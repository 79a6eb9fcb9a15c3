"""`dp-additive`, an additive classifier with one function of each attribute, all fitted jointly.

Claim: pure epsilon under either neighbouring relation; no assumptions (see `perturbation`). Bins and the ridge depend
on public facts, on epsilon and on up to three releases. One is the number of rows, if it is not public. Another is the
counts of bins, if some bins must be merged and there are enough rows for counts to stand out from their noise (see
`bins`). The third is a small tree, if one adds a part of its own to the score.
The number of rows chooses a branch of the plan: with or without counts, and with or without a tree (see `tree_part`).
The budgets of all releases of a branch add up to epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Self, final

import attrs
import numpy as np

from dpframework.facts import MOST_ROWS, Attribute, InputError, Numeric, Schema, one_of
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node, either, sequential, step
from dpframework.queries import Marginals
from dpframework.run import Example, PrivateTable, left_by_row_count, plan_row_count
from dpframework_trees.additive.bins import (
    FEWEST_BINS,
    counts_stand_out,
    merge,
    merge_by_counts,
    most_bins,
    share_of_counts,
    too_fine,
)
from dpframework_trees.additive.design import Design, Reals
from dpframework_trees.additive.fit_rows import LogisticRows
from dpframework_trees.additive.model import AdditiveModel
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge
from dpframework_trees.additive.perturbation import ObjectivePerturbation
from dpframework_trees.additive.tree_part import DEPTH, SHARE, WORTH, values_of
from dpframework_trees.additive.witnesses import (
    COLOURS,
    OF_TREE,
    OF_TREE_REPLACED,
    SCHEMA,
    witness_of_added,
    witness_of_replaced,
)
from dpframework_trees.dptree import DPTree
from dpframework_trees.parameters import ModelMiner, class_and_attributes
from dpframework_trees.tree import DecisionTree
from dpframework_trees.tree_estimates import noise_variance

STEP, BINS = "fit", "bins"
TREE = "tree"
INTERACTIONS = ("auto", "yes", "no")
MANY = 2_000  # the largest and the released number of rows in the example whose bins are counted
MORE = 1 << 10  # how far units of several rows may take a neighbouring table above the schema's `row_bound`


@final
@attrs.frozen
class DPAdditive(ModelMiner):
    """An additive classifier with one function of each attribute, fitted jointly by objective perturbation.

    Parameters
    ----------
    target
        The class attribute.
    epsilon
        The budget of the whole fit.
    attributes
        The attributes to use; by default all but the target.
    interactions
        Whether a small tree is released first, with 7 % of the budget, and adds its own part to the score. It captures
        what attributes say only in combination. "no": never. "yes": always; refused for more than two classes. "auto":
        for two classes, if rows times epsilon are at least 2,500.

    Examples
    --------
    >>> DPAdditive(target="income", epsilon=1.0).epsilon
    Fraction(1, 1)
    """

    name = "dp-additive"
    result = AdditiveModel
    interactions: str = attrs.field(default="no", validator=one_of(INTERACTIONS))

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples: two classes, several classes, more coefficients, counted bins, and a tree."""
        two, several = cls("grade", 2), cls("colour", 2)
        counted = attrs.evolve(SCHEMA.replace(Numeric("size", 0, 8, cuts=range(1, 8))), max_rows=MANY)
        branch = Variant(counts=True).name
        found = {"rows": MANY, f"{branch}/bins": np.array([-9, 0, 0, 0, 9, 0, 0, 0]) * MANY}
        of_counts = [
            attrs.evolve(witness, outputs={**found, f"{branch}/fit": witness.outputs["fit"]})
            for witness in (witness_of_added("grade"), witness_of_replaced("grade", size=6))
        ]
        with_tree = [witness_of_added("grade", **OF_TREE), witness_of_replaced("grade", **OF_TREE_REPLACED)]
        return {
            "two": Example(SCHEMA, two, witnesses=[witness_of_added("grade"), witness_of_replaced("grade")]),
            "several": Example(SCHEMA, several, witnesses=[witness_of_added("colour"), witness_of_replaced("colour")]),
            "many": Example(COLOURS, several, witnesses=[witness_of_added("colour"), witness_of_replaced("colour")]),
            "counted": Example(counted, two, witnesses=of_counts),
            "tree": Example(SCHEMA, cls("grade", 2, interactions="yes"), witnesses=with_tree),
        }

    def plan(self, schema: Schema) -> Node:
        """Plan a count of the rows if their number is private, a tree and counts of bins if needed, and the fit."""
        fit = AdditiveFit.of(schema, self.target, self.attributes, self.epsilon, self.interactions)
        if schema.rows is not None:
            return sequential(*fit.steps(self.epsilon))
        rest = left_by_row_count(self.epsilon)
        return sequential(plan_row_count(self.epsilon), *fit.steps(rest, uses=["rows"]))

    def mine(self, table: PrivateTable) -> AdditiveModel:
        """Make the planned releases, and return the model."""
        fit = AdditiveFit.of(table.schema, self.target, self.attributes, self.epsilon, self.interactions)
        rows = table.release("rows") if table.schema.rows is None else table.schema.rows
        epsilon = self.epsilon if table.schema.rows is not None else left_by_row_count(self.epsilon)
        return fit.model(table, float(rows), epsilon)


@attrs.frozen
class Variant:
    """The releases before a fit, which make a branch of a plan.

    Attributes
    ----------
    tree
        Whether a tree is released.
    counts
        Whether counts of bins are released.
    """

    tree: bool = False
    counts: bool = False

    @property
    def name(self) -> str:
        """The branch's name."""
        released = [what for own, what in ((self.tree, "tree"), (self.counts, "counts")) if own]
        return f"with {' and '.join(released)}" if released else "fit alone"


@attrs.frozen(eq=False)
class AdditiveFit:
    """The fit of a classifier on a schema, with the plan of its steps and the model that it releases.

    Attributes
    ----------
    schema
        The table's schema.
    target
        The attribute that is predicted.
    given
        The attributes that predict it, each with two or more values.
    epsilon
        The budget by which the number of bins is chosen.
    interactions
        Whether a tree is released first (see `DPAdditive`).
    """

    schema: Schema
    target: Attribute
    given: list[Attribute]
    epsilon: Fraction
    interactions: str

    @classmethod
    def of(
        cls,
        schema: Schema,
        target: str,
        attributes: tuple[str, ...] | None,
        epsilon: Fraction,
        interactions: str = "no",
    ) -> Self:
        """Resolve a miner's parameters.

        Raises
        ------
        InputError
            If the target cannot be predicted (a classifier's target needs two classes), if the attributes include
            the target, or a name twice, if no attribute has two values, if a tree is asked for with more than two
            classes, or if there are too many coefficients.
        """
        predicted, names = cls.target_and_attributes(schema, target, attributes)
        given = [schema[name] for name in names if schema[name].size > 1]
        if not given:
            raise InputError(f"no attribute for target '{predicted.name}' has two or more values; add one that has")
        found = cls(schema, predicted, given, epsilon, interactions)
        if interactions == "yes" and found.classes > 2:
            raise InputError(
                f"target '{predicted.name}' has {found.classes} classes, and interactions = 'yes' needs two; "
                "set interactions = 'no', or choose dp-tree"
            )
        found.design(math.inf if schema.row_bound is None else schema.row_bound, {})  # This refuses too many columns.
        return found

    @classmethod
    def target_and_attributes(
        cls, schema: Schema, target: str, attributes: tuple[str, ...] | None
    ) -> tuple[Attribute, Collection[str]]:
        """Return the target, and the names of the attributes that predict it."""
        return class_and_attributes(schema, target, attributes)

    @property
    def too_fine_attributes(self) -> tuple[Numeric, ...]:
        """The numeric attributes whose bins are counted, since they may have more bins than are kept."""
        most = FEWEST_BINS if self.schema.rows is None else self.most(self.schema.rows)
        return tuple(a for a in self.given if isinstance(a, Numeric) and too_fine(a, most))

    def counts_bins(self, rows: float) -> bool:
        """Tell whether bins are counted, for a number of rows."""
        if not any(too_fine(attribute, self.most(rows)) for attribute in self.too_fine_attributes):
            return False
        return counts_stand_out(len(self.too_fine_attributes), self.about(rows), float(self.epsilon))

    def variant(self, rows: float) -> Variant:
        """Return the releases before the fit, for about this number of rows."""
        worth = self.about(rows) * float(self.epsilon) >= WORTH
        return Variant(
            tree=self.interactions == "yes" or (self.interactions == "auto" and self.classes == 2 and worth),
            counts=self.counts_bins(rows),
        )

    @property
    def variants(self) -> list[Variant]:
        """All variants that the number of rows may lead to; a single one if that number is public."""
        if self.schema.rows is not None:
            return [self.variant(self.schema.rows)]
        trees = dict.fromkeys(self.variant(rows).tree for rows in (1, MOST_ROWS))
        return [
            Variant(tree, counts) for tree in trees for counts in dict.fromkeys((False, bool(self.too_fine_attributes)))
        ]

    def steps(self, epsilon: Fraction, uses: Collection[str] = ()) -> list[Node]:
        """Plan the releases before the fit, and the fit.

        `uses` names the steps whose releases the fit uses. If there are several branches, these releases choose one.
        """
        first, *others = self.variants
        if not others:
            return self._steps_of(first, epsilon, uses)
        return [either(*(sequential(*self._steps_of(own, epsilon), name=own.name) for own in (first, *others)))]

    def _steps_of(self, variant: Variant, epsilon: Fraction, uses: Collection[str] = ()) -> list[Node]:
        found: list[Node] = []
        if variant.tree:
            found.append(sequential(self._tree(epsilon * SHARE).plan(self.schema), name=TREE))
            epsilon, uses = epsilon * (1 - SHARE), [*uses, TREE]
        if variant.counts:
            share = share_of_counts(len(self.too_fine_attributes))
            found.append(step(BINS, Marginals(self.too_fine_attributes), DiscreteLaplace(epsilon * share)))
            epsilon, uses = epsilon * (1 - share), [*uses, BINS]
        return [*found, step(STEP, self.query, ObjectivePerturbation(epsilon), uses=uses)]

    @property
    def query(self) -> LogisticRows:
        """The query for the rows that are fitted."""
        return LogisticRows(self.target, tuple(attribute.name for attribute in self.given))

    def _tree(self, epsilon: Fraction) -> DPTree:
        names = tuple(attribute.name for attribute in self.given)
        return DPTree(self.target.name, epsilon, max_depth=DEPTH, attributes=names, pruning=False)

    def model(self, table: PrivateTable, rows: float, epsilon: Fraction) -> AdditiveModel:
        """Release a fit, and return its model. `rows` is public or noisy, and `epsilon` is the epsilon of `steps`."""
        tuned, coefficients, tree = self.release_fit(table, rows, epsilon)
        return AdditiveModel.of_fit(tuned, coefficients, self.target, self.given, tree)

    def release_fit(
        self, table: PrivateTable, rows: float, epsilon: Fraction
    ) -> tuple[NoiseAndRidge, Reals, DecisionTree | None]:
        """Release a fit. Return its noise and ridge, its coefficients, shape (columns, outputs), and a tree or None."""
        variant = self.variant(rows)
        if len(self.variants) > 1:
            table = table.scope(variant.name)
        tree = self._tree(epsilon * SHARE).mine(table.scope(TREE)).tree if variant.tree else None
        leaves = () if tree is None else tuple(values_of(tree.leaf_probabilities).tolist())
        design = self.design(rows, self._by_counts(table, rows) if variant.counts else {}, leaves)
        coefficients = table.release(STEP, design=design, **({} if tree is None else {"tree": tree}))
        return NoiseAndRidge(design, 1 / table.calibration(STEP).scale), coefficients, tree

    def _by_counts(self, table: PrivateTable, rows: float) -> Mapping[str, tuple[int, ...]]:
        """Release the counts of bins. Return, for each attribute with too many bins, the cell of each of its codes.

        These bins are merged by the released counts.
        """
        counted, most = self.too_fine_attributes, self.most(rows)
        released, variance = table.release(BINS), noise_variance(table.calibration(BINS))
        ends = itertools.accumulate(attribute.size for attribute in counted)
        return {
            a.name: merge_by_counts(a, most, released[end - a.size : end].astype(float), variance, rows)
            for a, end in zip(counted, ends, strict=True)
            if too_fine(a, most)
        }

    def about(self, rows: float) -> float:
        """Return a number of rows, clamped to the possible range."""
        bound = self.schema.row_bound
        return min(max(rows, 1.0), float(MOST_ROWS if bound is None else max(bound, 1)))

    def most(self, rows: float) -> int:
        """Return the most bins that a numeric attribute keeps, for a number of rows."""
        return most_bins(self.about(rows) * float(self.epsilon))

    def design(self, rows: float, by_counts: Mapping[str, tuple[int, ...]], leaves: tuple[int, ...] = ()) -> Design:
        """Return the design for a number of rows. `by_counts` has the cells of attributes whose bins counts merged."""
        bound, most = self.schema.row_bound, self.most(rows)
        bins = [by_counts.get(attribute.name) or merge(attribute, most) for attribute in self.given]
        most_rows = MOST_ROWS if bound is None else bound + MORE
        numeric = tuple(j for j, attribute in enumerate(self.given) if isinstance(attribute, Numeric))
        return Design(bins, self.classes, self.about(rows), most_rows, leaves, self.whole, numeric=numeric)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.target.size

    @property
    def whole(self) -> int:
        """The number of units that make an outcome of 1: it is 1, as outcomes are classes here (see `Design`)."""
        return 1
