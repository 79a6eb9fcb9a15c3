"""The alignment of two plans: nodes of one plan are paired with nodes of the other.

Equal nodes are paired first, then nodes of the same name, then similar nodes. The result is one merged tree that has
each node of both plans exactly once. If the two plans are exchanged, the same nodes are paired.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

from dpframework.accountant import AccountedPlan
from dpframework.plan.node_kind_table import kind_of, name_of
from dpframework.plan.nodes import Node, Post, Step
from dpframework.plan.plan_node_index import PlanIndex
from dpframework.reports.difference.merged_plan_node import MergedNode
from dpframework.reports.difference.node_side import Side, own_content


def align_plans(before: AccountedPlan, after: AccountedPlan) -> MergedNode:
    """Return the merged tree of two plans."""
    merger, roots = _Merger(before, after), (before.root, after.root)
    found, _ = merger.merge(roots[:1], roots[1:])
    # If nothing else has paired the roots, they are paired here.
    return found[0] if len(found) == 1 else merger.pair(*roots)


def _name(node: Node) -> str | None:
    return name_of(node) or None


def _is_composition(node: Node) -> bool:
    return not kind_of(node).leaf


class _Merger:
    """Merges two plans by pairing their nodes level by level. Facts about a node are computed once."""

    def __init__(self, before: AccountedPlan, after: AccountedPlan) -> None:
        self._plans = before, after
        self._contents: dict[int, str] = {}
        self._names: dict[int, frozenset[Hashable]] = {}
        self._merged: dict[tuple[tuple[int, ...], ...], tuple[list[MergedNode], bool]] = {}

    def content(self, node: Node) -> str:
        """Return one hash of all that a node and the nodes below it declare."""
        if id(node) not in self._contents:
            whole = "\n".join([own_content(node), *map(self.content, self.parts(node))])
            self._contents[id(node)] = hashlib.sha256(whole.encode()).hexdigest()
        return self._contents[id(node)]

    def names(self, node: Node) -> frozenset[Hashable]:
        """Return pairs of kind and name, one for each named node below a node."""
        if id(node) not in self._names:
            self._names[id(node)] = frozenset((type(n), _name(n)) for n in self.below(node) if _name(n) is not None)
        return self._names[id(node)]

    def pair(self, before: Node, after: Node) -> MergedNode:
        """Return the merged node of two nodes, with their children merged."""
        children, reordered = self.merge(self.parts(before), self.parts(after))
        return self._node(before, after, children, reordered)

    def _node(
        self, before: Node | None, after: Node | None, children: Iterable[MergedNode], reordered: bool = False
    ) -> MergedNode:
        old, new = self._plans
        return MergedNode(
            None if before is None else Side(old.index.place(before), old),
            None if after is None else Side(new.index.place(after), new),
            tuple(children),
            reordered,
        )

    def merge(self, before: Sequence[Node], after: Sequence[Node]) -> tuple[list[MergedNode], bool]:
        """Merge a list of nodes of the plan before with a list of nodes of the plan after.

        Return the merged nodes, and whether the paired nodes are in another order in `after`. The outcome is cached,
        since `_wrap` merges the same lists many times when it looks for compositions that were put around nodes.
        """
        key = tuple(map(id, before)), tuple(map(id, after))
        if key not in self._merged:
            pairing = _Pairing(before, after)
            pairing.pair_equal(self.content)
            pairing.pair_equal(lambda node: None if _name(node) is None else (type(node), _name(node)))
            pairing.pair_equal(lambda node: _name(node) if _is_composition(node) else None)
            wrapped = self._wrap(pairing)
            pairing.pair_alike(self._rate_same_kind)
            pairing.pair_alike(self._rate_any_kind)
            pairing.pair_alike(self._rate_renamed)
            paired = [j for _, j in sorted(pairing.pairs)]
            found: list[tuple[int | None, int | None, MergedNode]] = [
                (i, j, self.pair(pairing.before[i], pairing.after[j])) for i, j in pairing.pairs
            ]
            found += wrapped
            found += [(None, j, self._alone(node, after=True)) for j, node in pairing.left_after()]
            places = {i: j for i, j, _ in found if i is not None and j is not None}
            keyed = [(j, one) for _, j, one in found if j is not None]
            for i, node in pairing.left_before():
                followed = max((k for k in places if k < i), default=None)
                keyed.append((-1 if followed is None else places[followed], self._alone(node, after=False)))
            # A removed node goes right after the nearest node ahead of it in `before` that has a counterpart. There it
            # comes ahead of added nodes.
            in_order = [one for _, one in sorted(keyed, key=lambda pair: pair[0])]
            self._merged[key] = in_order, paired != sorted(paired)
        return self._merged[key]

    def _wrap(self, pairing: _Pairing) -> list[tuple[int | None, int | None, MergedNode]]:
        """Merge compositions that only one plan has: each is merged with the nodes of the other plan that lie in it."""
        found: list[tuple[int | None, int | None, MergedNode]] = []
        around = [(0, i, node) for i, node in pairing.left_before()] + [
            (1, j, node) for j, node in pairing.left_after()
        ]
        for side, k, node in sorted(around, key=lambda one: (-len(self.below(one[2])), one[1], one[0])):
            others = pairing.left_after() if side == 0 else pairing.left_before()
            if k not in pairing.left[side] or not _is_composition(node):
                continue
            taken = [(o, other) for o, other in others if self._lies_in(other, node)]
            children: list[MergedNode] = []
            reordered, settled = False, False
            while taken and not settled:  # drop nodes that have no counterpart in `node`, and merge the rest again
                inner = [other for _, other in taken]
                sides = (self.parts(node), inner) if side == 0 else (inner, self.parts(node))
                children, reordered = self.merge(*sides)
                shared = _find_shared(children)
                settled = all(id(other) in shared for other in inner)
                taken = [(o, other) for o, other in taken if id(other) in shared]
            if not taken:
                continue
            pairing.left[side].discard(k)
            pairing.left[1 - side].difference_update(o for o, _ in taken)
            first = taken[0][0]
            if side == 0:
                found.append((k, first, self._node(node, None, children, reordered)))
            else:
                found.append((first, k, self._node(None, node, children, reordered)))
        return found

    def index_of(self, node: Node) -> PlanIndex:
        """Return the index of the plan that a node is in."""
        return next(plan.index for plan in self._plans if plan.index.find(node) is not None)

    def parts(self, node: Node) -> tuple[Node, ...]:
        """Return the children of a node, which may be in either plan."""
        return self.index_of(node).parts_of(node)

    def below(self, node: Node) -> tuple[Node, ...]:
        """Return all nodes below a node, which may be in either plan."""
        index = self.index_of(node)
        return tuple(inner.node for inner in index.below(index.place(node)))

    def _lies_in(self, node: Node, around: Node) -> bool:
        """Tell whether `node`, or a changed version of it, may be below `around`. The two are in different plans.

        A node with equal content is `node` itself. If `node` has a name, a node below `around` with the same kind and
        name is a changed version of it. If `node` has no name, only the children of `around` count. Such a child must
        have the kind of `node`, and each of the two must have a named node below it with the same kind and name. For
        such a `node`, `around` must be of another kind.
        """
        # `around` must have more nodes below it than `node` has. So no two nodes enclose each other.
        if len(self.below(node)) >= len(self.below(around)):
            return False
        if any(self.content(inner) == self.content(node) for inner in self.below(around)):
            return True
        if _name(node) is not None:
            return (type(node), _name(node)) in self.names(around)
        return type(node) is not type(around) and any(
            type(child) is type(node) and self.names(child) & self.names(node) for child in self.parts(around)
        )

    def _rate_same_kind(self, before: Node, after: Node, alone: bool) -> int | None:
        """Count the names that two compositions of one kind share below them. None means that they are not alike.

        With `alone`, each list has just one unpaired node of this kind, and no shared name is needed.
        """
        if type(before) is not type(after) or not _is_composition(before):
            return None
        if None not in (_name(before), _name(after)):
            return None  # both have a name, and the names differ
        shared = len(self.names(before) & self.names(after))
        return shared if shared or alone else None

    def _rate_any_kind(self, before: Node, after: Node, alone: bool) -> int | None:
        """Count the names that two compositions share below them, whatever their kinds. None means not alike."""
        if not (_is_composition(before) and _is_composition(after)) or None not in (_name(before), _name(after)):
            return None
        return len(self.names(before) & self.names(after)) or None

    def _rate_renamed(self, before: Node, after: Node, alone: bool) -> int | None:
        """Return 0 if two nodes may be one node that was renamed. None means that they are not alike.

        Such nodes are steps whose queries have equal facts, post-processing of the same releases, or compositions of
        one kind with equal children.
        """
        match before, after:
            case Step(), Step():
                return 0 if before.facts == after.facts else None
            case Post(), Post():
                return 0 if before.uses == after.uses else None
        alike = [*map(self.content, self.parts(before))] == [*map(self.content, self.parts(after))]
        return 0 if alike and type(before) is type(after) else None

    def _alone(self, node: Node, *, after: bool) -> MergedNode:
        children = [self._alone(child, after=after) for child in self.parts(node)]
        return self._node(None, node, children) if after else self._node(node, None, children)


class _Pairing:
    """Two lists of nodes, one of each plan, with the pairs that were found and the nodes that are left."""

    def __init__(self, before: Sequence[Node], after: Sequence[Node]) -> None:
        self.before, self.after = tuple(before), tuple(after)
        self.left = (set(range(len(before))), set(range(len(after))))
        self.pairs: list[tuple[int, int]] = []

    def left_before(self) -> list[tuple[int, Node]]:
        return [(i, self.before[i]) for i in sorted(self.left[0])]

    def left_after(self) -> list[tuple[int, Node]]:
        return [(j, self.after[j]) for j in sorted(self.left[1])]

    def pair_equal(self, key: Callable[[Node], Hashable]) -> None:
        """Pair nodes with the same key, in order. Nodes whose key is None are not paired."""
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for j, node in self.left_after():
            if key(node) is not None:
                waiting[key(node)].append(j)
        for i, node in self.left_before():
            if waiting[key(node)]:
                self._take(i, waiting[key(node)].pop(0))

    def pair_alike(self, likeness: Callable[[Node, Node, bool], int | None]) -> None:
        """Pair nodes, the most alike first. Among equally alike pairs, those with the closest positions come first.

        Nodes whose likeness is None are not paired. Let i and j be the positions of two nodes in their lists. Equally
        alike pairs are ordered by |i-j|, then by i+j. Two pairs (i, j) and (i, k) that share a node never tie, since
        |i-j| = |i-k| and i+j = i+k imply j = k. So the outcome does not depend on which plan is called `before`.
        """
        first, second = (Counter(type(node) for _, node in side) for side in (self.left_before(), self.left_after()))
        alone = {kind for kind, number in first.items() if number == second[kind] == 1}
        rated = [
            (-rate, abs(i - j), i + j, i, j)
            for i, before in self.left_before()
            for j, after in self.left_after()
            if (rate := likeness(before, after, type(before) in alone)) is not None
        ]
        for *_, i, j in sorted(rated):
            if i in self.left[0] and j in self.left[1]:
                self._take(i, j)

    def _take(self, i: int, j: int) -> None:
        self.left[0].discard(i)
        self.left[1].discard(j)
        self.pairs.append((i, j))


def _find_shared(trees: Iterable[MergedNode]) -> set[int]:
    """Return the `id` of each node that both plans have, and of each node that has such a node below it."""
    found: set[int] = set()
    for tree in trees:
        below = _find_shared(tree.children)
        found |= below
        if below or (tree.before is not None and tree.after is not None):
            found |= {id(side.node) for side in (tree.before, tree.after) if side is not None}
    return found
