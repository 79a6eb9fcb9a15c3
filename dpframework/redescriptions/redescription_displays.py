"""Ways to show redescriptions: a table as text or HTML, a data frame, lines of CSV, and two plots."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from dpframework.facts.notebook_html import html_line, html_table
from dpframework.facts.output_formats_times_and_csv import csv_text
from dpframework.facts.output_overwrite_rule import FileKind
from dpframework.redescriptions.redescription import Redescription
from dpframework.redescriptions.shorter_description_text import sentence

if TYPE_CHECKING:
    import polars as pl

#: A redescription, whether it is starred, and how many others with the same attributes have no line of their own.
Finding: TypeAlias = "tuple[Redescription, bool, int]"
#: Options of a new figure of bars.
FIGURE = {"figsize": (11, 6), "layout": "constrained"}

SHOWN = 50  # the most rows of a table; with more redescriptions, those about the same attributes share a row
_WIDTH = 100  # characters of a table's line; descriptions are wrapped to the space that numbers leave
_NARROW = 16  # the fewest characters of a line of a description
_BARS = 12  # the most redescriptions in a plot of bars
_BAR_LABEL = 56  # the most characters of a description beside a bar
_BAR_HEIGHT = 0.36  # the height of a bar; a pair of bars takes 1
_LIGHT, _DARK = (
    ("#9fc5e8", "#f9cb9c"),
    ("#0b5394", "#b45f06"),
)  # each pair: the colours for left and right, which differ in lightness, too
_OPEN = {"marker": "D", "color": "0.55", "markerfacecolor": "none", "ecolor": "0.8", "label": "not trusted"}
_FILLED = {"marker": "o", "color": "#0b5394", "label": "trusted"}
_HEADINGS = ("left", "right", "Jaccard", "support", "sides", "lift", "p-value", "")
_LEGEND = (
    "Brackets: 95 % intervals, from the noise alone. Sides: the rows of the left side, above those of the\n"
    "right side. Lift: the rows of both sides, divided by those expected of independent sides.\n"
    "*: in spite of the noise, the p-value is at most 0.01, the supports are within their bounds, and the\n"
    "exact Jaccard index is at least half of the one shown (with 95 % confidence in all stars together;\n"
    "{candidates} candidates were looked at)."
)
_COLUMNS = (
    *("left", "right", "jaccard", "jaccard_low", "jaccard_high", "support", "support_low", "support_high"),
    *("left_support", "right_support", "rows", "lift", "p_value", "trusted"),
)
#: The files that `Redescriptions.to_csv` writes.
CSV_FILE = FileKind.of_pattern("a list of redescriptions", r'^"left","right","jaccard",')


def table(findings: Sequence[Finding], candidates: int) -> str:
    """Draw a table of the first `SHOWN` findings, with long descriptions wrapped."""
    shown = [_cells(*finding) for finding in findings[:SHOWN]]
    # The descriptions are wrapped to the width that the numbers leave. A cell of numbers may have two lines.
    rows = [_HEADINGS, *shown]
    numbers = [[cell.splitlines() or [""] for cell in row[2:]] for row in rows]
    taken = sum(2 + max(len(line) for row in numbers for line in row[k]) for k in range(len(_HEADINGS) - 2))
    width = max((_WIDTH - taken - 2) // 2, _NARROW)
    descriptions = [[textwrap.wrap(cell, width) for cell in row[:2]] for row in rows]
    wrapped = [first + rest for first, rest in zip(descriptions, numbers, strict=True)]
    widths = [max(len(line) for row in wrapped for line in row[k]) for k in range(len(_HEADINGS))]
    printed = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for row in wrapped
        for line in itertools.zip_longest(*row, fillvalue="")
    ]
    return "\n".join([*printed, *_rest(findings, "to_csv and to_json"), _LEGEND.format(candidates=candidates)])


def html(findings: Sequence[Finding], candidates: int) -> str:
    """Return a table of the first `SHOWN` findings as HTML."""
    shown = [_cells(*finding) for finding in findings[:SHOWN]]
    rows = [[" ".join(cell.split("\n")) for cell in row] for row in shown]
    legend = " ".join(_LEGEND.format(candidates=candidates).split("\n"))
    told = [
        *_rest(findings, "to_frame, to_csv and to_json"),
        legend.replace("above those of the right side", "then those of the right side"),
    ]
    return html_table((*_HEADINGS[:-1], "trusted"), rows) + "".join(map(html_line, told))


def _rest(findings: Sequence[Finding], where: str) -> list[str]:
    """Return sentences about redescriptions that have no line of their own."""
    told = []
    if len(findings) > SHOWN:
        number = sum(1 + others for _, _, others in findings[SHOWN:])
        told.append(f"and {number} more, in {where}")
    if any(others for _, _, others in findings[:SHOWN]):
        told.append(
            f"+n: n others are about the same attributes; {where} list them, and the attribute `findings` groups them"
        )
    return told


def frame(items: Sequence[Redescription], trusted: Sequence[bool]) -> pl.DataFrame:
    """Return a data frame with one row for each redescription, null where a number is unknown."""
    import polars as pl

    kinds = dict.fromkeys(_COLUMNS, pl.Float64) | {"left": pl.String, "right": pl.String, "trusted": pl.Boolean}
    rows = [
        [None if field == "" else field for field in _fields(item, mark)[:-1]] + [mark]
        for item, mark in zip(items, trusted, strict=True)
    ]
    return pl.DataFrame(rows, schema=kinds, orient="row")


def lines(items: Sequence[Redescription], trusted: Sequence[bool]) -> str:
    """Write one line of CSV for each redescription."""
    return csv_text(_COLUMNS, (_fields(item, mark) for item, mark in zip(items, trusted, strict=True)), quoted=True)


def draw(items: Sequence[Redescription], trusted: Sequence[bool], least: float, axes: Any) -> None:
    """Draw the noisy Jaccard index against the noisy support, with a line at the `least` support that is not pruned."""
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
        axes.axvline(least, color="0.4", linestyle="--", linewidth=1, label="pruned left of this line")
        axes.legend()
    axes.set(xlabel="noisy support (rows)", ylabel="noisy Jaccard index", ylim=(-0.03, 1.03))


def draw_bars(items: Sequence[Redescription], trusted: Sequence[bool], axes: Any) -> None:
    """Draw a pair of bars for each redescription (see `Redescriptions.draw`), the first on top."""
    shown = items[:_BARS]
    ends = [_pair(item, place, axes) for place, item in enumerate(shown)]
    most = max(ends, default=0.0) or 1.0
    for place, (item, mark, end) in enumerate(zip(shown, trusted, ends, strict=False)):
        axes.text(end + 0.01 * most, place, f"{item.jaccard:.2f}{' *' if mark else ''}", va="center", fontsize=9)
    places = [place + side * _BAR_HEIGHT / 2 for place in range(len(shown)) for side in (-1, 1)]
    descriptions = [sentence(side) for item in shown for side in (item.left, item.right)]
    shortened = [textwrap.shorten(text, _BAR_LABEL, placeholder=" …") for text in descriptions]
    # matplotlib would set the text between two dollar signs as a formula
    axes.set_yticks(places, [text.replace("$", r"\$") for text in shortened], fontsize=8)
    for label, of_left in zip(axes.get_yticklabels(), [True, False] * len(shown), strict=True):
        label.set_color(_DARK[0 if of_left else 1])
    axes.set_xlim(0, 1.15 * most)
    axes.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    axes.spines[["top", "right"]].set_visible(False)
    more = f"; the first {_BARS} of {len(items)}" if len(items) > _BARS else ""
    axes.set_xlabel(f"noisy number of rows (dark: both descriptions hold){more}")
    axes.set_title("noisy Jaccard index beside the bars; *: trusted", fontsize=9, loc="right")


def _pair(item: Redescription, place: int, axes: Any) -> float:
    """Draw one pair of bars, and return the number of rows at its right end."""
    both = max(item.both.value, 0.0)
    low, high = item.support_interval()
    ends = [max(high, both)]
    for k, support in enumerate((item.left_support, item.right_support)):
        height = place + (k - 0.5) * _BAR_HEIGHT
        if support is not None:
            ends.append(max(support.value, both))
            axes.barh(height, ends[-1], _BAR_HEIGHT, color=_LIGHT[k])
        axes.barh(height, both, _BAR_HEIGHT, color=_DARK[k])
    arms = [[max(both - low, 0.0)], [max(high - both, 0.0)]]
    axes.errorbar([both], [place], xerr=arms, color="0.2", elinewidth=1, capsize=3)
    return float(max(ends))


def _cells(item: Redescription, trusted: bool, others: int) -> tuple[str, ...]:
    low, high = item.jaccard_interval()
    least, most = item.support_interval()
    p, sides = item.p_value, "-"
    if item.left_support is not None and item.right_support is not None:
        # the left support above the right one; neither is shown below the support of both sides
        both = max(item.both.value, 0.0)
        sides = f"{max(item.left_support.value, both):.0f}\n{max(item.right_support.value, both):.0f}"
    return (
        sentence(item.left),
        sentence(item.right),
        f"{item.jaccard:.2f}\n[{low:.2f}, {high:.2f}]",
        f"{max(item.both.value, 0):.0f}\n[{math.floor(least)}, {math.ceil(most)}]",
        sides,
        "-" if item.lift is None else f"{item.lift:.1f}",
        "-" if p is None else f"{p:.1e}" if p >= 1e-99 else "<1e-99",  # an underflow is not 0
        " ".join(["*"] * trusted + [f"+{others}"] * bool(others)),
    )


def _fields(item: Redescription, trusted: bool) -> tuple[object, ...]:
    """Return the fields of a line of CSV. A field is empty if its number is unknown."""
    supports = (item.left_support, item.right_support, item.rows)
    return (
        *(sentence(item.left), sentence(item.right), item.jaccard, *item.jaccard_interval()),
        *(item.both.value, *item.support_interval()),
        *("" if count is None else count.value for count in supports),
        *("" if number is None else number for number in (item.lift, item.p_value)),
        str(trusted).lower(),
    )


def _arms(centres: Sequence[float], intervals: Sequence[tuple[float, float]]) -> list[list[float]]:
    below = [centre - low for centre, (low, _) in zip(centres, intervals, strict=True)]
    above = [high - centre for centre, (_, high) in zip(centres, intervals, strict=True)]
    return [below, above]
