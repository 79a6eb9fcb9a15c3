"""The checks that are always there, and what checks find in a plan."""

from __future__ import annotations

from collections.abc import Iterable

from dpframework.accountant import AccountedPlan
from dpframework.checks import budget, claims, noise, structure
from dpframework.checks.base import Check, Finding, Severity

#: The checks that are always there.
BUILT_IN: tuple[Check, ...] = (
    budget.OVER_BUDGET,
    claims.RELATION_NOT_SUPPORTED,
    structure.PARTS_NOT_DISJOINT,
    claims.UNDECLARED_SENSITIVITY,
    claims.ASSUMPTION_NOT_ALLOWED,
    claims.SCHEMA_INFERRED,
    noise.NOISE_SWAMPS_THRESHOLD,
    structure.UNUSED_STEP,
    structure.DUPLICATE_NAMES,
    budget.NO_FINITE_TOTAL,
    budget.DELTA_TOO_LARGE,
    budget.LEFT_OVER,
    budget.NOTHING_RELEASED,
    claims.MECHANISM_DOES_NOT_FIT,
    claims.UNKNOWN_ALLOWANCE,
    structure.UNKNOWN_USE,
    noise.NEAR_UNIFORM,
    claims.ROW_COUNT_PUBLIC,
    structure.ONE_NAME_OF_TWO_QUERIES,
    budget.ACCOUNTANT_FAILS,
)

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def findings(plan: AccountedPlan, checks: Iterable[Check] = BUILT_IN) -> list[Finding]:
    """Return what all checks find in a plan, errors first, each finding once."""
    found = dict.fromkeys(finding for check in checks for finding in check.findings(plan))
    return sorted(found, key=lambda finding: (_ORDER.index(finding.severity), finding.code))
