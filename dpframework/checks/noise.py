"""Checks of noise: will what the budget buys be seen through it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpframework.checks.base import Severity
from dpframework.plan.plan import Plan


def noise_swamps_threshold(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find thresholds that are below the noise of what is compared with them."""
    for path, step, calibration in plan.calibrated_steps():
        if step.threshold is None:
            continue
        within = calibration.preview.within
        if within > step.threshold:
            yield (
                Severity.WARNING,
                f"step '{path}' is compared with {float(step.threshold):.3g}, but its noise reaches ±{within:.3g} "
                "(95 %); raise its epsilon or the threshold",
            )


def near_uniform(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find selections whose noise is larger than the table."""
    rows = plan.facts.row_bound
    if rows is None:
        return
    for path, step, calibration in plan.calibrated_steps():
        if not step.mechanism.selects or not calibration.facts.integer:
            continue
        expected = calibration.preview.expected
        if math.isfinite(expected) and expected > rows:
            yield (
                Severity.WARNING,
                f"step '{path}' selects among {calibration.facts.answer_length} candidates with noise of about "
                f"{expected:.3g} rows on a table of at most {rows}: the choice is nearly uniform; "
                "raise its epsilon or have fewer candidates",
            )
