"""Composition rules, under both neighbouring relations, for amounts that add up, such as epsilon and rho.

**Units of several rows.** The same rules hold if the privacy unit is a person with up to k rows. Let a release lose R
for k replaced rows, and A for k rows added or removed. The release is calibrated so that one row loses R / k or A / k
in pure epsilon, and R / k^2 or A / k^2 in rho (see `facts.privacy_unit`). Then for r replaced rows and s added or
removed rows, with r + s <= k, the release loses

    at most (r R + s A) / k.

In pure epsilon, the losses of the rows add up to this. In zCDP the square roots of the rows' rhos add up to
(r sqrt(R) + s sqrt(A)) / k. That is a mean of sqrt(R), sqrt(A) and 0 with the weights r / k, s / k and (k - r - s) / k.
The square is convex, so the square of this mean is at most the mean of R, A and 0, which is the bound.

Every rule below keeps a bound of this form. `sequential` and `repeat` add up amounts of the same r and s, and `either`
takes the amounts of one branch. In `parallel`, a row of the unit may be replaced within part i, which costs R_i / k. A
row may move, which costs A_i / k in the part i that it leaves and A_j / k in the part j that it enters. Or a row is
added to part i or removed from it, which costs A_i / k. No part gets more than k rows of the unit. Under add-or-remove
no row is replaced or moves, so the sum over at most k rows is at most the largest A of a part. Under replace-one it is
at most the larger of two numbers: the largest R, and the sum of the two largest A. `parallel` returns these bounds for
the two relations.

Let q be the rate of a sample of units, and let f(x) = log(1 + q (e**x - 1)). If releases lose at most s A / k on all
units, they lose at most f(s A / k) on the sample. As f is convex and f(0) = 0, f(s A / k) is at most s f(A) / k. So
`sample` keeps the bound too, on a part and on the whole table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from dpframework.facts.privacy_losses import NOTHING, ByRelation, round_up

_LARGEST = 500  # the largest epsilon that is amplified, since its exponential must fit a double


def _sum(amounts: Iterable[Fraction | None]) -> Fraction | None:
    total = Fraction(0)
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total


def _largest(amounts: Sequence[Fraction | None]) -> Fraction | None:
    known = [amount for amount in amounts if amount is not None]
    return max(known, default=Fraction(0)) if len(known) == len(amounts) else None


def sequential(parts: Sequence[ByRelation]) -> ByRelation:
    """Add up the amounts, since every part is released from the same rows (McSherry 2009, Theorem 3)."""
    return ByRelation(_sum([p.add_or_remove_one for p in parts]), _sum([p.replace_one for p in parts]))


def either(parts: Sequence[ByRelation]) -> ByRelation:
    """Take the largest amount, since only one branch runs, chosen by earlier releases."""
    return ByRelation(_largest([p.add_or_remove_one for p in parts]), _largest([p.replace_one for p in parts]))


def parallel(parts: Sequence[ByRelation]) -> ByRelation:
    """Compose over disjoint rows.

    Under add-or-remove the row lies in one part, so the loss is that of the most expensive part (McSherry 2009, Theorem
    4). Under replace-one the row may stay in its part, which costs the replace-one loss of that part. Or the row leaves
    one part and enters another, which costs at most the sum of the two largest add-or-remove losses. The loss is the
    larger of these two costs. If one part stands for several parts of the table, give it twice.

    Examples
    --------
    >>> count = ByRelation(Fraction(1), Fraction(2))
    >>> parallel([count, count]) == ByRelation(Fraction(1), Fraction(2))
    True
    """
    entering = [p.add_or_remove_one for p in parts]
    staying = _largest([p.replace_one for p in parts])
    if staying is None or None in entering:
        return ByRelation(_largest(entering), None)
    moving = sum(sorted((a for a in entering if a is not None), reverse=True)[:2], Fraction(0))
    return ByRelation(_largest(entering), max(staying, moving))


def sample(part: ByRelation, rate: Fraction) -> ByRelation:
    """Return the amplified cost of releases from a random sample, given their pure epsilon.

    Let q be the rate. Fix which of the other rows are sampled. Let N be the distribution of outputs on this sample, and
    S the distribution if the row is in the sample too. With the row, the output has the distribution
    M = q S + (1 - q) N. On the neighbour without the row, it has N. Since S is at most e**epsilon N, M is at most
    (1 + q (e**epsilon - 1)) N. Since S is at least e**-epsilon N, N is at most M / (1 - q (1 - e**-epsilon)). The
    factor 1 / (1 - q (1 - e**-epsilon)) is at most 1 + q (e**epsilon - 1). So log(1 + q (e**epsilon - 1)) bounds the
    loss in both directions. The bound also holds for the mean over samples of the other rows (Balle, Barthe and
    Gaboardi 2018, Theorem 8).

    A resumed run draws its sample again. So some of the releases, with epsilon a, come from one sample, and the others,
    with epsilon b, from another. Wherever the unit's rows lie, a + b is at most the part's epsilon. As
    f(x) = log(1 + q (e**x - 1)) is convex and 0 at 0, f(a) + f(b) is at most f(a + b), so the second sample costs
    nothing extra. The same holds for samples of samples, and for the rho f(x)**2 / 2 of an amplified epsilon, since the
    square of f is also convex and 0 at 0. A rho that is not amplified adds up as usual. A privacy loss distribution,
    however, may have larger losses after a second sample.

    Under replace-one, a sample may hold the old row, the new row, or none of them. Such mixtures are not compared here,
    so nothing is claimed.

    Examples
    --------
    >>> half = sample(ByRelation(Fraction(1), Fraction(1)), Fraction(1, 2))
    >>> round(float(half.add_or_remove_one), 6), half.replace_one
    (0.620115, None)
    """
    epsilon = part.add_or_remove_one
    return ByRelation(None if epsilon is None else amplify(epsilon, rate), None)


def amplify_rows(part: ByRelation, rate: Fraction, rows: int) -> ByRelation:
    """Return the cost, to a unit of several rows, of releases from a sample that is drawn row by row.

    Let q be the rate, f(x) = log(1 + q (e**x - 1)), and k the number of rows of a unit. Releases that cost the unit
    epsilon lose at most epsilon / k for one row, and so at most f(epsilon / k) for one row on a sample. Add the unit's
    k rows one after another: the losses add up to at most k f(epsilon / k). As f is convex and f(0) = 0, this is at
    most f(epsilon), the cost of a sample of whole units.

    Examples
    --------
    >>> pair = amplify_rows(ByRelation(Fraction(1), None), Fraction(1, 2), 2)
    >>> round(float(pair.add_or_remove_one), 6)
    0.56186
    """
    return repeat(sample(part.map(lambda epsilon: epsilon / rows), rate), rows)


def amplify(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return log(1 + rate (e**epsilon - 1)), rounded up and at most epsilon; above `_LARGEST`, return epsilon."""
    if epsilon > _LARGEST or epsilon == 0:
        return epsilon
    return min(epsilon, round_up(math.log1p(float(rate) * math.expm1(float(epsilon)))))


def repeat(part: ByRelation, times: int) -> ByRelation:
    """Multiply the amount, since the same part runs `times` times on the same rows."""
    return part.map(lambda amount: amount * times) if times else NOTHING
