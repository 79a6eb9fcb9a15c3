"""The list of built-in checks, and the function that collects the findings of checks about a plan."""

from __future__ import annotations

from collections.abc import Iterable

from dpframework.accountant import AccountedPlan
from dpframework.checks import (
    allowed_risks,
    budget_total_checks,
    claim_and_assumption_checks,
    large_noise_checks,
    plan_structure_checks,
    unverified_code_checks,
    weak_protection_checks,
)
from dpframework.checks.base import Check, Finding, Severity

#: The built-in checks.
BUILT_IN: tuple[Check, ...] = (
    Check("DP001", "over budget", budget_total_checks.over_budget),
    Check("DP002", "relation not supported", claim_and_assumption_checks.relation_not_supported),
    Check("DP003", "parallel parts not disjoint", plan_structure_checks.parts_not_disjoint),
    Check("DP004", "undeclared sensitivity", claim_and_assumption_checks.undeclared_sensitivity),
    Check("DP005", "assumption not allowed", claim_and_assumption_checks.assumption_not_allowed),
    Check("DP006", "schema inferred from data", claim_and_assumption_checks.schema_inferred),
    Check("DP007", "noise that swamps a threshold", large_noise_checks.noise_swamps_threshold),
    Check("DP008", "a step nobody uses", plan_structure_checks.unused_step),
    Check("DP009", "duplicate names", plan_structure_checks.duplicate_names),
    Check("DP010", "no finite total", budget_total_checks.no_finite_total),
    Check("DP011", "delta too large", weak_protection_checks.large_delta),
    Check("DP012", "budget left over", budget_total_checks.left_over),
    Check("DP013", "nothing released", plan_structure_checks.nothing_released),
    Check("DP014", "mechanism does not fit the query", claim_and_assumption_checks.mechanism_does_not_fit),
    Check("DP015", "allowance that nothing needs", allowed_risks.unknown_allowance),
    Check("DP016", "unknown use", plan_structure_checks.unknown_use),
    Check("DP017", "selection near uniform", large_noise_checks.near_uniform),
    Check("DP018", "row count public under add-or-remove-one", claim_and_assumption_checks.row_count_public),
    Check("DP019", "one name of two queries", plan_structure_checks.one_name_of_two_queries),
    Check("DP020", "accountant that fails", budget_total_checks.accountant_fails),
    Check("DP021", "assertion about the rows", claim_and_assumption_checks.asserted_rows),
    Check("DP022", "what was verified", unverified_code_checks.verified_code),
    Check("DP023", "sample without a claim", claim_and_assumption_checks.sample_without_claim),
    Check("DP024", "selection noisier than a quarter of the table", large_noise_checks.noisy_selection),
    Check("DP025", "error larger than the result", large_noise_checks.noisy_result),
    Check("DP026", "large epsilon", weak_protection_checks.large_epsilon),
    Check("DP027", "one row per person", weak_protection_checks.one_row_each),
    Check("DP028", "several results about small groups", weak_protection_checks.small_groups),
    Check("DP029", "unit weaker than the ids suggest", weak_protection_checks.weak_unit),
    Check("DP030", "claim neither proved nor tested", unverified_code_checks.unproved_claims),
    Check("DP031", "unit of one period", weak_protection_checks.one_period),
)


def findings(plan: AccountedPlan, checks: Iterable[Check] = BUILT_IN) -> list[Finding]:
    """Return the findings of all checks about a plan, without duplicates, sorted by severity and code."""
    found = dict.fromkeys(finding for check in checks for finding in check.findings(plan))
    order = list(Severity)  # errors first
    return sorted(found, key=lambda finding: (order.index(finding.severity), finding.code))
