"""DP-DILCA's parameters on a schema, and the plan, the releases and the distances that follow from them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import attrs

from dpframework.facts import Attribute, InputError, Schema, named_once
from dpframework.plan import Node, post
from dpframework.run import PrivateTable
from dpframework_distance import auto_context, joint_histograms
from dpframework_distance.context_choice_steps import (
    AllOthers,
    Chosen,
    Common,
    MaxDependency,
    MaxRelevance,
    MeanSU,
    Selection,
    plan_name,
)
from dpframework_distance.context_selection import above_the_mean, relevant_not_redundant, su_of_histograms
from dpframework_distance.distance_budget import DistanceBudget
from dpframework_distance.distance_estimates import (
    NoisyPair,
    distances_between,
    marginals_from,
    points_from,
    published_estimate,
    shrunken_estimate,
)
from dpframework_distance.distance_model import DistanceModel
from dpframework_distance.pair_counts import PairCounts
from dpframework_distance.sensitivities import RowBounds
from dpframework_distance.subsets import require_few_cells, require_few_cells_of
from dpframework_distance.value_distances import LearnedDistances, ValueDistances

if TYPE_CHECKING:
    from dpframework_distance.miner import DPDilca

SIZED = ("max-dependency", "max-relevance", "common")
BASELINES = ("baseline", "baseline-mean-su")


@attrs.frozen(eq=False)
class DistanceLearner:
    """A miner's parameters, resolved on a schema.

    Attributes and targets are positions in `among`.

    Attributes
    ----------
    miner
        The parameters.
    schema
        The public facts about the table.
    among
        The attributes of the metric.
    targets
        The attributes whose values' distances are learned.
    selection
        The way in which contexts are chosen. None for a model, and for the baselines, which choose contexts by released
        histograms.
    budget
        The budget of the run.
    model
        The model from which distances are learned. None if contexts are chosen instead.
    """

    miner: DPDilca
    schema: Schema
    among: tuple[Attribute, ...]
    targets: tuple[int, ...]
    selection: Selection | None
    budget: DistanceBudget
    model: DistanceModel | None = None

    @classmethod
    def of(cls, miner: DPDilca, schema: Schema) -> DistanceLearner:
        """Resolve the parameters, and refuse those that nothing can be learned with."""
        among, targets = attributes_and_targets(miner, schema)
        zcdp = miner.rho is not None
        amount = miner.rho if miner.rho is not None else miner.epsilon
        assert amount is not None  # one of the two is given
        budget = DistanceBudget(amount, zcdp, zcdp or miner.selection == "exponential")
        edges = _edges_of(miner, schema, among, targets, budget)
        if edges is not None:
            size, profiles = miner.context_size, miner.profiles
            model = DistanceModel(schema, among, targets, edges, size, profiles, budget)
            return cls(miner, schema, among, targets, None, budget, model)
        chosen = attrs.evolve(miner, context="max-dependency") if miner.context == "auto" else miner
        return cls(chosen, schema, among, targets, _selection_of(chosen, schema, among, targets), budget)

    @property
    def apart(self) -> bool:
        """Whether each target is learned on its own, with an equal share of the budget."""
        alone = self.miner.context not in (*BASELINES, "common")
        return not self.miner.sharing and len(self.targets) > 1 and alone

    def scope(self, target: int) -> str:
        """Return the name of the scope that holds a target's releases."""
        return plan_name("distances", target, self.among)

    def part(self, targets: Sequence[int], share: Fraction) -> list[Node]:
        """Plan contexts and histograms of some targets, with a share of the budget."""
        spent, rungs = self.miner.context_share, self._rungs(targets)
        selections: Mapping[str, Node] = {}
        if self.selection is not None:
            selections = self.selection.plan(targets, self.budget, share * spent)
        left = share * (1 - spent) if selections else share
        # With a single target, only histograms of pairs with it are released, so others need not be counted.
        alone = next(iter(targets)) if len(self.targets) == 1 and self.selection is not None else None
        counted = joint_histograms.plan(PairCounts(self.among, alone), rungs, self.budget, left, list(selections))
        return [*selections.values(), counted, post("distances", [joint_histograms.step_of(rung) for rung in rungs])]

    def _rungs(self, targets: Sequence[int]) -> list[int]:
        """Return the numbers of histograms for which the plan has a branch (see `joint_histograms`)."""
        if self.selection is None:
            return [math.comb(len(self.among), 2)]
        return joint_histograms.rungs_between(*self.selection.least_and_most(len(targets)), every=len(targets) == 1)

    def release(self, table: PrivateTable, targets: Sequence[int]) -> tuple[Chosen, list[NoisyPair]]:
        """Release the contexts of some targets, and the histograms that they need."""
        rungs = self._rungs(targets)
        if self.selection is None:
            pairs = joint_histograms.release(
                table, self.among, itertools.combinations(range(len(self.among)), 2), rungs[0]
            )
            su = su_of_histograms(pairs, [attribute.name for attribute in self.among])
            choose = relevant_not_redundant if self.miner.context == "baseline" else above_the_mean
            return {target: choose(su, target) for target in targets}, pairs
        contexts = self.selection.release(table, targets)
        wanted = {(min(t, x), max(t, x)) for t, context in contexts.items() for x in context}
        rung = next(number for number in rungs if number >= len(wanted))
        return contexts, joint_histograms.release(table, self.among, sorted(wanted), rung)

    def distances(self, contexts: Chosen, released: Mapping[int, Sequence[NoisyPair]]) -> LearnedDistances:
        """Turn releases into distances. Marginals are estimated from all releases together."""
        every = list({id(pair): pair for pairs in released.values() for pair in pairs}.values())
        estimate = published_estimate
        if self.miner.estimates == "shrunk":
            estimate = functools.partial(shrunken_estimate, marginals=marginals_from(every, self.schema.rows))
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


def _edges_of(
    miner: DPDilca, schema: Schema, among: tuple[Attribute, ...], targets: tuple[int, ...], budget: DistanceBudget
) -> int | None:
    """Return the number of edges of a model, 0 without a context, or None for a published way to choose contexts."""
    if miner.context == "none":
        return 0
    if miner.context == "tree":
        require_few_cells(among, 2, None)
        return len(among) - 1
    if miner.context != "auto" or miner.as_published or miner.profiles:
        return None
    return auto_context.edges_or_contexts(among, targets, schema, budget, miner.context_size)


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
            "context 'common' is one context for all targets, and each needs an attribute other than itself; "
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
    """Return the way to choose contexts, or None for the baselines. Refuse more joint histograms than memory allows."""
    only = targets[0] if len(targets) == 1 else None
    if miner.context in BASELINES:
        require_few_cells(among, 2, None)
        return None
    if miner.context in SIZED and miner.context_size == len(among) - 1:
        require_few_cells(among, 2, only)
        return AllOthers(among)
    bounds = RowBounds.of(schema, published=miner.sensitivity == "published")
    require_few_cells(among, 2, only)
    if miner.context == "mean-su":
        return MeanSU(among, bounds)
    if miner.context == "common":
        require_few_cells(among, miner.context_size + 1, None)
        return Common(among, miner.context_size, bounds)
    if miner.context == "max-dependency":
        require_few_cells_of(among, miner.context_size + 1, targets)
        return MaxDependency(among, miner.context_size, bounds, only is not None)
    return MaxRelevance(among, miner.context_size, bounds, only is not None)
