"""Change the modules that privacy rests on by one token at a time, and see whether a test fails.

    pip install -e '.[test,mutation]'
    python tests/mutation/run.py                      # all of it: hours
    python tests/mutation/run.py accountant --most 60 # sixty mutants of one target, drawn by a seed
    python tests/mutation/run.py accountant --again   # those that lived once more, after tests were written

The modules and their tests stand in `targets.toml`. Before the first mutant of a target its tests run once under
coverage, to see which of them run which line; a mutant is shown to those. What lives is printed, and makes the command
fail unless `survivors.toml` says why it cannot matter. Work goes on in copies of the project; what was tried is kept in
a folder, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import attrs
from cosmic_ray.testing import run_tests
from cosmic_ray.work_item import TestOutcome

sys.path.insert(0, str(Path(__file__).parent))
from mutants import Mutant, mutants
from observed import Observed, is_compiled

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = (".", "plugins/trees/src", "plugins/greedy/src", "plugins/distance/src")
GOAL = 0.95
COMMAND = f"{sys.executable} -m pytest -x -q --no-header -p no:cacheprovider -n 0 @.tests"


@attrs.frozen
class Target:
    """Modules that privacy rests on.

    Attributes
    ----------
    modules
        Patterns of paths.
    tests
        Where the tests are that must notice a change: files, folders, or `-k` with words.
    """

    name: str
    modules: list[str]
    tests: list[str]

    def paths(self) -> list[str]:
        """Return the paths of all its modules."""
        return sorted({path.relative_to(ROOT).as_posix() for glob in self.modules for path in ROOT.glob(glob)})

    def mutants(self) -> list[Mutant]:
        """Return the mutants of all its modules."""
        return [mutant for path in self.paths() for mutant in mutants(ROOT, path)]


def main() -> int:
    """Run the command."""
    arguments = _arguments()
    targets = [Target(**entry) for entry in tomllib.loads((HERE / "targets.toml").read_text())["target"]]
    unknown = set(arguments.targets) - {target.name for target in targets}
    if unknown:
        print(f"no target is called {', '.join(sorted(unknown))}; there are {', '.join(t.name for t in targets)}")
        return 2
    arguments.folder = arguments.folder.absolute()
    arguments.folder.mkdir(exist_ok=True)
    os.chdir(ROOT)
    outcomes = []
    for target in targets:
        if not arguments.targets or target.name in arguments.targets:
            outcomes += _try(target, arguments)
    return _report(outcomes)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Mutation testing of the modules that privacy rests on.")
    parser.add_argument("targets", nargs="*", help="names of targets (default: all)")
    parser.add_argument("--most", type=int, help="try at most so many mutants a target, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="for the draw")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--again", action="store_true", help="try those that lived once more")
    parser.add_argument("--observe", action="store_true", help="see anew which test runs which line, first")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "dpframework-mutants")
    return parser.parse_args()


def _observed(target: Target, arguments: argparse.Namespace) -> Observed:
    """Return which tests run which line, measured in a copy of the project unless that was done before."""
    kept = arguments.folder / f"{target.name}.json"
    if kept.exists() and not arguments.observe:
        return Observed.read(kept)
    print(f"{target.name}: which test runs which line?", flush=True)
    with ProcessPoolExecutor(1, initializer=_enter_copy) as pool:
        observed = pool.submit(Observed.measure, target.paths(), target.tests, arguments.jobs).result()
    observed.write(kept)
    return observed


def _try(target: Target, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Try the mutants of a target, and return what was found with what the log has already."""
    chosen = target.mutants()
    total = len(chosen)
    if arguments.most is not None and total > arguments.most:
        chosen = random.Random(arguments.seed).sample(chosen, arguments.most)
    log = arguments.folder / "tried.jsonl"
    logged = {_key(entry): entry for entry in _read(log) if not (arguments.again and entry["outcome"] == "survived")}
    keys = {mutant: _key(attrs.asdict(mutant) | {"digest": _digest(ROOT / mutant.module)}) for mutant in chosen}
    known = [logged[keys[mutant]] for mutant in chosen if keys[mutant] in logged]
    left = [mutant for mutant in chosen if keys[mutant] not in logged]
    print(f"{target.name}: {total} mutants, {len(chosen)} chosen, {len(left)} to try", flush=True)
    if not left:
        return known
    observed = _observed(target, arguments)
    with ProcessPoolExecutor(arguments.jobs, initializer=_enter_copy) as pool:
        tried = [
            pool.submit(_outcome, target, mutant, tests, observed.limit(tests))
            for mutant in left
            for tests in [observed.tests_of(mutant.module, mutant.line)]
        ]
        found = []
        for future in as_completed(tried):
            found.append(future.result())
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found[-1]) + "\n")
    return known + found


