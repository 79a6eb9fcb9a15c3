"""Witnesses, tables and outputs from an example, replayed and weighed like those that a search finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import attrs
import numpy as np

from dpframework.run.miner import Witness
from dpframework.verify.adversary import worst_transcript
from dpframework.verify.replay import Weigher, replay
from dpframework.verify.subject import Subject
from dpframework.verify.tables import Rows
from dpframework.verify.transcript import Transcript


@final
@attrs.frozen(eq=False)
class Witnessed:
    """The losses that a witness shows.

    Attributes
    ----------
    subject
        What is audited, with the witness's kinds of rows.
    tables
        The two tables.
    transcript
        The outputs.
    loss
        The realised loss.
    divergence
        How the miner, run with these outputs, differs on the two tables; None if it does not.
    """

    subject: Subject
    tables: tuple[Rows, Rows]
    transcript: Transcript
    loss: float
    divergence: str | None


def replay_witness(subject: Subject, witness: Witness, rng: np.random.Generator) -> Witnessed:
    """Replay a witness, and return the larger loss of its outputs of the two directions.

    A witness under another relation than the subject's shows nothing of it. For a unit of several rows, the row that
    the tables differ in comes as often. The shared rows are tried as they are and as often, too: a count or a norm of
    counts, k times as large on tables k times as large, is calibrated for units of k rows with k times the noise, so
    that all losses are those of a row. Where the schema bounds the number of rows, those beyond it are left out.
    """
    kinds: dict[tuple[tuple[str, object], ...], Mapping[str, Any]] = {}

    def number(row: Mapping[str, Any]) -> bytes:
        key = tuple(sorted(row.items()))
        kinds.setdefault(key, row)
        return bytes((list(kinds).index(key),))

    shared = b"".join(number(row) * times for row, times in witness.shared)
    times, bound = subject.by.rows, subject.schema.row_bound
    alone = [b"" if row is None else number(row) * times for row in (witness.one, witness.other)]
    of_rows = attrs.evolve(subject, kinds=tuple(kinds.values()))
    found = []
    for often in {1, times}:
        rows = (shared * often)[: None if bound is None or times == 1 else max(bound - times, 0)]
        one, other = (rows + row for row in alone)
        for here, there in ((one, other), (other, one)):
            transcript, _ = worst_transcript(of_rows, here, there, rng, witness.outputs)
            loss = Weigher(of_rows, transcript).loss(here, there)
            differs = (replay(of_rows, transcript, table).divergence for table in (here, there))
            found.append(Witnessed(of_rows, (here, there), transcript, loss, next(filter(None, differs), None)))
    return max(found, key=lambda shown: shown.loss)
