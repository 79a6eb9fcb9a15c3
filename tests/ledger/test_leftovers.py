"""A journal that is left beside the results of its run is removed by the next command; any other one stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from noisy_runs import TABLE, interrupted_run, study_of
from people import SCHEMA_FILE, TREE_STUDY

import dpframework as dpf
from dpframework.cli import main
from dpframework.ledger.journal_key_file import key_place
from dpframework.ledger.ledger_run import LedgerRun


def test_a_journal_goes_with_the_results_of_its_own_run_only(tmp_path: Path) -> None:
    ledger = dpf.Ledger.create(tmp_path / "people.ledger")
    ledger.open("people", epsilon=9)
    unfinished, ended = tmp_path / "unfinished", tmp_path / "ended"
    interrupted_run(ledger, unfinished)
    (begun,) = ledger.data_set("people").runs
    ledger.approve("people", study_of().plan(), by="b")
    run = study_of().run(TABLE, ledger=ledger.run("people", journal=ended)).run
    assert run is not None
    for journal, of in ((unfinished, begun), (unfinished, run), (ended, begun), (ended, "another")):
        ledger.run("people", journal=journal).discard_of(of)
        assert journal.exists()
    ledger.run("people", journal=ended).discard_of(run)
    assert not ended.exists()
    key = key_place(tmp_path / "people.ledger")
    key.unlink()
    with pytest.raises(dpf.InputError, match="there is no such key"):
        ledger.run("people", journal=unfinished).discard_of(begun)
    assert not key.exists(), "what is sealed with another key is not to be removed"


def test_a_command_that_was_killed_before_it_removed_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.schema.toml").write_text(SCHEMA_FILE)
    Path("study.toml").write_text(TREE_STUDY)
    Path("people.csv").write_text("ill,age\n" + "true,20\nfalse,70\n" * 50)
    on = ["--data-set", "people"]
    assert main(["ledger", "open", "l", *on, "--epsilon", "2"]) == 0
    assert main(["ledger", "approve", "l", "study.toml", *on, "--by", "b"]) == 0
    run = ["run", "study.toml", "--out", "out", "--ledger", "l", *on]
    with monkeypatch.context() as patched:
        patched.setattr(LedgerRun, "discard", lambda self: None)
        assert main(run) == 0
    assert Path(".out.unfinished").exists()
    results = Path("out/results.json").read_bytes()
    assert main(run) == 2
    assert "holds the results of an earlier run" in capsys.readouterr().err
    assert not Path(".out.unfinished").exists()
    assert Path("out/results.json").read_bytes() == results
