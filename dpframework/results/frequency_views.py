"""Show frequencies as a text table or as a plot."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpframework.results.noisy_counts import Noisy
from dpframework.results.table_text import TextTable

if TYPE_CHECKING:
    from dpframework.results.frequencies import Frequencies

_SHOWN = 50  # the largest number of rows of a printed table
_COLUMNS = 8  # the largest number of columns of a cross table; with more labels each cell has its own row


def table(found: Frequencies) -> TextTable:
    """Return a table of the counts, with a legend below it."""
    *outer, across = found.labels
    rows: list[Sequence[str]]
    if outer and len(across) <= _COLUMNS:
        rows = [(*found.names[:-1], *across, "all")]
        by_row = found.counts.reshape(-1, len(across))
        for labels, counts in zip(itertools.product(*outer), by_row, strict=True):
            rows.append((*labels, *(f"{count:.0f}" for count in counts), f"{counts.sum():.0f}"))
        down = by_row.sum(axis=0)
        rows.append(("all", *[""] * (len(outer) - 1), *(f"{count:.0f}" for count in down), f"{down.sum():.0f}"))
        sums = [_reach(found.variance_of_sum(len(cells))) for cells in (across, by_row)]
        total = f"within ±{_reach(found.total.variance)}" if found.total.variance else "exact"
        legend = (
            f"Columns: {found.names[-1]}. With 95 % probability each count is within ±{_reach(found.variance)} of the "
            "exact one, from the noise alone; 'all' adds up cells, each sum of a row within "
            f"±{sums[0]}, of a column within ±{sums[1]}, the total {total}."
        )
    else:
        rows = [(*found.names, "count", "95 %")]
        for labels, count, low, high in found.cells():
            rows.append((*labels, f"{count:.0f}", f"[{math.floor(low)}, {math.ceil(high)}]"))
        legend = f"Brackets: 95 % intervals, from the noise alone. The sum of all cells is {found.total}."
    return TextTable(rows[0], rows[1 : _SHOWN + 1], len(rows) - _SHOWN - 1, legend)


def _reach(variance: float) -> int:
    return math.ceil(Noisy.margin_of(variance))


def draw(found: Frequencies, axes: Any) -> None:
    """Draw one attribute as bars with intervals, or several attributes as a map of cells."""
    if len(found.names) == 1:
        places = range(len(found.labels[0]))
        counts = found.counts.tolist()
        below = [max(count - low, 0.0) for _, count, low, _ in found.cells()]
        above = [high - count for _, count, _, high in found.cells()]
        axes.barh(places, counts, xerr=[below, above], color="#0b5394", ecolor="0.5")
        axes.set_yticks(places, found.labels[0])
        axes.invert_yaxis()
        axes.set(xlabel="noisy count (rows)", ylabel=found.names[0])
        return
    *outer, across = found.labels
    rows = [", ".join(labels) for labels in itertools.product(*outer)]
    drawn = axes.imshow(found.counts.reshape(len(rows), len(across)), aspect="auto", cmap="Blues")
    axes.set_xticks(range(len(across)), across, rotation=45, ha="right")
    axes.set_yticks(range(len(rows)), rows)
    axes.set(xlabel=found.names[-1], ylabel=", ".join(found.names[:-1]))
    axes.figure.colorbar(drawn, ax=axes, label="noisy count (rows)")
