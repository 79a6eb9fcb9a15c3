"""Mistakes with keys that nobody lists, planted: the kit must catch every one, and pass the correct version of each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from exact_rows import held

import dpframework as dpf
from dpframework.mechanisms import Calibration, PartitionSelection
from dpframework.mechanisms.partition_selection import _noise_of
from dpframework.queries import KeyCounts, Keys
from dpframework.queries.key_queries import _count_keys
from dpframework.results import ReleasedKeys
from dpframework.run.private_table import PrivateTable
from dpframework.verify import audit, check_losses, check_sampler, search_sensitivity

SCHEMA = dpf.Schema([dpf.Open("town")])
REPLAYS = 300
RIGHT = PartitionSelection(1, "0.05")


def shown(keys: Any, counts: Any) -> ReleasedKeys:
    pairs = sorted((key, int(count)) for key, count in zip(keys, counts, strict=True) if count)
    return ReleasedKeys([key for key, _ in pairs], [count for _, count in pairs])


@attrs.frozen
class Planted(PartitionSelection):  # type: ignore[misc] # final, for all but this
    """A mechanism with a bug."""

    name = "planted"


@attrs.frozen
class Strict(Planted):
    """`>` for `>=`: what a key of `reach` rows, and no more, always has is missing."""

    name = "strict"

    def release(self, answer: Any, calibration: Calibration, randomness: Any) -> Any:
        noise = _noise_of(calibration)
        if not isinstance(answer, KeyCounts):
            return super().release(answer, calibration, randomness)
        noisy = answer.counts + noise.draw(len(answer.keys), randomness)
        return shown(answer.keys, np.where(noisy > noise.reach, noisy - noise.centre, 0))


@attrs.frozen
class Halved(Planted):
    """Half of its delta is claimed."""

    name = "halved"

    def losses(self, change: Any, scale: Any) -> Any:
        found = super().losses(change, scale)
        return attrs.evolve(found, delta=found.delta.map(lambda delta: delta / 2))


@attrs.frozen
class OneRowTooLow(Planted):
    """The key of a single row is shown as often as one of two rows should be."""

    name = "one-row-too-low"

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        if isinstance(answer, KeyCounts):
            answer = KeyCounts(answer.keys, answer.counts + 1)
        return super().log_density(answer, output, calibration)


@attrs.frozen
class ShowsAllKeys(Planted):
    """Keys are shown that are there, with a count of 1 where it is too small to be: noise on the counts alone."""

    name = "shows-all-keys"

    def release(self, answer: Any, calibration: Calibration, randomness: Any) -> Any:
        released = super().release(answer, calibration, randomness)
        if not isinstance(answer, KeyCounts):
            return released
        return shown(answer.keys, [released.get(key, 1) for key in answer.keys])

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        if not isinstance(answer, KeyCounts):
            return super().log_density(answer, output, calibration)
        if set(output) != set(answer.keys):
            return -np.inf
        return 0.0


@attrs.frozen
class CountsTwice(dpf.Query):
    """A row counts twice where its key has rows already."""

    name = "counts-twice"
    unlisted = True
    attributes = ("town",)
    sensitivities = Keys("town").sensitivities

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        raise NotImplementedError

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> KeyCounts:
        counted = engine.tally(rows, functools.partial(_count_keys, "town"))
        return KeyCounts.of({key: 2 * count - 1 for key, count in counted.items()})

    def coordinates(self, answer: KeyCounts) -> Any:
        return Keys("town").coordinates(answer)


@attrs.frozen
class Reads(dpf.Miner):
    """Release the keys, and say something else of the rows beside; the right one does not."""

    name = "reads"
    right: bool = False

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return dpf.step("keys", Keys("town"), RIGHT)

    def mine(self, table: PrivateTable) -> Any:
        released = table.release("keys")
        return list(released) if self.right else self.beside(table, released)

    def private(self, table: PrivateTable) -> dict[str, int]:
        """The exact counts, past the gate, in the order of the rows."""
        engine, rows = held(table)
        return engine.tally(rows, lambda block: block.keys("town").count_keys())

    def beside(self, table: PrivateTable, released: Any) -> Any:
        raise NotImplementedError


@attrs.frozen
class InOrderOfRows(Reads):
    """The keys come in the order of their exact counts."""

    def beside(self, table: PrivateTable, released: Any) -> Any:
        counts = self.private(table)
        return sorted(released, key=lambda key: -counts[key])


@attrs.frozen
class TellsTheirNumber(Reads):
    """The number of all keys is in the result."""

    def beside(self, table: PrivateTable, released: Any) -> Any:
        return [*released, len(self.private(table))]


@attrs.frozen
class RefusesAnUnknownKey(Reads):
    """A failure tells whether a key is there."""

    def beside(self, table: PrivateTable, released: Any) -> Any:
        self.private(table)["a"]
        return list(released)


@attrs.frozen
class PrintsAKey(Reads):
    """A key of one person is printed."""

    def beside(self, table: PrivateTable, released: Any) -> Any:
        print([key for key, count in self.private(table).items() if count == 1])
        return list(released)


compared = functools.cache(check_losses)


def of_losses(wrong: PartitionSelection) -> Callable[[bool], list[str]]:
    def problems(right: bool) -> list[str]:
        report = compared(RIGHT if right else wrong)
        return [] if report.passed else [str(report)]

    return problems


def of_sampler(wrong: PartitionSelection) -> Callable[[bool], list[str]]:
    def problems(right: bool) -> list[str]:
        return list(check_sampler(RIGHT if right else wrong, draws=1_000).wrong)

    return problems


def of_query(right: bool) -> list[str]:
    report = search_sensitivity(Keys("town") if right else CountsTwice(), SCHEMA, "add-or-remove-one", pairs=100)
    return [] if report.passed else [str(report)]


def of_miner(kind: type[Reads]) -> Callable[[bool], list[str]]:
    def problems(right: bool) -> list[str]:
        report = audit(kind(right), SCHEMA, "add-or-remove-one", replays=REPLAYS)
        return [str(violation) for violation in report.violations]

    return problems


PLANTED: dict[str, Callable[[bool], list[str]]] = {
    "> for >=": of_sampler(Strict(1, "0.05")),
    "delta halved": of_losses(Halved(1, "0.05")),
    "a key of one row shown as one of two": of_losses(OneRowTooLow(1, "0.05")),
    "all keys shown": of_losses(ShowsAllKeys(1, "0.05")),
    "a row that counts twice": of_query,
    "keys in the order of the rows": of_miner(InOrderOfRows),
    "the number of keys in the result": of_miner(TellsTheirNumber),
    "a refusal of an unknown key": of_miner(RefusesAnUnknownKey),
    "a key of one person printed": of_miner(PrintsAKey),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bug_is_caught(bug: str, record_property: Callable[..., None]) -> None:
    found = PLANTED[bug](False)
    record_property("planted bug", (bug, bool(found)))
    assert found, f"'{bug}' was not caught"


@pytest.mark.parametrize("bug", PLANTED)
def test_correct_version_passes(bug: str, record_property: Callable[..., None]) -> None:
    found = PLANTED[bug](True)
    record_property("correct version", (bug, not found))
    assert found == []
