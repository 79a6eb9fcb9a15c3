"""A reader of goals, which puts numbers into their text and evaluates it.

A goal is an SMT-LIB text that denies a claim about two neighbouring tables. Given the counts of two tables, the reader
tells whether a goal describes them. If so, it also tells how far their scores differ according to the goal, and how
large the bound is.

The reader does not use the code that writes goals, apart from the text of the denied claim. So an error in that code is
not repeated here.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import read_ratio
from dpframework.formulas.smt_goal_writer import CLAIM, DENIAL, SHARED_DENIAL

Expression: TypeAlias = "str | list[Any]"
CLOSE = 1e-9  # the relative difference up to which numbers count as equal, since roots and logarithms are rounded
#: The names that a goal defines: the numerators and denominators of its two scores and of its bound.
NAMED = tuple(f"{name}.{half}" for name in ("high", "low", "bound") for half in ("num", "den"))
_COMMANDS = {"set-logic", "declare-const", "declare-fun", "define-fun", "assert"}


class GroundGoal:
    """A goal that numbers can be put into.

    Parameters
    ----------
    text
        The goal.
    """

    def __init__(self, text: str) -> None:
        before, _, after = text.partition(CLAIM)
        commands, last = read_expressions(before), read_expressions(after)
        heads = [str(one[0]) if isinstance(one, list) and one else "" for one in (*commands, *last)]
        if len(last) != 2 or heads[-2:] != ["assert", "check-sat"] or not _COMMANDS.issuperset(heads[:-1]):
            raise InputError("has other commands than a goal may have")
        self.constants = [one[1] for one in commands if one[0] == "declare-const"]
        self.definitions = {one[1]: one[4] for one in commands if one[0] == "define-fun"}
        self.assumptions = [one[1] for one in commands if one[0] == "assert"]
        self.denied: Expression = last[0][1]
        if self.definitions and (tuple(self.definitions) != NAMED or self.denied not in _DENIALS):
            raise InputError("does not deny that the scores differ by at most the bound")

    def describes(self, numbers: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the numbers, with the values of the goal's roots added; None if an assumption is false for them."""
        known = self.with_roots(numbers)
        if any(name not in known for name in self.constants):
            return None
        return known if all(value_in(assumed, known) for assumed in self.assumptions) else None

    def with_roots(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """Return the numbers, with the values of the goal's roots added."""
        known = dict(numbers)
        for assumed in self.assumptions:
            # The value of a root follows from the assumption about its power: `(or (< top 0.0) (= power top))`.
            if not (isinstance(assumed, list) and assumed[0] == "or" and assumed[2][0] == "="):
                continue
            power, top = assumed[2][1:]
            new = [name for name in self.constants if name in names_in(power) and name not in known]
            if new:
                degree = str(power).count(f"'{new[0]}'")
                scale = float(value_in(power, {**known, new[0]: 1}))
                size = max(float(value_in(top, known)), 0.0)
                # If the denominator is 0, the goal does not describe these numbers, whatever the root is.
                known[new[0]] = (size / scale) ** (1 / degree) if scale else 0.0
        return known

    def compare(self, numbers: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """Return `high - low` and `bound` for tables with these numbers; None if the goal does not describe them."""
        known = self.describes(numbers) if self.definitions else None
        if known is None:
            return None
        high, above, low, below, bound, under = (value_in(self.definitions[name], known) for name in NAMED)
        if above <= 0 or below <= 0 or under <= 0 or (self.denied == _DENIALS[0] and above != below):
            return None  # the denied claim is meant for positive denominators, and its short form for equal ones
        return high / above - low / below, bound / under


def read_expressions(text: str) -> list[Any]:
    """Return the commands of an SMT-LIB text as nested lists.

    Raises
    ------
    InputError
        If its brackets do not match, or it has quoted text or comments.
    """
    if text.count("(") != text.count(")") or any(sign in text for sign in '|";'):
        raise InputError("has brackets that do not fit, or quoted text")
    stack: list[list[Any]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            closed = stack.pop()
            if not stack:
                raise InputError("has brackets that do not fit, or quoted text")
            stack[-1].append(closed)
        else:
            stack[-1].append(token)
    return stack[0]


def names_in(expression: Expression) -> set[str]:
    """Return the names and the texts of numbers that stand in an expression."""
    if isinstance(expression, str):
        return {expression}
    return {name for part in expression for name in names_in(part)}


def value_in(expression: Expression, known: Mapping[str, Any]) -> Any:
    """Return the value of an expression, with numbers for its constants."""
    if isinstance(expression, str):
        if expression in known:
            return known[expression]
        try:
            return read_ratio(expression)
        except (ValueError, ZeroDivisionError):
            raise InputError(f"has no number for '{expression[:40]}'") from None
    name, *given = expression
    if not isinstance(name, str) or name not in _OPERATIONS:
        raise InputError(f"has an operation that goals do not have: {str(name)[:40]}")
    if name == "ite":
        return value_in(given[1] if value_in(given[0], known) else given[2], known)
    values = [value_in(one, known) for one in given]
    match name:
        case "+":
            return sum(values)
        case "-":
            return -values[0] if len(values) == 1 else values[0] - sum(values[1:])
        case "*":
            return math.prod(values)
        case "/":
            return Fraction(values[0]) / Fraction(values[1])
        case "to_real":
            return values[0]
        case "f":
            return float(values[0]) * math.log2(values[0]) if values[0] > 0 else 0.0
        case "or":
            return any(values)
        case "and":
            return all(values)
        case "=>":
            return not values[0] or values[1]
        case "not":
            return not values[0]
        case _:
            return all(_compare(name, one, other) for one, other in itertools.pairwise(values))


def _compare(sign: str, one: Any, other: Any) -> bool:
    slack = 0 if isinstance(one, int | Fraction) and isinstance(other, int | Fraction) else CLOSE * max(1, abs(one))
    match sign:
        case "=":
            return bool(abs(one - other) <= slack)
        case "<=" | "<":
            return bool(one < other or (sign == "<=" and one <= other + slack))
        case _:
            return bool(one > other or (sign == ">=" and one >= other - slack))


_OPERATIONS = {"ite", "+", "-", "*", "/", "to_real", "f", "or", "and", "=>", "not", "=", "<=", "<", ">", ">="}
_DENIALS = tuple(read_expressions(text)[0] for text in (SHARED_DENIAL, DENIAL))
