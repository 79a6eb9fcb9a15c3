"""The largest change of an entropy when rows are added, which the scores of several plugins rest on.

Everything is a sum over counts, with f(x) = x log2(x) and h(n, k) = f(n + k) - f(n): for N rows, of which n_s have the
value s and n_sy the values s and y,

    N H(Y|S) = sum over s of (f(n_s) - sum over y of f(n_sy)),    N H(Y) the same with one s.

Let k_sy rows be added, k_s of them with the value s, at most k in all, so that T_s = n_s + k_s rows have s after, at
most R in all. N H(Y|S) grows by the sum of D_s = h(n_s, k_s) - sum over y of h(n_sy, k_sy). It never falls: h grows in
its first argument, so a row counts for no less among all rows than among those of its y.

**One s.** h is concave in its first argument. So of all n_sy that add up to n_s, those with all rows at one y make the
sum over y least, and D_s is at most, with m = k_s - k_sy of that y,

    h(n_s, k_s) - h(n_s, k_sy) - sum over the other y of f(k_sy) = h(T_s - m, m) - sum over the other y of f(k_sy).

Those sums of f are at least 0, and, for v values of y, at least m log2(m / (v - 1)), since f is convex.

**All s.** h(T_s - m, m) is the sum of m increments of f, and they grow, so together they are at most h(R - m, m), with
m now the sum over s. And h(T - m, m) - m log2(m) = f(T) - f(T - m) - f(m) is T times the entropy of a coin with m / T:
it is concave, and homogeneous of degree 1 in T and m, so its values for each s add up to that of the sums at most. So

    the change is at most h(R - m, m) - max(0, m log2(m / (v - 1))) for some m from 0 to k.

That grows in m up to v - 1, and above up to R (v - 1) / v; `entropy_change` takes the largest of a whole m. It is
attained by R - m equal rows and m that share the other values evenly, where they can. For one row it is f(R) -
f(R - 1), whatever v is.
"""

from __future__ import annotations

import math


def entropy_change(rows: int, group: int = 1, values: int | None = None) -> float:
    """Return how far N H(Y|S), or N H(Y), can grow when rows are added (see the module).

    Parameters
    ----------
    rows
        The largest number of rows after that.
    group
        How many are added at most.
    values
        The number of values of Y; None for any number.

    Examples
    --------
    >>> entropy_change(2), entropy_change(8, 4), entropy_change(8, 4, values=2)
    (2.0, 16.0, 8.0)
    """
    if rows <= 1:
        return 1.0
    most = min(group, rows)
    if values is None:
        return _growth(rows, most)
    others = max(values - 1, 1)
    turn = max(others, rows * others // (others + 1))
    return max(
        _growth(rows, added) - max(0.0, added * math.log2(added / others))
        for added in {min(turn + k, most) for k in (0, 1)}
    )


def _growth(rows: int, added: int) -> float:
    """Return h(rows - added, added), without the difference of two large numbers."""
    before = rows - added
    return added * math.log2(rows) + (before * math.log1p(added / before) / math.log(2) if before else 0.0)
