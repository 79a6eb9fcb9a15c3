"""The command `forecast`, which says how much time and memory a run of a study will take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import attrs
import typer

from dpframework.cli.command_classes import Command
from dpframework.cli.common import AboutRows, Json, path_argument, print_json, warn_of_problems, write
from dpframework.facts.toml import prefix_errors
from dpframework.study.study_file import load_study

app = typer.Typer()


@app.command(cls=Command, epilog="Example: dpframework forecast study.toml --rows 1000000 --within 600")
def forecast(
    study: Annotated[Path, path_argument("STUDY", "A study file (.toml).")],
    rows: AboutRows = None,
    patience: Annotated[
        int,
        typer.Option(min=1, metavar="SECONDS", help="The most CPU seconds for the trial runs, which use made-up rows."),
    ] = 120,
    within: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="The CPU seconds that the run itself may take. A run that would take more is refused.",
        ),
    ] = 3_600,
    as_json: Json = False,
) -> None:
    """Say how much time and memory a run will take, from trial runs on made-up rows. The data is not opened."""
    from dpframework.lab.run_cost_forecast import forecast as forecast_of

    warn_of_problems()
    planned = load_study(study).study
    with prefix_errors(f"{study}: "):
        found = forecast_of(planned, rows, patience=patience, within=within)
    if as_json:
        print_json(attrs.asdict(found))
    else:
        write(str(found))
