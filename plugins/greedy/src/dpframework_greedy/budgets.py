"""How a budget is shared between initial pairs, extensions and qualities, and how many choices a share can pay for.

A quality is the noisy counts of one redescription. The five named distributions are those of Karjalainen, Galbrun and
Miettinen 2022, section 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.facts import InputError, exact, nearest

#: The shares of pairs, extensions and qualities, by the names of the paper.
DISTRIBUTIONS: dict[str, tuple[str, str, str]] = {
    "d1": ("1/3", "1/3", "1/3"),
    "d2": ("0.45", "0.45", "0.1"),
    "d3": ("0.6", "0.3", "0.1"),
    "d4": ("0.3", "0.6", "0.1"),
    "d5": ("0.25", "0.25", "0.5"),
}
MOST_PAIRS = 20  # the published number of initial pairs
MOST_EXTENSIONS = 4  # the published number of extensions per pair
USEFUL_GAP = Fraction(1, 2)  # a pair whose score, from 0 to 1, is further than this from the best is of little use
#: By how much a good extension raises the Jaccard index. A choice further than this from the best may gain nothing.
WORTH = Fraction(1, 10)


@final
@attrs.frozen
class BudgetShares:
    """The shares of a budget, which add up to 1.

    Attributes
    ----------
    pairs, extensions, quality
        The shares of the initial pairs, of all extensions and of all qualities. The share of extensions may be 0.
    """

    pairs: Fraction
    extensions: Fraction
    quality: Fraction

    @classmethod
    def of(cls, given: Any) -> BudgetShares:
        """Return the shares of a named distribution, or three given shares.

        Raises
        ------
        InputError
            If there is no such distribution, if shares are not three that add up to 1, or if pairs or qualities get 0.

        Examples
        --------
        >>> BudgetShares.of("d3").pairs, BudgetShares.of([0.5, 0, 0.5]).quality
        (Fraction(3, 5), Fraction(1, 2))
        """
        if isinstance(given, BudgetShares):
            return given
        if isinstance(given, str):
            if given not in DISTRIBUTIONS:
                raise InputError(f"budget {given!r} is unknown; {nearest(given, DISTRIBUTIONS)}, or give three shares")
            given = DISTRIBUTIONS[given]
        if not isinstance(given, Iterable):
            raise InputError(f"budget is {given!r}; give a name from 'd1' to 'd5', or three shares that add up to 1")
        shares = [exact(share, "each share of the budget") for share in given]
        if len(shares) != 3 or sum(shares) != 1:
            raise InputError("budget needs three shares, for pairs, extensions and quality, that add up to 1")
        if shares[0] == 0 or shares[2] == 0:
            raise InputError("budget gives nothing to the pairs or to the quality; only the extensions may get nothing")
        return cls(*shares)

    def without_extensions(self) -> BudgetShares:
        """Return the shares if nothing is extended. The shares of pairs and of qualities keep their proportion.

        Examples
        --------
        >>> BudgetShares.of([0.25, 0.5, 0.25]).without_extensions()
        BudgetShares(pairs=Fraction(1, 2), extensions=Fraction(0, 1), quality=Fraction(1, 2))
        """
        rest = self.pairs + self.quality
        return BudgetShares(self.pairs / rest, Fraction(0), self.quality / rest)


def choices_within(distance: Fraction, epsilon: Fraction, spread: Fraction, candidates: int) -> int:
    """Return how many choices an epsilon pays for, each within a distance of the best score with probability 95 %.

    Let n choices among m candidates share an epsilon. With probability 95 %, a choice by the exponential mechanism has
    a score within (n spread / epsilon) ln(20 m) of the best (McSherry and Talwar 2007, Theorem 6).

    Examples
    --------
    >>> choices_within(Fraction(1, 2), Fraction(3, 5), Fraction(4, 1000), 10**6)
    4
    """
    return math.floor(float(distance * epsilon / spread) / math.log(20 * candidates))


def number_of_pairs(requested: int | None, carried: int, most: int) -> int:
    """Return the number of initial pairs that you ask for, or else the number that the budget pays for, at least 1.

    Raises
    ------
    InputError
        If you ask for more than `most`, the number of pairs of attributes.
    """
    if requested is None:
        return min(max(carried, 1), MOST_PAIRS, most)
    if requested > most:
        raise InputError(f"pairs is {requested}, but each needs its own pair of attributes; give at most {most}")
    return requested
