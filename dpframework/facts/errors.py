"""The errors of dpframework. A message is one sentence with cause and remedy, and never shows a private row's value."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

from dpframework.facts.control_character_escapes import printable_lines
from dpframework.facts.phrases import first_of

#: A longer message is cut to about this many characters, since nobody reads a quoted value of thousands of characters.
LONGEST = 2000

_LONG_WORD = re.compile(r"(\S{100})\S{300,}(\S{20})")


class DPFrameworkError(Exception):
    """Base of every error that dpframework raises on purpose.

    Attributes
    ----------
    results
        If a run had begun, a `Results` of its finished miners with the amount spent, so that no paid release is lost.
        Else None.
    """

    results: Any | None = None

    def __str__(self) -> str:
        """Return the sentence. A very long word, and a sentence above `LONGEST`, are shortened in the middle."""
        text = _LONG_WORD.sub(r"\1...\2", printable_lines(super().__str__()))
        return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


class InputError(DPFrameworkError, ValueError):
    """Bad input, such as a file, schema, study, parameter or name that cannot be used (exit code 2)."""


class NotOpened(InputError):  # noqa: N818 - names what happened
    """A table that could not be opened, so that no row was seen. For example, there is no such file."""


class DoesNotFit(InputError):  # noqa: N818 - names what happened
    """Rows that contradict what their owner declared about them.

    Attributes
    ----------
    kind
        The declaration: "data-fits-schema", "rows", "max_rows" or "dates". A private run reveals nothing else of
        the error.
    """

    def __init__(self, message: str, *, kind: str = "data-fits-schema") -> None:
        super().__init__(message)
        self.kind = kind


class QueryStopped(InputError):  # noqa: N818 - names what happened
    """An SQL query that a database ended before the query had an answer.

    Attributes
    ----------
    kind
        How the query ended: "query timed out" or "query cancelled". A ledger records this, and nothing else is
        revealed.
    """

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class PlanRefused(DPFrameworkError):  # noqa: N818 - names what happened
    """A plan, or a run of it, that a check, an accountant or a ledger refuses (exit code 1).

    The refused run spends nothing.
    """


class ReleaseRefused(DPFrameworkError):  # noqa: N818 - names what happened
    """A release, partition, sample or block that the plan does not hold, or that the ledger refuses.

    The refused release spends nothing.
    """


class RunStopped(DPFrameworkError):  # noqa: N818 - names what happened
    """A run stopped by an unexpected failure of a miner, or by the user. `results` holds the earlier results.

    Attributes
    ----------
    interrupted
        Whether the user stopped the run (exit code 130).
    """

    def __init__(self, message: str, *, interrupted: bool = False) -> None:
        super().__init__(message)
        self.interrupted = interrupted


def is_failure(error: BaseException) -> bool:
    """Tell whether an exception is a failure. A request to end this process, such as Ctrl-C, is not.

    A panic of a library written in Rust is a failure, and its text may quote a cell. Each library raises its own class
    for a panic, and that class does not derive from `Exception`.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


#: What the `kind` of a `DoesNotFit` or `QueryStopped` may be, so that a plugin's error reveals nothing else.
KINDS = ("data-fits-schema", "rows", "max_rows", "dates", "query timed out", "query cancelled")


_SIGNAL_CODES = range(129, 193)  # the exit codes of programs that a signal ended
_BETWEEN = ("dpframework", "attr", "attrs", "typeguard", "")  # "" since the functions that attrs writes have no package


def raised_here(error: BaseException) -> bool:
    """Tell whether only dpframework's own code raised an error, so that the error's text quotes no private row.

    A plugin may raise dpframework's errors too, with a text that quotes what the plugin has read. It may also call
    dpframework's code with what it has read, and then the text of the error quotes this. So from its first frame of
    dpframework on, the traceback may hold only code of dpframework, of the standard library, and of packages that
    merely stand between two functions of dpframework.
    """
    frames, ours = error.__traceback__, False
    while frames is not None:
        package = str(frames.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if ours and package not in _BETWEEN and package not in sys.stdlib_module_names:
            return False
        ours = ours or package == "dpframework"
        frames = frames.tb_next
    return ours


def bare_request(error: BaseException) -> BaseException:
    """Return a request to end this process that says nothing but that, in place of one that private code made.

    Python would print the text of the original, which may quote a row. Its class and its exit code may be a cell, too.
    So the result is a `KeyboardInterrupt`, a `GeneratorExit`, or a `SystemExit` with code 1. Only the codes by which
    programs say that a signal ended them are kept.
    """
    for kind in (KeyboardInterrupt, GeneratorExit):
        if isinstance(error, kind):
            return kind()
    code = error.code if isinstance(error, SystemExit) else None
    return SystemExit(code if type(code) is int and code in _SIGNAL_CODES else 1)


def clear_locals(error: BaseException) -> None:
    """Clear the local variables of all finished functions in the tracebacks of an error and of its causes.

    They may hold rows and exact answers. Python shows none of them, but consoles, notebooks, test runners and services
    that collect errors can. Files and lines stay.
    """
    left: list[BaseException | None] = [error]
    cleared: set[int] = set()
    while left:
        one = left.pop()
        if one is not None and id(one) not in cleared:
            cleared.add(id(one))
            traceback.clear_frames(one.__traceback__)
            left += [one.__cause__, one.__context__]


@contextlib.contextmanager
def refuse_loops(subject: str) -> Iterator[None]:
    """Run a block that writes a value down. Refuse the value if it contains itself or is nested too deeply.

    Parameters
    ----------
    subject
        The beginning of the message, which names the value and its owner.
    """
    try:
        yield
    except RecursionError:
        raise InputError(
            f"{subject} contains itself or is nested too deeply, so the plan cannot be written down; "
            "give it a simpler value"
        ) from None


@contextlib.contextmanager
def needing_scikit_learn(what: str) -> Iterator[None]:
    """Raise an error that names the feature which needs scikit-learn, if the block fails to import it.

    Parameters
    ----------
    what
        The name of the feature, which begins the message.

    Raises
    ------
    ImportError
        If scikit-learn, an extra, is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("sklearn"):
            raise
        raise ImportError(f"{what} needs scikit-learn: pip install 'dpframework[sklearn]'") from error


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the known name closest to `name`, or lists a few known ones.

    Examples
    --------
    >>> nearest("incme", ["income", "age"])
    "did you mean 'income'?"
    >>> nearest("mcmc", ["mcmc-converged", "noisy-result"])
    "did you mean 'mcmc-converged'?"
    """
    names = sorted(known)
    close = [known_name for known_name in names if known_name.casefold() == name.casefold()]
    close = close or difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    begun = [known_name for known_name in names if len(name) > 2 and known_name.startswith(name)]
    close = close or begun[:1]  # the given name may be a short form, such as the first word
    if close:
        return f"did you mean '{close[0]}'?"
    if not names:
        return "none is known here"
    return f"known: {first_of(names, 8)}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return str(error).strip().split("\n")[0]


def place_of_error(error: BaseException) -> str:
    """Return a text such as " in trees.py, line 12" for where an error was raised; empty if that is not known."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" in {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}" if frames else ""
