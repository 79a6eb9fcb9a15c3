"""The kit on accountants: planted bugs are caught, each in a sentence that names it, and honest ones pass."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import pytest

import dpframework as dpf
from dpframework.accountant import (
    BUILT_IN,
    AdditiveAccountant,
    PureAccountant,
    ZCDPAccountant,
    composition,
)
from dpframework.facts import ByRelation
from dpframework.plan.nodes import Node, Parallel
from dpframework.plan.plan import Plan
from dpframework.plan.spend_block_node import Spend
from dpframework.run.miner_base_and_examples import Example
from dpframework.verify import audit, check_accountant, verify_examples
from dpframework.verify.accountants.accountant_conformance import AccountantConformance

NONE = ByRelation(None, None)


class Pure(AdditiveAccountant):
    """Pure epsilon, honest: what the planted accountants are but for one bug."""

    name = "planted"
    of_units = True
    amount, loss, spread = PureAccountant.amount, PureAccountant.loss, PureAccountant.spread
    sample, sample_of_rows = PureAccountant.sample, PureAccountant.sample_of_rows


class Own(dpf.Accountant[Fraction | None]):
    """An honest accountant that composes by itself, and cautiously: it adds up parts."""

    name = "own"

    def amount(self, calibration: Any) -> Fraction | None:
        return None if calibration is None else calibration.losses.pure.under(self.relation)

    def sequential(self, parts: Any) -> Fraction | None:
        return None if None in parts else sum(parts, Fraction(0))

    def parallel(self, parts: Any) -> Fraction | None:
        return self.sequential(parts)

    def either(self, parts: Any) -> Fraction | None:
        return None if None in parts else max(parts)

    def loss(self, amount: Fraction | None) -> Any:
        return None if amount is None else dpf.PrivacyLoss(epsilon=amount)


class Half(Pure):
    """Half of epsilon."""

    def loss(self, amount: ByRelation) -> Any:
        epsilon = amount.under(self.relation)
        return None if epsilon is None else dpf.PrivacyLoss(epsilon=epsilon / 2)


class RepeatsOnce(Pure):
    """A repeat that costs one."""

    def repeat(self, part: ByRelation, times: int) -> ByRelation:
        return part


class RateTimesEpsilon(Pure):
    """A sample at its rate times epsilon."""

    def sample(self, part: ByRelation, rate: Fraction) -> ByRelation:
        return ByRelation(None if part.add_or_remove_one is None else rate * part.add_or_remove_one, None)


class MaxInSequence(Pure):
    """The largest of releases from the same rows, not their sum."""

    def sequential(self, parts: Any) -> ByRelation:
        return composition.either(parts)


class EqualOnce(Pure):
    """Equal releases counted once: they are put into a set."""

    def sequential(self, parts: Any) -> ByRelation:
        return composition.sequential(list(set(parts)))


class OverlapsAreParts(Pure):
    """Partitions one after another taken for one partition."""

    def amount_of(self, node: Node, plan: Plan) -> ByRelation:
        parts = [self.amount_of(child, plan) for child in node.children]
        if len(parts) > 1 and all(isinstance(child, Parallel) for child in node.children):
            return composition.parallel(parts)
        return super().amount_of(node, plan)


class LargestPartOnly(Pure):
    """The largest part under both relations: a row that moves changes two."""

    def parallel(self, parts: Any) -> ByRelation:
        return composition.either(parts)

    def spread(self, parts: Any, rows: int) -> ByRelation:
        return composition.either(parts)


class FirstPart(Pure):
    """The first part stands for all."""

    def parallel(self, parts: Any) -> ByRelation:
        return composition.parallel([parts[0]] * len(parts))

    def spread(self, parts: Any, rows: int) -> ByRelation:
        return self.parallel(parts)


class CheapestBranch(Pure):
    """A choice at its cheapest branch."""

    def either(self, parts: Any) -> ByRelation:
        added, replaced = ([p.under(relation) for p in parts] for relation in dpf.Relation)
        return NONE if None in added + replaced else ByRelation(min(added), min(replaced))


class UnitsAsRows(Pure):
    """A unit of several rows charged as one row."""

    def amount(self, calibration: Any) -> ByRelation:
        return NONE if calibration is None else calibration.losses.pure.map(lambda e: e / calibration.by.rows)


class SpreadsThinly(Pure):
    """A unit's rows taken to be spread over parts evenly."""

    def spread(self, parts: Any, rows: int) -> ByRelation:
        return composition.parallel(parts).map(lambda amount: amount / rows)


