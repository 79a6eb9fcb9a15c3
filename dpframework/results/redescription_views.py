"""Views of redescriptions, a table of text, lines of CSV and a plot."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence
from typing import Any

from dpframework.facts.output_text import csv_text
from dpframework.facts.outputs import FileKind
from dpframework.results.redescription import Redescription

_SHOWN = 50  # rows of a printed table
_WIDTH = 100  # of the table: descriptions share what numbers leave, and are wrapped
_NARROW = 16  # of a description, at least
_OPEN = {"marker": "D", "color": "0.55", "markerfacecolor": "none", "ecolor": "0.8", "label": "not trusted"}
_FILLED = {"marker": "o", "color": "#0b5394", "label": "trusted"}
_HEADINGS = ("left", "right", "Jaccard", "support", "sides", "lift", "p-value", "")
_LEGEND = (
    "Brackets: 95 % intervals, from the noise alone. Sides: the rows of the left one, above those of the\n"
    "right one. Lift: rows in both, over those of independent sides.\n"
    "*: beyond the noise, significant (p up to 0.01), within its supports and no tautology, and the exact\n"
    "Jaccard index at least half of the one shown (with 95 % confidence in all marks; {candidates}\n"
    "candidates were looked at)."
)
_COLUMNS = (
    *("left", "right", "jaccard", "jaccard_low", "jaccard_high", "support", "support_low", "support_high"),
    *("left_support", "right_support", "rows", "lift", "p_value", "trusted"),
)
#: The files that `Redescriptions.to_csv` writes.
CSV_FILE = FileKind.of_pattern("a list of redescriptions", r'^"left","right","jaccard",')


def table(items: Sequence[Redescription], trusted: Sequence[bool], candidates: int) -> str:
    """Draw a table with long descriptions wrapped, of the first redescriptions only if there are many."""
    shown = [_cells(item, mark) for item, mark in zip(items, trusted, strict=True)][:_SHOWN]
    lines = _aligned([_HEADINGS, *shown])
    if len(items) > _SHOWN:
        lines.append(f"and {len(items) - _SHOWN} more, in to_csv and to_json")
    return "\n".join([*lines, _LEGEND.format(candidates=candidates)])


def lines(items: Sequence[Redescription], trusted: Sequence[bool]) -> str:
    """Write one line a redescription."""
    return csv_text(_COLUMNS, (_fields(item, mark) for item, mark in zip(items, trusted, strict=True)), quoted=True)


def draw(items: Sequence[Redescription], trusted: Sequence[bool], least: float, axes: Any) -> None:
    """Draw noisy Jaccard index against noisy support (see `Redescriptions.draw`), pruned below the `least` support."""
    for wanted, style in ((False, _OPEN), (True, _FILLED)):
        some = [item for item, mark in zip(items, trusted, strict=True) if mark is wanted]
        if some:
            x, y = [item.both.value for item in some], [item.jaccard for item in some]
            axes.errorbar(
                x,
                y,
                xerr=_arms(x, [item.both.interval() for item in some]),
                yerr=_arms(y, [item.jaccard_interval() for item in some]),
                linestyle="none",
                elinewidth=0.6,
                markersize=5,
                **style,
            )
    if items:
        axes.axvline(least, color="0.4", linestyle="--", linewidth=1, label="left of it: pruned")
        axes.legend()
    axes.set(xlabel="noisy support (rows)", ylabel="noisy Jaccard index", ylim=(-0.03, 1.03))


def _cells(item: Redescription, trusted: bool) -> tuple[str, ...]:
    low, high = item.jaccard_interval()
    least, most = item.support_interval()
    return (
        str(item.left),
        str(item.right),
        f"{item.jaccard:.2f}\n[{low:.2f}, {high:.2f}]",
        f"{max(item.both.value, 0):.0f}\n[{math.floor(least)}, {math.ceil(most)}]",
        _sides_text(item),
        "-" if item.lift is None else f"{item.lift:.1f}",
        _p_text(item.p_value),
        "*" if trusted else "",
    )


def _sides_text(item: Redescription) -> str:
    """Write the supports of either side, the left one above, never negative and never below the support of both."""
    if item.left_support is None or item.right_support is None:
        return "-"
    both = max(item.both.value, 0.0)
    return f"{max(item.left_support.value, both):.0f}\n{max(item.right_support.value, both):.0f}"


def _p_text(p: float | None) -> str:
    if p is None:
        return "-"
    return f"{p:.1e}" if p >= 1e-99 else "<1e-99"  # an underflow is not 0


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the columns. The cells of the first two are wrapped, the others may have two lines."""
    numbers = [[cell.splitlines() or [""] for cell in row[2:]] for row in rows]
    taken = sum(2 + max(len(line) for row in numbers for line in row[k]) for k in range(len(_HEADINGS) - 2))
    width = max((_WIDTH - taken - 2) // 2, _NARROW)
    descriptions = [[textwrap.wrap(cell, width) for cell in row[:2]] for row in rows]
    wrapped = [first + rest for first, rest in zip(descriptions, numbers, strict=True)]
    widths = [max(len(line) for row in wrapped for line in row[k]) for k in range(len(_HEADINGS))]
    return [
        "  ".join(line.ljust(width) for line, width in zip(lines, widths, strict=True)).rstrip()
        for row in wrapped
        for lines in itertools.zip_longest(*row, fillvalue="")
    ]


def _fields(item: Redescription, trusted: bool) -> tuple[object, ...]:
    """Return the fields of a line of CSV, empty where unknown."""
    supports = (item.left_support, item.right_support, item.rows)
    return (
        *(str(item.left), str(item.right), item.jaccard, *item.jaccard_interval()),
        *(item.both.value, *item.support_interval()),
        *("" if count is None else count.value for count in supports),
        *("" if number is None else number for number in (item.lift, item.p_value)),
        str(trusted).lower(),
    )


def _arms(centres: Sequence[float], intervals: Sequence[tuple[float, float]]) -> list[list[float]]:
    below = [centre - low for centre, (low, _) in zip(centres, intervals, strict=True)]
    above = [high - centre for centre, (_, high) in zip(centres, intervals, strict=True)]
    return [below, above]
