"""The epsilon that an error needs, for one of several steps that have a bound together."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.facts import positive
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node, sequential, step
from dpframework.queries import Count
from dpframework.run import Miner, PrivateTable

SCHEMA = dpf.Schema([dpf.Boolean("ill")], about_rows=1000)


@attrs.frozen
class TwoCounts(Miner):
    """Counts twice, the first time with three quarters of the budget."""

    name = "two-counts"
    epsilon: Fraction = attrs.field(converter=positive)

    def plan(self, schema: dpf.Schema) -> Node:
        parts = {"exact": Fraction(3, 4), "rough": Fraction(1, 4)}
        return sequential(*(step(name, Count(), DiscreteLaplace(self.epsilon * part)) for name, part in parts.items()))

    def mine(self, table: PrivateTable) -> Any:
        return [table.release("exact"), table.release("rough")]


def test_of_several_alike_steps_the_one_that_is_asked_for_is_as_exact() -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("it", TwoCounts(1))
    exact, rough = (study.accuracy(f"it/{name}", within=20) for name in ("exact", "rough"))
    assert exact.bound.steps == ("exact",)
    assert rough.bound.steps == ("rough",)
    assert float(rough.epsilon) == pytest.approx(3 * float(exact.epsilon), rel=0.05)
    both = study.accuracy("it", within=20)
    assert both.epsilon == rough.epsilon, "the least exact of both"
