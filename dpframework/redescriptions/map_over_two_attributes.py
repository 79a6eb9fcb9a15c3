"""Maps of redescriptions over two numeric attributes, such as coordinates.

A redescription is a pair of descriptions, its two sides. A map shows those sides that test only the two attributes.
Descriptions and their thresholds are public, and no row is read. So a map shows where a side holds, not where rows are.
"""

from __future__ import annotations

import functools
import itertools
import textwrap
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Below, Description
from dpframework.facts.schema import Schema
from dpframework.redescriptions.redescription import Redescription
from dpframework.redescriptions.shorter_description_text import sentence

_HATCHES = ("//", r"\\", "..", "oo")  # the patterns of regions, which may overlap
MOST_REGIONS = len(_HATCHES)
_LABEL = 60  # the most characters of a side's text in the legend
_MARGIN = 0.1  # how far the map goes beyond the outermost thresholds, as a share of the distance between them


def draw_map(items: Sequence[Redescription], trusted: Sequence[bool], names: tuple[str, str], axes: Any) -> None:
    """Draw the regions of the first `MOST_REGIONS` sides on the map (see `Redescriptions.plot_map`)."""
    found = []  # the sides that test only these two attributes, with the legend's text for the other side
    for item, mark in zip(items, trusted, strict=True):
        for side, other in ((item.left, item.right), (item.right, item.left)):
            literals = side.literals()
            if literals and all(isinstance(one, Below) and one.attribute in names for one in literals):
                text = textwrap.shorten(sentence(other), _LABEL, placeholder=" …")
                found.append((side, f"{text}: {item.jaccard:.2f}{' *' if mark else ''}"))
    edges = [_edges([side for side, _ in found], name) for name in names]
    columns, rows = (list(itertools.pairwise(of)) for of in edges)
    for number, ((side, label), hatch) in enumerate(zip(found, _HATCHES, strict=False)):
        look = {"facecolor": "none", "edgecolor": f"C{number}", "hatch": hatch, "linewidth": 0}
        for inside, (low, high) in zip(region(side, names, edges).T, rows, strict=True):
            stripes = [(columns[k][0], columns[k][1] - columns[k][0]) for k in np.flatnonzero(inside)]
            axes.broken_barh(stripes, (low, high - low), **look)
        axes.fill([], [], label=label, **look)
    axes.set(xlabel=names[0], ylabel=names[1], xlim=(edges[0][0], edges[0][-1]), ylim=(edges[1][0], edges[1][-1]))
    more = f" (the first {MOST_REGIONS} of {len(found)} sides)" if len(found) > MOST_REGIONS else ""
    axes.set_title(f"where one side holds{more}; legend: the other side, noisy Jaccard index, *: trusted", fontsize=9)
    if found:
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.12), frameon=False)
    else:
        axes.text(0.5, 0.5, "no side tests only these two attributes", ha="center", transform=axes.transAxes)


def region(side: Description, names: tuple[str, str], edges: Sequence[Sequence[float]]) -> NDArray[np.bool_]:
    """Return, for each cell between the edges, whether a description of two numeric attributes holds in it.

    Parameters
    ----------
    side
        The description.
    names
        The attributes.
    edges
        For each attribute its thresholds and the ends of the map, from low to high.

    Returns
    -------
    Booleans, shape (cells of the first attribute, cells of the second).
    """
    middles = [(np.array(of[:-1]) + np.array(of[1:])) / 2 for of in edges]
    points = dict(zip(names, (grid.ravel() for grid in np.meshgrid(*middles, indexing="ij")), strict=True))
    attributes = {name: Numeric(name, of[0], of[-1], cuts=of[1:-1]) for name, of in zip(names, edges, strict=True)}
    return side.holds(_Points(attributes, points)).reshape([len(of) for of in middles])


@final
@attrs.frozen
class _Points:
    """Points of a map. A description reads them like the columns of a block of rows."""

    attributes: dict[str, Numeric]
    points: dict[str, NDArray[np.float64]]

    @functools.cached_property
    def schema(self) -> Schema:
        return Schema(self.attributes.values())

    @property
    def rows(self) -> int:
        return len(next(iter(self.points.values())))

    def codes(self, name: str) -> NDArray[np.unsignedinteger]:
        return np.searchsorted(self.attributes[name].interior_cuts, self.points[name], side="right").astype(np.uint32)

    def values(self, name: str) -> NDArray[np.float64]:
        return self.points[name]

    def keys(self, name: str) -> Any:
        raise InputError(f"'{name}' has no keys: a map is of two numeric attributes")


def _edges(sides: Sequence[Description], name: str) -> list[float]:
    """Return the ends of the map along an attribute, with the thresholds of all sides between them."""
    literals = (one for side in sides for one in side.literals())
    cuts = sorted({one.threshold for one in literals if isinstance(one, Below) and one.attribute == name}) or [0.0]
    margin = _MARGIN * (cuts[-1] - cuts[0]) or max(abs(cuts[0]), 1.0) * _MARGIN
    return [cuts[0] - margin, *cuts, cuts[-1] + margin]
