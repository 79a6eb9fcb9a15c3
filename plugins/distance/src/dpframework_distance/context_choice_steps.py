"""The ways to choose contexts, with the plan and the releases of each.

Attributes and targets are given as positions among the attributes that are looked at. Each attribute of a context needs
a joint histogram with the context's target. A selection also says how many histograms its contexts may need.
"""

from __future__ import annotations

import abc
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias, final

import attrs
import numpy as np

from dpframework.facts import Attribute
from dpframework.plan import Node, repeat, step
from dpframework.run import PrivateTable
from dpframework_distance.context_selection import above_the_mean, su_matrix
from dpframework_distance.distance_budget import DistanceBudget
from dpframework_distance.queries import CommonContextScores, ConditionalEntropies, ContextScores, Entropies
from dpframework_distance.sensitivities import RowBounds

#: The context of each target.
Chosen: TypeAlias = "dict[int, tuple[int, ...]]"


def plan_name(what: str, target: int, among: Sequence[Attribute]) -> str:
    """Return a target's name in a plan, which accepts few characters.

    A name that is changed gets the target's number.
    """
    text = f"{what} of {among[target].name}"
    safe = re.sub(r"[^A-Za-z0-9 ._=+-]", "_", text)
    return safe if safe == text else f"{safe} - {target + 1} of {len(among)}"


