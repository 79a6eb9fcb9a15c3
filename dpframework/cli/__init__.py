"""The command line, with one module for each group of commands. This module starts commands and reports their errors.

A command loads only its own module. If the first word is no command, as in `dpframework --help`, all modules are
loaded.
"""

from __future__ import annotations

import codecs
import errno
import functools
import importlib
import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dpframework.cli.command_classes import CommandGroup
from dpframework.cli.common import BAD_INPUT, REFUSED, say
from dpframework.facts.errors import DPFrameworkError, PlanRefused, ReleaseRefused, first_line, place_of_error
from dpframework.version import __version__

INTERRUPTED = 130
PIPE_CLOSED = 141

#: The module of each command, in the order in which help lists them.
COMMANDS: Mapping[str, str] = {
    "miners": "list_and_explain_components",
    "mechanisms": "list_and_explain_components",
    "explain": "list_and_explain_components",
    "describe": "describe",
    "plan": "plan",
    "check": "plan",
    "epsilon": "plan",
    "forecast": "forecast",
    "run": "run",
    "report": "report",
    "statements": "dossier_registry_entry_and_owner_statements",
    "verify": "verify",
    "prove": "proof_commands",
    "audit-proof": "proof_commands",
    "experiment": "experiment",
    "new": "new",
    "demo": "demo",
    "schema": "schemas",
    "ledger": "ledgers",
}


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"dpframework {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Accept the options that stand before a command."""


@functools.cache  # a process may run several commands
def command(name: str | None = None) -> Any:
    """Return the program. If `name` is given, the program has at least that command, and otherwise all commands."""
    app = typer.Typer(
        name="dpframework",
        cls=CommandGroup,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Composable differential-privacy mechanisms and miners: plan, check, run, verify.",
        epilog="Example: dpframework demo",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for module in dict.fromkeys(COMMANDS.values() if name is None else [COMMANDS[name]]):
        app.add_typer(
            importlib.import_module(f"dpframework.cli.{module}").app
        )  # an app without a name adds its commands to the top
    return typer.main.get_command(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    - 0: all went well.
    - 1: something was refused, or a check, a test, a proof or a cell of an experiment failed.
    - 2: wrong usage or bad input.
    - 130: interrupted.
    - 141: the reader of a pipe went away.
    """
    # A stream whose encoding is not a form of UTF may lack characters. Then it writes a ? for each missing character.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not codecs.lookup(stream.encoding).name.startswith("utf"):
            stream.reconfigure(errors="replace")
    try:
        return _outcome(arguments)
    finally:
        # Drop text that a closed pipe or a full disk refused, so that the interpreter does not complain at exit.
        # typer may have wrapped standard output, so the stream below the wrapper is flushed, too.
        for used in (sys.stdout, sys.__stdout__, sys.stderr):
            if used is None:
                continue
            try:
                used.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), used.fileno())
            except ValueError:  # the stream is closed
                continue


def _outcome(arguments: Sequence[str] | None) -> int:
    """Run one command, say why it stopped, and return its exit code."""
    try:
        os.getcwd()
    except FileNotFoundError:
        # Libraries ask for the folder in odd places, so a run could stop in the middle of its releases.
        say("error: the working folder was deleted; change to another one")
        return BAD_INPUT
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        # Without standalone mode, errors come back here, and typer prints no usage text or traceback itself.
        code = command(words[0] if words and words[0] in COMMANDS else None).main(
            args=words, prog_name="dpframework", standalone_mode=False
        )
        if sys.stdout is not None:
            sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        return PIPE_CLOSED
    except SystemExit as left:
        # typer and rich leave this way when the reader of a pipe goes away.
        if isinstance(left.__context__, BrokenPipeError):
            return PIPE_CLOSED
        raise
    except (PlanRefused, ReleaseRefused) as error:
        say(f"refused: {error}")
        return REFUSED
    except DPFrameworkError as error:
        if getattr(error, "interrupted", False):
            say(str(error))
            return INTERRUPTED
        # A run that stopped keeps its cause only if it was seeded, and so not private. So the cause may be shown here.
        cause = None if error.results is None else error.__cause__
        say(f"error: {error}" if cause is None else f"error: {error}: {_describe_error(cause)}")
        return BAD_INPUT
    except Exception as error:
        # Some versions of typer have their own copy of click, so an error of usage is not always of the same class.
        if hasattr(error, "format_message"):
            reason, context = error.format_message().rstrip("."), getattr(error, "ctx", None)
            path = "dpframework" if context is None else context.command_path
            # If the help was printed, there is no reason to report.
            sentence = f"{reason}; see '{path} --help'" if reason else ""
        elif isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else "cannot write: " if error.errno == errno.ENOSPC else ""
            cut = DPFrameworkError(
                f"{where}{error.strerror or type(error).__name__}"
            )  # the constructor shortens a long name
            sentence = str(cut)
        else:
            sentence = f"unexpected {_describe_error(error)}; dpframework or a plugin has a bug here"
        if sentence:
            say(f"error: {sentence}")
        return BAD_INPUT
    if code == INTERRUPTED:  # some versions of typer return this code instead of raising an error
        say("interrupted")
    return code if isinstance(code, int) else 0


def _describe_error(error: BaseException) -> str:
    """Return an error's class, place and first line."""
    reason = first_line(error)
    return f"{type(error).__name__}{place_of_error(error)}{f' ({reason})' if reason else ''}"
