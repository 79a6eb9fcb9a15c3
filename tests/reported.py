"""A study that has a bit of everything that reports tell: parts, an assumption, post-processing, a result as text."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

import dpframework as dpf


@attrs.frozen
class Twice(dpf.Miner):
    """Count one attribute, and another one in each of its parts."""

    name = "twice"
    told: ClassVar[str] = "counted"
    epsilon: Any = 0.5

    def plan(self, schema: dpf.Schema) -> dpf.plan.Node:
        half = dpf.mechanisms.DiscreteLaplace(self.epsilon)
        first, second = schema
        inner = dpf.step("inner", dpf.queries.Histogram(second), half, assumptions=["mcmc-converged"])
        outer = dpf.step("outer", dpf.queries.Histogram(first), half)
        return dpf.sequential(outer, dpf.parallel(inner, by=first), dpf.post("sum", ["outer"]))

    def mine(self, table: dpf.PrivateTable) -> str:
        table.release("outer")
        for part in table.partition(table.schema.names[0]):
            part.release("inner")
        return self.told


def studied(schema: dpf.Schema, miner: dpf.Miner) -> dpf.Study:
    """Return a study of one miner that accepts what the miner assumes."""
    study = dpf.Study(schema, epsilon=1.5, delta="1e-6", allow=["mcmc-converged"])
    study.add("both", miner)
    return study


def forty_rows(schema: dpf.Schema) -> dpf.Table:
    """Return a table of two attributes, of two and of four values."""
    return dpf.Table.from_codes(schema, np.array([[0, 1] * 20, [0, 1, 2, 3] * 10]))
