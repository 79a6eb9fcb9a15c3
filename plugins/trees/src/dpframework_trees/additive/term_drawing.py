"""Drawings of the functions of an additive model: a single one, or the most important ones next to each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpframework.facts import Numeric

if TYPE_CHECKING:
    from dpframework_trees.additive.terms import Term

BAND = 2  # the half width of a band of noise, in standard deviations
COLUMNS = 3  # the most functions next to each other

#: Options of a new figure for several functions, which find their own places in it.
FIGURE = {"figsize": (10, 5.5), "gridspec_kw": {"left": 0.05, "right": 0.99, "bottom": 0.0, "top": 0.86}}

_LONGEST = 14  # the most characters of a label
_MOST = 8  # the most labels below a function
_LIGHT, _DARK = (0.08, 0.6), (0.3, 2.5)  # for each of two bands of noise: its opacity, or its width as a bar


def draw_term(term: Term, outputs: Sequence[str], axes: Any) -> None:
    """Draw one attribute's part of each output, as a line over ranges of numbers or as a dot for each value.

    The dark band, or the thick bar, is the noise for evenly spread rows and unrelated attributes. It reaches `BAND`
    standard deviations to either side. The light band, or the thin bar, is the most noise that any rows leave.
    """
    places = np.arange(len(term.values))
    bands = ((BAND * term.most_deviations, *_LIGHT), (BAND * term.deviations, *_DARK))
    ordered = isinstance(term.attribute, Numeric)
    ranges = len(places) - ordered * term.attribute.missing  # The cell of missing values is not a range.
    for k, output in enumerate(outputs):
        values, color = term.values[:, k], f"C{k}"
        if ordered:
            axes.plot(places[:ranges], values[:ranges], "o-", color=color, markersize=3, label=output)
            for margin, alpha, _ in bands:
                low, high = values[:ranges] - margin[:ranges], values[:ranges] + margin[:ranges]
                axes.fill_between(places[:ranges], low, high, color=color, alpha=alpha, linewidth=0)
        rest = slice(ranges if ordered else 0, None)
        if len(places[rest]):
            for margin, _, width in bands:
                axes.errorbar(places[rest], values[rest], yerr=margin[rest], fmt="none", color=color, elinewidth=width)
            axes.plot(places[rest], values[rest], "o", color=color, markersize=4, label=None if ordered else output)
    axes.axhline(0, color="grey", linewidth=0.8)
    every = -(-len(places) // _MOST)
    short = (label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…" for label in term.labels[::every])
    axes.set_xticks(places[::every], [_plain(label) for label in short], rotation=45, ha="right")
    axes.tick_params(labelsize=8)
    axes.set_title(_plain(term.attribute.name), fontsize=10)


def draw_terms(terms: Sequence[Term], outputs: Sequence[str], title: str, axes: Any) -> None:
    """Draw several functions next to each other on one scale, so that a function that adds little looks flat.

    `title` says what the functions are added to.
    """
    axes.set_axis_off()
    band = f"on one scale (bands: {BAND} sd of noise, as expected and at most)"
    axes.set_title(f"{_plain(title)}, {band}", fontsize=11, pad=24)
    if not terms:
        return
    columns = min(COLUMNS, len(terms))
    rows = -(-len(terms) // columns)
    ends = [(term.values.min() - (b := BAND * term.deviations.max()), term.values.max() + b) for term in terms]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    room = 0.05 * max(high - low, 1e-9)
    for place, term in enumerate(terms):
        row, column = divmod(place, columns)
        inner = axes.inset_axes(
            (column / columns, 1 - (row + 0.62) / rows, 0.86 / columns, 0.54 / rows), transform=axes.transAxes
        )
        draw_term(term, outputs, inner)
        inner.set_ylim(low - room, high + room)
        if place == 0 and len(outputs) > 1:
            inner.legend(fontsize=7)


def _plain(text: str) -> str:
    """Return a text that matplotlib does not read as a formula."""
    return text.replace("$", r"\$")
