"""What a run needs of whoever records it; a ledger's run is one such."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from dpframework.mechanisms.randomness import Randomness
from dpframework.plan.plan import Plan
from dpframework.run.gate import Gate
from dpframework.run.observers import Observer
from dpframework.tables.engines import Engine


class Recorder(Protocol):
    """Records one run, and charges its plan before the first release."""

    @property
    def id(self) -> str:
        """The run's name in the record."""

    @property
    def head(self) -> str:
        """The hash of the record's last entry about this run: who keeps it sees whether the record was put back."""

    @property
    def key(self) -> bytes:
        """What the rows of each privacy unit are chosen by."""

    @property
    def resumable(self) -> bool:
        """Whether the run may be resumed, and so needs a table of the same rows: one that was read with its key."""

    @property
    def continues(self) -> bool:
        """Whether the run has made releases before it was resumed, and goes on to make others."""

    def recording(self, plan: Plan, randomness: Randomness) -> AbstractContextManager[None]:
        """Refuse a plan that may not be run, and record how the block ends.

        Raises
        ------
        PlanRefused
            If the plan may not be run.
        """

    def gate(self, engine: Engine, randomness: Randomness, observers: Iterable[Observer]) -> Gate:
        """Return the gate that the run's releases go through."""

    def refused(self, why: str) -> None:
        """Record that reading the table ended the run before its charge, and which kind of failure it was.

        Raises
        ------
        PlanRefused
            If the plan may not be run any more.
        """

    def open(self) -> None:
        """Charge the whole plan.

        Raises
        ------
        PlanRefused
            If the plan may not be run any more.
        """
