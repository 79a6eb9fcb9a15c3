"""Folders that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpframework.facts.errors import InputError
from dpframework.facts.files import require_writable, stage_folder

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

    with pytest.raises(InputError, match="what was to go there is in ") as failed, stage_folder(out, NAMES) as stage:
        meanwhile(stage)
    kept = Path(str(failed.value).rpartition(" is in ")[2])
    assert written(kept) == {NAMES[0]: "paid for"}
    assert written(out) == {NAMES[1]: "of another run"}
    assert sorted(tmp_path.iterdir()) == sorted([kept, out])
