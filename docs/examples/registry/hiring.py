"""LinkedIn Hiring Reports, 2020: employers that nobody lists, in four reports for each month.

The registry lists an epsilon of 4.8 at a delta of 4e-10 for each date: four reports of epsilon 1.2 at 1e-10, each of
which pays for two counts. A hire is the unit. Here the four are of all hires, by country, by industry, and by both.
Half of each shows the employers that enough hires have, with noisy counts (`PartitionSelection`). The other half
counts, for these employers and all others together, how many of their hires are of this month and of the last.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs

import dpframework as dpf

EPSILON, DELTA = Fraction("0.6"), Fraction(1, 10**10)  # of one count, and of one report
SCHEMA = dpf.Schema(
    [
        dpf.Open("employer"),  # no list of employers is public: who hires is what the reports tell
        dpf.Categorical("country", ["Austria", "Brazil", "Canada"]),  # three of them
        dpf.Categorical("industry", ["Education", "Health", "Retail"]),
        dpf.Boolean("this_month"),
    ]
)


@attrs.frozen
class HiringReports(dpf.Miner):
    """Show who hires, and how that has changed, in all places and industries together and in each."""

    name = "hiring-reports"

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        """Return four reports of the same rows. The parts of one of them do not overlap."""
        employers = dpf.step(
            "employers", dpf.queries.Keys("employer"), dpf.mechanisms.PartitionSelection(EPSILON, DELTA)
        )
        months = dpf.step(
            "months", dpf.queries.Histogram(schema["this_month"]), dpf.mechanisms.DiscreteLaplace(EPSILON)
        )
        by_employer = dpf.parallel(months, by=dpf.FromRelease("employers", attributes=["employer"]))
        report = dpf.sequential(employers, by_employer)
        industries = dpf.parallel(report, by=schema["industry"], name="industries")
        return dpf.sequential(
            report,
            dpf.parallel(report, by=schema["country"], name="countries"),
            industries,
            dpf.parallel(industries, by=schema["country"], name="both"),
        )

    def mine(self, table: dpf.PrivateTable) -> dict[str, Any]:
        """Return for each report its employers, each with its hires of the last month and of this one."""
        countries, industries = (table.schema[name].labels for name in ("country", "industry"))
        found = {"all": _report(table)}
        for country, part in zip(countries, table.partition("country", name="countries"), strict=True):
            found[country] = _report(part)
        for industry, part in zip(industries, table.partition("industry", name="industries"), strict=True):
            found[industry] = _report(part)
        for country, place in zip(countries, table.partition("country", name="both"), strict=True):
            for industry, part in zip(industries, place.partition("industry", name="industries"), strict=True):
                found[f"{country}, {industry}"] = _report(part)
        return found


def _report(table: dpf.PrivateTable) -> dict[str, list[int]]:
    employers = list(table.release("employers"))
    parts = table.partition(dpf.Cases(dpf.Equals("employer", employer) for employer in employers))
    return {name: part.release("months").tolist() for name, part in zip([*employers, "other"], parts, strict=True)}


def study() -> dpf.Study:
    """Return the study of one month, with the registry's figures as its budget."""
    made = dpf.Study(SCHEMA, epsilon=8 * EPSILON, delta=4 * DELTA)
    made.add("reports", HiringReports())
    return made


if __name__ == "__main__":
    print(study().plan().total())
