"""The attributes and cells of derived columns. A column's domain is declared, or follows from its expression."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric, View
from dpframework.facts.canonical_cells import of_text
from dpframework.facts.derived_columns import DerivedColumn, Input
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError
from dpframework.facts.expression_operands_and_domains import (
    Cells,
    Labels,
    Numbers,
    Operand,
    RowCells,
    Truths,
    as_labels,
    domain_of,
    labels_of,
)
from dpframework.facts.expression_parser import expression
from dpframework.facts.phrases import first_of
from dpframework.facts.public_lookup_tables import PublicTable
from dpframework.facts.toml import prefix_errors
from dpframework.facts.unit_aggregates import aggregate, aggregate_parts, row_parts

#: The number of bins of a derived number without a declared grid, and the most whole numbers that get one bin each.
BINS, MOST_WHOLE = 16, 32


@functools.lru_cache(maxsize=4096)
def make_column(column: DerivedColumn, inputs: tuple[tuple[str, Input], ...]) -> tuple[Attribute, Operand]:
    """Return a derived column's attribute, and the operand (parsed expression) for its cells: numbers, or codes."""
    with prefix_errors(f"derived column '{column.name}': "):
        domains = {name: domain_of(*read) for name, read in inputs}
        if column.per_unit:
            found = aggregate(column.value)
            part = aggregate_parts(found, row_parts(found, domains))
        else:
            part = expression(column.value, domains)
        if column.lookup is not None:
            part = look_up(part, column.lookup)
        if column.values and isinstance(part.domain, Numbers):
            part = _as_listed(column, part)
        if not isinstance(part.domain, Numbers):
            for key in ("lower", "upper", "bins", "cuts"):
                if getattr(column, key) not in (None, ()):
                    raise InputError(f"is not a number, so it has no {key}; leave it out")
        views = {attribute.view for _, (attribute, _) in inputs}
        view = column.view or (views.pop() if len(views) == 1 else None)
        match part.domain:
            case Numbers():
                return _numeric(column, part.domain, view), part
            case Truths(missing):
                if column.values:
                    raise InputError("is true or false, so it has no values; leave them out")
                return Boolean(column.name, missing=missing, view=view), part
        return _categorical(column, part, view)


def _as_listed(column: DerivedColumn, part: Operand) -> Operand:
    """Return numbers as labels: all possible numbers if they are few, else those in the column's `values`."""
    domain = part.domain
    assert isinstance(domain, Numbers)
    if domain.whole and domain.bounded and domain.high - domain.low < 1_000:
        return as_labels(part)
    forms = [of_text(value) for value in column.values]
    if column.outside is not OutOfDomain.MISSING:
        raise InputError(
            "may be a number that is not in the list 'values'; set outside = 'missing', or give bounds and bins"
        )
    known = np.array([form if isinstance(form, float) else math.nan for form in forms])

    def cells(rows: RowCells) -> Cells:
        found = part.cells(rows)
        place = np.full(np.shape(found), -1, dtype=np.int32)
        for k, number in enumerate(known.tolist()):
            place[found == number] = k
        return place

    return Operand(Labels(column.values, True), cells)


def look_up(part: Operand, table: PublicTable) -> Operand:
    """Return an operand with the table's entry for each cell of `part`, missing where the table has no entry.

    The new domain is public: it holds the entries of all values in the public domain of `part`.

    Raises
    ------
    InputError
        If the cells may be numbers that are not whole or not in a small range, or if the table has no entry for any
        cell.
    """
    if isinstance(part.domain, Numbers) and not part.domain.whole:
        raise InputError("looks up a number that may not be whole; write floor(...) or cut(...) around it")
    keys = as_labels(part)
    assert isinstance(keys.domain, Labels)
    entries = {of_text(key): value for key, value in table.pairs}
    values = [entries.get(of_text(label)) for label in keys.domain.values]
    known = [value for value in values if value is not None]
    if not known:
        raise InputError(
            f"finds none of the cells' values, such as '{keys.domain.values[0]}', in its public table; "
            "compare how both are written"
        )
    missing = keys.domain.missing or len(known) < len(values)
    # In each array, the last entry is for a missing cell. Its code is -1, so numpy finds it there.
    if isinstance(known[0], bool):
        codes = np.array([*(-1 if value is None else int(value) for value in values), -1], dtype=np.int32)
        return Operand(Truths(missing), lambda rows: codes[keys.cells(rows)])
    if isinstance(known[0], float):
        numbers = np.array([*(math.nan if value is None else value for value in values), math.nan])
        ends = [float(value) for value in known]
        whole = all(end.is_integer() for end in ends)
        return Operand(Numbers.between(ends, whole=whole, missing=missing), lambda rows: numbers[keys.cells(rows)])
    labels, places = labels_of([str(value) for value in known])
    place_of = dict(zip(map(str, known), places.tolist(), strict=False))  # the last place is that of a missing value
    moved = np.array([*(-1 if value is None else place_of[str(value)] for value in values), -1], dtype=np.int32)
    return Operand(Labels(labels, missing), lambda rows: moved[keys.cells(rows)])


def _numeric(column: DerivedColumn, domain: Numbers, view: View | None) -> Numeric:
    if domain.low > domain.high:
        raise InputError("can have no value at all; correct the expression")
    for key, bound in (("lower", domain.low), ("upper", domain.high)):
        if getattr(column, key) is None and not math.isfinite(bound):
            raise InputError(f"has no public bounds of its own ({key} is not known); declare lower, upper and outside")
    lower = domain.low if column.lower is None else column.lower
    upper = domain.high if column.upper is None else column.upper
    if lower == upper:
        raise InputError(f"is {lower:g} in every row; a column needs two values at least")
    missing = domain.missing or (column.outside is OutOfDomain.MISSING and (domain.low < lower or upper < domain.high))
    given: dict[str, Any] = {"bins": column.bins, "cuts": column.cuts}
    if column.bins is None and not column.cuts:
        whole = domain.whole and lower.is_integer() and upper.is_integer() and upper - lower < MOST_WHOLE
        given = {"cuts": [lower + k + 0.5 for k in range(int(upper - lower))]} if whole else {"bins": BINS}
    return Numeric(column.name, lower, upper, missing=missing, view=view, **given)


def _categorical(column: DerivedColumn, part: Operand, view: View | None) -> tuple[Attribute, Operand]:
    domain = part.domain
    assert isinstance(domain, Labels)
    if not column.values:
        return Categorical(column.name, domain.values, missing=domain.missing, view=view), part
    forms = {of_text(value): k for k, value in enumerate(column.values)}
    places = [forms.get(of_text(value), -1) for value in domain.values]
    left_out = [value for value, place in zip(domain.values, places, strict=True) if place < 0]
    if left_out and column.outside is not OutOfDomain.MISSING:
        shown = first_of([f"'{value}'" for value in left_out], 4)
        raise InputError(
            f"may be {shown}, which the list 'values' lacks; list every value that is possible, or set outside = "
            "'missing'"
        )
    moved = np.array([*places, -1], dtype=np.int32)
    attribute = Categorical(column.name, column.values, missing=domain.missing or bool(left_out), view=view)
    return attribute, Operand(Labels(column.values, attribute.missing), lambda rows: moved[part.cells(rows)])
