"""The ledger's answers: who ran what and why, what was released outside, and what the rest would buy."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.accountant import PlanCharge
from dpframework.cli import main
from dpframework.facts.privacy_losses import ByRelation
from dpframework.ledger import (
    GroupBy,
    LedgerTampered,
    OutsideKind,
    group_runs,
    remainder,
    spending_by_group_and_remainder,
)
from dpframework.ledger.entry_hash_chain import Chain
from dpframework.ledger.run_results_person_and_purpose import RecordedResult
from dpframework.ledger.spending_by_group_and_remainder import _cost
from dpframework.mechanisms import DiscreteLaplace, Gaussian

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("smokes")])
TABLE = dpf.Table.from_codes(SCHEMA, np.array([[0, 1, 1, 0], [1, 1, 0, 0]]))


def study_of(**epsilons: str) -> dpf.Study:
    """Return a study of one histogram for each attribute."""
    study = dpf.Study(SCHEMA, epsilon=2)
    for name, epsilon in epsilons.items():
        study.add(f"by {name}", dpf.miner("histogram", attribute=name, epsilon=epsilon))
    return study


@pytest.fixture
def ledger(tmp_path: Path) -> dpf.Ledger:
    made = dpf.Ledger.create(tmp_path / "people.ledger")
    made.open("people", epsilon=2)
    return made


def ran(ledger: dpf.Ledger, made: dpf.Study, /, runs: int = 1, **said: str) -> None:
    ledger.approve("people", made.plan(), by="the board", runs=runs)
    for _ in range(runs):
        made.run(TABLE, ledger=ledger.run("people", **said))


def forge(ledger: dpf.Ledger, kind: str, content: object) -> None:
    with Chain(ledger.path).writing() as transaction:
        transaction.read()
        transaction.append(kind, content)


def test_a_run_says_what_it_was_about(ledger: dpf.Ledger) -> None:
    ran(ledger, study_of(ill="0.5", smokes="0.25"), study="yearly", by="B. Okafor", purpose="the report")
    (run,) = ledger.data_set("people").runs.values()
    assert (run.subject.study, run.subject.by, run.subject.purpose) == ("yearly", "B. Okafor", "the report")
    assert [(one.name, one.miner, one.attributes, one.epsilon) for one in run.subject.results] == [
        ("by ill", "histogram", ("ill",), Fraction(1, 2)),
        ("by smokes", "histogram", ("smokes",), Fraction(1, 4)),
    ]
    assert run.subject.attributes == ("ill", "smokes")
    assert (run.to_dict()["study"], run.to_dict()["approved_by"]) == ("yearly", "the board")
    ledger.verify()


def test_a_run_that_says_nothing_is_recorded_too(ledger: dpf.Ledger) -> None:
    ran(ledger, study_of(ill="0.5"))
    (run,) = ledger.data_set("people").runs.values()
    assert (run.subject.study, run.subject.by, run.subject.purpose) == ("", "", "")
    assert run.subject.result_names == ("by ill",)


def test_what_a_run_says_is_one_line(ledger: dpf.Ledger) -> None:
    for what in ("study", "by", "purpose"):
        with pytest.raises(dpf.InputError, match="a text of one line is needed"):
            ledger.run("people", **{what: "two\nlines"})


def test_a_run_of_an_older_dpframework_is_read_without_what_it_did_not_say(ledger: dpf.Ledger) -> None:
    study = study_of(ill="0.5")
    ledger.approve("people", study.plan(), by="the board")
    amount = ledger.data_set("people").require_fit(study.plan()).to_dict()
    old = {"run": "0123", "data_set": "people", "plan": study.plan().hash, "amount": amount, "dpframework": "0.1"}
    forge(ledger, "run", old)
    ledger.verify()
    data_set = ledger.data_set("people")
    assert data_set.runs["0123"].subject.results is None
    assert [(one.name, one.epsilon) for one in group_runs(data_set, GroupBy.ATTRIBUTE)] == [
        ("not recorded", Fraction(1, 2))
    ]


def test_the_audit_sees_results_that_are_not_those_of_the_plan(ledger: dpf.Ledger) -> None:
    study = study_of(ill="0.5")
    ledger.approve("people", study.plan(), by="the board")
    amount = ledger.data_set("people").require_fit(study.plan()).to_dict()
    told = [{"name": "by ill", "miner": "histogram", "attributes": ["smokes"], "epsilon": "1/2"}]
    false = {"run": "0123", "data_set": "people", "plan": study.plan().hash, "amount": amount, "dpframework": "0.1"}
    forge(ledger, "run", {**false, "results": told})
    with pytest.raises(LedgerTampered, match="its results are not the results of its plan"):
        ledger.verify()


def test_spending_adds_up_by_person_month_and_attribute(ledger: dpf.Ledger) -> None:
    ran(ledger, study_of(ill="0.5", smokes="0.25"), by="B. Okafor", purpose="pilot")
    ran(ledger, study_of(ill="0.25"), runs=2, by="A. Nyman")
    data_set = ledger.data_set("people")
    assert [(one.name, one.epsilon, one.runs) for one in group_runs(data_set, GroupBy.PERSON)] == [
        ("B. Okafor", Fraction(3, 4), 1),
        ("A. Nyman", Fraction(1, 2), 2),
    ]
    assert [(one.name, one.epsilon) for one in group_runs(data_set, GroupBy.ATTRIBUTE)] == [
        ("ill", Fraction(1)),
        ("smokes", Fraction(1, 4)),
    ]
    (month,) = group_runs(data_set, GroupBy.MONTH)
    assert (month.name, month.epsilon, month.runs) == (next(iter(data_set.runs.values())).time[:7], Fraction(5, 4), 3)
    assert (month.people, month.purposes) == (("B. Okafor", "A. Nyman"), ("pilot",))


def test_runs_without_a_pure_epsilon_cost_their_share_of_the_total(tmp_path: Path) -> None:
    ledger = dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=2, delta="1e-6")
    study = dpf.Study(SCHEMA, epsilon=2, delta="1e-6")
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), Gaussian("0.01")))
    ran(ledger, study, runs=2, by="A")
    data_set = ledger.data_set("people")
    for by in GroupBy:
        (group,) = group_runs(data_set, by)
        assert (by is not GroupBy.ATTRIBUTE) or group.name == "no attribute"
        assert group.epsilon == data_set.spent.epsilon


def test_a_private_release_outside_is_charged_to_the_cap(ledger: dpf.Ledger) -> None:
    ledger.record_outside("people", "a pilot", kind="private", by="the board", epsilon="0.5", attributes=["ill"])
    data_set = ledger.data_set("people")
    assert (data_set.spent.epsilon, data_set.left) == (Fraction(1, 2), Fraction(3, 2))
    assert data_set.outside[0].effect == "it adds epsilon 0.5 to the losses of all runs"
    with pytest.raises(dpf.PlanRefused, match="over the cap"):
        ledger.approve("people", study_of(ill="1.500001").plan(), by="b")
    ledger.approve("people", study_of(ill="1.5").plan(), by="b")
    ledger.verify()


def test_deltas_of_releases_outside_add_up_and_the_cap_holds_for_both(tmp_path: Path) -> None:
    ledger = dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=2, delta="1e-6")
    for _ in range(2):
        ledger.record_outside("people", "a pilot", kind="private", by="b", epsilon="0.5", delta="4e-7")
    assert ledger.data_set("people").spent == dpf.PrivacyLoss(1, delta=Fraction(8, 10**7))
    ledger.approve("people", study_of(ill="1").plan(), by="b")
    ledger.record_outside("people", "one more", kind="private", by="b", epsilon="0.1", delta="4e-7")
    assert ledger.data_set("people").left == 0
    with pytest.raises(dpf.PlanRefused, match="total delta"):
        ledger.approve("people", study_of(smokes="0.1").plan(), by="b")


def test_noise_is_converted_at_the_delta_that_releases_outside_leave(tmp_path: Path) -> None:
    study = dpf.Study(SCHEMA, epsilon=3, delta="1e-6")
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), Gaussian("0.01")))
    spent = {}
    for name, outside, delta in (("before", "8e-7", "1e-6"), ("without", "0", "2e-7"), ("all of it", "1e-6", "1e-6")):
        ledger = dpf.Ledger.create(tmp_path / name)
        ledger.open("people", epsilon=3, delta=delta)
        ledger.record_outside("people", "a pilot", kind="private", by="b", epsilon="0.5", delta=outside)
        if name == "all of it":
            with pytest.raises(dpf.PlanRefused, match="no finite total"):
                ledger.approve("people", study.plan(), by="b")
            continue
        ran(ledger, study)
        spent[name] = ledger.data_set("people").spent
    assert spent["before"].epsilon == spent["without"].epsilon < 3
    assert (spent["before"].delta, spent["without"].delta) == (Fraction(1, 10**6), Fraction(2, 10**7))


@pytest.mark.parametrize(("reserve", "total"), [("0", 14), ("3e-7", 11), ("5e-7", 10)])
def test_a_delta_outside_after_the_order_was_fixed_is_taken_from_the_reserve(
    tmp_path: Path, reserve: str, total: int
) -> None:
    ledger = dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=3, delta="1e-6", reserve=reserve)
    study = dpf.Study(SCHEMA, epsilon=3, delta="1e-6")
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), Gaussian("0.01")))
    ran(ledger, study)
    ledger.record_outside("people", "a pilot", kind="private", by="b", epsilon="0.5", delta="4e-7")
    data_set = ledger.data_set("people")
    assert data_set.spent.delta == Fraction(total, 10**7)
    assert (data_set.left > 0) == (total == 10)
    ledger.verify()


def test_a_release_outside_after_the_order_was_fixed_is_charged_at_that_order(tmp_path: Path) -> None:
    ledger = dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=3, delta="1e-6")
    study = dpf.Study(SCHEMA, epsilon=3, delta="1e-6")
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), Gaussian("0.01")))
    ran(ledger, study)
    before = ledger.data_set("people").spent.epsilon
    ledger.record_outside("people", "a pilot", kind="private", by="b", epsilon="0.5")
    assert ledger.data_set("people").spent.epsilon == before + Fraction(1, 2)
    ledger.verify()


def test_a_release_above_the_cap_is_recorded_since_it_happened(ledger: dpf.Ledger) -> None:
    ledger.record_outside("people", "a pilot", kind="private", by="b", epsilon=5)
    assert (ledger.data_set("people").spent.epsilon, ledger.data_set("people").left) == (5, 0)
    assert remainder(ledger.data_set("people")) == ["nothing is left: no plan fits any more"]
    ledger.verify()


def test_what_no_epsilon_covers_is_charged_nothing_and_said(ledger: dpf.Ledger) -> None:
    ledger.record_outside("people", "table 3", kind="exact", by="b", attributes=["ill"])
    ledger.record_outside("people", "a look at the ages", kind=OutsideKind.LOOK, by="b")
    data_set = ledger.data_set("people")
    assert data_set.spent.epsilon == 0
    exact, look = data_set.outside
    assert exact.effect == "no epsilon covers what it shows of ill: the claim bounds what else can be learned"
    assert look.effect.startswith("no epsilon covers what choices made after this look show of the rows")
    assert not exact.covered


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"kind": "secret"}, "kind 'secret' is unknown"),
        ({"kind": "exact", "epsilon": 1}, "has no epsilon or delta"),
        ({"kind": "look", "delta": "0.1"}, "has no epsilon or delta"),
        ({"kind": "private"}, "needs its epsilon"),
        ({"kind": "private", "epsilon": 0}, "epsilon"),
        ({"kind": "private", "epsilon": 1, "delta": 1}, "below 1"),
        ({"kind": "exact", "attributes": "ill"}, "give a list of names"),
        ({"kind": "exact", "by": " "}, "a text of one line is needed"),
    ],
)
def test_a_wrong_release_outside_is_one_sentence_and_writes_nothing(
    ledger: dpf.Ledger, options: dict[str, object], why: str
) -> None:
    head = ledger.records().head
    with pytest.raises(dpf.InputError, match=why):
        ledger.record_outside("people", "it", **{"by": "b", **options})
    assert ledger.records().head == head


def test_the_audit_sees_a_release_outside_that_was_charged_otherwise(ledger: dpf.Ledger) -> None:
    told = {"data_set": "people", "what": "it", "kind": "private", "by": "b", "attributes": [], "delta": "0"}
    less = {"pure": {"add-or-remove-one": "1/4", "replace-one": "1/4"}}
    forge(ledger, "outside", {**told, "epsilon": "1/2", "amount": less})
    with pytest.raises(LedgerTampered, match="not the epsilon of its release"):
        ledger.verify()


def test_the_rest_buys_a_count_and_further_runs(ledger: dpf.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(ledger, study_of(ill="0.5"), study="yearly")
    left = remainder(ledger.data_set("people"))
    plan = study_of(ill="0.5").plan()
    assert left[1] == f"3 further runs of 'yearly' (plan {plan.hash[:12]})"
    with monkeypatch.context() as patch:
        patch.setattr(spending_by_group_and_remainder, "MOST_RUNS", 2)  # the count ends there
        assert remainder(ledger.data_set("people"))[1].startswith("at least 2 further runs of 'yearly'")
    noise = dpf.step("n", dpf.queries.Count(), DiscreteLaplace("1.5"))
    study = dpf.Study(SCHEMA, epsilon=2)
    study.add_plan("n", noise)
    within = study.plan().previews()["n/n"].within
    assert left[0] == f"one count of rows within ±{within:.0f} (95 %), and nothing after it"


def test_the_commands_answer_by_person_month_and_attribute(
    ledger: dpf.Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(ledger, study_of(ill="0.5", smokes="0.25"), study="yearly", by="B. Okafor", purpose="pilot")
    file = str(ledger.path)
    assert main(["ledger", "outside", file, "table 3", "--data-set", "people", "--kind", "exact", "--by", "b"]) == 0
    assert "recorded: no epsilon covers what it shows" in capsys.readouterr().out
    for key, shown in (("person", "B. Okafor"), ("attribute", "smokes"), ("month", "20")):
        assert main(["ledger", "show", file, "--data-set", "people", "--group-by", key]) == 0
        printed = capsys.readouterr().out
        assert f"runs by {key}" in printed
        assert shown in printed
        assert "no claim covers 1 exact release outside this ledger" in printed
    assert main(["ledger", "show", file, "--data-set", "people", "--group-by", "day"]) == 2
    assert main(["ledger", "show", file, "--group-by", "month"]) == 2
    capsys.readouterr()
    assert main(["ledger", "show", file, "--json"]) == 0
    (form,) = json.loads(capsys.readouterr().out)["data_sets"]
    assert form["by"]["attribute"][0]["name"] == "ill"
    assert form["outside"][0]["what"] == "table 3"
    assert main(["ledger", "show", file, "--out", str(tmp_path / "l.html")]) == 0
    page = (tmp_path / "l.html").read_text()
    for text in ("Spent by attribute", "Spent by person", "Spent by month", "B. Okafor", "pilot", "table 3", "yearly"):
        assert text in page


def test_revoke_says_that_it_revoked(ledger: dpf.Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    plan = study_of(ill="0.5").plan()
    ledger.approve("people", plan, by="b")
    assert main(["ledger", "revoke", str(ledger.path), plan.hash[:12], "--data-set", "people", "--by", "b"]) == 0
    assert capsys.readouterr().out.startswith(f"revoked: plan {plan.hash}; no run of it can begin, resume or make")


@pytest.mark.parametrize("relation", dpf.Relation)
def test_a_run_that_was_refused_adds_nothing_to_its_attributes(relation: dpf.Relation) -> None:
    """The attribute's own releases cost less than the runs that they are in, so that they are what is charged."""
    half, nothing = ByRelation(Fraction(1, 2), Fraction(1, 2)), ByRelation(Fraction(0), Fraction(0))
    results = (
        RecordedResult("ill", "histogram", ("ill",), Fraction(1, 10)),
        RecordedResult("smokes", "histogram", ("smokes",), Fraction(2, 5)),
    )
    subject = SimpleNamespace(results=results, purpose="", by="")
    other = SimpleNamespace(results=[attrs.evolve(one, epsilon=Fraction(1, 4)) for one in results], purpose="", by="")
    charged = SimpleNamespace(id="1", amount=PlanCharge(half), subject=subject)
    refused = SimpleNamespace(id="2", amount=PlanCharge(nothing), subject=other)
    held: Any = SimpleNamespace(
        relation=relation,
        epsilon=Fraction(5),
        delta=Fraction(0),
        reserve=Fraction(0),
        runs={"1": charged, "2": refused},
    )
    found = [(group.name, group.runs, group.epsilon) for group in group_runs(held, GroupBy.ATTRIBUTE)]
    assert found == [("smokes", 2, Fraction(2, 5)), ("ill", 2, Fraction(1, 10))]


