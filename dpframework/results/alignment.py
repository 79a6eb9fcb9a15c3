"""Text in columns."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line a row, all of as many cells, each column as wide as its widest cell.

    Examples
    --------
    >>> aligned([("sex", "count"), ("Female", "16192")])
    ['sex     count', 'Female  16192']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)]).rstrip() for row in rows]
