"""The summary of a run, for a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import final

import attrs

from dpframework.reports.plan_and_node_losses import loss_text
from dpframework.reports.report_headlines import About
from dpframework.results.matrix import Matrix
from dpframework.study.plan_steps_of_releases import path_finder
from dpframework.study.results import Results
from dpframework.study.study_plan_totals_and_findings import StudyPlan


@final
@attrs.frozen
class RunSummary:
    """The facts of a run that a report shows.

    Attributes
    ----------
    private
        Whether the results may be published. False for a seeded run or an inferred schema.
    accounting
        The name of the accounting that the releases were charged under.
    spent
        The cost of all releases together, in words.
    charges
        The path of each release, in the order of the run.
    texts
        The text of each result, by the name of the result.
    stopped
        Why the run stopped before its end; None if it reached its end.
    epsilon
        The exact epsilon that was spent; None if it is not finite.
    run
        The run's id in a ledger; None if it was not recorded in one.
    head
        The hash of the ledger's last entry about the run; None if the run was not recorded.
    matrices
        The matrices of each result that has any, by the name of the result.
    period
        The period whose rows were read; None for a study without periods.
    samplers
        The name of the library that drew noise and choices; None if the run was seeded, or its results do not say.
    """

    private: bool
    accounting: str
    spent: str
    charges: tuple[str, ...]
    texts: Mapping[str, str]
    stopped: str | None = None
    epsilon: Fraction | None = None
    run: str | None = None
    head: str | None = None
    matrices: Mapping[str, tuple[Matrix, ...]] = attrs.field(factory=dict)
    period: str | None = None
    samplers: str | None = None

    @classmethod
    def of(cls, results: Results) -> RunSummary:
        """Summarize a run."""
        return cls(
            results.private,
            results.accounting,
            loss_text(results.spent),
            tuple(charge.path for charge in results.charges),
            {name: results.text(name) for name in results},
            results.stopped,
            None if results.spent is None else results.spent.epsilon,
            results.run,
            results.head,
            {name: tuple(found) for name in results if (found := results.matrices(name))},
            results.period,
            results.samplers,
        )

    def facts(self, plan: StudyPlan) -> list[tuple[str, str]]:
        """Return the facts of the run, each as a name and a text.

        These facts are the run's id in a ledger and the ledger's head after the run, the period, the number of
        releases, the accounting, the spent loss and the planned total.
        """
        in_ledger = {"run in the ledger": self.run, "head of the ledger after it": self.head}
        recorded = [(name, value) for name, value in in_ledger.items() if value is not None]
        return [
            *recorded,
            *([] if self.period is None else [("period", self.period)]),
            ("releases", str(len(self.charges))),
            ("accounting", self.accounting),
            ("spent", self.spent),
            ("planned at most", loss_text(plan.totals().get(self.accounting))),
        ]

    def headlines(self, plan: StudyPlan) -> list[str]:
        """Return the sentences that a reader needs first: why the run stopped early, if it did, and the `verdict`."""
        stopped = [] if self.stopped is None else [f"STOPPED before its end: {self.stopped}"]
        return [*stopped, self.verdict(plan)]

    def verdict(self, plan: StudyPlan) -> str:
        """Return one sentence on whether the results may be published."""
        if plan.facts.inferred:
            return "NOT PRIVATE: the schema was inferred from private data, which no epsilon covers"
        if not self.private:
            return "NOT PRIVATE: this run was seeded, for experiments only; its results must not be published"
        theirs = ", by OpenDP's samplers" if self.samplers == "opendp" else ""
        return f"private: the noise was drawn from the operating system's cryptographic generator{theirs}"

    def release_counts(self, plan: StudyPlan) -> dict[str, int]:
        """Return how often each planned step was released, by its path in the plan."""
        return Counter(map(path_finder(plan), self.charges))


def summarize(results: Results | RunSummary | None, about: About | None) -> tuple[RunSummary | None, About]:
    """Return the summary of a run, if there is one, and the further facts of its report.

    If `about` is None, the further facts are taken from `results`. A `RunSummary` does not hold such facts.
    """
    if isinstance(results, Results):
        return RunSummary.of(results), About.of(results) if about is None else about
    return results, About() if about is None else about
