"""Tables that a script makes from an experiment's results, all computed before the first is written."""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

from dpframework.facts.errors import first_line

#: Makes the tables by name from what the command was given.
Maker = Callable[[Path], Mapping[str, pl.DataFrame]]


def tables_command(
    description: str, make: Maker, folder: Path, fill_page: Callable[[], None], given: list[str] | None = None
) -> None:
    """Run the command of a script that makes tables: print them, or write them where it is asked to.

    Parameters
    ----------
    description
        The script's docstring.
    make
        Makes all tables from the path that the command is given.
    folder
        The folder of the committed tables. They are touched with `--commit` only.
    fill_page
        Puts the committed tables on their page.
    given
        The arguments; by default those of the command line.

    If the results are missing or others, or have too few repetitions for a table, it says so, writes nothing, and ends
    with exit code 2.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="what the experiment wrote")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, metavar="FOLDER", help="write the tables there; by default they are printed")
    where.add_argument("--commit", action="store_true", help=f"write them into {folder.name}/ and on the page")
    asked = parser.parse_args(given)
    try:
        tables = make(asked.results)
    except (OSError, pl.exceptions.ComputeError, pl.exceptions.ColumnNotFoundError) as error:
        why = first_line(error)
        parser.exit(2, f"error: '{asked.results}' holds no results of the experiment, so nothing was written: {why}\n")
    for name, table in tables.items():
        if table.is_empty() or not table.width:
            parser.exit(2, f"error: too few repetitions for {name}.csv, so nothing was written; repeat more often\n")
    out = folder if asked.commit else asked.out
    if out is None:
        for name, table in tables.items():
            print(f"{name}.csv\n{table.write_csv()}")
        return
    out.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.write_csv(out / f"{name}.csv")
    if asked.commit:
        fill_page()


def asked_runs(description: str, runs: int, needs: str, given: list[str] | None = None) -> argparse.Namespace:
    """Return the arguments of a script that computes its tables itself: how many runs, and where tables are written.

    Parameters
    ----------
    description
        The script's docstring.
    runs
        The number of runs by default.
    needs
        What the folder of data must hold.
    given
        The arguments; by default those of the command line.

    Without DPFRAMEWORK_DATA it says so, and ends with exit code 2.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, help="a folder")
    where.add_argument("--commit", action="store_true", help="replace the committed tables")
    asked = parser.parse_args(given)
    if "DPFRAMEWORK_DATA" not in os.environ:
        parser.error(f"set DPFRAMEWORK_DATA to the folder that holds {needs}")
    return asked


def on_page(page: str, name: str, text: str) -> str:
    """Return a page with a table, given as CSV, below the comment `<!-- NAME -->`."""
    table = list(csv.reader(io.StringIO(text)))
    shown = "\n".join("| " + " | ".join(line) + " |" for line in (table[0], ["---"] * len(table[0]), *table[1:]))
    return re.sub(rf"(<!-- {re.escape(name)} -->)\n(?:\n(?:\|.*\n)+)?", rf"\1\n\n{shown}\n", page)


def write_tables(
    tables: Mapping[str, pl.DataFrame],
    pictures: Mapping[str, Callable[[Path], None]],
    out: Path | None,
    commit: bool,
    folder: Path,
) -> None:
    """Print tables that have been computed, or write them.

    Parameters
    ----------
    tables
        By name.
    pictures
        Functions that draw a picture into a file, by its name. Pictures are not printed.
    out
        A folder, which is made.
    commit
        Whether to write into the committed results, and onto the page, below a comment with the name of each table.
    folder
        The experiment's, whose page is beside it.
    """
    place = folder / "results" if commit else out
    texts = {name: table.write_csv() for name, table in tables.items()}
    if place is None:
        for name, text in texts.items():
            print(f"{name}.csv\n{text}")
        return
    place.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (place / f"{name}.csv").write_text(text, encoding="utf-8")
    for name, draw in pictures.items():
        draw(place / name)
    if commit:
        page = folder.with_suffix(".md")
        for name, text in texts.items():
            page.write_text(on_page(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")
