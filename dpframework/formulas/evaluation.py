"""The values of formulas on arrays: rounded, in floating point, or exact, in whole numbers and fractions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dpframework.facts.errors import InputError
from dpframework.formulas.count_formula import AGGREGATES, Formula, Operation, n, rows_of_part


def value_of(formula: Formula, values: Mapping[Formula, Any], exact: bool = False) -> Any:
    """Return a formula's value.

    Parameters
    ----------
    formula
        Any formula.
    values
        The values of the formula's leaves: arrays that broadcast together. The array for `n`, the number of rows of a
        class, has one more axis than the others: the last one, which runs over the classes.
    exact
        Whether values are whole numbers and fractions in arrays of objects, so that the result is exact.

    Raises
    ------
    InputError
        If a leaf has no value, if the exact value of a root or a logarithm is wanted, or if the number under a root is
        negative.

    Examples
    --------
    >>> from dpframework.formulas import cells
    >>> a, b = cells("a", "b")
    >>> value_of(a / (a + b), {a: 1, b: 2}, exact=True)
    Fraction(1, 3)
    """
    if formula in values:
        return values[formula]
    if formula.operation in AGGREGATES:
        counts, (body,) = values[n], formula.parts
        inner = value_of(body, {**values, rows_of_part: values[rows_of_part][..., None]}, exact)
        each = np.broadcast_to(inner, counts.shape)
        return each.sum(axis=-1) if formula.operation is Operation.SUM else each.max(axis=-1, initial=0)
    parts = [value_of(part, values, exact) for part in formula.parts]
    match formula.operation:
        case Operation.CONSTANT:
            return formula.constant if exact else float(formula.constant or 0)
        case Operation.ADD:
            return parts[0] + parts[1]
        case Operation.MULTIPLY:
            return parts[0] * parts[1]
        case Operation.DIVIDE:
            return _quotient(parts[0], parts[1], exact)
        case Operation.LEAST:
            return np.minimum(*parts)
        case Operation.MOST:
            return np.maximum(*parts)
        case Operation.AT_LEAST:
            return np.asarray(np.asarray(parts[0]) >= np.asarray(parts[1])).astype(object if exact else np.float64)
        case Operation.ROOT if not exact and isinstance(formula.value, int):
            (inside,) = parts
            if np.min(inside, initial=0) < 0:
                raise InputError(f"'{formula}' is a root of a negative number; write root(most(x, 0)) to have 0 there")
            return np.cbrt(inside) if formula.value == 3 else np.asarray(inside) ** (1 / formula.value)
        case Operation.X_LOG_X if not exact:
            (count,) = (np.asarray(part, dtype=np.float64) for part in parts)
            return count * np.log2(np.where(count > 0, count, 1))
        case Operation.ROOT | Operation.X_LOG_X:
            raise InputError(f"'{formula}' has no exact value")
    raise InputError(f"'{formula}' has no value here")


def is_rational(formula: Formula) -> bool:
    """Tell whether a formula has neither roots nor logarithms, so that its values can be exact fractions."""
    return not formula.leaves(Operation.ROOT, Operation.X_LOG_X)


def _quotient(top: Any, bottom: Any, exact: bool) -> Any:
    """Return the quotient of two arrays. It is 0 where the denominator is 0."""
    if exact:
        divide = np.frompyfunc(lambda above, below: Fraction(above) / Fraction(below) if below else Fraction(0), 2, 1)
        return divide(top, bottom)
    above, below = np.broadcast_arrays(np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64))
    return np.divide(above, below, out=np.zeros(above.shape), where=below != 0)
