"""Splitting criteria, as scores of a split whose sensitivity is known.

The score of a split is the sum of f over its children, f a function of a child's class counts n. Adding a row
changes one class count of one child by 1, so a score's sensitivity is that of f. Sources: Friedman and Schuster 2010
for the criteria; the derivations are here, and tests check them by brute force.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import final

import attrs

from dpframework.facts import InputError, Schema, nearest, rational_above
from dpframework.queries import Norm, Sensitivity

NORM, MAX, GINI, INFORMATION_GAIN = range(4)  # their numbers in the kernels
MOST_ROWS = 2**31 - 1  # of a table: the kernels count in 32 bits
UNIT_ROUNDOFF = Fraction(1, 2**53)
LIBRARY = 8  # unit roundoffs, 4 units in the last place: by which exp, log and log2 may be off


@attrs.frozen
class Criterion:
    """A splitting criterion.

    Attributes
    ----------
    name
        Its name in a study.
    code
        Its number in the kernels.
    text
        What f is.
    """

    name: str
    code: int
    text: str

    def sensitivity(self, row_bound: int | None, *, exact: bool = False) -> Sensitivity:
        """Return the linf sensitivity of the scores, given a public bound on the rows (None if there is none).

        With `exact`, the bound is the table's public number of rows, and a neighbour with one row more exceeds it.

        `norm` and `max` are norms of n (the 3-norm, the infinity norm): on counts a norm grows when a count grows,
        and by the triangle inequality by at most the norm of a unit vector, 1. Monotonic; a replacement is a fall
        in [0, 1] and a rise in [0, 1], so it changes a score by at most 1.

        `gini` is f = sum of n_c**2 / N, N the sum of n: the Gini score minus the part that is the same for all
        splits. Adding a row of class c changes it by (2 n_c + 1 - f) / (N + 1), which lies in (-1, 1]: at most 1,
        and not monotonic. A replacement in a table of n rows changes it by at most 2 - 2/n.

        `information-gain` is f = sum of n_c log2(n_c / N). With g(x) = (x + 1) log2(x + 1) - x log2(x), which grows
        in x, adding a row of class c changes it by g(n_c) - g(N): never upwards, and by at most g(N). With at most
        R rows N is at most R - 1, and g(R - 1) = R log2(R) - (R - 1) log2(R - 1). Monotonic.

        Raises
        ------
        InputError
            If the criterion needs a bound on the rows and there is none.
        """
        if self.name == "published-gini":
            source = "Gini score as Friedman and Schuster 2010 and Bai et al. 2017 bound it: valid, and twice too large"
            return Sensitivity(Norm.LINF, 2, 2, source=source)
        if self.name == "gini":
            replaced = 2 - Fraction(2, row_bound) if row_bound is not None and row_bound > 1 else Fraction(2)
            return Sensitivity(Norm.LINF, 1, replaced, source=f"{self.text}: derived in criteria.py")
        source = f"{self.text}: derived in criteria.py"
        if self.name == "information-gain":
            if row_bound is None:
                raise InputError(
                    "criterion 'information-gain' needs a public bound on the rows; set max_rows or rows in the schema"
                )
            added = rational_above(gain_sensitivity(row_bound + exact))
            replaced = rational_above(gain_sensitivity(row_bound))
            return Sensitivity(Norm.LINF, added, replaced, rise=0, source=source)
        return Sensitivity(Norm.LINF, 1, 1, fall=0, source=source)

    def rounding(self, classes: int, row_bound: int | None, summed: int) -> Fraction:
        """Return how far a computed sum of f over `summed` children of all rows may be from the true one.

        Let u = 2**-53, C the classes, and n the rows of a child. To first order in u:

        - `norm` is m exp(log(s) / 3), m the largest count and s in [1, C] the sum of the cubes of n_c / m. A cube is
          off by a share of 11 u (3 u of its quotient, 8 u of its power), s by C + 10 of them, log(s) by that and 8 u
          ln(C), a third of it by a third of that and u ln(C) / 3, its exponential by that and 8 u, the product by u
          more: (C + 10) / 3 + 3 ln(C) + 9 is below 13 + 2 C.
        - `max` is a count: exact.
        - `gini`: a term is off by a share of 2 u, a sum of C by C - 1 more: C + 1.
        - `information-gain`: a quotient is off by a share of u, its logarithm by u / ln 2 and a share of 8 u, its
          product by one more, a sum of C by C - 1: n u / ln 2, and a share of C + 8 of abs(f), which is at most
          n log2(C).

        So f is off by at most K u n, and at most M n in size: M is log2(C) for `information-gain`, else 1. The children
        share R rows (one more than a public number, which a neighbour may have). Adding up their scores costs a share
        of u an addition: K u R + summed M u R in all. All terms of second order are covered by a thousandth more.
        """
        rows = (MOST_ROWS if row_bound is None else row_bound) + 1
        largest = Fraction(math.ceil(math.log2(classes)) if self.code == INFORMATION_GAIN else 1)
        terms = {
            NORM: Fraction(13 + 2 * classes),
            MAX: Fraction(0),
            GINI: Fraction(classes + 1),
            INFORMATION_GAIN: 2 + (classes + LIBRARY) * largest,
        }
        return (terms[self.code] + summed * largest) * UNIT_ROUNDOFF * rows * Fraction(1001, 1000)


def gain_sensitivity(rows: int) -> float:
    """Return R log2(R) - (R - 1) log2(R - 1) for R rows; below log2(R) + 1 / ln 2, the published bound.

    Examples
    --------
    >>> gain_sensitivity(2)
    2.0
    """
    return rows * math.log2(rows) - (rows - 1) * math.log2(max(rows - 1, 1)) if rows > 1 else 1.0


@final
@attrs.frozen
class KnownRows:
    """What is public of the number of rows, for criteria whose sensitivity needs it.

    Attributes
    ----------
    bound
        The largest number, None if there is none.
    exact
        Whether the table has just so many.
    """

    bound: int | None = None
    exact: bool = False

    @classmethod
    def of(cls, schema: Schema) -> KnownRows:
        """Return what a schema says."""
        return cls(schema.row_bound, schema.rows is not None)


CRITERIA = {
    criterion.name: criterion
    for criterion in (
        Criterion("norm", NORM, "sum over children of the 3-norm of the class counts"),
        Criterion("max", MAX, "sum over children of the largest class count"),
        Criterion("gini", GINI, "sum over children of sum of n_c^2 / N (purity)"),
        Criterion("information-gain", INFORMATION_GAIN, "sum over children of sum of n_c log2(n_c / N)"),
    )
}

#: Gini as published: for comparison, not for use.
PUBLISHED_GINI = Criterion("published-gini", GINI, CRITERIA["gini"].text)


def criterion_named(name: str) -> Criterion:
    """Return a criterion by name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in CRITERIA:
        raise InputError(f"criterion {name!r} is unknown; {nearest(str(name), CRITERIA)}")
    return CRITERIA[name]
