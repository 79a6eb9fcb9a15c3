"""Notebook views as tables and texts in plain HTML, with every text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from dpframework.facts.printable import printable, printable_lines


class Shown:
    """A base class whose notebook view is its printed form."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the printed text, in columns."""
        return html_text(str(self))


def html_text(text: str) -> str:
    """Return a text in columns.

    Examples
    --------
    >>> html_text("a < b")
    '<pre>a &lt; b</pre>'
    """
    return f"<pre>{html.escape(printable_lines(text))}</pre>"


def html_line(text: str, tag: str = "p") -> str:
    """Return a text as one element, such as a paragraph."""
    return f"<{tag}>{html.escape(printable(text))}</{tag}>"


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table.

    Examples
    --------
    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    above = html_line(caption, "caption") if caption else ""
    head = "".join(html_line(text, "th") for text in heads)
    body = "".join(f"<tr>{''.join(html_line(cell, 'td') for cell in row)}</tr>" for row in rows)
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
