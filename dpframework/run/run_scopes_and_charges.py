"""The scopes of a run. Each knows which releases of its part of the plan were made, and which may still be made."""

from __future__ import annotations

import functools
import operator
import threading
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.facts.errors import ReleaseRefused, nearest
from dpframework.facts.fork_detection import ProcessMark, this_process
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.privacy_losses import PrivacyLoss
from dpframework.facts.row_partitions import NOTHING_DERIVED, AttributeSources, Cut, number_of_parts, sources_of
from dpframework.mechanisms.base import Calibration
from dpframework.plan.node_kind_table import Accounting
from dpframework.plan.nodes import FromRelease, Node, Parallel, Sample, Sequential, Step
from dpframework.plan.plan import Plan
from dpframework.plan.spend_block_node import Spend
from dpframework.run.node_states import (
    OnceState,
    ParallelState,
    SampleState,
    SequentialState,
    SpendState,
    State,
    StepState,
    T,
    state_of,
)


@final
@attrs.frozen
class _Parts:
    """The cut of a partition, and the attributes on which it depends; an empty set if they are unknown."""

    cut: Cut
    sources: frozenset[str]

    @property
    def number(self) -> int:
        """The number of parts."""
        return number_of_parts(self.cut)

    def is_planned_by(self, node: Parallel, *, of_any: bool = False) -> bool:
        """Tell whether a node plans this cut, either as the same public cut or as a cut from a release.

        A cut from a release may depend on the attributes that the node names, and with `of_any` on any attribute.
        """
        if len(node.parts) not in (1, self.number):
            return False
        if not isinstance(node.by, FromRelease):
            return node.by == self.cut
        whole = isinstance(self.cut, Cases) and not self.cut.descriptions  # a cut into one part, which tests nothing
        if of_any or whole or not node.by.attributes:
            return True
        return bool(self.sources) and self.sources <= set(node.by.attributes)


@attrs.frozen
class Charge:
    """The charge for one release. It is recorded before the release is made.

    Attributes
    ----------
    path
        The path of the release in the plan. For a release of a block, the path ends with the parameters that the miner
        chose.
    step
        The step that is released.
    calibration
        The noise and the losses of the release.
    kind
        For a release of a block, the planned step of its kind. None for any other release.
    """

    path: str
    step: Step
    calibration: Calibration
    kind: Step | None = None

    @property
    def planned(self) -> Step:
        """The step in the plan: for a release of a block the step of its kind, else `step`."""
        return self.step if self.kind is None else self.kind


@final
@attrs.frozen(eq=False)
class ChargedRelease:
    """A charged release, with its rows and the public inputs of its query."""

    charge: Charge
    rows: Any = attrs.field(repr=False)
    inputs: dict[str, Any]


def require_own(process: ProcessMark) -> None:
    """Refuse to make a release outside the process in which the run was opened.

    Raises
    ------
    ReleaseRefused
        If this is another process. A fork, for example, has a copy of the run, and could make its releases a second
        time.
    """
    if this_process() != process:
        raise ReleaseRefused("this run was opened in another process; make its releases there")


