"""The ways to choose which marginals are measured: planned, and released.

- **independent**: the one-way marginals get the whole budget.
- **tree** (McKenna, Miklau and Sheldon 2021, MST): d - 1 times a pair of attributes that joins two parts is selected
  by its distance from the product of the released one-way marginals, and measured; so the pairs make a tree.
- **rounds** (as Liu, Vietri and Wu 2021, and McKenna and others 2022, but with a fixed number of rounds): each round
  selects the marginal that the model so far describes worst, measures it, and fits the model again.
- **adaptive** (McKenna and others 2022, AIM): the same in a block, which is spent as the releases say: rounds begin
  small, and the next ones cost more whenever a measurement says no more than its noise.

What a selection is given follows from releases and from public randomness, so that its sensitivity is 1 (see
`queries.ModelDistances`). Which marginals may be selected follows from sizes and earlier selections.
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
from dpframework_tables.budgets import CHOOSE, MEASURE, TableBudget
from dpframework_tables.candidates import candidate_sets, join_parts, rank, room_for, tree_for
from dpframework_tables.junction import JunctionTree, Set
from dpframework_tables.merged_model import MergedModel
from dpframework_tables.merging import Merging
from dpframework_tables.model import TURNS, Measurement, Model, fit
from dpframework_tables.queries import ModelDistances, NamedMarginal
from dpframework_tables.round_steps import BLOCK, InBlock, InPlan
from dpframework_tables.row_number import number_of_rows
from dpframework_tables.sampling import sample_rows

TREE_CHOOSE, ROUNDS_CHOOSE = Fraction(18, 100), Fraction(1, 10)  # of what one-way marginals leave
MORE, AGAIN = "more rounds", "one-way marginals again"
_TRIED = 8  # the first stage of rounds is one part in so many
FEW_TURNS = 8  # of a fit between rounds
MOST_DRAWN = 200_000  # rows of a model that are compared with the table


Array: TypeAlias = "NDArray[np.float64]"


# Not slotted: the cached property needs an instance dictionary.
@final
@attrs.frozen(eq=False, slots=False)
class TableMethod:
    """A way to make a model, over some attributes.

    Attributes
    ----------
    name
        "independent", "tree", "rounds" or "adaptive".
    among
        The attributes, of two codes or more each.
    budget
        The budget.
    share
        The share of the budget, for one-way marginals before rounds or the pairs of a tree.
    rounds
        How many marginals are measured after the one-way ones, by "rounds"; by "adaptive", the part of the block that a
        round costs at first is 1 in so many.
    order
        The most attributes of a marginal, by "rounds".
    max_cells
        The most cells of the junction tree.
    most_cells
        The most cells of a marginal that rounds may select, unless no pair has as few; None for any number.
    rows
        The public number of rows, if there is one.
    most_rows
        The most rows that there may be, if that is public.
    about_rows
        About how many rows there are, if that is said.
    given_back
        Of how many of the rounds one-way marginals get the budget, after the others: fewer than all of them.
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
        """How many marginals are selected and measured."""
        if not self.sets:
            return 0
        asked = self.rounds - self.given_back
        return min(rank(len(self.among), self.sets), asked) if self.name == "tree" else asked

    @functools.cached_property
    def sets(self) -> list[Set]:
        """The marginals that may be selected."""
        if self.name == "independent" or len(self.among) < 2:
            return []
        if self.name == "tree":  # all its pairs fit together
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
        choose, measure = self._shares(cost)
        chosen = step(CHOOSE, distances, self.budget.selector(choose), uses=list(nodes))
        measured = step(MEASURE, marginal, self.budget.counter(measure), uses=[CHOOSE])
        stages = self._stages(sequential(chosen, measured), self.stages, cost)
        return {**nodes, **stages}

    @property
    def stages(self) -> list[int]:
        """How many rounds are made before each point where one-way marginals may get the rest instead: ever more.

        All pairs of a tree are compared with the same one-way marginals, and the most distant is selected first. So a
        tree's first stage is that pair alone: where it is noise, those after it are, too.
        """
        found: list[int] = []
        left = self.times
        first = 1 if self.name == "tree" else -(-self.rounds // _TRIED)
        while left:
            found.append(min(left, first << len(found)))
            left -= found[-1]
        return found

    def _stages(self, one: Node, sizes: Sequence[int], cost: Fraction) -> dict[str, Node]:
        """Plan stages of rounds that cost a share of the budget each, or after any of them one-way marginals again."""
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

    def _shares(self, cost: Fraction) -> tuple[Fraction, Fraction]:
        """Return the shares of the selection and the measurement of a round that has a share of the budget."""
        choose = cost * (TREE_CHOOSE if self.name == "tree" else ROUNDS_CHOOSE)
        return choose, cost - choose

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
        """Make rounds, and release one-way marginals with what is left after them.

        Rounds end sooner once a stage says no more than noise. Returned are the one-way marginals, with what was
        released again.
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
        """Select pairs that join two parts, measure each, and fit the model to all of them at the end."""
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
        """Make as many rounds as are planned."""
        now = first.model

        def one_round(asks: InPlan, turn: int) -> Measurement:
            nonlocal now
            most, last = self.max_cells * (turn + 1) / self.times, turn == self.times - 1
            now = self._round(table, asks, first, now, most, TURNS if last else FEW_TURNS)
            return now.measured[-1]

        after = self._in_stages(table, first, one_round)
        if after is first:
            return first.with_model(now)
        return self._fit_again(after, now.measured[len(self.among) :])

    def _adaptive(self, table: PrivateTable, first: MergedModel) -> MergedModel:
        """Make rounds until the block is spent, the last one with all that is left."""
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
        return first.with_model(model)

    def _round(
        self, table: PrivateTable, asks: InPlan | InBlock, first: MergedModel, model: Model, most: float, turns: int
    ) -> Model:
        """Select and measure the marginal that the model describes worst, and fit."""
        known, sizes = [one.of for one in model.measured], model.tree.sizes
        noise = round(self.budget.size_of_noise(asks.calibration.variance))
        drawn, total = self._draw(table, model), round(model.rows)
        possible = tuple(room_for(sizes, self.sets, known, model.tree, most))
        one = self._positions(asks.choose(drawn=drawn, rows_meant=total, possible=possible, noise=noise))
        new = self._measure(asks, one, _expect(model, one, drawn), model)
        tree = tree_for(sizes, known, model.tree, one)
        measured = [*model.measured, new]
        return fit(tree, measured, self._count(first.alone, measured[len(self.among) :]), model, turns)

    def _fit_again(self, alone: MergedModel, several: Sequence[Measurement]) -> MergedModel:
        """Return the model of one-way marginals and those of several attributes."""
        measured = [*alone.model.measured, *several]
        tree = JunctionTree.of(alone.merging.sizes, [one.of for one in measured])
        return alone.with_model(fit(tree, measured, self._count(alone.alone, several), alone.model))

    def _count(self, alone: Sequence[NoisyHistogram], several: Sequence[Measurement]) -> float:
        """Return the number of rows by all that was measured.

        A model scales what each table says by it. So an error of it is one of all shares, the larger the less even they
        are, and each table that is measured makes it smaller.
        """
        sums = [Noisy(float(one.counts.sum()), one.variance * one.counts.size) for one in several]
        return number_of_rows([self._alone.total(alone), *sums], self.rows, self.most_rows, self.about_rows)

    def _draw(self, table: PrivateTable, model: Model) -> NDArray[Any]:
        """Return rows of the model, about as many as there are, in the smallest type."""
        number = min(round(model.rows), MOST_DRAWN)
        found = sample_rows(model, number, int(table.public_random().integers(2**63)))
        return found.astype(np.min_scalar_type(max(self.sizes) - 1))

    def _positions(self, names: Sequence[str]) -> Set:
        place = {a.name: k for k, a in enumerate(self.among)}
        return tuple(place[name] for name in names)

    def _measure(self, asks: InPlan | InBlock, one: Set, expected: Array, model: Model) -> Measurement:
        counts = np.asarray(asks.measure(tuple(self.among[a].name for a in one)), dtype=np.float64)
        return Measurement.of_several(one, counts.reshape(expected.shape), asks.calibration.variance, expected, model)


def _expect(model: Model, one: Set, drawn: NDArray[Any]) -> Array:
    """Return a marginal by the model, from rows drawn of it where no clique holds the marginal."""
    try:
        return model.marginal(one)
    except KeyError:
        shape = model.tree.shape(one)
        cell = np.ravel_multi_index(tuple(drawn[:, a].astype(np.int64) for a in one), shape)
        counts = np.bincount(cell, minlength=math.prod(shape)).reshape(shape)
        return np.asarray(counts * (model.rows / len(drawn)))
