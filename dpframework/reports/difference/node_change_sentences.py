"""The changes in the nodes of a plan, with one sentence for each changed composition or step."""

from __future__ import annotations

from collections.abc import Iterator

from dpframework.facts.phrases import count_text
from dpframework.plan.nodes import Step
from dpframework.reports.difference.merged_plan_node import Mark, MergedNode
from dpframework.reports.difference.node_side import Side
from dpframework.reports.difference.value_text import loss_words, quote_names, words


def composition_changes(tree: MergedNode, within: Mark | None = None) -> Iterator[str]:
    """Yield a sentence for each changed composition.

    If a whole composition is added or removed, the compositions inside it get no sentences of their own.
    """
    alone = _alone(tree)
    if _has_parts(tree):
        if alone is None:
            # The sentence on a changed kind names both kinds, so it needs no description in front.
            of = "" if tree.changed == ("kind",) else f"{_describe(tree.side)}: "
            if tree.facts:
                yield f"{tree.side.where}{of}{'; '.join(text for _, text in tree.facts)}"
        elif alone is not within:
            # The sentence names the nodes inside that both plans have, and counts the steps that come or go with the
            # composition.
            both = [inner.side for inner in tree.walk() if _alone(inner) is None]
            names = [side.name for side in both if side.name is not None]
            steps = sum(isinstance(inner.side.node, Step) for inner in tree.walk() if _alone(inner) is not None)
            held = count_text(steps, "step")
            around = [f"around {quote_names(names) or 'what stays'}"] if both else []
            around += [f"with {held}"] if steps or not both else []
            yield f"{tree.side.where}{alone} {_describe(tree.side)}, {', '.join(around)}"
    for child in tree.children:
        yield from composition_changes(child, alone)


def step_changes(tree: MergedNode) -> Iterator[str]:
    """Yield a sentence for each step or post-processing that is added, removed or declared differently."""
    for one in tree.walk():
        if _has_parts(one):
            continue
        if (alone := _alone(one)) is not None:
            node, loss = one.side.node, one.side.loss
            cost = "no valid claim"
            if loss is not None:
                cost = loss_words(loss) if loss.rho is None else f"rho {words(loss.rho)}"
            what = f"{node.facts.text}, {node.mechanism.name}, {cost}" if isinstance(node, Step) else "post-processing"
            yield f"'{one.side.path}' {alone}: {what}"
        elif one.facts:
            yield f"'{one.side.path}': {'; '.join(text for _, text in one.facts)}"


def _alone(one: MergedNode) -> Mark | None:
    """Return "added" or "removed" for a node of only one plan, and None for a node of both."""
    return Mark.ADDED if one.before is None else Mark.REMOVED if one.after is None else None


def _has_parts(one: MergedNode) -> bool:
    return any(side is not None and not side.placed.kind.leaf for side in (one.before, one.after))


def _describe(side: Side) -> str:
    """Return a composition in a few words, with its name."""
    label, name = side.label, side.name
    return label if name is None else f"'{name}'" if label == name else f"'{name}' ({label})"
