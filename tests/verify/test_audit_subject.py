"""What a verification is of: whose rows stay together, and how large its tables are."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.facts import Relation
from dpframework.mechanisms import DiscreteLaplace
from dpframework.verify.miners.audit_subject import SAMPLED_ROWS, Subject

SCHEMA = dpf.Schema([dpf.Boolean("ill")])


@attrs.frozen
class Counts(dpf.Miner):
    """Count rows, or those of a sample."""

    name = "counts"
    sampled: bool = False

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        count = dpf.step("n", dpf.queries.Count(), DiscreteLaplace(1))
        return dpf.sample("0.5", count) if self.sampled else count

    def mine(self, table: Any) -> None:
        return None


@pytest.mark.parametrize(
    ("unit", "sampled", "together"),
    [
        (dpf.PrivacyUnit(), False, 1),
        (dpf.PrivacyUnit(), True, 1),
        (dpf.PrivacyUnit("who"), True, 1),
        (dpf.PrivacyUnit("who", 3), False, 1),
        (dpf.PrivacyUnit("who", 3), True, 3),
        (dpf.PrivacyUnit(rows=3), False, 1),
        (dpf.PrivacyUnit(rows=3), True, 1),
    ],
)
def test_rows_of_a_unit_stay_together_where_a_plan_asks_whose_they_are(
    unit: dpf.PrivacyUnit, sampled: bool, together: int
) -> None:
    subject = Subject(Counts(sampled), SCHEMA, Relation.ADD_OR_REMOVE_ONE, unit=unit)
    assert subject.together == together
    assert subject.by.rows == unit.rows
    assert subject.most_rows(2) == 2
    assert subject.most_rows(100) == (SAMPLED_ROWS if sampled else 100)
