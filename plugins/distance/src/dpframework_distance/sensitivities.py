"""Bounds on the change of entropies between neighbours, derived here and brute-forced in `test_sensitivities.py`.

Everything is kept unnormalised, as a sum over counts: with f(n) = n log2(n) and N rows,

    N H(X)     = f(N) - sum over x of f(n_x)
    -N H(Y|S)  = sum over s, y of f(n_sy) - sum over s of f(n_s)        (N I'(Y, S) of the paper)

If N is public, it is a factor on which no choice depends. Without this factor, nothing here needs to know N. Let g(n) =
f(n + 1) - f(n), which grows in n from g(0) = 0, and G(N) = g(N - 1) = f(N) - f(N - 1) = N L(N).

Adding a row to one of N - 1 changes

- N H(X) by g(N - 1) - g(n_x), which lies in [0, G(N)]: never downwards;
- -N H(Y|S) by g(n_sy) - g(n_s), which lies in [-G(N), 0], since n_sy <= n_s <= N - 1: never upwards.

So both are monotonic, with sensitivity G(R) if no table has more than R rows. A replacement is a removal and an
addition. It changes either number by something in [0, G] and something in [-G, 0], and so by at most G(N). All three
bounds are attained, by N - 1 equal rows and one row that enters or leaves a value of its own. The scores of two
candidates move apart by at most 2 G(N) (one up, the other down), and that is attained too.

The published bounds are 1 / ln 2 + log2(N), a little above G(N), for the entropy, and twice that for I' (theorems 5 to
7, times N). But the two entropies that make up I' cannot change in opposite ways.

For symmetric uncertainties, the entropies of attributes are released with weights w_X, and N H(Y|X) for some pairs. An
added row raises N H(X) by G - g(n_X), and each of the p_X conditional entropies given X by at most g(n_X). Together
that is at most max(w_X, p_X) G in the l1 norm. Under replace-one each number changes by at most G.

**Several rows of one unit** (`RowBounds.of_group`). Let up to k rows be added, so that there are at most R rows. All
entropies still grow: N H(X) by at most B(v) = `queries.entropy_change` for the v values of X, and N H(Y|S) by at most
the bound for the values of Y. A score falls by at most that. If rows leave and others come, both tables consist of the
rows that they share and up to k more. So a number changes by at most B(v) between them.

Let h be that bound for any number of values, let N H(X) grow by u, and let A = h(N, k) - u, which is the sum of h(n_x,
k_x) over the values of X. Each N H(Y|X) grows by at most A, and by at most B of Y. So the weighted numbers of X change
together by at most

    w_X u + the sum over Y of min(h - u, B(v_Y)),    0 <= u <= B(v_X),

which is piecewise linear in u (for squares, piecewise convex), and so largest at an end or where a minimum changes.
Likewise, with a for the A of all its attributes, a common context's score falls by at most the sum of min(a, B(v_Y))
over the attributes that it lacks and of min(h - a, B(v_Y)) over those that it has, for 0 <= a <= h.

The bounds for one row need only that g grows. So f is kept as a sum of values of g that are rounded to multiples of
2**-22, for which these bounds hold unchanged (`entropy_terms.py`). For several rows, B needs f itself. The 2 k
increments of f in it are off by at most k units together, and B is raised by that. Sums of rounded terms are exact.
What floating point rounds afterwards, the last weight and division, is far below the step that every mechanism's
lattice allows for.
"""

from __future__ import annotations

import abc
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import InputError, Schema
from dpframework.formulas import LAST_INCREMENT, Parts, n, rows_of_part, score_claims, sum_over_classes, x_log2_x
from dpframework.queries import Norm, Query, Sensitivity, entropy_change
from dpframework_distance.entropy_terms import UNITS, Terms


def _score(counts: NDArray[np.int64], parameters: Mapping[str, Any]) -> float:
    """Return -N H(Y|S) of a table of values of S by values of Y, in rounded terms."""
    given = counts.sum(axis=1)
    f = Terms.of(counts, given)
    return float(f(counts).sum() - f(given).sum()) / UNITS


