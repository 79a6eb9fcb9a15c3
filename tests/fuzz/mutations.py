"""Mutations of what files hold: trees of TOML and JSON, cells of tables, and bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import attrs
from hypothesis import strategies as st

#: Planted in cells of private data: it must never be seen.
SECRET = "zq7secret"


class Raw(str):
    """A value that stands in a file as it is, quoted by nothing."""


class Again(str):
    """A key that differs from every other one here, and not in a file."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


NESTED = [Raw(opened * depth + closed * depth) for depth in (3, 90, 900, 20_000) for opened, closed in ("[]",)]
NESTED += [Raw('{"a":' * depth + "1" + "}" * depth) for depth in (3, 90, 900)]
NUMBERS = [Raw(text) for text in ("1e400", "-1e400", "1e-400", "-0", "0x1F", "1_000", "nan", "inf", "-inf", "NaN")]
NUMBERS += [Raw("9" * digits) for digits in (19, 20, 309, 4300, 5000)]
NUMBERS += [Raw("1." + "3" * 5000), Raw("1979-05-27T07:32:00Z"), Raw("07:32:00"), Raw("1979-05-27")]
VALUES = [
    0,
    1,
    -1,
    2,
    3,
    7,
    64,
    65,
    1000,
    10**6,
    10**9,
    2**31,
    2**63,
    2**64,
    10**18,
    0.5,
    1e-300,
    1e308,
    True,
    False,
    None,
]
TEXTS = [
    "",
    " ",
    "\n",
    "a\nb",
    "\0",
    "x\0y",
    "..",
    "/",
    "/dev/zero",
    "~",
    "$HOME",
    "$NOT_SET",
    "${",
    "%s",
    "{}",
    "{ill}",
]
TEXTS += [
    "\x1b[2J",
    "\u202e",
    "e\u0301",
    "é",
    "\ufeff",
    "\U0001f98a",
    "\ud800",
    "x" * 5000,
    "a b " * 3000,
    "1/0",
    "1/3",
]
TEXTS += [
    "1e999999999",
    "9" * 5000,
    "nan",
    "inf",
    "-1",
    "0",
    "1",
    "true",
    "null",
    "step",
    "pure",
    "zcdp",
    "replace-one",
]
TEXTS += [
    "add-or-remove-one",
    "boolean",
    "numeric",
    "categorical",
    "sequential",
    "parallel",
    "either",
    "repeat",
    "post",
]

_scalars = st.one_of(st.integers(), st.floats(), st.text(max_size=20))
_lists = st.one_of(st.lists(_scalars, max_size=3), st.dictionaries(st.text(max_size=5), _scalars, max_size=2))
SHAPES: list[Any] = [[], {}, [[]], [{}], {"kind": "step"}, {"kind": "post"}, {"exact": "1/3"}, [0, 1], ["a"]]


@attrs.frozen
class Draw:
    """What draws: values from Hypothesis, which makes them small; places from a generator that it seeds.

    Hypothesis would rather change what it drew before than look elsewhere in a large file.
    """

    value: Callable[[Any], Any]
    random: Random

    def choice(self, among: Sequence[Any]) -> Any:
        """Return one of several."""
        return self.random.choice(among)

    def upto(self, last: int) -> int:
        """Return a whole number from 0 on."""
        return self.random.randint(0, last)

    def once_in(self, times: int) -> bool:
        """Return true, once in so many times."""
        return not self.upto(times - 1)

    def scalar(self) -> Any:
        """Return a strange value that holds no others."""
        if self.once_in(3):
            return self.value(_scalars)
        return self.choice(self.choice((VALUES, TEXTS, TEXTS, NUMBERS, NESTED)))

    def strange(self) -> Any:
        """Return a strange value."""
        return self.choice((self.scalar, self.scalar, lambda: _copy(self.choice(SHAPES)), lambda: self.value(_lists)))()


