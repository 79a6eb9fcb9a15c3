"""A tree's part of an additive score, for interactions, which a sum of functions of single attributes misses.

A small tree is released first, for a share of the budget. The log-odds of a leaf, by its noisy counts and cut off at
`LOG_ODDS`, are rounded to m / `GRAIN` times `LOG_ODDS`, where m is a whole number. Half of the log-odds is an offset of
the score, which is not fitted. m / `GRAIN` is also the value of a column, whose coefficient w is fitted jointly with
all functions. So a leaf adds

    m (w / GRAIN + OFFSET LOG_ODDS / GRAIN).

A main effect that the tree has found is not counted twice, since functions and w are fitted around the offset. (The
counts of the leaves cannot separate main effects of the tree's tests from interactions. Three levels have one test
fewer than leaves, so the main effects explain the leaves almost exactly.)

With interactions = "auto", epsilon and the number of rows, which is public or released, decide whether a tree is worth
its share of the budget (see `WORTH`).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, Categorical
from dpframework.tables import NewRows
from dpframework_trees.additive.design import GRAIN, LOG_ODDS, OFFSET, Reals
from dpframework_trees.tree import DecisionTree

SHARE = Fraction(7, 100)  # the tree's share of epsilon
DEPTH = 3  # the number of levels of tests in the tree
WORTH = 2_500  # the least rows times epsilon for which a tree is worth its share of epsilon, with two classes
NAME = "the tree's part"
DIGITS = 6  # the decimals with which numbers are stored


def values_of(probabilities: Reals) -> NDArray[np.int64]:
    """Return log-odds of the second of two classes in steps of `LOG_ODDS` / `GRAIN`, given probabilities.

    Probabilities have the shape (rows, 2), and log-odds the shape (rows,).

    Examples
    --------
    >>> values_of(np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]))
    array([  0, -16,   4])
    """
    p = np.round(np.clip(probabilities[:, 1], 1e-6, 1 - 1e-6), DIGITS)
    return np.asarray(np.rint(np.clip(np.log(p / (1 - p)) / LOG_ODDS, -1, 1) * GRAIN), dtype=np.int64)


@final
@attrs.frozen(eq=False)
class TreePart:
    """A tree, and the weight with which its log-odds are part of a model's score.

    Attributes
    ----------
    tree
        The tree, made of releases.
    weight
        The fitted coefficient, stretched like all coefficients.
    deviation, most_deviation
        The standard deviation of the noise in what the leaf of the largest absolute log-odds adds, for evenly spread
        rows and at most (see `Term`).
    """

    tree: DecisionTree
    weight: float
    deviation: float
    most_deviation: float

    @property
    def per_step(self) -> float:
        """How much one step of log-odds adds to the score."""
        return (self.weight + OFFSET * LOG_ODDS) / GRAIN

    def added(self, rows: NewRows) -> Reals:
        """Return the tree's part of each row's score, shape (rows,).

        A row with an unknown cell ends at the node that tests this cell.
        """
        return np.asarray(values_of(self.tree.predict_proba(rows))[rows.block.index] * self.per_step)

    @property
    def of_leaves(self) -> NDArray[np.int64]:
        """The log-odds of each leaf in steps, in tree order, shape (leaves,)."""
        return values_of(self.tree.leaf_probabilities)

    @property
    def attribute(self) -> Attribute:
        """An attribute whose values are the leaves, each described by its rule."""
        whole = attrs.evolve(self.tree, root=self.tree.predicting, whole=None)
        return Categorical(NAME, [str(rule.description) or "all rows" for rule in whole.rules()])

    def importances(self) -> dict[str, float]:
        """Return the largest difference that the tree makes to a score, divided among the attributes that it tests."""
        known = self.tree.importances()
        total, largest = sum(known.values()), float(np.ptp(self.of_leaves)) * abs(self.per_step)
        return {name: own / total * largest for name, own in known.items()} if total else {}

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        numbers = {name: round(getattr(self, name), DIGITS) for name in ("weight", "deviation", "most_deviation")}
        return {"tree": self.tree.to_dict(), **numbers}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Read the form that `to_dict` writes."""
        numbers = (float(form[name]) for name in ("weight", "deviation", "most_deviation"))
        return cls(DecisionTree.read(form["tree"]), *numbers)
