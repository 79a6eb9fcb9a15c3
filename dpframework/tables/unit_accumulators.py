"""Aggregates of the rows of each unit, updated block by block (see `dpframework.facts.unit_aggregates`).

Each aggregate keeps a few arrays, most of them with one element per unit. A row changes the elements of its own unit
alone, and rows are taken in order. So a unit's result depends on its own rows alone, whatever rows of other units lie
between them and wherever blocks end. Missing cells are skipped. If all cells of a unit are missing, its result is
missing, except that a count is 0.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.derived_columns import DerivedColumn
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.expression_operands_and_domains import Cells, Labels, Numbers, Operand, domain_of
from dpframework.facts.schema import Schema
from dpframework.facts.schema_with_derived_columns import UnitRows
from dpframework.facts.toml import prefix_errors
from dpframework.facts.unit_aggregates import AGGREGATED, aggregate, row_parts
from dpframework.tables.column_encoding import EncodedColumn, Unfit, cells_of, require_fit, settle, unfit
from dpframework.tables.derived_column_cells import read_cells, settle_cells, with_derived
from dpframework.tables.plain_cell_series import as_column
from dpframework.tables.sources import Source, rows_changed

Units = NDArray[np.intp]
MOST_PAIRS = 1 << 22  # the most pairs of unit and code that `mode` holds before it counts them


class Accumulator(abc.ABC):
    """One aggregate's results for all units, from the rows so far."""

    @abc.abstractmethod
    def add(self, units: Units, parts: Sequence[Cells]) -> None:
        """Add rows in order, given their units and the cells of each expression that the aggregate reads.

        The array of units and each array of cells have the shape (rows,).
        """

    @abc.abstractmethod
    def cells(self) -> Cells:
        """Return the results, shape (units,). A missing result is NaN, or -1 for codes."""


@final
class _Count(Accumulator):
    def __init__(self, number: int) -> None:
        self._found = np.zeros(number, dtype=np.int64)

    def add(self, units: Units, parts: Sequence[Cells]) -> None:
        np.add.at(self._found, units[parts[0] == 1] if parts else units, 1)

    def cells(self) -> Cells:
        return self._found.astype(np.float64)


@final
class _Sum(Accumulator):
    def __init__(self, number: int) -> None:
        self._found, self._seen = np.zeros(number), np.zeros(number, dtype=np.bool_)

    def add(self, units: Units, parts: Sequence[Cells]) -> None:
        known = ~np.isnan(parts[0])
        # `add.at` adds one row after another, so the rounding does not depend on how rows lie in blocks.
        np.add.at(self._found, units[known], parts[0][known])
        self._seen[units[known]] = True

    def cells(self) -> Cells:
        return np.where(self._seen, self._found, math.nan)


@final
class _Extreme(Accumulator):
    def __init__(self, number: int, largest: bool) -> None:
        self._of: np.ufunc = np.maximum if largest else np.minimum
        self._none = -math.inf if largest else math.inf
        self._found = np.full(number, self._none)

    def add(self, units: Units, parts: Sequence[Cells]) -> None:
        known = ~np.isnan(parts[0])
        self._of.at(self._found, units[known], parts[0][known])

    def cells(self) -> Cells:
        return np.where(self._found == self._none, math.nan, self._found)


@final
class _Truth(Accumulator):
    """One truth value decides: true for `any`, and false for `all`.

    If some cell of the unit has this value, the result is this value. Otherwise the result is the other value, if some
    cell has that one.
    """

    def __init__(self, number: int, decisive: int) -> None:
        self._decisive, self._found = decisive, np.full(number, -1, dtype=np.int32)

    def add(self, units: Units, parts: Sequence[Cells]) -> None:
        other = units[parts[0] == 1 - self._decisive]
        self._found[other] = np.where(self._found[other] < 0, 1 - self._decisive, self._found[other])
        self._found[units[parts[0] == self._decisive]] = self._decisive

    def cells(self) -> Cells:
        return self._found


