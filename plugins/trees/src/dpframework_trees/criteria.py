"""Splitting criteria, as scores of a split whose sensitivity is known.

The score of a split is the sum of f over its children, where f is a function of a child's class counts n. Adding a row
changes one class count of one child by 1, so the score has the sensitivity of f. `max`, `gini` and
`information-gain` are from Friedman and Schuster 2010. `norm` is not. The derivations are here, and tests check them
by brute force.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import MOST_ROWS, InputError, Schema, nearest, rational_above
from dpframework.formulas import (
    LAST_INCREMENT,
    Cells,
    Formula,
    Parts,
    ScoreClaims,
    as_formula,
    cells,
    largest_over_classes,
    most,
    n,
    root,
    rows,
    rows_of_part,
    score_claims,
    sum_over_classes,
    x_log2_x,
)
from dpframework.queries import Norm, Sensitivity, entropy_change

if TYPE_CHECKING:
    from dpframework_trees.kernels import CriterionKernels

UNIT_ROUNDOFF = Fraction(1, 2**53)
LIBRARY = 8  # how many unit roundoffs exp, log and log2 may be off by, which are 4 units in the last place


@attrs.frozen
class Criterion:
    """A splitting criterion.

    Attributes
    ----------
    name
        The criterion's name in a study.
    text
        The score in words.
    formula
        The score as a formula.
    bounds
        Bounds on how far one row moves the score: its rise and its fall when a row is added, and its change when a row
        is replaced.
    costs
        For `max` only, the cost of an error on a row of each class. Counts of rows are multiplied by these
        costs. Empty if all errors cost the same.
    """

    name: str
    text: str
    formula: Parts
    bounds: tuple[Formula, Formula, Formula]
    costs: tuple[int, ...] = ()

    @property
    def largest_cost(self) -> int:
        """The largest cost of an error. 1 if all errors cost the same."""
        return max(self.costs, default=1)

    def weigh(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Return class counts, shape (..., classes), with each class's count multiplied by the cost of its errors."""
        return counts * np.array(self.costs, dtype=np.int64) if self.costs else counts

    @property
    def kernels(self) -> CriterionKernels:
        """The kernels that compute scores, compiled from the formula."""
        from dpframework_trees.kernels import kernels_of

        return kernels_of(self.formula)

    @property
    def formula_claims(self) -> ScoreClaims:
        """The formula with its claims, which `dpframework prove` proves.

        With costs w, the formula scores one child only, by the largest of its w_c n_c. That is enough, since a row is
        in one child of a split. The row moves the term of its class c by w_c, and a maximum moves by no more than its
        terms do.
        """
        if self.costs:
            classes = cells(*(f"class_{k}" for k in range(len(self.costs))))
            largest = most(*(cost * rows_of for cost, rows_of in zip(self.costs, classes, strict=True)))
            bounds = (self.largest_cost, 0, self.largest_cost)
            return score_claims(
                f"{self.name} with costs", Cells(classes, largest), *bounds, scorer=self._score_of_child
            )
        return score_claims(self.name, self.formula, *self.bounds, scorer=self._score)

    def _score(self, counts: NDArray[np.int64], parameters: Mapping[str, Any]) -> float:
        """Return the score of a table of children by classes, as the kernels compute it."""
        return float(sum(map(self.kernels.child_score, np.ascontiguousarray(counts, dtype=np.int64))))

    def _score_of_child(self, counts: NDArray[np.int64], parameters: Mapping[str, Any]) -> float:
        """Return the score of one child's class counts with costs, as the queries compute it."""
        return float(self.kernels.child_score(self.weigh(counts)))

    def sensitivity(
        self, row_bound: int | None, *, exact: bool = False, group: int = 1, classes: int = 2
    ) -> Sensitivity:
        """Return the linf sensitivity of the scores, given a public bound on the rows (None if there is none).

        `group` is how many rows are added, removed or replaced. `classes` is the number of classes, which matters only
        for several rows.

        With `exact`, the bound is the table's public number of rows. A neighbour with added rows then exceeds it.

        `norm` and `max` are norms of n (the 3-norm, the infinity norm): on counts a norm grows when a count grows,
        and by the triangle inequality by at most the norm of a unit vector, 1. So the score is monotonic. To replace a
        row is a fall in [0, 1] and a rise in [0, 1], which changes a score by at most 1.

        `gini` is f = sum of n_c**2 / N, N the sum of n: the Gini score minus the part that is the same for all
        splits. Adding a row of class c changes it by (2 n_c + 1 - f) / (N + 1), which lies in (-1, 1]: at most 1,
        and not monotonic. A replacement in a table of n rows changes it by at most 2 - 2/n.

        If k rows are added, `gini` rises by at most k. Let k_c of them be added to n_c, and let T = N + k. It falls by

            (sum of n_c**2 k / N - 2 sum of n_c k_c - sum of k_c**2) / T.

        This is convex in the n_c. Among all n_c that add up to N, it is therefore largest where all rows are of one
        class. Let j of the k added rows be of that class, and m = k - j of others. Then the fall is
        (N m - N j - j**2 - q) / T, where q is the sum of the other classes' k_c**2. That is at most
        (N m - q) / (N + m) = m - (m**2 + q) / (N + m). For C classes, q is at least m and at least m**2 / (C - 1). As
        m**2 / T is convex and homogeneous, the falls of several children add up to no more than the fall of one child
        with their sums. So the fall is at most m - (m**2 + max(m, m**2 / (C - 1))) / R for some m up to k, where R is
        the largest number of rows. If up to k rows are replaced, both tables are their shared rows with up to k rows
        added, so the scores differ by at most k plus that fall.

        `information-gain` is f = sum of n_c log2(n_c / N). The score is minus N H(class given child). So it never rises
        when rows are added, and it falls by at most what `entropy_sensitivity` derives for k added rows, at most R rows
        after that, and C classes. It is monotonic. If rows are replaced, the scores of both tables lie below the score
        of their shared rows, by at most that fall each.

        Raises
        ------
        InputError
            If the criterion needs a public bound on the rows and there is none.
        """
        with_more = None if row_bound is None else row_bound + (group if exact else 0)
        if self.name == "published-gini":
            source = "Gini score as Friedman and Schuster 2010 and Bai et al. 2017 bound it: valid, and twice too large"
            return Sensitivity(Norm.LINF, 2, 2, source=source)
        if self.name == "gini":
            source = f"{self.text}: derived in criteria.py"
            replaced = group + gini_fall(row_bound, group, classes)
            fall = Fraction(group) if group == 1 else gini_fall(with_more, group, classes)
            return Sensitivity(Norm.LINF, group, replaced, rise=group, fall=fall, source=source)
        source = f"{self.text}: derived in criteria.py"
        if self.name == "information-gain":
            if row_bound is None or with_more is None:
                raise InputError(
                    "criterion 'information-gain' needs a public bound on the rows; set max_rows or rows in the schema"
                )
            added, replaced = (rational_above(entropy_change(rows, group, classes)) for rows in (with_more, row_bound))
            return Sensitivity(Norm.LINF, added, replaced, rise=0, source=source)
        change = group * self.largest_cost
        return Sensitivity(Norm.LINF, change, change, fall=0, source=source)

    def for_group(
        self, row_bound: int | None, group: int, classes: int, *, exact: bool = False
    ) -> tuple[Sensitivity, ...]:
        """Return the sensitivity for `group` rows in a tuple, or () if it is not below the sum over single rows."""
        if self.name in ("norm", "max", "published-gini") or row_bound is None:
            return ()
        return (self.sensitivity(row_bound, exact=exact, group=group, classes=classes),)

    def rounding(self, classes: int, row_bound: int | None, summed: int) -> Fraction:
        """Return how far a computed sum of f over `summed` children, which share all rows, may be from the true sum.

        Let u = 2**-53, C the classes, and n the rows of a child. To first order in u:

        - `norm` is the cube root of a sum of cubes. A cube has a relative error of 2 u, and the sum adds C - 1 units u.
          The root has a third of that. The root begins with the exponential of a third of a logarithm of at most 75,
          which has an error of 300 u. Newton's step leaves the square of that. In floating point it subtracts two
          numbers that are so near to each other that their difference is exact, except for the 2 u of the cube. A third
          of these 2 u counts. With the last subtraction that is less than 2 u. (C + 1) / 3 + 2 is below 13 + 2 C, which
          is declared. An earlier form of the computation needed 13 + 2 C, and the cost of a selection should not
          change.
        - `max` is a count and exact.
        - `gini`: a term has a relative error of 2 u, and a sum of C terms adds C - 1. Together that is C + 1.
        - `information-gain`: a quotient has a relative error of u. Its logarithm is off by u / ln 2 and a relative 8 u,
          the product adds one u, and a sum of C terms adds C - 1. Together that is n u / ln 2, plus C + 8 units u of
          abs(f), which is at most n log2(C).

        So f is off by at most K u n, and its size is at most M n, where M is log2(C) for `information-gain`, else 1.
        The children share R rows. R is one more than the public number, since a neighbour may have one more row. Each
        addition of a child's score costs a relative u. In all that is K u R + summed M u R. Another thousandth covers
        all terms of second order.
        """
        rows = ((MOST_ROWS if row_bound is None else row_bound) + 1) * self.largest_cost
        largest = Fraction(math.ceil(math.log2(classes)) if self.name == "information-gain" else 1)
        terms = {
            "norm": Fraction(13 + 2 * classes),
            "max": Fraction(0),
            "gini": Fraction(classes + 1),
            "published-gini": Fraction(classes + 1),
            "information-gain": 2 + (classes + LIBRARY) * largest,
        }
        return (terms[self.name] + summed * largest) * UNIT_ROUNDOFF * rows * Fraction(1001, 1000)


