"""`dpframework experiment`: how many processes it starts, and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpframework.cli import main
from dpframework.lab import experiment


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is asked of an experiment, which does nothing, in a folder with its file."""
    found: list[dict[str, Any]] = []
    nothing = SimpleNamespace(cells=3, before=1, now=2)
    nothing.failed, nothing.folder = [], Path("there")
    nothing.report = SimpleNamespace(tables={}, groups={}, files=["a.csv", "b.md"])

    def load(file: Path, *, repetitions: int | None) -> Any:
        found.append({"file": str(file), "repetitions": repetitions})
        return SimpleNamespace(tables=[], title="it")

    def run(wanted: Any, folder: Path, *, processes: int, on_progress: Any) -> Any:
        found[-1] |= {"folder": str(folder), "processes": processes}
        return nothing

    monkeypatch.setattr(experiment, "load_experiment", load)
    monkeypatch.setattr(experiment, "run_experiment", run)
    monkeypatch.chdir(tmp_path)
    Path("trees.toml").touch()
    return found


def test_it_takes_all_processors_and_a_folder_beside_its_file(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "trees.toml"]) == 0
    assert asked == [{"file": "trees.toml", "repetitions": None, "folder": "trees-results", "processes": -1}]
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "3 cells: 1 finished before, 2 now, 0 failed"
    assert told[-1] == f"wrote {Path('there', 'a.csv')}, {Path('there', 'b.md')}"


def test_json_says_that_nothing_in_it_is_private(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "trees.toml", "--json"]) == 0
    assert len(asked) == 1
    form = json.loads(capsys.readouterr().out)
    assert form["private"] is False
    assert (form["cells"], form["finished_before"], form["finished_now"], form["failed"]) == (3, 1, 2, [])


def test_it_takes_as_many_as_it_is_told(asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    for jobs in (1, 2):
        assert main(["experiment", "trees.toml", "--jobs", str(jobs), "--repetitions", "1", "--out", "here"]) == 0
        assert asked.pop() == {"file": "trees.toml", "repetitions": 1, "folder": "here", "processes": jobs}
    assert main(["experiment", "trees.toml", "--jobs", "3", "--force"]) == 0
    assert asked.pop()["processes"] == 3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--jobs", "0"], "--jobs is 0; at least 1 is needed"),
        (["--repetitions", "0"], "--repetitions is 0; at least 1 is needed"),
        (
            ["--jobs", "2"],
            "--jobs is 2; this machine has 1 processor, and more processes only take memory; add --force if you want "
            "them",
        ),
    ],
)
def test_it_refuses_none_and_more_than_there_are(
    asked: list[dict[str, Any]],
    given: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: None)  # where nobody knows
    assert main(["experiment", "trees.toml", *given]) == 2
    assert capsys.readouterr().err == f"error: {says}\n"
    assert asked == []