@final
class _End(Accumulator):
    """The first or the last cell of a unit, in the order of the rows or in the order of a number in each row."""

    def __init__(self, number: int, empty: Cells, last: bool) -> None:
        self._last, self._found = last, np.full(number, empty)
        self._seen = np.zeros(number, dtype=np.bool_)
        self._when = np.full(number, -math.inf if last else math.inf)

    def add(self, units: Units, parts: Sequence[Cells]) -> None:
        cells = parts[0]
        known = ~np.isnan(cells) if cells.dtype == np.float64 else cells >= 0
        if len(parts) > 1:
            known &= ~np.isnan(parts[1])
            when = parts[1]
            # Among equal numbers, `last` takes the last row, and `first` the first row.
            known &= (when >= self._when[units]) if self._last else (when < self._when[units]) | ~self._seen[units]
        elif not self._last:
            known &= ~self._seen[units]
        rows = np.flatnonzero(known)
        if len(parts) > 1:
            # The row that is written last stays. For `first` the order is reversed, so that the smallest number is
            # written last, and among equal numbers the first row.
            order = np.argsort(parts[1][rows], kind="stable")
            rows = rows[order] if self._last else rows[order[::-1]]
            self._when[units[rows]] = parts[1][rows]
        elif not self._last:
            rows = rows[::-1]
        # Where a unit has several rows, the last one assigned stays.
        self._found[units[rows]] = cells[rows]
        self._seen[units[rows]] = True

    def cells(self) -> Cells:
        return self._found


@final
class _Mode(Accumulator):
    """The most frequent code of a unit, and among equally frequent codes the first in the attribute's list."""

    def __init__(self, number: int, size: int) -> None:
        self._number, self._size = number, size
        self._pairs, self._counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._waiting = list[NDArray[np.int64]]()

    def add(self, units: Units, parts: Sequence[Cells]) -> None:
        known = parts[0] >= 0
        self._waiting.append(units[known].astype(np.int64) * self._size + parts[0][known])
        if sum(map(len, self._waiting)) > MOST_PAIRS:
            self._count()

    def _count(self) -> None:
        # If nothing waits, there is still the empty array `self._pairs[:0]` to concatenate.
        pairs, counts = np.unique(np.concatenate([*self._waiting, self._pairs[:0]]), return_counts=True)
        self._waiting.clear()
        self._pairs, where = np.unique(np.concatenate([self._pairs, pairs]), return_inverse=True)
        together = np.zeros(len(self._pairs), dtype=np.int64)
        np.add.at(together, where, np.concatenate([self._counts, counts]))
        self._counts = together

    def cells(self) -> Cells:
        self._count()
        units, codes = np.divmod(self._pairs, self._size)
        order = np.lexsort((-codes, self._counts, units))  # the last code of each unit is its mode
        found = np.full(self._number, -1, dtype=np.int32)
        found[units[order]] = codes[order]
        return found


