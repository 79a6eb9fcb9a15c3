"""Serenade, which grows redescriptions greedily (Karjalainen, Galbrun and Miettinen 2022), in two variants.

Initial pairs, with one literal per side, are chosen and counted first. Then literals are joined to either side by `and`
or `or`. With `serenade-cs` the client looks at the noisy Jaccard index of each redescription, and extends the
redescription while this index is good enough. With `serenade-es` every round extends one chosen redescription, and
the grown redescriptions are counted at the end. Names of the paper: N is `pairs`, K `extensions`, L `rounds`, sigma_min
`min_support`.

By default pairs are scored in rows and counted three at a time. The counts also give the conjunctions and disjunctions
of these pairs, without extensions (`literal_pairs`). An added row moves two such scores apart by at most 1, and two
published scores by about 2.2 divided by the minimum support. All that follows is about `score="logistic"`, and about
runs with extensions.

Claim: pure epsilon under either relation, without assumptions. What differs from the paper, and why:

- every candidate comes from the schema: all literals, with all intervals between public cuts, on either side. The
  published thresholds lie between values of the data, so a neighbouring table may not have them;
- sensitivities have closed forms that do not need the number of rows (`scores`). Scores are not monotonic, so their
  spread counts. The published 2 Delta covers the spread. The published key, exp(epsilon q) times log(uniform), is
  wrong: its sign makes the better candidate lose;
- a second factor takes weight from pairs with a side that holds nearly everywhere: at a small epsilon the best-scoring
  candidates are near-tautologies, such as a rare species' absence in any climate;
- extensions are scored by the rows by which they surpass the noisy Jaccard index of the pair that they grow from. With
  that index known, the sensitivity is that of a count (`surplus_score.Surplus`). The published score has to allow for a
  redescription of any support, and is about ten times noisier;
- an extension is kept only if its noisy counts are better than those of the redescription that it extends
  (`measurements.is_better`);
- if pairs are not scored in rows, at most one initial pair is taken per pair of attributes, so that initial pairs
  differ in more than a threshold;
- weights are remembered between rounds, and not keys (`successive_choices`);
- rows in both supports, in one only and in neither are disjoint, so each of these counts gets their whole budget;
- by default there are as many pairs and extensions as the budget pays for (`budgets`), and no extensions where they
  would take budget from the pairs for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import attrs

from dpframework.facts import Boolean, Categorical, Numeric, Schema, View, from_0_to_1, whole_number
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node, repeat, step
from dpframework.redescriptions import Redescriptions
from dpframework.run import Example, PrivateTable
from dpframework_greedy.budgets import MOST_PAIRS
from dpframework_greedy.language import UNEXTENDED
from dpframework_greedy.measurements import average, is_better, measure
from dpframework_greedy.parameters import Serenade
from dpframework_greedy.queries import RedescriptionCells


def published_settings(min_support: int, rows: int) -> dict[str, Any]:
    """Return the settings that both published miners share: pairs, distribution, score, and bounds on the support.

    Parameters
    ----------
    min_support
        The minimum support, a public number of rows. In the paper it is a tenth of the rows.
    rows
        A public bound on the number of rows. The paper has no maximum support, so that is set to twice this bound,
        which no table comes near.
    """
    return {
        "pairs": MOST_PAIRS,
        "budget": "d3",
        "score": "logistic",
        "min_support": min_support,
        "max_support": 2 * rows,
    }


@final
@attrs.frozen
class SerenadeCS(Serenade):
    """Redescriptions grown one at a time, each while its noisy Jaccard index is good (Serenade, client side).

    Parameters
    ----------
    extensions
        The most extensions of each pair. By default none where pairs are scored in rows, since conjunctions and
        disjunctions come with their counts. With another score, or a `budget` with a share for extensions, at most 4.
    min_jaccard
        A redescription is extended and returned only if its noisy Jaccard index is above this.

    Examples
    --------
    >>> SerenadeCS(epsilon=1).min_jaccard
    0.3
    """

    name = "serenade-cs"
    result = Redescriptions
    extensions: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(whole_number()), kw_only=True
    )
    min_jaccard: float = attrs.field(default=0.3, validator=from_0_to_1, kw_only=True)

    @classmethod
    def published(cls, epsilon: Any, min_support: int, rows: int, **changes: Any) -> SerenadeCS:
        """Return the miner with the settings of the paper, except for those given (see `published_settings`)."""
        settings = {"extensions": 4, "min_jaccard": 0.3, **published_settings(min_support, rows), **changes}
        return cls(epsilon=epsilon, **settings)

    @property
    def wanted_extensions(self) -> int | None:
        """The number of extensions per pair that you ask for; None if you ask for none."""
        return self.extensions

    def extension_sets(self, pairs: int) -> int:
        """Return the number of pairs, since each pair has extensions of its own."""
        return pairs

    def plan(self, schema: Schema) -> Node:
        """Plan the pairs, every extension that may be chosen, and the counts of each pair and each extension."""
        if self.counts_together:
            return self.pair_plan(schema).plan()
        resolved = self.resolve(schema)
        parts = [resolved.pairs_step()]
        if resolved.choices:
            epsilon = resolved.shares.extensions * resolved.epsilon / resolved.choices
            each = resolved.extension_step("extension", epsilon, rounds=1, most=1, uses=["pairs", "quality"])
            parts.append(repeat(resolved.choices, each))
        qualities = resolved.pairs + resolved.choices
        counts = DiscreteLaplace(resolved.shares.quality * resolved.epsilon / qualities)
        parts.append(
            repeat(
                qualities, step("quality", RedescriptionCells(among=resolved.language.names), counts, uses=["pairs"])
            )
        )
        return resolved.planned(parts)

    def mine(self, table: PrivateTable) -> Redescriptions:
        """Release the pairs, then count each, and extend it while it is good."""
        if self.counts_together:
            return self.mine_together(table, self.min_jaccard)
        miner, resolved = self.settle(table)
        found, candidates = [], 0
        for redescribed in resolved.initial(table):
            quality = measure(table, "quality", redescribed)
            candidates += 1
            if quality.jaccard <= self.min_jaccard:
                continue
            for _ in range(resolved.choices // resolved.pairs):
                pool = ((redescribed, quality.jaccard),)
                ((_, position),) = table.release("extension", pool=pool, **resolved.given)
                if position == UNEXTENDED:
                    continue
                extended = resolved.language.extend(redescribed, int(position))
                other = measure(table, "quality", extended)
                candidates += 1
                if is_better(other, quality, resolved.bounds):
                    redescribed, quality = extended, other
            found.append(quality)
        return miner.finish(found, candidates)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples of all scores, of extended pairs scored in rows, and of views with a shared attribute."""
        from dpframework_greedy.witnesses import PLANTED, row_count_witnesses

        extended: dict[str, Any] = {"pairs": 1, "extensions": 1, "budget": "d3"}
        # The bounds on the support follow from a noisy number of rows.
        counted = cls(1, pairs=1, budget=[0.85, 0, 0.15], score="logistic", count_share=0.02)
        return {
            "default": _by_rows(cls),
            **_extend_pairs(cls, extended, extended),
            "jaccard": _by_index(cls),
            "shared": _share_attribute(cls),
            "planted": _plant_pairs(cls),
            "counted": Example(PLANTED, counted, witnesses=row_count_witnesses()),
        }


