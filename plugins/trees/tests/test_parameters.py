"""The parameters that trees have in common: which are refused, in which words, and what they become on a schema."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from dpframework_trees import DPID3
from dpframework_trees.criteria import CRITERIA
from dpframework_trees.parameters import (
    class_and_attributes,
    criterion_with_costs,
    nothing_to_split,
    other_attributes,
)

import dpframework as dpf

SCHEMA = dpf.Schema([dpf.Boolean("ripe"), dpf.Boolean("wet"), dpf.Categorical("grade", ["good", "fair", "bad"])])
GRADE = SCHEMA["grade"]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"costs": []}, "costs are []; whole numbers from 1 to 1000 are needed, one for each class"),
        ({"costs": [1, 0]}, "costs are [1, 0]; whole numbers from 1 to 1000 are needed, one for each class"),
        ({"costs": [1001, 1]}, "costs are [1001, 1]; whole numbers from 1 to 1000 are needed, one for each class"),
        ({"costs": [1, 2.5]}, "costs are [1, 2.5]; whole numbers from 1 to 1000 are needed, one for each class"),
        ({"costs": [1, 2], "criterion": "gini"}, "costs need the criterion 'max', not 'gini'; set criterion = 'max'"),
        ({"criterion": "maxx"}, "criterion 'maxx' is unknown; did you mean 'max'?"),
    ],
)
def test_costs_and_criteria_are_refused_in_a_sentence(parameters: dict[str, Any], told: str) -> None:
    with pytest.raises(dpf.InputError) as refused:
        DPID3("grade", 1, **{"criterion": "max", **parameters})
    assert str(refused.value) == told


def test_costs_are_kept_as_whole_numbers_in_the_order_of_classes() -> None:
    miner = DPID3("grade", 1, criterion="max", costs=[1, 1000, 7])
    assert miner.costs == (1, 1000, 7)
    assert not miner.prunes
    assert DPID3("grade", 1).costs is None
    assert (DPID3("grade", 1).prunes, DPID3("grade", 1, pruning=False).prunes) == (True, False)
    weighed = criterion_with_costs("max", miner.costs, GRADE)
    assert (weighed.costs, weighed.largest_cost) == ((1, 1000, 7), 1000)
    assert criterion_with_costs("gini", None, GRADE) == CRITERIA["gini"]
    with pytest.raises(dpf.InputError) as refused:
        criterion_with_costs("max", (1, 2), GRADE)
    assert str(refused.value) == "costs has 2 numbers; 'grade' has 3 classes: good, fair, bad"


def test_all_attributes_but_the_class_are_split_on_unless_they_are_named() -> None:
    assert class_and_attributes(SCHEMA, "grade", None) == (GRADE, ("ripe", "wet"))
    assert class_and_attributes(SCHEMA, "wet", ("grade",)) == (SCHEMA["wet"], ("grade",))
    assert other_attributes(SCHEMA, GRADE, ()) == ()  # named, if none

    def refused(target: str, names: tuple[str, ...] | None, told: str, schema: dpf.Schema = SCHEMA) -> None:
        with pytest.raises(dpf.InputError) as error:
            class_and_attributes(schema, target, names)
        assert str(error.value).startswith(told)

    refused("wet", ("ripe", "wet"), "target 'wet' is also among the attributes that predict it; leave it out")
    refused("wet", ("ripe", "ripe"), "attributes names an attribute twice; name each once")
    one = attrs.evolve(SCHEMA, attributes=[*SCHEMA, dpf.Categorical("one", ["x"])])
    refused("one", None, "target 'one' has a single class; a classifier needs two or more", one)
    assert str(nothing_to_split(GRADE)) == (
        "no attribute can be split for target 'grade'; add one with two or more values, or with a cut"
    )
