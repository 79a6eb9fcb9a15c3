"""Engines for small tables: one counts two blocks, the other counts cross tables that queries name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from dpframework.tables.blocks import Block
from dpframework.verify.tables.reference_engines import by_tables
from dpframework.verify.tables.small_table_handles import RowsHandle, SmallTables


@final
class Halves(SmallTables):  # type: ignore[misc]  # final for all but the kit's own engines
    """An engine that counts two blocks, the first half of the rows and the rest."""

    def map(self, rows: RowsHandle, function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate the function on both blocks."""
        block, middle = rows.block(self.universe), len(rows.rows) // 2
        return [function(block.at(half)) for half in (block.index[:middle], block.index[middle:])]


@final
class CountedTables(SmallTables):  # type: ignore[misc]  # final for all but the kit's own engines
    """An engine that counts the cross tables that queries name, as a database does."""

    def counts(self, rows: RowsHandle, functions: Sequence[Callable[[Block], Any]]) -> list[Any]:
        """Return the counts of each function, computed from cross tables if it names any."""
        return super().counts(rows, by_tables(functions))
