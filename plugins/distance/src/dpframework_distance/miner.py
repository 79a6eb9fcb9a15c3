"""DP-DILCA learns distances between the values of categorical attributes from other attributes.

Source: Battaglia, Celano and Pensa, "Differentially Private Distance Learning in Categorical Data" (2021). Claim: pure
epsilon, or the rho of zCDP, without assumptions. Under replace-one the number of rows is public. Under
add-or-remove-one a public upper bound on it is needed (`max_rows`), for context selection only.

What differs from the paper by default, and why (`DPDilca.published` restores the paper's settings):

- scores of contexts with their exact sensitivity, half of the published one (see `sensitivities`);
- with a budget in epsilon, permute-and-flip, since the exponential mechanism is never better (McKenna and Sheldon
  2020);
- the joint histogram of two attributes is released once, though each may be in the other's context;
- symmetric uncertainties come from conditional entropies, so a pair takes two noisy numbers and not three;
- estimates are shrunk to allow for the noise, and distances add the variances of the estimates (see
  `distance_estimates`);
- where noise would hide what contexts tell, distances come from a forest of a few two-way tables, or from marginals
  alone (see `distance_model` and `auto_context`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.accountant import ZCDPAccountant
from dpframework.facts import (
    Amount,
    Boolean,
    ByRelation,
    Categorical,
    InputError,
    Numeric,
    Relation,
    Schema,
    between_0_and_1,
    list_of_names,
    one_of,
    positive,
    positive_rho,
    share_of_budget,
    true_or_false,
    whole_number,
)
from dpframework.plan import Node, PlannedPart, sequential
from dpframework.results import ErrorBound
from dpframework.run import Example, Miner, PrivateTable
from dpframework_distance.distance_learner import BASELINES, DistanceLearner
from dpframework_distance.value_distances import LearnedDistances

MODEL_CONTEXTS = ("tree", "none")
PUBLISHED = ("max-dependency", "max-relevance", "mean-su", "common", *BASELINES)
CONTEXTS = ("auto", *MODEL_CONTEXTS, *PUBLISHED)
SELECTIONS = ("permute-and-flip", "exponential")
SENSITIVITIES = ("tight", "published")
ESTIMATES = ("shrunk", "published")
NO_BOUND = "no bound on their error is known; they follow from counts, whose errors are known"


@final
@attrs.frozen
class DPDilca(Miner):
    """Distances between the values of categorical attributes, learned from contexts (Battaglia, Celano and Pensa 2021).

    Parameters
    ----------
    epsilon
        The budget of all distances together, as a pure epsilon. Give either this or `rho`.
    rho
        The budget in zCDP, for a study with a delta (see `zcdp`).
    target
        The attribute between whose values distances are learned. By default every attribute is a target.
    context
        How the context of a target is chosen, that is, the attributes from which its distances are learned. "auto"
        takes "max-dependency", "tree" (with fewer edges than a tree if there are few rows) or "none", whichever suits
        the budget, the number of rows and the attributes' sizes, which are public (see `auto_context`).

        "tree" makes a model of all attributes, from marginals and from the joint histograms of pairs that form a tree.
        A context holds the attributes that each say most about the target in this model. "none" learns without a
        context: the distance of two values is the difference between their shares of the rows, and these shares get the
        whole budget.

        The other ways are published. "max-dependency" chooses the attributes that together say most about the target,
        "max-relevance" those that each say most about it, and "mean-su" those with at least the mean symmetric
        uncertainty. "common" chooses one context for all targets: the attributes that together say most about all
        others. "baseline" and "baseline-mean-su" release all joint histograms first, and choose contexts from
        them, as the methods RR and M of DILCA do.
    context_size
        The number of attributes in a context. "mean-su" and the baselines find their own number.
    context_share
        The share of the budget that goes to choosing contexts. A baseline, or a context of all other
        attributes, leaves the whole budget to histograms. A tree has shares of its own.
    attributes
        The attributes to look at, as targets and in contexts. By default all of the schema's. An attribute with a
        single value is left out.
    selection
        "permute-and-flip" (the default with epsilon) or "exponential" (the only one with rho).
    sensitivity
        "tight", or "published" for the paper's sensitivity of scores, which is valid and about twice as large. With
        "published", "mean-su" releases joint entropies, as the paper does, and not conditional ones.
    sharing
        Whether a joint histogram or an entropy that two targets need is released once for both.
    estimates
        "shrunk" (see `distance_estimates`), or "published" for the shares that follow from the noisy counts alone.
    profiles
        Whether the distance of two values y compares P(x|y), the distribution of the context among rows with y. If not,
        it compares the paper's P(y|x), which also depends on how common y is (see `distance_estimates`). Both use the
        same releases.

    Examples
    --------
    >>> DPDilca(epsilon=1.0, target="city").context
    'auto'
    """

    name = "dp-dilca"
    result = LearnedDistances
    epsilon: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive))
    rho: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive_rho), kw_only=True)
    target: str | None = attrs.field(default=None, kw_only=True)
    context: str = attrs.field(default="auto", validator=one_of(CONTEXTS), kw_only=True)
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
        """Refuse two budgets or none, and parameters that do not go with each other."""
        if (self.epsilon is None) == (self.rho is None):
            raise InputError("dp-dilca needs a budget: give epsilon, or rho in a study with a delta")
        if self.rho is not None and self.selection == "permute-and-flip":
            raise InputError(
                "selection 'permute-and-flip' has no tighter bound in rho than in epsilon; take 'exponential'"
            )
        if self.context in MODEL_CONTEXTS and self.as_published:
            raise InputError(
                f"context '{self.context}' has one model for all targets; leave out sharing = false and the published "
                "sensitivity and estimates, or take context = 'max-dependency'"
            )
        if self.context == "none" and self.profiles:
            raise InputError("context 'none' has no profiles; take context = 'tree', or profiles = false")

    @property
    def as_published(self) -> bool:
        """Whether an option is set that applies only to the published ways of choosing contexts."""
        return not self.sharing or "published" in (self.sensitivity, self.estimates)

    @classmethod
    def published(cls, epsilon: Any, **changes: Any) -> DPDilca:
        """Return the miner with the paper's settings, except for the given parameters."""
        settings: dict[str, Any] = {
            "context": "max-dependency",
            "selection": "exponential",
            "sensitivity": "published",
            "sharing": False,
            "estimates": "published",
        }
        return cls(epsilon, **{**settings, **changes})

    @classmethod
    def zcdp(cls, epsilon: Amount, delta: Amount, **parameters: Any) -> DPDilca:
        """Return the miner with the largest rho that costs at most epsilon at delta.

        A study with this epsilon and delta has room for the miner, and reports the total in zCDP.

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
        """Return examples of the context selections, and of each option with a privacy argument of its own.

        "auto" and "baseline-mean-su" have none, since their releases are those of other selections.
        """
        from dpframework_distance.witnesses import (
            ALIKE,
            ATTRIBUTES,
            BOUND,
            CROWD,
            EIGHT,
            FEW,
            FEWEST,
            MANY,
            of_all_in_turn,
            of_all_targets,
            of_attributes,
            of_common_contexts,
            of_entropies,
            of_searches,
            published_ceiling,
        )

        age = Numeric("age", 0, 90, cuts=[40])
        attributes = [Boolean("ill"), Categorical("town", ["A", "B", "C"]), Boolean("smokes"), age]
        counted = Schema(attributes, rows=FEWEST)
        bounded, many = Schema(attributes, max_rows=BOUND), Schema(ATTRIBUTES, max_rows=MANY)
        found = {}
        found["tree"] = Example(counted, cls(2, context="tree"))
        found["none"] = Example(Schema(attributes[:3]), cls(2, context="none"))  # whatever the number of rows
        found["none-zcdp"] = attrs.evolve(found["none"], miner=cls(rho=2, context="none"), delta=Fraction(1, 10**6))
        common = cls(16, context="common", context_size=2)
        replaced = of_common_contexts(FEW)[1:]
        found["common"] = Example(Schema(ATTRIBUTES, rows=FEW), common, witnesses=replaced)
        for context in [c for c in PUBLISHED if c not in ("common", "baseline-mean-su")]:  # one baseline is enough
            miner = cls(2, target="town", context=context, context_size=2)
            found[context] = Example(counted, miner)
            if context != "baseline":  # a baseline releases the same for one target as for all, and as published
                published = cls.published(2, target="town", context=context, context_size=2)
                ceiling = published_ceiling(context, published.context_share, FEWEST)
                found[f"{context}-published"] = Example(counted, published, loose=ceiling)
                found[f"{context}-all"] = Example(counted, attrs.evolve(miner, target=None))
        found["add-or-remove"] = Example(bounded, cls(2, target="town", context="max-dependency", context_size=2))
        relevance = cls(6, target="town", context="max-relevance", context_size=2)
        found["add-or-remove-relevance"] = Example(many, relevance, witnesses=of_attributes())
        found["add-or-remove-common"] = Example(many, common, witnesses=of_common_contexts())
        found["add-or-remove-mean-su"] = Example(bounded, cls(2, target="town", context="mean-su"))
        for name, witnesses in of_searches().items():
            found[name] = attrs.evolve(found[name], witnesses=witnesses)
        for name, rows in (("mean-su", FEWEST), ("mean-su-all", FEWEST), ("add-or-remove-mean-su", BOUND)):
            entropies = of_entropies(rows, all_pairs=name.endswith("all"))
            found[name] = attrs.evolve(found[name], witnesses=entropies)
        alike = Schema(ALIKE, max_rows=CROWD)
        dependency = cls(32, context="max-dependency", context_size=2)
        found["max-dependency-all"] = Example(alike, dependency, witnesses=of_all_targets(2, "context of {}"))
        alone = cls(32, context_size=1, sharing=False)
        found["each-alone"] = Example(alike, alone, witnesses=of_all_targets(1, "distances of {0}/context of {0}"))
        relevance = cls(64, context="max-relevance", context_size=2)
        found["max-relevance-all"] = Example(Schema(EIGHT, max_rows=CROWD), relevance, witnesses=of_all_in_turn())
        return found

    def plan(self, schema: Schema) -> Node:
        """Plan a model, or else the selection of contexts and the joint histograms of targets with their contexts."""
        learner = DistanceLearner.of(self, schema)
        if learner.model is not None:
            return learner.model.plan()
        if not learner.apart:
            return sequential(*learner.part(learner.targets, Fraction(1)))
        each = Fraction(1, len(learner.targets))
        return sequential(
            *(sequential(*learner.part([target], each), name=learner.scope(target)) for target in learner.targets)
        )

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return an empty tuple, since only codes are read."""
        return ()

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the errors of the released counts and scores. For the distances, no bound is known."""
        distances = ErrorBound("distances", None, "", note=NO_BOUND, size=part.size)
        learner = None if part.schema is None else DistanceLearner.of(self, part.schema)
        alone = [] if learner is None or learner.model is None else learner.model.alone.error_bounds(part)
        return [distances, *alone, *part.bounds_of_others(alone)]

    def mine(self, table: PrivateTable) -> LearnedDistances:
        """Make the releases, and turn them into distances by post-processing."""
        learner = DistanceLearner.of(self, table.schema)
        if learner.model is not None:
            return learner.model.mine(table)
        if not learner.apart:
            contexts, released = learner.release(table, learner.targets)
            return learner.distances(contexts, dict.fromkeys(learner.targets, released))
        of_target = {t: learner.release(table.scope(learner.scope(t)), [t]) for t in learner.targets}
        return learner.distances(
            {t: contexts[t] for t, (contexts, _) in of_target.items()},
            {t: released for t, (_, released) in of_target.items()},
        )
