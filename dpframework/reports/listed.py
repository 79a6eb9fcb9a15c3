"""The list of a plan's releases as a table for other programs: CSV or JSON, a row a step."""

from __future__ import annotations

import json
from typing import Any

from dpframework.facts.written import csv_text
from dpframework.reports.ran import Ran
from dpframework.reports.reads import parts_of, reads_of_steps
from dpframework.reports.steps import rows_of_steps
from dpframework.study.study_plan import StudyPlan

ANY = "any"


def release_rows(plan: StudyPlan, ran: Ran | None = None) -> list[dict[str, Any]]:
    """Return each planned step: the part of the study, its miner, what it may read, and all that a report says of it.

    After a run, `released` says how often it was released.
    """
    reads, rows = reads_of_steps(plan), rows_of_steps(plan)
    names = [name for name, _ in parts_of(plan)]
    made = None if ran is None else ran.made(plan)
    found = []
    for _, step in plan.placed_steps():
        row, read = rows[id(step)], reads[id(step)]
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


def releases_json(plan: StudyPlan, ran: Ran | None = None) -> str:
    """Write the list of releases as JSON; `reads` is null where that may be any attribute."""
    return json.dumps({"plan": plan.hash, "releases": release_rows(plan, ran)}, indent=2) + "\n"


def releases_csv(plan: StudyPlan, ran: Ran | None = None) -> str:
    """Write the list of releases as CSV; attributes are separated by semicolons."""
    rows = release_rows(plan, ran)
    listed = [row | {"reads": ANY if row["reads"] is None else "; ".join(row["reads"])} for row in rows]
    return csv_text(list(rows[0]) if rows else ["result"], [list(row.values()) for row in listed])
