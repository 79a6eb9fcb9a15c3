"""The index of a plan says of each node the same as a walk of the tree does that knows nothing of an index."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import attrs
import networkx as nx
from hypothesis import given, strategies as st
from random_plans import compositions

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Gaussian
from dpframework.plan import Node, Parallel, Post, Sample, Sequential, Step, walk
from dpframework.reports.difference import difference

SCHEMA = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("c", ["x", "y", "z"])])

names = st.sampled_from(["one", "two", "three", "four"])
leaves = st.one_of(
    st.builds(
        lambda name, uses: dpf.step(name, dpf.queries.Histogram(SCHEMA["a"]), DiscreteLaplace(1), uses=uses),
        names,
        st.lists(names, max_size=2),
    ),
    st.builds(dpf.post, names, st.lists(names, max_size=2)),
)
cuts = st.sampled_from([None, SCHEMA["a"], dpf.FromRelease("one"), dpf.FromRelease("two", attributes=["c"])])
some = compositions(leaves, cuts=cuts, names=names, most_leaves=12, most_times=3)
nodes = st.one_of(some, st.builds(lambda part, name: dpf.sample("0.5", part, name=name), some, st.none() | names))


# --- the same, found by walking: slow, and plain ----------------------------------------------------------------------


def walked_scope(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Parallel | Sample):
        return
    for child in node.children:
        if isinstance(child, Parallel | Sample) or (isinstance(child, Sequential) and child.name is not None):
            yield child
        else:
            yield from walked_scope(child)


def walked_scopes(node: Node, path: str = "") -> Iterator[tuple[str, list[Node]]]:
    own = list(walked_scope(node))
    yield path, own
    for inner in own if isinstance(node, Parallel | Sample) else own[1:]:
        if isinstance(inner, Parallel | Sample):
            for k, child in enumerate(inner.children):
                name = inner.name or ("parts" if isinstance(inner, Parallel) else "sample")
                number = f" {k + 1}" if len(inner.children) > 1 else ""
                yield from walked_scopes(child, f"{path}/{name}{number}".lstrip("/"))
        elif isinstance(inner, Sequential) and inner.name is not None:
            yield from walked_scopes(inner, f"{path}/{inner.name}".lstrip("/"))


def walked_openers(node: Node, opener: Node | None = None) -> Iterator[tuple[Node, Node | None]]:
    """Yield each node with what opened its scope. One that opens a scope comes once more, in that."""
    own = list(walked_scope(node))
    yield from ((inner, opener) for inner in own)
    for inner in own if isinstance(node, Parallel | Sample) else own[1:]:
        if isinstance(inner, Parallel | Sample):
            for child in inner.children:
                yield from walked_openers(child, inner)
        elif isinstance(inner, Sequential) and inner.name is not None:
            yield from walked_openers(inner, inner)


def walked_uses(root: Node) -> set[tuple[int, int]]:
    opener_of: dict[int, Node | None] = {}
    for node, opener in walked_openers(root):
        opener_of.setdefault(id(node), opener)
    opening = {id(opener) for opener in opener_of.values()}
    insides = [(top, list(walked_scope(top))) for top in walk(root) if isinstance(top, Sequential)]

    def seen(place: Node, name: str, *, others: bool) -> set[int]:
        found = set()
        for top, inside in insides:
            if any(one is place for one in inside) and not (top is place and id(top) in opening):
                named = {getattr(node, "name", None): node for node in inside}
                if name in named and named[name] is not place and not (others and isinstance(named[name], Sequential)):
                    found.add(id(named[name]))
        return found

    uses = set()
    for user in walk(root):
        wanted: tuple[str, ...] = user.uses if isinstance(user, Step | Post) else ()
        if isinstance(user, Parallel) and isinstance(user.by, dpf.FromRelease):
            wanted = (user.by.step,)
        for name in wanted:
            place: Node | None = user
            while place is not None:
                found = seen(place, name, others=place is not user)
                uses |= {(source, id(user)) for source in found}
                place = None if found else opener_of[id(place)]
    return uses


def test_a_step_may_read_any_attribute_if_it_reads_one_that_the_schema_lacks(plan_of: Callable[..., Any]) -> None:
    """A miner derives that one, from whatever it likes. Without a plan nobody says which attributes there are."""
    known, derived = (
        dpf.step("s", dpf.queries.Histogram(one), DiscreteLaplace(1)) for one in (SCHEMA["a"], dpf.Boolean("b"))
    )
    for node, reads in ((known, ("a",)), (derived, None)):
        (placed,) = plan_of(node, SCHEMA).index.nodes
        assert placed.declared_reads == reads
        assert attrs.evolve(placed, plan=None).declared_reads == (reads or ("b",))


@given(node=nodes)
def test_an_index_says_what_walking_says(plan_of: Callable[..., dpf.StudyPlan], node: Node) -> None:
    plan = plan_of(node, SCHEMA)  # in which each node occurs once
    index, walked = plan.index, list(walk(plan.root))
    assert [placed.node for placed in index.nodes] == walked
    assert [placed.number for placed in index.nodes] == list(range(len(walked)))
    assert [(s.path, [id(p.node) for p in s.nodes]) for s in index.scopes] == [
        (path, [id(n) for n in own]) for path, own in walked_scopes(plan.root)
    ]
    ids = [id(n) for n in walked]
    assert {(ids[source], ids[user.number]) for user in index.nodes for source in user.uses} == walked_uses(plan.root)
    for placed in index.nodes:
        assert index.place(placed.node) is placed
        assert [one.node for one in index.below(placed)] == list(walk(placed.node))[1:]
        assert [id(one.node) for one in index.children(placed)] == [id(n) for n in placed.node.children]
        for position, child in enumerate(index.children(placed)):
            assert (child.parent, child.position) == (placed.number, position)
    first_scopes: dict[int, str] = {}
    scopes_by_top: dict[int, list[Node]] = {}
    for path, own in walked_scopes(plan.root):
        scopes_by_top.setdefault(id(own[0]), own)
        for n in own:
            first_scopes.setdefault(id(n), path)
    assert [placed.scope for placed in index.nodes] == [first_scopes[id(n)] for n in walked]
    for placed in index.nodes:
        opened = scopes_by_top.get(id(placed.node), [placed.node])
        assert [id(one.node) for one in index.within(placed.node)] == [id(n) for n in opened]


@given(node=nodes)
def test_steps_under_cuts_and_samples_are_known(plan_of: Callable[..., dpf.StudyPlan], node: Node) -> None:
    plan = plan_of(node, SCHEMA)
    for kind, flag in ((Parallel, "in_parts"), (Sample, "on_sample")):
        below = {id(n) for top in walk(plan.root) if isinstance(top, kind) for n in list(walk(top))[1:]}
        assert {id(p.node) for p in plan.index.nodes if getattr(p, flag)} == below


@given(node=nodes)
def test_the_graph_shows_the_index(plan_of: Callable[..., dpf.StudyPlan], node: Node) -> None:
    plan = plan_of(node, SCHEMA)
    graph: Any = plan.graph()
    assert [graph.nodes[n]["label"] for n in sorted(graph)] == [placed.label for placed in plan.index.nodes]
    assert [graph.nodes[n]["path"] for n in sorted(graph)] == [placed.path for placed in plan.index.nodes]
    assert [graph.nodes[n]["reads"] for n in sorted(graph)] == list(plan.index.reads)
    parts = nx.DiGraph([(s, t) for s, t, kind in graph.edges(data="kind") if kind == "part"])
    assert len(plan.index.nodes) == 1 or nx.is_arborescence(parts)


def chain() -> Node:
    rows = dpf.step("rows", dpf.queries.Count(), DiscreteLaplace("1/2"))
    again = dpf.step("again", dpf.queries.Histogram(SCHEMA["a"]), DiscreteLaplace("1/4"), uses=["rows"])
    return dpf.sequential(rows, again, dpf.post("tidy", ["again"]), name="counts")


def test_totals_checks_reports_and_differences_read_the_graph(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    whole, cut = plan_of(chain(), SCHEMA), plan_of(chain(), SCHEMA)
    placed = {one.name: one.number for one in cut.index.nodes}
    cut.index.graph.remove_edge(placed["counts"], placed["again"])
    cut.index.graph.remove_edge(placed["rows"], placed["again"])
    assert (whole.total().epsilon, cut.total().epsilon) == (Fraction(3, 4), Fraction(1, 2))
    assert ("again" in dpf.reports.tree(whole), "again" in dpf.reports.tree(cut)) == (True, False)
    assert [dpf.reports.mermaid(plan).count("-.->") for plan in (whole, cut)] == [2, 1]
    assert "again" in str(difference(cut, whole).changes)
    left = [next(str(finding) for finding in plan.check() if finding.code == "DP012") for plan in (whole, cut)]
    assert ["epsilon 999.25 " in left[0], "epsilon 999.5 " in left[1]] == [True, True]


def test_the_longest_path_by_loss_is_the_dearest_chain_of_releases(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    graph = plan_of(chain(), SCHEMA).graph()
    path = nx.dag_longest_path(graph, weight="epsilon")
    assert [graph.nodes[number]["name"] for number in path] == ["counts", "rows", "again"]
    assert nx.dag_longest_path_length(graph, weight="epsilon") == Fraction(3, 4)
    assert set(nx.multipartite_layout(graph, subset_key="level")) == set(graph)
    noisy = dpf.sequential(dpf.step("n", dpf.queries.Count(), Gaussian("0.125")), name="counts")
    assert plan_of(noisy, SCHEMA, delta="1e-6").graph().edges[0, 1] == {
        "kind": "part",
        "position": 0,
        "epsilon": math.inf,
        "rho": Fraction(1, 8),
    }


def test_a_query_is_asked_for_its_facts_once_a_plan(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    asked = []

    class Watched(dpf.queries.Count):
        def facts(self) -> Any:
            asked.append(self)
            return super().facts()

    plan = plan_of(dpf.sequential(dpf.step("n", Watched(), DiscreteLaplace(1)), name="s"), SCHEMA)
    plan.check()
    assert plan.to_json()
    assert plan.total()
    assert len(asked) == 1
