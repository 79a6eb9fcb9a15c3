"""The command `describe`, which writes a study file that asks about every column of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpframework.cli.command_classes import Command
from dpframework.cli.common import Json, RowsPerUnit, Unit, path_argument, print_json, write
from dpframework.facts.path_containment import require_relative
from dpframework.facts.privacy_losses import decimal_text
from dpframework.facts.schema import read_schema
from dpframework.facts.toml import toml_lines

app = typer.Typer()


@app.command(cls=Command, epilog="Example: dpframework describe visits.csv visits.schema.toml --epsilon 1")
def describe(
    data: Annotated[Path, path_argument("DATA", "The table, as a path from the study's folder. It is not opened.")],
    schema: Annotated[Path, path_argument("SCHEMA", "A schema file, as a path from the study's folder.")],
    epsilon: Annotated[str, typer.Option(metavar="EPSILON", help="The budget of the whole study.")] = "1",
    unit: Unit = None,
    rows_per_unit: RowsPerUnit = 1,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="An assumption that you accept; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a study file that asks for every histogram, mean and median. The data is not opened.

    The budget is split among the steps so that the sum of their errors is smallest. Read and change the file before you
    plan it.
    """
    # A study that names files outside its folder would be refused, so no such study is written.
    require_relative(str(data), "the study's [data] path")
    require_relative(str(schema), "the study's [data] schema")
    # imported late, since it loads all miners
    from dpframework.study.attribute_summary_study import describe as study_of

    study = study_of(read_schema(schema), epsilon, unit=unit, rows_per_unit=rows_per_unit, allow=allow or ())
    steps: list[dict[str, Any]] = [
        {"name": name, "miner": own.kind.name, "share": float(own.share), "params": dict(own.parameters)}
        for name, own in study.shares().shares.items()
    ]
    places, budget = {"path": str(data), "schema": str(schema)}, decimal_text(study.budget.epsilon)
    whom: dict[str, Any] = {} if unit is None else {"unit": unit}
    whom |= {} if rows_per_unit == 1 else {"rows_per_unit": rows_per_unit}
    whom |= {"allow": allow} if allow else {}
    if as_json:
        print_json({"data": places, "privacy": {"epsilon": budget, **whom}, "step": steps})
        return
    quote = '"' if "/" in budget else ""  # TOML has no ratios, so a ratio is written as a text
    tables = [f"[data]\n{toml_lines(places)}", f"[privacy]\nepsilon = {quote}{budget}{quote}\n{toml_lines(whom)}"]
    tables += [f"[[step]]\n{toml_lines(step)}" for step in steps]
    write("\n".join(tables), end="")
