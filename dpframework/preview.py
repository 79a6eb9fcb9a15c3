"""Previews: the error that each release of a plan is expected to have, before it is run."""

from __future__ import annotations

from dpframework.mechanisms.base import Preview
from dpframework.plan.nodes import Step, scopes
from dpframework.plan.plan import Plan


def previews(plan: Plan) -> dict[str, Preview]:
    """Return the predicted error of each step with a valid claim, by its path."""
    found: dict[str, Preview] = {}
    for path, nodes in scopes(plan.root):
        for node in nodes:
            if isinstance(node, Step) and (calibration := plan.calibration(node)) is not None:
                found[f"{path}/{node.name}".lstrip("/")] = node.mechanism.preview(calibration)
    return found
