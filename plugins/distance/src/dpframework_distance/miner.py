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
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

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
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, Laplace, Mechanism, PermuteAndFlip
from dpframework.plan import Node, either, post, repeat, sequential, step
from dpframework.run import Example, Miner, PrivateTable
from dpframework_distance.contexts import above_the_mean, entropy_of, relevant_not_redundant, su_matrix
from dpframework_distance.distances import LearnedDistances, ValueDistances
from dpframework_distance.estimates import (
    NoisyPair,
    as_published,
    distances_between,
    histograms,
    noise_variance,
    points_from,
    shrunk,
)
from dpframework_distance.queries import (
    CommonContextScores,
    ConditionalEntropies,
    ContextScores,
    Entropies,
    PairCounts,
)
from dpframework_distance.sensitivities import RowBounds
from dpframework_distance.subsets import require_few_cells

CONTEXTS = ("max-dependency", "max-relevance", "mean-su", "common", "baseline")
SIZED = ("max-dependency", "max-relevance", "common")
SELECTIONS = ("permute-and-flip", "exponential")
SENSITIVITIES = ("tight", "published")
ESTIMATES = ("shrunk", "published")
MOST_RUNGS = 32  # about, of a ladder without large steps
LARGEST_STEP = 1.1


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
        learning = _Resolved.resolved(self, schema)
        if not learning.apart:
            return sequential(*learning.part(learning.targets, Fraction(1)))
        each = Fraction(1, len(learning.targets))
        return sequential(
            *(sequential(*learning.part([target], each), name=learning.scope(target)) for target in learning.targets)
        )

    def mine(self, table: PrivateTable) -> LearnedDistances:
        """Make the releases, and turn them into distances by post-processing."""
        learning = _Resolved.resolved(self, table.schema)
        if not learning.apart:
            contexts, released = learning.released(table, learning.targets)
            return learning.distances(contexts, dict.fromkeys(learning.targets, released))
        of_target = {t: learning.released(table.scope(learning.scope(t)), [t]) for t in learning.targets}
        return learning.distances(
            {t: contexts[t] for t, (contexts, _) in of_target.items()},
            {t: released for t, (_, released) in of_target.items()},
        )


@attrs.frozen
class _Budget:
    """What there is to spend, and the mechanisms that spend a share of it."""

    amount: Fraction
    zcdp: bool
    exponential: bool

    def selector(self, share: Fraction) -> Mechanism:
        """Return the mechanism that selects at that share of the budget."""
        if self.zcdp:  # a selection of epsilon costs epsilon**2 / 8
            return Exponential(_root_below(8 * self.amount * share))
        return Exponential(self.amount * share) if self.exponential else PermuteAndFlip(self.amount * share)

    def counter(self, share: Fraction) -> Mechanism:
        """Return the mechanism that releases a histogram."""
        return Gaussian(self.amount * share) if self.zcdp else DiscreteLaplace(self.amount * share)

    def measurer(self, share: Fraction) -> Mechanism:
        """Return the mechanism that releases real numbers."""
        return Gaussian(self.amount * share) if self.zcdp else Laplace(self.amount * share)


