"""The house: which room may import which, what a room costs to import, and how large its files are."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import dpframework as dpf

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT, *sorted(ROOT.glob("plugins/*/src"))]
PACKAGES = [package for folder in SOURCES for package in sorted(folder.glob("dpframework*")) if package.is_dir()]
ROOMS = [found.name for found in pkgutil.iter_modules(dpf.__path__) if found.ispkg]

SPINE = "the core is one spine: imports only go down"
NO_PLUGIN = "the core knows no plugin"
INDEPENDENT = "plugins do not know each other"
PUBLIC = "a plugin imports public names only: those that a room lists"
NO_LAB = "what handles private rows does not import the lab"

# (what breaks it, the contract, the file that gets one more line, the line)
PLANTED = [
    ("facts import a study", SPINE, "dpframework/facts/errors.py", "import dpframework.study"),
    ("a table imports a run", SPINE, "dpframework/tables/encoded_row_blocks.py", "import dpframework.run.gate"),
    ("a reader imports another", SPINE, "dpframework/ledger/entry_hash_chain.py", "import dpframework.reports"),
    ("a room of no layer", SPINE, "dpframework/attic/__init__.py", '"""A room that the contract does not name."""'),
    ("the core imports a plugin", NO_PLUGIN, "dpframework/study/plugin_registry.py", "import dpframework_trees"),
    ("a plugin imports another", INDEPENDENT, "dpframework_greedy/language.py", "import dpframework_trees.tree"),
    ("a plugin imports the gate", PUBLIC, "dpframework_greedy/language.py", "from dpframework.run.gate import Gate"),
    ("a plugin imports the lab", NO_LAB, "dpframework_trees/tree.py", "import dpframework.lab"),
]


def broken_in(folder: Path) -> set[str]:
    """Check the packages in a folder by the contracts beside them, and name those that are broken."""
    ran = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    verdicts = dict(re.findall(r"^(.+?) (KEPT|BROKEN)(?: \(.*\))?$", ran.stdout, re.MULTILINE))
    assert verdicts.keys() == contracts(), ran.stdout + ran.stderr
    assert ran.returncode == ("BROKEN" in verdicts.values())
    return {name for name, verdict in verdicts.items() if verdict == "BROKEN"}


def contracts() -> set[str]:
    return {contract["name"] for contract in settings()}


def settings() -> list[dict[str, Any]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return list(project["tool"]["importlinter"]["contracts"])


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a folder with a copy of all packages, and of the contracts."""
    pytest.importorskip("importlinter", reason="the contracts need the extra 'lint': pip install -e '.[lint]'")
    for package in PACKAGES:
        shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_tree_keeps_every_contract(copied: Path) -> None:
    assert broken_in(copied) == set()


@pytest.mark.parametrize(
    ("contract", "file", "line"), [case[1:] for case in PLANTED], ids=[case[0] for case in PLANTED]
)
def test_a_planted_import_breaks_its_contract_and_no_other(copied: Path, contract: str, file: str, line: str) -> None:
    (copied / file).parent.mkdir(exist_ok=True)
    with (copied / file).open("a", encoding="utf-8") as source:
        source.write(f"\n{line}\n")
    assert broken_in(copied) == {contract}


def test_every_contract_is_broken_by_something_planted() -> None:
    assert {contract for _, contract, _, _ in PLANTED} == contracts()


def test_at_most_twenty_modules_stand_at_the_top() -> None:
    assert len(list(pkgutil.iter_modules(dpf.__path__))) <= 20


@pytest.mark.skipif(
    not ((ROOT / ".git").exists() and shutil.which("git")),
    reason="only a repository says which files are the project's",
)
def test_nothing_else_is_visible_at_the_top() -> None:
    """A plugin that is tried may leave a file where it runs, and a commit of all files would take it along."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    top = {path.split("/")[0] for path in listed.splitlines() if not path.startswith(".")}
    assert top == {"dpframework", "plugins", "tests", "docs", "pyproject.toml", "README.md", "LICENSE"}


def test_no_source_file_has_more_than_400_lines() -> None:
    sources = [file for package in PACKAGES for file in package.rglob("*.py")]
    assert {file.name: lines for file in sources if (lines := len(file.read_text("utf-8").splitlines())) > 400} == {}


@functools.cache
def _nodes(file: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(file.read_text("utf-8"))))


def test_no_function_has_more_than_60_lines() -> None:
    """From `def` to its last line, docstring and all; there is no exception."""
    long = {}
    for file in (file for package in PACKAGES for file in package.rglob("*.py")):
        for node in _nodes(file):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                long.update({f"{file.name}: {node.name}": lines} if lines > 60 else {})
    assert long == {}


def test_no_two_classes_of_the_core_have_one_name() -> None:
    found: dict[str, str] = {}
    for file in sorted(ROOT.glob("dpframework/**/*.py")):
        for node in _nodes(file):
            if isinstance(node, ast.ClassDef):
                first = found.setdefault(node.name, str(file))
                assert first == str(file), f"{node.name} is a class of {first} and of {file}"


def test_tests_stand_in_a_folder_named_after_the_room_that_they_test() -> None:
    """What concerns the whole repository is in `project`; `benchmarks` and `security` are neither.

    Bugs that the verification must find stand in a folder of their own, since most concern several of its modules.
    """
    folders = {file.relative_to(ROOT / "tests").parent.as_posix() for file in (ROOT / "tests").rglob("test_*.py")}
    assert folders == {*ROOMS, "benchmarks", "project", "security", "verify/planted_bugs"}


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_every_name_that_a_room_lists_is_there(room: str) -> None:
    listed = importlib.import_module(f"dpframework.{room}".rstrip("."))
    for name in getattr(listed, "__all__", ()):
        assert getattr(listed, name) is not None, name


def test_accounting_loads_no_rows() -> None:
    """A total is made of public facts: of `tables`, queries name blocks and widen counts, and no more."""
    code = (
        "import sys, dpframework.accountant as room\n"
        "for name in room.__all__: getattr(room, name)\n"
        "print(*(name for name in sys.modules if name.startswith('dpframework.tables.')))\n"
        "print(*sorted({'numba', 'polars', 'narwhals', 'opendp'} & set(sys.modules)))\n"
        "import dpframework.study.study_file\n"
        "readers = {'dpframework.tables.' + name for name in ('reading', 'sources', 'two_view_reader')}\n"
        "print(*sorted(readers & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms, packages, readers = ran.stdout.split("\n")[:3]
    assert readers == "", "a study is described without what reads files"
    assert set(rooms.split()) <= {
        f"dpframework.tables.{name}"
        for name in ("encoded_row_blocks", "count_width", "open_attribute_keys", "places_in_unit")
    }
    assert packages == ""


def test_the_architecture_page_has_every_room_in_the_order_of_the_contract() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (spine,) = (contract for contract in settings() if contract["name"] == SPINE)
    layers = [room for layer in spine["layers"] for room in layer.split(" | ")]
    assert [*re.findall(r"^\| \[`(\w+)`\]\(", page, re.MULTILINE), "version"] == layers
