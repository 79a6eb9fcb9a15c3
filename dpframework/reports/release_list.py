"""A plan's releases as a table for other programs, in CSV or JSON, with a row for each step."""

from __future__ import annotations

import json
from typing import Any

from dpframework.facts.output_text import csv_text
from dpframework.plan.preview import parts_of
from dpframework.reports.run_summary import RunSummary
from dpframework.reports.steps import rows_of_steps
from dpframework.study.study_plan import StudyPlan

ANY = "any"


def release_rows(plan: StudyPlan, ran: RunSummary | None = None) -> list[dict[str, Any]]:
    """Return each planned step, with its part of the study, its miner, its attributes and a report's facts.

    After a run, `released` says how often it was released.
    """
    rows = rows_of_steps(plan)
    names = [name for name, _ in parts_of(plan)]
    made = None if ran is None else ran.made(plan)
    found = []
    for _, step in plan.placed_steps():
        row, read = rows[id(step)], plan.index.reads[plan.index.place(step).number]
        part = row.path.partition("/")[0]
        part = part if part in names else row.path
        found.append(
            {
                "result": part,
                "miner": plan.miners.get(part, {}).get("miner", ""),
                "reads": None if read is None else list(read),
                **row.to_dict(),
                **({} if made is None else {"released": made.get(row.path, 0)}),
            }
        )
    return found


def releases_json(plan: StudyPlan, ran: RunSummary | None = None) -> str:
    """Write the list of releases as JSON. `reads` is null where a step may read any attribute."""
    return json.dumps({"plan": plan.hash, "releases": release_rows(plan, ran)}, indent=2) + "\n"


def releases_csv(plan: StudyPlan, ran: RunSummary | None = None) -> str:
    """Write the list of releases as CSV, with attributes separated by semicolons."""
    rows = release_rows(plan, ran)
    listed = [row | {"reads": ANY if row["reads"] is None else "; ".join(row["reads"])} for row in rows]
    return csv_text(list(rows[0]) if rows else ["result"], [list(row.values()) for row in listed])
