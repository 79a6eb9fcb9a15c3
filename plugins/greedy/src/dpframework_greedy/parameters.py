"""The parameters of both Serenade miners, and their values on a schema."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.facts import (
    MOST_ROWS,
    InputError,
    Schema,
    between_0_and_1,
    from_0_to_1,
    list_of_names,
    one_of,
    positive,
    share_of_budget,
    whole_number,
)
from dpframework.mechanisms import DiscreteLaplace, Exponential
from dpframework.plan import Node, PlannedPart, repeat, sequential, step
from dpframework.queries import Count
from dpframework.redescriptions import (
    Match,
    MatchScores,
    Redescription,
    Redescriptions,
    ReportConditions,
    cap_of,
    choices_carried,
    nothing_above,
    rows_meant,
)
from dpframework.results import ErrorBound, bound_of_supports
from dpframework.run import Miner, PrivateTable
from dpframework_greedy.budgets import (
    MOST_EXTENSIONS,
    MOST_PAIRS,
    USEFUL_GAP,
    BudgetShares,
    choices_within,
    number_of_pairs,
)
from dpframework_greedy.language import JoinedPart, Language, Redescribed
from dpframework_greedy.literal_pairs import as_literal
from dpframework_greedy.noisy_row_scores import AnyScore, OpenSurplus, RelativeScore, Supports, supports_of, worth_of
from dpframework_greedy.pair_plan import PairPlan
from dpframework_greedy.queries import ExtensionScores, PairScores
from dpframework_greedy.scores import Score, spread_of
from dpframework_greedy.successive_choices import SuccessiveExponential
from dpframework_greedy.surplus_score import Surplus

SCORES = ("rows", "logistic", "jaccard")
BY_ROWS = BudgetShares(Fraction(3, 5), Fraction(0), Fraction(2, 5))  # the default where pairs are counted together
FAR = Fraction(10**9)  # a distance from the best score that allows any choice: for scores whose scale is not yet known
SLACK = Fraction(8, 100)  # added to `target_jaccard` where pairs are counted together (see `ReportConditions`)


def _shares(value: str | Iterable[Any] | None) -> BudgetShares | None:
    return None if value is None else BudgetShares.of(value)


@attrs.frozen
class Serenade(Miner):
    """The parameters and steps that both Serenade miners have in common.

    Parameters
    ----------
    epsilon
        The budget of the whole run, as a pure epsilon.
    min_support, max_support
        Public numbers of rows. The number of rows for which both sides of a redescription hold should be at least
        `min_support`, and the number for which at least one side holds should be at most `max_support`. Where pairs are
        counted together (see `score`), the defaults are a fiftieth of the rows and, for each side alone, seven tenths.
        Otherwise they are a tenth and seven tenths of the schema's `rows`. If `rows` is not public, `min_support` has
        no default, and the default of `max_support` is seven times `min_support`. Redescriptions beyond these bounds by
        more than the noise are not returned.
    pairs
        The number of initial pairs, by default as many as the budget pays for, at most 20. Where pairs are counted
        together, a private number of rows is first released for a fiftieth of the budget, and decides on the pairs.
    budget
        How the budget is shared between initial pairs, extensions and qualities (the counts of redescriptions): "d1" to
        "d5", or three shares. By default it is .6, 0 and .4 if pairs are scored in rows and you ask for no
        extensions, and otherwise "d3". If you give a budget, all extensions that you ask for are planned. By default,
        only as many are planned as their share can pay for, and none if it cannot pay for one per pair.
    score
        "rows": pairs are scored by the rows by which they surpass `target_jaccard`, and each differs from those before
        it. Unless you ask for extensions, or give them a share of the budget, three pairs are counted at a time, with
        their conjunctions and disjunctions. "logistic": pairs are scored as published, by the Jaccard index weighted by
        support. "jaccard": pairs are scored by the index itself, whose sensitivity is hundreds of times larger.
    target_jaccard
        The Jaccard index to surpass, where pairs are scored in rows. Lower it if nothing is found. Where pairs are
        counted together, the noisy index minus one standard deviation has to be at least 0.08 above this.
    max_p_value
        Redescriptions with a larger p-value on their noisy counts are left out of the result (post-processing).
    left, right
        Names of the attributes of each side; by default those of the schema's views. An attribute in both is never used
        on both sides of one redescription.
    count_share
        The share of the budget for a noisy number of rows. Give it with the score "logistic" if the number of rows is
        private and you give no supports: the supports are then a tenth and seven tenths of the noisy number. In that
        case nobody knows beforehand how many choices the rest of the budget pays for. So the defaults are those of the
        paper: 20 pairs with four extensions each, or without extensions if the budget gives them nothing.
    """

    epsilon: Fraction = attrs.field(converter=positive)
    min_support: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number(1, MOST_ROWS)))
    max_support: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number(1, MOST_ROWS)))
    pairs: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number()))
    budget: BudgetShares | None = attrs.field(default=None, converter=_shares)
    score: str = attrs.field(default="rows", validator=one_of(SCORES))
    max_p_value: float = attrs.field(default=1.0, validator=from_0_to_1)
    left: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names)
    right: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names)
    target_jaccard: Fraction = attrs.field(
        default=Fraction(1, 2), converter=share_of_budget, validator=between_0_and_1, kw_only=True
    )
    count_share: Fraction | None = attrs.field(
        default=None,
        converter=attrs.converters.optional(share_of_budget),
        validator=attrs.validators.optional(between_0_and_1),
        kw_only=True,
    )

    def __attrs_post_init__(self) -> None:
        """Refuse a noisy number of rows that no supports would follow from."""
        if self.count_share is not None and self.score != "logistic":
            raise InputError(f"count_share is given, but score = '{self.score}' needs no number of rows; leave it out")
        if self.count_share is not None and (self.min_support, self.max_support) != (None, None):
            raise InputError("count_share is given with min_support or max_support, which follow from it; give one")

    @property
    def counts_together(self) -> bool:
        """Whether pairs are scored in rows and counted three at a time, as they are by default (see `score`)."""
        return self.score == "rows" and self.wanted_extensions is None and not (self.budget and self.budget.extensions)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return no attribute, since only codes are read."""
        return ()

    def language(self, schema: Schema) -> Language:
        """Return the language of redescriptions (see `Language.of_schema`)."""
        return Language.of_schema(schema, self.left, self.right)

    def scored(self, schema: Schema) -> Score:
        """Return the score of initial pairs.

        Raises
        ------
        InputError
            If the score needs a minimum support and none is known, or a bound on the support is out of range.
        """
        self.check_supports(schema)
        least, most = self.min_support, self.max_support
        if self.score == "jaccard":
            return Score()
        if least is None:
            if schema.rows is None:
                raise InputError(
                    "min_support is needed, since a share of the private number of rows would give that number away; "
                    "say how many rows both sides must hold for together"
                )
            least = max(schema.rows // 10, 1)
        if most is None:
            most = 7 * least if schema.rows is None else max(7 * schema.rows // 10, least + 1)
        if most <= least:
            raise InputError(f"max_support is {most}, not above min_support = {least}")
        return Score.lowest(least, most)

    def resolve(self, schema: Schema) -> _SerenadeOnSchema:
        """Resolve the parameters on a schema."""
        return _SerenadeOnSchema.of(self, schema)

    @property
    def wanted_extensions(self) -> int | None:
        """The number of extensions that you ask for, per pair or in all rounds together; None if you ask for none."""
        raise NotImplementedError

    def extension_sets(self, pairs: int) -> int:
        """Return how many pairs have extensions of their own: all, or 1 if all pairs share `wanted_extensions`."""
        raise NotImplementedError

    def matches(self, schema: Schema) -> MatchScores:
        """Return the query for pairs that are scored in rows."""
        language, rows = self.language(schema), schema.row_bound
        cap = None if rows is None else cap_of(rows)
        return MatchScores(language.left, language.right, self.target_jaccard, cap)

    def pair_plan(self, schema: Schema) -> PairPlan:
        """Return the plan for pairs that are counted together."""
        self.check_supports(schema)
        return PairPlan(schema, self.matches(schema), self.epsilon, self.budget or BY_ROWS, self.pairs)

    def mine_together(self, table: PrivateTable, min_jaccard: float = 0) -> Redescriptions:
        """Choose and count the pairs that are counted together."""
        least = max(float(self.target_jaccard + SLACK), min_jaccard)
        wanted = ReportConditions(least, self.min_support, self.max_support)
        return self.finish(*self.pair_plan(table.schema).mine(table, wanted))

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bounds of supports, which are sums of cells of a table of pairs, and of all choices."""
        if part.schema is None:
            return part.bounds_of_steps()
        if self.counts_together:
            branch, cells = self.pair_plan(part.schema).likely
            bound = part.branch_bound(["table"], branch, cells)
        else:
            bound, cells = part.sum_bound("", ["quality", "parent"], 1), 1
        supports = bound_of_supports(bound, cells, self.max_support)
        return [supports, *part.bounds_of_others([supports])]

    def check_supports(self, schema: Schema) -> None:
        """Refuse bounds on the support that contradict each other or the schema.

        Raises
        ------
        InputError
            If a bound is out of range.
        """
        least, most, bound = self.min_support, self.max_support, schema.row_bound
        if bound is not None and least is not None and least > bound:
            raise InputError(f"min_support is {least}, above the schema's {bound} rows; give fewer")
        if least is not None and most is not None and most <= least:
            raise InputError(f"max_support is {most}, not above min_support = {least}")

    def settle(self, table: PrivateTable) -> tuple[Serenade, _SerenadeOnSchema]:
        """Release the number of rows, if it is counted. Return the miner with its supports, and its resolved form."""
        resolved = self.resolve(table.schema)
        if self.count_share is None:
            return self, resolved
        supports = supports_of(float(table.release("rows")))
        score, given = Score.lowest(*supports), {"supports": supports}
        known = attrs.evolve(self, count_share=None, min_support=supports[0], max_support=supports[1])
        return known, attrs.evolve(resolved, score=score, given=given)

    def finish(
        self, found: list[Redescription], candidates: int, variance: float = 0.0, rows: float = math.inf
    ) -> Redescriptions:
        """Return the result, without large p-values and without supports beyond their bounds by more than the noise.

        Parameters
        ----------
        found
            The redescriptions that were found.
        candidates
            The number of redescriptions among which those found were chosen.
        variance, rows
            The variance of a count's noise, and the number of rows. The result names them if nothing is found.
        """
        kept = [one for one in found if one.p_value is None or one.p_value <= self.max_p_value]
        kept = [one for one in kept if self._within(one)]
        return Redescriptions(
            kept,
            max(candidates, 1) if kept else candidates,
            min_support=self.min_support or 0.0,
            reason="" if kept or not self.counts_together else nothing_above(self.target_jaccard, variance, rows),
        )

    def _within(self, one: Redescription) -> bool:
        """Tell whether the exact supports may lie within their bounds."""
        if self.min_support is not None and one.both.interval()[1] < self.min_support:
            return False
        return self.max_support is None or (one.both + one.apart).interval()[0] <= self.max_support


@final
@attrs.frozen(eq=False)
class _SerenadeOnSchema:
    """A miner's parameters, resolved on a schema.

    Attributes
    ----------
    language
        The language that is searched.
    score, extension_score
        The scores of pairs and of their extensions.
    matches
        The candidates for pairs that are scored in rows, else None.
    pairs, choices
        The number of initial pairs, and the number of choices of an extension for all pairs together.
    shares
        The shares of `epsilon`.
    epsilon
        The budget of the run without the part for the number of rows.
    count_epsilon
        The epsilon of the release of the number of rows, 0 if there is none.
    given
        The inputs that the scores of a step get at run time.
    """

    language: Language
    score: AnyScore
    extension_score: AnyScore
    matches: MatchScores | None
    pairs: int
    choices: int
    shares: BudgetShares
    epsilon: Fraction
    count_epsilon: Fraction = Fraction(0)
    given: Mapping[str, Supports] = attrs.field(factory=dict)

    @classmethod
    def of(cls, miner: Serenade, schema: Schema) -> _SerenadeOnSchema:
        """Resolve the parameters, and refuse those that cannot be mined with."""
        public = schema.rows is not None
        if miner.count_share is not None and public:
            raise InputError(f"count_share is given, but the schema knows its {schema.rows} rows; leave it out")
        language, shares = miner.language(schema), miner.budget or BudgetShares.of("d3")
        if miner.count_share is not None:
            pairs = number_of_pairs(miner.pairs, MOST_PAIRS, len(language.pairs))
            choices, counted = _requested_choices(miner, shares, pairs), miner.count_share * miner.epsilon
            scores = RelativeScore(), OpenSurplus()
            return cls(language, *scores, None, pairs, choices, shares, miner.epsilon - counted, counted)
        score = miner.scored(schema)
        extension_score = score if score.max_support is None else Surplus(score.max_support)
        matches = miner.matches(schema) if miner.score == "rows" else None
        if matches is None:
            carried = choices_within(
                USEFUL_GAP, shares.pairs * miner.epsilon, spread_of(score, rows_public=public), language.number_of_pairs
            )
        else:
            budget = float(shares.pairs * miner.epsilon) * rows_meant(schema)
            carried = choices_carried(budget, matches.answer_length, MOST_PAIRS)
        pairs = number_of_pairs(miner.pairs, carried, len(language.pairs))
        choices = most = _requested_choices(miner, shares, pairs)
        if shares.extensions and (miner.budget is None or miner.wanted_extensions is None):
            sets = miner.extension_sets(pairs)
            candidates = language.number_of_extensions * (1 if sets > 1 else pairs)
            spread = spread_of(extension_score, rows_public=public)
            carried_choices = choices_within(worth_of(score), shares.extensions * miner.epsilon, spread, candidates)
            choices = min(carried_choices, most) // sets * sets
            if choices < min(pairs, most) or (miner.budget is None and pairs > carried):
                choices, shares = 0, shares.without_extensions()
        return cls(language, score, extension_score, matches, pairs, choices, shares, miner.epsilon)

    @property
    def bounds(self) -> Score:
        """The score of pairs. Its bounds on the support are known once the miner has settled them."""
        assert isinstance(self.score, Score)
        return self.score

    def planned(self, parts: Iterable[Node]) -> Node:
        """Plan the release of the number of rows, if there is one, and then the parts."""
        counted = [step("rows", Count(), DiscreteLaplace(self.count_epsilon))] if self.count_epsilon else []
        return sequential(*counted, *parts)

    def pairs_step(self) -> Node:
        """Plan the choice of the initial pairs."""
        epsilon = self.shares.pairs * self.epsilon
        if self.matches is not None:
            each = Exponential(epsilon / self.pairs)
            return repeat(self.pairs, step("pairs", self.matches, each, threshold=self.matches.cap))
        scores = PairScores(self.language, self.score)
        if self.count_epsilon:
            return step("pairs", scores, SuccessiveExponential(epsilon, self.pairs, within=FAR), uses=["rows"])
        mechanism = SuccessiveExponential(epsilon, self.pairs, within=USEFUL_GAP)
        return step("pairs", scores, mechanism, threshold=USEFUL_GAP)

    def extension_step(
        self, name: str, epsilon: Fraction, rounds: int, most: int, *, uses: Iterable[str], **parameters: Any
    ) -> Node:
        """Plan `rounds` choices of an extension, among the extensions of at most `most` redescriptions."""
        turns, worth = math.ceil(rounds / most), None if self.count_epsilon else worth_of(self.score)
        scores = ExtensionScores(self.language, self.extension_score, most, turns)
        mechanism = SuccessiveExponential(epsilon, rounds, within=worth or FAR, **parameters)
        uses = [*(["rows"] if self.count_epsilon else []), *uses]
        return step(name, scores, mechanism, uses=uses, threshold=worth)

    def initial(self, table: PrivateTable) -> list[Redescribed]:
        """Release the initial pairs."""
        if self.matches is not None:
            chosen: list[Match] = []
            for _ in range(self.pairs):
                chosen.append(table.release("pairs", known=[part for match in chosen for part in match.parts]))
            sides = ([as_literal(side, table.schema) for side in match.sides] for match in chosen)
            return [Redescribed((JoinedPart(left, False),), (JoinedPart(right, False),)) for left, right in sides]
        found = table.release("pairs", **self.given)
        return [self.language.pair(int(pair), int(position)) for pair, position in found]


def _requested_choices(miner: Serenade, shares: BudgetShares, pairs: int) -> int:
    """Return how many choices of an extension you ask for in all; by default 4 per pair, as published."""
    if (number := miner.wanted_extensions) is not None and not shares.extensions:
        raise InputError("budget gives nothing to extensions; leave their number out, or give extensions a share")
    requested = MOST_EXTENSIONS * pairs if number is None else number * miner.extension_sets(pairs)
    return requested if shares.extensions else 0
