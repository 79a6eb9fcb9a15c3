"""What changed in the nodes of a plan: the merged tree, and a sentence a composition and a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from dpframework.accountant import PureAccountant
from dpframework.facts.attributes import Attribute
from dpframework.facts.descriptions import Cases
from dpframework.facts.privacy import PrivacyLoss
from dpframework.plan.graph import label_of
from dpframework.plan.nodes import FromRelease, Node, Parallel, Post, Repeat, Step, scopes, walk
from dpframework.plan.plan import Plan
from dpframework.queries.base import QueryFacts, Sensitivity
from dpframework.reports.difference.alignment import Aligned, is_composition, own_content
from dpframework.reports.difference.base import Mark, Merged, Side
from dpframework.reports.difference.wording import changed, from_to, loss_words, quoted, words


def loss_of(node: Node, plan: Plan) -> PrivacyLoss | None:
    """Return what all releases below a node cost at most: pure epsilon; for a single step without one, its rho."""
    if isinstance(node, Step) and (calibration := plan.calibration(node)) is not None:
        rho = calibration.losses.zcdp.under(plan.relation)
        if calibration.losses.pure.under(plan.relation) is None and rho is not None:
            return PrivacyLoss(rho=rho)
    accountant = PureAccountant(plan.relation)
    return accountant.loss(accountant.amount_of(node, plan))


class View:
    """A plan with the place and number of each node."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._numbers = {id(node): number for number, node in enumerate(walk(plan.root))}
        self._scopes: dict[int, str] = {}
        for path, nodes in scopes(plan.root):
            for node in nodes:
                self._scopes.setdefault(id(node), path)

    def path(self, node: Node) -> str:
        """Return the node's name after the scopes around it; for what has no name, the scope that it is in."""
        return "/".join(filter(None, (self._scopes[id(node)], getattr(node, "name", None))))

    def where(self, node: Node) -> str:
        """Return the scope that a node is in, to begin a sentence with."""
        scope = self._scopes[id(node)]
        return f"in '{scope}': " if scope else ""

    def side(self, node: Node) -> Side:
        """Return what the merged tree holds of a node."""
        loss = None if isinstance(node, Post) else loss_of(node, self.plan)
        return Side(self._numbers[id(node)], type(node).__name__.lower(), self.path(node), label_of(node), loss)

    def facts(self, step: Step) -> dict[str, Any]:
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


def merged(tree: Aligned, old: View, new: View) -> Merged:
    """Return the merged tree with what is shown of each node."""
    children = tuple(merged(child, old, new) for child in tree.children)
    before = None if tree.before is None else old.side(tree.before)
    after = None if tree.after is None else new.side(tree.after)
    if before is None or after is None:
        return Merged(Mark.ADDED if before is None else Mark.REMOVED, before, after, (), children)
    facts = tuple(fact for fact, _ in _changed_facts(tree, old, new))
    return Merged(Mark.CHANGED if facts or before.loss != after.loss else Mark.SAME, before, after, facts, children)


def _changed_facts(tree: Aligned, old: View, new: View) -> list[tuple[str, str]]:
    """Return each fact that two paired nodes declare otherwise, in a word or two and in full."""
    before, after = tree.before, tree.after
    assert before is not None
    assert after is not None
    match before, after:
        case Step(), Step():
            found = list(_changed_step(before, after, old, new))
        case Post(), Post():
            found = list(changed({"uses": before.uses}, {"uses": after.uses}))
        case Repeat(), Repeat():
            found = list(changed({"times": before.times}, {"times": after.times}))
        case Parallel(), Parallel():
            found = list(_changed_parts(before, after))
        case _ if type(before) is not type(after):
            return [("kind", f"{label_of(before)} became {label_of(after)}")]
        case _:
            found = []
    names = getattr(before, "name", None), getattr(after, "name", None)
    if names[0] != names[1]:
        found.insert(0, ("name", f"name {from_to(*names)}"))
    if tree.reordered:
        found.append(("order", "its parts stand in another order"))
    if not found and own_content(before) != own_content(after):
        found.append(("details", "declared otherwise in a detail"))
    return found


