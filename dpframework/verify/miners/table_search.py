"""The search for neighbouring tables on which a transcript's realised loss is largest."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, final

import attrs
import numpy as np

from dpframework.verify.patience import Patience
from dpframework.verify.tables.neighbours import Change, Pair, Rows, Sizes, all_tables

COPIES = (1, 1, 1, 2, 4, 8, 16, 32, 64, 128)  # of a row, that one move of the climb adds or drops
FEW_KINDS = 4  # of rows, in exhaustive search
MOST_SHRINKS = 500  # tables tried; one of many thousands of rows counts for more, since it takes longer
ROWS_OF_A_TRY = 4_000

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
    """Pairs of neighbours of one universe, tried at random, all of them where they are few, or by climbing.

    Parameters
    ----------
    changes
        How neighbours may differ (see `tables.changes`).
    kinds
        The number of kinds of rows.
    sizes
        How many rows the two tables share.
    rng
        Where moves are drawn from.
    patience
        When it ends early, after one pair or more.
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
        """Return a pair of any size, with small ones as likely as large ones."""
        least, most = self._sizes.least, self._sizes.most
        size = least + int((most - least + 1) ** self._rng.random()) - 1 if most > least else least
        # Tables of few distinct rows are often the worst.
        few = self._rng.integers(0, self._kinds, int(self._rng.integers(1, 6)))
        rows = self._rng.choice(few, size) if self._rng.random() < 0.5 else self._rng.integers(0, self._kinds, size)
        return Pair(bytes(rows.tolist()), *self._change())

    def _change(self) -> Change:
        return self._changes[int(self._rng.integers(len(self._changes)))]

    def at_random(self, loss: Loss, number: int) -> WorstPair:
        """Return the worst of some random pairs."""
        return self.worst(loss, (self.random_pair() for _ in range(number)))

    def exhaustive(self, loss: Loss, number: int) -> WorstPair:
        """Return the worst of all pairs of a few kinds of rows, up to as many rows as `number` pairs allow."""
        kinds = sorted(self._rng.permutation(self._kinds)[:FEW_KINDS].tolist())
        among = [c for c in self._changes if all(kind in kinds for unit in c for kind in unit)]
        tables = all_tables(kinds, range(self._sizes.least, self.sizes_covered(number) + 1))
        return self.worst(loss, (Pair(rows, *change) for rows, change in itertools.product(tables, among)))

    def sizes_covered(self, number: int) -> int:
        """Return the number of shared rows up to which `exhaustive` tries every pair, or -1 if none."""
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

        It ends after a number of tables, or once the loss is large enough.
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
        """Return the worst of some given pairs."""
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


Labelled: TypeAlias = "tuple[tuple[int, int], ...]"  # (label, kind of row): rows of two tables with one label are one


def shrunk(
    one: Labelled, other: Labelled, shows: Callable[[Rows, Rows], bool], least: int, *, most: float = MOST_SHRINKS
) -> tuple[Rows, Rows]:
    """Return the smallest pair of neighbours, by leaving out rows that both share, that still shows something.

    Parameters
    ----------
    one, other
        The tables; rows of the same label are shared.
    shows
        What is to be kept.
    least
        The fewest shared rows that the schema allows.
    most
        After how many tables tried the smallest so far is returned.
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


def last_before(stops: Callable[[int], bool], most: int) -> int:
    """Return the last size at which something does not stop, by bisection from 0 to a size at which it does.

    Examples
    --------
    >>> last_before(lambda size: size >= 17, 70_000)
    16
    """
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if stops(middle) else (middle, high)
    return low


def label_rows(rows: Rows, first: int = 0) -> Labelled:
    """Return rows with labels of their own, from `first` on."""
    return tuple(enumerate(rows, start=first))


def label_pair(pair: Pair) -> tuple[Labelled, Labelled]:
    """Return both tables of a pair with labels, equal for the rows that they share."""
    shared = label_rows(pair.shared)
    one = (*shared, *label_rows(pair.one, len(shared)))
    return one, (*shared, *label_rows(pair.other, len(one)))


def drop_labels(table: Labelled) -> Rows:
    """Return the rows without their labels."""
    return bytes(map(_KIND, table))
