"""What is said of two plans: changes in words, and the merged tree of their nodes."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.facts.privacy import PrivacyLoss


class Mark(enum.StrEnum):
    """Which plan a node is in, and whether it is the same in both."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Topic(enum.StrEnum):
    """What a change is about, in the order of a report."""

    TOTAL = "total"
    FINDINGS = "findings"
    BUDGET = "budget"
    RELATION = "relation"
    SCHEMA = "schema"
    MINERS = "miners"
    ASSUMPTIONS = "assumptions"
    COMPOSITION = "composition"
    STEPS = "steps"


@final
@attrs.frozen
class Change:
    """One change in one sentence."""

    topic: Topic
    text: str

    def __str__(self) -> str:
        """Write one line."""
        return f"{self.topic}: {self.text}"

    def to_dict(self) -> dict[str, str]:
        """Return a JSON-safe form."""
        return {"topic": self.topic.value, "text": self.text}


@final
@attrs.frozen
class Side:
    """A node as one of the plans has it.

    Attributes
    ----------
    number
        Its number in that plan's graph (see `plan_graph`).
    kind
        "step", "sequential", ...
    path
        Its name with the scopes around it; for what has no name, the scope that it is in.
    label
        What it is, in a few words.
    loss
        What all releases below it cost at most, in pure epsilon; for a step without one its rho. None if there is no
        valid claim, and for post-processing, which is free.
    """

    number: int
    kind: str
    path: str
    label: str
    loss: PrivacyLoss | None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        loss = {} if self.loss is None else {"epsilon": self.loss.epsilon, "rho": self.loss.rho}
        known = {name: str(amount) for name, amount in loss.items() if amount is not None}
        return {"number": self.number, "kind": self.kind, "path": self.path, "label": self.label, "loss": known}


@final
@attrs.frozen
class Difference:
    """What changed between two plans.

    Attributes
    ----------
    before, after
        The plans.
    headlines
        What an auditor must know first, whether anything changed or not: what becomes of the total, and of the
        checks' answer.
    changes
        One sentence each, by topic; none if the plans are equal.
    root
        The merged tree.
    """

    before: AccountedPlan
    after: AccountedPlan
    headlines: tuple[str, ...]
    changes: tuple[Change, ...]
    root: Merged

    def nodes(self) -> Iterator[Merged]:
        """Yield every node of the merged tree, from the top, left to right."""
        return self.root.walk()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "before": self.before.hash,
            "after": self.after.hash,
            "same": not self.changes,
            "headlines": list(self.headlines),
            "changes": [change.to_dict() for change in self.changes],
            "root": self.root.to_dict(),
        }


@final
@attrs.frozen
class Merged:
    """A node of the merged tree of two plans.

    Attributes
    ----------
    mark
        "changed" is said of what both plans have, with other facts or another loss.
    before, after
        The node in each plan; None where that plan has none.
    changed
        What is declared otherwise, in a word or two each.
    children
        Those of both plans, a removed one before what was added in its place. A composition of one plan may stand
        around children of both.
    """

    mark: Mark
    before: Side | None
    after: Side | None
    changed: tuple[str, ...]
    children: tuple[Merged, ...]

    @property
    def side(self) -> Side:
        """The node as the plan after has it, or else the one before."""
        found = self.after or self.before
        assert found is not None  # a merged node stands for one of either
        return found

    def walk(self) -> Iterator[Merged]:
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
