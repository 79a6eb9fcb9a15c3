"""What commands print on one study and one ledger, whole: this command writes it anew.

python tests/printed_outputs.py

A change of a word in a report, a table or a list shows in the difference of these files, which says to a reviewer what
users will see. Ids, hashes, times, folders and the version are replaced, as they differ from run to run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import dpframework as dpf
from dpframework.cli import main

TERMINAL = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
PRINTED = Path(__file__).parent / "cli" / "printed"
SCHEMA = """
max_rows = 5000
inferred = ["bounds of age: looked at"]

[[attribute]]
name = "ill"
kind = "boolean"

[[attribute]]
name = "age"
kind = "numeric"
lower = 0
upper = 100
cuts = [18, 65]
missing = true

[[attribute]]
name = "town"
kind = "categorical"
values = ["North", "South", "West"]

[[attribute]]
name = "dose"
kind = "numeric"
lower = -1.5
upper = 2.5
bins = 4

[[attribute]]
name = "job"
kind = "open"
"""
STUDY = """
[data]
path = "people.csv"
schema = "people.schema.toml"

[privacy]
epsilon = 4.0
allow = ["schema-inferred-from-data"]

[[step]]
name = "towns"
miner = "histogram"
epsilon = 0.5
params = { attribute = "town" }

[[step]]
name = "ages"
miner = "mean"
epsilon = 1
params = { attribute = "age", by = "ill" }

[[step]]
name = "tree"
miner = "dp-id3"
epsilon = 1.5
params = { target = "ill", attributes = ["town", "dose"], max_depth = 2 }
"""
RUN = ("--ledger", "people.ledger", "--data-set", "people", "--by", "Ann", "--purpose", "press")
COMMANDS: dict[str, tuple[str, ...]] = {
    "schema-show": ("schema", "show", "people.schema.toml"),
    "miners": ("miners",),
    "miner": ("miners", "histogram"),
    "mechanisms": ("mechanisms",),
    "schema-infer": ("schema", "infer", "people.csv", "--bins", "3"),
    "schema-check": ("schema", "check", "people.csv", "people.schema.toml"),
    "mechanism": ("mechanisms", "gaussian"),
    "plan": ("plan", "study.toml", "--rows", "4000"),
    "plan-difference": ("plan", "larger.toml", "--diff", "study.toml"),
    "check": ("check", "study.toml"),
    "check-refused": ("check", "refused.toml"),
    "epsilon": ("epsilon", "study.toml", "towns", "--rows", "4000", "--within", "1 %"),
    "explain-check": ("explain", "DP018"),
    "explain-mechanism": ("explain", "k-norm"),
    "describe": ("describe", "people.csv", "people.schema.toml", "--epsilon", "1"),
    "run": ("run", "study.toml", "--seed", "1", "--out", "seeded"),
    "report-plan": ("report", "study.toml", "--format", "md"),
    "report-run": ("report", "seeded", "--format", "md"),
    "report-terminal": ("report", "seeded"),
    "report-steps": ("report", "seeded", "--format", "csv"),
    "ledger-show": ("ledger", "show", "people.ledger"),
    "ledger-show-one": ("ledger", "show", "people.ledger", "--data-set", "people"),
    "ledger-by-person": ("ledger", "show", "people.ledger", "--data-set", "people", "--group-by", "person"),
    "ledger-by-attribute": ("ledger", "show", "people.ledger", "--data-set", "people", "--group-by", "attribute"),
    "ledger-decisions": ("ledger", "signers", "people.ledger"),
    "ledger-verify": ("ledger", "verify", "people.ledger"),
}
REPLACED = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?"), "TIME"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"), "HEX"),
    (re.compile(r"dpframework 0\.\S+"), "dpframework VERSION"),
)


def prepare(folder: Path) -> None:
    """Write the files that commands read, and make the runs of a ledger."""
    (folder / "people.schema.toml").write_text(SCHEMA)
    (folder / "study.toml").write_text(STUDY)
    (folder / "larger.toml").write_text(STUDY.replace("epsilon = 1.5", "epsilon = 2.5"))
    (folder / "refused.toml").write_text(
        STUDY.replace("epsilon = 4.0", "epsilon = 2.0").replace("schema-inferred-from-data", "")
    )
    towns = ("North", "South", "West")
    rows = [f"{str(k % 3 == 0).lower()},{k % 90},{towns[k % 7 % 3]},{k % 5 - 1.2},job {k % 4}\n" for k in range(600)]
    (folder / "people.csv").write_text("ill,age,town,dose,job\n" + "".join(rows))
    ledger = dpf.Ledger.create(folder / "people.ledger")
    ledger.open("people", epsilon=12)
    ledger.open("others", epsilon="0.5", unit="person", rows_per_unit=3, relation="replace-one")
    plan = dpf.study.load_study(folder / "study.toml").study.plan()
    ledger.approve("people", plan, by="board", runs=3, note="for the yearly report")
    ledger.record_outside("people", "a press release", kind="exact", by="Eve", attributes=["town"])
    ledger.record_outside("people", "a mean", kind="private", by="Eve", epsilon="0.25")
    for arguments in (("--out", "first", *RUN), ("--out", "second", *RUN[:4], "--by", "Bob")):
        code, text = run(("run", "study.toml", *arguments))
        assert code == 0, text


def run(arguments: tuple[str, ...]) -> tuple[int, str]:
    """Run a command in this folder; return its exit code, and what it prints, on both streams one after another."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    return code, out.getvalue() + err.getvalue()


def printed() -> Iterator[tuple[str, str]]:
    """Yield the name of each file and what it should hold."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        prepare(Path(folder))
        for name, arguments in COMMANDS.items():
            code, text = run(arguments)
            text = text.replace(os.path.realpath(folder), "FOLDER").replace(folder, "FOLDER")
            for pattern, word in REPLACED:
                text = pattern.sub(word, text)
            lines = [line.rstrip() for line in text.splitlines()]
            yield f"{name}.txt", "\n".join([f"$ dpframework {' '.join(arguments)}", *lines, f"exit code {code}", ""])


if __name__ == "__main__":
    os.environ |= TERMINAL
    PRINTED.mkdir(exist_ok=True)
    for old in PRINTED.glob("*.txt"):
        old.unlink()
    for name, text in printed():
        (PRINTED / name).write_text(text, encoding="utf-8")
