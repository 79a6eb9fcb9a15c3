"""Fenced blocks marked `output` (see tests/project/test_docs.py) are text: what a command or a script prints."""

from typing import Any

from pygments.lexers.special import TextLexer


def setup(app: Any) -> dict[str, bool]:
    app.add_lexer("output", TextLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
