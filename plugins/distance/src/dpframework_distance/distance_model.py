"""Distances that are learned from marginals alone (context "none") or from a forest of two-way tables ("tree").

The whole budget is spent once, for all targets. Without a context it goes to the marginals of the targets. With a tree
it goes to the marginals of all attributes, to selecting edges and to the joint histograms of the edges. Contexts and
distances are read off the model that these releases make (see `forest`).

A model knows of less dependence than there is. Along a path it knows only what the edges pass on, and of attributes in
different trees it knows nothing. Yet a context is chosen for what it tells about the target. So the distances are those
to be expected if P(y|x) varies about what the model says (see `distance_estimates.unsure`). Along an edge P(y|x) does
not vary. Where nothing is known, its variance is a share u of the largest possible variance, and along a longer path
half of that. A context that lacks attributes is filled up with attributes of which nothing is known. The more there
are in all, the more the best of them tell. So u is a 200th of their number, at most .15 (from Adult, Mushroom and Cmc;
docs/distances.md has other tables). If distances from the model are no more than noise, distances from shares alone are
taken, provided that these differ more (`signal_to_noise`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs

from dpframework.basics import NoisyHistogram, OneWayMarginals
from dpframework.facts import Attribute, Schema
from dpframework.plan import Node, post, sequential
from dpframework.run import PrivateTable
from dpframework_distance import auto_context, edges, joint_histograms, marginal_estimates, signal_to_noise
from dpframework_distance.distance_budget import DistanceBudget
from dpframework_distance.distance_estimates import (
    Array,
    Conditional,
    distances_between,
    points_of,
    points_of_profiles,
    unsure,
)
from dpframework_distance.forest import Forest, most_informative
from dpframework_distance.marginal_estimates import EstimatedRows
from dpframework_distance.pair_counts import PairCounts
from dpframework_distance.value_distances import LearnedDistances, ValueDistances

EDGES_SHARE = 1 - auto_context.TREE  # the share of the budget that selects edges
UNKNOWN = 0.005  # how much each attribute of the metric adds to u (see the module)
MOST_UNKNOWN = 0.15  # the largest u


@final
@attrs.frozen(eq=False)
class DistanceModel:
    """A way to learn distances from a model: its plan, its releases, and the distances that follow from them.

    Attributes
    ----------
    schema
        The public facts about the table.
    among
        The attributes of the metric.
    targets
        The positions of the attributes whose values' distances are learned.
    number
        The number of edges: 0 for marginals alone.
    size
        The most attributes of a context.
    profiles
        Whether values are compared by P(x|y) instead of P(y|x).
    budget
        The budget of the run.
    """

    schema: Schema
    among: tuple[Attribute, ...]
    targets: tuple[int, ...]
    number: int
    size: int
    profiles: bool
    budget: DistanceBudget

    def plan(self) -> Node:
        """Plan the marginals, then the edges and their joint histograms."""
        share = self._share if self.number else Fraction(1)
        nodes = self.alone.plan(self.budget.amount * share)
        if not self.number:
            return sequential(*nodes.values(), post("distances", list(nodes)))
        chosen = edges.plan(self.among, self.number, self.budget, EDGES_SHARE, list(nodes))
        left = 1 - share - EDGES_SHARE
        counted = joint_histograms.plan(PairCounts(self.among), [self.number], self.budget, left, [edges.STEP])
        uses = [*nodes, joint_histograms.step_of(self.number)]
        return sequential(*nodes.values(), chosen, counted, post("distances", uses))

    def mine(self, table: PrivateTable) -> LearnedDistances:
        """Make the releases, and read distances off the model."""
        alone = self.alone.release(table)
        rows = marginal_estimates.number_of_rows(alone, self.schema.rows)
        pairs = {}
        if self.number:
            means = [marginal_estimates.estimate_rows(one, rows).mean for one in alone]
            chosen = edges.release(table, self.among, self.number, means)
            pairs = dict(zip(chosen, joint_histograms.release(table, self.among, chosen, self.number), strict=True))
        for (a, b), pair in pairs.items():
            for k in (a, b):
                alone[k] = alone[k].with_another(NoisyHistogram(*pair.marginal(self.among[k].name)))
        known = [marginal_estimates.estimate_rows(one, rows) for one in alone]
        forest = Forest.of([one.mean for one in known], pairs)
        attributes = self._attributes
        targets = self.targets if self.number else range(len(attributes))
        others = signal_to_noise.redraw(forest, pairs) if pairs else []
        learned = {attributes[t].name: self._beyond_noise(t, forest, others, known[t], alone[t]) for t in targets}
        return LearnedDistances(self.schema.select([a.name for a in attributes]), learned)

    @property
    def _share(self) -> Fraction:
        """The share of the budget that a tree's marginals get."""
        rows = self.schema.rows if self.schema.rows is not None else self.schema.max_rows
        return auto_context.share_of_marginals([attribute.size for attribute in self.among], rows, self.budget)

    @property
    def _attributes(self) -> tuple[Attribute, ...]:
        """All attributes, or only the targets if there is no context."""
        return self.among if self.number else tuple(self.among[t] for t in self.targets)

    @property
    def alone(self) -> OneWayMarginals:
        """The one-way marginals of all attributes, or only of the targets if there is no context."""
        return OneWayMarginals(self._attributes, self.budget.zcdp, self.schema.rows)

    def _beyond_noise(
        self, target: int, forest: Forest, others: Sequence[Forest], known: EstimatedRows, histogram: NoisyHistogram
    ) -> ValueDistances:
        """Return distances from the model, or from shares alone if `signal_to_noise` says that the model is noise."""
        found, shares = self._distances(target, forest, known), known.mean / known.mean.sum()
        again = []
        if found.context and len(shares) > 2:
            again = [self._distances(target, other, known).matrix for other in others]
        if again and signal_to_noise.is_noise(found.matrix, again):
            alone = self._distances(target, Forest(forest.marginals, {}), known)
            if signal_to_noise.spread(alone.matrix**2) > signal_to_noise.spread(found.matrix**2):
                found = alone
        if not found.context and len(shares) > 2:
            model = Forest(forest.marginals, {})
            redrawn = marginal_estimates.redraw_estimates(histogram, known, signal_to_noise.DRAWS)
            again = [self._distances(target, model, one).matrix for one in redrawn]
        return attrs.evolve(found, shares=shares, signal=signal_to_noise.signal_in(found.matrix, again))

    def _distances(self, target: int, forest: Forest, known: EstimatedRows) -> ValueDistances:
        tables = forest.tables_with(target)
        context = most_informative(tables, self.size)
        names = tuple(self.among[k].name for k in context)
        if self.profiles and context:
            points = points_of_profiles([_shares(tables[k].T) for k in context])
        else:
            found = [_shares(tables[k], 0 if forest.is_edge(target, k) else self._unknown / 2) for k in context]
            points = points_of([*found, *self._rest(known, len(context))])
        return ValueDistances(self._attributes[target], names, distances_between(points))

    @property
    def _unknown(self) -> float:
        """The share u of what P(y|x) could vary by, where nothing is known about it (see the module)."""
        return min(UNKNOWN * len(self.among), MOST_UNKNOWN)

    def _rest(self, known: EstimatedRows, found: int) -> list[Conditional]:
        """Return the expected conditionals of the attributes that a context lacks, for attributes of average size."""
        lacking = min(self.size, len(self.among) - 1) - found
        if lacking <= 0:
            return []
        columns = round(lacking * sum(attribute.size for attribute in self.among) / len(self.among))
        return [marginal_estimates.shares_in_unknown(known, columns, self._unknown)]


def _shares(table: Array, unknown: float = 0) -> Conditional:
    """Return the shares P(y|x) in each column x of a table that has the values y in rows."""
    shares = table / table.sum(axis=0).clip(1e-300)
    return unsure(shares, 0 * shares, unknown)
