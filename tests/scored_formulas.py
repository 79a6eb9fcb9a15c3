"""Formulas that several tests use: those of criteria, of the literature, and of the project."""

from __future__ import annotations

from fractions import Fraction

from dpframework.formulas import (
    LAST_INCREMENT,
    Adds,
    Cells,
    Claim,
    Outer,
    Parts,
    Shape,
    Total,
    absolute,
    as_formula,
    at_least,
    cells,
    largest_over_classes,
    least,
    most,
    n,
    public,
    root,
    rows,
    rows_of_part,
    sum_over_classes,
    table_rows,
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

MATCH = Cells((a, b, c), as_formula("0.4") * least(a, b, 30) - as_formula("0.6") * c)
KNOWN_SET = Cells((a, b, c), (a + b + c) * as_formula("0.7") - a)  # without its weight
QUANTILE = Cells((a, b, c), -most(a - as_formula("0.3") * (a + b + c), as_formula("0.3") * (a + b + c) - a - b, 0))
DEPENDENCE = Cells((a, b), absolute(a - 7) + absolute(b - 3))
KOLMOGOROV_SMIRNOV = Cells((a, b, c, d), absolute(a / (a + b) - c / (c + d)))
JACCARD_FLOOR = Cells((a, b), a / most(a + b, 50))

_first, _second, _sizes = cells("first", "second", "sizes")
TWOING = Outer(
    (Total(_first, 1, 1, 1), Total(_second, 1, 1, 1)), (_first - _second) / 2
)  # the children's, the parent's
PAIR_GAIN = Outer(tuple(Total(one, 1, 0, 1) for one in (_first, _second, _sizes)), (_first + _second - _sizes) / 2)
PAIR_PRODUCT = Outer((Total(_first, 1, 1, 1), Total(_second, 1, 1, 1)), _first * (1 + _second / table_rows) / 2)
_x, _y, _value = public("x", 0, 1), public("y", 0, 1), public("value", -3, 10)
COUNTS = Adds((_x, _y), shares=True)
VALUE = Adds((_value,))
HALF = Fraction(1, 2)

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
    "Jaccard with a floor": (JACCARD_FLOOR, (Fraction(1, 50), Fraction(1, 51), Fraction(1, 50))),
}
SHAPES: dict[str, Shape] = {name: shape for name, (shape, _) in DERIVED.items()}

#: A score, and a claim that is wrong.
WRONG: list[tuple[Shape, Claim]] = [
    (GINI, Claim("rise", HALF)),
    (GINI, Claim("fall", 1 - 3 / rows)),
    (GINI, Claim("replaced", 1)),
    (GINI, Claim("replaced", 2 - 3 / rows)),
    (MAX, Claim("rise", HALF)),
    (MAX, Claim("replaced", HALF)),
    (NORM, Claim("rise", "0.9")),
    (GAIN, Claim("fall", as_formula(HALF) * rows)),
    (GAIN, Claim("fall", 2)),
    (JACCARD, Claim("rise", HALF)),
    (JACCARD, Claim("fall", Fraction(1, 3))),
    (JACCARD, Claim("fall", HALF, group=2)),
    (F_MEASURE, Claim("fall", Fraction(1, 4))),
    (FLOORED, Claim("rise", Fraction(1, 26))),
    (FLOORED, Claim("fall", Fraction(1, 52))),
    (FLOORED, Claim("replaced", Fraction(1, 50))),
    (SURPLUS, Claim("replaced", 1)),
    (ERRORS, Claim("rise", -1)),
    (ERRORS, Claim("fall", 1)),
    (PIATETSKY_SHAPIRO, Claim("rise", "0.3")),
    (ASSOCIATION, Claim("fall", "0.7")),
    (THRESHOLD, Claim("rise", 1)),
    (Cells((a,), least(public("w", 0, 3) * a, 10)), Claim("rise", 2)),
    (MATCH, Claim("fall", "0.4")),
    (KNOWN_SET, Claim("rise", "0.5")),
    (QUANTILE, Claim("rise", "0.5")),
    (QUANTILE, Claim("replaced", "0.7")),
    (DEPENDENCE, Claim("replaced", 1)),
    (KOLMOGOROV_SMIRNOV, Claim("rise", "0.9")),
    (JACCARD_FLOOR, Claim("fall", Fraction(1, 52))),
    (TWOING, Claim("rise", HALF)),
    (TWOING, Claim("replaced", 1)),
    (PAIR_GAIN, Claim("fall", Fraction(1, 3))),
    (PAIR_GAIN, Claim("replaced", 1)),
    (PAIR_PRODUCT, Claim("fall", 1)),
    (COUNTS, Claim("l1", 1, replaced=True)),
    (COUNTS, Claim("squared-l2", 1, replaced=True)),
    (COUNTS, Claim("linf", HALF)),
    (VALUE, Claim("l1", 9)),
    (VALUE, Claim("squared-l2", 99)),
    (VALUE, Claim("linf", 12, replaced=True)),
]
