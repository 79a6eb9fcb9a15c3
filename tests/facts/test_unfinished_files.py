"""Unfinished files and folders, interrupts while they are made, and the mark of a process."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpframework.facts import unfinished_files
from dpframework.facts.fork_detection import this_process
from dpframework.facts.interrupts import delay_interrupts, uninterrupted
from dpframework.facts.unfinished_files import FIXED_NAMES, Part, new_part_file, new_part_folder

MAKE = [new_part_file, new_part_folder]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "out"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("make", MAKE)
def test_a_part_is_beside_its_place_and_gone_when_it_ends(make: Callable[[Path], Part], place: Path) -> None:
    part = make(place)
    assert part.path == place.with_name(".out.0.part")
    assert part.path.is_dir() == (make is new_part_folder)
    descriptor = part.descriptor
    os.fstat(descriptor)
    part.end()
    assert (part.path, part.descriptor, names(place.parent)) == (None, -1, [])
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    part.end()


@pytest.mark.parametrize("make", MAKE)
def test_a_part_that_cannot_be_removed_is_closed_all_the_same(
    make: Callable[[Path], Part], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError

    part = make(place)
    descriptor = part.descriptor
    monkeypatch.setattr(os, "unlink", refused)
    monkeypatch.setattr(os, "rmdir", refused)
    part.end()
    assert names(place.parent) == [".out.0.part"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.fixture
def no_standard_input() -> Iterator[None]:
    """Close standard input, so that the next file that is opened has its descriptor, 0."""
    kept = os.dup(0)
    os.close(0)
    yield
    os.dup2(kept, 0)
    os.close(kept)


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.usefixtures("no_standard_input")
def test_a_descriptor_0_is_one_like_others(make: Callable[[Path], Part], place: Path) -> None:
    part = make(place)
    assert part.path is not None
    assert part.descriptor == 0
    other = os.open(part.path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    part.end()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(0)
    os.close(other)


def test_a_part_that_was_moved_stays(place: Path) -> None:
    part = new_part_file(place)
    assert part.path is not None
    os.replace(part.path, place)
    part.path = None
    part.end()
    assert names(place.parent) == ["out"]


@pytest.mark.parametrize("make", MAKE)
def test_each_of_several_writers_has_a_part_of_its_own(
    make: Callable[[Path], Part], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished_files.secrets, "token_hex", lambda number: "f" * 2 * number)
    made = [make(place) for _ in range(FIXED_NAMES + 1)]
    found = [part.path.name for part in made if part.path is not None]
    assert found == [*(f".out.{number}.part" for number in range(4)), ".out.ffffffff.part"]
    with pytest.raises(FileExistsError, match="other processes write to it at the same time"):
        make(place)
    made[2].end()
    assert make(place).path == place.with_name(".out.2.part")
    for part in made:
        part.end()


def test_a_file_has_the_rights_that_the_user_gives_new_files(place: Path) -> None:
    before = os.umask(0)
    try:
        with_all = new_part_file(place)
        os.umask(0o027)
        with_some = new_part_file(place)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(os.fstat(part.descriptor).st_mode) for part in (with_all, with_some)] == [0o666, 0o640]
    for part in (with_all, with_some):
        part.end()


def test_a_part_is_opened_through_no_link_is_not_inherited_and_nothing_waits_for_it() -> None:
    assert unfinished_files._FLAGS == os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@pytest.mark.parametrize(("make", "how"), [(new_part_file, os.O_RDWR | os.O_CREAT | os.O_EXCL), (new_part_folder, 0)])
def test_whatever_is_opened_is_opened_so(
    make: Callable[[Path], Part], how: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    really = os.open

    def noted(path: Any, flags: int, *mode: int) -> int:
        opened.append(flags)
        return really(path, flags, *mode)

    place.with_name(".out.0.part").write_text("left")
    monkeypatch.setattr(os, "open", noted)
    make(place).end()
    assert opened == [os.O_RDONLY | unfinished_files._FLAGS, how | unfinished_files._FLAGS]


@pytest.mark.parametrize("make", MAKE)
def test_parts_that_nobody_holds_any_more_are_removed_and_nothing_else_is(
    make: Callable[[Path], Part], place: Path
) -> None:
    left = [place.with_name(f".out.{number}.part") for number in range(FIXED_NAMES)]
    left[0].write_text("left")
    left[1].mkdir()
    (left[1] / "results.json").write_text("left")
    left[2].symlink_to(place.with_name("elsewhere"))
    os.mkfifo(left[3])
    place.with_name("elsewhere").write_text("mine")
    part = make(place)
    assert names(place.parent) == [".out.0.part", ".out.2.part", ".out.3.part", "elsewhere"]
    assert left[0].is_dir() == (make is new_part_folder)
    assert left[2].is_symlink()
    part.end()


def test_a_part_that_another_process_holds_is_left_to_it(place: Path) -> None:
    held = place.with_name(".out.0.part")
    held.write_text("another's")
    with held.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        part = new_part_file(place)
        assert part.path == place.with_name(".out.1.part")
        part.end()
        assert held.read_text() == "another's"
    assert new_part_file(place).path == held


def test_without_locks_a_part_is_made_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: Any) -> None:
        raise OSError

    monkeypatch.setattr(fcntl, "flock", unsupported)
    part = new_part_file(place)
    assert part.path == place.with_name(".out.0.part")
    monkeypatch.undo()
    assert unfinished_files._lock(part.descriptor) is True
    monkeypatch.setattr(unfinished_files, "fcntl", None)
    folder = new_part_folder(place.with_name("other"))
    assert (folder.path, folder.descriptor) == (place.with_name(".other.0.part"), -1)
    assert new_part_file(place.with_name("file")).path == place.with_name(".file.0.part")


def test_a_part_that_was_taken_for_a_leftover_meanwhile_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tried = unfinished_files._lock, []

    def taken(descriptor: int) -> bool | None:
        if not tried:
            tried.append(descriptor)
            place.with_name(".out.0.part").unlink()
        return real(descriptor)

    closed, close = [], os.close
    monkeypatch.setattr(os, "close", lambda descriptor: (closed.append(descriptor), close(descriptor)))
    monkeypatch.setattr(unfinished_files, "_lock", taken)
    assert new_part_file(place).path == place.with_name(".out.1.part")
    assert closed == tried


def test_a_part_without_a_folder_to_be_in_is_not_made(tmp_path: Path) -> None:
    for make in MAKE:
        with pytest.raises(FileNotFoundError):
            make(tmp_path / "none" / "out")


# Interrupts


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """What a handler of Ctrl-C hears, which stands before and after each test."""
    calls: list[int] = []

    def hear(number: int, frame: Any) -> None:
        calls.append(number)

    before = signal.signal(signal.SIGINT, hear)
    yield calls
    assert signal.signal(signal.SIGINT, before) is hear


def test_an_interrupt_waits_until_the_block_has_ended_and_is_heard_once(heard: list[int]) -> None:
    with delay_interrupts():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert heard == []
    assert heard == [signal.SIGINT]
    with delay_interrupts():
        pass
    assert heard == [signal.SIGINT]


def test_an_interrupt_is_ignored_while_paid_results_are_written(heard: list[int]) -> None:
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
    assert heard == [signal.SIGINT]


@pytest.mark.parametrize(
    ("before", "after", "raised"),
    [(signal.SIG_IGN, signal.SIG_IGN, []), (signal.SIG_DFL, signal.SIG_DFL, [signal.SIGINT])],
)
def test_what_stood_before_decides_what_becomes_of_an_interrupt(
    before: Any, after: Any, raised: list[int], heard: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    real, mine = signal.raise_signal, signal.signal(signal.SIGINT, before)
    monkeypatch.setattr(signal, "raise_signal", told.append)
    with delay_interrupts():
        real(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == after
    assert (told, heard) == (raised, [])
    signal.signal(signal.SIGINT, mine)


@pytest.mark.parametrize("block", [delay_interrupts, uninterrupted])
def test_a_handler_that_python_did_not_set_becomes_the_usual_one(block: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    monkeypatch.setattr(signal, "signal", lambda number, handler: told.append(handler))
    with block():
        pass
    assert told[-1] is signal.SIG_DFL
    assert len(told) == 2


@pytest.mark.parametrize("block", [delay_interrupts, uninterrupted])
def test_a_thread_leaves_handlers_alone(block: Any, heard: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    ran: list[bool] = []

    def run() -> None:
        with block():
            ran.append(True)

    with monkeypatch.context() as patch:
        patch.setattr(signal, "signal", lambda *of: told.append(of))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert (ran, told) == ([True], [])


def test_a_fork_has_another_mark_than_its_threads_and_itself() -> None:
    own, of_thread = this_process(), []
    thread = threading.Thread(target=lambda: of_thread.append(this_process()))
    thread.start()
    thread.join()
    assert of_thread == [own]
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, f"{this_process()[1]}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as told:
        assert int(told.read()) == own[1] + 1
    assert this_process() == own
