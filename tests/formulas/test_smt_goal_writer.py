"""The text of goals: the words of which they are written, and some of them in full."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from scored_formulas import (
    COUNTS,
    GAIN,
    HALF,
    JACCARD,
    MAX,
    TWOING,
    a,
    b,
    c,
)

from dpframework.formulas import (
    LAST_INCREMENT,
    Adds,
    Cells,
    Change,
    Claim,
    Outer,
    Parts,
    Total,
    as_formula,
    at_least,
    cells,
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
from dpframework.formulas.smt_goal_writer import (
    Goal,
    UnprovableError,
    assume_sign,
    divisions,
    is_whole,
    number_text,
    product,
    total,
    without_claim,
)
from dpframework.formulas.smt_goals_for_cell_scores import cell_goals, simpler_claims
from dpframework.formulas.smt_goals_for_part_scores import part_goals, provable_facts, replacement_goal
from dpframework.formulas.smt_goals_for_totals import outer_goals
from dpframework.formulas.smt_goals_for_vectors import norm_goals

F = Fraction
CHANGES = (Change.RISE, Change.FALL, Change.REPLACED)


def test_numbers_products_and_sums_are_written_as_smt() -> None:
    numbers = {F(0): "0.0", F(3): "3.0", F(-3): "(- 3.0)", F(2, 3): "(/ 2.0 3.0)", F(-1, 2): "(- (/ 1.0 2.0))"}
    assert {value: number_text(value) for value in numbers} == numbers
    assert (product("1.0", "x"), product("x", "1.0"), product("x", "y")) == ("x", "x", "(* x y)")
    assert (total(["x"]), total(["x", "y", "z"])) == ("x", "(+ x y z)")


def test_counts_are_whole_or_have_a_gap_below_1() -> None:
    whole, real = Goal(True), Goal(False)
    assert (whole.count("x"), real.count("x"), real.count("y", gap=False)) == ("x", "x", "y")
    assert whole.constants == {"x": "Int"}
    assert real.constants == {"x": "Real", "y": "Real"}
    assert [*whole.assumptions] == ["(>= x 0)"]
    assert [*real.assumptions] == ["(>= x 0.0)", "(or (= x 0.0) (>= x 1.0))", "(>= y 0.0)"]
    assert (whole.whole_number(2), real.whole_number(2)) == ("2", "2.0")
    assert (whole.plus("x", 0), whole.plus("x", 1), real.plus("x", 2)) == ("x", "(+ x 1)", "(+ x 2.0)")
    assert (whole.as_real("x"), real.as_real("x")) == ("(to_real x)", "x")
    assert (whole.real("s"), whole.constants["s"]) == ("s", "Real")
    assert (whole.log("x"), [*whole.logs]) == ("(f x)", ["x"])


TERMS = {a: ("p", "1.0"), b: ("q", "r"), c: ("s", "r")}
RATIOS: list[tuple[Any, tuple[str, str], list[str]]] = [
    (as_formula("2/3"), ("(/ 2.0 3.0)", "1.0"), []),
    (as_formula(0), ("0.0", "1.0"), []),
    (a + a, ("(+ p p)", "1.0"), []),
    (b + c, ("(+ q s)", "r"), []),
    (a + b, ("(+ (* p r) q)", "r"), []),
    (b + a, ("(+ q (* p r))", "r"), []),
    (a * b, ("(* p q)", "r"), []),
    (b * c, ("(* q s)", "(* r r)"), []),
    (a / b, ("(* p r)", "q"), ["(> q 0.0)"]),
    (b / a, ("q", "(* r p)"), ["(> p 0.0)"]),
    (least(b, c), ("(ite (<= q s) q s)", "r"), []),
    (most(b, c), ("(ite (>= q s) q s)", "r"), []),
    (most(a, b), ("(ite (>= (* p r) q) (* p r) q)", "r"), []),
    (least(b, a), ("(ite (<= q (* p r)) q (* p r))", "r"), []),
    (at_least(b, c), ("(ite (>= q s) 1.0 0.0)", "1.0"), []),
    (at_least(a, b), ("(ite (>= (* p r) q) 1.0 0.0)", "1.0"), []),
    (root(b, 3), ("root0", "1.0"), ["(>= root0 0.0)", "(or (< q 0.0) (= (* (* root0 root0 root0) r) q))"]),
    (root(a), ("root0", "1.0"), ["(>= root0 0.0)", "(or (< p 0.0) (= (* root0 root0) p))"]),
    (public("w", "1/2", 3), ("w", "1.0"), ["(<= (/ 1.0 2.0) w 3.0)"]),
]


@pytest.mark.parametrize(("formula", "ratio", "assumed"), RATIOS, ids=lambda one: str(one)[:30])
def test_a_formula_is_written_as_one_quotient(formula: Any, ratio: tuple[str, str], assumed: list[str]) -> None:
    goal = Goal(False)
    assert goal.ratio(formula, TERMS) == ratio
    assert [*goal.assumptions] == assumed


def test_what_stands_for_a_formula_is_written_and_what_is_0_is_0() -> None:
    goal = Goal(False)
    assert goal.ratio(a / b, TERMS, [a / b]) == ("0.0", "1.0")
    assert goal.ratio(a / b, {a / b: ("x", "y")}, [a / b]) == ("x", "y")
    assert goal.ratio(a + a / b, TERMS, [a / b]) == ("(+ p 0.0)", "1.0")
    assert not goal.assumptions
    goal.real("one")
    assert goal.ratio(root(a), TERMS) == ("root1", "1.0")
    with pytest.raises(UnprovableError, match="no rule covers 'a log2 a'"):
        goal.ratio(x_log2_x(a), {a: ("p", "1.0")})


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_goal_about_a_replacement_is_about_whole_rows_if_any_bound_has_a_logarithm(place: int) -> None:
    """What goals assume of x log2 x is known of whole numbers only."""
    bounds = [as_formula(1)] * 3
    assert "(declare-const rows Real)" in replacement_goal(*bounds)
    bounds[place] = x_log2_x(rows)
    assert "(declare-const rows Int)" in replacement_goal(*bounds)


def test_a_goal_is_a_text_with_its_claim_last() -> None:
    goal = Goal(False)
    goal.count("x", gap=False)
    goal.deny(("x", "2.0"), ("0.0", "2.0"), ("3.0", "4.0"))
    defined = "".join(
        f"(define-fun {name} () Real {body})\n"
        for name, body in zip(
            ("high.num", "high.den", "low.num", "low.den", "bound.num", "bound.den"),
            ("x", "2.0", "0.0", "2.0", "3.0", "4.0"),
            strict=True,
        )
    )
    head = f"(set-logic QF_NRA)\n(declare-const x Real)\n{defined}(assert (>= x 0.0))\n"
    shared = "(assert (> (* bound.den (- high.num low.num)) (* bound.num high.den)))\n"
    assert goal.text() == f"{head}; the claim, denied\n{shared}(check-sat)\n"
    assert without_claim(goal.text()) == f"{head}(check-sat)\n"
    goal.deny(("x", "2.0"), ("0.0", "5.0"), ("3.0", "4.0"))
    assert "(- (* high.num low.den) (* low.num high.den))) (* bound.num (* high.den low.den))" in goal.text()
    logs = Goal(True)
    logs.log(logs.count("x"))
    logs.increments = dict.fromkeys("xy")
    logs.claim = "false"
    assert logs.text().splitlines() == [
        "(set-logic ALL)",
        "(declare-const x Int)",
        "(declare-fun f (Int) Real)",
        "(assert (= (f 0) 0.0))",
        "(assert (= (f 1) 0.0))",
        "(assert (=> (and (<= 0 x) (<= x y)) (<= (- (f (+ x 1)) (f x)) (- (f (+ y 1)) (f y)))))",
        "(assert (=> (and (<= 0 y) (<= y x)) (<= (- (f (+ y 1)) (f y)) (- (f (+ x 1)) (f x)))))",
        "(assert (=> (<= 0 x) (<= 0.0 (- (f (+ x 1)) (f x)))))",
        "(assert (=> (<= 0 y) (<= 0.0 (- (f (+ y 1)) (f y)))))",
        "(assert (>= x 0))",
        "; the claim, denied",
        "(assert false)",
        "(check-sat)",
    ]


def test_denominators_are_0_or_positive_and_1_where_they_are_whole() -> None:
    for denominator, whole in (
        (a + 2 * b, True),
        (least(a, b) - 3, True),
        (a + HALF, False),
        (x_log2_x(a), False),
        (root(a), False),
        (public("w", 0, 1) * a, False),
        (at_least(a, b), True),
    ):
        assert is_whole(denominator) is whole
        zero, positive = Goal(False), Goal(False)
        assume_sign(zero, 1 / denominator, ("t", "u"), True)
        assume_sign(positive, 1 / denominator, ("t", "u"), False)
        assert [*zero.assumptions] == ["(= t 0.0)"]
        assert [*positive.assumptions] == ["(>= t 1.0)" if whole else "(> t 0.0)"]
    assert not is_whole(a / b)
    assert is_whole(as_formula(7))
    assert divisions(a / b + a / 2 + 1 / (a + b)) == [a / b, 1 / (a + b)]
    with pytest.raises(UnprovableError, match="a denominator has a quotient in it"):
        divisions(1 / (1 / a))
    assert divisions(1 / (a / 2 + b)) == [1 / (a / 2 + b)]


FALL = """\
(set-logic QF_NRA)
(declare-const a Real)
(declare-const b Real)
(define-fun high.num () Real a)
(define-fun high.den () Real (+ a b))
(define-fun low.num () Real a)
(define-fun low.den () Real (+ a (+ b 1.0)))
(define-fun bound.num () Real (/ 1.0 2.0))
(define-fun bound.den () Real 1.0)
(assert (>= a 0.0))
(assert (>= b 0.0))
(assert (>= (+ a b) 1.0))
(assert (> (+ a b) 0.0))
(assert (>= (+ a (+ b 1.0)) 1.0))
(assert (> (+ a (+ b 1.0)) 0.0))
; the claim, denied
(assert (> (* bound.den (- (* high.num low.den) (* low.num high.den))) (* bound.num (* high.den low.den))))
(check-sat)
"""


def test_a_row_goes_to_each_cell_or_to_none() -> None:
    """Four ways that denominators are 0 for each place, and whether one is negative."""
    goals = cell_goals(JACCARD, Claim("fall", HALF), False)
    assert len(goals) == 4 * 2 + 1
    assert goals[4] == FALL
    assert goals[-1].splitlines()[-2] == "(assert (< (+ a b) 0.0))"
    assert len(cell_goals(JACCARD, Claim("replaced", 1), False)) == 4 * 6 + 1
    assert len(cell_goals(JACCARD, Claim("fall", 1, group=2), False)) == 4 + 1


def test_an_extreme_is_of_its_parts_and_what_falls_rises_in_the_negative() -> None:
    within = ((public("l", 0, 1), public("h", 0, 1)),)
    claim = Claim("rise", 1, group=3)
    assert simpler_claims(Cells((a, b), least(a, b), within), claim) == [
        (Cells((a, b), a, within), claim),
        (Cells((a, b), b, within), claim),
    ]
    assert len(simpler_claims(Cells((a, b), most(a, b)), claim)) == 2
    turned = {"rise": "fall", "fall": "rise", "replaced": "replaced"}
    for change, other in turned.items():
        assert simpler_claims(Cells((a,), -a, within), Claim(change, 1, group=3)) == [
            (Cells((a,), a, within), Claim(other, 1, group=3))
        ]
    for body in (a + b, -2 * a, a * b, a / b):
        assert simpler_claims(Cells((a, b), body), claim) == []


LOW = public("low", 0, 1)


def test_facts_are_tried_on_all_sums_but_those_of_logarithms() -> None:
    assert provable_facts(sum_over_classes(n**2)) == ("(>= {s} 0.0)", "(>= {s} {rest})", "(<= {s} {phi})")
    assert provable_facts(sum_over_classes(x_log2_x(n))) == ()


gain, none = cells("gain", "none")
RISE = Claim("rise", 1)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: part_goals(Parts(sum_over_classes(n * rows_of_part)), RISE, {}, False), "read the part's rows"),
        (lambda: part_goals(Parts(sum_over_classes(1 / n)), RISE, {}, False), "the terms of a sum hold a quotient"),
        (lambda: part_goals(Parts(sum_over_classes(x_log2_x(n + 1))), RISE, {}, False), "something other than a count"),
        (lambda: part_goals(MAX, Claim("rise", 1 / (2 * rows)), {}, False), "divides by something other"),
        (lambda: part_goals(MAX, Claim("rise", 1 / (rows - 1)), {}, False), "divides by something other"),
        (
            lambda: part_goals(MAX, Claim("rise", 1 / (rows + rows)), {}, False),
            "divides by something other than the rows",
        ),
        (lambda: part_goals(MAX, Claim("rise", x_log2_x(rows + 1)), {}, False), "no rule covers the bound"),
        (lambda: list(outer_goals(TWOING, Claim("rise", 1, group=2))), "several rows for a formula of totals"),
        (lambda: list(outer_goals(Outer((Total(gain, 1, 0, 1),), gain * gain), RISE)), "not of degree 1"),
        (lambda: list(outer_goals(Outer((Total(gain, 1, 0, 1),), gain / gain), RISE)), "not of degree 1"),
        (lambda: list(outer_goals(Outer((Total(gain, 1, 0),), gain * 1), RISE)), "not of degree 1"),
        (lambda: list(outer_goals(Outer((Total(gain, 1, 0, 1),), most(gain, 1)), RISE)), "not of degree 1"),
        (lambda: list(norm_goals(COUNTS, Claim("l1", 1, group=2))), "several rows of a vector"),
        (lambda: list(norm_goals(Adds((1 / LOW,)), Claim("l1", 1))), "the entry '1 / low' holds a quotient"),
    ],
)
def test_what_no_rule_covers_is_refused_in_a_sentence(make: Any, says: str) -> None:
    with pytest.raises(UnprovableError, match=says):
        make()


def test_totals_that_are_only_added_are_at_one_end_of_their_ranges() -> None:
    """Where they are does not matter; each total that stands elsewhere, too, doubles the goals."""
    one, two = Total(gain, 1, 0, 1), Total(none, 1, 0, 1)
    for totals, body, ends in (
        ((one,), gain / 2, 1),
        ((one,), 3 - 2 * gain, 1),
        ((one,), gain / table_rows, 2),
        ((one, two), gain - none / 3, 1),
        ((one, two), gain * none, 4),
        ((one, two), gain * none + gain, 4),
        ((one, two), 3 * none - gain * none / 2, 4),
        ((one, two), gain / table_rows + none, 2),
        ((one, two), gain * (none + table_rows), 4),
    ):
        assert len(list(outer_goals(Outer(totals, body), RISE))) == ends * 2 ** len(totals) * 2


def test_what_rules_cover_is_not_refused() -> None:
    for bound in (1 - 2 / rows, 1 - 2 / (rows + 1), 1 / rows + 1 / (rows + 3), LAST_INCREMENT, x_log2_x(rows)):
        assert part_goals(MAX, Claim("rise", bound), {}, False)
    for body in (gain * none / table_rows, gain * none / 2, gain * table_rows, gain - none, (gain + 1) * none):
        assert list(outer_goals(Outer((Total(gain, 1, 0, 1), Total(none, 1, 1, 2)), body), RISE))
    assert part_goals(GAIN, Claim("fall", LAST_INCREMENT), {}, False)
