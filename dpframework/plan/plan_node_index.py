"""The index of a plan: its nodes with their positions, paths and scopes. Totals, checks and reports all use it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, final

import attrs

from dpframework.facts.row_partitions import attributes_of
from dpframework.facts.schema import Schema
from dpframework.mechanisms.base import Calibration
from dpframework.plan.edges import Edges
from dpframework.plan.node_kind_table import NodeKind, kind_of, name_of
from dpframework.plan.nodes import FromRelease, Node, Parallel, Sample, Sequential, Step, split_use
from dpframework.plan.spend_block_node import Spend

if TYPE_CHECKING:
    import networkx as nx

    from dpframework.plan.plan import Plan

#: The names of the attributes that a node reads; None if it may read any attribute.
Reads: TypeAlias = "tuple[str, ...] | None"


@final
@attrs.frozen(eq=False)
class PlacedNode:
    """A node with its place in a plan: its number, scope and edges, and which rows it reads.

    Attributes
    ----------
    number
        The number of the node in the plan. Nodes are numbered from 0, each before the nodes below it, left to right.
    node
        The node itself.
    kind
        The kind of the node, with all facts about this kind.
    edges
        The edges of the plan's graph.
    end
        The nodes below this one have the numbers from `number + 1` to `end - 1`.
    scope
        The path of the scope that holds the node (see `ScopeNodes`); empty for the plan's own scope.
    in_parts
        Whether the node reads one of several parts of the table, over which a privacy unit's rows may be spread.
    on_sample
        Whether the node reads a random sample of the rows.
    plan
        The plan; None for nodes that are not in a plan yet.
    """

    number: int
    node: Node
    kind: NodeKind = attrs.field(repr=lambda kind: kind.name)
    edges: Edges = attrs.field(repr=False)
    end: int
    scope: str
    in_parts: bool
    on_sample: bool
    plan: Plan | None = attrs.field(default=None, repr=False)

    @functools.cached_property
    def _preceding(self) -> dict[int, dict[str, Any]]:
        """The edges that end at the node, by the number of the node where they start."""
        return dict(self.edges.preceding[self.number])

    @functools.cached_property
    def parent(self) -> int | None:
        """The number of the node that has this one as a part; None for the root."""
        return next((source for source, edge in self._preceding.items() if edge["kind"] == "part"), None)

    @functools.cached_property
    def position(self) -> int:
        """The position of the node among the parts of its parent."""
        return 0 if self.parent is None else int(self._preceding[self.parent]["position"])

    @functools.cached_property
    def uses(self) -> tuple[int, ...]:
        """The numbers of the nodes whose releases this node uses, such as to make its parts, in increasing order."""
        return tuple(sorted(source for source, edge in self._preceding.items() if "use" in edge))

    @functools.cached_property
    def name(self) -> str:
        """The node's name, empty if it has none."""
        return name_of(self.node)

    @functools.cached_property
    def path(self) -> str:
        """The path of the node's scope, followed by the node's name if it has one."""
        return "/".join(filter(None, (self.scope, self.name)))

    @functools.cached_property
    def label(self) -> str:
        """A few words that describe the node."""
        return self.kind.label(self.node)

    @functools.cached_property
    def calibration(self) -> Calibration | None:
        """The noise and losses of a step, or the losses of a block (see `plan.spend_block_node`).

        None for nodes of other kinds, and if there is no valid claim.
        """
        if self.plan is None or not isinstance(self.node, Step | Spend):
            return None
        return self.plan.calibrate(self.node, in_parts=self.plan.in_parts(self.node))

    @property
    def block(self) -> Spend | None:
        """The block that has this step as one of its kinds of release; None for other nodes."""
        if self.plan is None or self.parent is None:
            return None
        above = self.plan.index.nodes[self.parent].node
        return above if isinstance(above, Spend) else None

    @property
    def declared_reads(self) -> Reads:
        """The attributes that the node itself reads, or by which it cuts rows into parts; None if they may be any.

        A miner may derive attributes that are not in the schema. Such an attribute may depend on any other attribute.
        """
        # Imported here, since totals do not need the code that counts rows.
        from dpframework.queries.counts import Count

        match self.node:
            case Step():
                facts = self.node.facts
                none = facts.no_attributes or facts == Count().facts()
                return () if none else self._read_known(facts.attributes)
            case Parallel(by=by):
                if by is None:
                    return None
                return self._read_known(by.attributes if isinstance(by, FromRelease) else attributes_of(by))
        return ()

    def _read_known(self, names: tuple[str, ...]) -> Reads:
        schema: Schema | None = None if self.plan is None else self.plan.schema
        return names if names and (schema is None or all(name in schema for name in names)) else None


