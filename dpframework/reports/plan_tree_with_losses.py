"""The nodes of a plan for a report, with their costs and the nodes whose releases they use.

Drawings are made of `plan_drawing_data.NodeDrawing` instead, which can also show two plans merged into one.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import final

import attrs

from dpframework.accountant import PureAccountant, ZCDPAccountant
from dpframework.facts.privacy_losses import readable
from dpframework.plan.nodes import Node, Step
from dpframework.plan.plan_node_index import PlacedNode
from dpframework.reports.plan_and_node_losses import loss_of
from dpframework.reports.step_row import StepRow, rows_of_steps
from dpframework.study.study_plan_totals_and_findings import StudyPlan


@final
@attrs.frozen
class NodeRow:
    """The facts of one node of a plan, with its costs both as text and as exact numbers.

    Attributes
    ----------
    number
        The node's number in the plan's graph (see `plan_graph`).
    kind
        The name of the node's kind, such as "step" or "sequential".
    name
        The node's name; empty if it has none.
    label
        A few words that describe the node.
    loss
        The most that all releases of the node cost together, in words.
    exact
        This cost in exact form: pairs of a notion of loss and an amount. Empty if the node is free or has no valid
        claim.
    share
        The node's loss as a share of the whole plan's loss, from 0 to 1. None if one of the two losses is unknown.
    times
        How often the node above may release this node, in words; empty if only once.
    uses
        The numbers of the nodes whose releases the node uses.
    step
        The facts of the node as a step; None if it is not a step.
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
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


def node_tree(plan: StudyPlan) -> NodeRow:
    """Return the top node of the plan, with all nodes below it."""
    index, rows = plan.index, rows_of_steps(plan)
    whole = dict(_exact(plan.root, plan))

    def row(placed: PlacedNode) -> NodeRow:
        amounts = () if placed.kind.free else _exact(placed.node, plan)
        shares = [float(amount / whole[notion]) for notion, amount in amounts if whole.get(notion)]
        above = None if placed.parent is None else index.nodes[placed.parent]
        costs = ", ".join(f"{notion} {readable(amount)}" for notion, amount in amounts)
        if placed.kind.free:
            without = "free"
        elif isinstance(placed.node, Step):
            without = "no claim"
        else:
            without = "no valid claim" if plan.budget.delta else "no pure epsilon"
        return NodeRow(
            number=placed.number,
            kind=placed.kind.name,
            name=placed.name,
            label=placed.label,
            loss=costs or without,
            exact=amounts,
            share=next(iter(shares), None),
            times="" if above is None else above.kind.times(above.node, placed.position),
            uses=placed.uses,
            step=rows.get(id(placed.node)),
            children=tuple(row(child) for child in index.children(placed)),
        )

    return row(index.nodes[0])


def _exact(node: Node, plan: StudyPlan) -> tuple[tuple[str, Fraction], ...]:
    """Return a node's cost as exact amounts: epsilon and rho if they are finite, and the delta if it is not 0."""
    found: dict[str, Fraction | None] = {}
    for notion, kind in (("epsilon", PureAccountant), ("rho", ZCDPAccountant)):
        amount = plan.amount(kind, node)
        found[notion] = None if amount is None else amount.under(plan.relation)
    # A step without a pure epsilon costs the rho that `loss_of` gives.
    alone = loss_of(node, plan) if found["epsilon"] is None else None
    if alone is not None and alone.epsilon is None:
        found["rho"] = alone.rho
    found["delta"] = plan.exact_delta(node) or None
    return tuple((notion, amount) for notion, amount in found.items() if amount is not None)
