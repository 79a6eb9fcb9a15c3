"""What is said of an accountant, finding by finding: where a loss begins to exceed a total, and in which words."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import attrs
import pytest

from dpframework.accountant import AdditiveAccountant, PLDAccountant, PureAccountant, ZCDPAccountant
from dpframework.facts import ByRelation
from dpframework.facts.errors import PlanRefused
from dpframework.facts.privacy_losses import PrivacyLoss, Relation
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan.nodes import step
from dpframework.plan.plan import Plan
from dpframework.queries import Count
from dpframework.verify.accountants import accountant_total_check as accountants
from dpframework.verify.accountants.accountant_plans import CASES as ALL, MISTAKES, Case
from dpframework.verify.accountants.accountant_total_check import (
    AccountantReport,
    _AccountantCheck,
    check_accountant,
    has_claim,
)
from dpframework.verify.accountants.exact_loss_oracle import delta_at, pairs_of, renyi

ADD, REPLACE = Relation
NONE, TENTH = Fraction(0), Fraction(1, 10)
CASES = {case.text: case for case in reversed(ALL)}  # of one row where units have one of the same text
COUNT, GAUSSIAN = CASES["a count"], CASES["a histogram with Gaussian noise"]
UNCLAIMED = CASES["a step that has a claim under replace-one only, beside a count"]


class Pure(AdditiveAccountant):
    """Pure epsilon, honest."""

    name = "planted"
    of_units = True
    amount, loss, spread = PureAccountant.amount, PureAccountant.loss, PureAccountant.spread
    sample, sample_of_rows = PureAccountant.sample, PureAccountant.sample_of_rows


class Parts(_AccountantCheck):
    """A check, each part of which can be asked by itself."""

    def call(self, what: str, function: Any) -> Any:
        return self._try(what, function)

    def sentences(self) -> list[str]:
        return [*self._sentences()]

    def delta_holds(self, total: PrivacyLoss, plan: Any) -> bool:
        return self._holds_at_delta(total, plan)

    def of_its_rules(self, plan: Any) -> PrivacyLoss | None:
        return self._total_by_rules(plan)


def checked(kind: Any = Pure, deltas: Iterable[Fraction] = (NONE,), relations: Any = (ADD,)) -> Parts:
    return Parts(kind, [*deltas], relations)


def excess(case: Case, loss: PrivacyLoss, delta: Fraction = NONE, claim: bool = True) -> str:
    return checked()._excess(case.plan(ADD, delta), loss, claim)


def small(text: str, **changes: Any) -> PrivacyLoss:
    return PrivacyLoss(epsilon=text, **changes)


def test_a_pure_total_may_be_below_the_loss_by_rounding_alone() -> None:
    """A count of epsilon 0.5 loses 0.5: a millionth of it, and a millionth, are rounding."""
    assert excess(COUNT, small("0.4999986")) == ""
    assert excess(COUNT, small("0.4999984")) == "totals epsilon 0.4999984, and loses 0.5"
    assert excess(COUNT, small("0.25")) == "totals epsilon 0.25, and loses 0.5"
    assert excess(COUNT, small("0.5")) == excess(COUNT, small("3")) == ""
    assert excess(COUNT, small("3"), claim=False) == "totals epsilon 3.0, although a step of it has no claim"


def test_the_rounding_of_a_large_loss_is_relative() -> None:
    """Two histograms of epsilon 1.5 together: a total may be below it by three parts in a million or so."""
    three = CASES["the same histogram, three times"]
    assert excess(three, small("1.4999977")) == ""
    assert excess(three, small("1.4999972")) == "totals epsilon 1.4999972, and loses 1.5"


def test_a_total_at_a_delta_is_wrong_where_that_delta_is_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = COUNT.plan(ADD, TENTH)
    found = delta_at(plan, 0.25)

    def at(share: float, beyond: float = 0.0) -> str:
        return excess(COUNT, PrivacyLoss(epsilon="0.25", delta=Fraction(found * share - beyond)), TENTH)

    assert at(1 - 5e-7) == at(1.1) == ""
    assert at(1 - 2e-6) == at(1 - 2e-6, 1e-13) != ""
    assert at(0.5) == f"totals epsilon 0.25 at delta {found / 2:g}, and its delta at this epsilon is {found:.3g}"
    monkeypatch.setattr(accountants, "RAREST", 0.01)
    assert at(1, 0.009) == ""
    assert at(1, 0.011) != ""


def test_a_stated_rho_is_compared_at_two_orders() -> None:
    """Where delta leaves room: of Gaussian noise it is exact at each of them, and what a sample loses grows."""
    plan = GAUSSIAN.plan(ADD, TENTH)
    pairs = pairs_of(plan, few=True)
    epsilon = small("9").epsilon
    lost = renyi(plan, 1.5, pairs) / 1.5
    assert lost == pytest.approx(0.125, rel=1e-6)
    assert accountants.ORDERS == (1.5, 8.0)
    for case, order in ((GAUSSIAN, 1.5), (CASES["a count of a small sample"], 8)):
        found = {p: renyi(case.plan(ADD, TENTH), p, pairs_of(case.plan(ADD, TENTH), few=True)) / p for p in (1.5, 8.0)}
        told = found[float(order)]
        below = Fraction((told - 1e-6) / (1 + 1e-6) - 1e-8)
        within = Fraction((told - 1e-6) / (1 + 1e-6) + 1e-8)
        assert order == 1.5 or found[1.5] < float(below)
        rho = PrivacyLoss(epsilon=epsilon, rho=below, delta=TENTH)
        assert excess(case, rho, TENTH).endswith(f", and loses {told:.6g} at order {order:g}")
        assert excess(case, rho, TENTH).startswith("totals rho 0.")
        enough = PrivacyLoss(epsilon=epsilon, rho=max(within, Fraction(found[1.5])), delta=TENTH)
        assert excess(case, enough, TENTH) == ""
    assert excess(GAUSSIAN, PrivacyLoss(epsilon=epsilon, delta=TENTH), TENTH) == ""


def test_rho_says_nothing_beside_an_exact_delta() -> None:
    case = CASES["a count with an exact delta"]
    assert excess(case, PrivacyLoss(epsilon=9, rho="0.001", delta=TENTH), TENTH) == ""
    assert excess(COUNT, PrivacyLoss(epsilon=9, rho="0.001", delta=TENTH), TENTH) != ""


def test_the_pairs_that_are_tried_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a row, sixteen: alone and beside one other, each of four kinds, both ways."""
    tried: list[int] = []

    def compared(plan: Plan, *given: Any) -> float:
        tried.append(len(given[-1]))
        return 0.0

    for name in ("delta_at", "renyi", "largest_ratio"):
        monkeypatch.setattr(accountants, name, compared)
    case = Case("release", "a larger count", step("n", Count(), DiscreteLaplace("0.7")))
    assert excess(case, small("1", rho="1", delta="0.1"), TENTH) == excess(case, small("1")) == ""
    assert checked().delta_holds(small("1"), case.plan(ADD, TENTH))
    assert tried == [16] * 5


