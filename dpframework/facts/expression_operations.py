"""Operations on cells of one row: arithmetic, comparison, logic, missing cells, bins and concatenation.

Bounds of results follow from the bounds of the operands. Floating-point sums, products, quotients and roots are
monotone in each operand, so the operation is applied to the bounds themselves. There is no logarithm or exponential: a
library computes these in groups of rows, so the last digit may depend on where a row stands.

The functions take and return operands. Their docstrings describe the cell of the returned operand in one row.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.canonical_cells import of_text
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.expression_operands_and_domains import (
    MOST_LABELS,
    Cells,
    Labels,
    Numbers,
    Operand,
    RowCells,
    Truths,
    as_number,
    kind_of_domain,
    labels_of,
    unify,
)
from dpframework.facts.value_checks import plain_number

MOST_POWER = 8  # the largest exponent of `**`
_FEW_CUTS = 64  # the most cuts that are compared one by one; bins of more cuts are found by bisection


def constant(value: float | str | bool) -> Operand:
    """Return an operand that has the same value in every row."""
    if isinstance(value, bool):
        truth = np.array(int(value), dtype=np.int8)
        return Operand(Truths(), lambda rows: truth)
    if isinstance(value, str):
        labels, _ = labels_of([value])
        place = np.array(0, dtype=np.int32)
        return Operand(Labels(labels), lambda rows: place)
    number = np.array(float(value) + 0.0)
    if not np.isfinite(number):
        raise InputError("has a number that no float holds")
    return Operand(Numbers(float(number), float(number), float(number).is_integer()), lambda rows: number)


def number_in(part: Operand) -> float | None:
    """Return the number that all cells of a part have, or None if cells may differ or be missing."""
    match part.domain:
        case Numbers(low, high, missing=False) if low == high:
            return low
    return None


def _as_numbers(part: Operand) -> tuple[Operand, Numbers]:
    """Return an operand as numbers (see `as_number`), and its domain."""
    number = as_number(part)
    assert isinstance(number.domain, Numbers)
    return number, number.domain


def _binary(
    left: Operand, right: Operand, compute: Callable[[Cells, Cells], Cells], ends: Sequence[float], *, whole: bool
) -> Operand:
    missing = left.domain.missing or right.domain.missing
    domain = Numbers.between(ends, whole=whole, missing=missing)
    return Operand(domain, lambda rows: compute(left.cells(rows), right.cells(rows)))


def arithmetic(sign: str, left: Operand, right: Operand) -> Operand:
    """Return `left + right`, or the operation of another sign: `- * / // % **`.

    Raises
    ------
    InputError
        If one side is a label, or a divisor or exponent is not accepted.
    """
    (left, a), (right, b) = _as_numbers(left), _as_numbers(right)
    whole = a.whole and b.whole
    match sign:
        case "+":
            return _binary(left, right, np.add, [a.low + b.low, a.high + b.high], whole=whole)
        case "-":
            return _binary(left, right, np.subtract, [a.low - b.high, a.high - b.low], whole=whole)
        case "*":
            corners = [x * y for x, y in itertools.product((a.low, a.high), (b.low, b.high))]
            return _binary(left, right, np.multiply, corners, whole=whole)
        case "/":
            around = b.low <= 0 <= b.high
            corners = [math.nan] if around else [x / y for x, y in itertools.product((a.low, a.high), (b.low, b.high))]
            return _binary(left, right, _quotient, corners, whole=False)
        case "**":
            return _power(left, a, number_in(right))
    step = number_in(right)
    if step is None or step <= 0:
        raise InputError(f"'{sign}' takes a constant above 0 on its right side")
    if sign == "//":
        ends = [end // step if math.isfinite(end) else end for end in (a.low, a.high)]
        return _binary(left, right, np.floor_divide, ends, whole=True)
    return _binary(left, right, np.mod, [0.0, step - 1 if whole else step], whole=whole)


def _quotient(above: Cells, below: Cells) -> Cells:
    return np.where(below == 0, math.nan, above / np.where(below == 0, 1.0, below))


def _power(base: Operand, domain: Numbers, exponent: float | None) -> Operand:
    if exponent is None or not exponent.is_integer() or not 1 <= exponent <= MOST_POWER:
        raise InputError(f"'**' takes a whole number from 1 to {MOST_POWER} on its right side")
    times = int(exponent)

    def compute(cells: Cells) -> Cells:
        size = np.abs(cells)
        return functools.reduce(np.multiply, [size] * (times - 1), size) * (np.sign(cells) if times % 2 else 1.0)

    with np.errstate(all="ignore"):
        ends = [float(compute(np.array(end))) for end in (domain.low, _nearest_to_0(domain), domain.high)]
    found = Numbers.between(ends, whole=domain.whole, missing=domain.missing)
    return Operand(found, lambda rows: compute(base.cells(rows)))


def _nearest_to_0(domain: Numbers) -> float:
    return min(max(0.0, domain.low), domain.high)


def negative(part: Operand) -> Operand:
    """Return a number with the opposite sign."""
    return arithmetic("-", constant(0.0), part)


def monotone(part: Operand, function: Callable[[Cells], Cells]) -> Operand:
    """Apply a function that gives whole numbers and never falls as its argument grows, such as rounding down."""
    part, domain = _as_numbers(part)
    ends = [float(function(np.array(end))) for end in (domain.low, domain.high)]
    found = Numbers.between(ends, whole=True, missing=domain.missing)
    return Operand(found, lambda rows: function(part.cells(rows)))


def absolute(part: Operand) -> Operand:
    """Return the absolute value of a number."""
    part, domain = _as_numbers(part)
    ends = [abs(domain.low), abs(_nearest_to_0(domain)), abs(domain.high)]
    found = Numbers.between(ends, whole=domain.whole, missing=domain.missing)
    return Operand(found, lambda rows: np.abs(part.cells(rows)))


def root(part: Operand) -> Operand:
    """Return the square root of a number. The result is missing if the number is below 0."""
    part, domain = _as_numbers(part)
    if domain.high < 0:
        raise InputError("takes the root of a number that is always below 0")
    ends = [math.sqrt(max(domain.low, 0.0)), math.sqrt(domain.high)]
    found = Numbers.between(ends, missing=domain.missing or domain.low < 0)
    return Operand(found, lambda rows: np.sqrt(part.cells(rows)))


def extreme(parts: Sequence[Operand], *, largest: bool) -> Operand:
    """Return the least or the largest of several numbers. The result is missing if one of the numbers is missing."""
    parts = [as_number(part) for part in parts]
    if len(parts) < 2:
        raise InputError("min() and max() take at least two numbers of one row")
    domains = [part.domain for part in parts if isinstance(part.domain, Numbers)]
    pick, among = (max, np.maximum) if largest else (min, np.minimum)
    found = Numbers(
        pick(one.low for one in domains),
        pick(one.high for one in domains),
        all(one.whole for one in domains),
        any(one.missing for one in domains),
    )
    return Operand(found, lambda rows: functools.reduce(among, [part.cells(rows) for part in parts]))


_ORDERS: dict[str, Callable[[Cells, Cells], Cells]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal
}  # fmt: skip


def compare_parts(sign: str, left: Operand, right: Operand) -> Operand:
    """Return whether `left < right`, or the comparison of another sign. The result is missing if a side is missing.

    Raises
    ------
    InputError
        If the sides are of different kinds, or labels are compared by order.
    """
    ordered = sign not in ("==", "!=")
    one, other = left.domain, right.domain
    if ordered and (isinstance(one, Labels) or isinstance(other, Labels)):
        raise InputError(f"'{sign}' asks for an order, and labels have none; declare the column numeric")
    left, right = _as_label_of(left, right), _as_label_of(right, left)
    _require_label(left, right)
    _require_label(right, left)
    domain, (a, b) = unify([left, right])
    compare = _ORDERS[sign]

    def cells(rows: RowCells) -> Cells:
        x, y = a(rows), b(rows)
        gone = np.isnan(x) | np.isnan(y) if isinstance(domain, Numbers) else (x < 0) | (y < 0)
        return np.where(gone, np.int8(-1), compare(x, y).astype(np.int8))

    return Operand(Truths(one.missing or other.missing), cells)


def _as_label_of(part: Operand, other: Operand) -> Operand:
    """Return a constant number as a label if the other side has labels. Return any other part unchanged.

    The label is the other side's label that stands for this number, or else the number as a text.
    """
    number = number_in(part)
    if number is None or not isinstance(other.domain, Labels):
        return part
    return constant(next((one for one in other.domain.values if of_text(one) == number), str(plain_number(number))))


def _require_label(part: Operand, other: Operand) -> None:
    """Refuse a constant label that the other side never has, since the result would be the same in every row."""
    if isinstance(part.domain, Labels) and isinstance(other.domain, Labels) and len(part.domain.values) == 1:
        (label,) = part.domain.values
        if of_text(label) not in map(of_text, other.domain.values):
            raise InputError(f"'{label}' is none of the values; {nearest(label, other.domain.values)}")


def member(part: Operand, values: Sequence[float | str | bool]) -> Operand:
    """Return whether a part equals one of some constants. The result is missing if the part is missing.

    Raises
    ------
    InputError
        If a constant is of another kind than the part, or is not one of its labels.
    """
    if isinstance(part.domain, Labels):
        domain, wanted = part.domain, [_as_label_of(constant(value), part) for value in values]
        for one in wanted:
            _require_label(one, part)
        unify([part, *wanted])
        forms = {of_text(one.domain.values[0]) for one in wanted if isinstance(one.domain, Labels)}
        holds = np.array([*(of_text(value) in forms for value in domain.values), -1], dtype=np.int8)
        return Operand(Truths(domain.missing), lambda rows: holds[part.cells(rows)])
    if any(isinstance(value, str) for value in values):
        raise InputError(f"'in' compares {kind_of_domain(part.domain)} with a label; make them of one kind")
    number, among = as_number(part), np.array([float(value) for value in values])

    def cells(rows: RowCells) -> Cells:
        found = number.cells(rows)
        return np.where(np.isnan(found), np.int8(-1), np.isin(found, among).astype(np.int8))

    return Operand(Truths(part.domain.missing), cells)


def negation(part: Operand) -> Operand:
    """Return whether a truth does not hold."""
    truth = _truth(part, "not")
    return Operand(part.domain, lambda rows: _NOT[truth(rows)])


_NOT = np.array([1, 0, -1], dtype=np.int8)


def logic(parts: Sequence[Operand], *, all_of: bool) -> Operand:
    """Return whether all or any of some truths hold. The result is missing if the known truths do not settle it."""
    truths = [_truth(part, "and" if all_of else "or") for part in parts]
    settles = np.int8(0 if all_of else 1)

    def two(x: Cells, y: Cells) -> Cells:
        undecided = np.where((x < 0) | (y < 0), np.int8(-1), 1 - settles)
        return np.where((x == settles) | (y == settles), settles, undecided)

    missing = any(part.domain.missing for part in parts)
    return Operand(Truths(missing), lambda rows: functools.reduce(two, [truth(rows) for truth in truths]))


def _truth(part: Operand, what: str) -> Callable[[RowCells], Cells]:
    if not isinstance(part.domain, Truths):
        raise InputError(f"'{what}' takes truths, and one is {kind_of_domain(part.domain)}; write a comparison")
    return part.cells


def choice(condition: Operand, then: Operand, otherwise: Operand) -> Operand:
    """Return one of two parts, chosen by a truth. The result is missing if the truth or the chosen part is missing."""
    truth = _truth(condition, "if")
    domain, (a, b) = unify([then, otherwise])
    gone = math.nan if isinstance(domain, Numbers) else -1

    def cells(rows: RowCells) -> Cells:
        holds, x, y = truth(rows), a(rows), b(rows)
        return np.where(holds < 0, np.asarray(gone, dtype=x.dtype), np.where(holds == 1, x, y))

    return Operand(attrs.evolve(domain, missing=domain.missing or condition.domain.missing), cells)


def fill(part: Operand, instead: Operand) -> Operand:
    """Return a part, with its missing cells replaced by the cells of another part."""
    domain, (a, b) = unify([part, instead])

    def cells(rows: RowCells) -> Cells:
        x = a(rows)
        return np.where(np.isnan(x) if isinstance(domain, Numbers) else x < 0, b(rows), x)

    return Operand(attrs.evolve(domain, missing=instead.domain.missing), cells)


def is_missing(part: Operand) -> Operand:
    """Return whether a part is missing."""
    numbers = isinstance(part.domain, Numbers)

    def cells(rows: RowCells) -> Cells:
        found = part.cells(rows)
        return (np.isnan(found) if numbers else found < 0).astype(np.int8)

    return Operand(Truths(), cells)


def concatenate(left: Operand, right: Operand) -> Operand:
    """Return two labels as one text, the second after the first."""
    one, other = left.domain, right.domain
    assert isinstance(one, Labels)
    assert isinstance(other, Labels)
    if len(one.values) * len(other.values) > MOST_LABELS:
        raise InputError(f"makes more than {MOST_LABELS:,} labels; group some of them first")
    values, places = labels_of([a + b for a, b in itertools.product(one.values, other.values)])
    width = len(other.values)

    def cells(rows: RowCells) -> Cells:
        x, y = left.cells(rows), right.cells(rows)
        return places[np.where((x < 0) | (y < 0), -1, x * width + y)]

    return Operand(Labels(values, one.missing or other.missing), cells)


def name_bin(part: Operand, cuts: Sequence[float], names: Sequence[str]) -> Operand:
    """Return the name of a number's bin. A bin includes the cut at which it begins. The first bin has no lower end."""
    part = as_number(part)
    if not cuts or len(names) != len(cuts) + 1:
        raise InputError(
            'cut() takes cuts and one more label than cuts, such as cut(age, [18, 65], ["child", "adult", "old"])'
        )
    if any(low >= high for low, high in itertools.pairwise(cuts)):
        raise InputError("the cuts of cut() must be strictly increasing")
    values, places = labels_of(names)
    grid: NDArray[np.float64] = np.asarray(cuts, dtype=np.float64)

    def cells(rows: RowCells) -> Cells:
        found = part.cells(rows)
        if len(cuts) > _FEW_CUTS:
            bins = np.searchsorted(grid, found, side="right")
        else:
            bins = np.zeros(np.shape(found), dtype=np.int8)
            for cut in cuts:
                bins += (found >= cut).view(np.int8)
        return places[np.where(np.isnan(found), -1, bins)]

    return Operand(Labels(values, part.domain.missing), cells)
