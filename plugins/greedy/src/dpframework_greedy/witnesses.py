"""Tables on which choices among redescriptions lose all that they claim.

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

**Extensions.** A surplus rises by 1/2 with a row in both of its supports as long as these hold for fewer rows than the
maximum support, and falls by 1 with a row in one of them where they hold for more, by 1/2 where they hold for fewer.
The
extension that is likeliest is by `and`, since one by `or` keeps the row in both: of a pair beyond the maximum support
its other side alone may be beyond it too, of a pair near the minimum support none is. So where pairs are scored in rows
both choices lose all that is claimed.

Where pairs are scored by a weighted index, both lose nearly all of it on tables of their own:

- A row that is added lowers the chosen pair, (wolf, rain), and is a wolf without rain. Its extension (wolf or not
  moose, rain) holds for more rows than the maximum support, and falls by 1. The likeliest extension, (wolf, rain or
  snow), rises by 1/2, since it is in the snow. Here the likelier pair, (moose, wind), has only a few more rows than the
  chosen one: it rises by .97 of the most that a row can do, and the chosen one falls by .82 of it.
- Where a row is replaced, an index of 1 is released for the chosen pair: then an extension's score is minus the rows in
  one of its supports. The likeliest extension, (wolf and not moose, rain), has one more in place of one that had
  neither, the chosen one, (wolf and moose, rain), one less. They move apart by 2, as far as is claimed.

**A counted number of rows.** The same tables, smaller: a number of rows of 2,000 is released, more than there are, so
that the minimum support is 200, where a row raises one score and lowers another by all that is declared. That number is
likelier with the row that is added, too. A row that is replaced leaves the number of rows as it is, so that the
share of the budget that it costs cannot be lost there.

**Indices.** Let a choice among m pairs by the Jaccard index cost e, for scores that move apart by 3/2, or by 2 if a row
is replaced. A pair of index J has the weight exp(2 e J / 3), or exp(e J / 2), and J is between 0 and 1. So each pair
has a chance of at least exp(-2 e / 3) / m, or exp(-e / 2) / m, whatever the table, and of at most 1. The choice loses
the logarithm of a quotient of two chances of one pair, and so 2 e / 3 + log m at most, or e / 2 + log m. For the
example's 64 pairs and e = 90 that is .713 e or .547 e. It loses .679 e and .515 e where a pair has no rows beside the
one that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
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
PLANTED_SUPPORTS: Mapping[str, Any] = MappingProxyType({"min_support": 1000, "max_support": 7000})
EXTENDED_SUPPORTS: Mapping[str, Any] = MappingProxyType({"min_support": 100, "max_support": 700})
#: Why what a choice by the Jaccard index costs cannot be lost.
INDEX = (
    "no more than 0.75 of it can be lost where a row is added, and 0.6 where one is replaced: pairs have 0.9, no index "
    "is above 1, and so none of the 64 pairs is less likely than exp(-2/3) or exp(-1/2) to the power of that, over 64"
)
NOTHING = 20_000  # rows that no literal of a choice holds for
CHOSEN = np.array([[0, 0], [1, 0]])  # of the pairs of attributes (wolf, rain) and (wolf, snow) the first literals: both


def witnesses() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for two pairs and their counts."""
    return _both_relations(_rows_that_share(1001, 1308), _rows_that_share(1000, 1100), {"pairs": CHOSEN})


# extensions of (wolf, rain): (wolf and moose, rain), (wolf or not moose, rain), (wolf, rain and snow)
_BOTH_AND_MOOSE, _WOLF_OR_NOT_MOOSE, _BOTH_AND_SNOW = 3, 8, 11


def two_extensions(outputs: Mapping[str, Any] = MappingProxyType({})) -> tuple[Witness, Witness]:
    """Return one witness for each relation, for (wolf, rain) scored in rows and one extension, or two in rounds.

    The first to be chosen is (wolf, rain and snow), for 680 rows at least on one side, where (wolf and not moose, rain)
    is likelier, whose rain is beyond the maximum support; then (wolf and moose, rain and snow).
    """
    rows = [
        (_row("wolf", "rain", "snow"), 300),
        (_row("wolf", "rain"), 300),
        (_row("wolf", "moose"), 80),
        (_row("rain"), 120),
        (_row("moose", "wind"), 1000),
        (_row(), 1500),
    ]
    first, second = [0, _BOTH_AND_SNOW], [0, _BOTH_AND_MOOSE]
    given = {
        "pairs": 0,
        "quality": _between_thresholds(800),
        "parent": _between_thresholds(800),
        "extension": np.array([first]),
        "extensions": np.array([first, second]),
    }
    return _both_relations(rows, rows, given | dict(outputs))


def published_extension() -> tuple[Witness, Witness]:
    """Return the same for a pair that is chosen by its weighted index, and extended once."""
    return two_extensions({"pairs": CHOSEN[:1], "extensions": np.array([[0, _BOTH_AND_SNOW]])})


