"""A model of a table from noisy marginals: maximum likelihood, with a penalty as large as the noise.

The model of N rows has a potential t_S for each measured set S, one number per cell:

    p(x) proportional to exp(sum over S of t_S(x_S)).

Let y_S be the noisy table, s_S the variance of its cells and m_S the model's table. The potentials minimise

    Z(t) - sum over S of y_S . t_S + sum over S of l_S s_S norm(t_S)**2 / 2,

where Z is the sum of that exponential over all x, and l_S is the weight of a penalty. That is convex, and where the
gradient is 0, m_S = y_S - l_S s_S t_S. So if the other sets expect E rows in a cell, the cell moves from E by about
(y - E) E v / (E v + s), with v = 1 / l_S. That is the best linear estimate if deviations in such a cell have the
variance E v (empirical Bayes; Efron and Morris 1973). The v of a set is found by maximum likelihood, from how its
counts deviate from the model before it was measured. A table of nothing but noise therefore changes next to nothing.

Before the fit, the y_S are pooled: each residual is estimated from all tables that hold it, and kept as far as it
exceeds noise (see `residual_pooling` and `shrinkage`). Counts of single attributes then need no penalty. Everything
here is post-processing of releases.

The fit takes the sets in turn, as proportional fitting does (Deming and Stephan 1940). Given the potentials of the
other sets, a set's potential solves one equation for each cell. On a junction tree (Lauritzen and Spiegelhalter 1988) a
turn of all sets is one walk along the tree and back (Jirousek and Preucil 1995). Time and memory are in proportion to
the tree's cells.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework_tables.junction import JunctionTree, Set
from dpframework_tables.residual_pooling import Pool, residuals_of
from dpframework_tables.share_prior import SharePrior

Array: TypeAlias = "NDArray[np.float64]"

TURNS = 40  # The most turns of a fit.
_CLOSE = 1e-4  # A fit ends when a turn moves less than this share of the rows, as a mean over tables.
_STEEPEST = 30.0  # The largest potential. With e**-30 of the rows a cell is as good as empty.
_LEAST_PENALTY = 1e-6  # The least penalty, since the fit divides by the penalty.
_GRID = np.logspace(-6, 5, 45)  # The values of v that are tried.
_MANY = 1 << 18  # The most numbers that are computed at once.
_EVIDENCE = 3.0  # Noise alone gains this much log-likelihood in fewer than one table in a hundred.
_BELIEVED = 1.0  # Noise alone gains this much in one table in twelve. With less, v is the least of the grid.
_RAKED = 3  # Turns of proportional fitting.
_FEW = 0.1  # The rows that are added to each cell before its logarithm is taken, since a cell may be empty.


# Not slotted: the cached property needs an instance dictionary.
@final
@attrs.frozen(eq=False, slots=False)
class Measurement:
    """A marginal that was measured.

    Attributes
    ----------
    of
        The attributes, as increasing positions.
    counts
        The noisy counts in rows, with one axis per attribute.
    variance
        The variance of the noise of each count.
    variance_per_row
        v: the variance of a cell's deviation from the model before this measurement, per expected row.
    start
        A guess of the potential, from which the fit starts, in the shape of the counts.
    gain
        By how much v raises the log-likelihood of the deviations from that model, compared with noise alone.
    expected
        The residuals that the model before this measurement expects. Empty for a measurement of one attribute.
    prior
        For one attribute, the distribution of a value's share, which corrects its counts. None if they need none.
    """

    of: Set
    counts: Array
    variance: float
    variance_per_row: float
    start: Array
    gain: float = 0.0
    expected: Mapping[Set, Array] = attrs.field(factory=dict)
    prior: SharePrior | None = None

    @classmethod
    def alone(cls, a: int, counts: Array, variance: float, prior: SharePrior | None = None) -> Measurement:
        """Return a measurement of one attribute. Its pooled and corrected counts are fitted without a penalty."""
        return cls((a,), counts, variance, math.inf, np.zeros(counts.shape), prior=prior)

    @classmethod
    def of_several(cls, of: Set, counts: Array, variance: float, expected: Array, before: Model) -> Measurement:
        """Return a measurement of several attributes, with v estimated from how they depend on each other.

        All measurements together know the counts of each single attribute better than this one does. So the expected
        table is first given those counts, and the effects of single attributes are removed from the deviations. The
        expected table has noise too: about (E / m)**2 s in a cell of E rows, if a value of the cell has m rows, known
        with the variance s. If noise alone often makes deviations as large, v gets the least value of the grid.

        Parameters
        ----------
        of, counts, variance
            The attributes, the noisy counts, and the variance of their noise.
        expected
            The table that the model before this measurement expects, in rows.
        before
            The model before this measurement.
        """
        known = [(one.of, one.residuals, one.variance) for one in before.measured]
        given = [*known, (of, residuals_of(of, counts), variance)]
        seen = Pool.of(given, before.tree.sizes, order=1)
        pool = seen.shrunk(_even(before.measured), before.rows)
        priors = {one.of: one.prior for one in before.measured if len(one.of) == 1}
        margins = [pool.alone(a, priors.get((a,)), before.rows) for a in of]
        likely = _rake(np.maximum(expected, 0), margins)
        moved = _without_effects(counts - likely)
        free = (counts.size - 1 - sum(size - 1 for size in counts.shape)) / counts.size
        noise = np.full(counts.shape, variance * free)
        for axis, (a, margin) in enumerate(zip(of, margins, strict=True)):
            noise += seen.variances[a,] * (likely / np.maximum(margin, 1e-9).reshape(_along(axis, counts.ndim))) ** 2
        v, gain = _fit_variance_per_row(moved, likely, noise)
        gain *= free
        v = v if gain > _BELIEVED else float(_GRID[0])
        start = likely + moved * (likely * v / (likely * v + variance + 1e-9))
        start = np.log(np.maximum(start, 0) + _FEW) - np.log(np.maximum(likely, 0) + _FEW)
        return cls(of, counts, variance, v, start, gain, residuals_of(of, likely))

    @functools.cached_property
    def residuals(self) -> dict[Set, Array]:
        """The residual of each subset of the attributes (see `residual_pooling`)."""
        return residuals_of(self.of, self.counts)

    @property
    def is_more_than_noise(self) -> bool:
        """Whether the counts differ from the model before this measurement by clearly more than noise would."""
        return self.gain > _EVIDENCE

    @property
    def penalty(self) -> float:
        """The penalty for each squared potential, in rows."""
        return self.variance / self.variance_per_row + _LEAST_PENALTY


def _along(axis: int, axes: int) -> list[int]:
    """Return the shape in which numbers along one axis broadcast against a table."""
    return [-1 if k == axis else 1 for k in range(axes)]


def _without_effects(table: Array) -> Array:
    """Return a table without the effects of single axes, so that the mean of each slice across an axis is 0."""
    axes = range(table.ndim)
    alone = [table.mean(axis=tuple(other for other in axes if other != axis), keepdims=True) for axis in axes]
    return np.asarray(table - sum(alone, np.zeros(())) + (table.ndim - 1) * table.mean())


def _rake(table: Array, margins: Sequence[Array]) -> Array:
    """Return a table with about the given sums along each axis, by a few turns of proportional fitting."""
    found = table + 1e-9
    for axis in [*range(table.ndim)] * _RAKED:
        sums = found.sum(axis=tuple(k for k in range(table.ndim) if k != axis))
        found = found * (margins[axis] / np.maximum(sums, 1e-9)).reshape(_along(axis, table.ndim))
    return found


def _fit_variance_per_row(moved: Array, expected: Array, noise: Array) -> tuple[float, float]:
    """Return the most likely v of the grid, and its gain in log-likelihood over the least v of the grid.

    In a cell with E expected rows, a deviation is normal with the variance E v + noise.
    """
    flat, rows, likely = moved.ravel(), np.maximum(expected, 0).ravel(), np.empty(len(_GRID))
    for some in np.array_split(np.arange(len(_GRID)), min(max(moved.size * len(_GRID) // _MANY, 1), len(_GRID))):
        spread = np.multiply.outer(_GRID[some], rows) + (noise.ravel() + 1e-9)
        likely[some] = -(np.log(spread) + flat * flat / spread).sum(axis=1) / 2
    return float(_GRID[likely.argmax()]), float(likely.max() - likely[0])


def _log_sum(table: Array, axes: tuple[int, ...]) -> Array:
    """Return the logarithms of sums of exponentials along some axes, which are kept with length 1."""
    if not axes:
        return table
    top = table.max(axis=axes, keepdims=True)
    return np.asarray(np.log(np.exp(table - top).sum(axis=axes, keepdims=True)) + top)


def _others(clique: Set, one: Set) -> tuple[int, ...]:
    """Return the axes of a clique's table whose attributes are not in a set."""
    return tuple(axis for axis, a in enumerate(clique) if a not in one)


