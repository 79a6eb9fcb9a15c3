"""Texts that fit a terminal: trees, prose and facts whose long lines are broken between words."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

_BRANCHES = re.compile(r"^[-+~ ]?[\s│├└─]*")
_LOSS = re.compile(r"\[[^\[\]]*\]")
_LEAST = 24  # the fewest columns that a broken line must have for its text


@attrs.frozen
class FittedText:
    """A text that is made for the width of the terminal. In a pipe the width is None, and no line is broken."""

    make: Callable[[int | None], Text]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the text for the console's width, with lines that rich does not break again."""
        text = self.make(None if options.no_wrap else options.max_width)
        text.no_wrap, text.overflow = True, "ignore"
        yield text


def fit_tree(text: str, width: int | None) -> str:
    """Break the long lines of a drawn tree between words. Each line continues under its own branch.

    Examples
    --------
    >>> print(fit_tree("├─ one: histogram of a long name  [epsilon 0.5]", 36))
    ├─ one: histogram of a long name
    │      [epsilon 0.5]
    """
    fitted = []
    for line in text.split("\n"):
        found = _BRANCHES.match(line)
        branch = found.group() if found else ""
        if width is None or len(line) <= width or width - len(branch) - 4 < _LEAST:
            fitted.append(line)
            continue
        below = branch.replace("├─", "│ ").replace("└─", "  ").replace("─", " ") + "    "
        # A loss stays in one piece.
        kept = _LOSS.sub(lambda loss: loss.group().replace(" ", "\0"), line[len(branch) :])
        parts = textwrap.wrap(kept, width - len(below), break_long_words=False, break_on_hyphens=False)
        fitted += [(branch if k == 0 else below) + part.replace("\0", " ") for k, part in enumerate(parts)] or [line]
    return "\n".join(fitted)


def fit_prose(text: str, width: int | None, indent: str = "") -> str:
    """Break paragraphs between words and indent each line. Without a width, only indent the lines."""
    if width is None:
        return "\n".join(indent + line for line in text.split("\n"))
    paragraphs = re.split(r"\n\s*\n", text)
    return "\n\n".join(
        textwrap.fill(
            " ".join(paragraph.split()),
            max(width, len(indent) + _LEAST),
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for paragraph in paragraphs
    )


def fit_facts(rows: Iterable[tuple[str, str]], width: int | None) -> list[tuple[str, str]]:
    """Return lines, each as a padded name and a value. A value that is too long continues on further lines.

    If there is little room beside the names, such a value begins below its name.
    """
    facts = list(rows)
    if not facts:
        return []
    left = max(len(name) for name, _ in facts) + 2
    if width is None:
        return [(name.ljust(left), value) for name, value in facts]
    room = width - left
    lines: list[tuple[str, str]] = []
    for name, value in facts:
        if len(value) <= room:
            lines.append((name.ljust(left), value))
        elif max(map(len, value.split(" "))) <= room and room >= _LEAST:
            parts = textwrap.wrap(value, room, break_on_hyphens=False)
            lines += [((name if k == 0 else "").ljust(left), part) for k, part in enumerate(parts)]
        else:
            parts = textwrap.wrap(value, max(width, _LEAST) - 4, break_long_words=False, break_on_hyphens=False)
            lines += [(name, ""), *(("    ", part) for part in parts)]
    return lines
