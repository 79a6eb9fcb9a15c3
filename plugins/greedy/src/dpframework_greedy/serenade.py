"""Serenade: redescriptions grown greedily (Karjalainen, Galbrun and Miettinen 2022), from the client or by the engine.

Initial pairs, a literal a side, are chosen first, and counted; then literals are joined to either side by `and` or
`or`. With `serenade-cs` the client looks at each redescription's noisy Jaccard index and extends it while that is good
enough; with `serenade-es` every round extends whichever redescription, and what has come of the pairs is counted at the
end. Names of the paper: N is `pairs`, K `extensions`, L `rounds`, sigma_min `min_support`.

Claim: pure epsilon under either relation, without assumptions. What differs from the paper, and why:

- every candidate comes from the schema: all literals, all intervals between public cuts, on either side. The published
  thresholds lie between values of the data, so a neighbour may not have them;
- sensitivities in closed form, without the number of rows (`scores`); scores are not monotonic, so their spread counts,
  which the published 2 Delta covers, but not the published key, exp(epsilon q) with log(uniform) times it: its sign
  makes the better candidate lose;
- a second factor takes weight from pairs of which a side holds nearly everywhere: at a small epsilon the best-scoring
  candidates are near-tautologies, such as a rare species' absence in any climate;
- extensions are scored by the rows by which they surpass the noisy Jaccard index of the pair that they grow from: with
  that known, the sensitivity is that of a count (`scores.Surplus`). The published score has to allow for a
  redescription of any support, and is some ten times noisier;
- an extension is kept only if its noisy counts are better than those of what it extends (`_better`);
- of each pair of attributes one initial pair is taken, so that `pairs` of them differ in more than a threshold;
- what is remembered between rounds is weights, not keys (`choices`);
- rows in both supports, in one only and in neither are disjoint: each count gets the whole of its budget;
- by default as many pairs and extensions as the budget can carry (`budgets`), and no extensions where they would take
  the pairs' budget for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.facts import (
    Boolean,
    Categorical,
    InputError,
    Numeric,
    Schema,
    View,
    from_0_to_1,
    list_of_names,
    one_of,
    positive,
    whole_number,
)
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node, repeat, sequential, step
from dpframework.results import Noisy, Redescription, Redescriptions
from dpframework.run import Example, Miner, PrivateTable
from dpframework_greedy.budgets import MOST_EXTENSIONS, MOST_PAIRS, SERIOUS, WORTH, Shares, choices_within
from dpframework_greedy.choices import SuccessiveExponential
from dpframework_greedy.language import UNEXTENDED, Language, Redescribed
from dpframework_greedy.queries import BOTH, LEFT_ONLY, RIGHT_ONLY, Cells, ExtensionScores, PairScores
from dpframework_greedy.scores import Score, Surplus, spread_of

SCORES = ("logistic", "jaccard")


def _shares(value: str | Iterable[Any] | None) -> Shares | None:
    return None if value is None else Shares.of(value)


@attrs.frozen
class _Serenade(Miner):
    """What both miners share.

    Parameters
    ----------
    epsilon
        The budget of everything.
    min_support, max_support
        Public numbers: of rows that both sides of a redescription should hold for, at least, and of rows that either
        of them holds for, at most; by default a tenth and seven tenths of the schema's `rows`, or seven times
        `min_support` where `rows` is not public.
    pairs
        The number of initial pairs; by default what the budget carries, 20 at most.
    budget
        How the budget is shared between initial pairs, extensions and qualities: "d1" to "d5", or three shares; with
        these, as many extensions are planned as are asked for. By default "d3", with no more extensions than that
        carries; if that is not one a pair, or leaves too little for the pairs, none, and pairs and qualities share all.
    score
        "logistic" (the Jaccard index weighted by support, and rows beyond a known index for extensions), or "jaccard"
        for both, whose sensitivity is hundreds of times larger.
    max_p_value
        Redescriptions with a larger p-value on their noisy counts are left out of the result (post-processing).
    left, right
        Names of the attributes of each side; by default those of the schema's views. An attribute of both is never
        used on both sides of a redescription.
    """

    epsilon: Fraction = attrs.field(converter=positive)
    min_support: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number()))
    max_support: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number()))
    pairs: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number()))
    budget: Shares | None = attrs.field(default=None, converter=_shares)
    score: str = attrs.field(default="logistic", validator=one_of(SCORES))
    max_p_value: float = attrs.field(default=1.0, validator=from_0_to_1)
    left: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names)
    right: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names)

    def language(self, schema: Schema) -> Language:
        """Return what redescriptions are made of (see `Language.of_schema`)."""
        return Language.of_schema(schema, self.left, self.right)

    def scored(self, schema: Schema) -> Score:
        """Return the score.

        Raises
        ------
        InputError
            If no minimum support is known, or one is out of range.
        """
        least, most, bound = self.min_support, self.max_support, schema.row_bound
        if bound is not None and least is not None and least > bound:
            raise InputError(f"min_support is {least}, above the schema's {bound} rows; give fewer")
        if self.score == "jaccard":
            return Score()
        if least is None:
            if schema.rows is None:
                raise InputError(
                    "min_support is needed: the number of rows, of what the table may hold, that both sides must hold "
                    "for together; a share of the secret row count would give it away"
                )
            least = max(schema.rows // 10, 1)
        if most is None:
            most = 7 * least if schema.rows is None else max(7 * schema.rows // 10, least + 1)
        if most <= least:
            raise InputError(f"max_support is {most}, not above min_support = {least}")
        return Score.lowest(least, most)

    def shared(self, schema: Schema) -> _Resolved:
        """Resolve the parameters on a schema."""
        return _Resolved.of(self, schema)

    @property
    def asked(self) -> int | None:
        """The number of extensions asked for: a pair's, or that of all rounds."""
        raise NotImplementedError

    def times(self, pairs: int) -> int:
        """Return for how many a number of extensions is asked for."""
        raise NotImplementedError

    def finished(self, found: list[Redescription], candidates: int) -> Redescriptions:
        """Return the result, without what its p-value excludes."""
        kept = [one for one in found if one.p_value is None or one.p_value <= self.max_p_value]
        return Redescriptions(kept, max(candidates, 1) if kept else candidates)


