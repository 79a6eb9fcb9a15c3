"""What commands print on one study and one ledger, whole: this command writes it anew.

python tests/printed_outputs.py

A change of a word in a report, a table or a list shows in the difference of these files, which says to a reviewer what
users will see. Ids, hashes, times, folders and the version are replaced, as they differ from run to run.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

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
LEDGER = "people.ledger --data-set people"
#: In the order in which they are given, by the name of the file that holds what they print.
COMMANDS = {
    "ledger-open": f"ledger open {LEDGER} --epsilon 14",
    "ledger-open-units": "ledger open people.ledger --data-set others --epsilon 0.5 --unit person --rows-per-unit 3 "
    "--relation replace-one --delta 1e-6 --reserve 1e-7",
    "ledger-approve": f"ledger approve {LEDGER} study.toml --by board --runs 3 --note yearly",
    "ledger-approve-one": f"ledger approve {LEDGER} extra.toml --by board --data people.csv",
    "ledger-approve-refused": f"ledger approve {LEDGER} refused.toml --by board",
    "ledger-outside": f"ledger outside {LEDGER} 'a press release' --kind exact --by Eve --attribute town",
    "ledger-outside-private": f"ledger outside {LEDGER} 'a mean' --kind private --by Eve --epsilon 0.25",
    "ledger-run": f"run study.toml --out first --ledger {LEDGER} --by Ann --purpose press",
    "ledger-run-again": f"run study.toml --out second --ledger {LEDGER} --by Bob",
    "ledger-run-other": f"run extra.toml --out third --ledger {LEDGER} --by Cy",
    "ledger-revoke": f"ledger revoke {LEDGER} PLAN --by board",
    "ledger-run-revoked": f"run study.toml --out fourth --ledger {LEDGER} --by Cy",
    "schema-show": "schema show people.schema.toml",
    "miners": "miners",
    "miner": "miners histogram",
    "mechanisms": "mechanisms",
    "schema-infer": "schema infer people.csv --bins 3",
    "schema-check": "schema check people.csv people.schema.toml",
    "mechanism": "mechanisms gaussian",
    "plan": "plan study.toml --rows 4000",
    "plan-difference": "plan extra.toml --diff study.toml",
    "check": "check study.toml",
    "check-refused": "check refused.toml",
    "epsilon": "epsilon study.toml towns --rows 4000 --within '1 %'",
    "explain-check": "explain DP018",
    "explain-mechanism": "explain k-norm",
    "describe": "describe people.csv people.schema.toml --epsilon 1",
    "run": "run study.toml --seed 1 --out seeded",
    "report-plan": "report study.toml --format md",
    "report-run": "report seeded --format md",
    "report-terminal": "report seeded",
    "report-page": "report seeded --format html --out report.html",
    "report-steps": "report seeded --format csv",
    "ledger-show": "ledger show people.ledger",
    "ledger-show-one": f"ledger show {LEDGER}",
    "ledger-by-person": f"ledger show {LEDGER} --group-by person",
    "ledger-by-attribute": f"ledger show {LEDGER} --group-by attribute",
    "ledger-decisions": "ledger signers people.ledger",
    "ledger-page": f"ledger show {LEDGER} --out ledger.html",
    "ledger-json": f"ledger show {LEDGER} --json",
    "ledger-verify": "ledger verify people.ledger",
    "ledger-verify-json": "ledger verify people.ledger --json",
    "ledger-verify-pin": "ledger verify people.ledger --pin noted.pin",
    "ledger-verify-other": f"ledger verify people.ledger --head {'ab' * 32}",
    "ledger-runs": f"ledger show {LEDGER} --out runs.csv",
    "ledger-all": "ledger show people.ledger --out all.html",
    "ledger-by-month": f"ledger show {LEDGER} --group-by month",
    "ledger-unknown": "ledger show people.ledger --data-set peoples",
    "miners-json": "miners --json",
    "miner-json": "miners mean --json",
    "miner-unknown": "miners histogramm",
    "mechanism-json": "mechanisms k-norm --json",
    "explain-assumption": "explain mcmc-converged",
    "explain-allowance": "explain large-epsilon",
    "explain-json": "explain dp012 --json",
    "explain-unknown": "explain DP01",
    "plan-json": "plan extra.toml --json",
    "plan-mermaid": "plan study.toml --format mermaid",
    "plan-out": "plan study.toml --out plan.dot",
    "plan-same": "plan study.toml --diff study.toml",
    "plan-difference-json": "plan study.toml --diff refused.toml --json",
    "check-json": "check refused.toml --json --rows 900",
    "epsilon-json": "epsilon study.toml ages/distances --within 2 --json",
    "epsilon-unknown": "epsilon study.toml town --within 5",
    "describe-units": "describe people.csv people.schema.toml --unit owner --rows-per-unit 2 --allow large-epsilon",
    "describe-json": "describe people.csv people.schema.toml --json",
    "report-json": "report seeded --json",
    "report-out": f"report study.toml --ledger {LEDGER} --out report.md",
    "report-dossier": f"report study.toml --dossier --ledger {LEDGER} --format md",
    "report-dossier-page": "report study.toml --dossier --format html",
    "report-registry-open": "report study.toml --registry",
    "statements": "statements owner.toml",
    "report-registry": "report study.toml --registry --owner owner.toml",
    "report-refused": "report people.csv",
    "schema-show-json": "schema show people.schema.toml --json",
    "schema-infer-quantiles": "schema infer people.csv --numeric quantile --bins 4 --open job --exclude dose",
    "schema-infer-observed": "schema infer people.csv --numeric observed --categorical age --max-categories 50 --json",
    "schema-check-other": "schema check people.csv other.schema.toml",
    "schema-check-json": "schema check people.csv other.schema.toml --json",
    "run-json": "run study.toml --seed 2 --out more --json",
    "run-refused": "run refused.toml --out never",
    "new": "new town-counts",
}
WRITTEN = (".html", ".csv", ".md", ".dot")  # of files that are printed with what the command prints
RELEASES = 9  # of a run
REPLACED = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?"), "TIME"),
    (re.compile(r"\b20\d\d-(0[1-9]|1[0-2])\b(?!-)"), "MONTH"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"), "HEX"),
    (re.compile(r"dpframework 0\.\S+"), "dpframework VERSION"),
)


def prepare(folder: Path) -> None:
    """Write the files that commands read."""
    (folder / "people.schema.toml").write_text(SCHEMA)
    (folder / "study.toml").write_text(STUDY)
    (folder / "other.schema.toml").write_text(SCHEMA.replace("upper = 100", "upper = 80").replace('"West"', '"East"'))
    (folder / "extra.toml").write_text(STUDY.replace("epsilon = 1.5", "epsilon = 2.5"))
    (folder / "refused.toml").write_text(
        STUDY.replace("epsilon = 4.0", "epsilon = 2.0").replace("schema-inferred-from-data", "")
    )
    towns = ("North", "South", "West")
    rows = [f"{str(k % 3 == 0).lower()},{k % 90},{towns[k % 7 % 3]},{k % 5 - 1.2},job {k % 4}\n" for k in range(600)]
    (folder / "people.csv").write_text("ill,age,town,dose,job\n" + "".join(rows))


def run(arguments: list[str]) -> tuple[int, str]:
    """Run a command in this folder; return its exit code, and what it prints, on both streams one after another."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue() + err.getvalue()


