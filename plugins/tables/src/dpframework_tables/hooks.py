"""The miner that this plugin adds to dpframework."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from dpframework.study import hookimpl


@hookimpl
def dpframework_miners() -> list[EntryPoint]:
    """Return the entry point of synthetic tables."""
    return [EntryPoint("synthetic-table", "dpframework_tables.miner:SyntheticTable", "dpframework")]
