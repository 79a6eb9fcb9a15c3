"""Reports that list problems: they pass if they list none, in all their forms."""

from __future__ import annotations

import attrs
from hypothesis import given, strategies as st

from dpframework.verify.problem_report_base import ProblemReport


@attrs.frozen
class Listed(ProblemReport):
    """A report of what it is given."""

    wrong: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.wrong)


@given(st.lists(st.text(), max_size=3))
def test_a_report_passes_if_it_lists_no_problem(wrong: list[str]) -> None:
    report = Listed(tuple(wrong))
    assert report.passed == (not wrong)
    assert report.to_dict() == {"wrong": tuple(wrong), "passed": not wrong}
