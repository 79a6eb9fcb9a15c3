"""The checks of what a file of verification records says about a plan's code, if such a file is given."""

from __future__ import annotations

from collections.abc import Iterator

from dpframework.accountant import AccountedPlan
from dpframework.checks.base import Severity
from dpframework.facts.phrases import first_names

MOST_NAMED = 5  # the most steps that a finding names


def unproved_claims(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find steps whose claims are neither proved nor tested, according to the verification records."""
    if plan.verified is None:
        return
    from dpframework.plan.claim_standing import Standing, standings

    found = [f"'{one.path}'" for one in standings(plan, plan.verified) if one.standing is Standing.DECLARED]
    if found:
        claims, rest = ("claim of step", "is") if len(found) == 1 else ("claims of steps", "are")
        named = first_names(found, MOST_NAMED)
        yield (
            Severity.WARNING,
            f"the {claims} {named} {rest} neither proved nor tested according to the given records",
        )


def verified_code(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Report, for each miner and mechanism, whether its present code was verified."""
    if plan.verified is None:
        return
    from dpframework.plan.verification_records_file import code_verdicts

    for one in code_verdicts(plan, plan.verified):
        failed = one.record is not None and not one.passed
        yield Severity.ERROR if failed else Severity.INFO if one.passed else Severity.WARNING, str(one)
