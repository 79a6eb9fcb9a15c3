"""The merged tree of two plans."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, final

import attrs

from dpframework.reports.difference.claims import compare_facts
from dpframework.reports.difference.marks import Mark
from dpframework.reports.difference.node_side import Side


@final
@attrs.frozen(eq=False)
class MergedNode:
    """A node of the merged tree of two plans. It comes from one of the plans or from both.

    Attributes
    ----------
    before, after
        The node in each plan; None if that plan does not have it.
    children
        The children in either plan, in the order of the plan after. A removed child follows the child that it followed
        before. A composition that only one plan has may still have children of both plans, if it was put around nodes
        that stayed, or was removed from around them.
    reordered
        Whether the children that both plans have are in another order.
    """

    before: Side | None
    after: Side | None
    children: tuple[MergedNode, ...] = ()
    reordered: bool = False

    @property
    def side(self) -> Side:
        """The node in the plan after. If that plan does not have it, the node in the plan before."""
        found = self.after or self.before
        assert found is not None  # a merged node is in at least one of the plans
        return found

    @functools.cached_property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The changed claims, each as its name in a word or two, and a text that describes the change."""
        if self.before is None or self.after is None:
            return ()
        return tuple(compare_facts(self.before, self.after, reordered=self.reordered))

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of the changed claims."""
        return tuple(fact for fact, _ in self.facts)

    @property
    def mark(self) -> Mark:
        """Whether the node is in one plan or in both. A node of both is "changed" if its facts or its loss differ."""
        if self.before is None or self.after is None:
            return Mark.ADDED if self.before is None else Mark.REMOVED
        return Mark.CHANGED if self.facts or self.before.loss != self.after.loss else Mark.SAME

    def walk(self) -> Iterator[MergedNode]:
        """Yield the node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "mark": self.mark.value,
            "before": None if self.before is None else self.before.to_dict(),
            "after": None if self.after is None else self.after.to_dict(),
            "changed": list(self.changed),
            "children": [child.to_dict() for child in self.children],
        }
