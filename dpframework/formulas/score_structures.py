"""The shapes of scores: sums over parts, functions of cells or of totals, and vectors that are summed over rows.

A shape says how the answer of a query follows from the rows of a table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.formulas.count_formula import AGGREGATES, Formula, Operation, cells, form, n, rows_of_part
from dpframework.formulas.evaluation import value_of


def _digest(shape_form: Any) -> str:
    return hashlib.sha256(json.dumps(shape_form, separators=(",", ":")).encode()).hexdigest()


def _formulas(given: Iterable[Formula]) -> tuple[Formula, ...]:
    return tuple(given)


def _require(body: Formula, allowed: tuple[Operation, ...], what: str) -> None:
    leaves = (Operation.CELL, Operation.CLASS, Operation.PART, Operation.ROWS, *AGGREGATES)
    for found in body.leaves(*(kind for kind in leaves if kind not in allowed)):
        raise InputError(f"'{found}' cannot be used in a formula of {what}")


@final
@attrs.frozen
class Parts:
    """A score that adds up one formula of class counts over any number of disjoint parts of the table.

    Examples
    --------
    >>> from dpframework.formulas import n, rows_of_part, sum_over_classes
    >>> gini = Parts(sum_over_classes(n**2) / rows_of_part)
    >>> gini.scores([[[3, 1], [0, 2]]])
    array([4.5])
    """

    body: Formula

    def __attrs_post_init__(self) -> None:
        """Refuse a leaf that is not about parts, and a class's count outside a sum or a largest value over classes."""
        _require(self.body, (Operation.PART, Operation.CLASS, *AGGREGATES), "parts")
        if n in _outside(self.body):
            raise InputError(f"'{self.body}' reads a class's count outside of a sum or a largest value over classes")

    def of_parts(self, counts: Any, exact: bool = False) -> NDArray[Any]:
        """Return the formula's value for each part, from counts of shape (..., classes)."""
        table = _as_counts(counts, exact)
        values = {n: table, rows_of_part: table.sum(axis=-1)}
        return _fill(value_of(self.body, values, exact), table)

    def scores(self, counts: Any, exact: bool = False) -> NDArray[Any]:
        """Return scores, shape (...), from counts of shape (..., parts, classes)."""
        return np.asarray(self.of_parts(counts, exact).sum(axis=-1), dtype=object if exact else np.float64)

    @property
    def text(self) -> str:
        """The formula as a person would write it."""
        return f"sum over parts of {self.body}"

    @property
    def form(self) -> Any:
        """The shape as JSON content (see `read_shape`)."""
        return ["parts", form(self.body)]

    @property
    def digest(self) -> str:
        """The SHA-256 of the formula."""
        return _digest(self.form)


def _outside(body: Formula) -> list[Formula]:
    """Return a formula and its subformulas, without any sum or largest value over classes and what these contain."""
    if body.operation in AGGREGATES:
        return []
    return [body, *(found for part in body.parts for found in _outside(part))]


@final
@attrs.frozen
class Cells:
    """A formula of the numbers of rows in some disjoint cells. A row is in one of them, or in none.

    Attributes
    ----------
    cells
        The cells, in the order of a table's counts.
    body
        The formula.
    within
        Conditions on public parameters, as pairs. In each pair the first is at most the second.

    Examples
    --------
    >>> from dpframework.formulas import cells, most
    >>> both, apart = cells("both", "apart")
    >>> Cells((both, apart), both / most(both + apart, 50)).scores([[10, 5], [80, 20]])
    array([0.2, 0.8])
    """

    cells: tuple[Formula, ...] = attrs.field(converter=_formulas)
    body: Formula
    within: tuple[tuple[Formula, Formula], ...] = ()

    def __attrs_post_init__(self) -> None:
        """Refuse cells that are not among `cells`."""
        _require(self.body, (Operation.CELL,), "cells")
        for found in self.body.leaves(Operation.CELL):
            if found not in self.cells:
                raise InputError(f"the formula reads the cell '{found}', which is not among its cells")

    def scores(self, counts: Any, exact: bool = False) -> NDArray[Any]:
        """Return scores, shape (...), from counts of shape (..., cells)."""
        table = _as_counts(counts, exact)
        values = {cell: table[..., k] for k, cell in enumerate(self.cells)}
        return _fill(value_of(self.body, values, exact), table)

    @property
    def text(self) -> str:
        """The formula as a person would write it."""
        return str(self.body)

    @property
    def form(self) -> Any:
        """The shape as JSON content (see `read_shape`)."""
        conditions = [[form(low), form(high)] for low, high in self.within]
        return ["cells", [[str(cell) for cell in self.cells], form(self.body), conditions]]

    @property
    def digest(self) -> str:
        """The SHA-256 of the formula, with its cells and conditions."""
        return _digest(self.form)


