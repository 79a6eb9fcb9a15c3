"""An output replaces a file of its own kind, and nothing else: for every command that writes, and every bad name."""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from people import SCHEMA_FILE, TREE_STUDY

import dpframework as dpf
from dpframework import cli
from dpframework.cli import main
from dpframework.facts.files import write_whole
from dpframework.facts.output_overwrite_rule import FileKind
from dpframework.verify import LossReport, SamplerReport

ON = ("--data-set", "people")
EXPERIMENT = """
title = "Sizes"
seed = 1
repetitions = 1
folds = 2
epsilon = [1]
measure = [{ measure = "code.py:size" }]
method = [{ name = "none", baseline = "code.py:none" }]
table = [{ name = "sizes", value = "size", rows = ["method"], columns = ["epsilon"] }]
[[data]]
name = "people"
path = "people.csv"
schema = "people.schema.toml"
"""
CODE = "def none(table, *, seed):\n    return 0\n\n\ndef size(trial):\n    return {'size': 1}\n"

#: Every command that writes, its option, and a name that ends as its files do: with "", a folder.
WRITERS = {
    ("plan",): [
        ("plan", "study.toml", "--format", form, "--out", ending) for form, ending in
        (("tree", ".txt"), ("mermaid", ".mmd"), ("dot", ".dot"), ("json", ".json"), ("html", ".html"))
    ],
    ("report",): [
        ("report", "study.toml", "--format", form, "--out", ending) for form, ending in
        (("terminal", ".txt"), ("md", ".md"), ("html", ".html"), ("csv", ".csv"), ("json", ".json"))
    ],
    ("verify",): [("verify", "laplace", "--record", ".json")],
    ("prove",): [("prove", "study.toml", option, ".json") for option in ("--record", "--certificate")],
    ("schema", "infer"): [("schema", "infer", "people.csv", "--out", ".toml")],
    ("ledger", "show"): [("ledger", "show", "people.ledger", "--out", ending) for ending in (".html", ".csv", ".json")],
    ("run",): [
        ("run", "study.toml", "--out", ""),
        ("run", "study.toml", "--ledger", "people.ledger", *ON, "--out", ""),
    ],
    ("experiment",): [("experiment", "experiment.toml", "--jobs", "1", "--out", "")],
    ("new",): [("new", "dpframework-rare", "--out", "")],
    ("demo",): [("demo", "--seed", "1", "--out", "")],
}  # fmt: skip
#: Those whose second run replaces what the first one wrote.
AGAIN = [("plan",), ("report",), ("verify",), ("ledger", "show")]
CALLS = [call for calls in WRITERS.values() for call in calls]


def _named(call: tuple[str, ...]) -> str:
    return " ".join(call)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study with its data, its schema, its plan, a run's results, a ledger that approved it twice, an experiment."""
    monkeypatch.chdir(tmp_path)
    Path("people.schema.toml").write_text(SCHEMA_FILE)
    Path("study.toml").write_text(TREE_STUDY)
    Path("experiment.toml").write_text(EXPERIMENT)
    Path("code.py").write_text(CODE)
    Path("people.csv").write_text("ill,age\n" + "yes,20\nno,60\n" * 20)
    ledger = dpf.Ledger.create("people.ledger")
    ledger.open("people", epsilon=9)
    ledger.approve("people", dpf.study.load_study("study.toml").study.plan(), by="the board", runs=2)
    # what a mechanism is found to do makes no difference to the file, and takes long to find
    monkeypatch.setattr("dpframework.verify.check_sampler", lambda tested: SamplerReport(tested.name, (), (), 1))
    monkeypatch.setattr(
        "dpframework.verify.check_losses", lambda tested, **how: LossReport(tested.name, (), (), pairs=1)
    )
    return tmp_path


def _commands() -> Iterator[tuple[tuple[str, ...], list[str]]]:
    def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[str]]]:
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*path, name))
        if path and not hasattr(command, "commands"):
            yield path, [name for parameter in command.params for name in parameter.opts]

    yield from walk(cli.command())


def test_every_command_that_writes_is_tried_here():
    """A new command, or a new option by a known name, is not forgotten."""
    assert {path for path, options in _commands() if {"--out", "--record"} & set(options)} == set(WRITERS)


def test_only_one_module_of_the_project_opens_files_to_write_them():
    """What is written anywhere else goes to a new folder of its own, or to a folder for temporary files."""
    allowed = {
        "facts/files.py": "the one place",
        "cli/skeleton/__init__.py": "into a staged folder",
        "formulas/user_cache_folder.py": "into the user's cache folder, which no argument names",
        "reports/compiled_page_templates.py": "beside the templates, as Python keeps compiled modules",
        "facts/unfinished_files.py": "beside its place, until it is whole",
        "ledger/ssh_signatures.py": "into a temporary folder",
        "ledger/signers.py": "into a temporary folder",
        "verify/tables/row_independence_checks.py": "into a temporary folder",
        "verify/tables/engine_tables.py": "into pytest's folder",
        "verify/tables/people_table_files.py": "into pytest's folder",
        "verify/tables/leak_conformance.py": "makes a folder in pytest's folder",
        "lab/experiment/finished_cell_store.py": "makes its folder",
        "lab/run_cost_forecast.py": "tells Linux to forget the most memory that the process had",
        "facts/output_overwrite_rule.py": "reads",
        "cli/progress.py": "standard error, by a descriptor of its own",
        "tables/output_suppression.py": "to nowhere",
    }
    root = Path(dpf.__file__).parent
    sources = [*root.rglob("*.py"), *Path(root.parent, "plugins").glob("*/src/**/*.py")]
    writers = {"write_text", "write_bytes", "savefig", "mkdir", "makedirs", "rename", "replace_with"}
    found = set()
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            modes = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            opens = name == "open" and any(set(mode) <= set("rwxab+t") and set(mode) & set("wxa+") for mode in modes)
            if opens or (name in writers and not _into_a_buffer(node)):
                found.add(str(source.relative_to(root)) if source.is_relative_to(root) else source.name)
    assert found <= set(allowed), found - set(allowed)


