"""The run of a study: charged before anything is seen, stopped in one sentence, and without results that it lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.study.study_run import StudyRun

SCHEMA = dpf.Schema([dpf.Boolean("ill")])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1]])


@attrs.frozen
class Does(dpf.Miner):
    """Do what a test gives."""

    name = "does"
    do: Callable[[dpf.PrivateTable], Any] = attrs.field(eq=False)

    def plan(self, schema: dpf.Schema) -> Any:
        return dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1))

    def mine(self, table: dpf.PrivateTable) -> Any:
        return self.do(table)


def release(table: dpf.PrivateTable) -> int:
    return int(table.release("n"))


def fail(table: dpf.PrivateTable) -> None:
    raise ValueError("a secret")


def prepared(*do: Callable[[dpf.PrivateTable], Any], epsilon: int = 9, **options: Any) -> StudyRun:
    study = dpf.Study(SCHEMA, epsilon=epsilon, **options)
    for k, one in enumerate(do):
        study.add(f"s{k}", Does(one))
    run = study.prepare()
    assert isinstance(run, StudyRun)
    return run


def test_a_study_that_is_prepared_once_runs_often_and_alike() -> None:
    run = prepared(release, release)
    one, other = (run.make(TABLE, seed=5) for _ in range(2))
    assert one["s0"] == other["s0"]
    assert [charge.path for charge in one.charges] == ["s0/n", "s1/n"]
    assert one.spent == run.plan.total()
    assert not one.private
    assert run.make(TABLE).private


def never() -> dpf.Table:
    raise AssertionError("the table was read")


def test_a_plan_that_its_checks_refuse_reads_no_row() -> None:
    with pytest.raises(dpf.PlanRefused, match="DP001"):
        prepared(release, release, epsilon=1).make(never)


@pytest.mark.parametrize("seed", [None, 1])
def test_a_miner_that_fails_stops_the_run_with_the_results_before_it(seed: int | None) -> None:
    with pytest.raises(dpf.RunStopped, match=r"step 's1': miner 'does' failed with ValueError") as caught:
        prepared(release, fail, release).make(TABLE, seed=seed)
    error = caught.value
    assert "secret" not in str(error)
    assert error.__context__ is None
    assert (error.__cause__ is None) == (seed is None)  # it may quote rows, which are private without a seed
    assert error.results is not None
    assert [*error.results] == ["s0"]
    assert error.results.stopped == str(error)


def test_an_interrupt_is_told_from_a_failure() -> None:
    def interrupt(table: dpf.PrivateTable) -> None:
        raise KeyboardInterrupt

    with pytest.raises(dpf.RunStopped, match="step 's0': interrupted") as caught:
        prepared(interrupt).make(TABLE)
    assert caught.value.interrupted


def test_no_release_is_made_once_results_are_taken() -> None:
    kept: list[dpf.PrivateTable] = []
    prepared(lambda table: kept.append(table)).make(TABLE)
    with pytest.raises(dpf.DPFrameworkError):
        release(kept[0])
