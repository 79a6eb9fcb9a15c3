"""Checks for noise that is so large that released numbers or choices say nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpframework.accountant import AccountedPlan
from dpframework.checks.base import Severity, unless_allowed
from dpframework.mechanisms.base import Calibration
from dpframework.plan.plan import Plan
from dpframework.results.error_bounds import BoundKind, ErrorBound, rows_text

#: The names under which a study may allow large noise.
NOISY_SELECTION, NOISY_RESULT = "noisy-selection", "noisy-result"


def noise_swamps_threshold(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find thresholds that are smaller than the noise of the numbers compared with them."""
    for path, step, calibration in plan.calibrated_steps():
        if step.threshold is None:
            continue
        within = calibration.preview.within
        if within > step.threshold:
            yield (
                Severity.WARNING,
                f"step '{path}' is compared with {float(step.threshold):.3g}, but its noise reaches ±{within:.3g} "
                f"(95 %); raise its epsilon or the threshold{_factor_text(within, float(step.threshold))}",
            )


def _factor_text(within: float, threshold: float) -> str:
    """Return the factor by which to raise epsilon or the threshold, as text; "" if no factor is known to be enough."""
    return f" {math.ceil(10 * within / threshold) / 10:g} times" if threshold > 0 and math.isfinite(within) else ""


def near_uniform(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find selections whose noise is larger than the number of rows."""
    rows = plan.size.largest
    if rows is None:
        return
    for path, calibration in _nearly_uniform(plan, rows):
        yield (
            Severity.WARNING,
            f"step '{path}' selects among {calibration.facts.answer_length} candidates with noise of about "
            f"{calibration.preview.expected:.3g} rows on a table of {_size_of(plan)}: the choice is nearly uniform; "
            "raise its epsilon or have fewer candidates",
        )


def _nearly_uniform(plan: Plan, rows: int) -> Iterator[tuple[str, Calibration]]:
    for path, step, calibration in plan.calibrated_steps():
        expected = calibration.preview.expected
        if step.mechanism.selects and calibration.facts.integer and math.isfinite(expected) and expected > rows:
            yield path, calibration


def _size_of(plan: Plan) -> str:
    size = plan.size
    return size.text if size.about is not None else f"at most {size.most} rows"


def noisy_selection(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find selections that may be worse than the best candidate by a quarter of the table."""
    rows = plan.size.largest
    if rows is None:
        return
    reported = {path for path, _ in _nearly_uniform(plan, rows)}  # the paths that `near_uniform` reports
    found = [
        (name, f"{bound.what}: {_error_of(bound)} on a table of {_size_of(plan)}")
        for name, bound in _bounds(plan)
        if bound.hides_choice and not reported.intersection(f"{name}/{path}" for path in bound.steps)
    ]
    yield from _of_equal_results(plan, NOISY_SELECTION, found, "raise its epsilon or have fewer candidates")


def noisy_result(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find results whose error bound is larger than the expected size of the result itself."""
    found = [
        (
            name,
            f"{bound.what}: {_error_of(bound)} on a table of {_size_of(plan)}, which is more than {bound.likely_text}",
        )
        for name, bound in _bounds(plan)
        if bound.hides_number
    ]
    yield from _of_equal_results(plan, NOISY_RESULT, found, "raise its epsilon, or ask for fewer or larger groups")


def _error_of(bound: ErrorBound) -> str:
    amount = rows_text(bound.amount) if bound.amount is not None and bound.unit == "rows" else f"{bound.amount:.3g}"
    unit = f" {bound.unit}" if bound.unit else ""
    if bound.kind is BoundKind.CHOICE:
        return f"the choice may be worse than the best by {amount}{unit}"
    whose = "each" if bound.kind is BoundKind.COUNTS else "it"
    return f"{whose} may be off by {amount}{unit}"


def _bounds(plan: AccountedPlan) -> Iterator[tuple[str, ErrorBound]]:
    for name, bounds in plan.error_bounds().items():
        for bound in bounds:
            yield name, bound


def _of_equal_results(
    plan: Plan, name: str, found: list[tuple[str, str]], remedy: str
) -> Iterator[tuple[Severity, str]]:
    """Yield one finding for all results with the same error, as a risk that the study may allow by `name`."""
    alike: dict[str, list[str]] = {}
    for result, what in found:
        alike.setdefault(what, []).append(result)
    for what, (first, *others) in alike.items():
        who = f"result '{first}'" + (f" and {len(others)} more" if others else "")
        yield unless_allowed(plan, name, f"{who}: {what}", remedy)
