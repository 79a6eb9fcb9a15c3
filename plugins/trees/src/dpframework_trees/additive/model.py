"""An additive classifier made of releases, with the function of each attribute and the function's bands of noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, attribute_from_dict
from dpframework.tables import Block, NewRows
from dpframework_trees.additive.additive_base import AdditiveSum
from dpframework_trees.additive.bands import expected_deviations, most_deviations
from dpframework_trees.additive.design import Reals, probabilities
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge
from dpframework_trees.additive.shrinkage import shrink
from dpframework_trees.additive.stretch import centre, stretch_of
from dpframework_trees.additive.terms import Term, centred_terms, parts_by_function, round_for_result
from dpframework_trees.additive.tree_part import NAME, TreePart
from dpframework_trees.tree import DecisionTree


@final
@attrs.frozen(eq=False, repr=False)
class AdditiveModel(AdditiveSum):
    """A classifier whose score is the sum of one function of each attribute, an intercept, and perhaps a tree's part.

    It is made of releases, so predicting with it, drawing it and keeping it costs no privacy.

    Attributes
    ----------
    target
        The class attribute; its labels are the classes, in order.
    intercept
        The part of the score that is the same for all rows, shape (outputs,). With two classes, the output is the
        log-odds of the second. With more classes, there is one score for each class.
    terms
        The functions, in the schema's order.
    tree_part
        A tree's part of the score, which captures what attributes say only in combination. None without interactions.
    """

    name_in_errors: ClassVar[str] = "an additive model"

    target: Attribute
    intercept: Reals
    terms: tuple[Term, ...]
    tree_part: TreePart | None = None

    @classmethod
    def of_fit(
        cls,
        tuned: NoiseAndRidge,
        coefficients: Reals,
        target: Attribute,
        given: list[Attribute],
        tree: DecisionTree | None = None,
    ) -> AdditiveModel:
        """Make a model with centred functions from released coefficients (see `shrinkage` and `stretch`)."""
        design, own = tuned.design, centre(coefficients)
        stretch = stretch_of(tuned, own)
        intercept, terms = centred_terms(tuned, shrink(tuned, own), stretch, given)
        of_tree = None
        if tree is not None:
            leaves = slice(design.first_cells[len(given)], -1)
            factor = float(stretch[0])
            weight = factor * float(coefficients[design.starts[len(given)], 0])
            expected, most = (
                float(factor * of_cells[leaves].max())
                for of_cells in (expected_deviations(tuned), most_deviations(tuned, given))
            )
            of_tree = TreePart(tree, weight, expected, most)
        return cls(target, intercept, terms, of_tree)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts in `contributions`: attributes, then "the tree's part" if the model has a tree."""
        return (*(term.attribute.name for term in self.terms), *(() if self.tree_part is None else (NAME,)))

    def _contributions(self, given: NewRows) -> Reals:
        found = parts_by_function(self.terms, given)
        if self.tree_part is not None:
            found.append(self.tree_part.added(given)[:, None])
        return np.stack(found, axis=1)

    def scores(self, rows: Any, *, out_of_domain: str = "error") -> Reals:
        """Return each row's score, shape (rows, outputs), the intercept plus the sum of `contributions`."""
        return np.asarray(self.intercept + self.contributions(rows, out_of_domain=out_of_domain).sum(axis=1))

    def predict_proba(self, rows: Any, *, out_of_domain: str = "error") -> Reals:
        """Return class probabilities, shape (rows, classes), in the order of the target's labels."""
        return probabilities(self.scores(rows, out_of_domain=out_of_domain))

    def predict(self, rows: Any, *, out_of_domain: str = "error") -> NDArray[np.str_]:
        """Return the most probable class of each row, as text."""
        labels = np.array(self.target.cells)
        return np.asarray(labels[self.predict_proba(rows, out_of_domain=out_of_domain).argmax(axis=1)])

    def codes(self, block: Block) -> NDArray[np.int64]:
        """Return the code of the most probable class of each row of a block, shape (rows,)."""
        scores = self.intercept + self._contributions(NewRows(block, {})).sum(axis=1)
        return np.asarray(probabilities(scores).argmax(axis=1))

    def importances(self) -> dict[str, float]:
        """Return the largest difference that each attribute can make to an output, including its share in the tree."""
        of_tree = {} if self.tree_part is None else self.tree_part.importances()
        return {t.attribute.name: t.importance + of_tree.get(t.attribute.name, 0.0) for t in self.terms}

    @property
    def shown_terms(self) -> tuple[Term, ...]:
        """The functions and, if there is a tree, its function of the leaves ("the tree's part")."""
        if self.tree_part is None:
            return self.terms
        steps, tree = self.tree_part.of_leaves, self.tree_part
        sizes = np.abs(steps) / max(np.abs(steps).max(), 1)
        values = np.asarray(steps[:, None] * tree.per_step, dtype=np.float64)
        bands = (sizes * tree.deviation, sizes * tree.most_deviation)
        return (*self.terms, Term(tree.attribute, tuple(range(len(steps))), values, *bands))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The class that each output scores: the second of two classes, or each class."""
        return self.target.labels[1:] if len(self.intercept) == 1 else self.target.labels

    @property
    def added_to(self) -> str:
        """The log-odds of the second of two classes, or of each class, in words."""
        what = f"{self.target.name} = {self.outputs[0]}" if len(self.outputs) == 1 else self.target.name
        return f"the log-odds of {what}"

    def __str__(self) -> str:
        """Write each function with one line for each cell, the most important attributes first."""
        intercept = ", ".join(f"{value:+.2f}" for value in self.intercept)
        head = f"score of {self.target.name} ({', '.join(self.outputs)}): {intercept}"
        return "\n".join([head, *self._term_lines(".2f")])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        terms = [term.to_dict() for term in self.terms]
        kept = {"target": self.target.to_dict(), "intercept": round_for_result(self.intercept), "terms": terms}
        return kept if self.tree_part is None else {**kept, "tree": self.tree_part.to_dict()}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> AdditiveModel:
        """Build a model from a form that `to_dict` returned."""
        terms = tuple(Term.from_dict(of_one, k) for k, of_one in enumerate(form["terms"]))
        tree = TreePart.from_dict(form["tree"]) if "tree" in form else None
        return cls(attribute_from_dict(form["target"], 0), np.array(form["intercept"], dtype=np.float64), terms, tree)