@attrs.frozen(eq=False, slots=False, repr=False)
class Scope:
    """The part of the plan from which one private table may make releases.

    Attributes
    ----------
    run
        The run that the scope belongs to.
    path
        The path of the scope in the plan, empty for the whole plan.
    """

    run: Run
    _node: Node
    _state: State
    path: str

    def charge_of(self, step: str | Step) -> Charge:
        """Charge a step, given by its name or as the planned step itself (see `charge`).

        Raises
        ------
        ReleaseRefused
            If the given step differs from the planned step of that name, for example in its epsilon. Also if `charge`
            refuses the step.
        """
        if isinstance(step, str):
            return self.charge(step)
        if step not in self._steps.get(step.name, ()):
            raise ReleaseRefused(
                f"step '{step.name}' differs from the planned step of that name; release the planned step, by its name"
            )
        return self.charge(step.name)

    def charge(self, name: str) -> Charge:
        """Mark a step as released, and return its charge. A refusal changes nothing.

        Raises
        ------
        ReleaseRefused
            If the scope has no such step, or if the step was released before, is in a branch that was not taken, or has
            no valid claim.
        """
        with self.run.lock:
            state = self._take(StepState, name, f"step '{name}'")
            calibration = self.run.plan.calibration(state.step)
            if calibration is None:
                raise ReleaseRefused(f"step '{name}' has no valid claim under {self.run.plan.relation}")
            state.is_used = True
            charge = Charge(f"{self.path}/{name}".lstrip("/"), state.step, calibration)
            self.run.charges.append(charge)
            return charge

    def calibration(self, name: str) -> Calibration:
        """Return the noise of a planned step.

        Raises
        ------
        ReleaseRefused
            If the scope has no such step, or the step has no valid claim.
        """
        for step in self._steps.get(name, ()):
            if (calibration := self.run.plan.calibration(step)) is not None:
                return calibration
        if name in self._steps:
            raise ReleaseRefused(f"step '{name}' has no valid claim under {self.run.plan.relation}")
        raise ReleaseRefused(f"step '{name}' is not in the plan; {nearest(name, self._steps)}")

    @functools.cached_property
    def _steps(self) -> dict[str, list[Step]]:
        """The scope's steps, by name."""
        steps: dict[str, list[Step]] = {}
        for node in self._nodes:
            if isinstance(node, Step):
                steps.setdefault(node.name, []).append(node)
        return steps

    @property
    def _nodes(self) -> tuple[Node, ...]:
        """The nodes of the scope."""
        return tuple(placed.node for placed in self.run.plan.index.within(self._node))

    def enter(self, name: str) -> Scope:
        """Return the scope of a named sequential composition. A scope can be entered once."""
        with self.run.lock:
            state = self._take(SequentialState, name, f"scope '{name}'")
            state.is_used = True
            return Scope(self.run, state.node, state, f"{self.path}/{name}".lstrip("/"))

    def spend(self, name: str) -> SpendState:
        """Return the state of a planned block. It can be opened once.

        Raises
        ------
        ReleaseRefused
            If the scope plans no such block, or it was opened before.
        """
        with self.run.lock:
            state = self._take(SpendState, name, f"block '{name}'")
            state.is_used = True
            return state

    def partition(
        self, cut: Cut, name: str | None, attribute_sources: AttributeSources = NOTHING_DERIVED
    ) -> list[Scope]:
        """Return one scope for each part of a planned partition. A partition can be made once.

        Parameters
        ----------
        cut
            The cut that makes the parts.
        name
            The name of the planned partition; None for the first that has these parts.
        attribute_sources
            For each derived attribute, the attributes on which it depends.

        Raises
        ------
        ReleaseRefused
            If the scope plans no such partition, or it was made before.
        """
        with self.run.lock:
            what = "a partition" if name is None else f"partition '{name}'"
            taken = self._take(ParallelState, name, what, _Parts(cut, sources_of(cut, attribute_sources)))
            node = taken.node
            # A single node is used for every part.
            children = node.parts * number_of_parts(cut) if len(node.parts) == 1 else node.parts
            taken.is_used = True
            taken.parts = [state_of(child) for child in children]
            label = node.name or "parts"
            return [
                Scope(self.run, child, state, f"{self.path}/{label} {k + 1}".lstrip("/"))
                for k, (child, state) in enumerate(zip(children, taken.parts, strict=True))
            ]

    def sample(self, name: str | None) -> tuple[Scope, Fraction, bool]:
        """Return the scope of a planned sample, its rate, and whether it draws whole units. A sample is drawn once.

        Raises
        ------
        ReleaseRefused
            If the scope plans no such sample, or it was drawn before.
        """
        with self.run.lock:
            taken = self._take(SampleState, name, "a sample" if name is None else f"sample '{name}'")
            taken.is_used = True
            path = f"{self.path}/{taken.node.name or 'sample'}".lstrip("/")
            scope = Scope(self.run, taken.node.part, taken.part, path)
            return scope, taken.node.rate, self.run.plan.unit.groups_rows

    def _take(self, kind: type[T], name: str | None, what: str, parts: _Parts | None = None) -> T:
        """Return the first unused state with that name, and commit the run to the branch that holds the state."""
        self.run.require_process()
        seen = False
        for state, commits in self._state.find(name, kind):
            if isinstance(state, ParallelState) and parts is not None and not parts.is_planned_by(state.node):
                continue
            if not state.is_used:
                # Branches are chosen and repetitions are begun here, after all refusals, so that a refusal changes
                # nothing.
                for commit in commits:
                    commit()
                return state
            seen = True
        where = f"{what} in '{self.path}'" if self.path else what
        if seen:
            raise ReleaseRefused(f"{where} was made before; a second one is not in the plan")
        raise ReleaseRefused(f"{where} {self._why_not_found(kind, name, parts)}")

    def _why_not_found(self, kind: type[OnceState], name: str | None, parts: _Parts | None) -> str:
        if parts is not None:
            planned = [node for node in self._nodes if isinstance(node, Parallel)]
            if any(name in (None, node.name) and parts.is_planned_by(node, of_any=True) for node in planned):
                return (
                    "depends on attributes that the plan's `FromRelease` does not name; list every attribute by which "
                    "the parts may be cut in its `attributes`, or leave `attributes` empty to allow every attribute"
                )
            return f"into these {parts.number} parts is not in the plan, or not in the branch that was taken"
        kinds: dict[type[OnceState], type[Node]] = {
            StepState: Step,
            SequentialState: Sequential,
            SampleState: Sample,
            SpendState: Spend,
        }
        # Entering a part, a sample or a scope also enters its node, if the node has a name.
        if kind is SequentialState and isinstance(self._node, Sequential) and self._node.name == name:
            return "is entered already; make its releases from this table"
        names = [getattr(node, "name", None) for node in self._nodes if isinstance(node, kinds[kind])]
        # A sample may be looked up without a name.
        if name in names or (name is None and names):
            return "is in a branch of the plan that was not taken"
        return f"is not in the plan; {nearest(str(name), [one for one in names if one is not None])}"


