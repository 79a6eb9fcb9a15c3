"""The class of a study's plan, with totals, findings and error bounds for the auditor."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.accountant import Accountant, AccountedPlan
from dpframework.checks import Finding, Severity, findings
from dpframework.checks.base import Findings
from dpframework.facts.errors import DPFrameworkError, InputError, PlanRefused, first_line
from dpframework.facts.notebook_html import html_budget, html_table
from dpframework.facts.privacy_losses import readable
from dpframework.facts.value_checks import check_counts
from dpframework.mechanisms.base import Mechanism, Preview
from dpframework.plan.error_bounds_by_result import planned_parts, previews
from dpframework.plan.networkx_export import plan_graph
from dpframework.results.error_bounds import ErrorBound
from dpframework.results.result import Drawable
from dpframework.run.miner_base_and_examples import Miner
from dpframework.study.miner_from_parameters import build_miner
from dpframework.study.notebook_views import cost_bars
from dpframework.study.plugin_registry import registry

if TYPE_CHECKING:
    from dpframework.plan.run_costs import RunCost
    from dpframework.plan.verification_records_file import VerificationRecords


@final
@attrs.frozen(eq=False)
class StudyPlan(AccountedPlan, Drawable):
    """The plan of a study, with totals, findings and error bounds. `dpframework.reports` makes reports of it.

    `plot` draws the loss of each release, with the total and the budget in the title.

    Attributes
    ----------
    makers
        The miners of the plan's parts, by name. They compute error bounds, and do not affect the plan's claims.

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

    makers: Mapping[str, Miner] = attrs.field(factory=dict, kw_only=True, repr=False)

    def error_bounds(self) -> Mapping[str, tuple[ErrorBound, ...]]:
        """Return the error bounds that each miner states for its result, by the result's name.

        If the plan has no schema, or the miner is not installed, the bounds are on the errors of the result's steps.
        """
        return self._bounds_and_costs[0]

    def run_costs(self) -> Mapping[str, RunCost]:
        """Return bounds on the time and memory of each result, by its name, for miners that state them.

        If the plan has no schema, or the miner is not installed, there are no bounds.
        """
        return self._bounds_and_costs[1]

    @functools.cached_property
    def _bounds_and_costs(self) -> tuple[Mapping[str, tuple[ErrorBound, ...]], Mapping[str, RunCost]]:
        """The error bounds, and the bounds on time and memory, of all parts."""
        bounds, costs = {}, {}
        for part in planned_parts(self):
            miner = None if self.schema is None else self.makers.get(part.name) or self._rebuild_miner(part.name)
            if miner is None:
                bounds[part.name] = tuple(part.bounds_of_steps())
                continue
            try:
                bounds[part.name], cost = tuple(miner.error_bounds(part)), miner.run_cost(part)
            except DPFrameworkError:
                raise
            except Exception as error:  # else a check that reads these bounds would be blamed
                what = f"{type(error).__name__}: {first_line(error)}"
                raise InputError(
                    f"result '{part.name}': miner '{miner.name}' fails to state its error bounds or costs ({what})"
                ) from error
            if cost is not None:
                costs[part.name] = cost
        return MappingProxyType(bounds), MappingProxyType(costs)

    def _rebuild_miner(self, name: str) -> Miner | None:
        """Return the miner of a part, rebuilt from the parameters in the plan; None if it cannot be rebuilt."""
        written = self.miners.get(name, {})
        kind = registry().kind(written.get("miner", ""))
        if kind is None:
            return None
        try:
            return build_miner(
                kind, {alias: value for alias, value in written["parameters"].items() if value is not None}
            )
        except InputError:
            return None

    def with_rows(self, rows: int | None) -> StudyPlan:
        """Return the same plan for about `rows` rows. This changes error bounds, and does not change claims.

        Raises
        ------
        InputError
            If `rows` is below 1, or more than a table may have.
        """
        if rows is None:
            return self
        check_counts(rows, None, None)
        return attrs.evolve(self, about_rows=rows)

    @property
    def accountants(self) -> tuple[type[Accountant[Any]], ...]:
        """The installed accountants that may total the plan."""
        return registry().accountants_at(self.budget.delta)

    def check(self) -> list[Finding]:
        """Return the findings of the installed checks, errors first. They are computed once."""
        return Findings(self._findings)

    @functools.cached_property
    def _findings(self) -> tuple[Finding, ...]:
        return tuple(findings(self, registry().checks))

    def __str__(self) -> str:
        """Write a line for each step, and then the total. `dpframework.reports.tree` draws the steps as a tree."""
        steps = [f"{path}: {text}, {mechanism}  [{cost}]" for path, text, mechanism, cost, _ in self._step_rows()]
        return "\n".join([*steps, self._total_text])

    @property
    def _total_text(self) -> str:
        total = self.smallest_total()
        cost = "no valid total" if total is None else f"total {total.text}"
        return f"{cost} of {readable(self.budget.epsilon)} under {self.relation}, protecting {self.unit}"

    def _step_rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return the path, the query, the mechanism, the loss and the expected error of each step, in words."""
        rows = []
        for path, step in self.placed_steps():
            found = self.calibration(step)
            loss = None if found is None else found.losses.pure.under(self.relation)
            rho = None if found is None else found.losses.zcdp.under(self.relation)
            other = "no claim" if rho is None else f"rho {readable(rho)}"
            cost = other if loss is None else f"epsilon {readable(loss)}"
            exact = None if found is None else found.losses.delta.under(self.relation)
            cost += f", delta {readable(exact)}" if exact else ""
            error = "" if found is None else found.preview.text
            rows.append((path, step.facts.text, step.mechanism.name, cost, error))
        return rows

    def _repr_html_(self) -> str:
        """Return HTML with the steps, the total, the error bounds and the findings, for a notebook."""
        steps = html_budget(self.smallest_epsilon(), self.budget.epsilon, self._total_text)
        steps += html_table(("step", "query", "mechanism", "loss", "expected error"), self._step_rows())
        errors = [
            (name, bound.what, bound.text, bound.warning)
            for name, bounds in self.error_bounds().items()
            for bound in bounds
        ]
        steps += html_table(("result", "number", "error of 95 % of releases", ""), errors)
        return steps + Findings(self._findings)._repr_html_()

    def _plot(self, ax: Any | None) -> Any:
        releases = ((path, calibration) for path, _, calibration in self.calibrated_steps())
        total = self.smallest_epsilon()
        planned = "no valid total" if total is None else f"epsilon {readable(total)} planned"
        return cost_bars(releases, self.relation, f"{planned} of {readable(self.budget.epsilon)}", ax)

    def refusals(self) -> list[Finding]:
        """Return the findings of severity `error`, which refuse the plan."""
        return [finding for finding in self.check() if finding.severity is Severity.ERROR]

    def require_checks(self) -> None:
        """Raise an error if a check refuses the plan.

        Raises
        ------
        PlanRefused
            If there is a finding of severity `error`.
        """
        if refused := self.refusals():
            raise PlanRefused("; ".join(str(finding) for finding in refused))

    def previews(self) -> dict[str, Preview]:
        """Return the predicted error of each step, by its path."""
        return previews(self)

    def graph(self) -> Any:
        """Return the plan as a `networkx.DiGraph` (see `plan.networkx_export.plan_graph`)."""
        return plan_graph(self)

    def with_verified(self, verified: VerificationRecords) -> StudyPlan:
        """Return the same plan with verification records, for checks and ledgers."""
        return attrs.evolve(self, verified=verified)

    @classmethod
    def from_json(cls, text: str, *, source: str = "plan", mechanisms: Iterable[type[Mechanism]] = ()) -> StudyPlan:
        """Read a plan that `to_json` wrote (see `plan_from_json`).

        `mechanisms` are known in addition to installed ones.
        """
        from dpframework.plan.plan_reader import plan_from_json  # imported here, since it loads every mechanism

        installed = [brought.component for brought in registry().mechanisms.values()]
        return plan_from_json(text, [*installed, *mechanisms], source=source, kind=cls)
