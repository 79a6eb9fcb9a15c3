"""The choice of a method, of its rounds and of the budget's share for one-way marginals, from public facts alone.

The *noise share* of a table decides. It is the distance that noise alone puts between a released table and the exact
one, as a share of the rows:

    cells x mean size of a count's noise / (2 x rows).

It follows from the budget, the attributes' sizes and a public number of rows, which may be exact, approximate or an
upper bound. It is computed for a typical pair of attributes (both with the geometric mean of the sizes) and for the
average one-way marginal. The rules were found on Adult, mushroom, nursery and nltcs; docs/tables.md shows them on other
tables too.

The noise share says how far a released table is from the exact one. The fit removes much of that error, since most
cells of a large table are empty. So a marginal may be selected up to a noise share of 1: the most dependent pair is
often a large one.
"""

from __future__ import annotations

import bisect
import functools
import math
from fractions import Fraction
from typing import final

import attrs

from dpframework.basics import OneWayMarginals
from dpframework.facts import Attribute
from dpframework.plan import Plan, step
from dpframework_tables.queries import NamedMarginal
from dpframework_tables.table_budget import TableBudget

METHODS = ("independent", "tree", "rounds", "adaptive")
MANY_ATTRIBUTES = 32  # with more, rounds are made only if the budget pays for more rounds than `ChoiceFacts.fewest`
MOST_ATTRIBUTES = 45  # with more, no rounds are made, since each round looks at all pairs
MOST_CANDIDATES = 2100  # triples may be selected if there are at most this many pairs and triples together

_NOISE_OF_SINGLES = 0.03  # the largest noise share at which one-way marginals are exact enough
_LEAST = Fraction(1, 10)  # the least share of the budget for one-way marginals
# The largest share of the budget for one-way marginals: in zCDP before rounds, before a tree, and in pure epsilon.
_MOST, _MOST_OF_TREE, _MOST_PURE = Fraction(1, 3), Fraction(3, 5), Fraction(7, 10)
_ROUNDS_KEPT = 4  # how many rounds never give their budget back to one-way marginals
_TRIAL = Fraction(1, 9)  # one-way marginals may get all but this share for each of `fewest` rounds
_OF_PAIR, _OF_PAIR_PURE = 0.075, 0.035  # the noise share of a typical pair up to which rounds are added
_TOO_NOISY = 0.6  # if a typical pair has a larger noise share at the fewest rounds, only one-way marginals are measured
_OF_SET = 1.0  # the largest noise share of a marginal that rounds may select; the smallest pair is always allowed
_UNKNOWN = Fraction(2, 10)  # the share for one-way marginals if no number of rows is known


