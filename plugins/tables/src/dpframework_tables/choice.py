"""The choice of a method, of rounds, and of a share for the one-way marginals, by public facts alone.

What decides is the *noise share* of a table: the distance that noise alone puts between a released table and the exact
one, as a share of the rows,

    cells x mean size of a count's noise / (2 x rows).

It follows from the budget, the attributes' sizes and a public number of rows: exact, about, or at most. Taken are a
typical pair (of the geometric mean of the sizes) and the one-way marginals on average. The rules were found on Adult,
nursery and nltcs; docs/tables.md shows them on other tables too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import final

import attrs

from dpframework_tables.budgets import TableBudget

METHODS = ("independent", "tree", "rounds")
MOST_ATTRIBUTES = 32  # of rounds: each of them looks at all pairs
MOST_CANDIDATES = 2100  # of which triples are selected too

_NOISE_OF_SINGLES = 0.03  # a noise share of one-way marginals that is small enough
_LEAST, _MOST = Fraction(1, 10), Fraction(3, 10)  # shares of the budget for them
_FEWEST = 3  # rounds
_ROUNDS = 1.0  # the noise share of a pair after T rounds is at most this, times T**-1.5
_TOO_NOISY = 0.25  # the noise share of a pair at the fewest rounds: nothing but one-way marginals is worth it
_OF_SET = 0.08  # the noise share of a marginal that rounds may select, if there are such pairs
_UNKNOWN = Fraction(2, 10)  # the share for one-way marginals where nobody says how many rows there are


@final
@attrs.frozen
class Facts:
    """Public facts about a table and its budget.

    Attributes
    ----------
    sizes
        The numbers of codes of the attributes.
    budget
        The budget.
    rows
        How many rows there are, about or at most; None if nobody says.
    """

    sizes: tuple[int, ...]
    budget: TableBudget
    rows: int | None

    def noise_of_singles(self, share: Fraction) -> float | None:
        """Return about the noise share of a one-way marginal, if all of them get that share of the budget."""
        if self.rows is None:
            return None
        error = self._error(share / len(self.sizes))
        return math.fsum(self.sizes) / len(self.sizes) * error / (2 * max(self.rows, 1))

    def noise_of_pairs(self, rounds: int) -> float | None:
        """Return about the noise share of a typical pair that is measured in one of `rounds` rounds."""
        if self.rows is None:
            return None
        cells = math.exp(2 * math.fsum(map(math.log, self.sizes)) / len(self.sizes))
        measure = (1 - self.share_of_singles()) * Fraction(9, 10)
        return cells * self._error(measure / rounds) / (2 * max(self.rows, 1))

    def most_cells(self, rounds: int, share: Fraction) -> int | None:
        """Return how many cells a marginal may have that is measured in one of `rounds` rounds.

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
        return math.floor(_OF_SET * 2 * max(self.rows, 1) / error)

    def _error(self, share: Fraction) -> float:
        variance = self.budget.variance(share)
        return math.sqrt(2 * variance / math.pi) if self.budget.zcdp else math.sqrt(variance / 2)

    def share_of_singles(self) -> Fraction:
        """Return the share of the budget for one-way marginals, before rounds."""
        noise = self.noise_of_singles(Fraction(1))
        if noise is None:
            return _UNKNOWN
        needed = noise / _NOISE_OF_SINGLES
        needed = needed**2 if self.budget.zcdp else needed
        return min(max(Fraction(math.ceil(100 * min(needed, 1.0)), 100), _LEAST), _MOST)

    def rounds(self) -> int:
        """Return how many rounds there are: more than one for each attribute only where noise is small."""
        number = len(self.sizes)
        if self.rows is None:
            return number
        found = _FEWEST
        while found < 2 * number and (self.noise_of_pairs(found + 1) or 0) <= _ROUNDS * (found + 1) ** -1.5:
            found += 1
        return found

    def order(self) -> int:
        """Return how many attributes a marginal has at most."""
        number = len(self.sizes)
        return 3 if math.comb(number, 3) + math.comb(number, 2) <= MOST_CANDIDATES else 2

    def method(self) -> str:
        """Return the method: by predicted noise, and by how many pairs there are to look at."""
        noise = self.noise_of_pairs(_FEWEST)
        if len(self.sizes) < 2 or (noise is not None and noise > _TOO_NOISY):
            return "independent"
        return "rounds" if len(self.sizes) <= MOST_ATTRIBUTES else "tree"
