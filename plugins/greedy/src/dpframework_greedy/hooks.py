"""The miners and the mechanism that this plugin adds to dpframework."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

from dpframework.study import hookimpl


@hookimpl
def dpframework_miners() -> list[EntryPoint]:
    """Return the entry points of the miners."""
    miners = {"serenade-cs": "SerenadeCS", "serenade-es": "SerenadeES"}
    return [EntryPoint(name, f"dpframework_greedy.serenade:{kind}", "dpframework") for name, kind in miners.items()]


@hookimpl
def dpframework_mechanisms() -> list[type[Any]]:
    """Return the mechanism of successive choices."""
    from dpframework_greedy.successive_choices import SuccessiveExponential

    return [SuccessiveExponential]
