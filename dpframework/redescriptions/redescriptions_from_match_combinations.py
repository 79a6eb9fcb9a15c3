"""Redescriptions read off one joint distribution of several matches: all combinations of up to three matches.

A match is a pair of tests, one of each view, that should hold for nearly the same rows. Its complement negates both
tests.

**Which are shown.** A combination joins matches, or their complements, by `and` or by `or`, in the same way on both
sides. From seven matches on, it may also join three by both words. To be shown, a combination must meet three
conditions. Its Jaccard index under the joint distribution is clearly above the target. Its supports are within their
bounds. Its rows differ from those of the combinations shown before it. A literal is left out if, up to noise, its side
holds for nearly the same rows without it.

**How large the errors of a combination may be.** A parametric bootstrap takes the tables that the fitted joint
distribution expects. It adds fresh noise of the same variance, fits again from the uniform distribution, and reads the
combinations that are shown. The root mean square by which a Jaccard index changes in these repetitions is its standard
error. This lacks the error of the model itself, which matters for three matches that no table counts together. The
model's error is estimated on trios of matches that a table does count together: it is how far their index moves if the
fit sees only pairs of matches. `Redescription.deviation` is the root of the sum of the squares of both errors.
Intervals of 3.2 deviations (3.6 for a support) hold in 95 % of the cases, and a star needs a margin of 3 deviations.
This is measured and not proved (`docs/redescriptions.md`).

All of this is post-processing of released counts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.description_simplifier import OTHER_WORD, shorten
from dpframework.facts.logical_descriptions_of_rows import And, Description, Not, Or
from dpframework.facts.schema import Schema
from dpframework.redescriptions.cell_union_redescriptions import DEVIATIONS, MOST_SHARE, OVERLAP, ReportConditions
from dpframework.redescriptions.joint_distribution_fit import DESIGNS, Floats, Joint, as_cells, fit, trios
from dpframework.redescriptions.redescription import Redescription
from dpframework.results.noisy_count_with_interval import Noisy

REPLICATES = 14  # the repetitions of the bootstrap
# Fourteen repetitions alone can agree by chance. So `POOLED` more are added, each as if it were off by `FLOOR`.
POOLED, FLOOR = 3, 0.02
MARGIN = 0.03  # how far a Jaccard index must be above the wanted one, since the model has errors of its own
LEAST_SHARE = 0.03  # the smallest support, as a share of the rows
# A literal is left out if this changes fewer rows than the share `SAYS_NOTHING` of all, plus `OF_NOISE` deviations of
# the noise of one count. Nested combinations need more deviations, since more of them are compared.
SAYS_NOTHING = 0.015
OF_NOISE, OF_NOISE_NESTED = 2.25, 3.0
NESTED_FROM = 7  # from this many matches on, `and` and `or` are nested; fewer matches have more noise
LIKELIEST = 1 << 13  # candidates are compared on this many of the likeliest states of a joint distribution
AT_ONCE = 128  # how many candidates are compared at a time
PER_MATCH = 0.01  # how much one more match in a combination must add to the Jaccard index
Masks = NDArray[np.bool_]


@final
@attrs.frozen(cache_hash=True)
class Joined:
    """Matches or their complements, joined by `and` or by `or`. Two of three may be joined first, by the other word.

    Attributes
    ----------
    kind
        The word that joins the members.
    members
        The joined matches in order, each as its number and whether the match itself is joined (else its complement).
    nested
        Whether the last two of three members are one part, joined by the other word.
    """

    kind: type[And | Or]
    members: tuple[tuple[int, bool], ...]
    nested: bool = False

    @classmethod
    def each(cls, members: tuple[tuple[int, bool], ...], *, nested: bool) -> Iterator[Joined]:
        """Yield each way to join one to three members by one word, and, if nested, three members by both words."""
        kinds: tuple[type[And | Or], ...] = (And,) if len(members) == 1 else (And, Or)
        for kind in kinds:
            yield cls(kind, members)
            for k in range(3) if nested and len(members) == 3 else ():
                yield cls(kind, (members[k], *members[:k], *members[k + 1 :]), nested=True)

    def holds(self, numbers: NDArray[np.int64], places: Sequence[int]) -> Masks:
        """Tell for which numbers the combination holds. Bit k of a number says whether the match places[k] holds."""
        held = [(numbers >> places.index(match) & 1 == 1) == positive for match, positive in self.members]
        if self.nested:
            held[1:] = [np.any(held[1:], axis=0) if self.kind is And else np.all(held[1:], axis=0)]
        return np.asarray(np.all(held, axis=0) if self.kind is And else np.any(held, axis=0))

    def without(self, k: int) -> Joined:
        """Return the combination without its member k."""
        rest = self.members[:k] + self.members[k + 1 :]
        return Joined(And if len(rest) == 1 else OTHER_WORD[self.kind] if self.nested and k == 0 else self.kind, rest)

    def describe(self, sides: Sequence[Description]) -> Description:
        """Return the combination as a description of one view, given each match's side of that view."""
        parts = []
        for match, positive in self.members:
            side = sides[match]
            if not positive:
                side = side.part if isinstance(side, Not) else Not(side)
            parts.append(side)
        return self.kind([parts[0], OTHER_WORD[self.kind](parts[1:])] if self.nested else parts)


