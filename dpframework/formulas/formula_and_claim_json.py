"""Readers of formulas, shapes and claims from JSON content, and a writer of scores with their claims.

A shape is a formula together with what the formula reads: the parts, cells, totals or rows of a table (see
`score_structures`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import read_ratio
from dpframework.formulas.count_formula import Formula, Operation, PublicRange, cells
from dpframework.formulas.score_structures import Adds, Cells, Outer, Parts, Shape, Total
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim, ScoreClaims

MOST_NESTED = 100  # how deeply operations may be nested
MOST_CHARACTERS = 100_000  # how many characters the content of a shape may have as text
T = TypeVar("T")

#: How many operands a formula with each of these operations has. A formula with any other operation has two.
_PART_COUNTS = {
    **dict.fromkeys((Operation.CONSTANT, Operation.PUBLIC, Operation.CELL), 0),
    **dict.fromkeys((Operation.CLASS, Operation.PART, Operation.ROWS), 0),
    **dict.fromkeys((Operation.ROOT, Operation.X_LOG_X, Operation.SUM, Operation.LARGEST), 1),
}
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError)


def read_formula(form: Any, depth: int = 0) -> Formula:
    """Return the formula that `count_formula.form` wrote.

    Raises
    ------
    InputError
        If `form` is not the form of a formula.
    """
    try:
        name, value, parts = form
        operation = Operation(name)
        if depth > MOST_NESTED:
            raise InputError(f"a formula has more than {MOST_NESTED} operations within each other")
        if len(parts) != _PART_COUNTS.get(operation, 2):
            raise ValueError
        match operation:
            case Operation.CONSTANT:
                value = read_ratio(value)
            case Operation.PUBLIC:
                name, lower, upper = value
                cells(name)  # refuses names with signs that mean something in SMT-LIB; so does the next case
                value = PublicRange(name, read_ratio(lower), read_ratio(upper))
            case Operation.CELL:
                cells(value)
            case Operation.ROOT if isinstance(value, int) and value >= 2:
                pass
            case _ if value is not None:
                raise ValueError
        return Formula(operation, tuple(read_formula(part, depth + 1) for part in parts), value)
    except InputError:
        raise
    except _MALFORMED:
        raise InputError(f"{str(form)[:60]} is no formula") from None


def read_shape(form: Any) -> Shape:
    """Return the shape that has this `form`.

    Raises
    ------
    InputError
        If `form` is not the form of a shape.
    """
    try:
        kind, content = form
        if len(str(content)) > MOST_CHARACTERS:
            raise InputError("a formula is longer than any that a person writes")
        if kind == "parts":
            return Parts(read_formula(content))
        first, second, *others = content
        if kind == "cells":
            within = tuple((read_formula(low), read_formula(high)) for low, high in others[0])
            return Cells(cells(*first), read_formula(second), within)
        if kind == "outer":
            totals = [
                Total(cells(name)[0], rise, fall, None if each == "None" else each) for name, rise, fall, each in first
            ]
            return Outer(tuple(totals), read_formula(second))
        if kind == "adds":
            return Adds(tuple(map(read_formula, first)), bool(second))
    except InputError:
        raise
    except _MALFORMED:
        pass
    raise InputError(f"{str(form)[:60]} is no shape of a score")


def read_claim(form: Any) -> Claim:
    """Return the claim that has this `form`.

    Raises
    ------
    InputError
        If `form` is not the form of a claim.
    """
    try:
        change, group, replaced, bound = form
        return Claim(Change(change), read_formula(bound), int(group), bool(replaced))
    except _MALFORMED:
        raise InputError(f"{str(form)[:60]} is no claim") from None


def score_claims_form(scored: ScoreClaims) -> dict[str, Any]:
    """Return a score's formula and its claims as JSON content, which also holds the formula and each claim as text."""
    return {
        "name": scored.name,
        "text": scored.shape.text,
        "claims": [claim.text for claim in scored.claims],
        "form": [scored.shape.form, [claim.form for claim in scored.claims]],
    }


def read_score_claims(form: Mapping[str, Any]) -> ScoreClaims:
    """Return the formula with claims that `score_claims_form` wrote.

    Raises
    ------
    InputError
        If the formula or a claim cannot be read, or differs from its text.
    """
    shape, claims = form["form"]
    found = ScoreClaims(form["name"], read_shape(shape), tuple(map(read_claim, claims)))
    if score_claims_form(found) != dict(form):
        raise InputError(f"the formula or a claim of '{found.name}' differs from its text")
    return found
