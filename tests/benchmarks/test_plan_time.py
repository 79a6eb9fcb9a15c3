"""Wall time of `dpframework plan` on a study of three miners: a process from nothing. No time is asserted.

python -m pytest tests/benchmarks/test_plan_time.py --benchmark-only
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmark_tasks import REPOSITORY

STUDY = """
[data]
path = "no-such-folder/no-such-file.csv"
schema = "{schema}"

[privacy]
epsilon = 1.0

[[step]]
name = "income"
miner = "dp-id3"
epsilon = 0.5
params = {{ target = "income", max_depth = 5 }}

[[step]]
name = "education"
miner = "dp-id3"
epsilon = 0.3
params = {{ target = "education", max_depth = 5, criterion = "gini" }}

[[step]]
name = "race"
miner = "dp-id3"
epsilon = 0.2
params = {{ target = "race", max_depth = 5, splits = "multiway", stopping = "noisy-count" }}
"""


def test_plan_of_three_miners(benchmark: Any, tmp_path: Path) -> None:
    schema = REPOSITORY / "docs" / "examples" / "adult" / "adult.schema.toml"
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(schema=schema.as_posix()), encoding="utf-8")
    command = [sys.executable, "-m", "dpframework", "plan", str(study)]

    def plan() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True)

    done = benchmark.pedantic(plan, rounds=15, warmup_rounds=1)
    assert done.returncode == 0, done.stderr
    assert "race" in done.stdout
