"""Change the modules that privacy rests on in one place at a time, and see whether a test fails.

    pip install -e '.[test,mutation]'
    python tests/mutation/run.py                       # all of it: hours
    python tests/mutation/run.py accountant --most 60  # sixty mutants of one target, drawn by a seed
    python tests/mutation/run.py accountant --again    # those that lived once more, after tests were written
    python tests/mutation/run.py --most 8 --at-once    # a few of each target: an hour
    python tests/mutation/run.py plan --operators 'ours/Drop*'  # checks, statements and arguments left out
    python tests/mutation/run.py dpframework/queries/sums.py --at-once  # of one module

The folder `targets` says of each part which its modules and tests are, and what need not be noticed, with the reason.
Before the first mutant the tests run once under coverage, to see which of them run which line; a mutant is shown to
those. For a few mutants that takes longer than it saves: with `--at-once` each is shown to its target's tests and to
all others about its module, first to those that name what is changed. What lives is printed, and makes the command fail
unless its target says why it cannot matter. Work goes on in copies of the project, in forks of a process that has
imported what the tests need; what was tried is kept in a folder, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import itertools
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import attrs
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mutants import Mutant
from observed import LONGEST, PATIENCE, Near, NearestFirst, Observed, Timed, is_compiled, likely_first
from survivors import ROOT, Survivor
from targets import Target, targets
from waiting import status_of

SOURCES = (".", *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("plugins/*/src")))
GOAL = 0.95
OPTIONS = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-n", "0", "-m", ""]  # slow tests, too
# what tests import of others: a second each time, were it not imported before the fork
OTHERS = ("hypothesis", "dp_accounting", "numba", "opendp.prelude", "pandas", "polars", "randomgen", "scipy.optimize")
NEAREST = 3  # files of tests
LATE = (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL)  # what ends tests that take too long; others are crashes
RUNNING: set[int] = set()  # forks that this process waits for
SOUND: set[str] = set()  # tests that pass without a mutant, as far as that was tried
FAILING: set[str] = set()  # and those that do not: they tell nothing of mutants
TIMES = itertools.count(1)  # of mutants' files, in seconds since 1970


def main() -> int:
    """Run the command."""
    arguments = _arguments()
    known = targets()
    unknown = set(arguments.targets) - {name for target in known for name in (target.name, *target.paths())}
    if unknown:
        names = ", ".join(target.name for target in known)
        print(f"no target or module is called {', '.join(sorted(unknown))}; the targets are {names}")
        return 2
    arguments.folder = arguments.folder.absolute()
    arguments.folder.mkdir(exist_ok=True)
    os.chdir(ROOT)
    chosen = [few for target in known if (few := target.only(arguments.targets)).modules]
    with _pool(arguments.jobs, arguments.folder) as pool:
        outcomes = [outcome for target in chosen for outcome in _try(target, chosen, arguments, pool)]
    return _report(outcomes, [survivor for target in known for survivor in target.survivors])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Mutation testing of the modules that privacy rests on.")
    parser.add_argument("targets", nargs="*", help="names of targets, or modules (default: all)")
    parser.add_argument("--most", type=int, help="try at most so many mutants a target, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="for the draw")
    parser.add_argument("--operators", default="*", help="a pattern of names of operators, such as 'ours/Drop*'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--again", action="store_true", help="try those that lived once more")
    parser.add_argument("--at-once", action="store_true", help="do not see first which test runs which line")
    parser.add_argument(
        "--seconds", type=float, default=LONGEST, help="of tests that each is shown to at once (default: %(default)g)"
    )
    parser.add_argument("--observe", action="store_true", help="see anew which test runs which line, first")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "dpframework-mutants")
    return parser.parse_args()


def _observed(
    target: Target, targets: list[Target], arguments: argparse.Namespace, pool: ProcessPoolExecutor
) -> Observed:
    """Return which tests run which line of a target: measured at once with all targets of which it is not known."""
    kept = {other.name: arguments.folder / f"{other.name}.json" for other in targets}
    unknown = [other for other in targets if arguments.observe or not kept[other.name].exists()]
    if target in unknown:
        arguments.observe = False  # once is enough
        print(f"{', '.join(other.name for other in unknown)}: which test runs which line?", flush=True)
        paths = [path for other in unknown for path in other.paths()]
        tests = list(dict.fromkeys(test for other in unknown for test in other.tests))
        observed = pool.submit(_measured, paths, tests).result()
        for other in unknown:
            observed.of(other.paths()).write(kept[other.name])
    return Observed.read(kept[target.name])


def _try(
    target: Target, targets: list[Target], arguments: argparse.Namespace, pool: ProcessPoolExecutor
) -> list[dict[str, Any]]:
    """Try the mutants of a target, and return what was found with what the log has already."""
    chosen = [mutant for mutant in target.mutants() if fnmatch(mutant.operator, arguments.operators)]
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
    if arguments.at_once:
        shown = [(mutant, likely_first(target.tests, mutant), None) for mutant in left]
    else:
        observed = _observed(target, targets, arguments, pool)
        tests = [observed.tests_of(mutant.module, mutant.line) for mutant in left]
        shown = [(mutant, few, observed.limit(few)) for mutant, few in zip(left, tests, strict=True)]
    tried = [pool.submit(_outcome, target, arguments.seconds, *each) for each in shown]
    found = []
    for future in as_completed(tried):
        found.append(future.result())
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found[-1]) + "\n")
    return known + found


def _read(log: Path) -> list[Any]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


def _key(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["module"], entry["digest"], entry["operator"], entry["occurrence"]


def _digest(path: Path) -> str:
    """Return what tells one state of a module from another: what was tried on an older one counts no more."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@contextlib.contextmanager
