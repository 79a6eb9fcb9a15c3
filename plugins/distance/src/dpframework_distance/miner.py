"""DP-DILCA: distances between the values of categorical attributes, learned from how they go with other attributes.

Source: Battaglia, Celano and Pensa, "Differentially Private Distance Learning in Categorical Data" (2021). Claim: pure
epsilon, or the rho of zCDP; no assumptions. Under replace-one the row count is public; under add-or-remove-one a
public upper bound on it is needed (`max_rows`), for context selection only.

What differs from the paper by default, and why (`DPDilca.published` restores the paper's settings):

- scores of contexts with their exact sensitivity, half of the published one (see `sensitivities`);
- permute-and-flip instead of the exponential mechanism: never worse (McKenna and Sheldon 2020);
- the joint histogram of two attributes is released once, though either may be in the other's context;
- symmetric uncertainties from conditional entropies, with noise on two numbers a pair and not on three;
- estimates that know of the noise, and distances that know what it hides (see `estimates`).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.accountant import ZCDPAccountant
from dpframework.facts import (
    Amount,
    Attribute,
    Boolean,
    ByRelation,
    Categorical,
    InputError,
    Numeric,
    Relation,
    Schema,
    between_0_and_1,
    list_of_names,
    named_once,
    one_of,
    positive,
    positive_rho,
    share_of_budget,
    true_or_false,
    whole_number,
)
from dpframework.plan import Node, post, sequential
from dpframework.run import Example, Miner, PrivateTable
from dpframework_distance import histograms
from dpframework_distance.budgets import DistanceBudget
from dpframework_distance.contexts import relevant_not_redundant, su_of_histograms
from dpframework_distance.distances import LearnedDistances, ValueDistances
from dpframework_distance.estimates import (
    NoisyPair,
    as_published,
    distances_between,
    marginals_from,
    points_from,
    shrunk,
)
from dpframework_distance.queries import PairCounts
from dpframework_distance.selections import (
    AllOthers,
    Chosen,
    Common,
    MaxDependency,
    MaxRelevance,
    MeanSU,
    Selection,
    plan_name,
)
from dpframework_distance.sensitivities import RowBounds
from dpframework_distance.subsets import require_few_cells

CONTEXTS = ("max-dependency", "max-relevance", "mean-su", "common", "baseline")
SIZED = ("max-dependency", "max-relevance", "common")
SELECTIONS = ("permute-and-flip", "exponential")
SENSITIVITIES = ("tight", "published")
ESTIMATES = ("shrunk", "published")


@final
@attrs.frozen
class DPDilca(Miner):
    """Distances between the values of categorical attributes, learned from contexts (Battaglia, Celano and Pensa 2021).

    Parameters
    ----------
    epsilon
        The budget of all distances together; or
    rho
        the budget in zCDP, for a study with a delta (see `zcdp`). Give one of the two.
    target
        The attribute whose values the distances are between; by default every attribute is one.
    context
        "max-dependency" (the attributes that together say most of the target), "max-relevance" (those that each say
        most), "mean-su" (those of at least mean symmetric uncertainty), "common" (one context for all targets: the k
        attributes that together say most of all others), or "baseline" (all joint histograms first, the context chosen
        on them).
    context_size
        The number of attributes in a context; "mean-su" and "baseline" find their own.
    context_share
        The share of the budget that goes to contexts; all of the baseline's goes to histograms.
    attributes
        The attributes to look at, targets and contexts; by default all of the schema's. One with a single value is
        left out.
    selection
        "permute-and-flip" (the default with epsilon) or "exponential" (the only one with rho).
    sensitivity
        "tight", or "published": the paper's, valid and twice too large; for "mean-su", its entropies too.
    sharing
        Whether what two targets need (a joint histogram, an entropy) is released once for both.
    estimates
        "shrunk", or "published": shares of noisy counts.
    profiles
        Whether values are compared by what they go with, P(x|y), instead of the paper's P(y|x), which depends on how
        common they are (see `estimates`). Nothing more is released.

    Examples
    --------
    >>> DPDilca(epsilon=1.0, target="city").context
    'max-dependency'
    """

    name = "dp-dilca"
    epsilon: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive))
    rho: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive_rho), kw_only=True)
    target: str | None = attrs.field(default=None, kw_only=True)
    context: str = attrs.field(default="max-dependency", validator=one_of(CONTEXTS), kw_only=True)
    context_size: int = attrs.field(default=3, validator=whole_number(), kw_only=True)
    context_share: Fraction = attrs.field(
        default=Fraction(3, 10), converter=share_of_budget, validator=between_0_and_1, kw_only=True
    )
    attributes: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names, kw_only=True)
    selection: str | None = attrs.field(
        default=None, validator=attrs.validators.optional(one_of(SELECTIONS)), kw_only=True
    )
    sensitivity: str = attrs.field(default="tight", validator=one_of(SENSITIVITIES), kw_only=True)
    sharing: bool = attrs.field(default=True, validator=true_or_false, kw_only=True)
    estimates: str = attrs.field(default="shrunk", validator=one_of(ESTIMATES), kw_only=True)
    profiles: bool = attrs.field(default=False, validator=true_or_false, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Refuse two budgets, none, and a selection that the budget's notion of loss has no use for."""
        if (self.epsilon is None) == (self.rho is None):
            raise InputError("dp-dilca needs a budget: give epsilon, or rho in a study with a delta")
        if self.rho is not None and self.selection == "permute-and-flip":
            raise InputError("selection 'permute-and-flip' has no better rho than its epsilon; take 'exponential'")

    @classmethod
    def published(cls, epsilon: Any, **changes: Any) -> DPDilca:
        """Return the miner with the paper's settings, but for the parameters given."""
        settings: dict[str, Any] = {
            "selection": "exponential",
            "sensitivity": "published",
            "sharing": False,
            "estimates": "published",
        }
        return cls(epsilon, **{**settings, **changes})

    @classmethod
    def zcdp(cls, epsilon: Amount, delta: Amount, **parameters: Any) -> DPDilca:
        """Return the miner with the largest rho that costs at most epsilon at delta.

        A study with that epsilon and delta has room for it, and reports the total in zCDP.

        Raises
        ------
        InputError
            If delta is not between 0 and 1, or a parameter is wrong.
        """
        allowed = positive(epsilon)
        accountant = ZCDPAccountant(Relation.REPLACE_ONE, delta=delta)
        low, high = Fraction(0), allowed
        for _ in range(40):
            middle = (low + high) / 2
            loss = accountant.loss(ByRelation(middle, middle))
            fits = loss is not None and loss.epsilon is not None and loss.epsilon <= allowed
            low, high = (middle, high) if fits else (low, middle)
        return cls(rho=Fraction(math.floor(low * 10**12), 10**12), **parameters)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return each context selection, published and ours, and what else has a privacy argument of its own."""
        attributes = [
            Boolean("ill"),
            Categorical("town", ["A", "B", "C"]),
            Boolean("smokes"),
            Numeric("age", 0, 90, cuts=[40]),
        ]
        counted = Schema(attributes, rows=7)
        bounded = Schema(attributes, max_rows=12)
        found = {}
        found["common"] = Example(counted, cls(2, context="common", context_size=2))
        for context in [context for context in CONTEXTS if context != "common"]:
            miner = cls(2, target="town", context=context, context_size=2)
            found[context] = Example(counted, miner)
            if context != "baseline":  # which is the same as published, and for all targets
                found[f"{context}-published"] = Example(
                    counted, cls.published(2, target="town", context=context, context_size=2)
                )
                found[f"{context}-all"] = Example(counted, attrs.evolve(miner, target=None))
        found["add-or-remove"] = Example(bounded, cls(2, target="town", context_size=2))
        found["add-or-remove-relevance"] = Example(
            bounded, cls(2, target="town", context="max-relevance", context_size=2)
        )
        found["add-or-remove-common"] = Example(bounded, cls(2, context="common", context_size=2))
        found["add-or-remove-mean-su"] = Example(bounded, cls(2, target="town", context="mean-su"))
        found["each-alone"] = Example(counted, cls(2, context_size=1, sharing=False))
        return found

    def plan(self, schema: Schema) -> Node:
        """Plan the selection of each context, then the joint histograms of targets and contexts."""
        resolved = _Resolved.of(self, schema)
        if not resolved.apart:
            return sequential(*resolved.part(resolved.targets, Fraction(1)))
        each = Fraction(1, len(resolved.targets))
        return sequential(
            *(sequential(*resolved.part([target], each), name=resolved.scope(target)) for target in resolved.targets)
        )

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return none: codes are enough."""
        return ()

    def mine(self, table: PrivateTable) -> LearnedDistances:
        """Make the releases, and turn them into distances by post-processing."""
        resolved = _Resolved.of(self, table.schema)
        if not resolved.apart:
            contexts, released = resolved.released(table, resolved.targets)
            return resolved.distances(contexts, dict.fromkeys(resolved.targets, released))
        of_target = {t: resolved.released(table.scope(resolved.scope(t)), [t]) for t in resolved.targets}
        return resolved.distances(
            {t: contexts[t] for t, (contexts, _) in of_target.items()},
            {t: released for t, (_, released) in of_target.items()},
        )


