"""Plans that were added without a miner: a run makes their releases, or is refused before anything is read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dpframework as dpf
from dpframework.study.plan_runner_without_miner import require_samples_anew

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 0, 1, 1, 1], [0, 1, 1, 1, 2]])
EXACTLY = 10**4  # an epsilon at which hardly any noise is left


def counted(name: str = "ill", attribute: str = "ill") -> dpf.Node:
    query = dpf.queries.Histogram(SCHEMA[attribute])
    return dpf.step(name, query, dpf.mechanisms.DiscreteLaplace(EXACTLY))


def result(node: dpf.Node, **options: Any) -> Any:
    study = dpf.Study(SCHEMA, epsilon=10**6)
    study.add_plan("own", node)
    results = study.run(TABLE, **({"seed": 1} | options))
    assert results.spent == results.plan.total()
    json.dumps(results.to_dict(), allow_nan=False)
    return plain(results["own"])


def plain(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: plain(value) for key, value in found.items()}
    if isinstance(found, list):
        return [plain(value) for value in found]
    return found.tolist() if isinstance(found, np.ndarray) else found


TOWNS = dpf.Cases([dpf.Equals("town", "A"), dpf.Equals("town", "B")])

PLANS = {
    "one step": (counted(), [2, 3]),
    "a selection": (
        dpf.step("mode", dpf.queries.Histogram(SCHEMA["town"]), dpf.mechanisms.PermuteAndFlip(EXACTLY)),
        "B",
    ),
    "several steps": (
        dpf.sequential(counted(), counted("town", "town"), dpf.post("shares", uses=["ill", "town"])),
        {"ill": [2, 3], "town": [1, 3, 1]},
    ),
    "a scope": (
        dpf.sequential(counted(), dpf.sequential(counted(), counted("town", "town"), name="again")),
        {"ill": [2, 3], "again": {"ill": [2, 3], "town": [1, 3, 1]}},
    ),
    "parts by an attribute": (
        dpf.parallel(counted(), by=SCHEMA["town"]),
        {"parts": {"A": [1, 0], "B": [1, 2], "C": [0, 1]}},
    ),
    "parts by cases": (
        dpf.parallel(dpf.sequential(counted(), counted("town", "town")), counted(), counted(), by=TOWNS, name="towns"),
        {
            "towns": {
                "town = A": {"ill": [1, 0], "town": [1, 0, 0]},
                "town = B": [1, 2],
                "otherwise": [0, 1],
            }
        },
    ),
    "parts by descriptions": (
        dpf.parallel(counted(), by=[dpf.Equals("town", "C"), dpf.Equals("town", "B")]),
        {"parts": {"town = C": [0, 1], "town = B": [1, 2]}},
    ),
    "twice": (dpf.repeat(2, dpf.sequential(counted(), name="turn")), {"turn": [{"ill": [2, 3]}, {"ill": [2, 3]}]}),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_run_makes_every_planned_release(name: str) -> None:
    node, expected = PLANS[name]
    assert result(node) == expected


def test_a_private_run_makes_them_too() -> None:
    assert result(counted(), seed=None) == [2, 3]


def test_plans_and_miners_run_in_the_order_of_the_study() -> None:
    study = dpf.Study(SCHEMA, epsilon=10**6)
    study.add_plan("first", counted())
    study.add("second", dpf.miner("histogram", attribute="town", epsilon=EXACTLY))
    study.add_plan("third", counted("town", "town"))
    results = study.run(TABLE, seed=0)
    assert list(results) == ["first", "second", "third"]
    assert results["second"].counts.tolist() == results["third"].tolist() == [1, 3, 1]
    assert [charge.path for charge in results.charges] == ["first/ill", "second/counts", "third/town"]


def never() -> dpf.Table:
    raise AssertionError("the table was read")


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (dpf.sequential(counted(), dpf.either(counted("a"), counted("b"))), "must choose one of its branches"),
        (
            dpf.sequential(
                counted(),
                dpf.step("more", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1), uses=["ill"]),
            ),
            "must give 'more' the releases that it uses",
        ),
        (
            dpf.sequential(counted(), dpf.parallel(counted("parts"), by=dpf.FromRelease("ill"))),
            "must make parts from the release of 'ill'",
        ),
    ],
)
def test_what_needs_a_choice_is_refused_before_anything_is_read(node: dpf.Node, said: str) -> None:
    study = dpf.Study(SCHEMA, epsilon=10**6)
    study.add_plan("own", node)
    with pytest.raises(dpf.InputError, match=f"step 'own' was added as a plan without a miner, and something {said}"):
        study.run(never)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            dpf.queries.Supports([dpf.And([dpf.Equals("ill", "true"), dpf.Equals("town", "A")])]),
            dpf.queries.Supports([dpf.Or([dpf.Equals("ill", "true"), dpf.Equals("town", "A")])]),
        ),
        (
            dpf.queries.JointHistogram([dpf.Numeric("age", 0, 9, cuts=[4])]),
            dpf.queries.JointHistogram([dpf.Numeric("age", 0, 9, cuts=[5])]),
        ),
    ],
)
def test_an_approval_is_of_the_very_queries(one: dpf.Query, other: dpf.Query) -> None:
    """Both claim the same, in the same words; but who approved one did not approve the other."""
    schema = dpf.Schema([*SCHEMA.attributes, dpf.Numeric("age", 0, 9, bins=3)])
    hashes = []
    for query in (one, one, other):
        study = dpf.Study(schema, epsilon=1)
        study.add_plan("own", dpf.step("n", query, dpf.mechanisms.DiscreteLaplace(1)))
        hashes.append(study.plan().hash)
        assert dpf.StudyPlan.from_json(study.plan().to_json()).hash == hashes[-1]
    assert one.facts() == other.facts()
    assert hashes[0] == hashes[1] != hashes[2]


class Broken(dpf.Query):
    name = "broken"
    sensitivities = dpf.queries.histogram_sensitivities(1)

    def count(self, block: dpf.Block, **inputs: Any) -> np.ndarray:
        raise KeyError("4242")


def test_a_plan_that_fails_keeps_what_had_finished() -> None:
    study = dpf.Study(SCHEMA, epsilon=10**6)
    study.add_plan("first", counted())
    study.add_plan("second", dpf.step("n", Broken(), dpf.mechanisms.DiscreteLaplace(1)))
    with pytest.raises(dpf.InputError, match="failed with KeyError") as stopped:
        study.run(TABLE)
    assert "4242" not in str(stopped.value)
    assert list(stopped.value.results) == ["first"]


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("budget", [dpf.PLDAccountant, dpf.PureAccountant])
def test_only_a_sample_in_an_accounting_of_one_sample_is_not_resumed(budget: Any, sampled: bool) -> None:
    study = dpf.Study(SCHEMA, epsilon=2)
    study.add_plan("n", dpf.sample("0.5", counted()) if sampled else counted())
    given = budget("add-or-remove-one", epsilon=2, delta="1e-6" if budget is dpf.PLDAccountant else 0)
    if sampled and not given.samples_anew:
        with pytest.raises(dpf.PlanRefused, match="this run cannot be resumed"):
            require_samples_anew(study.plan(), given)
    else:
        require_samples_anew(study.plan(), given)
    assert given.samples_anew is (budget is dpf.PureAccountant)
