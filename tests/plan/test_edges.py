"""Edges between the nodes of a plan: the same edges from either end, with all that was said of each."""

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
