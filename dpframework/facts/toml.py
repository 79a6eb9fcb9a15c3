"""Reading and writing TOML files, with one sentence for each mistake.

Schemas, study files and experiment files are read with these functions. Their parameter `where` is the beginning of
an error's text, such as "step 'tree': ".
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dpframework.facts.control_character_escapes import is_printable
from dpframework.facts.errors import DPFrameworkError, InputError, nearest
from dpframework.facts.files import read_text
from dpframework.facts.input_limits import MOST_KEY_PARTS, MOST_NESTED, MOST_TOML_BYTES
from dpframework.facts.value_checks import require_shallow, too_deep

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_UNSET = re.compile(r"\$(\w+|\{[^}]*\})")


@contextlib.contextmanager
def prefix_errors(where: str) -> Iterator[None]:
    """Let the sentence of every error begin with `where`, unless it already does.

    Raises
    ------
    InputError
        In place of any `DPFrameworkError`.
    """
    try:
        yield
    except DPFrameworkError as error:
        text = str(error)
        raise InputError(text if text.startswith(where.rstrip()) else f"{where}{text}") from None


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Read a TOML file in UTF-8. `what` names the kind of file that is expected.

    Raises
    ------
    InputError
        If the file cannot be read or is not TOML. The message names the file.
    """
    text = read_text(path, f"{what} in TOML", most=MOST_TOML_BYTES)
    with prefix_errors(f"{path}: "):
        return parse_toml(text, what)


def parse_toml(text: str, what: str = "the file") -> dict[str, Any]:
    """Return the contents of a TOML file's text.

    Raises
    ------
    InputError
        If the text is not TOML, or is larger or nested deeper than `facts.input_limits` allows.
    """
    if len(text) > MOST_TOML_BYTES:
        raise InputError(f"is larger than the {MOST_TOML_BYTES >> 20} MiB that such a file may have")
    # The time to read a key grows with the square of the number of its parts, so a key of many parts is refused first.
    if text.count(".") >= MOST_KEY_PARTS and any(token["long"] is not None for token in _TOKEN.finditer(text)):
        raise InputError(f"has a key of more than {MOST_KEY_PARTS} parts, separated by dots; give fewer")
    try:
        form = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"is not TOML, as {what} must be: {error}; write each key once, texts in quotes, and decimals with a point"
        ) from None
    except RecursionError:
        raise too_deep(MOST_NESTED) from None
    except ValueError:  # Python refuses a whole number of more than 4,300 digits
        raise InputError("cannot be read: a number in it has thousands of digits") from None
    require_shallow(form, MOST_NESTED)
    return form


_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
#: A text or a comment (which may hold anything), a key of too many parts, or a single part of a key. A text that is not
#: closed matches too, so that no character of a file is examined twice.
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"*+|' + r"'''(?:[^']|'(?!''))*+'*+|#[^\n]*+|"
    + rf"(?P<long>{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_KEY_PARTS}}})|{_PART}"
    + r'|"(?:[^"\\\n]|\\.)*+|' + r"'[^'\n]*+",
    re.DOTALL,
)  # fmt: skip


def toml_lines(form: Mapping[str, Any]) -> str:
    """Write each key of a table on a line of its own, so that `parse_toml` can read it.

    Each list stands on one line, as people write it. The package tomli_w would write it on several lines.

    Examples
    --------
    >>> print(toml_lines({"rows": 40, "values": ["no", "yes"]}), end="")
    rows = 40
    values = ["no", "yes"]
    """
    return "".join(f"{key} = {_toml_value(value)}\n" for key, value in form.items())


def toml_key(name: str) -> str:
    """Return a key as it stands in a TOML file, in quotes where it needs them.

    Examples
    --------
    >>> toml_key("visit"), toml_key("first visit")
    ('visit', '"first visit"')
    """
    return name if _BARE.fullmatch(name) else _toml_value(name)


def _toml_value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # A JSON string is a TOML string, except that TOML wants DEL escaped. Invisible characters are escaped too.
            text = json.dumps(value, ensure_ascii=False)
            return text if is_printable(text) else "".join(map(_toml_character, text))
        case list():
            return "[" + ", ".join(map(_toml_value, value)) + "]"
        case dict():
            return "{ " + ", ".join(f"{toml_key(key)} = {_toml_value(inner)}" for key, inner in value.items()) + " }"
        case _:
            return repr(value)


def _toml_character(character: str) -> str:
    if is_printable(character):
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def resolve_path(text: str, folder: Path) -> Path:
    """Return a path with environment variables (`$NAME`, `${NAME}`) and `~` replaced. A relative path is in `folder`.

    Raises
    ------
    InputError
        If an environment variable is not set, or the path holds a NUL character.
    """
    path = expand(text)
    if "\0" in path:
        raise InputError(f"the path {path!r} holds a NUL character, which no path can")
    return folder / os.path.expanduser(path)


def expand(text: str) -> str:
    """Return a text with `$NAME` and `${NAME}` replaced by the values of these environment variables.

    Raises
    ------
    InputError
        If an environment variable is not set.
    """
    found = os.path.expandvars(text)
    unset = _UNSET.search(found)
    if unset is not None:
        name = unset.group(1).strip("{}")
        # The text is not shown, since it may be a secret.
        raise InputError(f"a text uses the environment variable {name}, which is not set")
    return found


def require_table(form: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the table of a key, which a TOML file writes as `[key]`.

    Raises
    ------
    InputError
        If there is no such key, or its value is not a table.
    """
    if key not in form:
        raise InputError(f"has no [{key}] table")
    table = form[key]
    if not isinstance(table, Mapping):
        raise InputError(f"'{key}' must be a table, written as [{key}], not {kind_of(table)}")
    return table


def require_text(form: Mapping[str, Any], key: str, where: str) -> str:
    """Return the text of a key.

    Raises
    ------
    InputError
        If there is no such key, or its value is not a text or is blank.
    """
    if key not in form:
        raise InputError(f"{where}has no '{key}'")
    value = form[key]
    if not isinstance(value, str):
        raise InputError(f"{where}{key} must be a text, not {kind_of(value)}")
    if not value.strip():
        raise InputError(f"{where}{key} must not be blank")
    return value


def refuse_unknown(form: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    """Refuse an unknown key, and name the nearest known one. `what` begins the sentence."""
    known = tuple(known)
    for key in form:
        if key not in known:
            raise InputError(f"{what} '{key}'; {nearest(str(key), known)}")


def kind_of(value: object) -> str:
    """Return words for the type of a TOML value.

    Examples
    --------
    >>> kind_of(True), kind_of(0.5), kind_of([])
    ('true or false', 'a number', 'a list')
    """
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case datetime.date() | datetime.time():
            return "a date or time"
    return "a table"
