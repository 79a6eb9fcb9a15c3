"""Formulas of the counts in a cross table, as Python objects that print as a person would write them.

The attributes and classes of the cross table are public, and its counts are not.

Division by 0 gives 0, and a sum or a largest value over no classes is 0. This holds wherever a formula is evaluated: on
arrays, in the generated kernel, and in the goals for solvers.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, TypeAlias, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import read_ratio


class Operation(enum.StrEnum):
    """The operation that joins a formula's operands or, for a leaf, what the leaf stands for."""

    CONSTANT = "constant"
    PUBLIC = "public"
    CELL = "cell"
    CLASS = "class"
    PART = "part"
    ROWS = "rows"
    ADD = "+"
    MULTIPLY = "*"
    DIVIDE = "/"
    LEAST = "min"
    MOST = "max"
    AT_LEAST = ">="
    ROOT = "root"
    X_LOG_X = "x log2 x"
    SUM = "sum"
    LARGEST = "largest"


AGGREGATES = (Operation.SUM, Operation.LARGEST)


@final
@attrs.frozen
class PublicRange:
    """A public parameter's name and the range of its values."""

    name: str
    lower: Fraction
    upper: Fraction


Number: TypeAlias = "Fraction | int | float | str"
_Value: TypeAlias = "Fraction | PublicRange | str | int | None"


