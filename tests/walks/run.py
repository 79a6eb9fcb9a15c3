"""Walk all commands of the experiments from a fresh install, and look whether the repository is as it was after them.

    DPFRAMEWORK_DATA=FOLDER python tests/walks/run.py
    DPFRAMEWORK_DATA=FOLDER python tests/walks/run.py --work FOLDER --only serenade retention

It clones the last commit, installs the clone with the extra that the commands need into an environment of its own, and
gives every experiment file (one repetition, written outside of the clone) and every script that is a command (its
smallest size). A file of either kind that is in no list here is a failure, and so is an exit code, a traceback, a
result that is missing, or a line of `git status`. Seconds are those of the processor. With `--work` the environment and
finished cells are kept, and the same command goes on from them.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = Path("docs") / "experiments"
EXTRA = {"dp-dilca/private-clusters.toml": "kmeans"}
REPETITIONS = {"tree-redescriptions/tables-3-to-5.toml": 4, "dp-dilca/contexts.toml": 4}  # else the tables say: too few

#: What is given after each script, where {out} is a folder that is not there yet and {of:NAME} an experiment's results.
SCRIPTS = {
    "pages.py": "{pages}",
    "dp-dilca/adult_contexts.py": "--runs 1 --out {out}",
    "dp-dilca/by_attribute.py": "{of:dp-dilca/by-attribute} --out {out}",
    "dp-dilca/comparison.py": "{of:dp-dilca/contexts} --out {out}",
    "retention/correlations.py": "{of:retention/noise} {out}.csv",
    "retention/toy.py": "{out}.png",
    "serenade/readings.py": "--runs 1 --out {out}",
    "tree-redescriptions/comparison.py": "{of:tree-redescriptions/tables-3-to-5}/results.parquet --out {out}",
    "tree-redescriptions/convergence.py": "--runs 2 --out {out}",
    "tree-redescriptions/larger_tables.py": "{of:tree-redescriptions/larger-tables}/results.parquet --out {out}",
    "tree-redescriptions/reported.py": "--runs 1 --out {out}",
}


def files(clone: Path) -> list[str]:
    """Return the experiment files of a clone."""
    found = sorted((clone / PLACE).rglob("*.toml"))
    return [str(path.relative_to(clone / PLACE)) for path in found if not path.name.endswith(".schema.toml")]


def scripts(clone: Path) -> list[str]:
    """Return the scripts of a clone that are commands."""
    found = sorted((clone / PLACE).rglob("*.py"))
    texts = {str(path.relative_to(clone / PLACE)): path.read_text(encoding="utf-8") for path in found}
    return [name for name, text in texts.items() if re.search(r"^if __name__ == .__main__.:", text, re.MULTILINE)]


def _spent() -> float:
    """Return the processor seconds of all commands that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


class Walk:
    """A clone with an environment, and what went wrong in it.

    Parameters
    ----------
    work
        The folder of all of it.
    """

    def __init__(self, work: Path) -> None:
        self.work, self.clone, self.python = work, work / "clone", work / "env" / "bin" / "python"
        self.wrong: list[str] = []

    def prepare(self) -> None:
        """Clone the last commit, and make the environment if there is none."""
        shutil.rmtree(self.clone, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.clone)], check=True)
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(self.work / "env")], check=True)
        self.install("experiments")

    def install(self, extra: str) -> None:
        """Install the clone with an extra, beside the extra that every experiment needs."""
        what = f".[{','.join(dict.fromkeys(('experiments', extra)))}]"
        uv = shutil.which("uv")  # which is faster than pip, where it is there
        python = str(self.python)
        command = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
        subprocess.run([*command, "--quiet", "-e", what], cwd=self.clone, check=True)

    def give(self, name: str, command: Sequence[str], out: Path) -> None:
        """Run a command in the clone; `out` has to be there afterwards."""
        before = _spent()
        ran = subprocess.run(command, cwd=self.clone, capture_output=True, text=True, check=False)
        status = subprocess.run(
            ["git", "status", "--porcelain"], cwd=self.clone, capture_output=True, text=True, check=True
        ).stdout
        lines = ran.stderr.strip().splitlines()
        problems = [f"exit code {ran.returncode}: {lines[-1] if lines else ''}"] if ran.returncode else []
        problems += ["a traceback"] if "Traceback" in ran.stderr else []
        problems += [] if out.exists() or ran.returncode else [f"nothing at {out.name}"]
        problems += [f"git status: {line}" for line in status.splitlines()]
        print(f"{name:45} {_spent() - before:6.0f} s  {'; '.join(problems) or 'as it should be'}", flush=True)
        if problems:
            self.wrong.append(name)
            subprocess.run(["git", "stash", "--quiet", "--include-untracked"], cwd=self.clone, check=False)

    def results(self, name: str) -> Path:
        """Return the folder of an experiment's results."""
        return self.work / "results" / name.removesuffix(".toml")

    def experiment(self, name: str) -> None:
        """Run an experiment file."""
        command = [str(self.python), "-m", "dpframework", "experiment", str(PLACE / name), "--jobs", "1"]
        repetitions = ["--repetitions", str(REPETITIONS.get(name, 1))]
        self.give(name, [*command, *repetitions, "--out", str(self.results(name))], self.results(name))

    def script(self, name: str) -> None:
        """Run a script that is a command."""
        out = self.work / "out" / name.removesuffix(".py")
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        pages = sorted(str(page.relative_to(self.clone)) for page in (self.clone / PLACE).glob("*.md"))
        given = SCRIPTS[name].replace("{out}", str(out)).replace("{pages}", " ".join(pages))
        given = re.sub(r"\{of:([^}]+)\}", lambda found: str(self.results(found[1])), given)
        there = next((Path(word) for word in given.split() if word.startswith(str(out))), self.clone)
        self.give(name, [str(self.python), str(PLACE / name), *given.split()], there)


def walk(work: Path, only: Sequence[str]) -> list[str]:
    """Walk the commands whose names begin with one of some words, or all; return those that went wrong."""
    walk = Walk(work)
    walk.prepare()

    def wanted(names: Sequence[str]) -> list[str]:
        return [name for name in names if not only or name.startswith(tuple(only))]

    unknown = set(scripts(walk.clone)) ^ SCRIPTS.keys()
    if unknown:
        print(f"scripts without a line here, or lines without a script: {', '.join(sorted(unknown))}")
        walk.wrong += sorted(unknown)
    extras = [EXTRA.get(name, "experiments") for name in wanted(files(walk.clone))]
    for extra in sorted(set(extras)):  # "experiments" first: what another extra brings does not help the others
        walk.install(extra)
        for name, needed in zip(wanted(files(walk.clone)), extras, strict=True):
            if needed == extra:
                walk.experiment(name)
        for name in wanted(list(SCRIPTS)) if extra == "experiments" else ():
            walk.script(name)
    return walk.wrong


def main() -> None:
    """Walk, and exit with 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="a folder that is kept; by default one that is removed at the end")
    parser.add_argument("--only", nargs="*", default=(), metavar="BEGINNING", help="of names; all by default")
    given = parser.parse_args()
    if "DPFRAMEWORK_DATA" not in os.environ:
        parser.error("set DPFRAMEWORK_DATA to the folder with the data sets")
    with tempfile.TemporaryDirectory() as passing:
        wrong = walk(given.work or Path(passing), given.only)
    print(f"{len(wrong)} went wrong{': ' if wrong else ''}{', '.join(wrong)}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