@final
@attrs.frozen
class ScopeNodes:
    """The nodes of one scope: a part of a plan in which names are unique, and in which a run looks names up.

    A named sequential, a block, a parallel and a sample belong to the scope around them. The nodes below them are in
    scopes of their own. A named sequential or a block is also the first node of its own scope.

    Attributes
    ----------
    path
        The path of the scope; empty for the scope of the whole plan.
    nodes
        The nodes of the scope, by their numbers.
    """

    path: str
    nodes: tuple[PlacedNode, ...]


def join_reads(*reads: Reads) -> Reads:
    """Return the union of several sets of attributes; None if one of them is None."""
    if None in reads:
        return None
    return tuple(dict.fromkeys(name for names in reads for name in names or ()))


@final
class PlanIndex:
    """The graph of a plan, and the scopes of its nodes.

    Attributes
    ----------
    edges
        The edges between nodes, by the nodes' numbers. An edge of `kind` "part" leads from a composition to one of its
        parts, and has the part's `position`. An edge of `kind` "use" leads from a release to a node that uses it. If
        both hold for two nodes, the `kind` is "part". Every edge from a used release has the fact `use`.
    nodes
        Every node of the graph, in the order of their numbers.
    scopes
        Every scope, each before the scopes inside it.
    """

    def __init__(self, root: Node, plan: Plan | None = None) -> None:
        builder = _Builder(plan)
        builder.place_scope(root, "", None, 0, in_parts=False, on_sample=False)
        self.edges = builder.edges
        self.nodes: tuple[PlacedNode, ...] = tuple(builder.placed_nodes())
        self.scopes = tuple(ScopeNodes(path, tuple(self.nodes[n] for n in own)) for path, own in builder.scopes)
        self._numbers = {id(placed.node): placed.number for placed in reversed(self.nodes)}

    @functools.cached_property
    def graph(self) -> nx.DiGraph:
        """The plan as a `networkx.DiGraph`. Each node has its `PlacedNode` as the attribute `placed`."""
        return self.edges.as_graph((placed.number, {"placed": placed}) for placed in self.nodes)

    def find(self, node: Node) -> PlacedNode | None:
        """Return the place of a node in the plan, or None if this very object is not in the plan."""
        number = self._numbers.get(id(node))
        return None if number is None else self.nodes[number]

    def place(self, node: Node) -> PlacedNode:
        """Return the place of a node. This very object must be in the plan."""
        return self.nodes[self._numbers[id(node)]]

    def below(self, placed: PlacedNode) -> tuple[PlacedNode, ...]:
        """Return all nodes below a node, by their numbers."""
        return self.nodes[placed.number + 1 : placed.end]

    def children(self, placed: PlacedNode) -> tuple[PlacedNode, ...]:
        """Return the direct parts of a node, in order."""
        return self._children[placed.number]

    @functools.cached_property
    def _children(self) -> list[tuple[PlacedNode, ...]]:
        found: list[list[PlacedNode]] = [[] for _ in self.nodes]
        for placed, parts in zip(self.nodes, found, strict=True):
            for number, edge in self.edges.following[placed.number].items():
                if edge["kind"] == "part":
                    parts.append(self.nodes[number])
        return list(map(tuple, found))

    def parts_of(self, node: Node) -> tuple[Node, ...]:
        """Return the direct parts of a node, which need not be in the plan."""
        placed = self.find(node)
        return tuple(node.children) if placed is None else tuple([part.node for part in self.children(placed)])

    def steps_of(self, placed: PlacedNode) -> tuple[PlacedNode, ...]:
        """Return the steps below a node, or the node itself if it is a step."""
        return tuple(one for one in self.nodes[placed.number : placed.end] if isinstance(one.node, Step))

    @functools.cached_property
    def steps(self) -> tuple[PlacedNode, ...]:
        """All steps of the plan."""
        return self.steps_of(self.nodes[0])

    @functools.cached_property
    def samples(self) -> bool:
        """Whether the plan draws a random sample."""
        return any(isinstance(placed.node, Sample) for placed in self.nodes)

    def within(self, node: Node) -> tuple[PlacedNode, ...]:
        """Return the nodes of the scope that a node opens, or the node alone if it opens no scope."""
        return self._scopes_by_top.get(id(node)) or (self.place(node),)

    @functools.cached_property
    def _scopes_by_top(self) -> dict[int, tuple[PlacedNode, ...]]:
        return {id(scope.nodes[0].node): scope.nodes for scope in reversed(self.scopes)}

    @functools.cached_property
    def reads(self) -> tuple[Reads, ...]:
        """For each node, the attributes on which its releases may depend; None if it may be any attribute.

        A step's releases depend on the attributes that its query reads. They also depend on the attributes that cut the
        table into the parts that the step reads, since these decide which rows are counted. Parts that are made from a
        release may be cut by any attribute, except if the plan names the attributes. A composition has the attributes
        of all its steps.
        """
        rows: list[Reads] = []  # for each node, the attributes that decide which rows the nodes below it read
        for placed in self.nodes:
            around: Reads = () if placed.parent is None else rows[placed.parent]
            rows.append(join_reads(around, placed.declared_reads))
        found: list[Reads] = list(rows)
        for placed in reversed(self.nodes):
            if not isinstance(placed.node, Step):
                found[placed.number] = join_reads(*(found[child.number] for child in self.children(placed)))
        return tuple(found)