def test_a_plan_has_a_claim_if_all_its_steps_have_one() -> None:
    assert has_claim(COUNT.plan(ADD, NONE))
    assert not has_claim(UNCLAIMED.plan(ADD, NONE))
    assert has_claim(UNCLAIMED.plan(REPLACE, NONE))


def test_totals_are_of_the_type_and_the_delta_that_are_asked_for() -> None:
    def told(loss: Any, delta: Fraction = NONE) -> tuple[Any, list[str]]:
        check = checked(type("Told", (Pure,), {"loss": lambda self, amount: loss}))
        return check._total(COUNT, COUNT.plan(ADD, delta), delta), [*check.others.values()]

    where = "accountant 'planted': the total of a count under add-or-remove-one"
    assert told(None) == (None, [])
    at = PrivacyLoss(epsilon=1, delta=TENTH)
    assert told(at, TENTH) == (at, [])
    assert told(at, Fraction(1, 20)) == (None, [f"{where} holds at delta 0.1, above 0.05"])
    assert told(3) == (None, [f"{where} is of type int, not PrivacyLoss"])


def test_calls_that_fail_are_told_once_and_refusals_are_passed_on() -> None:
    check = checked()

    def fail(error: Exception) -> Any:
        raise error

    assert check.call("a call", lambda: 5) == 5
    assert check.call("a call", lambda: fail(KeyError("x"))) is None
    assert check.call("a call", lambda: fail(ValueError("y"))) is None
    assert check.others == {"a call": "accountant 'planted': a call fails with KeyError: 'x'"}
    with pytest.raises(PlanRefused):
        check.call("a call", lambda: fail(PlanRefused("no")))


