"""Turn the cells of a database's columns into the form that readers of cells expect, as for any other table."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Sequence
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError

#: The first and the last date that Python can hold. Readers take other dates, and infinite ones, as values that no
#: schema can hold (foreign).
_FIRST, _LAST = "0001-01-01", "9999-12-31"
_LAST_TIME = "9999-12-31 23:59:59.999999"


class CellKind(enum.Enum):
    """The kind of a column's cells."""

    WHOLE = "whole numbers of 8 bytes at most"
    REAL = "numbers in floating point"
    TRUTH = "true and false"
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
    """The type of a database's column.

    Attributes
    ----------
    kind
        The kind of the column's cells.
    name
        What the database calls the type.
    encoded
        An SQL expression by which texts are compared byte by byte, with `{}` for the cell.
    short
        For floating-point numbers, whether they have 4 bytes. For whole numbers, whether they have no sign.
    """

    kind: CellKind
    name: str
    encoded: str = "{}"
    short: bool = False

    def plain(self, *, dates: bool) -> ColumnType:
        """Return the type by which an attribute's cells are read. It is `CellKind.OTHER` if no schema can hold them.

        `dates` tells whether the attribute's options read dates and times.
        """
        held = {CellKind.WHOLE, CellKind.REAL, CellKind.TRUTH, CellKind.TEXT}
        times = {CellKind.DATE, CellKind.TIME, CellKind.ZONED}
        if self.kind in held or (dates and self.kind in times):
            return self
        return attrs.evolve(self, kind=CellKind.OTHER)

    def cell(self, column: str) -> str:
        """Return the SQL expression that is equal for equal cells and different for others, null for a missing cell.

        All cells of the kind `CellKind.OTHER` count as equal, since none of them is read.
        """
        if self.kind is CellKind.OTHER:
            return f"(case when {column} is null then null else true end)"
        return self.encoded.format(column) if self.kind in (CellKind.TEXT, CellKind.UUID) else column

    def selection(self, cell: str) -> str:
        """Return the SQL expression that selects a distinct cell. It is null for a date outside Python's range."""
        match self.kind:
            case CellKind.DATE:
                return f"case when {cell} between '{_FIRST}' and '{_LAST}' then {cell} end"
            case CellKind.TIME:
                return f"case when {cell} between '{_FIRST} 00:00:00' and '{_LAST_TIME}' then {cell} end"
            case CellKind.ZONED:
                return f"case when {cell} between '{_FIRST} 00:00:00+00' and '{_LAST_TIME}+00' then {cell} end"
        return cell

    def values(self, cells: Sequence[Any]) -> Any:
        """Return distinct cells from a query as a column for readers. A date outside Python's range is foreign."""
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
                known: list[Any] = [_FOREIGN if cell is None else cell for cell in cells]
                return [one.astimezone(datetime.UTC) if getattr(one, "tzinfo", None) else one for one in known]
        return [_FOREIGN] * len(cells)

    def missing(self) -> Any:
        """Return a column that holds one missing cell."""
        import polars as pl

        empty = self.values([])
        return [None] if isinstance(empty, list) else pl.Series([None], dtype=empty.dtype)

    def require_served(self, where: str) -> None:
        """Refuse a column of times or intervals that cannot be read as dates, such as a timestamp in nanoseconds.

        Raises
        ------
        InputError
            If the column has such a type.
        """
        name = self.name.upper()
        if self.kind is CellKind.OTHER and name.startswith(("TIME", "INTERVAL")):
            raise InputError(f"{where} has the type {name}, which cannot be read as dates; cast it to a timestamp")


_FOREIGN = object()  # readers take this object for a value that no schema can hold