class RowsOfASample(Pure):
    """A sample of whole units charged as a sample of rows."""

    def sample(self, part: ByRelation, rate: Fraction) -> ByRelation:
        return composition.amplify_rows(part, rate, 2)

    def sample_of_rows(self, part: ByRelation, rate: Fraction, rows: int) -> ByRelation:
        return composition.amplify_rows(part, rate, 2 * rows)


class NoRelation(Pure):
    """The add-or-remove-one amount under both relations."""

    def amount(self, calibration: Any) -> ByRelation:
        return NONE if calibration is None else ByRelation(*[calibration.losses.pure.add_or_remove_one] * 2)


class HidesReplacements(Pure):
    """A sample that is claimed to be amplified under replace-one."""

    def sample(self, part: ByRelation, rate: Fraction) -> ByRelation:
        return part.map(lambda epsilon: composition.amplify(epsilon, rate))


class FreeBlocks(Pure):
    """Blocks that cost nothing: an accountant that knows steps only."""

    def amount_of(self, node: Node, plan: Plan) -> ByRelation:
        return ByRelation(Fraction(0), Fraction(0)) if isinstance(node, Spend) else super().amount_of(node, plan)


class FreeWithoutClaim(Pure):
    """What has no claim costs nothing."""

    def amount(self, calibration: Any) -> ByRelation:
        losses = super().amount(calibration)
        return ByRelation(*(losses.under(relation) or Fraction(0) for relation in dpf.Relation))


class Kept(Pure):
    """A total that is kept by the name of the plan's first step, and found again for another plan."""

    totals: ClassVar[dict[Any, Any]] = {}

    def total(self, plan: Plan) -> Any:
        key = self.relation, next(plan.steps()).name
        if key not in self.totals:
            self.totals[key] = super().total(plan)
        return self.totals[key]


class DropsDelta(AdditiveAccountant):
    """An epsilon that holds at the study's delta, stated at none."""

    name = "planted"
    of_units = needs_delta = True
    amount, spread = ZCDPAccountant.amount, ZCDPAccountant.spread
    sample, sample_of_rows = ZCDPAccountant.sample, ZCDPAccountant.sample_of_rows

    def loss(self, amount: ByRelation) -> Any:
        honest = ZCDPAccountant(self.relation, delta=self.delta).loss(amount)
        return None if honest is None else dpf.PrivacyLoss(epsilon=honest.epsilon)


class HalfOfRho(DropsDelta):
    """Half of rho, converted as it should be."""

    def loss(self, amount: ByRelation) -> Any:
        return ZCDPAccountant(self.relation, delta=self.delta).loss(amount.map(lambda rho: rho / 2))


class Forgets(Pure):
    """A budget whose plans are forgotten when it is copied."""

    def __copy__(self) -> Any:
        return type(self)(self.relation, epsilon=self.epsilon, delta=self.delta)


class NoLimit(Pure):
    """A budget that is checked plan by plan."""

    def require_fit(self, plan: Plan) -> Any:
        charged, self._charged = self._charged, []
        try:
            return super().require_fit(plan)
        finally:
            self._charged = charged


def scaled(amount: ByRelation, share: Fraction) -> ByRelation:
    return amount.map(lambda epsilon: None if epsilon is None else epsilon * share)


