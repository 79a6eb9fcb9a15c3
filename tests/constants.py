"""What plans, files and verdicts rely on: constants of every module, such as limits, tolerances and versions.

    python tests/constants.py

writes `constants.txt` anew. A test compares: a limit or tolerance that moves by accident changes what is accepted, and
no test of a study would notice. Left out are those of which the mutation targets say that any other would do as well.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from signatures import modules

PAGE = Path(__file__).with_suffix(".txt")
TARGETS = Path(__file__).parent / "mutation" / "targets"
OF_THE_SYSTEM = ("_FLAGS",)  # as the system numbers them
OTHERWISE = ("witnesses", "plots", "file_read_and_write_watch")  # tables to try, the look of pictures, the time of day


def lines() -> Iterator[str]:
    """Yield a line for each constant that is a number, or holds some, in the order of modules."""
    for module in modules():
        if module.__name__.rpartition(".")[2] not in OTHERWISE:
            yield from _of_module(module)


def _of_module(module: Any) -> Iterator[str]:
    path = "/".join(Path(module.__file__).parts[-len(module.__name__.split(".")) :])
    for name in _assigned(Path(module.__file__).read_text(encoding="utf-8")):
        value = getattr(module, name, None)  # no value: only a type checker sees it
        if _has_numbers(value) and name not in OF_THE_SYSTEM and not _is_free(path, name):
            yield f"{module.__name__}.{name} = {_text(value)}"


def _assigned(source: str) -> Iterator[str]:
    """Yield the constants that a module assigns, `A, B = 1, 2` and private ones, too."""
    for statement in ast.parse(source).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for name in (node for target in targets if target is not None for node in ast.walk(target)):
            if isinstance(name, ast.Name) and name.id.isupper() and isinstance(name.ctx, ast.Store):
                yield name.id


def _has_numbers(value: Any) -> bool:
    if isinstance(value, tuple | list | frozenset):
        return any(map(_has_numbers, value))
    if isinstance(value, dict):
        return any(map(_has_numbers, value.values()))
    return type(value) in (int, float, Fraction)


def _text(value: Any) -> str:
    return repr(sorted(value)) if isinstance(value, frozenset) else repr(value)


def _is_free(path: str, name: str) -> bool:
    return any(name in names and fnmatch(path, f"*{Path(pattern).name}") for pattern, names in _left_out())


@cache
def _left_out() -> list[tuple[str, list[str]]]:
    """Return what the mutation targets leave out: patterns of modules, and names."""
    said = [tomllib.loads(file.read_text(encoding="utf-8")) for file in sorted(TARGETS.glob("*.toml"))]
    return [(entry["modules"], entry["names"]) for target in said for entry in target.get("left_out", [])]


def page() -> str:
    """Return the whole list."""
    return "".join(f"{line}\n" for line in lines())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
