"""Mechanisms that release a whole tree at once, by the exponential mechanism on all complete trees of a depth.

A tree's score is a sum over leaves, so the sum of weights over all trees factorizes: with w(S) = exp(f(S) / scale) for
the rows S of a leaf,

    Z(S, 0) = w(S),    Z(S, d) = sum over tests t of Z(S and t, d - 1) Z(S and not t, d - 1),

and a tree is drawn exactly, test by test from the root, each with its share of Z. `ExactTrees` does that; its one
assumption is real arithmetic. `MarkovChainTrees` walks over trees instead (Bai et al. 2017), for depths and numbers of
tests at which Z is out of reach: its claim holds if the walk has converged, which nobody checks (`mcmc-converged`).

Claim of both: pure epsilon; bounded range, so rho = epsilon**2 / 8 in zCDP (Cesar and Rogers 2021).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias, TypeVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import ByRelation, InputError, float_above, whole_number
from dpframework.mechanisms import Calibration, Losses, Preview, PureMechanism, Randomness, bounded_range_losses
from dpframework.queries import Norm, QueryFacts

Bits = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.int32]
T = TypeVar("T")
MOST_WORK = 4 * 10**8  # pairs of tests that the exact sampler may look at: minutes
FEWEST_OF_THREAD = 16  # tests for which a thread is worth while
STEPS_AT_ONCE = 1 << 13  # of a walk, whose proposals are drawn together


@attrs.frozen(eq=False)
class TreeData:
    """The rows as a tree sampler reads them: the answer of a `TreeScores` query.

    Attributes
    ----------
    bits
        One bit a row for each test that holds, shape (tests, words).
    class_bits
        One bit a row for each class, shape (classes, words).
    depth
        Of the trees.
    criterion
        The number of the criterion that scores a leaf.
    """

    bits: Bits
    class_bits: Bits
    depth: int
    criterion: int

    @property
    def rows(self) -> Bits:
        """The set of all rows."""
        return np.asarray(np.bitwise_or.reduce(self.class_bits, axis=0))

    def by_class(self) -> tuple[TreeData, NDArray[np.int64]]:
        """Return the rows sorted by class, each class from a word of its own on, and where each class starts."""
        from dpframework_trees.kernels import arrange

        of_classes = [
            np.flatnonzero(np.unpackbits(of_class.astype("<u8").view(np.uint8), bitorder="little"))
            for of_class in self.class_bits
        ]
        words = [(len(of_class) + 63) // 64 for of_class in of_classes]
        starts = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
        source = np.full(64 * starts[-1], -1, dtype=np.int64)
        for of_class, start in zip(of_classes, 64 * starts, strict=False):
            source[start : start + len(of_class)] = of_class
        arranged = [np.zeros((len(bits), starts[-1]), dtype=np.uint64) for bits in (self.bits, self.class_bits)]
        for bits, sorted_bits in zip((self.bits, self.class_bits), arranged, strict=True):
            arrange(bits, source, sorted_bits)
        return attrs.evolve(self, bits=arranged[0], class_bits=arranged[1]), starts

    def score(self, tests: NDArray[np.int64]) -> float:
        """Return a tree's score."""
        from dpframework_trees.kernels import child_score, leaf_counts

        members, which = placed(self.bits, tests, self.rows)
        counts = np.zeros((len(tests) + 1, len(self.class_bits)), dtype=np.int64)
        leaf_counts(members, which, self.class_bits, counts)
        return math.fsum(child_score(of_leaf, self.criterion) for of_leaf in counts)


def placed(bits: Bits, tests: NDArray[np.int64], rows: Bits) -> tuple[Bits, NDArray[np.int8]]:
    """Return the rows of every node of a tree, twice (a spare set each, for walks), and which of the two is its own."""
    from dpframework_trees.kernels import place_rows

    nodes = 2 * len(tests) + 1
    members, which = np.zeros((2, nodes, len(rows)), dtype=np.uint64), np.zeros(nodes, dtype=np.int8)
    members[:, 0] = rows
    place_rows(bits, tests, members, which)
    return members, which


def exact_work(tests: int, depth: int) -> int:
    """Return how many pairs of tests the exact sampler looks at."""
    return tests if depth == 1 else tests**2 * (2 * tests) ** (depth - 2)


def require_feasible(tests: int, depth: int) -> None:
    """Refuse trees that the exact sampler would take too long for.

    Raises
    ------
    InputError
        With the work and the limit.
    """
    work = exact_work(tests, depth)
    if work > MOST_WORK:
        raise InputError(
            f"the exact sampler would look at {work:.2g} pairs of tests for depth {depth} and {tests} tests, more than "
            f"the {MOST_WORK:.2g} allowed; lower the depth, give fewer attributes or cuts, or use sampler = 'mcmc'"
        )


