"""Tables of results, written as text in columns or as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import final

import attrs

from dpframework.facts.notebook_html import html_line, html_table
from dpframework.facts.value_checks import as_texts

_WIDTH = 118  # the largest number of characters in a line of the legend


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line for each row. Each column is as wide as its widest cell.

    Examples
    --------
    >>> align_columns([("sex", "count"), ("Female", "16192")])
    ['sex     count', 'Female  16192']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)]).rstrip() for row in rows]


def _rows(rows: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, rows))


@final
@attrs.frozen
class TextTable:
    """A printed table, with a legend below it.

    Attributes
    ----------
    heads
        The heading of each column.
    rows
        The cells of each row, as text.
    more
        The number of rows that are not shown; 0 if all are shown.
    legend
        A sentence that explains the numbers.

    Examples
    --------
    >>> table = TextTable(["sex", "count"], [("Female", "16192")], legend="Rows.")
    >>> print(table.text())
    sex     count
    Female  16192
    Rows.
    """

    heads: tuple[str, ...] = attrs.field(converter=as_texts)
    rows: tuple[tuple[str, ...], ...] = attrs.field(converter=_rows)
    more: int = 0
    legend: str = ""

    @property
    def _rest(self) -> list[str]:
        return [f"and {self.more} more, in to_frame and to_json"] if self.more > 0 else []

    def text(self) -> str:
        """Return the table as text in columns, with the legend below it."""
        return "\n".join([*align_columns([self.heads, *self.rows]), *self._rest, *textwrap.wrap(self.legend, _WIDTH)])

    def html(self) -> str:
        """Return the table as HTML for a notebook."""
        lines = [*self._rest, *([self.legend] if self.legend else [])]
        return html_table(self.heads, self.rows) + "".join(map(html_line, lines))