@final
@attrs.frozen
class Total:
    """A number that depends on the whole table, such as another score. The bounds on its change are proved elsewhere.

    Attributes
    ----------
    cell
        The total's name in the formula.
    rise, fall
        Adding a row changes the total by a number in [-fall, rise].
    per_row
        The total lies between 0 and `per_row` times the number of rows. None if there is no such bound.
    """

    cell: Formula
    rise: Fraction = attrs.field(converter=Fraction)
    fall: Fraction = attrs.field(converter=Fraction)
    per_row: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(Fraction))


@final
@attrs.frozen
class Outer:
    """A formula of totals and of the table's number of rows `N`.

    Attributes
    ----------
    totals
        The totals that the formula reads.
    body
        The formula; `table_rows` stands for the number of rows.
    """

    totals: tuple[Total, ...]
    body: Formula

    def __attrs_post_init__(self) -> None:
        """Refuse cells that are not totals."""
        _require(self.body, (Operation.CELL,), "totals")
        known = {table_rows, *(total.cell for total in self.totals)}
        for found in self.body.leaves(Operation.CELL):
            if found not in known:
                raise InputError(f"the formula reads '{found}', which is not among its totals")

    @property
    def text(self) -> str:
        """The formula as a person would write it."""
        return str(self.body)

    @property
    def form(self) -> Any:
        """The shape as JSON content (see `read_shape`)."""
        totals = [[str(one.cell), str(one.rise), str(one.fall), str(one.per_row)] for one in self.totals]
        return ["outer", [totals, form(self.body)]]

    @property
    def digest(self) -> str:
        """The SHA-256 of the formula, with the rise, fall and bound per row of its totals."""
        return _digest(self.form)


@final
@attrs.frozen
class Adds:
    """A vector that is summed over rows. Claims bound norms of its change instead of a rise and a fall.

    Attributes
    ----------
    entries
        The amount that one row adds to each coordinate. A public parameter stands for any value in its range, which may
        differ from row to row.
    shares
        Whether the entries are shares of one row: each in [0, 1], together at most 1.
    """

    entries: tuple[Formula, ...] = attrs.field(converter=_formulas)
    shares: bool = False

    @property
    def text(self) -> str:
        """The entries as a person would write them."""
        return f"sum over rows of ({', '.join(map(str, self.entries))})"

    @property
    def form(self) -> Any:
        """The shape as JSON content (see `read_shape`)."""
        return ["adds", [[form(entry) for entry in self.entries], self.shares]]

    @property
    def digest(self) -> str:
        """The SHA-256 of the entries."""
        return _digest(self.form)


Shape: TypeAlias = "Parts | Cells | Outer | Adds"
"""A formula, with what it reads: parts, cells, totals or rows."""
Scored: TypeAlias = "Parts | Cells"
"""A shape that scores a candidate from counts."""
table_rows = cells("N")[0]
"""In `Outer`, the number of rows of the table."""


def _as_counts(counts: Any, exact: bool) -> NDArray[Any]:
    table = np.asarray(counts)
    return table.astype(object) if exact else table.astype(np.float64)


def _fill(values: Any, table: NDArray[Any]) -> NDArray[Any]:
    return np.array(np.broadcast_to(np.asarray(values, dtype=table.dtype), table.shape[:-1]))
