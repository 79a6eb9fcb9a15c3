r"""Escapes for characters that control a terminal, or hide or reorder text, in texts that come from strangers.

A label may hold any character, and so may a text from a plugin or a file. Printed as it is, `"\x1b[2K"` erases the line
that it stands in. A carriage return lets the text after it overwrite the line, and U+202E shows the rest of a line
backwards. `printable` shows such a character as an escape, such as `\n` or `\u202e`. Every format then adds its own
rule: `facts.output_formats_times_and_csv` for CSV, `reports.markdown` for Markdown, `reports.text_plan_drawings` for
Mermaid and DOT.
"""

from __future__ import annotations

import re
from typing import Final

#: Characters that are invisible or move others: control characters, line breaks, surrogates, all that Unicode calls
#: ignorable (such as direction marks, zero-width characters and variation selectors), and a few more. The list is our
#: own, since Python's list grows with its versions, and a plan must read the same in every version.
_BEYOND_CONTROLS: Final = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN: Final = re.compile(f"[\x00-\x1f{_BEYOND_CONTROLS}]")
_UNSEEN_IN_A_LINE: Final = re.compile(f"[\x00-\x09\x0b-\x1f{_BEYOND_CONTROLS}]")


def is_printable(text: str) -> bool:
    r"""Tell whether a text is one line of visible characters.

    Examples
    --------
    >>> is_printable("blood pressure (é)"), is_printable("a\nb"), is_printable("a\u200bb")
    (True, False, False)
    """
    return _UNSEEN.search(text) is None


def printable(text: str) -> str:
    r"""Return a text as one line on which every character is visible.

    Examples
    --------
    >>> print(printable("a\nb\x1b[2K\u202e"))
    a\nb\x1b[2K\u202e
    """
    return _UNSEEN.sub(_number, text)


def printable_lines(text: str) -> str:
    r"""Return a text of several lines, in which every character except the line ends is visible.

    Examples
    --------
    >>> print(printable_lines("a\r\nb"))
    a\r
    b
    """
    return _UNSEEN_IN_A_LINE.sub(_number, text)


def _number(found: re.Match[str]) -> str:
    code = ord(found.group())
    named = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}.get(code)
    return named or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
