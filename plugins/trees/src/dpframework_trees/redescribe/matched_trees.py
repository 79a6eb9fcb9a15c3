"""Redescriptions from matches of two tests: a forest of pairs of trees, or matches read together (`joint_matches`).

A match is a pair of tests, one of each view, that hold for nearly the same rows or for nearly opposite rows. In a
forest, each node of a pair of trees is a match. The trees have one or two levels. At a root a match is selected by
`dpframework.redescriptions.MatchScores`. It must differ from the matches at earlier roots. The rows for which both
sides hold are one part, and the rows for which neither side holds are another. All other rows drop out. In each part
one more match is selected, in parallel. The tests of a view make a tree of that view. One table of the leaves of both
trees gives the counts of all unions of leaves.

Claim: pure epsilon under either relation, and zCDP, without assumptions. The scores of a selection have spread 1 on any
table: from one neighbour to the other, the changes of two scores differ by at most 1 (see
`dpframework.redescriptions`). The inputs of a selection come from releases. A row is in one part, and in one cell of
the table. There is no walk, and no test to start from.

If the number of rows is secret and decides how the budget is used, a fiftieth of the budget releases it first. The
released number chooses one branch of the plan, and the number of rows beyond which a match gains nothing. Each branch
costs the rest of the budget.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import (
    Attribute,
    Boolean,
    Cases,
    InputError,
    Schema,
    View,
    between_0_and_1,
    list_of_names,
    positive,
    share_of_budget,
    whole_number,
)
from dpframework.mechanisms import DiscreteLaplace, Exponential
from dpframework.plan import FromRelease, Node, PlannedPart, either, parallel, sequential, step
from dpframework.redescriptions import (
    CAP,
    DESIGNS,
    CellTable,
    Match,
    MatchScores,
    Redescription,
    Redescriptions,
    ReportConditions,
    cap_of,
    distinct,
    nothing_above,
    rows_meant,
)
from dpframework.results import ErrorBound, bound_of_supports
from dpframework.run import Example, Miner, PrivateTable, left_by_row_count, plan_row_count, release_row_count
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.queries import JointLeaves
from dpframework_trees.redescribe.budget_arrangement import CHOICES, MOST, Arrangement
from dpframework_trees.redescribe.joint_matches import TOGETHER, known_sets, mine_matches, plan_matches
from dpframework_trees.redescribe.view_tests import candidates_of_sides, sides_of
from dpframework_trees.redescription_extraction import LeafUnions
from dpframework_trees.splits import Candidates

SLACK = Fraction(8, 100)  # a reported Jaccard index, minus one standard deviation, exceeds the target at least by this


def _valid_matches(_: object, attribute: object, number: int) -> None:
    """Refuse a number of matches for which there is no design of overlapping tables."""
    if number not in (0, *DESIGNS) and (number < 0 or number % MOST or number > 10 * MOST):
        raise InputError(
            f"matches is {number}; give 0, {', '.join(map(str, DESIGNS))}, or a multiple of {MOST} up to {10 * MOST}"
        )


@final
@attrs.frozen
class MatchedTrees(Miner):
    """Redescriptions from a forest of matched pairs of small trees, with no walk, starting test or assumption.

    Parameters
    ----------
    epsilon
        The budget. If the number of rows is secret and decides how the budget is used, a fiftieth is spent to release
        it.
    trees
        The number of pairs of trees. By default from 1 to 9, as many as the budget is enough for: each choice should be
        at most about 8 % of the rows worse than the best. If it is given and `matches` is not, there are trees only.
    matches
        The number of matches that are counted in overlapping tables of three and read together: 0, 5, 7, 9, or a
        multiple of 9 up to 90 (`dpframework_trees.redescribe.joint_matches`). By default there is only a forest if
        epsilon times the number of rows is small or there are few candidates, and else there are only matches. If it is
        given and `trees` is not, there are matches only.
    target_jaccard
        The Jaccard index that matches should exceed. A redescription is returned if its index, minus one standard
        deviation of the noise, is at least 0.08 above this. For matches that are read together, a fixed margin takes
        the place of the deviation. If nothing is found, lower `target_jaccard` to find weaker ties.
    min_support, max_support
        The least number of rows that both sides of a redescription hold for, and the largest number of rows that each
        side may hold for. By default a fiftieth and seven tenths of the rows.
    rare
        Set this to find what only few rows have. Both sides of a match should hold for fewer rows than this, and the
        score is largest at `target_jaccard` times this number. By default, `max_support` is then this number, and
        `min_support` a tenth of it. Noise must be small compared with such supports. The plan is made as if the table
        had `rare` times `target_jaccard` / 0.3 rows, and DP007 warns if noise would decide a choice. On the left view
        only tests of values and of ranges below a cut are tried. To try their opposites, swap the views.
    left, right
        Names of the attributes of each side; by default those of the schema's views. No attribute may be on both.
    """

    name = "matched-trees"
    result = Redescriptions
    epsilon: Fraction = attrs.field(converter=positive)
    trees: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number(most=100)))
    target_jaccard: Fraction = attrs.field(default=Fraction(1, 2), converter=share_of_budget, validator=between_0_and_1)
    min_support: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number(0)))
    max_support: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number()))
    left: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names, kw_only=True)
    right: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names, kw_only=True)
    matches: int | None = attrs.field(default=None, validator=attrs.validators.optional(_valid_matches), kw_only=True)
    rare: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number(2)), kw_only=True)

    def sides(self, schema: Schema) -> dict[View, tuple[Attribute, ...]]:
        """Return the attributes of each side (see `sides_of`)."""
        return sides_of(schema, self.left, self.right)

    def scores(self, schema: Schema, *, root: bool) -> MatchScores:
        """Return the query for the scores by which the match of a root, or of a node below, is selected.

        Raises
        ------
        InputError
            If the sides are refused (see `sides_of`), or no attribute of one side can be tested against one of the
            other.
        """
        sides = self.sides(schema)
        cap = cap_of(schema.row_bound) if root and schema.row_bound is not None else None
        given = root and self.counts_rows(schema)
        return MatchScores(sides[View.LEFT], sides[View.RIGHT], self.target_jaccard, cap, given, self.rare)

    def counts_rows(self, schema: Schema) -> bool:
        """Tell whether the number of rows is released first, as it is secret and decides how the budget is used."""
        return schema.rows is None and len(self.arrangements(schema)) > 1

    def arrangements(self, schema: Schema) -> tuple[Arrangement, ...]:
        """Return the arrangements that public facts leave possible.

        If there are several, the released number of rows chooses one (`arrange`).
        """
        candidates = self._candidates(schema)
        meant = rows_meant(schema) if self.rare is None else float(self.rare * self.target_jaccard / CAP)
        if self.matches is not None or self.trees is not None:
            row_budget = float(self.epsilon) * meant
            return (Arrangement.from_parameters(self.matches or 0, self.trees, row_budget, candidates),)
        if schema.rows is not None or self.rare is not None:
            return (Arrangement.of(float(self.epsilon) * meant, candidates),)
        most = math.inf if schema.max_rows is None else float(self.epsilon) * schema.max_rows
        return Arrangement.possible(most, candidates)

    def arrange(self, schema: Schema, rows: float | None = None) -> Arrangement:
        """Return the arrangement for a released number of rows, or the only possible one."""
        possible = self.arrangements(schema)
        if rows is None or len(possible) == 1:
            return possible[0]
        return Arrangement.of(float(self.epsilon) * rows, self._candidates(schema))

    def _candidates(self, schema: Schema) -> int:
        return self.scores(schema, root=False).answer_length

    def plan(self, schema: Schema) -> Node:
        """Plan matches that are read together, or trees.

        If the number of rows is released, the plan begins with it, and has a branch for each possible arrangement.
        """
        if not self.counts_rows(schema):
            return sequential(*self._steps(schema, self.arrange(schema), self.epsilon))
        rest = left_by_row_count(self.epsilon)
        branches = (
            sequential(*self._steps(schema, one, rest, uses=["rows"]), name=one.name)
            for one in self.arrangements(schema)
        )
        return sequential(plan_row_count(self.epsilon), either(*branches))

    def _threshold(self, scores: MatchScores) -> Fraction | int | None:
        """Return the noise, in rows, that would hide the largest possible score of a match."""
        return scores.cap if self.rare is None else self.rare * self.target_jaccard

    def _steps(
        self, schema: Schema, arranged: Arrangement, epsilon: Fraction, uses: Sequence[str] = ()
    ) -> Iterator[Node]:
        """Yield the matches that are read together, then a scope for each pair of trees: root, splits and table."""
        scores, forest = self.scores(schema, root=True), arranged.forest * epsilon
        if arranged.matches:
            yield plan_matches(scores, arranged, epsilon - forest, uses, self._threshold(scores))
        trees, depth = arranged.trees, arranged.depth
        of_root = attrs.evolve(scores, followed=trees > 1)
        of_half = attrs.evolve(self.scores(schema, root=False), followed=False)
        for k in range(trees):
            choice, counts = CHOICES * forest / (depth * trees), (1 - CHOICES) * forest / trees
            parts: list[Node] = [
                step("root", of_root, Exponential(choice), uses=uses, threshold=self._threshold(scores))
            ]
            if depth == 2:
                split = step("split", of_half, Exponential(choice))
                parts.append(parallel(split, by=FromRelease("root", attributes=scores.attributes)))
            leaves = JointLeaves(2**depth, 2**depth, among=scores.attributes)
            parts.append(step("leaves", leaves, DiscreteLaplace(counts), uses=["root"]))
            yield sequential(*parts, name=f"tree {k + 1}")

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the errors of supports, which are sums of cells of a table, and of the choices of matches."""
        if part.schema is None:
            return part.bounds_of_steps()
        likely, branch = self.arrangements(part.schema), ""
        if self.counts_rows(part.schema) and part.schema.about_rows is not None:
            likely = (self.arrange(part.schema, part.schema.about_rows),)
            branch = likely[0].name
        bits = [bits for one in likely for bits in (TOGETHER * bool(one.matches), one.depth)]
        cells = (2 ** max(bits) - 1) ** 2  # A side holds in at most all cells but one.
        supports = part.branch_bound(("leaves", "table"), branch, cells)
        supports = bound_of_supports(supports, cells, self.max_support)
        return [supports, *part.bounds_of_others([supports])]

    def mine(self, table: PrivateTable) -> Redescriptions:
        """Release the number of rows if that is planned, then matches or trees with their tables.

        The rest is post-processing.
        """
        schema, released = table.schema, None
        given: dict[str, int] = {}
        if self.counts_rows(schema):
            released = release_row_count(table)
            given = {"cap": cap_of(released)}
        arranged = self.arrange(schema, released)
        part = table if released is None else table.scope(arranged.name)
        found: list[Redescription] = []
        looked_at, noise, rows = 0, list[float](), list[float]()
        if arranged.matches:
            found, looked_at = mine_matches(part, arranged, self._constraints(), given, few=self.rare is not None)
            noise.append(part.calibration("table").variance)
        for trees, counts, variance in self._forest(part, arranged, given):
            noise.append(variance)
            rows.append(float(counts.sum()))
            some, number = self._read(trees, counts, variance, schema.rows)
            found += some
            looked_at += number
        about = schema.rows or released or (float(np.mean(rows)) if rows else math.inf)
        reason = "" if found else nothing_above(self.target_jaccard, min(noise), about)
        return Redescriptions(distinct(found), looked_at, min_support=self.min_support or 0.0, reason=reason)

    def _forest(
        self, table: PrivateTable, arranged: Arrangement, given: Mapping[str, int]
    ) -> Iterator[tuple[dict[View, CompleteTree], NDArray[np.int64], float]]:
        """Release pairs of trees one after another, and yield both trees, their counts, and the noise's variance."""
        roots = list[Match]()
        tests = candidates_of_sides(table.schema, self.sides(table.schema))
        for k in range(arranged.trees):
            scope = table.scope(f"tree {k + 1}")
            known = [part for match in roots for part in known_sets(match, few=self.rare is not None)]
            root = scope.release("root", known=known, **given)
            roots.append(root)
            sides = scope.partition(Cases(root.parts))[:2] if arranged.depth == 2 else []
            below = [side.release("split") for side in sides]  # Not at once, since there may be millions of scores.
            trees = _trees(tests, root, below)
            counts = np.asarray(scope.release("leaves", left=trees[View.LEFT], right=trees[View.RIGHT]))
            yield trees, counts, scope.calibration("leaves").variance

    def _constraints(self) -> ReportConditions:
        least, most = self.min_support, self.max_support
        if self.rare is not None:
            least = max(self.rare // 10, 1) if least is None else least
            most = self.rare if most is None else most
        return ReportConditions(float(self.target_jaccard + SLACK), least, most)

    def _read(
        self, trees: Mapping[View, CompleteTree], counts: NDArray[np.int64], variance: float, rows: int | None
    ) -> tuple[list[Redescription], int]:
        """Return the redescriptions that fulfil all conditions, and how many pairs of unions were looked at."""
        left, right = (LeafUnions(trees[view]) for view in (View.LEFT, View.RIGHT))
        cells = CellTable(counts[np.ix_(left.possible, right.possible)].astype(np.float64), variance, rows)
        views = [
            (unions, np.array(_unions(size))) for unions, size in zip((left, right), cells.counts.shape, strict=True)
        ]
        short = []
        for axis, (side, every) in enumerate(views):
            written = [side.description(mask) for mask in every]
            # A union that says nothing is longer than any other.
            literals = [math.inf if one is None else sum(1 for _ in one.literals()) for one in written]
            short.append(cells.shortest(every, literals, axis))
        pairs = list(dict.fromkeys(itertools.product(*short)))
        masks = [view[1][[pair[axis] for pair in pairs]] for axis, view in enumerate(views)]
        wanted, found = self._constraints(), []
        for k in cells.reported(masks[0], masks[1], wanted):
            of_left, of_right = masks[0][k], masks[1][k]
            one, other = left.description(of_left), right.description(of_right)
            if one is not None and other is not None:
                found.append(cells.redescription((one, other), of_left, of_right, wanted.min_jaccard))
        return found, len(short[0]) * len(short[1])

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples, each with witnesses that lose nearly all of the claim, or nearly all that can be lost.

        They are one pair of trees, several pairs, an arrangement chosen by a released number of rows, matches that are
        read together, and matches of few rows.
        """
        from dpframework_trees.redescribe.witnesses import (
            BY_COUNT,
            SIX,
            matched_trees,
            matched_trees_by_count,
            matched_trees_of_few_rows,
            matches_read_together,
            several_matched_trees,
        )

        rare = cls(1, trees=1, rare=3_200)

        return {
            "default": Example(MATCHED_SCHEMA, cls(1, trees=1), witnesses=matched_trees()),
            "several": Example(MATCHED_SCHEMA, cls(2, trees=2), witnesses=several_matched_trees()),
            "counted": Example(MATCHED_SCHEMA, cls("0.01"), witnesses=matched_trees_by_count(), loose=BY_COUNT),
            "joint": Example(_schema(*zip(*SIX, strict=True)), cls(2, matches=5), witnesses=matches_read_together()),
            "rare": Example(MATCHED_SCHEMA, rare, witnesses=matched_trees_of_few_rows()),
        }


def _schema(left: Sequence[str], right: Sequence[str]) -> Schema:
    """Return a schema with a Boolean attribute for each name of either view."""
    return Schema([Boolean(name, view=v) for v, names in ((View.LEFT, left), (View.RIGHT, right)) for name in names])


MATCHED_SCHEMA = _schema(("wolf", "moose", "bear", "fox"), ("rain", "wind", "snow", "fog"))


def _trees(tests: Mapping[View, Candidates], root: Match, below: list[Match]) -> dict[View, CompleteTree]:
    """Return the tree of each view. `below` has a match for the rows with both sides of the root, then with neither."""
    left = [root.left, *(match.left for match in below)]
    # The right tree's first child is where its test holds. With opposite tests, neither side of the root holds there.
    right = [root.right, *(match.right for match in (reversed(below) if root.opposite else below))]
    return {
        view: CompleteTree(tests[view], np.array([tests[view].position(test) for test in side]))
        for view, side in ((View.LEFT, left), (View.RIGHT, right))
    }


def _unions(leaves: int) -> list[NDArray[np.bool_]]:
    """Return each union of one or more leaves, but not of all leaves, as a mask of shape (leaves,)."""
    return [(number >> np.arange(leaves)) & 1 == 1 for number in range(1, 2**leaves - 1)]
