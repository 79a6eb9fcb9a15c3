"""The whole files that mutations start from: made once, in a folder that each input copies."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
from mutations import SECRET

import dpframework as dpf
from dpframework.cli import main
from dpframework.ledger.entry_hash_chain import Chain
from dpframework.study.plugin_registry import registry

SCHEMA = """
max_rows = 500
[[attribute]]
name = "ill"
kind = "boolean"
view = "left"
[[attribute]]
name = "age"
kind = "numeric"
lower = 0
upper = 100
cuts = [18, 65]
view = "left"
[[attribute]]
name = "city"
kind = "categorical"
values = ["a", "b", "c"]
missing = true
view = "right"
[[attribute]]
name = "income"
kind = "numeric"
lower = 0
upper = 10
bins = 4
view = "right"
"""
BEGIN = '[data]\npath = "people.csv"\nschema = "people.schema.toml"\n'
STUDIES = {
    "trees": BEGIN
    + """
[privacy]
epsilon = 2.0
relation = "add-or-remove-one"
[[step]]
name = "tree"
miner = "dp-id3"
epsilon = 1.5
params = { target = "ill", max_depth = 2 }
[[step]]
name = "whole"
miner = "dp-tree"
epsilon = "1/2"
params = { target = "city", max_depth = 1 }
""",
    "distances": BEGIN
    + """out_of_domain = "clamp"
[privacy]
epsilon = 1
relation = "replace-one"
delta = 1e-6
allow = ["data-fits-schema"]
[[step]]
name = "cities"
miner = "dp-dilca"
epsilon = 1
params = { context_size = 1 }
""",
    "units": BEGIN
    + """
[privacy]
epsilon = 1
delta = 1e-6
unit = "id"
rows_per_unit = 2
[[step]]
name = "ages"
miner = "histogram"
share = 0.5
params = { attribute = "age", bins = [0, 50, 100] }
[[step]]
name = "earned"
miner = "mean"
share = 0.5
params = { attribute = "income" }
""",
    "redescriptions": """
[data]
left = "left.csv"
right = "right.csv"
id = "id"
schema = "people.schema.toml"
out_of_domain = "missing"
[privacy]
epsilon = 1
[[step]]
name = "both"
miner = "serenade-cs"
epsilon = 1
params = { min_support = 5 }
""",
}
EXPERIMENT = """
title = "Majorities"
seed = 1
repetitions = 2
folds = 2
epsilon = [1]
measure = [{ measure = "code.py:size" }]
method = [
    { name = "tree", miner = "dp-id3", params = { target = "{class}" }, grid = { max_depth = [1, 2] } },
    { name = "none", baseline = "code.py:none" },
]
table = [{ name = "sizes", value = "size", rows = ["method", "max_depth"], columns = ["epsilon"] }]
plot = [{ name = "sizes", x = "epsilon", y = "size", lines = "method", panels = "max_depth" }]
[[data]]
name = "people"
path = "people.csv"
schema = "people.schema.toml"
out_of_domain = "clamp"
values = { class = "ill" }
"""
CODE = """
def none(table, *, seed):
    return 0


def size(trial):
    return {"size": len(str(trial.result))}
