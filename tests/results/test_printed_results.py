"""Results are printed, shown in a notebook, kept and drawn as it stands in the folder `printed`, to the letter."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from printed_results import PRINTED, printed


@pytest.fixture(scope="module")
def found() -> Mapping[str, str]:
    return dict(printed())


@pytest.mark.parametrize("name", sorted(path.name for path in PRINTED.iterdir()))
def test_a_result_is_shown_as_it_stands_in_its_file(found: Mapping[str, str], name: str) -> None:
    assert found.get(name) == (PRINTED / name).read_text(encoding="utf-8"), (
        "if you mean it: python tests/printed_results.py"
    )


def test_each_result_has_a_file(found: Mapping[str, str]) -> None:
    assert {path.name for path in PRINTED.iterdir()} == set(found)
