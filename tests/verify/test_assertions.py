"""Assertions of the kit for a plugin author's own tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.basics.histogram_miner import HistogramMiner
from dpframework.verify import MinerConformance
from dpframework.verify.assertions import assert_sensitivity_holds

SCHEMA = dpf.Schema([dpf.Boolean("ill")])


class Unread(dpf.Query):
    """Its answer is 0 on every table, so that it declares a change of 0."""

    name = "unread"
    sensitivities = (dpf.Sensitivity("l1", 0, source="the answer is 0"),)
    answer_length = 1

    def count(self, block: Any) -> NDArray[np.int64]:
        return np.zeros(1, dtype=np.int64)


def test_a_claim_of_0_holds_with_no_share_to_reach() -> None:
    assert np.isnan(assert_sensitivity_holds(Unread(), SCHEMA, "add-or-remove-one", pairs=100).tightness)


def test_a_claim_above_0_has_a_share_to_reach() -> None:
    report = assert_sensitivity_holds(dpf.queries.Count(), SCHEMA, "add-or-remove-one", pairs=100, min_tightness=1)
    assert report.tightness == 1
    with pytest.raises(AssertionError, match="200% is required; give more pairs"):
        assert_sensitivity_holds(dpf.queries.Count(), SCHEMA, "add-or-remove-one", pairs=100, min_tightness=2)


def test_each_test_of_a_miner_is_named_by_its_example() -> None:
    """An author reads there, of a test that fails, which example it is."""
    suite = type("TestHistogram", (MinerConformance,), {"miner": HistogramMiner})
    found: list[list[str]] = []
    for names in ({"example"}, {"example", "relation"}, {"tmp_path"}):
        one = SimpleNamespace(fixturenames=names, parametrize=lambda *_, ids=None: found.append(ids))
        suite.pytest_generate_tests(one)
    examples = list(HistogramMiner.examples())
    assert found == [examples, [f"{name}-{relation}" for name in examples for relation in dpf.Relation]]
