"""Build a table block by block. Memory holds the codes, the values that are kept, and one block."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Numeric
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import DoesNotFit
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.open_attribute import Open
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import MOST_ROWS, Schema
from dpframework.tables.coded_table import Table
from dpframework.tables.column_encoding import EncodedColumn, Unfit, cells_of, require_fit, settle, stored_dtype, unfit
from dpframework.tables.derived_column_cells import read_cells, settle_cells
from dpframework.tables.growing_column_arrays import growing_array
from dpframework.tables.open_attribute_keys import KEY_CODES, KeyBook, KeyColumn
from dpframework.tables.plain_cell_series import as_column


def require_public_counts(schema: Schema, rows: int, source: str) -> None:
    """Refuse a table that breaks the schema's public facts about the number of rows. Privacy claims may rest on these.

    Raises
    ------
    DoesNotFit
        If `rows` differs from the schema's exact number, or is above the schema's bound or the most that any table may
        have. The table's own number is not shown.
    """
    if rows > MOST_ROWS:
        raise DoesNotFit(f"{source}: has more rows than the {MOST_ROWS:,} that a table may have", kind="max_rows")
    if schema.rows is not None and rows != schema.rows:
        found = f"the number of rows is not the schema's public rows = {schema.rows}"
        raise DoesNotFit(f"{source}: {found}", kind="rows")
    if schema.max_rows is not None and rows > schema.max_rows:
        raise DoesNotFit(
            f"{source}: has more rows than the schema's public max_rows = {schema.max_rows}", kind="max_rows"
        )


@attrs.frozen(repr=False, field_transformer=hide_fields)
class RowFindings:
    """The findings about the rows of a table or of a part of it (private).

    Attributes
    ----------
    rows
        The number of rows.
    unfit
        For each attribute, the ways in which some of its cells lie outside the schema. Found only under the policy
        `OutOfDomain.ERROR`, and empty under any other.
    """

    rows: int
    unfit: tuple[frozenset[Unfit], ...]

    def __repr__(self) -> str:
        """Show no finding."""
        return "RowFindings(rows are private)"

    def __add__(self, other: RowFindings) -> RowFindings:
        """Return the findings about both parts."""
        return RowFindings(self.rows + other.rows, tuple(a | b for a, b in zip(self.unfit, other.unfit, strict=True)))


def source_names(schema: Schema, sources: Mapping[str, str]) -> str:
    """Return the name of the table in errors, which joins the names of its sources."""
    return " and ".join(dict.fromkeys(sources[name] for name in schema.column_names))


def require_found(schema: Schema, found: RowFindings, sources: Mapping[str, str]) -> None:
    """Refuse a table if its number of rows breaks the schema's facts, or if the policy refuses some of its cells.

    Raises
    ------
    DoesNotFit
        If a fact is broken or a cell refused. The sentence does not depend on the order of the rows, or on how they
        were cut into parts.
    """
    require_public_counts(schema, found.rows, source_names(schema, sources))
    for attribute, ways in zip(schema, found.unfit, strict=True):
        if ways:  # always empty for a derived column
            require_fit(attribute, ways, f"{sources[attribute.name]}: attribute '{attribute.name}'")


class TableBuilder:
    """Encodes blocks of rows, one after another, into a table.

    Cells that do not fit are only noted until all rows are there, so that the error does not depend on the order of the
    rows.

    Parameters
    ----------
    schema
        The public facts about the table.
    sources
        The name that errors give to the table of each attribute, by the attribute's name.
    policy
        How to treat a value outside the schema.
    values
        The numeric attributes whose raw values are kept; None for all.
    mapped
        Whether codes and values are kept in files instead of memory (see `growing_column_arrays`).
    """

    def __init__(
        self,
        schema: Schema,
        sources: Mapping[str, str],
        policy: OutOfDomain,
        values: Collection[str] | None = None,
        *,
        mapped: bool = False,
    ) -> None:
        self._schema, self._sources, self._policy = schema, sources, policy
        self._mapped = mapped
        self._codes = [growing_array(stored_dtype(attribute), mapped=mapped) for attribute in schema]
        kept = [a.name for a in schema if isinstance(a, Numeric) and (values is None or a.name in values)]
        self._values = {name: growing_array(np.dtype(np.float64), mapped=mapped) for name in kept}
        self._books = {a.name: KeyBook() for a in schema if isinstance(a, Open)}
        self._keys = {name: growing_array(KEY_CODES, mapped=mapped) for name in self._books}
        self._unfit: list[set[Unfit]] = [set() for _ in schema]
        self._rows = 0
        self._derived = {column.name: column for column in schema.derive}
        self._read = {name for column in schema.derive for name in column.inputs}

    def add(self, columns: Mapping[str, Any], encoded: Mapping[str, EncodedColumn] | None = None) -> None:
        """Encode one more block, given its columns of equal length by the names of the attributes.

        An attribute that is neither derived nor in `encoded` needs a column. `encoded` holds columns that are codes
        already.

        Raises
        ------
        InputError
            If a given column is no column.
        DoesNotFit
            If there are now more rows than the schema says, or than any table may have.
        """
        # `read` collects the cells that derived columns read. Derived columns come after all others in the schema.
        read: dict[str, NDArray[Any]] = {}
        for k, attribute in enumerate(self._schema):
            name = attribute.name
            if encoded is not None and name in encoded:
                column = encoded[name]
            elif name in self._derived:
                column = settle_cells(attribute, self._derived[name], self._schema.derivation_inputs, read)
            else:
                cells = cells_of(attribute, as_column(columns[name], f"{self._sources[name]}: attribute '{name}'"))
                if self._policy is OutOfDomain.ERROR:
                    self._unfit[k] |= unfit(attribute, cells)
                column = settle(attribute, cells, self._policy)
            if name in self._read:
                read[name] = read_cells(attribute, column)
            self._codes[k].append(column.codes)
            if column.values is not None and name in self._values:
                self._values[name].append(column.values)
            if column.keys is not None:
                self._keys[name].append(self._books[name].codes(column.keys))
        self._rows = next(iter(self._codes)).length
        bound = self._schema.row_bound
        # `table` would refuse this too. Refusing it here saves reading the rest.
        if self._rows > (MOST_ROWS if bound is None else bound):
            require_public_counts(self._schema, self._rows, source_names(self._schema, self._sources))

    def table(self, unit: PrivacyUnit = ROW, key: bytes | None = None) -> Table:
        """Return the table. The builder is empty afterwards.

        Raises
        ------
        DoesNotFit
            If the number of rows breaks the schema's facts, or the policy refuses a cell.
        """
        require_found(self._schema, self.found, self._sources)
        return self.part(unit, key)

    @property
    def found(self) -> RowFindings:
        """The findings about the rows so far."""
        return RowFindings(self._rows, tuple(map(frozenset, self._unfit)))

    def part(self, unit: PrivacyUnit = ROW, key: bytes | None = None) -> Table:
        """Return the rows as a part of a table, before anything is refused. The builder is empty afterwards."""
        columns = tuple(codes.take() for codes in self._codes)
        values = {name: column.take() for name, column in self._values.items()}
        keys = {name: KeyColumn(codes.take(), self._books[name]) for name, codes in self._keys.items()}
        return Table(self._schema, columns, values, unit, key, keys=keys)
