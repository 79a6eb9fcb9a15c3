"""Redescriptions as pairs of bars, for the rows of either description and of both."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from dpframework.results.redescription import Redescription

#: Options of a new figure.
FIGURE = {"figsize": (11, 6), "layout": "constrained"}

_SHOWN = 12  # redescriptions
_WIDTH = 56  # characters of a description
_HEIGHT = 0.36  # of a bar, where a pair takes 1
_LIGHT, _DARK = ("#9fc5e8", "#f9cb9c"), ("#0b5394", "#b45f06")  # left, right: told apart by lightness too


def draw(items: Sequence[Redescription], trusted: Sequence[bool], axes: Any) -> None:
    """Draw them (see `Redescriptions.draw`), the first on top."""
    shown = items[:_SHOWN]
    ends = [_pair(item, place, axes) for place, item in enumerate(shown)]
    most = max(ends, default=0.0) or 1.0
    for place, (item, mark, end) in enumerate(zip(shown, trusted, ends, strict=False)):
        axes.text(end + 0.01 * most, place, f"{item.jaccard:.2f}{' *' if mark else ''}", va="center", fontsize=9)
    places = [place + side * _HEIGHT / 2 for place in range(len(shown)) for side in (-1, 1)]
    names = [_short(str(side)) for item in shown for side in (item.left, item.right)]
    axes.set_yticks(places, names, fontsize=8)
    for label, of_left in zip(axes.get_yticklabels(), [True, False] * len(shown), strict=True):
        label.set_color(_DARK[0 if of_left else 1])
    axes.set_xlim(0, 1.15 * most)
    axes.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    axes.spines[["top", "right"]].set_visible(False)
    more = f"; the first {_SHOWN} of {len(items)}" if len(items) > _SHOWN else ""
    axes.set_xlabel(f"rows, of the noisy counts (dark: both descriptions hold){more}")
    axes.set_title("noisy Jaccard index beside the bars; *: trusted", fontsize=9, loc="right")


def _pair(item: Redescription, place: int, axes: Any) -> float:
    """Draw one pair of bars, and return where it ends."""
    both = max(item.both.value, 0.0)
    low, high = item.support_interval()
    ends = [max(high, both)]
    for k, support in enumerate((item.left_support, item.right_support)):
        height = place + (k - 0.5) * _HEIGHT
        if support is not None:
            ends.append(max(support.value, both))
            axes.barh(height, ends[-1], _HEIGHT, color=_LIGHT[k])
        axes.barh(height, both, _HEIGHT, color=_DARK[k])
    arms = [[max(both - low, 0.0)], [max(high - both, 0.0)]]
    axes.errorbar([both], [place], xerr=arms, color="0.2", elinewidth=1, capsize=3)
    return float(max(ends))


def _short(text: str) -> str:
    short = textwrap.shorten(text, _WIDTH, placeholder=" …")
    return short.replace("$", r"\$")  # else matplotlib sets what stands between two as a formula
