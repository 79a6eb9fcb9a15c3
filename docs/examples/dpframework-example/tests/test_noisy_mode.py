"""What `noisy-mode` plans, and what it finds where the answer is plain."""

import polars as pl
from dpframework_example import NoisyMode

import dpframework as dpf

SCHEMA = dpf.Schema([dpf.Categorical("colour", values=["red", "green", "blue"])])


def study() -> dpf.Study:
    made = dpf.Study(SCHEMA, epsilon=0.5)
    made.add("favourite", NoisyMode("colour", epsilon=0.5))
    return made


def test_the_plan_costs_its_epsilon_and_is_accepted():
    plan = study().plan()
    assert plan.total() == dpf.PrivacyLoss(epsilon=0.5)
    assert plan.check() == []


def test_a_clear_favourite_is_found():
    table = dpf.table_from_frame(pl.DataFrame({"colour": ["green"] * 900 + ["red"] * 100}), SCHEMA)
    results = study().run(table, seed=1)
    assert results["favourite"] == "green"
    assert not results.private  # it was seeded