def _changed_step(before: Step, after: Step, old: View, new: View) -> Iterator[tuple[str, str]]:
    facts = old.facts(before), new.facts(after)
    named = facts[0]["query"] != facts[1]["query"]  # the query's text names its kind and attributes
    yield from (one for one in changed(*facts) if not named or one[0] not in ("kind of query", "attributes"))
    yield from _changed_sensitivity(before.query.facts(), after.query.facts())
    losses = loss_of(before, old.plan), loss_of(after, new.plan)
    for notion in ("epsilon", "rho"):
        had, has = (None if loss is None else getattr(loss, notion) for loss in losses)
        if had != has and (facts[0].get(notion), facts[1].get(notion)) != (had, has):
            yield "loss", f"loss in {notion} {from_to(had, has)}"


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
        "monotonic sensitivity": declared.monotonic,
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
            return f"by {node.by}"
        case Cases():
            return f"by the cases {words([str(d) for d in node.by.descriptions])}, and all else"
        case tuple():
            return f"by the descriptions {words([str(d) for d in node.by])}"
    return f"by the values of {getattr(node.by, 'name', node.by)}"


def _every(tree: Aligned) -> Iterator[Aligned]:
    yield tree
    for child in tree.children:
        yield from _every(child)


def composition_changes(tree: Aligned, old: View, new: View, within: Mark | None = None) -> Iterator[str]:
    """Yield a sentence a changed composition; of one that is added or removed with those inside it, one for all."""
    alone = Mark.ADDED if tree.before is None else Mark.REMOVED if tree.after is None else None
    if any(node is not None and is_composition(node) for node in (tree.before, tree.after)):
        if alone is None:
            yield from _changed_composition(tree, old, new)
        elif alone is not within:
            view, node = (new, tree.after) if alone is Mark.ADDED else (old, tree.before)
            assert node is not None
            yield f"{view.where(node)}{alone} {_described(node)}, {_around(tree, alone)}"
    for child in tree.children:
        yield from composition_changes(child, old, new, alone)


def _changed_composition(one: Aligned, old: View, new: View) -> Iterator[str]:
    assert one.after is not None
    facts = _changed_facts(one, old, new)
    if facts and facts[0][0] == "kind":
        yield f"{new.where(one.after)}{facts[0][1]}"
    elif facts:
        yield f"{new.where(one.after)}{_described(one.after)}: {'; '.join(text for _, text in facts)}"


def _described(node: Node) -> str:
    """Return a composition in a few words, with its name."""
    label, name = label_of(node), getattr(node, "name", None)
    return label if name is None else f"'{name}'" if label == name else f"'{name}' ({label})"


def _around(one: Aligned, alone: Mark) -> str:
    """Say which nodes of both plans a composition stands around, and how many steps come or go with it."""
    both = [inner.after for inner in _every(one) if inner.before is not None and inner.after is not None]
    names = [name for node in both if (name := getattr(node, "name", None)) is not None]
    own = [inner.node for inner in _every(one) if inner.before is None or inner.after is None]
    steps = sum(isinstance(node, Step) for node in own)
    held = f"{steps} step{'' if steps == 1 else 's'}"
    if not both:
        return f"with {held}"
    return f"around {quoted(names) or 'what stays'}" + (f", with {held}" if steps else "")


def step_changes(tree: Aligned, old: View, new: View) -> Iterator[str]:
    """Yield a sentence a step or post-processing that is added, removed or declared otherwise."""
    for one in _every(tree):
        if any(node is not None and is_composition(node) for node in (one.before, one.after)):
            continue
        if one.before is None or one.after is None:
            view, node = (new, one.after) if one.before is None else (old, one.before)
            assert node is not None
            mark = Mark.ADDED if one.before is None else Mark.REMOVED
            yield f"'{view.path(node)}' {mark}: {_summary(node, view)}"
        elif facts := _changed_facts(one, old, new):
            yield f"'{new.path(one.after)}': {'; '.join(text for _, text in facts)}"


def _summary(node: Node, view: View) -> str:
    if not isinstance(node, Step):
        return "post-processing"
    loss = loss_of(node, view.plan)
    cost = "no valid claim" if loss is None else loss_words(loss) if loss.rho is None else f"rho {words(loss.rho)}"
    return f"{node.query.facts().text}, {node.mechanism.name}, {cost}"
