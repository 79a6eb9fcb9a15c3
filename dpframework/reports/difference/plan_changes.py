"""The changes from one plan to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpframework.accountant import AccountedPlan
from dpframework.checks import BUILT_IN, Check, findings
from dpframework.reports.difference import sentences, whole
from dpframework.reports.difference.alignment import aligned
from dpframework.reports.difference.base import Change, Difference, Topic


def difference(before: AccountedPlan, after: AccountedPlan, checks: Iterable[Check] = BUILT_IN) -> Difference:
    """Return the changes from one plan to another.

    Parameters
    ----------
    before, after
        The plans.
    checks
        Whose findings are compared; by default the built-in ones.

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
    findings: gone: DP012 info: epsilon 0.5 of the budget is not planned; larger epsilons would give better results
    findings: new: DP012 info: epsilon 0.25 of the budget is not planned; larger epsilons would give better results
    steps: 'ill/counts': epsilon from 0.5 to 0.75
    """
    checks = tuple(checks)
    tree = aligned(before, after)
    found = findings(before, checks), findings(after, checks)
    changes = (
        *_of(Topic.TOTAL, whole.total_changes(before, after)),
        *_of(Topic.FINDINGS, whole.finding_changes(*found)),
        *_of(Topic.BUDGET, whole.budget_changes(before, after)),
        *_of(Topic.RELATION, whole.relation_changes(before, after)),
        *_of(Topic.UNIT, whole.unit_changes(before, after)),
        *_of(Topic.PLACES, whole.place_changes(before, after)),
        *_of(Topic.SCHEMA, whole.schema_changes(before, after)),
        *_of(Topic.MINERS, whole.miner_changes(before, after)),
        *_of(Topic.CODE, whole.code_changes(before, after)),
        *_of(Topic.ASSUMPTIONS, whole.assumption_changes(before, after)),
        *_of(Topic.COMPOSITION, sentences.composition_changes(tree)),
        *_of(Topic.STEPS, sentences.step_changes(tree)),
    )
    headlines = (whole.total_headline(before, after), whole.checks_headline(*found))
    return Difference(before, after, headlines, changes, tree)


def _of(topic: Topic, texts: Iterable[str]) -> Iterator[Change]:
    return (Change(topic, text) for text in texts)
