"""Observers of a run. Progress bars, ledgers and transcripts use them to follow every charge and release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dpframework.run.release_scope import Charge


@attrs.frozen
class Release:
    """One release of a run, as observers see it.

    Attributes
    ----------
    charge
        The charge for the release.
    inputs
        The public inputs that the query was given, by name.
    output
        The output that the mechanism drew: numbers, or the position of the selected candidate.
    value
        The value that the miner received: the numbers, or the selected candidate.
    """

    charge: Charge
    inputs: Mapping[str, Any]
    output: Any
    value: Any


class Observer:
    """The base class of observers. Override `charged`, `released` or both; a run calls them at each charge and release.

    Each observer gets its own read-only copy. Writing to an array raises `ValueError`. Any other change has no effect
    on the miner, the ledger or other observers. An exception in an observer stops the run, since a release must not
    follow a charge that could not be recorded. The error names the observer.
    """

    def hears(self, event: str) -> bool:
        """Tell whether the observer overrides the method `event`, which is "charged" or "released"."""
        return getattr(getattr(self, event), "__func__", None) is not getattr(Observer, event)

    def charged(self, charge: Charge) -> None:
        """Handle a charge. The run calls this before it draws the release."""

    def released(self, release: Release) -> None:
        """Handle a release."""