def _read(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


def _key(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["module"], entry["digest"], entry["operator"], entry["occurrence"]


def _digest(path: Path) -> str:
    """Return what tells one state of a module from another: what was tried on an older one counts no more."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _enter_copy() -> None:
    """Give this process a copy of the project of its own, and make its tests import from there."""
    copy = Path(tempfile.mkdtemp(prefix="dpframework-mutant-"))
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    os.chdir(copy)
    os.environ["PYTHONPATH"] = os.pathsep.join(str(copy / source) for source in SOURCES)
    os.environ.setdefault("DPFRAMEWORK_DATA", str(ROOT.parent / "shared" / "data"))


def _outcome(target: Target, mutant: Mutant, tests: list[str], limit: float) -> dict[str, Any]:
    """Try one mutant in this process's copy: whoever takes longer than the limit has been noticed."""
    path = Path(mutant.module)
    source = path.read_text(encoding="utf-8")
    start = time.monotonic()
    try:
        _write(path, mutant.code(source))
        Path(".tests").write_text("\n".join(tests), encoding="utf-8")  # a command line would be too long
        outcome, _ = run_tests(COMMAND, limit) if tests else (TestOutcome.SURVIVED, "")
    finally:
        _write(path, source)
    before, after = mutant.lines(source)
    told = {"target": target.name, "before": before, "after": after, "digest": _digest(path), "outcome": outcome.value}
    return attrs.asdict(mutant) | told | {"seconds": round(time.monotonic() - start, 1)}


def _write(path: Path, code: str) -> None:
    """Write a module; what numba has compiled of it and of the kernels beside it, which may call it, counts no more."""
    path.write_text(code, encoding="utf-8")
    if is_compiled(path.as_posix()):
        for kept in path.parent.glob("__pycache__/*.nb[ic]"):
            kept.unlink()


def _report(outcomes: list[dict[str, Any]]) -> int:
    """Print how many were killed and what lives, and say whether that is good enough."""
    reasons = {
        (entry["module"], entry["before"], entry["after"]): entry["reason"]
        for entry in tomllib.loads((HERE / "survivors.toml").read_text()).get("survivor", [])
    }
    enough = True
    unexplained = []
    for name in dict.fromkeys(entry["target"] for entry in outcomes):
        mine = [entry for entry in outcomes if entry["target"] == name]
        lives = [entry for entry in mine if entry["outcome"] == "survived"]
        killed = 1 - len(lives) / len(mine)
        enough &= killed >= GOAL
        print(f"{name}: {len(mine) - len(lives)} of {len(mine)} killed ({killed:.1%})")
        unexplained += [e for e in lives if (e["module"], e["before"], e["after"]) not in reasons]
    for entry in sorted(unexplained, key=lambda e: (e["module"], e["line"])):
        print(f"\nlives: {entry['module']}:{entry['line']}\n  - {entry['before']}\n  + {entry['after']}")
    return 0 if enough and not unexplained else 1


if __name__ == "__main__":
    sys.exit(main())