@final
@attrs.frozen
class Candidate:
    """A redescription as two combinations of matches: one of their left sides, and one of their right sides.

    Attributes
    ----------
    left, right
        The combinations.
    trio
        The position, among all trios of matches, of a trio that holds the matches of both sides.
    """

    left: Joined
    right: Joined
    trio: int

    @property
    def matches(self) -> frozenset[int]:
        """The matches of either side."""
        return frozenset(match for side in (self.left, self.right) for match, _ in side.members)


@attrs.frozen(eq=False)
class _Counted:
    """For each candidate, the shares of the rows for which both sides, the left side and the right side hold."""

    both: Floats
    left: Floats
    right: Floats

    @property
    def either(self) -> Floats:
        return np.maximum(self.left + self.right - self.both, 1e-12)

    @property
    def index(self) -> Floats:
        return np.clip(self.both / self.either, 0.0, 1.0)


def count_shares(candidates: Sequence[Candidate], cells: Floats, places: Sequence[tuple[int, ...]]) -> _Counted:
    """Return the shares of the rows for which each candidate, and each of its sides, holds.

    `cells` has the shares of the rows in the cells of all trios of matches, shape (trios, 8, 8).
    `places` lists the trios.
    """
    left, right = (
        np.array([_cells_of(getattr(one, side), places[one.trio]) for one in candidates]) for side in ("left", "right")
    )
    of_trio = cells[[one.trio for one in candidates]]
    inside = np.einsum("nl,nlr->nr", left, of_trio)
    return _Counted((inside * right).sum(axis=1), inside.sum(axis=1), np.einsum("nlr,nr->n", of_trio, right))


@functools.lru_cache(maxsize=1 << 16)
def _cells_of(joined: Joined, places: tuple[int, ...]) -> Floats:
    """Return 1 for each of the eight cells of three matches in which a combination of them holds, else 0."""
    return joined.holds(np.arange(8), places).astype(np.float64)


@functools.lru_cache(maxsize=8)
def candidates_of(matches: int, complements: tuple[bool, ...]) -> tuple[Candidate, ...]:
    """Return all combinations of one to three matches, the shortest first, each used for both sides.

    Parameters
    ----------
    matches
        The number of matches.
    complements
        For each match, whether its complement is a redescription too.
    """
    places, found, seen = trios(matches), list[Candidate](), set[Joined]()
    lines = [tuple(sorted(line)) for line in DESIGNS[matches]]
    # Trios that a table counts come first, so that one match or a pair is read off one of these.
    order = sorted(range(len(places)), key=lambda t: places[t] not in lines)
    for size in (1, 2, 3):
        for t in order:
            for chosen in range(8):
                some = [places[t][k] for k in range(3) if chosen >> k & 1]
                if len(some) != size:
                    continue
                for signs in range(2**size):
                    members = tuple((match, not signs >> k & 1) for k, match in enumerate(some))
                    if not all(positive or complements[match] for match, positive in members):
                        continue
                    for joined in Joined.each(members, nested=matches >= NESTED_FROM):
                        if joined not in seen:
                            seen.add(joined)
                            found.append(Candidate(joined, joined, t))
    return tuple(found)


