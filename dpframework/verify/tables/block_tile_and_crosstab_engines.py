"""Engines whose counts must equal those of other engines.

Some count from the cross tables that queries name. Others cut the rows into several blocks, or a block into several
tiles. Some are for tables as studies have them, and some for small made-up tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, final
from unittest import mock

from dpframework.tables.crosstab_expressions import joint_counts_of
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.in_process_engines import BlockEngine, Threads
from dpframework.verify.tables.small_table_engine import RowsHandle, SmallTables

ROWS_OF_TILE = 3  # so few that even a small table has several tiles


def by_tables(functions: Sequence[Callable[[Block], Any]]) -> list[Callable[[Block], Any]]:
    """Return functions with the same counts. Those that name cross tables now compute their counts from these."""
    named = [joint_counts_of(function) for function in functions]
    return [other if one is None else one.count for one, other in zip(named, functions, strict=True)]


@final
class ByTables(BlockEngine):
    """An engine that counts the cross tables of queries that name any, and counts other queries as usual."""

    name = "by-tables"

    def __init__(self) -> None:
        super().__init__(blocks=1)

    def map(self, rows: Sequence[Block], function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate the function on one block after another."""
        return [function(block) for block in rows]

    def counts(self, rows: Sequence[Block], functions: Sequence[Callable[[Block], Any]]) -> list[Any]:
        """Return the counts of each function, computed from cross tables if it names any."""
        return super().counts(rows, by_tables(functions))


@final
class Together(BlockEngine):
    """An engine with three blocks, each on a thread. Like a cluster, it is asked for several counts in one call."""

    name = "together"
    sends_messages = True

    def __init__(self) -> None:
        super().__init__(blocks=3)
        self._threads = Threads(3)

    def map(self, rows: Sequence[Block], function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate the function on all blocks at the same time."""
        return self._threads.map(rows, function)


@final
class Halves(SmallTables):  # type: ignore[misc]  # it is final except for these engines
    """An engine that counts two blocks, the first half of the rows and the rest."""

    def map(self, rows: RowsHandle, function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate the function on both blocks."""
        block, middle = rows.block(self.universe), len(rows.rows) // 2
        return [function(block.at(half)) for half in (block.index[:middle], block.index[middle:])]


@final
class SmallTiles(SmallTables):  # type: ignore[misc]  # it is final except for these engines
    """An engine that cuts blocks into tiles of at most `ROWS_OF_TILE` rows, so that a small block has several."""

    def map(self, rows: RowsHandle, function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate the function on the rows, which are one block of many tiles."""
        of_any_size = Block.tiles

        def tiles(block: Block, size: int = ROWS_OF_TILE) -> Iterator[Block]:
            return of_any_size(block, min(size, ROWS_OF_TILE))

        with mock.patch.object(Block, "tiles", tiles):
            return super().map(rows, function)


@final
class CountedTables(SmallTables):  # type: ignore[misc]  # it is final except for these engines
    """An engine that counts the cross tables that queries name, as a database does."""

    def counts(self, rows: RowsHandle, functions: Sequence[Callable[[Block], Any]]) -> list[Any]:
        """Return the counts of each function, computed from cross tables if it names any."""
        return super().counts(rows, by_tables(functions))
