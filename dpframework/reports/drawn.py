"""What a drawing shows of a plan, or of two plans in one: the same value for every format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias, final

import attrs

from dpframework.plan.graph import label_of
from dpframework.plan.nodes import Node, uses, walk
from dpframework.plan.plan import Plan
from dpframework.reports.difference.marks import Mark
from dpframework.reports.losses import cost_text, loss_of

if TYPE_CHECKING:
    from dpframework.reports.difference import Difference, Merged, Side


@final
@attrs.frozen
class Use:
    """A release that a node is given: the node that makes it, and whether both of two plans give it."""

    source: int
    name: str
    mark: Mark | None = None

    @property
    def text(self) -> str:
        """Its name, with the mark if the plans differ in it."""
        return self.name if self.mark in (None, Mark.SAME) else f"{self.name} ({self.mark})"


@final
@attrs.frozen
class Drawn:
    """A node as it is drawn.

    Attributes
    ----------
    number
        Its place in the drawing, from the top, left to right.
    kind
        "step", "sequential", ...
    label
        What it is, in a few words.
    loss
        What it costs, in words.
    mark
        "added", "removed", "changed" or "same", of two plans; None of one.
    label_before, loss_before
        What it was in the plan before, and cost there, where that was otherwise.
    changed
        What two plans declare otherwise, in a word or two each.
    uses
        The releases that it is given.
    children
        The nodes below.
    name
        Its name, where the label of a composition does not say it; for a page.
    share
        Its part of the whole plan's loss, from 0 to 1; None if it is not known. For a page, as all that follows.
    notes
        What else to know, in a few words each.
    step
        Its number in the table of steps.
    released
        How often it was released, after a run.
    repeated
        Whether it stands for several alike.
    folded
        Whether what is below begins out of sight.
    """

    number: int
    kind: str
    label: str
    loss: str
    mark: Mark | None = None
    label_before: str = ""
    loss_before: str = ""
    changed: tuple[str, ...] = ()
    uses: tuple[Use, ...] = ()
    children: tuple[Drawn, ...] = ()
    name: str = ""
    share: float | None = None
    notes: tuple[str, ...] = ()
    step: int | None = None
    released: str = ""
    repeated: bool = False
    folded: bool = False

    def walk(self) -> Iterator[Drawn]:
        """Yield the node and all below it, in the order of their numbers."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def head(self) -> str:
        """What a box sets off: the name of the node, or else its kind."""
        return self._parted[0]

    @property
    def text(self) -> str:
        """The rest of the label."""
        return self._parted[1]

    @property
    def _parted(self) -> tuple[str, str]:
        if self.kind in ("step", "post"):
            head, _, text = self.label.partition(": ")
            return head, text
        if self.label.startswith(self.kind):
            rest = self.label.removeprefix(self.kind).lstrip(", ")
            return (self.name, f"{self.kind} {rest}") if self.name else (self.kind, rest)
        return self.label, self.kind


#: By the number of a node: the uses of releases that it is given.
_Uses: TypeAlias = Mapping[int, tuple[Use, ...]]


def drawn_plan(plan: Plan) -> Drawn:
    """Return a plan as it is drawn."""
    nodes = list(walk(plan.root))
    numbers = {id(node): number for number, node in enumerate(nodes)}
    used: dict[int, dict[int, Use]] = {}
    for source, user in uses(plan.root):
        number = numbers[id(source)]
        used.setdefault(numbers[id(user)], {})[number] = Use(number, getattr(source, "name", None) or label_of(source))

    def draw(node: Node) -> Drawn:
        number, kind = numbers[id(node)], type(node).__name__.lower()
        return Drawn(
            number,
            kind,
            label_of(node),
            "free" if kind == "post" else cost_text(loss_of(node, plan)),
            uses=tuple(use for _, use in sorted(used.get(number, {}).items())),
            children=tuple(draw(child) for child in node.children),
            name=getattr(node, "name", None) or "",
        )

    return draw(plan.root)


def drawn_difference(difference: Difference) -> Drawn:
    """Return two plans in one as they are drawn."""
    numbers = {id(node): number for number, node in enumerate(difference.nodes())}
    used = _uses_of_both(difference)

    def draw(node: Merged) -> Drawn:
        before, after, number = node.before, node.after, numbers[id(node)]
        loss, loss_before = _cost(node.side), ""
        if before is not None and after is not None and before.loss != after.loss:
            loss_before = _cost(before)
            if loss_before == loss:  # unequal amounts that read alike
                loss_before, loss = _cost(before, exactly=True), _cost(after, exactly=True)
        relabelled = before is not None and after is not None and before.label != after.label
        return Drawn(
            number,
            node.side.kind,
            node.side.label,
            loss,
            node.mark,
            before.label if before is not None and relabelled else "",
            loss_before,
            tuple(dict.fromkeys(node.changed)),
            used.get(number, ()),
            tuple(draw(child) for child in node.children),
        )

    return draw(difference.root)


def _cost(side: Side, *, exactly: bool = False) -> str:
    return "free" if side.kind == "post" else cost_text(side.loss, exactly=exactly)


def _uses_of_both(difference: Difference) -> _Uses:
    nodes = list(difference.nodes())
    old = {id(node.before.node): number for number, node in enumerate(nodes) if node.before is not None}
    new = {id(node.after.node): number for number, node in enumerate(nodes) if node.after is not None}
    had, has = (
        {(places[id(source)], places[id(user)]) for source, user in uses(plan.root)}
        for plan, places in ((difference.before, old), (difference.after, new))
    )
    found: dict[int, tuple[Use, ...]] = {}
    for source, user in sorted(had | has):
        edge = (source, user)
        mark = Mark.SAME if edge in had and edge in has else Mark.ADDED if edge in has else Mark.REMOVED
        found[user] = (*found.get(user, ()), Use(source, _head(nodes[source].side), mark))
    return found


def _head(side: Side) -> str:
    return Drawn(side.number, side.kind, side.label, "").head
