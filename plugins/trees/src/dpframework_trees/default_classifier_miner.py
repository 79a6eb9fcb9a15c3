"""`dp-classifier`, which chooses a model by public facts and the number of rows, for users who do not want to choose.

Claim: pure epsilon under either neighbouring relation; no assumptions. The number of rows is taken from the schema, or
from a noisy count. That number alone decides which one branch of the plan runs (`either`).

This is the rule for n rows, k attributes, C classes and O outputs, where O is 1 for two classes, else C.

- If n epsilon / (k O) is at least 50, the model is additive if the schema allows such a model. Below 50, the
  noise of an additive model would exceed most of its functions. With two classes and n epsilon of 2,500 or more, a
  small tree adds its own part to the score (see the interactions of `dp-additive`).
- Else the model is a tree that is sampled as a whole. With T tests there are about T**(2**d - 1) trees of d levels. The
  sampled tree is worse than the best one by a number of rows proportional to the logarithm of the number of trees,
  divided by epsilon. So the tree gets the most levels, from 2 to 5, for which n epsilon is at least
  c (2**d - 1) log(T), and never more than four leaves per class. If no number of levels fulfils this, it gets 2. Here c
  is 30 / C, but at least 7, since a test says more the more classes there are.

The budget of a tree is divided between its tests and the counts of its leaves, C counts for each leaf. With L leaves,
and the share s of the budget for counts, the noise of counts adds up to L C / s. The cost of choosing tests is
proportional to L log(T) / (1 - s). The noise plus a times that cost is least for
s = sqrt(C) / (sqrt(C) + sqrt(a log(T))). With a = 9/8, two classes and 55 tests, that is about 2/5, the share of
`DPTree`. With more than two classes a tree of two levels gets this share, or 2/5 if that is more. Such a tree is used
for so few rows that counts matter most. All other trees have a share of 2/5, since more would cost accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts import InputError, Schema
from dpframework.plan import Node, either, sequential
from dpframework.results import StoredResult
from dpframework.run import Example, PrivateTable, left_by_row_count, plan_row_count
from dpframework_trees.additive.miner import AdditiveFit
from dpframework_trees.additive.model import AdditiveModel
from dpframework_trees.additive.witnesses import SCHEMA, witness_of_added, witness_of_replaced
from dpframework_trees.dptree import DPTree
from dpframework_trees.parameters import ModelMiner
from dpframework_trees.tree import DecisionTree

if TYPE_CHECKING:
    import polars as pl

ADDITIVE = "additive"
SAMPLED = "sampled-"  # the kind of a tree is this text, followed by its number of levels
ENOUGH = 50  # the rows times epsilon that an additive model needs for each function and output
LEVELS = range(2, 6)  # the numbers of levels that a tree may have
LEAVES_OF_CLASS = 4  # the most leaves for each class
COST_OF_TESTS = 9 / 8  # how much the cost of tests weighs against the noise of counts, called a above
ROWS_OF_CHOICE = (30.0, 7.0)  # c above: its product with the number of classes, and its least value


@final
@attrs.frozen(eq=False, repr=False)
class ChosenModel(StoredResult):
    """The chosen model and its kind.

    Attributes
    ----------
    kind
        "additive", or "sampled-2" to "sampled-5" for a tree with that number of levels.
    model
        The model.
    """

    name_in_errors = "a chosen model"
    kind: str
    model: AdditiveModel | DecisionTree

    def predict(self, rows: Any, *, out_of_domain: str = "error") -> Any:
        """Return the most probable class of each row, as text."""
        return self.model.predict(rows, out_of_domain=out_of_domain)

    def predict_proba(self, rows: Any, *, out_of_domain: str = "error") -> Any:
        """Return class probabilities, shape (rows, classes), in the order of the target's labels."""
        return self.model.predict_proba(rows, out_of_domain=out_of_domain)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {"kind": self.kind, "model": self.model.to_dict()}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> ChosenModel:
        """Build a chosen model from a form that `to_dict` returned."""
        kind = str(form["kind"])
        model: type[AdditiveModel | DecisionTree] = AdditiveModel if kind == ADDITIVE else DecisionTree
        return cls(kind, model.from_dict(form["model"]))

    def to_frame(self) -> pl.DataFrame:
        """Return the model as a polars dataframe (see `AdditiveModel` and `DecisionTree`)."""
        return self.model.to_frame()

    def plot(self, ax: Any | None = None) -> Any:
        """Draw the model with matplotlib, and return the axes."""
        return self.model.plot(ax)

    def _repr_html_(self) -> str:
        return self.model._repr_html_()

    def __str__(self) -> str:
        """Write the kind, then the model."""
        return f"{self.kind}\n{self.model}"


