"""The ledger: caps that hold, approvals that bind, charges that last, tampering that shows, runs that go on."""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import json
import multiprocessing
import shutil
import sqlite3
import threading
from fractions import Fraction
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays
from people import TREE_STUDY

import dpframework as dpf
from dpframework.accountant import zcdp_to_epsilon
from dpframework.cli import main
from dpframework.cli.run import write_outputs
from dpframework.facts import fork_detection
from dpframework.facts.output_formats_times_and_csv import clock_text
from dpframework.ledger import entry_hash_chain, sqlite_connection
from dpframework.ledger.entry_hash_chain import Chain
from dpframework.ledger.journal_key_file import journal_key, key_place
from dpframework.ledger.ledger import Ledger
from dpframework.ledger.release_codec import fingerprint, from_json, to_json
from dpframework.ledger.release_journal import Journal, RunJournal, seal
from dpframework.mechanisms import DiscreteLaplace, Gaussian, PartitionSelection, PermuteAndFlip

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])])
OTHER = dpf.Schema([dpf.Boolean("ill")])
RNG = np.random.default_rng(5)
TABLE = dpf.Table.from_codes(SCHEMA, np.array([RNG.integers(0, 2, 300), RNG.integers(0, 3, 300)]))


def never() -> dpf.Table:
    raise AssertionError("the table was read")


def count(epsilon="1", name="n") -> dpf.Node:
    return dpf.step(name, dpf.queries.Count(), DiscreteLaplace(epsilon))


@attrs.frozen
class Does(dpf.Miner):
    """Does what it is told, when it is told."""

    name = "does"
    node: object
    do: object = lambda table: None

    def plan(self, schema):
        return self.node

    def mine(self, table):
        return self.do(table)


def by_town() -> dpf.Node:
    """A count, a town chosen, and a count of the ill in each part of a partition."""
    histogram = dpf.queries.Histogram(SCHEMA["town"])
    ill = dpf.step("ill", dpf.queries.Histogram(SCHEMA["ill"]), DiscreteLaplace("0.5"))
    parts = dpf.parallel(ill, by=dpf.FromRelease("town"))
    return dpf.sequential(count("0.25"), dpf.step("town", histogram, PermuteAndFlip("0.25")), parts)


def mine_by_town(table, stop_after=99):
    made = [table.release("n"), table.release("town")]
    for part in table.partition(dpf.Equals("town", made[1])):
        if len(made) >= stop_after:
            raise KeyboardInterrupt
        made.append(part.release("ill"))
    return made


def study_of(node=None, do=None, *, epsilon=1, schema=SCHEMA, **options) -> dpf.Study:
    study = dpf.Study(schema, epsilon=epsilon, **options)
    study.add("m", Does(by_town() if node is None else node, mine_by_town if do is None else do))
    return study


def entries(ledger):
    with entry_hash_chain.Chain(ledger.path).reading() as transaction:
        return transaction.read()


def kinds(ledger):
    return [entry.kind for entry in entries(ledger)]


# --- caps -----------------------------------------------------------------------------------------------------------

AMOUNTS = st.fractions(Fraction(1, 100), 2, max_denominator=100)


@settings(max_examples=15)
@given(amounts=st.lists(AMOUNTS, max_size=6), cap=st.fractions(Fraction(1, 2), 4, max_denominator=7))
def test_runs_fit_exactly_while_their_sum_is_within_the_cap(tmp_path_factory, amounts, cap):
    ledger = Ledger.create(tmp_path_factory.mktemp("l") / "l.ledger")
    ledger.open("people", epsilon=cap)
    spent = Fraction(0)
    for amount in amounts:
        study = study_of(count(amount), lambda table: table.release("n"), epsilon=2)
        if spent + amount > cap:
            with pytest.raises(dpf.PlanRefused, match="over the cap"):
                ledger.approve("people", study.plan(), by="b")
            with pytest.raises(dpf.PlanRefused):
                study.run(never, ledger=ledger.run("people"))
        else:
            ledger.approve("people", study.plan(), by="b")
            study.run(TABLE, ledger=ledger.run("people"))
            spent += amount
        assert ledger.data_set("people").spent.epsilon == spent
        assert ledger.data_set("people").left == cap - spent
    ledger.verify()


def test_a_tenth_and_two_tenths_fit_in_three_tenths(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=0.3)
    for epsilon in (0.1, 0.2):
        study = study_of(count(epsilon), lambda table: table.release("n"))
        ledger.approve("people", study.plan(), by="b")
        study.run(TABLE, ledger=ledger.run("people"))
    assert ledger.data_set("people").left == 0


def opened(tmp_path, epsilon, **options) -> Ledger:
    ledger = Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=epsilon, **options)
    return ledger


def spend(ledger, node, *, table=TABLE, schema=SCHEMA, **options) -> bool:
    """Approve a plan of one step and run it, if it fits the cap."""
    study = study_of(node, lambda t: t.release("n"), schema=schema, epsilon=9, **options)
    try:
        ledger.approve("people", study.plan(), by="b")
    except dpf.PlanRefused as error:
        if "over the cap" not in str(error):
            raise
        return False
    study.run(table, ledger=ledger.run("people"))
    return True


@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one"])
def test_with_delta_whatever_zcdp_has_room_for_fits(tmp_path, relation):
    schema = dpf.Schema(SCHEMA.attributes, rows=300)
    ledger = opened(tmp_path, 1, delta="1e-6", relation=relation)
    rows = dpf.Table.from_codes(schema, TABLE.codes)
    steps = [
        dpf.step("n", dpf.queries.Histogram(schema["ill"]), Gaussian("0.001") if k % 2 else DiscreteLaplace("0.05"))
        for k in range(26)
    ]
    fitted = [spend(ledger, one, table=rows, schema=schema, delta="1e-6", relation=relation) for one in steps].count(
        True
    )
    together = [
        study_of(dpf.sequential(*steps[:k]), schema=schema, delta="1e-6", relation=relation).plan().totals()["zcdp"]
        for k in (fitted, fitted + 1)
    ]
    assert together[0].epsilon <= 1 < together[1].epsilon
    assert fitted == 21
    ledger.verify()


def selected(epsilon="0.5", delta="1e-7") -> dpf.Node:
    return dpf.step("n", dpf.queries.Count(), PartitionSelection(epsilon, delta))


def test_exact_deltas_are_charged_and_the_reserve_is_all_that_is_left_for_them(tmp_path):
    gaussian = dpf.step("n", dpf.queries.Count(), Gaussian("0.01"))
    ledger = opened(tmp_path, 5, delta="1e-6", reserve="2e-7")
    assert spend(ledger, selected(), delta="1e-6")
    assert ledger.data_set("people").spent == dpf.PrivacyLoss("0.5", delta="1e-7")
    assert spend(ledger, gaussian, delta="1e-6")
    people = ledger.data_set("people")
    assert people.budget.converted == Fraction("7e-7")
    assert people.spent.delta == Fraction("1e-6")
    assert all(spend(ledger, selected(), delta="1e-6") for _ in range(2))
    with pytest.raises(dpf.PlanRefused, match=r"the plan's releases have a delta of 0[.]0000001 of their own"):
        spend(ledger, selected(), delta="1e-6")
    assert spend(ledger, count("0.25"), delta="1e-6")
    ledger.verify()
    again = Ledger(ledger.path).data_set("people")
    assert again.budget == ledger.data_set("people").budget
    assert again.to_dict()["cap"] == {"epsilon": "5", "delta": "1/1000000", "reserve": "1/5000000"}
    assert [run["amount"].get("delta", {}).get("replace-one") for run in again.to_dict()["runs"]] == [
        "1/10000000", None, "1/10000000", "1/10000000", None,
    ]  # fmt: skip


def test_without_a_reserve_no_exact_delta_comes_after_the_order(tmp_path):
    ledger = opened(tmp_path, 5, delta="1e-6")
    assert spend(ledger, dpf.step("n", dpf.queries.Count(), Gaussian("0.01")), delta="1e-6")
    with pytest.raises(dpf.PlanRefused, match=r"and 0.0 is left for exact deltas"):
        spend(ledger, selected(), delta="1e-6")
    without = Ledger.create(tmp_path / "pure")
    without.open("people", epsilon=5)
    with pytest.raises(dpf.PlanRefused, match=r"and 0.0 is left for exact deltas"):
        spend(without, selected(), delta="1e-6")


def test_a_delta_that_is_not_its_plans_shows(tmp_path, monkeypatch):
    brought = SimpleNamespace(mechanisms={"partition-selection": SimpleNamespace(component=PartitionSelection)})
    monkeypatch.setattr("dpframework.ledger.ledger_audit.registry", lambda: brought)
    ledger = opened(tmp_path, 5, delta="1e-6")
    assert spend(ledger, selected(), delta="1e-6")
    ledger.verify()
    smaller = {"delta": {"add-or-remove-one": "1/1000000000", "replace-one": "1/1000000000"}}
    forged(
        ledger, kinds(ledger).index("run") + 1, lambda content: {**content, "amount": {**content["amount"], **smaller}}
    )
    with pytest.raises(dpf.LedgerTampered, match="not the total of its plan"):
        ledger.verify()


def test_a_delta_takes_nothing_from_pure_plans(tmp_path):
    ledger = opened(tmp_path, 5, delta="1e-6")
    for spent in range(1, 6):
        assert spend(ledger, count(1))
        assert ledger.data_set("people").spent == dpf.PrivacyLoss(epsilon=spent)
    assert not spend(ledger, count("0.001"))
    ledger.verify()


