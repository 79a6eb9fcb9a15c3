"""Previews: the error that each release of a plan is expected to have, before it is run."""

from __future__ import annotations

from dpframework.mechanisms.base import Preview
from dpframework.plan.plan import Plan


def previews(plan: Plan) -> dict[str, Preview]:
    """Return the predicted error of each step with a valid claim, by its path."""
    return {path: calibration.preview for path, _, calibration in plan.calibrated_steps()}
