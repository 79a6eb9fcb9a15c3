"""For each attribute of a plan's schema, the cost of the releases that may read it."""

from __future__ import annotations

from typing import final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.facts.privacy_losses import PrivacyLoss
from dpframework.plan.error_bounds_by_result import parts_of
from dpframework.plan.nodes import Node
from dpframework.plan.plan_node_index import PlacedNode, PlanIndex
from dpframework.plan.spend_block_node import Spend
from dpframework.reports.plan_and_node_losses import bound_of, share_of


@final
@attrs.frozen
class AttributeLoss:
    """A group of attributes that the same releases may read, with the cost of these releases.

    Attributes
    ----------
    attributes
        The names of the attributes. If the schema is unknown, one group may have no names. It stands for the attributes
        that no release names, and its releases are those that may read any attribute.
    parts
        The names of the parts of the study that contain these releases.
    steps
        The number of steps of the plan that make these releases.
    loss
        The most that these releases cost together, composed as in the plan. None if there is no valid claim.
    share
        The loss of these releases as a share of the whole plan's loss, from 0 to 1. None if one of the two losses is
        unknown, or if the plan's loss is 0.
    """

    attributes: tuple[str, ...]
    parts: tuple[str, ...]
    steps: int
    loss: PrivacyLoss | None
    share: float | None


def losses_by_attribute(plan: AccountedPlan) -> list[AttributeLoss]:
    """Return the loss of each group of attributes that the same releases may read, the largest loss first.

    If the schema is known, the attributes that no release may read are also listed, with the loss 0.
    """
    reads = {placed.number: plan.index.reads[placed.number] for placed in plan.index.steps}
    named = tuple(dict.fromkeys(name for names in reads.values() for name in names or ()))
    names = named if plan.schema is None else plan.schema.names
    groups: dict[frozenset[int], list[str]] = {}
    for name in names:
        readers = frozenset(step for step, read in reads.items() if read is None or name in read)
        groups.setdefault(readers, []).append(name)
    others = frozenset(step for step, read in reads.items() if read is None)
    if plan.schema is None and others and others not in groups:
        groups[others] = []
    whole = bound_of(plan.root, plan)
    rows = []
    # Attributes that the same steps read have the same loss, and share a row.
    for readers, group in groups.items():
        loss = whole
        if len(readers) < len(plan.index.steps):
            kept = _keep_steps(plan.index, plan.index.nodes[0], readers)
            loss = PrivacyLoss(0) if kept is None else bound_of(kept, plan)
        parts = tuple(name for name, part in parts_of(plan) if any(part.number <= step < part.end for step in readers))
        rows.append(AttributeLoss(tuple(group), parts, len(readers), loss, share_of(loss, whole)))
    return sorted(rows, key=lambda row: -(row.share or 0.0))


def _keep_steps(index: PlanIndex, placed: PlacedNode, steps: frozenset[int]) -> Node | None:
    """Return a plan's node with only the given steps, composed as before, or None if no step is left.

    The steps stay the same objects, since a plan finds the noise of a step by the step's identity. A spend block caps
    the loss of releases that a miner chooses during the run. A block with one of the given steps stays whole, since all
    of its caps may be spent on that step.
    """
    if placed.kind.leaf:
        return placed.node if placed.number in steps else None
    if isinstance(placed.node, Spend):
        return placed.node if steps & {child.number for child in index.children(placed)} else None
    kept = [node for child in index.children(placed) if (node := _keep_steps(index, child, steps)) is not None]
    return placed.node.with_children(kept) if kept else None
