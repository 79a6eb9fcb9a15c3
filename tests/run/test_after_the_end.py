"""A run that has ended makes no more releases, whoever kept one of its tables, and its errors hold nothing of it."""

from __future__ import annotations

import threading
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential
from dpframework.queries import CandidateScores, Count, Norm, Sensitivity

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B"])])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1, 0], [0, 1, 0, 1]])


@attrs.frozen
class Keeps(dpf.Miner):
    """Makes one of two releases, and lets its table out."""

    name = "keeps"
    kept: list[dpf.PrivateTable] = attrs.field(factory=list, eq=False)
    fails: bool = False

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        steps = [dpf.step(name, Count(), DiscreteLaplace("0.5")) for name in ("first", "second")]
        return dpf.sequential(*steps)

    def mine(self, table: dpf.PrivateTable) -> Any:
        self.kept.append(table)
        first = table.release("first")
        if self.fails:
            raise KeyError(first)
        return first


def run(miner: dpf.Miner, **options: Any) -> dpf.Results:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("kept", miner)
    return study.run(TABLE, **options)


@pytest.mark.parametrize("seed", [None, 1])
def test_a_table_that_was_kept_makes_no_release_after_the_end(seed: int | None) -> None:
    miner = Keeps()
    results = run(miner, seed=seed)
    (table,) = miner.kept
    with pytest.raises(dpf.ReleaseRefused, match=r"^the run has ended, and makes no more releases$"):
        table.release("second")
    assert [charge.path for charge in results.charges] == ["kept/first"]
    assert results.spent == dpf.PrivacyLoss("0.5")


def test_nor_after_an_end_by_a_failure_which_results_of_that_run_would_not_tell() -> None:
    miner = Keeps(fails=True)
    with pytest.raises(dpf.RunStopped) as stopped:
        run(miner)
    assert stopped.value.results is not None
    assert [charge.path for charge in stopped.value.results.charges] == ["kept/first"]
    with pytest.raises(dpf.ReleaseRefused, match="has ended"):
        miner.kept[0].release("second")


def test_a_thread_that_goes_on_releases_nothing_after_the_end() -> None:
    ended, found = threading.Event(), list[Any]()

    @attrs.frozen
    class GoesOn(Keeps):
        name = "goes-on"

        def mine(self, table: dpf.PrivateTable) -> Any:
            def later() -> None:
                ended.wait(10)
                try:
                    found.append(table.release("second"))
                except dpf.DPFrameworkError as error:
                    found.append(error)

            thread = threading.Thread(target=later)
            thread.start()
            self.kept.append(thread)  # type: ignore[arg-type]
            return table.release("first")

    miner = GoesOn()
    run(miner)
    ended.set()
    (thread,) = miner.kept
    thread.join(10)  # type: ignore[attr-defined]
    assert [type(one) for one in found] == [dpf.ReleaseRefused]


class SecretError(Exception):
    """Named after a value, as a plugin's may be."""


@attrs.frozen
class Lists(CandidateScores):
    """Fails when it lists its candidates, with what it counted."""

    name = "lists"
    answer_length = 2
    seen: list[int] = attrs.field(factory=list, eq=False, hash=False)

    @property
    def sensitivities(self) -> Any:
        return (Sensitivity(Norm.LINF, 1, 1, fall=0, source="a test"),)

    def count(self, block: Any, **inputs: Any) -> Any:
        self.seen.append(block.rows)
        return np.bincount(block.codes("ill"), minlength=2)

    def candidates(self, **inputs: Any) -> Any:
        raise SecretError(f"there are {self.seen} rows")


@attrs.frozen
class Chooses(dpf.Miner):
    """Chooses one of the candidates."""

    name = "chooses"

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return dpf.step("choice", Lists(), Exponential(1))

    def mine(self, table: dpf.PrivateTable) -> Any:
        return table.release("choice")


def causes(error: BaseException) -> list[BaseException]:
    """Return the errors that one holds, itself included."""
    found, waiting = list[BaseException](), [error]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None and other not in found]
    return found


def test_a_query_that_fails_to_list_its_candidates_tells_nothing_of_what_it_counted() -> None:
    with pytest.raises(dpf.DPFrameworkError) as stopped:
        run(Chooses())
    assert str(stopped.value) == (
        "step 'kept/choice': listing the candidates of 'lists' failed with an error of its own; to see where, run "
        "with a seed on data that is not private"
    )
    assert causes(stopped.value) == [stopped.value]
    with pytest.raises(dpf.DPFrameworkError) as shown:
        run(Chooses(), seed=1)
    assert any(isinstance(one, SecretError) for one in causes(shown.value))


def test_the_error_of_a_miner_that_fails_holds_its_own_error_in_seeded_runs_only() -> None:
    with pytest.raises(dpf.RunStopped) as stopped:
        run(Keeps(fails=True))
    assert causes(stopped.value) == [stopped.value]
    with pytest.raises(dpf.RunStopped) as shown:
        run(Keeps(fails=True), seed=1)
    assert [type(one) for one in causes(shown.value)] == [dpf.RunStopped, KeyError]