def _into_a_buffer(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "savefig" and bool(call.keywords)


def _hostile(folder: Path) -> dict[str, Path]:
    """Make one of everything that an output may not replace."""
    shutil.copy("people.csv", "copy.csv")
    Path("taken").mkdir()
    Path("taken/inner").write_text("mine")
    Path("link").symlink_to("people.csv")
    Path("dangling").symlink_to(folder / "nowhere")
    Path("folder-link").symlink_to("empty")
    Path("empty").mkdir()
    os.mkfifo("pipe")
    names = ("people.ledger", "people.csv", "study.toml", "people.schema.toml", "taken", "link", "dangling", "pipe")
    return {name: folder / name for name in (*names, "folder-link", "nowhere-at-all/out", "x" * 300)}


def _state(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith(("__pycache__", ".numba")):
            continue
        held = path.is_file() and not path.is_symlink()
        found[name] = path.read_bytes() if held else os.readlink(path) if path.is_symlink() else path.lstat().st_mode
    return found


@pytest.mark.parametrize("call", CALLS, ids=_named)
def test_an_output_replaces_nothing_of_another_kind_and_charges_nothing(folder, capsys, call):
    places = _hostile(folder)
    before = _state(folder)
    for name, place in places.items():
        if call[0] == "experiment" and name == "nowhere-at-all/out":
            continue  # it makes the folders above its own
        if call[0] == "new":
            if name == "taken":
                continue  # a plugin's folder is made in it
            place = place if name != "folder-link" else folder / "study.toml"
        assert main([*call[:-1], str(place)]) == 2, name
        said = capsys.readouterr()
        assert said.err.splitlines()[-1].startswith("error: "), said.err
        assert not said.out, (name, said.out)
        assert _state(folder) == before, name


@pytest.mark.parametrize("call", CALLS, ids=_named)
def test_a_folder_that_takes_no_files_is_found_first(folder, capsys, call):
    if os.geteuid() == 0:
        pytest.skip("root may write to any folder")
    Path("closed").mkdir()
    Path("closed").chmod(0o500)
    before = _state(folder)
    try:
        assert main([*call[:-1], str(folder / "closed" / f"out{call[-1]}")]) == 2
    finally:
        Path("closed").chmod(0o700)
    assert "cannot be written" in capsys.readouterr().err
    assert _state(folder) == before


@pytest.mark.parametrize("call", [call for path in AGAIN for call in WRITERS[path]], ids=_named)
def test_an_output_replaces_its_own_kind(folder, call):
    out = folder / f"out{call[-1]}"
    assert main([*call[:-1], str(out)]) == 0
    first = out.read_bytes()
    assert main([*call[:-1], str(out)]) == 0
    assert len(out.read_bytes()) >= len(first) // 2
    assert not list(folder.glob(".out*"))


@pytest.mark.parametrize("call", [call for path in AGAIN for call in WRITERS[path]], ids=_named)
def test_a_file_that_is_its_own_kind_no_more_stays(folder, capsys, call):
    out = folder / f"out{call[-1]}"
    assert main([*call[:-1], str(out)]) == 0
    for content in (b"", b"mine\n"):
        out.write_bytes(content)
        assert main([*call[:-1], str(out)]) == 2
        assert out.read_bytes() == content
        assert "error: " in capsys.readouterr().err


def test_the_kinds_of_files_are_told_from_each_other(folder):
    """None of what one command writes is replaced by another one's: but for reports, which are pages all of them."""
    written = {}
    for call in [call for path in AGAIN for call in WRITERS[path]]:
        written[call] = folder / f"{len(written)}{call[-1]}"
        assert main([*call[:-1], str(written[call])]) == 0
    kept = {path: path.read_bytes() for path in written.values()}
    for call in written:
        for other, path in written.items():
            if call[0] == "ledger" and path.suffix == ".html":
                continue  # the name alone says which format it is
            if other is call or call[-1] == other[-1] == ".html" or call[0] == other[0] == "ledger":
                continue
            assert main([*call[:-1], str(path)]) == 2, (call, other)
    assert all(path.read_bytes() == content for path, content in kept.items())


def test_a_file_without_a_kind_is_never_replaced(tmp_path):
    path = tmp_path / "a"
    write_whole(path, "one")
    with pytest.raises(dpf.InputError, match="is never replaced"):
        write_whole(path, "two")
    assert path.read_text() == "one"


def test_a_writer_that_would_not_know_its_own_file_is_found(tmp_path):
    with pytest.raises(AssertionError, match="does not recognize"):
        write_whole(tmp_path / "a", "plain", FileKind.of_pattern("a page", "^<html>"))


def test_a_foreign_experiment_folder_stays(folder, capsys):
    """A folder with a folder `cells` of somebody else's is not an experiment's."""
    Path("mine/cells").mkdir(parents=True)
    Path("mine/results.parquet").write_text("mine")
    assert main(["experiment", "experiment.toml", "--jobs", "1", "--out", "mine"]) == 2
    assert Path("mine/results.parquet").read_text() == "mine"
    assert "holds other files" in capsys.readouterr().err
