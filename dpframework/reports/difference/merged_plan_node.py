"""The merged tree of two plans: its nodes, and the facts in which paired nodes differ."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator
from typing import Any, final

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.privacy_losses import PrivacyLoss
from dpframework.plan.nodes import Parallel, Step
from dpframework.queries.base import Sensitivity
from dpframework.reports.difference.node_side import Side, own_content
from dpframework.reports.difference.value_text import describe_changes, from_to


class Mark(enum.StrEnum):
    """Whether a node was added, removed or changed from the first of two plans to the second, or stayed the same."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@final
@attrs.frozen(eq=False)
class MergedNode:
    """A node of the merged tree of two plans. It comes from one of the plans or from both.

    Attributes
    ----------
    before, after
        The node in the first plan and in the second plan; None if that plan does not have it.
    children
        The children in either plan, in the order of the second plan. A removed child follows the child that it followed
        in the first plan. If only one plan has a composition, its children may still be in both plans: the composition
        was put around them, or was removed from around them.
    reordered
        Whether the children that both plans have are in another order in the second plan.
    """

    before: Side | None
    after: Side | None
    children: tuple[MergedNode, ...] = ()
    reordered: bool = False

    @property
    def side(self) -> Side:
        """The node in the second plan. If that plan does not have it, the node in the first plan."""
        found = self.after or self.before
        assert found is not None  # a merged node is in at least one of the plans
        return found

    @functools.cached_property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The changed facts: pairs of a fact's name, in a few words, and a text that describes the change."""
        if self.before is None or self.after is None:
            return ()
        return tuple(compare_facts(self.before, self.after, reordered=self.reordered))

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of the changed facts."""
        return tuple(fact for fact, _ in self.facts)

    @property
    def mark(self) -> Mark:
        """Whether the node is in one plan or both. A node of both plans is "changed" if facts or the loss differ."""
        if self.before is None or self.after is None:
            return Mark.ADDED if self.before is None else Mark.REMOVED
        return Mark.CHANGED if self.facts or self.before.loss != self.after.loss else Mark.SAME

    def walk(self) -> Iterator[MergedNode]:
        """Yield the node and all nodes below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "mark": self.mark.value,
            "before": None if self.before is None else self.before.to_dict(),
            "after": None if self.after is None else self.after.to_dict(),
            "changed": list(self.changed),
            "children": [child.to_dict() for child in self.children],
        }


def compare_facts(old: Side, new: Side, *, reordered: bool) -> list[tuple[str, str]]:
    """Return the facts in which two paired nodes differ: pairs of a fact's name and a text on the change."""
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
    """Yield the changed facts of two steps: pairs of a fact's name and a text on the change.

    The change of the loss is left out if the mechanism's parameter of the same name shows the same change.
    """
    named = before.facts.text != after.facts.text  # a changed text shows a new kind or new attributes, too
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