#: -N H(Y|S) as a formula, with the values of S as parts and those of Y as classes.
CONDITIONAL_ENTROPY = score_claims(
    "context-scores",
    Parts(sum_over_classes(x_log2_x(n)) - x_log2_x(rows_of_part)),
    0,
    LAST_INCREMENT,
    LAST_INCREMENT,
    _score,
)


def _entropy(counts: NDArray[np.int64], parameters: Mapping[str, Any]) -> float:
    return -_score(counts, parameters)


#: N H(X) as a formula of one part, with the values of X as classes. With several parts it is a sum of entropies.
ENTROPY = score_claims(
    "entropy",
    Parts(x_log2_x(rows_of_part) - sum_over_classes(x_log2_x(n))),
    LAST_INCREMENT,
    0,
    LAST_INCREMENT,
    _entropy,
)


def _in_units_above(value: float) -> Fraction:
    """Return a bound on real numbers, rounded up to a bound on whole numbers of units."""
    return Fraction(math.ceil(value * UNITS), UNITS)


def published_entropy_change(rows: int) -> float:
    """Return the published bound on the change of N H, 1 / ln 2 + log2(N), a little above G(N).

    Examples
    --------
    >>> published_entropy_change(1000) > entropy_change(1000)
    True
    """
    return 1 / math.log(2) + math.log2(rows)


