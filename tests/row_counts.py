"""Runs in which a test chooses the number of rows that is released."""

from __future__ import annotations

from typing import Any

import pytest

import dpframework as dpf


def choose_row_count(monkeypatch: pytest.MonkeyPatch, released: int) -> list[tuple[str, Any]]:
    """Let steps named "rows" release this number. Return the releases that are asked for, with inputs, as they come."""
    asked, release = list[tuple[str, Any]](), dpf.PrivateTable.release

    def seen(self: dpf.PrivateTable, name: str, **inputs: Any) -> Any:
        asked.append((name, inputs))
        made = release(self, name, **inputs)
        return released if name == "rows" else made

    monkeypatch.setattr(dpf.PrivateTable, "release", seen)
    return asked
