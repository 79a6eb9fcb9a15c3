"""Files that lie beside a study are not run: neither as modules, nor as plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLANTED = "open({mark!r}, 'w').close()\nraise ImportError('planted')\n"
#: What a command imports while it works: of the standard library, of other packages, and of a plugin.
MODULES = ("signal", "gc", "json", "polars", "typer", "numba", "typeguard", "dpframework_trees", "networkx")


def planted(folder: Path) -> Path:
    """Put modules and an entry point of the group `dpframework` into a folder; return what they would leave."""
    mark = folder / "ran"
    for name in (*MODULES, "planted_plugin"):
        (folder / f"{name}.py").write_text(PLANTED.format(mark=str(mark)))
    info = folder / "planted-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dpframework]\nplanted = planted_plugin\n")
    return mark


@pytest.mark.parametrize("command", [["-m", "dpframework"], ["-P", "-m", "dpframework"], ["the command"]])
def test_what_lies_in_the_working_folder_is_not_imported(tmp_path: Path, command: list[str]) -> None:
    if command == ["-P", "-m", "dpframework"] and sys.version_info < (3, 11):
        pytest.skip("needs Python 3.11")
    mark = planted(tmp_path)
    script = Path(sys.executable).with_name("dpframework")
    if command == ["the command"]:
        if not script.exists():
            pytest.skip("the command is not installed beside this Python")
        command = [str(script)]
    ran = subprocess.run(
        [sys.executable, *command, "miners", "--json"],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONSAFEPATH")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert "dp-id3" in ran.stdout
    assert "planted" not in ran.stdout + ran.stderr
    assert not mark.exists()
