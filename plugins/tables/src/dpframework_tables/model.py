"""A model of a table from noisy marginals, by maximum likelihood with a penalty that the noise asks for.

The model of N rows has a potential t_S, one number a cell, for each measured set S:

    p(x) proportional to exp(sum over S of t_S(x_S)).

With y_S the noisy table, s_S the variance of its cells and m_S the model's table, the potentials minimise

    Z(t) - sum over S of y_S . t_S + sum over S of l_S s_S norm(t_S)**2 / 2,

where Z is the sum over all x. That is convex, and where the gradient is 0, m_S = y_S - l_S s_S t_S. So a cell of E rows
that the other sets expect moves by about (y - E) E v / (E v + s), v = 1 / l_S: the best linear estimate where
deviations in such a cell have variance E v (empirical Bayes; Efron and Morris 1973). v is found by maximum likelihood,
from the deviations from what the model said before S was measured; so a table that is all noise changes next to
nothing. y_S is pooled from all tables, each part of it kept as far as it is more than noise (see `pooling`,
`shrinkage`), which is all that counts of single attributes need. Everything here is post-processing of releases.

The fit goes by turns, as proportional fitting does (Deming and Stephan 1940): the potentials of one set, given those of
the others, solve an equation for each cell alone. On a junction tree (Lauritzen and Spiegelhalter 1988) a turn of all
sets is a walk along the tree and back (Jirousek and Preucil 1995). It costs time and memory in proportion to the tree's
cells.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.results import nearest_on_simplex
from dpframework_tables.junction import JunctionTree, Set
from dpframework_tables.pooling import Pool, residuals_of

Array: TypeAlias = "NDArray[np.float64]"

TURNS = 40  # of the fit, at most
_CLOSE = 1e-4  # of the rows of each table: where the fit has arrived
_STEEPEST = 30.0  # a potential: of e**-30 of the rows a cell is empty
_LEAST_PENALTY = 1e-6
_GRID = np.logspace(-6, 5, 45)  # of v
_MANY = 1 << 18  # numbers that are computed at once
_EVIDENCE = 3.0  # a gain in the log-likelihood, which noise alone makes in fewer than one table of a hundred
_BELIEVED = 1.0  # one that noise alone makes in one table of twelve: with less, a table changes nothing
_RAKED = 3  # turns of proportional fitting
_FEW = 0.1  # rows, that a start takes to be in an empty cell


# Not slotted: the cached property needs an instance dictionary.
@final
@attrs.frozen(eq=False, slots=False)
class Measurement:
    """A marginal that was measured.

    Attributes
    ----------
    of
        The attributes, positions that increase.
    counts
        In rows, with noise, shape (codes of each).
    variance
        The variance of the noise of each count.
    varies
        v, by how much a cell deviates from what was expected before, squared, for each expected row.
    start
        About its potential, in the shape of the counts.
    gain
        How much more likely its deviations are with v than by noise alone, as a logarithm.
    expected
        The residuals of what was expected before; of one attribute only where rare values are merged.
    """

    of: Set
    counts: Array
    variance: float
    varies: float
    start: Array
    gain: float = 0.0
    expected: Mapping[Set, Array] = attrs.field(factory=dict)

    @classmethod
    def alone(cls, a: int, counts: Array, variance: float, expected: NDArray[np.float64] | None = None) -> Measurement:
        """Return a measurement of one attribute, which the fit believes as far as all that was measured does.

        Where noise explains other counts, those `expected` are taken, by default even ones.
        """
        residuals = {} if expected is None else residuals_of((a,), expected)
        return cls((a,), counts, variance, math.inf, np.zeros(counts.shape), expected=residuals)

    @classmethod
    def of_several(cls, of: Set, counts: Array, variance: float, expected: Array, before: Model) -> Measurement:
        """Return a measurement of several attributes, with v from what it says of them together.

        What it says of each of them alone is known better from all that was measured. So its deviations are those from
        the table that was expected once this has these counts, less what each attribute adds by itself. What is
        expected has noise too: in a cell of E rows, of a value that m rows have with a variance of s, about
        (E / m)**2 s. If noise makes such deviations easily, none is believed.

        Parameters
        ----------
        of, counts, variance
            What was measured.
        expected
            What the model before says, in rows.
        before
            The model before.
        """
        known = [(one.of, one.residuals, one.variance) for one in before.measured]
        given = [*known, (of, residuals_of(of, counts), variance)]
        pool = Pool.of(given, before.tree.sizes, order=1).shrunk(_expect(before.measured, 1), before.rows)
        margins = [nearest_on_simplex(pool.table((a,), before.rows), before.rows) for a in of]
        likely = _rake(np.maximum(expected, 0), margins)
        moved = _without_effects(counts - likely)
        free = (counts.size - 1 - sum(size - 1 for size in counts.shape)) / counts.size
        noise = np.full(counts.shape, variance * free)
        for axis, (a, margin) in enumerate(zip(of, margins, strict=True)):
            noise += pool.variances[a,] * (likely / np.maximum(margin, 1e-9).reshape(_along(axis, counts.ndim))) ** 2
        varies, gain = _varies(moved, likely, noise)
        gain *= free
        varies = varies if gain > _BELIEVED else float(_GRID[0])
        start = likely + moved * (likely * varies / (likely * varies + variance + 1e-9))
        start = np.log(np.maximum(start, 0) + _FEW) - np.log(np.maximum(likely, 0) + _FEW)
        return cls(of, counts, variance, varies, start, gain, residuals_of(of, likely))

    @functools.cached_property
    def residuals(self) -> dict[Set, Array]:
        """What the counts of each subset of the attributes say that those of its own subsets do not."""
        return residuals_of(self.of, self.counts)

    @property
    def told(self) -> bool:
        """Whether the counts differ from what was expected by more than noise."""
        return self.gain > _EVIDENCE

    @property
    def penalty(self) -> float:
        """The penalty for each squared potential, in rows."""
        return self.variance / self.varies + _LEAST_PENALTY


def _along(axis: int, axes: int) -> list[int]:
    """Return the shape of numbers along one axis of a table."""
    return [-1 if k == axis else 1 for k in range(axes)]


def _without_effects(table: Array) -> Array:
    """Return a table less what each axis adds by itself: its means along all axes but one are 0."""
    axes = range(table.ndim)
    alone = [table.mean(axis=tuple(other for other in axes if other != axis), keepdims=True) for axis in axes]
    return np.asarray(table - sum(alone, np.zeros(())) + (table.ndim - 1) * table.mean())


def _rake(table: Array, margins: Sequence[Array]) -> Array:
    """Return a table with given sums along each axis, as nearly as a few turns of proportional fitting make it."""
    found = table + 1e-9
    for axis in [*range(table.ndim)] * _RAKED:
        sums = found.sum(axis=tuple(k for k in range(table.ndim) if k != axis))
        found = found * (margins[axis] / np.maximum(sums, 1e-9)).reshape(_along(axis, table.ndim))
    return found


def _varies(moved: Array, expected: Array, noise: Array) -> tuple[float, float]:
    """Return the v of which deviations are most likely, and how much more so than of next to none, as a logarithm.

    A deviation in a cell of E rows is taken to have the variance v E, and that of its noise.
    """
    flat, rows, likely = moved.ravel(), np.maximum(expected, 0).ravel(), np.empty(len(_GRID))
    for some in np.array_split(np.arange(len(_GRID)), min(max(moved.size * len(_GRID) // _MANY, 1), len(_GRID))):
        spread = np.multiply.outer(_GRID[some], rows) + (noise.ravel() + 1e-9)
        likely[some] = -(np.log(spread) + flat * flat / spread).sum(axis=1) / 2
    return float(_GRID[likely.argmax()]), float(likely.max() - likely[0])


def _log_sum(table: Array, axes: tuple[int, ...]) -> Array:
    """Return the logarithm of sums of exponentials along axes, which are kept with length 1."""
    if not axes:
        return table
    top = table.max(axis=axes, keepdims=True)
    return np.asarray(np.log(np.exp(table - top).sum(axis=axes, keepdims=True)) + top)


def _others(clique: Set, one: Set) -> tuple[int, ...]:
    """Return the axes of a clique's table that a set within it lacks."""
    return tuple(axis for axis, a in enumerate(clique) if a not in one)


