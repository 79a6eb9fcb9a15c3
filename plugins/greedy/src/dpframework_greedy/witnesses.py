"""Tables on which choices among redescriptions lose all that they claim: replayed before any search among small tables.

A choice loses most where the chosen pair's score moves one way as far as it can, and the score of a pair that is nearly
all of the normaliser moves the other way. Both need supports near the minimum support, and the second pair a score so
much higher that the first is never chosen in practice: no drawn output shows it. With a minimum support s of 1000, a
maximum support of 7000 and rows in both (I) and in at least one (U) of the supports:

- A row that is added raises a score most at I = U = s, and lowers one most at I = U = 1308. The row here is a wolf in
  rain and snow, and a moose without wind: it raises (wolf, rain) and (wolf, snow), and lowers (moose, wind), whose
  score is .88 where theirs is .50. Both choices lose, and so do the counts of both redescriptions.
- A row that is replaced raises a score most where it passes from one support to both, and lowers one by as much where
  it passes back: here from a wolf and a moose in the wind to a wolf and a moose in rain and snow. The nearer the two
  scores the larger their changes, and the smaller the share of the second pair.

Where pairs are scored in rows, a row moves a score by 1/2 up or down at any support: the same tables serve.

The rows of nothing keep the pairs of complements, which hold nearly everywhere, below the maximum support's weight.
"""

from __future__ import annotations

import attrs
import numpy as np

from dpframework.facts import Boolean, Schema, View
from dpframework.run import Witness

PLANTED = Schema(
    [
        Boolean("wolf", view=View.LEFT),
        Boolean("moose", view=View.LEFT),
        Boolean("rain", view=View.RIGHT),
        Boolean("snow", view=View.RIGHT),
        Boolean("wind", view=View.RIGHT),
    ]
)
MIN_SUPPORT, MAX_SUPPORT = 1000, 7000
NOTHING = 20_000  # rows that no literal of a choice holds for
CHOSEN = np.array([[0, 0], [1, 0]])  # of the pairs of attributes (wolf, rain) and (wolf, snow) the first literals: both


def witnesses() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for two pairs and their counts."""
    added = _shared(1001, 1308)
    replaced = _shared(1000, 1100)
    outputs = {"pairs": CHOSEN}
    after = _row("wolf", "moose", "rain", "snow")
    return (
        Witness(added, None, after, outputs),
        Witness(replaced, _row("wolf", "moose", "wind"), after, outputs),
    )


def matched() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for one pair that is scored in rows, (wolf, rain), and its counts."""
    return tuple(attrs.evolve(witness, outputs={"pair": 0}) for witness in witnesses())  # type: ignore[return-value]


def _shared(chosen: int, likeliest: int) -> list[tuple[dict[str, bool], int]]:
    return [(_row("wolf", "rain", "snow"), chosen), (_row("moose", "wind"), likeliest), (_row(), NOTHING)]


def _row(*holds: str) -> dict[str, bool]:
    return {name: name in holds for name in PLANTED.names}
