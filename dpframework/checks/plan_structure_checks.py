"""Checks of a plan's structure: it must make a release, parts must be disjoint, names unique, and releases used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dpframework.checks.base import Severity
from dpframework.facts.description_overlaps import first_overlap
from dpframework.facts.errors import InputError, nearest
from dpframework.plan.nodes import FromRelease, Parallel, Post, Sequential, Step, split_use
from dpframework.plan.plan import Plan
from dpframework.plan.plan_node_index import PlacedNode, ScopeNodes
from dpframework.plan.spend_block_node import Spend
from dpframework.queries.plan_file_query import PlanFileQuery


def _path(scope: ScopeNodes) -> str:
    """Return the quoted path of a scope, a part of the plan in which names must be unique."""
    return f"'{scope.path}'" if scope.path else "the plan"


def nothing_released(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find a plan without a step."""
    if not plan.index.steps:
        yield Severity.ERROR, "the plan makes no release; add a step"


def parts_not_disjoint(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find nodes of kind parallel whose parts may overlap, are not declared, or are made from an unknown release."""
    for scope in plan.index.scopes:
        own = {placed.name for placed in scope.nodes if isinstance(placed.node, Step | Post)}
        for placed in scope.nodes:
            node, released = placed.node, own | _given_names(placed, plan)
            if not isinstance(node, Parallel):
                continue
            what = f"parallel '{node.name}'" if node.name else "a parallel"
            if node.by is None:
                yield (
                    Severity.ERROR,
                    f"{what} in {_path(scope)} does not say how its parts are made; give by=, so that they are "
                    "disjoint by value",
                )
            elif isinstance(node.by, FromRelease) and node.by.step not in released:
                yield (
                    Severity.ERROR,
                    f"{what} in {_path(scope)} is made from step '{node.by.step}', which is not there; "
                    f"{nearest(node.by.step, released)}",
                )
            elif isinstance(node.by, tuple) and plan.schema is not None:
                # A plan without a schema was read from a file, and was checked before it was written.
                try:
                    overlap = first_overlap(node.by, plan.schema)
                except InputError as error:
                    yield Severity.ERROR, f"{what} in {_path(scope)}: {error}"
                    continue
                if overlap is not None:
                    first, second = (str(node.by[k]) for k in overlap)
                    yield (
                        Severity.ERROR,
                        f"{what} in {_path(scope)}: the parts '{first}' and '{second}' overlap; use Cases, which are "
                        "always disjoint",
                    )


def _given_names(placed: PlacedNode, plan: Plan) -> set[str]:
    """Return the names of the releases that a node uses, from its own scope or from scopes around it."""
    return {plan.index.nodes[source].name for source in placed.uses}


def duplicate_names(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find names that two nodes in one scope have in common."""
    for scope in plan.index.scopes:
        opens = isinstance(scope.nodes[0].node, Sequential | Spend)
        own = scope.nodes[1:] if opens else scope.nodes
        for name, times in Counter(placed.name for placed in own if placed.name).items():
            if times > 1:
                yield (
                    Severity.ERROR,
                    f"{_path(scope)} holds {times} parts named '{name}'; give each its own name, or use repeat",
                )


def one_name_of_two_queries(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find two query classes with the same name, which a plan file could not tell apart."""
    first: dict[str, Step] = {}
    for step in plan.steps():
        kind = type(step.query)
        if kind is PlanFileQuery:
            continue  # a plan from a file was checked before it was written
        name = step.query.name
        other = type(first.setdefault(name, step).query)
        if kind is not other:
            yield (
                Severity.ERROR,
                f"the query of step '{first[name].name}', {other.__module__}.{other.__qualname__}, and that of step "
                f"'{step.name}', {kind.__module__}.{kind.__qualname__}, are both named '{name}', so a plan file "
                "cannot tell them apart; give one of the two classes another name",
            )


def unused_step(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find releases that no node uses, in scopes where a `Post` node marks what is used."""
    used_below = {source for placed in plan.index.nodes for source in placed.uses}
    for scope in plan.index.scopes:
        if not any(isinstance(placed.node, Post) for placed in scope.nodes):
            continue  # without a `Post` node, all releases of a scope go into the result
        used = {name for placed in scope.nodes for name in placed.kind.uses(placed.node)}
        used |= {placed.name for placed in scope.nodes if placed.number in used_below}
        for placed in scope.nodes:
            if isinstance(placed.node, Step) and placed.name not in used:
                yield (
                    Severity.WARNING,
                    f"step '{placed.name}' in {_path(scope)} is released but nobody uses it; drop it and save its "
                    "epsilon",
                )


def unknown_use(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find uses of a release that is neither in the node's scope nor in a scope around it."""
    for scope in plan.index.scopes:
        own = {placed.name for placed in scope.nodes if placed.name}
        for placed in scope.nodes:
            if isinstance(placed.node, Parallel):
                continue  # `parts_not_disjoint` reports parts that are made from an unknown release
            given = _given_names(placed, plan)
            for name, outside in map(split_use, placed.kind.uses(placed.node)):
                known = given if outside else own | given
                if name not in known:
                    where = f"beside {_path(scope)}" if outside else "there"
                    yield (
                        Severity.ERROR,
                        f"'{placed.name}' in {_path(scope)} uses '{name}', which is not {where}; "
                        f"{nearest(name, known)}",
                    )