class _Builder:
    """Numbers the nodes, and adds an edge to each node from its parent and from each release that it uses."""

    def __init__(self, plan: Plan | None) -> None:
        self.plan, self.edges = plan, Edges()
        self.scopes: list[tuple[str, list[int]]] = []
        self._facts: list[dict[str, Any]] = []
        self._sequentials: list[list[int]] = []
        self._openers: list[int | None] = []  # for each node, the number of the node that opens its scope

    def place_scope(self, node: Node, path: str, parent: int | None, position: int, **rows: bool) -> None:
        """Place the node at the top of a new scope, and all nodes below it."""
        own: list[int] = []
        self.scopes.append((path, own))
        self._place(node, path, own, (), parent, parent, position, **rows)

    def _place(
        self,
        node: Node,
        path: str,
        own: list[int],
        around: tuple[list[int], ...],
        opener: int | None,
        parent: int | None,
        position: int,
        **rows: bool,
    ) -> None:
        """Place a node and all nodes below it.

        `around` has one list for each sequential that is above the node and in the same scope. The list holds the
        numbers of the sequential and of the nodes below it.
        """
        number, kind, name = len(self._facts), kind_of(node), name_of(node)
        facts = {"node": node, "kind": kind, "scope": path, **rows}
        self._facts.append(facts)
        self.edges.add_node(number)
        if parent is not None:
            self.edges.add(parent, number, kind="part", position=position)
        self._openers.append(opener)
        # The first node of a scope (`own` is empty) opens no second one, except if its kind always opens a scope. The
        # scopes of kinds with `rows` are opened below, one for each part.
        opens = bool(name and (own or kind.scope) and not kind.rows and not kind.leaf)
        own.append(number)
        for inside in around:
            inside.append(number)
        inner = f"{path}/{name or kind.rows}".lstrip("/")
        if opens:
            path, own, around, opener = inner, [number], (), number
            self.scopes.append((path, own))
        if isinstance(node, Sequential):
            around = (*around, [number])
            self._sequentials.append(around[-1])
        for k, child in enumerate(node.children):
            if kind.rows:
                numbered = inner if len(node.children) == 1 else f"{inner} {k + 1}"
                sampled = isinstance(node, Sample)
                cut = {"in_parts": rows["in_parts"] or not sampled, "on_sample": rows["on_sample"] or sampled}
                self.place_scope(child, numbered, number, k, **cut)
            else:
                self._place(child, path, own, around, opener, number, k, **rows)
        facts["end"] = len(self._facts)

    def placed_nodes(self) -> Iterator[PlacedNode]:
        """Add the edges from releases to the nodes that use them, then yield each node with its place."""
        for source, user in self._uses():
            kind = self.edges.following[source].get(user, {}).get("kind", "use")
            self.edges.add(source, user, kind=kind, use=True)
        for number, facts in enumerate(self._facts):
            yield PlacedNode(number=number, edges=self.edges, plan=self.plan, **facts)

    def _uses(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of node numbers: the node that makes a release, and a node that uses the release.

        A name is looked up in the innermost scope first, then in the scopes around it. In a scope, it is looked up in
        all sequentials above the node.
        """
        named = [{name_of(self._facts[k]["node"]): k for k in inside} for inside in self._sequentials]
        around: dict[int, list[int]] = {}  # for each node, the sequentials above it; none is above itself
        for number, (_, *inside) in enumerate(self._sequentials):
            for k in inside:
                around.setdefault(k, []).append(number)
        for user, facts in enumerate(self._facts):
            for use in facts["kind"].uses(facts["node"]):
                name, outside = split_use(use)
                place: int | None = self._openers[user] if outside else user
                while place is not None:
                    sources = {named[k][name] for k in around.get(place, ()) if named[k].get(name, place) != place}
                    # Outside the node's own scope, a use made by `beside` refers to sequentials only (such as the part
                    # of another miner), and any other use refers to no sequential.
                    if place != user:
                        sources = {k for k in sources if isinstance(self._facts[k]["node"], Sequential) == outside}
                    yield from ((source, user) for source in sources)
                    place = None if sources else self._openers[place]


def scopes(node: Node) -> Iterator[tuple[str, tuple[Node, ...]]]:
    """Yield the path and the nodes of every scope at or below a node (see `ScopeNodes`)."""
    for scope in PlanIndex(node).scopes:
        yield scope.path, tuple(placed.node for placed in scope.nodes)


def within_scope(node: Node) -> tuple[Node, ...]:
    """Return the nodes of the scope that begins at a node (see `ScopeNodes`)."""
    return tuple(placed.node for placed in PlanIndex(node).scopes[0].nodes)
