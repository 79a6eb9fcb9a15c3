"""A panic of a library in Rust is no `Exception`, and its text may quote a cell: it is a failure like any other."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.facts.errors import is_failure
from dpframework.facts.files import read_by_library
from dpframework.queries import Count, Query, Sensitivity
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.plain_cell_series import quietly

SECRET = "Ada Lovelace"
SCHEMA = dpf.Schema([dpf.Boolean("a")])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1]])
NOISE = dpf.mechanisms.DiscreteLaplace(1)


def panics(*_: Any, **__: Any) -> Any:
    raise pl.exceptions.PanicException(SECRET)


class PanicException(BaseException):
    pass


def panics_elsewhere(*_: Any, **__: Any) -> Any:
    raise PanicException(SECRET)


@attrs.frozen
class Panics(Query):
    """A query that panics."""

    name = "panics"
    answer_length = 1
    panic: Callable[..., Any]

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        return Count().sensitivities

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.panic()
        return found


@attrs.frozen
class PanickingMiner(dpf.Miner):
    """A miner that panics over what was released."""

    name = "panicking"

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return dpf.step("n", Count(), NOISE)

    def mine(self, table: dpf.PrivateTable) -> Any:
        return panics(table.release("n"))


def study_of(query: Query) -> dpf.Study:
    study = dpf.Study(SCHEMA, epsilon=1, allow=["one-row-per-person", "noisy-result"])
    study.add_plan("n", dpf.step("n", query, NOISE))
    return study


@pytest.fixture
def ledger(tmp_path: Path) -> dpf.Ledger:
    made = dpf.Ledger.create(tmp_path / "l.ledger")
    made.open("people", epsilon=5)
    return made


def approved(ledger: dpf.Ledger, study: dpf.Study) -> Any:
    ledger.approve("people", study.plan(), by="auditor")
    return ledger.run("people")


@pytest.mark.parametrize("panic", [panics, panics_elsewhere])
def test_a_panic_while_a_table_is_read_is_recorded_and_not_shown(ledger: dpf.Ledger, panic: Callable[..., Any]) -> None:
    study = study_of(Count())
    with pytest.raises(dpf.InputError, match=r"^reading the table failed with an error of its own$") as failed:
        study.run(panic, ledger=approved(ledger, study))
    assert failed.value.__context__ is None
    assert [run.end for run in ledger.data_set("people").runs.values()] == ["refused: table cannot be read"]


def test_a_library_that_writes_while_an_engine_reads_is_not_seen(capfd: pytest.CaptureFixture[str]) -> None:
    """Nor is a database's, whose cells are encoded in this process, whether or not its engine sends messages."""

    class Writes(dpf.InMemory):
        """Reads files, and writes a cell where panics are written to."""

        reads_files = True

        def open(self, files: dpf.TableFiles) -> Any:
            os.write(2, SECRET.encode())
            return self.load(TABLE)

    class Sends(Writes):
        """Does the same, and sends messages."""

        sends_messages = True

    for engine in (Writes(), Sends()):
        study_of(Count()).run(dpf.TableFiles("t.parquet", SCHEMA), engine=engine)
    assert SECRET not in capfd.readouterr().err


@pytest.mark.parametrize("panic", [panics, panics_elsewhere])
def test_a_panic_of_a_query_ends_its_run_and_is_not_shown(ledger: dpf.Ledger, panic: Callable[..., Any]) -> None:
    study = study_of(Panics(panic))
    with pytest.raises(dpf.InputError, match="the query 'panics' failed with an error of its own") as failed:
        study.run(TABLE, ledger=approved(ledger, study))
    assert failed.value.__context__ is None
    assert SECRET not in str(failed.value)
    assert [run.end for run in ledger.data_set("people").runs.values()] == ["stopped"]


def test_a_panic_of_a_miner_ends_its_run(ledger: dpf.Ledger) -> None:
    study = dpf.Study(SCHEMA, epsilon=1, allow=["one-row-per-person", "noisy-result"])
    study.add("n", PanickingMiner())
    with pytest.raises(dpf.RunStopped, match="miner 'panicking' failed with PanicException"):
        study.run(TABLE, ledger=approved(ledger, study))
    assert [run.end for run in ledger.data_set("people").runs.values()] == ["stopped"]


@pytest.mark.parametrize("wish", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_wish_to_end_is_no_failure(wish: type[BaseException], ledger: dpf.Ledger) -> None:
    def ends(*_: Any) -> Any:
        raise wish

    assert not is_failure(wish())
    for asked in (lambda: quietly(ends, "no"), lambda: read_by_library(ends, "no")):
        with pytest.raises(wish):
            asked()
    study = study_of(Count())
    with pytest.raises(wish):
        study.run(ends, ledger=approved(ledger, study))
    assert [(run.end, run.charged) for run in ledger.data_set("people").runs.values()] == [(None, False)]


@pytest.mark.parametrize("wish", [SystemExit, GeneratorExit])
def test_a_run_that_is_wished_to_end_stays_unfinished(wish: type[BaseException], ledger: dpf.Ledger) -> None:
    def ends() -> Any:
        raise wish

    study = study_of(Panics(ends))
    with pytest.raises(wish):
        study.run(TABLE, ledger=approved(ledger, study))
    assert [run.end for run in ledger.data_set("people").runs.values()] == [None]


@pytest.mark.parametrize("panic", [panics, panics_elsewhere])
def test_a_panic_of_a_library_is_one_sentence(panic: Callable[..., Any]) -> None:
    for asked in (quietly, read_by_library):
        with pytest.raises(dpf.InputError, match=r"^t\.csv: is damaged$") as failed:
            asked(panic, "t.csv: is damaged")
        assert failed.value.__context__ is None
