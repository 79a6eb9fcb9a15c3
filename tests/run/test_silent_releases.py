"""In a private run nothing is shown that a query, a mechanism or an engine prints or logs: it saw the exact counts."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential
from dpframework.queries import CandidateScores, Query, histogram_sensitivities
from dpframework.tables.output_suppression import STREAMS, silenced

SECRET = "4242424242"
SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B"])])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1, 0], [0, 1, 0, 1]])


def tell() -> None:
    """Tell a count in all ways that a debugging author has."""
    print(SECRET)
    print(SECRET, file=sys.stderr)
    for stream in (sys.__stdout__, sys.__stderr__):
        assert stream is not None
        stream.write(SECRET)
    logging.getLogger("a.plugin").critical(SECRET)
    warnings.warn(SECRET, stacklevel=1)


class LoudEngine(dpf.Engine):
    """An engine that tells what it counts, splits and drops."""

    name = "loud"

    def __init__(self) -> None:
        self.inner = dpf.InMemory()

    def load(self, table: Any) -> Any:
        tell()
        return self.inner.load(table)

    def map(self, rows: Any, function: Any) -> Any:
        tell()
        return self.inner.map(rows, function)

    def split(self, rows: Any, by: Any) -> Any:
        tell()
        return self.inner.split(rows, by)

    def derive(self, rows: Any, attribute: Any, cases: Any) -> Any:
        return self.inner.derive(rows, attribute, cases)

    def drop(self, rows: Any) -> None:
        tell()


@attrs.frozen
class LoudCounts(Query):
    """A query that tells what it counts."""

    name = "loud-counts"
    answer_length = 2

    @property
    def sensitivities(self) -> Any:
        return histogram_sensitivities(2)

    def count(self, block: Any, **inputs: Any) -> Any:
        tell()
        return np.bincount(block.codes("ill"), minlength=2)

    def answer(self, counts: Any, **inputs: Any) -> Any:
        tell()
        return counts


@attrs.frozen
class LoudScores(LoudCounts, CandidateScores):
    """A query that tells what it counted when it is asked for its candidates."""

    name = "loud-scores"

    def candidates(self, **inputs: Any) -> Any:
        tell()
        return ["well", "ill"]


@attrs.frozen
class LoudNoise(DiscreteLaplace):
    """A mechanism that tells what it hides."""

    name = "loud-noise"

    def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
        tell()
        return super().release(answer, calibration, randomness)


@attrs.frozen
class Loud(dpf.Miner):
    """Counts in parts, and says what it released, which it may."""

    name = "loud"

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        both = [
            dpf.step("counts", LoudCounts(), LoudNoise("0.5")),
            dpf.step("choice", LoudScores(), Exponential("0.5")),
        ]
        return dpf.parallel(dpf.sequential(*both), by=schema["town"])

    def mine(self, table: dpf.PrivateTable) -> Any:
        parts = table.partition("town")
        counts = table.release_many([(part, "counts", {}) for part in parts])
        counts.append(table.schema.names)
        counts += [part.release("choice") for part in parts]
        print("released")
        return len(counts)


@pytest.mark.parametrize("seed", [None, 1])
def test_what_code_that_sees_rows_prints_or_logs_is_shown_in_seeded_runs_only(
    seed: int | None, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("loud", Loud())
    before = {name: getattr(sys, name) for name in STREAMS}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert study.run(TABLE, seed=seed, engine=LoudEngine())["loud"] == 5
    out, err = capfd.readouterr()
    assert "released" in out  # a miner's own words follow from releases
    told = SECRET in out, SECRET in err, SECRET in caplog.text, bool(warned)
    assert told == (seed is not None,) * 4
    assert {name: getattr(sys, name) for name in STREAMS} == before
    assert logging.root.manager.disable == 0


def test_silences_of_several_threads_give_the_streams_back_in_any_order() -> None:
    before = {name: getattr(sys, name) for name in STREAMS}
    kinds: list[dict[str, bool]] = [{"words": True}, {"streams": True}]
    for first, second in (kinds, kinds[::-1], [kinds[0]] * 2, [kinds[1]] * 2):
        entered, ended = threading.Event(), threading.Event()

        def inside(how: dict[str, bool], entered: Any, ended: Any) -> None:
            with silenced(**how):
                entered.set()
                ended.wait(10)

        other = threading.Thread(target=inside, args=(second, entered, ended))
        with silenced(**first):
            other.start()
            assert entered.wait(10)
        assert sys.stdout is not before["stdout"]  # the other thread has not ended
        ended.set()
        other.join()
        assert {name: getattr(sys, name) for name in STREAMS} == before
        assert logging.root.manager.disable == 0
