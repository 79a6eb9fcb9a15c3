"""Commands print, on one study and one ledger, what stands in the folder `printed`, to the letter."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from printed_outputs import COMMANDS, PRINTED, TERMINAL, printed


@pytest.fixture(scope="module")
def found() -> Mapping[str, str]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in TERMINAL.items():
            patch.setenv(name, value)
        return dict(printed())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_what_stands_in_its_file(found: Mapping[str, str], name: str) -> None:
    assert found[f"{name}.txt"] == (PRINTED / f"{name}.txt").read_text(encoding="utf-8"), (
        "if you mean it: python tests/printed_outputs.py"
    )


def test_each_file_is_of_a_command(found: Mapping[str, str]) -> None:
    assert {path.name for path in PRINTED.iterdir()} == set(found)
