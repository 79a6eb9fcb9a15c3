"""Axes that draw nothing, and tell what they were asked to draw."""

from __future__ import annotations

from typing import Any


class Axes:
    """Axes that remember what they are asked to draw."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.figure = self

    def __getattr__(self, name: str) -> Any:
        return lambda *of, **options: self.calls.append((name, of, options))

    def of(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(of, options) for called, of, options in self.calls if called == name]
