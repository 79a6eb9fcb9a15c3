"""Summaries of an experiment as tables in Markdown and CSV, plots, and the page that shows them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.control_character_escapes import printable
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.files import write_whole
from dpframework.facts.output_formats_times_and_csv import csv_text
from dpframework.facts.output_overwrite_rule import IN_OWN_FOLDER
from dpframework.facts.phrases import count_text
from dpframework.facts.privacy_losses import decimal_text
from dpframework.lab.experiment.cell_group_spreads import SECONDS, GroupSpread, groups_of
from dpframework.lab.experiment.experiment_contents_and_grid import Experiment, Summary, canonical
from dpframework.lab.experiment.job import FailedCell, FinishedCell
from dpframework.lab.experiment.plots import png
from dpframework.lab.experiment.results_table import results_frame, text_of, write_results
from dpframework.lab.experiment.spread_statistics import Spread
from dpframework.version import __version__

NOT_PRIVATE = (
    "Non-private evaluation: every run was seeded, and its results were measured against the rows. "
    "Where the data is confidential, these numbers are too."
)


@final
@attrs.frozen
class Report:
    """The summaries of the finished cells.

    Attributes
    ----------
    groups
        The groups of each table and plot, by the kind and the name of the summary.
    tables
        Each table as text, by the table's name.
    files
        The names of the files that were written.
    """

    groups: Mapping[tuple[str, str], tuple[GroupSpread, ...]]
    tables: Mapping[str, str]
    files: tuple[str, ...]


def write_summaries(
    experiment: Experiment, finished: Sequence[FinishedCell], failed: Sequence[FailedCell], folder: Path
) -> Report:
    """Write the results and summaries of the finished cells into a folder.

    Raises
    ------
    InputError
        If a file cannot be written. Also if all cells are finished, and a summary shows a value that no measure gave.
        In this case the results have been written.
    """
    write_results(folder, results_frame(experiment, finished))
    known = {SECONDS}.union(*(one.values for one in finished))
    complete = finished and not failed  # A failed cell might have given the missing value.
    for summary in experiment.summaries if complete else ():
        missing = [value for value in summary.values if value not in known]
        if missing:
            raise InputError(
                f"{experiment.source}: {summary.kind} '{summary.name}': no measure gave '{missing[0]}'; "
                f"{nearest(missing[0], known)}"
            )
    files = ["results.parquet", "times.parquet"]
    groups = {(s.kind, s.name): tuple(groups_of(experiment, s, finished)) for s in experiment.summaries}
    tables = {}
    for summary in experiment.tables:
        found = groups[summary.kind, summary.name]
        tables[summary.name] = markdown_table(summary, found)
        files.append(f"table-{summary.name}.csv")
        # The CSV file has one line for each group, with all statistics.
        names = [*summary.by, "value", *(field.name for field in attrs.fields(Spread))]
        forms = [group.to_dict() for group in found]
        text = csv_text(names, ([form.get(name, "") for name in names] for form in forms))
        write_whole(folder / files[-1], text, IN_OWN_FOLDER)
    for summary in experiment.plots:
        files.append(f"plot-{summary.name}.png")
        write_whole(folder / files[-1], png(summary, groups[summary.kind, summary.name]), IN_OWN_FOLDER)
    files.append("summary.md")
    page = _page(experiment, tables, len(finished), failed)
    write_whole(folder / files[-1], page, IN_OWN_FOLDER)
    return Report(groups, tables, tuple(files))


def _page(experiment: Experiment, tables: Mapping[str, str], finished: int, failed: Sequence[FailedCell]) -> str:
    """Return the page that shows all tables and plots."""
    total = finished + len(failed)
    parts = [f"# {printable(experiment.title)}", NOT_PRIVATE]
    parts.append(
        f"From {printable(experiment.source.name)} with seed {experiment.seed}, {sample_note(experiment)}, "
        f"{experiment.relation} neighbours, dpframework {__version__}; {finished} of {total} cells."
    )
    for summary in experiment.tables:
        shown_value = summary.values[0] if len(summary.values) == 1 else "each value"
        parts += [f"## {printable(summary.title)}", f"{shown_value}: {STATISTIC_NOTES[summary.statistic]}."]
        parts.append(tables[summary.name])
    for summary in experiment.plots:
        parts += [f"## {printable(summary.title)}", f"![{printable(summary.title)}](plot-{summary.name}.png)"]
    if failed:
        parts += ["## Cells that failed", "\n".join(f"- {printable(line)}" for line in failures(failed))]
    return "\n\n".join(parts) + "\n"


def markdown_table(summary: Summary, groups: Sequence[GroupSpread]) -> str:
    """Return a table's groups laid out by rows and columns, as aligned Markdown."""
    rows: dict[str, tuple[Any, ...]] = {}
    columns: dict[str, str] = {}
    cells: dict[tuple[str, str], str] = {}
    several = len(summary.values) > 1 or not summary.columns
    for group in groups:
        row = tuple(group.coordinates[key] for key in summary.rows)
        column = [(key, group.coordinates[key]) for key in summary.columns]
        heading = ", ".join(f"no {key}" if value is None else f"{key} {text_of(value)}" for key, value in column)
        if several:
            heading = f"{heading}: {group.value}" if heading else group.value
        at_row, at_column = canonical(row), canonical([[value is None, key] for key, value in column]) + heading
        rows[at_row] = row
        columns.setdefault(at_column, heading)
        cells[at_row, at_column] = write_statistic(group.spread, summary.statistic)
    lines = [[*summary.rows, *columns.values()]]
    for at, row in rows.items():
        named = ["none" if value is None else text_of(value) for value in row]
        lines.append([*named, *(cells.get((at, column), "") for column in columns)])
    escaped = [[printable(cell).replace("|", "\\|") for cell in line] for line in lines]
    widths = [max(len(line[k]) for line in escaped) for k in range(len(escaped[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in escaped]
    padded.insert(1, ["-" * width for width in widths])  # the line below the headings
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def write_statistic(spread: Spread, statistic: str) -> str:
    """Write a statistic with four digits, and half the width of a mean's interval with two.

    Examples
    --------
    >>> write_statistic(Spread.of([0.5, 0.7]), "mean"), write_statistic(Spread.of([0.5]), "mean")
    ('0.6 ± 1.3', '0.5')
    """
    middle, low, high = spread.estimate(statistic)
    if math.isnan(low):
        return f"{middle:.4g}"
    return f"{middle:.4g} ± {high - middle:.2g}" if statistic == "mean" else f"{middle:.4g} ({low:.4g}, {high:.4g})"


#: What a table shows for each statistic, in words.
STATISTIC_NOTES = {
    "mean": "mean ± half of its 95 % confidence interval (Student)",
    "median": "median (its 95 % confidence interval between order statistics)",
    "quartiles": "median (quartiles)",
}


def sample_note(experiment: Experiment) -> str:
    """Say over how many repetitions and folds the values of a group are taken."""
    if experiment.repetitions == 1 and not experiment.repetitions_at:
        return "1 repetition" if experiment.folds is None else f"over the {experiment.folds} folds of 1 repetition"
    folds = "" if experiment.folds is None else f", each the average of {experiment.folds} folds"
    own = (f"{number} at epsilon {decimal_text(epsilon)}" for epsilon, number in experiment.repetitions_at.items())
    others = f" ({', '.join(own)})" if experiment.repetitions_at else ""
    return f"over {experiment.repetitions} repetitions{others}{folds}"


def failures(failed: Iterable[FailedCell]) -> list[str]:
    """Return one line for each reason of failures, with the first cell that failed for it and the number of others."""
    by_reason: dict[str, list[FailedCell]] = {}
    for one in failed:
        by_reason.setdefault(one.reason, []).append(one)
    return [
        f"{cells[0].cell}: {reason}"
        + (f" (and in {count_text(len(cells) - 1, 'other cell')})" if len(cells) > 1 else "")
        for reason, cells in by_reason.items()
    ]
