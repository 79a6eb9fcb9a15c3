"""Rows that end a run while they are read: an event in the ledger, which uses up an approval and tells a kind only."""

from __future__ import annotations

import attrs
import pytest

import dpframework as dpf
from dpframework.ledger.entry_hash_chain import Chain
from dpframework.mechanisms import DiscreteLaplace
from dpframework.tables.engine_base import Engine

SECRET = "s3cr3t"
SCHEMA = dpf.Schema([dpf.Boolean("ill")], max_rows=8)
BARE = dpf.Table.from_codes(dpf.Schema([dpf.Boolean("ill")]), [[0] * 9])
GOOD, BAD = (dpf.Table.from_codes(SCHEMA, [[0] * rows]) for rows in (8, 9))


@attrs.frozen
class Counts(dpf.Miner):
    """Release the number of rows."""

    name = "counts"

    def plan(self, schema):
        return dpf.step("n", dpf.queries.Count(), DiscreteLaplace(1))

    def mine(self, table):
        return table.release("n")


class Interrupting(dpf.Observer):
    """Stand for a user who interrupts the run."""

    def charged(self, charge):
        raise KeyboardInterrupt


class Failing(Engine):
    """Cannot load a table."""

    name = "failing"
    map = split = derive = None

    def load(self, table):
        raise ValueError(SECRET)


@pytest.fixture
def study():
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("m", Counts())
    return study


def fail():
    raise ZeroDivisionError(SECRET)


