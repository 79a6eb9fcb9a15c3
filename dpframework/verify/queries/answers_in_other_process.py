"""Queries that are evaluated again in a new process, which has their code but nothing that this process keeps.

An engine with workers counts in processes where no miner has run. If a query reads something that a run left behind,
such as a global that `mine` sets, its answer differs there. So all queries of plugins are evaluated again, on the same
rows, in one new process. The process is started before the queries see any table. Otherwise a query could pass
something on through what a new process inherits: the environment, the working folder, limits and priorities.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import io
import os
import pickle
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np

from dpframework.facts.errors import first_line
from dpframework.facts.installed_package_digests import importing_environment
from dpframework.facts.schema import Schema
from dpframework.queries import PiecewiseScores, Query
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.verify.queries.answer_changes import coordinates_of, measure
from dpframework.verify.tables.neighbours import Rows, Universe
from dpframework.verify.tables.small_table_engine import RowsHandle, SmallTables

CHILD = "DPFRAMEWORK_ASKED_ELSEWHERE"  # the environment variable that keeps a new process from starting another one
SECONDS = 120  # a process that has not answered after this time is ended
ROUNDING = 1e-9  # answers count as equal up to this share of their largest number, or of 1 if that is larger
SHOWN = 8  # how many numbers of an answer a message shows


@final
@attrs.frozen(eq=False)
class LocalAnswer:
    """A query, and its answer in this process, for comparison with its answer in another process.

    Attributes
    ----------
    query
        The query.
    schema, rows
        The schema, and a small table, given as the number of each row's kind.
    derived
        The derived attributes that the query reads, each with its cases: the descriptions that define its values.
    inputs
        The inputs of the query at run time.
    answer
        The coordinates of the answer; for a query that failed, the failure as text.
    candidates
        The candidates that the query lists for a selection, pickled. None if it lists none, or if they cannot be
        copied or compared.
    """

    query: Query
    schema: Schema
    rows: Rows
    derived: tuple[Any, ...]
    inputs: Mapping[str, Any]
    answer: Any
    candidates: bytes | None = None

    @classmethod
    def of(
        cls, query: Query, schema: Schema, rows: Rows, derived: tuple[Any, ...], inputs: Mapping[str, Any]
    ) -> LocalAnswer:
        """Evaluate a query in this process, and keep the answer."""
        answer = _answer(query, schema, rows, derived, inputs)
        return cls(query, schema, rows, derived, inputs, answer, _candidates(query, inputs))

    @property
    def pickled(self) -> bytes | None:
        """The question to the new process, as bytes: the query with its table and inputs.

        None if it cannot be pickled, or if it needs the module `__main__` of this process.
        """
        try:
            sent = pickle.dumps((self.query, self.schema, self.rows, self.derived, dict(self.inputs)))
        except Exception:  # an object of a plugin may hold things that cannot be sent
            return None
        return None if b"__main__" in sent else sent


@final
class OtherProcess:
    """A new process that waits for questions. Within such a process no further one is started."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        # The child imports the same modules, and must not start a process of its own.
        if CHILD in os.environ:
            return
        # A random hash seed gives sets another order.
        environment = importing_environment(**{CHILD: "1", "PYTHONHASHSEED": "random"})
        command = [sys.executable, "-c", f"from {__name__} import answer_all; answer_all()"]
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
            )
            self.end = weakref.finalize(self, _end, self._process)

    def answers(self, sent: list[bytes]) -> list[Any] | None:
        """Return the process's answer to each question, with the query's candidates. Call this only once.

        An answer is None if the process cannot read the question. The result is None if there is no process, or if
        it fails.
        """
        if self._process is None:
            return None
        files = {
            name: file
            for name, module in list(sys.modules.items())
            if (file := getattr(module, "__file__", None)) and any(name.encode() in one for one in sent)
        }
        try:
            out, _ = self._process.communicate(pickle.dumps((files, sent)), timeout=SECONDS)
            answers: list[Any] = pickle.loads(out)
        except (subprocess.SubprocessError, OSError, EOFError, pickle.UnpicklingError):
            return None
        finally:
            self.end()
        return answers


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def differences(asked: Sequence[LocalAnswer], other: OtherProcess | None = None) -> list[str | None]:
    """Evaluate queries again in a new process, and return a text for each that says how its answer differs.

    The text is None for an answer that does not differ, and for a query that cannot be sent.

    Parameters
    ----------
    asked
        The queries, with the answers that they gave in this process.
    other
        A process that was started before. By default a process is started now.
    """
    sent = {k: question for k, one in enumerate(asked) if (question := one.pickled) is not None}
    answers = (other or OtherProcess()).answers(list(sent.values())) if sent else None
    found: list[str | None] = [None] * len(asked)
    for k, both in zip(sent, answers or [], strict=False):
        answer, candidates = both or (None, None)
        known = asked[k].candidates
        if known is not None and candidates is not None and pickle.loads(known) != pickle.loads(candidates):
            found[k] = (
                "lists other candidates in a new process, or lists them in another order, as a set may do: when a run "
                "is resumed, a number that was drawn before would name another candidate"
            )
        elif answer is not None and not _same(asked[k].answer, answer):
            found[k] = (
                f"answers {_show(asked[k].answer)} here and {_show(answer)} in a new process, on the same rows: it "
                "reads something that this process keeps, such as a global that `mine` sets, and the workers of an "
                "engine do not have it"
            )
    return found