@final
class ColumnEncoder:
    """Encodes blocks of the rows from which units are made, and notes the ways in which some cells do not fit.

    Parameters
    ----------
    schema
        The schema of the rows.
    source
        The source of the rows.
    policy
        How to treat a value outside the schema.

    Attributes
    ----------
    unfit
        For each column, by its name, the ways in which cells that were read so far do not fit the schema. Found only
        under the policy `OutOfDomain.ERROR`, and empty under any other.
    """

    def __init__(self, schema: Schema, source: Source, policy: OutOfDomain) -> None:
        self._schema, self._source, self._policy = schema, source, policy
        self.unfit: dict[str, set[Unfit]] = {name: set() for name in schema.column_names}

    def blocks(self, number: int) -> Iterator[tuple[slice, dict[str, EncodedColumn]]]:
        """Yield the range of rows of each block, and the codes and values of these rows, by column name.

        Parameters
        ----------
        number
            How many rows the source is known to have.

        Raises
        ------
        InputError
            If the source now has another number of rows, which shows that it has changed since it was first read.
        """
        first = 0
        for block in self._source.blocks(self._schema.column_names):
            found = {}
            for attribute in self._schema.columns:
                name = attribute.name
                cells = cells_of(attribute, as_column(block[name], self._where(name)))
                if self._policy is OutOfDomain.ERROR:
                    self.unfit[name] |= unfit(attribute, cells)
                found[name] = settle(attribute, cells, self._policy)
            start, first = first, first + len(next(iter(found.values())).codes)
            if first > number:
                break
            yield slice(start, first), found
        if first != number:
            raise rows_changed(self._source.name)

    def require_fit(self) -> None:
        """Refuse rows with cells that the policy refuses. The text of the error does not depend on the rows' order.

        Raises
        ------
        DoesNotFit
            If there is such a cell.
        """
        for name, ways in self.unfit.items():
            if ways:
                require_fit(self._schema[name], ways, self._where(name))

    def _where(self, name: str) -> str:
        return f"{self._source.name}: attribute '{name}'"


@final
class UnitColumns:
    """The columns that are made from the rows of each unit, updated block by block.

    Parameters
    ----------
    rows
        The schema of the rows, and the aggregates.
    number
        How many units there are (private).
    """

    def __init__(self, rows: UnitRows, number: int) -> None:
        self._rows = rows
        domains = {name: domain_of(*read) for name, read in _read(rows).items()}
        self._parts: list[tuple[DerivedColumn, list[Operand], Accumulator]] = []
        for column in rows.columns:
            found = aggregate(column.value)
            with prefix_errors(f"derived column '{column.name}': "):
                parts = row_parts(found, domains)
            self._parts.append((column, parts, accumulator(found.name, parts, number)))

    def add(self, whose: Units, encoded: Mapping[str, EncodedColumn]) -> None:
        """Add a block of rows.

        Parameters
        ----------
        whose
            The number of each row's unit from 0, or -1 for a row without a unit, shape (rows,).
        encoded
            The rows' columns by name, without derived ones, each of shape (rows,).
        """
        schema = self._rows.schema
        there = slice(None) if bool((whose >= 0).all()) else whose >= 0
        made = with_derived(schema, encoded)
        cells = {name: read_cells(schema[name], made[name])[there] for name in _read(self._rows)}
        units = whose[there]
        for _, parts, found in self._parts:
            with np.errstate(all="ignore"):
                read = [np.broadcast_to(part.cells(cells), units.shape) for part in parts]
            found.add(units, read)

    def encode(self, schema: Schema) -> dict[str, EncodedColumn]:
        """Return the columns of units, encoded by a schema, each of shape (units,)."""
        inputs = self._rows.schema.derivation_inputs
        return {
            column.name: settle_cells(schema[column.name], column, inputs, {AGGREGATED: found.cells()})
            for column, _, found in self._parts
        }


def _read(rows: UnitRows) -> dict[str, Any]:
    """Return the attributes that the aggregates read, by name."""
    names = dict.fromkeys(name for column in rows.columns for name in column.inputs)
    return {name: rows.schema.derivation_inputs[name] for name in names}


def accumulator(name: str, parts: Sequence[Operand], number: int) -> Accumulator:
    """Return the accumulator of an aggregate, given its name, the expressions it reads, and the number of units."""
    match name:
        case "count":
            return _Count(number)
        case "sum":
            return _Sum(number)
        case "min" | "max":
            return _Extreme(number, largest=name == "max")
        case "any" | "all":
            return _Truth(number, decisive=int(name == "any"))
    domain = parts[0].domain
    if name == "mode":
        return _Mode(number, len(domain.values) if isinstance(domain, Labels) else 2)
    empty: Any = math.nan if isinstance(domain, Numbers) else np.int32(-1)  # what marks a missing cell
    return _End(number, empty, last=name == "last")
