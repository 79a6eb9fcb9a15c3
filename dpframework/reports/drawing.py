"""Plans drawn: a terminal tree, Mermaid, and DOT."""

from __future__ import annotations

from collections.abc import Iterator

from dpframework.accountant import AccountedPlan
from dpframework.facts.privacy import PrivacyLoss, decimal_text, readable
from dpframework.plan.graph import label_of, plan_graph
from dpframework.plan.nodes import Node, Post
from dpframework.reports.difference import Difference, Mark, Merged, Side, loss_of


def _loss_text(loss: PrivacyLoss | None) -> str:
    if loss is not None and loss.epsilon is not None:
        return f"epsilon {readable(loss.epsilon)}"
    if loss is not None and loss.rho is not None:
        return f"rho {readable(loss.rho)}"
    return "no pure epsilon"


def tree(plan: AccountedPlan) -> str:
    """Return the plan as a tree of text: each composition and step with its loss, and the total."""
    lines = [f"{label_of(plan.root)}  [{_loss_of(plan.root, plan)}]", *_branches(plan.root, plan, "")]
    return "\n".join([*lines, "", total_line(plan)])


def _loss_of(node: Node, plan: AccountedPlan) -> str:
    return "free" if isinstance(node, Post) else _loss_text(loss_of(node, plan))


def _branches(node: Node, plan: AccountedPlan, indent: str) -> Iterator[str]:
    for k, child in enumerate(node.children):
        last = k == len(node.children) - 1
        yield f"{indent}{'└─' if last else '├─'} {label_of(child)}  [{_loss_of(child, plan)}]"
        yield from _branches(child, plan, indent + ("   " if last else "│  "))


def total_line(plan: AccountedPlan) -> str:
    """Return one line: the smallest valid total, its accounting, and the budget."""
    budget = f"budget {decimal_text(plan.budget.epsilon)}"
    known = plan.totals()
    if not known:
        return f"total: none is valid under {plan.relation} ({budget})"
    name, loss = next(iter(known.items()))
    delta = f", delta {float(loss.delta):g}" if loss.delta else ""
    return f"total: {_loss_text(loss)}{delta} under {plan.relation}, {name} accounting ({budget})"


def mermaid(plan: AccountedPlan) -> str:
    """Return the plan as a Mermaid flowchart: solid arrows compose, dotted arrows use."""
    graph = plan_graph(plan)
    lines = ["flowchart TD"]
    for number, node in graph.nodes(data=True):
        text = _mermaid_text(_node_text(node))
        lines.append(f'    n{number}["{text}"]' if node["kind"] == "step" else f'    n{number}("{text}")')
    for source, target, edge in graph.edges(data=True):
        lines.append(f"    n{source} {'-->' if edge['kind'] == 'part' else '-.->'} n{target}")
    return "\n".join(lines) + "\n"


def dot(plan: AccountedPlan) -> str:
    """Return the plan in Graphviz's DOT: solid arrows compose, dashed arrows use."""
    graph = plan_graph(plan)
    lines = ["digraph plan {", "    node [fontname=sans];"]
    for number, node in graph.nodes(data=True):
        shape = "box" if node["kind"] == "step" else "ellipse"
        lines.append(f'    n{number} [shape={shape}, label="{_dot_text(_node_text(node))}"];')
    for source, target, edge in graph.edges(data=True):
        lines.append(f"    n{source} -> n{target}{'' if edge['kind'] == 'part' else ' [style=dashed]'};")
    return "\n".join([*lines, "}"]) + "\n"


def _mermaid_text(text: str) -> str:
    return text.replace('"', "'").replace("<", "&lt;").replace(">", "&gt;")


def _dot_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _node_text(node: dict[str, object]) -> str:
    epsilon = node.get("epsilon")
    return f"{node['label']}" + (f" (epsilon {readable(epsilon)})" if epsilon is not None else "")  # type: ignore[arg-type]


# --- two plans ------------------------------------------------------------------------------------------------------

SIGNS = {Mark.SAME: " ", Mark.ADDED: "+", Mark.REMOVED: "-", Mark.CHANGED: "~"}
_MERMAID = {  # not by colour alone: each kind has its own line, and its word before the label
    Mark.ADDED: "fill:#e6f4e6,stroke:#1a7f37,stroke-width:3px,color:#000",
    Mark.REMOVED: "fill:#fbe9e7,stroke:#b3261e,stroke-dasharray:6 4,color:#000",
    Mark.CHANGED: "fill:#fff4d6,stroke:#8a6100,stroke-dasharray:2 2,color:#000",
}
_DOT = {
    Mark.SAME: "",
    Mark.ADDED: ', style="filled,bold", fillcolor="#e6f4e6", color="#1a7f37"',
    Mark.REMOVED: ', style="filled,dashed", fillcolor="#fbe9e7", color="#b3261e"',
    Mark.CHANGED: ', style="filled,dotted", fillcolor="#fff4d6", color="#8a6100"',
}


