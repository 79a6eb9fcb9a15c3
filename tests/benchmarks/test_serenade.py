"""Time and peak memory of Serenade: 20 initial pairs and 80 extensions, at several numbers of rows.

python -m pytest tests/benchmarks/test_serenade.py --benchmark-only
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dpframework_greedy import SerenadeCS, SerenadeES
from redescription_tasks import default_data, repeated, task

import dpframework as dpf

MINERS = {
    "ES": SerenadeES(epsilon=1, pairs=20, rounds=80, budget="d3", score="logistic"),
    "CS": SerenadeCS(epsilon=1, pairs=20, extensions=4, budget="d3", score="logistic"),
}
ALONE = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from dpframework_greedy import SerenadeES
from redescription_tasks import repeated, task
import dpframework as dpf
table = repeated(task("species", Path(sys.argv[2])), int(sys.argv[3]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
study = dpf.Study(table.schema, epsilon=1, relation="replace-one")
study.add("found", SerenadeES(epsilon=1, pairs=20, rounds=80, budget="d3", score="logistic"))
study.run(table)
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def mined(table: dpf.Table, miner: dpf.Miner) -> Any:
    """Plan, check and run, with private randomness."""
    study = dpf.Study(table.schema, epsilon=miner.epsilon, relation="replace-one")
    study.add("found", miner)
    return study.run(table)["found"]


@pytest.mark.parametrize("times", [1, 2, 4, 16])
@pytest.mark.parametrize("name", list(MINERS))
def test_time_on_species_and_climate(benchmark: Any, name: str, times: int) -> None:
    table = repeated(task("species", default_data()), times)
    found = benchmark.pedantic(mined, args=(table, MINERS[name]), rounds=3, warmup_rounds=1)
    assert len(found) <= 20


def test_time_on_teeth_and_climate(benchmark: Any) -> None:
    table = task("teeth", default_data())
    assert len(benchmark.pedantic(mined, args=(table, MINERS["ES"]), rounds=3, warmup_rounds=1)) == 20


@pytest.mark.parametrize("times", [1, 16])
def test_peak_memory(benchmark: Any, times: int) -> None:
    """Of a process that does nothing else; reported in MiB as extra information, before and after the run."""
    arguments = [sys.executable, "-c", ALONE, str(Path(__file__).parent), str(default_data()), str(times)]

    def alone() -> list[int]:
        return [
            int(x) >> 10 for x in subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.split()
        ]

    benchmark.extra_info["peak MiB before and after"] = benchmark.pedantic(alone, rounds=1)
