"""Observers, who are told of every charge and release of a run, for progress, ledgers and transcripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dpframework.run.release_scope import Charge


@attrs.frozen
class Release:
    """An output that has left the private side.

    Attributes
    ----------
    charge
        The charge for the release.
    inputs
        The public inputs that the query was given, by name.
    output
        The output that the mechanism drew: numbers, or the position of a candidate.
    value
        The value that the miner received: the output, or the candidate at that position.
    """

    charge: Charge
    inputs: Mapping[str, Any]
    output: Any
    value: Any


class Observer:
    """Is told of every charge, before its release is drawn, and of every release. Override the methods you need.

    Each observer gets a read-only copy of its own. Writing to an array raises `ValueError`, and a change of anything
    else has no effect on the miner, the ledger or other observers. An observer that raises an exception stops the run,
    and the error names the observer. A charge that cannot be recorded must not be followed by its release.
    """

    def hears(self, event: str) -> bool:
        """Tell whether the observer overrides the method for an event, "charged" or "released"."""
        return getattr(getattr(self, event), "__func__", None) is not getattr(Observer, event)

    def charged(self, charge: Charge) -> None:
        """Take note of a charge, before its release is drawn."""

    def released(self, release: Release) -> None:
        """Take note of a release."""
