"""The optional journal of one run. It is opened when it is needed, and removed when it is not needed any more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, final

from dpframework.facts.interrupts import delay_interrupts
from dpframework.ledger.chain import Chain
from dpframework.ledger.journal_key_file import journal_key
from dpframework.ledger.release_journal import Journal, Owner, StoredRelease, remove


@final
class RunJournal:
    """The journal of a run. If the run has no journal, the methods do nothing.

    Parameters
    ----------
    chain
        The chain of the ledger.
    at
        The file of the journal, which need not exist yet; None if the run has no journal.

    Attributes
    ----------
    disposable
        Whether nothing was charged or released. Then `leave` removes the file.
    """

    def __init__(self, chain: Chain, at: Path | None) -> None:
        self.at = at
        self.disposable = False
        self._chain = chain
        self._opened: Journal | None = None

    @property
    def opened(self) -> bool:
        """Whether this process has opened and locked the journal."""
        return self._opened is not None

    def open(self, *, make: bool) -> None:
        """Open the journal if it is not open yet. An interrupt (Ctrl-C) is delayed until the run can close the journal.

        Parameters
        ----------
        make
            Whether to make the file if it does not exist. If False, a missing journal stays closed.

        Raises
        ------
        InputError
            If another process has the journal open, or it cannot be used.
        """
        if self.at is None or self.opened or not (make or self.at.exists()):
            return
        self.disposable = make
        key = journal_key(self._chain, make=make)
        with delay_interrupts():
            self._opened = Journal(self.at, key)

    @property
    def owner(self) -> Owner | None:
        """The run to which the journal belongs; None if it belongs to no run yet, or is not open."""
        return None if self._opened is None else self._opened.owner

    def claim(self, owner: Owner) -> None:
        """Store which run's releases the journal will hold, if it belongs to no run yet."""
        if self._opened is not None and self._opened.owner is None:
            self._opened.claim(owner)
        self.disposable = False

    def releases(self, run: str, classes: Iterable[type[Any]]) -> Mapping[int, StoredRelease]:
        """Return the stored releases by their numbers (see `Journal.releases`)."""
        return {} if self._opened is None else self._opened.releases(run, classes)

    def keep(self, run: str, number: int, path: str, origin: str, output: str) -> None:
        """Store an output (see `Journal.keep`)."""
        if self._opened is not None:
            self._opened.keep(run, number, path, origin, output)

    def leave(self) -> None:
        """Close the journal if it is open, and remove it if it is disposable."""
        if self._opened is None:
            return
        with delay_interrupts():
            if self.disposable:
                self._opened.remove()
            else:
                self._opened.close()

    def remove(self) -> None:
        """Remove the file. The run must have ended and closed it."""
        if self.at is not None:
            remove(self.at)

    @contextlib.contextmanager
    def visited(self) -> Iterator[Journal | None]:
        """Open the journal for the `with` block, and yield it; None if there is no such file."""
        if self.at is None or not self.at.exists():
            yield None
            return
        key = journal_key(self._chain, make=False)
        with contextlib.ExitStack() as leaving:
            with delay_interrupts():
                journal = Journal(self.at, key)
                leaving.callback(journal.close)
            yield journal
