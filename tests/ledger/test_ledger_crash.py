"""A run that is killed with SIGKILL at any step: the ledger is whole, its charge is there, and the run goes on.

The matrix runs in a process of its own, which forks a child a kill: forking is safe there, since it has no threads.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import shutil
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from killing import needs_kills, steps_of, steps_tried, told_by_itself
from people import study_file, tree_step

import dpframework as dpf
from dpframework import cli
from dpframework.cli.run import write_outputs
from dpframework.ledger.data_sets import DataSet
from dpframework.ledger.entry_hash_chain import Chain
from dpframework.ledger.journal_key_file import journal_key
from dpframework.ledger.release_journal import Journal
from dpframework.run.gate import Gate
from dpframework.study.plugin_registry import registry

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, bins=2)])
STUDY = study_file(8, tree_step("first", 4), tree_step("second", 4, "age"))
RUN = ["run", "study.toml", "--out", "out", "--ledger", "people.ledger", "--data-set", "people"]


class Spy(dpf.Observer):
    """Writes down, where a kill cannot undo it, every output that anybody has seen."""

    def released(self, release: dpf.Release) -> None:
        with open("seen.jsonl", "a") as file:
            file.write(json.dumps([release.charge.path, np.asarray(release.output).tolist()]) + "\n")


def prepared(folder: Path) -> None:
    """Write the study, its data, and a ledger with a cap that fits two runs and approves one."""
    SCHEMA.dump(folder / "people.schema.toml")
    (folder / "study.toml").write_text(STUDY)
    rows = "".join(f"{str(age > 50).lower()},{age}\n" for age in range(100))
    (folder / "people.csv").write_text("ill,age\n" + rows)
    ledger = dpf.Ledger.create(folder / "people.ledger")
    ledger.open("people", epsilon=17)
    ledger.approve("people", dpf.study.load_study(folder / "study.toml").study.plan(), by="the board")


def steps_of_run(folder: Path, last: int | None) -> int | None:
    """Make the run in a child that is killed at a step; return the number of steps if it came to its end."""

    def run() -> int:
        registry().observers.append(Spy())
        with contextlib.redirect_stdout(io.StringIO()):
            return cli.main(RUN)

    return steps_of(folder, last, run, (Gate, "draw"))


def seen(folder: Path) -> list[list[object]]:
    """Return what was seen of the run since it was asked last."""
    path = folder / "seen.jsonl"
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    path.unlink()
    return [json.loads(line) for line in lines]


def people_of(folder: Path) -> DataSet:
    """Return the data set of a ledger that is whole."""
    ledger = dpf.Ledger(folder / "people.ledger")
    ledger.verify()
    return ledger.data_set("people")


def check_killed(folder: Path, outputs: list[list[object]]) -> str:
    """Check what a kill leaves; return the state that it was killed in."""
    people = people_of(folder)
    assert len(people.runs) <= 1
    assert people.left == 17 - 8 * sum(run.charged for run in people.runs.values())
    assert people.approvals[0].left == 1 - len(people.runs)  # used up before a row is read
    if not people.runs:
        assert outputs == []
        return "not read"
    (run,) = people.runs.values()
    if not run.charged:
        assert outputs == []
        return "reading"
    # Whatever anybody has seen was charged before, and is kept.
    assert run.charges[: len(outputs)] == [path for path, _ in outputs]
    if (folder / "out").exists():  # whole, and the run had ended
        assert run.end == "finished"
        assert json.loads((folder / "out" / "results.json").read_text())["run"] == run.id
        return "written"
    key = journal_key(Chain(dpf.Ledger(folder / "people.ledger").path), make=False)
    journal = Journal(folder / ".out.unfinished", key)
    kept = [[release.path, np.asarray(release.output).tolist()] for release in journal.releases(run.id).values()]
    journal.close()
    assert kept[: len(outputs)] == outputs
    assert len(kept) <= len(run.charges) <= len(kept) + 1
    return run.end or ("kept" if len(kept) == len(run.charges) else "charged")


def check_finished(folder: Path, outputs: list[list[object]]) -> None:
    """Check a run that was killed, and resumed to its end: one run, one charge a release."""
    people = people_of(folder)
    (run,) = people.runs.values()
    assert run.charges == [path for path, _ in outputs], "each release is charged once"
    assert (run.end, people.left) == ("finished", Fraction(9))
    results = json.loads((folder / "out" / "results.json").read_text())
    assert results["plan"] == json.loads((folder / "out" / "plan.json").read_text())["hash"] == run.plan
    assert (results["run"], results["private"]) == (run.id, True)
    assert list(folder.glob(".out*unfinished*")) == []


def warm_up(folder: Path) -> None:
    """Compile and import what every child needs; polars is imported only, for it has threads once it is used."""
    for module in ("polars", "narwhals"):
        importlib.import_module(module)
    table = dpf.Table.from_codes(SCHEMA, np.array([[0, 1], [0, 1]]))
    results = dpf.study.load_study(folder / "study.toml").study.run(table)
    (folder / "warm").mkdir()
    write_outputs(folder / "warm", results, title="")
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert cli.main(RUN) == 2
    assert "there is no such ledger" in said.getvalue()


def matrix(folder: Path, every: int) -> dict[str, int]:
    """Kill a run at so many steps (see `killing.steps_tried`); at times kill that too, resume it to its end."""
    template = folder / "template"
    template.mkdir()
    prepared(template)
    warm_up(template)

    def fresh(name: str) -> Path:
        return Path(shutil.copytree(template, folder / name))

    steps = steps_of_run(fresh("whole"), None)
    assert steps is not None
    states: Counter[str] = Counter()
    for step in steps_tried(steps, every):
        here = fresh(str(step))
        outputs: list[list[object]] = []
        for last in (step, None) if step % 4 else (step, 7 * step % steps, None):
            ended = steps_of_run(here, last) is not None
            again = seen(here)
            common = min(len(outputs), len(again))
            assert again[:common] == outputs[:common], "a resumed run gave another output than was seen before"
            outputs = max(outputs, again, key=len)
            if ended:
                check_finished(here, outputs)
                break
            state = check_killed(here, outputs)
            states[state] += 1
            if state == "written":
                break
        shutil.rmtree(here)
    return {**states, "steps": steps}


@needs_kills
@pytest.mark.parametrize("every", [7, 2])
def test_a_run_killed_at_any_step_keeps_its_charge_and_goes_on(every):
    states = told_by_itself(__file__, every)
    assert states.pop("steps") >= 70
    assert set(states) == {"not read", "reading", "charged", "kept", "finished", "written"}


if __name__ == "__main__":
    print(json.dumps(matrix(Path(sys.argv[1]), int(sys.argv[2]))))
