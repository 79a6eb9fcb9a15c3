"""Changes between two plans in words, and the merged tree of their nodes."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.reports.difference.merged_plans import Merged


class Topic(enum.StrEnum):
    """The topic of a change, in the order of a report."""

    TOTAL = "total"
    FINDINGS = "findings"
    BUDGET = "budget"
    RELATION = "relation"
    UNIT = "unit"
    PLACES = "places"
    SCHEMA = "schema"
    MINERS = "miners"
    CODE = "code"
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
        return f"{self.topic}: {self.text}"

    def to_dict(self) -> dict[str, str]:
        """Return a JSON-safe form."""
        return {"topic": self.topic.value, "text": self.text}


@final
@attrs.frozen
class Difference:
    """The changes between two plans.

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
