"""Functions that split a plan into parts, one for each result, and that predict the error of each release."""

from __future__ import annotations

from collections.abc import Iterator

from dpframework.mechanisms.base import Preview
from dpframework.plan.index import PlacedNode
from dpframework.plan.nodes import Sequential, Step
from dpframework.plan.plan import Plan
from dpframework.plan.planned_part import PlannedPart, PlannedStep


def previews(plan: Plan) -> dict[str, Preview]:
    """Return the predicted error of each step with a valid claim, by its path."""
    return {path: calibration.preview for path, _, calibration in plan.calibrated_steps()}


def parts_of(plan: Plan) -> list[tuple[str, PlacedNode]]:
    """Return the parts of a study with their names, one for each result."""
    top = plan.index.nodes[0]
    whole = isinstance(top.node, Sequential) and not top.name
    return [(part.name or part.label, part) for part in (plan.index.children(top) if whole else (top,))]


def planned_parts(plan: Plan) -> Iterator[PlannedPart]:
    """Yield a `PlannedPart`, the planned steps of one result, for each part of the plan."""
    for name, part in parts_of(plan):
        steps = [
            PlannedStep(
                placed.path.removeprefix(f"{name}/"), placed.node, placed.calibration, chosen=placed.block is not None
            )
            for placed in plan.index.steps_of(part)
            if isinstance(placed.node, Step)
        ]
        yield PlannedPart(name, steps, plan.relation, plan.size, plan.schema)
