"""What has happened to the nodes of a plan in a run: one state a node, made as the run reaches it.

States are not nodes: a plan does not change, and one node of it may stand for many parts or repetitions, each of which
has a state of its own.

A name is looked up in one scope: the nodes below it, not through parallels and named sequentials, which are scopes of
their own. What is looked up is found at once, however much of the plan there is and however much of it was made: a
sequential knows which of its parts hold a name, and a repetition how many of its instances have none of it left.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, TypeVar

from dpframework.facts.errors import ReleaseRefused
from dpframework.facts.privacy import PrivacyLoss
from dpframework.mechanisms.base import Calibration
from dpframework.plan.nodes import Either, Node, Parallel, Post, Repeat, Sample, Sequential, Step
from dpframework.plan.plan import Plan

Commit: TypeAlias = Callable[[], None]
Key: TypeAlias = "tuple[type[OnceState], str | None]"
T = TypeVar("T", bound="OnceState")


class Composition(Protocol):
    """How a run's charges compose: the part of an accountant that a run needs."""

    def release(self, calibration: Calibration | None) -> Any:
        """Return what one release costs."""

    def sequential(self, parts: Sequence[Any]) -> Any:
        """Compose releases from the same rows."""

    def over_parts(self, parts: Sequence[Any], plan: Plan) -> Any:
        """Compose releases from disjoint rows, for the plan's privacy unit."""

    def over_sample(self, part: Any, rate: Fraction, plan: Plan) -> Any:
        """Compose releases from a sample."""

    def loss(self, amount: Any) -> PrivacyLoss | None:
        """Return an amount as a loss."""

    def total(self, plan: Plan) -> PrivacyLoss | None:
        """Return what a plan costs at most."""


class State(abc.ABC):
    """What has happened to one node."""

    @abc.abstractmethod
    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Yield the states of a kind and name in this scope, each with what choosing it commits the run to.

        Of many that were made, as few as one may be yielded.
        """

    @abc.abstractmethod
    def keys(self) -> set[Key]:
        """Return the kinds and names of what may ever be found in this scope."""

    def find_at(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Yield what is found in the scope that this state lies in: all that it holds, unless it is a scope itself."""
        return self.find(name, kind)

    def keys_at(self) -> set[Key]:
        """Return the kinds and names of what may ever be found in the scope that this state lies in."""
        return self.keys()

    @abc.abstractmethod
    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Return what the releases made below this node cost."""


class OnceState(State):
    """What a run may do once: make a release, enter a scope, cut the rows."""

    made = False


class StepState(OnceState):
    """A step, made or not."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Yield itself, if named."""
        if name == self.step.name and isinstance(self, kind):
            yield self, []

    def keys(self) -> set[Key]:
        """Return its own."""
        return {(StepState, self.step.name)}

    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Return the step's cost once it is made."""
        return composition.release(plan.calibration(self.step)) if self.made else composition.sequential([])


class SequentialState(OnceState):
    """Parts on the same rows; with a name, a scope that is entered once."""

    def __init__(self, node: Sequential | Post | Either) -> None:
        self.node = node
        self.name = node.name if isinstance(node, Sequential) else None
        self.parts = [state_of(child) for child in node.children]

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Search the parts that hold such a state; a named part is itself found, not searched."""
        for k in self._holding.get((kind, name), ()):
            yield from self.parts[k].find_at(name, kind)

    def keys(self) -> set[Key]:
        """Return those of the parts."""
        return set(self._holding)

    def find_at(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Yield itself, if named so; without a name what it holds."""
        if self.name is None:
            yield from self.find(name, kind)
        elif name == self.name and isinstance(self, kind):
            yield self, []

    def keys_at(self) -> set[Key]:
        """Return its own; without a name those of the parts."""
        return self.keys() if self.name is None else {(SequentialState, self.name)}

    @functools.cached_property
    def _holding(self) -> dict[Key, list[int]]:
        """Which parts hold what, in their order."""
        holding: dict[Key, list[int]] = {}
        for k, part in enumerate(self.parts):
            for key in part.keys_at():
                holding.setdefault(key, []).append(k)
        return holding

    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Add up the parts."""
        return composition.sequential([part.charged(composition, plan) for part in self.parts])


class EitherState(SequentialState):
    """Branches, of which the first one used stays the only one."""

    def __init__(self, node: Either) -> None:
        super().__init__(node)
        self.chosen: int | None = None

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Search the chosen branch, or all while none is chosen."""
        for k in self._holding.get((kind, name), ()):
            if self.chosen in (None, k):
                for state, commits in self.parts[k].find_at(name, kind):
                    yield state, [*commits, functools.partial(setattr, self, "chosen", k)]


class RepeatState(State):
    """Instances of one part, begun as they are needed."""

    def __init__(self, node: Repeat) -> None:
        self.node = node
        self.instances: list[State] = []
        self._next = state_of(node.part)
        self._all_made: dict[Key, int] = {}  # in how many of the first instances; what is made stays made

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Search the instances begun that may have one left, then a new one; else yield what the last one made."""
        key, begun = (kind, name), len(self.instances)
        made = self._all_made.get(key, 0)
        for k in range(made, begun):
            left = False
            for state, commits in self.instances[k].find_at(name, kind):
                left = left or not state.made
                yield state, commits
            if k == made and not left:
                made = self._all_made[key] = k + 1
        if begun < self.node.times:
            for state, commits in self._next.find_at(name, kind):
                yield state, [*commits, self._begin]
        elif made == begun:
            yield from self.instances[-1].find_at(name, kind)

    def keys(self) -> set[Key]:
        """Return those of the part."""
        return self._next.keys_at()

    def _begin(self) -> None:
        self.instances.append(self._next)
        self._next = state_of(self.node.part)

    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Add up the instances."""
        return composition.sequential([instance.charged(composition, plan) for instance in self.instances])


class RowsState(OnceState):
    """Other rows than the scope's, once made from them: found by its name, or without one."""

    node: Parallel | Sample

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Yield itself, if named so or no name is asked."""
        if name in (None, self.node.name) and isinstance(self, kind):
            yield self, []

    def keys(self) -> set[Key]:
        """Return its own, and that of any of its kind."""
        return {(type(self), None), (type(self), self.node.name)}


class ParallelState(RowsState):
    """A partition, made or not, with one state a part."""

    node: Parallel

    def __init__(self, node: Parallel) -> None:
        self.node = node
        self.parts: list[State] = []

    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Compose over the parts."""
        parts = [part.charged(composition, plan) for part in self.parts]
        return composition.over_parts(parts, plan) if parts else composition.sequential([])


class SampleState(RowsState):
    """A sample, drawn or not, with the state of what is released from it."""

    node: Sample

    def __init__(self, node: Sample) -> None:
        self.node = node
        self.part = state_of(node.part)

    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Return what the releases from the sample cost."""
        return composition.over_sample(self.part.charged(composition, plan), self.node.rate, plan)


def state_of(node: Node) -> State:
    """Return the state of a node that nothing has happened to."""
    match node:
        case Step():
            return StepState(node)
        case Either():
            return EitherState(node)
        case Repeat():
            return RepeatState(node)
        case Sample():
            return SampleState(node)
        case Parallel():
            return ParallelState(node)
        case Sequential() | Post():
            return SequentialState(node)
    raise ReleaseRefused(f"a plan holds no {type(node).__name__}")
