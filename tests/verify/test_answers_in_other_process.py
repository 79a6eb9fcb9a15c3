"""Queries are asked again in a new process: what reads the state of this one is found, and honest ones pass."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.run.miner_base_and_examples import Example
from dpframework.verify import QueryConformance, verify_examples
from dpframework.verify.plugin_code_constants import is_foreign
from dpframework.verify.queries import answers_in_other_process
from dpframework.verify.queries.answers_in_other_process import LocalAnswer, differences

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])])
CHOSEN: set[int] = set()  # as a miner fills it
LIMIT = 3000  # files that are open at once: more than a process is allowed otherwise


@attrs.frozen
class InChosenTowns(dpf.Query):
    """How many rows are in the towns that a run has chosen: in a global."""

    name = "in-chosen-towns"
    answer_length = 1
    sensitivities = (dpf.Sensitivity("l1", 1, 1, source="a row counts once"),)

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([np.isin(block.codes("town"), list(CHOSEN)).sum()])


@attrs.frozen
class InTowns(InChosenTowns):
    """The same towns, given as an input."""

    name = "in-towns"

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([np.isin(block.codes("town"), inputs["towns"]).sum()])


@attrs.frozen
class Raises(InChosenTowns):
    """Fails where nobody has chosen."""

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([block.rows + min(CHOSEN) - min(CHOSEN)])


@attrs.frozen
class FirstOfAll(InTowns):
    """Counts the rows, and beside it those of the first table of all: in a limit, which new processes inherit."""

    name = "first-of-all"
    answer_length = 2

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> Any:
        (counted,) = super().evaluate(engine, rows, **inputs)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < LIMIT:
            soft = LIMIT + int(counted)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return np.array([counted, soft - LIMIT])


@attrs.frozen
class Unsent(InTowns):
    """The same towns, by what cannot be sent."""

    name = "unsent"
    chosen: Callable[[], list[int]] = attrs.field(default=lambda: [0, 2], eq=False)


@attrs.frozen
class Towns(dpf.Miner):
    """Counts rows in the towns that it chooses."""

    name = "towns"
    query: dpf.Query

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return dpf.step("n", self.query, dpf.mechanisms.DiscreteLaplace(1))

    def mine(self, table: dpf.PrivateTable) -> Any:
        CHOSEN.update([0, 2])
        return table.release("n", towns=[0, 2])


def asked(query: dpf.Query, **inputs: Any) -> LocalAnswer:
    return LocalAnswer.of(query, SCHEMA, bytes(range(6)), (), inputs)


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kit start processes, which it does in no other test of the project."""
    monkeypatch.delenv(answers_in_other_process.CHILD, raising=False)


@pytest.fixture
def chosen() -> Any:
    CHOSEN.update([0, 2])
    yield
    CHOSEN.clear()


def test_what_a_run_left_behind_is_not_in_a_new_process(chosen: None) -> None:
    class Local(InTowns):
        """Cannot be sent."""

    queries = [asked(InChosenTowns()), asked(InTowns(), towns=[0, 2]), asked(Raises()), asked(Local(), towns=[1])]
    first, honest, raises, local = differences([*queries])
    assert first is not None
    assert first.startswith("answers 4 here and 0 in a new process, on the same rows: it reads something that this")
    assert raises is not None
    assert raises.startswith("answers 6 here and with ValueError: ")
    assert honest is local is None


def test_verify_and_the_query_suite_say_so(chosen: None) -> None:
    found = verify_examples(
        "towns",
        {"global": Example(SCHEMA, Towns(InChosenTowns())), "input": Example(SCHEMA, Towns(InTowns()))},
        replays=200,
        runs=0,
        relations=[dpf.Relation.ADD_OR_REMOVE_ONE],
    )
    told = [problem for problem in found.problems() if "in a new process" in problem]
    assert len(told) == 1
    assert "in-chosen-towns: answers" in told[0]
    assert "a global that `mine` sets" in told[0]
    given = {"global": (InChosenTowns(), SCHEMA, {}), "input": (InTowns(), SCHEMA, {"towns": [0]})}
    suite = type("TestTowns", (QueryConformance,), {"queries": given})()
    with pytest.raises(AssertionError, match=r"^query 'global' answers \d+ here and 0 in a new process[^\n]*(?!\n)"):
        suite.test_answers_are_the_same_in_another_process()


@pytest.fixture
def limit() -> Any:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, limits[0]), limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_the_process_is_older_than_what_a_run_leaves_for_others_and_what_it_is_not_asked_is_said(limit: None) -> None:
    found = verify_examples(
        "towns",
        {"first": Example(SCHEMA, Towns(FirstOfAll())), "unsent": Example(SCHEMA, Towns(Unsent()))},
        replays=100,
        runs=0,
        relations=[dpf.Relation.ADD_OR_REMOVE_ONE],
    )
    (told,) = found.problems()
    assert "first-of-all: answers" in told
    assert "in a new process" in told
    assert found.left_out == ("asking unsent in another process, to which it cannot be sent",)


def test_the_projects_own_queries_need_no_process_and_a_process_starts_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **options: pytest.fail("a process was started"))
    assert not is_foreign(dpf.queries.Count())
    assert is_foreign(InTowns())
    suite = type("TestCount", (QueryConformance,), {"queries": {"rows": (dpf.queries.Count(), SCHEMA, {})}})()
    suite.test_answers_are_the_same_in_another_process()
    monkeypatch.setenv(answers_in_other_process.CHILD, "1")
    assert differences([asked(InTowns(), towns=[0])]) == [None]