@final
@attrs.frozen(eq=False)
class _Resolved:
    """A miner's parameters, resolved on a schema.

    Attributes
    ----------
    language
        What is searched.
    score, grown
        What pairs are chosen by, and their extensions.
    pairs, choices
        The number of initial pairs, and of all choices of an extension.
    shares
        Of the budget.
    """

    language: Language
    score: Score
    grown: Score | Surplus
    pairs: int
    choices: int
    shares: Shares

    @classmethod
    def of(cls, miner: _Serenade, schema: Schema) -> _Resolved:
        """Resolve, refusing what cannot be mined."""
        language, score = miner.language(schema), miner.scored(schema)
        grown = score if score.max_support is None else Surplus(score.max_support)
        shares, most = miner.budget or Shares.of("d3"), len(language.pairs)
        public = schema.rows is not None
        carried = choices_within(
            SERIOUS, shares.pairs * miner.epsilon, spread_of(score, rows_public=public), language.number_of_pairs
        )
        pairs = miner.pairs
        if pairs is None:
            pairs = min(max(carried, 1), MOST_PAIRS, most)
        elif pairs > most:
            raise InputError(f"pairs is {pairs}, but the two views have {most} pairs of attributes, one for each")
        times = miner.times(pairs)
        asked = MOST_EXTENSIONS * pairs if miner.asked is None else miner.asked * times
        choices = asked if shares.extensions else 0
        if miner.asked is not None and not shares.extensions:
            raise InputError("budget gives extensions nothing; leave their number out, or give them a share")
        if shares.extensions and (miner.budget is None or miner.asked is None):
            candidates = language.number_of_extensions * (1 if times > 1 else pairs)
            spread = spread_of(grown, rows_public=public)
            choices = choices_within(_worth(score), shares.extensions * miner.epsilon, spread, candidates)
            choices = min(choices, asked) // times * times
            if choices < min(pairs, asked) or (miner.budget is None and pairs > carried):
                choices, shares = 0, shares.without_extensions()
        return cls(language, score, grown, pairs, choices, shares)

    def pairs_step(self, epsilon: Fraction) -> Node:
        """Plan the choice of the initial pairs."""
        scores = PairScores(self.language, self.score)
        mechanism = SuccessiveExponential(self.shares.pairs * epsilon, self.pairs, within=SERIOUS)
        return step("pairs", scores, mechanism, threshold=SERIOUS)

    def extended_by(self, epsilon: Fraction, rounds: int, most: int, **parameters: Any) -> tuple[Any, Any, Fraction]:
        """Plan choices of an extension: query, mechanism and threshold of a step."""
        turns, worth = math.ceil(rounds / most), _worth(self.score)
        scores = ExtensionScores(self.language, self.grown, most, turns)
        return scores, SuccessiveExponential(epsilon, rounds, within=worth, **parameters), worth

    def initial(self, table: PrivateTable) -> list[Redescribed]:
        """Release the initial pairs."""
        return [self.language.pair(int(pair), int(position)) for pair, position in table.release("pairs")]


