"""Plots of an experiment: panels with lines, and bands around the lines.

The experiment's file names the coordinates by which cells are divided into panels, and into the lines of a panel.
"""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpframework.lab.experiment.cell_group_spreads import GroupSpread
from dpframework.lab.experiment.experiment_contents_and_grid import Summary, canonical
from dpframework.lab.experiment.results_table import text_of
from dpframework.results.result import without_math

ACROSS = 3
"""The most panels next to each other."""
PANEL = (4.2, 3.3)
"""The width and height of a panel in inches."""
TITLE_LINE, LEGEND_LINE = 0.22, 0.17
"""The height of a line of the title and of the legend in inches."""
LINE = 42
"""The most characters of a line above a panel. For the title, multiply this by the number of panels in a row."""
DPI = 90
TICKS = 7
"""If the horizontal axis has at most this many values, each has a tick of its own."""
MARKERS = "osD^vP*X"
BAND = {
    "mean": "bands: 95 % confidence of the mean",
    "median": "bands: 95 % confidence of the median",
    "quartiles": "bands: from the first to the third quartile",
}


def png(summary: Summary, groups: Sequence[GroupSpread]) -> bytes:
    """Draw a plot, and return it as a PNG file. Equal groups give the same bytes."""
    from matplotlib.figure import Figure

    panels = _panels(groups, summary.columns)
    across = min(ACROSS, max(len(panels), 1))
    down = math.ceil(len(panels) / across) or 1
    styles = {key: k for k, key in enumerate(_group_by(groups, summary.rows))}
    title = textwrap.wrap(summary.title, LINE * across)
    around = TITLE_LINE * len(title) + LEGEND_LINE * (2 + math.ceil(len(styles) / across))
    figure = Figure(figsize=(PANEL[0] * across, PANEL[1] * down + around), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, sharey=True).flatten()
    handles: dict[str, Any] = {}
    for axis, members in zip(axes, panels, strict=False):
        _draw(axis, summary, members, styles, handles)
        axis.set_title(textwrap.fill(_label(members[0], summary.columns), LINE), fontsize=10)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    figure.suptitle("\n".join(title))
    note = f"non-private evaluation; {BAND[summary.statistic]}"
    figure.legend(
        handles.values(),
        handles.keys(),
        title=note,
        loc="outside lower center",
        ncols=across,
        fontsize=8,
        title_fontsize=8,
        frameon=False,
    )
    # A file of 256 colours is four times smaller, and looks the same.
    from PIL import Image  # matplotlib requires Pillow

    drawn = io.BytesIO()
    with warnings.catch_warnings():
        # A character of a name that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        without_math(figure).savefig(drawn, format="png", dpi=DPI)
    # MAXCOVERAGE keeps the colours of thin lines. Dithering would make the file large.
    few = Image.open(drawn).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
    small = io.BytesIO()
    few.save(small, format="png", optimize=True)
    return small.getvalue()


def _group_by(groups: Sequence[GroupSpread], keys: Sequence[str]) -> dict[str, list[GroupSpread]]:
    """Return lists of groups that share the coordinates named in `keys`, in the order of the file."""
    found: dict[str, list[GroupSpread]] = {}
    for group in groups:
        found.setdefault(canonical([group.coordinates[key] for key in keys]), []).append(group)
    return found


def _panels(groups: Sequence[GroupSpread], keys: Sequence[str]) -> list[list[GroupSpread]]:
    """Return the groups of each panel, first the groups that have all coordinates of the panel.

    A group that lacks a coordinate, such as a baseline without an epsilon, is in every panel that has the group's other
    coordinates.
    """
    found = _group_by(groups, keys)
    own = {at: members for at, members in found.items() if all(members[0].coordinates[k] is not None for k in keys)}
    if not own:
        return list(found.values())
    rest = [group for at, members in found.items() if at not in own for group in members]
    panels = []
    for members in own.values():
        here = members[0].coordinates
        panels.append([*members, *(one for one in rest if all(one.coordinates[k] in (None, here[k]) for k in keys))])
    return panels


def _label(group: GroupSpread, keys: Sequence[str]) -> str:
    """Name a line or panel by the coordinates that it has."""
    values = {key: group.coordinates[key] for key in keys if group.coordinates[key] is not None}
    return ", ".join(text_of(v) if key in ("data", "method") else f"{key} {text_of(v)}" for key, v in values.items())


def _draw(
    axis: Any, summary: Summary, groups: Sequence[GroupSpread], styles: Mapping[str, int], handles: dict[str, Any]
) -> None:
    """Draw the lines of one panel. A group without a position on the horizontal axis becomes a horizontal line."""
    assert summary.x is not None
    places = [group.coordinates[summary.x] for group in groups if group.coordinates[summary.x] is not None]
    names = list(dict.fromkeys(map(text_of, places)))
    words = any(isinstance(place, str | list | dict | bool) for place in places)
    for key, line in _group_by(groups, summary.rows).items():
        label = _label(line[0], summary.rows)
        style: dict[str, Any] = {"color": f"C{styles[key] % 10}", "label": label}
        placed = [group for group in line if group.coordinates[summary.x] is not None]
        for level in (group for group in line if group.coordinates[summary.x] is None):
            middle, low, high = level.spread.estimate(summary.statistic)
            handles[label] = axis.axhline(middle, linestyle="--", **style)
            if not math.isnan(low):
                axis.axhspan(low, high, alpha=0.12, linewidth=0, color=style["color"])
        if not placed:
            continue
        places_on_x = [
            names.index(text_of(group.coordinates[summary.x])) if words else float(group.coordinates[summary.x])
            for group in placed
        ]
        order = np.argsort(places_on_x, kind="stable")
        at = np.asarray(places_on_x, dtype=np.float64)[order]
        middle, low, high = np.array([group.spread.estimate(summary.statistic) for group in placed])[order].T
        style |= {"marker": MARKERS[styles[key] % len(MARKERS)], "markersize": 4}
        if words:
            arms = np.nan_to_num([middle - low, high - middle])
            handles[label] = axis.errorbar(at, middle, yerr=arms, linestyle="none", capsize=3, **style)
        else:
            (handles[label],) = axis.plot(at, middle, **style)
            axis.fill_between(at, low, high, alpha=0.18, linewidth=0, color=style["color"])
    if words:
        axis.set_xticks(range(len(names)), names, rotation=30, ha="right")
    else:
        axis.set_xscale(summary.x_scale)
        ticks = sorted({float(place) for place in places})
        if 0 < len(ticks) <= TICKS:
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.set_xticks([], minor=True)
    axis.set_yscale(summary.y_scale)
    axis.set_xlabel(summary.x)
    if axis.get_subplotspec().is_first_col():
        axis.set_ylabel(summary.values[0])
    axis.grid(alpha=0.25)
