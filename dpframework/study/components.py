"""What comes with dpframework, brought through the hooks that plugins use."""

from __future__ import annotations

from typing import Any

from dpframework import accountant, basics, checks, mechanisms
from dpframework.study.hookspecs import hookimpl
from dpframework.tables.built_in import BUILT_IN as ENGINES


@hookimpl(tryfirst=True)
def dpframework_miners() -> list[type[Any]]:
    """Return the miners of everyday questions."""
    return list(basics.BUILT_IN)


@hookimpl(tryfirst=True)
def dpframework_mechanisms() -> list[type[Any]]:
    """Return the mechanisms of the core."""
    return list(mechanisms.BUILT_IN)


@hookimpl(tryfirst=True)
def dpframework_accountants() -> list[type[Any]]:
    """Return the accountants of the core, of which the first ones win a tie."""
    return list(accountant.BUILT_IN)


@hookimpl(tryfirst=True)
def dpframework_engines() -> list[type[Any]]:
    """Return the engines of the core."""
    return list(ENGINES)


@hookimpl(tryfirst=True)
def dpframework_checks() -> list[Any]:
    """Return the checks of the core."""
    return list(checks.BUILT_IN)


@hookimpl(tryfirst=True)
def dpframework_observers() -> list[Any]:
    """Return nothing: the core observes no run."""
    return []
