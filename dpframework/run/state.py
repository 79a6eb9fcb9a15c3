"""What has happened to the nodes of a plan in a run: one state a node, made as the run reaches it.

States are not nodes: a plan does not change, and one node of it may stand for many parts or repetitions, each of which
has a state of its own.

A name is looked up in one scope: the nodes below it, not through parallels and named sequentials, which are scopes of
their own.
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
        """Yield the states of a kind and name in this scope, each with what choosing it commits the run to."""

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
        if isinstance(self, kind) and name == self.step.name:
            yield self, []

    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Return the step's cost once it is made."""
        return composition.release(plan.calibration(self.step)) if self.made else composition.sequential([])


class SequentialState(OnceState):
    """Parts on the same rows; with a name, a scope that is entered once."""

    def __init__(self, node: Sequential | Post | Either) -> None:
        self.name = node.name if isinstance(node, Sequential) else None
        self.parts = [state_of(child) for child in node.children]

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Search the parts; a named part is itself found, not searched."""
        for part in self.parts:
            yield from _found_at(part, name, kind)

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
        for k, branch in enumerate(self.parts):
            if self.chosen in (None, k):
                for state, commits in _found_at(branch, name, kind):
                    yield state, [*commits, functools.partial(setattr, self, "chosen", k)]


class RepeatState(State):
    """Instances of one part, begun as they are needed."""

    def __init__(self, node: Repeat) -> None:
        self.node = node
        self.instances: list[State] = []

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Search the instances begun, then a new one if there is one left."""
        for instance in self.instances:
            yield from _found_at(instance, name, kind)
        if len(self.instances) < self.node.times:
            fresh = state_of(self.node.part)
            for state, commits in _found_at(fresh, name, kind):
                yield state, [*commits, functools.partial(self.instances.append, fresh)]

    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Add up the instances."""
        return composition.sequential([instance.charged(composition, plan) for instance in self.instances])


class ParallelState(OnceState):
    """A partition, made or not, with one state a part."""

    def __init__(self, node: Parallel) -> None:
        self.node = node
        self.parts: list[State] = []

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Yield itself, if named so or no name is asked."""
        if isinstance(self, kind) and name in (None, self.node.name):
            yield self, []

    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Compose over the parts."""
        parts = [part.charged(composition, plan) for part in self.parts]
        return composition.over_parts(parts, plan) if parts else composition.sequential([])


class SampleState(OnceState):
    """A sample, drawn or not, with the state of what is released from it."""

    def __init__(self, node: Sample) -> None:
        self.node = node
        self.part = state_of(node.part)

    def find(self, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
        """Yield itself, if named so or no name is asked."""
        if isinstance(self, kind) and name in (None, self.node.name):
            yield self, []

    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Return what the releases from the sample cost."""
        return composition.over_sample(self.part.charged(composition, plan), self.node.rate, plan)


def _found_at(state: State, name: str | None, kind: type[T]) -> Iterator[tuple[T, list[Commit]]]:
    """Search a state that may itself be a named scope."""
    if isinstance(state, SequentialState) and state.name is not None:
        if state.name == name and isinstance(state, kind):
            yield state, []
    else:
        yield from state.find(name, kind)


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
