"""A study's plan, with what an auditor asks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.accountant import Accountant, AccountedPlan
from dpframework.checks import Finding, Severity, findings
from dpframework.facts.privacy import readable
from dpframework.facts.shown import html_table
from dpframework.mechanisms.base import Preview
from dpframework.plan.graph import plan_graph
from dpframework.plan.preview import previews
from dpframework.plan.reading import plan_from_json
from dpframework.study.registry import registry

if TYPE_CHECKING:
    from dpframework.plan.verified import Verified


@final
@attrs.frozen(eq=False)
class StudyPlan(AccountedPlan):
    """A plan with what an auditor asks of it: totals, findings, previews. `dpframework.reports` draws it.

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Boolean("ill")])
    >>> study = dpf.Study(schema, epsilon=1)
    >>> half = dpf.mechanisms.DiscreteLaplace("0.5")
    >>> study.add_plan("ill", dpf.step("count", dpf.queries.Histogram(schema["ill"]), half))
    >>> print(study.plan().total())
    PrivacyLoss(epsilon=0.5)
    """

    @property
    def accountants(self) -> tuple[type[Accountant[Any]], ...]:
        """The installed accountants, which total it."""
        return registry().accountant_kinds

    def check(self) -> list[Finding]:
        """Return what the installed checks find, errors first."""
        return findings(self, registry().checks)

    def _repr_html_(self) -> str:
        """Return the steps with their losses and expected errors, the total, and the findings, for a notebook."""
        rows = []
        for path, step in self.placed_steps():
            found = self.calibration(step)
            loss = None if found is None else found.losses.pure.under(self.relation)
            rho = None if found is None else found.losses.zcdp.under(self.relation)
            other = "no claim" if rho is None else f"rho {readable(rho)}"
            cost = other if loss is None else f"epsilon {readable(loss)}"
            error = "" if found is None else found.preview.text
            rows.append((path, step.query.facts().text, step.mechanism.name, cost, error))
        total = next((loss.epsilon for loss in self.totals().values()), None)
        cost = "no valid total" if total is None else f"total epsilon {readable(total)}"
        caption = f"{cost} of {readable(self.budget.epsilon)} under {self.relation}, protecting {self.unit}"
        steps = html_table(("step", "query", "mechanism", "loss", "expected error"), rows, caption)
        return steps + "".join(finding._repr_html_() for finding in self.check())

    def refusals(self) -> list[Finding]:
        """Return the findings that refuse the plan."""
        return [finding for finding in self.check() if finding.severity is Severity.ERROR]

    def previews(self) -> dict[str, Preview]:
        """Return the predicted error of each step, by its path."""
        return previews(self)

    def graph(self) -> Any:
        """Return the plan as a `networkx.DiGraph` (see `plan.graph.plan_graph`)."""
        return plan_graph(self)

    def with_verified(self, verified: Verified) -> StudyPlan:
        """Return the same plan, of which checks and ledgers can tell what was verified."""
        return attrs.evolve(self, verified=verified)

    @classmethod
    def from_json(cls, text: str, *, source: str = "plan") -> StudyPlan:
        """Read a plan that `to_json` wrote (see `plan_from_json`)."""
        mechanisms = [brought.component for brought in registry().mechanisms.values()]
        return plan_from_json(text, mechanisms, source=source, kind=cls)
