"""What is asked in another process and how answers are compared, and which files count as kept by a run."""

from __future__ import annotations

import io
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.queries import Count, PiecewiseScores, Query
from dpframework.verify import file_read_and_write_watch
from dpframework.verify.file_read_and_write_watch import watch_files
from dpframework.verify.plugin_code_constants import is_foreign
from dpframework.verify.queries import answers_in_other_process
from dpframework.verify.queries.answers_in_other_process import (
    LocalAnswer,
    OtherProcess,
    _answer,
    _Questions,
    _same,
    _show,
    differences,
)

SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")])


@attrs.frozen
class Given(Query):
    """Answers what it was given."""

    name = "given"
    given: Any = attrs.field(default=0, eq=False)

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        raise ValueError("first line\nsecond line")

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> Any:
        return super().evaluate(engine, rows, **inputs) if self.given is None else self.given


def asked(answer: Any, query: Query | None = None, rows: bytes = bytes(6)) -> LocalAnswer:
    return LocalAnswer(query or Given(), SCHEMA, rows, (), {}, answer)


def piecewise(*scores: float) -> PiecewiseScores:
    return PiecewiseScores(np.arange(len(scores) + 1.0), np.array(scores))


def test_answers_are_the_same_up_to_rounding() -> None:
    for one, other, same in (
        ([1.0, 2], [1.0, 2], True),
        ([0.0], [0.9e-9], True),
        ([0.0], [1.5e-9], False),
        ([0.5], [0.5 + 1.5e-9], False),
        ([1000.0], [1000 + 0.9e-6], True),
        ([1000.0], [1000 + 1.5e-6], False),
        ([-1000.0], [-1000 + 0.9e-6], True),
        ([1.0, 2], [1.0, 3], False),
        ([1.0], [1.0, 1], False),
        ([], [], True),
    ):
        assert _same(np.array(one), np.array(other)) is same, (one, other)
    assert _same("with ValueError: a", "with ValueError: a")
    assert not _same("with ValueError: a", "with ValueError: b")
    assert not _same("1", np.array([1]))
    assert not _same(np.array([1]), "1")
    assert not _same(np.array([1.0]), piecewise(1))
    assert _same(piecewise(1000, 2), piecewise(1000, 2 + 0.9e-9))
    assert not _same(piecewise(1000, 2), piecewise(1000, 2 + 1.5e-9))
    assert _same(piecewise(1, 1), piecewise(1))  # the same where both are defined


def test_answers_are_shown_with_eight_numbers() -> None:
    assert _show("with ValueError: a") == "with ValueError: a"
    assert _show(np.array(5)) == "5"
    assert _show(np.array([[1, 2], [3.25, 4]])) == "1, 2, 3.25, 4"
    assert _show(np.arange(8)) == "0, 1, 2, 3, 4, 5, 6, 7"
    assert _show(np.arange(9)) == "0, 1, 2, 3, 4, 5, 6, 7, ..."
    assert _show(piecewise(1, 2.5)) == "1, 2.5"


def test_an_answer_is_its_coordinates_or_its_failure_in_one_line() -> None:
    found = _answer(Count(), SCHEMA, bytes(range(5)), (), {})
    assert (type(found), found.tolist()) == (np.ndarray, 5)
    scores = piecewise(1)
    assert _answer(Given(scores), SCHEMA, b"", (), {}) is scores
    assert _answer(Given([3, 4]), SCHEMA, b"", (), {}).tolist() == [3, 4]
    assert _answer(Given(None), SCHEMA, bytes(3), (), {}) == "with ValueError: first line"
    of = LocalAnswer.of(Count(), SCHEMA, bytes(4), (), {})
    assert (of.query, of.schema, of.rows, of.derived, of.inputs) == (Count(), SCHEMA, bytes(4), (), {})
    assert of.answer.tolist() == 4


