"""Tables on which choices among redescriptions lose all that they claim.

A choice loses most where a row moves two scores in opposite ways, each as far as it can: that of the chosen pair, and
that of a pair that is nearly all of the normaliser. Both pairs need supports near the minimum support. The second pair
needs a score so much higher that the first is never chosen in practice, so no drawn output shows the loss. Let the
minimum support s be 1000 and the maximum support 7000, and let I and U be the numbers of rows in both supports and in
at least one:

- An added row raises a score most at I = U = s, and lowers one most at I = U = 1308. The row here is a wolf in rain and
  snow, and a moose without wind. It raises (wolf, rain) and (wolf, snow), and lowers (moose, wind), whose score is .88
  where theirs is .50. Both choices lose all that is claimed, and so do the counts of both redescriptions.
- A replaced row raises a score most where it passes from one support to both, and lowers one by as much where it passes
  back. Here a wolf and a moose in the wind becomes a wolf and a moose in rain and snow. The nearer the two scores, the
  larger are their changes, and the smaller is the share of the second pair.

Where pairs are scored in rows, a row moves a score by 1/2 up or down at any support, so the same tables serve.

Pairs of complements hold nearly everywhere. Many rows for which no literal holds put them so far beyond the maximum
support that they have hardly any weight.

**Extensions.** A surplus over the index 1/2 rises by 1/2 with a row in both supports, as long as fewer rows than the
maximum support are in at least one of them. It falls with a row in exactly one support: by 1 if more rows than that are
in at least one, else by 1/2. The likeliest extension has to fall, so it is one by `and`, since an extension by `or`
keeps the row in both supports. It falls by 1 if the other side of its pair alone is beyond the maximum support. Near
the minimum support this cannot be. So where pairs are scored in rows, both choices lose all that is claimed.

Where pairs are scored by a weighted index, both choices lose nearly all of it, on tables of their own:

- The added row is a wolf with snow, but without rain. It lowers the chosen pair, (wolf, rain). The pair's extension
  (wolf or not moose, rain) holds for more rows than the maximum support, and falls by 1. The likeliest extension,
  (wolf, rain or snow), rises by 1/2. The likelier pair, (moose, wind), has only a few more rows than the chosen one. It
  rises by .97 of the most that a row can do, and the chosen pair falls by .82 of that.
- Where a row is replaced, an index of 1 is released for the chosen pair. Then an extension's score is minus the number
  of rows in exactly one of its supports. The likeliest extension, (wolf and not moose, rain), gets one more such row,
  which had neither of its sides before. The chosen one, (wolf and moose, rain), gets one fewer. So they move apart by
  2, as far as is claimed.

**A counted number of rows.** The same tables serve, with fewer rows. A number of rows of 2,000 is released, which is
more than there are, so the minimum support is 200. There, a row raises one score and lowers another by all that is
declared. The released number is likelier with the added row, too. A replaced row leaves the number of rows as it is, so
the share of the budget for that number cannot be lost there.

**Indices.** Let a choice among m pairs by the Jaccard index cost e, for scores that move apart by 3/2 if a row is
added, or by 2 if a row is replaced. A pair with the index J has the weight exp(2 e J / 3), or exp(e J / 2), and J is
between 0 and 1. So on any table, each pair has a probability of at least exp(-2 e / 3) / m, or exp(-e / 2) / m, and of
at most 1. The choice loses the logarithm of a quotient of two probabilities of one pair, and so at most 2 e / 3 + log
m, or e / 2 + log m. For the example's 64 pairs and e = 90 that is .713 e or .547 e. It loses .679 e and .515 e if a
pair has no rows besides the one that differs.
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
#: The reason why a choice by the Jaccard index cannot lose all that it costs.
INDEX = (
    "at most 0.75 of the cost can be lost where a row is added, and 0.6 where one is replaced: the choice of pairs has "
    "0.9 of it, no index is above 1, and so each of the 64 pairs has a probability of at least exp(-2/3) or exp(-1/2) "
    "to the power of that cost, divided by 64"
)
NOTHING = 20_000  # the number of rows for which no attribute is true
# The first pair of literals, both positive, of the pairs of attributes (wolf, rain) and (wolf, snow).
CHOSEN = np.array([[0, 0], [1, 0]])


def witnesses() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for two pairs and their counts."""
    return _both_relations(_rows_that_share(1001, 1308), _rows_that_share(1000, 1100), {"pairs": CHOSEN})


# extensions of (wolf, rain): (wolf and moose, rain), (wolf or not moose, rain), (wolf, rain and snow)
_BOTH_AND_MOOSE, _WOLF_OR_NOT_MOOSE, _BOTH_AND_SNOW = 3, 8, 11


def two_extensions(outputs: Mapping[str, Any] = MappingProxyType({})) -> tuple[Witness, Witness]:
    """Return one witness for each relation, for (wolf, rain) scored in rows, and one extension, or two in rounds.

    The first to be chosen is (wolf, rain and snow), with at least one side for 680 rows. (wolf and not moose, rain) is
    likelier, and its rain is beyond the maximum support. The second is (wolf and moose, rain and snow).
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
    """Return the same witnesses for a pair that is chosen by its weighted index, and extended once."""
    return two_extensions({"pairs": CHOSEN[:1], "extensions": np.array([[0, _BOTH_AND_SNOW]])})


def extended() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for (wolf, rain) chosen by its weighted index, and an extension of it."""
    chosen = {"pairs": CHOSEN[:1]}
    added = [(_row("wolf", "rain"), 1045), (_row("wolf", "snow"), 5), (_row("moose", "wind"), 1055), (_row(), NOTHING)]
    by_or = chosen | _extend_once(_WOLF_OR_NOT_MOOSE, _between_thresholds(1500))
    wolves = (_row("wolf", "moose", "wind"), 15)
    before, after = _row("wolf", "moose", "wind"), _row("wolf", "moose", "rain", "snow")
    by_and = chosen | _extend_once(_BOTH_AND_MOOSE, _of_index_one)
    return (
        Witness(added, None, _row("wolf", "moose", "snow", "wind"), by_or),
        Witness([*_rows_that_share(1000, 1100), wolves], before, after, by_and),
    )


