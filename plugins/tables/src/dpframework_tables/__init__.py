"""Synthetic tables for dpframework."""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from dpframework.study import hookimpl

if TYPE_CHECKING:
    from dpframework_tables.miner import SyntheticTable
    from dpframework_tables.synthetic_rows import MeasuredMarginal, SyntheticRows

__all__ = ["MeasuredMarginal", "SyntheticRows", "SyntheticTable"]

_MODULES = {"MeasuredMarginal": "synthetic_rows", "SyntheticRows": "synthetic_rows", "SyntheticTable": "miner"}


@hookimpl
def dpframework_miners() -> list[EntryPoint]:
    """Bring synthetic tables."""
    return [EntryPoint("synthetic-table", "dpframework_tables.miner:SyntheticTable", "dpframework")]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"dpframework_tables.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'dpframework_tables' has no attribute {name!r}")
