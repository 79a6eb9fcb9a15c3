"""Greedy redescription mining without privacy, for comparison with Serenade only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import InputError
from dpframework.redescriptions import Redescription, Redescriptions
from dpframework.tables import Engine, InMemory, Rows, Table
from dpframework_greedy.language import Language, Redescribed
from dpframework_greedy.queries import BOTH, LEFT_ONLY, RIGHT_ONLY, ExtensionScores, PairScores, RedescriptionCells
from dpframework_greedy.scores import Floats, Score, of_index
from dpframework_greedy.successive_choices import CandidatePool, Group

FINE = 2.0**-40  # the step of a lattice so fine that rounding to it does not matter


def greedy_without_privacy(
    table: Table,
    *,
    min_support: int,
    max_support: int,
    pairs: int = 20,
    extensions: int = 4,
    left: Iterable[str] | None = None,
    right: Iterable[str] | None = None,
) -> Redescriptions:
    """Grow the best redescriptions by exact counts. This is **not private**, and for evaluation only.

    The language, the constraints and the order of steps are Serenade's, but the bounds on the support are hard. The
    pairs of attributes with the best initial pairs are taken. Each initial pair is extended by the literal that raises
    its Jaccard index most, until no literal raises it or it has `extensions` of them.

    Parameters
    ----------
    table
        The rows. The result shows exact counts of them.
    min_support, max_support
        The least number of rows in both supports, and the largest number in at least one.
    pairs
        The most initial pairs.
    extensions
        The most extensions of each pair.
    left, right
        Names of the attributes of each side; by default those of the schema's views.

    Raises
    ------
    InputError
        If the bounds contradict each other, or a side has no usable attribute.
    """
    if not 1 <= min_support < max_support:
        raise InputError(f"min_support = {min_support} must be at least 1 and below max_support = {max_support}")
    language = Language.of_schema(table.schema, left, right)
    engine = InMemory()
    rows = engine.load(table)
    pool = PairScores(language, Score()).evaluate(engine, rows)
    hard = _Bounded(min_support, max_support)
    pool = attrs.evolve(pool, score=hard)
    best = [(*_best(pool, group), group.number) for group in pool.groups()]
    found = []
    for score, position, pair in sorted(best, reverse=True)[:pairs]:
        if score > 0:
            redescribed = language.pair(pair, position)
            for _ in range(extensions):
                grown = ExtensionScores(language, Score(), 1, 1).evaluate(engine, rows, pool=[(redescribed, 0.0)])
                grown = attrs.evolve(grown, by=(hard,))
                better, position = _best(grown, grown.groups()[0])
                if better <= score:
                    break
                score, redescribed = better, language.extend(redescribed, position)
            found.append(count_exactly(engine, rows, redescribed))
    return Redescriptions(found)


@attrs.frozen
class _Bounded:
    """The Jaccard index of redescriptions within hard bounds on the support, and 0 outside."""

    min_support: int
    max_support: int

    def of_supports(self, both: NDArray[Any], either: NDArray[Any]) -> Floats:
        """Return the scores of some supports."""
        within = (both >= self.min_support) & (either <= self.max_support)
        return of_index(within.astype(np.float64), both, either)


def _best(pool: CandidatePool, group: Group) -> tuple[int, int]:
    """Return the best score of a group, and the position that it belongs to."""
    positions, scores = pool.scores(group, FINE)
    return int(scores.max()), int(positions[scores.argmax()])


def count_exactly(engine: Engine, rows: Rows, redescribed: Redescribed) -> Redescription:
    """Return a redescription with exact counts, which is not private."""
    cells = RedescriptionCells().evaluate(engine, rows, redescribed=redescribed)
    left, right = redescribed.descriptions
    return Redescription(
        left,
        right,
        both=int(cells[BOTH]),
        left_only=int(cells[LEFT_ONLY]),
        right_only=int(cells[RIGHT_ONLY]),
        rows=int(cells.sum()),
    )
