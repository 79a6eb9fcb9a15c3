"""The drawing of a plan on a page, where each node has its facts from the report. Large plans begin partly folded."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from dpframework.facts.phrases import count_text
from dpframework.reports.difference.merged_plan_node import Mark
from dpframework.reports.plan_drawing_data import NodeDrawing, draw_difference, draw_plan
from dpframework.reports.plan_tree_with_losses import NodeRow
from dpframework.reports.run_summary import RunSummary
from dpframework.study.study_plan_totals_and_findings import StudyPlan

if TYPE_CHECKING:
    from dpframework.reports.difference import Difference

MOST_OPEN = 60  # a drawing with more nodes than this has folded parts when a page is opened
MOST_NAMED = 4  # if one of several equal parts is shown, its note names at most this many others


def plan_on_page(
    plan: StudyPlan, root: NodeRow, ran: RunSummary | None, release_counts: Mapping[str, int]
) -> NodeDrawing:
    """Return the drawing of a plan on a page. After a run it says how often each step was released.

    `release_counts` gives the number of releases by the path of the step.
    """
    steps = {row.number: k for k, row in enumerate([row for row in root.walk() if row.step is not None], start=1)}

    def add_details(node: NodeDrawing, row: NodeRow, repeated: bool) -> NodeDrawing:
        below = [inner.step for inner in row.walk() if inner.step is not None]
        notes = [row.times] if row.times else []
        if row.children:
            notes.append(count_text(len(below), "step"))
        if row.step is not None and row.step.assumes:
            notes.append(f"assumes {row.step.assumptions}")
        times = sum([release_counts.get(step.path, 0) for step in below])
        released = {0: "not released", 1: "released once"}.get(times, f"released {times} times")
        if row.step is None:
            released = count_text(times, "release")
        placed = plan.index.nodes[row.number]
        return attrs.evolve(
            node,
            loss=row.loss,
            share=row.share,
            notes=tuple(notes),
            step=steps.get(row.number),
            released=released if ran is not None and below else "",
            repeated=repeated,
            children=tuple(
                [
                    add_details(*pair, placed.kind.several(placed.node))
                    for pair in zip(node.children, row.children, strict=True)
                ]
            ),
        )

    return _fold_if_large(merge_equal(add_details(draw_plan(plan), root, repeated=False)))


def merge_equal(root: NodeDrawing) -> NodeDrawing:
    """Return a drawing that shows only the first of equal consecutive siblings, with a note on the others.

    Links and arrows to a node that is left out lead to the shown node in its place.
    """
    merged = _merge_below(root)
    shown = {number: node.number for node in merged.walk() for number in (node.number, *node.alike)}

    def redirect(node: NodeDrawing) -> NodeDrawing:
        uses = tuple(dict.fromkeys(attrs.evolve(use, source=shown[use.source]) for use in node.uses))
        return attrs.evolve(node, uses=uses, children=tuple(map(redirect, node.children)))

    return redirect(merged)


def _merge_below(node: NodeDrawing) -> NodeDrawing:
    runs = itertools.groupby(node.children, key=_shape)
    return attrs.evolve(node, children=tuple(_merge_below(_one_for_all(*equal)) for _, equal in runs))


def _one_for_all(first: NodeDrawing, *others: NodeDrawing) -> NodeDrawing:
    """Return the first of several equal nodes, with a note on the others."""
    if not others:
        return first
    names = [one.head for one in others if one.head != first.head]
    told = f": also {', '.join(names[:MOST_NAMED])}{', ...' if len(names) > MOST_NAMED else ''}" if names else ""

    def stand_in(*same: NodeDrawing) -> NodeDrawing:
        alike = tuple(number for one in same for number in (one.number, *one.alike))[1:]
        below = zip(*(one.children for one in same), strict=True)
        return attrs.evolve(same[0], alike=alike, children=tuple(stand_in(*nodes) for nodes in below))

    notes = (f"one of {1 + len(others)} equal parts, shown once{told}", *first.notes)
    return attrs.evolve(stand_in(first, *others), notes=notes, repeated=True)


def _shape(root: NodeDrawing) -> tuple[object, ...]:
    """Return all that a page shows of a node and of the nodes below it, except its own name and the numbers of nodes.

    If a node uses a release of a node at or below `root`, the position of that node is given. For a release from
    elsewhere, the number of the node that makes it is given.
    """
    places = {node.number: place for place, node in enumerate(root.walk())}

    def shape(node: NodeDrawing, head: str) -> tuple[object, ...]:
        uses = tuple((use.source in places, places.get(use.source, use.source)) for use in node.uses)
        own = (node.kind.name, head, node.text, node.loss, node.notes, node.released, node.repeated, uses)
        return (*own, tuple(shape(child, child.head) for child in node.children))

    return shape(root, "")


def _fold_if_large(root: NodeDrawing) -> NodeDrawing:
    """Return the drawing. If it has more than `MOST_OPEN` nodes, its lower nodes are folded at first.

    The nodes directly below the root are always shown.
    """
    if sum(1 for _ in root.walk()) <= MOST_OPEN:
        return root
    shown, depth, level = 1, 0, [root]
    while level:
        level = [child for node in level for child in node.children]
        if shown + len(level) > MOST_OPEN:
            break
        shown, depth = shown + len(level), depth + 1

    def fold(node: NodeDrawing, left: int) -> NodeDrawing:
        children = tuple(fold(child, left - 1) for child in node.children)
        return attrs.evolve(node, folded=left <= 0 and bool(children), children=children)

    return fold(root, max(depth, 1))


def difference_on_page(difference: Difference) -> NodeDrawing:
    """Return the drawing of two merged plans on a page. Unchanged parts of a large drawing begin folded."""
    root = draw_difference(difference)
    large = sum(1 for _ in root.walk()) > MOST_OPEN

    def add_details(node: NodeDrawing) -> NodeDrawing:
        notes = [f"was {node.label_before}"] if node.label_before else []
        if node.changed:
            notes.append(f"differs in {', '.join(node.changed)}")
        still = all(inner.mark is Mark.SAME for child in node.children for inner in child.walk())
        return attrs.evolve(
            node,
            notes=tuple(notes),
            folded=large and still and bool(node.children),
            children=tuple(add_details(child) for child in node.children),
        )

    return add_details(root)
