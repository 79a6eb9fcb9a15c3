"""The states of a plan's nodes in a run: which releases were made, and which branches were taken.

States are separate from nodes. A plan does not change, and one of its nodes may stand for many parts or repetitions.
Each part and each repetition gets its own state when the run reaches it.

A name is looked up in one scope. A scope holds all nodes below its own node, except those inside parallels, samples and
named sequentials, which are scopes of their own. The time of a look-up does not grow with the plan or with the number
of earlier releases. For this, a sequential stores which of its parts hold a name, and a repetition stores how many of
its instances are used up.
"""

from __future__ import annotations

import abc
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar, cast

from dpframework.facts.errors import ReleaseRefused
from dpframework.facts.privacy_losses import Relation
from dpframework.plan.node_kind_table import Composition
from dpframework.plan.nodes import Either, Node, Parallel, Post, Repeat, Sample, Sequential, Step
from dpframework.plan.plan import Plan
from dpframework.plan.spend_block_node import Spend

#: A function that makes a choice of the run final, such as a branch.
Commit: TypeAlias = Callable[[], None]
#: The kind and the name by which a state is looked up.
Key: TypeAlias = "tuple[type[OnceState], str | None]"
T = TypeVar("T", bound="OnceState")


class State(abc.ABC):
    """The state of one node in a run."""

    @abc.abstractmethod
    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Yield the states of a kind and name in this scope, each with the choices that its use makes final.

        If several states are used up, it may yield only one of them.
        """

    @abc.abstractmethod
    def keys(self) -> set[Key]:
        """Return the kinds and names of all states that `find` can ever yield."""

    def find_at(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Yield what a look-up in the scope around this node finds: this state if it is a scope, else states below."""
        return self.find(name, kind)

    def keys_at(self) -> set[Key]:
        """Return the kinds and names of all states that `find_at` can ever yield."""
        return self.keys()

    @abc.abstractmethod
    def cost_so_far(self, composition: Composition, plan: Plan) -> Any:
        """Return the cost of the releases that were made at or below this node."""


class OnceState(State):
    """The state of a node that is used once: a step, a named scope, a partition, a sample or a block."""

    is_used = False

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Yield this state if it has this kind and name."""
        if (kind, name) in self.keys():
            yield cast("T", self), []


class StepState(OnceState):
    """The state of a step: whether its release was made."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def keys(self) -> set[Key]:
        """Return the one key of the step."""
        return {(StepState, self.step.name)}

    def cost_so_far(self, composition: Composition, plan: Plan) -> Any:
        """Return the step's cost, or a cost of nothing if it was not released yet."""
        return composition.release(plan.calibration(self.step)) if self.is_used else composition.sequential([])


class SequentialState(OnceState):
    """The state of parts on the same rows. If it has a name, it is a scope that can be entered once."""

    def __init__(self, node: Sequential | Post | Either) -> None:
        self.node = node
        self.name = node.name if isinstance(node, Sequential) else None
        self.parts = [state_of(child) for child in node.children]

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Search the parts that hold such a state.

        A part that is a scope is not searched, but may be yielded itself.
        """
        for k in self._holding.get((kind, name), ()):
            yield from self.parts[k].find_at(name, kind)

    def keys(self) -> set[Key]:
        """Return the keys of the parts."""
        return set(self._holding)

    def find_at(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Yield this state if it has the given name. A state without a name yields the states below it."""
        if self.name is None:
            yield from self.find(name, kind)
        elif (kind, name) in self.keys_at():
            yield cast("T", self), []

    def keys_at(self) -> set[Key]:
        """Return the key of this state or, if it has no name, the keys of its parts."""
        return self.keys() if self.name is None else {(SequentialState, self.name)}

    @functools.cached_property
    def _holding(self) -> dict[Key, list[int]]:
        """For each key, the positions of the parts that hold it."""
        holding: dict[Key, list[int]] = {}
        for k, part in enumerate(self.parts):
            for key in part.keys_at():
                holding.setdefault(key, []).append(k)
        return holding

    def cost_so_far(self, composition: Composition, plan: Plan) -> Any:
        """Add up the costs of the parts."""
        return composition.sequential([part.cost_so_far(composition, plan) for part in self.parts])


