"""The edges of a plan, in dictionaries like those of networkx, so that a plan need not wait for networkx to load."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, final

import attrs

if TYPE_CHECKING:
    import networkx as nx

#: The facts of each edge, by the numbers of its two nodes.
Adjacent: TypeAlias = "dict[int, dict[int, dict[str, Any]]]"


@final
@attrs.frozen(eq=False)
class Edges:
    """Edges between the numbers of nodes.

    Attributes
    ----------
    following
        The edges from each node, by the node that they lead to.
    preceding
        The same edges, by the node that they lead to, then by the node that they come from.
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
        """Return a networkx graph of these edges, with facts of nodes by their numbers.

        The graph and these edges share their dictionaries, so an edge that is removed from one is gone from the other.
        """
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(facts)
        graph._adj, graph._pred = self.following, self.preceding
        return graph
