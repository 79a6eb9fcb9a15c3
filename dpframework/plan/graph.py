"""A plan as a networkx graph: composition and use, for checks, drawings and whoever wants to ask more."""

from __future__ import annotations

from typing import Any

from dpframework.facts.privacy import decimal_text
from dpframework.plan.nodes import (
    Either,
    FromRelease,
    Node,
    Parallel,
    Post,
    Repeat,
    Sample,
    Sequential,
    Step,
    uses,
)
from dpframework.plan.plan import Plan


def label_of(node: Node) -> str:
    """Return a node in a few words."""
    match node:
        case Step():
            gathers = ", gathers rows" if node.query.gathers else ""
            return f"{node.name}: {node.query.facts().text}, {node.mechanism.name}{gathers}"
        case Post():
            return f"{node.name}: post-processing"
        case Repeat():
            return f"repeat {node.times} times"
        case Sample():
            return f"sample at rate {decimal_text(node.rate)}"
        case Parallel():
            return f"parallel over {_parts_text(node)}"
        case Sequential():
            return node.name or "sequential"
        case Either():
            return "either, by what is released"
    return type(node).__name__.lower()


def _parts_text(node: Parallel) -> str:
    match node.by:
        case None:
            return "undeclared parts"
        case FromRelease():
            return str(node.by)
        case tuple():
            return f"{len(node.by)} descriptions"
    name = getattr(node.by, "name", None)
    return f"the values of {name}" if name else f"{node.number} cases"


def plan_graph(plan: Plan) -> Any:
    """Return the plan as a `networkx.DiGraph`, for questions that networkx answers; drawings walk the nodes themselves.

    Nodes are numbered from the top, left to right, with the attributes `kind` ("step", "sequential", ...), `label`,
    `name`, and for steps `mechanism`, `epsilon` (exact, under the plan's relation; None if there is none). An edge
    has the attribute `kind`: "part" from a composition to its parts, "use" from a release to what it is given to.
    """
    import networkx as nx

    graph = nx.DiGraph(relation=plan.relation.value)
    numbers: dict[int, int] = {}

    def add(node: Node) -> int:
        number = len(graph)
        numbers[id(node)] = number
        graph.add_node(number, kind=type(node).__name__.lower(), label=label_of(node), name=getattr(node, "name", None))
        if isinstance(node, Step):
            calibration = plan.calibration(node)
            epsilon = None if calibration is None else calibration.losses.pure.under(plan.relation)
            graph.nodes[number].update(mechanism=node.mechanism.name, epsilon=epsilon)
        for child in node.children:
            graph.add_edge(number, add(child), kind="part")
        return number

    add(plan.root)
    graph.add_edges_from(((numbers[id(source)], numbers[id(user)]) for source, user in uses(plan.root)), kind="use")
    return graph
