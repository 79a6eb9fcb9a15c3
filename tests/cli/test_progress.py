"""The progress bar of a run: on a terminal alone, with what is read and what was released last."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rich.progress
from rich.console import Console

from dpframework.cli import progress
from dpframework.run.observers import Observer


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The bars that were shown, on a terminal that is a text."""
    shown: list[Any] = []

    class Kept(rich.progress.Progress):
        def __init__(self, *columns: Any, **options: Any) -> None:
            super().__init__(*columns, **options)
            shown.append(self)

    @contextlib.contextmanager
    def screen() -> Iterator[Console]:
        yield Console(
            file=io.StringIO(), force_terminal=True, width=100, _environ={"TERM": "xterm"}
        )  # not the caller's

    monkeypatch.setattr(rich.progress, "Progress", Kept)
    monkeypatch.setattr(progress, "_screen_of_its_own", screen)
    monkeypatch.setattr(progress, "on_terminal", lambda stderr: stderr)
    monkeypatch.setattr(progress, "console", lambda stderr: SimpleNamespace(is_dumb_terminal=not stderr))
    return shown


def released(path: str) -> Any:
    return SimpleNamespace(charge=SimpleNamespace(path=path))


def test_a_bar_names_what_is_read_then_the_step_of_the_study_that_released(
    bars: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    @contextlib.contextmanager
    def watch(tell: Any) -> Iterator[None]:
        told.append(tell)
        yield

    monkeypatch.setattr(progress, "watch_progress", watch)
    with progress.progress() as observer:
        ((task,),) = [bar.tasks for bar in bars]
        assert (task.description, task.total, task.completed) == ("reading", None, 0)
        told[0](1.5, 3)
        assert (task.description, task.completed) == ("reading: file 2 of 3, 50 %", 0)
        for number, path in enumerate(("tree/grow/split", "tree/leaves", "[red]table"), 1):
            observer.released(released(path))
            assert (task.description, task.completed) == (path.split("/")[0], number)
        bars[0].refresh()
        text = bars[0].console.file.getvalue()
        assert "releases: 3" in text
        assert "[red]table" in text  # a name is no markup
    assert bars[0].console.file.getvalue().endswith("\x1b[2K")  # and the bar is gone


def test_nothing_is_shown_where_it_could_not_move(bars: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, found in (("on_terminal", False), ("console", SimpleNamespace(is_dumb_terminal=True))):
        with monkeypatch.context() as changed:
            changed.setattr(progress, name, lambda stderr, found=found: found)
            with progress.progress() as observer:
                assert type(observer) is Observer
    assert bars == []


def test_a_bar_has_a_descriptor_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "shown").open("w+") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with progress._screen_of_its_own() as screen:
            own = screen.file
            assert own.fileno() != stream.fileno()
            assert os.path.sameopenfile(own.fileno(), stream.fileno())
            screen.print("seen")
        assert own.closed
        assert not stream.closed
    assert (tmp_path / "shown").read_text() == "seen\n"
    text = io.StringIO()  # which has none
    monkeypatch.setattr(sys, "stderr", text)
    with progress._screen_of_its_own() as screen:
        screen.print("seen")
    assert text.getvalue() == "seen\n"


@pytest.mark.parametrize(
    ("done", "files", "text"),
    [(0, 1, "reading: 0 of 1 files"), (0.999, 1, "reading: file 1 of 1, 100 %"), (3, 3, "reading: 3 of 3 files")],
)
def test_how_far_reading_has_come(done: float, files: int, text: str) -> None:
    assert progress.reading_text(done, files) == text