class Run:
    """One run of a plan, with the releases that were made and those that may still be made.

    Attributes
    ----------
    plan
        The plan that was charged.
    charges
        The releases made so far, in order.
    """

    def __init__(self, plan: Plan, accounting: Accounting) -> None:
        self.plan = plan
        self.charges: list[Charge] = []
        self.lock = threading.RLock()
        self._accounting = accounting
        self._state = state_of(plan.root)
        self._process = this_process()

    def require_process(self) -> None:
        """Refuse a forked process. It has a copy of the rows and of this run, and could make every release again.

        Raises
        ------
        ReleaseRefused
            If the run was opened in another process.
        """
        require_own(self._process)

    def scope(self) -> Scope:
        """Return the scope of the whole plan."""
        return Scope(self, self.plan.root, self._state, "")

    @property
    def spent(self) -> PrivacyLoss | None:
        """The cost of the releases so far, composed like the plan's total and never above it.

        Composing the releases made so far may give a larger bound than the plan's total, so the smaller of the two is
        returned.
        """
        with self.lock:
            made = self._accounting.loss_of_releases(lambda rules: self._state.cost_so_far(rules, self.plan), self.plan)
        # Both numbers bound the loss of the releases so far.
        total = self._accounting.total(self.plan)
        known = [loss for loss in (made, total) if loss is not None and loss.epsilon is not None]
        return min(known, key=operator.attrgetter("epsilon"), default=made)
