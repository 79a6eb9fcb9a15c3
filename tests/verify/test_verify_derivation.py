"""Planted bugs of derived columns, each caught in a sentence that names it; their honest twin passes."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.tables.derivation import with_derived
from dpframework.verify import check_derivation, verify_examples

SCHEMA = dpf.Schema(
    [dpf.Numeric("cost", 0, 100, bins=4), dpf.Boolean("ill")],
    derive=[dpf.derive("d", "cost", lower=0, upper=100, bins=10)],
)


def _with(codes):
    """A derivation whose codes are another function of the costs of all rows."""

    def deriving(schema, encoded):
        made = with_derived(schema, encoded)
        costs = encoded["cost"].values
        own = np.asarray(codes(costs), dtype=np.uint8)
        return {**made, "d": attrs.evolve(made["d"], codes=own, values=None)}

    return deriving


def _multiplied(schema, encoded):
    """A join that finds two partners for some rows."""
    made = with_derived(schema, encoded)
    twice = np.repeat(np.arange(len(made["d"].codes)), 1 + (encoded["ill"].codes == 1))
    return {name: attrs.evolve(column, codes=column.codes[twice]) for name, column in made.items()}


def _domain_from_data(costs):
    width = (costs.max() - costs.min()) / 10 or 1
    return np.minimum((costs - costs.min()) / width, 9)


def _numbered_as_found(costs):
    """A lookup whose list of labels is what the rows of this table lead to."""
    return np.unique(costs // 11, return_inverse=True)[1]


PLANTED = {
    "a join that multiplies rows": (_multiplied, "each row must give one row"),
    "an any over all rows": (
        _with(lambda costs: np.full(len(costs), int((costs > 50).any()))),
        "follow from its own row",
    ),
    "a domain taken from data": (_with(_domain_from_data), "follow from its own row"),
    "a lookup whose labels are numbered as rows show them": (_with(_numbered_as_found), "follow from its own row"),
    "a derived cell that reads the row before": (
        _with(lambda costs: np.roll(costs, 1) // 11),
        "follow from its own row",
    ),
    "a derived cell that reads the mean": (_with(lambda costs: costs > costs.mean()), "follow from its own row"),
    "a cell outside of its public domain": (_with(lambda costs: costs // 5), "outside of its public domain"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bug_is_caught(bug, record_property):
    deriving, says = PLANTED[bug]
    found = check_derivation(SCHEMA, deriving=deriving)
    caught = not found.passed and says in str(found)
    record_property("planted bug", (bug, caught))
    assert caught, str(found)


def test_honest_twin_passes(record_property):
    found = check_derivation(SCHEMA)
    record_property("correct version", ("derived columns", found.passed))
    assert found.passed, str(found)
    assert found.to_dict()["changes"] == {"add-or-remove-one": 1, "replace-one": 2}


def test_an_any_over_all_rows_changes_more_than_a_histogram_declares():
    deriving, _ = PLANTED["an any over all rows"]
    found = check_derivation(SCHEMA, deriving=deriving)
    assert found.changes["add-or-remove-one"] > 1
    assert "under add-or-remove-one, where 1 is declared" in str(found)


def test_verification_of_a_miner_tries_the_derived_columns_of_its_examples():
    miner = dpf.miner("histogram", attribute="d", epsilon=1)
    add, _ = dpf.Relation
    found = verify_examples("h", {"one": dpf.Example(SCHEMA, miner)}, relations=[add], replays=100, runs=0)
    assert found.passed, list(found.problems())
    assert found.derivation is not None
    assert found.to_dict()["derivation"]["passed"]
