"""Commands about schemas: `schema infer` and `schema show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpframework.cli.shared import Json, console, print_json, say
from dpframework.errors import InputError
from dpframework.schema import Numeric, Schema

app = typer.Typer(name="schema", help="Make and show schemas: the public facts about a table.", no_args_is_help=True)

WARNING = (
    "warning: this schema is inferred from private data and is not private: "
    "bounds, cuts and values may give a row away; a study must allow 'schema-inferred-from-data' to use it"
)


@app.command(epilog="Example: dpframework schema infer adult.csv --numeric quantile --bins 8 --out adult.schema.toml")
def infer(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file; with --right, the left view.")],
    right: Annotated[Path | None, typer.Option(help="A CSV or Parquet file with the right view.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="The column that joins the two files.")] = None,  # noqa: A002
    numeric: Annotated[
        str,
        typer.Option(
            metavar="MODE", help="How to cut numbers: equal-width, quantile, freedman-diaconis, k-means, observed."
        ),
    ] = "equal-width",
    bins: Annotated[int, typer.Option(metavar="N", help="Most bins of a numeric attribute.")] = 16,
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are categories; repeatable.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="A column to leave out; repeatable.")] = None,
    max_categories: Annotated[int, typer.Option(help="Most values of a categorical attribute.")] = 100,
    out: Annotated[Path | None, typer.Option(help="Write the schema here; by default to standard output.")] = None,
    as_json: Json = False,
) -> None:
    """Make a schema from private data: for experiments, or as a draft of public facts. This is not private."""
    from dpframework.inference import infer_schema, infer_two_view_schema

    if out is not None and out.exists():
        raise InputError(
            f"{out}: exists; choose another name, so that no public schema is overwritten by an inferred one"
        )
    if right is None and id is not None:
        raise InputError("--id joins two files; give the second one with --right")
    if right is None:
        schema = infer_schema(
            file,
            numeric=numeric,
            bins=bins,
            max_categories=max_categories,
            categorical=categorical or (),
            exclude=exclude or (),
        )
    else:
        schema = infer_two_view_schema(
            file,
            right,
            id=id,
            numeric=numeric,
            bins=bins,
            max_categories=max_categories,
            categorical=categorical or (),
            exclude=exclude or (),
        )
    say(WARNING)
    if out is not None:
        schema.dump(out)
    if as_json:
        print_json(schema.to_dict())
    elif out is None:
        print(schema.dumps(), end="")
    else:
        print(f"wrote {out}: {len(schema)} attributes")


@app.command(epilog="Example: dpframework schema show adult.schema.toml")
def show(
    file: Annotated[Path, typer.Argument(help="A schema file.")],
    as_json: Json = False,
) -> None:
    """Show the attributes of a schema file."""
    schema = Schema.load(file)
    if as_json:
        print_json(schema.to_dict())
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("attribute", "kind", "view", "codes", "domain"):
        table.add_column(head)
    for attribute in schema:
        kind = attribute.kind + (", may be missing" if attribute.missing else "")
        labels = attribute.labels
        domain = (
            f"{attribute.lower:g} to {attribute.upper:g}" if isinstance(attribute, Numeric) else ", ".join(labels[:6])
        )
        more = ", ..." if len(labels) > 6 and not isinstance(attribute, Numeric) else ""
        table.add_row(attribute.name, kind, attribute.view or "", str(attribute.size), domain + more)
    console().print(table, markup=False)
    facts = [f"{name} = {value}" for name, value in (("rows", schema.rows), ("max_rows", schema.max_rows)) if value]
    print("; ".join([f"{len(schema)} attributes", *facts]))
    for text in schema.inferred:
        print(f"inferred from private data: {text}")