def row_count_witnesses() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for (wolf, rain), whose supports follow from a released number of rows."""
    chosen = {"pairs": CHOSEN[:1]}
    added, replaced = (
        [*_rows_that_share(*pairs)[:2], (_row(), nothing)]
        for pairs, nothing in (((201, 258), 1400), ((200, 225), 1600))
    )
    of_added, of_replaced = _both_relations(added, replaced, chosen)
    return attrs.evolve(of_added, outputs=chosen | {"rows": 2000}), of_replaced


def _extend_once(position: int, counted: Callable[..., NDArray[np.int64]]) -> dict[str, Any]:
    """Return outputs for an extension of the first pair and for its counts before, under the names of both miners."""
    extension = np.array([[0, position]])
    return {"quality": counted, "parent": counted, "extension": extension, "extensions": extension}


def _of_index_one(counts: NDArray[np.int64], calibration: Calibration) -> NDArray[np.int64]:
    """Return noisy counts of a redescription whose Jaccard index is 1."""
    both, _, _, neither = counts
    return np.array([both + 8, -8, -8, neither])


def _between_thresholds(right_only: int) -> Callable[[NDArray[np.int64], Calibration], NDArray[np.int64]]:
    """Return noisy counts with an index between .3 and .5, so that the pair is extended, with 1/2 to surpass."""
    return lambda counts, calibration: counts + np.array([8, -8, right_only, 0])


def _both_relations(
    added: list[tuple[dict[str, bool], int]], replaced: list[tuple[dict[str, bool], int]], outputs: dict[str, Any]
) -> tuple[Witness, Witness]:
    """Return witnesses whose row has both sides of the chosen pairs, and a moose without wind."""
    after, before = _row("wolf", "moose", "rain", "snow"), _row("wolf", "moose", "wind")
    return Witness(added, None, after, outputs), Witness(replaced, before, after, outputs)


def matched_pair_witnesses() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for one pair that is scored in rows, (wolf, rain), and its counts."""
    return tuple(attrs.evolve(witness, outputs={"pair": 0}) for witness in witnesses())  # type: ignore[return-value]


def matched_by_count() -> tuple[Witness, Witness]:
    """Return the same witnesses for an epsilon of 0.01, where a released number of rows leads to one pair.

    (moose, wind) is likelier than the chosen pair. The released number is above the true one, so one more row makes it
    likelier.
    """
    rows = [(_row("wolf", "rain"), 200), (_row("moose", "wind"), 2090), (_row(), 4500)]
    return _both_relations(rows, rows, {"rows": 7_000, "1 pair/pair": 0})


LEFT, RIGHT = ("wolf", "moose", "bear", "fox", "hare"), ("rain", "snow", "wind", "fog", "hail")
FIVE = Schema([*(Boolean(name, view=View.LEFT) for name in LEFT), *(Boolean(name, view=View.RIGHT) for name in RIGHT)])
_WANTED = (0, 6, 12, 18)  # the matches between the first four of each view, in order


def several() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for four pairs that are scored in rows, and their two tables.

    Each pair holds for half of the rows, independently of each other pair, so that all of them say something new. The
    fifth pair, (hare, hail), has fewer rows in exactly one support, and would be chosen each time. The added row has
    the first four pairs, and a hare without hail. The replaced row had only the animals of the four pairs, and both
    sides of the fifth.
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
    """Return a row with both sides of the pairs that hold, and with the left side alone of the pairs in `apart`."""
    both = {k for k, held in enumerate(holds) if held} - set(apart)
    return {LEFT[k]: k in both or k in apart for k in range(5)} | {RIGHT[k]: k in both for k in range(5)}


def _next_wanted(scores: NDArray[np.float64], calibration: Calibration) -> int:
    """Return the best of the wanted matches. A match that was chosen before scores below all others."""
    return max(_WANTED, key=lambda match: scores[match])


def shared() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for (wolf, rain) in views that share the attribute rain.

    (rain, north) is likelier, and fewer rows have neither of its sides than both. The replaced row had neither.
    """
    rows = [(_place(True, 0, "north"), 300), (_place(False, 0, "north"), 500)]
    rows += [(_place(False, 6, zone), 350) for zone in ("middle", "south")]
    after, before = _place(True, 0, "middle"), _place(True, 6, "middle")
    return Witness(rows, None, after, {"pair": 0}), Witness(rows, before, after, {"pair": 0})


def _place(wolf: bool, rain: float, zone: str) -> dict[str, Any]:
    return {"wolf": wolf, "height": 1, "rain": rain, "zone": zone}


def of_index() -> tuple[Witness, Witness]:
    """Return one witness for each relation, on which the choice of a pair by its Jaccard index loses most.

    Beside a wolf in the north, another animal is added where it is rainy. Its pair rises from 0 to 1, and all pairs of
    the first row fall to 1/2. The replaced row was the only one, so its pair falls from 1 to 0.
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