def test_deltas_are_those_that_the_accountant_admits_each_once() -> None:
    deltas = [NONE, Fraction(1, 10**6), TENTH, TENTH]
    assert checked(Pure, deltas).deltas == deltas[:3]
    assert checked(ZCDPAccountant, deltas).deltas == deltas[1:3]
    thirds = type("Thirds", (Pure,), {"delta_for": classmethod(lambda cls, delta: Fraction(1, 3) if delta else None)})
    assert checked(thirds, deltas).deltas == [Fraction(1, 3)]
    assert (NONE, Fraction(1, 10**6), TENTH) == accountants.DELTAS
    nameless = type("Nameless", (), {"delta_for": staticmethod(lambda delta: delta)})
    assert checked(nameless).name == "Nameless"
    assert checked().name == "planted"


FIRST = ("release", "sequential", "repeat", "either", "unit", "unit in parts")


@pytest.mark.parametrize("rule", MISTAKES)
def test_what_holds_without_the_relation_is_said_to_ignore_it(rule: str) -> None:
    check = checked()
    check.faults[rule, REPLACE] = "wrong"
    end = "; under add-or-remove-one the total holds: the relation is ignored" if rule in FIRST else ""
    assert check.sentences() == [f"wrong{end}"]
    check.faults[rule, ADD] = "wrong, too"
    assert sorted(check.sentences()) == ["wrong", "wrong, too"]
    del check.faults[rule, REPLACE]
    assert check.sentences() == ["wrong, too"]


def test_compositions_are_left_out_where_a_single_release_is_wrong() -> None:
    def sentences(*rules: str) -> list[str]:
        check = checked()
        check.faults = {(rule, ADD): rule for rule in rules}
        return check.sentences()

    assert sentences("sequential", "release") == ["release"]
    assert sentences("sequential", "no claim", "release", "unit") == ["release", "no claim"]
    assert sentences("unit", "sequential", "no claim") == ["no claim", "sequential", "unit"]
    assert sentences(*reversed([*MISTAKES][1:])) == [*MISTAKES][1:]
    assert sentences() == []


def test_a_mistake_is_told_with_the_plan_the_unit_and_the_rule() -> None:
    def sentence(kind: Any, case: Case, loss: PrivacyLoss, delta: Fraction = NONE, relation: Relation = ADD) -> str:
        check = checked(kind)
        plan = case.plan(relation, delta)
        return check._sentence(case, plan, case.listed_plan(relation, delta), loss, "loses more")

    wrong = type("Half", (Pure,), {"loss": lambda self, amount: PrivacyLoss(epsilon="0.1")})
    parts, person = CASES["a count in each part"], CASES["a count of a sample of people"]
    assert sentence(wrong, COUNT, small("0.1")) == (
        f"accountant 'planted': a count under add-or-remove-one loses more: {MISTAKES['release']}"
    )
    assert sentence(wrong, parts, small("0.1"), relation=REPLACE) == (
        f"accountant 'planted': a count in each part under replace-one loses more: {MISTAKES['move']}"
    )
    assert sentence(wrong, person, small("0.1")) == (
        f"accountant 'planted': a count of a sample of people under add-or-remove-one, for {person.unit} loses more: "
        f"{MISTAKES['unit in a sample']}"
    )
    assert sentence(Pure, COUNT, small("0.1")).endswith(
        f"{MISTAKES['release']}; its rules compose to 0.5, so the mistake is in `total` or `amount_of`, such as a "
        "total kept from another plan"
    )
    dropped = "the delta is dropped: this epsilon holds at the study's delta only"
    assert sentence(wrong, COUNT, small("0.4"), TENTH).endswith(dropped)
    assert sentence(wrong, COUNT, small("0.1"), TENTH).endswith(MISTAKES["release"])
    assert sentence(wrong, COUNT, small("0.4", delta="0.05"), TENTH).endswith(MISTAKES["release"])
    fails = type("Fails", (Pure,), {"loss": lambda self, amount: amount.no})
    assert sentence(fails, COUNT, small("0.1")).endswith(MISTAKES["release"])
    silent = type("Silent", (Pure,), {"loss": lambda self, amount: PrivacyLoss(rho=1)})
    assert sentence(silent, COUNT, small("0.1")).endswith(MISTAKES["release"])
    no_claim = type("NoClaim", (Pure,), {"loss": lambda self, amount: PrivacyLoss(epsilon=9)})
    assert sentence(no_claim, UNCLAIMED, small("9")).endswith(MISTAKES["no claim"])


