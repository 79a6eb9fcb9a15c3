"""The place of one run's journal, opened when it is needed and removed once nothing depends on it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, final

from dpframework.facts.interrupts import delay_interrupts
from dpframework.ledger.chain import Chain
from dpframework.ledger.journal import Journal, Owner, StoredRelease, remove
from dpframework.ledger.key import journal_key


@final
class RunJournal:
    """The journal of a run, which may have none. Its methods do nothing for a run that has none.

    Parameters
    ----------
    chain
        The ledger's.
    at
        Where the journal lies or will lie; None for a run that keeps none.

    Attributes
    ----------
    disposable
        Whether nothing was charged and nothing released, so that the file is removed when it is left.
    """

    def __init__(self, chain: Chain, at: Path | None) -> None:
        self.at = at
        self.disposable = False
        self._chain = chain
        self._opened: Journal | None = None

    @property
    def opened(self) -> bool:
        """Whether this process has it open, and so holds its lock."""
        return self._opened is not None

    def open(self, *, make: bool) -> None:
        """Open it unless it is open. An interrupt waits until the run can close it.

        Parameters
        ----------
        make
            Whether it is made if it does not exist; else it is left alone then.

        Raises
        ------
        InputError
            If another process has it, or it cannot be used.
        """
        if self.at is None or self.opened or not (make or self.at.exists()):
            return
        self.disposable = make
        key = journal_key(self._chain, make=make)
        with delay_interrupts():
            self._opened = Journal(self.at, key)

    @property
    def owner(self) -> Owner | None:
        """The run that it belongs to, None if that is none yet."""
        return None if self._opened is None else self._opened.owner

    def claim(self, owner: Owner) -> None:
        """Write down the run whose releases it will hold, unless that is written."""
        if self._opened is not None and self._opened.owner is None:
            self._opened.claim(owner)
        self.disposable = False

    def releases(self, run: str, classes: Iterable[type[Any]]) -> Mapping[int, StoredRelease]:
        """Return the stored releases by number (see `Journal.releases`)."""
        return {} if self._opened is None else self._opened.releases(run, classes)

    def keep(self, run: str, number: int, path: str, origin: str, output: str) -> None:
        """Store an output (see `Journal.keep`)."""
        if self._opened is not None:
            self._opened.keep(run, number, path, origin, output)

    def leave(self) -> None:
        """Close it if it is open, and remove it if it is disposable."""
        if self._opened is None:
            return
        with delay_interrupts():
            if self.disposable:
                self._opened.remove()
            else:
                self._opened.close()

    def remove(self) -> None:
        """Remove the file of a run that has ended and left it."""
        if self.at is not None:
            remove(self.at)

    @contextlib.contextmanager
    def visited(self) -> Iterator[Journal | None]:
        """Yield the journal that lies at the place, if any, for the block alone."""
        if self.at is None or not self.at.exists():
            yield None
            return
        key = journal_key(self._chain, make=False)
        with contextlib.ExitStack() as leaving:
            with delay_interrupts():
                journal = Journal(self.at, key)
                leaving.callback(journal.close)
            yield journal