@final
class Weights:
    """Sums of weights of trees below sets of rows, at one noise scale.

    Parameters
    ----------
    data
        The rows; `data` keeps them sorted by class, so that one pass over the words counts all classes.
    scale
        Of the exponential mechanism.
    threads
        How many to use.
    """

    def __init__(self, data: TreeData, scale: float, *, threads: int = 1) -> None:
        self.data, self._starts = data.by_class()
        self._scale, self._threads = scale, threads

    def of_tests(self, rows: Bits, depth: int) -> NDArray[np.float64]:
        """Return, for each test, the log of the sum of weights of all trees of that depth with that test at the root.

        `rows` is a set of rows of `data` as it is kept here.
        """
        from dpframework_trees.kernels import Weighing, log_weights_of_stumps

        counts = self._counts(rows)
        if depth == 1:
            weights = np.zeros(len(self.data.bits))
            log_weights_of_stumps(Weighing(counts, self.data.criterion, self._scale), weights)
            return weights
        if depth == 2:
            return self._roots_of_two(rows, counts)
        return self._roots(rows, depth, counts, self._pairs(rows), self._threads)

    def of_all(self, depth: int) -> float:
        """Return log Z of all rows."""
        return log_sum(self.of_tests(self.data.rows, depth))

    def _counts(self, rows: Bits) -> Counts:
        from dpframework_trees.kernels import count_tests

        counts = np.zeros((len(self.data.bits) + 1, len(self.data.class_bits)), dtype=np.int32)
        count_tests(self.data.bits, rows, self._starts, counts)
        return counts

    def _pairs(self, rows: Bits) -> Counts:
        from dpframework_trees.kernels import count_pairs

        pairs = np.zeros((len(self.data.bits), len(self.data.bits), len(self.data.class_bits)), dtype=np.int32)
        count_pairs(self.data.bits, rows, self._starts, pairs)
        return pairs

    def _roots(self, rows: Bits, depth: int, counts: Counts, pairs: Counts, threads: int = 1) -> NDArray[np.float64]:
        """Do `of_tests` for a depth of two or more, from what has been counted for `rows`."""
        from dpframework_trees.kernels import Weighing, log_weights_of_pairs

        if depth == 2:
            top, total = _empty_sums(len(pairs))
            log_weights_of_pairs(pairs, Weighing(counts, self.data.criterion, self._scale), top, total)
            return _log_products(top, total)

        def of_test(t: int) -> float:
            held = rows & self.data.bits[t]
            held_counts, held_pairs = self._counts(held), self._pairs(held)
            of_held = self._roots(held, depth - 1, held_counts, held_pairs)
            # what is counted for the rows on one side need not be counted for those on the other
            rest = self._roots(rows & ~held, depth - 1, counts - held_counts, pairs - held_pairs)
            return log_sum(of_held) + log_sum(rest)

        return np.array(_in_threads(of_test, range(len(pairs)), threads))

    def _roots_of_two(self, rows: Bits, counts: Counts) -> NDArray[np.float64]:
        """Count no pair twice, and keep none."""
        from dpframework_trees.kernels import Weighing, log_weights_of_rows

        data, threads = self.data, self._threads
        weighing = Weighing(counts, data.criterion, self._scale)

        def share(first: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            sums = _empty_sums(len(data.bits))
            log_weights_of_rows(data.bits, rows, self._starts, weighing, first, threads, *sums)
            return sums

        tops, totals = (np.stack(each) for each in zip(*_in_threads(share, range(threads), threads), strict=True))
        top = tops.max(axis=0)
        return _log_products(top, (totals * np.exp(tops - top)).sum(axis=0))


def _in_threads(function: Callable[[int], T], numbers: Iterable[int], threads: int) -> list[T]:
    if threads == 1:
        return [function(number) for number in numbers]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, numbers))


