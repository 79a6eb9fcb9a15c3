"""What published programs do with rows beside their releases: counts, rounds, classes, bounds, budgets, samples."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
from exact_rows import look_at

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Laplace
from dpframework.queries import BoundedSum, Count, Histogram, Query
from dpframework.tables import InMemory
from dpframework.tables.reading import table_from_columns
from dpframework.verify import UnitReader, check_bounding
from dpframework.verify.tables.engine_conformance import EngineConformance
from known_bugs.catalogue import ILL, SCHEMA, TOWN, Counts, KnownBug, Tool, mined

SUM, REAL = BoundedSum(SCHEMA["age"]), Laplace(1)
DIFFERS = "the run's result differs with the same releases"


def rows_of(table: dpf.PrivateTable) -> int:
    """Return the exact number of rows, past the gate."""
    return sum(look_at(table, lambda block: block.rows))


@attrs.frozen
class MeanOfNoisySum(Counts):
    """Divides a noisy sum by the exact number of rows, as a batch of unknown size is averaged."""

    asked: Query = SUM
    noise: dpf.Mechanism = REAL
    batch: int = 16

    def mine(self, table):
        total = float(np.asarray(table.release("counts")).item())
        return total / (self.batch if self.right else max(rows_of(table), 1))


@attrs.frozen
class RoundsByRows(Counts):
    """Makes as many rounds as the number of rows allows."""

    def plan(self, schema):
        return dpf.repeat(3, dpf.step("counts", self.asked, DiscreteLaplace("0.3")))

    def mine(self, table):
        rounds = 3 if self.right else 1 + min(rows_of(table) // 4, 2)
        return [table.release("counts") for _ in range(rounds)]


@attrs.frozen
class ClassesThatOccur(Counts):
    """Makes a count for each class that occurs, as `np.unique` of the labels finds them."""

    def plan(self, schema):
        return dpf.parallel(dpf.step("rows", Count(), self.noise), by=TOWN)

    def mine(self, table):
        seen = look_at(table, lambda block: np.unique(block.codes("town")))
        classes = range(3) if self.right else sorted({int(one) for found in seen for one in found})
        parts = table.partition("town")
        return [parts[k].release("rows") for k in classes]


@attrs.frozen
class ClipsAfterNoise(Counts):
    """Clips noisy counts to the number of rows that there are."""

    def mine(self, table):
        counts = table.release("counts")
        return np.clip(counts, 0, counts.sum() if self.right else rows_of(table))


@attrs.frozen
class StepMoreThanTallied(Counts):
    """Spends the whole budget on each of two queries."""

    def plan(self, schema):
        each = DiscreteLaplace("0.5") if self.right else DiscreteLaplace(1)
        return dpf.sequential(dpf.step("counts", self.asked, each), dpf.step("ill", Histogram(ILL), each))

    def mine(self, table):
        return table.release("counts"), table.release("ill")


@attrs.frozen
class Unbounded(Query):
    """A count whose change nobody states, since the column has no bounds in its metadata."""

    name = "unbounded"
    answer_length = 1
    right: bool = True

    @property
    def sensitivities(self):
        return dpf.queries.histogram_sensitivities(1) if self.right else ()

    def count(self, block, **inputs):
        return np.array([block.rows])


def refused(make: Callable[[bool], dpf.Miner]) -> Callable[[bool], list[str]]:
    """Return what the checks of a study with an epsilon of 1 refuse."""

    def own(right: bool) -> list[str]:
        study = dpf.Study(SCHEMA, epsilon=1)
        study.add("planted", make(right))
        return [str(finding) for finding in study.plan().refusals()]

    return own


class ShuffledBatches(InMemory):
    """Takes a batch of a fixed size, where each row should be in by itself."""

    name = "shuffled-batches"

    def sample(self, rows, drawn):
        def batch(number: int) -> np.ndarray:
            return np.arange(number) < round(drawn(number).mean() * number)

        return super().sample(rows, batch)


def engine_problems(right: bool) -> list[str]:
    """Return how the suite of engines fails."""

    class Suite(EngineConformance):
        @classmethod
        def build_engine(cls):
            return InMemory() if right else ShuffledBatches()

    Suite.setup_class()
    try:
        with tempfile.TemporaryDirectory() as folder:
            Suite().test_a_sample_is_of_the_rows_that_are_drawn_anew_each_time(Path(folder))
    except AssertionError as error:
        return [str(error)]
    finally:
        Suite.teardown_class()
    return []


def distinct_first(cells, schema, unit, key):
    """Leave out a row whose values somebody else has, and bound what is left."""
    seen: set[tuple[str, ...]] = set()
    kept = []
    for k in range(len(cells[unit.id])):
        row = tuple(repr(cells[name][k]) for name in schema.names)
        if row not in seen:
            kept.append(k)
        seen.add(row)
    return bounded({name: [column[k] for k in kept] for name, column in cells.items()}, schema, unit, key)


def bounded(cells, schema, unit, key):
    """Bound each person's rows by what the person has alone."""
    return table_from_columns(cells, schema, unit=unit, key=key)