@final
@attrs.frozen(eq=False)
class OverlappingTables:
    """The noisy tables of a design's matches, and the redescriptions that can be read off them.

    Attributes
    ----------
    sides
        The left and the right description of each match, in the order of the design.
    complements
        For each match, whether its complement is a redescription, too. This is false if an attribute of the match may
        be missing.
    counts
        The noisy counts of the design's tables, in its order, shape (tables, 8 left cells, 8 right cells).
    variance
        The variance of the noise of one count.
    schema
        The schema of the rows.
    """

    sides: Sequence[tuple[Description, Description]]
    complements: tuple[bool, ...]
    counts: Floats
    variance: float
    schema: Schema

    @property
    def total(self) -> Noisy:
        """The number of all rows: the public one, or else the mean of the tables' sums."""
        if self.schema.rows is not None:
            return Noisy(self.schema.rows, 0)
        tables, *shape = self.counts.shape
        return Noisy(max(float(self.counts.sum()) / tables, 1.0), self.variance * math.prod(shape) / tables)

    def shares(self, counts: Floats) -> Floats:
        """Return the shares of the rows in the cells of tables, shape (tables, 64)."""
        total = self.schema.rows or max(float(counts.sum()) / len(counts), 1.0)
        return np.stack([as_cells(table) for table in counts]) / total

    def read(self, wanted: ReportConditions, random: np.random.Generator) -> tuple[list[Redescription], int]:
        """Return the wanted redescriptions, best first, and the number of all combinations.

        Parameters
        ----------
        wanted
            The conditions on a redescription.
        random
            The generator of the bootstrap's draws. It need not be secret.
        """
        number, places = len(self.sides), trios(len(self.sides))
        joint = self._fit(self.counts)
        cells, everything = joint.of_trios(places), candidates_of(number, self.complements)
        fitting = self._within_bounds(everything, cells, wanted)
        if not fitting:
            return [], len(everything)
        noise = math.sqrt(self.variance) / self.total.value
        short: dict[Candidate, None] = {}
        for one in fitting:
            # A literal that says nothing beyond the noise of a share only makes a side longer.
            shares, trio = cells[one.trio], places[one.trio]
            left = _without_idle_members(one.left, shares.sum(axis=1), trio, noise)
            right = _without_idle_members(one.right, shares.sum(axis=0), trio, noise)
            short[attrs.evolve(one, left=left, right=right)] = None
        shown = _distinct(self._within_bounds(list(short), cells, wanted), joint)
        return self._measure(shown, joint, cells, random), len(everything)

    def _fit(self, counts: Floats, *, pairs_only: bool = False) -> Joint:
        variance = self.variance / self.total.value**2
        return fit(len(self.sides), self.shares(counts), variance, pairs_only=pairs_only)

    def _within_bounds(
        self, candidates: Sequence[Candidate], cells: Floats, wanted: ReportConditions
    ) -> list[Candidate]:
        """Return the candidates within the bounds, the best first, where each match costs `PER_MATCH` of the index."""
        if not candidates:
            return []
        shares, rows = count_shares(candidates, cells, trios(len(self.sides))), self.total.value
        noise = (DEVIATIONS - 1) * math.sqrt(self.variance)
        least = max(LEAST_SHARE * rows if wanted.min_support is None else wanted.min_support, noise) / rows
        most = MOST_SHARE if wanted.max_support is None else wanted.max_support / rows
        fits = (shares.index >= wanted.min_jaccard + MARGIN) & (shares.both >= least)
        fits &= np.maximum(shares.left, shares.right) <= most
        worth = [index - PER_MATCH * len(one.matches) for one, index in zip(candidates, shares.index, strict=True)]
        return [candidates[k] for k in sorted(np.flatnonzero(fits).tolist(), key=lambda k: -worth[k])]

    def _measure(
        self, shown: Sequence[Candidate], joint: Joint, cells: Floats, random: np.random.Generator
    ) -> list[Redescription]:
        """Return candidates as redescriptions, with their counts and the errors of these counts."""
        if not shown:
            return []
        number, places, rows = len(self.sides), trios(len(self.sides)), self.total.value
        found = count_shares(shown, cells, places)
        squares = np.zeros((4, len(shown)))
        expected = joint.of_trios(DESIGNS[number]) * rows
        for _ in range(REPLICATES):
            drawn = expected + laplace(random, self.variance, expected.shape)
            again = count_shares(shown, self._fit(drawn).of_trios(places), places)
            off = again.both - found.both, again.left - found.left, again.right - found.right
            squares += np.array(
                [(again.index - found.index) ** 2, off[0] ** 2, (off[1] - off[0]) ** 2, (off[2] - off[0]) ** 2]
            )
        index = (squares[0] + POOLED * FLOOR**2) / (REPLICATES + POOLED)
        beyond = self._errors_of_model(shown, cells)
        pooled = POOLED * (FLOOR * found.both) ** 2
        of_rows = (squares[1:] + pooled) / (REPLICATES + POOLED) * rows**2
        # The squared errors, in rows, of the counts of both sides, of the left side alone and of the right side alone.
        of_both, of_left, of_right = of_rows + beyond * (found.either * rows) ** 2
        redescriptions = []
        for k, one in enumerate(shown):
            both, left, right = (float(share[k]) * rows for share in (found.both, found.left, found.right))
            redescriptions.append(
                Redescription(
                    shorten(one.left.describe([side for side, _ in self.sides]), self.schema),
                    shorten(one.right.describe([side for _, side in self.sides]), self.schema),
                    both=Noisy(both, float(of_both[k])),
                    left_only=Noisy(max(left - both, 0.0), float(of_left[k])),
                    right_only=Noisy(max(right - both, 0.0), float(of_right[k])),
                    rows=self.total,
                    deviation=math.sqrt(index[k] + beyond[k]),
                )
            )
        return [one for one in redescriptions if one.left.literals() and one.right.literals()]

    def _errors_of_model(self, shown: Sequence[Candidate], cells: Floats) -> Floats:
        """Return the squared error of the model in each index: 0, except for three matches that no table counts."""
        number, places = len(self.sides), trios(len(self.sides))
        lines = {frozenset(line) for line in DESIGNS[number]}
        apart = np.array([len(one.matches) == 3 and one.matches not in lines for one in shown])
        if not apart.any():
            return np.zeros(len(shown))
        on_lines = [one for one in candidates_of(number, self.complements) if one.matches in lines]
        found = count_shares(on_lines, cells, places)
        of_pairs = self._fit(self.counts, pairs_only=True).of_trios(places)
        change = count_shares(on_lines, of_pairs, places).index - found.index
        near = (found.index >= 0.5) & (found.both >= LEAST_SHARE)
        missed = float((change[near if near.any() else slice(None)] ** 2).mean())
        return np.where(apart, missed, 0.0)


