"""Tests of the miner: the conformance suite of dpframework, and tests of what only this miner does."""

import dpframework as dpf
from dpframework.verify import MinerConformance

from dpframework_noisy_mode import NoisyMode

SCHEMA = dpf.Schema([dpf.Categorical("colour", ["red", "green", "blue"])])


class TestConformance(MinerConformance):
    miner = NoisyMode


def study() -> dpf.Study:
    made = dpf.Study(SCHEMA, epsilon=0.5)
    made.add("favourite", NoisyMode("colour", epsilon=0.5))
    return made


def test_the_plan_costs_its_epsilon_and_is_accepted() -> None:
    plan = study().plan()
    assert plan.total() == dpf.PrivacyLoss(epsilon=0.5)
    assert plan.refusals() == []


def test_a_clear_favourite_is_found() -> None:
    table = dpf.table_from_columns({"colour": ["green"] * 900 + ["red"] * 100}, SCHEMA)
    results = study().run(table, seed=1)
    assert results["favourite"] == "green"
    assert not results.private  # it was seeded
