"""A fork in the middle of releases: the child releases and writes nothing, and the run goes on in its parent."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noisy_runs import NAMES, TABLE, one_by_one, study_of

import dpframework as dpf
from dpframework.ledger.entry_hash_chain import Chain
from dpframework.mechanisms import DiscreteLaplace
from dpframework.run.gate import Gate

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    # The child ends at once, and uses no other thread's lock.
    pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning"),
]


class Forks:
    """Forks once, at a given call; knows what the child did, which ends by itself."""

    def __init__(self, at: int) -> None:
        self.at, self.calls, self.child = at, 0, -1

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.child = os.fork()


class Seen(dpf.Observer):
    """Writes down each release that this process or a fork of it has seen, and may fork before its charge."""

    def __init__(self, file: Path, forks: Forks, *, when: str) -> None:
        self.file, self.forks, self.when = file, forks, when

    def charged(self, charge: Any) -> None:
        if self.when == "charged":
            self.forks()

    def released(self, release: dpf.Release) -> None:
        with self.file.open("a") as file:
            file.write(f"{os.getpid()} {release.charge.path}\n")
        if self.when == "released":
            self.forks()


def together(table: dpf.PrivateTable) -> Any:
    return table.release_many((table, name, {}) for name in NAMES)


def in_a_thread(table: dpf.PrivateTable) -> Any:
    found: list[Any] = []
    worker = threading.Thread(target=lambda: found.extend(one_by_one(table)))
    worker.start()
    worker.join()
    return found


def forked_run(run: Callable[[], Any], forks: Forks) -> Any:
    """Run; in the child, end with 1 if it returned, with 0 if it was refused; return what the parent found."""
    parent = os.getpid()
    code = 9
    try:
        found = run()
        code = 1
    except dpf.ReleaseRefused as error:
        code = 0 if "opened in another process" in str(error) else 2
        if os.getpid() == parent:
            raise
    except dpf.DPFrameworkError:
        code = 3
        if os.getpid() == parent:
            raise
    finally:
        if os.getpid() != parent:
            os._exit(code)
    assert forks.child > 0
    _, status = os.waitpid(forks.child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "the child made releases, or failed for another reason"
    return found


def patched(monkeypatch: pytest.MonkeyPatch, forks: Forks, when: str) -> None:
    """Fork in a query's answer or in a mechanism's draw: code of plugins runs in both."""
    if when == "answered":
        answers = Gate._answers

        def answering(self: Gate, *arguments: Any) -> Any:
            forks()
            return answers(self, *arguments)

        monkeypatch.setattr(Gate, "_answers", answering)
    elif when == "drawn":
        release = DiscreteLaplace.release

        def drawing(self: DiscreteLaplace, *arguments: Any) -> Any:
            drawn = release(self, *arguments)
            forks()
            return drawn

        monkeypatch.setattr(DiscreteLaplace, "release", drawing)
        monkeypatch.setattr(DiscreteLaplace, "release_many", dpf.mechanisms.Mechanism.release_many)


WHEN = ["charged", "answered", "drawn", "released"]


@pytest.mark.parametrize("do", [one_by_one, together, in_a_thread])
@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("recorded", ["alone", "ledger", "journal"])
def test_a_forked_child_makes_no_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, do: Callable[..., Any], when: str, recorded: str
) -> None:
    if do is in_a_thread and when != "drawn":
        pytest.skip("one moment is enough for threads")
    forks, ledger = Forks(2), dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=9)
    patched(monkeypatch, forks, when)
    study = study_of(do)
    ledger.approve("people", study.plan(), by="b")
    journal = tmp_path / "journal" if recorded == "journal" else None
    run = None if recorded == "alone" else ledger.run("people", journal=journal)
    seen = tmp_path / "seen"
    observer = Seen(seen, forks, when=when)
    if do is in_a_thread:
        # the child of a thread has that thread alone, whose error nobody hears of: it ends here
        monkeypatch.setattr(threading, "excepthook", lambda told: os._exit(0 if os.getpid() != parent else 1))
    parent = os.getpid()
    found = forked_run(lambda: study.run(TABLE, ledger=run, observers=[observer])["m"], forks)
    assert len(found) == 3
    assert seen.read_text().splitlines() == [f"{parent} m/{name}" for name in NAMES]
    ledger.verify()
    if run is not None:
        (held,) = ledger.data_set("people").runs.values()
        assert (held.end, held.charges) == ("finished", [f"m/{name}" for name in NAMES])
    if journal is not None:
        again = study.run(TABLE, ledger=ledger.run("people", journal=journal))["m"]
        assert np.array_equal(again, found)


class InAFork(dpf.Observer):
    """Writes down each charge that it is told of. From the first on, it is another process that goes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch, self.told = monkeypatch, list[str]()

    def charged(self, charge: Any) -> None:
        self.told.append(charge.path)
        self.monkeypatch.setattr("dpframework.run.run_scopes_and_charges.this_process", lambda: (0, 1))


def test_a_fork_amid_several_charges_records_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    observer = InAFork(monkeypatch)
    with pytest.raises(dpf.ReleaseRefused, match="opened in another process"):
        study_of(together).run(TABLE, observers=[observer])
    assert observer.told == ["m/n1"]


def test_a_fork_after_a_charge_draws_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it drew could stand in its memory, or be sent somewhere, before its output is refused."""
    drawn, draw = list[Any](), DiscreteLaplace.release_many
    monkeypatch.setattr(DiscreteLaplace, "release_many", lambda *given: drawn.append(given) or draw(*given))
    with pytest.raises(dpf.ReleaseRefused, match="opened in another process"):
        study_of().run(TABLE, observers=[InAFork(monkeypatch)])
    assert drawn == []


@pytest.mark.parametrize("kind", ["resumption", "charge", "redraw", "end"])
def test_a_run_refuses_an_entry_of_its_own_that_it_did_not_write(tmp_path: Path, kind: str) -> None:
    ledger = dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=9)
    run = ledger.run("people", journal=tmp_path / "journal")
    contents = {
        "resumption": {"dpframework": "0"},
        "charge": {"number": 2, "path": "m/n2"},
        "redraw": {"number": 1, "path": "m/n1"},
        "end": {"releases": 1, "how": "stopped"},
    }

    def do(table: dpf.PrivateTable) -> Any:
        made = [table.release("n1")]
        with Chain(ledger.path).writing() as transaction:
            transaction.read()
            transaction.append(kind, {"run": run.id, **contents[kind]})
        return [*made, table.release("n2"), table.release("n3")]

    study = study_of(do)
    ledger.approve("people", study.plan(), by="b")
    with pytest.raises(dpf.ReleaseRefused, match="taken up by another process, which has written to the ledger for it"):
        study.run(TABLE, ledger=run)
    (held,) = ledger.data_set("people").runs.values()
    assert len(held.charges) == (2 if kind == "charge" else 1)
    ledger.verify()
