"""Expressions for derived columns, written in a part of Python's grammar. Their value is computed from one row.

An expression is parsed by Python's parser and never run by Python. Each accepted node becomes an operation with a
public domain. Everything else is refused, such as attributes of objects, indices, other functions and comprehensions.
"""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.expression_dates import date_part
from dpframework.facts.expression_operands_and_domains import Domain, Labels, Operand, as_labels
from dpframework.facts.expression_operations import (
    absolute,
    arithmetic,
    choice,
    compare_parts,
    concatenate,
    constant,
    extreme,
    fill,
    is_missing,
    logic,
    member,
    monotone,
    name_bin,
    negation,
    negative,
    root,
)
from dpframework.facts.phrases import count_text

MOST_LETTERS, MOST_DEPTH = 4_000, 40  # of an expression: characters, and levels of its syntax tree
_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_TRUTHS = MappingProxyType({"true": True, "false": False})
_OF_ONE_ARGUMENT: dict[str, Callable[[Operand], Operand]] = {
    "abs": absolute,
    "sqrt": root,
    "floor": lambda part: monotone(part, np.floor),
    "ceil": lambda part: monotone(part, np.ceil),
    "round": lambda part: monotone(part, np.round),
    "missing": is_missing,
    "text": as_labels,
    **{name: functools.partial(date_part, name) for name in ("year", "month", "day", "weekday", "hour")},
}
#: The functions that an expression may call.
FUNCTIONS = (*_OF_ONE_ARGUMENT, "min", "max", "cut", "fill", "column")


#: Patterns of other languages' syntax, and how to write the same in an expression.
_OTHER_SIGNS = {
    r"\bcase\b.*\bwhen\b": "write a condition as: 1 if ill else 0",
    r"&&|\|\||!(?!=)": "write 'and' for &&, 'or' for ||, and 'not' for !",
    r"\?.*:": "write a condition as: 1 if ill else 0",
    r"(?<![<>=!])=(?!=)": "write == to compare",
    r"<>": "write != instead of <>",
}
_NEEDS_UNITS = 'it is computed from all rows of a unit; write per = "unit" beside the expression'
_NO_LOGARITHM = "its last digit depends on the machine, so it is left out; use powers or cut"
_OTHER_CALLS = {
    **dict.fromkeys(("any", "all", "count", "sum", "first", "last", "mode"), _NEEDS_UNITS),
    **dict.fromkeys(("log", "log2", "log10", "ln", "exp"), _NO_LOGARITHM),
}


def syntax_of(text: str) -> ast.expr | None:
    """Return the syntax tree of a text, or None if the text is no expression of Python.

    Raises
    ------
    InputError
        If the text has more than `MOST_LETTERS` characters.
    """
    if len(text) > MOST_LETTERS:
        raise InputError(f"has more than {MOST_LETTERS:,} characters; derive parts of it as columns of their own")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parse(text: str) -> ast.expr:
    """Return the syntax tree of an expression, whose size and depth are within the limits.

    Raises
    ------
    InputError
        If the text is not an expression, holds something that expressions may not hold, or is too long or nested too
        deep.
    """
    found = syntax_of(text)
    if found is None:
        hint = "write one such as weight / (height / 100) ** 2"
        for sign, written in _OTHER_SIGNS.items():
            if re.search(sign, text, re.IGNORECASE):
                hint = written
                break
        raise InputError(f"'{text}' is not an expression; {hint}")
    for node in ast.walk(found):
        if not isinstance(node, _ACCEPTED):
            raise _not_accepted(node)
        if isinstance(node, ast.Call):
            if node.keywords or not isinstance(node.func, ast.Name):
                raise _not_accepted(node)
            name = node.func.id
            if name not in FUNCTIONS:
                known = _OTHER_CALLS.get(name) or nearest(name, FUNCTIONS)
                raise InputError(f"calls '{name}', which is no function of expressions; {known}")
    level: list[ast.AST] = [found]
    for _ in range(MOST_DEPTH):
        level = [inner for outer in level for inner in ast.iter_child_nodes(outer)]
        if not level:
            return found
    raise InputError(f"is nested deeper than {MOST_DEPTH} levels; derive parts of it as columns of their own")


_ACCEPTED = (
    ast.Name, ast.Load, ast.Constant, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.BoolOp, ast.boolop,
    ast.Compare, ast.cmpop, ast.IfExp, ast.Call, ast.List, ast.Tuple, ast.Set,
)  # fmt: skip


def _not_accepted(node: ast.AST) -> InputError:
    return InputError(
        f"holds '{ast.unparse(node)[:60]}', which no expression may hold; see 'Expressions' in the format of studies"
    )