@attrs.frozen
class Selection(abc.ABC):
    """A way to choose contexts.

    Attributes
    ----------
    among
        The attributes that are looked at.
    """

    among: tuple[Attribute, ...]

    @abc.abstractmethod
    def plan(self, targets: Sequence[int], budget: DistanceBudget, share: Fraction) -> Mapping[str, Node]:
        """Plan the selections of contexts for some targets with a share of the budget, by the names of their steps."""

    @abc.abstractmethod
    def release(self, table: PrivateTable, targets: Sequence[int]) -> Chosen:
        """Release the context of each of some targets."""

    def least_and_most(self, number: int) -> tuple[int, int]:
        """Return the fewest and the most pairs of a target with an attribute of its context, for `number` targets."""
        others = len(self.among) - 1
        return self._of_size(number, 1, others)

    def _of_size(self, number: int, least: int, most: int) -> tuple[int, int]:
        """Return the fewest and the most pairs for contexts of `least` to `most` attributes.

        Two targets that are in each other's contexts need one pair.
        """
        return max(least, -(-number * least // 2)), min(number * most, math.comb(len(self.among), 2))

    @property
    def _position(self) -> dict[str, int]:
        return {attribute.name: k for k, attribute in enumerate(self.among)}


@final
@attrs.frozen
class AllOthers(Selection):
    """A selection with nothing to choose, since the context of a target is every other attribute."""

    def plan(self, targets: Sequence[int], budget: DistanceBudget, share: Fraction) -> Mapping[str, Node]:
        """Plan nothing."""
        return {}

    def release(self, table: PrivateTable, targets: Sequence[int]) -> Chosen:
        """Return all others."""
        return {t: tuple(k for k in range(len(self.among)) if k != t) for t in targets}

    def least_and_most(self, number: int) -> tuple[int, int]:
        """Return the number of pairs of all targets with all others, as the fewest and as the most."""
        others = len(self.among) - 1
        return self._of_size(number, others, others)


@attrs.frozen
class _OfSize(Selection):
    """Contexts of a given size, chosen by their information on a target.

    Each target has a context of its own, selected with an equal share of the budget.

    Attributes
    ----------
    size
        The number of attributes in a context.
    bounds
        The public facts about the number of rows.
    alone
        Whether there is a single target, so that no other target needs the same joint histograms.
    """

    size: int
    bounds: RowBounds
    alone: bool

    def least_and_most(self, number: int) -> tuple[int, int]:
        """Return the numbers of pairs of targets with contexts of the given size."""
        return self._of_size(number, self.size, self.size)

    def plan(self, targets: Sequence[int], budget: DistanceBudget, share: Fraction) -> Mapping[str, Node]:
        """Plan a selection for each target, with equal shares."""
        each = share / len(targets)
        return {self._step_of(target): self._selection(target, budget, each) for target in targets}

    def release(self, table: PrivateTable, targets: Sequence[int]) -> Chosen:
        """Release one context after another."""
        return {t: tuple(sorted(self._position[name] for name in self._names(table, t))) for t in targets}

    def _step_of(self, target: int) -> str:
        return plan_name("context", target, self.among)

    @abc.abstractmethod
    def _selection(self, target: int, budget: DistanceBudget, share: Fraction) -> Node:
        """Plan one target's selection."""

    @abc.abstractmethod
    def _names(self, table: PrivateTable, target: int) -> tuple[str, ...]:
        """Release the names of a target's context."""


@final
@attrs.frozen
class MaxDependency(_OfSize):
    """The attributes that together say most about the target, selected in one step."""

    def _selection(self, target: int, budget: DistanceBudget, share: Fraction) -> Node:
        scores = ContextScores(self.among, self.size, self.bounds, target, self.alone)
        return step(self._step_of(target), scores, budget.selector(share))

    def _names(self, table: PrivateTable, target: int) -> tuple[str, ...]:
        names: tuple[str, ...] = table.release(self._step_of(target))
        return names


@final
@attrs.frozen
class MaxRelevance(_OfSize):
    """The attributes that each say most about the target, selected one after another."""

    def _selection(self, target: int, budget: DistanceBudget, share: Fraction) -> Node:
        scores = ContextScores(self.among, 1, self.bounds, target, self.alone)
        return repeat(self.size, step(self._step_of(target), scores, budget.selector(share / self.size)))

    def _names(self, table: PrivateTable, target: int) -> tuple[str, ...]:
        names: tuple[str, ...] = ()
        for _ in range(self.size):
            names += table.release(self._step_of(target), chosen=names)
        return names


@final
@attrs.frozen
class Common(Selection):
    """One context for all targets: the attributes that together say most about all others.

    It is selected once, with the whole share of the budget.

    Attributes
    ----------
    size, bounds
        The number of attributes in the context, and the public facts about the number of rows.
    """

    size: int
    bounds: RowBounds

    def plan(self, targets: Sequence[int], budget: DistanceBudget, share: Fraction) -> Mapping[str, Node]:
        """Plan one selection."""
        scores = CommonContextScores(self.among, self.size, self.bounds)
        return {"common context": step("common context", scores, budget.selector(share))}

    def release(self, table: PrivateTable, targets: Sequence[int]) -> Chosen:
        """Release the context. A target that is in it has the other attributes as its context."""
        common = [self._position[name] for name in table.release("common context")]
        return {t: tuple(sorted(k for k in common if k != t)) for t in targets}

    def least_and_most(self, number: int) -> tuple[int, int]:
        """Return the number of pairs of an attribute in the context with any other, since all are targets."""
        pairs = self.size * (len(self.among) - self.size) + math.comb(self.size, 2)
        return pairs, pairs


@final
@attrs.frozen
class MeanSU(Selection):
    """The attributes whose symmetric uncertainty with the target is at least the mean, from noisy entropies.

    Attributes
    ----------
    bounds
        The public facts about the number of rows.
    """

    bounds: RowBounds

    def plan(self, targets: Sequence[int], budget: DistanceBudget, share: Fraction) -> Mapping[str, Node]:
        """Plan the entropies, in one step."""
        return {"entropies": step("entropies", self._entropies(targets), budget.measurer(share))}

    def release(self, table: PrivateTable, targets: Sequence[int]) -> Chosen:
        """Release the entropies, and choose contexts by the symmetric uncertainties that follow from them."""
        entropies = np.asarray(table.release("entropies"), dtype=np.float64)
        su = su_matrix(*self._entropies(targets).read(entropies))
        return {target: above_the_mean(su, target) for target in targets}

    def _entropies(self, targets: Sequence[int]) -> Entropies | ConditionalEntropies:
        """Return the entropies behind symmetric uncertainties, for one target or for all."""
        query = Entropies if self.bounds.published else ConditionalEntropies
        return query(self.among, targets[0] if len(targets) == 1 else None, self.bounds)
