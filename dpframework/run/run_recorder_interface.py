"""The interface of recorders: objects that record a run, such as the run of a ledger."""

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
        """The id of the run in the record."""

    @property
    def head(self) -> str:
        """The hash of the record's last entry about this run, by which an older copy of the record can be detected."""

    @property
    def key(self) -> bytes:
        """The secret key that decides which rows each privacy unit keeps."""

    @property
    def period(self) -> str:
        """The period whose rows the run reads; empty for a study without periods."""

    @property
    def resumable(self) -> bool:
        """Whether the run may be resumed. A resumed run must read the same rows, with the run's key."""

    @property
    def continues(self) -> bool:
        """Whether this is a resumed run that made releases before it was interrupted."""

    def recording(self, plan: Plan, randomness: Randomness) -> AbstractContextManager[None]:
        """Return a context that refuses a plan that may not be run, and that records how the `with` block ends.

        Raises
        ------
        PlanRefused
            If the plan may not be run.
        """

    def gate(self, engine: Engine, randomness: Randomness, observers: Iterable[Observer]) -> Gate:
        """Return the gate through which the run's releases go."""

    def read(self) -> None:
        """Record that the table will now be read. This is recorded first, since the rows may decide how reading ends.

        Raises
        ------
        PlanRefused
            If the plan may no longer be run.
        """

    def refused(self, why: str) -> None:
        """Record that reading the table failed, so that the run ended before its charge. `why` is the kind of failure.

        Raises
        ------
        PlanRefused
            If the plan may no longer be run.
        """

    def open(self) -> None:
        """Charge the whole plan.

        Raises
        ------
        PlanRefused
            If the plan may no longer be run.
        """
