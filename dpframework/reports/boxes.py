"""Plans as boxes to draw: what each shows, and which begin out of sight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import final

import attrs

from dpframework.facts.privacy import PrivacyLoss, readable
from dpframework.reports.difference import Difference, Mark, Merged, Side
from dpframework.reports.drawing import use_edges
from dpframework.reports.facts import NONE, NodeRow, Ran

ROOMY = 60  # nodes: a graph of more begins folded


@final
@attrs.frozen
class Box:
    """One node as it is drawn, of a plan or of two plans in one.

    Attributes
    ----------
    id
        Its anchor in the page.
    kind
        "step", "sequential", ...
    head, text
        Its name, or else its kind; what it is.
    losses
        What it costs, a line a notion.
    was
        What it cost in the plan before, if that was otherwise.
    share
        Its part of the whole plan's loss, from 0 to 1; None if it is not known.
    mark
        "added", "removed" or "changed", of two plans.
    notes
        What else to know, in a few words each.
    uses
        Anchor and name of each node whose release it is given.
    step
        Its number in the table of steps.
    released
        How often it was released, after a run.
    repeated
        Whether it stands for several alike.
    children
        The boxes below.
    folded
        Whether what is below begins out of sight.
    """

    id: str
    kind: str
    head: str
    text: str
    losses: tuple[str, ...]
    was: str = ""
    share: float | None = None
    mark: str = ""
    notes: tuple[str, ...] = ()
    uses: tuple[tuple[str, str], ...] = ()
    step: int | None = None
    released: str = ""
    repeated: bool = False
    children: tuple[Box, ...] = ()
    folded: bool = False

    def walk(self) -> Iterator[Box]:
        """Yield the box and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def _head_and_text(kind: str, label: str, name: str = "") -> tuple[str, str]:
    """Part a label into what is set off, and the rest."""
    if kind in ("step", "post"):
        head, _, text = label.partition(": ")
        return head, text
    if label.startswith(kind):
        rest = label.removeprefix(kind).lstrip(", ")
        return (name, f"{kind} {rest}") if name else (kind, rest)
    return label, kind


def plan_boxes(root: NodeRow, ran: Ran | None, made: Mapping[str, int]) -> Box:
    """Return a plan's nodes as boxes, with how often each step was released if there was a run."""
    rows = list(root.walk())
    names = [row.name or row.label for row in rows]
    steps = {row.number: k for k, row in enumerate((row for row in rows if row.step is not None), start=1)}

    def box(row: NodeRow, repeated: bool) -> Box:
        head, text = _head_and_text(row.kind, row.label, row.name)
        below = [inner.step for inner in row.walk() if inner.step is not None]
        notes = [row.times] if row.times else []
        if row.children:
            notes.append(_counted(len(below), "step"))
        if row.step is not None and row.step.assumptions != NONE:
            notes.append(f"assumes {row.step.assumptions}")
        alike = row.kind == "repeat" or (row.kind == "parallel" and len(row.children) == 1)
        return Box(
            id=f"node-{row.number}",
            kind=row.kind,
            head=head,
            text=text,
            losses=tuple(row.loss.split(", ")),
            share=row.share,
            notes=tuple(notes),
            uses=tuple((f"node-{number}", names[number]) for number in row.uses),
            step=steps.get(row.number),
            released=_released(row, sum(made.get(step.path, 0) for step in below)) if ran is not None and below else "",
            repeated=repeated,
            children=tuple(box(child, alike) for child in row.children),
        )

    return _folded_if_large(box(root, repeated=False))


def _released(row: NodeRow, times: int) -> str:
    if row.step is None:
        return _counted(times, "release")
    return {0: "not released", 1: "released once"}.get(times, f"released {times} times")


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _folded_if_large(root: Box) -> Box:
    """Return a graph whose lower nodes begin out of sight if it is large."""
    if sum(1 for _ in root.walk()) <= ROOMY:
        return root
    shown, depth, level = 1, 0, [root]
    while level:
        level = [child for box in level for child in box.children]
        if shown + len(level) > ROOMY:
            break
        shown, depth = shown + len(level), depth + 1

    def fold(box: Box, left: int) -> Box:
        return attrs.evolve(
            box, folded=left <= 0 and bool(box.children), children=tuple(fold(c, left - 1) for c in box.children)
        )

    return fold(root, max(depth, 1))


def merged_boxes(difference: Difference) -> Box:
    """Return the nodes of two plans as boxes with marks; of a large graph, what stays the same begins folded."""
    nodes = list(difference.nodes())
    numbers = {id(node): number for number, node in enumerate(nodes)}
    uses: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for source, target, mark in use_edges(difference):
        name, _ = _head_and_text(nodes[source].side.kind, nodes[source].side.label)
        uses[target].append((f"node-{source}", name if mark is Mark.SAME else f"{name} ({mark})"))

    def box(node: Merged) -> Box:
        head, text = _head_and_text(node.side.kind, node.side.label)
        before, after = node.before, node.after
        notes = [f"was {before.label}"] if before and after and before.label != after.label else []
        if node.changed:
            notes.append(f"differs in {', '.join(dict.fromkeys(node.changed))}")
        loss, was = _side_loss(node.side), ""
        if before and after and before.loss != after.loss:
            was = _side_loss(before)
            if was == loss:  # unequal amounts that read alike
                was, loss = (_side_loss(side, exactly=True) for side in (before, after))
        still = all(inner.mark is Mark.SAME for child in node.children for inner in child.walk())
        return Box(
            id=f"node-{numbers[id(node)]}",
            kind=node.side.kind,
            head=head,
            text=text,
            losses=(loss,),
            was=was,
            mark=node.mark.value,
            notes=tuple(notes),
            uses=tuple(uses[numbers[id(node)]]),
            children=tuple(box(child) for child in node.children),
            folded=len(nodes) > ROOMY and still and bool(node.children),
        )

    return box(difference.root)


def _side_loss(side: Side, *, exactly: bool = False) -> str:
    if side.kind == "post":
        return "free"
    loss = side.loss or PrivacyLoss()
    known = {"epsilon": loss.epsilon, "rho": loss.rho}
    texts = [f"{notion} {x if exactly else readable(x)}" for notion, x in known.items() if x is not None]
    return ", ".join(texts) or "no pure epsilon"
