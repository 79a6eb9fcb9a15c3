"""Exact counts that are kept between runs, planted in every place where code can keep something.

Each query answers with the counts of the first table that it saw. Replays in one process see the same answer on every
table then: nothing is lost, and nothing is private.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import io
import itertools
import os
import queue
import random
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.queries import Query, histogram_sensitivities
from dpframework.verify import audit, verify_examples
from dpframework.verify.file_read_and_write_watch import watch_files
from dpframework.verify.miners.hidden_state import HiddenState

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])])
ADD = dpf.Relation.ADD_OR_REMOVE_ONE

KEPT: dict[str, Any] = {}
LISTED: list[Any] = []
ARRAY = np.full(2, -1)
ONCE = None
__first__: dict[str, Any] = {}
FRAME = pd.DataFrame({"no": pd.Series(dtype="int64"), "yes": pd.Series(dtype="int64")})
ROWS = pl.DataFrame({"no": [], "yes": []}, schema={"no": pl.Int64, "yes": pl.Int64})
TEXT, TICKS = io.StringIO(), itertools.count()
RECENT: collections.deque[Any] = collections.deque()
NESTED = SimpleNamespace(inside=SimpleNamespace(counts=[]))
LOCAL, QUEUE, EMPTY = threading.local(), queue.Queue[Any](), SimpleNamespace()
VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("counts")


def in_global(counts: Any) -> Any:
    return KEPT.setdefault("counts", counts)


def in_list(counts: Any) -> Any:
    LISTED.append(counts)
    return LISTED[0]


def in_array(counts: Any) -> Any:
    if ARRAY[0] < 0:
        ARRAY[:] = counts
    return ARRAY.copy()


def in_rebound_global(counts: Any) -> Any:
    global ONCE
    ONCE = counts if ONCE is None else ONCE
    return ONCE


def in_special_global(counts: Any) -> Any:
    return __first__.setdefault("counts", counts)


def in_data_frame(counts: Any) -> Any:
    FRAME.loc[len(FRAME)] = counts.tolist()
    return FRAME.loc[0].to_numpy()


def in_polars_frame(counts: Any) -> Any:
    ROWS.extend(pl.DataFrame({"no": [int(counts[0])], "yes": [int(counts[1])]}))
    return np.array(ROWS.row(0))


def in_text(counts: Any) -> Any:
    TEXT.write(" ".join(map(str, counts)) + "\n")
    return np.array([int(part) for part in TEXT.getvalue().splitlines()[0].split()])


def in_counter(counts: Any) -> Any:
    for _ in range(int(counts[1])):
        next(TICKS)
    return counts


def in_seed_of_numpy(counts: Any) -> Any:
    np.random.seed(int(counts.sum()))
    return counts


def in_seed_of_python(counts: Any) -> Any:
    random.seed(int(counts.sum()))
    return counts


def in_deque(counts: Any) -> Any:
    RECENT.append(counts)
    return RECENT[0]


def in_thread(counts: Any) -> Any:
    LOCAL.__dict__.setdefault("counts", counts)
    return LOCAL.counts


def in_empty_object(counts: Any) -> Any:
    vars(EMPTY).setdefault("counts", counts)
    return EMPTY.counts


def in_queue(counts: Any) -> Any:
    QUEUE.put(counts)
    return QUEUE.queue[0]


def in_nested_object(counts: Any) -> Any:
    NESTED.inside.counts.append(counts)
    return NESTED.inside.counts[0]


def in_default(counts: Any, kept: list[Any] = []) -> Any:  # noqa: B006
    kept.append(counts)
    return kept[0]


def in_function(counts: Any) -> Any:
    in_function.counts = getattr(in_function, "counts", counts)  # type: ignore[attr-defined]
    return in_function.counts  # type: ignore[attr-defined]


class Seen:
    """Every two are the same, so that a cache takes the one for the other."""

    def __init__(self, counts: Any) -> None:
        self.counts = counts

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


@functools.lru_cache
def cached(seen: Seen) -> Any:
    return seen.counts


@functools.cache
def cached_for_ever(seen: Seen) -> Any:
    return seen.counts


def enclosed() -> Callable[[Any], Any]:
    first = None

    def in_closure(counts: Any) -> Any:
        nonlocal first
        first = counts if first is None else first
        return first

    return in_closure


in_closure = enclosed()


def in_environment(counts: Any) -> Any:
    text = os.environ.setdefault("PLANTED_COUNTS", " ".join(map(str, counts)))
    return np.array([int(part) for part in text.split()])


FILE = Path(tempfile.gettempdir()) / f"planted-counts-{os.getpid()}"


def in_file(counts: Any) -> Any:
    if not FILE.exists():
        FILE.write_text(" ".join(map(str, counts)))
    return np.array([int(part) for part in FILE.read_text().split()])


@attrs.frozen
class Counts(Query):
    """How many are ill, of the table at hand or of the first one."""

    name = "counts"
    answer_length = 2
    keep: Callable[[Any], Any] | None = attrs.field(default=None, eq=False)

    @property
    def sensitivities(self):
        return histogram_sensitivities(2)

    def count(self, block, **inputs):
        return np.bincount(block.codes("ill"), minlength=2)

    def evaluate(self, engine, rows, **inputs):
        counts = super().evaluate(engine, rows, **inputs)
        return counts if self.keep is None else self.keep(counts)


@attrs.frozen
class InClass(Counts):
    """Keeps them in an attribute of its class."""

    name = "in-class"

    def evaluate(self, engine, rows, **inputs):
        counts = super().evaluate(engine, rows, **inputs)
        if not hasattr(type(self), "first"):
            type(self).first = counts
        return type(self).first


@attrs.frozen
class InItself(Counts):
    """Keeps them in a field."""

    name = "in-itself"
    kept: list[Any] = attrs.field(factory=list, eq=False, init=False)

    def evaluate(self, engine, rows, **inputs):
        self.kept.append(super().evaluate(engine, rows, **inputs))
        return self.kept[0]


@attrs.frozen
class KeepingNoise(DiscreteLaplace):
    """A mechanism that keeps the first answer in a global, and releases it again."""

    name = "keeping-noise"

    def release(self, answer, calibration, randomness):
        return super().release(KEPT.setdefault("answer", answer), calibration, randomness)


@attrs.frozen
class Ill(dpf.Miner):
    """Counts who is ill."""

    name = "ill"
    query: Query = attrs.field(factory=Counts)
    noise: dpf.Mechanism = attrs.field(factory=lambda: DiscreteLaplace(1))

    def plan(self, schema):
        return dpf.step("ill", self.query, self.noise)

    def mine(self, table):
        return table.release("ill")


PLANTED: dict[str, tuple[dpf.Miner, str]] = {
    "a module's dictionary": (Ill(Counts(in_global)), "global 'KEPT'"),
    "a module's list": (Ill(Counts(in_list)), "global 'LISTED'"),
    "an array": (Ill(Counts(in_array)), "global 'ARRAY'"),
    "a global that is set anew": (Ill(Counts(in_rebound_global)), "global 'ONCE'"),
    "a global with underscores": (Ill(Counts(in_special_global)), "global '__first__'"),
    "a data frame of pandas": (Ill(Counts(in_data_frame)), "global 'FRAME'"),
    "a data frame of polars": (Ill(Counts(in_polars_frame)), "global 'ROWS'"),
    "a text in memory": (Ill(Counts(in_text)), "global 'TEXT'"),
    "a counter": (Ill(Counts(in_counter)), "global 'TICKS'"),
    "the seed of numpy": (Ill(Counts(in_seed_of_numpy)), "numpy's shared random generator"),
    "the seed of Python": (Ill(Counts(in_seed_of_python)), "Python's shared random generator"),
    "a deque": (Ill(Counts(in_deque)), "global 'RECENT'"),
    "what is local to a thread": (Ill(Counts(in_thread)), "global 'LOCAL'"),
    "an object that held nothing": (Ill(Counts(in_empty_object)), "global 'EMPTY'"),
    "a queue": (Ill(Counts(in_queue)), "global 'QUEUE'"),
    "an object in an object": (Ill(Counts(in_nested_object)), "global 'NESTED'"),
    "a default argument": (Ill(Counts(in_default)), "a default argument of 'in_default'"),
    "an attribute of a function": (Ill(Counts(in_function)), "an attribute of 'in_function'"),
    "a bounded cache": (Ill(Counts(lambda counts: cached(Seen(counts)))), "the cache of 'cached'"),
    "a cache": (Ill(Counts(lambda counts: cached_for_ever(Seen(counts)))), "the cache of 'cached_for_ever'"),
    "a closure": (Ill(Counts(in_closure)), "the enclosed variable 'first' of 'enclosed.<locals>.in_closure'"),
    "an attribute of a class": (Ill(InClass()), "the attribute 'first' of class 'InClass'"),
    "the query itself": (Ill(InItself()), "the query 'in-itself'"),
    "an environment variable": (Ill(Counts(in_environment)), "PLANTED_COUNTS"),
    "a file in the temporary folder": (Ill(Counts(in_file)), str(FILE)),
    "a mechanism's global": (Ill(noise=KeepingNoise(1)), "global 'KEPT'"),
}


@pytest.fixture(autouse=True)
def nothing_is_kept():
    """Leave no environment variable and no file for other tests."""
    yield
    os.environ.pop("PLANTED_COUNTS", None)
    FILE.unlink(missing_ok=True)
    KEPT.clear()


@pytest.mark.parametrize("place", PLANTED)
def test_counts_kept_between_runs_are_named(place):
    miner, name = PLANTED[place]
    problems = [one.what for one in audit(miner, SCHEMA, ADD, replays=100).violations]
    named = [what for what in problems if "keeps something of its rows" in what]
    assert named, problems
    assert name in named[0], named


SIZES: dict[str, int] = {}


def remembers_public(counts: Any) -> Any:
    SIZES["length"] = len(counts)
    return counts


RUNS, SAID, HISTORY = itertools.count(), io.StringIO(), pd.DataFrame({"run": [0]})


def counts_runs(counts: Any) -> Any:
    SAID.write(f"run {next(RUNS)} of {len(counts)} numbers\n")
    HISTORY.loc[len(HISTORY)] = [len(HISTORY)]
    np.random.seed(7)
    random.seed(7)
    return counts


@pytest.mark.parametrize("remembers", [remembers_public, counts_runs])
def test_what_is_public_may_be_kept(remembers):
    report = audit(Ill(Counts(remembers)), SCHEMA, ADD, replays=100)
    assert report.passed, report.violations
    assert report.tightness > 0.9


def from_elsewhere(counts: Any) -> Any:
    """Answer the same on every table, from a place where nobody looks."""
    return np.array([3, 4])


def test_a_search_that_finds_no_loss_fails_and_says_which_query_never_changes():
    found = verify_examples("ill", {"one": dpf.Example(SCHEMA, Ill(Counts(from_elsewhere)))}, replays=100, runs=0)
    assert not found.passed
    assert found.tightness == 0
    problems = "\n".join(found.problems())
    assert "the search found no loss at all" in problems
    assert "'ill' answers the same on every table tried" in problems


class Slotted:
    __slots__ = ("__counts", "name")

    def __init__(self) -> None:
        self.__counts: list[Any] = []
        self.name = "slotted"


class Hiding(Slotted):
    """Hides a slot of its base behind a property, and an entry of its own by a property of the same name."""

    name = property(lambda self: "hidden")
    shown = property(lambda self: 1)

    def __init__(self) -> None:
        self._Slotted__counts = []
        vars(self)["shown"] = 0


def test_slots_and_hidden_attributes_are_put_back():
    for made in (Slotted(), Hiding()):
        state = HiddenState([SimpleNamespace(name="query", held=made)])
        made._Slotted__counts.append(697)
        if isinstance(made, Hiding):
            vars(made)["more"] = 1
        assert list(state.changed_places()) == ["the object 'query'"]
        state.put_back()
        assert made._Slotted__counts == []
        assert not state.changed_places()
        assert made.name == ("slotted" if type(made) is Slotted else "hidden")


def test_constants_of_libraries_stay_as_they_are():
    """A class of mpmath hides a slot of its base behind a property that cannot be set."""
    mpmath.mp.dps = 15
    state = HiddenState([SimpleNamespace(name="query", held=mpmath.mp.pi)])
    with mpmath.workdps(50):
        assert +mpmath.mp.pi > 3
        state.put_back()
    assert str(mpmath.mp.pi) == "3.14159265358979"


def test_a_file_without_a_name_keeps_nothing_and_one_with_a_name_is_seen(tmp_path: Path) -> None:
    with watch_files() as files, tempfile.TemporaryFile(dir=tmp_path) as unnamed:
        unnamed.write(b"x")
    assert files == set()
    with watch_files() as files:
        (tmp_path / "kept").write_text("x")
    assert files == {str(tmp_path / "kept")}