def test_pure_plans_and_plans_in_zcdp_share_a_cap(tmp_path):
    ledger = opened(tmp_path, 5, delta="1e-6")
    assert all(spend(ledger, count(1)) for _ in range(3))
    assert spend(ledger, dpf.step("n", dpf.queries.Count(), Gaussian("0.04")), delta="1e-6")
    people = ledger.data_set("people")
    assert float(zcdp_to_epsilon(Fraction("0.04"), Fraction("1e-6"))) == pytest.approx(1.305, abs=0.001)
    assert float(people.spent.epsilon) == pytest.approx(4.41, abs=0.01)  # the order leaves the most room, of 2, for rho
    assert spend(ledger, count("0.5"))
    assert float(people.left - ledger.data_set("people").left) == pytest.approx(0.5)
    assert not spend(ledger, count("0.5"))
    ledger.verify()
    runs = ledger.data_set("people").to_dict()["runs"]
    assert ["rdp" in run["amount"] for run in runs] == [False] * 3 + [True] * 2


def test_a_plan_of_both_kinds_fits_a_cap_of_its_own_total(tmp_path):
    node = dpf.sequential(
        dpf.step("n", dpf.queries.Count(), DiscreteLaplace("0.7")),
        dpf.step("g", dpf.queries.Count(), Gaussian("0.02998")),
    )
    plan = study_of(node, delta="1e-6", epsilon=2).plan()
    assert float(plan.totals()["rdp"].epsilon) == pytest.approx(1.818, abs=1e-3)
    assert spend(opened(tmp_path, "1.819", delta="1e-6"), node, delta="1e-6")


def test_a_run_is_charged_its_whole_plan_whatever_it_releases(ledger):
    study = study_of(dpf.repeat(4, count("0.25")), lambda table: table.release("n"))
    ledger.approve("people", study.plan(), by="b")
    results = study.run(TABLE, ledger=ledger.run("people"))
    assert results.spent.epsilon == Fraction(1, 4)
    people = ledger.data_set("people")
    assert people.spent.epsilon == 1
    (run,) = people.runs.values()
    assert (run.id, run.end, run.charges) == (results.run, "finished", ["m/n"])
    assert entries(ledger)[-1].content["releases"] == 1
    assert results.to_dict()["run"] == run.id
    assert results.plan.hash == run.plan == results.to_dict()["plan"]


# --- refused before anything is read --------------------------------------------------------------------------------


def test_what_may_not_be_run_reads_nothing_and_charges_nothing(ledger, journal):
    approved, other = study_of(), study_of(epsilon=2)  # of another hash by its budget alone
    ledger.approve("people", approved.plan(), by="the board", runs=2)
    before = ledger.records().head
    gaussian = study_of(dpf.step("n", dpf.queries.Count(), Gaussian("0.01")), delta="1e-6", epsilon=9)
    refused = [
        (other, {}, dpf.PlanRefused, "is not approved"),
        (study_of(relation="replace-one"), {}, dpf.PlanRefused, "is not approved"),
        (gaussian, {}, dpf.PlanRefused, "is not approved"),
        (approved, {"seed": 1}, dpf.InputError, "a seeded run is not private"),
    ]
    for study, options, error, text in refused:
        with pytest.raises(error, match=text) as caught:
            study.run(never, ledger=ledger.run("people", journal=journal), **options)
        assert "\n" not in str(caught.value)
    with pytest.raises(dpf.InputError, match=r"no data set is named 'peple'.*did you mean 'people'"):
        approved.run(never, ledger=ledger.run("peple"))
    assert ledger.records().head == before
    assert not journal.exists()


def test_a_journal_of_no_run_goes_when_a_plan_is_refused(ledger, journal):
    """A process that was killed before it charged anything leaves such a journal."""
    Journal(journal, journal_key(Chain(ledger.path), make=True)).close()
    with pytest.raises(dpf.PlanRefused, match="is not approved"):
        study_of().run(never, ledger=ledger.run("people", journal=journal))
    assert not journal.exists()


def test_what_cannot_be_approved(ledger):
    ledger.open("strict", epsilon=1, schema=OTHER)
    plan = study_of().plan()
    gaussian = study_of(dpf.step("n", dpf.queries.Count(), Gaussian("0.01")), delta="1e-6", epsilon=9).plan()
    for name, refused, text in (
        ("people", study_of(relation="replace-one").plan(), "the cap of data set 'people' under add-or-remove-one"),
        ("people", study_of(epsilon="0.5").plan(), "DP001"),
        ("people", gaussian, "no finite total in pure accounting"),
        ("strict", plan, "another schema"),
    ):
        with pytest.raises(dpf.PlanRefused, match=text):
            ledger.approve(name, refused, by="b")
    for options, text in (
        ({"by": " "}, "a text of one line"),
        ({"by": "a\nb"}, "a text of one line"),
        ({"by": "b", "runs": 0}, "positive whole number"),
        ({"by": "b", "runs": True}, "positive whole number"),
        ({"by": "b", "note": "x\ny"}, "a text of one line"),
    ):
        with pytest.raises(dpf.InputError, match=text):
            ledger.approve("people", plan, **options)
    assert kinds(ledger) == ["ledger", "data set", "data set"]


def test_a_data_set_that_cannot_be_opened(ledger):
    for name, options, text in (
        ("people", {"epsilon": 9}, "has a data set named 'people'; its cap is fixed"),
        ("x", {"epsilon": 0}, "epsilon is 0"),
        ("x", {"epsilon": 1, "delta": 1}, "delta is 1"),
        (
            "x",
            {"epsilon": 1, "delta": "1e-6", "reserve": "1e-5"},
            "so it must be at most 0.000001",
        ),
        ("x", {"epsilon": 1, "relation": "bounded"}, "relation 'bounded' is unknown"),
        ("", {"epsilon": 1}, "a text of one line"),
        ("people\ufe0f", {"epsilon": 1}, "holds a character that is invisible"),
        ("people ", {"epsilon": 1}, "'people ' reads like 'people', which is another name"),
    ):
        with pytest.raises(dpf.InputError, match=text):
            ledger.open(name, **options)
    assert kinds(ledger) == ["ledger", "data set"]


@pytest.mark.parametrize(("first", "second"), [("caf\u00e9", "cafe\u0301"), ("ward  3", "ward\u00a03"), ("ﬁt", "fit")])
def test_no_two_data_sets_read_alike_so_that_one_budget_is_not_taken_for_two(ledger, first, second):
    ledger.open(first, epsilon=1)
    with pytest.raises(dpf.InputError, match=r"a text of one line|reads like"):
        ledger.open(second, epsilon=1)
    ledger.open("Ward 3", epsilon=1)


def test_nobody_approves_under_a_name_with_a_character_that_is_not_seen(ledger):
    with pytest.raises(dpf.InputError, match=r"by is 'the board.ufe0f', which holds a character that is invisible"):
        ledger.approve("people", study_of().plan(), by="the board\ufe0f")


def test_an_approval_is_for_so_many_runs_and_can_be_taken_back(ledger):
    study = study_of()
    plan = study.plan()
    ledger.approve("people", plan, by="b", runs=2)
    for _ in range(2):
        study.run(TABLE, ledger=ledger.run("people"))
    with pytest.raises(dpf.PlanRefused, match="approved for 2 runs, which were opened before"):
        study.run(never, ledger=ledger.run("people"))
    ledger.approve("people", plan, by="b")
    ledger.revoke("people", plan.hash[:10], by="the owner")
    with pytest.raises(dpf.PlanRefused, match="no longer approved; the owner revoked the approval"):
        study.run(never, ledger=ledger.run("people"))
    with pytest.raises(dpf.InputError, match="no approved plan"):
        ledger.revoke("people", plan.hash, by="the owner")
    assert kinds(ledger).count("plan") == 1
    ledger.approve("people", plan, by="b")
    study.run(TABLE, ledger=ledger.run("people"))
    with pytest.raises(dpf.PlanRefused, match="was approved for 4 runs, which were opened before"):
        study.run(never, ledger=ledger.run("people"))
    ledger.verify()


def test_a_plan_read_from_its_file_is_the_plan_that_was_approved(ledger):
    study = study_of()
    ledger.approve("people", dpf.StudyPlan.from_json(study.plan().to_json()), by="b")
    assert study.run(TABLE, ledger=ledger.run("people")).private
    stored = ledger.data_set("people").plans[study.plan().hash]
    assert dpf.StudyPlan.from_json(json.dumps(stored)) == study.plan()


def test_a_table_that_cannot_be_read_charges_nothing(ledger, journal):
    study = study_of()
    ledger.approve("people", study.plan(), by="b")

    def missing():
        return dpf.read_table("people.csv", study.schema)  # there is no such file

    for table in (missing, dpf.Table.from_codes(OTHER, [[0]])):
        with pytest.raises(dpf.InputError):
            study.run(table, ledger=ledger.run("people", journal=journal))
    assert ledger.data_set("people").left == 3
    assert not journal.exists()
    study.run(TABLE, ledger=ledger.run("people", journal=journal))


@pytest.mark.parametrize("loaded", [3, dpf.Table.from_codes(OTHER, [[0]])])
def test_what_was_read_and_is_not_the_table_of_the_study_ends_the_run(ledger, journal, loaded):
    """Else the run would stay unfinished, and could read rows again and again under one approval."""
    ledger.approve("people", study_of().plan(), by="b")
    run = ledger.run("people", journal=journal)
    with pytest.raises(dpf.InputError):
        study_of().run(lambda: loaded, ledger=run)
    people = ledger.data_set("people")
    assert not run.unfinished
    assert people.runs[run.id].end == "refused: table cannot be read"
    assert [one.left for one in people.approvals] == [0]
    assert not journal.exists()