def beliefs(tree: JunctionTree, tables: Sequence[Array]) -> tuple[list[Array], float]:
    """Return the marginal of each clique, shares of 1, and the logarithm of the sum over all cells.

    Parameters
    ----------
    tree
        The cliques.
    tables
        The logarithm of each clique's factor, in its shape; they are not changed.
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
    """A model of rows.

    Attributes
    ----------
    tree
        The cliques.
    rows
        How many rows it is of.
    measured
        What it was fitted to.
    potentials
        One for each measurement, in its shape.
    tables
        The marginal of each clique, shares of 1.
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
            If no clique holds them.
        """
        k = self.tree.home(of)
        return np.asarray(self.rows * self.tables[k].sum(axis=_others(self.tree.cliques[k], of)))


def fit(
    tree: JunctionTree,
    measured: Iterable[Measurement],
    rows: float,
    before: Model | None = None,
    turns: int = TURNS,
) -> Model:
    """Return the model of some measurements.

    Parameters
    ----------
    tree
        Cliques of which one holds each measured set.
    measured
        The measurements. Those of `before` come first, if it is given, and start from their potentials.
    rows
        How many rows the model is of.
    before
        A model of the first of them.
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
    """Return the logarithm of each clique's factor."""
    found = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    for one, own in zip(sets, potentials, strict=True):
        k = tree.home(one)
        found[k] += own.reshape(_spread(tree, k, one))
    return found