def _worth(score: Score) -> Fraction:
    """Return how far from the best an extension may be to be worth its budget: `WORTH`, in units of its score.

    A surplus is in rows: of those in either support of a redescription half-way between the bounds on supports.
    """
    if score.min_support is None or score.max_support is None:
        return WORTH
    return WORTH * (score.min_support + score.max_support) / 2


def _measured(table: PrivateTable, step: str, redescribed: Redescribed) -> Redescription:
    """Release the cells of a redescription."""
    cells = table.release(step, redescribed=redescribed)
    scale = float(table.calibration(step).scale)
    noisy = [Noisy.laplace(int(cell), scale) for cell in cells]
    left, right = redescribed.descriptions
    return Redescription(
        left,
        right,
        both=noisy[BOTH],
        left_only=noisy[LEFT_ONLY],
        right_only=noisy[RIGHT_ONLY],
        rows=table.schema.rows if table.schema.rows is not None else sum(noisy[1:], noisy[0]),
    )


def _averaged(one: Redescription, again: Redescription) -> Redescription:
    """Return a redescription that was counted twice, with equal noise."""

    def mean(first: Noisy | None, second: Noisy | None) -> Noisy:
        assert first is not None  # all counts of `_measured` are known
        assert second is not None
        return Noisy((first.value + second.value) / 2, (first.variance + second.variance) / 4)

    return attrs.evolve(
        one,
        both=mean(one.both, again.both),
        left_only=mean(one.left_only, again.left_only),
        right_only=mean(one.right_only, again.right_only),
        apart=mean(one.apart, again.apart),
        rows=mean(one.rows, again.rows),
    )


def _better(one: Redescription, than: Redescription, score: Score) -> bool:
    """Tell whether noisy counts speak for an extension: a higher Jaccard index, and supports within their bounds."""
    least, most = score.min_support, score.max_support
    supported = least is None or one.both.value >= min(least, than.both.value)
    bounded = most is None or (one.both + one.apart).value <= max(most, (than.both + than.apart).value)
    return one.jaccard > than.jaccard and supported and bounded


