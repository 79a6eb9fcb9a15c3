"""Commands whose help shows flags without a type, and whose simple arguments are read without pydantic.

The paragraphs of a help text are broken at the width of the terminal, not where the docstring breaks them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup


class _Plain:
    """A command that shows flags without a type, joins the lines of its help, and reads simple parameters itself."""

    help: str | None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        paragraphs = re.split(r"\n\s*\n", self.help or "")
        self.help = "\n\n".join(" ".join(one.split()) for one in paragraphs) or None
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""  # typer would show a type, but a flag takes no value
            _read_simply(parameter)
        return parameters


def _read_simply(parameter: Any) -> None:
    """Bypass typer's adapters for texts, flags, and parameters for which we have our own parser.

    Newer versions of typer make a pydantic adapter for each value, and pydantic takes longer to load than numpy. Typer
    still reads all other parameters. Its older versions make no adapters and read all parameters.
    """
    described = getattr(parameter, "type_descriptor", None)
    if described is None or isinstance(parameter.process_value, functools.partial):
        return
    read = described.parameter_info.parser
    if parameter.multiple or parameter.nargs != 1:
        read = None
    elif read is None and described.annotation is str:
        read = str
    elif read is None and getattr(parameter, "is_flag", False):
        read = bool
    parameter.process_value = functools.partial(_process, parameter, read, parameter.process_value)


def _process(
    parameter: Any, read: Callable[[Any], Any] | None, by_typer: Callable[..., Any], context: Any, value: Any
) -> Any:
    if value is None and not parameter.required:
        value = () if parameter.multiple or parameter.nargs == -1 else None
    elif value is None or read is None:
        return by_typer(context, value)
    else:
        value = read(value)
    return value if parameter.callback is None else parameter.callback(context, parameter, value)


class Command(_Plain, TyperCommand):
    """A command of the program."""


class CommandGroup(_Plain, TyperGroup):
    """A group of commands of the program."""