class Capped(Pure):
    """Nobody loses more than 3."""

    def loss(self, amount: ByRelation) -> Any:
        epsilon = amount.under(self.relation)
        return None if epsilon is None else dpf.PrivacyLoss(epsilon=min(epsilon, Fraction(3)))


class Negligible(Pure):
    """Releases of less than 0.1 are not counted."""

    def amount(self, calibration: Any) -> ByRelation:
        amount = PureAccountant.amount(self, calibration)
        return amount.map(lambda epsilon: Fraction(0) if epsilon is not None and epsilon < Fraction(1, 10) else epsilon)


class RootOfMany(Pure):
    """More than four releases compose by the root of their number, as if delta were above 0."""

    def sequential(self, parts: Any) -> ByRelation:
        total = super().sequential(parts)
        return total if len(parts) <= 4 else scaled(total, Fraction(1, math.isqrt(len(parts))))


class RootOfRepeats(Pure):
    """The same of more than eight repeats."""

    def repeat(self, part: Any, times: int) -> ByRelation:
        total = super().repeat(part, times)
        return total if times <= 8 else scaled(total, Fraction(1, math.isqrt(times)))


class FirstTerm(Pure):
    """The root of the sum of squares, without the term for the mean (Dwork, Rothblum and Vadhan 2010, Theorem III.3).

    It is below what is lost only where so many releases are made that the mean matters.
    """

    @classmethod
    def delta_for(cls, delta: Fraction) -> Fraction | None:
        return delta or None

    def amount(self, calibration: Any) -> ByRelation:
        return PureAccountant.amount(self, calibration).map(lambda epsilon: epsilon and epsilon**2)

    def parallel(self, parts: Any) -> ByRelation:
        return scaled(super().parallel(parts), Fraction(2))

    def loss(self, amount: ByRelation) -> Any:
        squares = amount.under(self.relation)
        if squares is None:
            return None
        epsilon = math.sqrt(2 * math.log(1 / self.delta) * squares)
        return dpf.PrivacyLoss(epsilon=Fraction(epsilon), delta=self.delta)


class FirstTwoParts(Pure):
    """A row that moves changes two parts: the first two."""

    def parallel(self, parts: Any) -> ByRelation:
        whole, own = super().parallel(parts), super().either(parts).replace_one
        first = [part.add_or_remove_one for part in parts[:2]]
        moved = None if None in first else sum(first, Fraction(0))
        return ByRelation(whole.add_or_remove_one, None if None in (moved, own) else max(moved, own))


class FamiliesAsPairs(Pure):
    """A unit of more than two rows charged as one of two."""

    def amount(self, calibration: Any) -> ByRelation:
        amount, rows = PureAccountant.amount(self, calibration), 1 if calibration is None else calibration.by.rows
        return scaled(amount, Fraction(2, max(rows, 2)))


class AmplifiesTwice(Pure):
    """A large sample amplified twice."""

    def sample(self, part: Any, rate: Fraction) -> ByRelation:
        return super().sample(part, rate if rate < Fraction(7, 10) else rate**2)


class Fails(Pure):
    """A rule that fails."""

    def either(self, parts: Any) -> ByRelation:
        raise KeyError("branch")


