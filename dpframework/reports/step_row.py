"""The steps of a plan for a report, as one row of texts for each step."""

from __future__ import annotations

from fractions import Fraction
from typing import final

import attrs

from dpframework.facts.privacy_losses import Relation, decimal_text
from dpframework.plan.claim_standing import standings
from dpframework.queries.base import Norm, Sensitivity
from dpframework.reports.plan_and_node_losses import cost_text, loss_of
from dpframework.study.study_plan_totals_and_findings import StudyPlan

#: The text of an empty cell.
NONE = "—"


@final
@attrs.frozen
class StepRow:
    """The facts of one planned step, as texts.

    Attributes
    ----------
    path
        The path of the step in the plan.
    query
        The query, in words.
    sensitivity
        The largest change of the answer under the plan's relation, with its norm.
    monotonic
        "yes" if an added row never lowers any number of the answer, or never raises any; otherwise "no". A dash where
        no sensitivity is declared.
    source
        The reason for the sensitivity.
    mechanism
        The mechanism that releases the answer.
    assumptions
        The assumptions that the claim needs beyond the mechanism's theorem; a dash for none.
    loss
        The epsilon of the step, or its rho if it has no finite epsilon.
    expected
        The expected error; a dash if it is unknown.
    standing
        Whether the sensitivity is proved, tested or declared, and by what.
    """

    path: str
    query: str
    sensitivity: str
    monotonic: str
    source: str
    mechanism: str
    assumptions: str
    loss: str
    expected: str
    standing: str

    @property
    def assumes(self) -> bool:
        """Whether the claim needs an assumption beyond the mechanism's theorem."""
        return self.assumptions != NONE

    def to_dict(self) -> dict[str, str]:
        """Return a JSON-safe form."""
        return attrs.asdict(self)


def step_rows(plan: StudyPlan) -> list[StepRow]:
    """Return the row of each step, in the order of `StudyPlan.placed_steps`."""
    return list(rows_of_steps(plan).values())


def rows_of_steps(plan: StudyPlan) -> dict[int, StepRow]:
    """Return the row of each step, by `id(step)`. A plan holds each step object at only one place."""
    previews = plan.previews()
    known = {one.path: one.text for one in standings(plan, plan.verified)}
    rows = {}
    for path, step in plan.placed_steps():
        facts = step.facts
        declared = facts.sensitivity(step.mechanism.norm)
        # In a spend block the miner chooses the loss of each release, up to the largest one.
        each = "" if plan.index.place(step).block is None else "at its largest, "
        expected = previews[path].text if path in previews else NONE
        rows[id(step)] = StepRow(
            path=path,
            query=facts.text,
            sensitivity=NONE if declared is None else _change(declared, plan.relation),
            monotonic=NONE if declared is None else "yes" if declared.monotonic else "no",
            source=NONE if declared is None else declared.source,
            mechanism=step.mechanism.name,
            assumptions=", ".join(dict.fromkeys((*step.mechanism.assumptions, *step.assumptions))) or NONE,
            loss=f"{each}{cost_text(loss_of(step, plan), none='no claim')}",
            expected=f"{each}{expected}" if expected != NONE else NONE,
            standing=known[path],
        )
    return rows


def _change(declared: Sensitivity, relation: Relation) -> str:
    change = declared.change.under(relation)
    if change is None:
        return "no claim"
    spread = declared.spread.under(relation) if declared.norm is Norm.LINF else None
    apart = "" if spread in (None, change, 2 * change) else f", spread {_amount_text(spread)}"
    return f"{_amount_text(change)} ({declared.norm}{apart})"


def _amount_text(amount: Fraction | None) -> str:
    return "" if amount is None else decimal_text(amount).removesuffix(".0")
