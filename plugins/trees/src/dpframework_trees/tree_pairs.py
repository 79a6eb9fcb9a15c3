"""Pairs of trees that are sampled together: their scores, the scores' sensitivities, and a walk over pairs.

Source: Mihelčić and Miettinen 2023, section 4.4. The first tree is scored by the classes of a starting attribute or
test, and the second tree by the leaves of the first.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import InputError, rational_above, whole_number
from dpframework.formulas import Outer, ScoreClaims, Total, bound_at, cells, score_claims, table_rows
from dpframework.mechanisms import Calibration, Randomness
from dpframework.queries import Norm, QueryFacts, Sensitivity
from dpframework_trees.criteria import Criterion, criterion_named
from dpframework_trees.sampling import WholeTrees, walk
from dpframework_trees.tree_data import Bits, RowsByClass, is_tree, place_rows

MOST_PAIRS = 50_000  # the most pairs whose weights are added up for a log-density
#: For n rows, `largest_replacement` tries all ways to divide n - 1 rows into two sets if n is below `EVERY`. Otherwise
#: it tries the `NEAR` ways on each side of the one for which the largest change is expected.
EVERY, NEAR = 5_000, 200

Tests = NDArray[np.int64]


@final
@attrs.frozen
class PairScore:
    """A score of pairs of trees, which combines the scores G of the first tree and H of the second.

    Attributes
    ----------
    name
        "gain", "product" or "published".
    criterion
        The criterion that scores a leaf.
    text
        The score in words.
    """

    name: str
    criterion: Criterion
    text: str

    @property
    def product(self) -> bool:
        """Whether the score is the published product, normalised or not, rather than the gain."""
        return self.name != "gain"

    @property
    def normalised(self) -> bool:
        """Whether the score is divided by the number of rows."""
        return self.name == "published"

    def sensitivity(self, rows: int | None) -> Sensitivity:
        """Return the linf sensitivity of the scores. `rows` is the public number of rows, if there is one.

        `gain` is (G + H - N) / 2, where N is the norm of the sizes of the first tree's leaves. N is the H of a second
        tree that has only one leaf. (Without N the best first tree would be one that puts all rows in one leaf.) G, H
        and N are norms of counts, or sums of norms in which a row is counted once. So an added row changes each by
        something in [0, 1], and the score by something in [-1/2, 1]. A replaced row changes the score by at most 3/2.

        `product` is n times the published score: G (1 + H / n) / 2 with purities G and H of n rows. Let an added row
        change them by g and h in (-1, 1]. With a = G / n and b = H / n in [0, 1] the score changes by

            g / 2 + (n (a h + b g - a b) + g h) / (2 (n + 1)),

        which lies in (-2, 1]: at most 1/2 + (n + 1) / (2 (n + 1)) at a = b = g = h = 1, and above -1/2 - 3/2 since
        a h + b g - a b > -3. Replacing a row changes the score by less than 3. With n rows, the change is at most n
        times the largest value of

            1 - (1 - 2 m / ((m + 1) n)) (1 - k / ((k + 1) n))

        over all whole numbers k, m >= 0 with k + m = n - 1. This formula was found and confirmed by brute force.

        `published` is the score of the paper. It is normalised to [0, 1], so its sensitivity is 1 under either relation
        (Lemma 1 there). That is valid but far too large, since a row moves the score by at most 3 / n. The difference
        between the scores of two pairs of trees changes by at most 1. Replacing one of n rows moves each score by at
        most 1/2 (`largest_replacement`, attained at n = 2). Adding a row to n moves a score s by something in
        ((-2 - s) / (n + 1), (1 - s) / (n + 1)], so the difference changes by at most 4 / (n + 1). With 0 and 1 rows all
        scores are equal, and from 2 rows to 3 the difference changes by at most 11/18.
        """
        source = f"{self.text}: derived in tree_pairs.py"
        if self.name == "gain":
            return Sensitivity(Norm.LINF, 1, Fraction(3, 2), rise=1, fall=Fraction(1, 2), source=source)
        if self.name == "published":
            return Sensitivity(Norm.LINF, 1, 1, source="Mihelčić and Miettinen 2023, Lemma 1: scores lie in [0, 1]")
        # A table of one row always scores 1, but a mechanism's noise needs a positive sensitivity.
        replaced = Fraction(3) if rows is None else rational_above(max(rows, 2) * largest_replacement(max(rows, 2)))
        return Sensitivity(Norm.LINF, 2, replaced, rise=1, fall=2, source=source)

    @property
    def formula_claims(self) -> tuple[ScoreClaims, ...]:
        """The score as a formula of G, H and N. Empty for the normalised score.

        A row changes each of G, H and N by an amount within the criterion's bounds.
        """
        first, second, sizes = cells("first", "second", "sizes")
        rise, fall = (bound_at(bound, None) for bound in self.criterion.bounds[:2])
        totals = [Total(cell, rise, fall, 1) for cell in (first, second, sizes)]
        if self.name == "gain":
            return (score_claims("pair gain", Outer(tuple(totals), (first + second - sizes) / 2), 1, "1/2", "3/2"),)
        if self.name == "product":
            product = first * (1 + second / table_rows) / 2
            return (score_claims("pair product", Outer(tuple(totals[:2]), product), 1, 2, 3),)
        return ()

    def rounding(self, classes: int, leaves: int, rows: int | None) -> Fraction:
        """Return how far a computed score may be from the true one.

        Each sum over leaves is off by a, which is `Criterion.rounding`. With u and R as there, the sums are at most R,
        and u R is at most a / 5. `gain` is half of three sums, with two additions of numbers of up to 2 R, so it is off
        by 3/2 a + 2 u R. In `product` the second sum is divided by the rows, and three more operations follow, so it is
        off by half of 2 a + 5 u R. `published` divides the product, and with it this error, by the rows. So its a and R
        are those of a table of one row, and the division costs another u. 7/2 a is enough for each.
        """
        of_sum = self.criterion.rounding(max(classes, leaves), 0 if self.normalised else rows, leaves)
        return Fraction(7, 2) * of_sum


def largest_replacement(rows: int) -> float:
    """Return by how much replacing a row can change the normalised product score of `rows` rows.

    Examples
    --------
    >>> round(10 * largest_replacement(10), 2)
    2.34
    """
    n = rows

    def change(k: int) -> float:
        m = n - 1 - k
        return 1 - (1 - 2 * m / ((m + 1) * n)) * (1 - k / ((k + 1) * n))

    # The largest change is where m + 1 = sqrt(2) (k + 1), apart from rounding and terms that vanish as n grows.
    near = round(n / (1 + math.sqrt(2)))
    return max(change(k) for k in (range(n) if n < EVERY else range(near - NEAR, near + NEAR)))


def pair_score_named(name: str) -> PairScore:
    """Return a score of pairs by name."""
    if name == "gain":
        return PairScore(name, criterion_named("norm"), "half of the first tree's norm score and the second's gain")
    return PairScore(
        name,
        criterion_named("gini"),
        "purity of the first tree times half of one plus the share of the second's"
        + (", normalised as published" if name == "published" else ""),
    )


def some_pairs(tests: tuple[int, int], depth: int, most: int) -> Iterator[tuple[Tests, Tests]]:
    """Yield every pair of trees if there are at most `most`, else `most` random pairs, the same in each call."""
    nodes, (first, second) = 2**depth - 1, tests
    if (first * second) ** nodes <= most:
        trees = [[np.array(t) for t in itertools.product(range(number), repeat=nodes)] for number in tests]
        yield from itertools.product(*trees)
        return
    rng = np.random.default_rng(0)
    for _ in range(most):
        yield rng.integers(0, first, nodes), rng.integers(0, second, nodes)


@attrs.frozen(eq=False)
class PairData(RowsByClass):
    """The answer of a `TreePairScores` query for a walk over pairs of trees: the rows as sets.

    Attributes
    ----------
    first_bits, second_bits
        For each test of the tree's view, one bit per row, which is 1 where the test holds, shape (tests, words).
    class_bits
        For each class, one bit per row, shape (classes, words).
    depth
        The number of levels of each tree.
    pair_score
        The score of a pair.
    """

    first_bits: Bits
    second_bits: Bits
    class_bits: Bits
    depth: int
    pair_score: PairScore

    @property
    def divisor(self) -> float:
        """The divisor of the score, which is the number of rows if the score is normalised."""
        from dpframework_trees.kernels import common

        return max(float(common(self.rows, self.rows)), 1.0) if self.pair_score.normalised else 1.0

    def score(self, first: Tests, second: Tests) -> float:
        """Return a pair's score."""
        return self._whole(first, second) / self.divisor

    def steps(self, first: Tests, second: Tests, *, unit: float) -> int:
        """Return a pair's score in lattice steps, as a walk rounds it."""
        return round(self._whole(first, second) / (unit * self.divisor))

    def _whole(self, first: Tests, second: Tests) -> float:
        from dpframework_trees.kernels import count_common

        of_first = place_rows(self.first_bits, first, self.rows)[len(first) :]
        of_second = place_rows(self.second_bits, second, self.rows)[len(second) :]
        counts = np.zeros((len(of_first), len(self.class_bits)), dtype=np.int64)
        joint = np.zeros((len(of_second), len(of_first)), dtype=np.int64)
        count_common(of_first, self.class_bits, counts)
        count_common(of_second, of_first, joint)
        together, sizes = self.pair_score, np.zeros(len(of_first), dtype=np.int64)
        return float(together.criterion.kernels.pair_score(counts, joint, sizes, together.product))


