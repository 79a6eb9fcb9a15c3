"""Edges between the nodes of a plan: the same edges from either end, and as a graph."""

from __future__ import annotations

from hypothesis import given, strategies as st

from dpframework.plan.edges import Edges

NUMBER = st.integers(0, 5)


@given(st.lists(st.tuples(NUMBER, NUMBER, st.booleans())))
def test_each_edge_is_found_from_both_of_its_nodes(added: list[tuple[int, int, bool]]) -> None:
    edges = Edges()
    for number in range(6):
        edges.add_node(number)
    expected: dict[tuple[int, int], dict[str, bool]] = {}
    for source, target, used in added:
        edges.add(source, target, **{"uses" if used else "part": True})
        expected.setdefault((source, target), {})["uses" if used else "part"] = True
    assert {(a, b): facts for a, found in edges.following.items() for b, facts in found.items()} == expected
    assert {(a, b): facts for b, found in edges.preceding.items() for a, facts in found.items()} == expected
    graph = edges.as_graph((number, {"placed": number}) for number in range(6))
    assert {(a, b): facts for a, b, facts in graph.edges(data=True)} == expected
    assert dict(graph.nodes(data="placed")) == {number: number for number in range(6)}


def test_a_graph_and_its_edges_are_the_same() -> None:
    edges = Edges()
    edges.add_node(1)
    edges.add_node(2)
    edges.add(1, 2)
    edges.as_graph([(1, {}), (2, {})]).remove_edge(1, 2)
    assert (edges.following[1], edges.preceding[2]) == ({}, {})