@pytest.mark.parametrize("relation", dpf.Relation)
def test_a_run_that_was_refused_adds_nothing_to_runs_at_an_order(relation: dpf.Relation) -> None:
    """It has no order, and a budget at one takes no charge at none."""
    tenth, nothing = ByRelation(Fraction(1, 10), Fraction(1, 10)), ByRelation(Fraction(0), Fraction(0))
    charged = SimpleNamespace(amount=PlanCharge(tenth, tenth, Fraction(8)))
    refused = SimpleNamespace(amount=PlanCharge(nothing))
    capped: Any = SimpleNamespace(relation=relation, epsilon=Fraction(5), delta=Fraction(1, 10**6), reserve=Fraction(0))
    one, two = (_cost(capped, [charged] * number) for number in (1, 2))  # type: ignore[list-item]
    assert one is not None
    assert two is not None
    assert 0 < one < two
    for runs in ([refused, charged], [charged, refused], [refused, charged, refused]):
        assert _cost(capped, runs) == one  # type: ignore[arg-type]
    assert _cost(capped, [charged, refused, charged]) == two  # type: ignore[list-item]


def keys_and_gaussian(delta: str) -> dpf.Study:
    """Return a study of a release with a delta of its own, and of one that is charged in Renyi divergence."""
    study = dpf.Study(dpf.Schema([dpf.Open("town")]), epsilon=2, delta="1e-6")
    study.add("towns", dpf.miner("keys", attribute="town", epsilon="0.5", delta=delta))
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), Gaussian("0.001")))
    return study


