"""The replay of an example's witnesses: tables and outputs for which the example's author expects a large loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import attrs
import numpy as np

from dpframework.run.miner_base_and_examples import Witness
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.replay_on_other_table import Weigher, replay
from dpframework.verify.miners.transcript import Transcript
from dpframework.verify.miners.worst_transcript_search import worst_transcript
from dpframework.verify.tables.neighbours import Rows


@final
@attrs.frozen(eq=False)
class WitnessReplay:
    """The findings on one witness: its loss, and how the miner's runs differ, if they do.

    Attributes
    ----------
    subject
        The miner on a schema under a relation, with the witness's kinds of rows.
    tables
        The two tables. The first is the one on which the transcript was recorded.
    transcript
        The record of the run with the witness's outputs.
    loss
        The realised loss: the absolute log-ratio of the probabilities of the transcript's outputs on the two tables.
    divergence
        How a run of the miner with these outputs differs on the two tables; None if it does not.
    """

    subject: Subject
    tables: tuple[Rows, Rows]
    transcript: Transcript
    loss: float
    divergence: str | None


def replay_witness(subject: Subject, witness: Witness, rng: np.random.Generator) -> WitnessReplay:
    """Replay a witness in both directions, and return what the direction with the larger loss shows.

    The witness must be under the subject's relation, since it shows nothing about other relations. For a unit of k
    rows, the row that differs is repeated k times. The shared rows are tried once as they are and once repeated k
    times. With the repeated rows, counts are k times as large, and so is the noise for a unit of k rows. So the losses
    equal those for one row. Repeated rows beyond the schema's bound on rows are left out.
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
            found.append(WitnessReplay(of_rows, (here, there), transcript, loss, next(filter(None, differs), None)))
    return max(found, key=lambda shown: shown.loss)
