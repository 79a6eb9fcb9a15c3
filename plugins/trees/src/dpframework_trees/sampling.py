"""Mechanisms that release a whole tree at once, by the exponential mechanism on all complete trees of a depth.

`ExactTrees` draws the tests of a tree one after another from the root. The probability of each test is its share of the
sum of weights of all trees (see `tree_weights`). `MarkovChainTrees` walks over trees instead (Bai et al. 2017), for
depths and numbers of tests for which that sum takes too long. Its claim holds if the walk has converged, which is
assumed and not checked (`mcmc-converged`).

Claim of both: pure epsilon; bounded range, so rho = epsilon**2 / 8 in zCDP (Cesar and Rogers 2021).

**Rounding of exact draws.** At each node the log-weights of its tests, times the scale, are rounded to an integer
lattice of 2**-28 of the sensitivity. Then the draw is exact (OpenDP's noisy maximum with Gumbel noise). Let e be how
far a log-weight at a node may be off, in units of the score. The log-probability of a test is off by 2 e at most: e of
its own and e of the normalizer. The log-probability of a tree is off by at most twice the sum of e over its nodes. So
its change between neighbours is off by at most four times that sum, and the difference between the changes of two trees
by at most eight times that sum. This is added to the spread, the bound on that difference without rounding.

Some errors grow with the number of rows R. Let u, K, M, n and T be as in `tree_weights`, which bounds the error of a
log-weight. Subtracting the largest log-weight, and multiplying by the scale, cost another 2 u M n. A node is on level d
if it has d levels, its own included, down to the last tests. The nodes of one level share the rows, so for D levels the
sum of these errors over the nodes is at most

    the sum over d = 1, ..., D of (K + 4 M + 3 M d) u R  =  (D (K + 4 M) + 3/2 D (D + 1) M) u R.

The query declares a bound r >= (K + 2 M) u R on the error of a score (`Query.rounding`), so (2 D + 3/4 D (D + 1)) r is
enough. Rounding adds half a lattice step for each node. All other errors do not depend on the scale. With 2**(D - d)
nodes at level d, their sum over all nodes is at most D 2**D (20 (T + 1) + 3 D ln(T)) u. Within `tree_weights.MOST_WORK`
(T**2 (2 T)**(D - 2) pairs of tests) that is largest for 15 levels and 2 tests, where 8 times the sum is below 2**-24.

**Rounding of walks.** Each leaf's score is rounded to the lattice, so a tree's score is an exact sum and a function of
the tree alone. Proposals are uniform integers. A proposal is accepted by an exact comparison of a uniform number with
an exponential. So the walk is exactly reversible. It converges to exactly the exponential mechanism on the rounded
scores, each of which is off by r and half a step per leaf. The difference between the changes of two trees is off by at
most four times that.
"""

from __future__ import annotations

import abc
import functools
import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import ByRelation, InputError, whole_number
from dpframework.mechanisms import (
    Calibration,
    Losses,
    Noise,
    Preview,
    PureMechanism,
    Randomness,
    bounded_range_losses,
    with_relative_error,
)
from dpframework.queries import Norm, QueryFacts
from dpframework_trees.tree_counts import CountsBelow, TreeCounts
from dpframework_trees.tree_data import TreeData, is_tree, place_rows
from dpframework_trees.tree_weights import RowsBelow, Weights, require_feasible

Tests: TypeAlias = NDArray[np.int64]
Lattice: TypeAlias = NDArray[np.int64]
FEWEST_OF_THREAD = 16  # the fewest tests per thread, since a thread for fewer saves no time
WORDS_AT_ONCE = 1 << 8  # how many words of each node's set of rows are handled at once, to stay in the cache
STEPS_AT_ONCE = 1 << 13  # the number of steps of a walk for which proposals are drawn at once
FINER = 2**8  # how much finer the lattice is than the core's, since many nodes or leaves are rounded
LOGARITHMS = Fraction(1, 2**24)  # a bound on the errors of log-probabilities that do not depend on the scale
MOST_LEVELS = 15  # the most levels that the exact sampler can do, reached with two tests
LOWEST = -(2.0**62)  # the lowest score on the lattice, relative to the best. The scores of 2**31 rows reach 2**61


