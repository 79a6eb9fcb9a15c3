"""Kill or interrupt commands between any two calls that change files, give them again, and look at what is there.

    python tests/kills/run.py                       # 200 kills and interrupts, of all commands
    python tests/kills/run.py --kills 40 --seed 3   # fewer, others
    python tests/kills/run.py ledger-run --every    # one command, at every call

A command ends just before a call that opens a file for writing, writes (or in the middle of a write), synchronises,
locks, truncates, moves or removes, or after a random time. Then it is given again, with nothing in its way. It passes
if nothing is lost (what was charged or seen is there, what is there is whole), nothing is there twice (a release, a
charge, an approval), and nothing is left behind (the folder holds what a command leaves that nobody stopped).

The calls are counted by a small library (`calls.c`), which needs a C compiler and a system that loads it first
(`LD_PRELOAD`): SQLite writes where no Python code could stand between two calls.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import attrs

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from ends import KILL, LATER, End, ended  # noqa: E402
from scenarios import SCENARIOS, SEEN, Failed, Scenario, prepared  # noqa: E402

from dpframework.facts.errors import DPFrameworkError  # noqa: E402

KILLS = 200


def library(folder: Path) -> Path:
    """Compile the library that counts calls."""
    made = folder / "calls.so"
    compiler = shutil.which("cc")
    if compiler is None:
        sys.exit("this needs a C compiler, 'cc'")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, HERE / "calls.c", "-ldl"], check=True)
    return made


@attrs.frozen
class Whole:
    """A scenario that nobody stopped: how many calls it makes, how long it takes, and what it leaves."""

    scenario: Scenario
    template: Path
    calls: int
    seconds: float
    names: frozenset[str]


def whole(scenario: Scenario, root: Path) -> Whole:
    template = root / scenario.name
    template.mkdir()
    scenario.prepare(template)
    here = Path(shutil.copytree(template, root / "whole"))
    started = time.monotonic()
    done = ended(here, scenario.command, None)
    seconds = time.monotonic() - started
    assert done.code == 0, f"{scenario.name}: {done}"
    scenario.check(here, done)
    found = Whole(scenario, template, done.calls, seconds, names(here))
    shutil.rmtree(here)
    return found


def names(folder: Path) -> frozenset[str]:
    """Return what a folder holds, but for what the test itself writes there."""
    return frozenset(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.name != SEEN)


def trial(base: Whole, end: End, here: Path) -> str:
    """Stop a command once, give it again, and return how it had ended; raise `Failed` if something is wrong."""
    shutil.copytree(base.template, here)
    stopped = ended(here, base.scenario.command, end)
    if stopped.code not in (0, 130, None):
        raise Failed(f"ended with {stopped.code}: {stopped.said}")
    base.scenario.check(here, stopped)
    again = ended(here, base.scenario.command, None)
    if again.code not in (0, *base.scenario.done_before):
        raise Failed(f"given again, it ended with {again.code}: {again.said}")
    base.scenario.check(here, again)
    base.scenario.check_done(here)
    if names(here) != base.names:
        missing, more = sorted(base.names - names(here)), sorted(names(here) - base.names)
        raise Failed(f"it left {more}" if more else f"it lost {missing}")
    return "killed" if stopped.code is None else "interrupted" if stopped.code == 130 else "came to its end"


def chosen(bases: list[Whole], number: int, seed: int, *, every: bool) -> list[tuple[Whole, End]]:
    """Return what to try: each command as often as the others, at calls drawn without repetition."""
    draw = random.Random(seed)
    tried: list[tuple[Whole, End]] = []
    for place, base in enumerate(bases):
        at = [End(how, call) for how in base.scenario.ways for call in range(base.calls)]
        if every:
            tried += [(base, end) for end in at]
            continue
        own = number // len(bases) + (place < number % len(bases))
        timed = own // 4 if KILL in base.scenario.ways else 0
        drawn = draw.sample(at, min(own - timed, len(at)))
        tried += [(base, end) for end in drawn]
        timed = own - len(drawn) if timed else 0
        tried += [(base, End(LATER, seconds=draw.uniform(0, base.seconds))) for _ in range(timed)]
    return tried


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", metavar="command", help=f"of {', '.join(SCENARIOS)}; by default all")
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", action="store_true", help="at every call, and in the middle of every write")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    given = parser.parse_args()
    for name in given.commands:
        if name not in SCENARIOS:
            parser.error(f"no command is named {name}")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        root = Path(folder)
        if not hasattr(ctypes.CDLL(None), "calls_arm"):  # once more, with the library
            environment = {**os.environ, "LD_PRELOAD": str(library(root))}
            return subprocess.run([sys.executable, *sys.argv], env=environment).returncode
        return kill(given, root)


def kill(given: argparse.Namespace, root: Path) -> int:
    prepared(root)
    bases = [whole(SCENARIOS[name], root) for name in given.commands or SCENARIOS]
    counts: dict[str, Counter[str]] = {base.scenario.name: Counter(calls=base.calls) for base in bases}
    failures = []
    for base, end in chosen(bases, given.kills, given.seed, every=given.every):
        here = root / "here"
        try:
            counts[base.scenario.name][f"{end.how}: {trial(base, end, here)}"] += 1
        except (Failed, AssertionError, DPFrameworkError) as failure:
            counts[base.scenario.name]["failed"] += 1
            failures.append(f"{base.scenario.name}, {end}: {failure}")
            if not given.json:
                print(f"FAILED {failures[-1]}", flush=True)
        shutil.rmtree(here, ignore_errors=True)
    if given.json:
        print(json.dumps({"counts": counts, "failures": failures}))
    else:
        for name, count in counts.items():
            print(f"{name}: {', '.join(f'{what} {number}' for what, number in sorted(count.items()))}")
        tried = sum(number for count in counts.values() for what, number in count.items() if what != "calls")
        print(f"{tried} tried, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