ADD, REPLACE = "under add-or-remove-one", "under replace-one"
PLANTED: dict[type[dpf.Accountant[Any]], str] = {
    Half: f"a count {ADD} totals epsilon 0.25, and loses 0.5: a single release is charged less than it loses",
    RepeatsOnce: (
        f"three times {ADD} totals epsilon 0.5, and loses 1.5: a repeat is charged less than all its repetitions"
    ),
    RateTimesEpsilon: (
        r"totals epsilon 0.3, and loses 0\.415\d*: "
        "releases from a sample are charged less than they lose .the rate times"
    ),
    MaxInSequence: (
        "totals epsilon 1.0, and loses 1.5: releases from the same rows are charged less than they lose together"
    ),
    EqualOnce: (
        f"two equal histograms {ADD} totals epsilon 1.0, and loses 2: releases from the same rows are charged less"
    ),
    OverlapsAreParts: "the parts of two partitions are charged as disjoint, although each row lies in a part of both",
    LargestPartOnly: (
        f"{REPLACE} .*: parts are charged less than is lost when a row leaves one of them and enters another"
    ),
    FirstPart: (
        "a cheap part .* totals epsilon 0.5, and loses 1.5: "
        "parts are charged less than the most expensive of them loses"
    ),
    CheapestBranch: "totals epsilon 0.5, and loses 2: a choice is charged less than its most expensive branch",
    UnitsAsRows: "by at most 2 of its rows totals epsilon 0.5, and loses 1: a unit of several rows is charged less",
    SpreadsThinly: "totals epsilon 0.5, and loses 1: parts are charged less than is lost by a unit with rows in one",
    RowsOfASample: (
        "a count of a sample of people .*: releases from a sample are charged less than a unit of several rows loses"
    ),
    NoRelation: f"a histogram {REPLACE} .*; under add-or-remove-one the total holds: the relation is ignored",
    HidesReplacements: "its output may show that the replaced row is in the sample",
    FreeWithoutClaim: "a step of it has no claim: a step without a claim is charged as if it had one",
    FreeBlocks: f"a block, spent on one histogram {ADD} totals epsilon 0.0, and loses 1: a block is charged less",
    Kept: "its rules compose to 8.0, so the mistake is in `total` or `amount_of`, such as a total kept from another",
    DropsDelta: "the delta is dropped: this epsilon holds at the study's delta only",
    HalfOfRho: "a histogram with Gaussian noise .*: a single release is charged less than it loses",
    Forgets: "two plans that are opened one after another are charged less than they lose, as if one were forgotten",
    NoLimit: "a second plan is opened for which the budget has nothing left",
    Capped: f"a count with a large epsilon {ADD} totals epsilon 3.0, and loses 8: a single release is charged less",
    Negligible: (
        f"a count with a small epsilon {ADD} totals epsilon 0.0, and loses 0.03125: a single release is charged less"
    ),
    RootOfMany: f"6 counts, one after another {ADD} totals epsilon 0.75, and loses 1.5: releases from the same rows",
    RootOfRepeats: f"the same count, 12 times {ADD} totals epsilon 0.5, and loses 1.5: a repeat is charged less",
    FirstTerm: f"the same count, 100 times {ADD} totals epsilon .*: a repeat is charged less than all its repetitions",
    FirstTwoParts: f"three parts, each more expensive than the one before {REPLACE} totals epsilon 0.5, and loses 0.75",
    FamiliesAsPairs: (
        "by at most 4 of its rows totals epsilon 0.25, and loses 0.5: a unit of several rows is charged less"
    ),
    AmplifiesTwice: (
        r"a count of a large sample .* totals epsilon 0\.\d+, and loses 0\.9\d*: "
        "releases from a sample are charged less"
    ),
    Fails: f"the total of a cheap branch or an expensive one {ADD} fails with KeyError: 'branch'",
}


def suite_of(kind: type[dpf.Accountant[Any]]) -> AccountantConformance:
    return type("TestOne", (AccountantConformance,), {"accountant": kind})()


@pytest.mark.parametrize("planted", PLANTED, ids=lambda kind: kind.__name__)
def test_the_suite_names_what_is_planted(planted: type[dpf.Accountant[Any]]) -> None:
    with pytest.raises(AssertionError, match=PLANTED[planted]) as caught:
        suite_of(planted).test_totals_and_charges_cover_what_plans_lose()
    assert all(line.startswith("accountant 'planted'") for line in str(caught.value).splitlines())


