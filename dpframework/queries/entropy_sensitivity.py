"""The most by which an entropy can grow when rows are added. The scores of several plugins rest on this bound.

All entropies here are sums over counts, with f(x) = x log2(x) and h(n, k) = f(n + k) - f(n). Of N rows, let n_s rows
have the value s of S, and let n_sy rows have the values s of S and y of Y. Then

    N H(Y|S) = sum over s of (f(n_s) - sum over y of f(n_sy)),    and N H(Y) is the same with a single s.

Let k_sy rows with the values s and y be added, and let k_s be the sum of k_sy over y. At most k rows are added in all.
Afterwards T_s = n_s + k_s rows have the value s, and there are at most R rows. N H(Y|S) grows by the sum over s of
D_s = h(n_s, k_s) - sum over y of h(n_sy, k_sy). N H(Y|S) never falls. A single added row with the values s and y
changes it by h(n_s, 1) - h(n_sy, 1). This is 0 or more, since h grows in its first argument.

**One s.** h is concave in its first argument. So among all n_sy that add up to n_s, the sum of h(n_sy, k_sy) over y is
smallest if all n_s rows have the same y. With m = k_s - k_sy for that y, D_s is at most

    h(n_s, k_s) - h(n_s, k_sy) - sum over the other y of f(k_sy) = h(T_s - m, m) - sum over the other y of f(k_sy).

The last sum is at least 0. For v values of y it is also at least m log2(m / (v - 1)), since f is convex and the other
v - 1 numbers k_sy add up to m.

**All s.** h(T_s - m, m) is the sum of m increments f(x) - f(x - 1), up to x = T_s. These increments grow with x. From
here on, write m_s for the m of one s, and m for the sum of all m_s. Then the increments of all s add up to at most
h(R - m, m), the sum of the m increments up to x = R. Moreover, h(T - m, m) - m log2(m) = f(T) - f(T - m) - f(m) is T
times the entropy of a coin with probability m / T. It is concave and homogeneous of degree 1 in T and m, and it grows
with T. So its values at (T_s, m_s) for all s add up to at most its value at (R, m). Hence

    the change is at most h(R - m, m) - max(0, m log2(m / (v - 1))) for some m from 0 to k.

This bound grows in m up to v - 1 or R (v - 1) / v, whichever is larger. `entropy_change` returns its largest value
among the whole numbers m. If m is a multiple of v - 1, the bound is attained: R - m rows are equal, and m rows share
the other values evenly. For one added row the bound is f(R) - f(R - 1), whatever v is.
"""

from __future__ import annotations

import math


def entropy_change(rows: int, group: int = 1, values: int | None = None) -> float:
    """Return the most by which N H(Y|S), or N H(Y), can grow when rows are added (see the module).

    Parameters
    ----------
    rows
        The largest number of rows after the addition.
    group
        The largest number of rows that are added.
    values
        The number of values of Y. None for any number.

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
    """Return h(rows - added, added), computed without the difference of two large numbers."""
    before = rows - added
    return added * math.log2(rows) + (before * math.log1p(added / before) / math.log(2) if before else 0.0)