@final
@attrs.frozen
class MarkovChainPairs(WholeTrees):
    """Walks over pairs of complete trees for a fixed number of steps (Metropolis and Hastings).

    A step proposes a uniformly drawn test for a uniformly drawn node of either tree. So a proposal is as likely as its
    reverse.

    Attributes
    ----------
    iterations
        The number of steps.
    """

    name: ClassVar[str] = "markov-chain-pairs"
    assumptions: ClassVar[tuple[str, ...]] = ("mcmc-converged",)
    iterations: int = attrs.field(default=10_000, validator=whole_number())

    def rounding(self, facts: QueryFacts) -> Fraction:
        """Return four times the sum of a score's error and half a lattice step (see `sampling`)."""
        return 4 * facts.rounding + 2 * self.lattice_unit(facts)

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> NDArray[np.int64]:
        """Walk, and return the tests of both trees, shape (2, nodes)."""
        from dpframework_trees.kernels import PairTarget, Routed, WalkedPair

        data = _pair_data(answer, calibration)
        leaves, classes = 2**data.depth, len(data.class_bits)
        nodes = leaves - 1
        of_leaves, of_pairs = np.zeros((leaves, classes), dtype=np.int64), np.zeros((leaves, leaves), dtype=np.int64)
        sides = (data.first_bits, data.second_bits)
        trees = np.stack([randomness.integers(len(bits), nodes) for bits in sides])
        first, second = (
            Routed(bits, tests, place_rows(bits, tests, data.rows)) for bits, tests in zip(sides, trees, strict=True)
        )
        pair = WalkedPair(
            first,
            second,
            data.class_bits,
            counts=np.stack([of_leaves, of_leaves]),
            joint=np.stack([of_pairs, of_pairs]),
            sizes=np.zeros(leaves, dtype=np.int64),
            spare=np.zeros_like(first.members),
        )
        score = data.pair_score
        target = PairTarget(score.product, float(calibration.unit) * data.divisor, calibration.lattice_scale)

        def propose(steps: int) -> tuple[Tests, Tests]:
            chosen = randomness.integers(2 * nodes, steps)
            tests = np.where(chosen < nodes, len(data.first_bits), len(data.second_bits))
            return chosen, randomness.integers(tests, steps)

        take = functools.partial(score.criterion.kernels.walk_pairs, pair, target)
        walk(take, propose, self.iterations, calibration, randomness)
        return trees

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-density of a converged walk, which is that of the exponential mechanism.

        The weights of all pairs are added up.

        Raises
        ------
        InputError
            If there are more than `MOST_PAIRS` pairs.
        """
        data, unit = _pair_data(answer, calibration), float(calibration.unit)
        tests = (len(data.first_bits), len(data.second_bits))
        if len(output) != 2 or not all(is_tree(*of, data.depth) for of in zip(output, tests, strict=True)):
            return -math.inf
        number = (len(data.first_bits) * len(data.second_bits)) ** (2**data.depth - 1)
        if number > MOST_PAIRS:
            raise InputError(f"the weights of {number} pairs of trees cannot be added up; the limit is {MOST_PAIRS}")
        pairs = some_pairs(tests, data.depth, MOST_PAIRS)
        steps = np.array([data.steps(*pair, unit=unit) for pair in pairs], dtype=np.int64)
        logs = (steps - steps.max()) / calibration.lattice_scale
        first, second = output
        chosen = (data.steps(first, second, unit=unit) - int(steps.max())) / calibration.lattice_scale
        return chosen - math.log(float(np.exp(logs).sum()))


def _pair_data(answer: Any, calibration: Calibration) -> PairData:
    if not isinstance(answer, PairData):
        raise InputError(f"the query '{calibration.facts.text}' must answer with PairData for a sampler of pairs")
    return answer
