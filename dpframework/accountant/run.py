"""A run: which releases of a plan have been made, and which may still be.

One state a node, made as the run reaches it. A name is looked up in one scope: the nodes below it, not through
parallels and named sequentials, which are scopes of their own.
"""

from __future__ import annotations

import abc
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import attrs

from dpframework.engines import Cut
from dpframework.errors import ReleaseRefused, nearest
from dpframework.mechanisms.base import Calibration
from dpframework.plan.nodes import Either, Node, Parallel, Post, Released, Repeat, Sequential, Step, within_scope
from dpframework.plan.plan import Plan
from dpframework.privacy import PrivacyLoss

Commit: TypeAlias = Callable[[], None]


class Composition(Protocol):
    """How a run's charges compose: the part of an accountant that a run needs."""

    def amount(self, calibration: Calibration | None) -> Any:
        """Return what one release costs."""

    def sequential(self, parts: Sequence[Any]) -> Any:
        """Compose releases from the same rows."""

    def parallel(self, parts: Sequence[Any]) -> Any:
        """Compose releases from disjoint rows."""

    def loss(self, amount: Any) -> PrivacyLoss | None:
        """Return an amount as a loss."""

    def total(self, plan: Plan) -> PrivacyLoss | None:
        """Return what a plan costs at most."""


class State(abc.ABC):
    """What has happened to one node."""

    @abc.abstractmethod
    def find(self, name: str | None, kind: type[State]) -> Iterator[tuple[State, list[Commit]]]:
        """Yield the states of a kind and name in this scope, each with what choosing it commits the run to."""

    @abc.abstractmethod
    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Return what the releases made below this node cost."""


class StepState(State):
    """A step, made or not."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.made = False

    def find(self, name: str | None, kind: type[State]) -> Iterator[tuple[State, list[Commit]]]:
        """Yield itself, if named."""
        if kind is StepState and name == self.step.name:
            yield self, []

    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Return the step's cost once it is made."""
        return composition.amount(plan.calibration(self.step)) if self.made else composition.sequential([])


class SequentialState(State):
    """Parts on the same rows; with a name, a scope that is entered once."""

    def __init__(self, node: Sequential | Post | Either) -> None:
        self.name = node.name if isinstance(node, Sequential) else None
        self.parts = [state_of(child) for child in node.children]
        self.made = False

    def find(self, name: str | None, kind: type[State]) -> Iterator[tuple[State, list[Commit]]]:
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

    def find(self, name: str | None, kind: type[State]) -> Iterator[tuple[State, list[Commit]]]:
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

    def find(self, name: str | None, kind: type[State]) -> Iterator[tuple[State, list[Commit]]]:
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


class ParallelState(State):
    """A partition, made or not, with one state a part."""

    def __init__(self, node: Parallel) -> None:
        self.node = node
        self.parts: list[State] = []
        self.made = False

    def find(self, name: str | None, kind: type[State]) -> Iterator[tuple[State, list[Commit]]]:
        """Yield itself, if named so or no name is asked."""
        if kind is ParallelState and name in (None, self.node.name):
            yield self, []

    def charged(self, composition: Composition, plan: Plan) -> Any:
        """Compose over the parts."""
        parts = [part.charged(composition, plan) for part in self.parts]
        return composition.parallel(parts) if parts else composition.sequential([])


def _found_at(state: State, name: str | None, kind: type[State]) -> Iterator[tuple[State, list[Commit]]]:
    """Search a state that may itself be a named scope."""
    if isinstance(state, SequentialState) and state.name is not None:
        if kind is SequentialState and state.name == name:
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
        case Parallel():
            return ParallelState(node)
        case Sequential() | Post():
            return SequentialState(node)
    raise ReleaseRefused(f"a plan holds no {type(node).__name__}")


@attrs.frozen
class Charge:
    """One release about to be made: its place in the plan, its step, and what it costs."""

    path: str
    step: Step
    calibration: Calibration


