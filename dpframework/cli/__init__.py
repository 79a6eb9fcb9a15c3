"""The command line: one module a group of commands; this one puts them together and turns errors into sentences."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer

from dpframework.cli import demo, listing, planning, running, schemas
from dpframework.cli.shared import BAD_INPUT, REFUSED, say
from dpframework.errors import DPFrameworkError, PlanRefused, ReleaseRefused

INTERRUPTED = 130
PIPE_CLOSED = 141

app = typer.Typer(
    name="dpframework",
    help="Composable differential-privacy mechanisms and miners: plan, check, run.",
    epilog="Example: dpframework demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for module in (listing, planning, running, demo):
    module.register(app)
app.add_typer(schemas.app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 fine, 1 refused by a check, 2 wrong usage or bad input."""
    command = typer.main.get_command(app)
    try:
        # Not standalone: errors come back here and none prints a usage text or a traceback of its own.
        code = command.main(
            args=None if arguments is None else list(arguments), prog_name="dpframework", standalone_mode=False
        )
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return _pipe_closed()
    except SystemExit as stopped:
        # typer and rich leave this way when the reader of a pipe goes away.
        if isinstance(stopped.__context__, BrokenPipeError):
            return _pipe_closed()
        raise
    except (PlanRefused, ReleaseRefused) as error:
        say(f"refused: {error}")
        return REFUSED
    except DPFrameworkError as error:
        say(f"error: {error}")
        return BAD_INPUT
    except Exception as error:
        sentence = _usage(error) if hasattr(error, "format_message") else _sentence(error)
        if sentence:
            say(f"error: {sentence}")
        return BAD_INPUT
    return code if isinstance(code, int) else 0


def _pipe_closed() -> int:
    # What is still buffered would fail again when the interpreter flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def _usage(error: Any) -> str:
    """Say what is wrong with the arguments; nothing if the help was printed instead.

    typer has its own copy of click, or click itself, by its version: the class of these errors has no one name.
    """
    reason = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    command = "dpframework" if context is None else context.command_path
    return f"{reason}; see '{command} --help'" if reason else ""


def _sentence(error: Exception) -> str:
    """Say in one sentence what went wrong, for errors that are not dpframework's own."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or type(error).__name__}"
    reason = str(error).strip().split("\n")[0]
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}" if frames else ""
    what = f"{type(error).__name__}{place}{f' ({reason})' if reason else ''}"
    return f"unexpected {what}; dpframework or a plugin has a bug here"
