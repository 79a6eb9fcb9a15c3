"""What the commands share: where they print, the options that several take, and opening what they are given."""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpframework.errors import InputError
from dpframework.registry import registry
from dpframework.study import StudyPlan, to_json_safe
from dpframework.studyfile import load_study

if TYPE_CHECKING:
    from rich.console import Console

REFUSED = 1
BAD_INPUT = 2
PIPE_WIDTH = 120

Json = Annotated[bool, typer.Option("--json", help="Write JSON for machines, and nothing else, to standard output.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="For experiments: reproducible draws; the results are marked NOT PRIVATE."),
]


@functools.cache
def console(*, stderr: bool = False) -> Console:
    """Return the console of a stream; in a pipe it is wide enough for tables and has no colours."""
    from rich.console import Console

    found = Console(stderr=stderr, highlight=False, soft_wrap=False)
    return found if found.is_terminal else Console(stderr=stderr, highlight=False, width=PIPE_WIDTH)


def say(sentence: str) -> None:
    """Write one line to standard error."""
    print(" ".join(sentence.split()), file=sys.stderr)


def json_text(form: Any) -> str:
    """Return JSON, whatever a plugin's result holds: a run that was paid for must not be lost to its last line."""
    return json.dumps(_finite(form), indent=2, default=to_json_safe, allow_nan=False)


def _finite(form: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by null."""
    if isinstance(form, Mapping):
        return {str(key): _finite(value) for key, value in form.items()}
    if isinstance(form, list | tuple):
        return [_finite(value) for value in form]
    if hasattr(form, "tolist"):
        return _finite(form.tolist())
    return None if isinstance(form, float) and not math.isfinite(form) else form


def print_json(form: Any) -> None:
    """Write JSON to standard output."""
    print(json_text(form))


def warn_of_problems() -> None:
    """Name each plugin problem on standard error."""
    for problem in registry().problems:
        say(f"warning: {problem}")


def open_plan(path: Path) -> StudyPlan:
    """Return the plan of a study file, or one that `run` or `plan --format json` wrote.

    Raises
    ------
    InputError
        If the file is neither.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; a study file (.toml) or a plan (.json) is expected")
    if path.suffix == ".json":
        return StudyPlan.from_json(read_text(path), source=str(path))
    return load_study(path).study.plan()


def read_text(path: Path) -> str:
    """Return a UTF-8 file's text.

    Raises
    ------
    InputError
        If there is no such file, or it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
