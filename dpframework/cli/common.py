"""Consoles, options and inputs that several commands share."""

from __future__ import annotations

import codecs
import contextlib
import enum
import functools
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from dpframework.cli import argument_completion
from dpframework.facts.control_character_escapes import printable, printable_lines
from dpframework.facts.errors import InputError
from dpframework.facts.files import read_text
from dpframework.facts.toml import prefix_errors
from dpframework.results.json_safe import json_text
from dpframework.study.plugin_registry import registry
from dpframework.study.study_file import EngineChoice, StudyFile, load_study
from dpframework.study.study_plan_totals_and_findings import StudyPlan

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from dpframework.tables.engine_base import Engine

REFUSED = 1  # the exit code if something was refused or failed a test
BAD_INPUT = 2  # the exit code for wrong usage or bad input
PIPE_WIDTH = 120  # the width, in columns, of what is written to a pipe


def whole_number(text: str | int) -> int:
    """Read the text of an option as a whole number."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a whole number") from None


def _seed(text: str | int) -> int:
    seed = whole_number(text)
    if seed < 0:
        raise typer.BadParameter(f"{seed} is negative; a seed is a whole number from 0 on")
    return seed


def ledger_and_data_set(ledger: Path | None, data_set: str | None) -> tuple[Path, str]:
    """Return a ledger's file and the name of a data set in it.

    Raises
    ------
    InputError
        If the file or the name is missing.
    """
    if ledger is None or data_set is None:
        raise InputError("--ledger names a ledger file, and --data-set names a data set in that file; give both")
    return ledger, data_set


def read_path(text: str | Path) -> Path:
    """Return the path of a file or folder. A `~` at its beginning becomes the home folder.

    The shell does not expand a `~` after an equals sign, as in --out=~/results.
    """
    if not str(text).strip():
        raise typer.BadParameter("a name is expected, not an empty text")
    if str(text) == "-":
        raise typer.BadParameter(
            "'-' is not accepted, since standard input and output cannot be opened again later; give a file's name"
        )
    return Path(os.path.expanduser(text))


Choice = TypeVar("Choice", bound=enum.StrEnum)


def one_of(choices: type[Choice]) -> Callable[[str], Choice]:
    """Return a parser that accepts only the values of an enumeration."""

    def read(text: str) -> Choice:
        try:
            return choices(text)
        except ValueError:
            raise typer.BadParameter(f"'{text}' is unknown; accepted are {', '.join(choices)}") from None

    return read


def path_argument(metavar: str, says: str) -> Any:
    """Return an argument that names a file or folder."""
    return typer.Argument(parser=read_path, metavar=metavar, help=says)


def path_option(metavar: str, says: str, *names: str) -> Any:
    """Return an option that names a file or folder."""
    return typer.Option(*names, parser=read_path, metavar=metavar, help=says)


def number_option(says: str) -> Any:
    """Return an option that takes a whole number."""
    return typer.Option(parser=whole_number, metavar="N", help=says)


def name_option(names: Callable[[Any], Iterable[str]], says: str, *flags: str) -> Any:
    """Return an option that takes a name, which the shell can complete from `names`."""
    return typer.Option(*flags, metavar="NAME", autocompletion=names, help=says)


def choice_option(metavar: str, choices: type[Choice], says: str, *names: str) -> Any:
    """Return an option that takes one of the values of an enumeration."""
    return typer.Option(*names, parser=one_of(choices), metavar=metavar, help=says)


def refuse_beside_json(as_json: bool, **options: object) -> None:
    """Refuse options that would have no effect beside --json. A value of None means that the option is not given."""
    for name, value in options.items():
        if as_json and value is not None:
            raise InputError(f"--json prints nothing but JSON to standard output; leave out --{name.replace('_', '-')}")


def refuse_without_effect(on: str, **options: object) -> None:
    """Refuse options that have no effect on something. A value of None means that the option is not given."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} has no effect on {on}; leave it out")


Unit = Annotated[
    str | None,
    name_option(
        argument_completion.attributes,
        "The column that identifies the protected units, such as persons. By default each row is a unit.",
    ),
]
RowsPerUnit = Annotated[
    int, typer.Option(parser=whole_number, metavar="K", help="Keep at most this many rows of each unit.")
]
NewFolder = path_option("FOLDER", "A new folder for results.json, plan.json and report.html.", "--out")
Subject = Annotated[Path, path_argument("STUDY", "A study file (.toml), or a plan (.json) that 'plan' or 'run' wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON for machines, and nothing else, to standard output.")]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        parser=_seed,
        metavar="N",
        help="Make the draws reproducible, for experiments. The results are marked NOT PRIVATE.",
    ),
]