class EitherState(SequentialState):
    """The state of branches. Once one branch is used, no other can be."""

    def __init__(self, node: Either) -> None:
        super().__init__(node)
        self.chosen: int | None = None

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Search the chosen branch, or all branches while none is chosen."""
        for k in self._holding.get((kind, name), ()):
            if self.chosen in (None, k):
                for state, commits in self.parts[k].find_at(name, kind):
                    yield state, [*commits, functools.partial(setattr, self, "chosen", k)]


class RepeatState(State):
    """The state of a repetition: one state for each time that the part is used, made when it is needed."""

    def __init__(self, node: Repeat) -> None:
        self.node = node
        self.instances: list[State] = []
        self._next = state_of(node.part)
        self._all_made: dict[Key, int] = {}  # for each key, how many of the first instances are used up

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Search the instances that may have an unused state, then a new one. If all are used up, search the last."""
        key, begun = (kind, name), len(self.instances)
        made = self._all_made.get(key, 0)
        for k in range(made, begun):
            left = False
            for state, commits in self.instances[k].find_at(name, kind):
                left = left or not state.is_used
                yield state, commits
            if k == made and not left:
                made = self._all_made[key] = k + 1
        if begun < self.node.times:
            for state, commits in self._next.find_at(name, kind):
                yield state, [*commits, self._begin]
        elif made == begun:
            # All are used up. The caller gets a used state, so that its error can say "made before". Without any state
            # it would say "not in the plan".
            yield from self.instances[-1].find_at(name, kind)

    def keys(self) -> set[Key]:
        """Return the keys of the part."""
        return self._next.keys_at()

    def _begin(self) -> None:
        self.instances.append(self._next)
        self._next = state_of(self.node.part)

    def cost_so_far(self, composition: Composition, plan: Plan) -> Any:
        """Add up the costs of the instances."""
        return composition.sequential([instance.cost_so_far(composition, plan) for instance in self.instances])


class RowsState(OnceState):
    """The state of a partition or a sample. It is found by its name, or without a name."""

    node: Parallel | Sample

    def keys(self) -> set[Key]:
        """Return two keys, one with the node's name and one without a name."""
        return {(type(self), None), (type(self), self.node.name)}


class ParallelState(RowsState):
    """The state of a partition: whether it was made, and one state for each part."""

    node: Parallel

    def __init__(self, node: Parallel) -> None:
        self.node = node
        self.parts: list[State] = []

    def cost_so_far(self, composition: Composition, plan: Plan) -> Any:
        """Compose the costs of the parts."""
        parts = [part.cost_so_far(composition, plan) for part in self.parts]
        return composition.over_parts(parts, plan) if parts else composition.sequential([])


class SampleState(RowsState):
    """The state of a sample: whether it was drawn, and the state of the releases from it."""

    node: Sample

    def __init__(self, node: Sample) -> None:
        self.node = node
        self.part = state_of(node.part)

    def cost_so_far(self, composition: Composition, plan: Plan) -> Any:
        """Return the cost of the releases from the sample."""
        return composition.over_sample(self.part.cost_so_far(composition, plan), self.node.rate, plan)


class SpendState(OnceState):
    """The state of a block, with the sums of its charges. A block is opened once, and may make many releases."""

    def __init__(self, node: Spend) -> None:
        self.node = node
        self.sums: dict[tuple[str, Relation], Fraction] = {}
        self.times: Counter[str] = Counter()
        self.closed = False

    def keys(self) -> set[Key]:
        """Return the one key of the block."""
        return {(SpendState, self.node.name)}

    def cost_so_far(self, composition: Composition, plan: Plan) -> Any:
        """Return the cost of the whole block if at least one of its releases was made, else a cost of nothing.

        The caps count in full, even if the block has spent less. A conversion of rho to epsilon fails with
        probability delta, and a miner that may stop at any time could stop just when it fails. So the sum of rho so far
        must not be converted. Sums of epsilon could be reported, but not all accountants keep epsilon apart from rho.
        """
        return composition.release(plan.calibration(self.node)) if self.times else composition.sequential([])


@functools.singledispatch
def state_of(node: Node) -> State:
    """Return the initial state of a node. Each kind of node registers the class of its state here.

    Raises
    ------
    ReleaseRefused
        If no state is registered for the node's class.
    """
    raise ReleaseRefused(f"a plan holds no {type(node).__name__}")


state_of.register(Step, StepState)
state_of.register(Either, EitherState)
state_of.register(Repeat, RepeatState)
state_of.register(Sample, SampleState)
state_of.register(Parallel, ParallelState)
state_of.register(Sequential, SequentialState)
state_of.register(Post, SequentialState)
state_of.register(Spend, SpendState)
