"""The K-norm mechanism, which releases several histograms of the same rows with noise in the shape of one row's change.

Source: Hardt and Talwar 2010, section 4; here on integers, and for all one-way marginals of a table. Assumes that the
declared sensitivity holds. Claim: pure epsilon; in zCDP rho = epsilon**2 / 2.

**The norm.** Let each of the histograms a = 1, ..., m count every row once. Let the vector z be the change of all
counts, and z_a its part in histogram a. Adding a row raises one count of each histogram by 1, so all z_a have the same
sum. The convex hull of all such changes and their negatives is K = {z: all z_a have the same sum, and the l1 norm of
each z_a is at most 1}. To see this, write z as A u - B v, where A and B are 0 or more, and u and v consist of one
probability vector for each histogram. The hull consists of all z for which the least possible A + B is at most 1. Let
P_a be the sum of the positive entries of z_a, and -N_a the sum of its negative entries. A must be at least P_a, and B
at least N_a. The excess of A over P_a equals the excess of B over N_a, and both cancel in A u - B v. Since P_a - N_a is
the same for all a, the largest P_a and the largest N_a belong to the same a. So the least A + B is the largest
P_a + N_a, which is the largest l1 norm of a z_a.

Replacing a row makes each z_a a difference e - e' of two unit vectors, whatever the other parts are. The hull of a
product is the product of the hulls, so now K = {z: each z_a adds up to 0, and its l1 norm is at most 2}. In both
cases::

    |z|_K = max over a of |z_a|_1 / change

with a change of 1 or of 2. The unit ball of this norm is the hull itself, not a larger set that contains it. The
maximum in the formula is `Norm.HISTOGRAMS`.

**The noise** has P(z) proportional to `exp(-max |z_a|_1 / s)` on the integer points of one of two spaces. If all
neighbours have the same number of rows, it is the space of vectors whose parts each add up to 0. The release then shows
the number of rows. This space is used for a whole table under replace-one, if the number of rows is public. The other
space consists of the vectors whose parts have a common sum. It is used if rows are added or removed, if a unit may be
replaced by a unit with another number of rows, or if parts of a table are released separately. In both cases the
answers of neighbours differ by a point of the space, so the same outputs are possible on both tables. By the triangle
inequality, no probability changes by more than a factor exp(change / s).

**How it is drawn.** With q = exp(-1/s), q**k = (1-q) times the sum over r >= k of q**r. Let N(r) be the number of
points of a *ball* of radius r. If P(R = r) is proportional to N(r) q**r, then a uniform point of a ball of the random
radius R has the distribution above. Balls, unlike spheres, are products over histograms, or unions of such products
over the common sum (see `knorm_ball_points`). Let D be the dimension of the space. N(r) is a sum over k of
h_k C(r-k+D, D), with whole numbers h_k that `knorm_ball_polynomials` computes. So to draw R, draw a number k with P(k)
proportional to h_k q**k, and add D + 1 independent geometric numbers to it. The sum over z of `q**|z|`, by which the
probabilities are divided, is h(q) / (1-q)**D, where h(q) is the sum of h_k q**k. All draws are of whole numbers, and
exact. (If parts add up to 0, the l1 norm is even. Then R is half of the norm, and s is halved.)

**One histogram.** The norm of a single histogram is its l1 norm divided by the change. So the noise of its entries is
independent discrete Laplace noise of scale s, and is drawn as such. If all neighbours have the same number of rows, the
noise has this distribution on the condition that it adds up to 0. The noise of each of n cells then has a variance of
about 4 (n-1) (2n-1) / (n (n+1)) divided by epsilon**2. Independent noise would have 8 / epsilon**2. So two cells have a
quarter of that variance, four cells half of it, and a hundred cells 98 %.

**Time.** The time of a draw grows with the number of cells and with the number of digits of the radius, neither of
which depends on the rows. Somebody who times a draw very closely learns something about the noise, as with other exact
samplers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import ByRelation, Relation
from dpframework.facts.privacy_unit import ONE_ROW, UnitChange
from dpframework.mechanisms.base import Calibration, Preview
from dpframework.mechanisms.knorm_ball_noise_base import LARGEST_DIMENSION, BallNoise, largest_sum, sums_within_blocks
from dpframework.mechanisms.knorm_ball_points import Balls, balls
from dpframework.mechanisms.knorm_ball_radii import mean_squares
from dpframework.mechanisms.laplace import from_lattice
from dpframework.mechanisms.randomness import Randomness
from dpframework.queries.base import Norm, QueryFacts

#: The largest scale for several histograms whose sum is not fixed. A larger scale makes draws slower.
LARGEST_SCALE = 1 << 30
_CONTINUOUS = 1000  # previews treat the noise of an entry as continuous from this scale on


@final
@attrs.frozen
class KNorm(BallNoise):
    """Integer noise for several histograms of the same rows, in the shape of the changes that one row can make.

    Examples
    --------
    >>> KNorm("0.5").epsilon
    Fraction(1, 2)
    """

    name: ClassVar[str] = "k-norm"
    norm: ClassVar[Norm] = Norm.HISTOGRAMS
    blocks: ClassVar[str] = "histograms"

    def misfit(self, facts: QueryFacts) -> str | None:
        """Accept only histograms of all rows, each with two or more cells, and not too many cells in all."""
        why = super().misfit(facts)
        if why is None and min(facts.histograms) < 2:
            return "needs histograms of two cells or more; leave out attributes of one value"
        return why

    def calibrate(
        self, facts: QueryFacts, relation: Relation, *, in_parts: bool = False, by: UnitChange = ONE_ROW
    ) -> Calibration | None:
        """Fix the noise. Noise that adds up to 0 gives no claim for rows that are added or removed.

        Raises
        ------
        InputError
            If a draw would take too long, or the noise would be too large for 64-bit integers.
        """
        found = super().calibrate(facts, relation, in_parts=in_parts, by=by)
        if found is None:
            return None
        if found.same_rows:
            pure, zcdp = (ByRelation(None, one.replace_one) for one in (found.losses.pure, found.losses.zcdp))
            return attrs.evolve(found, losses=attrs.evolve(found.losses, pure=pure, zcdp=zcdp))
        if found.scale > LARGEST_SCALE and len(facts.histograms) > 1:
            raise InputError(
                f"k-norm on {facts.text}: such large noise would take too long to draw; raise epsilon, or use "
                "discrete-laplace"
            )
        return found

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Any:
        """Add a uniform point of a ball of random radius."""
        space, scale = self._space(calibration)
        if len(space.sizes) == 1 and not space.same_rows:
            # The balls of one histogram whose sum is not fixed are l1 balls, so its entries have independent noise.
            exact = calibration.on_lattice(answer)
            drawn = np.asarray(randomness.discrete_laplace(exact.size, scale), dtype=np.int64)
            return from_lattice(exact + drawn.reshape(exact.shape), calibration)
        return super().release(answer, calibration, randomness)

    def preview(self, calibration: Calibration) -> Preview:
        """Bound the noise of the noisiest cell.

        The bound is exact for one histogram, and otherwise a multiple of the standard deviation.
        """
        space, scale = self._space(calibration)
        if len(space.sizes) > 1:
            return super().preview(calibration)
        unit, chances = _cell_noise(space, scale)
        within = math.ceil(unit * np.searchsorted(np.cumsum(chances), 0.95))
        return Preview.of_noise(unit * float(chances @ np.arange(len(chances))), float(within))

    def _dimension(self, facts: QueryFacts) -> int:
        return sum(facts.histograms) - len(facts.histograms) + 1

    def _space(self, calibration: Calibration) -> tuple[Balls, float]:
        return _space(calibration)

    def _norm(self, noise: NDArray[np.int64], calibration: Calibration) -> float:
        sums = sums_within_blocks(noise, calibration)
        # Drawn noise has the same sum in all histograms. This sum is 0 if neighbours have the same number of rows.
        if (sums != (0 if calibration.same_rows else sums[0])).any():
            return math.inf
        return largest_sum(noise, calibration) // (2 if calibration.same_rows else 1)

    def _variances(self, calibration: Calibration) -> tuple[float, ...]:
        return cell_variances(calibration)


def cell_variances(calibration: Calibration) -> tuple[float, ...]:
    """Return for each histogram the variance of the noise of one of its cells."""
    space, scale = _space(calibration)
    if len(space.sizes) > 1:
        known = mean_squares(space, scale)
        return tuple(known[size] for size in space.sizes)
    unit, chances = _cell_noise(space, scale)
    return (unit**2 * float(chances @ np.square(np.arange(len(chances)))),)


def groups_by_size(sizes: Sequence[int]) -> list[tuple[tuple[int, ...], Fraction]]:
    """Divide histograms into groups for separate releases, with the shares of the budget that give the least noise.

    All noise of a release has one random radius, so a large histogram increases the noise of small histograms in the
    same release. Let D be the sum of s - 1 over the sizes s of a release's histograms, and let v_s be the mean square
    of an entry (see `_second_moment`). If the release costs epsilon w, its total variance is close to c / w**2, with
    c = (D+1) (D+2) times the sum of s v_s. Let group g have the constant c_g and the share w_g. The sum of c_g / w_g**2
    is smallest if the shares are proportional to the cube roots of c_g. The least sum is the cube of the sum of roots.
    Histograms are sorted by size, and the cuts that minimise the sum of roots are found by dynamic programming. All of
    this follows from public facts.

    Returns
    -------
    For each group the positions of its histograms, in increasing order, and its share. The shares add up to 1.

    Examples
    --------
    >>> [members for members, _ in groups_by_size([2, 40, 2, 2])]
    [(0, 2, 3), (1,)]
    """
    order = sorted(range(len(sizes)), key=lambda k: (sizes[k], k))
    # For the first 0, 1, 2, ... histograms in `order`: the least sum of roots, and where the last group begins.
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(order) + 1):
        options = []
        dimension, moments = 0, 0.0
        for start in range(end - 1, -1, -1):
            size = sizes[order[start]]
            dimension, moments = dimension + size - 1, moments + size * _second_moment(size)
            if dimension >= LARGEST_DIMENSION and start < end - 1:
                break
            options.append((best[start][0] + _root_of_variance(dimension, moments), start))
        best.append(min(options))
    groups, end = [], len(order)
    while end:
        start = best[end][1]
        groups.append(sorted(order[start:end]))
        end = start
    groups.reverse()
    of_groups = [[sizes[k] for k in group] for group in groups]
    roots = [_root_of_variance(sum(of) - len(of), sum(size * _second_moment(size) for size in of)) for of in of_groups]
    shares = [Fraction(max(1, math.floor(1000 * root / sum(roots))), 1000) for root in roots]
    shares[-1] = 1 - sum(shares[:-1], Fraction(0))
    return [(tuple(group), share) for group, share in zip(groups, shares, strict=True)]


def _root_of_variance(dimension: int, moments: float) -> float:
    """Return the cube root of c (see `groups_by_size`), where `moments` is the sum of s v_s."""
    return float(((dimension + 1) * (dimension + 2) * moments) ** (1 / 3))


def _second_moment(size: int) -> float:
    """Return the mean square of an entry of a uniform vector of sum 0 whose positive entries add up to at most 1."""
    return 4 * (size - 1) * (2 * size - 1) / (size**2 * (size + 1) ** 2)


def _space(calibration: Calibration) -> tuple[Balls, float]:
    """Return the balls from which noise is drawn, and the scale of their random radius."""
    space = balls(calibration.facts.histograms, calibration.same_rows)
    return space, calibration.lattice_scale / (2 if space.same_rows else 1)


@functools.lru_cache(maxsize=256)
def _cell_noise(space: Balls, scale: float) -> tuple[float, NDArray[np.float64]]:
    """Return a unit, and the probabilities that the noise of a cell is 0, 1, 2, ... units in absolute value.

    The release has a single histogram. An entry z of the noise has a probability proportional to q**|z|. If entries
    must add up to 0, this probability is multiplied by the probability that all other entries add up to -z. The second
    probability is computed by a Fourier transform: the characteristic function of a sum is a power of the
    characteristic function of one entry. The transform has more points than the largest sum that is likely. Large noise
    is close to continuous noise, so it is computed in a larger unit than 1.
    """
    # With sums of 0, the norm is half of the l1 norm.
    entry = scale * (2 if space.same_rows else 1)
    unit = max(entry / _CONTINUOUS, 1)
    size, q, steps = space.sizes[0], math.exp(-unit / entry), int(200 * entry / unit) + 20 * space.sizes[0]
    chances = q ** np.arange(steps // 2)
    if space.same_rows:
        base = 1 - 2 * q * np.cos(np.arange(steps) * (2 * math.pi / steps)) + q * q
        chances *= np.fft.fft((base / base[0]) ** (1 - size)).real[: steps // 2].clip(0)
    # A size above 0 comes with either sign.
    chances[1:] *= 2
    return unit, chances / chances.sum()
