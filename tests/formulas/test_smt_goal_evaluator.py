"""What a goal's text says of numbers: each operation that goals have, and no other."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from dpframework.facts.errors import InputError
from dpframework.formulas.smt_goal_evaluator import _OPERATIONS, names_in, read_expressions, value_in

KNOWN = {"a": Fraction(3), "b": Fraction(-2), "c": Fraction(0)}
VALUES: list[tuple[str, Any]] = [
    ("(+ a b 1.0)", 2),
    ("(- a)", -3),
    ("(- a b 1.0)", 4),
    ("(* a b 2.0)", -12),
    ("(/ a 2.0)", Fraction(3, 2)),
    ("(to_real a)", 3),
    ("(f a)", 3 * math.log2(3)),
    ("(f c)", 0),
    ("(ite (< a b) a (ite (> a b) b c))", -2),
    ("(or (< a b) (< a c))", False),
    ("(or (< a b) (< b a))", True),
    ("(and (< b a) (< a b))", False),
    ("(and (< b a) (< c a))", True),
    ("(=> (< a b) (< a c))", True),
    ("(=> (< b a) (< a c))", False),
    ("(not (< a b))", True),
    ("(= a 3.0)", True),
    ("(= a b)", False),
    ("(< a 3.0)", False),
    ("(<= a 3.0)", True),
    ("(<= b c a)", True),
    ("(<= c b a)", False),
    ("(> a 3.0)", False),
    ("(>= a 3.0)", True),
    ("(>= c a)", False),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_an_operation_has_its_value(text: str, value: Any) -> None:
    (expression,) = read_expressions(text)
    assert value_in(expression, KNOWN) == value


def test_every_operation_is_tried_and_others_are_refused() -> None:
    tried = {name for text, _ in VALUES for expression in read_expressions(text) for name in names_in(expression)}
    assert tried >= _OPERATIONS
    for text in ("(abs a)", "(div a b)", "((a))", "(a b)"):
        (expression,) = read_expressions(text)
        with pytest.raises(InputError, match="has an operation that goals do not have"):
            value_in(expression, KNOWN)