def _empty_sums(tests: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.full((2, tests), -np.inf), np.zeros((2, tests))


def _log_products(top: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logs of products over the sides of each root of sums exp(top) total."""
    return np.asarray((top + np.log(total)).sum(axis=0))


def log_sum(logs: NDArray[np.float64]) -> float:
    """Return the log of the sum of numbers whose logs are given."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


@attrs.frozen
class WholeTrees(PureMechanism):
    """Releases the tests of a complete tree, with probability proportional to exp(score / scale)."""

    norm: ClassVar[Norm] = Norm.LINF

    def misfit(self, facts: QueryFacts) -> str | None:
        """Ask for a linf sensitivity."""
        if facts.sensitivity(Norm.LINF) is None:
            return "needs a sensitivity in the linf norm, which the query does not declare"
        return None

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return the spread of the scores."""
        declared = facts.sensitivity(Norm.LINF)
        assert declared is not None  # `misfit` has been asked
        return declared.spread

    def losses(self, change: ByRelation, scale: Fraction) -> Losses:
        """Return spread / scale, and an eighth of its square as rho."""
        return bounded_range_losses(change, scale)

    def preview(self, calibration: Calibration) -> Preview:
        """Bound the gap between the best tree's score and the released one's (McSherry and Talwar 2007, Theorem 6)."""
        scale, trees = float(calibration.scale), max(calibration.facts.answer_length or 1, 2)
        expected, within = scale * math.log(trees), scale * (math.log(20) + math.log(trees))
        number = f"{trees}" if trees < 10**6 else f"10^{math.log10(trees):.0f}"
        return Preview(expected, within, f"a score within {within:.3g} of the best of {number} trees (95 %)")


def _tree_data(answer: Any, calibration: Calibration) -> TreeData:
    if not isinstance(answer, TreeData):
        raise InputError(f"the query '{calibration.facts.text}' must answer with TreeData for a tree sampler")
    return answer


def exact_log_density(data: TreeData, tests: NDArray[np.int64], scale: float) -> float:
    """Return the log-probability of a tree under the exponential mechanism."""
    require_feasible(len(data.bits), data.depth)
    return data.score(tests) / scale - Weights(data, scale).of_all(data.depth)


@final
@attrs.frozen
class ExactTrees(WholeTrees):
    """Draws from the exponential mechanism on all complete trees exactly, by the factorized sum of weights."""

    name: ClassVar[str] = "exact-trees"
    assumptions: ClassVar[tuple[str, ...]] = ("real-arithmetic",)

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> NDArray[np.int64]:
        """Draw test after test, from the root, each with its share of the sum of weights."""
        given = _tree_data(answer, calibration)
        require_feasible(len(given.bits), given.depth)
        threads = max(1, min(os.cpu_count() or 1, len(given.bits) // FEWEST_OF_THREAD))
        weights = Weights(given, float_above(calibration.scale), threads=threads)
        data = weights.data
        tests = np.zeros(2**data.depth - 1, dtype=np.int64)
        below = {0: data.rows}
        for node in range(len(tests)):
            rows = below.pop(node)
            depth = data.depth - (node + 1).bit_length() + 1
            logs = weights.of_tests(rows, depth)
            test = int(np.argmax(logs + randomness.generator.gumbel(size=len(logs))))
            tests[node] = test
            below[2 * node + 1], below[2 * node + 2] = rows & data.bits[test], rows & ~data.bits[test]
        return tests

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return score / scale - log Z."""
        return exact_log_density(_tree_data(answer, calibration), output, float_above(calibration.scale))


@final
@attrs.frozen
class MarkovChainTrees(WholeTrees):
    """Walks over complete trees for a fixed number of steps, from a uniformly drawn one (Metropolis and Hastings).

    A step proposes a uniformly drawn test for a uniformly drawn node, which is as likely as its reverse. (Mihelčić and
    Miettinen 2023 print min(1, z/z') for the acceptance, z the old state: the inverse of what it must be.)

    Attributes
    ----------
    iterations
        The number of steps; it does not depend on the rows, as a stop when scores settle would.
    """

    name: ClassVar[str] = "markov-chain-trees"
    assumptions: ClassVar[tuple[str, ...]] = ("mcmc-converged", "real-arithmetic")
    iterations: int = attrs.field(default=10_000, validator=whole_number())

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> NDArray[np.int64]:
        """Walk."""
        from dpframework_trees.kernels import Routed, Steps, walk_trees

        data, rng = _tree_data(answer, calibration), randomness.generator
        tests: NDArray[np.int64] = rng.integers(0, len(data.bits), 2**data.depth - 1)
        tree = Routed(data.bits, tests, *placed(data.bits, tests, data.rows))
        for done in range(0, self.iterations, STEPS_AT_ONCE):
            steps = min(STEPS_AT_ONCE, self.iterations - done)
            nodes, proposals = rng.integers(0, len(tests), steps), rng.integers(0, len(data.bits), steps)
            drawn = Steps(nodes, proposals, np.log(1 - rng.random(steps)))
            walk_trees(tree, data.class_bits, data.criterion, float_above(calibration.scale), drawn)
        return tests

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return that of a walk that has converged: the exponential mechanism's."""
        return exact_log_density(_tree_data(answer, calibration), output, float_above(calibration.scale))
