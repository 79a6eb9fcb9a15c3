"""How much entropies change between neighbours: derivations, brute-forced in `tests/test_sensitivities.py`.

Everything is kept unnormalised, as a sum over counts: with f(n) = n log2(n) and N rows,

    N H(X)     = f(N) - sum over x of f(n_x)
    -N H(Y|S)  = sum over s, y of f(n_sy) - sum over s of f(n_s)        (N I'(Y, S) of the paper)

since a public N is a factor that no choice depends on, and without it nothing here needs N to be known. Let
g(n) = f(n + 1) - f(n), which grows in n from g(0) = 0, and G(N) = g(N - 1) = f(N) - f(N - 1) = N L(N).

Adding a row to one of N - 1 changes

- N H(X) by g(N - 1) - g(n_x), which lies in [0, G(N)]: never downwards;
- -N H(Y|S) by g(n_sy) - g(n_s), which lies in [-G(N), 0], since n_sy <= n_s <= N - 1: never upwards.

So both are one-sided with sensitivity G(R) where no table has more than R rows. A replacement is a removal and an
addition: it changes either by something in [0, G] and something in [-G, 0], by at most G(N). All three bounds are
attained: N - 1 equal rows, and one row that enters or leaves a value of its own. Two candidates' scores move apart by
at most 2 G(N) (one of them up, the other down), and that is attained too.

The published bounds are 1 / ln 2 + log2(N), a little above G(N), for the entropy, and twice that for I' (theorems 5 to
7, times N): the two entropies that make up I' are not free to change in opposite ways.
"""

from __future__ import annotations

import math
from fractions import Fraction

import attrs

from dpframework.errors import InputError
from dpframework.privacy import rational_above
from dpframework.queries import Norm, Sensitivity
from dpframework.schema import Schema

MOST_ROWS = 2**31


def entropy_change(rows: int) -> float:
    """Return G(N) = N log2(N) - (N - 1) log2(N - 1), the exact sensitivity of N H and N I' for N rows.

    Examples
    --------
    >>> entropy_change(2)
    2.0
    """
    return rows * math.log2(rows) - (rows - 1) * math.log2(rows - 1) if rows > 1 else 1.0


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
        if schema.row_bound >= MOST_ROWS:
            raise InputError(f"rows and max_rows must be below {MOST_ROWS:,} here: joint histograms are 32-bit")
        if published and schema.rows is None:
            raise InputError("sensitivity = 'published' holds for a public row count only; set rows in the schema")
        added = schema.max_rows
        if added is not None and schema.rows is not None:
            added = max(added, schema.rows + 1)
        return cls(schema.row_bound, None if published else added, published)

    def entropy(self) -> tuple[Fraction | None, Fraction]:
        """Return the sensitivity of N H under add-or-remove-one and replace-one."""
        if self.published:
            return None, rational_above(published_entropy_change(self.replaced))
        added = None if self.added is None else rational_above(entropy_change(self.added))
        return added, rational_above(entropy_change(self.replaced))

    def of_scores(self, terms: int = 1) -> tuple[Sensitivity, ...]:
        """Return the sensitivity of scores that change by at most as much as so many -N H(Y|S)."""
        added, replaced = self.entropy()
        factor = terms * (2 if self.published else 1)
        source = "theorems 6 and 7 of the paper" if self.published else "conditional entropies: sensitivities.py"
        change = None if added is None else added * factor
        return (Sensitivity(Norm.LINF, change, replaced * factor, one_sided=not self.published, source=source),)

    def of_entropies(self, number: int) -> tuple[Sensitivity, ...]:
        """Return the sensitivities of a vector of so many N H: all of them can change by G at once."""
        added, replaced = self.entropy()
        source = "theorem 5 of the paper" if self.published else "entropies: sensitivities.py"
        one_sided = not self.published
        return tuple(
            Sensitivity(
                norm,
                None if added is None else number * added**power,
                number * replaced**power,
                one_sided=one_sided,
                source=source,
            )
            for norm, power in ((Norm.L1, 1), (Norm.L2, 2))
        )
