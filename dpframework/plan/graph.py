"""A plan as a networkx graph of composition and use, for checks, drawings and questions of your own."""

from __future__ import annotations

from typing import Any

from dpframework.plan.nodes import Step
from dpframework.plan.plan import Plan


def plan_graph(plan: Plan) -> Any:
    """Return the plan as a `networkx.DiGraph`, for questions that networkx answers.

    Nodes have their numbers in the index. Their attributes are `kind` ("step", "sequential", ...), `label`, `name`,
    `path`, `scope` and `reads` (the names of the attributes that it may depend on; None if that may be any). Steps also
    have `mechanism`, `epsilon` and `delta` (exact, under the plan's relation; None if there is none). An edge has the
    attribute `kind`: "part" from a composition to its parts, "use" from a release to a node that it is given to. Where
    both hold between two nodes, the edge is a "part".
    """
    import networkx as nx  # only those who ask for a graph wait for it

    graph = nx.DiGraph(relation=plan.relation.value)
    for placed, reads in zip(plan.index.nodes, plan.index.reads, strict=True):
        facts = {"kind": placed.kind.name, "label": placed.label, "name": placed.name or None, "reads": reads}
        graph.add_node(placed.number, path=placed.path, scope=placed.scope, **facts)
        if isinstance(placed.node, Step):
            noise = placed.calibration
            epsilon, delta = (
                (None, None)
                if noise is None
                else (amount.under(plan.relation) for amount in (noise.losses.pure, noise.losses.delta))
            )
            graph.nodes[placed.number].update(mechanism=placed.node.mechanism.name, epsilon=epsilon, delta=delta)
        if placed.parent is not None:
            graph.add_edge(placed.parent, placed.number, kind="part")
    uses = ((source, user.number) for user in plan.index.nodes for source in user.uses)
    graph.add_edges_from((edge for edge in uses if edge not in graph.edges), kind="use")
    return graph
