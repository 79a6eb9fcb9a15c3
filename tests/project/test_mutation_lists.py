import ast
import builtins
import re
import sys
import tomllib
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests/mutation/targets").glob("*.toml"))


@pytest.fixture(scope="module", autouse=True)
def _lists():
    """The modules of the command, which import one another as those of a folder do."""
    sys.path.insert(0, str(ROOT / "tests/mutation"))
    yield
    sys.path.remove(str(ROOT / "tests/mutation"))


def _modules(said):
    return {path.relative_to(ROOT).as_posix() for glob in said["modules"] for path in ROOT.glob(glob)}


def _defined(module):
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return functions | names


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_excused_is_there(file):
    said = tomllib.loads(file.read_text(encoding="utf-8"))
    modules = _modules(said)
    assert all(list(ROOT.glob(glob)) for glob in said["modules"])
    assert all((ROOT / test.partition("::")[0]).exists() for test in said["tests"])
    for entry in said.get("left_out", []):
        defined = {name for module in modules if fnmatch(module, entry["modules"]) for name in _defined(module)}
        assert set(entry["names"]) <= defined, entry
    survivors = [import_module("survivors").Survivor(**entry) for entry in said.get("survivor", [])]
    assert {survivor.module for survivor in survivors} <= modules
    assert all(survivor.reason.strip() and survivor.line() for survivor in survivors)  # else a LookupError
    assert len({(survivor.module, survivor.id) for survivor in survivors}) == len(survivors)


MODULE = """
WIDTH = 1

def f(a):
    b = a + 1 - 1
    return b if a < 0 else max(b, 1)

class C:
    def f(self, a):
        if a is not None:
            a += 1
        a += 1
"""
RENAMED = """
WIDTH = 1


def f(rows: int, /) -> int:
    \"\"\"Tell.\"\"\"
    more = (
        rows + 1
        - 1
    )
    return more if rows < 0 else max(more, 1)

class C:
    def f(self, rows):
        if rows is not None: rows += 1
        rows += 1
"""
CHANGES = {
    ((2, 8), "1->2"): (2, "module 1->2 "),
    ((5, 12), "1->0"): (8, "f 1->0 "),
    ((5, 16), "1->0"): (9, "f 1->0#2 "),
    ((5, 14), "-->+"): (9, "f -->+ "),
    ((6, 18), "<-><="): (11, "f <-><= "),
    ((6, 27), "max->min"): (11, "f max->min "),
    ((10, 13), "isnot->is"): (15, "C.f isnot->is "),
    ((11, 17), "1->2"): (15, "C.f 1->2 "),
    ((12, 13), "1->2"): (16, "C.f 1->2 "),
}


@pytest.mark.parametrize(("place", "change"), CHANGES)
def test_an_id_outlives_other_names_and_another_layout(place, change):
    ids = import_module("mutant_ids").MutantIds
    line, begins = CHANGES[place, change]
    mutant = ids(MODULE).id_of(place, change)
    assert mutant.startswith(begins)
    assert (ids(MODULE).line_of(mutant), ids(RENAMED).line_of(mutant)) == (place[0], line)


def test_ids_of_different_mutants_differ():
    ids = import_module("mutant_ids").MutantIds(MODULE)
    assert len({ids.id_of(*each) for each in CHANGES}) == len(CHANGES)


def test_an_id_is_the_same_after_a_doctest(monkeypatch):
    """Which leaves its last result as `_` among Python's own names."""
    ids = import_module("mutant_ids").MutantIds
    looped = "for _ in range(60):\n    f(_)\n"
    mutant = ids(looped).id_of((1, 15), "60->59")
    monkeypatch.setattr(builtins, "_", 1, raising=False)
    assert ids(looped).line_of(mutant) == 1


@pytest.mark.parametrize(
    ("place", "change", "old", "new"),
    [
        ((5, 12), "1->0", "a + 1 - 1", "a + 1 - 2"),
        ((5, 12), "1->0", "a + 1 - 1", "a * 1 - 1"),
        ((6, 18), "<-><=", "max(b, 1)", "min(b, 1)"),
        ((10, 13), "isnot->is", "is not None", "is None"),
        ((12, 13), "1->2", "    a += 1\n        a += 1", "    a += 1"),
        ((11, 17), "1->2", "class C", "class D"),
    ],
)
def test_an_id_ends_when_what_its_statement_does_changes(place, change, old, new):
    ids = import_module("mutant_ids").MutantIds
    mutant = ids(MODULE).id_of(place, change)
    assert old in MODULE
    with pytest.raises(LookupError, match=f"no mutant is called '{re.escape(mutant)}'"):
        ids(MODULE.replace(old, new)).line_of(mutant)


def test_every_module_is_in_a_target_or_left_out_for_a_reason():
    targeted = {module for file in FILES for module in _modules(tomllib.loads(file.read_text(encoding="utf-8")))}
    entries = tomllib.loads((ROOT / "tests/mutation/in_no_target.toml").read_text(encoding="utf-8"))["files"]
    sources = [ROOT / "dpframework", *sorted(ROOT.glob("plugins/*/src"))]
    there = {path.relative_to(ROOT).as_posix() for source in sources for path in source.rglob("*.py")}
    left = there - targeted
    assert all(entry["reason"].strip() for entry in entries)
    assert all(_modules({"modules": [glob]}) & left for entry in entries for glob in entry["modules"])
    assert left - {module for entry in entries for module in _modules(entry)} == set()