def test_each_difference_belongs_to_its_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(answers_in_other_process.CHILD, raising=False)
    sent: list[list[bytes]] = []

    def answered(*answers: Any) -> list[str | None]:
        def elsewhere(questions: list[bytes]) -> Any:
            sent.append(questions)
            return None if answers == (None,) else list(answers)

        return differences(questions, SimpleNamespace(answers=elsewhere))

    unsent = asked(np.array([9]), Given(lambda: 0))
    questions = [asked(np.array([1]), Count()), unsent, asked(np.array([2]), Count()), asked(np.array([3]), Count())]
    assert unsent.pickled is None
    found = answered((np.array([1]), None), (np.array([5]), None), None)
    assert found[:2] == [None, None]
    assert found[3] is None
    assert found[2] == (
        "answers 2 here and 5 in a new process, on the same rows: it reads something that this process keeps, such as "
        "a global that `mine` sets, and the workers of an engine do not have it"
    )
    assert sent == [[one.pickled for one in questions if one is not unsent]]
    assert answered(None) == [None] * 4
    questions, sent = [unsent], []
    assert answered((np.array([1]), None)) == [None]
    assert sent == []
    query, schema, rows, derived, inputs = pickle.loads(asked(0, Count(), b"\1\2").pickled or b"")
    assert (query, schema, rows, derived, inputs) == (Count(), SCHEMA, b"\1\2", (), {})
    monkeypatch.setattr(Given, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Given", Given, raising=False)
    assert asked(0).pickled is None


def test_a_process_is_asked_with_the_files_of_the_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(answers_in_other_process.CHILD, raising=False)
    made: list[Any] = []

    class Process:
        def __init__(self, command: list[str], **options: Any) -> None:
            made.append(self)
            self.command, self.options, self.calls = command, options, []

        def communicate(self, *given: Any, **limits: Any) -> Any:
            self.calls.append((given, limits))
            if isinstance(answer[0], Exception) and given:
                raise answer[0]
            return answer[0], None

        def kill(self) -> None:
            self.calls.append("killed")

    monkeypatch.setattr(subprocess, "Popen", Process)
    answer: list[Any] = [pickle.dumps([1, None])]
    assert OtherProcess().answers([b"it names dpframework.verify.queries.large_tables", b"and more"]) == [1, None]
    (one,) = made
    ((given,), limits), *ended = one.calls
    files, sent = pickle.loads(given)
    assert limits == {"timeout": 120}
    assert ended == ["killed", ((), {})]
    assert sent == [b"it names dpframework.verify.queries.large_tables", b"and more"]
    module = "dpframework.verify.queries.large_tables"
    assert files[module] == sys.modules[module].__file__
    assert "dpframework.verify" in files
    assert "dpframework.queries" not in files
    assert one.command == [
        sys.executable, "-c", "from dpframework.verify.queries.answers_in_other_process import answer_all; answer_all()"
    ]  # fmt: skip
    environment = one.options["env"]
    assert environment[answers_in_other_process.CHILD] == "1"
    assert environment["PYTHONPATH"].split(os.pathsep) == [path for path in sys.path if path]
    assert [one.options[pipe] for pipe in ("stdin", "stdout", "stderr")] == [
        subprocess.PIPE, subprocess.PIPE, subprocess.DEVNULL
    ]  # fmt: skip
    for answer[0] in (subprocess.TimeoutExpired("a", 1), OSError(), b"", b"no pickle"):
        assert OtherProcess().answers([b"a"]) is None
    waiting = OtherProcess()
    assert made[-1].calls == []
    del waiting
    assert made[-1].calls == ["killed", ((), {})]

    def missing(*given: Any, **options: Any) -> Any:
        raise OSError

    monkeypatch.setattr(subprocess, "Popen", missing)
    assert OtherProcess().answers([b"a"]) is None
    monkeypatch.setenv(answers_in_other_process.CHILD, "1")
    monkeypatch.setattr(subprocess, "Popen", Process)
    assert OtherProcess().answers([b"a"]) is None


def test_questions_bring_their_modules_from_files(tmp_path: Path) -> None:
    file = tmp_path / "brought_by_a_question.py"
    file.write_text("class Outer:\n    class Inner:\n        worth = 3\n")
    questions = _Questions(io.BytesIO(), {"brought_by_a_question": str(file)})
    try:
        inner = questions.find_class("brought_by_a_question", "Outer.Inner")
        assert inner.worth == 3
        assert questions.find_class("brought_by_a_question", "Outer.Inner") is inner
        assert questions.find_class("dpframework.verify.queries.large_tables", "MANY") == 70_000
    finally:
        sys.modules.pop("brought_by_a_question", None)
    with pytest.raises(KeyError):
        questions.find_class("module_that_is_nowhere", "A")


def test_code_of_others_is_told_from_the_projects_and_pythons() -> None:
    assert is_foreign(Given())
    assert not is_foreign(Count())
    assert not is_foreign(DiscreteLaplace(1))

    class Derived(DiscreteLaplace):
        """Of this test."""

    assert is_foreign(Derived(1))


def watch(monkeypatch: pytest.MonkeyPatch, event: str, *given: Any) -> set[str]:
    """The names that the hook keeps of one event."""
    watched: list[set[str]] = [set(), set()]
    monkeypatch.setattr(file_read_and_write_watch, "_watched", watched)
    file_read_and_write_watch._hook(event, given)
    assert watched[0] == set()  # the innermost watches
    return watched[1]


def test_files_that_are_written_are_watched_and_others_if_new(monkeypatch: pytest.MonkeyPatch) -> None:
    new: list[str] = []
    monkeypatch.setattr(file_read_and_write_watch, "_is_new", lambda name: name in new)
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_APPEND, os.O_RDONLY | os.O_CREAT):
        assert watch(monkeypatch, "open", "/a/b", None, flags) == {"/a/b"}
    assert watch(monkeypatch, "open", b"/a/b", "w", os.O_WRONLY) == {"/a/b"}
    assert watch(monkeypatch, "open", Path("/a/b"), "w", os.O_WRONLY) == {"/a/b"}
    assert watch(monkeypatch, "open", "/a/b", "r", os.O_RDONLY) == set()
    new.append("/a/b")
    assert watch(monkeypatch, "open", "/a/b", "r", os.O_RDONLY) == {"/a/b"}
    new.clear()
    assert watch(monkeypatch, "sqlite3.connect", "/a/b.db") == {"/a/b.db"}
    assert watch(monkeypatch, "open", "/a/b", "r") == {"/a/b"}  # of which nobody knows how it is opened
    assert watch(monkeypatch, "open", "/a/b", "r", None) == {"/a/b"}
    assert watch(monkeypatch, "os.remove", "/a/b", "w", os.O_WRONLY) == set()
    assert watch(monkeypatch, "open", 3, "w", os.O_WRONLY) == set()
    for name in (os.devnull, "/proc/self/stat", "/a/b.py", "/a/b.pyc", "/a/b.nbi", "/a/b.nbc"):
        assert watch(monkeypatch, "open", name, "w", os.O_WRONLY) == set()
    for name in ("/process", "/a/b.pyx", "/a/py"):
        assert watch(monkeypatch, "open", name, "w", os.O_WRONLY) == {name}
    monkeypatch.setattr(file_read_and_write_watch, "_watched", [])
    file_read_and_write_watch._hook("open", ("/a/b", "w", os.O_WRONLY))


