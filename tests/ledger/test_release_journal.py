"""The journal's seal: nobody who cannot read the key puts an output into a run."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from noisy_runs import TABLE, interrupted_run, never, study_of

import dpframework as dpf
from dpframework.ledger.entry_hash_chain import Chain
from dpframework.ledger.journal_key_file import journal_key, key_place
from dpframework.ledger.release_journal import Journal, seal
from dpframework.mechanisms import DiscreteLaplace

on_posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs the users and modes of POSIX")


@pytest.fixture
def ledger(tmp_path: Path) -> dpf.Ledger:
    made = dpf.Ledger.create(tmp_path / "people.ledger")
    made.open("people", epsilon=9)
    return made


def forged(journal: Path, statement: str, key: bytes) -> None:
    """Change a journal as somebody who has another key: each row is sealed again."""
    connection = sqlite3.connect(journal, isolation_level=None)
    connection.execute(statement)
    (owner,) = connection.execute("SELECT ledger, data_set, plan, run, key FROM owner")
    connection.execute("UPDATE owner SET digest = ?", (seal(key, "owner", *owner),))
    for row in connection.execute("SELECT number, path, origin, output FROM release").fetchall():
        connection.execute(
            "UPDATE release SET digest = ? WHERE number = ?", (seal(key, "release", owner[3], *row), row[0])
        )
    connection.close()


def refused(ledger: dpf.Ledger, journal: Path, text: str) -> None:
    with pytest.raises(dpf.InputError, match=text) as caught:
        study_of().run(never, ledger=ledger.run("people", journal=journal))
    assert "\n" not in str(caught.value)


def test_a_journal_of_somebody_without_the_key_is_refused(ledger: dpf.Ledger, tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    interrupted_run(ledger, journal)
    for statement in ("UPDATE release SET output = '7' WHERE number = 1", "UPDATE release SET origin = origin"):
        copy = shutil.copy(journal, tmp_path / "forged.journal")
        forged(copy, statement, b"another key")
        refused(ledger, copy, "or was written by another user")
    # With the key, the same change is taken: so the seal is what refuses it.
    forged(journal, "UPDATE release SET output = '7' WHERE number = 1", journal_key(Chain(ledger.path), make=False))
    assert study_of().run(TABLE, ledger=ledger.run("people", journal=journal))["m"][0] == 7


def test_an_output_of_another_run_is_refused(ledger: dpf.Ledger, tmp_path: Path) -> None:
    """Both journals are sealed with one key: a seal is of its run."""
    journals = [tmp_path / name for name in ("one.journal", "other.journal")]
    for journal in journals:
        interrupted_run(ledger, journal)
    connection = sqlite3.connect(journals[0], isolation_level=None)
    connection.execute("ATTACH ? AS other", (str(journals[1]),))
    connection.execute("DELETE FROM release WHERE number = 1")
    connection.execute("INSERT INTO release SELECT * FROM other.release WHERE number = 1")
    connection.close()
    refused(ledger, journals[0], "or was written by another user")


@on_posix
def test_the_key_is_for_its_owner_alone(ledger: dpf.Ledger, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        interrupted_run(ledger, tmp_path / "run.journal")
    finally:
        os.umask(before)
    place = key_place(ledger.path)
    assert place.parent == ledger.path.parent
    assert place.stat().st_mode & 0o777 == 0o600
    text = place.read_text()
    interrupted_run(ledger, tmp_path / "other.journal")
    assert place.read_text() == text
    assert text.strip() not in ledger.path.read_bytes().decode("latin-1")


@on_posix
def test_a_new_key_is_on_the_disk_before_it_is_used(
    ledger: dpf.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a power cut could leave a journal that is sealed by a key which nobody has."""
    synchronise, synchronised = os.fsync, []

    def noted(descriptor: int) -> None:
        held = os.fstat(descriptor)
        synchronised.append("folder" if stat.S_ISDIR(held.st_mode) else held.st_size)
        synchronise(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    key = journal_key(Chain(ledger.path), make=True)
    assert synchronised == [2 * len(key) + 1, "folder"]
    assert journal_key(Chain(ledger.path), make=True) == key
    assert len(synchronised) == 2  # a key that is there is only read


def linked(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.symlink_to(place.with_name("elsewhere"))


@on_posix
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda place: place.chmod(0o644), "other users may read or write this key"),
        (lambda place: place.chmod(0o620), "other users may read or write this key"),
        (linked, "cannot be read or written"),
        (Path.unlink, "put the key back from a backup, or"),
        (lambda place: place.write_text("00" * 31 + "\n"), "is damaged"),
        (lambda place: place.write_text(""), "is damaged"),
        (lambda place: (place.unlink(), place.mkdir(mode=0o700)), "cannot be read or written|is no regular file"),
        (lambda place: (place.unlink(), os.mkfifo(place, 0o600)), "is no regular file"),
    ],
    ids=["read", "written", "link", "gone", "short", "empty", "folder", "pipe"],
)
def test_a_key_that_somebody_may_have_put_there_is_refused(
    ledger: dpf.Ledger, tmp_path: Path, change: Callable[[Path], object], text: str
) -> None:
    journal = tmp_path / "run.journal"
    interrupted_run(ledger, journal)
    change(key_place(ledger.path))
    refused(ledger, journal, text)
    assert journal.exists()


@on_posix
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to give a file to another user")
def test_a_key_of_another_user_is_refused(ledger: dpf.Ledger, tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    interrupted_run(ledger, journal)
    os.chown(key_place(ledger.path), 12345, -1)
    refused(ledger, journal, "belongs to another user")


def test_a_key_that_was_begun_when_its_process_was_killed_is_made(ledger: dpf.Ledger, tmp_path: Path) -> None:
    os.close(os.open(key_place(ledger.path), os.O_CREAT, 0o600))
    study = study_of()
    ledger.approve("people", study.plan(), by="b")
    study.run(TABLE, ledger=ledger.run("people", journal=tmp_path / "run.journal"))
    assert len(journal_key(Chain(ledger.path), make=False)) == 32


def test_an_interrupt_while_a_journal_is_opened_waits_until_the_run_can_close_it(
    ledger: dpf.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is kept, as a notebook keeps it, with every frame that it came through."""
    import signal

    journal, study = tmp_path / "run.journal", study_of()
    ledger.approve("people", study.plan(), by="b")
    begin = Journal._begin

    def interrupted(self: Journal) -> None:
        begin(self)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore the signal
    try:
        with monkeypatch.context() as patched:
            patched.setattr(Journal, "_begin", interrupted)
            with pytest.raises(KeyboardInterrupt) as kept:
                study.run(TABLE, ledger=ledger.run("people", journal=journal))
    finally:
        signal.signal(signal.SIGINT, before)
    assert kept.value.__traceback__ is not None
    assert not journal.exists()
    study.run(TABLE, ledger=ledger.run("people", journal=journal))


def test_the_classes_of_a_mechanisms_outputs_are_read_back(
    ledger: dpf.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "run.journal"
    monkeypatch.setattr(
        DiscreteLaplace, "release_many", lambda self, answers, *_: [dpf.Equals("town", "A")] * len(answers)
    )
    with pytest.raises(dpf.InputError, match="type Equals cannot be kept for resuming; a mechanism lists in `outputs`"):
        interrupted_run(ledger, journal)
    monkeypatch.setattr(DiscreteLaplace, "outputs", (dpf.Equals,), raising=False)
    other = tmp_path / "other.journal"
    interrupted_run(ledger, other)
    assert study_of().run(TABLE, ledger=ledger.run("people", journal=other))["m"][0] == dpf.Equals("town", "A")
