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

from collections.abc import Collection
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Boolean, Schema, View
from dpframework.mechanisms import Calibration
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


LEFT, RIGHT = ("wolf", "moose", "bear", "fox", "hare"), ("rain", "snow", "wind", "fog", "hail")
FIVE = Schema([*(Boolean(name, view=View.LEFT) for name in LEFT), *(Boolean(name, view=View.RIGHT) for name in RIGHT)])
_WANTED = (0, 6, 12, 18)  # matches of the first four of each view, in order


def several() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for four pairs that are scored in rows, and their two tables.

    Each pair holds for half of the rows, independently of each other one, so that all are news; the fifth, (hare,
    hail), has fewer rows apart and would be chosen each time. The row that is added has the first four pairs, and the
    hare without hail. One that is replaced had only the animals of the four, and both of the fifth.
    """
    rows = [(_five(), 20)]  # so that fewer rows have both sides of a pair than neither
    for k in range(8):
        a, b, c = k & 1, k >> 1 & 1, k >> 2
        holds = [bool(bit) for bit in (a, b, c, a ^ b, a ^ c)]  # any two of these are independent
        rows.append((_five(*holds), 50))
        rows += [(_five(*holds, apart={pair}), 50 if pair == 4 else 100) for pair in range(5)]
    outputs = {"pair": _next_wanted}
    after = _five(True, True, True, True, apart={4})
    return Witness(rows, None, after, outputs), Witness(
        rows, _five(False, False, False, False, True, apart={0, 1, 2, 3}), after, outputs
    )


def _five(*holds: bool, apart: Collection[int] = ()) -> dict[str, bool]:
    """Return a row that has both sides of the pairs that hold, and the left side alone of those apart."""
    both = {k for k, held in enumerate(holds) if held} - set(apart)
    return {LEFT[k]: k in both or k in apart for k in range(5)} | {RIGHT[k]: k in both for k in range(5)}


def _next_wanted(scores: NDArray[np.float64], calibration: Calibration) -> int:
    """Return the best of the wanted matches: one that was chosen before scores below all others."""
    return max(_WANTED, key=lambda match: scores[match])


def shared() -> tuple[Witness, Witness]:
    """Return one for each relation, for a pair of views that share the rain: (wolf, rain).

    (rain, north) is likelier, and has neither side for fewer rows than both. A row that is replaced had neither.
    """
    rows = [(_place(True, 0, "north"), 300), (_place(False, 0, "north"), 500)]
    rows += [(_place(False, 6, zone), 350) for zone in ("middle", "south")]
    after, before = _place(True, 0, "middle"), _place(True, 6, "middle")
    return Witness(rows, None, after, {"pair": 0}), Witness(rows, before, after, {"pair": 0})


def _place(wolf: bool, rain: float, zone: str) -> dict[str, Any]:
    return {"wolf": wolf, "height": 1, "rain": rain, "zone": zone}


def _shared(chosen: int, likeliest: int) -> list[tuple[dict[str, bool], int]]:
    return [(_row("wolf", "rain", "snow"), chosen), (_row("moose", "wind"), likeliest), (_row(), NOTHING)]


def _row(*holds: str) -> dict[str, bool]:
    return {name: name in holds for name in PLANTED.names}
