"""What two nodes of two plans declare otherwise, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.descriptions import Cases
from dpframework.facts.privacy import PrivacyLoss
from dpframework.plan.nodes import FromRelease, Parallel, Post, Repeat, Sample, Step
from dpframework.queries.base import QueryFacts, Sensitivity
from dpframework.reports.difference.sides import Side, own_content
from dpframework.reports.difference.wording import changed, from_to, words


def changed_facts(old: Side, new: Side, *, reordered: bool) -> list[tuple[str, str]]:
    """Return each fact that two paired nodes declare otherwise, in a word or two and in full."""
    before, after = old.node, new.node
    match before, after:
        case Step(), Step():
            found = list(_changed_step(before, after, old.loss, new.loss))
        case Post(), Post():
            found = list(changed({"uses": before.uses}, {"uses": after.uses}))
        case Repeat(), Repeat():
            found = list(changed({"times": before.times}, {"times": after.times}))
        case Sample(), Sample():
            found = list(changed({"rate": before.rate}, {"rate": after.rate}))
        case Parallel(), Parallel():
            found = list(_changed_parts(before, after))
        case _ if type(before) is not type(after):
            return [("kind", f"{old.label} became {new.label}")]
        case _:
            found = []
    if old.name != new.name:
        found.insert(0, ("name", f"name {from_to(old.name, new.name)}"))
    if reordered:
        found.append(("order", "its parts stand in another order"))
    if not found and own_content(before) != own_content(after):
        found.append(("details", "declared otherwise in a detail"))
    return found


def _changed_step(
    before: Step, after: Step, old: PrivacyLoss | None, new: PrivacyLoss | None
) -> Iterator[tuple[str, str]]:
    facts = _declared_of(before), _declared_of(after)
    named = facts[0]["query"] != facts[1]["query"]  # the query's text names its kind and attributes
    yield from (one for one in changed(*facts) if not named or one[0] not in ("kind of query", "attributes"))
    yield from _changed_sensitivity(before.query.facts(), after.query.facts())
    for notion in ("epsilon", "rho"):
        had, has = (None if loss is None else getattr(loss, notion) for loss in (old, new))
        if had != has and (facts[0].get(notion), facts[1].get(notion)) != (had, has):
            yield "loss", f"loss in {notion} {from_to(had, has)}"


def _declared_of(step: Step) -> dict[str, Any]:
    """Return what is declared of a step besides its name, by fact."""
    asked = step.query.facts()
    facts: dict[str, Any] = {
        "query": asked.text,
        "kind of query": asked.name,
        "attributes": asked.attributes,
        "integer answer": asked.integer,
        "largest length of the answer": asked.answer_length,
        "uses": step.uses,
        "assumptions": step.assumptions,
        "threshold": step.threshold,
        "mechanism": step.mechanism.name,
    }
    for parameter in attrs.fields(type(step.mechanism)):
        name = f"{parameter.name} of the mechanism" if parameter.name in facts else parameter.name
        facts[name] = getattr(step.mechanism, parameter.name)
    return facts


def _changed_sensitivity(before: QueryFacts, after: QueryFacts) -> Iterator[tuple[str, str]]:
    """Yield what is declared otherwise of the sensitivity, the norms that change alike in one."""
    old = {declared.norm: _declared(declared) for declared in before.sensitivities}
    new = {declared.norm: _declared(declared) for declared in after.sensitivities}
    alike: dict[tuple[str, str], list[str]] = {}
    for norm in dict.fromkeys((*old, *new)):
        had, has = old.get(norm, {}), new.get(norm, {})
        for fact in dict.fromkeys((*had, *has)):
            if had.get(fact) != has.get(fact):
                alike.setdefault((fact, from_to(had.get(fact), has.get(fact))), []).append(norm.value)
    for (fact, text), norms in alike.items():
        yield "sensitivity", f"{fact} ({', '.join(norms)}) {text}"


def _declared(declared: Sensitivity) -> dict[str, Any]:
    return {
        "sensitivity under add-or-remove-one": declared.add_or_remove_one,
        "sensitivity under replace-one": declared.replace_one,
        "rise of the answer when a row is added": declared.rise,
        "fall of the answer when a row is added": declared.fall,
        "source of the sensitivity": declared.source,
    }


def _changed_parts(before: Parallel, after: Parallel) -> Iterator[tuple[str, str]]:
    old, new = _by(before), _by(after)
    if old != new:
        yield "parts", f"parts {from_to(old, new)}"
    elif (
        isinstance(before.by, Attribute)
        and isinstance(after.by, Attribute)
        and (facts := [text for _, text in changed(before.by.to_dict(), after.by.to_dict())])
    ):
        yield "parts", f"the values of {after.by.name}: {'; '.join(facts)}"


def _by(node: Parallel) -> str:
    match node.by:
        case None:
            return "nobody declared"
        case FromRelease():
            about = f", of {words(node.by.attributes)}" if node.by.attributes else ""
            return f"by {node.by}{about}"
        case Cases():
            return f"by the cases {words([str(d) for d in node.by.descriptions])}, and all else"
        case tuple():
            return f"by the descriptions {words([str(d) for d in node.by])}"
    return f"by the values of {getattr(node.by, 'name', node.by)}"
