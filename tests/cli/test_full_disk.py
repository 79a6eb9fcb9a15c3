"""A disk that is full after the last release: what was paid for is kept, and the same command writes it later."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from people import TREE_STUDY

import dpframework as dpf
from dpframework.cli import main, run as run_commands
from dpframework.ledger import release_journal

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("old")])
ON = ("--ledger", "people.ledger", "--data-set", "people")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study, its data, and a ledger whose cap fits two runs of it, one of them approved."""
    monkeypatch.chdir(tmp_path)
    SCHEMA.dump("people.schema.toml")
    Path("study.toml").write_text(TREE_STUDY.replace(", max_depth = 1", ""))  # more than the disk holds
    Path("people.csv").write_text("ill,old\n" + "yes,no\nno,yes\n" * 50)
    ledger = dpf.Ledger.create("people.ledger")
    ledger.open("people", epsilon=2)
    ledger.approve("people", dpf.study.load_study("study.toml").study.plan(), by="the board")
    return tmp_path


def one_run(folder: Path) -> dpf.ledger.RecordedRun:
    """Return the only run of the ledger, which is whole; it has ended, and cost 1 of 2."""
    ledger = dpf.Ledger(folder / "people.ledger")
    ledger.verify()
    people = ledger.data_set("people")
    (run,) = people.runs.values()
    assert (run.end, people.left) == ("finished", Fraction(1))
    return run


def check_refused(said: str, out: Path, run: dpf.ledger.RecordedRun) -> None:
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert "No space left on device" in said
    assert any(f"{out / name}: " in said for name in run_commands.FILES)
    assert (
        f"the ledger holds run {run.id}; when this is resolved, repeat the command to write the run's results" in said
    )
    assert list(out.parent.glob(f".{out.name}*")) == [out.parent / f".{out.name}.unfinished"]


def check_written(folder: Path, out: Path, run: dpf.ledger.RecordedRun) -> None:
    assert str(one_run(folder)) == str(run), "the second time it was charged again"
    assert json.loads((out / "results.json").read_text())["run"] == run.id
    assert sorted(path.name for path in out.iterdir()) == sorted(run_commands.FILES)
    assert not list(out.parent.glob(f".{out.name}*"))


@pytest.mark.parametrize("name", run_commands.FILES)
def test_results_that_find_no_room_are_written_by_the_same_command(folder, capsys, monkeypatch, name):
    """The disk is full when one of the three files is synchronised."""
    command = ["run", "study.toml", "--out", "out", *ON]
    synchronise = os.fsync

    def full(descriptor: int) -> None:
        if f".{name}." in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        synchronise(descriptor)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc, to know a file that is written by its descriptor")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main(command) == 2
    run = one_run(folder)
    said = capsys.readouterr().err
    check_refused(said, Path("out"), run)
    assert f"error: {Path('out') / name}: cannot be written" in said
    assert main(command) == 0
    check_written(folder, folder / "out", run)


def test_without_a_ledger_the_results_are_printed(folder, capsys, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert main(["run", "study.toml", "--out", "out"]) == 2
    said = capsys.readouterr()
    assert "the results of the run are on standard output" in said.err
    assert set(json.loads(said.out)["results"]) == {"tree"}
    assert not Path("out").exists()


@pytest.fixture
def small_disk(tmp_path_factory):
    """A file system of its own with room for a journal, and not for a report."""
    place = tmp_path_factory.mktemp("disk")
    mount = shutil.which("mount")
    made = mount and subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True)
    if not made or made.returncode:
        pytest.skip("a small file system can be mounted by root only")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def test_a_file_system_that_is_full(folder, capsys, small_disk):
    out = small_disk / "out"
    command = ["run", "study.toml", "--out", str(out), *ON]
    assert main(command) == 2
    run = one_run(folder)
    check_refused(capsys.readouterr().err, out, run)
    assert main(command) == 2, "it is as full as before"
    check_refused(capsys.readouterr().err, out, run)
    subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
    assert main(command) == 0
    check_written(folder, out, run)


def test_a_disk_without_room_for_the_journal_costs_nothing_that_is_not_kept(folder, capsys, small_disk):
    """No room at all: the run is not charged, or charged and unfinished; with room it goes on to its end."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 60_000)
    out = small_disk / "out"
    command = ["run", "study.toml", "--out", str(out), *ON]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "the disk is full" in said or "No space left on device" in said
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
    assert main(command) == 0
    check_written(folder, out, one_run(folder))


class NoRoom(sqlite3.Connection):
    """A connection that finds the disk full once it holds the lock."""

    def execute(self, text: str, *given: object) -> sqlite3.Cursor:  # type: ignore[override]
        if text.startswith("CREATE"):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return super().execute(text, *given)  # type: ignore[arg-type]


def test_a_journal_that_cannot_be_begun_holds_no_lock(tmp_path, monkeypatch):
    """The error that says so may be kept for as long as somebody likes."""
    path = tmp_path / "run.journal"
    with monkeypatch.context() as patched:
        patched.setattr(
            release_journal, "connect", lambda *_, **__: sqlite3.connect(path, isolation_level=None, factory=NoRoom)
        )
        with pytest.raises(dpf.InputError, match="disk is full") as kept:
            release_journal.Journal(path, b"key")
    assert kept.value.__traceback__ is not None
    release_journal.Journal(path, b"key").close()
