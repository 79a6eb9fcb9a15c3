"""How the paper runs its miners: from attributes that are drawn without looking at the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import dpframework as dpf
from dpframework.redescriptions.redescriptions import Redescriptions

ALLOWED = ("mcmc-converged",)


def from_drawn_starts(
    table: dpf.Table, *, seed: int, epsilon: float, miner: str, number: int, **params: Any
) -> Redescriptions:
    """Plan, check and run a miner from so many attributes, drawn anew in each run.

    Parameters
    ----------
    table
        The rows; attributes are drawn from its schema.
    seed
        Of the drawing and the run.
    epsilon
        The budget.
    miner
        Its name.
    number
        Of starting attributes: the paper's InTr.
    **params
        Of the miner.
    """
    drawing = np.random.default_rng([seed, number])  # not the stream of the run
    starts = drawing.choice(table.schema.names, number, replace=False).tolist()
    study = dpf.Study(table.schema, epsilon=epsilon, allow=ALLOWED)
    study.add("found", dpf.miner(miner, epsilon=epsilon, starts=starts, **params))
    found: Redescriptions = study.run(table, seed=seed)["found"]
    return found
