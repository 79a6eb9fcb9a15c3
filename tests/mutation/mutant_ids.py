"""Ids of mutants, such as `best_order 1->2 3f9a`: a definition, a change of a token, the shape of the statement.

An id outlives other names, another layout and new lines around its statement. It ends when operators, numbers or calls
of the statement change: then the reason why the mutant may live has to be thought about again.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import attrs

MODULE = "module"  # in the place of a definition, for statements outside of all
UNSHAPED = {"annotation", "returns", "decorator_list", "type_params", "type_comment", "kind", "ctx"}
FIRST_TOKEN = {"isnot": "is", "notin": "not"}  # of what is changed, where that is more than one token


@attrs.frozen
class Statement:
    """A statement of a module, without the statements inside it.

    Attributes
    ----------
    definition
        The function or class that it stands in or begins, such as `Study.add`.
    shape
        Four hexadecimal digits for what it is but for its own names, texts and annotations.
    which
        Which of the statements of this shape in the definition it is, from 1.
    tokens
        The tokens with their places, which are lines, from 1, and columns.
    """

    definition: str
    shape: str
    which: int
    tokens: list[tuple[tuple[int, int], str]] = attrs.field(factory=list)

    def places(self, change: str) -> list[tuple[int, int]]:
        """Return where a token stands that a change, such as `1->2`, can be of."""
        old = change.partition("->")[0]
        return [place for place, token in self.tokens if token == FIRST_TOKEN.get(old, old)]


@attrs.frozen(slots=False)
class MutantIds:
    """The ids of a module's mutants.

    Attributes
    ----------
    source
        The module's text.
    """

    source: str

    @classmethod
    @cache
    def read(cls, module: Path) -> MutantIds:
        """Read a module. A list names many mutants of one."""
        return cls(module.read_text(encoding="utf-8"))

    def id_of(self, place: tuple[int, int], change: str) -> str:
        """Return the id of a change, such as `1->2`, of the token at a line and a column."""
        statement = self._around[place]
        number = 1 + statement.places(change).index(place)
        return f"{statement.definition} {change}{_nth(number)} {statement.shape}{_nth(statement.which)}"

    def line_of(self, mutant: str) -> int:
        """Return the line that a mutant changes.

        Raises
        ------
        LookupError
            If no mutant has this id: the code has changed, and the reason may be wrong.
        """
        definition, change, shape = mutant.split(" ")
        alike = [each for each in self._statements if f"{each.shape}{_nth(each.which)}" == shape]
        change, _, nth = change.partition("#")
        for statement in alike:
            places = statement.places(change)
            if statement.definition == definition and len(places) >= int(nth or 1):
                return places[int(nth or 1) - 1][0]
        elsewhere = sorted({each.definition for each in alike})
        raise LookupError(f"no mutant is called '{mutant}'; statements of this shape are in: {elsewhere or 'nothing'}")

    @cached_property
    def _around(self) -> dict[tuple[int, int], Statement]:
        """The statement around each token."""
        return {place: statement for statement in self._statements for place, _ in statement.tokens}

    @cached_property
    def _statements(self) -> list[Statement]:
        counted: Counter[tuple[str, str]] = Counter()
        spans = []
        for definition, node in _statements(ast.parse(self.source), ""):
            name, shape = definition or MODULE, hashlib.sha256(repr(_form(node)).encode()).hexdigest()[:4]
            counted[name, shape] += 1
            end = (node.end_lineno or 0, node.end_col_offset or 0)
            spans.append(((node.lineno, node.col_offset), end, Statement(name, shape, counted[name, shape])))
        left, around = spans[::-1], []
        for place, token in _tokens(self.source):
            while left and left[-1][0] <= place:
                around.append(left.pop())
            while around and around[-1][1] <= place:
                around.pop()
            if around:
                around[-1][2].tokens.append((place, token))
        return [statement for _, _, statement in spans]


def _nth(number: int) -> str:
    return "" if number == 1 else f"#{number}"


def _statements(node: ast.AST, definition: str) -> Iterator[tuple[str, ast.stmt]]:
    """Yield all statements inside a node, each with the definition that it stands in or begins."""
    for child in ast.iter_child_nodes(node):
        within = definition
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            within = f"{definition}.{child.name}".lstrip(".")
        if isinstance(child, ast.stmt):
            yield within, child
        yield from _statements(child, within)


def _form(node: ast.AST) -> object:
    """Return what a node is but for its own names, its texts, its annotations, and the statements inside it."""
    if isinstance(node, ast.Name):
        # Not `_`: in a session of the interpreter, and after a doctest, it is the last result.
        return node.id if node.id != "_" and hasattr(builtins, node.id) else "name"
    if isinstance(node, ast.arg):
        return "parameter"
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return "text"
    parts = [type(node).__name__]
    for field, value in ast.iter_fields(node):
        parts += [
            _form(part) if isinstance(part, ast.AST) else "name" if _is_own(field, part) else repr(part)
            for part in (value if isinstance(value, list) else [value])
            if field not in UNSHAPED and part is not None and not isinstance(part, ast.stmt)
        ]
    return parts


def _is_own(field: str, value: object) -> bool:
    """Tell whether a field holds a name that the module gives: a definition's, or a private attribute's."""
    return field in ("name", "names") or (field == "attr" and str(value).startswith("_"))


def _tokens(source: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the tokens outside of texts, with their lines and columns."""
    depth = 0  # of texts with values in them, whose tokens older versions of Python do not tell
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        depth += token.type == getattr(tokenize, "FSTRING_START", None)
        if not depth:
            yield token.start, token.string
        depth -= token.type == getattr(tokenize, "FSTRING_END", None)
