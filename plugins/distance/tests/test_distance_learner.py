"""DP-DILCA's parameters on a schema: which attributes are looked at, what is planned, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from dpframework_distance.distance_learner import BASELINES, SIZED, DistanceLearner, attributes_and_targets
from dpframework_distance.miner import DPDilca
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.plan import sequential

ONE = dpf.Categorical("one", ["only"])
OTHERS = [dpf.Categorical(name, ["x", "y", "z"]) for name in "abcd"]
SCHEMA = dpf.Schema([ONE, *OTHERS], rows=100)
CONTEXTS = ("auto", "none", "tree", "mean-su", *SIZED, *BASELINES)


def miner(**parameters: Any) -> DPDilca:
    return DPDilca(**{"epsilon": 1, "context_size": 2, **parameters})


@given(st.lists(st.sampled_from("abcd"), min_size=2, unique=True), st.booleans())
def test_attributes_of_one_value_are_left_out_and_targets_are_positions(names: list[str], single: bool) -> None:
    target = names[-1] if single else None
    among, targets = attributes_and_targets(miner(attributes=["one", *names], target=target, context="tree"), SCHEMA)
    assert [one.name for one in among] == names
    assert [among[k].name for k in targets] == ([target] if single else names)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"target": "one"}, "'one' has one value"),
        ({"target": "a", "attributes": ["b", "c"]}, "'a' is not among the attributes"),
        ({"attributes": ["one", "a"]}, "each with two or more values"),
        ({"attributes": ["a", "a"]}, "attributes"),
        ({"context": "common", "target": "a"}, "leave target out"),
        ({"context": "common", "context_size": 1}, "set context_size = 2 or more"),
        ({"context": "max-relevance", "context_size": 4}, "set context_size = 3 or less"),
    ],
)
def test_what_no_distance_can_be_learned_with_is_refused(parameters: Any, message: str) -> None:
    with pytest.raises(dpf.InputError, match=message):
        attributes_and_targets(miner(**parameters), SCHEMA)


@settings(max_examples=30)
@given(st.sampled_from(CONTEXTS), st.none() | st.sampled_from("abcd"))
def test_a_part_for_all_targets_spends_the_share_that_it_is_given(context: str, target: str | None) -> None:
    if context == "common":
        target = None
    learner = DistanceLearner.of(miner(context=context, target=target), SCHEMA)
    study = dpf.Study(SCHEMA, epsilon=9, relation="replace-one")
    if learner.model is not None:
        study.add_plan("d", learner.model.plan())
        share = Fraction(1)
    else:
        share = Fraction(1, 2)
        study.add_plan("d", sequential(*learner.part(learner.targets, share)))
    total = study.plan().smallest_epsilon()
    assert total is not None
    assert total <= share
    assert total > share * Fraction(9, 10) or context == "auto"


@given(st.sampled_from(CONTEXTS))
def test_targets_are_learned_apart_only_where_nothing_is_shared(context: str) -> None:
    assert not DistanceLearner.of(miner(context=context), SCHEMA).apart
    if context in ("auto", "none", "tree"):
        return  # one model serves all targets
    alone = DistanceLearner.of(miner(context=context, sharing=False), SCHEMA)
    assert alone.apart == (context not in (*BASELINES, "common"))
    assert (alone.selection is None) == (context in BASELINES)
    assert len({alone.scope(target) for target in alone.targets}) == len(alone.targets)
