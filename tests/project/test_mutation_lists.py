import ast
import importlib.util
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests/mutation/targets").glob("*.toml"))


def _survivor():
    spec = importlib.util.spec_from_file_location("survivors", ROOT / "tests/mutation/survivors.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Survivor


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
    survivors = [_survivor()(**entry) for entry in said.get("survivor", [])]
    assert {survivor.module for survivor in survivors} <= modules
    meant = [(survivor.module, survivor.line(), survivor.after) for survivor in survivors]  # else a LookupError
    assert len(set(meant)) == len(meant)


def test_a_line_that_is_gone_or_stands_twice_is_told(tmp_path):
    (tmp_path / "m.py").write_text(
        "def f():\n    a = 1\n    b = 1\n\nclass C:\n    def f(self):\n        a = 1\n        a = 1\n"
    )

    def line(before, **place):
        return _survivor()(str(tmp_path / "m.py"), before, "", "", **place).line()

    assert [line("b = 1"), line("a = 1", within="f"), line("a = 1", within="C.f", which=2)] == [3, 2, 8]
    for before, place in (("c = 1", {}), ("b = 1", {"within": "C"}), ("a = 1", {"within": "C.f", "which": 3})):
        with pytest.raises(LookupError, match="0 lines"):
            line(before, **place)
    with pytest.raises(LookupError, match="3 lines"):
        line("a = 1")
    with pytest.raises(LookupError, match=r"2 lines of C\.f"):
        line("a = 1", within="C.f")


def test_every_module_is_in_a_target_or_left_out_for_a_reason():
    targeted = {module for file in FILES for module in _modules(tomllib.loads(file.read_text(encoding="utf-8")))}
    entries = tomllib.loads((ROOT / "tests/mutation/in_no_target.toml").read_text(encoding="utf-8"))["files"]
    sources = [ROOT / "dpframework", *sorted(ROOT.glob("plugins/*/src"))]
    there = {path.relative_to(ROOT).as_posix() for source in sources for path in source.rglob("*.py")}
    left = there - targeted
    assert all(entry["reason"].strip() for entry in entries)
    assert all(_modules({"modules": [glob]}) & left for entry in entries for glob in entry["modules"])
    assert left - {module for entry in entries for module in _modules(entry)} == set()