def test_a_table_in_memory_that_does_not_fit_uses_up_the_approval(ledger, journal):
    """Whether its rows fit depends on them, and nothing but the number of approved runs bounds what that reveals."""
    schema = dpf.Schema([dpf.Boolean("ill")], max_rows=5)
    study = study_of(count(), lambda table: table.release("n"), schema=schema)
    ledger.approve("people", study.plan(), by="b")
    run = ledger.run("people", journal=journal)
    with pytest.raises(dpf.InputError, match="max_rows"):
        study.run(dpf.Table.from_codes(schema, [[0] * 9]), ledger=run)
    people = ledger.data_set("people")
    assert [one.left for one in people.approvals] == [0]
    assert people.runs[run.id].end.startswith("refused: ")
    assert not run.unfinished
    assert not journal.exists()
    with pytest.raises(dpf.PlanRefused, match="approved for 1 run"):
        study.run(never, ledger=ledger.run("people", journal=journal))


def test_each_reading_of_an_interrupted_run_is_recorded(ledger, journal):
    """The rows that are read may decide how a run ends, so that its owner has to see how often it was begun."""

    def interrupted():
        raise KeyboardInterrupt

    ledger.approve("people", study_of().plan(), by="b")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            study_of().run(interrupted, ledger=ledger.run("people", journal=journal))
    study_of().run(lambda: TABLE, ledger=ledger.run("people", journal=journal))
    begun = [kind for kind in kinds(ledger) if kind in ("reading", "resumption", "run")]
    assert begun == ["reading", "resumption", "resumption", "run"]


# --- charges --------------------------------------------------------------------------------------------------------


def test_each_charge_is_recorded_before_its_release_is_drawn(ledger, monkeypatch):
    drawn = []
    release = DiscreteLaplace.release_many

    def spied(self, *arguments):
        drawn.append(kinds(ledger).count("charge"))
        return release(self, *arguments)

    monkeypatch.setattr(DiscreteLaplace, "release_many", spied)
    study = study_of(dpf.repeat(3, count("0.1")), lambda t: [t.release("n") for _ in range(3)])
    ledger.approve("people", study.plan(), by="b")
    study.run(TABLE, ledger=ledger.run("people"))
    assert drawn == [1, 2, 3]
    assert kinds(ledger)[-5:] == ["run", "charge", "charge", "charge", "end"]


def test_no_entry_holds_an_output_or_anything_of_the_data(ledger, journal):
    study = study_of()
    ledger.approve("people", study.plan(), by="b")
    study.run(TABLE, ledger=ledger.run("people", journal=journal))
    held = {
        (entry.kind, key)
        for entry in entries(ledger)
        for key in entry.content
        if entry.kind not in ("plan", "approval")
    }
    assert held == {
        *(("ledger", key) for key in ("format", "id")),
        *(("data set", key) for key in ("data_set", "relation", "epsilon", "delta", "schema")),
        *(("run", key) for key in ("run", "data_set", "plan", "amount", "dpframework", "results")),
        *(("charge", key) for key in ("run", "number", "path")),
        *(("end", key) for key in ("run", "releases", "how")),
    }


def racer(path, plan_epsilon, barrier, told):
    study = study_of(count(plan_epsilon), lambda table: table.release("n"))
    ledger = Ledger(path)
    barrier.wait()
    try:
        told.put(study.run(TABLE, ledger=ledger.run("people")).run)
    except dpf.DPFrameworkError as error:
        told.put(str(error))


def test_processes_at_once_do_not_overspend(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=1)
    ledger.approve("people", study_of(count("0.3"), lambda table: table.release("n")).plan(), by="b", runs=9)
    # One process imports what the six need, and they are forks of it: six imports would take most of the time.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    barrier, told = context.Barrier(6), context.Queue()
    racers = [context.Process(target=racer, args=(ledger.path, "0.3", barrier, told)) for _ in range(6)]
    for process in racers:
        process.start()
    outcomes = [told.get(timeout=120) for _ in racers]
    for process in racers:
        process.join()
    runs = ledger.data_set("people").runs
    assert sorted(outcome for outcome in outcomes if "over the cap" not in outcome) == sorted(runs)
    assert len(runs) == 3
    assert ledger.data_set("people").left == Fraction(1, 10)
    ledger.verify()


# --- tampering ------------------------------------------------------------------------------------------------------


@pytest.fixture
def used(ledger):
    """A ledger with an entry of every kind."""
    study = study_of()
    ledger.approve("people", study.plan(), by="b", runs=2)
    study.run(TABLE, ledger=ledger.run("people"))
    ledger.approve("people", study.plan(), by="b")
    ledger.revoke("people", study.plan().hash, by="c")
    ledger.open("others", epsilon=1)
    return ledger


def test_anyone_can_add_up_the_chain_from_64_zeros_and_sorted_keys(used):
    with sqlite3.connect(used.path) as connection:
        rows = connection.execute("SELECT number, time, kind, content, hash FROM entry ORDER BY number").fetchall()
    connection.close()
    hashed = "0" * 64
    for number, time, kind, content, kept in rows:
        assert content == json.dumps(json.loads(content), sort_keys=True, separators=(",", ":"))
        text = json.dumps([hashed, number, time, kind, content], separators=(",", ":"))
        hashed = hashlib.sha256(text.encode()).hexdigest()
        assert hashed == kept
    assert len(rows) > 5


def edited(ledger, *statements, keep=True):
    """Edit the file as one can who has it: without the triggers, which are put back."""
    with sqlite3.connect(ledger.path) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
        for _, sql in triggers if keep else ():
            connection.execute(sql)
    connection.close()


COLUMNS = {
    "number": ["number + 100"],
    "time": ["'2020-01-01T00:00:00Z'", "NULL || time || ' '", "x'00'"],
    "kind": ["kind || 's'", "'charge'", "7"],
    "content": ["replace(content, '{', '{ ')", "'{}'", "'no json'", "content || '\n'"],
    "previous": ["'" + "0" * 64 + "'", "upper(previous)", "hash"],
    "hash": ["'" + "1" * 64 + "'", "upper(hash)", "previous"],
}


def test_every_column_of_every_entry_shows_an_edit(used, tmp_path):
    original = used.path.read_bytes()
    tried = 0
    for entry in entries(used):
        for column, changes in COLUMNS.items():
            for change in changes:
                copy = tmp_path / "copy.ledger"
                copy.write_bytes(original)
                ledger = Ledger(copy)
                try:
                    edited(ledger, f"UPDATE entry SET {column} = {change} WHERE number = {entry.number}")
                except sqlite3.IntegrityError:  # NULL
                    continue
                with sqlite3.connect(copy) as connection:
                    same = connection.execute("SELECT * FROM entry").fetchall() == sqlite_rows(used)
                connection.close()
                if same:  # such as the first entry's previous hash, which is all zeros
                    continue
                tried += 1
                with pytest.raises(dpf.LedgerTampered, match=rf"entry ({entry.number}|{entry.number + 1})\b"):
                    ledger.verify()
                with pytest.raises(dpf.LedgerTampered):
                    ledger.records()
        with pytest.raises(dpf.LedgerTampered):
            study_of().run(never, ledger=Ledger(copy).run("people"))
    assert tried >= 15 * len(entries(used)) - 5


def sqlite_rows(ledger):
    with sqlite3.connect(ledger.path) as connection:
        rows = connection.execute("SELECT * FROM entry").fetchall()
    connection.close()
    return rows


def test_entries_that_are_removed_moved_or_doubled_show(used, tmp_path):
    original, last = used.path.read_bytes(), entries(used)[-1].number
    changes = []
    for k in range(1, last):
        changes += [
            (k, [f"DELETE FROM entry WHERE number = {k}"]),
            (k, [f"DELETE FROM entry WHERE number = {k}", f"UPDATE entry SET number = number - 1 WHERE number > {k}"]),
            (
                k,
                [
                    f"UPDATE entry SET number = -1 WHERE number = {k}",
                    f"UPDATE entry SET number = {k} WHERE number = {k + 1}",
                    f"UPDATE entry SET number = {k + 1} WHERE number = -1",
                ],
            ),
        ]
    for k, statements in changes:
        copy = tmp_path / "copy.ledger"
        copy.write_bytes(original)
        edited(Ledger(copy), *statements)
        with pytest.raises(dpf.LedgerTampered, match=rf"entry {k}\b"):
            Ledger(copy).verify()


def test_a_cut_or_rewritten_ledger_shows_to_who_has_noted_its_head(used):
    noted = [entry.hash for entry in entries(used)]
    for head in noted:
        assert used.verify(head).hash == noted[-1]
    edited(used, f"DELETE FROM entry WHERE number = {len(noted)}")
    used.verify(noted[-2])  # the file alone does not show it
    with pytest.raises(dpf.LedgerTampered, match=f"no entry has the hash {noted[-1]}"):
        used.verify(noted[-1])


def forged(ledger, number, change):
    """Rewrite the chain from an entry on, all hashes recomputed."""
    rows = sqlite_rows(ledger)
    previous, statements = rows[number - 1][4], []
    for k, time, kind, content, _, _ in rows[number - 1 :]:
        text = entry_hash_chain.canonical(change(json.loads(content))) if k == number else content
        own = entry_hash_chain.hash_entry(previous, k, time, kind, text)
        sql = "UPDATE entry SET content = ?, previous = ?, hash = ? WHERE number = ?"
        statements.append((sql, (text, previous, own, k)))
        previous = own
    edited(ledger, *statements)


