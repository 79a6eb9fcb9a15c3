"""Drawings of a plan, or of two plans merged into one, as a tree of text, as Mermaid and as DOT."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from dpframework.accountant import AccountedPlan
from dpframework.facts.control_character_escapes import printable
from dpframework.facts.privacy_losses import decimal_text
from dpframework.reports.difference.merged_plan_node import Mark
from dpframework.reports.plan_and_node_losses import loss_text
from dpframework.reports.plan_drawing_data import NodeDrawing, draw_difference, draw_plan

if TYPE_CHECKING:
    from dpframework.reports.difference import Difference

#: The signs before the lines of a tree of two plans.
SIGNS = {Mark.SAME: " ", Mark.ADDED: "+", Mark.REMOVED: "-", Mark.CHANGED: "~"}
_MERMAID = {  # Not everybody can tell the colours apart, so each mark also has its own line style and a word.
    Mark.ADDED: "fill:#e6f4e6,stroke:#1a7f37,stroke-width:3px,color:#000",
    Mark.REMOVED: "fill:#fbe9e7,stroke:#b3261e,stroke-dasharray:6 4,color:#000",
    Mark.CHANGED: "fill:#fff4d6,stroke:#8a6100,stroke-dasharray:2 2,color:#000",
}
_DOT: dict[Mark | None, str] = {
    Mark.ADDED: ', style="filled,bold", fillcolor="#e6f4e6", color="#1a7f37"',
    Mark.REMOVED: ', style="filled,dashed", fillcolor="#fbe9e7", color="#b3261e"',
    Mark.CHANGED: ', style="filled,dotted", fillcolor="#fff4d6", color="#8a6100"',
}


#: Characters that Mermaid interprets even within quotes: entities, HTML, Markdown (`), and directives (%%{...}%%).
_MERMAID_SPECIAL = re.compile(r"[#&<>`%{}\\]")


def tree(plan: AccountedPlan) -> str:
    """Return the plan as a tree of text, with each node's loss.

    Below the tree stand the places of the data and of the engine, the derived columns, and the total.
    """
    return "\n".join([*_lines(draw_plan(plan)), "", *_table_lines(plan), total_line(plan)])


def place_lines(plan: AccountedPlan) -> list[str]:
    """Return one line for each place of the plan's data, and one for the place of its engine if it has one."""
    lines = [f"data: {place}" for place in plan.data]
    return lines if plan.engine is None else [*lines, f"engine: counts are evaluated at {plan.engine}"]


def _table_lines(plan: AccountedPlan) -> list[str]:
    """Return the lines of `place_lines`, and one for each derived column."""
    return [*place_lines(plan), *(f"derived: {text}" for text in plan.facts.derive)]


def mermaid(plan: AccountedPlan) -> str:
    """Return the plan as a Mermaid flowchart. Dotted arrows lead from releases to the nodes that use them."""
    return _mermaid(draw_plan(plan), _table_lines(plan))


def dot(plan: AccountedPlan) -> str:
    """Return the plan in Graphviz's DOT. Dashed arrows lead from releases to the nodes that use them."""
    return _dot(draw_plan(plan), "plan", _table_lines(plan))


def difference_tree(difference: Difference) -> str:
    """Return the merged tree of two plans as text, with both totals below it.

    Before a line, + means added, - removed, and ~ changed.
    """
    totals = [f"before: {total_line(difference.before)}", f"after:  {total_line(difference.after)}"]
    return "\n".join([*_lines(draw_difference(difference)), "", *totals])


def difference_mermaid(difference: Difference) -> str:
    """Return the merged tree of two plans as a Mermaid flowchart, in the style in which `mermaid` draws one plan."""
    return _mermaid(draw_difference(difference))


def difference_dot(difference: Difference) -> str:
    """Return the merged tree of two plans in Graphviz's DOT, in the style in which `dot` draws one plan."""
    return _dot(draw_difference(difference), "difference")


def total_line(plan: AccountedPlan) -> str:
    """Return one line with the smallest valid total, its accounting, the budget, and the unit if it is not a row."""
    budget = f"budget {decimal_text(plan.budget.epsilon)}"
    known = plan.totals()
    if not known:
        return f"total: none is valid under {plan.relation} ({budget})"
    name, loss = next(iter(known.items()))
    whom = "" if plan.unit.is_row else f", protecting {plan.unit}"
    return f"total: {loss_text(loss)} under {plan.relation}, {name} accounting ({budget}){whom}"


