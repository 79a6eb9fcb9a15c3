"""An experiment that is killed with SIGKILL at any step: no finished cell is lost or repeated, and it ends the same.

The matrix runs in a process of its own, which forks a child a kill: forking is safe there, since it has no threads.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from killing import forked, run_as_script

from dpframework.lab.experiment import load_experiment, run_experiment

FILE = """
repetitions = 4
[[data]]
name = "made"
generator = "code.py:table"
[[method]]
name = "draw"
baseline = "code.py:draw"
[[measure]]
measure = "code.py:drawn"
[[table]]
name = "drawn"
value = "drawn"
"""
CODE = """
import os
import time

import numpy as np

import dpframework as dpf


def table(*, seed):
    return dpf.Table.from_codes(dpf.Schema([dpf.Boolean("ill")]), [[0, 1, 1]])


def draw(table, *, seed):
    with open("calls.txt", "a") as file:
        file.write(f"{seed}\\n")
    time.sleep(float(os.environ.get("PAUSE", "0")))
    return np.random.default_rng(seed).random()


def drawn(trial):
    return {"drawn": trial.result}
"""
CELLS = 4


def prepared(folder: Path) -> None:
    folder.mkdir()
    (folder / "draws.toml").write_text(FILE)
    (folder / "code.py").write_text(CODE)


def calls(folder: Path) -> Counter[str]:
    path = folder / "calls.txt"
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()


def install(last: int | None) -> list[int]:
    """Count the steps at which files are changed, and kill this process at one of them."""
    passed = [0]

    def cross() -> None:
        if passed[0] == last:
            os.kill(os.getpid(), signal.SIGKILL)
        passed[0] += 1

    for owner, name in ((os, "replace"), (os, "fsync"), (Path, "mkdir"), (Path, "unlink")):
        function = getattr(owner, name)

        def crossing(*arguments, function=function, **options):
            cross()
            result = function(*arguments, **options)
            cross()
            return result

        setattr(owner, name, crossing)
    return passed


def run() -> None:
    run_experiment(load_experiment("draws.toml"), Path("draws-results"), processes=1)


def steps_of_run(folder: Path, last: int | None) -> int | None:
    """Run in a child that is killed at a step; return the number of steps if it came to its end."""

    def work() -> str:
        passed = install(last)
        run()
        return str(passed[0])

    told = forked(folder, work)
    return None if told is None else int(told)


def finished(folder: Path) -> set[str]:
    return {path.name for path in (folder / "draws-results" / "cells").glob("*.json")}


def matrix(root: Path, every: int) -> int:
    """Kill a run at every so-manieth step, go on, and compare; return the number of steps."""
    prepared(root / "whole")
    steps = steps_of_run(root / "whole", None)
    assert steps is not None
    results = root / "whole" / "draws-results"
    wanted = {name: (results / name).read_bytes() for name in ("results.parquet", "summary.md")}
    for last in range((steps - 1) % every, steps, every):
        folder = root / "killed"
        prepared(folder)
        assert steps_of_run(folder, last) is None
        kept, before = finished(folder), calls(folder)
        assert len(before) - len(kept) in (0, 1), f"killed at {last}: more than the cell in hand was lost"
        assert steps_of_run(folder, None) is not None
        assert finished(folder) >= kept
        after = calls(folder)
        assert len(after) == CELLS
        assert sum(after.values()) - CELLS == len(before) - len(kept), f"killed at {last}: a finished cell was repeated"
        for name, content in wanted.items():
            assert (folder / "draws-results" / name).read_bytes() == content, f"killed at {last}: {name} differs"
        assert not list((folder / "draws-results").rglob("*.part"))
        shutil.rmtree(folder)
    return steps


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL, of Unix")
@pytest.mark.parametrize("every", [5, 1])
def test_a_run_killed_at_any_step_goes_on_to_the_same_results(tmp_path: Path, every: int) -> None:
    ran = run_as_script(__file__, tmp_path, every)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert int(ran.stdout.splitlines()[-1]) > 8 * CELLS


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL, of Unix")
def test_processes_killed_from_outside_lose_what_they_had_in_hand_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    prepared(folder)
    command = [sys.executable, "-m", "dpframework", "experiment", "draws.toml", "--jobs", "2"]
    environment = {**os.environ, "PAUSE": "1"}
    running = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 300  # a busy machine takes its time to start three processes
    while not finished(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    kept, before = finished(folder), calls(folder)
    assert 1 <= len(kept) < CELLS
    monkeypatch.chdir(folder)
    run()
    assert sum(calls(folder).values()) == CELLS + len(before) - len(kept)
    prepared(tmp_path / "whole")
    monkeypatch.chdir(tmp_path / "whole")
    run()
    results = "draws-results/results.parquet"
    assert (folder / results).read_bytes() == (tmp_path / "whole" / results).read_bytes()


def test_a_process_that_dies_ends_the_run_in_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    prepared(folder)
    (folder / "code.py").write_text(CODE.replace("return np.random", "os._exit(1); return np.random"))
    command = [sys.executable, "-m", "dpframework", "experiment", "draws.toml", "--jobs", "2"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr.splitlines() == [
        "error: a process that computed a cell died, perhaps from lack of memory; 0 of 4 cells are finished; repeat "
        "the command to compute the others"
    ]


if __name__ == "__main__":
    # imported once, before the forks; none of them starts a thread by that
    import joblib  # noqa: F401
    import polars  # noqa: F401
    import scipy.special  # noqa: F401
    import typeguard  # noqa: F401

    import dpframework.lab.evaluation.experiment_measures  # noqa: F401
    from dpframework.study.plugin_registry import registry

    registry()

    print(matrix(Path(sys.argv[1]), int(sys.argv[2])))