@pytest.mark.parametrize(
    ("kind", "change", "says"),
    [
        ("run", {"amount": {"pure": {"add-or-remove-one": "1/10", "replace-one": "1/5"}}}, "not the total of its plan"),
        ("run", {"plan": "0" * 64}, "is not approved"),
        ("data set", {"epsilon": "1/2"}, "over the cap"),
        ("plan", {"plan": {"hash": "0" * 64}}, "does not fit its hash"),
        ("charge", {"run": "none"}, "its content does not fit kind 'charge'"),
        ("approval", {"runs": 0}, "field runs must be bigger"),
    ],
)
def test_a_chain_rewritten_with_right_hashes_must_still_make_sense(used, kind, change, says):
    number = kinds(used).index(kind) + 1
    forged(used, number, lambda content: {**content, **change})
    with pytest.raises(dpf.LedgerTampered, match=says):
        used.verify()


def test_a_divergence_that_is_not_its_plans_shows(tmp_path):
    ledger = opened(tmp_path, 5, delta="1e-6")
    assert spend(ledger, dpf.step("n", dpf.queries.Count(), Gaussian("0.04")), delta="1e-6")
    ledger.verify()
    cheaper = {"rdp": {"add-or-remove-one": "1/100", "replace-one": "1/100"}}
    forged(
        ledger, kinds(ledger).index("run") + 1, lambda content: {**content, "amount": {**content["amount"], **cheaper}}
    )
    with pytest.raises(dpf.LedgerTampered, match="not the total of its plan"):
        ledger.verify()


def test_the_triggers_refuse_changes_and_their_absence_shows(used):
    number = entries(used)[-1].number
    for statement in (
        "UPDATE entry SET time = ''",
        "DELETE FROM entry",
        f"DELETE FROM entry WHERE number = {number}",
        f"INSERT OR REPLACE INTO entry VALUES ({number}, '', '', '', '', '')",
        "INSERT INTO entry VALUES (1000, '', '', '', '', '')",
        "INSERT INTO entry VALUES (0, '', '', '', '', '')",
    ):
        connection = sqlite3.connect(used.path)
        with pytest.raises(sqlite3.IntegrityError, match="an entry is"):
            connection.execute(statement)
        connection.close()
    used.verify()
    edited(used, keep=False)
    with pytest.raises(dpf.LedgerTampered, match="trigger that protects it, was changed"):
        used.verify()


# --- files that cannot be used --------------------------------------------------------------------------------------


def test_files_that_are_no_ledgers(tmp_path):
    (tmp_path / "text").write_text("this is a text and no database at all" * 9)
    (tmp_path / "empty").write_bytes(b"")
    with sqlite3.connect(tmp_path / "foreign") as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    for name, text in (
        ("missing", "there is no such ledger"),
        ("text", "is not a ledger"),
        ("empty", "is not a ledger"),
        ("foreign", "is not a ledger"),
        (".", "cannot be opened"),
    ):
        with pytest.raises(dpf.InputError, match=text):
            Ledger(tmp_path / name)
    with pytest.raises(dpf.InputError, match="is not a ledger"):
        Ledger.create(tmp_path / "foreign")
    with pytest.raises(dpf.InputError, match="parent folder does not exist"):
        Ledger.create(tmp_path / "no" / "l")
    assert kinds(Ledger.create(tmp_path / "empty")) == ["ledger"]  # begun, and killed before it was made


def test_a_ledger_of_another_version(ledger):
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(dpf.InputError, match="format 7 cannot be read; this dpframework reads format 3"):
        Ledger(ledger.path)