def _root_below(square: Fraction) -> Fraction:
    """Return a rational just below the square root."""
    scale = 10**12
    return Fraction(math.isqrt(square.numerator * scale**2 // square.denominator), scale)


@attrs.frozen(eq=False)
class _Resolved:
    """A miner's parameters, resolved on a schema; attributes and targets are positions in `among`.

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
    bounds
        What is public of the number of rows; None where no entropy is needed.
    budget
        What there is to spend.
    """

    miner: DPDilca
    schema: Schema
    among: tuple[Attribute, ...]
    targets: tuple[int, ...]
    bounds: RowBounds | None
    budget: _Budget

    @classmethod
    def resolved(cls, miner: DPDilca, schema: Schema) -> _Resolved:
        """Resolve, refusing what cannot be learned."""
        among, targets = attributes_and_targets(miner, schema)
        others = len(among) - 1
        sized = miner.context in SIZED
        chosen = miner.context != "baseline" and not (sized and miner.context_size == others)
        bounds = RowBounds.of(schema, published=miner.sensitivity == "published") if chosen else None
        alone = targets[0] if len(targets) == 1 else None
        require_few_cells(among, 2, alone if miner.context != "baseline" else None)
        if chosen and miner.context in ("max-dependency", "common"):
            require_few_cells(among, miner.context_size + 1, alone)
        zcdp = miner.rho is not None
        amount = miner.rho if miner.rho is not None else miner.epsilon
        assert amount is not None  # one of the two is given
        budget = _Budget(amount, zcdp, zcdp or miner.selection == "exponential")
        return cls(miner, schema, among, targets, bounds, budget)

    @property
    def apart(self) -> bool:
        """Whether each target is learned on its own, with an equal share of the budget."""
        alone = self.miner.context not in ("baseline", "common")
        return not self.miner.sharing and len(self.targets) > 1 and alone

    @property
    def sized(self) -> bool:
        """Whether every context has k attributes."""
        return self.miner.context in SIZED

    def scope(self, target: int) -> str:
        """Return the name of a target's scope."""
        return _plan_name(f"distances of {self.among[target].name}", target, self.among)

    def step_of(self, target: int) -> str:
        """Return the name of a target's selection."""
        return _plan_name(f"context of {self.among[target].name}", target, self.among)

    def alone(self, targets: Sequence[int]) -> int | None:
        """Return the only target, if it is the only one of the whole plan; None where histograms are of use to more."""
        return targets[0] if len(self.targets) == 1 and self.miner.context != "baseline" else None

    def part(self, targets: Sequence[int], share: Fraction) -> list[Node]:
        """Plan contexts and histograms of some targets, with a share of the budget."""
        spent = self.miner.context_share if self.bounds is not None else Fraction(0)
        selections = self.selections(targets, share * spent)
        counted = self.histograms(targets, share * (1 - spent), [name for name, _ in selections])
        nodes = [node for _, node in selections]
        return [*nodes, counted, post("distances", [_table(rung) for rung in self.rungs(targets)])]

    def selections(self, targets: Sequence[int], share: Fraction) -> list[tuple[str, Node]]:
        """Plan what contexts are chosen by, with the names of the steps."""
        if self.bounds is None:
            return []
        if self.miner.context == "mean-su":
            target = targets[0] if len(targets) == 1 else None
            return [("entropies", step("entropies", self.entropies(target), self.budget.measurer(share)))]
        if self.miner.context == "common":
            scores = CommonContextScores(self.among, self.miner.context_size, self.bounds)
            return [("common context", step("common context", scores, self.budget.selector(share)))]
        each = share / len(targets)
        return [(self.step_of(target), self.selection(target, each)) for target in targets]

    def selection(self, target: int, share: Fraction) -> Node:
        """Plan one target's selection: k attributes one after another, or k at once."""
        assert self.bounds is not None
        alone = len(self.targets) == 1
        name, size = self.step_of(target), self.miner.context_size
        if self.miner.context == "max-dependency":
            return step(name, ContextScores(self.among, target, size, self.bounds, alone), self.budget.selector(share))
        scores = ContextScores(self.among, target, 1, self.bounds, alone)
        return repeat(size, step(name, scores, self.budget.selector(share / size)))

    def rungs(self, targets: Sequence[int]) -> list[int]:
        """Return for what numbers of histograms the budget is dealt out; the smallest that suffices is taken.

        One histogram serves two targets that are in each other's contexts. How many are needed is known once contexts
        are: one branch of the plan a number, or, where there are many, a number at most a tenth larger.
        """
        number, others = len(targets), len(self.among) - 1
        all_pairs = math.comb(others + 1, 2)
        if self.miner.context == "baseline":
            return [all_pairs]
        if self.miner.context == "common" and self.bounds is not None:
            return [
                self.miner.context_size * (others + 1 - self.miner.context_size) + math.comb(self.miner.context_size, 2)
            ]
        least, most = (self.miner.context_size, self.miner.context_size) if self.sized else (1, others)
        low, high = max(least, -(-number * least // 2)), min(number * most, all_pairs)
        ratio = 1.0 if number == 1 else min(LARGEST_STEP, (high / low) ** (1 / MOST_RUNGS))
        rungs = [low]
        while rungs[-1] < high:
            rungs.append(min(max(rungs[-1] + 1, int(rungs[-1] * ratio)), high))
        return rungs

    def histograms(self, targets: Sequence[int], share: Fraction, uses: Sequence[str]) -> Node:
        """Plan the histograms of targets with their contexts: a branch a number of them."""
        query = PairCounts(self.among, self.alone(targets))
        branches = [
            repeat(rung, step(_table(rung), query, self.budget.counter(share / rung), uses=uses))
            for rung in self.rungs(targets)
        ]
        return branches[0] if len(branches) == 1 else either(*branches)

    def released(
        self, table: PrivateTable, targets: Sequence[int]
    ) -> tuple[dict[int, tuple[int, ...]], list[NoisyPair]]:
        """Release the contexts of some targets, and the histograms that they need."""
        if self.miner.context == "baseline":
            needed = [(a, b) for a in range(len(self.among)) for b in range(a + 1, len(self.among))]
            pairs = self.counted(table, needed, len(needed))
            su = self.su_of_pairs(pairs)
            return {target: relevant_not_redundant(su, target) for target in targets}, pairs
        contexts = self.contexts(table, targets)
        wanted = {(min(t, x), max(t, x)) for t, context in contexts.items() for x in context}
        rung = next(number for number in self.rungs(targets) if number >= len(wanted))
        return contexts, self.counted(table, sorted(wanted), rung)

    def contexts(self, table: PrivateTable, targets: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """Release the context of each target, by position."""
        position = {attribute.name: k for k, attribute in enumerate(self.among)}
        if self.miner.context == "mean-su":
            su = self.su_of_entropies(table, targets)
            return {target: above_the_mean(su, target) for target in targets}
        if self.bounds is None:  # k is the number of other attributes: there is nothing to choose
            return {t: tuple(k for k in range(len(self.among)) if k != t) for t in targets}
        if self.miner.context == "common":
            common = [position[name] for name in table.release("common context")]
            return {t: tuple(sorted(k for k in common if k != t)) for t in targets}
        chosen: dict[int, tuple[int, ...]] = {}
        for target in targets:
            names: tuple[str, ...] = ()
            if self.miner.context == "max-dependency":
                names = table.release(self.step_of(target))
            else:
                for _ in range(self.miner.context_size):
                    names += table.release(self.step_of(target), chosen=names)
            chosen[target] = tuple(sorted(position[name] for name in names))
        return chosen

    def su_of_entropies(self, table: PrivateTable, targets: Sequence[int]) -> np.ndarray[Any, Any]:
        """Release entropies, and return the symmetric uncertainties they make; 0 for pairs not asked for."""
        query = self.entropies(targets[0] if len(targets) == 1 else None)
        return su_matrix(*query.read(np.asarray(table.release("entropies"), dtype=np.float64)))

    def entropies(self, target: int | None) -> Entropies | ConditionalEntropies:
        """Return what symmetric uncertainties are made of: for one target, or for all."""
        assert self.bounds is not None
        query = Entropies if self.bounds.published else ConditionalEntropies
        return query(self.among, target, self.bounds)

    def su_of_pairs(self, pairs: Sequence[NoisyPair]) -> np.ndarray[Any, Any]:
        """Return the symmetric uncertainties of released histograms of all pairs."""
        position = {attribute.name: k for k, attribute in enumerate(self.among)}
        su = np.zeros((len(self.among), len(self.among)))
        for pair in pairs:
            known = np.maximum(pair.counts, 0)
            alone = np.array([entropy_of(known.sum(axis=1)), entropy_of(known.sum(axis=0))])
            joint = np.full((2, 2), entropy_of(known.ravel()))
            a, b = position[pair.first], position[pair.second]
            su[a, b] = su[b, a] = su_matrix(alone, joint)[0, 1]
        return su

    def counted(self, table: PrivateTable, wanted: Iterable[tuple[int, int]], rung: int) -> list[NoisyPair]:
        """Release histograms of pairs."""
        variance = noise_variance(table.calibration(_table(rung)))
        pairs = [(self.among[a].name, self.among[b].name) for a, b in wanted]
        return [
            NoisyPair(*pair, np.asarray(table.release(_table(rung), pair=pair), dtype=np.float64), variance)
            for pair in pairs
        ]

    def distances(
        self, contexts: Mapping[int, tuple[int, ...]], released: Mapping[int, Sequence[NoisyPair]]
    ) -> LearnedDistances:
        """Turn releases into distances: each target's own, and what all together say of single attributes."""
        every = list({id(pair): pair for pairs in released.values() for pair in pairs}.values())
        estimate = as_published
        if self.miner.estimates == "shrunk":
            estimate = functools.partial(shrunk, marginals=histograms(every, self.schema.rows))
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


def _table(rung: int) -> str:
    return f"histogram of {rung}" if rung > 1 else "histogram"


def _plan_name(text: str, position: int, among: Sequence[Attribute]) -> str:
    """Return a text as a name that a plan accepts; with the attribute's number where that changed it."""
    safe = re.sub(r"[^A-Za-z0-9 ._=+-]", "_", text)
    return safe if safe == text else f"{safe} ({position + 1} of {len(among)})".replace("(", "- ").replace(")", "")
