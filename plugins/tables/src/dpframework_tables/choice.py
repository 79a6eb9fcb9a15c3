"""The choice of a method, of rounds, and of a share for the one-way marginals, by public facts alone.

What decides is the *noise share* of a table: the distance that noise alone puts between a released table and the exact
one, as a share of the rows,

    cells x mean size of a count's noise / (2 x rows).

It follows from the budget, the attributes' sizes and a public number of rows: exact, about, or at most. Taken are a
typical pair (of the geometric mean of the sizes) and the one-way marginals on average. The rules were found on Adult,
mushroom, nursery and nltcs; docs/tables.md shows them on other tables too.

The noise share says how far a table as released is off, and the fit takes much of that away, since most cells of a
large table are empty. So a marginal may be selected up to a noise share of 1: the most dependent pair is often a large
one.
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
from dpframework_tables.budgets import TableBudget
from dpframework_tables.queries import NamedMarginal

METHODS = ("independent", "tree", "rounds", "adaptive")
MANY_ATTRIBUTES = 32  # more take rounds only where a budget pays for more than the fewest
MOST_ATTRIBUTES = 45  # of rounds: each of them looks at all pairs
MOST_CANDIDATES = 2100  # of which triples are selected too

_NOISE_OF_SINGLES = 0.03  # a noise share of one-way marginals that is small enough
_LEAST = Fraction(1, 10)  # a share of the budget for them
_MOST, _MOST_OF_TREE, _MOST_PURE = Fraction(1, 3), Fraction(3, 5), Fraction(7, 10)
_MADE = 4  # rounds whose budget one-way marginals never get
_TRIAL = Fraction(1, 9)  # of the budget: what a first round may cost beside them, where there are few rounds
_OF_PAIR, _OF_PAIR_PURE = 0.075, 0.035  # the noise share of a typical pair, up to which rounds are added
_TOO_NOISY = 0.6  # that at the fewest rounds: nothing but one-way marginals is worth it
_OF_SET = 1.0  # the noise share of a marginal that rounds may select, if there are such pairs
_UNKNOWN = Fraction(2, 10)  # the share for one-way marginals where nobody says how many rows there are


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
        How many rows there are, about or at most; None if nobody says.
    plan
        Any plan of the table: noise is as large as its unit and relation ask for.
    exact_rows
        The public number of rows, if there is one.
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
        """Return about the noise share of a one-way marginal, if all of them get that share of the budget."""
        if self.rows is None:
            return None
        variances = self.alone.variances(self.budget.amount * share, self.plan)
        if variances is None:
            return None
        errors = [size * self.budget.size_of_noise(own) for size, own in zip(self.sizes, variances, strict=True)]
        return math.fsum(errors) / len(self.sizes) / (2 * max(self.rows, 1))

    def noise_of_pairs(self, rounds: int) -> float | None:
        """Return about the noise share of a typical pair that is measured in one of `rounds` rounds."""
        if self.rows is None:
            return None
        cells = math.exp(2 * math.fsum(map(math.log, self.sizes)) / len(self.sizes))
        measure = (1 - self.share_of_singles) * Fraction(9, 10)
        return cells * self._error(measure / rounds) / (2 * max(self.rows, 1))

    def most_cells(self, rounds: int, share: Fraction) -> int | None:
        """Return how many cells a marginal may have that is measured in one of `rounds` rounds, None for any number.

        A larger one would be mostly noise, and a selection, which has noise too, could take it.

        Parameters
        ----------
        rounds
            How many.
        share
            The budget's share for one-way marginals.
        """
        if self.rows is None:
            return None
        error = self._error((1 - share) * Fraction(9, 10) / rounds)
        return math.floor(_OF_SET * 2 * max(self.rows, 1) / error) if error else None

    def _error(self, share: Fraction) -> float:
        """Return about the mean size of the noise of a count of a marginal with that share of the budget."""
        measured = step("marginal", NamedMarginal(self.among, 4), self.budget.counter(share))
        calibration = self.plan.calibration(measured)
        return math.inf if calibration is None else self.budget.size_of_noise(calibration.variance)

    @functools.cached_property
    def share_of_singles(self) -> Fraction:
        """The share of the budget for one-way marginals, before rounds."""
        return self.share_before("rounds")

    def share_before(self, method: str) -> Fraction:
        """Return the share of the budget for one-way marginals, before what a method measures besides."""
        noise = self.noise_of_singles(Fraction(1))
        if noise is None:
            return _UNKNOWN
        needed = noise / _NOISE_OF_SINGLES
        needed = needed**2 if self.budget.zcdp else needed
        most = _MOST_OF_TREE if method == "tree" else _MOST
        most = max(most if self.budget.zcdp else _MOST_PURE, 1 - self.fewest() * _TRIAL)
        return min(max(Fraction(math.ceil(100 * min(needed, 1.0)), 100), _LEAST), most)

    def given_back(self) -> int:
        """Return of how many of the rounds one-way marginals get the budget again, after the others.

        It is half of them where one-way marginals would be noisy even with the whole budget, but some are made: of a
        few attributes, each pair is in many of the marginals.
        """
        noise, rounds = self.noise_of_singles(Fraction(1)), self.rounds()
        noisy = self.budget.zcdp and noise is not None and noise > _NOISE_OF_SINGLES
        return min(rounds // 2, max(rounds - _MADE, 0)) if noisy else 0

    def fewest(self) -> int:
        """Return the fewest rounds that are worth it: one for every two attributes, or 3."""
        return max(3, -(-len(self.sizes) // 2))

    def rounds(self) -> int:
        """Return how many rounds there are: up to three for each attribute, while a pair is not mostly noise."""
        number = len(self.sizes)
        if self.rows is None:
            return number
        fewest = self.fewest()
        more = range(fewest + 1, 3 * number + 1)  # noise grows with the number of rounds
        most = _OF_PAIR if self.budget.zcdp else _OF_PAIR_PURE  # selections in pure epsilon are soon at random
        return fewest + bisect.bisect_right(more, most, key=lambda rounds: self.noise_of_pairs(rounds) or 0.0)

    def order(self) -> int:
        """Return how many attributes a marginal has at most."""
        number = len(self.sizes)
        return 3 if math.comb(number, 3) + math.comb(number, 2) <= MOST_CANDIDATES else 2

    def method(self) -> str:
        """Return the method: by predicted noise, and by how many pairs there are to look at."""
        noise = self.noise_of_pairs(self.fewest())
        number = len(self.sizes)
        if number < 2 or (noise is not None and noise > _TOO_NOISY):
            return "independent"
        if number <= MANY_ATTRIBUTES:
            return "rounds"
        return "rounds" if number <= MOST_ATTRIBUTES and self.rounds() > self.fewest() else "tree"