@attrs.frozen
class RowBounds:
    """The public facts about the number of rows, and the bounds on entropies that follow.

    Attributes
    ----------
    replaced
        The largest number of rows under replace-one.
    added
        The largest number of rows of either neighbour under add-or-remove-one. None if only the exact number is public,
        which that relation keeps private.
    published
        Whether the paper's bounds are declared (replace-one only).
    group
        How many rows one unit may have. Up to this many rows are added, or leave while as many others come.
    """

    replaced: int
    added: int | None
    published: bool = False
    group: int = 1

    @classmethod
    def of(cls, schema: Schema, *, published: bool = False) -> RowBounds:
        """Return the bounds of a schema.

        Raises
        ------
        InputError
            If the schema has neither `rows` nor `max_rows`.
        """
        if schema.row_bound is None:
            raise InputError(
                "the sensitivity of entropies needs a public row count: set rows in the schema and use "
                "replace-one, or set max_rows, a public upper bound, or take context = 'baseline'"
            )
        if published and schema.rows is None:
            raise InputError("sensitivity = 'published' holds for a public row count only; set rows in the schema")
        added = schema.max_rows
        if added is not None and schema.rows is not None:
            added = max(added, schema.rows + 1)
        return cls(schema.row_bound, None if published else added, published)

    def of_group(self, rows: int) -> RowBounds | None:
        """Return the bounds for a unit of several rows, or None for published bounds, which hold for one row only."""
        if self.published:
            return None
        added = self.added
        if added is not None and added > self.replaced:  # if the exact number is public too, a whole unit may come
            added = max(added, self.replaced + rows)
        return attrs.evolve(self, added=added, group=rows)

    def changes(self, rows: int, values: int | None) -> Fraction:
        """Return the bound B for an attribute with `values` values (None for any number), in at most `rows` rows."""
        return _changes(self.published, self.group, rows, values)

    def _scores(self, change: Callable[[int], Fraction]) -> tuple[Sensitivity, ...]:
        """Return the sensitivity of scores that never rise, from a bound on their fall for a number of rows."""
        factor = 2 if self.published else 1
        source = "theorems 6 and 7 of the paper" if self.published else "conditional entropies: sensitivities.py"
        added = None if self.added is None else change(self.added) * factor
        return (Sensitivity(Norm.LINF, added, change(self.replaced) * factor, rise=0, source=source),)

    def of_scores(self, values: int) -> tuple[Sensitivity, ...]:
        """Return the sensitivity of scores -N H(Y|S), given the number of values of Y."""
        return self._scores(lambda rows: self.changes(rows, values))

    def of_common_scores(self, sizes: Sequence[int], inside: int) -> tuple[Sensitivity, ...]:
        """Return the sensitivity of common contexts' scores, given the values of each attribute and a context's size.

        At each a (see the module), the context that loses most has the attributes for which the two minima differ most.
        """

        def change(rows: int) -> Fraction:
            whole, each = self.changes(rows, None), [self.changes(rows, size) for size in sizes]
            found = []
            for a in {Fraction(0), whole, *each, *(whole - own for own in each)}:
                outside = [min(a, own) for own in each]
                more = sorted((min(whole - a, own) - lost for own, lost in zip(each, outside, strict=True)))
                found.append(sum(outside, Fraction(0)) + sum(more[len(more) - inside :], Fraction(0)))
            return max(found)

        return self._scores(change)

    def of_entropies(self, sizes: Sequence[int]) -> tuple[Sensitivity, ...]:
        """Return the sensitivities of a vector of N H, given the number of values of each. All may change at once."""

        def change(rows: int, power: int) -> Fraction:
            return sum((self.changes(rows, size) ** power for size in sizes), Fraction(0))

        source = "theorem 5 of the paper" if self.published else "entropies: sensitivities.py"
        return self._vector(change, change, source)

    def of_conditional_entropies(
        self, weights: Sequence[Fraction], sizes: Sequence[int], given: Sequence[Sequence[int]]
    ) -> tuple[Sensitivity, ...]:
        """Return the sensitivities of weighted N H(X) and of N H(Y|X), with the sizes of the Y of each X as `given`."""

        def together(rows: int, power: int) -> Fraction:
            total = Fraction(0)
            for weight, size, others in zip(weights, sizes, given, strict=True):
                whole, own = self.changes(rows, None), self.changes(rows, size)
                each = [(self.changes(rows, other), number) for other, number in Counter(others).items()]
                turns = {Fraction(0), own, *(min(whole - change, own) for change, _ in each)}
                total += max(
                    (weight * u) ** power
                    + sum((n * min(whole - u, change) ** power for change, n in each), Fraction(0))
                    for u in turns
                )
            return total

        def alone(rows: int, power: int) -> Fraction:
            weighted = (weight * self.changes(rows, size) for weight, size in zip(weights, sizes, strict=True))
            many = Counter(itertools.chain.from_iterable(given))
            conditional = (number * self.changes(rows, other) ** power for other, number in many.items())
            return sum((number**power for number in weighted), Fraction(0)) + sum(conditional, Fraction(0))

        return self._vector(together, alone, "conditional entropies: sensitivities.py")

    def _vector(
        self, added: Callable[[int, int], Fraction], replaced: Callable[[int, int], Fraction], source: str
    ) -> tuple[Sensitivity, ...]:
        """Return the sensitivities of a vector that only grows, from bounds on the sums of powers of its changes."""
        return tuple(
            Sensitivity(
                norm,
                None if self.added is None else added(self.added, power),
                replaced(self.replaced, power),
                fall=0,
                source=source,
            )
            for norm, power in ((Norm.L1, 1), (Norm.SQUARED_L2, 2))
        )


@functools.lru_cache(maxsize=4096)
def _changes(published: bool, group: int, rows: int, values: int | None) -> Fraction:
    """Return `RowBounds.changes`, computed once for all attributes of one size."""
    if published:
        return _in_units_above(published_entropy_change(rows))
    off = 0 if group == 1 else Fraction(group, UNITS)
    return _in_units_above(entropy_change(rows, group, values)) + off


class OfEntropies(Query):
    """A query of entropies, whose sensitivities follow from the public facts about the number of rows."""

    bounds: RowBounds

    @abc.abstractmethod
    def _declare(self, bounds: RowBounds) -> tuple[Sensitivity, ...]:
        """Return the query's sensitivities for some bounds."""

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivities for the query's bounds (see the module)."""
        return self._declare(self.bounds)

    def for_rows(self, rows: int) -> tuple[Sensitivity, ...]:
        """Return the sensitivities for a unit of several rows.

        With published bounds none are known, since these bounds hold for one row only.
        """
        bounds = self.bounds.of_group(rows)
        return () if bounds is None else self._declare(bounds)
