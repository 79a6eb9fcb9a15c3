"""A stranger's plugin, installed with pip: listed, planned and run, whatever else is broken beside it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "dpframework-example"

MINIMAL = Path(__file__).parents[1].joinpath("noisy_mode.py").read_text(encoding="utf-8")
BROKEN = "import a_module_that_nobody_has\n"
MISSPELT = MINIMAL.replace("def dpframework_miners", "def dpframework_minesr").replace("noisy-mode", "never-seen")


def package(folder: Path, name: str, source: str) -> Path:
    """Write a package of one module and one entry point."""
    folder.mkdir()
    (folder / f"{name}_plugin.py").write_text(source)
    (folder / "pyproject.toml").write_text(
        textwrap.dedent(f"""
            [build-system]
            requires = ["setuptools"]
            build-backend = "setuptools.build_meta"

            [project]
            name = "{name}-plugin"
            version = "1"

            [project.entry-points.dpframework]
            {name} = "{name}_plugin"

            [tool.setuptools]
            py-modules = ["{name}_plugin"]
        """)
    )
    return folder


def pip_install(target: Path, *sources: Path) -> Path:
    if importlib.util.find_spec("pip") is None or int(importlib.metadata.version("setuptools").split(".")[0]) < 77:
        pytest.skip("building the example without the network needs pip and setuptools >= 77")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    made = subprocess.run([*command, "--target", target, *sources], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return target


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """Return two folders to put on the path: the example beside two faulty plugins, and the smallest plugin alone."""
    work = tmp_path_factory.mktemp("plugins")
    left_out = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    example = shutil.copytree(EXAMPLE, work / "example", ignore=left_out)
    broken, misspelt = package(work / "broken", "broken", BROKEN), package(work / "misspelt", "misspelt", MISSPELT)
    minimal = package(work / "minimal", "minimal", MINIMAL)
    return {
        "example": pip_install(work / "with-example", example, broken, misspelt),
        "minimal": pip_install(work / "with-minimal", minimal),
    }


def dpframework(plugins: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(plugins)}
    command = [sys.executable, "-m", "dpframework", *arguments]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)


@pytest.fixture
def study(tmp_path) -> Path:
    """Write a study of one colour, which is plainly the most common."""
    (tmp_path / "colours.csv").write_text("colour\n" + "green\n" * 300 + "red\n" * 20)
    (tmp_path / "colours.schema.toml").write_text(
        '[[attribute]]\nname = "colour"\nkind = "categorical"\nvalues = ["red", "green", "blue"]\n'
    )
    (tmp_path / "study.toml").write_text(
        'data = { path = "colours.csv", schema = "colours.schema.toml" }\nprivacy = { epsilon = 1.0 }\n'
        '[[step]]\nname = "favourite"\nminer = "noisy-mode"\nepsilon = 1.0\nparams = { attribute = "colour" }\n'
    )
    return tmp_path / "study.toml"


@pytest.mark.parametrize(("folder", "plugin"), [("example", "noisy-mode"), ("minimal", "minimal")])
def test_installed_miner_is_listed(folders, folder, plugin):
    listed = dpframework(folders[folder], "miners", "--json")
    assert listed.returncode == 0, listed.stderr
    miners = {miner["name"]: miner for miner in json.loads(listed.stdout)["miners"]}
    assert miners["noisy-mode"]["plugin"] == plugin
    assert miners["noisy-mode"]["summary"] == "Release the most common value of one attribute."
    assert "dp-id3" in miners


@pytest.mark.parametrize("plugin", ["example", "minimal"])
def test_installed_miner_is_planned_and_run_from_a_study_file(folders, plugin, study):
    planned = dpframework(folders[plugin], "plan", str(study), "--json")
    assert planned.returncode == 0, planned.stderr
    step = json.loads(planned.stdout)["root"]["parts"][0]["parts"][0]
    assert (step["name"], step["losses"]["epsilon"]["add-or-remove-one"]) == ("mode", "1")

    ran = dpframework(folders[plugin], "run", "study.toml", "--out", "out", "--seed", "0", cwd=study.parent)
    assert ran.returncode == 0, ran.stderr
    results = json.loads((study.parent / "out" / "results.json").read_text())
    assert results["results"] == {"favourite": "green"}
    assert results["plan"] == json.loads(planned.stdout)["hash"]
    assert results["private"] is False


def test_faulty_neighbours_are_reported_by_name(folders, study):
    listed = dpframework(folders["example"], "miners", "--json")
    problems = sorted(json.loads(listed.stdout)["problems"])
    assert len(problems) == 2
    assert "plugin 'broken': cannot be imported (ModuleNotFoundError" in problems[0]
    assert "plugin 'misspelt': the hook 'dpframework_minesr' is unknown" in problems[1]
    assert "did you mean 'dpframework_miners'?" in problems[1]

    planned = dpframework(folders["example"], "plan", str(study))
    assert planned.returncode == 0
    assert "plugin 'broken'" in planned.stderr
    assert "plugin 'misspelt'" in planned.stderr
    assert "Traceback" not in planned.stderr


def test_a_miner_that_a_faulty_plugin_would_bring_is_unknown(folders, study):
    study.write_text(study.read_text().replace("noisy-mode", "never-seen"))
    planned = dpframework(folders["example"], "plan", str(study))
    assert planned.returncode == 2
    assert "no miner is named 'never-seen'" in planned.stderr
    assert "2 plugin problems" in planned.stderr


def test_the_example_passes_its_own_test(folders):
    environment = {**os.environ, "PYTHONPATH": str(folders["example"])}
    pytest_alone = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", EXAMPLE, "tests"]
    tested = subprocess.run(pytest_alone, env=environment, cwd=EXAMPLE, capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    passed = re.search(r"(\d+) passed", tested.stdout)
    assert passed is not None
    assert int(passed.group(1)) > 2  # its own, and those that it inherits
