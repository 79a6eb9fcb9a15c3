"""What fails because of the rows ends the run, whatever a miner makes of it, and no text of it is shown."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.errors import QueryStopped
from dpframework.mechanisms import DiscreteLaplace, PermuteAndFlip
from dpframework.tables.in_process_engines import BlockEngine

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("old")])
MANY, FEW = (dpf.Table.from_codes(SCHEMA, np.ones((2, rows), dtype=np.uint8)) for rows in (3, 2))
SECRET = "4242424242"


@attrs.frozen
class FailsOnMany(dpf.queries.Count):
    """The number of rows, if there are fewer than three."""

    name = "fails-on-many"

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        if block.rows > 2:
            raise ValueError(SECRET)
        return super().count(block, **inputs)


@attrs.frozen
class ByRows(dpf.Description):
    """Holds for no row, if there are fewer than three."""

    def holds(self, columns: Any) -> Any:
        if len(columns.codes("ill")) > 2:
            raise ValueError(SECRET)
        return np.zeros(len(columns.codes("ill")), dtype=np.bool_)

    def literals(self) -> tuple[dpf.Literal, ...]:
        return ()

    def to_dict(self) -> dict[str, Any]:
        return {}


@attrs.frozen
class OneScoreOfMany(dpf.queries.Histogram):
    """A score for each label, and one only if there are three rows or more."""

    name = "one-score-of-many"
    answer_length = None

    def answer(self, counts: Any, **inputs: Any) -> Any:
        return counts[:1] if counts.sum() > 2 else counts


@attrs.frozen
class DrawsForFew(DiscreteLaplace):
    """Fails if there are three rows or more."""

    name = "draws-for-few"

    def release_many(self, answers: Sequence[Any], calibration: Any, randomness: Any) -> list[Any]:
        if max(np.max(answer) for answer in answers) > 2:
            raise ValueError(SECRET)
        return super().release_many(answers, calibration, randomness)


def _released(table: dpf.PrivateTable) -> None:
    table.release("risky")


def _noisy(table: dpf.PrivateTable) -> None:
    table.release("noisy")


def _chosen(table: dpf.PrivateTable) -> None:
    table.release("best")


def _drawn(table: dpf.PrivateTable) -> None:
    table.sampled()


def _parted(table: dpf.PrivateTable) -> None:
    table.partition(dpf.Cases([ByRows()]))


def _derived(table: dpf.PrivateTable) -> None:
    table.derive(dpf.Boolean("new"), dpf.Cases([ByRows()]))


@attrs.frozen
class Catches(dpf.Miner):
    """Tells whether there are many rows by whether something fails."""

    name = "catches"
    attempt: Callable[[dpf.PrivateTable], None]
    releases: bool = False

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        risky = dpf.step("risky", FailsOnMany(), DiscreteLaplace("0.1"))
        parts = dpf.parallel(dpf.step("part", dpf.queries.Count(), DiscreteLaplace("0.1")), by=dpf.FromRelease("risky"))
        best = dpf.step("best", OneScoreOfMany(schema["ill"]), PermuteAndFlip("0.1"))
        some = dpf.sample("0.5", dpf.step("some", dpf.queries.Count(), DiscreteLaplace("0.1")))
        noisy = dpf.step("noisy", dpf.queries.Count(), DrawsForFew("0.1"))
        return dpf.sequential(
            risky, noisy, parts, best, some, dpf.step("other", dpf.queries.Count(), DiscreteLaplace("0.1"))
        )

    def mine(self, table: dpf.PrivateTable) -> str:
        try:
            self.attempt(table)
        except dpf.InputError:
            if self.releases:
                with contextlib.suppress(dpf.InputError):
                    table.release("other")
            return "many"
        return "few"


class Watches(dpf.Observer):
    """Keeps what it is told was released."""

    def __init__(self) -> None:
        self.seen: list[dpf.Release] = []

    def released(self, release: dpf.Release) -> None:
        self.seen.append(release)


@pytest.mark.parametrize("releases", [False, True])
@pytest.mark.parametrize("attempt", [_released, _noisy, _chosen, _parted, _derived, _drawn])
@pytest.mark.parametrize("seed", [None, 0])
def test_a_miner_that_goes_on_after_a_failure_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
    attempt: Callable[[dpf.PrivateTable], None],
    releases: bool,
    seed: int | None,
) -> None:
    """Else its result would tell of the rows, which no release covers."""
    sample = dpf.InMemory.sample

    def of_few(self: dpf.InMemory, rows: Sequence[dpf.Block], drawn: Any) -> Any:
        if sum(block.rows for block in rows) > 2:
            raise ValueError(SECRET)
        return sample(self, rows, drawn)

    monkeypatch.setattr(dpf.InMemory, "sample", of_few)
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("m", Catches(attempt, releases))
    assert study.run(FEW, seed=seed)["m"] == "few"
    watch = Watches()
    with pytest.raises(dpf.InputError, match=r"failed with ValueError|one score for each") as failed:
        study.run(MANY, seed=seed, observers=[watch])
    assert SECRET not in str(failed.value)
    assert dict(failed.value.results) == {}
    assert watch.seen == []


def test_nothing_is_released_after_a_failure(opened: Callable[..., Any]) -> None:
    node = Catches(_released).plan(SCHEMA)
    for seed in (None, 0):
        table, _ = opened(node, MANY, seed=seed)
        first, again = (pytest.raises(dpf.InputError, match="step 'risky'") for _ in range(2))
        with first:
            table.release("risky")
        with again:
            table.release("other")


def test_a_run_in_a_ledger_ends_with_a_failure_that_its_miner_caught(ledger: dpf.Ledger, tmp_path: Path) -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("m", Catches(_released, releases=True))
    ledger.approve("people", study.plan(), by="Ada")
    run = ledger.run("people", journal=tmp_path / "journal")
    with pytest.raises(dpf.InputError, match="failed with ValueError"):
        study.run(MANY, ledger=run)
    assert ledger.data_set("people").runs[run.id].end == "stopped"


class Drops(BlockEngine):
    """An engine that fails when the rows are dropped, and says what it knows of them."""

    name = "drops"

    def __init__(self, error: type[Exception]) -> None:
        super().__init__(blocks=1)
        self.error = error

    def map(self, rows: Sequence[dpf.Block], function: Callable[[dpf.Block], Any]) -> list[Any]:
        return [function(block) for block in rows]

    def drop(self, rows: Any) -> None:
        raise self.error(f"{SECRET} in {len(rows)} blocks")


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (ValueError, "ValueError"),
        (dpf.InputError, "InputError"),
        (type(SECRET, (Exception,), {}), "an error of its own"),
    ],
)
def test_no_text_of_an_engine_that_cannot_drop_its_rows_is_shown(error: type[Exception], named: str) -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), DiscreteLaplace(1)))
    with pytest.raises(dpf.InputError, match=f"engine 'drops' failed with {named};") as failed:
        study.run(FEW, engine=Drops(error))
    assert SECRET not in str(failed.value)
    assert failed.value.__context__ is None


@pytest.mark.parametrize("seed", [None, 0])
def test_a_query_that_its_database_ended_says_how(opened: Callable[..., Any], seed: int | None) -> None:
    """A limit on its time is the owner's, so that nobody takes it for a bug of the query.

    The text of an engine that is not our own may quote rows, and is shown in a seeded run only.
    """

    class Ended(Drops):
        def map(self, rows: Sequence[dpf.Block], function: Callable[[dpf.Block], Any]) -> list[Any]:
            raise QueryStopped("it took too long", kind="query timed out")

    table, _ = opened(dpf.step("n", dpf.queries.Count(), DiscreteLaplace(1)), FEW, seed=seed, engine=Ended(ValueError))
    says = "query timed out" if seed is None else "it took too long"
    expected = f"step 'n': the query 'count of rows' was not answered: {says}"
    with pytest.raises(QueryStopped, match=f"^{expected}$") as stopped:
        table.release("n")
    assert stopped.value.kind == "query timed out"
