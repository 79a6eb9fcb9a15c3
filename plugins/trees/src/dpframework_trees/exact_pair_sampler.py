"""The mechanism that draws a pair of trees exactly, by the exponential mechanism on all pairs of one depth.

The tests of the first tree A are drawn one after another from the root. The probability of each is its share of the
weights of all pairs that agree with the tests drawn so far. Then the second tree B is drawn for the leaves of A, as
`sampling` draws a tree. The probabilities multiply to

    W(A) / sum of W  times  exp(k(A) H(B; A) / scale) / Z_A  =  exp(score(A, B) / scale) / sum over all pairs,

with W, k, H and Z_A of `tree_pair_counts`, as well as c(A), the part of the score from A alone. This is the exponential
mechanism on all pairs.

Claim: pure epsilon under either relation (McSherry and Talwar 2007, Theorem 6), and bounded range, so
rho = epsilon**2 / 8 in zCDP (Cesar and Rogers 2021). Nothing is assumed. The scale follows from the spread of the score
(`PairScore.sensitivity`). That is the largest difference between two pairs of trees in how much their scores change
between neighbouring tables.

**Rounding.** As in `sampling`, at each node log-weights are rounded to a lattice and the draw is exact. Let e be how
far a log-weight at a node may be off, in units of the score. Eight times the sum of e over the nodes is added to the
spread. Let a be `Criterion.rounding` of a sum over leaves, R the number of rows, and u = 2**-53. The query declares
r = 7/2 a.

- A node of A: c(A) is off by a. (For the score that is a product of G and H, c(A) is off by a / 2, and the factor k(A)
  costs a / 2 and 2 u R more.) The leaves of B together are off by a / 2, since k(A) is at most 1/2. Dividing by the
  scale, and adding c(A) to log Z_A, cost 3 u R. Each log-sum-exp adds a number and a logarithm, which costs 3 u times
  its size. That is at most 3/2 u R for each of the two levels of B and for the sum over its roots, and 3 u R for each
  of up to two sums over tests of A. Subtracting the largest log-weight and multiplying by the scale cost 2 u R.
  Together that is 2 a + 18 u R. Leaves are scored by a norm or by purity. A sum of either over two or more leaves has
  a >= 5 u R. So the total is below 6 a, which is below 2 r = 7 a.
- A level of B: its nodes share the rows. Together they are off by a / 2 for the leaves, a / 2 for k, and 11 u R for all
  else, which is less than 7/2 a = r.

So the sum is at most 6 r + 2 r for three nodes of A and two levels of B, and less for trees of one level. Some errors
do not depend on the scale. A log-sum-exp of T terms is off by 20 (T + 1) u. A part of its result, the log of a number
of trees, does not depend on the scale either, and rounding that part costs less than 20 (T + 1) u. Each node needs up
to five log-sum-exps: three for the sum over roots and the two sides of B, and two for the sums over tests of A. For six
nodes and up to `tree_pair_counts.MOST_TESTS` tests, eight times the sum of their errors is 48 times 100 (T + 1)
u < 2**-25. The rounding costs less than that again. So both together are below 2**-24, for which `sampling.LOGARITHMS`
allows. Half a lattice step for each node is added as in `sampling`.

`tree_pair_counts` limits time and memory, which depend on the numbers of tests and levels alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs
import numpy as np

from dpframework.facts import ByRelation, InputError
from dpframework.mechanisms import Calibration, Noise, Randomness, with_relative_error
from dpframework.queries import QueryFacts
from dpframework_trees.sampling import (
    LOGARITHMS,
    Lattice,
    Tests,
    WholeTrees,
    choose_below,
    log_share,
    on_lattice,
    scale_on_lattice,
    useful_threads,
)
from dpframework_trees.tree_data import is_tree
from dpframework_trees.tree_pair_counts import MOST_EXACT_LEVELS, SplitPairCounts, require_feasible_pairs
from dpframework_trees.tree_weights import log_sum

NODES = 2 * (2**MOST_EXACT_LEVELS - 1)  # the most nodes with tests that a pair of trees has


@final
@attrs.frozen
class ExactPairs(WholeTrees):
    """Draws from the exponential mechanism on all pairs of complete trees exactly, for trees of one or two levels."""

    name: ClassVar[str] = "exact-pairs"

    def rounding(self, facts: QueryFacts) -> Fraction:
        """Return eight times the sum of the errors of log-weights over all nodes (see the module)."""
        return 64 * facts.rounding + Fraction(4 * NODES) * self.lattice_unit(facts)

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return the spread of the scores with an allowance for rounding and floating point."""
        return with_relative_error(super().change(facts), LOGARITHMS, self.epsilon)

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Tests:
        """Draw one test after another, and return the tests of both trees, shape (2, nodes)."""

        def choose(side: int, node: int, lattice: Lattice) -> int:
            return randomness.noisy_max(lattice, calibration.lattice_scale, Noise.GUMBEL)

        return _choose_pair(_pair_counts(answer, calibration), calibration, choose)

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the sum of the log-probabilities with which the tests are drawn."""
        data = _pair_counts(answer, calibration)
        if len(output) != 2 or not all(is_tree(*of, data.depth) for of in zip(output, data.tests, strict=True)):
            return -math.inf
        shares = []

        def choose(side: int, node: int, lattice: Lattice) -> int:
            shares.append(log_share(lattice, int(output[side][node]), calibration))
            return int(output[side][node])

        _choose_pair(data, calibration, choose)
        return math.fsum(shares)


def _pair_counts(answer: Any, calibration: Calibration) -> SplitPairCounts:
    if not isinstance(answer, SplitPairCounts):
        raise InputError(f"the query '{calibration.facts.text}' must answer with SplitPairCounts for the exact sampler")
    return answer


def _choose_pair(data: SplitPairCounts, calibration: Calibration, choose: Callable[[int, int, Lattice], int]) -> Tests:
    """Choose the first tree test by test, then the second for its leaves."""
    require_feasible_pairs(*data.tests, data.depth)
    scale, threads = scale_on_lattice(calibration), useful_threads(data.tests[0])
    logs = data.log_weights(scale, threads)
    first: list[int] = []
    while logs.ndim:  # There is one axis for each test that is still to be drawn.
        summed = [log_sum(below) for below in logs] if logs.ndim > 1 else logs
        first.append(choose(0, len(first), on_lattice(np.asarray(summed), calibration)))
        logs = logs[first[-1]]
    tree = np.array(first, dtype=np.int64)
    second = choose_below(
        data.below(tree, scale, threads), data.depth, calibration, lambda node, lattice: choose(1, node, lattice)
    )
    return np.stack([tree, second])
