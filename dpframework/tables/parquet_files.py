"""Parquet files, one or many, here or wherever polars reads from, in blocks of rows."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from dpframework.facts.errors import InputError
from dpframework.tables.columns import quietly

if TYPE_CHECKING:
    import polars as pl

BLOCK_CELLS = 1 << 22
FEWEST_ROWS, MOST_ROWS = 1 << 14, 1 << 18  # of a block: a row group is opened anew for each block that it has rows of


@attrs.frozen(eq=False)
class ParquetFile:
    """A Parquet file.

    Attributes
    ----------
    place
        A path or a URL.
    name
        What errors call it.
    columns
        Its columns.
    options
        What opening a URL takes (see polars' `storage_options`).
    part
        Which of how many equal parts of its rows are read: number k of n, counted from 0.
    """

    place: str
    name: str
    columns: tuple[str, ...]
    options: Mapping[str, str] | None = attrs.field(default=None, repr=False)  # keys of a store may be among them
    part: tuple[int, int] = (0, 1)

    @classmethod
    def open(
        cls, place: str, name: str, options: Mapping[str, str] | None = None, part: tuple[int, int] = (0, 1)
    ) -> ParquetFile:
        """Read the names of the columns.

        Raises
        ------
        InputError
            If it is no Parquet file.
        """
        unread = cls(place, name, (), options, part)
        columns = quietly(lambda: tuple(unread._scan().collect_schema()), unread._broken)
        return attrs.evolve(unread, columns=columns)

    def blocks(self, positions: Sequence[int]) -> Iterator[list[pl.Series]]:
        """Yield the columns at some positions, block by block; of a file without rows, one block without rows.

        Raises
        ------
        InputError
            If the file is damaged; one sentence that shows no cell.
        """
        import polars as pl

        names = [self.columns[k] for k in positions]
        asked = self._scan().select(names)
        rows = quietly(lambda: int(self._scan().select(pl.len()).collect().item()), self._broken)
        most = min(max(BLOCK_CELLS // len(names), FEWEST_ROWS), MOST_ROWS)
        k, n = self.part
        first, end = rows * k // n, rows * (k + 1) // n
        for low in range(first, end, most) or [first]:
            number = min(most, end - low)
            frame = quietly(functools.partial(_collected, asked, low, number), self._broken)
            if frame.height != number:
                raise InputError(self._broken)
            yield [frame[name] for name in names]

    @property
    def _broken(self) -> str:
        return f"{self.name}: cannot be read as Parquet; the file is damaged or of another kind"

    def _scan(self) -> pl.LazyFrame:
        import polars as pl

        options = None if self.options is None else dict(self.options)
        return pl.scan_parquet(self.place, glob=False, hive_partitioning=False, storage_options=options)


def _collected(frame: pl.LazyFrame, low: int, rows: int) -> pl.DataFrame:
    return frame.slice(low, rows).collect()