def test_a_ledger_that_is_locked_full_read_only_or_damaged(ledger, monkeypatch, tmp_path):
    monkeypatch.setattr(sqlite_connection, "PATIENCE", 0.01)
    other = sqlite3.connect(ledger.path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(dpf.InputError, match="another process is writing"):
        ledger.open("x", epsilon=1)
    other.close()
    connect, head = sqlite_connection.connect, ledger.records().head
    for pragma, text in (
        ("PRAGMA max_page_count = 1", "the disk is full"),
        ("PRAGMA query_only = 1", "cannot be written"),
    ):

        def limited(*arguments, pragma=pragma, **options):
            connection = connect(*arguments, **options)
            connection.execute(pragma)
            return connection

        monkeypatch.setattr(entry_hash_chain, "connect", limited)
        with pytest.raises(dpf.InputError, match=text):
            ledger.open("x" * 10_000, epsilon=1)
        monkeypatch.setattr(entry_hash_chain, "connect", connect)
        assert ledger.records().head == head
    ledger.verify()
    damaged = bytearray(ledger.path.read_bytes())
    damaged[4096:] = b"\xff" * (len(damaged) - 4096)
    (tmp_path / "damaged").write_bytes(damaged)
    with pytest.raises(dpf.InputError, match="is damaged"):
        Ledger(tmp_path / "damaged").verify()


def test_a_change_begins_with_the_lock_and_not_where_it_writes(ledger, monkeypatch):
    """Else two would look at what is left, and then write one after the other."""
    monkeypatch.setattr(sqlite_connection, "PATIENCE", 0.01)
    one, other = entry_hash_chain.Chain(ledger.path), entry_hash_chain.Chain(ledger.path)
    with one.writing():
        with pytest.raises(dpf.InputError, match="another process is writing"), other.writing():
            pytest.fail("two may write")
        with other.reading() as transaction:
            assert len(transaction.read()) == 2


# --- unfinished runs ------------------------------------------------------------------------------------------------


class Seen(dpf.Observer):
    def __init__(self):
        self.outputs = []

    def released(self, release):
        self.outputs.append((release.charge.path, np.asarray(release.output).tolist()))


def interrupted(ledger, journal, after=3, node=None):
    """Make an approved run that is interrupted; return its study and what was seen."""
    study = study_of(node, lambda table: mine_by_town(table, after))
    ledger.approve("people", study.plan(), by="b", runs=2)
    seen, run = Seen(), ledger.run("people", journal=journal)
    with pytest.raises(dpf.RunStopped):
        study.run(TABLE, ledger=run, observers=[seen])
    assert run.unfinished
    assert ledger.data_set("people").runs[run.id].end is None
    return seen.outputs


def ill_in_towns(table):
    return [int(n) for n in table.release_many((part, "ill", {}) for part in table.partition("town"))]


IN_TOWNS = dpf.parallel(
    dpf.step("ill", dpf.queries.Count(dpf.Equals("ill", "true")), DiscreteLaplace("1")), by=SCHEMA["town"]
)


def test_a_run_that_is_killed_between_releases_made_together_goes_on_with_the_next(ledger, journal):
    """Each is charged, drawn and kept before the next is charged; what was seen stays."""

    class StopsAtTwo(Seen):
        def released(self, release):
            super().released(release)
            if len(self.outputs) == 2:
                raise KeyboardInterrupt

    ledger.approve("people", study_of(IN_TOWNS, ill_in_towns).plan(), by="b", runs=1)
    seen, again = StopsAtTwo(), Seen()
    with pytest.raises(dpf.RunStopped):
        study_of(IN_TOWNS, ill_in_towns).run(TABLE, ledger=ledger.run("people", journal=journal), observers=[seen])
    assert kinds(ledger).count("charge") == 2
    run = ledger.run("people", journal=journal)
    results = study_of(IN_TOWNS, ill_in_towns).run(TABLE, ledger=run, observers=[again])
    assert again.outputs[:2] == seen.outputs
    assert [path for path, _ in again.outputs] == [f"m/parts {k}/ill" for k in (1, 2, 3)]
    assert [output for _, output in again.outputs] == results["m"]
    assert kinds(ledger).count("charge") == 3
    assert run.before == 2
    ledger.verify()


def test_a_query_that_fails_among_several_ends_a_run_that_is_kept(ledger, journal, monkeypatch):
    """None of them is charged, and the miner that catches the error can make no other release."""

    def stubborn(table):
        parts = table.partition("town")
        try:
            table.release_many((part, "ill", {}) for part in parts[:2])
        except dpf.InputError:
            monkeypatch.undo()
        return parts[2].release("ill")

    def failing(self, block, **inputs):
        raise ValueError("a row")

    study = study_of(IN_TOWNS, stubborn)
    ledger.approve("people", study.plan(), by="b", runs=1)
    monkeypatch.setattr(dpf.queries.Count, "count", failing)
    with pytest.raises(dpf.InputError, match=r"the query .* failed with ValueError"):
        study.run(TABLE, ledger=ledger.run("people", journal=journal))
    assert "charge" not in kinds(ledger)
    with pytest.raises(dpf.ReleaseRefused, match="has ended"):
        study_of(IN_TOWNS, ill_in_towns).run(TABLE, ledger=ledger.run("people", journal=journal))


SAMPLED = dpf.sample("0.5", dpf.sequential(count("0.25", "n"), count("0.25", "k")))


def stopped_after_one(table):
    table.sampled().release("n")
    raise KeyboardInterrupt


def both(table):
    sample = table.sampled()
    return [sample.release("n"), sample.release("k")]


def test_a_run_that_samples_is_resumed_with_a_sample_drawn_anew(ledger, journal, monkeypatch):
    """What it has released stays; the rest is from another sample, which costs no more (see `composition.sample`)."""
    drawn = []
    sample = dpf.InMemory.sample
    monkeypatch.setattr(dpf.InMemory, "sample", lambda self, *given: (drawn.append(1), sample(self, *given))[1])
    study = study_of(SAMPLED, stopped_after_one)
    ledger.approve("people", study.plan(), by="b", runs=1)
    seen = Seen()
    with pytest.raises(dpf.RunStopped):
        study.run(TABLE, ledger=ledger.run("people", journal=journal), observers=[seen])
    again, run = Seen(), ledger.run("people", journal=journal)
    results = study_of(SAMPLED, both).run(TABLE, ledger=run, observers=[again])
    assert again.outputs[:1] == seen.outputs
    assert len(again.outputs) == 2
    assert len(drawn) == 2
    assert run.before == 1
    assert results.spent == study.plan().total()
    ended = study_of(SAMPLED, both).run(TABLE, ledger=ledger.run("people", journal=journal))
    assert ended["m"] == results["m"]
    ledger.verify()


def test_a_run_that_samples_is_not_resumed_where_its_total_holds_for_one_sample(ledger, journal):
    """Made again from its journal it is, once it has ended."""
    study = functools.partial(study_of, SAMPLED)
    ledger.approve("people", study(both).plan(), by="b", runs=2)

    def budget():
        return dpf.PLDAccountant("add-or-remove-one", epsilon=2, delta="1e-6")

    with pytest.raises(dpf.RunStopped):
        study(stopped_after_one).run(TABLE, ledger=ledger.run("people", journal=journal), accountant=budget())
    with pytest.raises(dpf.PlanRefused, match="cannot be resumed; a sample would be drawn again, and the total in pld"):
        study(both).run(never, ledger=ledger.run("people", journal=journal), accountant=budget())
    other = journal.with_name("other.journal")
    results = study(both).run(TABLE, ledger=ledger.run("people", journal=other), accountant=budget())
    again = study(both).run(TABLE, ledger=ledger.run("people", journal=other), accountant=budget())
    assert again["m"] == results["m"]
    ledger.verify()


@pytest.mark.parametrize("after", [2, 3])
def test_an_interrupted_run_goes_on_with_the_same_outputs_and_no_new_charge(ledger, journal, after):
    first = interrupted(ledger, journal, after)
    seen, run = Seen(), ledger.run("people", journal=journal)
    results = study_of().run(TABLE, ledger=run, observers=[seen])
    assert seen.outputs[:after] == first
    assert len(seen.outputs) == 4
    assert run.before == after
    people = ledger.data_set("people")
    (recorded,) = people.runs.values()
    assert (results.run, recorded.end, recorded.resumed, recorded.redrawn) == (recorded.id, "finished", 1, 0)
    assert recorded.charges == ["m/n", "m/town", "m/parts 1/ill", "m/parts 2/ill"]
    assert people.left == 2
    ledger.verify()
    # Results that could not be written are made again from the journal, and nothing is drawn.
    again = Seen()
    head = ledger.records().head
    study_of().run(TABLE, ledger=ledger.run("people", journal=journal), observers=[again])
    assert again.outputs == seen.outputs
    assert ledger.records().head == head
    run.discard()
    assert not journal.exists()


def test_a_run_that_has_ended_makes_no_more_releases(ledger, journal):
    def lazy(table):
        return [table.release("n")]

    ledger.approve("people", study_of().plan(), by="b")
    study_of(None, lazy).run(TABLE, ledger=ledger.run("people", journal=journal))
    with pytest.raises(dpf.ReleaseRefused, match="has ended and makes no more releases"):
        study_of().run(TABLE, ledger=ledger.run("people", journal=journal))


def other_step(table):
    return [table.release("town")]


def other_cut(table):
    made = [table.release("n"), table.release("town")]
    cut = dpf.Not(dpf.Equals("town", made[1]))
    return [part.release("ill") for part in table.partition(cut)]


def other_derived(table):
    made = [table.release("n"), table.release("town")]
    cases = dpf.Cases([dpf.Equals("town", "A")])
    derived = table.derive(dpf.Boolean("in A"), cases)
    return [part.release("ill") for part in derived.partition(dpf.Equals("town", made[1]))]


@pytest.mark.parametrize("do", [other_step, other_cut, other_derived])
def test_a_resumed_run_that_does_something_else_is_refused_before_it_releases_anything_new(ledger, journal, do):
    interrupted(ledger, journal)
    head, run = ledger.records().head, ledger.run("people", journal=journal)
    with pytest.raises(dpf.ReleaseRefused, match="made another release here before it was resumed"):
        study_of(None, do).run(TABLE, ledger=run)
    assert [entry.kind for entry in entries(ledger)[head.number :]] == ["resumption"]
    assert run.unfinished
    study_of().run(TABLE, ledger=ledger.run("people", journal=journal))


def together(cut, **inputs):
    """Return what makes the releases of `mine_by_town`, those in parts together: of the parts of a cut, with inputs."""

    def do(table):
        made = [table.release("n"), table.release("town")]
        parts = table.partition(cut(dpf.Equals("town", made[1])))
        return table.release_many((part, "ill", inputs) for part in parts)

    return do


@pytest.mark.parametrize("do", [together(dpf.Not), together(lambda town: town, bins=1)], ids=["rows", "inputs"])
def test_releases_made_together_are_resumed_on_the_same_rows_with_the_same_inputs(ledger, journal, do):
    interrupted(ledger, journal)  # one part has been asked, by itself
    with pytest.raises(dpf.ReleaseRefused, match="made another release here before it was resumed"):
        study_of(None, do).run(TABLE, ledger=ledger.run("people", journal=journal))
    study_of(None, together(lambda town: town)).run(TABLE, ledger=ledger.run("people", journal=journal))
    (run,) = ledger.data_set("people").runs.values()
    assert (run.end, len(run.charges)) == ("finished", 4)


def in_derived(cut, label, stop=False):
    """Return what counts the ill in parts, each told by a derived attribute whose case has a label's description."""

    def do(table):
        made = [table.release("n"), table.release("town")]
        for part in table.partition(cut(dpf.Equals("town", made[1]))):
            derived = part.derive(dpf.Boolean("told"), dpf.Cases([dpf.Equals("town", label)]))
            made.append(derived.release("ill"))
            if stop:
                raise KeyboardInterrupt
        return made

    return do


@pytest.mark.parametrize("do", [in_derived(dpf.Not, "A"), in_derived(lambda town: town, "B")], ids=["rows", "cases"])
def test_derived_attributes_are_those_of_the_same_rows_and_cases_when_a_run_is_resumed(ledger, journal, do):
    study = study_of(None, in_derived(lambda town: town, "A", stop=True))
    ledger.approve("people", study.plan(), by="b", runs=1)
    with pytest.raises(dpf.RunStopped):
        study.run(TABLE, ledger=ledger.run("people", journal=journal))
    with pytest.raises(dpf.ReleaseRefused, match="made another release here before it was resumed"):
        study_of(None, do).run(TABLE, ledger=ledger.run("people", journal=journal))
    study_of(None, in_derived(lambda town: town, "A")).run(TABLE, ledger=ledger.run("people", journal=journal))


def test_a_journal_or_ledger_that_is_not_as_the_run_left_it(ledger, journal):
    interrupted(ledger, journal)
    whole, copy = journal.read_bytes(), ledger.path.read_bytes()

    def refused(text, study=None, of=ledger):
        with pytest.raises((dpf.PlanRefused, dpf.InputError), match=text) as caught:
            (study or study_of()).run(never, ledger=of.run("people", journal=journal))
        assert "\n" not in str(caught.value)
        assert journal.exists()

    key, (run,) = journal_key(Chain(ledger.path), make=False), ledger.data_set("people").runs
    lacking = '{"attrs": "no.such:Thing", "fields": {}}'
    for statement, text in (
        ("DELETE FROM release WHERE number > 1", "one of the two is not as the run left it"),
        ("DELETE FROM release WHERE number = 1", "one of the two is not as the run left it"),
        ("DELETE FROM owner", "was written by another user; the run stays charged"),
        ("UPDATE owner SET run = 'other'", "was written by another user; the run stays charged"),
        ("UPDATE release SET path = 'm/x' WHERE number = 1", "was written by another user; the run stays charged"),
        ("UPDATE release SET output = '7' WHERE number = 1", "was written by another user; the run stays charged"),
        ("UPDATE release SET number = 9 WHERE number = 1", "was written by another user; the run stays charged"),
        (
            f"UPDATE release SET output = '{lacking}', "
            f"digest = digest('release', '{run}', number, path, origin, '{lacking}')",
            "of 'no.such:Thing', which no mechanism of the plan outputs",
        ),
        (
            "UPDATE owner SET key = 'zz', digest = digest('owner', ledger, data_set, plan, run, 'zz')",
            "was written by another user; the run stays",
        ),
        ("UPDATE owner SET key = '', digest = digest('owner', ledger, data_set, plan, run, '')", "is damaged"),
    ):
        connection = sqlite3.connect(journal, isolation_level=None)
        connection.create_function("digest", -1, lambda *columns: seal(key, *columns))
        connection.execute(statement)
        connection.close()
        refused(text)
        journal.write_bytes(whole)
    journal.write_bytes(b"something else entirely, and no database" * 9)
    refused("is not a journal of a run")
    journal.write_bytes(whole)
    # Another plan, data set or ledger.
    smaller = study_of(count("0.5"), lambda table: table.release("n"))
    ledger.approve("people", smaller.plan(), by="b")
    refused("holds the releases of an unfinished run of plan", smaller)
    other = Ledger.create(ledger.path.with_name("other"))
    other.open("people", epsilon=9)
    other.approve("people", study_of().plan(), by="b")
    refused("of another ledger", of=other)
    journal_key(Chain(other.path), make=True)
    refused("belongs to another ledger", of=other)
    # A ledger from before the run, and one from the middle of it.
    older = ledger.path.with_name("older")
    older.write_bytes(copy)
    key_place(older).write_bytes(key_place(ledger.path).read_bytes())
    key_place(older).chmod(0o600)
    edited(Ledger(older), "DELETE FROM entry WHERE kind IN ('run', 'charge')")
    refused("the ledger is an older copy", of=Ledger(older))
    older.write_bytes(copy)
    edited(Ledger(older), "DELETE FROM entry WHERE number = (SELECT max(number) FROM entry)")
    refused("one of the two is not as the run left it", of=Ledger(older))
    study_of().run(TABLE, ledger=ledger.run("people", journal=journal))


def test_a_damaged_journal_never_ends_a_run_and_its_charge_stays(ledger, journal):
    """Bytes changed, parts cut off or overwritten: the run goes on as it was, or is refused and may go on later."""
    first = interrupted(ledger, journal)
    whole = journal.read_bytes()
    (run,) = ledger.data_set("people").runs
    rng = np.random.default_rng(7)
    went_on = 0
    for k in range(120):
        broken = bytearray(whole)
        at = int(rng.integers(len(whole)))
        if k % 3 == 0:
            broken[at] ^= int(rng.integers(1, 256))
        elif k % 3 == 1:
            broken[at : at + 64] = rng.bytes(min(64, len(whole) - at))
        else:
            del broken[max(at, 1) :]
        journal.write_bytes(broken)
        seen = Seen()
        study = study_of(None, lambda table: mine_by_town(table, 3))
        with pytest.raises(dpf.DPFrameworkError) as caught:
            study.run(TABLE, ledger=ledger.run("people", journal=journal), observers=[seen])
        assert "\n" not in str(caught.value)
        if isinstance(caught.value, dpf.RunStopped):  # interrupted again, where it was
            assert seen.outputs == first
            went_on += 1
        else:
            assert isinstance(caught.value, dpf.InputError | dpf.PlanRefused)
        assert list(ledger.data_set("people").runs) == [run]
        assert ledger.data_set("people").runs[run].end is None
        journal.with_name(f"{journal.name}-journal").unlink(missing_ok=True)
    assert 0 < went_on < 120
    journal.write_bytes(whole)
    study_of().run(TABLE, ledger=ledger.run("people", journal=journal))
    assert ledger.data_set("people").runs[run].end == "finished"


def test_a_ledger_that_was_put_back_is_found_from_the_results_alone(ledger, tmp_path, capsys):
    study = study_of(count("0.5"), lambda table: table.release("n"))
    ledger.approve("people", study.plan(), by="b", runs=2)
    kept = study.run(TABLE, ledger=ledger.run("people"))
    assert ledger.verify(runs={kept.run: kept.head}) == ledger.records().head
    before = ledger.path.read_bytes()
    gone = study.run(TABLE, ledger=ledger.run("people"))
    files = []
    for number, results in enumerate((kept, gone)):
        (tmp_path / str(number)).mkdir()
        write_outputs(tmp_path / str(number), results, title="t")
        files.append(tmp_path / str(number) / "results.json")
    assert json.loads(files[1].read_text())["head"] == gone.head
    assert gone.head in (tmp_path / "1" / "report.html").read_text()
    verify = ["ledger", "verify", str(ledger.path), "--results", str(files[0])]
    assert main([*verify, "--results", str(files[1])]) == 0
    ledger.path.write_bytes(before)
    assert ledger.verify() == ledger.records().head  # the file alone looks right
    assert main(verify) == 0
    capsys.readouterr()
    assert main([*verify, "--results", str(files[1])]) == 1
    assert f"run {gone.run} is gone; the ledger was replaced by an older copy" in capsys.readouterr().err
    study.run(TABLE, ledger=ledger.run("people"))  # another run takes its place
    assert main([*verify, "--results", str(files[1])]) == 1
    seeded = study.run(TABLE, seed=1)
    (tmp_path / "seeded").mkdir()
    write_outputs(tmp_path / "seeded", seeded, title="t")
    assert main([*verify, "--results", str(tmp_path / "seeded")]) == 2


def test_results_that_nobody_charged_do_not_pass_for_those_of_a_run(ledger, tmp_path, capsys):
    """The analyst makes runs without a ledger, and writes the id of a recorded one into their results."""
    study, dearer = (study_of(count(loss), lambda table: table.release("n")) for loss in ("0.25", "0.5"))
    ledger.approve("people", study.plan(), by="the board", runs=3)
    honest = study.run(TABLE, ledger=ledger.run("people"))
    again, other = study.run(TABLE), dearer.run(TABLE)
    release = json.loads(honest.to_json())["charges"]
    forged = {
        "honest": (honest, {}, ""),
        "free": (again, {}, "its run was made without a ledger"),
        "unknown": (again, {"run": "f" * 16, "head": honest.head}, "run ffffffffffffffff is not recorded"),
        "other": (other, {"run": honest.run, "head": honest.head}, f"was of plan {study.plan().hash[:12]}"),
        "twice": (honest, {"charges": release * 2}, "was not charged for all releases"),
    }
    named = ["--ledger", str(ledger.path), "--data-set", "people"]
    for name, (results, changed, says) in forged.items():
        folder = tmp_path / name
        folder.mkdir()
        write_outputs(folder, results, title="t")
        form = json.loads((folder / "results.json").read_text())
        form["steps"] = form["steps"] * (2 if name == "twice" else 1)
        (folder / "results.json").write_text(json.dumps({**form, **changed}))
        assert main(["report", str(folder), *named]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        missing = "NOT CHARGED: data set 'people' of this ledger holds no run with these results"
        assert (missing in shown) is (name != "honest")
        assert says in shown
        assert main(["report", str(folder), "--dossier", *named]) == 0
        assert ("NOT CHARGED: data set" in capsys.readouterr().out) is (name != "honest")
        code = main(["ledger", "verify", str(ledger.path), "--results", str(folder)])
        assert code == {"honest": 0, "free": 2}.get(name, 1)
        capsys.readouterr()
    both = ["--results", str(tmp_path / "honest"), "--results", str(tmp_path / "twice")]
    assert main(["ledger", "verify", str(ledger.path), *both]) == 2
    assert f"these results are of run {honest.run}, and so are others that differ" in capsys.readouterr().err


def test_a_run_is_resumed_by_one_process_only(ledger, journal, tmp_path):
    interrupted(ledger, journal)
    copy = tmp_path / "copy"
    copy.write_bytes(journal.read_bytes())
    held = Journal(journal, journal_key(Chain(ledger.path), make=False))
    with pytest.raises(dpf.InputError, match="another process is making this run"):
        study_of().run(never, ledger=ledger.run("people", journal=journal))
    held.close()

    def taken_up_meanwhile(table):
        made = [table.release("n"), table.release("town")]
        parts = table.partition(dpf.Equals("town", made[1]))
        made.append(parts[0].release("ill"))
        study_of().run(TABLE, ledger=ledger.run("people", journal=copy))
        return [*made, parts[1].release("ill")]

    with pytest.raises(dpf.ReleaseRefused, match="taken up by another process"):
        study_of(None, taken_up_meanwhile).run(TABLE, ledger=ledger.run("people", journal=journal))
    (run,) = ledger.data_set("people").runs.values()
    assert (run.end, len(run.charges)) == ("finished", 4)


def test_an_approval_that_is_taken_back_stops_runs(ledger, journal):
    def regretted(table):
        made = [table.release("n")]
        ledger.revoke("people", study_of().plan().hash, by="the owner")
        return [*made, table.release("town")]

    ledger.approve("people", study_of().plan(), by="b")
    with pytest.raises(dpf.ReleaseRefused, match="the owner revoked the approval of its run"):
        study_of(None, regretted).run(TABLE, ledger=ledger.run("people", journal=journal))
    with pytest.raises(dpf.PlanRefused, match="cannot be resumed; the owner revoked its approval"):
        study_of().run(never, ledger=ledger.run("people", journal=journal))
    assert kinds(ledger).count("charge") == 1


def failing(table):
    table.release("n")
    raise RuntimeError("sunflowers: 42")


def test_a_miner_that_fails_ends_the_run_and_its_charge_stays(ledger, journal):
    ledger.approve("people", study_of().plan(), by="b")
    run = ledger.run("people", journal=journal)
    with pytest.raises(dpf.RunStopped) as caught:
        study_of(None, failing).run(TABLE, ledger=run)
    assert not run.unfinished
    assert caught.value.results.run == run.id
    people = ledger.data_set("people")
    assert (people.runs[run.id].end, people.left) == ("stopped", 2)
    assert "sunflower" not in ledger.path.read_bytes().decode("latin1")


def test_a_ledger_that_cannot_be_written_stops_the_run_which_then_goes_on(ledger, journal, monkeypatch):
    study = study_of()
    ledger.approve("people", study.plan(), by="b")
    append, swallowed = entry_hash_chain.Transaction.append, []

    def full(self, kind, content):
        if kind == "charge" and content["number"] == 2:
            raise dpf.InputError("people.ledger: cannot be written: the disk is full")
        return append(self, kind, content)

    def stubborn(table):
        table.release("n")
        for _ in range(2):
            try:
                table.release("town")
            except dpf.DPFrameworkError as error:
                swallowed.append(type(error))
        raise swallowed[0]("the disk is full")

    monkeypatch.setattr(entry_hash_chain.Transaction, "append", full)
    run = ledger.run("people", journal=journal)
    with pytest.raises(dpf.InputError, match="the disk is full"):
        study_of(None, stubborn).run(TABLE, ledger=run)
    assert swallowed == [dpf.InputError, dpf.ReleaseRefused]
    assert run.unfinished
    monkeypatch.undo()
    study.run(TABLE, ledger=ledger.run("people", journal=journal))
    (recorded,) = ledger.data_set("people").runs.values()
    assert len(recorded.charges) == 4


def test_after_a_charge_that_was_not_recorded_no_other_step_is_released(ledger, monkeypatch):
    append, full = (
        entry_hash_chain.Transaction.append,
        [dpf.InputError("people.ledger: cannot be written: the disk is full")],
    )

    def once_full(self, kind, content):
        if kind == "charge" and full:
            raise full.pop()
        return append(self, kind, content)

    def stubborn(table):
        with pytest.raises(dpf.InputError, match="the disk is full"):
            table.release("n")
        return table.release("k")

    study = study_of(dpf.sequential(count("0.25", "n"), count("0.25", "k")), stubborn)
    ledger.approve("people", study.plan(), by="b")
    monkeypatch.setattr(entry_hash_chain.Transaction, "append", once_full)
    with pytest.raises(dpf.ReleaseRefused, match="has stopped and makes no more releases"):
        study.run(TABLE, ledger=ledger.run("people"))
    assert "charge" not in kinds(ledger)


def test_a_run_that_is_interrupted_before_it_closes_its_journal_closes_it(ledger, journal, monkeypatch):
    """Else no other process could resume the run, or take its results, while this one lives."""
    leave, calls = RunJournal.leave, []

    def interrupted_once(self):
        calls.append(self)
        if len(calls) == 1:
            raise KeyboardInterrupt
        leave(self)

    monkeypatch.setattr(RunJournal, "leave", interrupted_once)
    ledger.approve("people", study_of().plan(), by="b")
    run = ledger.run("people", journal=journal)
    with pytest.raises(KeyboardInterrupt):
        study_of().run(TABLE, ledger=run)
    Journal(journal, journal_key(Chain(ledger.path), make=False)).close()


@pytest.mark.parametrize(
    ("error", "together", "why"),
    [
        (ValueError, False, "the mechanism .* failed with ValueError"),
        (ValueError, True, "the release before it failed"),
        (KeyboardInterrupt, False, "the release before it failed"),
        (KeyboardInterrupt, True, "the release before it failed"),
    ],
)
def test_a_release_that_fails_is_the_last_one(ledger, journal, monkeypatch, error, together, why):
    ledger.approve("people", study_of().plan(), by="b")
    release = PermuteAndFlip.release

    def broken(self, *arguments):
        raise error

    def stubborn(table):
        table.release("n")
        with pytest.raises((dpf.InputError, KeyboardInterrupt)):
            table.release("town")
        monkeypatch.setattr(PermuteAndFlip, "release", release)
        parts = table.partition(dpf.Equals("town", "A"))
        if together:
            return table.release_many((part, "ill", {}) for part in parts)
        return [part.release("ill") for part in parts]

    monkeypatch.setattr(PermuteAndFlip, "release", broken)
    with pytest.raises(dpf.DPFrameworkError, match=why):
        study_of(None, stubborn).run(TABLE, ledger=ledger.run("people", journal=journal))
    (run,) = ledger.data_set("people").runs.values()
    assert run.end == "stopped"


def test_a_process_that_forks_while_it_draws_keeps_no_output(ledger, journal, monkeypatch):
    """Else the fork and the process that it came from would both draw, and one of the outputs would be kept."""
    study = study_of()
    ledger.approve("people", study.plan(), by="b")
    release, forks = PermuteAndFlip.release, fork_detection._forks

    def forking(self, *arguments):
        fork_detection._forks = forks + 1
        return release(self, *arguments)

    monkeypatch.setattr(fork_detection, "_forks", forks)
    with monkeypatch.context() as patched:
        patched.setattr(PermuteAndFlip, "release", forking)
        with pytest.raises(dpf.DPFrameworkError, match="another process"):
            study.run(TABLE, ledger=ledger.run("people", journal=journal))
    connection = sqlite3.connect(shutil.copy(journal, journal.with_name("copy")))  # the run has locked it
    assert connection.execute("SELECT path FROM release").fetchall() == [("m/n",)]
    connection.close()
    (run,) = ledger.data_set("people").runs.values()
    assert run.end is None  # the fork does not end the run of the process that it came from


def test_a_fork_that_comes_to_its_end_does_not_end_the_run(ledger, monkeypatch):
    """Else the process that it came from, which still releases, would be refused as if another had taken its run."""
    forks = fork_detection._forks
    monkeypatch.setattr(fork_detection, "_forks", forks)

    def forking(table):
        made = table.release("n")
        fork_detection._forks = forks + 1
        return made

    study = study_of(count("0.25"), forking)
    ledger.approve("people", study.plan(), by="b")
    with pytest.raises(dpf.DPFrameworkError, match="another process"):
        study.run(TABLE, ledger=ledger.run("people"))
    (run,) = ledger.data_set("people").runs.values()
    assert run.end is None


@pytest.mark.parametrize("rows", [TABLE, dpf.InputError("the file is damaged")])
def test_a_fork_that_has_read_the_table_writes_nothing_about_the_run(ledger, monkeypatch, rows):
    """Else it would charge the run, or end it, while the process that it came from still reads the same rows."""
    forks = fork_detection._forks
    monkeypatch.setattr(fork_detection, "_forks", forks)

    def forking():
        fork_detection._forks = forks + 1
        if isinstance(rows, Exception):
            raise rows
        return rows

    ledger.approve("people", study_of().plan(), by="b")
    with pytest.raises(dpf.DPFrameworkError, match="another process"):
        study_of().run(forking, ledger=ledger.run("people"))
    assert kinds(ledger)[-1] == "reading"


def test_a_fork_cannot_make_the_run_that_the_process_before_it_has_got(ledger, monkeypatch):
    """Else both would charge it and release under one id."""
    ledger.approve("people", study_of().plan(), by="b")
    run, before = ledger.run("people"), kinds(ledger)
    monkeypatch.setattr(fork_detection, "_forks", fork_detection._forks + 1)
    with pytest.raises(dpf.ReleaseRefused, match="another process"):
        study_of().run(TABLE, ledger=run)
    assert kinds(ledger) == before


def test_a_run_says_whether_it_can_be_resumed_and_whether_it_was(ledger, journal):
    assert not ledger.run("people").resumable
    study = study_of(None, lambda table: mine_by_town(table, 3))
    ledger.approve("people", study.plan(), by="b")
    run = ledger.run("people", journal=journal)
    assert run.resumable
    with pytest.raises(dpf.RunStopped):
        study.run(TABLE, ledger=run)
    assert (run.unfinished, run.continues, run.before) == (True, False, 0)
    told = []
    again = ledger.run("people", journal=journal)

    class Watching(dpf.Observer):
        def released(self, release):
            told.append((again.continues, again.unfinished))

    study_of().run(TABLE, ledger=again, observers=[Watching()])
    assert told == [(True, True)] * 4
    assert (again.unfinished, again.continues, again.before, again.id) == (False, False, 3, run.id)
    assert again.head == [entry.hash for entry in entries(ledger) if entry.kind == "charge"][-1]
    assert journal.exists()
    again.discard()
    assert not journal.exists()


def test_what_a_data_set_tells_of_its_approvals_and_runs(ledger):
    study = study_of(count("0.5"), lambda table: table.release("n"))
    ledger.approve("people", study.plan(), by="the board", runs=3, note="a pilot")
    study.run(TABLE, ledger=ledger.run("people"))
    (approval,) = ledger.data_set("people").approvals
    assert approval.sentence == f"approved by the board on {clock_text(approval.time)}, unsigned (2 of 3 runs left)"
    assert approval.to_dict() | {"time": ""} == {
        "plan": study.plan().hash, "by": "the board", "time": "", "runs": 3, "note": "a pilot", "used": 1,
        "revoked": None, "verified": None, "data": None, "signature": None, "signed_by": None, "left": 2,
    }  # fmt: skip
    ledger.revoke("people", study.plan().hash, by="c")
    (approval,) = ledger.data_set("people").approvals
    assert (approval.left, approval.used) == (0, 1)
    assert approval.sentence.endswith("unsigned (revoked by c)")
    told = ledger.data_set("people").to_dict()
    (run,) = ledger.data_set("people").runs.values()
    assert told["runs"] == [
        {
            "run": run.id, "plan": study.plan().hash, "time": run.time, "releases": 1, "charges": ["m/n"],
            "amount": {"pure": {"add-or-remove-one": "1/2", "replace-one": "1/2"}},
            "resumed": 0, "redrawn": 0, "end": "finished", "study": "", "by": "", "purpose": "",
            "approved_by": "the board",
            "results": [{"name": "m", "miner": "does", "attributes": [], "epsilon": "1/2"}],
        }
    ]  # fmt: skip
    assert (told["cap"], told["spent"], told["left"]) == (
        {"epsilon": "3", "delta": "0"}, {"epsilon": "1/2", "delta": "0"}, {"epsilon": "5/2"}
    )  # fmt: skip
    assert (told["order"], told["schema"], told["verified"], told["relation"]) == (
        None,
        None,
        None,
        "add-or-remove-one",
    )


def test_one_run_is_made_once(ledger):
    ledger.approve("people", study_of().plan(), by="b", runs=2)
    run = ledger.run("people")
    study_of().run(TABLE, ledger=run)
    with pytest.raises(dpf.InputError, match="ask the ledger for a new one"):
        study_of().run(never, ledger=run)


# --- outputs in a journal -------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = 1


@attrs.frozen
class Leaf:
    _counts: tuple
    colour: Colour


CLASSES = (Leaf, Colour, type(SCHEMA["town"]), dpf.Equals)

DTYPES = st.sampled_from(["i8", "i4", "u1", "f8", "f4", "bool", ">i2", "U3"])
ARRAYS = DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.fractions()
    | ARRAYS.filter(lambda array: array.size).map(lambda array: array.flat[0]).filter(lambda scalar: scalar.nbytes)
)


def identical(one, other):
    if isinstance(one, np.ndarray | np.generic):
        same_kind = (type(one), one.dtype, one.shape) == (type(other), other.dtype, other.shape)
        return same_kind and one.tobytes() == other.tobytes()
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(identical, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(identical(one[key], other[key]) for key in one)
    return type(one) is type(other) and (repr(one) == repr(other))


@given(st.recursive(SCALARS | ARRAYS, lambda v: st.lists(v) | st.lists(v).map(tuple) | st.dictionaries(st.text(), v)))
def test_outputs_are_kept_exactly(value):
    read = from_json(json.loads(entry_hash_chain.canonical(to_json(value))))
    assert identical(read, value)
    assert fingerprint(read) == fingerprint(value)


def test_objects_of_plugins_are_kept_and_others_are_refused():
    for value in (Leaf((1, 2.5), Colour.RED), {1, 2}, frozenset({"a"}), SCHEMA["town"], dpf.Equals("town", "A")):
        read = from_json(json.loads(entry_hash_chain.canonical(to_json(value, CLASSES))), CLASSES)
        assert read == value
        assert type(read) is type(value)
    for value in (object(), np.array([object()]), [lambda: 1], b"bytes"):
        with pytest.raises(dpf.InputError, match="cannot be kept for resuming"):
            to_json(value)
        fingerprint(value)
    assert fingerprint(dpf.Equals("town", "A")) != fingerprint(dpf.Equals("town", "B"))
    for text in ("os:system", "builtins:eval", "dpframework:miner"):
        with pytest.raises(dpf.InputError, match="which no mechanism of the plan outputs"):
            from_json({"attrs": text, "fields": {}})


# --- command line ---------------------------------------------------------------------------------------------------


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SCHEMA.dump("people.schema.toml")
    (tmp_path / "study.toml").write_text(TREE_STUDY)
    (tmp_path / "people.csv").write_text("ill,town\n" + "true,A\nfalse,B\n" * 100)

    def run(line):
        code = main(line.split())
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


ON = "--data-set people"


def test_the_path_of_an_auditor(command, tmp_path):
    code, out, _ = command(f"ledger open l {ON} --epsilon 2 --schema people.schema.toml")
    assert code == 0
    assert out.startswith(
        "people: epsilon 2.0 under add-or-remove-one, 0.0 spent, 2.0 left\nthis ledger has no signers: "
    )
    code, out, err = command(f"run study.toml --out out --ledger l {ON}")
    assert (code, out) == (1, "")
    assert "is not approved" in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["l", "people.csv", "people.schema.toml", "study.toml"]
    assert command(f"ledger approve l study.toml {ON} --by board --note fine --json")[0] == 0
    code, out, _ = command(f"run study.toml --out out --ledger l {ON}")
    assert code == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert f"run {results['run']} of data set 'people' in l\n" in out
    assert sorted(p.name for p in tmp_path.glob(".*")) == []
    code, out, _ = command("ledger show l --json")
    assert code == 0
    shown = json.loads(out)
    (people,) = shown["data_sets"]
    assert (people["spent"]["epsilon"], people["left"]["epsilon"]) == ("1", "1")
    (run,) = people["runs"]
    assert (run["run"], run["end"], run["plan"]) == (results["run"], "finished", results["plan"])
    code, out, _ = command(f"ledger show l {ON}")
    assert all(text in out for text in ("board", "fine", "finished", results["run"], results["plan"][:12]))
    assert f"head: {shown['head']} ({shown['entries']} entries)" in out
    code, out, _ = command(f"ledger verify l --head {shown['head']}")
    *approvals, signers, last = out.splitlines()
    assert signers.startswith("this ledger has no signers")
    assert (code, last) == (0, f"every entry is as it was written; head: {shown['head']} ({shown['entries']} entries)")
    assert [line.endswith(": unsigned") for line in approvals] == [True]
    verified = {"entries": shown["entries"], "head": shown["head"], "approvals": approvals, "signers": None}
    assert json.loads(command("ledger verify l --json")[1]) == verified
    edited(Ledger("l"), "UPDATE entry SET content = replace(content, 'board', 'bored')")
    for line in ("verify l", "show l", f"approve l study.toml {ON} --by b"):
        code, out, err = command(f"ledger {line}")
        assert (code, out) == (1, "")
        assert "was changed: it does not fit its hash" in err
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("ledger show none", 2, "none: there is no such ledger"),
        ("ledger verify people.csv", 2, "people.csv: is not a ledger"),
        ("ledger show l --data-set peple", 2, "did you mean 'people'?"),
        (f"ledger open l {ON} --epsilon 3", 2, "its cap is fixed"),
        (f"ledger open new {ON} --epsilon nan", 2, "epsilon is 'nan'"),
        (f"ledger approve l none.toml {ON} --by b", 2, "there is no such file"),
        (f"ledger approve l study.toml {ON} --by b --runs 0", 2, "runs is 0"),
        (f"ledger approve l study.toml {ON}", 2, "by"),
        (f"ledger revoke l abc {ON} --by b", 2, "no approved plan has a hash that begins with 'abc'"),
        (f"ledger verify l --head {'0' * 64}", 1, "no entry has the hash"),
        (
            "run study.toml --out out --ledger l",
            2,
            "and --data-set names a data set in that file; give both",
        ),
        (
            f"run study.toml --out out {ON}",
            2,
            "and --data-set names a data set in that file; give both",
        ),
        (f"run study.toml --out out --ledger l {ON} --seed 1", 2, "a seeded run is not private"),
        (f"run study.toml --out no/out --ledger l {ON}", 2, "parent folder does not exist"),
        ("run study.toml --out out --ledger l --data-set small", 1, "is not approved"),
        (
            "ledger approve l study.toml --data-set small --by b",
            1,
            "with this plan the total is 1.0, and the cap is 0.5",
        ),
    ],
)
def test_errors_are_one_sentence(command, tmp_path, line, code, says):
    command(f"ledger open l {ON} --epsilon 2")
    command("ledger open l --data-set small --epsilon 0.5")
    command(f"ledger approve l study.toml {ON} --by board")
    head = Ledger("l").records().head
    found, out, err = command(line)
    assert (found, out) == (code, "")
    assert says in err
    assert err.count("\n") == 1
    assert Ledger("l").records().head == head
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("wrong", ["--epsilon 0", "--epsilon 1 --delta 2", "--epsilon 1 --relation none"])
def test_a_cap_that_cannot_be_leaves_no_empty_ledger_behind(command, tmp_path, wrong):
    assert command(f"ledger open l {ON} {wrong}")[0] == 2
    assert not (tmp_path / "l").exists()