@attrs.frozen
class WholeTrees(PureMechanism):
    """Releases the tests of a complete tree, with probability proportional to exp(score / scale)."""

    norm: ClassVar[Norm] = Norm.LINF
    chooses: ClassVar[bool] = True

    def misfit(self, facts: QueryFacts) -> str | None:
        """Return a reason against queries that declare no sensitivity in the linf norm."""
        if facts.sensitivity(Norm.LINF) is None:
            return "needs a sensitivity in the linf norm, which the query does not declare"
        return None

    def lattice_unit(self, facts: QueryFacts) -> Fraction:
        """Return a step that stays small when it is added for each of many nodes."""
        return super().lattice_unit(facts) / FINER

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return the spread of the scores with an allowance for rounding."""
        declared = facts.sensitivity(Norm.LINF)
        assert declared is not None  # `misfit` refuses all other queries
        added = self.rounding(facts)
        return declared.spread.map(lambda spread: spread + added)

    @abc.abstractmethod
    def rounding(self, facts: QueryFacts) -> Fraction:
        """Return how far apart rounding may bring the changes of two trees' log-probabilities, times the scale."""

    def losses(self, change: ByRelation, scale: Fraction) -> Losses:
        """Return spread / scale as epsilon, and an eighth of its square as rho."""
        return bounded_range_losses(change, scale)

    def preview(self, calibration: Calibration) -> Preview:
        """Bound the gap between the best tree's score and the released one's (McSherry and Talwar 2007, Theorem 6)."""
        scale, trees = float(calibration.scale), calibration.facts.answer_length or 1
        expected, within = scale * math.log(trees), scale * (math.log(20) + math.log(trees))
        number = f"{trees}" if trees < 10**6 else f"10^{math.log10(trees):.0f}"
        return Preview(expected, within, f"a score within {within:.3g} of the best of {number} trees (95 %)")


def _exact_data(answer: Any, calibration: Calibration) -> TreeData | TreeCounts:
    return answer if isinstance(answer, TreeCounts) else _tree_data(answer, calibration)


def _tree_data(answer: Any, calibration: Calibration) -> TreeData:
    if not isinstance(answer, TreeData):
        raise InputError(f"the query '{calibration.facts.text}' must answer with TreeData for a tree sampler")
    return answer


def depth_bound(trees: int | None) -> int:
    """Return an upper bound on the depth of complete trees, given how many there are.

    With T > 1 tests there are T**(2**depth - 1) trees. With one test there is a single tree, so nothing is drawn.

    Examples
    --------
    >>> depth_bound(2**7), depth_bound(2**7 - 1), depth_bound(1)
    (3, 2, 0)
    """
    return MOST_LEVELS if trees is None else trees.bit_length().bit_length() - 1


def scale_on_lattice(calibration: Calibration) -> float:
    """Return the scale that divides the scores, which is exactly the scale of the noise on the lattice."""
    return calibration.lattice_scale * float(calibration.unit)


def on_lattice(logs: NDArray[np.float64], calibration: Calibration) -> Lattice:
    """Return log-weights times the scale, in lattice steps, shifted so that the largest is 0."""
    steps = (logs - logs.max()) * calibration.lattice_scale
    return np.asarray(np.rint(np.maximum(steps, LOWEST)).astype(np.int64))


def log_share(lattice: Lattice, position: int, calibration: Calibration) -> float:
    """Return the log-probability that the noisy maximum of `lattice`, whose largest entry is 0, is at a position."""
    logs = lattice / calibration.lattice_scale
    return float(logs[position] - np.log(np.exp(logs).sum()))


@final
@attrs.frozen
class ExactTrees(WholeTrees):
    """Draws from the exponential mechanism on all complete trees exactly, by the factorized sum of weights."""

    name: ClassVar[str] = "exact-trees"

    def rounding(self, facts: QueryFacts) -> Fraction:
        """Return eight times the sum of the errors of log-weights over all nodes (see the module)."""
        depth = depth_bound(facts.answer_length)
        of_rows = (2 * depth + Fraction(3, 4) * depth * (depth + 1)) * facts.rounding
        return 8 * of_rows + Fraction(4 * (2**depth - 1)) * self.lattice_unit(facts)

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return the spread of the scores with an allowance for rounding and floating point."""
        return with_relative_error(super().change(facts), LOGARITHMS, self.epsilon)

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Tests:
        """Draw one test after another from the root, each with its share of the sum of weights."""

        def choose(node: int, lattice: Lattice) -> int:
            return randomness.noisy_max(lattice, calibration.lattice_scale, Noise.GUMBEL)

        return _choose_tree(_exact_data(answer, calibration), calibration, choose)

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the sum of the log-probabilities with which the tests are drawn."""
        data = _exact_data(answer, calibration)
        if not is_tree(output, data.tests, data.depth):
            return -math.inf
        shares = []

        def choose(node: int, lattice: Lattice) -> int:
            shares.append(log_share(lattice, int(output[node]), calibration))
            return int(output[node])

        _choose_tree(data, calibration, choose)
        return math.fsum(shares)


def useful_threads(tests: int) -> int:
    """Return the number of threads to use. No result depends on it."""
    of_tests = tests // FEWEST_OF_THREAD
    return 1 if of_tests <= 1 else min(os.cpu_count() or 1, of_tests)  # asking for processors takes a while


def _choose_tree(data: TreeData | TreeCounts, calibration: Calibration, choose: Callable[[int, Lattice], int]) -> Tests:
    """Choose the tests of a tree by the weights of all trees."""
    require_feasible(data.tests, data.depth)
    scale, threads = scale_on_lattice(calibration), useful_threads(data.tests)
    whole = data.whole(scale, threads) if isinstance(data, TreeCounts) else Weights(data, scale, threads=threads).whole
    return choose_below(whole, data.depth, calibration, choose)


