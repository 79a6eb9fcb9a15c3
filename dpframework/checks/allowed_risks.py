"""The risks and statements that a study may accept by name, in addition to assumptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.checks import weak_protection_checks
from dpframework.checks.base import Severity
from dpframework.checks.claim_and_assumption_checks import KNOWN_ASSUMPTIONS
from dpframework.checks.large_noise_checks import NOISY_RESULT, NOISY_SELECTION
from dpframework.facts.errors import nearest
from dpframework.results.error_bounds import ErrorBound


@final
@attrs.frozen
class Allowance:
    """A name that a study may `allow`, with the risk that it accepts.

    Attributes
    ----------
    what
        What the study accepts, a risk or a statement of the owner, in a few sentences.
    code
        The code of the check that reports the risk if the study does not allow it.
    needed
        The function that tells whether a plan needs the allowance.
    """

    what: str
    code: str
    needed: Callable[[AccountedPlan], bool]


def _has_bound(of: Callable[[ErrorBound], bool]) -> Callable[[AccountedPlan], bool]:
    return lambda plan: any(of(bound) for bounds in plan.error_bounds().values() for bound in bounds)


def _finds(examine: Callable[[Any], Iterator[tuple[Severity, str]]]) -> Callable[[AccountedPlan], bool]:
    return lambda plan: any(True for _ in examine(plan))


#: What a study may allow besides assumptions, by name.
ALLOWANCES: Mapping[str, Allowance] = MappingProxyType(
    {
        NOISY_SELECTION: Allowance(
            "A selection may be worse than the best candidate by a quarter of the table or more. This does not weaken "
            "privacy, and may be good enough if many choices are made.",
            "DP024",
            _has_bound(lambda bound: bound.hides_choice),
        ),
        NOISY_RESULT: Allowance(
            "A result's error may be larger than the expected result itself. This does not weaken privacy, "
            "and may be good enough if only large groups are read.",
            "DP025",
            _has_bound(lambda bound: bound.hides_number),
        ),
        weak_protection_checks.LARGE_EPSILON: Allowance(
            "The total epsilon may be above 1, or even above 10. The claim still holds, but promises less.",
            "DP026",
            _finds(weak_protection_checks.large_epsilon),
        ),
        weak_protection_checks.LARGE_DELTA: Allowance(
            "The delta may be above 1e-5, or so large that publishing a random row would satisfy the claim.",
            "DP011",
            _finds(weak_protection_checks.large_delta),
        ),
        weak_protection_checks.ONE_ROW_PER_PERSON: Allowance(
            "The owner states that nobody has a second row in the table, so that protecting one row protects a person.",
            "DP027",
            _finds(weak_protection_checks.one_row_each),
        ),
        weak_protection_checks.SMALL_GROUPS: Allowance(
            "Several results may count groups of a few rows. Each person is protected as the plan says. But facts "
            "that hold for all people in a small group may become known.",
            "DP028",
            _finds(weak_protection_checks.small_groups),
        ),
        weak_protection_checks.WEAK_UNIT: Allowance(
            "The privacy unit may be weaker than the names of id columns suggest. The names may mislead, or the owner "
            "may want to protect just this unit.",
            "DP029",
            _finds(weak_protection_checks.weak_unit),
        ),
    }
)


def unknown_allowance(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Warn of names in a study's `allow` that nothing in the plan needs, and refuse unknown names."""
    for name in plan.budget.allow:
        if name in plan.assumptions:
            continue
        if name in ALLOWANCES:
            if not ALLOWANCES[name].needed(plan):
                noisy = name in (NOISY_SELECTION, NOISY_RESULT)
                why = "no known error is that large" if noisy else "nothing in the plan needs it"
                yield Severity.WARNING, f"the study allows '{name}', and {why}"
            continue
        known = KNOWN_ASSUMPTIONS | plan.assumptions.keys() | ALLOWANCES.keys()
        if name in known:
            yield Severity.WARNING, f"the study allows '{name}', but nothing in the plan assumes it"
        else:
            told = f"the study allows '{name}', which is no known assumption or risk; {nearest(name, known)}"
            yield Severity.ERROR, told
