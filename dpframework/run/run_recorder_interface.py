"""The interface of recorders: objects that record a run, such as a `LedgerRun`, which records it in a ledger."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from dpframework.mechanisms.randomness import Randomness
from dpframework.plan.plan import Plan
from dpframework.run.observers import Observer
from dpframework.tables.engine_base import Engine

if TYPE_CHECKING:
    from dpframework.run.gate import Gate


class Recorder(abc.ABC):
    """Records one run, and charges its plan before the first release.

    A run accepts subclasses only. Another object that happens to have these methods may charge nothing, although the
    results would say that they were charged to it.

    Attributes
    ----------
    id
        The id of the run in the record.
    key
        The secret key that decides which rows each privacy unit keeps.
    """

    id: str
    key: bytes

    @property
    @abc.abstractmethod
    def head(self) -> str:
        """The hash of the record's last entry about this run, by which an older copy of the record can be detected."""

    @property
    @abc.abstractmethod
    def period(self) -> str:
        """The period whose rows the run reads; empty for a study without periods."""

    @property
    @abc.abstractmethod
    def resumable(self) -> bool:
        """Whether the run may be resumed. A resumed run must read the same rows, with the run's key."""

    @property
    @abc.abstractmethod
    def continues(self) -> bool:
        """Whether this is a resumed run that made releases before it was interrupted."""

    @abc.abstractmethod
    def recording(self, plan: Plan, randomness: Randomness) -> AbstractContextManager[None]:
        """Return a context that refuses a plan that may not be run, and that records how the `with` block ends.

        Raises
        ------
        PlanRefused
            If the plan may not be run.
        """

    @abc.abstractmethod
    def gate(self, engine: Engine, randomness: Randomness, observers: Iterable[Observer]) -> Gate:
        """Return the gate through which the run's releases go. It has a `recorder`, which is told of each charge."""

    @abc.abstractmethod
    def read(self) -> None:
        """Record that the table will now be read. This is recorded first, since the rows may decide how reading ends.

        Raises
        ------
        PlanRefused
            If the plan may no longer be run.
        """

    @abc.abstractmethod
    def refused(self, why: str) -> None:
        """Record that reading the table failed, so that the run ended before its charge. `why` is the kind of failure.

        Raises
        ------
        PlanRefused
            If the plan may no longer be run.
        """

    @abc.abstractmethod
    def open(self) -> None:
        """Charge the whole plan.

        Raises
        ------
        PlanRefused
            If the plan may no longer be run.
        """
