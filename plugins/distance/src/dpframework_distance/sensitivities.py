"""How much entropies change between neighbours: derivations, brute-forced in `tests/test_sensitivities.py`.

Everything is kept unnormalised, as a sum over counts: with f(n) = n log2(n) and N rows,

    N H(X)     = f(N) - sum over x of f(n_x)
    -N H(Y|S)  = sum over s, y of f(n_sy) - sum over s of f(n_s)        (N I'(Y, S) of the paper)

since a public N is a factor that no choice depends on, and without it nothing here needs N to be known. Let
g(n) = f(n + 1) - f(n), which grows in n from g(0) = 0, and G(N) = g(N - 1) = f(N) - f(N - 1) = N L(N).

Adding a row to one of N - 1 changes

- N H(X) by g(N - 1) - g(n_x), which lies in [0, G(N)]: never downwards;
- -N H(Y|S) by g(n_sy) - g(n_s), which lies in [-G(N), 0], since n_sy <= n_s <= N - 1: never upwards.

So both are monotonic with sensitivity G(R) where no table has more than R rows. A replacement is a removal and an
addition: it changes either by something in [0, G] and something in [-G, 0], by at most G(N). All three bounds are
attained: N - 1 equal rows, and one row that enters or leaves a value of its own. Two candidates' scores move apart by
at most 2 G(N) (one of them up, the other down), and that is attained too.

The published bounds are 1 / ln 2 + log2(N), a little above G(N), for the entropy, and twice that for I' (theorems 5 to
7, times N): the two entropies that make up I' are not free to change in opposite ways.

For symmetric uncertainties the entropies of attributes are released with weights w_X, and N H(Y|X) for some pairs. A
row that is added raises N H(X) by G - g(n_X) and each of the p_X conditional entropies given X by at most g(n_X):
together, in the l1 norm, by at most max(w_X, p_X) G. Under replace-one each number changes by at most G.

None of this needs more of f than that g grows. So f is kept as a sum of g rounded to multiples of 2**-22, for which all
of it holds as it stands (`terms`), and sums of which are exact: what floating point rounds afterwards, the last weight
and division, is far below the step that every mechanism's lattice allows for.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import InputError, Schema
from dpframework.queries import Norm, Sensitivity

UNITS = 1 << 22  # in 1, of f: its sums stay below 2**63 for so many rows


@functools.lru_cache(maxsize=4)
def terms(rows: int) -> NDArray[np.int64]:
    """Return f(n) = n log2(n) for every n up to `rows`, as a whole number of units of 2**-22; read-only.

    Each is the one before it plus g, rounded. Rounding keeps the order of g, which alone sensitivities stand on.

    Examples
    --------
    >>> terms(4) / UNITS
    array([0.        , 0.        , 2.        , 4.75488758, 8.        ])
    """
    before = np.arange(1, max(rows, 1), dtype=np.float64)
    grown = np.log2(before + 1) + before * np.log1p(1 / before) / math.log(2)
    found = np.zeros(rows + 1, dtype=np.int64)
    found[2:] = np.cumsum(np.rint(grown * UNITS).astype(np.int64))
    found.flags.writeable = False
    return found


def _in_units_above(value: float) -> Fraction:
    """Return a bound on real numbers as one on rounded ones."""
    return Fraction(math.ceil(value * UNITS), UNITS)


def entropy_change(rows: int) -> float:
    """Return G(N) = N log2(N) - (N - 1) log2(N - 1), the exact sensitivity of N H and N I' for N rows.

    Examples
    --------
    >>> entropy_change(2)
    2.0
    """
    return math.log2(rows) + (rows - 1) * math.log1p(1 / (rows - 1)) / math.log(2) if rows > 1 else 1.0


def published_entropy_change(rows: int) -> float:
    """Return the published bound on the change of N H: 1 / ln 2 + log2(N).

    Examples
    --------
    >>> published_entropy_change(1000) > entropy_change(1000)
    True
    """
    return 1 / math.log(2) + math.log2(rows)


@attrs.frozen
class RowBounds:
    """What is public of the number of rows, and what follows for entropies.

    Attributes
    ----------
    replaced
        The largest number of rows under replace-one.
    added
        The largest number of rows of either neighbour under add-or-remove-one; None where only the exact number is
        public, which that relation keeps secret.
    published
        Whether the paper's bounds are declared instead (replace-one only).
    """

    replaced: int
    added: int | None
    published: bool = False

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
                "the sensitivity of entropies needs a public row count: set rows in the schema and study under "
                "replace-one, or set max_rows, a public upper bound, or take context = 'baseline'"
            )
        if published and schema.rows is None:
            raise InputError("sensitivity = 'published' holds for a public row count only; set rows in the schema")
        added = schema.max_rows
        if added is not None and schema.rows is not None:
            added = max(added, schema.rows + 1)
        return cls(schema.row_bound, None if published else added, published)

    def entropy(self) -> tuple[Fraction | None, Fraction]:
        """Return the sensitivity of N H under add-or-remove-one and replace-one."""
        if self.published:
            return None, _in_units_above(published_entropy_change(self.replaced))
        added = None if self.added is None else _in_units_above(entropy_change(self.added))
        return added, _in_units_above(entropy_change(self.replaced))

    def of_scores(self, terms: int = 1) -> tuple[Sensitivity, ...]:
        """Return the sensitivity of scores that change by at most as much as so many -N H(Y|S)."""
        added, replaced = self.entropy()
        factor = terms * (2 if self.published else 1)
        source = "theorems 6 and 7 of the paper" if self.published else "conditional entropies: sensitivities.py"
        change = None if added is None else added * factor
        return (Sensitivity(Norm.LINF, change, replaced * factor, rise=0, source=source),)

    def of_entropies(self, number: int) -> tuple[Sensitivity, ...]:
        """Return the sensitivities of a vector of so many N H: all of them can change by G at once."""
        added, replaced = self.entropy()
        source = "theorem 5 of the paper" if self.published else "entropies: sensitivities.py"
        return tuple(
            Sensitivity(
                norm,
                None if added is None else number * added**power,
                number * replaced**power,
                fall=0,
                source=source,
            )
            for norm, power in ((Norm.L1, 1), (Norm.SQUARED_L2, 2))
        )

    def of_conditional_entropies(self, weights: Sequence[Fraction], given: Sequence[int]) -> tuple[Sensitivity, ...]:
        """Return the sensitivities of weighted N H(X), and of as many N H(Y|X) as `given` says for each X."""
        added, replaced = self.entropy()
        found = []
        for norm, power in ((Norm.L1, 1), (Norm.SQUARED_L2, 2)):
            squares = [weight**power for weight in weights]
            bounds = sum((max(pair) for pair in zip(squares, map(Fraction, given), strict=True)), Fraction(0))
            change = None if added is None else bounds * added**power
            source = "conditional entropies: sensitivities.py"
            either = (sum(squares, Fraction(0)) + sum(given)) * replaced**power
            found.append(Sensitivity(norm, change, either, fall=0, source=source))
        return tuple(found)