"""
KEY = ("sh", "-c", "ssh-keygen -q -t ed25519 -N '' -f signing.key && cat signing.key.pub")
LEFT, RIGHT = ("id", "ill", "age", "note"), ("id", "city", "income")
COLUMNS = (*LEFT, "city", "income")


def people() -> list[list[str]]:
    """Return rows, the header first; some cells that no schema holds are the secret."""
    rows = [list(COLUMNS)]
    for k in range(24):
        age = SECRET if k == 5 else str(k * 4)
        city = SECRET if k == 7 else "abc"[k % 3]
        rows.append([f"{SECRET}{k}", ("yes", "no")[k % 2], age, f"{SECRET} {k}", city, str(k % 11)])
    return rows


def csv_of(rows: list[list[str]], columns: tuple[str, ...] | None = None) -> str:
    """Write rows as they stand; of those that are whole, some columns only."""
    chosen = [k for k, name in enumerate(COLUMNS) if columns is None or name in columns]
    wanted = rows if columns is None else [[row[k] for k in chosen] for row in rows if len(row) == len(COLUMNS)]
    return "".join(",".join(row) + "\n" for row in wanted)


class _Interrupting(dpf.Observer):
    def released(self, release: dpf.Release) -> None:
        raise KeyboardInterrupt


@attrs.frozen
class Bases:
    """The folder, what is in its files before anything is changed, and what is left under the cap of `begun.ledger`."""

    folder: Path
    schema: dict[str, Any]
    studies: dict[str, dict[str, Any]]
    experiment: dict[str, Any]
    plans: dict[str, dict[str, Any]]
    entries: list[tuple[str, Any]]
    results: dict[str, Any]
    verified: dict[str, Any]
    pin: dict[str, Any]
    certificate: dict[str, Any]
    statements: dict[str, Any]
    left: Fraction


def command(*arguments: str) -> int:
    """Give a command whose words nobody reads."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return main(list(arguments))


def made(folder: Path) -> Bases:
    """Write every file, in the folder that is the working one: two ledgers, one of them with an unfinished run."""
    Path("people.schema.toml").write_text(SCHEMA)
    Path("code.py").write_text(CODE)
    Path("experiment.toml").write_text(EXPERIMENT)
    for name, columns in (("people", None), ("left", LEFT), ("right", RIGHT)):
        Path(f"{name}.csv").write_text(csv_of(people(), columns))
    for name, text in STUDIES.items():
        Path(f"{name}.toml").write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as told:
            assert main(["plan", f"{name}.toml", "--format", "json"]) == 0
        Path(f"{name}.json").write_text(told.getvalue())
        assert command("run", f"{name}.toml", "--out", name) == 0  # compiles what numba will find again
        shutil.rmtree(name)
    assert command("experiment", "experiment.toml", "--jobs", "1", "--out", "cells") == 0
    shutil.rmtree("cells")
    on = ("--data-set", "people")
    for ledger in ("used", "begun"):
        assert command("ledger", "open", f"{ledger}.ledger", *on, "--epsilon", "9") == 0
        assert command("ledger", "approve", f"{ledger}.ledger", "trees.toml", *on, "--by", "me", "--runs", "3") == 0
    assert command("run", "trees.toml", "--out", "ran", "--ledger", "used.ledger", *on) == 0
    assert command("ledger", "revoke", "used.ledger", "", *on, "--by", "me") == 0
    assert command("ledger", "approve", "used.ledger", "trees.toml", *on, "--by", "me") == 0
    registry().observers.append(_Interrupting())
    assert command("run", "trees.toml", "--out", "out", "--ledger", "begun.ledger", *on) == 130
    registry().observers.pop()
    few = ("--replays", "100", "--runs", "0", "--seconds", "1", "--record", "verified.json")
    assert command("verify", "histogram", *few) == 0
    assert command("ledger", "verify", "used.ledger", "--pin", "pin.json") == 0
    assert command("prove", "units.toml", "--certificate", "units.proof.json") == 0
    assert command("statements", "owner.toml") == 0
    Path("signers.txt").write_text("me " + subprocess.check_output(KEY, text=True).strip() + "\n")
    with Chain("used.ledger").reading() as transaction:
        entries = [(entry.kind, dict(entry.content)) for entry in transaction.read()]
    return Bases(
        folder,
        tomllib.loads(SCHEMA),
        {name: tomllib.loads(text) for name, text in STUDIES.items()},
        tomllib.loads(EXPERIMENT),
        {name: json.loads(Path(f"{name}.json").read_text()) for name in STUDIES},
        entries,
        json.loads(Path("ran/results.json").read_text()),
        json.loads(Path("verified.json").read_text()),
        json.loads(Path("pin.json").read_text()),
        json.loads(Path("units.proof.json").read_text()),
        tomllib.loads(Path("owner.toml").read_text()),
        dpf.Ledger("begun.ledger").data_set("people").left,
    )