def test_a_total_holds_at_the_studys_delta_up_to_rounding() -> None:
    check = checked()
    found = delta_at(COUNT.plan(ADD, TENTH), 0.25)
    for share, right in ((1 + 1e-9, True), (1 - 5e-7, True), (1 - 2e-6, False), (0.5, False)):
        assert check.delta_holds(small("0.25"), COUNT.plan(ADD, Fraction(found * share))) is right
    assert check.delta_holds(small("0.25"), COUNT.plan(ADD, NONE)) is False
    assert check.delta_holds(small("9"), COUNT.plan(ADD, NONE)) is False


def test_rules_compose_a_total_at_the_studys_delta() -> None:
    total = checked(PureAccountant).of_its_rules(CASES["two equal histograms"].plan(ADD, NONE))
    assert total == PrivacyLoss(epsilon=2)
    plan = GAUSSIAN.plan(ADD, TENTH)
    assert checked(ZCDPAccountant).of_its_rules(plan) == ZCDPAccountant(ADD, delta="0.1").total(plan)
    assert checked(ZCDPAccountant).of_its_rules(GAUSSIAN.plan(ADD, NONE)) is None


def charges(kind: Any, delta: Fraction = NONE, relation: Relation = ADD) -> list[str]:
    check = checked(kind)
    check._charges(relation, delta)
    return [*check.others.values()]


class Refuses(Pure):
    """A budget into which nothing fits."""

    def require_fit(self, plan: Plan) -> Any:
        raise PlanRefused("no room")


class ForgetsDeep(Pure):
    """A budget whose plans are forgotten by a deep copy."""

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)(self.relation, epsilon=self.epsilon, delta=self.delta)


class ForgetsPickled(Pure):
    """A budget whose plans are forgotten when it is pickled."""

    def __reduce__(self) -> Any:
        return type(self), (self.relation,)


class Unspent(Pure):
    """A budget that cannot say what is spent."""

    spent = None  # type: ignore[assignment]


class OpensOnce(Pure):
    """A budget without a limit for its second plan."""

    def require_fit(self, plan: Plan) -> Any:
        charged, self._charged = self._charged, []
        try:
            return super().require_fit(plan)
        finally:
            self._charged = charged


FORGOTTEN = "two plans that are opened one after another are charged less than they lose, as if one were forgotten"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Pure, None),
        (PureAccountant, None),
        (Refuses, "a plan that fits the budget is refused: no room"),
        (ForgetsDeep, FORGOTTEN),
        (ForgetsPickled, FORGOTTEN),
        (Unspent, FORGOTTEN),
        (OpensOnce, "a second plan is opened for which the budget has nothing left"),
    ],
)
def test_charges_cover_two_plans_whoever_holds_the_budget(kind: Any, said: str | None) -> None:
    for relation in Relation:
        expected = [] if said is None else [f"accountant '{kind.name}' under {relation}: {said}"]
        assert charges(kind, relation=relation) == expected


def test_charges_are_not_tried_without_a_total() -> None:
    silent = type("Silent", (Refuses,), {"loss": lambda self, amount: None})
    nothing = type("Nothing", (Refuses,), {"loss": lambda self, amount: PrivacyLoss(rho=1)})
    assert charges(silent) == charges(nothing) == []


def test_an_accountant_that_cannot_be_pickled_is_tried_as_it_is() -> None:
    own = type("Own", (Pure,), {"__reduce__": lambda self: (type("Nowhere", (), {}), ())})(ADD)
    assert accountants._unpickle(own) is own
    plain = PureAccountant(ADD)
    plain.open(COUNT.plan(ADD, NONE))
    again = accountants._unpickle(plain)
    assert again.spent == plain.spent == PrivacyLoss(epsilon="0.5")


