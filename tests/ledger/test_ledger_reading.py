"""Rows that end a run while they are read: an event in the ledger, which uses up an approval and tells a kind only."""

from __future__ import annotations

import attrs
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.tables.engines import Engine

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
    with ledger._chain.writing() as transaction:
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
        lambda: 3,
        dpf.Table.from_codes(dpf.Schema([dpf.Boolean("old")]), [[0]]),
    ):
        with pytest.raises(dpf.InputError):
            study.run(table, ledger=ledger.run("people"))
    assert ledger.data_set("people").approvals[0].left == 1
    study.run(GOOD, ledger=ledger.run("people"))


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
