"""The edges of a plan's graph, in the same dictionaries as in networkx, so that networkx is loaded only on demand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, final

import attrs

if TYPE_CHECKING:
    import networkx as nx

#: The facts of each edge, by the number of its first node and then of its second node.
Adjacent: TypeAlias = "dict[int, dict[int, dict[str, Any]]]"


@final
@attrs.frozen(eq=False)
class Edges:
    """The edges of a graph, given by the numbers of the nodes that they connect.

    Attributes
    ----------
    following
        For each node the edges that start there, by the node where they end.
    preceding
        For each node the edges that end there, by the node where they start.
    """

    following: Adjacent = attrs.field(factory=dict)
    preceding: Adjacent = attrs.field(factory=dict)

    def add_node(self, number: int) -> None:
        """Add a node without edges."""
        self.following[number], self.preceding[number] = {}, {}

    def add(self, source: int, target: int, **facts: Any) -> None:
        """Add an edge, or add facts to an existing edge."""
        edge = self.following[source].setdefault(target, {})
        edge.update(facts)
        self.preceding[target][source] = edge

    def as_graph(self, facts: Iterable[tuple[int, dict[str, Any]]]) -> nx.DiGraph:
        """Return a networkx graph of these edges. `facts` has the number of each node with its attributes.

        The graph uses the dictionaries of this object: if you remove an edge from the graph, it is gone here too.
        """
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(facts)
        graph._adj, graph._pred = self.following, self.preceding
        return graph
