"""Serenade, greedy redescription mining for dpframework."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from dpframework.study import hookimpl

if TYPE_CHECKING:
    from dpframework_greedy.nonprivate import greedy_without_privacy
    from dpframework_greedy.serenade import SerenadeCS, SerenadeES

__all__ = ["SerenadeCS", "SerenadeES", "greedy_without_privacy"]


@hookimpl
def dpframework_miners() -> list[EntryPoint]:
    """Bring the miners."""
    miners = {"serenade-cs": "SerenadeCS", "serenade-es": "SerenadeES"}
    return [EntryPoint(name, f"dpframework_greedy.serenade:{kind}", "dpframework") for name, kind in miners.items()]


@hookimpl
def dpframework_mechanisms() -> list[type[Any]]:
    """Bring the mechanism of successive choices."""
    from dpframework_greedy.choices import SuccessiveExponential

    return [SuccessiveExponential]


def __getattr__(name: str) -> Any:
    if name in ("SerenadeCS", "SerenadeES"):
        from dpframework_greedy import serenade

        return getattr(serenade, name)
    if name == "greedy_without_privacy":
        from dpframework_greedy.nonprivate import greedy_without_privacy

        return greedy_without_privacy
    raise AttributeError(f"module 'dpframework_greedy' has no attribute {name!r}")
