"""The cells of a database's columns as the reader is given them by any other table."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Sequence
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError

#: Dates that Python can hold. Others, and infinite ones, are no dates to the reader.
_FIRST, _LAST = "0001-01-01", "9999-12-31"
_END = "9999-12-31 23:59:59.999999"


class CellKind(enum.Enum):
    """The kind of a column's cells."""

    WHOLE = "whole numbers of 8 bytes at most"
    REAL = "numbers in floating point"
    TRUTH = "truths"
    TEXT = "texts, and what is read by its digits: decimals, larger whole numbers"
    BYTES = "bytes"
    UUID = "UUIDs"
    DATE = "dates"
    TIME = "points in time without a zone"
    ZONED = "points in time, which are read in UTC"
    OTHER = "anything else"


@final
@attrs.frozen
class ColumnType:
    """The type of a column.

    Attributes
    ----------
    kind
        What its cells are.
    name
        What the database calls it.
    encoded
        How a text is compared byte by byte: an expression with `{}` for the cell.
    short
        Whether numbers in floating point have 4 bytes, and whole ones no sign.
    """

    kind: CellKind
    name: str
    encoded: str = "{}"
    short: bool = False

    def plain(self, *, dates: bool) -> ColumnType:
        """Return the type by which an attribute's cells are read; cells that no schema holds are other things."""
        held = {CellKind.WHOLE, CellKind.REAL, CellKind.TRUTH, CellKind.TEXT}
        times = {CellKind.DATE, CellKind.TIME, CellKind.ZONED}
        if self.kind in held or (dates and self.kind in times):
            return self
        return attrs.evolve(self, kind=CellKind.OTHER)

    def cell(self, column: str) -> str:
        """Return the expression that tells distinct cells apart, null where there is none."""
        if self.kind is CellKind.OTHER:
            return f"(case when {column} is null then null else true end)"
        return self.encoded.format(column) if self.kind in (CellKind.TEXT, CellKind.UUID) else column

    def asked(self, cell: str) -> str:
        """Return the columns that are asked for of a distinct cell."""
        match self.kind:
            case CellKind.DATE:
                return f"case when {cell} between '{_FIRST}' and '{_LAST}' then {cell} end"
            case CellKind.TIME:
                return f"case when {cell} between '{_FIRST} 00:00:00' and '{_END}' then {cell} end"
            case CellKind.ZONED:
                return f"case when {cell} between '{_FIRST} 00:00:00+00' and '{_END}+00' then {cell} end"
        return cell

    def values(self, cells: Sequence[Any]) -> Any:
        """Return distinct cells as a column for the reader. One that was asked for in vain is foreign."""
        import polars as pl

        match self.kind:
            case CellKind.TEXT | CellKind.UUID:
                texts = [bytes(cell).decode() if isinstance(cell, bytes | memoryview) else cell for cell in cells]
                return pl.Series(texts, dtype=pl.String)
            case CellKind.WHOLE:
                return pl.Series(cells, dtype=pl.UInt64 if self.short else pl.Int64)
            case CellKind.REAL:
                return pl.Series(cells, dtype=pl.Float32 if self.short else pl.Float64)
            case CellKind.TRUTH:
                return pl.Series(cells, dtype=pl.Boolean)
            case CellKind.BYTES:
                return pl.Series(list(map(bytes, cells)), dtype=pl.Binary)
            case CellKind.DATE | CellKind.TIME | CellKind.ZONED:
                return [_FOREIGN if cell is None else _in_utc(cell) for cell in cells]
        return [_FOREIGN] * len(cells)

    def missing(self) -> Any:
        """Return a column of one missing cell."""
        import polars as pl

        empty = self.values([])
        return [None] if isinstance(empty, list) else pl.Series([None], dtype=empty.dtype)

    def require_served(self, where: str) -> None:
        """Refuse times that a database knows to more places than Python.

        Raises
        ------
        InputError
            If it does.
        """
        name = self.name.upper()
        if self.kind is CellKind.OTHER and name.startswith(("TIME", "INTERVAL")):
            raise InputError(f"{where} has the type {name}, of which no dates are read; cast it to a timestamp")


_FOREIGN = object()  # no reader knows it


def _in_utc(cell: Any) -> Any:
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        return cell.astimezone(datetime.UTC)
    return cell
