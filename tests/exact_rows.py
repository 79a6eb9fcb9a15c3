"""The exact rows behind a private table, as a dishonest miner reaches them: no public call gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dpframework as dpf


def held(table: dpf.PrivateTable) -> tuple[Any, Any]:
    """Return the engine that holds a table's rows, and its handle of them."""
    return table._gate.engine, table._rows


def look_at(table: dpf.PrivateTable, function: Callable[[dpf.Block], Any]) -> list[Any]:
    """Return a function of each block of a table's rows, without noise."""
    engine, rows = held(table)
    found: list[Any] = engine.map(rows, function)
    return found
