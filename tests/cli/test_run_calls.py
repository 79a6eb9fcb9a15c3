"""A run does nothing twice: its plan is made, checked and shown once; calls are counted, as times vary by machine."""

from __future__ import annotations

import collections
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCHEMA = """
[[attribute]]
name = "age"
kind = "numeric"
lower = 0
upper = 100
bins = 5
[[attribute]]
name = "ill"
kind = "boolean"
"""
STUDY = """
[data]
path = "people.csv"
schema = "schema.toml"
[privacy]
epsilon = 1.0
[[step]]
name = "ages"
miner = "histogram"
epsilon = 1.0
params = { attribute = "age" }
"""

#: Counts, in a process of its own, each entry into a function that a file of the core defines. A generator is entered
#: once for each value that it yields. Imports count too: they call decorators.
COUNTING = """
import collections, json, sys
from pathlib import Path
import dpframework
from dpframework.__main__ import main

root = str(Path(dpframework.__file__).parent)
calls = collections.Counter()

def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root) and code.co_filename.endswith(".py"):
        if code.co_name != "<module>":
            calls[code.co_qualname] += 1

sys.argv = ["dpframework", "run", "study.toml", "--out", "out"]
sys.setprofile(note)
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
finally:
    sys.setprofile(None)
print(json.dumps([calls, list(sys.modules)]))
"""
#: What a run of a histogram does not use.
UNUSED = {"rich", "numba", "scipy", "sklearn", "pandas", "opendp", "randomgen"}


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[collections.Counter[str], set[str]]:
    """Return how often each function of the core was entered in one run of one histogram, and the modules loaded."""
    folder: Path = tmp_path_factory.mktemp("run")
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "study.toml").write_text(STUDY)
    (folder / "people.csv").write_text("age,ill\n" + "".join(f"{age},{age % 2 == 0}\n".lower() for age in range(90)))
    done = subprocess.run([sys.executable, "-c", COUNTING], cwd=folder, capture_output=True, text=True, check=True)
    entered, modules = json.loads(done.stdout.splitlines()[-1])
    return collections.Counter(entered), set(modules)


@pytest.fixture
def calls(counted: tuple[collections.Counter[str], set[str]]) -> collections.Counter[str]:
    """Return how often each function of the core was entered."""
    return counted[0]


def test_a_run_loads_what_it_uses(counted: tuple[collections.Counter[str], set[str]]) -> None:
    assert counted[1] & UNUSED == set()
    assert "polars" in counted[1]  # which reads the file


@pytest.mark.parametrize(
    "name", ["Study.plan", "PlanIndex.__init__", "findings", "html_report", "node_tree", "result_rows", "part_rows"]
)
def test_nothing_is_worked_out_twice(calls: collections.Counter[str], name: str) -> None:
    assert calls[name] == 1


def test_the_tree_of_a_plan_is_hardly_walked(calls: collections.Counter[str]) -> None:
    assert calls["walk"] <= 40
    assert calls["Query.facts"] <= 3  # of the step, of a row count to compare with, and by the miner as it plans


def test_a_run_makes_few_calls(calls: collections.Counter[str]) -> None:
    assert sum(calls.values()) < 5000, calls.most_common(20)
