"""The JSON form of blocks in a plan file. A miner chooses the releases of a block during a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpframework.facts.errors import InputError
from dpframework.mechanisms.base import Calibration
from dpframework.plan.nodes import Node, Step
from dpframework.plan.spend_block_node import Amounts, Bounds, Spend
from dpframework.plan.step_json import write_losses


def write_spend(node: Spend, parts: Sequence[dict[str, Any]], calibration: Calibration | None) -> dict[str, Any]:
    """Return a block's JSON form. `parts` are the JSON forms of its kinds of release."""
    return {
        "name": node.name,
        "caps": node.caps.to_dict(),
        "bounds": [
            {"least": None if bounds.least is None else str(bounds.least), "times": bounds.times}
            for bounds in node.bounds
        ],
        "losses": None if calibration is None else write_losses(calibration.losses),
        "parts": list(parts),
    }


def read_spend(form: Mapping[str, Any], parts: Sequence[Node]) -> Spend:
    """Return the block for a form that `write_spend` wrote. `parts` are its kinds of release, as steps.

    Raises
    ------
    InputError
        If a kind is not a step, or has no bounds.
    """
    kinds = tuple(part for part in parts if isinstance(part, Step))
    if len(kinds) < len(parts) or len(form["bounds"]) != len(parts):
        raise InputError(f"block '{form['name']}' needs one step with bounds for each of its kinds")
    return Spend(form["name"], kinds, tuple(Bounds(**bounds) for bounds in form["bounds"]), Amounts(**form["caps"]))
