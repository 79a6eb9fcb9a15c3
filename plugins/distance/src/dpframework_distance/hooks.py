"""The miner that this plugin adds to dpframework."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from dpframework.study import hookimpl


@hookimpl
def dpframework_miners() -> list[EntryPoint]:
    """Return the entry point of DP-DILCA."""
    return [EntryPoint("dp-dilca", "dpframework_distance.miner:DPDilca", "dpframework")]
