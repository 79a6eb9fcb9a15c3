"""Mutants that live, and may: which line of a module one changes, and why that cannot matter."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).resolve().parents[2]


@attrs.frozen
class Survivor:
    """A mutant that lives.

    Attributes
    ----------
    module
        The path of its module.
    before, after
        Its line.
    reason
        Why it cannot matter.
    within
        The function or class that the line stands in, such as `Study.add`, if others have the same line.
    which
        Which of the lines in there that read the same, from 1, if there are several.
    """

    module: str
    before: str
    after: str
    reason: str
    within: str = ""
    which: int = 0

    def line(self) -> int:
        """Return the number of its line.

        Raises
        ------
        LookupError
            If no line of the module, or more than one, is meant: the code has changed, and the reason may be wrong.
        """
        lines = [
            number
            for number, (text, inside) in enumerate(_lines(self.module), 1)
            if text == self.before and (not self.within or inside == self.within)
        ]
        if self.which:
            lines = lines[self.which - 1 : self.which]
        if len(lines) != 1:
            raise LookupError(
                f"{self.module}: {len(lines)} lines{' of ' * bool(self.within)}{self.within} are: {self.before}"
            )
        return lines[0]

    def excuses(self, tried: dict[str, Any]) -> bool:
        """Tell whether a mutant that was tried is this one: the line that changes may follow the one it is named by."""
        mine = [self.module, self.before, self.after]
        same = [*map(_close, mine)] == [_close(tried[name]) for name in ("module", "before", "after")]
        return same and (not self.within or self.line() == tried["line"])


def _close(line: str) -> str:
    """Return a line without blanks, of which a mutant may have more, or fewer, from one version to the next."""
    return "".join(line.split())


@cache
def _lines(module: str) -> list[tuple[str, str]]:
    """Return the lines of a module, each with the definition that it stands in."""
    source = (ROOT / module).read_text(encoding="utf-8")
    inside = [""] * len(source.splitlines())

    def enter(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                own = f"{name}.{child.name}".lstrip(".")
                inside[child.lineno - 1 : child.end_lineno] = [own] * (child.end_lineno - child.lineno + 1)
                enter(child, own)
            else:
                enter(child, name)

    enter(ast.parse(source), "")
    return [(text.strip(), name) for text, name in zip(source.splitlines(), inside, strict=True)]
