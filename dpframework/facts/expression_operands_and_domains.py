"""The operands of an expression. Each has a public domain, and a function from the cells of a row to a new cell.

The cells of many rows form an array. Numbers are floats, NaN where missing. Truths are 0 and 1, labels are positions in
the public list, and both are -1 where missing. Each operation uses the cells of one row only, and rounds floats always
in the same way. So a cell follows from its own row alone, wherever that row stands and on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric
from dpframework.facts.canonical_cells import Form, label_of, of_text
from dpframework.facts.column_read_options import DateUnit
from dpframework.facts.errors import InputError

Cells: TypeAlias = NDArray[Any]
RowCells: TypeAlias = Mapping[str, Cells]
MOST_LABELS = 10_000
"""The most labels that an operand may have."""


@attrs.frozen
class Numbers:
    """The domain of numbers. A bound is infinite where none is known.

    Attributes
    ----------
    low, high
        The bounds, both included.
    whole
        Whether all numbers are whole. Then finite bounds are whole, too.
    missing
        Whether a number may be missing.
    date
        The unit in which the numbers count dates, or None if they are no dates.
    """

    low: float
    high: float
    whole: bool = False
    missing: bool = False
    date: DateUnit | None = None

    @classmethod
    def between(cls, ends: Sequence[float], *, whole: bool = False, missing: bool = False) -> Numbers:
        """Return the domain from the least to the largest of some numbers, without bounds if one of them is NaN.

        Where a bound is not finite, a number may overflow and then be undefined. So it may be missing.
        """
        low, high = (-math.inf, math.inf) if any(map(math.isnan, ends)) else (min(ends), max(ends))
        return cls(low + 0.0, high + 0.0, whole, missing or not (math.isfinite(low) and math.isfinite(high)))

    @property
    def bounded(self) -> bool:
        """Whether both bounds are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@attrs.frozen
class Truths:
    """The domain of truth values.

    Attributes
    ----------
    missing
        Whether a truth may be missing.
    """

    missing: bool = False


@attrs.frozen
class Labels:
    """The domain of labels.

    Attributes
    ----------
    values
        The public list of labels.
    missing
        Whether a label may be missing.
    """

    values: tuple[str, ...]
    missing: bool = False


Domain: TypeAlias = "Numbers | Truths | Labels"


@attrs.frozen(eq=False)
class Operand:
    """A part of an expression.

    Attributes
    ----------
    domain
        The domain of its cells.
    cells
        The function from the cells of rows, by attribute, to the operand's own cells. A constant gives an array without
        dimensions.
    """

    domain: Domain
    cells: Callable[[RowCells], Cells]


def kind_of_domain(domain: Domain) -> str:
    """Return words for the kind of a domain's cells, for messages."""
    return {Numbers: "a number", Truths: "a truth", Labels: "a label"}[type(domain)]


def domain_of(attribute: Attribute, date: DateUnit | None) -> Domain:
    """Return the domain of an attribute's cells.

    Raises
    ------
    InputError
        If the attribute is open, so that its values are not listed.
    """
    match attribute:
        case Numeric():
            return Numbers(attribute.lower, attribute.upper, missing=attribute.missing, date=date)
        case Boolean():
            return Truths(attribute.missing)
        case Categorical():
            return Labels(attribute.values, attribute.missing)
    raise InputError(f"'{attribute.name}' is open, and an expression needs values that are listed")


def labels_of(values: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Return the distinct labels of a list, and the position of each text of the list among these labels.

    The positions end with an additional -1, the entry for a missing cell.

    Raises
    ------
    InputError
        If there are more than `MOST_LABELS` distinct labels, or one is blank.
    """
    known: dict[Form, int] = {}
    found, places = list[str](), list[int]()
    for value in values:
        form = of_text(value)
        if form is None:
            raise InputError("makes a blank label; write a visible text")
        if form not in known:
            known[form] = len(found)
            found.append(value)
        places.append(known[form])
    if len(found) > MOST_LABELS:
        raise InputError(f"makes more than {MOST_LABELS:,} labels; group some of them first")
    return tuple(found), np.array([*places, -1], dtype=np.int32)


def as_number(part: Operand) -> Operand:
    """Return an operand as numbers, where truths become 0 and 1.

    Raises
    ------
    InputError
        If its cells are labels.
    """
    match part.domain:
        case Numbers():
            return part
        case Truths(missing):
            values = np.array([0.0, 1.0, math.nan])
            return Operand(Numbers(0.0, 1.0, True, missing), lambda rows: values[part.cells(rows)])
    raise InputError("computes with a label, which is not a number; declare the column numeric, or compare the label")


def as_labels(part: Operand) -> Operand:
    """Return an operand as labels, also if its cells are truths or whole numbers in a small range.

    Raises
    ------
    InputError
        If its cells are other numbers.
    """
    match part.domain:
        case Labels():
            return part
        case Truths(missing):
            return Operand(Labels(("false", "true"), missing), part.cells)
        case Numbers(low, high, whole=True) if part.domain.bounded and high - low < MOST_LABELS:
            first = int(low)
            values = tuple(label_of(float(number)) for number in range(first, int(high) + 1))

            def places(rows: RowCells) -> Cells:
                cells = part.cells(rows)
                return np.where(np.isnan(cells), -1, np.nan_to_num(cells) - first).astype(np.int32)

            return Operand(Labels(values, part.domain.missing), places)
    raise InputError("text() takes a label, a truth, or whole numbers in a small range, such as text(year(born))")


def unify(parts: Sequence[Operand]) -> tuple[Domain, list[Callable[[RowCells], Cells]]]:
    """Return one domain that holds the cells of several parts, and for each part its cells in that domain.

    These cells are given as a function of the cells of rows, as in `Operand`. If some parts are numbers, truths become
    0 and 1.

    Raises
    ------
    InputError
        If the parts are of different kinds.
    """
    if any(isinstance(part.domain, Numbers) for part in parts) and all(
        isinstance(part.domain, Numbers | Truths) for part in parts
    ):
        parts = [as_number(part) for part in parts]
    domains = [part.domain for part in parts]
    missing = any(domain.missing for domain in domains)
    cells = [part.cells for part in parts]
    numbers = [domain for domain in domains if isinstance(domain, Numbers)]
    labels = [domain for domain in domains if isinstance(domain, Labels)]
    if len(numbers) == len(parts):
        low, high = min(one.low for one in numbers), max(one.high for one in numbers)
        return Numbers(low, high, all(one.whole for one in numbers), missing), cells
    if len(labels) == len(parts):
        values, places = labels_of([value for one in labels for value in one.values])
        first, moved = 0, list[Callable[[RowCells], Cells]]()
        for part, one in zip(parts, labels, strict=True):
            own = np.append(places[first : first + len(one.values)], np.int32(-1))
            moved.append(_move(part, own))
            first += len(one.values)
        return Labels(values, missing), moved
    if any(isinstance(domain, Numbers | Labels) for domain in domains):
        kinds = " and ".join(dict.fromkeys(kind_of_domain(domain) for domain in domains))
        raise InputError(f"puts {kinds} into one column; make them of one kind")
    return Truths(missing), cells


def _move(part: Operand, places: NDArray[np.int32]) -> Callable[[RowCells], Cells]:
    return lambda rows: places[part.cells(rows)]  # the last entry is for -1, a missing label