@final
@attrs.frozen
class SerenadeCS(_Serenade):
    """Redescriptions grown one at a time, each as long as its noisy Jaccard index is good (Serenade, client side).

    Parameters
    ----------
    extensions
        How often each pair is extended at most; 4 at most by default (see `budget`).
    min_jaccard
        The noisy Jaccard index below which a redescription is not extended, nor returned.

    Examples
    --------
    >>> SerenadeCS(epsilon=1, min_support=500).min_jaccard
    0.3
    """

    name = "serenade-cs"
    extensions: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(whole_number()), kw_only=True
    )
    min_jaccard: float = attrs.field(default=0.3, validator=from_0_to_1, kw_only=True)

    @property
    def asked(self) -> int | None:
        """The extensions of each pair."""
        return self.extensions

    def times(self, pairs: int) -> int:
        """Return the number of pairs."""
        return pairs

    def plan(self, schema: Schema) -> Node:
        """Plan the pairs, every extension that may come, and a quality for each of both."""
        shared = self.shared(schema)
        parts = [shared.pairs_step(self.epsilon)]
        if shared.choices:
            epsilon = shared.shares.extensions * self.epsilon / shared.choices
            scores, mechanism, worth = shared.extended_by(epsilon, rounds=1, most=1)
            each = step("extension", scores, mechanism, uses=["pairs", "quality"], threshold=worth)
            parts.append(repeat(shared.choices, each))
        qualities = shared.pairs + shared.choices
        counts = DiscreteLaplace(shared.shares.quality * self.epsilon / qualities)
        parts.append(repeat(qualities, step("quality", Cells(), counts, uses=["pairs"])))
        return sequential(*parts)

    def mine(self, table: PrivateTable) -> Redescriptions:
        """Release the pairs; measure and extend each while it is good."""
        shared = self.shared(table.schema)
        found, measured = [], 0
        for redescribed in shared.initial(table):
            quality = _measured(table, "quality", redescribed)
            measured += 1
            if quality.jaccard <= self.min_jaccard:
                continue
            for _ in range(shared.choices // shared.pairs):
                ((_, position),) = table.release("extension", pool=((redescribed, quality.jaccard),))
                if position == UNEXTENDED:
                    continue
                extended = shared.language.extended(redescribed, int(position))
                other = _measured(table, "quality", extended)
                measured += 1
                if _better(other, quality, shared.score):
                    redescribed, quality = extended, other
            found.append(quality)
        return self.finished(found, measured)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return both scores, and views that share an attribute."""
        asked: dict[str, Any] = {"pairs": 1, "extensions": 1, "budget": "d3"}
        few = {**asked, "min_support": 3, "max_support": 12}
        return {
            "default": Example(_SCHEMA, cls(2, **few)),
            "jaccard": Example(_SCHEMA, cls(2, score="jaccard", **asked)),
            "shared": Example(_SCHEMA, cls(2, **few, left=["wolf", "rain"], right=["rain", "zone"])),
        }


@final
@attrs.frozen
class SerenadeES(_Serenade):
    """Redescriptions grown together, each round extending whichever is best (Serenade, engine side).

    Parameters
    ----------
    rounds
        How many extensions are chosen in all, at most; by default 4 a pair (see `budget`). One redescription takes no
        more of them than its share, rounded up.
    max_age
        For how many rounds the weight of a redescription's extensions is remembered; it saves time and changes nothing.

    Examples
    --------
    >>> SerenadeES(epsilon=1, min_support=500).max_age
    40
    """

    name = "serenade-es"
    rounds: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number()), kw_only=True)
    max_age: int = attrs.field(default=40, validator=whole_number(0), kw_only=True)

    @property
    def asked(self) -> int | None:
        """The rounds."""
        return self.rounds

    def times(self, pairs: int) -> int:
        """Return 1: rounds are those of all pairs."""
        return 1

    def plan(self, schema: Schema) -> Node:
        """Plan the pairs, all rounds of extensions in one step, and a quality for each redescription."""
        shared = self.shared(schema)
        parts = [shared.pairs_step(self.epsilon)]
        quality = shared.shares.quality * self.epsilon / shared.pairs
        if shared.choices:
            quality /= 2
            counts = step("parent", Cells(), DiscreteLaplace(quality), uses=["pairs"])
            parts.append(repeat(shared.pairs, counts))
            epsilon = shared.shares.extensions * self.epsilon
            scores, mechanism, worth = shared.extended_by(epsilon, shared.choices, shared.pairs, max_age=self.max_age)
            parts.append(step("extensions", scores, mechanism, uses=["pairs", "parent"], threshold=worth))
        uses = ["pairs", "extensions"] if shared.choices else ["pairs"]
        parts.append(repeat(shared.pairs, step("quality", Cells(), DiscreteLaplace(quality), uses=uses)))
        return sequential(*parts)

    def mine(self, table: PrivateTable) -> Redescriptions:
        """Release the pairs and their extensions, then measure what they have become."""
        shared = self.shared(table.schema)
        pairs = shared.initial(table)
        if not shared.choices:
            return self.finished([_measured(table, "quality", pair) for pair in pairs], len(pairs))
        parents = [_measured(table, "parent", pair) for pair in pairs]
        grown = list(pairs)
        given = tuple((pair, parent.jaccard) for pair, parent in zip(pairs, parents, strict=True))
        for number, position in table.release("extensions", pool=given):
            grown[number] = shared.language.extended(grown[number], int(position))
        found = []
        for pair, parent, one in zip(pairs, parents, grown, strict=True):
            quality = _measured(table, "quality", one)
            if one == pair:
                found.append(_averaged(parent, quality))
            else:
                found.append(quality if _better(quality, parent, shared.score) else parent)
        return self.finished(found, len(pairs) + sum(one != pair for one, pair in zip(grown, pairs, strict=True)))

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return both scores, views that share an attribute, and budgets for the pairs or the extensions alone."""
        asked: dict[str, Any] = {"rounds": 2, "budget": "d3"}
        few = {**asked, "pairs": 2, "min_support": 3, "max_support": 12}
        return {
            "default": Example(_SCHEMA, cls(2, **few)),
            "jaccard": Example(_SCHEMA, cls(2, score="jaccard", pairs=1, **asked)),
            "shared": Example(_SCHEMA, cls(2, **few, left=["wolf", "rain"], right=["rain", "zone"])),
            "pairs": Example(_SCHEMA, cls(2, pairs=2, min_support=4, budget=[0.6, 0, 0.4])),
            "extensions": Example(_SCHEMA, cls(2, **{**few, "pairs": 1, "budget": [0.05, 0.9, 0.05]})),
        }


_SCHEMA = Schema(
    [
        Boolean("wolf", view=View.LEFT),
        Numeric("height", 0, 9, cuts=[3, 6], view=View.LEFT, missing=True),
        Numeric("rain", 0, 8, cuts=[4], view=View.RIGHT),
        Categorical("zone", ["north", "middle", "south"], view=View.RIGHT),
    ]
)
