"""A few kills of each command, between any two calls that change files; `tests/kills/run.py` makes more."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = ("run", "ledger-run", "python-run", "ledger-open", "ledger-approve", "ledger-revoke", "report", "infer")


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs LD_PRELOAD and a C compiler")
def test_a_command_stopped_between_two_calls_loses_nothing_and_leaves_nothing() -> None:
    script = Path(__file__).parents[1] / "kills" / "run.py"
    ran = subprocess.run([sys.executable, script, "--kills", "24", "--json"], capture_output=True, text=True)
    assert ran.stdout.startswith("{"), ran.stdout[-2000:] + ran.stderr[-2000:]
    told = json.loads(ran.stdout)
    assert told["failures"] == []
    assert ran.returncode == 0
    assert tuple(told["counts"]) == COMMANDS
    stopped = 0
    for counts in told["counts"].values():
        assert counts.pop("calls") >= 6
        assert sum(counts.values()) == 3
        stopped += sum(number for what, number in counts.items() if not what.endswith("came to its end"))
    assert stopped >= 12
