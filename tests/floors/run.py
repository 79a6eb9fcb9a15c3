"""Install exactly the lowest versions that `pyproject.toml` allows, and run the demo and the tests with them.

    python tests/floors/run.py                                   # all tests, on each Python from 3.11 that is found
    python tests/floors/run.py --python python3.12 -- tests/cli/test_cli.py -x
    python tests/floors/run.py --only-demo

Every `name>=version` of the dependencies and of the extra `test` is installed as `name==version`, wheels only; what
those need themselves is as new as it can be. Each Python gets an environment of its own, which is kept with `--keep`
and used again there. What stands after `--` goes to pytest.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OLDEST = 11
#: A requirement: its name and extras, its lowest version, a highest one, and on which Python.
REQUIREMENT = re.compile(r"(?P<name>[\w.\[\]-]+)>=(?P<floor>[\w.]+)(,[^;]*)?(?P<marker>;.*)?")


def floors() -> list[str]:
    """Return the requirements of the project and its tests, each at its lowest version.

    Raises
    ------
    ValueError
        If a requirement states no lowest version.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = []
    for text in (*project["dependencies"], *project["optional-dependencies"]["test"]):
        match = REQUIREMENT.fullmatch(text.replace(" ;", ";"))
        if match is None:
            raise ValueError(f"pyproject.toml: '{text}' states no lowest version; write it as name>=version")
        found.append(f"{match['name']}=={match['floor']}{match['marker'] or ''}")
    return found


def pythons() -> list[str]:
    """Return each Python from 3.11 that is found, one of each minor version: on the path, or installed by pyenv."""
    found: dict[int, str] = {}
    for minor in range(OLDEST, OLDEST + 20):
        candidates = [shutil.which(f"python3.{minor}"), *Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python")]
        for candidate in (str(one) for one in candidates if one):
            # A name on the path may be a shim that starts nothing.
            asked = subprocess.run(
                [candidate, "-c", "import venv, sys; print(sys.version_info[1])"], capture_output=True
            )
            if asked.stdout.strip() == str(minor).encode():
                found.setdefault(minor, candidate)
    return list(found.values())


def installed(python: str, folder: Path) -> Path:
    """Make an environment with the floors, unless it is there and they are as they were; return its Python."""
    own = folder / "bin" / "python"
    wanted = "\n".join(floors())
    noted = folder / "floors.txt"
    if noted.exists() and noted.read_text() == wanted:
        return own
    subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
    requirements = folder / "requirements.txt"
    requirements.write_text(wanted)
    pip = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--only-binary", ":all:", "--requirement", str(requirements)], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], check=True)
    noted.write_text(wanted)
    return own


def passes(python: str, folder: Path, tests: list[str] | None) -> bool:
    """Run the demo and, unless that fails or they are None, the tests; say what was run, and how it ended."""
    own = installed(python, folder)
    version = subprocess.run([own, "-V"], capture_output=True, text=True, check=True).stdout.strip()
    commands = [[own, "-m", "dpframework", "demo"]]
    if tests is not None:
        commands.append([own, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "", *tests])
    for command in commands:
        quiet = subprocess.DEVNULL if command[-1] == "demo" else None
        code = subprocess.run(command, cwd=ROOT, stdout=quiet).returncode
        print(
            f"{version}, {' '.join(map(str, command[2:]))}: {'passes' if code == 0 else f'exit code {code}'}",
            flush=True,
        )
        if code:
            return False
    return True


def main() -> int:
    """Read the command line, and try each Python."""
    words, tests = sys.argv[1:], []
    if "--" in words:
        words, tests = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", metavar="PYTHON", help="by default each that is found; repeatable")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where environments stay, and are used again")
    parser.add_argument("--only-demo", action="store_true", help="run no tests")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as temporary:
        place = (asked.keep or Path(temporary)).absolute()
        place.mkdir(parents=True, exist_ok=True)
        ends = []
        for python in asked.python or pythons():
            name = re.sub(r"\W", "_", python)
            ends.append(passes(python, place / name, None if asked.only_demo else tests))
    return 0 if ends and all(ends) else 1


if __name__ == "__main__":
    sys.exit(main())