def choose_below(
    whole: RowsBelow | CountsBelow, depth: int, calibration: Calibration, choose: Callable[[int, Lattice], int]
) -> Tests:
    """Choose one test after another from the root, by the log-weights of all trees that agree with those chosen.

    Parameters
    ----------
    whole
        The rows at the root.
    depth
        The number of levels.
    calibration
        The calibration of the mechanism, with its scale and lattice.
    choose
        Returns the test of a node, given the log-weights of all tests in lattice steps.
    """
    tests = np.zeros(2**depth - 1, dtype=np.int64)
    below: dict[int, RowsBelow | CountsBelow] = {0: whole}
    for node in range(len(tests)):
        part = below.pop(node)
        levels_below = depth - (node + 1).bit_length() + 1
        test = choose(node, on_lattice(part.log_weights(levels_below), calibration))
        tests[node] = test
        if levels_below > 1:
            below[2 * node + 1], below[2 * node + 2] = part.side(test, True), part.side(test, False)
    return tests


@final
@attrs.frozen
class MarkovChainTrees(WholeTrees):
    """Walks over complete trees for a fixed number of steps, from a uniformly drawn tree (Metropolis and Hastings).

    A step proposes a uniformly drawn test for a uniformly drawn node. So a proposal is as likely as its reverse. (For
    the acceptance, Mihelčić and Miettinen 2023 print min(1, z/z'), where z belongs to the old tree. The right ratio is
    the inverse, z'/z.)

    Attributes
    ----------
    iterations
        The number of steps. It is fixed, since a stop once scores settle would depend on the rows.
    """

    name: ClassVar[str] = "markov-chain-trees"
    assumptions: ClassVar[tuple[str, ...]] = ("mcmc-converged",)
    iterations: int = attrs.field(default=10_000, validator=whole_number())

    def rounding(self, facts: QueryFacts) -> Fraction:
        """Return four times the error of a score, with half a lattice step for each leaf."""
        return 4 * facts.rounding + Fraction(2 * 2 ** depth_bound(facts.answer_length)) * self.lattice_unit(facts)

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Tests:
        """Walk for `iterations` steps, and return the tests of the last tree."""
        from dpframework_trees.kernels import TreeTarget, WalkedTree

        data = _tree_data(answer, calibration)
        leaves = 2**data.depth
        nodes, none = leaves - 1, np.zeros(leaves, dtype=np.int64)
        tests = randomness.integers(len(data.bits), nodes)
        tree = WalkedTree(
            data.bits,
            data.starts,
            tests,
            place_rows(data.bits, tests, data.rows, leaves=False),
            memory=np.zeros((nodes, WORDS_AT_ONCE), dtype=np.uint64),
            counts=np.zeros((leaves, len(data.class_bits)), dtype=np.int64),
            scores=np.stack([none, none]),
        )
        target = TreeTarget(float(calibration.unit), calibration.lattice_scale)

        def propose(steps: int) -> tuple[Tests, Tests]:
            return randomness.integers(nodes, steps), randomness.integers(len(data.bits), steps)

        take = functools.partial(data.criterion.kernels.walk_trees, tree, target)
        walk(take, propose, self.iterations, calibration, randomness)
        return tests

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-density of a converged walk: the exponential mechanism's, with this tree's score rounded."""
        data, unit = _tree_data(answer, calibration), float(calibration.unit)
        if not is_tree(output, data.tests, data.depth):
            return -math.inf
        require_feasible(len(data.bits), data.depth)
        steps = sum(round(score / unit) for score in data.leaf_scores(output))
        total = Weights(data, scale_on_lattice(calibration)).of_all(data.depth)
        return steps / calibration.lattice_scale - total


def walk(
    take: Callable[[Any, int], tuple[int, int]],
    proposed: Callable[[int], tuple[Tests, Tests]],
    iterations: int,
    calibration: Calibration,
    randomness: Randomness,
) -> None:
    """Take the steps of a walk, and decide exactly those that floating point cannot decide.

    Parameters
    ----------
    take
        Takes the steps from a given one on. Returns the first step that it could not decide, and by how much this step
        would change the score, in lattice steps. Returns the number of steps and 0 if it has taken all.
    proposed
        Draws the nodes of a number of steps, and the tests that are proposed for these nodes.
    iterations
        The number of steps of the whole walk.
    calibration
        The calibration of the mechanism, with its scale on the lattice.
    randomness
        The source of random numbers.
    """
    from dpframework_trees.kernels import Steps

    scale = Fraction(calibration.lattice_scale)
    for done in range(0, iterations, STEPS_AT_ONCE):
        number = min(STEPS_AT_ONCE, iterations - done)
        steps = Steps(*proposed(number), randomness.words(number), np.full(number, -1, dtype=np.int8))
        first, change = take(steps, 0)
        while first < number:
            steps.decided[first] = randomness.below_exp(change / scale, int(steps.words[first]))
            first, change = take(steps, first)