# Not slotted: the cached property needs an instance dictionary.
@final
@attrs.frozen(eq=False, slots=False)
class ChoiceFacts:
    """Public facts about a table and its budget.

    Attributes
    ----------
    among
        The attributes.
    budget
        The budget.
    rows
        The public number of rows: exact, approximate or an upper bound. None if there is none.
    plan
        Any plan of the table. Its unit and relation decide how large the noise is.
    exact_rows
        The exact number of rows, None if it is not public.
    """

    among: tuple[Attribute, ...]
    budget: TableBudget
    rows: int | None
    plan: Plan
    exact_rows: int | None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of codes of the attributes."""
        return tuple(a.size for a in self.among)

    @property
    def alone(self) -> OneWayMarginals:
        """The one-way marginals."""
        return OneWayMarginals(self.among, self.budget.zcdp, self.exact_rows)

    def noise_of_singles(self, share: Fraction) -> float | None:
        """Return the approximate noise share of the average one-way marginal if all of them together get a share."""
        if self.rows is None:
            return None
        variances = self.alone.variances(self.budget.amount * share, self.plan)
        if variances is None:
            return None
        errors = [size * self.budget.size_of_noise(own) for size, own in zip(self.sizes, variances, strict=True)]
        return math.fsum(errors) / len(self.sizes) / (2 * max(self.rows, 1))

    def noise_of_pairs(self, rounds: int) -> float | None:
        """Return the approximate noise share of a typical pair that is measured in one of `rounds` rounds."""
        if self.rows is None:
            return None
        cells = math.exp(2 * math.fsum(map(math.log, self.sizes)) / len(self.sizes))
        measure = (1 - self.share_of_singles) * Fraction(9, 10)
        return cells * self._error(measure / rounds) / (2 * max(self.rows, 1))

    def most_cells(self, rounds: int, share: Fraction) -> int | None:
        """Return the most cells of a marginal that is measured in one of `rounds` rounds, None for any number.

        A larger marginal would be mostly noise, yet a selection could take it, since selections are noisy too.

        Parameters
        ----------
        rounds
            The number of rounds.
        share
            The budget's share for one-way marginals.
        """
        if self.rows is None:
            return None
        error = self._error((1 - share) * Fraction(9, 10) / rounds)
        return math.floor(_OF_SET * 2 * max(self.rows, 1) / error) if error else None

    def _error(self, share: Fraction) -> float:
        """Return the approximate mean absolute noise of a count of a marginal that gets a share of the budget."""
        measured = step("marginal", NamedMarginal(self.among, 4), self.budget.counter(share))
        calibration = self.plan.calibration(measured)
        return math.inf if calibration is None else self.budget.size_of_noise(calibration.variance)

    @functools.cached_property
    def share_of_singles(self) -> Fraction:
        """The share of the budget for one-way marginals, before rounds."""
        return self.share_before("rounds")

    def share_before(self, method: str) -> Fraction:
        """Return the share of the budget for the one-way marginals that a method releases first."""
        noise = self.noise_of_singles(Fraction(1))
        if noise is None:
            return _UNKNOWN
        needed = noise / _NOISE_OF_SINGLES
        needed = needed**2 if self.budget.zcdp else needed
        most = _MOST_OF_TREE if method == "tree" else _MOST
        most = max(most if self.budget.zcdp else _MOST_PURE, 1 - self.fewest() * _TRIAL)
        return min(max(Fraction(math.ceil(100 * min(needed, 1.0)), 100), _LEAST), most)

    def given_back(self) -> int:
        """Return how many of the rounds give their budget back to one-way marginals, after the other rounds.

        In zCDP it is half of them if one-way marginals would be noisy even with the whole budget; otherwise it is 0.
        `_ROUNDS_KEPT` rounds keep their budget in any case: with few attributes, each pair is in many of the marginals.
        """
        noise, rounds = self.noise_of_singles(Fraction(1)), self.rounds()
        noisy = self.budget.zcdp and noise is not None and noise > _NOISE_OF_SINGLES
        return min(rounds // 2, max(rounds - _ROUNDS_KEPT, 0)) if noisy else 0

    def fewest(self) -> int:
        """Return the fewest rounds that are worth it: one for every two attributes, and at least 3."""
        return max(3, -(-len(self.sizes) // 2))

    def rounds(self) -> int:
        """Return the number of rounds: up to three per attribute, as long as a typical pair has little noise.

        If no number of rows is known, it is one per attribute.
        """
        number = len(self.sizes)
        if self.rows is None:
            return number
        fewest = self.fewest()
        more = range(fewest + 1, 3 * number + 1)  # noise grows with the number of rounds
        most = _OF_PAIR if self.budget.zcdp else _OF_PAIR_PURE  # in pure epsilon, selections soon become random
        return fewest + bisect.bisect_right(more, most, key=lambda rounds: self.noise_of_pairs(rounds) or 0.0)

    def order(self) -> int:
        """Return the most attributes that a marginal may have, 2 or 3."""
        number = len(self.sizes)
        return 3 if math.comb(number, 3) + math.comb(number, 2) <= MOST_CANDIDATES else 2

    def method(self) -> str:
        """Return the method, chosen by predicted noise and by the number of attributes."""
        noise = self.noise_of_pairs(self.fewest())
        number = len(self.sizes)
        if number < 2 or (noise is not None and noise > _TOO_NOISY):
            return "independent"
        if number <= MANY_ATTRIBUTES:
            return "rounds"
        return "rounds" if number <= MOST_ATTRIBUTES and self.rounds() > self.fewest() else "tree"
