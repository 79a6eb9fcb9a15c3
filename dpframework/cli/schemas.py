"""The commands `schema infer`, `schema check` and `schema show`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpframework.cli import argument_completion
from dpframework.cli.command_classes import Command, CommandGroup
from dpframework.cli.common import (
    REFUSED,
    Json,
    RowsPerUnit,
    Unit,
    console,
    name_option,
    number_option,
    path_argument,
    path_option,
    plain_table,
    print_json,
    refuse_without_effect,
    say,
    write,
)
from dpframework.facts.attributes import Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.files import write_whole
from dpframework.facts.open_attribute import Open
from dpframework.facts.output_overwrite_rule import require_output
from dpframework.facts.phrases import count_text, first_of
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import read_schema
from dpframework.facts.toml import read_toml, require_table
from dpframework.tables.path_pattern_expansion import DATABASES

if TYPE_CHECKING:
    from dpframework.tables.schema_draft import SchemaDraft

app = typer.Typer(
    name="schema", cls=CommandGroup, help="Make and show schemas: the public facts about a table.", no_args_is_help=True
)


_UNFIT = "the data does not fit the schema; correct the cells or the schema"


WARNING = (
    "warning: this schema is inferred from private data and is not private: "
    "bounds, cuts and values may reveal a row; a study that uses it must allow 'schema-inferred-from-data'"
)

SHOWS_ROWS = "NOT private: this shows what is in the rows, so only the data's owner may see it"

OpenColumns = Annotated[
    list[str] | None,
    name_option(
        argument_completion.attributes, "A column whose values the schema must not list; may be repeated.", "--open"
    ),
]
ExcludedColumns = Annotated[
    list[str] | None,
    name_option(argument_completion.attributes, "A column to leave out; may be repeated."),
]
CutModeName = Annotated[
    str,
    typer.Option(
        metavar="MODE", help="How to cut numbers: equal-width, quantile, freedman-diaconis, k-means, observed."
    ),
]
CategoricalColumns = Annotated[
    list[str] | None,
    name_option(argument_completion.attributes, "A column whose numbers are categories; may be repeated."),
]
ReadFile = Annotated[Path | None, path_option("FILE", "A TOML file whose table 'read' says how the data is written.")]
Sheet = Annotated[
    str | None, typer.Option(metavar="NAME", help="The sheet of an Excel file; by default the first one.")
]
DatabaseTable = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table of a database.")]
Query = Annotated[str | None, typer.Option(metavar="SQL", help="A SELECT statement that returns the table.")]
RightView = Annotated[Path | None, path_option("FILE", "A CSV or Parquet file with the right view.")]
JoiningColumn = Annotated[
    str | None,
    name_option(argument_completion.attributes, "The column that joins the two files.", "--id"),
]


@app.command(
    cls=Command,
    epilog="Example: dpframework schema infer adult.csv --numeric quantile --bins 8 --out adult.schema.toml",
)
def infer(
    file: Annotated[Path, path_argument("FILE", "A CSV, Parquet, Excel or SQLite file; with --right, the left view.")],
    right: RightView = None,
    id: JoiningColumn = None,  # noqa: A002
    numeric: CutModeName = "equal-width",
    bins: Annotated[int | None, number_option("The most bins of an attribute; by default 16.")] = None,
    categorical: CategoricalColumns = None,
    open_columns: OpenColumns = None,
    exclude: ExcludedColumns = None,
    max_categories: Annotated[int, number_option("The most values of a categorical attribute.")] = 100,
    read: ReadFile = None,
    sheet: Sheet = None,
    table: DatabaseTable = None,
    query: Query = None,
    out: Annotated[Path | None, path_option("FILE", "Write the schema here; by default to standard output.")] = None,
    as_json: Json = False,
) -> None:
    """Make a schema from private data, for experiments or as a draft of public facts. This is not private.

    The command guesses how the file is written. It also tells the data's owner which columns are messy, and which of
    them are left out.
    """
    from dpframework.tables.attribute_kind_and_bounds_inference import CutMode

    if out is not None:
        # An existing file may be a public schema, which an inferred one must not overwrite.
        require_output(out, None)
    if CutMode.parse(numeric) is CutMode.OBSERVED:
        refuse_without_effect(f"--numeric {numeric}", bins=bins)
    choices: dict[str, Any] = {
        "numeric": numeric,
        **({} if bins is None else {"bins": bins}),
        "max_categories": max_categories,
        "categorical": categorical or (),
        "exclude": exclude or (),
        "open_columns": open_columns or (),
    }
    choices |= _read_options(file, read, {"sheet": sheet, "table": table, "query": query})
    draft = _draft(file, right, id, choices)
    schema, text = draft.schema, draft.dumps()
    if out is None and not as_json:
        _require_encodable(text)
    say(WARNING)
    if draft.notes:
        say(SHOWS_ROWS)
    for note in draft.notes:
        say(str(note))
    if out is not None:
        write_whole(out, text)
    if as_json:
        print_json(schema.to_dict())
    elif out is None:
        write(text, end="")
    else:
        left_out = [note.column for note in draft.notes if note.left_out]
        gone = f"; left out: {', '.join(left_out)}" if left_out else ""
        write(f"wrote {out}: {count_text(len(schema), 'attribute')}{gone}")


def _read_options(file: Path, read: Path | None, options: dict[str, str | None]) -> dict[str, Any]:
    """Return the options that say how the file is written, if any are given."""
    asked, name = {key: text for key, text in options.items() if text is not None}, file.name.lower()
    if "sheet" in asked and not name.endswith(".xlsx"):
        raise InputError(
            f"--sheet names a sheet of an Excel file (.xlsx), but {file.name} is not one; leave --sheet out"
        )
    if asked.keys() & {"table", "query"} and not name.endswith(DATABASES):
        kinds = ", ".join(DATABASES)
        raise InputError(
            f"--table and --query are for files of SQLite ({kinds}), but {file.name} is not one; leave both out"
        )
    given = {} if read is None else require_table(read_toml(read, "a file with [read]"), "read")
    return {"read": {**given, **asked}} if read is not None or asked else {}


def _require_encodable(text: str) -> None:
    """Refuse a text that standard output cannot write."""
    # In place of a character that the encoding lacks, another one would be printed. That would change the schema's
    # values.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        lacking = error.object[error.start]
        raise InputError(f"standard output is {encoding}, which lacks {lacking!a}; give a file with --out") from None


def _name_options(sentence: str) -> str:
    """Return an error's sentence with parameters replaced by options in the remedy, which follows the last "; ".

    A name in quotes is the name of a column, and stays as it is.
    """
    what, semicolon, remedy = sentence.rpartition("; ")
    pattern = r"(?<!['\w])(exclude|bins|max_categories|open_columns)(?!['\w])"
    remedy = re.sub(pattern, lambda found: f"--{found.group().removesuffix('_columns').replace('_', '-')}", remedy)
    return what + semicolon + remedy


def _require_join(right: Path | None, key: str | None) -> None:
    if right is None and key is not None:
        raise InputError("--id joins two files; give the second one with --right")


def _draft(file: Path, right: Path | None, key: str | None, choices: dict[str, Any]) -> SchemaDraft:
    """Return the draft of a schema for one file or for two views. Errors name this command's options."""
    from dpframework.tables.schema_draft import SchemaDraft
    from dpframework.tables.schema_inference import draft_schema, infer_two_view_schema

    _require_join(right, key)
    try:
        if right is None:
            return draft_schema(file, **choices)
        if "read" in choices:
            raise InputError("--read, --sheet, --table and --query are for one file; leave them out for two views")
        return SchemaDraft(infer_two_view_schema(file, right, id=key, **choices), ())
    except InputError as error:
        # Each sentence ends with a remedy that names parameters of `infer_schema`. This command has options instead.
        raise InputError(". ".join(map(_name_options, str(error).split(". ")))) from None


