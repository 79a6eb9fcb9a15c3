"""Approvals that are for some data only."""

from __future__ import annotations

import hashlib
import hmac

import pytest

import dpframework as dpf
from dpframework.cli import main
from dpframework.ledger import Binding, data_digests, entry_hash_chain
from dpframework.mechanisms import DiscreteLaplace
from dpframework.study.plugin_registry import PluginComponent, registry

SCHEMA = dpf.Schema([dpf.Boolean("ill")])
ROWS = "ill\n" + "true\nfalse\n" * 50


class Counts(dpf.Miner):
    """Count the rows, as often as it is told."""

    name = "counts"
    stops = False

    def plan(self, schema):
        return dpf.repeat(2, dpf.step("n", dpf.queries.Count(), DiscreteLaplace("0.25")))

    def mine(self, table):
        made = [table.release("n")]
        if self.stops:
            raise KeyboardInterrupt
        return [*made, table.release("n")]


class Stops(Counts):
    """Is interrupted after its first release."""

    stops = True


def study_of(miner=Counts) -> dpf.Study:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("n", miner())
    return study


@pytest.fixture
def files(tmp_path):
    """The approved file, a copy of it, and one with one cell changed."""
    paths = [tmp_path / name for name in ("a.csv", "copy.csv", "b.csv")]
    for path, rows in zip(paths, (ROWS, ROWS, ROWS.replace("true", "false", 1)), strict=True):
        path.write_text(rows)
    return paths


@pytest.fixture
def ledger(tmp_path) -> dpf.Ledger:
    ledger = dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=9)
    return ledger


def entries(ledger):
    with entry_hash_chain.Chain(ledger.path).reading() as transaction:
        return transaction.read()


def never() -> dpf.Table:
    raise AssertionError("the table was read")


def run(ledger, file, miner=Counts, **options):
    given = [] if file is None else [file]
    return study_of(miner).run(lambda: dpf.read_table(file, SCHEMA), ledger=ledger.run("people", data=given, **options))


def test_a_run_on_other_data_is_refused_before_it_is_read(ledger, files):
    approved, copy, other = files
    ledger.approve("people", study_of().plan(), by="b", data=[approved])
    before = ledger.records().head
    for given in ([other], [approved, other], []):
        which = "for other data: run it on the approved data" if given else "for certain data only: say which files"
        with pytest.raises(dpf.PlanRefused, match=f"is approved, but {which}") as caught:
            study_of().run(never, ledger=ledger.run("people", data=given))
        assert "\n" not in str(caught.value)
    assert ledger.records().head == before
    with pytest.raises(dpf.PlanRefused, match="is approved, but not for this data"):
        ledger.data_set("people").approval_of(study_of().plan().hash)
    assert run(ledger, copy).private  # the same bytes, wherever they are
    with pytest.raises(dpf.PlanRefused, match="approved for 1 run, which was opened before"):
        run(ledger, approved)
    ledger.verify()


def test_each_of_two_approvals_is_for_its_own_data(ledger, files):
    approved, _, other = files
    for file in (other, approved):
        ledger.approve("people", study_of().plan(), by="b", data=[file])
    run(ledger, approved)
    with pytest.raises(dpf.PlanRefused, match="for other data"):
        run(ledger, approved)
    run(ledger, other)
    ledger.approve("people", study_of().plan(), by="b")
    run(ledger, approved)
    assert [one.used for one in ledger.data_set("people").approvals] == [1, 1, 1]
    held = [entry.content.get("data") for entry in entries(ledger) if entry.kind == "run"]
    first, second, _ = (one.data for one in ledger.data_set("people").approvals)
    assert held == [second.digest, first.digest, None]
    ledger.verify()


def test_a_run_is_resumed_on_its_own_data_only(ledger, files, tmp_path):
    approved, _, other = files
    ledger.approve("people", study_of(Stops).plan(), by="b", data=[approved])
    journal = tmp_path / "journal"
    with pytest.raises(dpf.RunStopped):
        run(ledger, approved, Stops, journal=journal)
    with pytest.raises(dpf.PlanRefused, match="cannot be resumed; it was begun on other data"):
        run(ledger, other, Stops, journal=journal)
    with pytest.raises(dpf.RunStopped):
        run(ledger, approved, Stops, journal=journal)
    ledger.verify()


def test_rows_that_end_a_run_use_up_the_approval_of_their_data(ledger, files):
    approved, _, other = files
    study = dpf.Study(dpf.Schema([dpf.Boolean("ill")], max_rows=5), epsilon=1)
    study.add("n", Counts())
    for file in (other, approved):
        ledger.approve("people", study.plan(), by="b", data=[file])
    with pytest.raises(dpf.InputError, match="max_rows"):
        study.run(lambda: dpf.read_table(approved, study.schema), ledger=ledger.run("people", data=[approved]))
    assert [one.left for one in ledger.data_set("people").approvals] == [1, 0]
    ledger.verify()


def test_the_digest_is_salted_and_of_the_bytes_in_order(files):
    approved, copy, other = files
    one, again = Binding.of([approved, other]), Binding.of([approved, other])
    assert one.salt != again.salt
    assert one.digest != again.digest
    digests = [hashlib.sha256(path.read_bytes()).digest() for path in (approved, other)]
    assert one.digest == hmac.new(bytes.fromhex(one.salt), b"".join(digests), "sha256").hexdigest()
    assert one.holds(data_digests([copy, other]))
    assert not one.holds(data_digests([other, approved]))
    assert not one.holds([])


def test_what_cannot_be_bound_approves_nothing(ledger, tmp_path):
    for data, says in (
        ([tmp_path / "none.csv"], "cannot be read"),
        ([tmp_path], "cannot be read"),
        ("a.csv", "a list"),
    ):
        with pytest.raises(dpf.InputError, match=says):
            ledger.approve("people", study_of().plan(), by="b", data=data)
    assert [entry.kind for entry in entries(ledger)] == ["ledger", "data set"]


def test_the_commands_bind_and_refuse(tmp_path, monkeypatch, capsys, files):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(registry().miners, "counts", PluginComponent("planted", Counts))
    (tmp_path / "ill.schema.toml").write_text('[[attribute]]\nname = "ill"\nkind = "boolean"\n')
    study = '[data]\npath = "a.csv"\nschema = "ill.schema.toml"\n[privacy]\nepsilon = 1\n'
    step = '[[step]]\nname = "n"\nminer = "counts"\n'
    (tmp_path / "study.toml").write_text(study + step)
    assert main(["ledger", "open", "c", "--data-set", "p", "--epsilon", "2"]) == 0
    approve = ["ledger", "approve", "c", "study.toml", "--data-set", "p", "--by", "me", "--runs", "2"]
    assert main([*approve, "--data", "a.csv"]) == 0
    command = ["run", "study.toml", "--ledger", "c", "--data-set", "p", "--out"]
    assert main([*command, "one"]) == 0
    assert "(1 of 2 runs left)" in (tmp_path / "one" / "report.html").read_text()  # this run has used up one
    files[0].write_text(files[2].read_text())
    capsys.readouterr()
    assert main([*command, "two"]) == 1
    assert "is approved, but for other data: run it on the approved data" in capsys.readouterr().err
    assert not (tmp_path / "two").exists()
    assert main(["ledger", "show", "c", "--data-set", "p"]) == 0
    assert main(["ledger", "verify", "c"]) == 0