@pytest.mark.parametrize("honest", [*BUILT_IN, Pure, Own], ids=lambda kind: kind.name)
def test_honest_accountants_pass(honest: type[dpf.Accountant[Any]], capsys: pytest.CaptureFixture[str]) -> None:
    suite = suite_of(honest)
    suite.test_it_names_and_documents_itself()
    suite.test_totals_and_charges_cover_what_plans_lose()
    assert re.search(r"\d\d totals of small plans are at least what their outputs lose", capsys.readouterr().out)


SCHEMA = dpf.Schema([dpf.Boolean("ill")])


@attrs.frozen
class Counts(dpf.Miner):
    """Three counts of all rows, or one of a sample."""

    name = "counts"
    sampled: bool = False

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        step = dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1))
        return dpf.sample("0.3", step) if self.sampled else dpf.repeat(3, step)

    def mine(self, table: dpf.PrivateTable) -> Any:
        return table.sampled().release("n") if self.sampled else [table.release("n") for _ in range(3)]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Return a function that installs one accountant beside the built-in ones."""

    def install(kind: Any) -> None:
        class Installed:
            def accountants_at(self, delta: Fraction) -> tuple[type[dpf.Accountant[Any]], ...]:
                return (*BUILT_IN, kind)

        monkeypatch.setattr("dpframework.study.study_plan_totals_and_findings.registry", Installed)

    return install


@pytest.mark.parametrize("planted", [Half, RepeatsOnce, RateTimesEpsilon], ids=lambda kind: kind.__name__)
def test_audits_and_verify_compare_with_the_total_that_a_plan_is_charged(
    installed: Callable[[Any], None], planted: type[dpf.Accountant[Any]]
) -> None:
    installed(planted)
    miner = Counts(planted is RateTimesEpsilon)
    (violation,) = audit(miner, SCHEMA, "add-or-remove-one", replays=300).violations
    charged = {Half: "1.5", RepeatsOnce: "1", RateTimesEpsilon: "0.3"}[planted]
    builtin = {Half: "3", RepeatsOnce: "3", RateTimesEpsilon: r"0\.41"}[planted]
    told = (
        f"the plan claims {charged}(.0)?, as accountant 'planted' totals it; the built-in accountants charge {builtin}"
    )
    assert re.search(told, violation.what)
    added = dpf.Relation.ADD_OR_REMOVE_ONE
    found = verify_examples("counts", {"one": Example(SCHEMA, miner)}, replays=300, runs=0, relations=[added])
    assert not found.passed
    assert any(re.search(PLANTED[planted], problem) for problem in found.problems())
    assert found.to_dict()["accountants"][0]["passed"] is False


def test_a_claim_with_a_delta_is_that_of_the_accountant_too(installed: Callable[[Any], None]) -> None:
    installed(type("Rho", (HalfOfRho,), {"name": "planted"}))

    @attrs.frozen
    class Noisy(dpf.Miner):
        """A count with Gaussian noise."""

        name = "noisy"

        def plan(self, schema: dpf.Schema) -> dpf.Node:
            return dpf.step("n", dpf.queries.Count(), dpf.mechanisms.Gaussian(8))

        def mine(self, table: dpf.PrivateTable) -> Any:
            return table.release("n")

    report = audit(Noisy(), SCHEMA, "add-or-remove-one", delta="0.1", replays=600)
    assert not report.passed
    assert "as accountant 'planted' totals it; the built-in accountants charge" in str(report.violations[0])


def test_what_cannot_be_tried_is_said() -> None:
    assert check_accountant(Own).unclaimed == ("sample", "unit", "unit in parts", "unit in a sample")
    assert check_accountant(DropsDelta, deltas=[0]).wrong == ("accountant 'planted' admits none of the deltas to try",)
    silent = type("Silent", (Pure,), {"loss": lambda self, amount: None})
    assert "has no total of any plan, not even of a count" in str(check_accountant(silent))
    loud = type("Loud", (Pure,), {"loss": lambda self, amount: 3})
    assert "is of type int, not PrivacyLoss" in str(check_accountant(loud))
