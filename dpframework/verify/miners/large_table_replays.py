"""Replays on tables that are too large for a search: many rows of every kind, and billions of equal rows.

On small tables, and on many rows of one kind, no two counts are large at the same time. So a run that looks at the
smallest of its exact counts does the same on all these tables. Other code does something else only for millions of
rows.
"""

from __future__ import annotations

import time

from dpframework.verify.miners.behaviour_from_releases_check import Behaviour, kind_of
from dpframework.verify.miners.neighbour_pair_search import last_before
from dpframework.verify.miners.replay_on_other_table import TranscriptReplay, replay
from dpframework.verify.miners.transcript import Transcript
from dpframework.verify.queries.simulated_large_tables import MOST, Copies, counts_only
from dpframework.verify.tables.neighbours import Rows

FIRST, GROWTH = 1 << 16, 8  # how many equal rows are simulated at first, and how many times more in each further run
LONGEST = 0.1  # if a run takes more processor seconds, no larger table is simulated


def examine_every_kind(behaviour: Behaviour, transcript: Transcript, most: int) -> None:
    """Replay a transcript, the record of a run, on a large table in which each kind of row occurs equally often.

    This is left out where no chain of neighbours leads from the small recorded table to a larger one.

    Parameters
    ----------
    behaviour
        The replays of a miner's runs, to which a violation is added.
    transcript
        The transcript of a run on a small table.
    most
        The number of rows of the table.
    """
    subject = behaviour.subject
    if behaviour.keeps_size or behaviour.patience.over:
        return

    def table(size: int) -> Rows:
        return (bytes(range(subject.universe.kinds)) * (size // subject.universe.kinds + 1))[:size]

    def there(size: int) -> TranscriptReplay:
        behaviour.reruns += 1
        return replay(subject, transcript, table(size))

    if there(most).divergence is None or there(0).divergence is not None:
        return
    low = last_before(lambda size: there(size).divergence is not None, most)
    found = there(low + 1)
    behaviour.add(kind_of(found), f"on a neighbour, {found.divergence}", table(low), table(low + 1), transcript)


def examine_billions(behaviour: Behaviour, transcript: Transcript) -> None:
    """Replay a transcript on simulated tables of up to billions of equal rows (see `simulated_large_tables`).

    This is left out if a query of the plan needs more than counts, or if the schema bounds the number of rows.

    Parameters
    ----------
    behaviour, transcript
        See `examine_every_kind`.
    """
    subject, row = behaviour.subject, bytes(1)
    counted = all(counts_only(step.query) for step in subject.plan.steps())
    bounded = behaviour.keeps_size or subject.schema.row_bound is not None
    if bounded or not counted or subject.plan.index.samples or subject.plan.reads_units or behaviour.patience.over:
        return

    def there(copies: int) -> TranscriptReplay:
        behaviour.reruns += 1
        return replay(subject, transcript, row if copies else b"", Copies(subject.universe, copies))

    def differs(copies: int) -> bool:
        return there(copies).divergence is not None

    most, started = FIRST, time.process_time()
    if differs(0):
        return
    while not differs(most):
        # A mechanism's time and memory may grow with the counts that it is given.
        slow = time.process_time() - started > LONGEST
        if slow or most == MOST or behaviour.patience.over:
            return
        most, started = min(GROWTH * most, MOST), time.process_time()
    low = last_before(differs, most)
    found = there(low + 1)
    what = f"on a neighbour of a table of {low:,} equal rows, {found.divergence}"
    behaviour.add(kind_of(found), what, row, row, transcript)