def read_hash(run: str) -> str:
    """Return the hash of a run's plan."""
    return str(json.loads(Path(run, "plan.json").read_text(encoding="utf-8"))["hash"])


def page_text(page: str) -> str:
    """Return a page without styles and scripts, a tag a line."""
    return re.sub(r">\s*<", ">\n<", re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL))


def write_anew(folder: Path, files: Iterable[tuple[str, str]]) -> None:
    """Write files, by name, in place of all that a folder holds."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.txt"):
        old.unlink()
    for name, text in files:
        (folder / name).write_text(text, encoding="utf-8")


def printed() -> Iterator[tuple[str, str]]:
    """Yield the name of each file and what it should hold."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        prepare(Path(folder))
        for name, command in COMMANDS.items():
            arguments = shlex.split(command)
            code, text = run([read_hash("first") if word == "PLAN" else word for word in arguments])
            if "--out" in arguments[-2:-1] and (written := Path(arguments[-1])).suffix in WRITTEN:
                text += page_text(written.read_text(encoding="utf-8"))
            if code == 0 and arguments[0] == "run" and "--seed" not in arguments:
                text = text[text.index("\n\n" + str(RELEASES)) :]  # the results before it are drawn anew each time
            text = text.replace(os.path.realpath(folder), "FOLDER").replace(folder, "FOLDER")
            for pattern, word in REPLACED:
                text = pattern.sub(word, text)
            lines = [line.rstrip() for line in text.splitlines()]
            yield f"{name}.txt", "\n".join([f"$ dpframework {' '.join(arguments)}", *lines, f"exit code {code}", ""])


if __name__ == "__main__":
    os.environ |= TERMINAL
    write_anew(PRINTED, printed())
