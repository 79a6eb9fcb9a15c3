"""Which nodes of two plans are paired: by content, by name, by kind and likeness, and each pair once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node
from dpframework.plan.nodes import Sequential
from dpframework.reports.difference.alignment import _Pairing, align_plans
from dpframework.reports.difference.merged_plan_node import MergedNode

SCHEMA = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("c", ["x", "y", "z"])])


def step(name: str, epsilon: Any = 1) -> Node:
    return dpf.step(name, dpf.queries.Count(), DiscreteLaplace(epsilon))


def bars(name: str, of: str = "a") -> Node:
    return dpf.step(name, dpf.queries.Histogram(SCHEMA[of]), DiscreteLaplace(1))


def scope(*parts: Node, name: str | None = None) -> Node:
    return dpf.sequential(*parts, name=name)


def name_of(side: Any) -> str | None:
    return None if side is None else getattr(side.node, "name", "") or type(side.node).__name__


def form(node: MergedNode) -> Any:
    """A node as `before>after`, or once if both are called alike, with its children, after ~ if they were reordered."""
    old, new = name_of(node.before) or "", name_of(node.after) or ""
    own = old if old == new else f"{old}>{new}"
    inner = " ".join(map(form, node.children))
    return own + (f"({'~' * node.reordered}{inner})" if inner else "")


@pytest.fixture
def merged(plan_of: Callable[..., dpf.StudyPlan]) -> Any:
    return lambda before, after: form(align_plans(plan_of(before, SCHEMA), plan_of(after, SCHEMA)))


a, b, c, d = map(step, "abcd")


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (scope(a, b), scope(a, b), "Sequential(a b)"),
        (scope(a, b), scope(b, a), "Sequential(~b a)"),
        (scope(a, b, c), scope(c, a, b), "Sequential(~c a b)"),
        # of two that are as like it and as close, the first
        (scope(bars("x"), a), scope(b, bars("x"), c), "Sequential(~a>b x >c)"),
        # a removed node follows the one that it followed, before those that were added there
        (scope(a, bars("x"), c), scope(a, c), "Sequential(a x> c)"),
        (scope(bars("x"), a, c), scope(a, c), "Sequential(x> a c)"),
        (scope(a, bars("x"), c), scope(a, c, bars("y", "c")), "Sequential(a x> c >y)"),
        (scope(a, c), scope(bars("x"), a, bars("y"), c), "Sequential(>x a >y c)"),
        (scope(a, bars("x"), bars("y", "c")), scope(c, a), "Sequential(>c a x> y>)"),
        # who differs in the name alone was renamed, the nearest to each other first
        (scope(a, bars("x")), scope(d, bars("x")), "Sequential(a>d x)"),
        (scope(a, b, bars("x")), scope(c, d, bars("x")), "Sequential(a>c b>d x)"),
        (scope(bars("x"), a), scope(d, bars("y", "c")), "Sequential(x> a>d >y)"),
        (scope(step("a"), bars("x")), scope(step("d", 2), bars("x")), "Sequential(a>d x)"),
        # a name says more than what a node is
        (scope(a, bars("x")), scope(bars("a"), step("x")), "Sequential(a x)"),
        (scope(bars("x"), scope(a, b, name="s")), scope(scope(c, d, name="s"), bars("x")), "Sequential(~s(a>c b>d) x)"),
        (scope(scope(a, name="s"), scope(b, name="t")), scope(scope(b, name="u"), c), "Sequential(s>(a>) t>u(b) >c)"),
        # one without a name is paired with the one of its kind that shares the most with it
        (scope(c, dpf.repeat(2, a)), scope(c, dpf.repeat(3, a)), "Sequential(c Repeat(a))"),
        (scope(c, dpf.repeat(2, a)), scope(c, dpf.repeat(3, bars("x"))), "Sequential(c Repeat(a> >x))"),
        (
            scope(dpf.repeat(2, a), dpf.repeat(2, scope(b, c))),
            scope(dpf.repeat(3, scope(b, c, a)), dpf.repeat(3, a)),
            "Sequential(~Repeat(Sequential(b c >a)) Repeat(a))",
        ),
        (
            scope(dpf.repeat(2, a), dpf.repeat(2, b)),
            scope(dpf.repeat(3, bars("x")), dpf.repeat(3, bars("y"))),
            "Sequential(Repeat>(a>) Repeat>(b>) >Repeat(>x) >Repeat(>y))",
        ),
        # a composition that was put around nodes, or taken away, takes them in
        (scope(a, b, c), scope(a, dpf.repeat(2, scope(b, c))), "Sequential(a >Repeat(>Sequential(b c)))"),
        (scope(a, dpf.repeat(2, b)), scope(a, b), "Sequential(a Repeat>(b))"),
        (scope(a, b), scope(a, dpf.repeat(2, step("b", 2))), "Sequential(a >Repeat(b))"),
        (scope(a, b), scope(a, dpf.repeat(2, bars("b"))), "Sequential(a >Repeat(b))"),
        (
            scope(a, b, c),
            scope(dpf.repeat(2, a), dpf.repeat(3, scope(b, c))),
            "Sequential(>Repeat(a) >Repeat(>Sequential(b c)))",
        ),
        (
            scope(a, b, c),
            scope(dpf.repeat(2, scope(a, dpf.repeat(3, b))), c),
            "Sequential(>Repeat(>Sequential(a >Repeat(b))) c)",
        ),
        (scope(a, b, c), scope(dpf.repeat(2, scope(c, a)), b), "Sequential(>Repeat(>Sequential(~c a)) b)"),
        (scope(a, scope(b, c)), scope(a, b, c), "Sequential(a Sequential>(b c))"),
        (
            scope(c, dpf.repeat(2, a)),
            scope(c, dpf.parallel(dpf.repeat(3, scope(a, d)), by=SCHEMA["c"])),
            "Sequential(c >Parallel(Repeat(>Sequential(a >d))))",
        ),
        (
            scope(c, dpf.repeat(2, a)),
            scope(c, dpf.parallel(dpf.repeat(3, scope(b, d)), by=SCHEMA["c"])),
            "Sequential(c Repeat>(a>) >Parallel(>Repeat(>Sequential(>b >d))))",
        ),
        # and two compositions of other kinds are one, unless both have names
        (
            scope(c, dpf.repeat(2, scope(a, b))),
            scope(c, scope(a, b, d, name="s")),
            "Sequential(c Repeat>s(Sequential>(a b) >d))",
        ),
        (
            scope(c, scope(a, b, name="s")),
            scope(c, dpf.repeat(2, scope(a, b, d))),
            "Sequential(c s>Repeat(>Sequential(a b >d)))",
        ),
        (scope(c, scope(a, b, name="s")), scope(c, scope(a, bars("x"), name="t")), "Sequential(c s>(a> b>) >t(>a >x))"),
        (
            scope(c, dpf.parallel(a, by=SCHEMA["c"])),
            scope(c, dpf.repeat(2, bars("a"))),
            "Sequential(c Parallel>Repeat(a))",
        ),
        # equal ones are paired in their order
        (
            scope(dpf.repeat(2, a), dpf.repeat(2, a)),
            scope(dpf.repeat(2, a), dpf.repeat(2, a)),
            "Sequential(Repeat(a) Repeat(a))",
        ),
        # one that stays as it is is paired with itself, before one that shares as much with it and is closer
        (
            scope(dpf.repeat(2, scope(a, b)), dpf.repeat(2, a)),
            scope(dpf.repeat(2, a), c),
            "Sequential(Repeat>(Sequential>(a> b>)) Repeat(a) >c)",
        ),
        (scope(bars("x"), bars("y"), a), scope(c, bars("x"), d), "Sequential(>c x y> a>d)"),
        (scope(a, bars("x"), bars("y", "c"), b), scope(a, b), "Sequential(a x> y> b)"),
        (scope(bars("x"), bars("y", "c"), b), scope(a, b), "Sequential(x> y> >a b)"),
        (scope(a, dpf.post("p", ["a"])), scope(a, dpf.post("q", ["a"])), "Sequential(a p>q)"),
        (scope(a, b, dpf.post("p", ["a"])), scope(a, b, dpf.post("q", ["b"])), "Sequential(a b p> >q)"),
        (a, dpf.repeat(2, a), ">Repeat(a)"),
        (a, bars("x"), "a>x"),
    ],
)
def test_nodes_are_paired(before: Node, after: Node, found: str, merged: Any) -> None:
    assert merged(before, after) == found


def test_who_is_alone_of_its_kind_on_both_sides_is_said_to_be() -> None:
    s, r = scope(a), dpf.repeat(2, a)
    for before, after, alone in (
        ([s], [s], {Sequential}),
        ([s, r], [r, s], {Sequential, type(r)}),
        ([s, s], [s], set()),
        ([s], [s, s], set()),
        ([s, s], [s, s], set()),
        ([s, r], [s, r, r], {Sequential}),
        ([s], [r], set()),
    ):
        said = []
        _Pairing(before, after).pair_alike(lambda one, other, single, said=said: said.append((type(one), single)))  # type: ignore[misc]
        assert {kind for kind, single in said if single} == alone
        assert len(said) == len(before) * len(after)


def test_the_most_alike_are_paired_first_then_the_closest_and_nobody_twice() -> None:
    rates = {("a", "c"): 1, ("a", "d"): 2, ("b", "c"): 1, ("b", "d"): 3}
    for before, after, pairs in (
        ([a, b], [c, d], [(1, 1), (0, 0)]),
        ([a], [c, d], [(0, 1)]),
        ([a, b], [c], [(0, 0)]),
        ([b, a], [c], [(0, 0)]),
        ([a, b], [], []),
    ):
        table = _Pairing(before, after)
        table.pair_alike(lambda one, other, single: rates[one.name, other.name])  # type: ignore[attr-defined]
        assert table.pairs == pairs
        assert table.left == (
            {*range(len(before))} - {i for i, _ in pairs},
            {*range(len(after))} - {j for _, j in pairs},
        )
