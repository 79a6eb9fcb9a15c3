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
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.basics import NoisyHistogram, OneWayMarginals
from dpframework.facts import Attribute
from dpframework.plan import Node, repeat, sequential, step
from dpframework.run import PrivateTable
from dpframework_tables.budgets import CHOOSE, MEASURE, TableBudget
from dpframework_tables.candidates import candidate_sets, room_for, tree_for
from dpframework_tables.junction import JunctionTree, Set
from dpframework_tables.model import TURNS, Measurement, Model, fit
from dpframework_tables.queries import ModelDistances, NamedMarginal
from dpframework_tables.round_steps import BLOCK, InBlock, InPlan
from dpframework_tables.sampling import sampled_rows

TREE_CHOOSE, ROUNDS_CHOOSE = Fraction(18, 100), Fraction(1, 10)  # of what one-way marginals leave
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

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of codes of the attributes."""
        return tuple(a.size for a in self.among)

    @property
    def times(self) -> int:
        """How many marginals are selected and measured."""
        if not self.sets:
            return 0
        return len(self.among) - 1 if self.name == "tree" else self.rounds

    @functools.cached_property
    def sets(self) -> list[Set]:
        """The marginals that may be selected."""
        if self.name == "tree":
            return list(itertools.combinations(range(len(self.among)), 2))
        if self.name == "independent":
            return []
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
        choose, measure = self._shares(1 - share)
        chosen = step(CHOOSE, distances, self.budget.selector(choose / times), uses=list(nodes))
        measured = step(MEASURE, marginal, self.budget.counter(measure / times), uses=[CHOOSE])
        return {**nodes, MEASURE: repeat(times, sequential(chosen, measured))}

    @property
    def _alone(self) -> OneWayMarginals:
        return OneWayMarginals(self.among, self.budget.zcdp)

    def _shares(self, left: Fraction) -> tuple[Fraction, Fraction]:
        """Return the shares of selections and of measurements."""
        choose = left * (TREE_CHOOSE if self.name == "tree" else ROUNDS_CHOOSE)
        return choose, left - choose

    def mine(self, table: PrivateTable) -> Model:
        """Make the releases, and fit the model."""
        alone = self._alone.release(table)
        rows = number_of_rows(alone, self.rows, self.most_rows)
        measured = [
            Measurement.beside((k,), one.counts, one.variance, np.full(len(one.counts), rows / len(one.counts)))
            for k, one in enumerate(alone)
        ]
        model = fit(JunctionTree.of(self.sizes, [one.of for one in measured]), measured, rows)
        if not self.times:
            return model
        return {"tree": self._tree, "rounds": self._rounds, "adaptive": self._adaptive}[self.name](table, model)

    def _tree(self, table: PrivateTable, model: Model) -> Model:
        """Select pairs that join two parts, measure each, and fit the model to all of them at the end."""
        sets, part, asks = self.sets, list(range(len(self.among))), InPlan(table)
        means = [model.marginal((k,)) for k in range(len(self.among))]
        flat, found = np.concatenate(means), list(model.measured)
        for _ in range(self.times):
            possible = tuple(k for k, (a, b) in enumerate(sets) if part[a] != part[b])
            one = self._positions(asks.choose(marginals=flat, possible=possible))
            found.append(self._measured(asks, one, np.outer(means[one[0]], means[one[1]]) / model.rows))
            joined = {part[a] for a in one}
            part = [min(joined) if p in joined else p for p in part]
        return fit(JunctionTree.of(self.sizes, [one.of for one in found]), found, model.rows, model)

    def _rounds(self, table: PrivateTable, model: Model) -> Model:
        """Make as many rounds as are planned."""
        for turn in range(self.times):
            most, last = self.max_cells * (turn + 1) / self.times, turn == self.times - 1
            model, _ = self._round(table, InPlan(table), model, most, TURNS if last else FEW_TURNS)
        return model

    def _adaptive(self, table: PrivateTable, model: Model) -> Model:
        """Make rounds until the block is spent, the last one with all that is left."""
        block, whole = table.spend(BLOCK), 1 - self.share
        cost, last = whole / self.rounds, False
        while not last:
            left = self.budget.left(block)
            last = left < 2 * cost
            cost = left if last else cost
            asks = InBlock(block, self.budget, cost * ROUNDS_CHOOSE, cost * (1 - ROUNDS_CHOOSE))
            most = float(self.max_cells * (whole - left + cost) / whole)
            model, told = self._round(table, asks, model, most, TURNS if last else FEW_TURNS)
            if not told:
                cost *= 4 if self.budget.zcdp else 2
        return model

    def _round(
        self, table: PrivateTable, asks: InPlan | InBlock, model: Model, most: float, turns: int
    ) -> tuple[Model, bool]:
        """Select and measure the marginal that the model describes worst, and fit; tell if it said more than noise."""
        known = [one.of for one in model.measured]
        noise = round(self.budget.size_of_noise(asks.calibration.variance))
        drawn, total = self._drawn(table, model), max(round(model.rows), 1)
        possible = tuple(room_for(self.sizes, self.sets, known, model.tree, most))
        one = self._positions(asks.choose(drawn=drawn, rows_meant=total, possible=possible, noise=noise))
        expected = _expected(model, one, drawn)
        new = self._measured(asks, one, expected)
        fitted = fit(tree_for(self.sizes, known, model.tree, one), [*model.measured, new], model.rows, model, turns)
        return fitted, float(np.abs(fitted.marginal(one) - expected).sum()) > noise * expected.size

    def _drawn(self, table: PrivateTable, model: Model) -> NDArray[Any]:
        """Return rows of the model, about as many as there are, in the smallest type."""
        number = min(max(round(model.rows), 1), MOST_DRAWN)
        found = sampled_rows(model, number, int(table.public_random().integers(2**63)))
        return found.astype(np.min_scalar_type(max(self.sizes) - 1))

    def _positions(self, names: Sequence[str]) -> Set:
        place = {a.name: k for k, a in enumerate(self.among)}
        return tuple(place[name] for name in names)

    def _measured(self, asks: InPlan | InBlock, one: Set, expected: Array) -> Measurement:
        counts = np.asarray(asks.measure(tuple(self.among[a].name for a in one)), dtype=np.float64)
        return Measurement.beside(one, counts.reshape(expected.shape), asks.calibration.variance, expected)


def _expected(model: Model, one: Set, drawn: NDArray[Any]) -> Array:
    """Return a marginal by the model, from rows drawn of it where no clique holds the marginal."""
    try:
        return model.marginal(one)
    except KeyError:
        shape = model.tree.shape(one)
        cell = np.ravel_multi_index(tuple(drawn[:, a].astype(np.int64) for a in one), shape)
        counts = np.bincount(cell, minlength=math.prod(shape)).reshape(shape)
        return np.asarray(counts * (model.rows / len(drawn)))


def number_of_rows(singles: Sequence[NoisyHistogram], rows: int | None, most: int | None) -> float:
    """Return the public number of rows, or else the mean of the marginals' sums, by their noise, at most `most`."""
    if rows is not None:
        return float(max(rows, 1))
    weights = np.array([1 / max(one.variance * len(one.counts), 1e-12) for one in singles])
    sums = np.array([one.counts.sum() for one in singles])
    found = float(weights @ sums / weights.sum())
    return max(found if most is None else min(found, most), 1.0)
