"""The nodes of a plan for a report: what each costs and uses, as numbers that a program can read and as text.

What a drawing shows is `drawn.Drawn`, which two plans in one become as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import final

import attrs

from dpframework.accountant import PureAccountant, ZCDPAccountant
from dpframework.facts.privacy import readable
from dpframework.plan.graph import label_of
from dpframework.plan.nodes import Node, Parallel, Post, Repeat, Sample, Step, uses, walk
from dpframework.plan.plan import Plan
from dpframework.reports.losses import loss_of
from dpframework.reports.steps import StepRow, rows_of_steps
from dpframework.study.study_plan import StudyPlan


@final
@attrs.frozen
class NodeRow:
    """One node of a plan, each fact as text.

    Attributes
    ----------
    number
        Its number in the plan's graph (see `plan_graph`).
    kind
        "step", "sequential", ...
    name
        Its name; empty if it has none.
    label
        What it is, in a few words.
    loss
        What all releases below it cost at most, composed.
    exact
        The same as exact rationals, each after its notion of loss; none for what is free or has no valid claim.
    share
        The part of the whole plan's loss that it makes up; None where one of them is not known.
    times
        How often it may be released for what is above it, if that is not once.
    uses
        The numbers of the nodes whose releases it is given.
    step
        Its facts if it is a step.
    children
        The nodes directly below.
    """

    number: int
    kind: str
    name: str
    label: str
    loss: str
    exact: tuple[tuple[str, Fraction], ...]
    share: float | None
    times: str
    uses: tuple[int, ...]
    step: StepRow | None
    children: tuple[NodeRow, ...]

    def walk(self) -> Iterator[NodeRow]:
        """Yield the node and all below it, in the order of their numbers."""
        yield self
        for child in self.children:
            yield from child.walk()


def node_tree(plan: StudyPlan) -> NodeRow:
    """Return the plan's nodes, from the top, with what they cost and what they use."""
    numbers = {id(node): number for number, node in enumerate(walk(plan.root))}
    rows = rows_of_steps(plan)
    used: dict[int, set[int]] = defaultdict(set)
    for source, user in uses(plan.root):
        used[numbers[id(user)]].add(numbers[id(source)])
    whole = dict(_exact(plan.root, plan))

    def row(node: Node, times: str) -> NodeRow:
        amounts = _exact(node, plan)
        shares = [float(amount / whole[notion]) for notion, amount in amounts if whole.get(notion)]
        return NodeRow(
            number=numbers[id(node)],
            kind=type(node).__name__.lower(),
            name=getattr(node, "name", None) or "",
            label=label_of(node),
            loss=_amounts(amounts) or _without_amount(node, plan),
            exact=amounts,
            share=next(iter(shares), None),
            times=times,
            uses=tuple(sorted(used[numbers[id(node)]])),
            step=rows.get(id(node)),
            children=tuple(row(child, _times(node, k)) for k, child in enumerate(node.children)),
        )

    return row(plan.root, "")


def _times(node: Node, position: int) -> str:
    match node:
        case Repeat():
            return f"{node.times} times"
        case Sample():
            return "on the sample"
        case Parallel() if len(node.parts) == 1:
            return "once a part" if node.number is None else f"once in each of {node.number} parts"
        case Parallel():
            return f"in part {position + 1} of {len(node.parts)}"
    return ""


def _exact(node: Node, plan: Plan) -> tuple[tuple[str, Fraction], ...]:
    """Return what a node costs as exact amounts: epsilon, and rho where that is accounted or alone finite."""
    if isinstance(node, Post):
        return ()
    found = {"epsilon": PureAccountant(plan.relation).amount_of(node, plan).under(plan.relation)}
    if delta := ZCDPAccountant.delta_for(plan.budget.delta):
        found["rho"] = ZCDPAccountant(plan.relation, delta=delta).amount_of(node, plan).under(plan.relation)
    alone = loss_of(node, plan) if found["epsilon"] is None else None
    if alone is not None and alone.epsilon is None:
        found["rho"] = alone.rho
    return tuple((notion, amount) for notion, amount in found.items() if amount is not None)


def _amounts(amounts: tuple[tuple[str, Fraction], ...]) -> str:
    return ", ".join(f"{notion} {readable(amount)}" for notion, amount in amounts)


def _without_amount(node: Node, plan: Plan) -> str:
    match node:
        case Post():
            return "free"
        case Step():
            return "no claim"
    return "no valid claim" if plan.budget.delta else "no pure epsilon"
