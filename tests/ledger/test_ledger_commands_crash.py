"""A `ledger` command that is killed with SIGKILL at any step has done all that it says, or nothing.

The matrix runs in a process of its own, which forks a child a kill: forking is safe there, since it has no threads.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from killing import needs_kills, steps_of, steps_tried, told_by_itself
from people import TREE_STUDY

import dpframework as dpf
from dpframework import cli
from dpframework.ledger.entry_hash_chain import Chain

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("old")])
FILE, ON = "people.ledger", ("--data-set", "people")
APPROVE = ["approve", FILE, "study.toml", *ON, "--by", "the board"]

#: What each command is, and what is done before it. They write one entry, three, one, two, one and none.
COMMANDS: dict[str, tuple[list[list[str]], list[str]]] = {
    "open a data set in a new ledger": ([], ["open", FILE, *ON, "--epsilon", "2"]),
    "open another": ([["open", FILE, "--data-set", "staff", "--epsilon", "2"]], ["open", FILE, *ON, "--epsilon", "2"]),
    "approve": ([["open", FILE, *ON, "--epsilon", "2"]], APPROVE),
    "approve again": ([["open", FILE, *ON, "--epsilon", "2"], APPROVE], APPROVE),
    "revoke": ([["open", FILE, *ON, "--epsilon", "2"], APPROVE], ["revoke", FILE, "", *ON, "--by", "the board"]),
    "show": ([["open", FILE, *ON, "--epsilon", "2"], APPROVE], ["show", FILE, *ON]),
    "verify": ([["open", FILE, *ON, "--epsilon", "2"], APPROVE], ["verify", FILE]),
}
#: What a ledger may hold after a kill that it held neither before nor after: made, with no data set yet.
BETWEEN = {"open a data set in a new ledger": {("ledger",)}}


def ledger(*arguments: str) -> int:
    with contextlib.redirect_stdout(io.StringIO()):
        return cli.main(["ledger", *arguments])


def held(folder: Path) -> tuple[str, ...]:
    """Return the kinds of entries of a ledger that is whole; nothing if there is none, or an empty file."""
    path = folder / FILE
    if not path.exists() or not path.stat().st_size:
        return ()
    found = dpf.Ledger(path)
    found.verify()
    with Chain(found.path).reading() as transaction:
        return tuple(entry.kind for entry in transaction.read())


def matrix(root: Path, every: int) -> dict[str, Counter[str]]:
    """Kill each command at so many steps (see `steps_tried`); look, and give it again where it had done nothing."""
    made: dict[str, Counter[str]] = {}
    for name, (before, command) in COMMANDS.items():
        template = root / "template"
        template.mkdir()
        SCHEMA.dump(template / "people.schema.toml")
        (template / "study.toml").write_text(TREE_STUDY)
        os.chdir(template)
        for earlier in before:
            assert ledger(*earlier) == 0
        then = held(template)
        whole = Path(shutil.copytree(template, root / "whole"))
        give = functools.partial(ledger, *command)
        steps = steps_of(whole, None, give)
        assert steps is not None
        now = held(whole)
        states: Counter[str] = Counter(steps=steps)
        for step in steps_tried(steps, every):
            here = Path(shutil.copytree(template, root / "here"))
            assert steps_of(here, step, give) is None
            found = held(here)
            assert found in {then, now} | BETWEEN.get(name, set()), f"{name}, killed at {step}: {found}"
            states["done" if found == now else "not done"] += 1
            if found != now:
                assert steps_of(here, None, give) is not None
                assert held(here) == now
            shutil.rmtree(here)
        made[name] = states
        os.chdir(root)
        shutil.rmtree(template)
        shutil.rmtree(whole)
    return made


@needs_kills
@pytest.mark.parametrize("every", [5, 2])
def test_a_ledger_command_killed_at_any_step_has_done_all_or_nothing(every):
    made = told_by_itself(__file__, every)
    assert set(made) == set(COMMANDS)
    for name, states in made.items():
        assert states["steps"] >= 4
        if name not in ("show", "verify"):  # they change nothing
            assert states["done"], name
            assert states["not done"], name


if __name__ == "__main__":
    print(json.dumps(matrix(Path(sys.argv[1]), int(sys.argv[2]))))
