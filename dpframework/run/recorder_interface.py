"""The interface of a recorder of runs, such as a ledger's run."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from dpframework.mechanisms.randomness import Randomness
from dpframework.plan.plan import Plan
from dpframework.run.observers import Observer
from dpframework.tables.engine_base import Engine

if TYPE_CHECKING:
    from dpframework.run.gate import Gate


class Recorder(Protocol):
    """Records one run, and charges its plan before the first release."""

    @property
    def id(self) -> str:
        """The run's name in the record."""

    @property
    def head(self) -> str:
        """The hash of the record's last entry about this run. An older copy of the record does not hold this entry."""

    @property
    def key(self) -> bytes:
        """The key by which the rows of each privacy unit are chosen."""

    @property
    def period(self) -> str:
        """The period whose rows the run reads; empty for a study without periods."""

    @property
    def resumable(self) -> bool:
        """Whether the run may be resumed, and so needs the same rows, read with the run's key."""

    @property
    def continues(self) -> bool:
        """Whether the run has made releases before it was resumed, and goes on to make others."""

    def recording(self, plan: Plan, randomness: Randomness) -> AbstractContextManager[None]:
        """Return a context that refuses a plan that may not be run, and records how the block of `with` ends.

        Raises
        ------
        PlanRefused
            If the plan may not be run.
        """

    def gate(self, engine: Engine, randomness: Randomness, observers: Iterable[Observer]) -> Gate:
        """Return the gate through which the run's releases go."""

    def read(self) -> None:
        """Record that the table is going to be read. This comes first, since the rows may decide how the reading ends.

        Raises
        ------
        PlanRefused
            If the plan may not be run any more.
        """

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
