"""Synthetic tables by every method, and their queries, through the suites that any plugin goes through."""

from typing import ClassVar

import numpy as np
from dpframework_tables import SyntheticTable
from dpframework_tables.queries import ModelDistances, NamedMarginal

import dpframework as dpf
from dpframework.verify.conformance_suites import MinerConformance, QueryConformance

ATTRIBUTES = [
    dpf.Boolean("ill"),
    dpf.Categorical("town", ["A", "B", "C"]),
    dpf.Boolean("smokes", missing=True),
    dpf.Numeric("age", 0, 90, cuts=[40]),
]
SCHEMA = dpf.Schema(ATTRIBUTES)
SETS = [(0, 1), (0, 1, 3), (0, 2), (2, 3)]
GROUPS = [0, 1, 0, 1, 1, 1, 0, 1, 0, 1]  # two towns are one, and truths are one with missing ones
DRAWN = np.array([[0, 2, 1, 0], [1, 0, 2, 1], [1, 1, 0, 1]], dtype=np.uint8)


class TestSyntheticTable(MinerConformance):
    miner = SyntheticTable
    replays = 100  # the witnesses come near the claim
    more_replays: ClassVar = {"rounds-zcdp": 1_000}  # its claim has a delta
    min_tightness = 0.9  # no claim is loose


class TestQueries(QueryConformance):
    pairs = 150
    queries: ClassVar = {
        "beside independence": (
            ModelDistances(ATTRIBUTES, SETS), SCHEMA, {"marginals": np.full(10, 6.0), "possible": (0, 2)}
        ),
        "beside rows": (
            ModelDistances(ATTRIBUTES, SETS), SCHEMA,
            {"drawn": DRAWN, "rows_meant": 3, "possible": (1, 2, 3), "noise": 2},
        ),
        "beside more rows": (
            ModelDistances(ATTRIBUTES, SETS), SCHEMA, {"drawn": DRAWN, "rows_meant": 8, "possible": (0, 3), "noise": 0}
        ),
        "of groups, beside independence": (
            ModelDistances(ATTRIBUTES, SETS), SCHEMA,
            {"marginals": np.full(8, 6.0), "possible": (0, 1, 3), "groups": GROUPS},
        ),
        "of groups, beside rows": (
            ModelDistances(ATTRIBUTES, SETS), SCHEMA,
            {"drawn": DRAWN % 2, "rows_meant": 8, "possible": (0, 1, 3), "noise": 1, "groups": GROUPS},
        ),
        "marginal of groups": (
            NamedMarginal(ATTRIBUTES, 12), SCHEMA, {"marginal": ("town", "smokes"), "groups": GROUPS}
        ),
        "marginal": (NamedMarginal(ATTRIBUTES, 12), SCHEMA, {"marginal": ("town", "age")}),
    }  # fmt: skip
