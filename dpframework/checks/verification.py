"""The check of verification records, if a file of them is given."""

from __future__ import annotations

from collections.abc import Iterator

from dpframework.accountant import AccountedPlan
from dpframework.checks.base import Severity


def verified_code(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Say of each miner and mechanism whether this very code was verified."""
    if plan.verified is None:
        return
    from dpframework.plan.verification_records import judged

    for one in judged(plan, plan.verified):
        failed = one.record is not None and not one.passed
        yield Severity.ERROR if failed else Severity.INFO if one.passed else Severity.WARNING, str(one)
