"""Journals that a killed process left after it had written the results."""

from __future__ import annotations

import contextlib
from pathlib import Path

from dpframework.facts.interrupts import interrupted_later
from dpframework.ledger.chain import Chain
from dpframework.ledger.journal import Journal
from dpframework.ledger.key import journal_key
from dpframework.ledger.records import Records


def remove_journal_of(chain: Chain, data_set: str, at: Path, run: str) -> None:
    """Remove a journal if it is of a run that has ended.

    Parameters
    ----------
    chain, data_set
        Where the run is recorded.
    at
        The journal.
    run
        The id of the run whose results are there.

    Raises
    ------
    InputError
        If another process has the journal, or it cannot be read.
    """
    if not at.exists():
        return
    key = journal_key(chain, make=False)
    with contextlib.ExitStack() as leaving:
        with interrupted_later():
            journal = Journal(at, key)
            leaving.callback(journal.close)
        owner = journal.owner
        with chain.reading() as transaction:
            recorded = Records(chain.path, transaction.read()).data_set(data_set).runs.get(run)
        if owner is not None and owner.run == run and recorded is not None and recorded.end is not None:
            journal.remove()