def gini_fall(rows: int | None, group: int, classes: int) -> Fraction:
    """Return the largest fall of the `gini` score when a group of rows is added (see `Criterion.sensitivity`).

    Parameters
    ----------
    rows
        The largest number of rows after the addition. None if there is no bound.
    group
        How many rows are added.
    classes
        The number of classes.

    Examples
    --------
    >>> gini_fall(8, 2, 2), gini_fall(None, 2, 2)
    (Fraction(1, 1), Fraction(2, 1))
    """
    if rows is None or rows < 2:
        return Fraction(group)
    others = max(classes, 2) - 1
    # As a function of a real m, the fall is concave, with a kink at m = `others`, where m**2 / others begins to exceed
    # m. Its maximum is at the kink, above it at rows * others / (2 (others + 1)), or below it at (rows - 1) / 2. The
    # best whole number is always among those tried here.
    turns = {rows * others // (2 * (others + 1)), others}
    return max(
        m - (m**2 + max(Fraction(m), Fraction(m**2, others))) / rows
        for m in {min(turn + more, group) for turn in turns for more in (0, 1)}
    )


@final
@attrs.frozen
class KnownRows:
    """The public facts about the number of rows, for criteria whose sensitivity needs it.

    Attributes
    ----------
    bound
        The largest number of rows that a table may have. None if there is no public bound.
    exact
        Whether the table has exactly `bound` rows.
    """

    bound: int | None = None
    exact: bool = False

    @classmethod
    def of(cls, schema: Schema) -> KnownRows:
        """Return what a schema says about the number of rows."""
        return cls(schema.row_bound, schema.rows is not None)


_0, _1, _2 = (as_formula(number) for number in range(3))
_GINI = Parts(sum_over_classes(n**2) / rows_of_part)

CRITERIA = {
    criterion.name: criterion
    for criterion in (
        Criterion(
            "norm",
            "sum over children of the 3-norm of the class counts",
            Parts(root(sum_over_classes(n**3), 3)),
            (_1, _0, _1),
        ),
        Criterion("max", "sum over children of the largest class count", Parts(largest_over_classes(n)), (_1, _0, _1)),
        Criterion("gini", "sum over children of sum of n_c^2 / N (purity)", _GINI, (_1, 1 - 2 / rows, 2 - 2 / rows)),
        Criterion(
            "information-gain",
            "sum over children of sum of n_c log2(n_c / N)",
            Parts(sum_over_classes(x_log2_x(n)) - x_log2_x(rows_of_part)),
            (_0, LAST_INCREMENT, LAST_INCREMENT),
        ),
    )
}

#: Gini with the sensitivity that was published, which is twice too large. For comparison, not for use.
PUBLISHED_GINI = Criterion("published-gini", CRITERIA["gini"].text, _GINI, (_2, _2, _2))


def criterion_named(name: str) -> Criterion:
    """Return a criterion by name.

    Raises
    ------
    InputError
        If there is no criterion of that name.
    """
    if name not in CRITERIA:
        raise InputError(f"criterion {name!r} is unknown; {nearest(str(name), CRITERIA)}")
    return CRITERIA[name]
