"""The hooks that a plugin may implement. Each takes no arguments, and returns a list of components."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pluggy

hookspec = pluggy.HookspecMarker("dpframework")
#: The decorator that marks a function of a plugin as the implementation of a hook.
hookimpl = pluggy.HookimplMarker("dpframework")


@hookspec
def dpframework_miners() -> list[type[Any] | EntryPoint]:  # type: ignore[empty-body]
    """Return miner classes, or entry points named like the miners. An entry point is imported when first used."""


@hookspec
def dpframework_mechanisms() -> list[type[Any] | EntryPoint]:  # type: ignore[empty-body]
    """Return mechanism classes, or entry points named like the mechanisms."""


@hookspec
def dpframework_accountants() -> list[type[Any]]:  # type: ignore[empty-body]
    """Return accountant classes."""


@hookspec
def dpframework_engines() -> list[type[Any]]:  # type: ignore[empty-body]
    """Return engine classes."""


@hookspec
def dpframework_checks() -> list[Any]:  # type: ignore[empty-body]
    """Return checks of plans."""


@hookspec
def dpframework_observers() -> list[Any]:  # type: ignore[empty-body]
    """Return observers of charges and releases."""
