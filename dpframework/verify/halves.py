"""An engine for small tables that counts on two blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from dpframework.tables.blocks import Block
from dpframework.verify.small_tables import Held, SmallTables


@final
class Halves(SmallTables):  # type: ignore[misc]  # final, for all but this
    """An engine that counts on two blocks, one part of the rows and the rest."""

    def map(self, rows: Held, function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate on both blocks."""
        block, middle = rows.block(self.universe), len(rows.rows) // 2
        return [function(block.at(half)) for half in (block.index[:middle], block.index[middle:])]
