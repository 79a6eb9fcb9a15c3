"""`dpframework new`: what it writes installs, is listed, runs, and passes its tests and the linters, as written."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dpframework.cli import main
from dpframework.cli.skeleton import LONGEST, Names, skeleton, write_skeleton
from dpframework.facts.errors import InputError

ROOT = Path(__file__).parents[2]
EXAMPLE = Names.of("dpframework-noisy-mode")
BLOCK = re.compile(r"^```[^\n`]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = "Dpframework_Rarest.Value"  # with every sign that a name may hold


def ran(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out, err


def tree(folder: Path) -> dict[str, str]:
    """Return the text of each file in a folder, without what building or testing leaves there."""
    left = ("__pycache__", ".egg-info", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "build")
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in found
        if not any(part.endswith(left) for part in path.relative_to(folder).parts)
    }


# --- what is written ------------------------------------------------------------------------------------------------


def test_it_writes_the_plugin_and_says_what_to_do_next(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = ran(capsys, "new", NAME, "--out", tmp_path)
    assert (code, err) == (0, "")
    folder = tmp_path / NAME
    assert tree(folder) == skeleton(Names.of(NAME))
    assert [path.name for path in tmp_path.iterdir()] == [NAME]  # and nothing half written beside it
    for path in tree(folder):
        assert f"  {path}\n" in out
    assert len(re.findall(r"^  (?:pip|pytest|dpframework) ", out, re.MULTILINE)) == 3
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["name"] == NAME
    assert project["project"]["entry-points"]["dpframework"] == {"rarest-value": "dpframework_rarest_value"}


def test_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = ran(capsys, "new", NAME, "--out", tmp_path, "--json")
    form = json.loads(out)
    assert code == 0
    assert form["folder"] == str(tmp_path / NAME)
    assert form["files"] == list(skeleton(Names.of(NAME)))


def test_the_folder_is_made_here_by_default(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).mkdir()  # an empty one may be there
    assert ran(capsys, "new", NAME)[0] == 0
    assert tree(tmp_path / NAME) == skeleton(Names.of(NAME))


def test_the_example_plugin_is_what_new_writes() -> None:
    assert tree(ROOT / "docs" / "examples" / "dpframework-example") == skeleton(EXAMPLE)


def test_the_tutorial_shows_the_files_that_new_writes() -> None:
    page = (ROOT / "docs" / "tutorial-researcher.md").read_text(encoding="utf-8")
    shown = [match.group(1) for match in BLOCK.finditer(page)]
    explained = {path: text for path, text in skeleton(EXAMPLE).items() if path.endswith((".py", ".toml"))}
    assert len(explained) == 5
    for path, text in explained.items():
        assert f"`{path}`:" in page
        assert text in shown, path


@pytest.mark.parametrize(
    ("name", "package", "miner", "class_name"),
    [
        ("noisy-mode", "noisy_mode", "noisy-mode", "NoisyMode"),
        ("dpframework-noisy-mode", "dpframework_noisy_mode", "noisy-mode", "NoisyMode"),
        ("A.b__C-2", "a_b_c_2", "a-b-c-2", "ABC2"),
        ("Exception", "exception", "exception", "ExceptionMiner"),
        ("mapping", "mapping", "mapping", "MappingMiner"),
        ("none", "none", "none", "NoneMiner"),
        ("test-conformance", "test_conformance", "test-conformance", "TestConformanceMiner"),
    ],
)
def test_names(name: str, package: str, miner: str, class_name: str) -> None:
    assert Names.of(name) == Names(name, package, miner, class_name)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "cannot name a plugin"),
        ("a b", "cannot name a plugin"),
        ("a/b", "cannot name a plugin"),
        ("..", "cannot name a plugin"),
        ("café", "cannot name a plugin"),
        ("noisy-", "cannot name a plugin"),
        ("a" * (LONGEST + 1), "is longer than 40 characters"),
        ("3d", "begins with a digit"),
        ("dpframework-3d", "begins with a digit"),
        ("class", "a keyword of Python"),
        ("Statistics", "would hide Python's own module 'statistics'"),
        ("dpframework", "would hide the installed package 'dpframework'"),
        ("dpframework.trees", "would hide the installed package 'dpframework_trees'"),
        ("NumPy", "would hide the installed package 'numpy'"),
        ("dp-accounting", "would hide the installed package 'dp_accounting'"),
        ("tests", "every plugin has a folder named"),
        ("dp-id3", "a miner named 'dp-id3' is installed already"),
        ("dpframework-dp-id3", "a miner named 'dp-id3' is installed already"),
        ("dpframework-trees2-", "cannot name a plugin"),
    ],
)
def test_names_that_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = ran(capsys, "new", name)
    assert (code, out) == (2, "")
    assert reason in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_plugin_name_that_is_taken_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = importlib.metadata.EntryPoints([importlib.metadata.EntryPoint("mine", "elsewhere", "dpframework")])
    monkeypatch.setattr("dpframework.cli.skeleton.entry_points", lambda group: taken)
    with pytest.raises(InputError, match="a plugin named 'mine' is installed already"):
        Names.of("mine").require_free()


def test_what_is_there_is_not_touched(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "notes.txt").write_text("mine")
    (tmp_path / "a-file").write_text("mine")
    for arguments, reason in (
        ((NAME, "--out", tmp_path), "holds other files, such as 'notes.txt'"),
        (("a-file", "--out", tmp_path), "is a file"),
        ((NAME, "--out", tmp_path / "nowhere"), "its parent folder does not exist"),
        ((NAME, "--out", tmp_path / "a-file"), "parent folder does not exist"),
    ):
        code, out, err = ran(capsys, "new", *arguments)
        assert (code, out) == (2, "")
        assert reason in err
        assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted([NAME, "notes.txt", "a-file"])


def test_a_folder_is_never_half_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Path.write_text

    def full(path: Path, *arguments: object, **options: object) -> int:
        if path.name == "study.toml":
            raise OSError(28, "No space left on device")
        return written(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", full)
    code, _, err = ran(capsys, "new", NAME, "--out", tmp_path)
    assert code == 2
    assert "No space left on device" in err
    assert list(tmp_path.iterdir()) == []


# --- what was written works -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a new plugin, as `dpframework new` writes it."""
    out = tmp_path_factory.mktemp("new")
    made = subprocess.run(
        [sys.executable, "-m", "dpframework", "new", NAME, "--out", out], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return out / NAME


@pytest.fixture(scope="module")
def installed(plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that the plugin is installed in; its sources stay as they were written."""
    if importlib.util.find_spec("pip") is None or int(importlib.metadata.version("setuptools").split(".")[0]) < 77:
        pytest.skip("building a plugin without the network needs pip and setuptools >= 77")
    source = shutil.copytree(plugin, tmp_path_factory.mktemp("source") / "plugin")
    target = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    made = subprocess.run([*command, "--target", target, source], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return target


def run(cwd: Path, *command: str, paths: tuple[Path, ...] = (), **variables: str) -> str:
    """Run a module of Python there, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **variables}
    done = subprocess.run([sys.executable, "-m", *command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_listed_and_documented(plugin: Path, installed: Path) -> None:
    listed = json.loads(run(plugin, "dpframework", "miners", "--json", paths=(installed,)))
    (miner,) = [miner for miner in listed["miners"] if miner["plugin"] == "rarest-value"]
    assert (miner["name"], miner["summary"]) == ("rarest-value", "Release the most common value of one attribute.")
    assert listed["problems"] == []
    shown = json.loads(run(plugin, "dpframework", "miners", "rarest-value", "--json", paths=(installed,)))
    assert [(parameter["name"], bool(parameter["doc"])) for parameter in shown["parameters"]] == [
        ("attribute", True),
        ("epsilon", True),
    ]


def test_its_study_is_planned_checked_and_run(plugin: Path, installed: Path, tmp_path: Path) -> None:
    study = str(plugin / "example" / "study.toml")
    planned = run(tmp_path, "dpframework", "plan", study, paths=(installed,))
    assert "mode: histogram of colour, permute-and-flip  [epsilon 1.0]" in planned
    assert run(tmp_path, "dpframework", "check", study, paths=(installed,)).endswith(
        "checks passed; not yet approved\n"
    )
    run(tmp_path, "dpframework", "run", study, "--out", "out", "--seed", "0", paths=(installed,))
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["results"] == {"favourite": "green"}


def test_it_passes_its_own_tests(plugin: Path, installed: Path) -> None:
    printed = run(plugin, "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(plugin), paths=(installed,))
    passed = re.search(r"^(\d+) passed in", printed, re.MULTILINE)
    assert passed is not None, printed
    assert int(passed.group(1)) > 10  # most of them inherited, under both relations


def test_a_plugin_that_loses_more_than_it_claims_does_not_pass(plugin: Path, installed: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(installed, tmp_path / "installed")
    module = broken / "dpframework_rarest_value" / "__init__.py"
    half = "dpf.queries.Histogram(schema[self.attribute])"
    assert half in module.read_text()
    module.write_text(
        module.read_text().replace(half, "Doubled(schema[self.attribute])")
        + "\n\n@attrs.frozen\nclass Doubled(dpf.queries.Histogram):\n"
        "    def count(self, block, **inputs):\n        return 2 * super().count(block, **inputs)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(broken)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(plugin)]
    tested = subprocess.run(command, cwd=plugin, env=environment, capture_output=True, text=True)
    assert tested.returncode == 1, tested.stdout + tested.stderr
    assert "test_no_transcript_loses_more_than_the_plan_claims" in tested.stdout


def test_linters_accept_it(plugin: Path) -> None:
    pytest.importorskip("ruff", reason="needs the extra 'lint': pip install -e '.[lint]'")
    run(plugin, "ruff", "check", "--no-cache", ".")
    run(plugin, "ruff", "format", "--no-cache", "--check", ".")


@pytest.mark.parametrize("name", ["a", "Z" * LONGEST, "-".join("a" * (LONGEST // 2))])
def test_linters_accept_short_and_long_names(tmp_path: Path, name: str) -> None:
    pytest.importorskip("ruff", reason="needs the extra 'lint': pip install -e '.[lint]'")
    write_skeleton(Names.of(name), tmp_path)
    run(tmp_path, "ruff", "check", "--no-cache", ".")
    run(tmp_path, "ruff", "format", "--no-cache", "--check", ".")


def test_strict_types(plugin: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="needs the extra 'lint': pip install -e '.[lint]'")
    # dpframework's own modules are on the path as if they were the plugin's: their errors are not looked for here.
    options = ["--follow-imports=silent", f"--cache-dir={tmp_path}"]
    assert "no issues found" in run(plugin, "mypy", *options, MYPYPATH=str(ROOT))
