"""The drawing of a plan, or of two plans merged into one, as a value. Each format lays this value out differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.plan.node_kind_table import NodeKind
from dpframework.plan.plan_node_index import PlacedNode
from dpframework.reports.difference.merged_plan_node import Mark
from dpframework.reports.plan_and_node_losses import cost_text, loss_of

if TYPE_CHECKING:
    from dpframework.reports.difference import Difference, MergedNode, Side


@final
@attrs.frozen
class Use:
    """A release that a node uses.

    Attributes
    ----------
    source
        The number of the node that makes the release.
    name
        The name of the release, or else its label.
    mark
        In a drawing of two plans, whether both plans have this use or only one of them. Otherwise None.
    """

    source: int
    name: str
    mark: Mark | None = None

    @property
    def text(self) -> str:
        """The name of the release, with the mark if only one of the two plans uses it."""
        return self.name if self.mark in (None, Mark.SAME) else f"{self.name} ({self.mark})"


@final
@attrs.frozen
class NodeDrawing:
    """A node of a drawing.

    Attributes
    ----------
    number
        The node's number in the drawing. Numbers begin with 0, and go from a node to the nodes below it, left to right.
    kind
        The kind of the node.
    label
        A few words that describe the node.
    loss
        The node's cost, in words.
    mark
        "added", "removed", "changed" or "same" in a drawing of two plans; else None.
    label_before, loss_before
        The node's label and cost in the plan before. Each is empty if it is the same in the plan after, or if only one
        plan has the node.
    changed
        The names of the node's facts that differ between the two plans.
    uses
        The releases that the node uses.
    children
        The nodes directly below.
    name
        The node's name; empty if it has none, and always in a drawing of two plans. This attribute and the following
        ones are for pages only.
    share
        The node's share of the whole plan's loss, from 0 to 1. None if it is not known.
    notes
        Further facts, in a few words each.
    step
        The node's number in the table of steps; None if it is not a step.
    released
        How often the node was released, in words; empty before a run.
    repeated
        Whether the node stands for several equal nodes.
    alike
        The numbers of the equal nodes that a page leaves out because it shows this one.
    folded
        Whether a page at first hides the nodes below.
    """

    number: int
    kind: NodeKind
    label: str
    loss: str
    mark: Mark | None = None
    label_before: str = ""
    loss_before: str = ""
    changed: tuple[str, ...] = ()
    uses: tuple[Use, ...] = ()
    children: tuple[NodeDrawing, ...] = ()
    name: str = ""
    share: float | None = None
    notes: tuple[str, ...] = ()
    step: int | None = None
    released: str = ""
    repeated: bool = False
    alike: tuple[int, ...] = ()
    folded: bool = False

    def walk(self) -> Iterator[NodeDrawing]:
        """Yield the node and all below it, in the order of their numbers."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    @property
    def head(self) -> str:
        """The heading of the node's box: the name of the node, or else its kind."""
        return self._parted[0]

    @property
    def text(self) -> str:
        """The text in the node's box, below the heading."""
        return self._parted[1]

    @property
    def _parted(self) -> tuple[str, str]:
        kind = self.kind.name
        if self.kind.leaf:
            head, _, text = self.label.partition(": ")
            return head, text
        if self.label.startswith(kind):
            rest = self.label.removeprefix(kind).lstrip(", ")
            return (self.name, f"{kind} {rest}") if self.name else (kind, rest)
        return self.label, kind


def draw_plan(plan: AccountedPlan) -> NodeDrawing:
    """Return the drawing of a plan."""
    index = plan.index

    def draw(placed: PlacedNode) -> NodeDrawing:
        sources = [index.nodes[source] for source in placed.uses]
        # In a spend block, a miner chooses releases during the run. A release of one kind may be made several times, so
        # the drawing gives the loss of one release.
        most = "" if placed.block is None else "each at most "
        return NodeDrawing(
            placed.number,
            placed.kind,
            placed.label,
            "free" if placed.kind.free else most + cost_text(loss_of(placed.node, plan)),
            uses=tuple([Use(source.number, source.name or source.label) for source in sources]),
            children=tuple([draw(child) for child in index.children(placed)]),
            name=placed.name,
        )

    return draw(index.nodes[0])


def draw_difference(difference: Difference) -> NodeDrawing:
    """Return the drawing of two plans merged into one."""
    nodes = list(difference.nodes())
    numbers = {id(node): number for number, node in enumerate(nodes)}
    old = {node.before.number: number for number, node in enumerate(nodes) if node.before is not None}
    new = {node.after.number: number for number, node in enumerate(nodes) if node.after is not None}
    had, has = (
        {(places[source], places[user.number]) for user in plan.index.nodes for source in user.uses}
        for plan, places in ((difference.before, old), (difference.after, new))
    )
    used: dict[int, tuple[Use, ...]] = {}
    for source, user in sorted(had | has):
        edge = (source, user)
        mark = Mark.SAME if edge in had and edge in has else Mark.ADDED if edge in has else Mark.REMOVED
        side = nodes[source].side
        head = NodeDrawing(side.number, side.placed.kind, side.label, "").head
        used[user] = (*used.get(user, ()), Use(source, head, mark))

    def draw(node: MergedNode) -> NodeDrawing:
        before, after, number = node.before, node.after, numbers[id(node)]
        loss, loss_before = _cost(node.side), ""
        if before is not None and after is not None and before.loss != after.loss:
            loss_before = _cost(before)
            if loss_before == loss:  # the amounts differ, but are rounded to the same text
                loss_before, loss = _cost(before, exactly=True), _cost(after, exactly=True)
        relabelled = before is not None and after is not None and before.label != after.label
        return NodeDrawing(
            number,
            node.side.placed.kind,
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
    return "free" if side.placed.kind.free else cost_text(side.loss, exactly=exactly)