@final
@attrs.frozen
class DPClassifierMiner(ModelMiner):
    """A classifier that is an additive model or a tree, whichever public facts favour.

    Parameters
    ----------
    target
        The class attribute.
    epsilon
        The budget of the whole classifier.
    attributes
        The attributes to use; by default all but the target.

    Examples
    --------
    >>> DPClassifierMiner(target="income", epsilon=1.0).epsilon
    Fraction(1, 1)
    """

    name = "dp-classifier"
    result = ChosenModel

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return an example where any kind may be chosen, and one with a small public number of rows."""
        of_kind = {"rows": 10_000}
        witnesses = [
            attrs.evolve(found, outputs={**of_kind, f"{ADDITIVE}/fit": found.outputs["fit"]})
            for found in (witness_of_added("grade"), witness_of_replaced("grade"))
        ]
        return {
            "counted": Example(SCHEMA, cls("grade", 2), witnesses=witnesses),
            "few": Example(attrs.evolve(SCHEMA, rows=12, max_rows=None), cls("colour", Fraction(1, 2))),
        }

    def plan(self, schema: Schema) -> Node:
        """Plan a count of the rows and a branch for each kind, or only one kind if the number of rows is public."""
        if schema.rows is not None:
            return self._branch(schema, self.kind(schema, schema.rows), self.epsilon)
        rest = left_by_row_count(self.epsilon)
        branches = (self._branch(schema, kind, rest) for kind in self._kinds(schema))
        return sequential(plan_row_count(self.epsilon), either(*branches))

    def mine(self, table: PrivateTable) -> ChosenModel:
        """Count the rows if a count is planned, and fit the kind that their number favours."""
        schema, public = table.schema, table.schema.rows
        rows = float(table.release("rows") if public is None else public)
        kind = self.kind(schema, rows)
        part = table.scope(kind)
        epsilon = left_by_row_count(self.epsilon) if public is None else self.epsilon
        if kind == ADDITIVE:
            return ChosenModel(kind, self._fit(schema).model(part, rows, epsilon))
        return ChosenModel(kind, self._tree(schema, kind, epsilon).mine(part).tree)

    def kind(self, schema: Schema, rows: float) -> str:
        """Return the kind that a number of rows favours (see the module)."""
        kinds, budget = self._kinds(schema), rows * float(self.epsilon)
        if ADDITIVE in kinds:
            fit = self._fit(schema)
            outputs = 1 if fit.target.size == 2 else fit.target.size
            if budget >= ENOUGH * len(fit.given) * outputs:
                return ADDITIVE
        trees, tests = [kind for kind in kinds if kind != ADDITIVE], self._tests(schema)
        of_class, least = ROWS_OF_CHOICE
        of_node = max(of_class / schema[self.target].size, least) * math.log(tests)
        paid = [kind for d, kind in zip(LEVELS, trees, strict=False) if budget >= of_node * (2**d - 1)]
        return paid[-1] if paid else trees[0]

    def _kinds(self, schema: Schema) -> list[str]:
        """Return the kinds that are possible on a schema. An additive model must not have too many coefficients."""
        most = LEAVES_OF_CLASS * schema[self.target].size
        trees = [f"{SAMPLED}{d}" for d in LEVELS if 2**d <= most]
        self._branch(schema, trees[0], self.epsilon)  # This raises an error if nothing can be mined.
        try:
            self._branch(schema, ADDITIVE, self.epsilon)
        except InputError:
            return trees
        return [ADDITIVE, *trees]

    def _fit(self, schema: Schema) -> AdditiveFit:
        return AdditiveFit.of(schema, self.target, self.attributes, self.epsilon, "auto")

    def _tree(self, schema: Schema, kind: str, epsilon: Fraction) -> DPTree:
        levels, classes = int(kind.removeprefix(SAMPLED)), schema[self.target].size
        tree = DPTree(self.target, epsilon, max_depth=levels, attributes=self.attributes)
        if levels > LEVELS[0] or classes == 2:
            return tree
        return attrs.evolve(tree, counts_share=max(share_of_counts(classes, self._tests(schema)), tree.counts_share))

    def _tests(self, schema: Schema) -> int:
        """Return the number of tests that a tree may have."""
        return len(DPTree(self.target, self.epsilon, attributes=self.attributes).tests(schema))

    def _branch(self, schema: Schema, kind: str, epsilon: Fraction) -> Node:
        if kind == ADDITIVE:
            return sequential(*self._fit(schema).steps(epsilon), name=kind)
        return sequential(self._tree(schema, kind, epsilon).plan(schema), name=kind)


def share_of_counts(classes: int, tests: int) -> Fraction:
    """Return the share of a tree's budget for the counts of its leaves, as a multiple of 1/64 (see the module).

    Examples
    --------
    >>> share_of_counts(3, 33), share_of_counts(19, 132)
    (Fraction(15, 32), Fraction(21, 32))
    """
    of_counts, of_tests = math.sqrt(classes), math.sqrt(COST_OF_TESTS * math.log(max(tests, 2)))
    return Fraction(round(64 * of_counts / (of_counts + of_tests)), 64)
