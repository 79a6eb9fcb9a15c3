"""The claims in which two paired nodes of two plans differ, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.privacy_losses import PrivacyLoss
from dpframework.plan.nodes import Parallel, Step
from dpframework.queries.base import Sensitivity
from dpframework.reports.difference.node_side import Side, own_content
from dpframework.reports.difference.value_text import describe_changes, from_to


def compare_facts(old: Side, new: Side, *, reordered: bool) -> list[tuple[str, str]]:
    """Return each fact in which two paired nodes differ, as its name and as a text."""
    before, after = old.node, new.node
    if old.placed.kind is not new.placed.kind:
        return [("kind", f"{old.label} became {new.label}")]
    found = list(describe_changes(old.placed.kind.facts(before), new.placed.kind.facts(after)))
    if isinstance(before, Step) and isinstance(after, Step):
        found = list(_compare_steps(before, after, found, old.loss, new.loss))
    if not found and isinstance(before, Parallel) and isinstance(after, Parallel):
        cut, by = before.by, after.by
        if isinstance(cut, Attribute) and isinstance(by, Attribute):
            values = [text for _, text in describe_changes(cut.to_dict(), by.to_dict())]
            found = [("parts", f"the values of {by.name}: {'; '.join(values)}")] if values else []
    if old.name != new.name:
        found.insert(0, ("name", f"name {from_to(old.name, new.name)}"))
    if reordered:
        found.append(("order", "its parts are in another order"))
    if not found and own_content(before) != own_content(after):
        found.append(("details", "a detail is declared differently"))
    return found


def _compare_steps(
    before: Step, after: Step, declared: list[tuple[str, str]], old: PrivacyLoss | None, new: PrivacyLoss | None
) -> Iterator[tuple[str, str]]:
    """Yield the changed claims of two steps.

    The change of the loss is left out if the mechanism's parameter of the same name shows the same change.
    """
    named = before.facts.text != after.facts.text  # if so, the query's text already names its kind and attributes
    yield from (one for one in declared if not named or one[0] not in ("kind of query", "attributes"))
    # Norms whose claims change in the same way are named together.
    old_norms = {declared.norm: _sensitivity_facts(declared) for declared in before.facts.sensitivities}
    new_norms = {declared.norm: _sensitivity_facts(declared) for declared in after.facts.sensitivities}
    alike: dict[tuple[str, str], list[str]] = {}
    for norm in dict.fromkeys((*old_norms, *new_norms)):
        before_norm, after_norm = old_norms.get(norm, {}), new_norms.get(norm, {})
        for fact in dict.fromkeys((*before_norm, *after_norm)):
            if before_norm.get(fact) != after_norm.get(fact):
                alike.setdefault((fact, from_to(before_norm.get(fact), after_norm.get(fact))), []).append(norm.value)
    for (fact, text), norms in alike.items():
        yield "sensitivity", f"{fact} ({', '.join(norms)}) {text}"
    parameters = [attrs.asdict(step.mechanism, recurse=False) for step in (before, after)]
    for notion in ("epsilon", "rho"):
        had, has = (None if loss is None else getattr(loss, notion) for loss in (old, new))
        if had != has and [own.get(notion) for own in parameters] != [had, has]:
            yield "loss", f"loss in {notion} {from_to(had, has)}"


def _sensitivity_facts(declared: Sensitivity) -> dict[str, Any]:
    return {
        "sensitivity under add-or-remove-one": declared.add_or_remove_one,
        "sensitivity under replace-one": declared.replace_one,
        "rise of the answer when a row is added": declared.rise,
        "fall of the answer when a row is added": declared.fall,
        "source of the sensitivity": declared.source,
    }