def test_a_ledger_is_shown_whose_rest_has_no_delta_for_another_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=9, delta="1e-6", reserve="1e-7")
    study = keys_and_gaussian("1e-7")
    ledger.approve("people", study.plan(), by="the board", runs=2)
    rows = dpf.table_from_columns({"town": ["Oslo"] * 9}, study.schema)
    for further in ("1 further run of plan", "no further run of plan"):
        study.run(rows, ledger=ledger.run("people"))
        data_set = ledger.data_set("people")
        assert remainder(data_set)[1].startswith(further)
        assert group_runs(data_set, GroupBy.PERSON)[0].epsilon == data_set.spent.epsilon
        assert main(["ledger", "show", str(tmp_path / "l"), "--data-set", "people"]) == 0
        assert further in capsys.readouterr().out


def test_the_rest_of_a_history_is_not_spent_on_one_period(tmp_path: Path) -> None:
    ledger = dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon="0.5", history=6, unit=dpf.PrivacyUnit("pid", 1, period="month", date="day"))
    within = DiscreteLaplace("0.5").calibrate(dpf.step("n", dpf.queries.Count(), DiscreteLaplace("0.5")).facts,
                                              ledger.data_set("people").relation).preview.within  # fmt: skip
    (line,) = remainder(ledger.data_set("people"))
    error = f"within ±{within:.0f} (95 %)"
    assert line == f"one count of the rows of a new month {error}, and nothing after it in that period"


def test_how_often_a_plan_fits_is_unknown_once_it_would_be_charged_otherwise(tmp_path: Path) -> None:
    """It was charged its epsilon. A new run is charged at the order that a later plan fixed, which needs the plan."""
    ledger = dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=12, delta="1e-6", reserve="1e-7")
    schema = dpf.Schema([dpf.Boolean("ill")])
    rows = dpf.table_from_columns({"ill": [True, False]}, schema)
    for mechanism in (DiscreteLaplace(6), Gaussian("0.001")):
        study = dpf.Study(schema, epsilon=12, delta="1e-6")
        study.add_plan("n", dpf.step("n", dpf.queries.Count(), mechanism))
        ledger.approve("people", study.plan(), by="the board")
        study.run(rows, ledger=ledger.run("people"))
    _, first, second = remainder(ledger.data_set("people"))
    assert first.startswith("an unknown number of further runs of plan")
    assert re.match(r"\d+ further runs of plan", second)
