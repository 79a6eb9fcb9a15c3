"""Signed approvals: by OpenSSH, for one place in one ledger; and ledgers as pages."""

import csv
import io
import json
import shutil
import sqlite3
import subprocess

import pytest
from reports.test_report_html import read

import dpframework as dpf
from dpframework.cli import main
from dpframework.ledger import LedgerTampered
from dpframework.ledger.entry_hash_chain import canonical, hash_entry
from dpframework.ledger.signers import Signers

SCHEMA = dpf.Schema([dpf.Boolean("ill")])


@pytest.fixture
def plan():
    study = dpf.Study(SCHEMA, epsilon="1/2")
    study.add("ill", dpf.miner("histogram", attribute="ill", epsilon="1/2"))
    return study.plan()


@pytest.fixture
def ledger(tmp_path):
    made = dpf.Ledger.create(tmp_path / "a.ledger")
    made.open("patients", epsilon=2)
    return made


@pytest.fixture
def keys(tmp_path):
    """Two keys, and a file that allows the first."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen to sign with")
    for name in ("board", "stranger"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(tmp_path / name)]
        subprocess.run(command, check=True)
    allowed = tmp_path / "signers"
    allowed.write_text(f"board@example.org {(tmp_path / 'board.pub').read_text()}")
    return tmp_path / "board", tmp_path / "stranger", allowed


def test_an_approval_is_signed_and_verified_offline(ledger, plan, keys):
    board, _, allowed = keys
    ledger.approve("patients", plan, by="Review board", key=board)
    (line,) = ledger.signatures(allowed)
    assert line.endswith(": signed by board@example.org")
    (line,) = ledger.signatures()
    assert "signed by the key SHA256:" in line
    assert "whose owner is not known here" in line
    assert "signed" in ledger.data_set("patients").approvals[0].sentence
    assert json.loads(json.dumps(ledger.data_set("patients").to_dict()))["approvals"][0]["signature"]


def test_an_unsigned_approval_is_possible_and_says_so(ledger, plan):
    ledger.approve("patients", plan, by="Review board")
    assert ledger.signatures()[0].endswith(": unsigned")
    assert "unsigned" in ledger.data_set("patients").approvals[0].sentence


def test_a_key_that_nobody_allows_is_refused(ledger, plan, keys):
    _, stranger, allowed = keys
    ledger.approve("patients", plan, by="Review board", key=stranger)
    with pytest.raises(LedgerTampered, match=r"no signer in .* has the key"):
        ledger.signatures(allowed)


@pytest.mark.parametrize("change", [{"runs": 9}, {"by": "Somebody"}, {"note": "more"}])
def test_a_changed_approval_does_not_fit_its_signature(tmp_path, ledger, plan, keys, change):
    """Whoever writes the file can make its hashes anew, and not the signature."""
    board, _, allowed = keys
    ledger.approve("patients", plan, by="Review board", key=board)
    _rewritten(ledger.path, lambda content: {**content, **change})
    assert ledger.verify()
    with pytest.raises(LedgerTampered, match="does not fit its text"):
        ledger.signatures(allowed)
    with pytest.raises(LedgerTampered, match="does not fit its text"):
        ledger.signatures()


def test_a_signature_fits_no_other_place_and_no_other_ledger(tmp_path, ledger, plan, keys):
    board, _, allowed = keys
    ledger.approve("patients", plan, by="Review board", key=board)
    signature = ledger.data_set("patients").approvals[0].signature
    ledger.approve("patients", plan, by="Review board")
    _rewritten(ledger.path, lambda content: {**content, "signature": signature})
    assert ledger.verify()
    with pytest.raises(LedgerTampered, match="does not fit its text"):
        ledger.signatures(allowed)
    other = dpf.Ledger.create(tmp_path / "b.ledger")
    other.open("patients", epsilon=2)
    other.approve("patients", plan, by="Review board")
    _rewritten(other.path, lambda content: {**content, "signature": signature})
    with pytest.raises(LedgerTampered, match="does not fit its text"):
        other.signatures(allowed)


def _rewritten(path, change) -> None:
    """Change the last entry, and make its hash anew."""
    with sqlite3.connect(path) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        number, time, kind, content, previous, _ = connection.execute(
            "SELECT * FROM entry ORDER BY number DESC LIMIT 1"
        ).fetchone()
        assert kind == "approval"
        text = canonical(change(json.loads(content)))
        made = hash_entry(previous, number, time, kind, text)
        connection.execute("UPDATE entry SET content = ?, hash = ? WHERE number = ?", (text, made, number))
        for _, sql in triggers:
            connection.execute(sql)
    connection.close()


def test_what_cannot_sign_is_said_in_a_sentence(tmp_path, ledger, plan, keys):
    with pytest.raises(dpf.InputError, match="there is no such key"):
        ledger.approve("patients", plan, by="R", key=tmp_path / "none")
    broken = tmp_path / "broken"
    broken.write_text("no key")
    with pytest.raises(dpf.InputError, match="cannot sign with it"):
        ledger.approve("patients", plan, by="R", key=broken)
    assert ledger.data_set("patients").approvals == []


def test_signers_are_named_in_order():
    for names, text in (("a", "a"), ("ba", "a or b"), ("cab", "a, b or c")):
        assert str(Signers(dict.fromkeys(names, "ssh-ed25519 AAAA"))) == text


def test_the_commands_sign_verify_and_report(tmp_path, ledger, plan, keys, capsys):
    board, stranger, allowed = keys
    source = tmp_path / "plan.json"
    source.write_text(plan.to_json())
    given = [str(ledger.path), str(source), "--data-set", "patients", "--by", "Review board"]
    assert main(["ledger", "approve", *given, "--key", str(board)]) == 0
    assert "approved for 1 run, signed: plan" in capsys.readouterr().out
    assert main(["ledger", "verify", str(ledger.path), "--signers", str(allowed)]) == 0
    assert "signed by board@example.org" in capsys.readouterr().out
    assert main(["report", str(source), "--ledger", str(ledger.path), "--data-set", "patients"]) == 0
    assert "Checks passed; approved by Review board on" in capsys.readouterr().out
    allowed.write_text(f"stranger {stranger.with_suffix('.pub').read_text()}")
    assert main(["ledger", "verify", str(ledger.path), "--signers", str(allowed)]) == 1


def test_a_ledger_is_written_as_a_page_as_csv_and_as_json(tmp_path, ledger, plan):
    ledger.approve("patients", plan, by="=Review <b>board")
    study = dpf.Study(SCHEMA, epsilon="1/2")
    study.add("ill", dpf.miner("histogram", attribute="ill", epsilon="1/2"))
    study.run(dpf.Table.from_codes(SCHEMA, [[0, 1, 1]]), ledger=ledger.run("patients", journal=tmp_path / "journal"))
    written = {}
    for name in ("a.html", "a.csv", "a.json"):
        assert main(["ledger", "show", str(ledger.path), "--out", str(tmp_path / name)]) == 0
        written[name] = (tmp_path / name).read_text()
    page = read(written["a.html"])
    assert "=Review <b>board" in page.text
    assert "can rise to at most 62.3 %" in page.text  # epsilon 1/2 so far
    assert "can rise to at most 88.1 %" in page.text  # epsilon 2, the cap
    (row,) = csv.DictReader(io.StringIO(written["a.csv"]))
    assert (row["data set"], row["charged"], row["end"]) == ("patients", "0.5", "finished")
    assert json.loads(written["a.json"])["entries"] > 3
    assert main(["ledger", "show", str(ledger.path), "--out", str(tmp_path / "a.pdf")]) == 2
