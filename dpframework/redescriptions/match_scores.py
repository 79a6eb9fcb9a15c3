r"""Scores of matches between tests of two views, in numbers of rows. One row moves a score by at most 1 on any table.

A *view* is a set of attributes. A *test* is a literal: a value of an attribute, or "below a public cut". A *match* is
one test of each of two views, in one of two orientations: both should hold for the same rows, or one exactly where the
other does not. A match's *sides* are its two tests; in the second orientation the right test is negated. B is the
number of rows for which both sides hold. N is the number of rows for which both attributes are known and neither side
holds. A is the number of all other rows for which at least one attribute is known. If a row lacks the value of an
attribute, neither a test of that attribute nor its negation holds. The row counts in A if the other attribute is known,
and nowhere otherwise.

**The score.** With w the target for the Jaccard index and c a public number of rows,

    q = (1 - w) min(B, N, c) - w A.

(1 - w) B > w A exactly if B / (B + A) > w. So a positive score says that the Jaccard index is above w for both B and N,
that is, for the match and its complement. An added row counts in B, in N, in A or in none of them. In B or N it raises
q by 1 - w or 0. In A it lowers q by w. So q moves by an amount in [-w, 1 - w], and two scores move apart by at most 1,
the length of that interval, for every w and c. A replaced row moves q by at most w + (1 - w) = 1, when it goes from A
to the smaller of B and N or back.

**Few rows.** A match cannot score more than its number of rows, so large matches hide small ones. With a public number
m of rows,

    q = min((1 - w) min(B, N, c), w (m - B)) - w A

is positive only if B is below m. With A = 0 and large N and c, this q is largest at B = w m, where both terms are
equal. A row in B lowers the second term by w, and a row in A lowers q by w. So q moves by an amount in [-w, 1 - w] as
before, and by at most w + (1 - w) if a row is replaced.

**Different from a known set.** Let S be a set of rows given by public descriptions. Let M be the set of rows that B
counts, or the set that N counts. With d the largest Jaccard index of M and S that is allowed, the term::

    k (d |M or S| - |M and S|),    k = min((1 - w) / d, w / (1 - d)),

is positive exactly if their index is below d. An added row moves the term by -k (1 - d) if it is in both sets, by k d
if it is in one of them, and by 0 otherwise. By the choice of k these amounts are in [-w, 1 - w]. If each of several
functions moves by an amount in an interval, so does their minimum. So the minimum of q and of such terms, for both M
and any number of sets S, moves by an amount in [-w, 1 - w], too, and by at most 1 if a row is replaced. This holds for
all sets S and every c. So both may come from releases, and are given at run time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, final, overload

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric, as_attributes
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import And, Below, Description, Equals, Literal, Not
from dpframework.facts.parameter_checks import between_0_and_1, share_of_budget
from dpframework.formulas.count_formula import Formula, cells, least, public
from dpframework.formulas.score_structures import Cells
from dpframework.formulas.sensitivity_claims_and_neighbours import ScoreClaims, score_claims
from dpframework.queries.base import Norm, Sensitivity
from dpframework.queries.query_counts_on_row_blocks import Counting
from dpframework.queries.scores import CandidateScores
from dpframework.redescriptions.common_row_counts import Sets, ViewTests, common_counts, common_tables
from dpframework.tables.crosstab_expressions import JointCounts
from dpframework.tables.encoded_row_blocks import Block

DISTINCT = Fraction(7, 10)  # a match is too similar to a known set if the Jaccard index of their rows is this or more
GIVEN_CAP = public("cap", 0, 10**18)  # a cap given at run time; every table has fewer than 10**18 rows

Floats = NDArray[np.float64]


def binary_tests(attribute: Attribute) -> list[Literal]:
    """Return the tests of an attribute, without a test that negates another. There is no test for a missing value.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> [str(test) for a in (Boolean("ill"), Numeric("age", 0, 90, cuts=[30, 60])) for test in binary_tests(a)]
    ['ill = true', 'age < 30', 'age < 60']
    """
    if isinstance(attribute, Numeric):
        return [Below(attribute.name, cut) for cut in attribute.interior_cuts]
    size = attribute.size - (attribute.missing_code is not None)
    # A single value is not tested. Of two values only the second is tested: for a Boolean, "true" reads better.
    first = {1: 1, 2: 1}.get(size, 0)
    return [Equals(attribute.name, label) for label in attribute.labels[first:size]]


@final
@attrs.frozen
class Match:
    """One test of each view, and whether they should hold for the same rows or for opposite ones.

    Attributes
    ----------
    left, right
        The tests.
    opposite
        Whether the right test should fail where the left test holds.

    Examples
    --------
    >>> left, right = Match(Equals("ill", "true"), Below("age", 30), True).sides
    >>> print(left, "~", right)
    ill = true ~ age >= 30
    """

    left: Literal
    right: Literal
    opposite: bool

    @property
    def sides(self) -> tuple[Description, Description]:
        """The description of each side."""
        return self.left, Not(self.right) if self.opposite else self.right

    @property
    def parts(self) -> tuple[Description, Description]:
        """The descriptions of the rows of B and of the rows of N, which are disjoint."""
        left, right = self.sides
        return And([left, right]), And([Not(left), self.right if self.opposite else Not(self.right)])


@attrs.frozen(eq=False)
class _Matches(Sequence[Match]):
    """The allowed matches of two lists of tests. Match k has the score at position k, and is built when it is read."""

    left: tuple[Literal, ...]
    right: tuple[Literal, ...]
    positions: Sequence[int] | NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.positions)

    @overload
    def __getitem__(self, index: int) -> Match: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Match]: ...
    def __getitem__(self, index: int | slice) -> Match | Sequence[Match]:
        """Return one match, or several."""
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        opposite, pair = divmod(int(self.positions[index]), len(self.left) * len(self.right))
        i, j = divmod(pair, len(self.right))
        return Match(self.left[i], self.right[j], bool(opposite))


@final
@attrs.frozen(slots=False)
class MatchScores(CandidateScores):
    """The scores of all pairs of tests, one of each view, in both orientations (see the module).

    At run time, the input `known` may give descriptions of sets of rows that a match should differ from. With
    `given_cap`, the input `cap` may give a cap.

    Attributes
    ----------
    left, right
        The attributes of each view. No match has the same attribute on both sides.
    target
        The target for the Jaccard index, w.
    cap
        The public number of rows beyond which a match gains nothing, c. None for no cap.
    given_cap
        Whether a cap may be given at run time, from a release. The smaller of both caps counts.
    most
        The public number of rows m that B should stay below. None for no limit.
    followed
        Whether another choice from the same rows follows. If so, counts are kept for it. Scores do not depend on this.

    Raises
    ------
    InputError
        If no pair of attributes can be tested.
    """

    name = "match-scores"
    left: tuple[Attribute, ...] = attrs.field(converter=as_attributes)
    right: tuple[Attribute, ...] = attrs.field(converter=as_attributes)
    target: Fraction = attrs.field(default=Fraction(1, 2), converter=share_of_budget, validator=between_0_and_1)
    cap: int | None = None
    given_cap: bool = False
    most: int | None = None
    followed: bool = True

    def __attrs_post_init__(self) -> None:
        """Refuse views without a pair of tests."""
        if not len(self._allowed):
            raise InputError(
                "no two attributes, one of each view, have a test; give each view an attribute with two values or a cut"
            )

    @property
    def text(self) -> str:
        """The score in words."""
        return f"rows by which each pair of tests surpasses a Jaccard index of {float(self.target):g}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes of both views."""
        return tuple(dict.fromkeys(a.name for a in (*self.left, *self.right)))

    @functools.cached_property
    def tests(self) -> tuple[tuple[Literal, ...], tuple[Literal, ...]]:
        """The tests of each view."""
        left, right = (tuple(test for a in side for test in binary_tests(a)) for side in (self.left, self.right))
        return left, right

    @functools.cached_property
    def _allowed(self) -> Sequence[int] | NDArray[np.int64]:
        """The positions of pairs of different attributes among all pairs in both orientations.

        They are a range if no attribute is in both views.
        """
        if not {a.name for a in self.left} & {a.name for a in self.right}:
            return range(2 * math.prod(map(len, self.tests)))
        left, right = (np.array([test.attribute for test in side], dtype=object) for side in self.tests)
        differ = left[:, None] != right[None, :]
        return np.flatnonzero(np.stack([differ, differ]))

    @property
    def answer_length(self) -> int:
        """The number of matches."""
        return len(self._allowed)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """At most 1 - w up and at most w down for an added row, and at most 1 for a replaced row (see the module)."""
        rise, fall = 1 - self.target, self.target
        source = "a row is in both sides of a match, in neither or in one: derived in redescriptions.match_scores"
        return (Sensitivity(Norm.LINF, max(rise, fall), 1, rise=rise, fall=fall, source=source),)

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The score of a match, and the term that a known set adds to the minimum (see the module)."""
        both, neither, one = cells("both", "neither", "one")
        in_both, in_match, in_known = cells("in_both", "in_match", "in_known")
        w, d = self.target, DISTINCT
        caps: list[Formula | int] = [] if self.cap is None else [self.cap]
        if self.given_cap:
            caps.append(GIVEN_CAP)
        smallest = least(both, neither, *caps)
        known = min((1 - w) / d, w / (1 - d)) * (d * (in_both + in_match + in_known) - in_both)
        gain = (1 - w) * smallest
        if self.most is not None:
            gain = least(gain, w * (self.most - both))
        score = Cells((both, neither, one), gain - w * one)
        term = Cells((in_both, in_match, in_known), known)
        return (
            score_claims(self.name, score, 1 - w, w, 1, self._score_of_match),
            score_claims(f"{self.name}: a known set", term, 1 - w, w, 1, self._score_of_known),
        )

    def _score_of_match(self, counts: NDArray[np.int64], parameters: Mapping[str, Any]) -> float:
        """Return a match's score from the numbers of rows for which both sides hold, neither holds, or one does."""
        from dpframework.redescriptions.kernels.match_kernels import match_scores

        both, neither, one = counts.tolist()
        scores = np.zeros((2, 1, 1))
        cap = self._cap({"cap": parameters["cap"]} if self.given_cap else {})
        match_scores(_two_tests(both, one, neither), _KNOWN, _KNOWN, float(self.target), cap, self._most, scores)
        return float(scores[0, 0, 0])

    def _score_of_known(self, counts: NDArray[np.int64], parameters: Mapping[str, Any]) -> float:
        """Return a known set's term from the numbers of rows in set and match, in the match only, in the set only."""
        from dpframework.redescriptions.kernels.match_kernels import lower_scores

        in_both, in_match, in_known = counts.tolist()
        # With this many rows in neither set, the term for N (see the module) is never the smaller one.
        many = int(counts.sum() + 1) * 100
        rows = _two_tests(in_both + in_match, in_known, many)
        scores = np.full((2, 1, 1), np.inf)
        within = _two_tests(in_both, in_known, 0)
        lower_scores(rows, within, _KNOWN, _KNOWN, float(self.target), float(DISTINCT), scores)
        return float(scores[0, 0, 0])

    def candidates(self, **inputs: Any) -> Sequence[Match]:
        """Return all matches."""
        return _Matches(*self.tests, self._allowed)

    @functools.cached_property
    def _sides(self) -> tuple[ViewTests, ViewTests]:
        left, right = (ViewTests(side, tuple(tuple(binary_tests(a)) for a in side)) for side in (self.left, self.right))
        return left, right

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int32]:
        """Count this block's rows for all pairs of tests, among all rows and then within each known set."""
        everyone, sets = inputs.get("everyone", True), inputs.get("sets")
        return common_counts(block, *self._sides, inputs.get("known", ()), everyone=everyone, sets=sets)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of each pair of attributes, for all rows and within each known set."""
        return common_tables(*self._sides, inputs.get("known", ()), everyone=inputs.get("everyone", True))

    def answer(self, counts: NDArray[Any], **inputs: Any) -> Floats:
        """Return the scores of all matches, lowered for each known set of rows."""
        counts = np.asarray(counts, dtype=np.int64)
        return self._list(self._lower(counts[0], counts[1:], self._score(counts[0], self._cap(inputs))))

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> Floats:
        """Return the scores of all matches. Known sets of the last choice on these rows are not counted again.

        A score is a minimum, and one more known set adds one term to it. So the earlier scores need not be computed
        again: each becomes the minimum of itself and the new term.
        """
        if not self.followed:
            return np.asarray(super().evaluate(engine, rows, **inputs))
        known, cap, kept = tuple(inputs.get("known", ())), self._cap(inputs), engine.cache_of(rows)
        last: _LastChoice | None = kept.get(_LastChoice)
        if last is not None and (last.query, last.cap) != (self, cap):
            last = None
        sets: Sets = {} if last is None else last.sets
        if last is None or known[: len(last.known)] != last.known:
            counts = engine.sum(rows, Counting(self, {"known": known, "sets": sets}))
            scores = self._lower(counts[0], counts[1:], self._score(counts[0], cap))
            last = _LastChoice(self, cap, known, counts[0].copy(), scores, sets)
        elif len(known) > len(last.known):
            more = known[len(last.known) :]
            counts = engine.sum(rows, Counting(self, {"known": more, "everyone": False, "sets": sets}))
            scores = self._lower(last.everyone, counts, last.scores.copy())
            last = _LastChoice(self, cap, known, last.everyone, scores, sets)
        kept[_LastChoice] = last  # only the last choice is kept
        return self._list(last.scores)

    def _list(self, scores: Floats) -> Floats:
        """Return the scores of allowed matches. If all are allowed, these are the given scores, made read-only."""
        if isinstance(self._allowed, range):
            scores.flags.writeable = False
            return scores.reshape(-1)
        return np.asarray(scores.reshape(-1)[self._allowed])

    @property
    def _most(self) -> float:
        return math.inf if self.most is None else float(self.most)

    def _cap(self, inputs: Mapping[str, Any]) -> float:
        """Return the number of rows beyond which a match gains nothing: the smaller of planned and given caps."""
        caps = [math.inf if self.cap is None else float(self.cap)]
        if self.given_cap and "cap" in inputs:
            caps.append(float(inputs["cap"]))
        return min(caps)

    def _score(self, counts: NDArray[Any], cap: float) -> Floats:
        from dpframework.redescriptions.kernels.match_kernels import match_scores

        known = [side.known() for side in self._sides]
        scores = np.zeros((2, *map(len, known)))
        match_scores(counts, *known, float(self.target), cap, self._most, scores)
        return scores

    def _lower(self, counts: NDArray[Any], within: NDArray[Any], scores: Floats) -> Floats:
        from dpframework.redescriptions.kernels.match_kernels import lower_scores

        known = [side.known() for side in self._sides]
        for one in within:
            lower_scores(counts, one, *known, float(self.target), float(DISTINCT), scores)
        return scores


_KNOWN = np.array([1])  # the position, in `_two_tests`, of the set of rows where the attribute of the test is known


def _two_tests(both: int, one: int, neither: int) -> NDArray[np.int64]:
    """Return the numbers of rows that a left and a right set have in common, shape (left sets, right sets).

    Each side has three sets: the rows of a test, the rows where its attribute is known, and all rows.
    """
    rows = both + one + neither
    return np.array([[both, both + one, both + one], [both, rows, rows], [both, rows, rows]])


@final
@attrs.frozen(eq=False)
class _LastChoice:
    """The known sets and the counts of the last choice on some rows (private).

    Attributes
    ----------
    query
        The query that was evaluated.
    cap
        The number of rows beyond which a match gained nothing.
    known
        The descriptions of the known sets of rows.
    everyone
        The number of rows that each left set and each right set have in common.
    scores
        The scores of all matches, also of those that are not allowed.
    sets
        The sets of rows as bits, for as many blocks as there is room for.
    """

    query: MatchScores
    cap: float
    known: tuple[Description, ...]
    everyone: NDArray[np.int64]
    scores: Floats
    sets: Sets
