"""What planning, checking, reporting and approving load: none of the large libraries, which only a run needs."""

import subprocess
import sys

import numpy as np
import pytest

import dpframework as dpf

LARGE = (
    "opendp",
    "numba",
    "scipy",
    "polars",
    "narwhals",
    "hypothesis",
    "mpmath",
    "dp_accounting",
    "pydantic",
)

SCHEMA = """
max_rows = 5000
attribute = [
    { name = "age", kind = "numeric", lower = 0, upper = 90, cuts = [30, 60] },
    { name = "kind", kind = "categorical", values = ["a", "b", "c"] },
    { name = "ill", kind = "boolean" },
]
"""
VIEWS = """
max_rows = 5000
attribute = [
    { name = "ill", kind = "boolean", view = "left" },
    { name = "age", kind = "numeric", lower = 0, upper = 90, cuts = [30, 60], view = "right" },
]
"""
HEAD = """
[data]
schema = "{schema}"
{data}
[privacy]
epsilon = 9
"""
STEP = '[[step]]\nname = "{miner}"\nminer = "{miner}"\nepsilon = 1\nparams = {{ {params} }}\n'
PARAMETERS = {
    "count": "",
    "histogram": 'attribute = "kind"',
    "quantile": 'attribute = "age"',
    "dp-id3": 'target = "ill", max_depth = 2',
    "dp-tree": 'target = "ill", max_depth = 2',
    "dp-classifier": 'target = "ill"',
    "dp-dilca": 'target = "kind"',
}
OF_VIEWS = ("matched-trees", "serenade-es", "alt-mcmc")
LIGHT = """\
plan one.toml
check one.toml
plan one.toml --diff other.toml
plan one.toml --format json --out one.json
report one.json
report one.toml --out one.html
report ran
report ran --out ran.html
check two.toml
miners
explain DP012
ledger open l --data-set people --epsilon 9
ledger approve l one.toml --data-set people --by me
ledger show l --out l.html
"""
COMMANDS = LIGHT.splitlines()
SCRIPT = """
import contextlib, io, sys
from dpframework.cli import main

for command in sys.argv[2:]:
    with contextlib.redirect_stdout(io.StringIO()):
        code = main(command.split())
    print(f"{command}: {code}", *(name for name in sys.argv[1].split() if name in sys.modules))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "one.schema.toml").write_text(SCHEMA)
    (tmp_path / "two.schema.toml").write_text(VIEWS)
    steps = [STEP.format(miner=miner, params=params) for miner, params in PARAMETERS.items()]
    head = HEAD.format(schema="one.schema.toml", data='path = "people.csv"')
    (tmp_path / "one.toml").write_text(head + "".join(steps))
    (tmp_path / "other.toml").write_text(head + "".join(steps[1:]))
    head = HEAD.format(schema="two.schema.toml", data='left = "l.csv"\nright = "r.csv"')
    (tmp_path / "two.toml").write_text(head + "".join(STEP.format(miner=miner, params="") for miner in OF_VIEWS))
    schema = dpf.Schema.load(tmp_path / "one.schema.toml")
    study = dpf.Study(schema, epsilon=9)
    for miner in ("count", "histogram", "dp-id3", "dp-dilca"):
        parameters = {"target": "kind"} if miner.startswith("dp") else {"attribute": "kind"}
        study.add(miner, dpf.miner(miner, epsilon=1, **({} if miner == "count" else parameters)))
    rng = np.random.default_rng(1)
    rows = dpf.Table.from_codes(schema, np.stack([rng.integers(0, a.size, 300) for a in schema]))
    study.run(rows, seed=1).save(tmp_path / "ran")
    return tmp_path


def test_what_makes_no_release_loads_none_of_the_large_libraries(folder):
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, " ".join(LARGE), *COMMANDS], cwd=folder, capture_output=True, text=True
    )
    assert ran.stdout.splitlines() == [f"{command}: 0" for command in COMMANDS], ran.stderr
