"""The conformance suite of checks, whose findings must follow from the plan alone.

Subclass it in a test module, and name your check::

    class TestDeltas(CheckConformance):
        check = dpf.Check("ACME001", "delta is not 0", deltas)
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

from dpframework.checks import Check
from dpframework.facts.privacy_losses import Relation
from dpframework.plan.nodes import sequential
from dpframework.plan.plan import Budget, PublicFacts
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.verify.accountants.accountant_plans import CASES, Case
from dpframework.verify.accountants.exact_loss_oracle import SCHEMA
from dpframework.verify.file_read_and_write_watch import watch_data_files
from dpframework.verify.tables.engine_output_watch import overhear

DELTAS = (Fraction(0), Fraction(1, 10**6))


class CheckConformance:
    """The tests that every check of plans must pass.

    The check examines more than a hundred small plans: partitions, branches, samples, blocks, units of several rows,
    and steps without a claim. Each is examined as it is planned, and as it is read from its file, where only facts
    about queries are known.

    Attributes
    ----------
    check
        The check that is tested.
    """

    check: ClassVar[Check]

    def test_it_finds_the_same_in_every_plan_again(self) -> None:
        """It yields pairs of a severity and a sentence, and fails on no plan.

        Its findings are the same when a plan is examined again, after other plans, as another object.
        """
        first: dict[str, list[str]] = {}
        for what, plan in _plans():
            try:
                found = list(self.check.findings(plan))
            except Exception as error:
                raise AssertionError(f"{what}: {error}") from error
            assert all(finding.message.strip() for finding in found), f"check {self.check.code} says nothing in {what}"
            first[what] = [str(finding) for finding in found]
        for what, plan in [*_plans()][::-1]:
            again = [str(finding) for finding in self.check.findings(plan)]
            assert again == first[what], (
                f"check {self.check.code} finds {first[what] or 'nothing'}, and later {again or 'nothing'}, in {what}; "
                "a check may keep nothing from one plan to the next"
            )

    def test_it_looks_at_nothing_but_the_plan(self) -> None:
        """It opens no file that may hold data, sends to no host, and starts no process: no budget is charged for it."""
        package = self.check.examine.__module__.partition(".")[0]
        plans = list(_plans())
        with overhear() as heard, watch_data_files([package, "dpframework"]) as files:
            for _, plan in plans:
                with contextlib.suppress(Exception):  # the other test tells of failures
                    list(self.check.findings(plan))
        where = sorted(files) + sorted(heard.hosts) + heard.commands
        assert not where, (
            f"check {self.check.code} looks at {', '.join(where[:3])}. Findings are shown to everybody who sees the "
            "plan, and must not depend on rows"
        )


def _plans() -> Iterator[tuple[str, StudyPlan]]:
    """Yield new plans, each as planned and as read from its file, with descriptions."""
    for number, case in enumerate(CASES):
        relation, delta = [*Relation][number % 2], DELTAS[number // 2 % 2]
        what = f"plan {number} ({case.text}) under {relation}, delta {float(delta):g}"
        plan = _plan(case, relation, delta)
        yield what, plan
        yield f"{what}, read from a file", StudyPlan.from_json(_text(case, relation, delta))


def _plan(case: Case, relation: Relation, delta: Fraction) -> StudyPlan:
    return StudyPlan(sequential(case.node), relation, PublicFacts.of(SCHEMA), Budget(1, delta), SCHEMA, unit=case.unit)


@functools.cache
def _text(case: Case, relation: Relation, delta: Fraction) -> str:
    return _plan(case, relation, delta).to_json()
