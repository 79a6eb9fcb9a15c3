"""What Serenade is compared with, and how it is run where one parameter follows from another."""

from __future__ import annotations

from typing import Any

from dpframework_greedy import greedy_without_privacy

import dpframework as dpf
from dpframework.redescriptions.redescriptions import Redescriptions

EXTENSIONS = 4  # of a pair, in the paper


def greedy(table: dpf.Table, *, seed: int, **settings: Any) -> Redescriptions:
    """Return what greedy mining finds by exact counts: not private, and nothing of it is random.

    Settings are those of `dpframework_greedy.greedy_without_privacy`.
    """
    return greedy_without_privacy(table, **settings)


def engine_side(table: dpf.Table, *, seed: int, epsilon: float, pairs: int, **params: Any) -> Redescriptions:
    """Plan, check and run `serenade-es` with four rounds of extensions a pair, and a maximum age of two a pair.

    Other parameters are the miner's.
    """
    study = dpf.Study(table.schema, epsilon=epsilon)
    params |= {"score": "logistic", "pairs": pairs, "rounds": EXTENSIONS * pairs, "max_age": 2 * pairs}
    study.add("found", dpf.miner("serenade-es", epsilon=epsilon, **params))
    found: Redescriptions = study.run(table, seed=seed)["found"]
    return found
