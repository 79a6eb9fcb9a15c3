"""How a budget is shared between matches that are read together and a forest, by epsilon and the number of rows.

The number is public, or a noisy one that the miner releases first. So a plan holds one arrangement, or a branch for
each that the released number may choose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import final

import attrs

from dpframework.redescriptions import DESIGNS, budget_of_choices, choices_carried

MOST = max(DESIGNS)  # matches of one joint distribution
#: From which epsilon * rows on: how many matches are read together, in how many groups. Below there is a forest alone.
PAYS = ((420, 5, 1), (620, 7, 1), (1_500, 9, 1), (5_500, 9, 2))
CHOOSE_FROM = 20  # candidates for each match: of fewer, the last ones are no ties
CHOOSE_FROM_IN_GROUPS = 1_000  # for each match of several groups: of fewer, those of the second group are weak
CHOICES = Fraction(3, 5)  # of the budget of a forest; its tables have the rest
MOST_TREES = 9
LOTTERY = 0.4  # of the rows: where a choice of two levels may be so far from the best, one level is all


@final
@attrs.frozen
class Arrangement:
    """How a budget is shared between matches that are read together, and a forest.

    Attributes
    ----------
    matches
        How many are read together; 0 for none.
    groups
        How many times.
    trees
        The number of pairs of trees; 0 for none.
    depth
        The levels of each tree.
    forest
        The share of the budget that the forest has.
    """

    matches: int
    groups: int
    trees: int
    depth: int
    forest: Fraction

    @property
    def name(self) -> str:
        """The name of its branch in a plan."""
        if self.matches:
            return f"{self.matches * self.groups} matches"
        return f"{self.trees} tree{'s' * (self.trees > 1)} of {self.depth} level{'s' * (self.depth > 1)}"

    @classmethod
    def of(cls, carried: float, candidates: int) -> Arrangement:
        """Return what pays.

        Parameters
        ----------
        carried
            Epsilon times the number of rows.
        candidates
            How many matches there are to choose from.
        """
        matches, groups = 0, 0
        for least, number, times in PAYS:
            choose_from = CHOOSE_FROM if times == 1 else CHOOSE_FROM_IN_GROUPS
            if carried >= least and candidates >= choose_from * number * times:
                matches, groups = number, times
        if matches:
            return cls(matches, groups, 0, 0, Fraction(0))
        trees = choices_carried(_of_level(carried), candidates, MOST_TREES)
        return cls(0, 0, trees, levels(carried, candidates), Fraction(1))

    @classmethod
    def asked(cls, matches: int, trees: int | None, carried: float, candidates: int) -> Arrangement:
        """Return what a user asks for: these matches, in groups of at most `MOST`, and a forest or not.

        Parameters
        ----------
        matches
            The number of matches.
        trees
            The number of trees, None for no forest beside matches, and for as many trees as the budget carries else.
        carried, candidates
            See `of`.
        """
        groups = -(-matches // MOST)
        of_group = matches // groups if groups else 0
        if matches and trees is None:
            return cls(of_group, groups, 0, 0, Fraction(0))
        share = Fraction(1, 2) if matches else Fraction(1)
        of_forest = float(share) * carried
        if trees is None:
            trees = choices_carried(_of_level(of_forest), candidates, MOST_TREES)
        return cls(of_group, groups, trees, levels(of_forest, candidates), share)

    @classmethod
    def possible(cls, most: float, candidates: int) -> tuple[Arrangement, ...]:
        """Return all that `of` may choose up to this epsilon * rows, the smallest first."""
        edges = [edge for edge in sorted(_edges(candidates)) if edge <= most]
        low = [0.0, *edges]
        inside = [(low + high) / 2 for low, high in zip(low, [*edges, min(most, 2 * low[-1] + 1)], strict=True)]
        return tuple(dict.fromkeys(cls.of(carried, candidates) for carried in inside))


def levels(carried: float, candidates: int) -> int:
    """Return 2, or 1 where a choice at half of the budget for choices would be a lottery."""
    return 1 if math.log(max(candidates, 2)) > LOTTERY * _of_level(carried) else 2


def _of_level(carried: float) -> float:
    """Return the part of epsilon * rows that the choices of one of two levels have."""
    return float(CHOICES / 2) * carried


def _edges(candidates: int) -> Iterator[float]:
    """Yield each epsilon * rows at which another arrangement may begin to pay."""
    yield from (least for least, _, _ in PAYS)
    of_level = _of_level(1)
    yield math.log(max(candidates, 2)) / LOTTERY / of_level
    yield from (budget_of_choices(trees, candidates) / of_level for trees in range(2, MOST_TREES + 1))
