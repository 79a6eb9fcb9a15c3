"""Formulas: how they print, what they are worth, their kernels, and what is derived from them."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scored_formulas import (
    ASSOCIATION,
    CHI_SQUARED,
    DERIVED,
    FLOORED,
    GAIN,
    GINI,
    HALVES,
    LIFT,
    MAX,
    NORM,
    SHAPES,
    a,
    b,
    c,
)

import dpframework as dpf
from dpframework.facts.errors import InputError
from dpframework.formulas import (
    Cells,
    Claim,
    Parts,
    as_formula,
    bound_at,
    cells,
    derive,
    kernel_source,
    mathml,
    most,
    n,
    public,
    root,
    rounding_of,
    rows,
    rows_of_part,
    scores_of,
    sum_over_classes,
)
from dpframework.formulas.count_formula import Formula, at_least, largest_over_classes, least, x_log2_x
from dpframework.formulas.largest_change_search import tables_of
from dpframework.formulas.mathml_writer import shape_mathml
from dpframework.formulas.score_structures import Adds, Shape
from dpframework.formulas.sensitivity_from_small_tables import fit_bound
from dpframework.queries import FormulaScores, Norm

HALF = Fraction(1, 2)
TEXTS = [
    (GINI.body, "sum(n^2) / N"),
    (NORM.body, "sum(n^3)^(1/3)"),
    (GAIN.body, "sum(n log2 n) - N log2 N"),
    (FLOORED.body, "2 a / max(2 a + b, 50)"),
    (-(a - b) * 3 / (a * b * a), "-3 (a - b) / (a^2 * b)"),
    (1 - (a - 2) / 3, "1 - (a - 2) / 3"),
    (a / (b / c), "a / (b / c)"),
    (a - (b - c), "a - (b - c)"),
    ((a + b) ** 2 * as_formula("1/2"), "(1/2) (a + b)^2"),
    (c / (a * a), "c / a^2"),
    (((1 - public("d", 0, 1)) * a).replaced({public("d", 0, 1): as_formula("1/4")}), "(1 - 1/4) * a"),
]  # fmt: skip


@pytest.mark.parametrize(("formula", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_a_formula_prints_as_a_person_writes_it(formula: Any, text: str) -> None:
    assert str(formula) == text
    ElementTree.fromstring(mathml(formula).replace("&#x", "&#x"))


def _read(element: ElementTree.Element) -> str:
    """Return MathML as a line of text."""
    parts = [_read(part) for part in element]
    match element.tag:
        case "math" | "mrow":
            return "".join(parts)
        case "mfrac":
            return "{{{} over {}}}".format(*parts)
        case "msup":
            return "{}^{}".format(*parts)
        case "msub" | "munder":
            return "{}_{}".format(*parts)
        case "mroot":
            return "root{1}({0})".format(*parts)
    text = element.text or ""
    return {"\u2062": "*", "\u2211": "sum", "\u2265": ">="}.get(text, text)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (2 * a, "2*a"),
        (a - b, "a+-1*b"),
        ((a + b) * c, "(a+b)*c"),
        (c * (a + b), "c*(a+b)"),
        (a / (a + b), "{a over a+b}"),
        ((a + b) ** 2, "(a+b)^2"),
        (a * a, "a^2"),
        ((2 * a) ** 2, "(2*a)^2"),
        ((a / b) ** 2, "({a over b})^2"),
        (sum_over_classes(n) ** 2, "(sum_classesn)^2"),
        (sum_over_classes(n**2), "sum_classesn^2"),
        (sum_over_classes(n + 1), "sum_classes(n+1)"),
        (sum_over_classes(n) * rows, "(sum_classesn)*R"),
        (rows * largest_over_classes(n), "R*(max_classesn)"),
        (largest_over_classes(n) + 1, "max_classesn+1"),
        (x_log2_x(a + b) - x_log2_x(a), "(a+b)log_2(a+b)+-1*alog_2a"),
        (x_log2_x(a) ** 2, "(alog_2a)^2"),
        (root(a + b, 3), "root3(a+b)"),
        (at_least(a, b + 1), "[a>=b+1]"),
        (most(2 * a, b), "max(2*a,b)"),
        (least(a, b), "min(a,b)"),
    ],
    ids=str,
)
def test_mathml_has_the_brackets_that_a_reader_needs(formula: Formula, text: str) -> None:
    assert _read(ElementTree.fromstring(mathml(formula))) == text


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (GINI, "sum_parts{sum_classesn^2 over N}"),
        (Parts(rows_of_part + 1), "sum_parts(N+1)"),
        (Cells((a, b), a / b), "{a over b}"),
        (Adds([a + 1, 2 * b]), "sum_rows(a+1,2*b)"),
    ],
    ids=str,
)
def test_mathml_of_a_score(shape: Shape, text: str) -> None:
    assert _read(ElementTree.fromstring(shape_mathml(shape))) == text


def test_a_formula_that_prints_alike_is_worth_alike() -> None:
    """What is printed, read as Python with a person's conventions, has the value of the formula."""
    tables = np.random.default_rng(1).integers(1, 9, (50, 3)).astype(float)
    for formula, text in TEXTS:
        if "n" in text or "N" in text:
            continue
        shown = (
            text.replace("^", "**").replace("-3 (", "-3 * (").replace("2 a", "2 * a").replace("(1/2) (", "(1/2) * (")
        )
        for table in tables:
            names = {"a": table[0], "b": table[1], "c": table[2], "max": max}
            assert eval(shown, names) == pytest.approx(float(Cells((a, b, c), formula).scores(table)))


