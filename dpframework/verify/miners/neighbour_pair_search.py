"""Searches for neighbouring tables on which a loss is largest, and for smaller tables that still show a finding.

A loss is any number for a pair of tables, such as the realised loss of a run, or the change of a query's answer.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, final

import attrs
import numpy as np

from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.neighbours import Change, Pair, Rows, Sizes, all_tables

COPIES = (1, 1, 1, 2, 4, 8, 16, 32, 64, 128)  # how many copies of a row one move of the climb may add or drop
FEW_KINDS = 4  # how many kinds of rows the exhaustive search uses
MOST_SHRINKS = 500  # the most pairs that are tried to make a pair smaller
ROWS_OF_A_TRY = 4_000  # a pair with more shared rows takes longer, so it counts as several tries

_KIND = operator.itemgetter(1)

Loss: TypeAlias = Callable[[Rows, Rows], float]


@final
@attrs.frozen
class WorstPair:
    """A pair of tables, and the loss that it shows."""

    pair: Pair
    loss: float


@final
class Search:
    """A search among pairs of neighbours of given kinds of rows: at random, over all small pairs, or by climbing.

    Parameters
    ----------
    changes
        How neighbours may differ (see `neighbours.changes`).
    kinds
        The number of kinds of rows.
    sizes
        The fewest and the most rows that the two tables may share.
    rng
        The random generator that pairs and moves are drawn from.
    patience
        When this is over, each search ends after the pair that it tries.

    Attributes
    ----------
    tried
        How many pairs have been tried.
    """

    def __init__(
        self,
        changes: Sequence[Change],
        kinds: int,
        sizes: Sizes,
        rng: np.random.Generator,
        patience: Patience,
    ) -> None:
        self._changes, self._kinds, self._sizes, self._rng, self._patience = changes, kinds, sizes, rng, patience
        self.tried = 0

    def random_pair(self) -> Pair:
        """Return a random pair.

        The number of shared rows is uniform on a logarithmic scale, so that small tables are tried often.
        """
        least, most = self._sizes.least, self._sizes.most
        size = least + int((most - least + 1) ** self._rng.random()) - 1 if most > least else least
        # Tables of few distinct rows are often the worst.
        few = self._rng.integers(0, self._kinds, int(self._rng.integers(1, 6)))
        rows = self._rng.choice(few, size) if self._rng.random() < 0.5 else self._rng.integers(0, self._kinds, size)
        return Pair(bytes(rows.tolist()), *self._change())

    def _change(self) -> Change:
        return self._changes[int(self._rng.integers(len(self._changes)))]

    def at_random(self, loss: Loss, number: int) -> WorstPair:
        """Return the pair with the largest loss among some random pairs."""
        return self.worst(loss, (self.random_pair() for _ in range(number)))

    def exhaustive(self, loss: Loss, number: int) -> WorstPair:
        """Return the pair with the largest loss among all pairs of a few kinds of rows.

        All sizes of tables are covered, from the smallest up, as long as there are at most `number` pairs in total.
        """
        kinds = sorted(self._rng.permutation(self._kinds)[:FEW_KINDS].tolist())
        among = [c for c in self._changes if all(kind in kinds for unit in c for kind in unit)]
        tables = all_tables(kinds, range(self._sizes.least, self.sizes_covered(number) + 1))
        return self.worst(loss, (Pair(rows, *change) for rows, change in itertools.product(tables, among)))

    def sizes_covered(self, number: int) -> int:
        """Return the largest number of shared rows for which `exhaustive` tries every pair, or -1 if there is none."""
        kinds = min(FEW_KINDS, self._kinds)
        among = sum(all(kind < kinds for unit in c for kind in unit) for c in self._changes)
        pairs = 0
        for size in range(self._sizes.least, self._sizes.most + 1):
            pairs += math.comb(size + kinds - 1, size) * among
            if pairs > number:
                return size - 1 if size > self._sizes.least else -1
        return self._sizes.most

    def climb(self, loss: Loss, start: Pair, number: int, *, enough: float = math.inf) -> WorstPair:
        """Climb from a pair by small changes of its tables, keeping every step that does not lower the loss.

        The climb ends after `number` pairs, or once the loss is at least `enough`.
        """
        best = self.worst(loss, iter([start]))
        for _ in range(number - 1):
            if best.loss >= enough or self._patience.over:
                break
            pair = self._move(best.pair)
            self.tried += 1
            reached = loss(*pair.tables)
            if reached >= best.loss:
                best = WorstPair(pair, reached)
        return best

    def worst(self, loss: Loss, pairs: Iterable[Pair]) -> WorstPair:
        """Return the pair with the largest loss among the given pairs."""
        best = WorstPair(Pair(b"", b"", b""), -math.inf)
        for pair in pairs:
            self.tried += 1
            reached = loss(*pair.tables)
            if reached > best.loss:
                best = WorstPair(pair, reached)
            if self._patience.over:
                break
        return best

    def _move(self, pair: Pair) -> Pair:
        rows, rng = pair.shared, self._rng
        move, copies = rng.integers(0, 5), COPIES[int(rng.integers(len(COPIES)))]
        if move == 0:
            return Pair(rows, *self._change())
        if move == 1 and len(rows) + copies <= self._sizes.most:
            own = pair.one + pair.other
            kind = own[int(rng.integers(len(own)))] if own and rng.random() < 0.3 else int(rng.integers(self._kinds))
            return attrs.evolve(pair, shared=rows + bytes((kind,)) * copies)
        if move == 2 and len(rows) - copies >= self._sizes.least:
            kind = rows[int(rng.integers(len(rows)))] if rows else 0
            kept = rows.replace(bytes((kind,)), b"", copies)
            return attrs.evolve(pair, shared=kept)
        if rows:
            k = int(rng.integers(len(rows)))
            return attrs.evolve(pair, shared=rows[:k] + bytes((int(rng.integers(self._kinds)),)) + rows[k + 1 :])
        return Pair(rows, *self._change())


Labelled: TypeAlias = "tuple[tuple[int, int], ...]"  # (label, kind); equal labels in two tables mark a shared row


def shrink_tables(
    one: Labelled, other: Labelled, shows: Callable[[Rows, Rows], bool], least: int, *, most: float = MOST_SHRINKS
) -> tuple[Rows, Rows]:
    """Leave out rows that two neighbours share, as long as `shows` stays true, and return the smaller tables.

    Parameters
    ----------
    one, other
        The tables. Rows with the same label are shared.
    shows
        Tells whether two smaller tables still show what the given tables show.
    least
        The fewest shared rows that the schema allows.
    most
        The number of tries after which the smallest pair so far is returned.
    """
    chunk, tried = max(len(one), len(other), 1), 0.0
    while chunk:
        of_other = {label for label, _ in other}
        shared = [label for label, _ in one if label in of_other]
        left_out = False
        for start in range(0, len(shared), chunk):
            dropped = set(shared[start : start + chunk])
            if len(shared) - len(dropped) < least:
                continue
            tried += max(len(shared) / ROWS_OF_A_TRY, 1.0)
            if tried > most:
                return drop_labels(one), drop_labels(other)
            smaller = [tuple(row for row in rows if row[0] not in dropped) for rows in (one, other)]
            if shows(drop_labels(smaller[0]), drop_labels(smaller[1])):
                one, other = smaller
                left_out = True
                break
        if not left_out:
            chunk //= 2
    return drop_labels(one), drop_labels(other)


def last_before(stops: Callable[[int], bool], most: int, least: int = 0) -> int:
    """Return a size at which `stops` is false, although it is true at the next size.

    The size is found by bisection. `stops` must be false at `least` and true at `most`.

    Examples
    --------
    >>> last_before(lambda size: size >= 17, 70_000)
    16
    """
    low, high = least, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if stops(middle) else (middle, high)
    return low


def label_rows(rows: Rows, first: int = 0) -> Labelled:
    """Return rows with consecutive labels, from `first` on."""
    return tuple(enumerate(rows, start=first))


def label_pair(pair: Pair) -> tuple[Labelled, Labelled]:
    """Return both tables of a pair with labels, equal for the rows that they share."""
    shared = label_rows(pair.shared)
    one = (*shared, *label_rows(pair.one, len(shared)))
    return one, (*shared, *label_rows(pair.other, len(one)))


def drop_labels(table: Labelled) -> Rows:
    """Return the rows without their labels."""
    return bytes(map(_KIND, table))
