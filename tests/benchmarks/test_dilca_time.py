"""Time and peak memory of the distances of all attributes, `max-dependency` with k = 3. Nothing here asserts a time.

python -m pytest tests/benchmarks/test_dilca_time.py --benchmark-only
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from compare_dp_dilca import CLASSES, Data
from dpframework_distance import DPDilca

import dpframework as dpf

ROUNDS = 15
ENGINES = {"one thread": dpf.InMemory, "two threads": functools.partial(dpf.Threads, 2)}


@functools.cache
def table_of(folder: Path, name: str) -> dpf.Table:
    """Return a data set on a grid taken from its rows."""
    return Data(folder, name).table


def run(table: dpf.Table, engine: dpf.Engine, seed: int | None) -> None:
    """Plan, check and run one study."""
    study = dpf.Study(table.schema, epsilon=1, relation="replace-one", allow=["schema-inferred-from-data"])
    study.add("distances", DPDilca(1, context="max-dependency"))
    study.run(table, seed=seed, engine=engine)


@pytest.mark.parametrize("randomness", ["private", "seeded"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CLASSES)
def test_all_attributes(benchmark: Any, data_dir: Path, name: str, engine: str, randomness: str) -> None:
    benchmark.group = f"distances of all attributes, {name}"
    table, where = table_of(data_dir, name), ENGINES[engine]()
    seed = None if randomness == "private" else 0
    run(table, where, seed)
    before = time.process_time()
    benchmark.pedantic(run, args=(table, where, seed), rounds=ROUNDS)
    benchmark.extra_info["cpu_seconds_a_run"] = round((time.process_time() - before) / ROUNDS, 4)


@pytest.mark.parametrize("engine", ["memory", "threads"])
@pytest.mark.parametrize("name", CLASSES)
def test_peak_memory(benchmark: Any, data_dir: Path, tmp_path: Path, name: str, engine: str) -> None:
    """In a process of its own that does nothing else: numbers in MiB, before the run and after it."""
    benchmark.group = f"process of one run, {name}"
    schema, codes = tmp_path / "schema.toml", tmp_path / "codes.npy"
    table = table_of(data_dir, name)
    table.schema.dump(schema)
    import numpy as np

    np.save(codes, table.codes)
    command = [sys.executable, str(Path(__file__).with_name("dilca_memory.py")), str(schema), str(codes), engine]
    done = benchmark.pedantic(subprocess.run, args=(command,), kwargs={"stdout": subprocess.PIPE, "text": True})
    assert done.returncode == 0
    benchmark.extra_info.update(json.loads(done.stdout))
