"""Drawn plans on a page, with a report's facts on each node and with lower nodes folded if there are many."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dpframework.reports.difference import Difference, Mark
from dpframework.reports.node_drawings import NodeDrawing, draw_difference, draw_plan
from dpframework.reports.nodes import NodeRow
from dpframework.reports.run_summary import RunSummary
from dpframework.reports.steps import NONE
from dpframework.study.study_plan import StudyPlan

ROOMY = 60  # nodes: a graph of more begins folded


def plan_on_page(plan: StudyPlan, root: NodeRow, ran: RunSummary | None, made: Mapping[str, int]) -> NodeDrawing:
    """Return a plan as a page draws it, with how often each step was released if there was a run."""
    steps = {row.number: k for k, row in enumerate((row for row in root.walk() if row.step is not None), start=1)}

    def detailed(node: NodeDrawing, row: NodeRow, repeated: bool) -> NodeDrawing:
        below = [inner.step for inner in row.walk() if inner.step is not None]
        notes = [row.times] if row.times else []
        if row.children:
            notes.append(_count_text(len(below), "step"))
        if row.step is not None and row.step.assumptions != NONE:
            notes.append(f"assumes {row.step.assumptions}")
        times = sum(made.get(step.path, 0) for step in below)
        released = {0: "not released", 1: "released once"}.get(times, f"released {times} times")
        if row.step is None:
            released = _count_text(times, "release")
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
                detailed(*pair, placed.kind.several(placed.node))
                for pair in zip(node.children, row.children, strict=True)
            ),
        )

    return _fold_if_large(detailed(draw_plan(plan), root, repeated=False))


def _count_text(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _fold_if_large(root: NodeDrawing) -> NodeDrawing:
    """Return a graph whose lower nodes begin out of sight if it is large."""
    if sum(1 for _ in root.walk()) <= ROOMY:
        return root
    shown, depth, level = 1, 0, [root]
    while level:
        level = [child for node in level for child in node.children]
        if shown + len(level) > ROOMY:
            break
        shown, depth = shown + len(level), depth + 1

    def fold(node: NodeDrawing, left: int) -> NodeDrawing:
        children = tuple(fold(child, left - 1) for child in node.children)
        return attrs.evolve(node, folded=left <= 0 and bool(children), children=children)

    return fold(root, max(depth, 1))


def difference_on_page(difference: Difference) -> NodeDrawing:
    """Return two plans in one as a page draws them. Unchanged parts of a large graph begin folded."""
    root = draw_difference(difference)
    large = sum(1 for _ in root.walk()) > ROOMY

    def detailed(node: NodeDrawing) -> NodeDrawing:
        notes = [f"was {node.label_before}"] if node.label_before else []
        if node.changed:
            notes.append(f"differs in {', '.join(node.changed)}")
        still = all(inner.mark is Mark.SAME for child in node.children for inner in child.walk())
        return attrs.evolve(
            node,
            notes=tuple(notes),
            folded=large and still and bool(node.children),
            children=tuple(detailed(child) for child in node.children),
        )

    return detailed(root)
