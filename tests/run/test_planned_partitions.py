"""Which partitions a plan allows: the public cut that it names, or parts by the attributes of a release."""

from __future__ import annotations

from typing import Any

import pytest

import dpframework as dpf
from dpframework.facts.row_partitions import sources_of
from dpframework.mechanisms import DiscreteLaplace
from dpframework.run.run_scopes_and_charges import _Parts

ILL, YOUNG = dpf.Boolean("ill"), dpf.Boolean("young")
SICK, CHILD = dpf.Equals("ill", "true"), dpf.Below("age", 18)
MADE_OF = {"young": frozenset({"age"})}


class Unsaid(dpf.Description):
    """A description that does not say what it reads."""

    def holds(self, columns: Any) -> Any:
        raise NotImplementedError

    def literals(self) -> tuple[dpf.Literal, ...]:
        return ()

    def to_dict(self) -> dict[str, Any]:
        return {}


def part() -> dpf.Node:
    return dpf.step("n", dpf.queries.Count(), DiscreteLaplace(1))


def plan(by: Any, number: int = 1) -> Any:
    return dpf.parallel(*(part() for _ in range(number)), by=by)


def released(*attributes: str) -> dpf.FromRelease:
    return dpf.FromRelease("r", attributes=attributes)


@pytest.mark.parametrize(
    ("cut", "by", "number", "planned", "of_any"),
    [
        # a public cut is that of the plan, and no other
        (ILL, ILL, 1, True, True),
        (ILL, YOUNG, 1, False, False),
        (dpf.Cases([SICK]), dpf.Cases([SICK]), 1, True, True),
        (dpf.Cases([SICK]), dpf.Cases([CHILD]), 1, False, False),
        (dpf.Cases([]), ILL, 1, False, False),
        # one part for all, or as many as there are
        (ILL, ILL, 2, True, True),
        (ILL, released("ill"), 2, True, True),
        (ILL, released("ill"), 3, False, False),
        # from a release: by the attributes that it names, or by any
        (ILL, released(), 1, True, True),
        (ILL, released("ill"), 1, True, True),
        (ILL, released("ill", "age"), 1, True, True),
        (ILL, released("age"), 1, False, True),
        (dpf.Cases([SICK]), released("ill"), 1, True, True),
        (dpf.Cases([SICK]), released("age"), 1, False, True),
        (dpf.Cases([SICK, CHILD]), released("ill"), 1, False, True),
        (dpf.Cases([SICK, CHILD]), released("age", "ill"), 1, True, True),
        # a derived attribute is as its sources are
        (YOUNG, released("age"), 1, True, True),
        (YOUNG, released("young"), 1, False, True),
        (dpf.Cases([dpf.Equals("young", "true")]), released("ill"), 1, False, True),
        # what does not say what it reads may read anything; what tests nothing reads nothing
        (dpf.Cases([Unsaid()]), released("ill"), 1, False, True),
        (dpf.Cases([Unsaid()]), released(), 1, True, True),
        (dpf.Cases([]), released("ill"), 1, True, True),
    ],
)
def test_a_partition_is_planned(cut: Any, by: Any, number: int, planned: bool, of_any: bool) -> None:
    parts = _Parts(cut, sources_of(cut, MADE_OF))
    assert parts.is_planned_by(plan(by, number)) is planned
    assert parts.is_planned_by(plan(by, number), of_any=True) is of_any


def test_a_named_part_is_entered_with_its_partition(opened: Any) -> None:
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("old")])
    counts = dpf.step("counts", dpf.queries.Histogram(schema["old"]), DiscreteLaplace(1))
    node = dpf.parallel(dpf.sequential(counts, name="own"), by=schema["ill"], name="parts")
    table, _ = opened(node, dpf.table_from_columns({"ill": [True, False], "old": [True, True]}, schema))
    first, second = table.partition("ill")
    with pytest.raises(dpf.ReleaseRefused, match=r"^scope 'own' in 'parts 1' is entered already; make"):
        first.scope("own")
    with pytest.raises(dpf.ReleaseRefused, match=r"^scope 'other' in 'parts 1' is not in the plan"):
        first.scope("other")
    assert [len(part.release("counts")) for part in (first, second)] == [2, 2]
