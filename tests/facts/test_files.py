"""Files and folders that are written whole or not at all, and what is read of files."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from dpframework.facts import files
from dpframework.facts.errors import InputError
from dpframework.facts.files import (
    file_digest,
    read_by_library,
    read_text,
    require_no_stream,
    require_usable,
    require_writable,
    stage_folder,
    sync_folder,
    write_whole,
)

NAMES = ["results.json", "plan.json", "log.txt"]


def written(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in out.iterdir()}


def write(out: Path, names: list[str]) -> None:
    with stage_folder(out, NAMES) as stage:
        assert stage.parent == out.parent
        for name in names:
            (stage / name).write_text(name)
        assert not out.exists() or not written(out)


@pytest.mark.parametrize("there", [False, True])
def test_all_files_come_to_their_folder_and_nothing_is_left_beside_it(there: bool, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if there:
        out.mkdir()
    require_writable(out, NAMES)
    write(out, NAMES)
    assert written(out) == {name: name for name in NAMES}
    assert list(tmp_path.iterdir()) == [out]


def test_a_block_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(stage: Path) -> None:
        (stage / NAMES[0]).write_text("")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), stage_folder(tmp_path / "out", NAMES) as stage:
        fail(stage)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_moved_is_kept_and_the_error_says_where(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def meanwhile(stage: Path) -> None:
        (stage / NAMES[0]).write_text("paid for")
        out.mkdir()
        (out / NAMES[1]).write_text("of another run")

    with (
        pytest.raises(InputError, match="the content of that folder is in ") as failed,
        stage_folder(out, NAMES) as stage,
    ):
        meanwhile(stage)
    kept = Path(str(failed.value).rpartition(" is in ")[2])
    assert written(kept) == {NAMES[0]: "paid for"}
    assert written(out) == {NAMES[1]: "of another run"}
    assert sorted(tmp_path.iterdir()) == sorted([kept, out])


# Reading


@pytest.mark.parametrize(("content", "text"), [(b"", ""), (b"\xef\xbb\xbfa\r\nb\rc\n", "a\nb\nc\n"), (b"abc", "abc")])
def test_a_text_is_read_with_one_kind_of_line_end(content: bytes, text: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    assert read_text(path) == text
    assert read_text(path, most=len(content)) == text


@pytest.mark.parametrize(
    ("expected", "remedy"), [(None, ""), ("a study file (.toml)", "; a study file (.toml) is expected")]
)
def test_what_is_no_text_is_one_sentence(expected: str | None, remedy: str, tmp_path: Path) -> None:
    large, odd = tmp_path / "large", tmp_path / "odd"
    large.write_bytes(b" " * ((3 << 20) + 1))
    odd.write_bytes(b"\xff")
    for path, why in (
        (tmp_path, "is a directory"),
        (tmp_path / "none", "there is no such file"),
        (odd, "is not UTF-8 text"),
        (large, "is larger than the 3 MiB that such a file may have"),
    ):
        with pytest.raises(InputError) as failed:
            read_text(path, expected, most=3 << 20)
        assert str(failed.value) == f"{path}: {why}{remedy}"
    with pytest.raises(InputError) as failed:
        file_digest(tmp_path / "none", expected)
    assert str(failed.value) == f"{tmp_path / 'none'}: cannot be read: No such file or directory{remedy}"
    assert file_digest(odd, expected) == hashlib.sha256(b"\xff").digest()


@pytest.mark.parametrize("reads", [read_text, file_digest, require_no_stream])
def test_what_could_be_read_for_ever_or_is_no_path_is_not_opened(reads: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, why in (
        (tmp_path / "pipe", "is a pipe, a device or a socket, not a regular file; save its content to a file"),
        (Path(os.devnull), "is a pipe, a device or a socket, not a regular file; save its content to a file"),
        (tmp_path / ("n" * 300), "cannot be read: File name too long"),
        (Path("a\0b"), "is not a path, since it holds a NUL character"),
    ):
        with pytest.raises(InputError) as failed:
            reads(path)
        assert str(failed.value).endswith(f": {why}")
    require_no_stream(tmp_path)
    require_no_stream(tmp_path / "none")


class PanicException(BaseException):
    """As libraries in Rust raise it."""


@pytest.mark.parametrize("failure", [ValueError("a row"), PanicException("a row"), OSError("a row")])
def test_what_a_library_says_of_a_file_is_not_shown(failure: BaseException) -> None:
    def fail() -> None:
        raise failure

    with pytest.raises(InputError, match=r"^t\.csv cannot be read$") as failed:
        read_by_library(fail, "t.csv cannot be read")
    assert failed.value.__context__ is None
    assert read_by_library(lambda: 3, "t.csv cannot be read") == 3


@pytest.mark.parametrize("failure", [InputError("ours"), MemoryError(), KeyboardInterrupt(), SystemExit()])
def test_what_is_no_failure_of_a_library_is_raised_as_it_is(failure: BaseException) -> None:
    def fail() -> None:
        raise failure

    with pytest.raises(type(failure)) as failed:
        read_by_library(fail, "t.csv cannot be read")
    assert failed.value is failure


# Where results may go


def test_a_folder_that_results_cannot_go_to_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    require_usable(out, NAMES)
    require_usable(tmp_path / "new", NAMES)
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(out)
    other.mkdir()
    (other / "mine.txt").write_text("")
    places = {
        tmp_path / "link": "is a symbolic link; give the name of the folder that you mean",
        tmp_path / "none" / "out": "its parent folder does not exist; make it first",
        tmp_path / "file": "is a file; --out needs a folder",
        other: "holds other files, such as 'mine.txt'; give a new folder",
        tmp_path / ("n" * 300): "cannot be written: File name too long",
        Path("a\0b"): "cannot be written: it is no path",
    }
    for place, why in places.items():
        for refuse in (require_usable, require_writable):
            with pytest.raises(InputError) as failed:
                refuse(place, NAMES)
            assert str(failed.value).endswith(f": {why}")
    (other / NAMES[2]).write_text("")
    with pytest.raises(InputError, match="holds the results of an earlier run; give a new folder"):
        require_usable(other, NAMES)
    asked: list[tuple[Path, int]] = []
    monkeypatch.setattr(os, "access", lambda place, mode: asked.append((place, mode)))
    with pytest.raises(InputError, match="cannot be written: permission denied"):
        require_usable(out, NAMES)
    assert asked == [(out, os.R_OK | os.W_OK | os.X_OK)]


def test_what_is_written_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, synchronised = tmp_path / "t", []
    synchronise = os.fsync

    def noted(descriptor: int) -> None:
        held = os.fstat(descriptor)
        is_folder = stat.S_ISDIR(held.st_mode)
        synchronised.append("folder" if is_folder else held.st_size)
        assert path.exists() is is_folder
        synchronise(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    write_whole(path, "gr\u00fcn")
    assert path.read_text(encoding="utf-8") == "gr\u00fcn"
    assert synchronised == [5, "folder"]
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError):
        write_whole(path, b"other")
    assert path.read_text(encoding="utf-8") == "gr\u00fcn"


def test_what_fails_while_it_is_written_is_named_as_people_know_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    for called, name in ((None, tmp_path / "t"), (Path("out/t"), Path("out/t"))):
        with pytest.raises(InputError) as failed:
            write_whole(tmp_path / "t", b"a", called=called)
        assert str(failed.value) == f"{name}: cannot be written: No space left on device"
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("called", [None, Path("out/t")])
def test_what_cannot_be_begun_is_named_as_people_know_it(
    called: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(place: Path) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "new_part_file", full)
    with pytest.raises(InputError) as failed:
        write_whole(tmp_path / "t", b"a", called=called)
    assert str(failed.value) == f"{called or tmp_path / 't'}: cannot be written: No space left on device"


def test_a_folder_that_cannot_be_opened_is_not_synchronised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync_folder(tmp_path / "none")
    closed: list[int] = []
    close = os.close
    monkeypatch.setattr(os, "close", lambda descriptor: closed.append(descriptor) or close(descriptor))
    sync_folder(tmp_path)
    assert len(closed) == 1
