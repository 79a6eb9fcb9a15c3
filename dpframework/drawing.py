"""Plans drawn: a terminal tree, Mermaid, and DOT."""

from __future__ import annotations

from collections.abc import Iterator

from dpframework.accountant import PureAccountant, totals
from dpframework.plan.graph import label_of, plan_graph
from dpframework.plan.nodes import Node, Post, Step
from dpframework.plan.plan import Plan
from dpframework.privacy import PrivacyLoss, decimal_text, readable


def _loss_text(loss: PrivacyLoss | None) -> str:
    if loss is None or loss.epsilon is None:
        return "no pure epsilon"
    return f"epsilon {readable(loss.epsilon)}"


def tree(plan: Plan) -> str:
    """Return the plan as a tree of text: each composition and step with its loss, and the total."""
    lines = [f"{label_of(plan.root)}  [{_loss_of(plan.root, plan)}]", *_branches(plan.root, plan, "")]
    return "\n".join([*lines, "", total_line(plan)])


def _loss_of(node: Node, plan: Plan) -> str:
    if isinstance(node, Post):
        return "free"
    if isinstance(node, Step) and (calibration := plan.calibration(node)) is not None:
        rho = calibration.losses.concentrated.under(plan.relation)
        if calibration.losses.pure.under(plan.relation) is None and rho is not None:
            return f"rho {readable(rho)}"
    accountant = PureAccountant(plan.relation)
    return _loss_text(accountant.loss(accountant.amount_of(node, plan)))


def _branches(node: Node, plan: Plan, indent: str) -> Iterator[str]:
    for k, child in enumerate(node.children):
        last = k == len(node.children) - 1
        yield f"{indent}{'└─' if last else '├─'} {label_of(child)}  [{_loss_of(child, plan)}]"
        yield from _branches(child, plan, indent + ("   " if last else "│  "))


def total_line(plan: Plan) -> str:
    """Return one line: the smallest valid total, its accounting, and the budget."""
    budget = f"budget {decimal_text(plan.budget.epsilon)}"
    known = totals(plan, plan.budget.delta)
    if not known:
        return f"total: none is valid under {plan.relation} ({budget})"
    name, loss = next(iter(known.items()))
    delta = f", delta {float(loss.delta):g}" if loss.delta else ""
    return f"total: {_loss_text(loss)}{delta} under {plan.relation}, {name} accounting ({budget})"


def mermaid(plan: Plan) -> str:
    """Return the plan as a Mermaid flowchart: solid arrows compose, dotted arrows use."""
    graph = plan_graph(plan)
    lines = ["flowchart TD"]
    for number, node in graph.nodes(data=True):
        text = _node_text(node).replace('"', "'").replace("<", "&lt;").replace(">", "&gt;")
        lines.append(f'    n{number}["{text}"]' if node["kind"] == "step" else f'    n{number}("{text}")')
    for source, target, edge in graph.edges(data=True):
        lines.append(f"    n{source} {'-->' if edge['kind'] == 'part' else '-.->'} n{target}")
    return "\n".join(lines) + "\n"


def dot(plan: Plan) -> str:
    """Return the plan in Graphviz's DOT: solid arrows compose, dashed arrows use."""
    graph = plan_graph(plan)
    lines = ["digraph plan {", "    node [fontname=sans];"]
    for number, node in graph.nodes(data=True):
        shape = "box" if node["kind"] == "step" else "ellipse"
        text = _node_text(node).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'    n{number} [shape={shape}, label="{text}"];')
    for source, target, edge in graph.edges(data=True):
        lines.append(f"    n{source} -> n{target}{'' if edge['kind'] == 'part' else ' [style=dashed]'};")
    return "\n".join([*lines, "}"]) + "\n"


def _node_text(node: dict[str, object]) -> str:
    epsilon = node.get("epsilon")
    return f"{node['label']}" + (f" (epsilon {readable(epsilon)})" if epsilon is not None else "")  # type: ignore[arg-type]
