"""A table made from blocks of rows as they come: memory is the codes, the values that are kept, and one block."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from dpframework.facts.attributes import Numeric
from dpframework.facts.errors import DoesNotFit
from dpframework.facts.policies import OutOfDomain
from dpframework.facts.schema import MOST_ROWS, Schema
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.tables.columns import as_column
from dpframework.tables.encoding import Unfit, cells_of, code_dtype, require_fit, settled, unfit
from dpframework.tables.storage import growing
from dpframework.tables.table import Table, matrix_dtype


def require_public_counts(schema: Schema, rows: int, source: str) -> None:
    """Refuse a table that the schema's public facts on its rows are false of: claims may rest on them.

    Raises
    ------
    DoesNotFit
        If `rows` is not the schema's exact number, or above its bound or the most that any table may have; the
        table's own count is not shown.
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


class TableBuilder:
    """Encodes blocks of rows, one after another.

    What the rows do not fit in is kept until all are there: what is refused then does not depend on their order.

    Parameters
    ----------
    schema
        The public facts.
    sources
        What errors call the table of each attribute.
    policy
        What to do with a value that the schema does not hold.
    values
        The numeric attributes whose raw values are kept; None for all.
    mapped
        Whether codes and values are kept in files instead of memory (see `storage`).
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
        self._codes = [growing(code_dtype(attribute.size), mapped=mapped) for attribute in schema]
        kept = [a.name for a in schema if isinstance(a, Numeric) and (values is None or a.name in values)]
        self._values = {name: growing(np.dtype(np.float64), mapped=mapped) for name in kept}
        self._unfit: list[set[Unfit]] = [set() for _ in schema]
        self._rows = 0

    def add(self, columns: Mapping[str, Any]) -> None:
        """Encode one more block: a column of each attribute, all of one length.

        Raises
        ------
        InputError
            If one is no column.
        DoesNotFit
            If there are more rows than any table may have.
        """
        for k, attribute in enumerate(self._schema):
            name = attribute.name
            cells = cells_of(attribute, as_column(columns[name], self._where(name)))
            if self._policy is OutOfDomain.ERROR:
                self._unfit[k] |= unfit(attribute, cells)
            column = settled(attribute, cells, self._policy)
            self._codes[k].append(column.codes)
            if column.values is not None and name in self._values:
                self._values[name].append(column.values)
        self._rows = self._codes[0].length
        if self._rows > MOST_ROWS:
            require_public_counts(self._schema, self._rows, self._everywhere)

    def table(self, unit: PrivacyUnit = ROW, key: bytes | None = None) -> Table:
        """Return the table; the builder is empty afterwards.

        Raises
        ------
        DoesNotFit
            If its rows break what the schema says of their number, or the policy refuses one.
        """
        require_public_counts(self._schema, self._rows, self._everywhere)
        for attribute, found in zip(self._schema, self._unfit, strict=True):
            require_fit(attribute, found, self._where(attribute.name))
        whole = growing(matrix_dtype(self._schema), mapped=self._mapped, length=len(self._schema) * self._rows)
        for codes in self._codes:
            whole.append(codes.taken())  # and freed: one attribute at a time is there twice
        matrix = whole.taken().reshape(len(self._schema), self._rows)
        values = {name: column.taken() for name, column in self._values.items()}
        return Table(self._schema, matrix, values, unit, key)

    def _where(self, name: str) -> str:
        return f"{self._sources[name]}: attribute '{name}'"

    @property
    def _everywhere(self) -> str:
        return " and ".join(dict.fromkeys(self._sources[name] for name in self._schema.names))
