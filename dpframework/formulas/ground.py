"""The ground test: numbers of real neighbours put into goals, which must describe them.

Solvers prove what a goal says. That it says what the score does is tested here, without a solver and without trust in
what wrote it: the numbers of random neighbours are put into the text. Of the goals of a claim one must fit each pair of
neighbours (a fact that is false, or a case that was lost, shows here), and its `high - low` must be the change of the
score.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from dpframework.formulas.claims import Change, Claim
from dpframework.formulas.evaluation import is_rational, value_of
from dpframework.formulas.formula import AGGREGATES, n, rows_of_part
from dpframework.formulas.shapes import Cells, Parts, Scored
from dpframework.formulas.small_tables import settings
from dpframework.formulas.smt import CLAIM

Expression: TypeAlias = "str | list[Any]"
CLOSE = 1e-9  # roots and logarithms are numbers in floating point


class GroundGoal:
    """A goal that numbers can be put in.

    Parameters
    ----------
    text
        The goal.
    """

    def __init__(self, text: str) -> None:
        commands = _read(text.split(CLAIM)[0])
        self.constants = [one[1] for one in commands if one[0] == "declare-const"]
        self.definitions = {one[1]: one[4] for one in commands if one[0] == "define-fun"}
        self.assumptions = [one[1] for one in commands if one[0] == "assert"]

    def difference(self, numbers: Mapping[str, Any]) -> Any:
        """Return `high - low` of tables with such numbers; None if an assumption does not hold of them."""
        known = dict(numbers)
        for assumed in self.assumptions:
            self._take_root(assumed, known)
        if not self.definitions or any(name not in known for name in self.constants):
            return None
        if not all(_value(assumed, known) for assumed in self.assumptions):
            return None
        values = {name: _value(body, known) for name, body in self.definitions.items()}
        return values["high.num"] / values["high.den"] - values["low.num"] / values["low.den"]

    def _take_root(self, assumed: Expression, known: dict[str, Any]) -> None:
        """Give a root its value, by the assumption that its power is something: `(or (< top 0.0) (= power top))`."""
        if not (isinstance(assumed, list) and assumed[0] == "or" and assumed[2][0] == "="):
            return
        power, top = assumed[2][1:]
        new = [name for name in self.constants if name in _names(power) and name not in known]
        if new:
            degree = str(power).count(f"'{new[0]}'")
            scale = float(_value(power, {**known, new[0]: 1}))
            known[new[0]] = (max(float(_value(top, known)), 0.0) / scale) ** (1 / degree)


def _read(text: str) -> list[Any]:
    """Return the commands of an SMT-LIB text as nested lists."""
    stack: list[list[Any]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            closed = stack.pop()
            stack[-1].append(closed)
        else:
            stack[-1].append(token)
    return stack[0]


def _names(expression: Expression) -> set[str]:
    if isinstance(expression, str):
        return {expression}
    return {name for part in expression for name in _names(part)}


def _value(expression: Expression, known: Mapping[str, Any]) -> Any:
    if isinstance(expression, str):
        return known[expression] if expression in known else Fraction(expression)
    name, *given = expression
    if name == "ite":
        return _value(given[1] if _value(given[0], known) else given[2], known)
    values = [_value(one, known) for one in given]
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
            return all(_compared(name, one, other) for one, other in itertools.pairwise(values))


def _compared(sign: str, one: Any, other: Any) -> bool:
    slack = 0 if isinstance(one, int | Fraction) and isinstance(other, int | Fraction) else CLOSE * max(1, abs(one))
    match sign:
        case "=":
            return bool(abs(one - other) <= slack)
        case "<=" | "<":
            return bool(one < other or (sign == "<=" and one <= other + slack))
        case _:
            return bool(one > other or (sign == ">=" and one >= other - slack))


def ground_problem(shape: Scored, claim: Claim, goals: Sequence[str], pairs: int = 40) -> str | None:
    """Return what goals say that is not so, of random neighbours; None if they describe all of them."""
    written = [GroundGoal(goal) for goal in goals]
    for low, high, numbers in _neighbours(shape, claim, pairs):
        change = float(high) - float(low)
        found = [value for goal in written if (value := goal.difference(numbers)) is not None]
        if not found:
            return f"no goal describes the neighbours with {_shown(numbers)}"
        wrong = [value for value in found if abs(float(value) - change) > CLOSE * max(1.0, abs(change))]
        if len(wrong) == len(found):
            said = f"{float(wrong[0]):.6g} of neighbours whose scores differ by {change:.6g}"
            return f"a goal says {said}: {_shown(numbers)}"
    return None


def _shown(numbers: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in numbers.items())


def _neighbours(shape: Scored, claim: Claim, pairs: int) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Yield scores of the table that a goal calls low and of the one it calls high, and the numbers of both."""
    random = np.random.default_rng(20)
    for k in range(pairs):
        size = (1, 3, 9, 40)[k % 4]
        yield (
            _of_parts(shape, claim, random, size) if isinstance(shape, Parts) else _of_cells(shape, claim, random, size)
        )


def _of_parts(shape: Parts, claim: Claim, random: np.random.Generator, size: int) -> tuple[Any, Any, dict[str, Any]]:
    shared = random.integers(0, size + 1, (3, int(random.integers(2, 6)))) * (random.random() < 0.9)
    shared[0] *= random.random(shared.shape[1]) < random.choice([0.3, 0.9])
    more = shared.copy()
    more[0, 0] += 1
    others = shared[0, 1:]
    numbers: dict[str, Any] = {"c": int(shared[0, 0]), "rest": int(others.sum())}
    numbers["rows"] = int(more.sum() + random.integers(0, 3))
    for k, found in enumerate(shape.body.leaves(*AGGREGATES)):
        exact = is_rational(found)
        counts = others.astype(object if exact else np.float64)
        numbers[f"s{k}"] = value_of(found, {n: counts, rows_of_part: np.asarray(counts.sum())}, exact)
    low, high = shape.scores([shared, more])
    return (low, high, numbers) if claim.change is Change.RISE else (high, low, numbers)


def _of_cells(shape: Cells, claim: Claim, random: np.random.Generator, size: int) -> tuple[Any, Any, dict[str, Any]]:
    names = [str(cell) for cell in shape.cells]
    shared = random.integers(0, size + 1, len(names)) * (random.random(len(names)) < 0.8)
    none = len(names)  # the place of a row that is in no cell
    places = (
        random.integers(0, none + 1, (2, claim.group)) if claim.group > 1 else random.permutation(none + 1)[:2, None]
    )
    if claim.change is not Change.REPLACED:
        places = np.array([places.min(axis=0), np.full(claim.group, none)])
    into, out = (np.bincount(place, minlength=none + 1)[:none] for place in places)
    numbers: dict[str, Any] = dict(zip(names, shared.tolist(), strict=True))
    if claim.group > 1:
        for tag, more in (("in", into), ("out", out)):
            numbers |= {f"{tag}_{name}": int(value) for name, value in zip(names, more, strict=True)}
    chosen = list(settings(shape))
    setting, values = chosen[int(random.integers(len(chosen)))]
    numbers |= values
    low, high = setting.scores([shared + out, shared + into])
    return (low, high, numbers) if claim.change is not Change.FALL else (high, low, numbers)
