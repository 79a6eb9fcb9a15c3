"""A run is charged to a ledger of dpframework, or to none: a look-alike that charges nothing is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

import dpframework as dpf
from dpframework.run.gate import Gate
from dpframework.run.run_recorder_interface import Recorder

SCHEMA = dpf.Schema([dpf.Boolean("ill")])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1]])


class LooksAlike:
    """Has all that a ledger's run has, and charges nothing: its author meant to send the charges later."""

    id, head, key, period, resumable, continues = "run-1", "0" * 64, b"k" * 32, "", False, False

    @contextlib.contextmanager
    def recording(self, plan: Any, randomness: Any) -> Iterator[None]:
        yield

    def gate(self, engine: Any, randomness: Any, observers: Any) -> Gate:
        return Gate(engine, randomness, observers)

    def read(self) -> None:
        """Record nothing."""

    def refused(self, why: str) -> None:
        """Record nothing."""

    def open(self) -> None:
        """Charge nothing."""


class Remote(LooksAlike, Recorder):
    """Says that it is a recorder. Its gate tells it of no charge."""

    head, period, resumable, continues = "0" * 64, "", False, False


class Told(Remote):
    """Right: its gate tells it of each charge, before the release."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def gate(self, engine: Any, randomness: Any, observers: Any) -> Gate:
        own = dpf.Observer()
        own.charged = lambda charge: self.paths.append(charge.path)  # type: ignore[method-assign]
        return Gate(engine, randomness, observers, own)


class Unfinished(Recorder):
    """Forgets most of it."""


def study() -> dpf.Study:
    found = dpf.Study(SCHEMA, epsilon=1)
    found.add_plan("n", dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1)))
    return found


def test_what_only_looks_like_a_ledger_is_refused() -> None:
    given: Any = LooksAlike()
    with pytest.raises(dpf.InputError, match=r"^Study\.run: ledger is a LooksAlike"):
        study().run(TABLE, ledger=given)
    with pytest.raises(dpf.InputError, match=r"^the ledger is a LooksAlike; give the output of Ledger\.run$"):
        study().prepare().make(TABLE, ledger=given)


def test_a_ledger_that_is_told_of_no_charge_is_refused() -> None:
    with pytest.raises(dpf.InputError, match=r"^the gate of Remote records no charge; give it a recorder$"):
        study().run(TABLE, ledger=Remote())
    told = Told()
    assert study().run(TABLE, ledger=told).run == "run-1"
    assert told.paths == ["n/n"]


def test_a_recorder_must_be_complete() -> None:
    kind: Any = Unfinished
    with pytest.raises(TypeError, match="abstract"):
        kind()