@final
@attrs.frozen(cache_hash=True, repr=False)
class Formula:
    """A formula: an operation on formulas, or a leaf.

    Build one from `n`, `rows_of_part`, `cells`, numbers and the functions of `dpframework.formulas`, with `+ - * / **`.
    `rows_of_part` is the number of rows in a part of the table, such as the rows of one leaf of a tree. `n` is the
    number of these rows that belong to one class.

    Attributes
    ----------
    operation
        The operation, or the kind of the leaf.
    parts
        The operands, which are formulas. Empty for a leaf.
    value
        A constant's number, a cell's name, a public parameter with its range, or a root's degree; else None.

    Examples
    --------
    >>> from dpframework.formulas import n, rows_of_part, sum_over_classes
    >>> print(sum_over_classes(n**2) / rows_of_part)
    sum(n^2) / N
    """

    operation: Operation
    parts: tuple[Formula, ...] = ()
    value: _Value = None

    def __add__(self, other: Formula | Number) -> Formula:
        return _join(Operation.ADD, self, other)

    def __radd__(self, other: Number) -> Formula:
        return _join(Operation.ADD, other, self)

    def __neg__(self) -> Formula:
        return _join(Operation.MULTIPLY, -1, self)

    def __sub__(self, other: Formula | Number) -> Formula:
        return self + -as_formula(other)

    def __rsub__(self, other: Number) -> Formula:
        return as_formula(other) + -self

    def __mul__(self, other: Formula | Number) -> Formula:
        return _join(Operation.MULTIPLY, self, other)

    def __rmul__(self, other: Number) -> Formula:
        return _join(Operation.MULTIPLY, other, self)

    def __truediv__(self, other: Formula | Number) -> Formula:
        return _join(Operation.DIVIDE, self, other)

    def __rtruediv__(self, other: Number) -> Formula:
        return _join(Operation.DIVIDE, other, self)

    def __pow__(self, power: int) -> Formula:
        if not isinstance(power, int) or power < 1:
            raise InputError(f"a formula's power is {power!r}; a whole number from 1 is needed, or root(x, k)")
        return self if power == 1 else self ** (power - 1) * self

    def walk(self) -> Iterator[Formula]:
        """Yield this formula and all formulas that it is made of."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def leaves(self, *operations: Operation) -> list[Formula]:
        """Return the formulas with one of the given operations, among this formula and all formulas within it.

        Each is returned once, in the order of `walk`.
        """
        return list(dict.fromkeys(found for found in self.walk() if found.operation in operations))

    def replaced(self, by: dict[Formula, Formula]) -> Formula:
        """Return the formula in which each key of `by` is replaced by its value, wherever it stands."""
        if self in by:
            return by[self]
        return attrs.evolve(self, parts=tuple(part.replaced(by) for part in self.parts))

    @property
    def constant(self) -> Fraction | None:
        """The number, if the formula is a constant; else None."""
        return self.value if isinstance(self.value, Fraction) else None

    def __str__(self) -> str:
        return _text(self)[0]

    def __repr__(self) -> str:
        return f"<{self}>"


def as_formula(given: Formula | Number) -> Formula:
    """Return a formula as it is, and a number as a constant. A float is read as the decimal that it prints as.

    Raises
    ------
    InputError
        If `given` is neither a formula nor a number.
    """
    if isinstance(given, Formula):
        return given
    if type(given) in (Fraction, int):
        return Formula(Operation.CONSTANT, value=Fraction(given))
    try:
        return Formula(Operation.CONSTANT, value=read_ratio(given))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise InputError(f"a formula cannot hold {given!r}; give a formula or a number") from None


def _join(operation: Operation, first: Formula | Number, second: Formula | Number) -> Formula:
    one, other = as_formula(first), as_formula(second)
    if one.constant is not None and other.constant is not None:
        match operation:
            case Operation.ADD:
                return as_formula(one.constant + other.constant)
            case Operation.MULTIPLY:
                return as_formula(one.constant * other.constant)
            case _:
                return as_formula(one.constant / other.constant if other.constant else 0)
    if operation is Operation.MULTIPLY and other.constant is not None:
        one, other = other, one
    return Formula(operation, (one, other))


def _nest(operation: Operation, given: tuple[Formula | Number, ...]) -> Formula:
    if not given:
        raise InputError(f"{operation} needs a formula")
    first, *others = given
    return Formula(operation, (as_formula(first), _nest(operation, tuple(others)))) if others else as_formula(first)


def public(name: str, lower: Number, upper: Number) -> Formula:
    """Return a public parameter with the range of its values."""
    cells(name)  # refuses names that cannot stand in a formula
    least_value, most_value = read_ratio(lower), read_ratio(upper)
    if least_value > most_value:
        raise InputError(f"the public parameter '{name}' has the empty range from {lower} to {upper}")
    return Formula(Operation.PUBLIC, value=PublicRange(name, least_value, most_value))


def cells(*names: str) -> tuple[Formula, ...]:
    """Return formulas for the numbers of rows in disjoint cells, one for each name. A row is in at most one cell."""
    for name in names:
        if not (name.isidentifier() and name.isascii()):
            raise InputError(f"{name!r} cannot name a cell; use letters, digits and '_', and do not begin with a digit")
    if len(set(names)) < len(names):
        raise InputError(f"two cells have the same name: {', '.join(names)}")
    return tuple(Formula(Operation.CELL, value=name) for name in names)


def least(*given: Formula | Number) -> Formula:
    """Return the formula of the smallest of the given values."""
    return _nest(Operation.LEAST, given)


def most(*given: Formula | Number) -> Formula:
    """Return the formula of the largest of the given values."""
    return _nest(Operation.MOST, given)


def absolute(given: Formula | Number) -> Formula:
    """Return the formula of an absolute value."""
    return most(given, -as_formula(given))


def at_least(first: Formula | Number, second: Formula | Number) -> Formula:
    """Return a formula that is 1 where the first value is at least as large as the second, else 0."""
    return Formula(Operation.AT_LEAST, (as_formula(first), as_formula(second)))


def root(given: Formula, degree: int = 2) -> Formula:
    """Return the root of a formula whose value is never negative."""
    if not isinstance(degree, int) or degree < 2:
        raise InputError(f"a root's degree is {degree!r}; a whole number from 2 is needed")
    return Formula(Operation.ROOT, (given,), degree)


def x_log2_x(given: Formula) -> Formula:
    """Return the formula x log2 x for a count x. It is 0 for x = 0."""
    return Formula(Operation.X_LOG_X, (given,))


def sum_over_classes(body: Formula) -> Formula:
    """Return the formula of a sum over the classes of a part. `body` is a formula of the class's count `n`."""
    return _aggregate(Operation.SUM, body)


def largest_over_classes(body: Formula) -> Formula:
    """Return the formula of the largest value of `body` over the classes of a part.

    `body` is a formula of the class's count `n`. If `body` is negative for all classes, the largest value is 0.
    """
    return _aggregate(Operation.LARGEST, body)


def _aggregate(operation: Operation, body: Formula) -> Formula:
    if body.leaves(*AGGREGATES):
        raise InputError(
            f"{operation} over classes cannot hold '{body}', which is itself over classes; do not nest them"
        )
    return Formula(operation, (body,))


