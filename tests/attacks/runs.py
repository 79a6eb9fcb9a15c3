"""Runs in a ledger that are raced, copied, or resumed on other rows than they were begun on."""

from __future__ import annotations

import json
import multiprocessing
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import dpframework as dpf
from dpframework.facts.errors import DPFrameworkError
from dpframework.mechanisms import DiscreteLaplace

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])])
RELEASES = 6
PATIENCE = 120  # seconds that a process may take


@attrs.frozen
class Asks(dpf.Miner):
    """Ask the same count several times, and stop where it is told."""

    name = "asks"

    def plan(self, schema):
        ill, noise = dpf.queries.Histogram(schema["ill"]), DiscreteLaplace("0.125")
        return dpf.sequential(*(dpf.step(f"ill {k}", ill, noise) for k in range(RELEASES)))

    def mine(self, table):
        made = []
        for k in range(RELEASES):
            if STOP.get("at") == k:
                raise KeyboardInterrupt
            made.append(table.release(f"ill {k}").tolist())
        return made


STOP: dict[str, int] = {}  # where the next run is interrupted: no part of the plan


@attrs.define
class Seen(dpf.Observer):
    """Writes what it is shown to a file."""

    path: Path

    def released(self, release):
        with open(self.path, "a") as file:
            file.write(json.dumps([release.charge.path, np.asarray(release.output).tolist()]) + "\n")

    @property
    def outputs(self) -> list[tuple[str, str]]:
        """Return each place and its output."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [(path, json.dumps(output)) for path, output in map(json.loads, lines)]


def study() -> dpf.Study:
    made = dpf.Study(SCHEMA, epsilon=1)
    made.add("m", Asks())
    return made


def table(rows: Any) -> dpf.Table:
    return dpf.Table.from_codes(SCHEMA, np.array(rows, dtype=np.int64).reshape(-1, 2).T)


def opened(folder: Path, runs: int, cap: str = "9") -> dpf.Ledger:
    """Make a ledger that approves some runs."""
    folder.mkdir(parents=True)
    ledger = dpf.Ledger.create(folder / "people.ledger")
    ledger.open("people", epsilon=cap)
    ledger.approve("people", study().plan(), by="b", runs=runs)
    return ledger


def run(ledger: Path, rows: Any, journal: Path | None, seen: Path, stop: int = RELEASES) -> str:
    """Run or resume the study, and return how it ended."""
    STOP["at"] = stop
    try:
        study().run(table(rows), ledger=dpf.Ledger(ledger).run("people", journal=journal), observers=[Seen(seen)])
    except (DPFrameworkError, KeyboardInterrupt) as error:
        return f"{type(error).__name__}: {error}"
    return "finished"


def at_once(calls: list[tuple[Any, ...]]) -> list[str]:
    """Give each call of `run` to a process of its own, all at the same time."""
    context = multiprocessing.get_context("fork")  # nothing has started a thread yet, and a fork imports nothing
    barrier, told = context.Barrier(len(calls)), context.Queue()
    processes = [context.Process(target=_raced, args=(barrier, told, call)) for call in calls]
    for process in processes:
        process.start()
    outcomes = [told.get(timeout=PATIENCE) for _ in processes]
    for process in processes:
        process.join()
    return outcomes


def _raced(barrier: Any, told: Any, call: tuple[Any, ...]) -> None:
    barrier.wait()
    told.put(run(*call))


def draw_rows(draw: random.Random) -> list[list[int]]:
    return [[draw.randrange(2), draw.randrange(3)] for _ in range(draw.randrange(1, 60))]


def races(rounds: int, processes: int, folder: Path, seed: int = 0) -> Iterator[tuple[str, str | None]]:
    """Start more runs at once than a cap or an approval allows: as many as fit are made, and no more."""
    for k in range(rounds):
        draw = random.Random(seed + k)
        fit, by_cap = draw.randrange(1, processes), bool(k % 2)
        epsilon = study().plan().total().epsilon
        cap = fit * epsilon + epsilon / 2 if by_cap else 99
        ledger = opened(folder / f"race {k}", runs=99 if by_cap else fit, cap=str(cap))
        rows = draw_rows(draw)
        calls = [(ledger.path, rows, None, ledger.path.parent / f"seen {n}") for n in range(processes)]
        ends = at_once(calls)
        held = ledger.data_set("people").runs
        found, busy = None, any("another process is writing" in end for end in ends)
        if len(held) > fit or (len(held) < fit and not busy) or (ends.count("finished") != len(held) and not busy):
            found = f"{ends.count('finished')} runs were made and {len(held)} charged, {fit} fit: {ends}"
        yield f"race {k}: {processes} processes, {fit} fit the {'cap' if by_cap else 'approval'}", found


def copies(rounds: int, processes: int, folder: Path, seed: int = 0) -> Iterator[tuple[str, str | None]]:
    """Interrupt a run, copy its journal, and resume all copies at once."""
    for k in range(rounds):
        draw = random.Random(seed + k)
        ledger, rows, stop = opened(folder / f"copy {k}", runs=1), draw_rows(draw), draw.randrange(1, RELEASES)
        here = ledger.path.parent
        journal = here / "journal"
        run(ledger.path, rows, journal, here / "seen", stop)
        calls = []
        for n in range(processes):
            copied = shutil.copy(journal, here / f"journal {n}")
            calls.append((ledger.path, rows, Path(copied), here / f"seen {n}"))
        ends = at_once(calls)
        outputs = [Seen(path).outputs for path in sorted(here.glob("seen*"))]
        found = too_often(ledger, [one for seen in outputs for one in seen])
        yield f"copy {k}: {processes} copies, stopped at {stop}, {ends.count('finished')} finished", found


CHANGES: dict[str, Callable[[list[Any], random.Random], list[Any]]] = {
    "a row more": lambda rows, draw: [*rows, [1, draw.randrange(3)]],
    "a row less": lambda rows, draw: rows[1:],
    "a row replaced": lambda rows, draw: [[1 - rows[0][0], rows[0][1]], *rows[1:]],
    "another order": lambda rows, draw: draw.sample(rows, len(rows)),
    "no rows": lambda rows, draw: [],
    "all rows twice": lambda rows, draw: rows * 2,
}


def resumed(rounds: int, folder: Path, seed: int = 0) -> Iterator[tuple[str, str | None]]:
    """Interrupt a run and resume it on rows that changed: nothing that was seen is drawn again."""
    for k in range(rounds):
        draw = random.Random(seed + k)
        ledger, rows = opened(folder / f"resumed {k}", runs=1), draw_rows(draw)
        here = ledger.path.parent
        words, change = list(CHANGES.items())[k % len(CHANGES)]
        stops = sorted(draw.sample(range(1, RELEASES), draw.randrange(1, 3)))
        for stop in (*stops, RELEASES):
            run(ledger.path, rows, here / "journal", here / "seen", stop)
            rows = change(rows, draw) if rows else rows
        outputs = Seen(here / "seen").outputs
        found = too_often(ledger, outputs)
        (held,) = ledger.data_set("people").runs.values()
        if found is None and (held.end, len(held.charges)) != ("finished", RELEASES):
            found = f"the run ended as {held.end} with {len(held.charges)} charges"
        yield f"resumed {k}: {words}, stopped at {stops}", found


def too_often(ledger: dpf.Ledger, outputs: list[tuple[str, str]]) -> str | None:
    """Return which release has more outputs than the ledger says that were drawn, or None."""
    try:
        ledger.verify()
    except DPFrameworkError as error:
        return str(error)
    (held,) = ledger.data_set("people").runs.values()
    charges = Counter(held.charges)
    if charges and max(charges.values()) > 1:
        return f"a release is charged twice: {charges}"
    different = Counter(path for path, _ in set(outputs))
    more = sum(number - 1 for number in different.values())
    if more > held.redrawn:
        return f"{more} releases have a second output, and the ledger knows of {held.redrawn}"
    if set(different) - set(charges):
        return f"releases that were not charged: {sorted(set(different) - set(charges))}"
    return None