def _expect(measured: Sequence[Measurement], order: int | None = None) -> dict[Set, Array]:
    """Return what was expected first of each set that is only a part of those measured: others have a penalty.

    Of one attribute that was measured, it is what its measurement expects, if it does.
    """
    found: dict[Set, Array] = {}
    whole = {one.of for one in measured}
    for one in measured:
        for of, own in one.expected.items():
            known = of in whole and not (of == one.of and len(of) == 1)
            if not known and len(of) <= (order or len(of)):
                found.setdefault(of, own)
    return found


def _spread(tree: JunctionTree, k: int, of: Set) -> list[int]:
    """Return the shape of a set's table beside a clique's."""
    return [tree.sizes[a] if a in of else 1 for a in tree.cliques[k]]


@final
class _Walk:
    """A fit that walks along a junction tree: where it stands, the clique's table is the model's, in rows."""

    def __init__(
        self, tree: JunctionTree, measured: Sequence[Measurement], start: Sequence[Array], rows: float
    ) -> None:
        self.tree, self.measured = tree, measured
        self.potentials = [np.clip(one, -_STEEPEST, _STEEPEST) for one in start]
        self.homes = [tree.home(one.of) for one in measured]
        pool = Pool.of([(one.of, one.residuals, one.variance) for one in measured], tree.sizes)
        pool = pool.shrunk(_expect(measured), rows)
        wanted = [pool.table(one.of, rows) for one in measured]
        self.wanted = [nearest_on_simplex(own, rows) if own.ndim == 1 else own for own in wanted]
        self.penalties = [one.penalty for one in measured]
        shares, _ = beliefs(tree, factors_of(tree, [one.of for one in measured], self.potentials))
        self.tables = [rows * own for own in shares]
        self.children: list[list[int]] = [[] for _ in tree.cliques]
        for k in range(1, len(tree.cliques)):
            self.children[tree.parents[k]].append(k)
        self.separators = [self._sum(k, tree.separator(k)) for k in range(len(tree.cliques))]

    def turn(self) -> float:
        """Fit each set once, along the tree and back, and return by how many rows tables were off, all together."""
        off, ahead = 0.0, [(0, iter(self.children[0]))]
        off += self._fit_clique(0)
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
        off = 0.0
        for place, home in enumerate(self.homes):
            if home == k:
                off += self._fit_set(place, k)
        return off

    def _fit_set(self, place: int, k: int) -> float:
        """Solve m exp(d) + penalty (t + d) = y for each cell, by Wright's omega function, and move by d."""
        from scipy.special import wrightomega

        one, potential = self.measured[place], self.potentials[place]
        table, penalty = self._sum(k, one.of), self.penalties[place]
        log_table = np.log(np.maximum(table, 1e-250))
        left = (self.wanted[place] - penalty * potential) / penalty
        point = log_table - math.log(penalty) + left
        omega = wrightomega(point)
        moved = np.where(point > 0, np.log(penalty * np.maximum(omega, 1e-300)) - log_table, left - omega)
        after = np.clip(potential + moved, -_STEEPEST, _STEEPEST)
        factor = np.exp(after - potential)
        self.potentials[place] = after
        self.tables[k] *= factor.reshape(_spread(self.tree, k, one.of))
        return float(np.abs(table * (factor - 1)).sum())

    def _tell(self, separator: int, sender: int, receiver: int) -> None:
        """Send the counts of the clique `sender` to its neighbour, over the separator of the two."""
        of = self.tree.separator(separator)
        new, old = self._sum(sender, of), self.separators[separator]
        ratio = np.divide(new, old, out=np.zeros_like(new), where=old > 0)
        self.tables[receiver] *= ratio.reshape(_spread(self.tree, receiver, of))
        self.separators[separator] = new

    def _sum(self, k: int, of: Set) -> Array:
        return np.asarray(self.tables[k].sum(axis=_others(self.tree.cliques[k], of)))