def names_in(text: str) -> tuple[str, ...]:
    """Return the names of the columns that an expression reads, each once, in the order of their first use.

    Raises
    ------
    InputError
        If the text is not an expression.

    Examples
    --------
    >>> names_in("weight / (height / 100) ** 2"), names_in('column("body weight") > 80')
    (('weight', 'height'), ('body weight',))
    """
    found: dict[tuple[int, int], str] = {}
    tree = parse(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called and node.id not in _TRUTHS:
            found[node.lineno, node.col_offset] = node.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "column":
            found[node.lineno, node.col_offset] = _name_of_column(node)
    return tuple(dict.fromkeys(found[place] for place in sorted(found)))


def _name_of_column(call: ast.Call) -> str:
    given = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if len(call.args) != 1 or call.keywords or not given or not isinstance(given[0], str):
        raise InputError('column() takes the name of a column in quotes, such as column("body weight")')
    return given[0]


def expression(text: str, domains: Mapping[str, Domain]) -> Operand:
    """Return the operand that an expression stands for: its public domain, and the function that computes its cells.

    Parameters
    ----------
    text
        The text of the expression.
    domains
        The domain of each column that the expression may read, by name.

    Raises
    ------
    InputError
        If the text is not an expression, reads an unknown column, or has an operation that is not accepted.

    Examples
    --------
    >>> from dpframework.facts.expression_operands_and_domains import Numbers
    >>> expression("age // 10", {"age": Numbers(0, 120)}).domain
    Numbers(low=0.0, high=12.0, whole=True, missing=False, date=None)
    """
    return _Reader(domains).part(parse(text))


class _Reader:
    def __init__(self, domains: Mapping[str, Domain]) -> None:
        self._domains = domains

    def part(self, node: ast.expr) -> Operand:
        match node:
            case ast.Name(id=name) if name not in self._domains and name in _TRUTHS:
                return constant(_TRUTHS[name])
            case ast.Name(id=name):
                return self._column(name)
            case ast.Constant(value=value) if isinstance(value, str | bool | int | float):
                return constant(_number(value))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if isinstance(value, int | float):
                return constant(-float(_number(value)))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return negative(self.part(inner))
            case ast.UnaryOp(op=ast.UAdd(), operand=inner):
                return self.part(inner)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return negation(self.part(inner))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
                return self._compute(_SIGNS[type(op)], self.part(left), self.part(right))
            case ast.BoolOp(op=op, values=values):
                return logic([self.part(value) for value in values], all_of=isinstance(op, ast.And))
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [left, *others]
                tests = [self._test(op, a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False)]
                return tests[0] if len(tests) == 1 else logic(tests, all_of=True)
            case ast.IfExp(test=test, body=body, orelse=other):
                return choice(self.part(test), self.part(body), self.part(other))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._read_call(name, args, node)
        raise _not_accepted(node)

    def _column(self, name: str) -> Operand:
        if name not in self._domains:
            raise InputError(f"reads the column '{name}', which is not in the schema; {nearest(name, self._domains)}")
        return Operand(self._domains[name], lambda rows: rows[name])

    @staticmethod
    def _compute(sign: str, left: Operand, right: Operand) -> Operand:
        labels = [isinstance(part.domain, Labels) for part in (left, right)]
        if sign == "+" and any(labels):
            if not all(labels):
                raise InputError("joins a label and something else; write text(...) around what is not a label")
            return concatenate(left, right)
        return arithmetic(sign, left, right)

    def _test(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Operand:
        if isinstance(op, ast.In | ast.NotIn):
            found = member(self.part(left), _list(right, "in"))
            return negation(found) if isinstance(op, ast.NotIn) else found
        if type(op) not in _SIGNS:
            raise InputError("holds 'is', which no expression may hold; write == or missing(...)")
        return compare_parts(_SIGNS[type(op)], self.part(left), self.part(right))

    def _read_call(self, name: str, args: Sequence[ast.expr], call: ast.Call) -> Operand:
        if name == "column":
            return self._column(_name_of_column(call))
        wanted = {"cut": 3, "fill": 2, **dict.fromkeys(_OF_ONE_ARGUMENT, 1)}.get(name)
        if wanted is not None and len(args) != wanted:
            raise InputError(f"{name}() takes {count_text(wanted, 'argument')}, not {len(args)}")
        if name in _OF_ONE_ARGUMENT:
            return _OF_ONE_ARGUMENT[name](self.part(args[0]))
        if name == "fill":
            return fill(self.part(args[0]), self.part(args[1]))
        if name == "cut":
            cuts, names = _list(args[1], "cut()"), _list(args[2], "cut()")
            if any(isinstance(cut, str | bool) for cut in cuts) or not all(isinstance(one, str) for one in names):
                raise InputError("cut() takes a list of numbers, and a list of texts")
            return name_bin(self.part(args[0]), [float(cut) for cut in cuts], [str(one) for one in names])
        return extreme([self.part(arg) for arg in args], largest=name == "max")


def _number(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 53:
        raise InputError("has a whole number of more than 53 bits; floats do not hold all such numbers exactly")
    return value


def _list(node: ast.expr, what: str) -> list[float | str | bool]:
    """Return the values of a list of constants, given its syntax tree. An error's message begins with `what`."""
    values: list[float | str | bool] = []
    for one in node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [None]:
        sign = -1 if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub) else 1
        inner = one.operand if isinstance(one, ast.UnaryOp) and sign == -1 else one
        value = _TRUTHS.get(inner.id) if isinstance(inner, ast.Name) else getattr(inner, "value", None)
        if not isinstance(value, str | bool | int | float) or (sign == -1 and isinstance(value, str | bool)):
            raise InputError(f'{what} takes a list of constants, such as ["a", "b"] or [18, 65]')
        values.append(_number(value) if sign == 1 else -float(_number(value)))
    return values