def _lines(node: NodeDrawing, branch: str = "", indent: str = "") -> Iterator[str]:
    """Yield one line for a node and one for each node below it."""
    sign = "" if node.mark is None else f"{SIGNS[node.mark]} "
    yield f"{sign}{branch}{_line(node)}"
    for k, child in enumerate(node.children):
        last = k == len(node.children) - 1
        yield from _lines(child, f"{indent}{'└─' if last else '├─'} ", indent + ("   " if last else "│  "))


def _line(node: NodeDrawing) -> str:
    """Return a node in words. If it changed, this includes its former label, its former loss and the changed facts."""
    label = f"{node.label} (was {node.label_before})" if node.label_before else node.label
    loss = node.loss
    if node.loss_before:
        was = node.loss_before.removeprefix("epsilon ") if loss.startswith("epsilon ") else node.loss_before
        loss = f"{loss}, was {was}"
    return printable(f"{label}  [{loss}]" + (f"  (changed: {', '.join(node.changed)})" if node.changed else ""))


def _caption(node: NodeDrawing) -> str:
    """Return the text in a graph's node.

    In a drawing of one plan, only steps with an epsilon show their loss. In a drawing of two plans, all nodes show
    their losses and changes.
    """
    if node.mark is not None:
        return _line(node) if node.mark is Mark.SAME else f"{node.mark}: {_line(node)}"
    costs = node.kind.name == "step" and node.loss.startswith("epsilon ")
    return printable(f"{node.label} ({node.loss})" if costs else node.label)


def _mermaid(root: NodeDrawing, places: Sequence[str] = ()) -> str:
    lines = ["flowchart TD"]
    for k, place in enumerate(places):
        lines += [f'    place{k}[("{_mermaid_text(place)}")]', f"    place{k} --- n{root.number}"]
    for node in root.walk():
        text = _mermaid_text(_caption(node))
        shape = f'["{text}"]' if node.kind.name == "step" else f'("{text}")'
        lines.append(f"    n{node.number}{shape}" + (f":::{node.mark}" if node.mark in _MERMAID else ""))
    for source, target, mark in _parts(root):
        lines.append(f"    n{source} -->{f'|{mark}|' if mark in _MERMAID else ''} n{target}")
    for source, target, mark in _uses(root):
        lines.append(f"    n{source} -.->{f'|{mark}|' if mark in _MERMAID else ''} n{target}")
    if root.mark is not None:
        lines += [f"    classDef {mark} {style}" for mark, style in _MERMAID.items()]
    return "\n".join(lines) + "\n"


def _mermaid_text(text: str) -> str:
    return _MERMAID_SPECIAL.sub(lambda found: f"#{ord(found.group())};", printable(text).replace('"', "'"))


def _dot_text(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


def _dot(root: NodeDrawing, name: str, places: Sequence[str] = ()) -> str:
    lines = [f"digraph {name} {{", "    node [fontname=sans];"]
    if root.mark is not None:
        lines.append("    edge [fontname=sans];")
    for k, place in enumerate(places):
        lines += [
            f'    place{k} [shape=cylinder, label="{_dot_text(place)}"];',
            f"    place{k} -> n{root.number} [dir=none];",
        ]
    for node in root.walk():
        text = _dot_text(_caption(node))
        shape = "box" if node.kind.name == "step" else "ellipse"
        lines.append(f'    n{node.number} [shape={shape}, label="{text}"{_DOT.get(node.mark, "")}];')
    for source, target, mark in _parts(root):
        lines.append(f"    n{source} -> n{target}{f' [label={mark}]' if mark in _DOT else ''};")
    for source, target, mark in _uses(root):
        lines.append(f"    n{source} -> n{target} [style=dashed{f', label={mark}' if mark in _DOT else ''}];")
    return "\n".join([*lines, "}"]) + "\n"


def _parts(root: NodeDrawing) -> Iterator[tuple[int, int, Mark | None]]:
    """Yield the edges from compositions to their parts. An edge has the mark of an end that was added or removed."""
    for node in root.walk():
        for child in node.children:
            marks = [mark for mark in (child.mark, node.mark) if mark in (Mark.ADDED, Mark.REMOVED)]
            yield node.number, child.number, next(iter(marks), None)


def _uses(root: NodeDrawing) -> list[tuple[int, int, Mark | None]]:
    """Return the edges from releases to the nodes that use them, in order of the releases."""
    edges = [(use.source, node.number, use.mark) for node in root.walk() for use in node.uses]
    return sorted(edges, key=itemgetter(0))
