"""The functions of an additive model, one for each attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, final

import attrs
import numpy as np

from dpframework.facts import Attribute, Numeric, attribute_from_dict
from dpframework.tables import NewRows
from dpframework_trees.additive.bands import expected_deviations, most_deviations
from dpframework_trees.additive.design import Reals
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge

DIGITS = 6


@final
@attrs.frozen(eq=False)
class Term:
    """One attribute's part of the score.

    Attributes
    ----------
    attribute
        The attribute.
    bins
        The cell of each code of the attribute. Codes in one cell add the same.
    values
        What each cell adds to each output, shape (cells, outputs). With two classes the output is the log-odds of the
        second. With more classes there is one score for each class. With a number as the target, the output is the
        log-odds of its position between its bounds or, in `shown_terms`, the number itself. In the terms of a fitted
        model, the mean over all cells but the cell of missing values is 0.
    deviations
        The approximate standard deviation of the noise in each cell's values, shape (cells,), if rows were spread
        evenly over cells and attributes were unrelated. If a cell has few rows, or attributes say the same, there is
        more noise.
    most_deviations
        The largest standard deviation of the noise in each cell's values for any rows, shape (cells,) (see `bands`).
    """

    attribute: Attribute
    bins: tuple[int, ...]
    values: Reals
    deviations: Reals
    most_deviations: Reals

    @property
    def importance(self) -> float:
        """The largest difference that the attribute can make to an output."""
        return float(np.ptp(self.values, axis=0).max())

    @property
    def labels(self) -> tuple[str, ...]:
        """Each cell in words: a value, a range, or all values that share the cell."""
        of_cells = []
        for cell in range(len(self.values)):
            codes = [code for code, own in enumerate(self.bins) if own == cell]
            labels = [self.attribute.labels[code] for code in codes]
            if len(labels) > 1 and isinstance(self.attribute, Numeric):
                edges = self.attribute.edges
                end = "]" if codes[-1] + 2 == len(edges) else ")"
                labels = [f"[{edges[codes[0]]:g}, {edges[codes[-1] + 1]:g}{end}"]
            of_cells.append(" or ".join(labels))
        return tuple(of_cells)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {
            "attribute": self.attribute.to_dict(),
            "bins": list(self.bins),
            "values": round_for_result(self.values),
            "deviations": round_for_result(self.deviations),
            "most_deviations": round_for_result(self.most_deviations),
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any], place: int) -> Self:
        """Read the form that `to_dict` writes. `place` is the function's position, for errors."""
        numbers = (np.array(form[name], dtype=np.float64) for name in ("values", "deviations", "most_deviations"))
        return cls(attribute_from_dict(form["attribute"], place), tuple(map(int, form["bins"])), *numbers)


def centred_terms(
    tuned: NoiseAndRidge, coefficients: Reals, stretch: Reals, given: Sequence[Attribute]
) -> tuple[Reals, tuple[Term, ...]]:
    """Return the intercept, shape (outputs,), and the functions of a released fit, each with the mean 0.

    Parameters
    ----------
    tuned
        The columns, the noise and the ridge of the fit.
    coefficients
        The released coefficients, or coefficients that follow from them, shape (columns, outputs).
    stretch
        The factor by which the scores of each output are multiplied, shape (outputs,). Bands are multiplied by the
        largest factor.
    given
        The attributes that predict the target.
    """
    design, values = tuned.design, stretch * (tuned.design.of_cells.T @ coefficients)
    expected, most = (stretch.max() * own for own in (expected_deviations(tuned), most_deviations(tuned, given)))
    intercept, terms = values[-1].copy(), []
    for j, attribute in enumerate(given):
        part = slice(design.first_cells[j], design.first_cells[j + 1])
        centre = values[part][: design.sizes[j] - attribute.missing].mean(axis=0)
        intercept += centre
        terms.append(Term(attribute, design.bins[j], values[part] - centre, expected[part], most[part]))
    return intercept, tuple(terms)


def parts_by_function(terms: Sequence[Term], given: NewRows) -> list[Reals]:
    """Return, for each function, what it adds to each row's outputs, shape (rows, outputs); 0 for an unknown cell."""
    found = [term.values[np.array(term.bins)[given.block.codes(term.attribute.name)]] for term in terms]
    for values, term in zip(found, terms, strict=True):
        if term.attribute.name in given.unknown:
            values[given.unknown[term.attribute.name]] = 0
    return found


def round_for_result(values: Reals) -> Any:
    """Return numbers as nested lists, rounded to the decimals that a result stores."""
    return np.round(values, DIGITS).tolist()