def test_exact_values_are_fractions_and_divisions_by_0_are_0() -> None:
    assert GINI.scores([[1, 2], [0, 0]], exact=True) == Fraction(5, 3)
    assert FLOORED.scores([[30, 1, 9], [0, 0, 0]], exact=True).tolist() == [Fraction(60, 61), 0]
    assert Cells((a, b), a / b).scores([3, 0], exact=True) == 0
    with pytest.raises(InputError, match="no exact value"):
        NORM.scores([[1, 2]], exact=True)


@pytest.mark.parametrize("name", SHAPES)
def test_the_kernel_agrees_with_plain_evaluation(name: str) -> None:
    """On all small tables, and on random ones with large counts."""
    shape, random = DERIVED[name][0], np.random.default_rng(2)
    size = len(shape.cells) if isinstance(shape, Cells) else 3
    small, large = tables_of(6, size), random.integers(0, 10**5, (2000, size)) * (random.random((2000, size)) < 0.8)
    for tables in (small, large):
        counts = tables[:, None, :] if isinstance(shape, Parts) else tables
        if isinstance(shape, Parts):
            counts = np.concatenate([counts, counts[::-1]], axis=1)
        plain, scale = shape.scores(counts), np.maximum(1.0, counts.reshape(len(counts), -1).sum(axis=1))
        assert (abs(scores_of(shape, counts) - plain) <= 1e-13 * scale * np.log2(scale + 2)).all()


