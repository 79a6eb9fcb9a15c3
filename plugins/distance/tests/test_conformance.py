"""DP-DILCA in all its variants, and its queries, through the suites that any plugin goes through."""

from typing import ClassVar

import numpy as np
from dpframework_distance import DPDilca
from dpframework_distance.edges import PairDependence
from dpframework_distance.pair_counts import PairCounts
from dpframework_distance.queries import (
    CommonContextScores,
    ConditionalEntropies,
    ContextScores,
    Entropies,
)
from dpframework_distance.sensitivities import RowBounds

import dpframework as dpf
from dpframework.verify.conformance_suites import MinerConformance, QueryConformance

ATTRIBUTES = [
    dpf.Boolean("ill"),
    dpf.Categorical("town", ["A", "B", "C"]),
    dpf.Boolean("smokes", missing=True),
    dpf.Numeric("age", 0, 90, cuts=[40]),
]
COUNTED = dpf.Schema(ATTRIBUTES, rows=6)
BOUNDED = dpf.Schema(ATTRIBUTES, max_rows=9)
BOTH = dpf.Schema(ATTRIBUTES, rows=6, max_rows=7)


QUERIES = {
    "one attribute": (ContextScores(ATTRIBUTES, 1, RowBounds.of(COUNTED), 1), COUNTED, {}),
    "one more attribute": (ContextScores(ATTRIBUTES, 1, RowBounds.of(BOUNDED), 1), BOUNDED, {"chosen": ("ill",)}),
    "two attributes": (ContextScores(ATTRIBUTES, 2, RowBounds.of(COUNTED), 1), COUNTED, {}),
    "two attributes, one target": (ContextScores(ATTRIBUTES, 2, RowBounds.of(BOTH), 0, True), BOTH, {}),
    "as published": (ContextScores(ATTRIBUTES, 2, RowBounds.of(COUNTED, published=True), 1), COUNTED, {}),
    "common": (CommonContextScores(ATTRIBUTES, 2, RowBounds.of(COUNTED)), COUNTED, {}),
    "common, bounded": (CommonContextScores(ATTRIBUTES, 2, RowBounds.of(BOUNDED)), BOUNDED, {}),
    "entropies": (Entropies(ATTRIBUTES, None, RowBounds.of(COUNTED)), COUNTED, {}),
    "entropies of one target": (Entropies(ATTRIBUTES, 1, RowBounds.of(BOUNDED)), BOUNDED, {}),
    "entropies as published": (Entropies(ATTRIBUTES, 1, RowBounds.of(COUNTED, published=True)), COUNTED, {}),
    "conditional entropies": (ConditionalEntropies(ATTRIBUTES, None, RowBounds.of(BOTH)), BOTH, {}),
    "conditional entropies of one target": (ConditionalEntropies(ATTRIBUTES, 1, RowBounds.of(BOTH)), BOTH, {}),
    "dependence": (PairDependence(ATTRIBUTES), BOUNDED, {"marginals": np.full(10, 1.5), "chosen": (("ill", "town"),)}),
    "pair": (PairCounts(ATTRIBUTES), BOUNDED, {"pair": ("town", "ill")}),
    "pair of a target": (PairCounts(ATTRIBUTES, 1), BOUNDED, {"pair": ("age", "town")}),
}


class TestDPDilca(MinerConformance):
    miner = DPDilca
    replays = 270
    more_replays: ClassVar = dict.fromkeys(
        ("none", "max-relevance-published", "mean-su-published", "add-or-remove"), 800
    )
    min_tightness: ClassVar = {
        **dict.fromkeys(("tree", "none", "baseline", "max-relevance"), 0.9),
        "max-dependency-published": 0.7,  # 0.846 can be lost, see `Example.loose`
        "max-relevance-published": 0.7,
        **dict.fromkeys(("common", "add-or-remove-common", "add-or-remove-relevance", "mean-su", "mean-su-all"), 0.95),
        "add-or-remove-mean-su": 0.95,
        **dict.fromkeys(("max-dependency-all", "max-relevance-all", "each-alone"), 0.92),
    }


class TestQueries(QueryConformance):
    pairs = 500
    queries = QUERIES
    min_tightness: ClassVar = {
        # one choice of two attributes, or of one target: two candidates share most of their entropies
        "two attributes": 0.75,
        "common, bounded": 0.7,
        "two attributes, one target": 0.7,
        # the bound is nearly attained, but by many rows only (see test_sensitivities.py): here there are six
        "conditional entropies": 0.65,
        "as published": 0.35,  # twice what is needed, and more
    }
