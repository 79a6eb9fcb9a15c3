"""Replays of runs on other schemas and with other parameters than the examples'.

A miner may look at its rows only where cells may be missing, or print exact counts only if a flag is set. The audit
replays runs of the examples alone. So one run on each related schema, and with each related parameter, is replayed on
a few tables. These runs, too, must follow from their releases alone.
"""

from __future__ import annotations

import numpy as np

from dpframework.facts.installed_package_digests import CORE
from dpframework.verify.file_read_and_write_watch import watch_data_files
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.behaviour_from_releases_check import Behaviour
from dpframework.verify.miners.query_trace import fit_rows
from dpframework.verify.miners.transcript import record
from dpframework.verify.plugin_code_constants import is_foreign_module
from dpframework.verify.search_time_limit import Patience

MOST_NEIGHBOURS = 2  # on how many neighbours a run is replayed


def run_problems(subject: Subject, seed: int, patience: Patience) -> list[str]:
    """Replay one run on a few tables, and return a text for each way in which it depends on more than its releases.

    A run that fails is no problem, since the miner need not run on a schema, or with a parameter, that no example has.
    The table of the run has a row of every kind, so that few runs fail. A loss is no problem, either. If a query does
    not depend on the schema, it may be meant for the example's attributes alone. The sensitivity of any other query is
    searched by `StepChecks`.

    Parameters
    ----------
    subject
        The miner, schema and relation. The schema or a parameter of the miner differs from the example's.
    seed
        The seed of the tables and draws.
    patience
        When this is over, no further tables are tried.
    """
    behaviour = Behaviour(subject, np.random.default_rng(seed), patience, memory=False)
    most = behaviour.sizes.most if subject.plan.index.samples else subject.universe.kinds
    table = fit_rows(subject, bytes(range(subject.universe.kinds))[:most])
    transcript = record(subject, table, seed)
    if transcript.outcome.error is None:
        behaviour.examine(table, transcript, MOST_NEIGHBOURS)
    return [str(found) for kind, found in behaviour.violations.items() if kind != "loss"]


def files_of_plan(subject: Subject) -> list[str]:
    """Return a text for each file of data that a miner's plan opens, since a plan must be made of public facts alone.

    Such a file may have been made from the table. Its contents are in no parameter, so a reader of the plan does not
    see them.
    """
    kinds = [kind for kind in type(subject.miner).__mro__ if is_foreign_module(kind.__module__)]
    with watch_data_files([CORE, *(kind.__module__.partition(".")[0] for kind in kinds)]) as files:
        subject.miner.plan(subject.schema)
    return [
        f"the plan of '{subject.miner.name}' opens {name}; a plan must follow from schema and parameters alone, so "
        "give the miner what the file says as a parameter, or ship the file with the plugin's package"
        for name in sorted(files)
    ]