def beliefs(tree: JunctionTree, tables: Sequence[Array]) -> tuple[list[Array], float]:
    """Return the marginal of each clique in shares that add up to 1, and the logarithm of the sum over all cells.

    Parameters
    ----------
    tree
        The junction tree.
    tables
        The logarithm of each clique's factor, in the clique's shape. These tables are not changed.
    """
    found = [table.copy() for table in tables]
    separators = [tree.separator(k) for k in range(len(found))]
    messages: list[Array] = [np.zeros(())] * len(found)
    for k in range(len(found) - 1, 0, -1):
        message = _log_sum(found[k], _others(tree.cliques[k], separators[k]))
        parent = tree.parents[k]
        shape = [tree.sizes[a] if a in separators[k] else 1 for a in tree.cliques[parent]]
        found[parent] += message.reshape(shape)
        messages[k] = message
    total = float(_log_sum(found[0], tuple(range(found[0].ndim))).ravel()[0])
    for k in range(1, len(found)):
        parent = tree.parents[k]
        known = _log_sum(found[parent], _others(tree.cliques[parent], separators[k]))
        found[k] += known.reshape(messages[k].shape) - messages[k]
    return [np.exp(table - total) for table in found], total


@final
@attrs.frozen(eq=False)
class Model:
    """A model of a table's rows.

    Attributes
    ----------
    tree
        The junction tree.
    rows
        The number of rows that the model stands for.
    measured
        The measurements that the model was fitted to.
    potentials
        One table for each measurement, in the shape of its counts.
    tables
        The marginal of each clique, in shares that add up to 1.
    """

    tree: JunctionTree
    rows: float
    measured: tuple[Measurement, ...]
    potentials: tuple[Array, ...]
    tables: tuple[Array, ...]

    def marginal(self, of: Set) -> Array:
        """Return the marginal of attributes that lie in one clique, in rows.

        Raises
        ------
        KeyError
            If no clique holds all of them.
        """
        k = self.tree.home(of)
        return np.asarray(self.rows * self.tables[k].sum(axis=_others(self.tree.cliques[k], of)))


