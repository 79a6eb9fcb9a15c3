"""Commands that are stopped: what is there before, and what must hold after."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from ends import INTERRUPT, KILL, TORN, Done, ended
from ledger import test_ledger_crash as crash

import dpframework as dpf
from dpframework import cli
from dpframework.facts.files import write_whole
from dpframework.ledger.entry_hash_chain import Chain
from dpframework.study.plugin_registry import registry

ON = ("--data-set", "people")
RUN = ["run", "study.toml", "--out", "out"]
FILES = {"plan.json", "report.html", "results.json"}
RELEASES = 4
SEEN = "seen.jsonl"  # what the test writes of each release that it sees


class Failed(Exception):
    """What must hold and does not."""


def require(holds: bool, says: str) -> None:
    if not holds:
        raise Failed(says)


@attrs.frozen
class Scenario:
    """A command that is stopped.

    Attributes
    ----------
    prepare
        Makes what is there before, in a folder.
    command
        Gives the command in the working folder; returns its exit code.
    check
        Looks at a folder after any end.
    check_done
        Looks at it once the command was given to its end.
    done_before
        The exit codes of a command that had been done before.
    """

    name: str
    prepare: Callable[[Path], Any]
    command: Callable[[], int]
    check: Callable[[Path, Done], None]
    check_done: Callable[[Path], None]
    done_before: tuple[int, ...] = ()
    ways: tuple[str, ...] = (KILL, TORN, INTERRUPT)


def command(*arguments: str) -> Callable[[], int]:
    def give() -> int:
        if not any(isinstance(observer, crash.Spy) for observer in registry().observers):
            registry().observers.append(crash.Spy())
        return cli.main(arguments)

    return give


def quietly_in(folder: Path, *arguments: str) -> None:
    """Give a command in a folder, in a child: this process must have no threads."""
    assert ended(folder, command(*arguments), None).code == 0, arguments


def prepared(root: Path) -> None:
    """Import and compile what every child needs, in a process that has no threads."""
    template = root / "template"
    template.mkdir()
    crash.prepared(template)
    before = os.getcwd()
    os.chdir(root)
    crash.warm_up(template)
    os.chdir(before)


# --- runs -----------------------------------------------------------------------------------------------------------


def check_results(folder: Path) -> None:
    """Look at the results: there are none, or all, and each is whole."""
    out = folder / "out"
    if not out.exists():
        return
    require({path.name for path in out.iterdir()} == FILES, f"out holds {sorted(p.name for p in out.iterdir())}")
    results, plan = (json.loads((out / name).read_text()) for name in ("results.json", "plan.json"))
    require(results["plan"] == plan["hash"], "the results are of another plan")
    require((out / "report.html").read_text().rstrip().endswith("</html>"), "the report is not whole")


def check_run(folder: Path, done: Done) -> None:
    check_results(folder)
    if done.code == 0:
        require((folder / "out").exists(), "it said that it was done, and its results are not there")


def check_run_done(folder: Path) -> None:
    require((folder / "out").exists(), "there are no results")


def check_ledger_run(folder: Path, done: Done) -> None:
    check_run(folder, done)
    people = crash.people_of(folder)
    seen = seen_of(folder)
    require(len(people.runs) <= 1, "it was charged twice")
    if not people.runs:
        require(not seen and not (folder / "out").exists(), "something was seen that was not charged")
        return
    (run,) = people.runs.values()
    require(people.left == 17 - 8 * run.charged, "it was charged another amount")
    require(run.charged or not run.charges, "a release was charged before the run was")
    require(len(run.charges) == len(set(run.charges)) <= RELEASES, f"a release was charged twice: {run.charges}")
    require(set(seen) <= set(run.charges), "something was seen that was not charged")
    if (folder / "out").exists():
        require(run.end == "finished", f"there are results of a run that has ended as {run.end}")


def seen_of(folder: Path) -> dict[str, Any]:
    """Return what was seen of each release: the same, however often the run was begun."""
    found: dict[str, Any] = {}
    path = folder / SEEN
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):  # the test itself was killed in the middle of its line
            release, output = json.loads(line)
            require(found.setdefault(release, output) == output, f"{release} was made twice, with two outputs")
    return found


def check_ledger_run_done(folder: Path) -> None:
    (run,) = crash.people_of(folder).runs.values()
    require(run.end == "finished", f"the run has ended as {run.end}")
    require(len(run.charges) == RELEASES, f"{len(run.charges)} charges")
    require(json.loads((folder / "out" / "results.json").read_text())["run"] == run.id, "results of another run")
    check_run_done(folder)


KEPT: list[BaseException] = []  # as a notebook keeps an error: with all frames, and all that they hold


def run_in_python() -> int:
    """Make a run, and once more in this process if it was interrupted."""
    table = dpf.Table.from_codes(crash.SCHEMA, np.array([[0, 1], [0, 1]]))
    for _ in range(2):
        ledger = dpf.Ledger("people.ledger")
        study = dpf.study.load_study("study.toml").study
        run = ledger.run("people", journal="run.journal")
        try:
            if not Path("done").exists():
                found = study.run(table, ledger=run).run
                write_whole(Path("done"), str(found))
            run.discard_of(Path("done").read_text())
        except (KeyboardInterrupt, dpf.RunStopped) as error:
            KEPT.append(error)
        else:
            return 0
    return 130


def check_python_run(folder: Path, done: Done) -> None:
    people = crash.people_of(folder)
    require(len(people.runs) <= 1, "it was charged twice")
    for run in people.runs.values():
        require(len(run.charges) == len(set(run.charges)) <= RELEASES, f"a release was charged twice: {run.charges}")
    if done.code == 0 and "Error" in done.said:
        raise Failed(done.said)


# --- the ledger -----------------------------------------------------------------------------------------------------


def entries(folder: Path) -> tuple[str, ...]:
    path = folder / "other.ledger"
    if not path.exists() or not path.stat().st_size:
        return ()
    try:
        found = dpf.Ledger(path)
    except dpf.InputError:
        if path.stat().st_size:
            raise
        return ()  # its first entry was being written, and SQLite has just taken back all of it
    found.verify()
    with Chain(found.path).reading() as transaction:
        return tuple(entry.kind for entry in transaction.read())


LEDGER = ["ledger", "open", "other.ledger", *ON, "--epsilon", "17"]
APPROVE = ["ledger", "approve", "other.ledger", "study.toml", *ON, "--by", "the board"]
REVOKE = ["ledger", "revoke", "other.ledger", "", *ON, "--by", "the board"]


def once(arguments: list[str], last: str) -> Callable[[], int]:
    """Return what gives a command unless its entry is there: whoever is not sure looks first."""

    def give() -> int:
        return 0 if last in entries(Path()) else command(*arguments)()

    return give


def changing(name: str, before: list[list[str]], arguments: list[str], added: tuple[str, ...]) -> Scenario:
    """Return a command that adds entries to a ledger, all or none, after others."""
    then: list[tuple[str, ...]] = []

    def prepare(folder: Path) -> None:
        crash.prepared(folder)
        for earlier in before:
            quietly_in(folder, *earlier)
        then.append(entries(folder))

    def check(folder: Path, done: Done) -> None:
        found, old = entries(folder), then[-1]
        between = {("ledger",)} if name == "ledger-open" else set()
        require(found in {old, (*old, *added)} | between, f"the ledger holds {found}")
        if done.code == 0:
            require(found == (*old, *added), f"it said that it was done, and the ledger holds {found}")

    return Scenario(name, prepare, once(arguments, added[-1]), check, lambda folder: None)


# --- files ----------------------------------------------------------------------------------------------------------


def writing(name: str, target: str, *arguments: str, end: str, again: bool) -> Scenario:
    """Return a command that writes a file, over one that it wrote before if it may be given again."""

    def prepare(folder: Path) -> None:
        crash.prepared(folder)
        if again:
            quietly_in(folder, *arguments)

    def check(folder: Path, done: Done) -> None:
        path = folder / target
        require(path.exists() or (not again and done.code != 0), f"{target} is not there")
        if path.exists():
            require(path.read_text().rstrip().endswith(end), f"{target} is not whole")

    return Scenario(name, prepare, command(*arguments), check, lambda folder: None, () if again else (2,))


RUN_FOLDER = (check_run, check_run_done, (2,))
SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("run", crash.prepared, command(*RUN), *RUN_FOLDER),
        Scenario("ledger-run", crash.prepared, command(*crash.RUN), check_ledger_run, check_ledger_run_done, (2,)),
        Scenario(
            "python-run", crash.prepared, run_in_python, check_python_run, lambda folder: None, (1,), (INTERRUPT,)
        ),
        changing("ledger-open", [], LEDGER, ("ledger", "data set")),
        changing("ledger-approve", [LEDGER], APPROVE, ("plan", "approval")),
        changing("ledger-revoke", [LEDGER, APPROVE], REVOKE, ("revocation",)),
        writing("report", "report.html", "report", "study.toml", "--out", "report.html", end="</html>", again=True),
        writing(
            "infer", "made.toml", "schema", "infer", "people.csv", "--out", "made.toml", end="bins = 16", again=False
        ),
    )
}
