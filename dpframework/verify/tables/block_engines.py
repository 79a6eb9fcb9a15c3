"""Engines for small tables that count on two blocks, or the cross tables that queries name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from dpframework.tables.blocks import Block
from dpframework.verify.tables.compared_engines import by_tables
from dpframework.verify.tables.small_tables import Held, SmallTables


@final
class Halves(SmallTables):  # type: ignore[misc]  # final, for all but this
    """An engine that counts on two blocks, one part of the rows and the rest."""

    def map(self, rows: Held, function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate on both blocks."""
        block, middle = rows.block(self.universe), len(rows.rows) // 2
        return [function(block.at(half)) for half in (block.index[:middle], block.index[middle:])]


@final
class CountedTables(SmallTables):  # type: ignore[misc]  # final, for all but such
    """An engine that counts the cross tables that queries name, as a database does."""

    def counts(self, rows: Held, functions: Sequence[Callable[[Block], Any]]) -> list[Any]:
        """Count by the tables where they are named."""
        return super().counts(rows, by_tables(functions))