@attrs.frozen(eq=False)
class _Resolved:
    """A miner's parameters, resolved on a schema.

    Attributes and targets are positions in `among`.

    Attributes
    ----------
    miner
        The parameters.
    schema
        The public facts.
    among
        The attributes that are looked at.
    targets
        Those whose values' distances are learned.
    selection
        How contexts are chosen; None where that is done on the histograms (the baseline).
    budget
        What there is to spend.
    """

    miner: DPDilca
    schema: Schema
    among: tuple[Attribute, ...]
    targets: tuple[int, ...]
    selection: Selection | None
    budget: DistanceBudget

    @classmethod
    def of(cls, miner: DPDilca, schema: Schema) -> _Resolved:
        """Resolve, refusing what cannot be learned."""
        among, targets = attributes_and_targets(miner, schema)
        selection = _selection_of(miner, schema, among, targets)
        zcdp = miner.rho is not None
        amount = miner.rho if miner.rho is not None else miner.epsilon
        assert amount is not None  # one of the two is given
        budget = DistanceBudget(amount, zcdp, zcdp or miner.selection == "exponential")
        return cls(miner, schema, among, targets, selection, budget)

    @property
    def apart(self) -> bool:
        """Whether each target is learned on its own, with an equal share of the budget."""
        alone = self.miner.context not in ("baseline", "common")
        return not self.miner.sharing and len(self.targets) > 1 and alone

    def scope(self, target: int) -> str:
        """Return the name of a target's scope."""
        return plan_name("distances", target, self.among)

    def part(self, targets: Sequence[int], share: Fraction) -> list[Node]:
        """Plan contexts and histograms of some targets, with a share of the budget."""
        spent, rungs = self.miner.context_share, self._rungs(targets)
        selections: Mapping[str, Node] = {}
        if self.selection is not None:
            selections = self.selection.planned(targets, self.budget, share * spent)
        left = share * (1 - spent) if selections else share
        # of one target alone, histograms of other pairs are never asked for, and need not be counted
        alone = targets[0] if len(self.targets) == 1 and self.selection is not None else None
        counted = histograms.planned(PairCounts(self.among, alone), rungs, self.budget, left, list(selections))
        return [*selections.values(), counted, post("distances", [histograms.step_of(rung) for rung in rungs])]

    def _rungs(self, targets: Sequence[int]) -> list[int]:
        """Return for what numbers of histograms the plan has a branch."""
        if self.selection is None:
            return [math.comb(len(self.among), 2)]
        return histograms.rungs_between(*self.selection.least_and_most(len(targets)), every=len(targets) == 1)

    def released(self, table: PrivateTable, targets: Sequence[int]) -> tuple[Chosen, list[NoisyPair]]:
        """Release the contexts of some targets, and the histograms that they need."""
        rungs = self._rungs(targets)
        if self.selection is None:
            pairs = histograms.released(table, self.among, itertools.combinations(range(len(self.among)), 2), rungs[0])
            su = su_of_histograms(pairs, [attribute.name for attribute in self.among])
            return {target: relevant_not_redundant(su, target) for target in targets}, pairs
        contexts = self.selection.released(table, targets)
        wanted = {(min(t, x), max(t, x)) for t, context in contexts.items() for x in context}
        rung = next(number for number in rungs if number >= len(wanted))
        return contexts, histograms.released(table, self.among, sorted(wanted), rung)

    def distances(self, contexts: Chosen, released: Mapping[int, Sequence[NoisyPair]]) -> LearnedDistances:
        """Turn releases into distances: each target's own, and what all together say of single attributes."""
        every = list({id(pair): pair for pairs in released.values() for pair in pairs}.values())
        estimate = as_published
        if self.miner.estimates == "shrunk":
            estimate = functools.partial(shrunk, marginals=marginals_from(every, self.schema.rows))
        learned = {}
        for target, context in contexts.items():
            name = self.among[target].name
            names = tuple(self.among[k].name for k in context)
            by_other = {
                pair.second if pair.first == name else pair.first: pair
                for pair in released[target]
                if name in (pair.first, pair.second)
            }
            points = points_from({other: by_other[other] for other in names}, name, estimate, self.miner.profiles)
            learned[name] = ValueDistances(self.among[target], names, distances_between(points))
        return LearnedDistances(self.schema.select([a.name for a in self.among]), learned)


