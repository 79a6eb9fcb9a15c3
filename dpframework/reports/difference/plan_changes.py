"""The changes from one plan to another, in words, with the merged tree of their nodes."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.checks import BUILT_IN, Check, findings
from dpframework.plan.code_digests import changes as changes_of_code
from dpframework.reports.difference import node_change_sentences, whole_plan_changes
from dpframework.reports.difference.alignment import align_plans
from dpframework.reports.difference.merged_plan_node import MergedNode


class Topic(enum.StrEnum):
    """The topics of changes, in the order in which a report lists them."""

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
class PlanChange:
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
        The two sentences that an auditor needs first, even if nothing changed: how the total changes, and whether the
        checks refuse either plan.
    changes
        The changes, one sentence each, by topic. Empty if the plans are equal.
    root
        The top node of the merged tree.
    """

    before: AccountedPlan
    after: AccountedPlan
    headlines: tuple[str, ...]
    changes: tuple[PlanChange, ...]
    root: MergedNode

    def nodes(self) -> Iterator[MergedNode]:
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


def difference(before: AccountedPlan, after: AccountedPlan, checks: Iterable[Check] = BUILT_IN) -> Difference:
    """Return the changes from one plan to another.

    Parameters
    ----------
    before, after
        The plans.
    checks
        The checks whose findings are compared; by default the built-in ones.

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Boolean("ill")])
    >>> def plan(epsilon):
    ...     study = dpf.Study(schema, epsilon=1)
    ...     ill = dpf.queries.Histogram(schema["ill"])
    ...     study.add_plan("ill", dpf.step("counts", ill, dpf.mechanisms.DiscreteLaplace(epsilon)))
    ...     return study.plan()
    >>> for change in difference(plan("0.5"), plan("0.75")).changes:
    ...     print(change)
    total: epsilon from 0.5 to 0.75 in pure accounting
    findings: gone: DP012 info: epsilon 0.5 of the budget is not planned; lower the study's epsilon, or keep the rest
    findings: new: DP012 info: epsilon 0.25 of the budget is not planned; lower the study's epsilon, or keep the rest
    steps: 'ill/counts': epsilon from 0.5 to 0.75
    """
    checks = tuple(checks)
    tree = align_plans(before, after)
    found = findings(before, checks), findings(after, checks)
    texts = {
        Topic.TOTAL: whole_plan_changes.total_changes(before, after),
        Topic.FINDINGS: whole_plan_changes.finding_changes(*found),
        Topic.BUDGET: whole_plan_changes.budget_changes(before, after),
        Topic.RELATION: whole_plan_changes.relation_changes(before, after),
        Topic.UNIT: whole_plan_changes.unit_changes(before, after),
        Topic.PLACES: whole_plan_changes.place_changes(before, after),
        Topic.SCHEMA: whole_plan_changes.schema_changes(before, after),
        Topic.MINERS: whole_plan_changes.miner_changes(before, after),
        Topic.CODE: changes_of_code(before.code, after.code) if before.code and after.code else (),
        Topic.ASSUMPTIONS: whole_plan_changes.assumption_changes(before, after),
        Topic.COMPOSITION: node_change_sentences.composition_changes(tree),
        Topic.STEPS: node_change_sentences.step_changes(tree),
    }
    changes = tuple(PlanChange(topic, text) for topic, some in texts.items() for text in some)
    headlines = (whole_plan_changes.total_headline(before, after), whole_plan_changes.checks_headline(*found))
    return Difference(before, after, headlines, changes, tree)
