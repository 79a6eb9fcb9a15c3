"""Commands that read no data: `plan` and `check`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from dpframework.checks import Severity
from dpframework.cli.shared import (
    REFUSED,
    Command,
    Json,
    console,
    given_path,
    one_of,
    open_plan,
    print_json,
    warn_of_problems,
)

Subject = Annotated[
    Path,
    typer.Argument(
        parser=given_path, metavar="STUDY", help="A study file (.toml), or a plan (.json) that was written."
    ),
]


class PlanFormat(enum.StrEnum):
    """How a plan is drawn."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(cls=Command, epilog="Example: dpframework plan study.toml --format mermaid")(plan)
    app.command(cls=Command, epilog="Example: dpframework check study.toml")(check)


def plan(
    study: Subject,
    form: Annotated[
        PlanFormat,
        typer.Option(
            "--format",
            parser=one_of(PlanFormat),
            metavar="FORMAT",
            help="How to draw the plan: tree, mermaid, dot, or json, which can be checked later.",
        ),
    ] = PlanFormat.TREE,
    as_json: Json = False,
) -> None:
    """Draw every release that a study will make, with its loss and the total. The data is not opened."""
    warn_of_problems()
    planned = open_plan(study)
    if as_json or form is PlanFormat.JSON:
        print(planned.to_json(), end="")
    elif form is PlanFormat.MERMAID:
        print(planned.mermaid(), end="")
    elif form is PlanFormat.DOT:
        print(planned.dot(), end="")
    elif console().is_terminal:
        from dpframework.reports.terminal import plan_tree

        console().print(plan_tree(planned))
    else:
        print(planned.tree())


def check(study: Subject, as_json: Json = False) -> None:
    """Say whether a plan may be run, and why not. The data is not opened; exit code 1 if a check refuses it."""
    warn_of_problems()
    planned = open_plan(study)
    found = planned.check()
    refused = any(finding.severity is Severity.ERROR for finding in found)
    if as_json:
        print_json({"plan": planned.hash, "refused": refused, "findings": [finding.to_dict() for finding in found]})
    else:
        from dpframework.drawing import total_line
        from dpframework.reports.terminal import findings_text

        # One line a finding in a pipe, for grep.
        console().print(findings_text(found), soft_wrap=not console().is_terminal)
        print(total_line(planned))
        print("refused" if refused else "accepted")
    if refused:
        raise typer.Exit(REFUSED)
