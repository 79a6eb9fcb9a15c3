"""A plan as a networkx graph, for your own drawings and questions. It has more facts than the plan's index."""

from __future__ import annotations

import math
from typing import Any

from dpframework.plan.nodes import Step
from dpframework.plan.plan import Plan


def plan_graph(plan: Plan) -> Any:
    """Return the plan as a `networkx.DiGraph`, so that networkx can answer questions about it.

    The graph has the nodes and edges of `plan.plan_node_index`, with these attributes:

    - of the graph: `relation`, and `derived` (a text for each derived column of the table);
    - of nodes, which are the numbers of the plan's nodes in the index: `kind` ("step", "sequential", ...), `label`,
      `name`, `path`, `scope`, `level` (0 for the top) and `reads` (the names of the attributes on which the node may
      depend; None if it may depend on any). Steps also have `mechanism`, and `epsilon`, `rho` and `delta` as exact
      fractions under the plan's relation (None without a claim);
    - of edges: `kind`, `epsilon` and `rho`. The `kind` is "part" from a composition to one of its parts, with the
      part's `position`, and "use" from a release to a node that uses it. If both hold for two nodes, the `kind` is
      "part". Every edge from a used release has the attribute `use`. `epsilon` and `rho` are the amounts of the step
      where the edge ends: infinite for a step without a claim in that amount, and 0 for a node that is not a step.

    For example, `networkx.dag_longest_path(graph, weight="epsilon")` finds the most expensive chain of releases, each
    of which uses the one before. `networkx.multipartite_layout(graph, subset_key="level")` places the nodes for a
    drawing.
    """
    import networkx as nx

    graph = nx.DiGraph(relation=plan.relation.value, derived=plan.facts.derive)
    levels: list[int] = []
    for placed, reads in zip(plan.index.nodes, plan.index.reads, strict=True):
        levels.append(0 if placed.parent is None else levels[placed.parent] + 1)
        facts: dict[str, Any] = {
            "kind": placed.kind.name,
            "label": placed.label,
            "name": placed.name or None,
            "reads": reads,
        }
        if isinstance(placed.node, Step):
            facts |= {"mechanism": placed.node.mechanism.name, "epsilon": None, "rho": None, "delta": None}
            if placed.calibration is not None:
                losses = placed.calibration.losses
                named = {"epsilon": losses.pure, "rho": losses.zcdp, "delta": losses.delta}
                facts |= {notion: amount.under(plan.relation) for notion, amount in named.items()}
        graph.add_node(placed.number, path=placed.path, scope=placed.scope, level=levels[-1], **facts)
    for source, target, edge in plan.index.graph.edges(data=True):
        amounts = {notion: graph.nodes[target].get(notion, 0) for notion in ("epsilon", "rho")}
        weights = {notion: math.inf if amount is None else amount for notion, amount in amounts.items()}
        graph.add_edge(source, target, **edge, **weights)
    return graph
