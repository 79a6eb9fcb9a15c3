"""Reports on plans with every kind of node hold, in every format and in colour, what stands in the folder `printed`."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from printed_reports import PRINTED, printed


@pytest.fixture(scope="module")
def found() -> Mapping[str, str]:
    return dict(printed())


@pytest.mark.parametrize("name", sorted(path.name for path in PRINTED.iterdir()))
def test_a_report_is_what_stands_in_its_file(found: Mapping[str, str], name: str) -> None:
    assert found.get(name) == (PRINTED / name).read_text(encoding="utf-8"), (
        "if you mean it: python tests/printed_reports.py"
    )


def test_each_report_has_a_file(found: Mapping[str, str]) -> None:
    assert {path.name for path in PRINTED.iterdir()} == set(found)