def test_a_kernel_has_no_branch_but_those_of_its_formula() -> None:
    assert "if" not in kernel_source(MAX).split("def score")[1]
    assert kernel_source(MAX) != kernel_source(GINI)


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "a denominator of halves"])
def test_rounding_covers_what_floating_point_loses(name: str) -> None:
    shape, random = DERIVED[name][0], np.random.default_rng(3)
    change = max(bound_at(found.claim.bound, 10**6) for found in derive(shape)[:2])
    size = len(shape.cells) if isinstance(shape, Cells) else 3
    declared = rounding_of(shape, change, 10**6, 3)
    assert declared < Fraction(1, 10**5)
    tables = random.integers(0, 10**6 // size, (40, size))
    computed = scores_of(shape, tables[:, None, :] if isinstance(shape, Parts) else tables)
    for table, found in zip(tables.tolist(), computed.tolist(), strict=True):
        assert abs(Fraction(found) - _true(name, shape, table)) <= declared


def _true(name: str, shape: Parts | Cells, table: list[int]) -> Fraction:
    import mpmath

    if name not in ("norm", "information gain"):
        return Fraction(shape.scores([table] if isinstance(shape, Parts) else table, exact=True)[()])
    with mpmath.workdps(60):
        if name == "norm":
            value = mpmath.cbrt(sum(mpmath.mpf(count) ** 3 for count in table))
        else:
            logs = [mpmath.mpf(x) * mpmath.log(x, 2) if x else mpmath.mpf(0) for x in (*table, sum(table))]
            value = sum(logs[:-1]) - logs[-1]
        return Fraction(int(value * 2**150), 2**150)


@pytest.mark.parametrize("name", SHAPES)
def test_sensitivities_are_derived_unaided(name: str) -> None:
    shape, bounds = DERIVED[name]
    assert [bound_at(found.claim.bound, 9) for found in derive(shape)] == [
        bound_at(as_formula(one), 9) for one in bounds
    ]
    assert [str(found.claim.bound) for found in derive(shape)] == [str(as_formula(one)) for one in bounds]


@pytest.mark.parametrize("shape", [CHI_SQUARED, LIFT, Parts(sum_over_classes(n**2))], ids=str)
def test_a_score_that_one_row_moves_without_bound_is_refused_with_its_tables(shape: Any) -> None:
    with pytest.raises(InputError, match=r"grows with the rows.*\] -> \["):
        derive(shape)


def test_the_rounding_of_a_small_denominator_is_to_be_declared() -> None:
    with pytest.raises(InputError, match="declare the rounding"):
        rounding_of(HALVES, Fraction(2), 100)


def test_sums_of_counts_are_exact_and_others_are_not() -> None:
    exact, rounded = (rounding_of(Cells((a, b, c), body), Fraction(1), 100) for body in (a + b + c, a / b + c / b))
    assert exact == 0 < rounded


def test_several_rows_of_a_score_of_parts_have_no_form() -> None:
    with pytest.raises(InputError, match="for a score of parts only the change by one row is derived; multiply it by "):
        derive(GINI, group=2)


def test_a_form_that_is_too_small_for_a_few_rows_does_not_fit() -> None:
    """1 - 1 / R is what nine rows show, but not what one row shows."""
    values = [1 - Fraction(1, size) for size in range(1, 10)]
    assert str(fit_bound(values)) == "1 - 1 / R"
    assert fit_bound([HALF, *values[1:]]) is None


def test_what_is_derived_is_the_same_on_larger_tables() -> None:
    """Random neighbours of up to 3,000 rows move by no more than what small tables showed."""
    random = np.random.default_rng(4)
    for name, (shape, bounds) in DERIVED.items():
        if not isinstance(shape, Cells):
            continue
        cells_of = len(shape.cells)
        tables = np.floor(np.exp(random.uniform(0, 6.5, (4000, cells_of)))).astype(int) * (
            random.random((4000, cells_of)) < 0.8
        )
        steps = np.vstack([np.zeros(cells_of, dtype=int), np.eye(cells_of, dtype=int)])
        after, before = np.stack([shape.scores(tables + step) for step in steps]), shape.scores(tables)
        found = (after.max(axis=0) - before).max(), (before - after.min(axis=0)).max(), np.ptp(after, axis=0).max()
        for change, bound in zip(found, bounds, strict=True):
            assert change <= float(bound_at(as_formula(bound), None)) + 1e-9, name


REFUSED = {
    "a class's count outside": (lambda: Parts(n / rows_of_part), "outside"),
    "a cell among parts": (lambda: Parts(a + rows_of_part), "cannot be used in a formula of parts"),
    "another cell": (lambda: Cells((a,), a + b), "not among its cells"),
    "two cells of one name": (lambda: cells("x", "x"), "the same name"),
    "a name of two words": (lambda: cells("two words"), "cannot name a cell"),
    "nested sums": (lambda: sum_over_classes(sum_over_classes(n)), "do not nest them"),
    "no number": (lambda: a + "many", "a formula or a number"),
    "a power of 0": (lambda: a**0, "power"),
    "a first root": (lambda: root(a, 1), "degree"),
    "nothing to choose from": (most, "needs a formula"),
    "infinity": (lambda: a + math.inf, "a formula or a number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_formulas_without_meaning_are_refused(name: str) -> None:
    make, says = REFUSED[name]
    with pytest.raises(InputError, match=says):
        make()


def test_formulas_are_values() -> None:
    assert Parts(sum_over_classes(n * n) / rows_of_part) == GINI
    assert GINI.digest == Parts(sum_over_classes(n * n) / rows_of_part).digest
    digests = {shape.digest for shape in [*SHAPES.values(), Cells((b, a), a / (a + b))]}
    assert len(digests) == len(SHAPES) + 1


class Overlap(FormulaScores):
    """The F-measure with a floor, of candidates that are pairs of descriptions."""

    name = "f-measure"
    formula = FLOORED

    def candidates(self, **inputs: Any) -> Any:
        return inputs["candidates"]

    def count(self, block: dpf.Block, *, candidates: Any) -> Any:
        sides = [(left.holds(block), right.holds(block)) for left, right in candidates]
        return np.array([[(one & two).sum(), (one ^ two).sum(), (~one & ~two).sum()] for one, two in sides])


class Purity(Overlap):
    name, formula = "purity", GINI
    row_bound = 100  # type: ignore[assignment]


def test_a_query_follows_from_its_formula() -> None:
    schema = dpf.Schema([dpf.Boolean("x"), dpf.Boolean("y")])
    table = dpf.table_from_columns({"x": [True, True, False], "y": [True, False, False]}, schema)
    query = Overlap()
    asked = [(dpf.Equals("x", "true"), dpf.Equals("y", "true"))]
    engine = dpf.InMemory()
    assert query.evaluate(engine, engine.load(table), candidates=asked).tolist() == [2 / 50]
    (declared,) = query.sensitivities
    assert (declared.norm, declared.rise, declared.fall, declared.replace_one) == (
        Norm.LINF, Fraction(1, 25), Fraction(1, 51), Fraction(1, 25)
    )  # fmt: skip
    assert query.text == "f-measure: 2 a / max(2 a + b, 50)"
    assert 0 < query.rounding < Fraction(1, 10**6)


def test_the_rounding_of_parts_holds_for_as_many_as_are_counted() -> None:
    few, many = Purity(), Purity()
    rows, shape = np.full(64, 100 / 64), (1, 64, 1)
    assert many.rounding == rounding_of(GINI, Fraction(1), 100, 64, 64) > rounding_of(GINI, Fraction(1), 100)
    assert few.answer(rows.reshape(shape)).shape == (1,)
    with pytest.raises(InputError, match="65 parts of 1 classes"):
        few.answer(np.ones((1, 65, 1)))
    with pytest.raises(InputError, match="1 parts of 65 classes"):
        few.answer(np.ones((1, 1, 65)))


def test_several_rows_of_parts_are_counted_one_by_one_in_tables_that_grow() -> None:
    (one,), (three,) = Purity().sensitivities, Purity().for_rows(3)
    assert (one.rise, one.fall, one.replace_one) == (1, Fraction(98, 100), Fraction(198, 100))
    assert three.fall == sum(1 - Fraction(2, 100 - k) for k in range(3))
    assert three.fall < 3 * one.fall
    assert three.rise == 3
    assert Overlap().for_rows(1) == ()


def test_bounds_are_read_for_a_table() -> None:
    assert bound_at(1 - 2 / rows, 8) == Fraction(3, 4)
    assert bound_at(1 - 2 / rows, 1) == 0
    assert bound_at(1 - 2 / rows, None) == 1
    assert Claim("fall", 1 - 2 / rows).text == "fall <= 1 - 2 / R"
    with pytest.raises(InputError, match="grows with the rows"):
        bound_at(derive(GAIN)[1].claim.bound, None)
    assert bound_at(derive(GAIN)[1].claim.bound, 2) == pytest.approx(2)
    assert ASSOCIATION.text.startswith("max(")
