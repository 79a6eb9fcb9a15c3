"""Plots of experiments: small files that crop nothing, and keep the colours of lines."""

from __future__ import annotations

import io
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from dpframework.lab.experiment.cell_group_spreads import GroupSpread
from dpframework.lab.experiment.experiment_contents_and_grid import Summary
from dpframework.lab.experiment.plots import PANEL, png
from dpframework.lab.experiment.spread_statistics import Spread

LONG = "Accuracy on rows that were held out, of trees that were learned with several budgets and of CART, not private"


def groups(panels: int, lines: int) -> list[GroupSpread]:
    """Return what a plot of data sets by panels and methods by lines shows, and a method without an epsilon."""
    random = np.random.default_rng(0)
    found = []
    for data in range(panels):
        for method in range(lines):
            for epsilon in (Fraction(1, 10), Fraction(1, 2), Fraction(2)):
                at = {"data": f"data {data}", "method": f"method {method}", "epsilon": epsilon}
                found.append(GroupSpread(at, "accuracy", Spread.of(list(random.normal(method, 0.4, 8)))))
        at = {"data": f"data {data}", "method": "CART", "epsilon": None}
        found.append(GroupSpread(at, "accuracy", Spread.of(list(random.normal(lines, 0.1, 8)))))
    return found


def drawn(title: str, *, panels: int, lines: int) -> bytes:
    columns = ("data",) if panels > 1 else ()
    summary = Summary("plot", "p", title, ("accuracy",), ("method",), columns, x="epsilon", x_scale="log")
    return png(summary, groups(panels, lines))


def pixels(content: bytes) -> NDArray[np.int64]:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(np.int64)


@pytest.mark.parametrize("panels", [1, 2, 6])
def test_nothing_is_cropped(panels: int) -> None:
    image = pixels(drawn(LONG, panels=panels, lines=4))
    for border in (image[0], image[-1], image[:, 0], image[:, -1]):
        assert (border == 255).all()


def test_six_panels_are_a_small_file_in_the_colours_of_the_lines() -> None:
    content = drawn("Accuracy", panels=6, lines=5)
    assert Image.open(io.BytesIO(content)).mode == "P"
    assert len(content) < 60_000
    image = pixels(content).reshape(-1, 3)
    for colour in ("1f77b4", "ff7f0e", "2ca02c", "d62728", "9467bd", "8c564b"):  # C0 to C5 of matplotlib
        assert np.abs(image - list(bytes.fromhex(colour))).max(axis=1).min() <= 16
    assert drawn("Accuracy", panels=6, lines=5) == content


@pytest.mark.filterwarnings("error")
def test_a_character_that_no_font_has_is_drawn_without_a_word() -> None:
    assert drawn("before \0 after", panels=1, lines=1)


def test_a_long_title_or_legend_takes_nothing_from_the_panel() -> None:
    def height_of_the_panel(content: bytes) -> int:
        dark = (pixels(content) < 64).all(axis=2).sum(axis=0)  # the frame's sides are the highest dark lines
        return int(dark.max())

    short, long = drawn("Short", panels=1, lines=1), drawn(LONG, panels=1, lines=12)
    assert height_of_the_panel(long) == pytest.approx(height_of_the_panel(short), rel=0.15)
    assert len(pixels(long)) > len(pixels(short)) > 90 * PANEL[1]