def attributes_and_targets(miner: DPDilca, schema: Schema) -> tuple[tuple[Attribute, ...], tuple[int, ...]]:
    """Return the attributes to look at, and the positions of the targets among them."""
    named = schema.names if miner.attributes is None else miner.attributes
    named_once("attributes", named)
    if miner.target is not None:
        if schema[miner.target].size < 2:
            raise InputError(f"target '{miner.target}' has one value; distances need two or more")
        if miner.target not in named:
            raise InputError(f"target '{miner.target}' is not among the attributes to look at; add it")
    among = tuple(schema[name] for name in named if schema[name].size > 1)
    if len(among) < 2:
        raise InputError("distances need a target and another attribute, each with two or more values")
    targets = tuple(k for k, a in enumerate(among) if miner.target in (None, a.name))
    others = len(among) - 1
    if miner.context == "common" and (len(targets) == 1 or miner.context_size == 1):
        raise InputError(
            "context 'common' is one for all targets, each of which needs an attribute other than itself; "
            + ("leave target out" if len(targets) == 1 else "set context_size = 2 or more")
        )
    if miner.context in SIZED and miner.context_size > others:
        raise InputError(
            f"context_size = {miner.context_size} is more than the {others} other attributes with two or more values; "
            f"set context_size = {others} or less"
        )
    return among, targets


def _selection_of(
    miner: DPDilca, schema: Schema, among: tuple[Attribute, ...], targets: tuple[int, ...]
) -> Selection | None:
    """Return how contexts are chosen, refusing more joint histograms than memory allows."""
    only = targets[0] if len(targets) == 1 else None
    if miner.context == "baseline":
        require_few_cells(among, 2, None)
        return None
    if miner.context in SIZED and miner.context_size == len(among) - 1:
        require_few_cells(among, 2, only)
        return AllOthers(among)
    bounds = RowBounds.of(schema, published=miner.sensitivity == "published")
    require_few_cells(among, 2, only)
    if miner.context in ("max-dependency", "common"):
        require_few_cells(among, miner.context_size + 1, only)
    if miner.context == "mean-su":
        return MeanSU(among, bounds)
    if miner.context == "common":
        return Common(among, miner.context_size, bounds)
    of_size = MaxDependency if miner.context == "max-dependency" else MaxRelevance
    return of_size(among, miner.context_size, bounds, only is not None)
