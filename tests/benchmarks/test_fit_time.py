"""Fit time and peak memory of DP-ID3, and of diffprivlib in the same run. Nothing here asserts a time.

    python -m pytest tests/benchmarks/test_fit_time.py --benchmark-only

Set DPFRAMEWORK_PEERS to an interpreter with diffprivlib to time its tree and its forest too, on the same array.
"""

from __future__ import annotations

import functools
import json
import os
import pickle
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import FORMS, Fit, Task
from peers import PEERS

HERE = Path(__file__).parent
SIZES = {"adult": ("adult", 1), "adult-x10": ("adult", 10), "mushroom": ("mushroom", 1)}
ROUNDS = 15
SEEDS = {"private": None, "seeded": 0}


@functools.cache
def task_of(data: Path, size: str) -> Task:
    """Return a task, read once."""
    name, times = SIZES[size]
    return Task.read(data, name, times=times)


def measured(command: list[str]) -> dict[str, Any]:
    """Run a command and return the JSON that it prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"{command[0]} failed; what it wrote is above"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("randomness", SEEDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", SIZES)
def test_fit_time(benchmark: Any, data_dir: Path, size: str, form: str, randomness: str) -> None:
    benchmark.group = f"fit, {size}"
    fit = Fit.of(task_of(data_dir, size), form, seed=SEEDS[randomness])
    benchmark.pedantic(fit, rounds=ROUNDS, warmup_rounds=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", SIZES)
def test_peak_memory_of_a_fit(
    benchmark: Any, data_dir: Path, tmp_path: Path, capsys: Any, size: str, form: str
) -> None:
    benchmark.group = f"process of one fit, {size}"
    files = {"warm": Task.read(data_dir, "mushroom"), "fit": task_of(data_dir, size)}
    for name, task in files.items():
        (tmp_path / name).write_bytes(pickle.dumps(Fit.of(task, form, seed=None)))
    command = [sys.executable, str(HERE / "fit_memory.py"), *(str(tmp_path / name) for name in files)]
    found = benchmark.pedantic(measured, args=(command,), rounds=1)
    benchmark.extra_info.update(found)
    with capsys.disabled():
        print(f"\npeak of dp-id3, {form}, {size}: {memory_text(found)}")


@pytest.mark.parametrize("size", SIZES)
def test_fit_time_beside_diffprivlib(benchmark: Any, data_dir: Path, tmp_path: Path, capsys: Any, size: str) -> None:
    python = os.environ.get("DPFRAMEWORK_PEERS")
    if not python:
        pytest.skip("DPFRAMEWORK_PEERS does not name an interpreter with diffprivlib")
    benchmark.group = f"fit beside diffprivlib, {size}"
    task = task_of(data_dir, size)
    task.save(tmp_path / "task.npz")
    benchmark.pedantic(Fit.of(task, "array", seed=None), rounds=ROUNDS, warmup_rounds=1)
    lines = [f"dp-id3, array, {size}: {seconds_text(benchmark.stats.stats.data)}"]
    for peer in PEERS:
        command = [python, str(HERE / "peers.py"), "time", str(tmp_path / "task.npz"), "--peer", peer]
        found = measured([*command, "--rounds", str(ROUNDS)])["result"]
        benchmark.extra_info[f"diffprivlib {peer}"] = found
        lines.append(f"diffprivlib {peer}, {size}: {seconds_text(found['seconds'])}, {memory_text(found)}")
    with capsys.disabled():
        print("", *lines, sep="\n")


def seconds_text(seconds: list[float]) -> str:
    """Write the least and the median of some times."""
    return f"least {min(seconds) * 1000:.1f} ms, median {statistics.median(seconds) * 1000:.1f} ms"


def memory_text(found: dict[str, Any]) -> str:
    """Write a peak, and what the fit added to it."""
    added = found["peak_mib_after"] - found["peak_mib_before"]
    return f"{found['peak_mib_after']:.0f} MiB, of which the fit {added:.1f} MiB"