@app.command(cls=Command, epilog="Example: dpframework schema check adult.csv adult.schema.toml")
def check(
    file: Annotated[Path, path_argument("DATA", "A CSV, Parquet, Excel or SQLite file; with --right, the left view.")],
    schema: Annotated[Path, path_argument("SCHEMA", "A schema file.")],
    right: RightView = None,
    id: JoiningColumn = None,  # noqa: A002
    unit: Unit = None,
    rows_per_unit: RowsPerUnit = 1,
    as_json: Json = False,
) -> None:
    """Show the data's owner which values do not fit a schema. NOT PRIVATE. Exit code 1 if the data does not fit."""
    from dpframework.tables.schema_fit import check_fit

    _require_join(right, id)
    if unit is None and rows_per_unit != 1:
        refuse_without_effect("a check without --unit", rows_per_unit=rows_per_unit)
    misfits = check_fit(file, read_schema(schema), right=right, id=id, unit=PrivacyUnit(unit, rows_per_unit))
    fits = all(misfit.bounded for misfit in misfits)
    say(SHOWS_ROWS)
    if as_json:
        print_json({"private": False, "fits": fits, "misfits": [misfit.to_dict() for misfit in misfits]})
    else:
        for misfit in misfits:
            write(str(misfit))
        write("the data fits the schema" if fits else _UNFIT)
    if not fits:
        raise typer.Exit(REFUSED)


@app.command(cls=Command, epilog="Example: dpframework schema show adult.schema.toml")
def show(
    file: Annotated[Path, path_argument("FILE", "A schema file.")],
    as_json: Json = False,
) -> None:
    """Show the attributes of a schema file."""
    schema = read_schema(file)
    if as_json:
        print_json(schema.to_dict())
        return
    table = plain_table("attribute", "kind", "view", "codes", "domain")
    for attribute in schema:
        kind = attribute.kind + (", may be missing" if attribute.missing else "")
        match attribute:
            case Open():
                codes, domain = "", attribute.domain_text
            case Numeric():
                codes, domain = str(attribute.size), f"{attribute.lower:g} to {attribute.upper:g}"
            case _:
                codes, domain = str(attribute.size), first_of(attribute.labels, 6)
        table.add_row(attribute.name, kind, attribute.view or "", codes, domain)
    console().print(table, markup=False)
    facts = [f"{name} = {value}" for name, value in (("rows", schema.rows), ("max_rows", schema.max_rows)) if value]
    write("; ".join([count_text(len(schema), "attribute"), *facts]))
    for column in schema.derivation:
        write(f"derived: {column.definition}")
    for text in schema.inferred:
        write(f"inferred from private data: {text}")
