"""Bugs of synthetic tables, planted: an audit must find each, and pass the correct version.

Nothing here is left to chance: what is released is forced, and runs are seeded.
"""

import attrs
import numpy as np
import pytest
from dpframework_tables.queries import ModelDistances, NamedMarginal
from exact_rows import look_at

import dpframework as dpf
from dpframework.basics import OneWayMarginals
from dpframework.mechanisms import DiscreteLaplace, PermuteAndFlip
from dpframework.queries import Norm, Sensitivity
from dpframework.tables import Crosstab
from dpframework.verify import audit, search_sensitivity

A, B, C = dpf.Boolean("a"), dpf.Boolean("b"), dpf.Categorical("c", ["x", "y", "z"])
SCHEMA = dpf.Schema([A, B, C], max_rows=8)
SETS = [(0, 1), (0, 2), (1, 2)]
PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


def exactly(table, *of):
    """An exact cross table, past the gate."""
    return look_at(table, lambda block: Crosstab(list(of)).count(block))


@attrs.frozen
class OneRound(dpf.Miner):
    """One-way marginals, a marginal that is selected by its distance from them, and its counts."""

    name = "one-round"
    bug: str = ""

    def plan(self, schema):
        nodes = OneWayMarginals([A, B, C], zcdp=False).plan(1)
        chosen = dpf.step("choose", ModelDistances([A, B, C], SETS), PermuteAndFlip(1), uses=list(nodes))
        measured = dpf.step("measure", NamedMarginal([A, B, C], 6), DiscreteLaplace(1), uses=["choose"])
        return dpf.sequential(*nodes.values(), dpf.repeat(2, dpf.sequential(chosen, measured)))

    def mine(self, table):
        released = [one.counts for one in OneWayMarginals([A, B, C], zcdp=False).release(table)]
        if self.bug == "a model of exact marginals":
            released = [exactly(table, one) for one in (A, B, C)]
        marginals, found = np.maximum(np.concatenate(released), 0), []
        for turn in range(2):
            possible = (0, 1, 2)
            if self.bug == "candidates that are not empty":
                possible = tuple(k for k, (a, b) in enumerate(SETS) if exactly(table, SCHEMA[a], SCHEMA[b]).min() > 0)
            names = table.release("choose", marginals=marginals, possible=possible or (0,))
            if self.bug == "the worst marginal, without noise":
                names = max(PAIRS, key=lambda of: np.ptp(exactly(table, *(SCHEMA[name] for name in of))))
            found.append(table.release("measure", marginal=names))
            if self.bug == "an early stop by the exact table" and turn == 0 and exactly(table, A)[0] > 3:
                break
        if self.bug == "as many rows as there are":
            return int(exactly(table, A).sum())
        return [np.asarray(one).tolist() for one in found]


BUGS = [
    "a model of exact marginals",
    "candidates that are not empty",
    "the worst marginal, without noise",
    "an early stop by the exact table",
    "as many rows as there are",
]


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug):
    report = audit(OneRound(bug), SCHEMA, "add-or-remove-one", replays=100)
    assert not report.passed, str(report)


def test_the_correct_version_passes():
    report = audit(OneRound(), SCHEMA, "add-or-remove-one", replays=100)
    assert report.passed, str(report)


@attrs.frozen
class DistancesOfHalf(ModelDistances):
    """Claims that a row changes half of what it does, as if total variation were counted."""

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.LINF, 1, 1, source="half the l1 distance"),)


@attrs.frozen
class CountedTwice(NamedMarginal):
    """Counts each row for two marginals, with the claim of one."""

    def count(self, block, **inputs):
        return 2 * super().count(block, **inputs)


@pytest.mark.parametrize(
    ("query", "inputs"),
    [
        (ModelDistances([A, B, C], SETS), {"marginals": np.full(7, 2.0), "possible": (0, 1, 2)}),
        (NamedMarginal([A, B, C], 6), {"marginal": ("a", "c")}),
    ],
)
def test_a_claim_of_half_is_too_small(query, inputs):
    wrong = {ModelDistances: DistancesOfHalf, NamedMarginal: CountedTwice}[type(query)](
        *(getattr(query, a.name) for a in attrs.fields(type(query)) if a.init)
    )
    assert search_sensitivity(query, SCHEMA, "replace-one", pairs=100, inputs=inputs).passed
    assert not search_sensitivity(wrong, SCHEMA, "replace-one", pairs=100, inputs=inputs).passed


FAR = 2.0**62  # so many of each value of a Boolean are 2**63 rows, which 64 bits do not hold


@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one"])
@pytest.mark.parametrize(
    "expected",
    [{"marginals": np.full(7, value)} for value in (FAR, 1e300, np.inf, -np.inf, np.nan, 0.0)]
    + [{"drawn": np.array([[0, 0, 0], [1, 1, 1]]), "rows_meant": meant} for meant in (2**63, 10**300, -(2**63), 0)],
    ids=str,
)
def test_a_distance_from_any_expected_rows_changes_as_declared(expected, relation):
    """A measured marginal at a tiny epsilon is as large as its noise: a distance from it once changed its sign."""
    schema = SCHEMA if relation == "add-or-remove-one" else attrs.evolve(SCHEMA, rows=3)
    query = ModelDistances([A, B, C], [(0, 1), (0, 2)])
    report = search_sensitivity(query, schema, relation, inputs={**expected, "possible": (0, 1)}, pairs=60)
    assert report.passed, report
