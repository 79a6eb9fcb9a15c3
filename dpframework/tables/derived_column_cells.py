"""Derived columns of some rows, made from the codes and values of the columns that they read.

Every reader of tables first encodes the columns of its files, and then makes the derived columns from their codes and
values. So a cell that is derived from a row depends on that row's encoded cells alone, which are in the schema's
domain. This holds for every form of a table (such as a file or a data frame) and every engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.derived_columns import DerivedColumn, Input
from dpframework.facts.schema import Schema
from dpframework.tables.column_encoding import MISSING, EncodedCells, EncodedColumn, cells_of_numbers, settle

if TYPE_CHECKING:
    from dpframework.facts.expression_operands_and_domains import Cells


def with_derived(schema: Schema, encoded: Mapping[str, EncodedColumn]) -> dict[str, EncodedColumn]:
    """Return the encoded columns of some rows, with the schema's derived columns.

    Parameters
    ----------
    schema
        The public facts about the table.
    encoded
        The encoded columns by name, each of shape (rows,). Columns that derived columns read must be among them, except
        those that are derived themselves.
    """
    found = dict(encoded)
    cells: dict[str, Cells] = {}
    for column in schema.derive:
        for name in column.inputs:
            if name not in cells:
                cells[name] = read_cells(schema[name], found[name])
        found[column.name] = settle_cells(schema[column.name], column, schema.derivation_inputs, cells)
    return found


def read_cells(attribute: Attribute, column: EncodedColumn) -> Cells:
    """Return the cells of a column as expressions read them: raw values, or codes with `MISSING` for missing cells."""
    if column.values is not None:
        return column.values
    codes = column.codes.astype(np.int32)
    if attribute.missing_code is not None:
        codes[codes == attribute.missing_code] = MISSING
    return codes


def settle_cells(
    attribute: Attribute, column: DerivedColumn, inputs: Mapping[str, Input], cells: Mapping[str, Cells]
) -> EncodedColumn:
    """Return a derived column as codes and values of its attribute.

    Parameters
    ----------
    attribute
        The attribute of the derived column.
    column
        How the column is derived.
    inputs
        By name, the attributes that the column may read.
    cells
        By name, the cells of these attributes. For a column made from the rows of each unit: the result of the column's
        aggregate for each unit, under the name `AGGREGATED`.
    """
    return settle(attribute, derived_cells(attribute, column, inputs, cells), column.outside)


def derived_cells(
    attribute: Attribute, column: DerivedColumn, inputs: Mapping[str, Input], cells: Mapping[str, Cells]
) -> EncodedCells:
    """Return the cells of a derived column, before a policy (`OutOfDomain`) treats cells outside the domain."""
    found = column.cells(inputs, cells)
    if isinstance(attribute, Numeric):
        return cells_of_numbers(attribute, found)
    return EncodedCells(found)  # expressions use the same code for a missing cell as the encoding
