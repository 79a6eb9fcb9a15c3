"""What a report says, before it is laid out: a row a step, totals, and what a run did."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.errors import InputError
from dpframework.plan.nodes import Step
from dpframework.privacy import PrivacyLoss, Relation, decimal_text, readable
from dpframework.queries.base import Norm
from dpframework.study import Results, StudyPlan


@final
@attrs.frozen
class StepRow:
    """One planned step, each fact as text.

    Attributes
    ----------
    path
        Its place in the plan.
    query
        What is asked.
    sensitivity
        The largest change under the plan's relation, with its norm.
    one_sided
        "yes", "no", or a dash where nothing is declared.
    source
        Where the sensitivity comes from.
    mechanism
        What releases it.
    loss
        Epsilon, or rho where there is no finite epsilon.
    expected
        The error that it is expected to have.
    """

    path: str
    query: str
    sensitivity: str
    one_sided: str
    source: str
    mechanism: str
    loss: str
    expected: str

    def to_dict(self) -> dict[str, str]:
        """Return a JSON-safe form."""
        return attrs.asdict(self)


NONE = "—"


def step_rows(plan: StudyPlan) -> list[StepRow]:
    """Return a row for each place of a step in the plan."""
    previews = plan.previews()
    return [
        _row(path, step, plan, previews[path].text if path in previews else NONE) for path, step in plan.placed_steps()
    ]


def _row(path: str, step: Step, plan: StudyPlan, expected: str) -> StepRow:
    facts = step.query.facts()
    declared = facts.sensitivity(step.mechanism.norm)
    return StepRow(
        path=path,
        query=facts.text,
        sensitivity=NONE if declared is None else _change(declared.change.under(plan.relation), declared.norm),
        one_sided=NONE if declared is None else "yes" if declared.one_sided else "no",
        source=NONE if declared is None else declared.source,
        mechanism=step.mechanism.name,
        loss=_step_loss(step, plan),
        expected=expected,
    )


def _change(change: Fraction | None, norm: Norm) -> str:
    if change is None:
        return "no claim"
    # L2 sensitivities are kept squared, so that they stay rational; a reader wants the root.
    size = decimal_text(change).removesuffix(".0") if norm is not Norm.L2 else f"{math.sqrt(change):.6g}"
    return f"{size} ({norm})"


def _step_loss(step: Step, plan: StudyPlan) -> str:
    calibration = plan.calibration(step)
    if calibration is None:
        return "no claim"
    epsilon = calibration.losses.pure.under(plan.relation)
    if epsilon is not None:
        return f"epsilon {readable(epsilon)}"
    rho = calibration.losses.concentrated.under(plan.relation)
    return "no claim" if rho is None else f"rho {readable(rho)}"


def loss_text(loss: PrivacyLoss | None) -> str:
    """Write a loss for a reader.

    Examples
    --------
    >>> loss_text(PrivacyLoss(epsilon="0.5", delta="1e-6"))
    'epsilon 0.5, delta 1e-06'
    """
    if loss is None or loss.epsilon is None:
        return "no finite epsilon"
    return f"epsilon {readable(loss.epsilon)}" + (f", delta {float(loss.delta):g}" if loss.delta else "")


def public_facts(plan: StudyPlan) -> list[tuple[str, str]]:
    """Return what heads a report: the relation, the budget, and the total under each accounting."""
    neighbours = {
        Relation.ADD_OR_REMOVE_ONE: "tables that differ by one row's presence",
        Relation.REPLACE_ONE: "tables of one public size that differ in one row",
    }[plan.relation]
    rows = [
        ("relation", f"{plan.relation} ({neighbours})"),
        ("budget", loss_text(PrivacyLoss(plan.budget.epsilon, delta=plan.budget.delta))),
    ]
    rows += [(f"total, {name} accounting", loss_text(loss)) for name, loss in plan.totals().items()]
    if not plan.totals():
        rows.append(("total", f"none is valid under {plan.relation}"))
    return [*rows, ("plan", plan.hash)]


def assumption_rows(plan: StudyPlan) -> list[tuple[str, str, str]]:
    """Return (name, who needs it, whether the study allows it) for each assumption."""
    return [
        (name, ", ".join(steps) or "the whole plan", "yes" if name in plan.budget.allow else "no")
        for name, steps in plan.assumptions.items()
    ]


@final
@attrs.frozen
class Ran:
    """What a run did, as it is kept in a results file.

    Attributes
    ----------
    private
        False for a seeded run or an inferred schema: the results must not be published.
    accounting
        The notion of loss that was charged.
    spent
        What the releases cost together.
    charges
        The path of each release, in order.
    texts
        Each miner's result as text.
    stopped
        Why the run stopped before its end; None if it did not.
    """

    private: bool
    accounting: str
    spent: str
    charges: tuple[str, ...]
    texts: Mapping[str, str]
    stopped: str | None = None

    @classmethod
    def of(cls, results: Results, *, stopped: str | None = None) -> Ran:
        """Return what a run did."""
        return cls(
            results.private,
            results.accounting,
            loss_text(results.spent),
            tuple(charge.path for charge in results.charges),
            {name: str(result) for name, result in results.items()},
            stopped,
        )

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Ran:
        """Read what `to_dict` wrote, among other keys.

        Raises
        ------
        InputError
            If a key lacks or has another type.
        """
        kinds = {"private": bool, "accounting": str, "spent_text": str, "charges": list, "texts": dict}
        for key, kind in kinds.items():
            if not isinstance(form.get(key), kind):
                raise InputError(f"these are not results that dpframework wrote: '{key}' lacks or has another type")
        charges, stopped = tuple(map(str, form["charges"])), form.get("stopped")
        reason = None if stopped is None else str(stopped)
        return cls(form["private"], form["accounting"], form["spent_text"], charges, form["texts"], reason)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "private": self.private,
            "accounting": self.accounting,
            "spent_text": self.spent,
            "charges": list(self.charges),
            "texts": dict(self.texts),
            **({} if self.stopped is None else {"stopped": self.stopped}),
        }

    def headlines(self, plan: StudyPlan) -> list[str]:
        """Return what a reader must know first: that the run stopped early, if it did, and the verdict."""
        stopped = [] if self.stopped is None else [f"STOPPED before its end: {self.stopped}"]
        return [*stopped, self.verdict(plan)]

    def verdict(self, plan: StudyPlan) -> str:
        """Return one sentence: may the results be published or not."""
        if plan.facts.inferred:
            return "NOT PRIVATE: the schema was inferred from private data, which no epsilon covers"
        if not self.private:
            return "NOT PRIVATE: this run was seeded, for experiments only; its results must not be published"
        return "private: drawn from the operating system's cryptographic generator"

    def made(self, plan: StudyPlan) -> dict[str, int]:
        """Return how often each planned step was released, by its path in the plan.

        A run numbers the parts that a template stands for ("parts 3/counts"); the plan writes it once
        ("parts/counts").
        """
        places = {row_path for row_path, _ in plan.placed_steps()}
        templates = {_unnumbered(path): path for path in reversed(list(places))}
        return Counter(path if path in places else templates.get(_unnumbered(path), path) for path in self.charges)


def _unnumbered(path: str) -> str:
    *scopes, step = path.split("/")
    return "/".join([*(re.sub(r" \d+$", "", scope) for scope in scopes), step])