def _answer(query: Query, schema: Schema, rows: Rows, derived: tuple[Any, ...], inputs: Mapping[str, Any]) -> Any:
    """Return the coordinates of a query's answer, or its failure as text."""
    try:
        answer = answer_of(query, SmallTables(Universe(schema)), RowsHandle(rows, derived, 0), inputs)
        return coordinates_of(query, answer)
    except Exception as error:
        return f"with {type(error).__name__}: {first_line(error)}"


def _candidates(query: Query, inputs: Mapping[str, Any]) -> bytes | None:
    """Return a query's candidates, pickled; None if it lists none, or if a copy does not equal them."""
    if type(query).candidates is Query.candidates:
        return None
    try:
        listed = list(query.candidates(**inputs))
        copied = pickle.dumps(listed)
        return copied if bool(pickle.loads(copied) == listed) else None
    except Exception:  # candidates that cannot be listed, copied or compared are left out of the comparison
        return None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str) or type(one) is not type(other):
        return type(one) is type(other) and bool(one == other)
    if not isinstance(one, PiecewiseScores) and np.shape(one) != np.shape(other):
        return False
    size = 1.0 if isinstance(one, PiecewiseScores) else float(np.abs(one).max(initial=1.0))
    return measure(one, other)["linf"] <= ROUNDING * size


def _show(answer: Any) -> str:
    numbers = answer if isinstance(answer, str) else np.ravel(getattr(answer, "scores", answer))
    if isinstance(numbers, str):
        return numbers
    return ", ".join(f"{number:g}" for number in numbers[:SHOWN]) + (", ..." if len(numbers) > SHOWN else "")


def answer_all() -> None:
    """Answer the questions on standard input; this runs in the new process. What queries print is discarded."""
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    files, sent = pickle.loads(sys.stdin.buffer.read())
    answers: list[Any] = []
    for one in sent:
        try:
            question = _Questions(io.BytesIO(one), files).load()
        except Exception:  # the query's module cannot be imported here, so the answer stays unknown
            answers.append(None)
            continue
        answers.append((_answer(*question), _candidates(question[0], question[-1])))
    with os.fdopen(out, "wb") as stream:
        stream.write(pickle.dumps(answers))


class _Questions(pickle.Unpickler):
    """Reads questions. The modules of their classes are imported by name, or else from their files."""

    def __init__(self, stream: io.BytesIO, files: Mapping[str, str]) -> None:
        super().__init__(stream)
        self._files = files

    def find_class(self, module: str, name: str) -> Any:
        """Return a class or function of a module."""
        if module not in sys.modules:
            try:
                importlib.import_module(module)
            except ImportError:  # such as a test's module, which is not on the path, but its file is known
                spec = importlib.util.spec_from_file_location(module, self._files[module])
                if spec is None or spec.loader is None:
                    raise
                sys.modules[module] = found = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(found)
        return functools.reduce(getattr, name.split("."), sys.modules[module])