def extended() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for (wolf, rain) chosen by its weighted index, and an extension of it."""
    chosen = {"pairs": CHOSEN[:1]}
    added = [
        (_row("wolf", "rain"), 1045),
        (_row("wolf", "snow"), 5),
        (_row("moose", "wind"), 1055),
        (_row(), NOTHING),
    ]
    by_or = chosen | _extend_once(_WOLF_OR_NOT_MOOSE, _between_thresholds(1500))
    wolves = (_row("wolf", "moose", "wind"), 15)
    before, after = _row("wolf", "moose", "wind"), _row("wolf", "moose", "rain", "snow")
    by_and = chosen | _extend_once(_BOTH_AND_MOOSE, _of_index_one)
    return (
        Witness(added, None, _row("wolf", "moose", "snow", "wind"), by_or),
        Witness([*_rows_that_share(1000, 1100), wolves], before, after, by_and),
    )


def counted() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for (wolf, rain), whose supports follow from a number of rows."""
    chosen = {"pairs": CHOSEN[:1]}
    added, replaced = (
        [*_rows_that_share(*pairs)[:2], (_row(), nothing)]
        for pairs, nothing in (((201, 258), 1400), ((200, 225), 1600))
    )
    of_added, of_replaced = _both_relations(added, replaced, chosen)
    return attrs.evolve(of_added, outputs=chosen | {"rows": 2000}), of_replaced


def _extend_once(position: int, counted: Callable[..., NDArray[np.int64]]) -> dict[str, Any]:
    """Return outputs for an extension of the first pair, and its counts before, under the names of either miner."""
    extension = np.array([[0, position]])
    return {"quality": counted, "parent": counted, "extension": extension, "extensions": extension}


def _of_index_one(counts: NDArray[np.int64], calibration: Calibration) -> NDArray[np.int64]:
    """Return counts whose index is 1."""
    both, _, _, neither = counts
    return np.array([both + 8, -8, -8, neither])


def _between_thresholds(right_only: int) -> Callable[[NDArray[np.int64], Calibration], NDArray[np.int64]]:
    """Return counts whose index lies between .3 and .5, so that the pair is extended at an index of 1/2."""
    return lambda counts, calibration: counts + np.array([8, -8, right_only, 0])


def _both_relations(
    added: list[tuple[dict[str, bool], int]], replaced: list[tuple[dict[str, bool], int]], outputs: dict[str, Any]
) -> tuple[Witness, Witness]:
    """Return witnesses whose row has both sides of the pairs that are chosen, and the moose without the wind."""
    after, before = _row("wolf", "moose", "rain", "snow"), _row("wolf", "moose", "wind")
    return Witness(added, None, after, outputs), Witness(replaced, before, after, outputs)


def matched() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for one pair that is scored in rows, (wolf, rain), and its counts."""
    return tuple(attrs.evolve(witness, outputs={"pair": 0}) for witness in witnesses())  # type: ignore[return-value]


def matched_by_count() -> tuple[Witness, Witness]:
    """Return the same for an epsilon of 0.01, where the number of rows that is released says that it is one pair.

    (moose, wind) is likelier. The number is above the true one: it is likelier with one row more.
    """
    rows = [(_row("wolf", "rain"), 200), (_row("moose", "wind"), 2090), (_row(), 4500)]
    return _both_relations(rows, rows, {"rows": 7_000, "1 pair/pair": 0})


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
    """Return the best of the wanted matches. One that was chosen before scores below all others."""
    return max(_WANTED, key=lambda match: scores[match])


def shared() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for (wolf, rain) in views that share the rain.

    (rain, north) is likelier, and has neither side for fewer rows than both. A row that is replaced had neither.
    """
    rows = [(_place(True, 0, "north"), 300), (_place(False, 0, "north"), 500)]
    rows += [(_place(False, 6, zone), 350) for zone in ("middle", "south")]
    after, before = _place(True, 0, "middle"), _place(True, 6, "middle")
    return Witness(rows, None, after, {"pair": 0}), Witness(rows, before, after, {"pair": 0})


def _place(wolf: bool, rain: float, zone: str) -> dict[str, Any]:
    return {"wolf": wolf, "height": 1, "rain": rain, "zone": zone}


def of_index() -> tuple[Witness, Witness]:
    """Return one witness for each relation, on which the choice of a pair by its Jaccard index loses most.

    Beside a wolf in the north comes another animal where it is rainy: their pair rises from 0 to 1, and all pairs of
    the first row fall to 1/2. A row that is replaced was the only one: its pair falls from 1 to 0.
    """
    wolf = {"wolf": True, "height": 5, "rain": 0, "zone": "north"}
    other = {"wolf": False, "height": None, "rain": 6, "zone": "north"}
    added = Witness([(wolf, 1)], None, other, {"pairs": np.array([[0, 3]])})  # no wolf, rain >= 4
    before, after = {**wolf, "height": None}, {**wolf, "rain": 6}
    return added, Witness((), before, after, {"pairs": np.array([[0, 0]])})  # wolf, rain < 4


def _rows_that_share(chosen: int, likeliest: int) -> list[tuple[dict[str, bool], int]]:
    return [(_row("wolf", "rain", "snow"), chosen), (_row("moose", "wind"), likeliest), (_row(), NOTHING)]


def _row(*holds: str) -> dict[str, bool]:
    return {name: name in holds for name in PLANTED.names}
