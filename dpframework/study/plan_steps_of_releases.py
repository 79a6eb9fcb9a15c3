"""Find the step of the plan for each release of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from dpframework.plan.spend_block_requests import split_request
from dpframework.run.run_scopes_and_charges import Charge
from dpframework.study.study_plan_totals_and_findings import StudyPlan

_NUMBER = re.compile(r" \d+$")


def step_numbers(plan: StudyPlan, charges: Iterable[Charge]) -> list[int]:
    """Return the position of each release's step in the plan's `placed_steps`; -1 if the plan has no such step.

    The path of a release is not enough, since steps in two branches of an `either` may have the same path.
    """
    place = path_finder(plan)
    numbers: dict[Any, int] = {}
    for number, (path, step) in enumerate(plan.placed_steps()):
        numbers.setdefault((path, id(step)), number)
        numbers.setdefault(path, number)
    return [
        numbers.get((place(charge.path), id(charge.planned)), numbers.get(place(charge.path), -1)) for charge in charges
    ]


def path_finder(plan: StudyPlan) -> Callable[[str], str]:
    """Return a function that maps the path of a release to the path of its step in the plan.

    A plan may have one step for all parts of a partition, with a path such as "parts/counts". In a run the parts are
    numbered, as in "parts 3/counts". A path without a step is returned unchanged.
    """
    root: dict[str, Any] = {}
    for path, _ in plan.placed_steps():
        inner = root
        for scope in path.split("/"):
            inner = inner.setdefault(scope, {})

    def find(inner: dict[str, Any], scopes: tuple[str, ...]) -> str | None:
        if not scopes:
            return ""
        for scope in (scopes[0], _NUMBER.sub("", scopes[0])):
            rest = find(inner[scope], scopes[1:]) if scope in inner else None
            if rest is not None:
                return f"{scope}/{rest}"
        return None

    def place(path: str) -> str:
        kind, _ = split_request(path)  # in a block, the path of a release ends with the release's parameters
        planned = find(root, tuple(kind.split("/")))
        return path if planned is None else planned.removesuffix("/")

    return place
