"""Plan nodes as JSON-safe dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.descriptions import Cases
from dpframework.facts.errors import InputError
from dpframework.mechanisms.base import Calibration, Mechanism
from dpframework.plan.nodes import Either, FromRelease, Node, Parallel, Parts, Post, Repeat, Sample, Sequential, Step
from dpframework.queries.base import Query, Sensitivity


def _ratio(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _losses(calibration: Calibration | None) -> dict[str, Any] | None:
    if calibration is None:
        return None
    return {
        "scale": str(calibration.scale),
        "epsilon": calibration.losses.pure.to_dict(),
        "rho": calibration.losses.zcdp.to_dict(),
    }


def _sensitivity(declared: Sensitivity) -> dict[str, Any]:
    return {
        "norm": declared.norm.value,
        "add_or_remove_one": _ratio(declared.add_or_remove_one),
        "replace_one": _ratio(declared.replace_one),
        "rise": _ratio(declared.rise),
        "fall": _ratio(declared.fall),
        "source": declared.source,
    }


def _query(query: Query, rows: int) -> dict[str, Any]:
    facts = query.facts()
    for_rows = query.for_rows(rows) if rows > 1 else ()
    return {
        "name": facts.name,
        "text": facts.text,
        "attributes": list(facts.attributes),
        "integer": facts.integer,
        "answer_length": facts.answer_length,
        "sensitivities": [_sensitivity(s) for s in facts.sensitivities],
        **({"rounding": str(facts.rounding)} if facts.rounding else {}),
        **({"histograms": list(facts.histograms)} if facts.histograms else {}),
        **({"gathers": True} if facts.gathers else {}),
        **({"for_rows": [_sensitivity(s) for s in for_rows]} if for_rows else {}),
    }


def _mechanism(mechanism: Mechanism) -> dict[str, Any]:
    values = attrs.asdict(mechanism)
    return {"name": mechanism.name, **{k: str(v) if isinstance(v, Fraction) else v for k, v in values.items()}}


def _parts(by: Parts | None) -> Any:
    match by:
        case None:
            return None
        case Attribute():
            return {"attribute": by.to_dict()}
        case FromRelease():
            return {"released": by.step, **({"attributes": list(by.attributes)} if by.attributes else {})}
        case Cases():
            return by.to_dict()
    return {"descriptions": [d.to_dict() for d in by]}


def node_to_dict(node: Node, calibration: Callable[[Step], Calibration | None], rows: int = 1) -> dict[str, Any]:
    """Write a node and all below it, steps with the noise that `calibration` gives; of units of some rows."""
    match node:
        case Step():
            return {
                "kind": "step",
                "name": node.name,
                "query": _query(node.query, rows),
                "mechanism": _mechanism(node.mechanism),
                "uses": list(node.uses),
                "assumptions": list(node.assumptions),
                "threshold": _ratio(node.threshold),
                "losses": _losses(calibration(node)),
            }
        case Post():
            return {"kind": "post", "name": node.name, "uses": list(node.uses)}
        case Repeat():
            return {"kind": "repeat", "times": node.times, "part": node_to_dict(node.part, calibration, rows)}
        case Sample():
            part = node_to_dict(node.part, calibration, rows)
            return {"kind": "sample", "name": node.name, "rate": str(node.rate), "part": part}
        case Parallel():
            parts = [node_to_dict(part, calibration, rows) for part in node.parts]
            return {"kind": "parallel", "name": node.name, "by": _parts(node.by), "parts": parts}
        case Sequential():
            return {
                "kind": "sequential",
                "name": node.name,
                "parts": [node_to_dict(p, calibration, rows) for p in node.parts],
            }
        case Either():
            return {"kind": "either", "parts": [node_to_dict(part, calibration, rows) for part in node.parts]}
    raise InputError(f"a plan holds no {type(node).__name__}")
