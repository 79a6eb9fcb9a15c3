"""Completion of arguments in shells, such as names of miners, engines, steps of a study, and columns of a file.

If the names cannot be found, nothing is completed and no error is shown, since somebody who presses the tab key runs no
command yet.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer

#: A function that returns the possible values of an argument that begin with the typed text.
Completion = Callable[[typer.Context, str], list[str]]


def _completing(known: Callable[[Any], Iterable[str]]) -> Completion:
    """Return a completion that keeps those known names that begin with the typed text."""

    @functools.wraps(known)
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found: list[str] = []
        with contextlib.suppress(Exception):
            found = [name for name in known(ctx) if name.startswith(incomplete)]
        return found

    # typer finds out from the annotations which arguments the function takes.
    complete.__annotations__ = {"ctx": typer.Context, "incomplete": str, "return": list[str]}
    del complete.__wrapped__
    return complete


def _words(ctx: Any) -> list[str]:
    """Return the typed words after the command's name.

    The words are read from the shell, since click parses nothing while an option lacks its value.
    """
    typed = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return shlex.split(typed)[len(ctx.command_path.split()) :]


def _argument(ctx: Any) -> Path:
    """Return the first typed word after the command's name, which should name a study file, a data file or a miner."""
    return Path(_words(ctx)[0]).expanduser()


@_completing
def miners(_: Any) -> Iterable[str]:
    """Name the installed miners."""
    from dpframework.study.plugin_registry import registry

    return registry().miners


@_completing
def mechanisms(_: Any) -> Iterable[str]:
    """Name the installed mechanisms."""
    from dpframework.study.plugin_registry import registry

    return registry().mechanisms


@_completing
def engines(_: Any) -> Iterable[str]:
    """Name the installed engines."""
    from dpframework.study.plugin_registry import registry

    return registry().engines


@_completing
def subjects(_: Any) -> Iterable[str]:
    """Name everything that `verify` tests: miners, mechanisms, accountants, and the study files in this folder."""
    from dpframework.study.plugin_registry import registry

    known = registry()
    return [*known.miners, *known.mechanisms, *known.accountants, *(str(path) for path in Path().glob("*.toml"))]


@_completing
def steps(ctx: Any) -> Iterable[str]:
    """Name the steps of the study file that was typed before, or the examples of the miner."""
    given = _argument(ctx)
    if given.suffix != ".toml":
        from dpframework.study.plugin_registry import registry

        examples: Iterable[str] = registry().miners[str(given)].component.examples()
        return examples
    from dpframework.facts.toml import read_toml

    return [str(step["name"]) for step in read_toml(given, "a study file")["step"]]


@_completing
def attributes(ctx: Any) -> Iterable[str]:
    """Name the columns of the file that was typed before."""
    from dpframework.facts.read_options import ReadOptions
    from dpframework.tables.file_guess import guess_file
    from dpframework.tables.output_suppression import silenced
    from dpframework.tables.sources import open_source

    typed = dict(itertools.pairwise(_words(ctx)))
    options = {key: text for key in ("sheet", "table", "query") if (text := typed.get(f"--{key}"))}
    file = _argument(ctx)
    with silenced(streams=True):
        return open_source(file, read=ReadOptions.of(options) if options else guess_file(file)).columns
