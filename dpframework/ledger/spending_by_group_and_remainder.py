"""Reports on a data set: what was spent per person, month or attribute, and what the rest of the cap allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.accountant import AdaptiveBudget, PlanCharge
from dpframework.facts import UnitChange
from dpframework.facts.choice_enum import Choice
from dpframework.facts.errors import PlanRefused
from dpframework.facts.phrases import count_text
from dpframework.facts.privacy_losses import readable
from dpframework.ledger.data_sets import DataSet
from dpframework.ledger.recorded_run import RecordedRun
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Step
from dpframework.queries import Count
from dpframework.results.error_bounds import rows_text

NOBODY, UNKNOWN, ANY, NONE = "nobody said", "not recorded", "any attribute", "no attribute"
MOST_RUNS = 1000  # at most this many further runs are counted for one plan


class GroupBy(Choice, what="group by"):
    """The ways to group the runs of a data set: by the person who ran them, by month, or by attribute."""

    PERSON = "person"
    MONTH = "month"
    ATTRIBUTE = "attribute"


@final
@attrs.frozen
class GroupOfRuns:
    """The runs of a data set by one person, in one month, or on one attribute.

    Attributes
    ----------
    name
        The person, the month, or the attribute.
    runs
        The number of runs.
    results
        The names of the runs' results.
    purposes
        The purposes that people stated.
    people
        The people who made the runs.
    epsilon
        The total loss of these runs, composed as for the cap. For an attribute there is a second bound: the sum of the
        pure epsilons of the results that may read the attribute. The smaller bound is given. None if there is no finite
        total.
    """

    name: str
    runs: int
    results: tuple[str, ...]
    purposes: tuple[str, ...]
    people: tuple[str, ...]
    epsilon: Fraction | None

    @property
    def charged(self) -> str:
        """The epsilon as text."""
        return "no finite total" if self.epsilon is None else readable(self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {**attrs.asdict(self), "epsilon": None if self.epsilon is None else str(self.epsilon)}


def group_runs(data_set: DataSet, by: GroupBy) -> list[GroupOfRuns]:
    """Return the groups of a data set's runs: months in order of time, other groups with the most expensive first."""
    if by is GroupBy.ATTRIBUTE:
        return _by_attribute(data_set)
    name: Callable[[RecordedRun], str] = {
        GroupBy.PERSON: lambda run: run.subject.by or NOBODY,
        GroupBy.MONTH: lambda run: run.time[:7],
    }[by]
    groups: dict[str, list[RecordedRun]] = {}
    for run in data_set.runs.values():
        groups.setdefault(name(run), []).append(run)
    made = [
        _group(key, runs, [result for run in runs for result in run.subject.result_names], _cost(data_set, runs))
        for key, runs in groups.items()
    ]
    return sorted(made, key=lambda one: one.name) if by is GroupBy.MONTH else _most_expensive_first(made)


def _by_attribute(data_set: DataSet) -> list[GroupOfRuns]:
    groups: dict[str, list[tuple[RecordedRun, str, Fraction | None]]] = {}
    for run in data_set.runs.values():
        refused = run.amount.pure.under(data_set.relation) == 0
        if run.subject.results is None:
            groups.setdefault(UNKNOWN, []).append((run, "", None))
        for result in run.subject.results or ():
            for name in (ANY,) if result.attributes is None else result.attributes or (NONE,):
                groups.setdefault(name, []).append((run, result.name, Fraction(0) if refused else result.epsilon))
    found = []
    for name, some in groups.items():
        runs = list({run.id: run for run, _, _ in some}.values())
        pure = [epsilon for _, _, epsilon in some if epsilon is not None]
        # Two numbers bound the cost: the total of all these runs, and the sum of the pure epsilons of the results that
        # may read the attribute.
        costs = [_cost(data_set, runs), sum(pure, Fraction(0)) if len(pure) == len(some) else None]
        least = min((cost for cost in costs if cost is not None), default=None)
        found.append(_group(name, runs, [result for _, result, _ in some if result], least))
    return _most_expensive_first(found)


def _cost(data_set: DataSet, runs: Iterable[RecordedRun]) -> Fraction | None:
    """Return the epsilon that some runs cost together, as if there were no other runs.

    Any runs can be composed, since all charges in Renyi divergence have the same order.
    """
    budget = AdaptiveBudget(data_set.relation, data_set.epsilon, data_set.delta, reserve=data_set.reserve)
    for run in runs:
        # A refused run was charged nothing, and its charge has no order.
        if run.amount.under(data_set.relation) != 0:
            budget = budget.after(run.amount)
    loss = budget.loss()
    return None if loss is None else loss.epsilon


def _group(name: str, runs: Sequence[RecordedRun], results: Iterable[str], epsilon: Fraction | None) -> GroupOfRuns:
    return GroupOfRuns(
        name,
        len(runs),
        tuple(dict.fromkeys(results)),
        tuple(dict.fromkeys(run.subject.purpose for run in runs if run.subject.purpose)),
        tuple(dict.fromkeys(run.subject.by or NOBODY for run in runs)),
        epsilon,
    )


def _most_expensive_first(groups: Iterable[GroupOfRuns]) -> list[GroupOfRuns]:
    return sorted(groups, key=lambda one: (one.epsilon is not None, -(one.epsilon or 0), one.name))


def remainder(data_set: DataSet) -> list[str]:
    """Return lines on what the rest of a cap allows: one count with its error, or further runs of earlier plans."""
    left = data_set.left
    if not left:
        return ["nothing is left: no plan fits any more"]
    period = data_set.unit.period
    # No run may cost more in one period than the period's own cap.
    step = Step("count", Count(), DiscreteLaplace(left if period is None else min(left, data_set.epsilon)))
    change = UnitChange(data_set.unit.rows, resizes=not data_set.unit.is_row)
    calibration = step.mechanism.calibrate(step.facts, data_set.relation, by=change)
    lines = []
    if calibration is not None:
        within = f"within ±{rows_text(calibration.preview.within)} (95 %), and nothing after it"
        lines.append(
            f"one count of rows {within}"
            if period is None
            else f"one count of the rows of a new {period} {within} in that period"
        )
    last = {run.plan: run for run in data_set.runs.values() if run.amount.under(data_set.relation)}
    for plan, run in last.items():
        study = f"'{run.subject.study}' (plan {plan[:12]})" if run.subject.study else f"plan {plan[:12]}"
        number = _runs_left(data_set, run.amount)
        if number is None:
            lines.append(f"an unknown number of further runs of {study}, which would be charged at another Renyi order")
            continue
        more = "no further run" if not number else count_text(number, "further run")
        lines.append(f"{'at least ' if number == MOST_RUNS else ''}{more} of {study}")
    return lines


def _runs_left(data_set: DataSet, amount: PlanCharge) -> int | None:
    budget, number = data_set.budget, 0
    if budget.order is not None and amount.order is None:
        # The plan was charged before the order was fixed. A new run would be charged at the fixed order. How
        # much that is can be computed from the plan, but not from `amount`.
        return None
    while number < MOST_RUNS:
        try:
            budget = budget.after(amount)
        except PlanRefused:  # too little delta is left for the plan's releases
            break
        if not data_set.holds(budget):
            break
        number += 1
    return number