def text_of(value: Any, *, toml: bool) -> str:
    """Write a value in JSON, or as an inline value of TOML."""
    match value:
        case Raw():
            return str(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if toml else json.dumps(value)
        case dict():
            is_to = " = " if toml else ": "
            pairs = (
                f"{text_of(str(key), toml=toml)}{is_to}{text_of(inner, toml=toml)}" for key, inner in value.items()
            )
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple():
            return "[" + ", ".join(text_of(inner, toml=toml) for inner in value) + "]"
        case None:
            return '""' if toml else "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
    return repr(value) if toml else json.dumps(value)


def toml_of(form: dict[str, Any]) -> bytes:
    """Write a file of TOML."""
    lines = (f"{text_of(str(key), toml=True)} = {text_of(value, toml=True)}\n" for key, value in form.items())
    return "".join(lines).encode("utf-8", "surrogatepass")


def json_of(form: Any) -> bytes:
    """Write a file of JSON."""
    return text_of(form, toml=False).encode()


def _places(form: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(form, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from _places(value, (*path, key))


def _copy(form: Any) -> Any:
    if isinstance(form, dict):
        return {key: _copy(value) for key, value in form.items()}
    return [_copy(value) for value in form] if isinstance(form, list) else form


def _at(form: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        form = form[key]
    return form


def _alike(draw: Draw, form: Any, value: Any) -> Any:
    """Return a value of the same type: one that comes further than a wrong type."""
    others = [other for path in _places(form) if type(other := _at(form, path)) is type(value) and other != value]
    match value:
        case bool():
            return not value
        case str():
            return draw.choice(TEXTS + others)
        case int() | float():
            return draw.choice([*VALUES[:-3], -value, value + 1, value * 10**6, *others])
    return _copy(draw.choice(others)) if others else draw.strange()


def _change(draw: Draw, form: Any) -> None:
    """Change a tree at one place."""
    path = draw.choice(list(_places(form)))
    inner, last = _at(form, path[:-1]), path[-1]
    ways = (*["alike"] * 8, "replace", "replace", "delete", "again", "wrap", "rename", "move", "add")
    match draw.choice(ways):
        case "alike":
            inner[last] = _alike(draw, form, inner[last])
        case "replace":
            inner[last] = draw.strange()
        case "delete":
            del inner[last]
        case "wrap":
            inner[last] = draw.choice(([inner[last]], {"a": inner[last]}, [inner[last]] * 3))
        case "move":
            inner[last] = _copy(_at(form, draw.choice(list(_places(form)))))
        case "again" | "add" | "rename" as how if isinstance(inner, list):
            inner.insert(draw.upto(len(inner)), _copy(inner[last]) if how == "again" else draw.strange())
        case "again":
            inner[Again(last)] = draw.choice((_copy(inner[last]), draw.strange()))
        case how:
            value = inner.pop(last) if how == "rename" else draw.strange()
            inner[draw.choice([*TEXTS, "kind", "name", "epsilon"])] = value


def changed(draw: Draw, form: Any) -> Any:
    """Return a tree that differs from a form at one place, or a few."""
    form = _copy(form)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if form:
            _change(draw, form)
    return form


SNIPPETS = [b"", b"\0", b'"', b"'", b"[", b"]", b"{", b"}", b",", b"=", b"\n", b"\r", b"\xff", b"\xef\xbb\xbf", b"\\"]
SNIPPETS += [
    b"9" * 5000,
    b"[" * 3000,
    b"x" * 9000,
    b"\xed\xa0\x80",
    b"#",
    b"-",
    b".",
    b"e9",
    b'"""',
    b"\x80\x80\x80\x80",
]
SNIPPETS += [b"\x80\x80\x80\x80"]


def broken(draw: Draw, content: bytes, *, more: Sequence[bytes] = ()) -> bytes:
    """Return bytes that differ from a file's at one place, or a few; `more` may be put there too."""
    for _ in range(draw.choice((1, 1, 2, 4))):
        start = draw.upto(len(content))
        end = min(len(content), start + draw.choice((0, 1, 1, 2, 4, 16, 100, 10**9)))
        match draw.choice(("put", "put", "flip", "again", "move")):
            case "put":
                new = draw.choice([*SNIPPETS, *more]) if draw.upto(1) else draw.value(st.binary(max_size=6))
                content = content[:start] + new + content[end:]
            case "flip" if start < len(content):
                content = content[:start] + bytes([content[start] ^ 1 << draw.upto(7)]) + content[start + 1 :]
            case "again":
                content = content[:end] + content[start:end] + content[end:]
            case _:
                place = draw.upto(len(content))
                content = content[:start] + content[place : place + end - start] + content[end:]
    return content


CELLS = [
    "",
    " ",
    "true",
    "YES",
    "1",
    "1.0",
    "-1",
    "1e400",
    "nan",
    "inf",
    "NULL",
    "a",
    "b",
    "\0",
    '"',
    ",",
    "\n",
    "é",
    "A",
]
CELLS += [
    SECRET,
    f"{SECRET},{SECRET}",
    f'"{SECRET}',
    f"{SECRET}\n{SECRET}",
    f"1{SECRET}",
    "9" * 400,
    "1/3",
    "0x10",
    "٣",
]


def changed_cells(draw: Draw, rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return a table of texts, its header first, in which a few cells, rows or columns are others."""
    table = [list(row) for row in rows]
    for _ in range(1 + draw.upto(3)):
        if not table:
            break
        at = draw.upto(len(table) - 1)
        match draw.choice(("cell", "cell", "cell", "cell", "header", "drop", "again", "longer", "none")):
            case "cell" | "header" as how:
                row = table[0 if how == "header" else at]
                if row:
                    row[draw.upto(len(row) - 1)] = (
                        draw.choice(CELLS) if draw.upto(2) else draw.value(st.text(max_size=6))
                    )
            case "drop":
                del table[at]
            case "again":
                table.insert(at, list(table[at]))
            case "longer":
                table[at].append(draw.choice(CELLS))
            case _:
                del table[1:]
    return table