n = Formula(Operation.CLASS)  #: The number of rows of a class, in a part.
rows_of_part = Formula(Operation.PART)  #: The number of rows of a part.
rows = Formula(Operation.ROWS)  #: The largest number of rows that a table may have. Only formulas of bounds use it.

#: The precedence of a text's outermost operator. Where a tighter one is needed, the text gets brackets.
_SUM, _PRODUCT, _POWER, _ATOM = range(4)


def _text(formula: Formula) -> tuple[str, int]:
    """Return a formula as text, and the precedence of the text's outermost operator."""
    parts = formula.parts
    match formula.operation:
        case Operation.CONSTANT:
            found = str(formula.value)
            return found, _ATOM if found.isdigit() else _SUM
        case Operation.PUBLIC | Operation.CELL:
            return str(getattr(formula.value, "name", formula.value)), _ATOM
        case Operation.CLASS | Operation.PART | Operation.ROWS:
            return {Operation.CLASS: "n", Operation.PART: "N"}.get(formula.operation, "R"), _ATOM
        case Operation.ADD:
            text, _ = _text(parts[1])
            return f"{_text(parts[0])[0]} {f'- {text[1:]}' if text.startswith('-') else f'+ {text}'}", _SUM
        case Operation.MULTIPLY:
            return _product_text(formula)
        case Operation.DIVIDE:
            return f"{_bracket(parts[0], _PRODUCT)} / {_bracket(parts[1], _POWER)}", _PRODUCT
        case Operation.LEAST | Operation.MOST:
            return f"{formula.operation}({', '.join(_text(one)[0] for one in _flat(formula))})", _ATOM
        case Operation.AT_LEAST:
            return f"[{_text(parts[0])[0]} >= {_text(parts[1])[0]}]", _ATOM
        case Operation.ROOT:
            return f"{_bracket(parts[0], _ATOM)}^(1/{formula.value})", _POWER
        case Operation.X_LOG_X:
            inner = _bracket(parts[0], _ATOM)
            return f"{inner} log2 {inner}", _PRODUCT
        case _:
            return f"{'sum' if formula.operation is Operation.SUM else 'largest'}({_text(parts[0])[0]})", _ATOM


def _bracket(formula: Formula, tightly: int) -> str:
    text, own = _text(formula)
    return text if own >= tightly else f"({text})"


def _flat(formula: Formula) -> list[Formula]:
    """Return the operands of one operation that is applied repeatedly, such as a, b and c of a * (b * c)."""
    same = formula.operation
    return [found for part in formula.parts for found in (_flat(part) if part.operation is same else [part])]


def _product_text(formula: Formula) -> tuple[str, int]:
    """Return a product as text, with powers, and its constant in front."""
    factors = _flat(formula)
    numbers = [one.constant for one in factors if one.constant is not None]
    factor = Fraction(1)
    for number in numbers:
        factor *= number
    if len(numbers) == len(factors):  # this happens after public parameters were replaced by numbers
        return _text(as_formula(factor))
    others: dict[Formula, int] = {}
    for one in factors:
        if one.constant is None:
            others[one] = others.get(one, 0) + 1
    alone = _PRODUCT if len(others) == 1 and factor == -1 else _POWER
    texts = [f"{_bracket(one, _ATOM)}^{power}" if power > 1 else _bracket(one, alone) for one, power in others.items()]
    sign = "-" if factor < 0 else ""
    if abs(factor) != 1:
        texts[0] = f"{abs(factor) if factor.denominator == 1 else f'({abs(factor)})'} {texts[0]}"
    is_power = factor == 1 and len(texts) == 1
    return sign + " * ".join(texts), _POWER if is_power else _PRODUCT


def legend(formula: Formula) -> dict[str, str]:
    """Return the meanings of the letters in a formula's text."""
    meanings: dict[Operation, tuple[str, str]] = {
        Operation.CLASS: ("n", "rows of a class, in a part"),
        Operation.PART: ("N", "rows of a part"),
        Operation.ROWS: ("R", "the largest number of rows of a table"),
    }
    return dict(meanings[found.operation] for found in formula.leaves(*meanings))


def form(formula: Formula) -> Any:
    """Return a formula as JSON content. Different formulas have different content."""
    value: Any = formula.value
    if isinstance(value, PublicRange):
        value = [value.name, str(value.lower), str(value.upper)]
    elif isinstance(value, Fraction):
        value = str(value)
    return [str(formula.operation), value, [form(part) for part in formula.parts]]
