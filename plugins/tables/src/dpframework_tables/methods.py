"""The methods by which marginals are chosen and measured, with their plans and their releases.

- **independent**: the one-way marginals get the whole budget.
- **tree** (McKenna, Miklau and Sheldon 2021, MST): up to d - 1 times, a pair of attributes that joins two trees of a
  forest is selected by its distance from the product of the released one-way marginals, and measured. So the pairs form
  a tree.
- **rounds** (as Liu, Vietri and Wu 2021, and McKenna and others 2022, but with a fixed number of rounds): each round
  selects the marginal that the model so far describes worst, measures it, and fits the model again.
- **adaptive** (McKenna and others 2022, AIM): the same in a spend block, in which rounds depend on releases. The first
  rounds are cheap, and later ones cost more whenever a measurement says no more than its noise.

The inputs of a selection follow from releases and from public randomness, so its sensitivity is 1, or 2 if a row is
replaced (see `queries.ModelDistances`). The marginals that may be selected follow from public sizes and earlier
selections.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.basics import NoisyHistogram, OneWayMarginals
from dpframework.facts import Attribute
from dpframework.plan import Node, either, repeat, sequential, step
from dpframework.results import Noisy
from dpframework.run import PrivateTable
from dpframework_tables.candidates import candidate_sets, join_parts, rank, room_for, tree_for
from dpframework_tables.junction import JunctionTree, Set
from dpframework_tables.merged_model import MergedModel
from dpframework_tables.merging import Merging
from dpframework_tables.model import TURNS, Measurement, Model, fit
from dpframework_tables.queries import ModelDistances, NamedMarginal
from dpframework_tables.round_steps import BLOCK, InBlock, InPlan
from dpframework_tables.row_number import number_of_rows
from dpframework_tables.sampling import sample_rows
from dpframework_tables.table_budget import CHOOSE, MEASURE, TableBudget

# The share of a round's budget that goes to its selection.
TREE_CHOOSE, ROUNDS_CHOOSE = Fraction(18, 100), Fraction(1, 10)
MORE, AGAIN = "more rounds", "one-way marginals again"  # the two branches of a plan after a stage of rounds
_STAGE_DIVISOR = 8  # the first stage has the number of all rounds divided by this, rounded up
FEW_TURNS = 8  # the most turns of each fit between rounds
MOST_DRAWN = 200_000  # the most rows of a model that are compared with the table


Array: TypeAlias = "NDArray[np.float64]"


# Not slotted: the cached property needs an instance dictionary.
@final
@attrs.frozen(eq=False, slots=False)
class TableMethod:
    """A method on some attributes: it plans the releases, makes them, and fits a model to them.

    Attributes
    ----------
    name
        "independent", "tree", "rounds" or "adaptive".
    among
        The attributes, each with two or more codes.
    budget
        The budget of the run.
    share
        The share of the budget for the one-way marginals that are released before all other marginals.
    rounds
        With "rounds", the number of rounds, including those whose budget is given back. Each measures one marginal.
        With "tree", the largest number of pairs that are measured. With "adaptive", a round at first costs the cap of
        the block divided by this number.
    order
        The most attributes of a marginal in rounds.
    max_cells
        The most cells of the junction tree.
    most_cells
        The most cells of a marginal that rounds may select, but at least those of the smallest pair. None for any
        number.
    rows
        The public number of rows, None if there is none.
    most_rows
        The largest number of rows that is possible, None if it is not public.
    about_rows
        The declared approximate number of rows, None if there is none.
    given_back
        The number of rounds whose budget goes to one-way marginals, after the other rounds. It is less than `rounds`.
    """

    name: str
    among: tuple[Attribute, ...]
    budget: TableBudget
    share: Fraction
    rounds: int
    order: int
    max_cells: int
    most_cells: int | None
    rows: int | None
    most_rows: int | None
    about_rows: int | None
    given_back: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of codes of the attributes."""
        return tuple(a.size for a in self.among)

    @property
    def times(self) -> int:
        """How many marginals of several attributes are selected and measured if rounds neither end early nor adapt."""
        if not self.sets:
            return 0
        asked = self.rounds - self.given_back
        return min(rank(len(self.among), self.sets), asked) if self.name == "tree" else asked

    @functools.cached_property
    def sets(self) -> list[Set]:
        """The marginals that may be selected, each as positions of attributes."""
        if self.name == "independent" or len(self.among) < 2:
            return []
        if self.name == "tree":  # with this limit all pairs of a tree have room together
            left = max(self.max_cells - sum(self.sizes), 0)
            return candidate_sets(self.sizes, 2, left // (len(self.among) - 1))
        smallest = math.prod(sorted(self.sizes)[:2])
        largest = self.max_cells if self.most_cells is None else min(self.max_cells, max(self.most_cells, smallest))
        sets = candidate_sets(self.sizes, self.order, largest)
        alone = [(a,) for a in range(len(self.among))]
        most = self.max_cells / self.rounds
        return sets if room_for(self.sizes, sets, alone, JunctionTree.of(self.sizes, alone), most) else []

    def plan(self) -> dict[str, Node]:
        """Plan the releases, by the names of their nodes."""
        times = self.times
        if not times:
            return {**self._alone.plan(self.budget.amount)}
        share, sets = self.share, self.sets
        nodes = self._alone.plan(self.budget.amount * share)
        most = max(math.prod(self.sizes[a] for a in one) for one in sets)
        distances, marginal = ModelDistances(self.among, sets), NamedMarginal(self.among, most)
        if self.name == "adaptive":
            return {**nodes, BLOCK: self.budget.block(BLOCK, distances, marginal, 1 - share)}
        cost = (1 - share) / (times + self.given_back)
        choose = cost * (TREE_CHOOSE if self.name == "tree" else ROUNDS_CHOOSE)
        chosen = step(CHOOSE, distances, self.budget.selector(choose), uses=list(nodes))
        measured = step(MEASURE, marginal, self.budget.counter(cost - choose), uses=[CHOOSE])
        stages = self._stages(sequential(chosen, measured), self.stages, cost)
        return {**nodes, **stages}

    @property
    def stages(self) -> list[int]:
        """The number of rounds in each stage. After a stage, one-way marginals may get the rest of the budget.

        Each stage is twice as long as the one before, except for the last.

        All pairs of a tree are compared with the same one-way marginals, and the most distant pair is selected first.
        So a tree's first stage is one pair: if this pair is only noise, the later ones are too.
        """
        found: list[int] = []
        left = self.times
        first = 1 if self.name == "tree" else -(-self.rounds // _STAGE_DIVISOR)
        while left:
            found.append(min(left, first << len(found)))
            left -= found[-1]
        return found

    def _stages(self, one: Node, sizes: Sequence[int], cost: Fraction) -> dict[str, Node]:
        """Plan stages of rounds that cost a share of the budget each. One-way marginals may replace later stages."""
        first: dict[str, Node] = {MEASURE: repeat(sizes[0], one)}
        left = sum(sizes[1:]) + self.given_back
        if not left:
            return first
        again = sequential(*self._alone.plan(self.budget.amount * cost * left).values(), name=AGAIN)
        if not sizes[1:]:
            return {**first, AGAIN: again}
        more = self._stages(one, sizes[1:], cost)
        return {**first, MORE: either(sequential(*more.values(), name=MORE), again)}

    @property
    def _alone(self) -> OneWayMarginals:
        return OneWayMarginals(self.among, self.budget.zcdp, self.rows)

    def mine(self, table: PrivateTable) -> MergedModel:
        """Make the releases, and fit the model."""
        alone = self._alone.release(table)
        rows = self._count(alone, [])
        if not self.times:
            return MergedModel.of_alone(alone, Merging.none(self.sizes), rows)
        merging = Merging.of_rare([one.counts for one in alone], [math.sqrt(one.variance) for one in alone])
        first = MergedModel.of_alone(alone, merging, rows)
        by_name = {"tree": self._tree, "rounds": self._rounds, "adaptive": self._adaptive}
        return by_name[self.name](table, first)

    def _in_stages(
        self, table: PrivateTable, first: MergedModel, one_round: Callable[[InPlan, int], Measurement]
    ) -> MergedModel:
        """Make rounds in stages, then release one-way marginals again with the budget that is left.

        Rounds end early once no measurement of a stage says more than its noise. The result is the model of one-way
        marginals, made more exact by their second release if there was one.
        """
        found: list[Measurement] = []
        for size in self.stages:
            table = table.scope(MORE) if found else table
            found += [one_round(InPlan(table, first.merging), len(found) + k) for k in range(size)]
            more = len(found) < self.times
            if not any(one.is_more_than_noise for one in found[-size:]) if more else self.given_back:
                again = self._alone.release(table.scope(AGAIN))
                means = [one.with_another(new) for one, new in zip(first.alone, again, strict=True)]
                return first.with_more(means, found, self._count(means, found))
        return first

    def _tree(self, table: PrivateTable, first: MergedModel) -> MergedModel:
        """Select and measure pairs that each join two trees of a forest, and at the end fit the model to all pairs."""
        model = first.model
        sets, part = self.sets, list(range(len(self.among)))
        means = [model.marginal((k,)) for k in range(len(self.among))]
        flat, found = np.concatenate(means), list(model.measured)

        def one_round(asks: InPlan, _: int) -> Measurement:
            possible = tuple(k for k, (a, b) in enumerate(sets) if part[a] != part[b])
            one = self._positions(asks.choose(marginals=flat, possible=possible))
            found.append(self._measure(asks, one, np.outer(means[one[0]], means[one[1]]) / model.rows, model))
            part[:] = join_parts(part, one)
            return found[-1]

        after = self._in_stages(table, first, one_round)
        return self._fit_again(after, found[len(self.among) :])

    def _rounds(self, table: PrivateTable, first: MergedModel) -> MergedModel:
        """Make the planned rounds, and fit the model again if one-way marginals were released a second time."""
        now = first.model

        def one_round(asks: InPlan, turn: int) -> Measurement:
            nonlocal now
            most, last = self.max_cells * (turn + 1) / self.times, turn == self.times - 1
            now = self._round(table, asks, first, now, most, TURNS if last else FEW_TURNS)
            return now.measured[-1]

        after = self._in_stages(table, first, one_round)
        if after is first:
            return attrs.evolve(first, model=now)
        return self._fit_again(after, now.measured[len(self.among) :])

    def _adaptive(self, table: PrivateTable, first: MergedModel) -> MergedModel:
        """Make rounds until the cap of the block is spent. The last round gets all that is left."""
        model = first.model
        block, whole = table.spend(BLOCK), 1 - self.share
        cost, last = whole / self.rounds, False
        while not last:
            left = self.budget.left(block)
            last = left < 2 * cost
            cost = left if last else cost
            asks = InBlock(block, self.budget, cost * ROUNDS_CHOOSE, cost * (1 - ROUNDS_CHOOSE), first.merging)
            most = float(self.max_cells * (whole - left + cost) / whole)
            model = self._round(table, asks, first, model, most, TURNS if last else FEW_TURNS)
            if not model.measured[-1].is_more_than_noise:
                cost *= 4 if self.budget.zcdp else 2
        return attrs.evolve(first, model=model)

    def _round(
        self, table: PrivateTable, asks: InPlan | InBlock, first: MergedModel, model: Model, most: float, turns: int
    ) -> Model:
        """Select and measure the marginal that the model describes worst, and fit the model to it too."""
        known, sizes = [one.of for one in model.measured], model.tree.sizes
        noise = round(self.budget.size_of_noise(asks.calibration.variance))
        total = round(model.rows)
        # Rows of the model stand for its marginals that no clique holds. They have the smallest integer type.
        drawn = sample_rows(model, min(total, MOST_DRAWN), int(table.public_random().integers(2**63)))
        drawn = drawn.astype(np.min_scalar_type(max(self.sizes) - 1))
        possible = tuple(room_for(sizes, self.sets, known, model.tree, most))
        one = self._positions(asks.choose(drawn=drawn, rows_meant=total, possible=possible, noise=noise))
        new = self._measure(asks, one, _expect(model, one, drawn), model)
        tree = tree_for(sizes, known, model.tree, one)
        measured = [*model.measured, new]
        return fit(tree, measured, self._count(first.alone, measured[len(self.among) :]), model, turns)

    def _fit_again(self, alone: MergedModel, several: Sequence[Measurement]) -> MergedModel:
        """Return the model, fitted to one-way marginals and to marginals of several attributes."""
        measured = [*alone.model.measured, *several]
        tree = JunctionTree.of(alone.merging.sizes, [one.of for one in measured])
        return attrs.evolve(alone, model=fit(tree, measured, self._count(alone.alone, several), alone.model))

    def _count(self, alone: Sequence[NoisyHistogram], several: Sequence[Measurement]) -> float:
        """Return the number of rows, estimated from all measurements.

        A model scales every measured table to this number. So an error of this number makes all shares wrong, the more
        so the less even the shares are. Each table that is measured makes the error smaller.
        """
        sums = [Noisy(float(one.counts.sum()), one.variance * one.counts.size) for one in several]
        return number_of_rows([self._alone.total(alone), *sums], self.rows, self.most_rows, self.about_rows)

    def _positions(self, names: Sequence[str]) -> Set:
        place = {a.name: k for k, a in enumerate(self.among)}
        return tuple(place[name] for name in names)

    def _measure(self, asks: InPlan | InBlock, one: Set, expected: Array, model: Model) -> Measurement:
        counts = np.asarray(asks.measure(tuple(self.among[a].name for a in one)), dtype=np.float64)
        return Measurement.of_several(one, counts.reshape(expected.shape), asks.calibration.variance, expected, model)


def _expect(model: Model, one: Set, drawn: NDArray[Any]) -> Array:
    """Return the marginal that the model expects, or its estimate from drawn rows if no clique holds the marginal."""
    try:
        return model.marginal(one)
    except KeyError:
        shape = model.tree.shape(one)
        cell = np.ravel_multi_index(tuple(drawn[:, a].astype(np.int64) for a in one), shape)
        counts = np.bincount(cell, minlength=math.prod(shape)).reshape(shape)
        return np.asarray(counts * (model.rows / len(drawn)))