@final
@attrs.frozen
class SerenadeES(Serenade):
    """Redescriptions grown together: each round extends one of them, chosen by its score (Serenade, engine side).

    Parameters
    ----------
    rounds
        The most extensions that are chosen in all. By default none where pairs are scored in rows, since conjunctions
        and disjunctions come with their counts. With another score, or a `budget` with a share for extensions, at
        most 4 per pair. One redescription gets at most its even share of the rounds, rounded up.
    max_age
        For how many rounds the weight of a redescription's extensions is remembered. It saves time and changes no
        result.

    Examples
    --------
    >>> SerenadeES(epsilon=1).max_age
    40
    """

    name = "serenade-es"
    result = Redescriptions
    rounds: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number()), kw_only=True)
    max_age: int = attrs.field(default=40, validator=whole_number(0), kw_only=True)

    @classmethod
    def published(cls, epsilon: Any, min_support: int, rows: int, **changes: Any) -> SerenadeES:
        """Return the miner with the settings of the paper, except for those given (see `published_settings`)."""
        settings = {"rounds": 80, "max_age": 40, **published_settings(min_support, rows), **changes}
        return cls(epsilon=epsilon, **settings)

    @property
    def wanted_extensions(self) -> int | None:
        """The number of rounds that you ask for; None if you ask for none."""
        return self.rounds

    def extension_sets(self, pairs: int) -> int:
        """Return 1, since all pairs share the rounds."""
        return 1

    def plan(self, schema: Schema) -> Node:
        """Plan the pairs, all rounds of extensions in one step, and the counts of each redescription."""
        if self.counts_together:
            return self.pair_plan(schema).plan()
        resolved = self.resolve(schema)
        parts = [resolved.pairs_step()]
        quality = resolved.shares.quality * resolved.epsilon / resolved.pairs
        if resolved.choices:
            quality /= 2
            counts = step(
                "parent", RedescriptionCells(among=resolved.language.names), DiscreteLaplace(quality), uses=["pairs"]
            )
            parts.append(repeat(resolved.pairs, counts))
            epsilon = resolved.shares.extensions * resolved.epsilon
            rounds, most, uses = resolved.choices, resolved.pairs, ["pairs", "parent"]
            parts.append(resolved.extension_step("extensions", epsilon, rounds, most, uses=uses, max_age=self.max_age))
        uses = ["pairs", "extensions"] if resolved.choices else ["pairs"]
        counts = step("quality", RedescriptionCells(among=resolved.language.names), DiscreteLaplace(quality), uses=uses)
        parts.append(repeat(resolved.pairs, counts))
        return resolved.planned(parts)

    def mine(self, table: PrivateTable) -> Redescriptions:
        """Release the pairs and their extensions, then count the grown redescriptions."""
        if self.counts_together:
            return self.mine_together(table)
        miner, resolved = self.settle(table)
        pairs = resolved.initial(table)
        if not resolved.choices:
            return miner.finish([measure(table, "quality", pair) for pair in pairs], len(pairs))
        parents = [measure(table, "parent", pair) for pair in pairs]
        grown = list(pairs)
        given = tuple((pair, parent.jaccard) for pair, parent in zip(pairs, parents, strict=True))
        for number, position in table.release("extensions", pool=given, **resolved.given):
            grown[number] = resolved.language.extend(grown[number], int(position))
        found = []
        for pair, parent, one in zip(pairs, parents, grown, strict=True):
            quality = measure(table, "quality", one)
            if one == pair:
                found.append(average(parent, quality))
            else:
                found.append(quality if is_better(quality, parent, resolved.bounds) else parent)
        return miner.finish(found, len(pairs) + sum(one != pair for one, pair in zip(grown, pairs, strict=True)))

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples of all scores, of several pairs, of extensions, and of views that share an attribute."""
        from dpframework_greedy.witnesses import (
            EXTENDED_SUPPORTS,
            FIVE,
            PLANTED,
            matched_by_count,
            published_extension,
            several,
        )

        extended: dict[str, Any] = {"pairs": 1, "rounds": 2, "budget": "d3"}
        most: dict[str, Any] = {"pairs": 1, "rounds": 1, "budget": [0.05, 0.9, 0.05], "score": "logistic"}
        return {
            "default": _by_rows(cls),
            "several": Example(FIVE, cls(2, pairs=4), witnesses=several()),
            "by count": Example(PLANTED, cls("0.01"), witnesses=matched_by_count()),
            **_extend_pairs(cls, extended, {**extended, "rounds": 1}),
            "jaccard": _by_index(cls),
            "shared": _share_attribute(cls),
            "extensions": Example(PLANTED, cls(2, **most, **EXTENDED_SUPPORTS), witnesses=published_extension()),
            "planted": _plant_pairs(cls),
        }


def _by_rows(miner: type[Serenade]) -> Example:
    """Return an example of a pair that is scored in rows, with the tables on which it loses all that is claimed."""
    from dpframework_greedy.witnesses import PLANTED, matched_pair_witnesses

    return Example(PLANTED, miner(1, pairs=1), witnesses=matched_pair_witnesses())


def _extend_pairs(
    miner: type[Serenade], by_rows: Mapping[str, Any], published: Mapping[str, Any]
) -> dict[str, Example]:
    """Return examples of pairs with extensions, scored in rows and as published, on tables where they lose most."""
    from dpframework_greedy.witnesses import EXTENDED_SUPPORTS, PLANTED, PLANTED_SUPPORTS, extended, two_extensions

    of_rows, of_pairs = (
        miner(2, **by_rows, **EXTENDED_SUPPORTS),
        miner(32, score="logistic", **published, **PLANTED_SUPPORTS),
    )
    return {
        "extended": Example(PLANTED, of_rows, witnesses=two_extensions()),
        "logistic": Example(PLANTED, of_pairs, witnesses=extended()),
    }


def _by_index(miner: type[Serenade]) -> Example:
    """Return an example of a pair scored by its Jaccard index, with a large epsilon.

    What the choice can lose then depends little on the number of candidate pairs.
    """
    from dpframework_greedy.witnesses import INDEX, of_index

    of_pairs = miner(100, score="jaccard", pairs=1, budget=[0.9, 0, 0.1])
    return Example(_SCHEMA, of_pairs, witnesses=of_index(), loose=INDEX)


def _share_attribute(miner: type[Serenade]) -> Example:
    """Return an example of a pair that is scored in rows, from views that share an attribute."""
    from dpframework_greedy.witnesses import shared

    return Example(_SCHEMA, miner(2, pairs=1, left=["wolf", "rain"], right=["rain", "zone"]), witnesses=shared())


def _plant_pairs(miner: type[Serenade]) -> Example:
    """Return an example of pairs scored as published, with counts, on tables where they lose all that is claimed."""
    from dpframework_greedy.witnesses import PLANTED, PLANTED_SUPPORTS, witnesses

    pairs = miner(1, pairs=2, budget=[0.85, 0, 0.15], score="logistic", **PLANTED_SUPPORTS)
    return Example(PLANTED, pairs, witnesses=witnesses())


_SCHEMA = Schema(
    [
        Boolean("wolf", view=View.LEFT),
        Numeric("height", 0, 9, cuts=[3, 6], view=View.LEFT, missing=True),
        Numeric("rain", 0, 8, cuts=[4], view=View.RIGHT),
        Categorical("zone", ["north", "middle", "south"], view=View.RIGHT),
    ]
)
