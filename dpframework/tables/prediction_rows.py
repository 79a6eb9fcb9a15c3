"""Rows to predict, encoded as a model's schema says, with unknown cells marked.

A run must be able to read every table. So in a table every cell has a code. If the schema allows no missing values, a
cell outside the schema becomes its attribute's first value (see `column_encoding`). A prediction from such a value
would change with the order in which labels are listed. So code that predicts reads rows as `NewRows`, and decides what
an unknown cell means for its model.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.schema import Schema
from dpframework.tables.cell_notation_reader import as_written
from dpframework.tables.coded_table import Table
from dpframework.tables.column_encoding import (
    EncodedCells,
    EncodedColumn,
    cells_of,
    outside,
    require_fit,
    settle,
    unfit,
)
from dpframework.tables.derived_column_cells import derived_cells, read_cells
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.in_process_engines import InMemory
from dpframework.tables.output_suppression import silenced
from dpframework.tables.plain_cell_series import as_column
from dpframework.tables.sources import columns_as_source, open_source

SHOWN = 4  # the most attributes that a warning names
#: An attribute's codes, its raw values (None if it is not numeric), and which cells are unknown (None if no cell is).
CodesAndValues: TypeAlias = tuple[NDArray[np.unsignedinteger], NDArray[np.float64] | None, NDArray[np.bool_] | None]


class UnknownCellWarning(UserWarning):
    """Rows to predict have unknown cells (see `NewRows.unknown`), which a prediction leaves out."""


@final
@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class NewRows:
    """Rows to predict, which are not private, since they belong to whoever asks for a prediction.

    Attributes
    ----------
    block
        The rows' codes and values. The code and value of an unknown cell mean nothing.
    unknown
        For each attribute with unknown cells, by its name, which rows have one, shape (rows,). A cell is unknown if the
        schema allows no missing values, and the cell is missing or has a value outside the schema.
    """

    block: Block
    unknown: Mapping[str, NDArray[np.bool_]]

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.block.length

    def __repr__(self) -> str:
        """Show the number of rows."""
        return f"NewRows({len(self)} rows)"

    @classmethod
    def read(
        cls, rows: Any, schema: Schema, *, out_of_domain: OutOfDomain | str = OutOfDomain.ERROR, source: str = "frame"
    ) -> Self:
        """Read rows as a model's schema says, and warn of unknown cells.

        Parameters
        ----------
        rows
            A `Table` whose schema has the model's attributes, a dataframe with their columns, columns by name, or
            `NewRows`.
        schema
            The attributes that the model reads.
        out_of_domain
            How to treat a value outside the schema. "error" refuses it. "missing" takes it as missing. "clamp" moves a
            number beyond a bound to that bound, and takes every other value outside the schema as missing. Where the
            schema allows no missing values, a cell that counts as missing is unknown.
        source
            The name of the rows in errors.

        Raises
        ------
        InputError
            If an attribute is absent, differs from the model's, or has values that "error" refuses.

        Examples
        --------
        >>> from dpframework.facts.attributes import Categorical
        >>> schema = Schema([Categorical("city", ["Rome", "Oslo"])])
        >>> with warnings.catch_warnings(action="ignore"):
        ...     read = NewRows.read({"city": ["Oslo", "Paris"]}, schema, out_of_domain="clamp")
        >>> read.unknown["city"]
        array([False,  True])
        """
        if isinstance(rows, Table):
            rows = cls(InMemory().load(rows)[0], {})
        if isinstance(rows, cls):
            for attribute in schema:
                if rows.block.schema[attribute.name] != attribute:
                    raise InputError(
                        f"attribute '{attribute.name}' differs from the model's attribute; use the model's schema"
                    )
            return rows
        read = _encode(rows, schema, OutOfDomain.parse(out_of_domain), source)
        unknown = {a.name: own for a, (_, _, own) in zip(schema, read, strict=True) if own is not None}
        _warn(unknown)
        raw = {a.name: values for a, (_, values, _) in zip(schema, read, strict=True) if values is not None}
        return cls(Block(schema, tuple(codes for codes, _, _ in read), raw), unknown)


@silenced(streams=True)
def _encode(rows: Any, schema: Schema, policy: OutOfDomain, source: str) -> list[CodesAndValues]:
    given = (
        columns_as_source(rows, tuple(rows), source)
        if isinstance(rows, Mapping)
        else open_source(rows, read=schema.read)
    )
    columns = as_written(given, schema).take(schema.column_names)
    read: dict[str, CodesAndValues] = {}
    for attribute in schema.columns:
        where = f"{source}: attribute '{attribute.name}'"
        encoded = cells_of(attribute, as_column(columns[attribute.name], where))
        if policy is OutOfDomain.ERROR:
            require_fit(attribute, unfit(attribute, encoded), where)
        read[attribute.name] = _settle(attribute, encoded, policy)
    cells: dict[str, NDArray[Any]] = {}
    for column in schema.derive:
        for name in column.inputs:
            if name not in cells:
                codes, values, unknown = read[name]
                known = read_cells(schema[name], EncodedColumn(codes, values))
                # Expressions read an unknown cell as missing. An unknown number is NaN already.
                cells[name] = known if unknown is None or values is not None else np.where(unknown, -1, known)
        derived = derived_cells(schema[column.name], column, schema.derivation_inputs, cells)
        read[column.name] = _settle(schema[column.name], derived, column.outside)
    return [read[attribute.name] for attribute in schema]


def _settle(attribute: Attribute, cells: EncodedCells, policy: OutOfDomain) -> CodesAndValues:
    unknown = outside(cells, policy)
    encoded = settle(attribute, cells, policy)
    if attribute.missing_code is not None or not unknown.any():
        return encoded.codes, encoded.values, None
    values = None if encoded.values is None else np.where(unknown, np.nan, encoded.values)
    return encoded.codes, values, unknown


def _warn(unknown: Mapping[str, NDArray[np.bool_]]) -> None:
    counts = {name: int(own.sum()) for name, own in unknown.items()}
    if not counts:
        return
    shown = ", ".join(f"'{name}' {number:,}" for name, number in list(counts.items())[:SHOWN])
    more = ", ..." if len(counts) > SHOWN else ""
    total = sum(counts.values())
    cells = "1 cell is" if total == 1 else f"{total:,} cells are"
    warnings.warn(
        f"{cells} missing or outside the schema, which allows no missing values there ({shown}{more}), so that the "
        "prediction leaves them out. Correct the rows, or set missing = true for these attributes and fit again",
        UnknownCellWarning,
        stacklevel=4,
    )