def test_an_interrupted_command_goes_on(command, tmp_path, monkeypatch):
    command(f"ledger open l {ON} --epsilon 2")
    command(f"ledger approve l study.toml {ON} --by board")
    release, calls = DiscreteLaplace.release_many, []

    def interrupted_once(self, *arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return release(self, *arguments)

    monkeypatch.setattr(DiscreteLaplace, "release_many", interrupted_once)
    line = f"run study.toml --out out --ledger l {ON}"
    code, out, err = command(line)
    assert (code, out) == (130, "")
    assert "repeat the same command to resume it, at no further charge" in err
    assert sorted(p.name for p in tmp_path.iterdir() if "out" in p.name) == [".out.unfinished"]
    code, out, _ = command(line)
    assert code == 0
    assert "made before it was resumed" in out
    (run,) = Ledger("l").data_set("people").runs.values()
    assert (run.resumed, run.redrawn, run.end) == (1, 1, "finished")
    assert sorted(p.name for p in tmp_path.iterdir() if "out" in p.name) == ["out"]


@pytest.mark.parametrize("name", ["open", "approve", "revoke", "show", "verify"])
def test_every_command_has_help_with_an_example(command, name):
    code, out, _ = command(f"ledger {name} --help")
    assert code == 0
    assert f"Example: dpframework ledger {name} " in out


def test_of_two_threads_that_make_one_run_at_once_one_makes_its_releases(tmp_path, monkeypatch):
    """The run looked whether it was made before, and said so a moment later: both made the release of one charge."""
    meeting, found, steps = threading.Barrier(2), [], dpf.StudyPlan.steps

    def meet():
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(2)

    def mine(table):
        found.append(table.release("n"))
        meet()

    ledger = opened(tmp_path, 3)
    study = study_of(count(), mine)
    ledger.approve("people", study.plan(), by="the board")
    ready, run, errors = study.prepare(), ledger.run("people"), []

    def make():
        try:
            ready.make(TABLE, ledger=run)
        except dpf.DPFrameworkError as error:
            errors.append(str(error))

    monkeypatch.setattr(dpf.StudyPlan, "steps", lambda plan: (meet(), steps(plan))[1])
    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1
    assert errors == ["this run was made before; ask the ledger for a new one"]