def tried(kind: Any, *texts: str, deltas: Any = (0,), relations: Any = (ADD,)) -> AccountantReport:
    """The report on a few of the plans, in their order."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(accountants, "CASES", tuple(CASES[text] for text in texts))
        patched.setattr(accountants, "nested_cases", tuple)
        patched.setattr(accountants, "nested_noise", tuple)
        return check_accountant(kind, deltas=deltas, relations=relations)


PLAIN = ("a count", "a histogram", "a cheap branch or an expensive one", "a count of a sample")
OWN_NOTIONS = ("two equal histograms", "a number that shows whether a row is in the sample")


def test_reports_say_how_much_was_tried_and_what_is_not_claimed() -> None:
    report = tried(PureAccountant, *PLAIN)
    assert (report.tried, report.wrong, report.unclaimed, report.passed) == (4, (), (), True)
    both = tried(PureAccountant, *PLAIN, relations=tuple(Relation), deltas=("0.1", 0))
    # a sample has no claim under replace-one, and the two single releases are tried at a tiny delta, too
    assert (both.tried, both.wrong, both.unclaimed) == (2 * 7 + 2 * 2, (), ())
    assert tried(PureAccountant, *PLAIN, relations=(REPLACE,)).unclaimed == ("sample",)
    replaced = tried(PureAccountant, *PLAIN, *OWN_NOTIONS, UNCLAIMED.text, relations=(REPLACE,))
    assert (replaced.tried, replaced.unclaimed) == (5, ("sample",))
    assert str(replaced) == (
        "accountant 'pure': 5 totals of small plans are at least what their outputs lose; it claims nothing for: sample"
    )
    assert str(report) == "accountant 'pure': 4 totals of small plans are at least what their outputs lose"
    assert replaced.to_dict() == {
        "accountant": "pure",
        "tried": 5,
        "wrong": (),
        "unclaimed": ("sample",),
        "passed": True,
    }
    assert tried(PLDAccountant, *PLAIN[:2], deltas=("0.1",)).tried == 2 + 2
    wrong = attrs.evolve(report, wrong=("one.", "another."))
    assert (str(wrong), wrong.passed, wrong.to_dict()["passed"]) == ("one.\nanother.", False, False)


def test_reports_hold_the_first_mistake_of_each_rule() -> None:

    class Half(Pure):
        def loss(self, amount: ByRelation) -> Any:
            epsilon = amount.under(self.relation)
            return None if epsilon is None else PrivacyLoss(epsilon=epsilon / 2)

    report = tried(Half, *PLAIN, relations=tuple(Relation))
    assert report.wrong == tuple(
        f"accountant 'planted': {text} under {relation} totals epsilon {half}, and loses {lost}: {MISTAKES['release']}"
        for text, relation, half, lost in (("a count", ADD, "0.25", "0.5"), ("a histogram", REPLACE, "0.5", "1"))
    )
    assert report.tried == 3 + 3  # a count under add-or-remove-one, then no release any more


def test_charges_are_tried_after_totals_that_hold() -> None:
    assert tried(Refuses, *PLAIN).wrong == (
        "accountant 'planted' under add-or-remove-one: a plan that fits the budget is refused: no room",
    )
    again = type("Again", (Refuses,), {"loss": lambda self, amount: 3})
    *wrong, last = tried(again, *PLAIN).wrong
    assert all("is of type int" in sentence for sentence in wrong)
    assert (len(wrong), last) == (4, "accountant 'planted' has no total of any plan, not even of a count")
    halves = type("Halves", (Refuses,), {"loss": lambda self, amount: PrivacyLoss(epsilon="0.1")})
    assert all("refused" not in sentence for sentence in tried(halves, *PLAIN).wrong)


def test_nothing_that_could_be_tried_is_said() -> None:
    assert tried(ZCDPAccountant, *PLAIN).wrong == ("accountant 'zcdp' admits none of the deltas to try",)
    silent = type("Silent", (Pure,), {"loss": lambda self, amount: None})
    assert tried(silent, *PLAIN).wrong == ("accountant 'planted' has no total of any plan, not even of a count",)
