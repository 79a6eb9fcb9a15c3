"""Plans, and two plans in one, drawn as a tree of text, as Mermaid and as DOT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpframework.accountant import AccountedPlan
from dpframework.facts.privacy import decimal_text
from dpframework.plan.plan import Plan
from dpframework.reports.difference.marks import Mark
from dpframework.reports.drawn import Drawn, drawn_difference, drawn_plan
from dpframework.reports.losses import loss_text

if TYPE_CHECKING:
    from dpframework.reports.difference import Difference

SIGNS = {Mark.SAME: " ", Mark.ADDED: "+", Mark.REMOVED: "-", Mark.CHANGED: "~"}
_MERMAID = {  # not by colour alone: each kind has its own line, and its word before the label
    Mark.ADDED: "fill:#e6f4e6,stroke:#1a7f37,stroke-width:3px,color:#000",
    Mark.REMOVED: "fill:#fbe9e7,stroke:#b3261e,stroke-dasharray:6 4,color:#000",
    Mark.CHANGED: "fill:#fff4d6,stroke:#8a6100,stroke-dasharray:2 2,color:#000",
}
_DOT: dict[Mark | None, str] = {
    Mark.ADDED: ', style="filled,bold", fillcolor="#e6f4e6", color="#1a7f37"',
    Mark.REMOVED: ', style="filled,dashed", fillcolor="#fbe9e7", color="#b3261e"',
    Mark.CHANGED: ', style="filled,dotted", fillcolor="#fff4d6", color="#8a6100"',
}


def tree(plan: AccountedPlan) -> str:
    """Return the plan as a tree of text: each composition and step with its loss, and the total."""
    return "\n".join([*_lines(drawn_plan(plan)), "", total_line(plan)])


def mermaid(plan: Plan) -> str:
    """Return the plan as a Mermaid flowchart: solid arrows compose, dotted arrows use."""
    return _mermaid(drawn_plan(plan))


def dot(plan: Plan) -> str:
    """Return the plan in Graphviz's DOT: solid arrows compose, dashed arrows use."""
    return _dot(drawn_plan(plan), "plan")


def difference_tree(difference: Difference) -> str:
    """Return the merged tree of two plans as text, each line with its mark in front: + added, - removed, ~ changed."""
    totals = [f"before: {total_line(difference.before)}", f"after:  {total_line(difference.after)}"]
    return "\n".join([*_lines(drawn_difference(difference)), "", *totals])


def difference_mermaid(difference: Difference) -> str:
    """Return the merged tree as a Mermaid flowchart: solid arrows compose, dotted arrows use."""
    return _mermaid(drawn_difference(difference))


def difference_dot(difference: Difference) -> str:
    """Return the merged tree in Graphviz's DOT: solid arrows compose, dashed arrows use."""
    return _dot(drawn_difference(difference), "difference")


def total_line(plan: AccountedPlan) -> str:
    """Return one line: the smallest valid total, its accounting, and the budget."""
    budget = f"budget {decimal_text(plan.budget.epsilon)}"
    known = plan.totals()
    if not known:
        return f"total: none is valid under {plan.relation} ({budget})"
    name, loss = next(iter(known.items()))
    whom = "" if plan.unit.is_row else f", protecting {plan.unit}"
    return f"total: {loss_text(loss)} under {plan.relation}, {name} accounting ({budget}){whom}"


def _lines(node: Drawn, branch: str = "", indent: str = "") -> Iterator[str]:
    """Yield a line for a node and each below it."""
    sign = "" if node.mark is None else f"{SIGNS[node.mark]} "
    yield f"{sign}{branch}{_line(node)}"
    for k, child in enumerate(node.children):
        last = k == len(node.children) - 1
        yield from _lines(child, f"{indent}{'└─' if last else '├─'} ", indent + ("   " if last else "│  "))


def _line(node: Drawn) -> str:
    """Return what a node is, with what it was where that is otherwise, and what changed, in words."""
    label = f"{node.label} (was {node.label_before})" if node.label_before else node.label
    loss = node.loss
    if node.loss_before:
        was = node.loss_before.removeprefix("epsilon ") if loss.startswith("epsilon ") else node.loss_before
        loss = f"{loss}, was {was}"
    return f"{label}  [{loss}]" + (f"  (changed: {', '.join(node.changed)})" if node.changed else "")


def _caption(node: Drawn) -> str:
    """Return what stands in a node of a graph: of one plan the losses of steps only, of two plans all that changed."""
    if node.mark is not None:
        return _line(node) if node.mark is Mark.SAME else f"{node.mark}: {_line(node)}"
    return f"{node.label} ({node.loss})" if node.kind == "step" and node.loss.startswith("epsilon ") else node.label


def _mermaid(root: Drawn) -> str:
    lines = ["flowchart TD"]
    for node in root.walk():
        text = _caption(node).replace('"', "'").replace("<", "&lt;").replace(">", "&gt;")
        shape = f'["{text}"]' if node.kind == "step" else f'("{text}")'
        lines.append(f"    n{node.number}{shape}" + (f":::{node.mark}" if node.mark in _MERMAID else ""))
    for source, target, mark in _parts(root):
        lines.append(f"    n{source} -->{f'|{mark}|' if mark in _MERMAID else ''} n{target}")
    for source, target, mark in _uses(root):
        lines.append(f"    n{source} -.->{f'|{mark}|' if mark in _MERMAID else ''} n{target}")
    if root.mark is not None:
        lines += [f"    classDef {mark} {style}" for mark, style in _MERMAID.items()]
    return "\n".join(lines) + "\n"


def _dot(root: Drawn, name: str) -> str:
    lines = [f"digraph {name} {{", "    node [fontname=sans];"]
    if root.mark is not None:
        lines.append("    edge [fontname=sans];")
    for node in root.walk():
        text = _caption(node).replace("\\", "\\\\").replace('"', '\\"')
        shape = "box" if node.kind == "step" else "ellipse"
        lines.append(f'    n{node.number} [shape={shape}, label="{text}"{_DOT.get(node.mark, "")}];')
    for source, target, mark in _parts(root):
        lines.append(f"    n{source} -> n{target}{f' [label={mark}]' if mark in _DOT else ''};")
    for source, target, mark in _uses(root):
        lines.append(f"    n{source} -> n{target} [style=dashed{f', label={mark}' if mark in _DOT else ''}];")
    return "\n".join([*lines, "}"]) + "\n"


def _parts(root: Drawn) -> Iterator[tuple[int, int, Mark | None]]:
    """Yield the edges from compositions to their parts; an edge of a node that one plan has is that plan's."""
    for node in root.walk():
        for child in node.children:
            marks = [mark for mark in (child.mark, node.mark) if mark in (Mark.ADDED, Mark.REMOVED)]
            yield node.number, child.number, next(iter(marks), None)


def _uses(root: Drawn) -> list[tuple[int, int, Mark | None]]:
    """Return the edges from releases to the nodes that they are given to, in order."""
    edges = [(use.source, node.number, use.mark) for node in root.walk() for use in node.uses]
    return sorted(edges, key=lambda edge: edge[:2])