# what is in the file, or the table itself; how it is read; and what is recorded
CASES = {
    "too many rows": ("ill\n" + "1\n" * 9, {}, "max_rows"),
    "a table of too many rows": (BAD, {}, "max_rows"),
    "a value that does not fit": (f"ill\n{SECRET}\n", {"out_of_domain": "error"}, "data-fits-schema"),
    "lines of other lengths": (f"ill\n{SECRET},1\n", {}, "table cannot be read"),
    "no such column": (f"{SECRET}\n1\n", {}, "table cannot be read"),
    "a reader that fails": (fail, {}, "table cannot be read"),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_that_end_a_run_use_up_its_approval(study, ledger, journal, tmp_path, case):
    data, options, why = CASES[case]
    if isinstance(data, str):
        path = tmp_path / "people.csv"
        path.write_text(data)
        table = lambda: dpf.read_table(path, SCHEMA, **options)  # noqa: E731
    else:
        table = data
    ledger.approve("people", study.plan(), by="b", runs=2)
    for left in (1, 0):
        run = ledger.run("people", journal=journal)
        with pytest.raises(dpf.InputError) as caught:
            study.run(table, ledger=run)
        assert SECRET not in repr(caught.value)
        assert "9" not in str(caught.value)
        assert caught.value.__context__ is None
        people = ledger.data_set("people")
        assert (people.left, people.approvals[0].left) == (3, left)
        assert people.runs[run.id].end == f"refused: {why}"
        assert not journal.exists()
    with pytest.raises(dpf.PlanRefused, match="another one needs an approval of its own"):
        study.run(lambda: pytest.fail("read"), ledger=ledger.run("people", journal=journal))
    ledger.verify()


@pytest.mark.parametrize("source", ["file", "table"])
def test_more_rows_than_any_table_may_have_end_a_run_as_a_broken_max_rows(
    ledger, journal, tmp_path, monkeypatch, source
):
    monkeypatch.setattr("dpframework.tables.table_builder.MOST_ROWS", 8)
    study = dpf.Study(BARE.schema, epsilon=1)
    study.add("m", Counts())
    path = tmp_path / "people.csv"

    path.write_text("ill\n" + "1\n" * 9)
    table = BARE if source == "table" else lambda: dpf.read_table(path, study.schema)
    ledger.approve("people", study.plan(), by="b")
    run = ledger.run("people", journal=journal)
    with pytest.raises(dpf.InputError, match="breaks what its owner asserts: max_rows;") as caught:
        study.run(table, ledger=run)
    assert "9" not in str(caught.value)
    assert ledger.data_set("people").runs[run.id].end == "refused: max_rows"
    ledger.verify()


def test_rows_that_end_a_resumed_run_end_it_for_good(study, ledger, journal):
    ledger.approve("people", study.plan(), by="b")
    with pytest.raises(dpf.RunStopped):
        study.run(GOOD, observers=[Interrupting()], ledger=ledger.run("people", journal=journal))
    (run,) = ledger.data_set("people").runs.values()
    assert run.end is None
    with pytest.raises(dpf.InputError, match="max_rows"):
        study.run(BAD, ledger=ledger.run("people", journal=journal))
    assert ledger.data_set("people").runs[run.id].end == "refused: max_rows"
    with pytest.raises(dpf.ReleaseRefused, match="has ended"):
        study.run(GOOD, ledger=ledger.run("people", journal=journal))
    ledger.verify()


def test_a_refusal_without_an_approval_is_not_one_that_dpframework_makes(study, ledger):
    ledger.approve("people", study.plan(), by="b")
    with pytest.raises(dpf.InputError):
        study.run(BAD, ledger=ledger.run("people"))
    content = {"run": "0" * 16, "data_set": "people", "plan": study.plan().hash, "why": "rows"}
    with Chain(ledger.path).writing() as transaction:
        transaction.read()
        transaction.append("refusal", content)
    with pytest.raises(dpf.DPFrameworkError, match="is not one that dpframework makes"):
        ledger.verify()


def test_what_is_not_the_rows_uses_up_nothing(study, ledger, tmp_path, monkeypatch):
    ledger.approve("people", study.plan(), by="b")
    (tmp_path / "people.docx").write_text("")
    for table in (
        lambda: dpf.read_table(tmp_path / "none.csv", SCHEMA),
        lambda: dpf.read_table(tmp_path / "people.docx", SCHEMA),
        lambda: dpf.read_table(tmp_path, SCHEMA),
        dpf.Table.from_codes(dpf.Schema([dpf.Boolean("old")]), [[0]]),
    ):
        with pytest.raises(dpf.InputError):
            study.run(table, ledger=ledger.run("people"))
    people = ledger.data_set("people")
    assert (people.approvals[0].left, people.runs) == (1, {})
    study.run(GOOD, ledger=ledger.run("people"))
    ledger.verify()


def test_a_table_that_cannot_be_opened_leaves_no_journal_and_may_be_opened_later(study, ledger, journal, tmp_path):
    ledger.approve("people", study.plan(), by="b")
    path = tmp_path / "people.csv"
    read = lambda: dpf.read_table(path, SCHEMA)  # noqa: E731
    with pytest.raises(dpf.InputError, match=r"people\.csv"):
        study.run(read, ledger=ledger.run("people", journal=journal))
    assert not journal.exists()
    path.write_text("ill\n1\n")
    results = study.run(read, ledger=ledger.run("people", journal=journal))
    people = ledger.data_set("people")
    assert (list(people.runs), people.approvals[0].left, people.left) == ([results.run], 0, 2)
    ledger.verify()


@pytest.mark.parametrize("given", [lambda: 3, lambda: dpf.Table.from_codes(dpf.Schema([dpf.Boolean("old")]), [[0]])])
def test_a_function_that_returns_no_table_of_the_study_uses_up_the_approval(study, ledger, journal, given):
    # it may have looked at the rows before it chose what to return
    ledger.approve("people", study.plan(), by="b")
    run = ledger.run("people", journal=journal)
    with pytest.raises(dpf.InputError):
        study.run(given, ledger=run)
    people = ledger.data_set("people")
    assert (people.approvals[0].left, people.left) == (0, 3)
    assert people.runs[run.id].end == "refused: table cannot be read"
    assert not journal.exists()
    ledger.verify()


def stop():
    """Stand for a process that ends while it reads, whoever ends it."""
    raise KeyboardInterrupt


def test_a_process_that_ends_while_it_reads_has_used_up_the_approval(study, ledger):
    ledger.approve("people", study.plan(), by="b")
    run = ledger.run("people")
    with pytest.raises(KeyboardInterrupt):
        study.run(stop, ledger=run)
    people = ledger.data_set("people")
    recorded = people.runs[run.id]
    assert (people.approvals[0].left, people.left) == (0, 3)
    assert (recorded.charged, recorded.end, run.unfinished) == (False, None, True)
    with pytest.raises(dpf.PlanRefused, match="another one needs an approval of its own"):
        study.run(lambda: pytest.fail("read"), ledger=ledger.run("people"))
    ledger.verify()


def test_a_run_that_ended_while_it_read_goes_on_with_its_journal(study, ledger, journal):
    ledger.approve("people", study.plan(), by="b")
    begun = ledger.run("people", journal=journal)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            study.run(stop, ledger=ledger.run("people", journal=journal))
    results = study.run(lambda: GOOD, ledger=(run := ledger.run("people", journal=journal)))
    people = ledger.data_set("people")
    (recorded,) = people.runs.values()
    assert results.run == recorded.id == run.id != begun.id
    assert (recorded.charged, recorded.end, recorded.resumed, people.left) == (True, "finished", 2, 2)
    ledger.verify()


def test_a_run_that_ended_while_it_read_ends_for_good_if_rows_refuse_it(study, ledger, journal):
    ledger.approve("people", study.plan(), by="b")
    with pytest.raises(KeyboardInterrupt):
        study.run(stop, ledger=ledger.run("people", journal=journal))
    with pytest.raises(dpf.InputError, match="max_rows"):
        study.run(lambda: BAD, ledger=ledger.run("people", journal=journal))
    people = ledger.data_set("people")
    assert [(run.charged, run.end) for run in people.runs.values()] == [(False, "refused: max_rows")]
    assert (people.approvals[0].left, people.left) == (0, 3)
    with pytest.raises(dpf.PlanRefused, match="another one needs an approval of its own"):
        study.run(lambda: pytest.fail("read"), ledger=ledger.run("people", journal=journal))
    ledger.verify()


def test_a_cap_that_others_use_up_while_a_table_is_read_gives_the_approval_back(study, ledger, journal):
    ledger.approve("people", study.plan(), by="b", runs=4)

    def others():
        for _ in range(3):
            study.run(GOOD, ledger=ledger.run("people"))
        return GOOD

    run = ledger.run("people", journal=journal)
    with pytest.raises(dpf.PlanRefused, match="over the cap"):
        study.run(others, ledger=run)
    people = ledger.data_set("people")
    assert (people.approvals[0].left, people.left, run.id in people.runs) == (1, 0, False)
    assert not journal.exists()
    ledger.verify()


def test_an_approval_that_is_taken_back_while_a_table_is_read_ends_the_run(study, ledger):
    ledger.approve("people", study.plan(), by="b")

    def others():
        ledger.revoke("people", study.plan().hash, by="b")
        return GOOD

    with pytest.raises(dpf.PlanRefused, match="b revoked its approval"):
        study.run(others, ledger=ledger.run("people"))
    assert (ledger.data_set("people").left, ledger.data_set("people").approvals[0].left) == (3, 0)
    ledger.verify()


def begun_and_charged(study, ledger, journal):
    """Leave a run that has read its table, and one that has not; return their ids."""
    ledger.approve("people", study.plan(), by="b", runs=3)
    with pytest.raises(dpf.RunStopped):
        study.run(GOOD, observers=[Interrupting()], ledger=ledger.run("people", journal=journal))
    with pytest.raises(KeyboardInterrupt):
        study.run(stop, ledger=ledger.run("people"))
    return [run.id for run in ledger.data_set("people").runs.values()]


def test_entries_that_no_run_writes_are_refused(study, ledger, journal, tmp_path):
    charged, begun = begun_and_charged(study, ledger, journal)
    other = dpf.Study(SCHEMA, epsilon=2)
    other.add("m", Counts())
    ledger.approve("people", other.plan(), by="b")
    with Chain(ledger.path).reading() as transaction:
        whole = next(entry.content for entry in transaction.read() if entry.kind == "run")
    unread, release = {"run": charged}, {"run": begun, "number": 1, "path": "m/n"}
    for kind, content, why in (
        ("unread", unread, "had read its table"),
        ("charge", release, "had not been charged"),
        ("redraw", release, "had not been charged"),
        ("run", {**whole, "run": charged}, "does not fit kind 'run'"),
        ("run", {**whole, "run": begun, "plan": other.plan().hash}, "does not fit kind 'run'"),
        ("run", {**whole, "run": begun, "data": "0" * 64}, "does not fit kind 'run'"),
        ("reading", {k: v for k, v in whole.items() if k != "amount"}, "does not fit kind 'reading'"),
    ):
        copy = tmp_path / f"{kind}.{content['run']}.ledger"
        copy.write_bytes(ledger.path.read_bytes())
        forged = dpf.Ledger(copy)
        forged.verify()
        with Chain(forged.path).writing() as transaction:
            transaction.read()
            transaction.append(kind, content)
        with pytest.raises(dpf.DPFrameworkError, match=why):
            forged.verify()


def test_an_engine_that_fails_to_load_was_charged_before(study, ledger):
    ledger.approve("people", study.plan(), by="b")
    with pytest.raises(dpf.PlanRefused, match="not with this code: the engine is 'failing', not 'memory'"):
        study.run(GOOD, engine=Failing(), ledger=ledger.run("people"))
    ledger.revoke("people", study.plan().hash, by="b")
    ledger.approve("people", study.plan(Failing()), by="b")
    with pytest.raises(dpf.InputError, match="engine 'failing' failed with ValueError") as caught:
        study.run(GOOD, engine=Failing(), ledger=ledger.run("people"))
    assert SECRET not in str(caught.value)
    assert ledger.data_set("people").approvals[1].left == 0


def test_without_a_ledger_a_private_run_tells_the_kind_only(study):
    with pytest.raises(dpf.InputError, match="breaks what its owner asserts: max_rows;"):
        study.run(BAD)
    with pytest.raises(dpf.InputError, match="more rows than the schema's public max_rows = 8"):
        study.run(BAD, seed=1)
