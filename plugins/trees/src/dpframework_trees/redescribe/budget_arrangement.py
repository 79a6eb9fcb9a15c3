"""How `MatchedTrees` shares its budget between matches that are read together and a forest of pairs of trees.

A match is a pair of tests, one of each view. By default the choice follows from epsilon times the number of rows, and
from the number of candidate matches.

The number of rows is public, or a noisy number that the miner releases first. So a plan holds one arrangement, or a
branch for each arrangement that the released number may choose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import final

import attrs

from dpframework.redescriptions import DESIGNS, budget_of_choices, choices_carried

MOST = max(DESIGNS)  # the most matches of one joint distribution
#: Each entry has the least epsilon * rows for which it is used, the number of matches in a group, and the number of
#: groups. Below the first entry, or with too few candidates for it, there is a forest.
PAYS = ((420, 5, 1), (620, 7, 1), (1_500, 9, 1), (5_500, 9, 2))
CHOOSE_FROM = 20  # the fewest candidates per match. With fewer, the last matches would not be real associations
CHOOSE_FROM_IN_GROUPS = 1_000  # the same for several groups. With fewer, the matches of the second group are weak
CHOICES = Fraction(3, 5)  # the share of a forest's budget for its choices; its tables get the rest
MOST_TREES = 9  # the most pairs of trees by default
LOTTERY = 0.4  # if choices on two levels may be off by more than this share of the rows, trees have one level


@final
@attrs.frozen
class Arrangement:
    """The numbers of matches that are read together and of trees in a forest, and how they share the budget.

    Attributes
    ----------
    matches
        The number of matches that are read together in each group; 0 for none.
    groups
        The number of groups of matches.
    trees
        The number of pairs of trees in the forest; 0 for no forest.
    depth
        The number of levels of each tree.
    forest
        The share of the budget that the forest gets.
    """

    matches: int
    groups: int
    trees: int
    depth: int
    forest: Fraction

    @property
    def name(self) -> str:
        """The name of the arrangement's branch in a plan."""
        if self.matches:
            return f"{self.matches * self.groups} matches"
        return f"{self.trees} tree{'s' * (self.trees > 1)} of {self.depth} level{'s' * (self.depth > 1)}"

    @classmethod
    def of(cls, row_budget: float, candidates: int) -> Arrangement:
        """Return the arrangement that is expected to find most redescriptions.

        Parameters
        ----------
        row_budget
            Epsilon times the number of rows.
        candidates
            The number of matches to choose from.
        """
        matches, groups = 0, 0
        for least, number, times in PAYS:
            choose_from = CHOOSE_FROM if times == 1 else CHOOSE_FROM_IN_GROUPS
            if row_budget >= least and candidates >= choose_from * number * times:
                matches, groups = number, times
        if matches:
            return cls(matches, groups, 0, 0, Fraction(0))
        trees = choices_carried(_of_level(row_budget), candidates, MOST_TREES)
        return cls(0, 0, trees, choose_levels(row_budget, candidates), Fraction(1))

    @classmethod
    def from_parameters(cls, matches: int, trees: int | None, row_budget: float, candidates: int) -> Arrangement:
        """Return the arrangement that a user asks for: matches in groups of at most `MOST`, and a forest or none.

        Parameters
        ----------
        matches
            The number of matches.
        trees
            The number of pairs of trees. With None, there is no forest if there are matches, and else as many trees as
            the budget is enough for.
        row_budget, candidates
            See `of`.
        """
        groups = -(-matches // MOST)
        of_group = matches // groups if groups else 0
        if matches and trees is None:
            return cls(of_group, groups, 0, 0, Fraction(0))
        share = Fraction(1, 2) if matches else Fraction(1)
        of_forest = float(share) * row_budget
        if trees is None:
            trees = choices_carried(_of_level(of_forest), candidates, MOST_TREES)
        return cls(of_group, groups, trees, choose_levels(of_forest, candidates), share)

    @classmethod
    def possible(cls, most: float, candidates: int) -> tuple[Arrangement, ...]:
        """Return all arrangements that `of` may return, in order of epsilon * rows, from 0 up to `most`."""
        edges = [edge for edge in sorted(_edges(candidates)) if edge <= most]
        low = [0.0, *edges]
        inside = [(low + high) / 2 for low, high in zip(low, [*edges, min(most, 2 * low[-1] + 1)], strict=True)]
        return tuple(dict.fromkeys(cls.of(row_budget, candidates) for row_budget in inside))


def choose_levels(row_budget: float, candidates: int) -> int:
    """Return the number of levels of each tree: 2, or 1 if choices on two levels would be too uncertain.

    They are too uncertain if a choice at half of the budget for choices may be off by more than `LOTTERY` of the rows.
    """
    return 1 if math.log(max(candidates, 2)) > LOTTERY * _of_level(row_budget) else 2


def _of_level(row_budget: float) -> float:
    """Return the part of epsilon * rows for the choices of one level, in a forest of two levels."""
    return float(CHOICES / 2) * row_budget


def _edges(candidates: int) -> Iterator[float]:
    """Yield each epsilon * rows at which `Arrangement.of` may begin to return another arrangement."""
    yield from (least for least, _, _ in PAYS)
    of_level = _of_level(1)
    yield math.log(max(candidates, 2)) / LOTTERY / of_level
    yield from (budget_of_choices(trees, candidates) / of_level for trees in range(2, MOST_TREES + 1))
