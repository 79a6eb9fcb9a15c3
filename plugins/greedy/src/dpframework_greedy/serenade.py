"""Serenade: redescriptions grown greedily (Karjalainen, Galbrun and Miettinen 2022), from the client or by the engine.

Initial pairs, a literal a side, are chosen first; then literals are joined to either side by `and` or `or`. With
`serenade-cs` the client looks at each pair's noisy Jaccard index and extends the pair while that is good enough; with
`serenade-es` every round extends whichever redescription, and qualities are counted at the end only. Names of the
paper: N is `pairs`, K `extensions`, L `rounds`, sigma_min `min_support`.

Claim: pure epsilon under either relation, without assumptions. What differs from the paper, and why:

- every candidate comes from the schema: all literals, all intervals between public cuts, on either side. The published
  thresholds lie between values of the data, so a neighbour may not have them;
- sensitivities in closed form, without the number of rows (`scores`); scores are not one-sided, so their spread counts,
  which the published 2 Delta covers, but not the published key, exp(epsilon q) with log(uniform) times it: its sign
  makes the better candidate lose;
- a second factor takes weight from pairs of which a side holds nearly everywhere: at a small epsilon the best-scoring
  candidates are near-tautologies, such as a rare species' absence in any climate;
- of each pair of attributes one initial pair is taken, so that `pairs` of them differ in more than a threshold;
- what is remembered between rounds is weights, not keys (`choices`);
- rows in both supports, in one only and in neither are disjoint: each count gets the whole of its budget;
- by default as many pairs and extensions as the budget can carry (`budgets`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.errors import InputError, nearest
from dpframework.mechanisms import DiscreteLaplace
from dpframework.miner import Example, Miner
from dpframework.patterns import Noisy, Redescription, Redescriptions
from dpframework.plan import Node, repeat, sequential, step
from dpframework.privacy import positive
from dpframework.private_table import PrivateTable
from dpframework.schema import Boolean, Categorical, Numeric, Schema, View
from dpframework_greedy.budgets import MOST_EXTENSIONS, MOST_PAIRS, SERIOUS, WORTH, Shares, choices_within
from dpframework_greedy.choices import SuccessiveExponential
from dpframework_greedy.language import Language, Redescribed
from dpframework_greedy.queries import BOTH, LEFT_ONLY, RIGHT_ONLY, Cells, ExtensionScores, PairScores
from dpframework_greedy.scores import Score

SCORES = ("logistic", "jaccard")


def _one_of(known: tuple[str, ...]) -> Any:
    def check(instance: Any, attribute: attrs.Attribute[str], value: str) -> None:
        if value not in known:
            raise InputError(f"{attribute.name} {value!r} is unknown; {nearest(str(value), known)}")

    return check


def _positive_integer(instance: Any, attribute: attrs.Attribute[int], value: int | None) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InputError(f"{attribute.name} is {value!r}; a positive whole number is needed")


def _age(instance: Any, attribute: attrs.Attribute[int], value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{attribute.name} is {value!r}; a whole number from 0 is needed")


def _share(instance: Any, attribute: attrs.Attribute[float], value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"{attribute.name} is {value!r}; a number from 0 to 1 is needed")


def _names(value: Iterable[str] | None) -> tuple[str, ...] | None:
    if isinstance(value, str):
        raise InputError(f"a side is one text, {value!r}; give a list of attribute names")
    return None if value is None else tuple(value)


def _shares(value: str | Iterable[Any]) -> Shares:
    return Shares.of(value)


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
        How the budget is shared between initial pairs, extensions and qualities: "d1" to "d5", or three shares.
    score
        "logistic" (the Jaccard index weighted by support), or "jaccard", whose sensitivity is hundreds of times larger.
    max_p_value
        Redescriptions with a larger p-value on their noisy counts are left out of the result (post-processing).
    left, right
        Names of the attributes of each side; by default those of the schema's views. An attribute of both is never
        used on both sides of a redescription.
    """

    epsilon: Fraction = attrs.field(converter=positive)
    min_support: int | None = attrs.field(default=None, validator=_positive_integer)
    max_support: int | None = attrs.field(default=None, validator=_positive_integer)
    pairs: int | None = attrs.field(default=None, validator=_positive_integer)
    budget: Shares = attrs.field(default=Shares.of("d3"), converter=_shares)
    score: str = attrs.field(default="logistic", validator=_one_of(SCORES))
    max_p_value: float = attrs.field(default=1.0, validator=_share)
    left: tuple[str, ...] | None = attrs.field(default=None, converter=_names)
    right: tuple[str, ...] | None = attrs.field(default=None, converter=_names)

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

    def shared(self, schema: Schema) -> _Shared:
        """Resolve the parameters on a schema."""
        return _Shared.of(self, schema)

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
class _Shared:
    """A miner's parameters, resolved on a schema.

    Attributes
    ----------
    language, score
        What is searched, and what is scored.
    pairs, choices
        The number of initial pairs, and of all choices of an extension.
    shares
        Of the budget.
    """

    language: Language
    score: Score
    pairs: int
    choices: int
    shares: Shares

    @classmethod
    def of(cls, miner: _Serenade, schema: Schema) -> _Shared:
        """Resolve, refusing what cannot be mined."""
        language, score = miner.language(schema), miner.scored(schema)
        spread = score.spread(rows_public=schema.rows is not None)
        shares, most = miner.budget, len(language.pairs)
        pairs = miner.pairs
        if pairs is None:
            carried = choices_within(SERIOUS, shares.pairs * miner.epsilon, spread, language.number_of_pairs)
            pairs = min(max(carried, 1), MOST_PAIRS, most)
        elif pairs > most:
            raise InputError(f"pairs is {pairs}, but the two views have {most} pairs of attributes, one for each")
        times = miner.times(pairs)
        if not shares.extensions:
            if miner.asked is not None:
                raise InputError("budget gives extensions nothing; leave their number out, or give them a share")
            choices = 0
        elif miner.asked is not None:
            choices = miner.asked * times
        else:
            candidates = language.number_of_extensions * (1 if times > 1 else pairs)
            carried = choices_within(WORTH, shares.extensions * miner.epsilon, spread, candidates)
            choices = min(carried // pairs, MOST_EXTENSIONS) * pairs
        if not choices and shares.extensions:
            shares = shares.without_extensions()
        return cls(language, score, pairs, choices, shares)

    def pairs_step(self, epsilon: Fraction) -> Node:
        """Plan the choice of the initial pairs."""
        scores = PairScores(self.language, self.score)
        mechanism = SuccessiveExponential(self.shares.pairs * epsilon, self.pairs, within=SERIOUS)
        return step("pairs", scores, mechanism, threshold=SERIOUS)

    def initial(self, table: PrivateTable) -> list[Redescribed]:
        """Release the initial pairs."""
        return [self.language.pair(int(pair), int(position)) for pair, position in table.release("pairs")]


def _measured(table: PrivateTable, redescribed: Redescribed) -> Redescription:
    """Release the cells of a redescription."""
    cells = table.release("quality", redescribed=redescribed)
    scale = float(table.calibration("quality").scale)
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


@final
@attrs.frozen
class SerenadeCS(_Serenade):
    """Redescriptions grown one at a time, each as long as its noisy Jaccard index is good (Serenade, client side).

    Parameters
    ----------
    extensions
        How often each pair is extended at most; by default what the budget carries, 4 at most.
    min_jaccard
        The noisy Jaccard index below which a redescription is not extended, nor returned.

    Examples
    --------
    >>> SerenadeCS(epsilon=1, min_support=500).min_jaccard
    0.3
    """

    name = "serenade-cs"
    extensions: int | None = attrs.field(default=None, validator=_positive_integer, kw_only=True)
    min_jaccard: float = attrs.field(default=0.3, validator=_share, kw_only=True)

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
            each = SuccessiveExponential(shared.shares.extensions * self.epsilon / shared.choices, within=WORTH)
            scores = ExtensionScores(shared.language, shared.score, most=1, turns=1)
            parts.append(
                repeat(shared.choices, step("extension", scores, each, uses=["pairs", "quality"], threshold=WORTH))
            )
        qualities = shared.pairs + shared.choices
        counts = DiscreteLaplace(shared.shares.quality * self.epsilon / qualities)
        parts.append(repeat(qualities, step("quality", Cells(), counts, uses=["pairs"])))
        return sequential(*parts)

    def mine(self, table: PrivateTable) -> Redescriptions:
        """Release the pairs; measure and extend each until it is no longer good or long enough."""
        shared = self.shared(table.schema)
        found, measured = [], 0
        for redescribed in shared.initial(table):
            good = None
            for length in range(shared.choices // shared.pairs + 1):
                if length:
                    ((_, position),) = table.release("extension", pool=(redescribed,))
                    redescribed = shared.language.extended(redescribed, int(position))
                quality = _measured(table, redescribed)
                measured += 1
                if quality.jaccard <= self.min_jaccard:
                    break
                good = quality
            if good is not None:
                found.append(good)
        return self.finished(found, measured)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return both scores, and views that share an attribute."""
        few: dict[str, Any] = {"pairs": 1, "extensions": 1, "min_support": 3, "max_support": 12}
        return {
            "default": Example(_SCHEMA, cls(20, **few)),
            "jaccard": Example(_SCHEMA, cls(20, score="jaccard", pairs=1, extensions=1)),
            "shared": Example(_SCHEMA, cls(20, **few, left=["wolf", "rain"], right=["rain", "zone"])),
        }


@final
@attrs.frozen
class SerenadeES(_Serenade):
    """Redescriptions grown together, each round extending whichever is best (Serenade, engine side).

    Parameters
    ----------
    rounds
        How many extensions are chosen in all; by default what the budget carries, 4 a pair at most. One redescription
        takes no more of them than its share, rounded up.
    max_age
        For how many rounds the weight of a redescription's extensions is remembered; it saves time and changes nothing.

    Examples
    --------
    >>> SerenadeES(epsilon=1, min_support=500).max_age
    40
    """

    name = "serenade-es"
    rounds: int | None = attrs.field(default=None, validator=_positive_integer, kw_only=True)
    max_age: int = attrs.field(default=40, validator=_age, kw_only=True)

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
        if shared.choices:
            turns = math.ceil(shared.choices / shared.pairs)
            scores = ExtensionScores(shared.language, shared.score, shared.pairs, turns)
            epsilon = shared.shares.extensions * self.epsilon
            chosen = SuccessiveExponential(epsilon, shared.choices, within=WORTH, max_age=self.max_age)
            parts.append(step("extensions", scores, chosen, uses=["pairs"], threshold=WORTH))
        counts = DiscreteLaplace(shared.shares.quality * self.epsilon / shared.pairs)
        uses = ["pairs", "extensions"] if shared.choices else ["pairs"]
        parts.append(repeat(shared.pairs, step("quality", Cells(), counts, uses=uses)))
        return sequential(*parts)

    def mine(self, table: PrivateTable) -> Redescriptions:
        """Release the pairs and their extensions, then measure what they have become."""
        shared = self.shared(table.schema)
        pool = shared.initial(table)
        if shared.choices:
            for number, position in table.release("extensions", pool=tuple(pool)):
                pool[number] = shared.language.extended(pool[number], int(position))
        return self.finished([_measured(table, redescribed) for redescribed in pool], len(pool))

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return both scores, views that share an attribute, and budgets for the pairs or the extensions alone."""
        few: dict[str, Any] = {"pairs": 2, "rounds": 2, "min_support": 3, "max_support": 12}
        return {
            "default": Example(_SCHEMA, cls(20, **few)),
            "jaccard": Example(_SCHEMA, cls(20, score="jaccard", pairs=1, rounds=2)),
            "shared": Example(_SCHEMA, cls(20, **few, left=["wolf", "rain"], right=["rain", "zone"])),
            "pairs": Example(_SCHEMA, cls(20, pairs=2, min_support=4, budget=[0.6, 0, 0.4])),
            "extensions": Example(_SCHEMA, cls(20, **{**few, "pairs": 1}, budget=[0.05, 0.9, 0.05])),
        }


_SCHEMA = Schema(
    [
        Boolean("wolf", view=View.LEFT),
        Numeric("height", 0, 9, cuts=[3, 6], view=View.LEFT, missing=True),
        Numeric("rain", 0, 8, cuts=[4], view=View.RIGHT),
        Categorical("zone", ["north", "middle", "south"], view=View.RIGHT),
    ]
)
