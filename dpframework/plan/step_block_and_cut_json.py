"""The JSON forms of steps, blocks and cuts in plan files. A cut makes the parts of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError, nearest, refuse_loops
from dpframework.facts.logical_descriptions_of_rows import Cases, Description, description_from_dict
from dpframework.facts.privacy_losses import NOTHING
from dpframework.facts.schema_text import attribute_from_dict
from dpframework.formulas.formula_and_claim_json import read_score_claims, score_claims_form
from dpframework.mechanisms.base import Calibration, Mechanism
from dpframework.mechanisms.release_losses import Losses
from dpframework.plan.nodes import FromRelease, Node, Parts, Step
from dpframework.plan.spend_block_node import Amounts, Bounds, Spend
from dpframework.queries.base import QueryFacts, Sensitivity
from dpframework.queries.plan_file_query import PlanFileQuery


def write_step(step: Step, calibration: Calibration | None, rows: int) -> dict[str, Any]:
    """Return the JSON form of a step and its noise, for privacy units of at most `rows` rows."""
    facts = step.facts
    for_rows = step.query.for_rows(rows) if rows > 1 else ()
    query = {
        "name": facts.name,
        "text": facts.text,
        "attributes": list(facts.attributes),
        "integer": facts.integer,
        "answer_length": facts.answer_length,
        "sensitivities": [_write_sensitivity(s) for s in facts.sensitivities],
        **({"rounding": str(facts.rounding)} if facts.rounding else {}),
        **({"histograms": list(facts.histograms)} if facts.histograms else {}),
        **({"gathers": True} if facts.gathers else {}),
        **({"unlisted": True} if facts.unlisted else {}),
        **({"places": True} if facts.places else {}),
        **({"no_attributes": True} if facts.no_attributes else {}),
        **({"formulas": [score_claims_form(one) for one in facts.formulas]} if facts.formulas else {}),
        **({"for_rows": [_write_sensitivity(s) for s in for_rows]} if for_rows else {}),
    }
    return {
        "name": step.name,
        "query": query,
        "mechanism": {"name": step.mechanism.name, **_write_parameters(step)},
        "uses": list(step.uses),
        "assumptions": list(step.assumptions),
        "threshold": _write_ratio(step.threshold),
        "losses": {"scale": str(calibration.scale), **write_losses(calibration.losses)} if calibration else None,
    }


def _write_parameters(step: Step) -> dict[str, Any]:
    """Return the parameters of a step's mechanism as its class takes them. Fields that it computes are left out.

    Raises
    ------
    InputError
        If a parameter contains a value that a plan file cannot hold.
    """
    fields = [field for field in attrs.fields(type(step.mechanism)) if field.init]
    with refuse_loops(f"step '{step.name}': a parameter of mechanism '{step.mechanism.name}'"):
        values = attrs.asdict(step.mechanism, filter=lambda field, _: field.init)
        where = f"step '{step.name}': the parameter {{}} of mechanism '{step.mechanism.name}'"
        return {field.alias: _plain(values[field.name], where.format(field.alias)) for field in fields}


def _plain(value: Any, where: str) -> Any:
    """Return a parameter with exact numbers as texts. Refuse what JSON cannot hold."""
    match value:
        case Fraction():
            return str(value)
        case dict():
            return {key: _plain(inner, where) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner, where) for inner in value]
        case str() | int() | float() | None:
            return value
    raise InputError(
        f"{where} contains a value of type {type(value).__name__}; a plan file holds numbers, fractions, texts and "
        "lists of these, so keep one of these in the field, and let the field's converter build the value from it"
    )


def _write_sensitivity(declared: Sensitivity) -> dict[str, Any]:
    return {
        "norm": declared.norm.value,
        "add_or_remove_one": _write_ratio(declared.add_or_remove_one),
        "replace_one": _write_ratio(declared.replace_one),
        "rise": _write_ratio(declared.rise),
        "fall": _write_ratio(declared.fall),
        "source": declared.source,
    }


def write_losses(losses: Losses) -> dict[str, Any]:
    """Return the JSON form of losses under both relations."""
    return {
        "epsilon": losses.pure.to_dict(),
        "rho": losses.zcdp.to_dict(),
        **(
            {} if losses.delta == NOTHING else {"delta": losses.delta.to_dict()}
        ),  # so that older plans keep their hashes
    }


def _write_ratio(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def read_step(form: Mapping[str, Any], mechanisms: Mapping[str, type[Mechanism]]) -> Step:
    """Return the step for a form that `write_step` wrote. Its query is a `PlanFileQuery`, which cannot be evaluated.

    Raises
    ------
    InputError
        If the form names an unknown mechanism.
    """
    query = dict(form["query"])
    query["sensitivities"] = [Sensitivity(**declared) for declared in query["sensitivities"]]
    query["formulas"] = [read_score_claims(one) for one in query.get("formulas", ())]
    for_rows = tuple(Sensitivity(**declared) for declared in query.pop("for_rows", ()))
    parameters = dict(form["mechanism"])
    name = parameters.pop("name")
    if name not in mechanisms:
        raise InputError(
            f"the plan uses the mechanism '{name}', which no installed plugin provides; {nearest(name, mechanisms)}"
        )
    return Step(
        form["name"],
        PlanFileQuery(QueryFacts(**query), for_rows),
        mechanisms[name](**parameters),
        uses=form["uses"],
        assumptions=form["assumptions"],
        threshold=form["threshold"],
    )


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


def write_cut(by: Parts | None) -> Any:
    """Return the JSON form of the cut that makes the parts of a parallel; None if no cut is declared."""
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


def read_cut(form: Any) -> Parts | None:
    """Return the cut for a form that `write_cut` wrote."""
    if form is None:
        return None
    if "attribute" in form:
        return attribute_from_dict(form["attribute"], 0)
    if "released" in form:
        return FromRelease(form["released"], attributes=form.get("attributes", ()))
    if "cases" in form:
        return Cases(description_from_dict(d) for d in form["cases"])
    descriptions: tuple[Description, ...] = tuple(description_from_dict(d) for d in form["descriptions"])
    return descriptions
