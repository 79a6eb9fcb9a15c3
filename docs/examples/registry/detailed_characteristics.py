"""Detailed Demographic and Housing Characteristics File A, U.S. Census Bureau, 2023: detail that follows group size.

Each detailed group gets a noisy total first. By that number it gets sex by age in many classes, in few, or its total
alone. The bureau's SafeTab-P does so for each group and region; here are three groups of one region. All of it together
costs the rho that the registry lists, 19.776, under replace-one, since the total of the country is public.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs

import dpframework as dpf

RHO = Fraction("19.776")
FIRST = Fraction(1, 10)  # of rho, for the totals
FEW, MANY = 1_000, 7_000  # people: from here on a group gets few and many classes of age
GROUPS = ("group 1", "group 2", "group 3")
AGES = {
    "few": (18, 45, 65),
    "many": (5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85),
}

SCHEMA = dpf.Schema(
    [
        dpf.Categorical("group", GROUPS),
        dpf.Boolean("female"),
        dpf.Numeric("few", 0, 116, cuts=AGES["few"]),
        dpf.Numeric("many", 0, 116, cuts=AGES["many"]),
    ],
    rows=331_000_000,
)


@attrs.frozen
class AdaptiveDetail(dpf.Miner):
    """Count each group, then count sex by age in as many classes as its noisy size bears."""

    name = "adaptive-detail"
    rho: Fraction

    @property
    def of_part(self) -> Fraction:
        """The rho of a group's table. A person who moves is in two groups."""
        return self.rho * (1 - FIRST)

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        """Return the totals, then one of two tables in each group."""
        totals = dpf.step("totals", dpf.queries.Histogram(schema["group"]), dpf.mechanisms.Gaussian(self.rho * FIRST))
        noise = dpf.mechanisms.Gaussian(self.of_part)
        tables = [
            dpf.step(detail, dpf.queries.JointHistogram([schema["female"], schema[detail]]), noise) for detail in AGES
        ]
        return dpf.sequential(totals, dpf.parallel(dpf.either(*tables), by=schema["group"], name="groups"))

    def mine(self, table: Any) -> dict[str, Any]:
        """Return each group's total, with its table if it is large enough."""
        totals = table.release("totals")
        found = {}
        for group, total, part in zip(GROUPS, totals, table.partition(SCHEMA["group"]), strict=True):
            detail = "many" if total >= MANY else "few" if total >= FEW else None
            found[group] = {"total": total, "table": None if detail is None else part.release(detail)}
        return found


def study() -> dpf.Study:
    """Return the study. Its rho is the registry's; it is 59.3 in epsilon at a delta of 1e-10."""
    made = dpf.Study(
        SCHEMA, epsilon=60, delta="1e-10", relation="replace-one", allow=["large-epsilon", "one-row-per-person"]
    )
    made.add("detail", AdaptiveDetail(RHO))
    return made


if __name__ == "__main__":
    print(study().plan().totals())