def difference_tree(difference: Difference) -> str:
    """Return the merged tree of two plans as text, each line with its mark in front: + added, - removed, ~ changed."""
    lines = [_marked(difference.root, ""), *_marked_branches(difference.root, "")]
    totals = [f"before: {total_line(difference.before)}", f"after:  {total_line(difference.after)}"]
    return "\n".join([*lines, "", *totals])


def _marked_branches(node: Merged, indent: str) -> Iterator[str]:
    for k, child in enumerate(node.children):
        last = k == len(node.children) - 1
        yield _marked(child, f"{indent}{'└─' if last else '├─'} ")
        yield from _marked_branches(child, indent + ("   " if last else "│  "))


def _marked(node: Merged, branch: str) -> str:
    return f"{SIGNS[node.mark]} {branch}{_merged_text(node)}"


def _merged_text(node: Merged) -> str:
    """Return what a merged node is, with what it was where that is otherwise, and what changed, in words."""
    before, after = node.before, node.after
    if before is None or after is None:
        return f"{node.side.label}  [{_side_loss(node.side)}]"
    label = after.label if after.label == before.label else f"{after.label} (was {before.label})"
    loss = _side_loss(after)
    if before.loss != after.loss:
        old = _side_loss(before)
        if old == loss:  # unequal amounts that read alike
            old, loss = (f"{_exactly(side)}" for side in (before, after))
        loss = f"{loss}, was {old.removeprefix('epsilon ')}" if loss.startswith("epsilon ") else f"{loss}, was {old}"
    changed = f"  (changed: {', '.join(dict.fromkeys(node.changed))})" if node.changed else ""
    return f"{label}  [{loss}]{changed}"


def _side_loss(side: Side) -> str:
    return "free" if side.kind == "post" else _loss_text(side.loss)


def _exactly(side: Side) -> str:
    amounts = {"epsilon": side.loss and side.loss.epsilon, "rho": side.loss and side.loss.rho}
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items() if amount is not None)


def difference_mermaid(difference: Difference) -> str:
    """Return the merged tree as a Mermaid flowchart: solid arrows compose, dotted arrows use."""
    lines = ["flowchart TD"]
    for number, node in enumerate(difference.nodes()):
        text = _mermaid_text(_worded(node))
        shape = f'["{text}"]' if node.side.kind == "step" else f'("{text}")'
        lines.append(f"    n{number}{shape}" + ("" if node.mark is Mark.SAME else f":::{node.mark}"))
    for source, target, mark in _part_edges(difference):
        lines.append(f"    n{source} {'-->' if mark is Mark.SAME else f'-->|{mark}|'} n{target}")
    for source, target, mark in use_edges(difference):
        lines.append(f"    n{source} {'-.->' if mark is Mark.SAME else f'-.->|{mark}|'} n{target}")
    lines += [f"    classDef {mark} {style}" for mark, style in _MERMAID.items()]
    return "\n".join(lines) + "\n"


def difference_dot(difference: Difference) -> str:
    """Return the merged tree in Graphviz's DOT: solid arrows compose, dashed arrows use."""
    lines = ["digraph difference {", "    node [fontname=sans];", "    edge [fontname=sans];"]
    for number, node in enumerate(difference.nodes()):
        shape = "box" if node.side.kind == "step" else "ellipse"
        lines.append(f'    n{number} [shape={shape}, label="{_dot_text(_worded(node))}"{_DOT[node.mark]}];')
    for source, target, mark in _part_edges(difference):
        lines.append(f"    n{source} -> n{target}{'' if mark is Mark.SAME else f' [label={mark}]'};")
    for source, target, mark in use_edges(difference):
        word = "" if mark is Mark.SAME else f", label={mark}"
        lines.append(f"    n{source} -> n{target} [style=dashed{word}];")
    return "\n".join([*lines, "}"]) + "\n"


def _worded(node: Merged) -> str:
    return _merged_text(node) if node.mark is Mark.SAME else f"{node.mark}: {_merged_text(node)}"


def _part_edges(difference: Difference) -> Iterator[tuple[int, int, Mark]]:
    """Yield the merged tree's edges by the numbers of its nodes; an edge of one plan's node is that plan's."""
    numbers = {id(node): number for number, node in enumerate(difference.nodes())}
    for node in difference.nodes():
        for child in node.children:
            marks = [mark for mark in (child.mark, node.mark) if mark in (Mark.ADDED, Mark.REMOVED)]
            yield numbers[id(node)], numbers[id(child)], next(iter(marks), Mark.SAME)


def use_edges(difference: Difference) -> Iterator[tuple[int, int, Mark]]:
    """Yield which release is given to which node, in either plan."""
    places: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for number, node in enumerate(difference.nodes()):
        for side, known in zip((node.before, node.after), places, strict=True):
            if side is not None:
                known[side.number] = number
    old, new = (
        {(known[s], known[t]) for s, t, edge in plan_graph(plan).edges(data=True) if edge["kind"] == "use"}
        for plan, known in zip((difference.before, difference.after), places, strict=True)
    )
    for edge in sorted(old | new):
        yield *edge, Mark.SAME if edge in old and edge in new else Mark.ADDED if edge in new else Mark.REMOVED