def _pool(jobs: int, folder: Path) -> Iterator[ProcessPoolExecutor]:
    """Yield processes with a copy of the project each; end them and delete the copies, also when stopped."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="dpframework-mutants-") as copies:
        pool = ProcessPoolExecutor(jobs, initializer=_enter_copy, initargs=(Path(copies), folder / "seconds.jsonl"))
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
                worker.join()


def _enter_copy(copies: Path, seconds: Path) -> None:
    """Give this process a copy of the project of its own, make its tests import from there, and import all else.

    What each test takes stands in one file for all processes, and for later runs.
    """
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends its processes
    copy = Path(tempfile.mkdtemp(dir=copies))
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().splitlines():
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():  # one to a folder, too
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    for source in SOURCES:  # what numba has compiled of a file of that time is good for its copy
        for compiled in (ROOT / source).glob("dpframework*/**/__pycache__/*.nb[ic]"):
            (copy / compiled.relative_to(ROOT)).parent.mkdir(exist_ok=True)
            shutil.copy2(compiled, copy / compiled.relative_to(ROOT))
    os.chdir(copy)
    Path(".seconds").symlink_to(seconds)
    sources = [str(copy / source) for source in SOURCES]
    sys.path[:0] = sources
    os.environ["PYTHONPATH"] = os.pathsep.join(sources)
    os.environ.setdefault("DPFRAMEWORK_DATA", str(ROOT.parent / "shared" / "data"))
    for name in OTHERS:
        importlib.import_module(name)


def _end(*_: object) -> None:
    """End this process and what it has forked."""
    for child in RUNNING:
        for kill in (os.kill, os.killpg):  # itself, should it not yet have a group of its own
            with contextlib.suppress(ProcessLookupError):
                kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os._exit(1)


def _measured(modules: list[str], tests: list[str]) -> Observed:
    """Return which tests run which line, measured in a fork."""
    kept = Path(".observed.json")

    def measure() -> int:
        Observed.measure(modules, tests).write(kept)
        return 0

    code, printed = _in_fork(measure)
    print(*(line for line in printed if line.startswith("left out") or code), sep="\n", flush=True)
    return Observed.read(kept)


def _outcome(target: Target, longest: float, mutant: Mutant, tests: list[str], limit: float | None) -> dict[str, Any]:
    """Try one mutant in this process's copy: whoever takes longer than the limit has been noticed.

    Without a limit nobody knows how long its tests take: the files of tests that are nearest to it come alone, since to
    import the others takes longer than most mutants live. One that is not noticed in the longest time lives, unless the
    test that was running then takes several times as long as without the mutant.
    """
    path = Path(mutant.module)
    source = path.read_text(encoding="utf-8")
    start = _spent()
    code, by = 0, "no test runs it"
    for few in [tests] if limit else [tests[:NEAREST], tests[NEAREST:]]:
        if few and not code:
            near = None if limit else Near.to(mutant)
            code, by = _shown(target, path, mutant.code(source), few, limit or longest, near)
    before, after = mutant.lines(source)
    told = {"target": target.name, "before": before, "after": after, "digest": _digest(path)}
    told |= {"outcome": "killed" if code else "survived", "by": by[:200], "seconds": round(_spent() - start, 1)}
    return attrs.asdict(mutant) | told


def _shown(
    target: Target, path: Path, changed: str, tests: list[str], limit: float, near: Near | None
) -> tuple[int, str]:
    """Show a change to tests; return an exit code, other than 0 if it was noticed, and by what.

    A test notices nothing if it fails without the change, too: it is left out from then on.
    """
    while True:
        with _changed(path, changed):
            code, printed, failed = _tested(tests, limit, near=near)
        by = next((line for line in printed if line.startswith(("FAILED", "ERROR"))), f"exit code {code}")
        if code == pytest.ExitCode.NO_TESTS_COLLECTED:
            return 0, by
        if -code in LATE and near is not None:
            code = _prolonged(path, changed, Path(".running").read_text(encoding="utf-8"))
        if code <= 0 or _passes(failed, tests):
            return code, by
        if not failed or failed in FAILING:
            raise RuntimeError(f"tests of '{target.name}' cannot be run without a mutant either: {by}")
        FAILING.add(failed)


def _prolonged(path: Path, changed: str, test: str) -> int:
    """Return an exit code other than 0 if a change makes a test that passes without it take several times as long."""
    if not test or not _passes(test, [test]):
        return 0
    start = _spent()
    _tested([test], LONGEST)
    limit = PATIENCE + 3 * (_spent() - start)
    with _changed(path, changed):
        code, _, _ = _tested([test], limit)
    return code if -code in LATE else 0


def _spent() -> float:
    """Return the seconds of the processor that forks have taken."""
    return sum(os.times()[2:4])


def _passes(test: str, tests: list[str]) -> bool:
    """Tell whether a test passes without a mutant; without one, whether tests are found at all."""
    if not test:
        return _tested(tests, LONGEST, "--collect-only")[0] == 0
    if test not in SOUND and _tested([test], LONGEST)[0] == 0:
        SOUND.add(test)
    return test in SOUND


def _tested(tests: list[str], limit: float, *options: str, near: Near | None = None) -> tuple[int, list[str], str]:
    """Run tests, but for those that fail without a mutant; return the exit code, what is printed, and which failed.

    Those come first that are quick and near the mutant.
    """
    Path(".tests").write_text("\n".join(tests), encoding="utf-8")  # a command line would be too long
    Path(".failed").write_text("", encoding="utf-8")
    Path(".running").write_text("", encoding="utf-8")

    def run() -> int:
        timed = Timed(Path(".running"), Path(".seconds"))
        plugins = [timed] if near is None else [timed, NearestFirst(near, dict(_read(Path(".seconds"))))]
        code = pytest.main([*OPTIONS, *options, *(f"--deselect={test}" for test in FAILING), "@.tests"], plugins)
        Path(".failed").write_text(min(timed.failed, default=""), encoding="utf-8")  # the first that fails is the last
        return int(code)

    code, printed = _in_fork(run, limit)
    return code, printed, Path(".failed").read_text(encoding="utf-8")


def _in_fork(work: Callable[[], int], limit: float | None = None) -> tuple[int, list[str]]:
    """Work in a fork; return its exit code and what it prints.

    It is ended when it takes longer than the limit, in seconds of the processor, or waits for what does not come.
    """
    printed = Path(".printed")
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with printed.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.setsid()
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))
        os._exit(_code_of(work))
    RUNNING.add(child)
    status = os.waitpid(child, 0)[1] if limit is None else status_of(child)
    RUNNING.discard(child)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what a test has started and not ended
    return os.waitstatus_to_exitcode(status), printed.read_text(errors="replace").splitlines()


def _code_of(work: Callable[[], int]) -> int:
    """Return the exit code of some work, 3 if it raises anything."""
    try:
        return int(work())
    except BaseException:
        traceback.print_exc()
        return 3
    finally:
        sys.stdout.flush()


@contextlib.contextmanager
def _changed(path: Path, code: str) -> Iterator[None]:
    """Change a module, and put all back: also what numba has compiled of it and of the kernels beside it.

    No two states of it are of one time, since Python knows by it whether what it has compiled is of this one.
    """
    source, found = path.read_text(encoding="utf-8"), path.stat()
    compiled, aside = path.parent / "__pycache__", path.parent / ".compiled"
    path.write_text(code, encoding="utf-8")
    changed = next(TIMES)
    os.utime(path, (changed, changed))
    if is_compiled(path.as_posix()) and compiled.exists():
        compiled.rename(aside)
    try:
        yield
    finally:
        path.write_text(source, encoding="utf-8")
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        if aside.exists():
            shutil.rmtree(compiled, ignore_errors=True)
            aside.rename(compiled)


def _report(outcomes: list[dict[str, Any]], survivors: list[Survivor]) -> int:
    """Print how many were killed and what lives, and say whether that is good enough."""
    enough = True
    unexplained = []
    excused = {(survivor.module, survivor.id) for survivor in survivors}
    for name in dict.fromkeys(entry["target"] for entry in outcomes):
        mine = [entry for entry in outcomes if entry["target"] == name]
        lives = [entry for entry in mine if entry["outcome"] == "survived"]
        killed = 1 - len(lives) / len(mine)
        enough &= killed >= GOAL
        print(f"{name}: {len(mine) - len(lives)} of {len(mine)} killed ({killed:.1%})")
        unexplained += [entry for entry in lives if (entry["module"], entry["id"]) not in excused]
    for entry in sorted(unexplained, key=lambda e: (e["module"], e["line"])):
        late = " (not noticed in time)" if entry["by"].startswith("exit code -") else ""
        print(f'\nlives: {entry["module"]}:{entry["line"]}{late}\n  id = "{entry["id"]}"')
        print(f"  - {entry['before']}\n  + {entry['after']}")
    return 0 if enough and not unexplained else 1


if __name__ == "__main__":
    sys.exit(main())