def fit(
    tree: JunctionTree, measured: Iterable[Measurement], rows: float, before: Model | None = None, turns: int = TURNS
) -> Model:
    """Return the model that is fitted to some measurements.

    Parameters
    ----------
    tree
        A junction tree in which some clique holds each measured set.
    measured
        The measurements, first those of `before`.
    rows
        The number of rows of the model.
    before
        A model that was fitted to the first measurements. The fit starts from its potentials.
    turns
        The most turns of the fit.
    """
    given = tuple(measured)
    known = () if before is None else before.potentials
    start = [*known, *(one.start for one in given[len(known) :])]
    walk = _Walk(tree, given, start, rows)
    for _ in range(turns):
        if walk.turn() <= _CLOSE * rows * len(given):
            break
    return model_of(tree, given, walk.potentials, rows)


def model_of(tree: JunctionTree, measured: Sequence[Measurement], potentials: Sequence[Array], rows: float) -> Model:
    """Return the model with given potentials, one for each measurement, in its shape."""
    shares, _ = beliefs(tree, factors_of(tree, [one.of for one in measured], potentials))
    return Model(tree, rows, tuple(measured), tuple(potentials), tuple(shares))


def factors_of(tree: JunctionTree, sets: Sequence[Set], potentials: Sequence[Array]) -> list[Array]:
    """Return the logarithm of each clique's factor, given the potential of each set."""
    found = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    for one, own in zip(sets, potentials, strict=True):
        k = tree.home(one)
        found[k] += own.reshape(_shape_in_clique(tree, k, one))
    return found


