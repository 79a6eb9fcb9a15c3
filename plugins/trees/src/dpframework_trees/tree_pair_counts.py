"""Counts of rows for sets of tests of two views, which give the score of every pair of trees of one or two levels.

The number of rows in a leaf of a tree of two levels follows from sets of up to two tests (see `tree_counts`). So the
number of rows that a leaf of the first tree shares with a leaf of the second follows from the numbers of rows that such
sets of the two views share. These counts add up over blocks of rows.

**Sums of weights.** A pair of a first tree A and a second tree B has the score c(A) + k(A) H(B; A). Here H is the sum,
over the leaves of B, of the criterion on the leaf's numbers of rows in each leaf of A. Let G be the score of A by the
classes, and N the norm of the sizes of its leaves (see `tree_pairs.PairScore`). For the gain, c = (G - N) / 2 and
k = 1/2. For the product of G and H over n rows, c = G / 2 and k = G / (2 n). For a fixed A, H(B; A) is the score of a
tree B whose classes are the leaves of A. So the sum of weights over all B factorizes as in `tree_weights`, with
scale / k in place of the scale:

    W(A) = exp(c(A) / scale) Z_A,    Z_A = sum over roots x of S_A(x) S_A(not x).

Here x is the test at the root of B. For two levels, S_A of one side of x is a sum over all tests y of the node on that
side. Its terms are the products of the weights of the two leaves below the node. For one level, S_A is the weight of
the leaf on that side. The score of a leaf of B does not factorize over the leaves of A, since a norm is taken over all
of them at once. So every A is looked at. With T tests, there are T trees of one level and T**3 of two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import InputError
from dpframework_trees.tree_counts import CountsBelow
from dpframework_trees.tree_weights import in_threads, log_sum

if TYPE_CHECKING:
    from dpframework_trees.tree_pairs import PairScore

Counts = NDArray[np.int64]
MOST_CELLS = 1 << 23  # the most counts that are kept, which take 64 MiB
MOST_PAIR_WORK = 1 << 31  # the largest `pair_work` that is allowed, which takes minutes
MOST_TESTS = 50_000  # the most tests of a view. Beyond it, the bound on rounding in `exact_pair_sampler` does not hold
MOST_EXACT_LEVELS = 2  # the most levels of trees whose pairs are drawn exactly
#: For each number of levels, a matrix with one line per leaf. The counts of sets, multiplied by a line, add up to the
#: leaf's rows. For one level the sets are (t, all rows). For two levels they are (t and u, t, v, t and v, all rows).
#: Here t is the test at the root, u the test where t holds, and v the test where it does not.
LEAVES = {
    1: np.array([[1, 0], [-1, 1]]),
    2: np.array([[1, 0, 0, 0, 0], [-1, 1, 0, 0, 0], [0, 0, 1, -1, 0], [0, -1, -1, 1, 1]]),
}


def sets_of_tests(tests: int, depth: int) -> int:
    """Return how many sets of a view's tests are counted, including the set of all rows.

    Examples
    --------
    >>> sets_of_tests(10, 1), sets_of_tests(10, 2)
    (11, 56)
    """
    return 1 + (tests if depth == 1 else tests * (tests + 1) // 2)


def place_of_pair(tests: int, low: Counts, high: Counts) -> Counts:
    """Return the positions of pairs of tests low <= high among all such pairs, ordered by low and then by high."""
    return np.asarray(low * tests - low * (low - 1) // 2 + high - low)


def pair_work(first: int, second: int, depth: int) -> int:
    """Return how many times a test (for two levels, a pair of tests) of the second view is looked at.

    Examples
    --------
    >>> pair_work(10, 20, 1), pair_work(10, 20, 2)
    (200, 210000)
    """
    return first * second if depth == 1 else first**3 * second * (second + 1) // 2


def pairs_misfit(first: int, second: int, depth: int, work: int = MOST_PAIR_WORK) -> str | None:
    """Return why pairs of trees cannot be drawn exactly within a limit of work, or None if they can.

    Parameters
    ----------
    first, second
        The numbers of tests of the two views.
    depth
        The number of levels of each tree.
    work
        The largest `pair_work` that is allowed.
    """
    if depth > MOST_EXACT_LEVELS:
        return f"it draws pairs of trees of up to {MOST_EXACT_LEVELS} levels, not {depth}"
    if max(first, second) > MOST_TESTS:
        return f"it takes up to {MOST_TESTS} tests of a view, not {max(first, second)}"
    cells = sets_of_tests(first, depth) * sets_of_tests(second, depth)
    if cells > MOST_CELLS:
        return f"it would keep {cells:.2g} counts for {first} and {second} tests; {MOST_CELLS:.2g} are allowed"
    looked = pair_work(first, second, depth)
    if looked > work:
        return f"it would look at {looked:.2g} pairs of tests for {first} and {second}; {work:.2g} are allowed"
    return None


def require_feasible_pairs(first: int, second: int, depth: int) -> None:
    """Refuse pairs of trees for which the exact sampler would need too much time or memory.

    Raises
    ------
    InputError
        If a limit is exceeded. The message says which.
    """
    misfit = pairs_misfit(first, second, depth)
    if misfit:
        raise InputError(
            f"the exact sampler of pairs cannot do this: {misfit}; lower the depth, give fewer attributes or cuts, or "
            "use sampler = 'stepwise' or 'mcmc'"
        )


@attrs.frozen(eq=False)
class SplitPairCounts:
    """The answer of a `TreePairScores` query for the exact sampler of pairs: counts of rows.

    Attributes
    ----------
    cells
        Numbers of rows, shape (sets of the first view, sets of the second view + classes). A row of the array is a set
        of the first view, a column a set of the second view or, in the last columns, a class. For one level a set holds
        the rows for which one test holds. For two levels it holds the rows for which two tests t <= u both hold, and
        the sets are ordered by t and then by u. The last set of a view holds all rows.
    tests
        The numbers of tests of the two views.
    depth
        The number of levels of each tree.
    pair_score
        The score of a pair.
    """

    cells: Counts
    tests: tuple[int, int]
    depth: int
    pair_score: PairScore

    @property
    def divisor(self) -> float:
        """The divisor of the score, which is the number of rows if the score is normalised."""
        rows = int(self.cells[-1, sets_of_tests(self.tests[1], self.depth) - 1])
        return float(max(rows, 1)) if self.pair_score.normalised else 1.0

    def log_weights(self, scale: float, threads: int) -> NDArray[np.float64]:
        """Return log W of each first tree, shape (tests,) for one level, (tests, tests, tests) for two.

        Parameters
        ----------
        scale
            The scale of the exponential mechanism.
        threads
            How many threads to use.
        """
        from dpframework_trees.kernels import PairScale

        first, second = self.tests
        if self.depth == 1:
            trees = np.arange(first)[:, np.newaxis]
            return np.array([self.terms(a)[0] / scale + log_sum(self.below(a, scale, 1).log_weights(1)) for a in trees])
        logs, weighing = np.zeros((first,) * 3), PairScale(self.pair_score.product, self.divisor, scale)
        weigh = self.pair_score.criterion.kernels.weigh_pairs

        def of_root(t: int) -> None:
            weigh(self.cells, t, _pair_memory(second, self.classes), weighing, logs[t])

        in_threads(of_root, range(first), threads)
        return logs

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.cells.shape[1]) - sets_of_tests(self.tests[1], self.depth)

    def terms(self, first: Counts) -> tuple[float, float]:
        """Return c and k of a first tree (see the module)."""
        columns, leaves = sets_of_tests(self.tests[1], self.depth), self._leaves(first)
        by_class, sizes = np.ascontiguousarray(leaves[:, columns:]), np.ascontiguousarray(leaves[:, columns - 1])
        kernels = self.pair_score.criterion.kernels
        constant, factor = kernels.pair_terms(by_class, sizes, self.pair_score.product, self.divisor)
        return float(constant), float(factor)

    def below(self, first: Counts, scale: float, threads: int) -> CountsBelow:
        """Return the counts for drawing the second tree: all rows, with the leaves of the first tree as classes."""
        second, (_, factor) = self.tests[1], self.terms(first)
        columns = sets_of_tests(second, self.depth)
        of_sets = self._leaves(first).T[:columns]
        alone, sets = np.arange(second), None
        if self.depth == 2:
            sets = np.zeros((second, second, len(first) + 1), dtype=np.int64)
            sets[np.triu_indices(second)] = of_sets[:-1]
            alone = np.flatnonzero(np.equal(*np.triu_indices(second)))
        counts = np.vstack([of_sets[alone], of_sets[-1:]])
        return CountsBelow(counts, sets, self.pair_score.criterion, scale / factor if factor else np.inf, threads)

    def score(self, first: Counts, second: Counts) -> float:
        """Return a pair's score."""
        return float(self.scores(first[np.newaxis], second[np.newaxis]).item())

    def scores(self, first: Counts, second: Counts) -> NDArray[np.float64]:
        """Return the scores of many pairs, shape (pairs,). The trees of each view have the shape (pairs, nodes)."""
        columns, leaves = sets_of_tests(self.tests[1], self.depth), LEAVES[self.depth]
        lines, places = _sets_of_leaves(first, self.tests[0]), _sets_of_leaves(second, self.tests[1])
        shared = self.cells[lines[:, np.newaxis, :], places[:, :, np.newaxis]]
        joint = np.ascontiguousarray(leaves @ shared @ leaves.T)
        by_class, sizes = leaves @ self.cells[lines, columns:], np.zeros(len(leaves), dtype=np.int64)
        score = self.pair_score.criterion.kernels.pair_score
        found = [score(*each, sizes, self.pair_score.product) for each in zip(by_class, joint, strict=True)]
        return np.array(found) / self.divisor

    def _leaves(self, first: Counts) -> Counts:
        """Return counts as in `cells`, but for the leaves of a first tree, shape (leaves, columns of `cells`)."""
        return np.asarray(LEAVES[self.depth] @ self.cells[_sets_of_leaves(first, self.tests[0])])


def _sets_of_leaves(trees: Counts, tests: int) -> Counts:
    """Return the positions of the sets whose counts give those of trees' leaves (see `LEAVES`), shape (..., sets)."""
    if trees.shape[-1] == 1:
        return np.stack([trees[..., 0], np.full(trees.shape[:-1], tests)], axis=-1)
    t, u, v = (trees[..., node] for node in range(3))

    def of(one: Counts, other: Counts) -> Counts:
        return place_of_pair(tests, np.minimum(one, other), np.maximum(one, other))

    everyone = np.full(t.shape, tests * (tests + 1) // 2)
    return np.stack([of(t, u), of(t, t), of(v, v), of(t, v), everyone], axis=-1)


def _pair_memory(second: int, classes: int) -> Any:
    from dpframework_trees.kernels import PairMemory

    def numbers(*shape: int) -> Counts:
        return np.zeros(shape, dtype=np.int64)

    return PairMemory(
        numbers(4, classes),
        numbers(4),
        numbers(second, second, 4),
        numbers(second + 1, 4),
        numbers(4, 4),
        *(np.zeros((2, second)) for _ in range(3)),
    )
