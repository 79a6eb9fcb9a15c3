"""What Serenade is compared with, and how it is run where one parameter follows from another."""

from __future__ import annotations

from typing import Any

from dpframework_greedy import greedy_without_privacy

import dpframework as dpf
from dpframework.results.redescriptions import Redescriptions

EXTENSIONS = 4  # of a pair, in the paper


def greedy(table: dpf.Table, *, seed: int, **settings: Any) -> Redescriptions:
    """Return what greedy mining finds by exact counts: not private.

    Parameters
    ----------
    table
        The rows, read freely.
    seed
        Not used: nothing is random.
    **settings
        See `dpframework_greedy.greedy_without_privacy`.
    """
    return greedy_without_privacy(table, **settings)


def engine_side(table: dpf.Table, *, seed: int, epsilon: float, pairs: int, **params: Any) -> Redescriptions:
    """Plan, check and run `serenade-es` with four rounds of extensions a pair, and a maximum age of two a pair.

    Parameters
    ----------
    table
        The rows.
    seed
        Of the run.
    epsilon
        The budget.
    pairs
        Initial pairs.
    **params
        Others of the miner.
    """
    study = dpf.Study(table.schema, epsilon=epsilon)
    params |= {"pairs": pairs, "rounds": EXTENSIONS * pairs, "max_age": 2 * pairs}
    study.add("found", dpf.miner("serenade-es", epsilon=epsilon, **params))
    found: Redescriptions = study.run(table, seed=seed)["found"]
    return found
