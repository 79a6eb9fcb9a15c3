"""Formulas that several tests use: those of criteria, of the literature, and of the project."""

from __future__ import annotations

from fractions import Fraction

from dpframework.formulas import (
    LAST_INCREMENT,
    Cells,
    Parts,
    Shape,
    absolute,
    as_formula,
    at_least,
    cells,
    largest_over_classes,
    least,
    most,
    n,
    root,
    rows,
    rows_of_part,
    sum_over_classes,
    x_log2_x,
)

a, b, c, d = cells("a", "b", "c", "d")

GINI = Parts(sum_over_classes(n**2) / rows_of_part)
MAX = Parts(largest_over_classes(n))
NORM = Parts(root(sum_over_classes(n**3), 3))
GAIN = Parts(sum_over_classes(x_log2_x(n)) - x_log2_x(rows_of_part))
GINI_FALL = 1 - 2 / rows

JACCARD = Cells((a, b), a / (a + b))
F_MEASURE = Cells((a, b), 2 * a / (2 * a + b))
FLOORED = Cells((a, b, c), 2 * a / most(2 * a + b, 50))
SURPLUS = Cells((a, b), least(a - b, 5))
ERRORS = Cells((a, b), -(3 * a + b))
PIATETSKY_SHAPIRO = Cells((a, b), a - as_formula("0.3") * (a + b))
ASSOCIATION = Cells((a, b, c, d), absolute(a - (a + b) * (a + c) / (a + b + c + d)))
THRESHOLD = Cells((a, b), at_least(a, 3) * least(b, 2))
HALVES = Cells((a, b), a / (as_formula("1/2") * a + b))
CHI_SQUARED = Cells((a, b, c, d), (a * d - b * c) ** 2 * (a + b + c + d) / ((a + b) * (c + d) * (a + c) * (b + d)))
LIFT = Cells((a, b, c, d), a * (a + b + c + d) / ((a + b) * (a + c)))

#: Each score, with its rise, fall and change under replacement.
DERIVED: dict[str, tuple[Parts | Cells, tuple[object, object, object]]] = {
    "gini": (GINI, (1, GINI_FALL, 2 - 2 / rows)),
    "max": (MAX, (1, 0, 1)),
    "norm": (NORM, (1, 0, 1)),
    "information gain": (GAIN, (0, LAST_INCREMENT, LAST_INCREMENT)),
    "jaccard": (JACCARD, (1, Fraction(1, 2), 1)),
    "f-measure": (F_MEASURE, (1, Fraction(1, 3), 1)),
    "f-measure with a floor": (FLOORED, (Fraction(1, 25), Fraction(1, 51), Fraction(1, 25))),
    "surplus": (SURPLUS, (1, 1, 2)),
    "weighted errors": (ERRORS, (0, 3, 3)),
    "Piatetsky-Shapiro": (PIATETSKY_SHAPIRO, (Fraction(7, 10), Fraction(3, 10), 1)),
    "association": (ASSOCIATION, (1, 1, 1)),
    "a denominator of halves": (HALVES, (2, Fraction(4, 3), 2)),
    "threshold": (THRESHOLD, (2, 0, 2)),
}
SHAPES: dict[str, Shape] = {name: shape for name, (shape, _) in DERIVED.items()}