def bounding_problems(right: bool) -> list[str]:
    """Read tables of people with a reader that bounds after rows were made distinct."""
    schema = dpf.Schema([TOWN])
    reader = UnitReader("planted", lambda cells, _: cells, bounded if right else distinct_first)
    found = check_bounding(schema, dpf.PrivacyUnit("person", 2), readers=[reader], tables=10)
    return list(found.violations)


BUGS = [
    KnownBug(
        "a noisy sum over the exact batch size",
        "Opacus 1.0 to 1.6, `expected_batch_size`; Synthcity",
        "https://github.com/meta-pytorch/opacus/issues/571; https://github.com/meta-pytorch/opacus/issues/819",
        Tool.AUDIT,
        DIFFERS,
        mined(MeanOfNoisySum),
    ),
    KnownBug(
        "as many rounds as the rows allow",
        "a class of bugs in the audit of twelve libraries",
        "arXiv:2602.17454",
        Tool.AUDIT,
        "on a neighbour, the run (ends before|asks|makes)",
        mined(RoundsByRows),
    ),
    KnownBug(
        "classes that occur in the labels",
        "IBM diffprivlib; SAS dpmm; reprosyn",
        "arXiv:2602.17454; https://github.com/alan-turing-institute/reprosyn/issues/38",
        Tool.AUDIT,
        "on a neighbour, the run (ends before|asks|makes)",
        mined(ClassesThatOccur),
    ),
    KnownBug(
        "noisy counts clipped to the exact total",
        "bounds of post-processing from the data",
        "no thread known to us",
        Tool.AUDIT,
        DIFFERS,
        mined(ClipsAfterNoise),
    ),
    KnownBug(
        "the whole budget for each of two queries",
        "MOSTLY AI; asked about an example of `mbi`",
        "arXiv:2602.17454; https://github.com/ryan112358/mbi/issues/11",
        Tool.CHECKS,
        "budget|epsilon",
        None,
        own=refused(lambda right: StepMoreThanTallied(right=right)),
    ),
    KnownBug(
        "no bounds, and so no noise",
        "SmartNoise SDK, SUM without metadata",
        "https://github.com/opendp/smartnoise-sdk/issues/317",
        Tool.CHECKS,
        "sensitivity",
        None,
        own=refused(lambda right: Counts(asked=Unbounded(right))),
    ),
    KnownBug(
        "batches of a fixed size, accounted as Poisson samples",
        "Opacus tutorials, private-transformers",
        "https://github.com/meta-pytorch/opacus/issues/80",
        Tool.ENGINE,
        "a sample is not of the rows that were drawn",
        None,
        own=engine_problems,
    ),
    KnownBug(
        "contributions bounded after values are made distinct",
        "Google Privacy on Beam 1.0.0, `DistinctPerKey`",
        "https://github.com/google/differential-privacy/pull/84",
        Tool.BOUNDING,
        "changes which rows others keep",
        None,
        own=bounding_problems,
    ),
]