def _expect(measured: Sequence[Measurement]) -> dict[Set, Array]:
    """Return the expected residuals of sets that were measured only as parts of larger sets; others have penalties."""
    found: dict[Set, Array] = {}
    whole = {one.of for one in measured}
    for one in measured:
        for of, own in one.expected.items():
            if of not in whole:
                found.setdefault(of, own)
    return found


def _even(measured: Iterable[Measurement]) -> dict[Set, Array]:
    """Return the residuals of even counts, which are 0, for each attribute whose counts a prior is to correct."""
    return {one.of: np.zeros(one.counts.shape) for one in measured if one.prior is not None}


def _shape_in_clique(tree: JunctionTree, k: int, of: Set) -> list[int]:
    """Return the shape in which a set's table broadcasts against a clique's."""
    return [tree.sizes[a] if a in of else 1 for a in tree.cliques[k]]


@final
class _Walk:
    """A fit that walks along a junction tree. Only the table of the present clique agrees with all potentials."""

    def __init__(
        self, tree: JunctionTree, measured: Sequence[Measurement], start: Sequence[Array], rows: float
    ) -> None:
        self.tree, self.measured = tree, measured
        self.potentials = [np.clip(one, -_STEEPEST, _STEEPEST) for one in start]
        self.homes = [tree.home(one.of) for one in measured]
        pool = Pool.of([(one.of, one.residuals, one.variance) for one in measured], tree.sizes)
        pool = pool.shrunk({**_expect(measured), **_even(measured)}, rows)
        self.wanted = [
            pool.table(one.of, rows) if len(one.of) > 1 else pool.alone(one.of[0], one.prior, rows) for one in measured
        ]
        self.penalties = [one.penalty for one in measured]
        shares, _ = beliefs(tree, factors_of(tree, [one.of for one in measured], self.potentials))
        self.tables = [rows * own for own in shares]
        self.children: list[list[int]] = [[] for _ in tree.cliques]
        for k in range(1, len(tree.cliques)):
            self.children[tree.parents[k]].append(k)
        self.separators = [self._sum(k, tree.separator(k)) for k in range(len(tree.cliques))]

    def turn(self) -> float:
        """Fit each set once, along the tree and back, and return how many rows moved in all tables together."""
        off, ahead = self._fit_clique(0), [(0, iter(self.children[0]))]
        while ahead:
            k, left = ahead[-1]
            child = next(left, None)
            if child is None:
                ahead.pop()
                if ahead:
                    self._tell(k, k, ahead[-1][0])
                continue
            self._tell(child, k, child)
            off += self._fit_clique(child)
            ahead.append((child, iter(self.children[child])))
        return off

    def _fit_clique(self, k: int) -> float:
        """Fit each set that has its home in a clique, and return how many rows moved in the sets' tables.

        For each cell, m exp(d) + penalty (t + d) = y is solved by Wright's omega function, and d is added to t.
        """
        from scipy.special import wrightomega

        off = 0.0
        for place, (one, home) in enumerate(zip(self.measured, self.homes, strict=True)):
            if home != k:
                continue
            potential, penalty, table = self.potentials[place], self.penalties[place], self._sum(k, one.of)
            log_table = np.log(np.maximum(table, 1e-250))
            left = (self.wanted[place] - penalty * potential) / penalty
            point = log_table - math.log(penalty) + left
            omega = wrightomega(point)
            moved = np.where(point > 0, np.log(penalty * np.maximum(omega, 1e-300)) - log_table, left - omega)
            after = np.clip(potential + moved, -_STEEPEST, _STEEPEST)
            factor = np.exp(after - potential)
            self.potentials[place] = after
            self.tables[k] *= factor.reshape(_shape_in_clique(self.tree, k, one.of))
            off += float(np.abs(table * (factor - 1)).sum())
        return off

    def _tell(self, separator: int, sender: int, receiver: int) -> None:
        """Pass the counts of the clique `sender` to its neighbour, over the separator between the two."""
        of = self.tree.separator(separator)
        new, old = self._sum(sender, of), self.separators[separator]
        ratio = np.divide(new, old, out=np.zeros_like(new), where=old > 0)
        self.tables[receiver] *= ratio.reshape(_shape_in_clique(self.tree, receiver, of))
        self.separators[separator] = new

    def _sum(self, k: int, of: Set) -> Array:
        return np.asarray(self.tables[k].sum(axis=_others(self.tree.cliques[k], of)))
