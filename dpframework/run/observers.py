"""Observers, who are told of every charge and release of a run, for progress, ledgers and transcripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dpframework.run.scope import Charge


@attrs.frozen
class Release:
    """An output that has left the private side.

    Attributes
    ----------
    charge
        What was charged for it.
    inputs
        The public inputs that the query was given.
    output
        What the mechanism drew: numbers, or the position of a candidate.
    value
        What the miner received: the output, or the candidate at that position.
    """

    charge: Charge
    inputs: Mapping[str, Any]
    output: Any
    value: Any


class Observer:
    """Is told of every charge, before its release is drawn, and of every release. Override the methods you need.

    An observer that raises stops the run: a charge that cannot be recorded must not be followed by its release.
    """

    def charged(self, charge: Charge) -> None:
        """Take note of a charge, before its release is drawn."""

    def released(self, release: Release) -> None:
        """Take note of a release."""
