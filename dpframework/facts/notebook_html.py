"""Notebook views: tables and texts in plain HTML, with every text escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from dpframework.facts.control_character_escapes import printable, printable_lines

_NUMERIC = re.compile(r"[\[(]?[±+-]?[0-9][0-9,.]*(e[+-]?[0-9]+)?( %)?(,? [±+-]?[0-9][0-9,.]*)?[\])]?", re.ASCII)


class NotebookText:
    """A base class of objects that notebooks show as they are printed."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the printed text in a fixed-width font, so that its columns stay aligned."""
        return html_text(str(self))


def html_text(text: str) -> str:
    """Return a text as HTML in a fixed-width font, so that its columns stay aligned.

    Examples
    --------
    >>> html_text("a < b")
    '<pre style="font-family: monospace; white-space: pre; overflow-x: auto">a &lt; b</pre>'
    """
    style = "font-family: monospace; white-space: pre; overflow-x: auto"  # since exported pages give <pre> another font
    return f'<pre style="{style}">{html.escape(printable_lines(text))}</pre>'


def html_line(text: str, tag: str = "p", attributes: str = "") -> str:
    """Return a text as one HTML element, such as a paragraph."""
    start = f"{tag} {attributes}" if attributes else tag
    return f"<{start}>{html.escape(printable(text))}</{tag}>"


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return an HTML table. The first cell of each row is its head. Columns of numbers or intervals are aligned right.

    All other columns, and always the first one, are aligned left. The table sets no colours, so that it is readable in
    light and dark themes and on exported pages. Alignments are marked as `!important`, since VS Code's style sheet has
    that mark too, where it aligns heads and rows to the left. Without the mark, numbers would not stand below their
    heads.

    Examples
    --------
    >>> html_table(["a"], [["<b>"]])  # doctest: +NORMALIZE_WHITESPACE
    '<table><thead><tr><th scope="col" style="text-align: left !important">a</th></tr></thead><tbody><tr><th
    scope="row" style="text-align: left !important">&lt;b&gt;</th></tr></tbody></table>'
    """
    cells = [list(row) for row in rows]
    sides = []
    for k in range(len(heads)):
        # A column other than the first is aligned right if it has cells that are not empty, and all of these are
        # numbers or intervals.
        held = [row[k] for row in cells if row[k]]
        sides.append("right" if k and held and all(map(_NUMERIC.fullmatch, held)) else "left")
    styles = [f'style="text-align: {side} !important"' for side in sides]
    above = html_line(caption, "caption") if caption else ""
    head = "".join(html_line(text, "th", f'scope="col" {style}') for text, style in zip(heads, styles, strict=True))
    body = ""
    for row in cells:
        (name, style), *others = zip(row, styles, strict=True)
        first = html_line(name, "th", f'scope="row" {style}')
        rest = "".join(html_line(text, "td", own) for text, own in others)
        body += f"<tr>{first}{rest}</tr>"
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_budget(part: Fraction | None, whole: Fraction, sentence: str) -> str:
    """Return a sentence with a bar that shows how much of a budget is planned or spent; no bar if `part` is None.

    Examples
    --------
    >>> html_budget(Fraction(1, 2), Fraction(1), "half")
    '<p>half <meter min="0" max="1" value="0.5">50 %</meter></p>'
    """
    if part is None:
        return html_line(sentence)
    share = float(min(part / whole, Fraction(1)))
    bar = html_line(f"{100 * share:.0f} %", "meter", f'min="0" max="1" value="{share:.4g}"')
    return f"<p>{html.escape(printable(sentence))} {bar}</p>"