@functools.cache
def console(*, stderr: bool = False) -> Console:
    """Return the console of a stream. The console of a pipe has no colours and is wide enough for tables."""
    from dpframework.cli.escaping_console import Screen

    found = Screen(stderr=stderr, highlight=False)
    return found if found.is_terminal else Screen(stderr=stderr, highlight=False, width=PIPE_WIDTH)


def on_terminal(*, stderr: bool = False) -> bool:
    """Tell whether a stream is a terminal. To save time, rich is loaded only if the answer may be yes."""
    forced = any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))
    stream = sys.stderr if stderr else sys.stdout
    return (forced or (stream is not None and stream.isatty())) and console(stderr=stderr).is_terminal


def plain_table(*heads: str) -> Table:
    """Return an empty table without ruled lines, with these heads."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in heads:
        table.add_column(head)
    return table


def show_lines(lines: RenderableType) -> None:
    """Print lines unchanged, since they were made to fit the terminal."""
    console().print(lines, no_wrap=True, overflow="ignore", crop=False)


def say(sentence: str) -> None:
    """Write one line to standard error. Control characters in it are shown and cannot act on the terminal."""
    # If standard error was closed, `print` would write to standard output.
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # nobody reads standard error any more
            print(printable(" ".join(sentence.split())), file=sys.stderr)


def write(text: str = "", end: str = "\n") -> None:
    """Write lines to standard output. Control characters in them are shown and cannot act on the terminal."""
    print(printable_lines(text), end=end)


def print_json(form: Any) -> None:
    """Write JSON to standard output."""
    print(json_text(form))


def print_page(page: str) -> None:
    """Write an HTML page to standard output.

    If the encoding of standard output is not UTF-8, characters outside ASCII are written as character references.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    known = codecs.lookup(encoding).name == "utf-8"
    print(page if known else page.encode("ascii", "xmlcharrefreplace").decode("ascii"), end="")


def warn_of_problems(*, of_all: bool = False) -> None:
    """Warn of each plugin problem that was found so far. With `of_all`, import all plugins to find every problem."""
    for problem in registry().checked() if of_all else registry().problems:
        say(f"warning: {problem}")


EngineName = Annotated[
    str | None,
    name_option(
        argument_completion.engines,
        "The engine that evaluates counts: memory, threads, mapped, duckdb, postgres, dask, or a plugin's. "
        "By default the study's.",
        "--engine",
    ),
]

SamplersName = Annotated[
    str,
    typer.Option(
        "--samplers",
        metavar="NAME",
        help="The library that draws the noise: arrays (dpframework's own samplers) or opendp. Both draw exactly.",
    ),
]


VerifiedFile = Annotated[
    Path | None,
    path_option(
        "FILE",
        "A file that 'verify --record' wrote. It says which code of miners and mechanisms was verified.",
        "--verified",
    ),
]


def engine_of(file: StudyFile, name: str | None) -> Engine:
    """Return the engine of this name, or the study file's engine if no name is given.

    Raises
    ------
    InputError
        If there is no such engine, or if it cannot be made with the study file's options.
    """
    if name is not None:
        return EngineChoice(name).make()
    with prefix_errors(f"{file.source}: "):
        return file.engine.make()


AboutRows = Annotated[
    int | None,
    typer.Option(
        "--rows",
        parser=whole_number,
        metavar="N",
        help="About how many rows the table has, to compare errors with. The number must be public. By default the "
        "schema's about_rows or rows.",
    ),
]


def open_plan(
    path: Path, engine: str | None = None, verified: Path | None = None, rows: int | None = None
) -> StudyPlan:
    """Return the plan of a study file for an engine, or a plan that `run` or `plan --format json` wrote.

    `verified` is a file that `verify --record` wrote. The plan then also says which code was verified. With `rows`, the
    plan states its errors for a table of about that many rows.

    Raises
    ------
    InputError
        If the file is neither a study file nor a plan, if an engine is given for a plan, or if there is no such engine.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; a study file (.toml) or a plan (.json) is expected")
    if path.suffix == ".json":
        refuse_without_effect(f"{path}, a plan that was made for an engine", engine=engine)
        plan = StudyPlan.from_json(read_text(path), source=str(path))
    else:
        file = load_study(path)
        with prefix_errors(f"{path}: "):
            plan = file.study.plan(engine_of(file, engine))
    plan = plan.with_rows(rows)
    if verified is None:
        return plan
    from dpframework.plan.verification_records_file import VerificationRecords

    return plan.with_verified(VerificationRecords.load(verified))