def laplace(random: np.random.Generator, variance: float, shape: tuple[int, ...]) -> Floats:
    """Draw discrete Laplace noise of a variance, as the difference of two geometric numbers.

    A variance of 0 gives no noise.
    """
    ratio = variance / (variance + 1 + math.sqrt(2 * variance + 1))
    return np.asarray(random.geometric(1 - ratio, shape) - random.geometric(1 - ratio, shape), dtype=np.float64)


def _without_idle_members(joined: Joined, shares: Floats, places: tuple[int, ...], noise: float) -> Joined:
    """Leave out members without which a side holds for nearly the same rows.

    `shares` has the share of the rows in each of the eight cells of the side's three matches.
    """
    while len(joined.members) > 1:
        holds = _cells_of(joined, places)
        others = [joined.without(k) for k in range(len(joined.members))]
        changed = [float(shares[holds != _cells_of(other, places)].sum()) for other in others]
        if min(changed) >= SAYS_NOTHING + noise * (OF_NOISE_NESTED if joined.nested else OF_NOISE):
            break
        joined = others[changed.index(min(changed))]
    return joined


def _distinct(candidates: list[Candidate], joint: Joint) -> list[Candidate]:
    """Return, in order, the candidates that hold for other rows than those returned before them.

    Only the likeliest states of the joint distribution are compared. Nine matches have a quarter of a million states,
    and a few of these hold nearly all rows.
    """
    left, right, shares = joint.likeliest(LIKELIEST)
    places, kept = range(joint.matches), list[int]()
    kept_states = np.zeros((0, len(shares)), dtype=np.float32)  # one row for each candidate kept
    weights = np.sqrt(shares).astype(np.float32)
    for start in range(0, len(candidates), AT_ONCE):
        some = candidates[start : start + AT_ONCE]
        holds = [one.left.holds(left, places) & one.right.holds(right, places) for one in some]
        block = np.array(holds) * weights
        everything = np.concatenate([kept_states, block])
        shared, sizes = everything @ block.T, (everything**2).sum(axis=1)
        near = shared >= OVERLAP * (sizes[:, np.newaxis] + sizes[len(kept_states) :] - shared)
        new = list[int]()
        for k in range(len(some)):
            if not near[: len(kept_states), k].any() and not near[[len(kept_states) + one for one in new], k].any():
                new.append(k)
        kept += [start + k for k in new]
        kept_states = np.concatenate([kept_states, block[new]])
    return [candidates[k] for k in kept]