def test_a_file_is_new_from_when_this_process_began(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    started = time.time() - 1000
    monkeypatch.setattr(file_read_and_write_watch, "STARTED", started)
    for folder, age, new in (
        (".", -2, False),
        (".", 0, True),
        (".", 2, True),
        ("temporary", -2, True),
        ("temporary2", -2, False),
    ):
        file = tmp_path / folder / "file"
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
        os.utime(file, (0, started + age))
        changed = os.stat(file).st_mtime
        monkeypatch.setattr(file_read_and_write_watch, "STARTED", changed - age if age else changed)
        assert file_read_and_write_watch._is_new(str(file)) is new, (folder, age)
    assert not file_read_and_write_watch._is_new(str(tmp_path / "none"))


def test_files_count_that_are_there_at_the_end(tmp_path: Path) -> None:
    with watch_files() as outer:
        (tmp_path / "before").write_text("x")
        with watch_files() as inner:
            (tmp_path / "kept").write_text("x")
            (tmp_path / "gone").write_text("x")
            (tmp_path / "gone").unlink()
            sqlite3.connect(tmp_path / "rows.db").close()
            assert str(tmp_path / "gone") in inner
        (tmp_path / "after").write_text("x")
    assert inner == {str(tmp_path / name) for name in ("kept", "rows.db")}
    assert outer == {str(tmp_path / name) for name in ("before", "after")}
    assert file_read_and_write_watch._watched == []

    def fails() -> None:
        (tmp_path / "kept").write_text("y")
        raise ValueError("ends")

    with pytest.raises(ValueError, match="ends"), watch_files() as files:
        fails()
    assert files == {str(tmp_path / "kept")}
    assert len(file_read_and_write_watch._hooked) == 1
    with watch_files() as outer:
        with watch_files():
            pass
        (tmp_path / "after").write_text("y")
    assert outer == {str(tmp_path / "after")}