class Scope:
    """The part of a run that one private table may release from."""

    def __init__(self, run: Run, node: Node, state: State, path: str) -> None:
        self._run, self._node, self._state, self._path = run, node, state, path

    def charge(self, name: str) -> Charge:
        """Mark a step as made and return its charge; refused, nothing changes.

        Raises
        ------
        ReleaseRefused
            If the scope has no such step, it was made before, or it lies in a branch that was not taken.
        """
        with self._run.lock:
            state = self._take(name, StepState, f"step '{name}'")
            assert isinstance(state, StepState)
            calibration = self._run.plan.calibration(state.step)
            if calibration is None:
                raise ReleaseRefused(f"step '{name}' has no valid claim under {self._run.plan.relation}")
            state.made = True
            charge = Charge(f"{self._path}/{name}".lstrip("/"), state.step, calibration)
            self._run.charges.append(charge)
            return charge

    def require_planned(self, step: Step) -> None:
        """Refuse a step that is not the one planned under its name.

        Raises
        ------
        ReleaseRefused
            If the plan's step of that name differs, for one in being dearer.
        """
        for node in within_scope(self._node):
            if isinstance(node, Step) and node.name == step.name and node == step:
                return
        raise ReleaseRefused(
            f"step '{step.name}' is not the one that the plan holds; release what was planned, by its name"
        )

    def calibration(self, name: str) -> Calibration:
        """Return the noise of a planned step.

        Raises
        ------
        ReleaseRefused
            If the scope has no such step, or no valid claim for it.
        """
        steps = [node for node in within_scope(self._node) if isinstance(node, Step)]
        for node in steps:
            if node.name == name and (calibration := self._run.plan.calibration(node)) is not None:
                return calibration
        raise ReleaseRefused(f"step '{name}' is not in the plan; {nearest(name, [s.name for s in steps])}")

    def enter(self, name: str) -> Scope:
        """Return the scope of a named sequential, once."""
        with self._run.lock:
            state = self._take(name, SequentialState, f"scope '{name}'")
            assert isinstance(state, SequentialState)
            state.made = True
            node = next(n for n in within_scope(self._node) if isinstance(n, Sequential) and n.name == name)
            return Scope(self._run, node, state, f"{self._path}/{name}".lstrip("/"))

    def partition(self, by: Cut, number: int, name: str | None) -> list[Scope]:
        """Return one scope a part of a planned parallel, once.

        Raises
        ------
        ReleaseRefused
            If the scope plans no such partition, or it was made before.
        """
        with self._run.lock:
            what = "a partition" if name is None else f"partition '{name}'"
            taken = self._take(name, ParallelState, what, by, number)
            assert isinstance(taken, ParallelState)
            node = taken.node
            children = node.parts * number if len(node.parts) == 1 else node.parts
            taken.made = True
            taken.parts = [state_of(child) for child in children]
            label = node.name or "parts"
            return [
                Scope(self._run, child, state, f"{self._path}/{label} {k + 1}".lstrip("/"))
                for k, (child, state) in enumerate(zip(children, taken.parts, strict=True))
            ]

    def _take(
        self, name: str | None, kind: type[State], what: str, by: Cut | None = None, number: int | None = None
    ) -> State:
        """Return the first state of that name that is not made yet, committing the run to its branch."""
        self._run.require_process()
        seen = False
        for state, commits in self._state.find(name, kind):
            if isinstance(state, ParallelState) and not _agrees(state.node, by, number):
                continue
            seen = True
            if not getattr(state, "made", False):
                for commit in commits:
                    commit()
                return state
        where = f" in '{self._path}'" if self._path else ""
        if seen:
            raise ReleaseRefused(f"{what}{where} was made before; a second one is not in the plan")
        planned = [n for n in within_scope(self._node) if _named(n, kind)]
        if kind is ParallelState:
            raise ReleaseRefused(
                f"{what}{where} by these {number} parts is not in the plan, or not in the branch that was taken"
            )
        names = [str(getattr(n, "name", "")) for n in planned]
        if name in names:
            raise ReleaseRefused(f"{what}{where} is in a branch of the plan that was not taken")
        raise ReleaseRefused(f"{what}{where} is not in the plan; {nearest(str(name), names)}")


def _named(node: Node, kind: type[State]) -> bool:
    return isinstance(node, Step) if kind is StepState else isinstance(node, Sequential) and node.name is not None


def _agrees(node: Parallel, by: Cut | None, number: int | None) -> bool:
    """Tell whether a partition is the planned one: the same public cut, or one made from a release."""
    return len(node.parts) in (1, number) and (isinstance(node.by, Released) or node.by == by)


class Run:
    """The releases of one plan: made, and still to be made.

    Attributes
    ----------
    plan
        The plan that was charged.
    charges
        The releases made so far, in order.
    """

    def __init__(self, plan: Plan, composition: Composition) -> None:
        self.plan = plan
        self.charges: list[Charge] = []
        self.lock = threading.RLock()
        self._composition = composition
        self._state = state_of(plan.root)
        self._process = os.getpid()

    def require_process(self) -> None:
        """Refuse a forked process: it has a copy of the rows and of this run, and would make every release anew.

        Raises
        ------
        ReleaseRefused
            If the run was opened in another process.
        """
        if os.getpid() != self._process:
            raise ReleaseRefused("this run was opened in another process; make its releases there")

    def scope(self) -> Scope:
        """Return the scope of the whole plan."""
        return Scope(self, self.plan.root, self._state, "")

    @property
    def spent(self) -> PrivacyLoss | None:
        """What the releases made so far cost, composed as the plan's total is, and never more than that total.

        Composing what one path released may bound it less tightly than the plan bounds every path.
        """
        with self.lock:
            made = self._composition.loss(self._state.charged(self._composition, self.plan))
        total = self._composition.total(self.plan)
        known = [loss for loss in (made, total) if loss is not None and loss.epsilon is not None]
        return min(known, key=lambda loss: loss.epsilon or 0, default=made)
