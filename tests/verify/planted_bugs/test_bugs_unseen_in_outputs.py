"""Known bugs that show in no number that a run puts out: planted, each beside its correct version.

What a result holds and does not show, what is logged, what is kept from one run for the next, and where noise comes
from. The tests of draws are wrong with a probability of at most 1e-6 each.
"""

from __future__ import annotations

import functools
import logging
import math
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from verify.planted_bugs.test_bugs_seen_in_outputs import SCHEMA, Counts, Towns, of_claims, of_sampler, peek

import dpframework as dpf
from dpframework.facts import ByRelation
from dpframework.mechanisms import DiscreteLaplace, Laplace, PermuteAndFlip
from dpframework.queries import Histogram, JointHistogram, Query, histogram_sensitivities
from dpframework.verify import Reader, audit, check_reading, search_sensitivity
from dpframework.verify.mechanisms.randomness_checks import draw_problems
from dpframework.verify.miners.value_comparison import same

ADD = dpf.Relation.ADD_OR_REMOVE_ONE
RNG = np.random.default_rng(0)  # known to everybody
FIRST: dict[bool, int] = {}


def behaves(make: Callable[..., dpf.Miner]) -> Callable[[bool], list[str]]:
    """Replay what a miner does."""

    def run(right: bool) -> list[str]:
        return [one.what for one in audit(make(right=right), SCHEMA, ADD, replays=200).violations]

    return run


# What a result holds


class Model:
    """Shows nothing of what it holds but the counts."""

    def __init__(self, counts: Any) -> None:
        self.counts = counts

    @functools.cached_property
    def rows(self) -> int:
        return int(self.counts.sum())

    def first(self) -> Any:
        return self.counts[0]

    def to_dict(self) -> dict[str, Any]:
        return {"counts": self.counts.tolist()}

    def __str__(self) -> str:
        return "a model"


@attrs.define(slots=False)
class Declared:
    counts: Any


class Number(float):
    """A number that may have attributes."""


def model(counts: Any, rows: int) -> Any:
    made = Model(counts)
    made.__dict__["rows"] = rows
    return made


def declared(counts: Any, rows: int) -> Any:
    made = Declared(counts)
    made.rows = rows  # type: ignore[attr-defined]
    return made


def number(counts: Any, rows: int) -> Any:
    made = Number(counts.sum())
    made.rows = rows  # type: ignore[attr-defined]
    return made


def of_nan(counts: Any, rows: int) -> Any:
    made = Model(counts)
    made.mean = np.array([0x7FF8000000000000 + rows], dtype=np.uint64).view(np.float64)  # type: ignore[attr-defined]
    return made


def of_set(counts: Any, rows: int) -> Any:
    made = Model(counts)
    made.towns = set([0, 8] if rows % 2 else [8, 0])  # type: ignore[attr-defined]
    return made


def of_attributes(counts: Any, rows: int) -> Any:
    made = Model(counts)
    for name in ("a", "b") if rows % 2 else ("b", "a"):
        setattr(made, name, 1)
    return made


RESULTS: dict[str, Callable[[Any, int], Any]] = {
    "an attribute beside those that are declared": declared,
    "a cached property that is filled": model,
    "a number with an attribute": number,
    "the payload of a NaN": of_nan,
    "the order of a set": of_set,
    "the order of attributes": of_attributes,
    "the array that a view is a part of": lambda counts, rows: np.append(counts, rows)[:3],
    "a function that remembers": lambda counts, rows: lambda: rows,
    "a default of a function": lambda counts, rows: lambda told=rows: counts,
    "a function with arguments": lambda counts, rows: functools.partial(print, rows),
    "a method of an object that is not shown": lambda counts, rows: Model(np.array([rows])).first,
}


@attrs.frozen
class Gives(Counts):
    """Gives a result that holds the number of rows: of the noisy counts, or of the table."""

    made: Any = None

    def mine(self, table):
        counts = table.release("counts")
        return self.made(counts, int(counts.sum()) if self.right else peek(table))


def of_result(made: Callable[[Any, int], Any]) -> Callable[[bool], list[str]]:
    return behaves(lambda right: Gives(right=right, made=made))


# What is said


@attrs.frozen
class Says(Counts):
    """Says how many rows there are."""

    how: Any = None

    def mine(self, table):
        counts = table.release("counts")
        self.how(counts.sum() if self.right else peek(table))
        return counts


# What is kept


@attrs.frozen
class RemembersFirst(Counts):
    """Tells with each result how many rows the first table had that it saw."""

    def mine(self, table):
        counts = table.release("counts")
        return counts, FIRST.setdefault(self.right, 0 if self.right else peek(table))


@attrs.frozen
class RemembersInClass(Counts):
    """The same, in a name of its class that is not there before."""

    def mine(self, table):
        counts = table.release("counts")
        name = f"first_{self.right}"  # the correct version may have run before in this process
        if not hasattr(type(self), name):
            setattr(type(self), name, 0 if self.right else peek(table))
        return counts, getattr(type(self), name)


@attrs.frozen
class RemembersInCache(Counts):
    """The same, in a cache."""

    @staticmethod
    @functools.cache
    def first(right: bool, seen: Callable[[], int]) -> int:
        return 0 if right else seen()

    def mine(self, table):
        counts = table.release("counts")
        seen = Seen()
        seen.rows = 0 if self.right else peek(table)
        return counts, self.first(self.right, seen)


class Seen:
    """Every two are the same, so that a cache takes the one for the other."""

    rows = 0

    def __call__(self) -> int:
        return self.rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen)

    def __hash__(self) -> int:
        return 0


@attrs.frozen
class RemembersItself(Counts):
    kept: list[int] = attrs.field(factory=list, init=False)

    def mine(self, table):
        counts = table.release("counts")
        self.kept.append(0 if self.right else peek(table))
        return counts, self.kept[0]


@attrs.frozen
class KeepsRows(Towns):
    """Counts as it should, and keeps the rows, which whoever gets the plan gets too."""

    name = "keeps-rows"
    kept: list[Any] = attrs.field(factory=list, eq=False, init=False)

    def count(self, block, **inputs):
        if not self.right:
            self.kept.append(block.codes("town").copy())
        return super().count(block)


# Rows that a query writes on


@attrs.frozen
class WritesOnRows(Towns):
    """Leaves other rows than it has found, for the release after it."""

    name = "writes-on-rows"

    def count(self, block, **inputs):
        if not self.right:
            block.columns[block.schema.index("town")][:] = 0
        return np.bincount(block.codes("town"), minlength=3)


@attrs.frozen
class AsksAgain(Counts):
    def plan(self, schema):
        half = DiscreteLaplace("0.5")
        again = JointHistogram([schema["town"], schema["ill"]])
        return dpf.sequential(dpf.step("counts", self.asked, half), dpf.step("again", again, half))

    def mine(self, table):
        return table.release("counts"), table.release("again")


# A query that is right on one block, and for one row


@attrs.frozen
class CapsBlocks(Query):
    """Counts a town's rows up to three: of each block, where only all of them may be meant."""

    name = "caps-blocks"
    answer_length = 1
    sensitivities: ClassVar = histogram_sensitivities(1)
    right: bool = False

    def count(self, block, **inputs):
        rows = int((block.codes("town") == 0).sum())
        return np.array([rows if self.right else min(rows, 3)])


@attrs.frozen
class UnitAsRow(Towns):
    """Declares for a person what holds for a row."""

    name = "unit-as-row"

    def for_rows(self, rows):
        return () if self.right else self.sensitivities


# Noise


def geometric(generator: np.random.Generator, answer: Any, calibration: dpf.mechanisms.Calibration) -> Any:
    """Return an answer with the noise of a Laplace mechanism, from a generator."""
    success = -math.expm1(-float(calibration.unit / calibration.scale))
    noise = generator.geometric(success, np.shape(answer)) - generator.geometric(success, np.shape(answer))
    return answer + noise * float(calibration.unit)


class KnownSeed(Laplace):
    """Draws from a generator whose seed everybody knows."""

    name = "known-seed"

    def release(self, answer, calibration, randomness):
        return geometric(RNG, answer, calibration)


class KnownSeedInPrivate(Laplace):
    """The same, where nobody can repeat the draws anyway."""

    name = "known-seed-in-private"

    def release(self, answer, calibration, randomness):
        return (
            geometric(RNG, answer, calibration)
            if randomness.private
            else super().release(answer, calibration, randomness)
        )


class OwnGenerator(Laplace):
    """Draws from numpy's generator, which is no cryptographic one."""

    name = "own-generator"

    def release(self, answer, calibration, randomness):
        return geometric(np.random.default_rng(), answer, calibration)


class SharesNoise(DiscreteLaplace):
    """Draws anew only where the answer is the one before."""

    name = "shares-noise"

    def release_many(self, answers, calibration, randomness):
        noise = [self.release(np.zeros_like(answers[0]), calibration, randomness) for _ in answers]
        same_as_before = [k and np.array_equal(answers[k], answers[k - 1]) for k in range(len(answers))]
        return [
            answer + noise[k if again else 0]
            for k, (answer, again) in enumerate(zip(answers, same_as_before, strict=True))
        ]


class Backwards(DiscreteLaplace):
    """Returns the outputs in the wrong order."""

    name = "backwards"

    def release_many(self, answers, calibration, randomness):
        return super().release_many(answers, calibration, randomness)[::-1]


class ChoosesBackwards(PermuteAndFlip):
    name = "chooses-backwards"

    def release_many(self, answers, calibration, randomness):
        return super().release_many(answers, calibration, randomness)[::-1]


class CutOff(DiscreteLaplace):
    """Cuts its noise off where it hardly ever comes."""

    name = "cut-off"

    def release(self, answer, calibration, randomness):
        most = int(20 * calibration.scale)
        return np.clip(super().release(answer, calibration, randomness), answer - most, answer + most)

    def release_many(self, answers, calibration, randomness):
        return [self.release(answer, calibration, randomness) for answer in answers]


class CutOffAsStated(CutOff):
    """The same, with a density that says so."""

    name = "cut-off-as-stated"

    def log_density(self, answer, output, calibration):
        far = np.abs(np.subtract(output, answer)).max() > int(40 * calibration.scale)
        return -math.inf if far else super().log_density(answer, output, calibration)


class Tiled(DiscreteLaplace):
    """Draws 256 numbers, and takes them again for those that come after."""

    name = "tiled"

    def release(self, answer, calibration, randomness):
        return answer + np.resize(randomness.discrete_laplace(256, calibration.lattice_scale), np.shape(answer))


class Short(DiscreteLaplace):
    """Draws for the last numbers at most."""

    name = "short"

    def release(self, answer, calibration, randomness):
        noise = randomness.discrete_laplace(np.size(answer), calibration.lattice_scale)
        noise[: max(np.size(answer) - 3000, 0)] = 0
        return answer + noise.reshape(np.shape(answer))


class FirstFew(PermuteAndFlip):
    """Chooses among the first 64."""

    name = "first-few"

    def release(self, answer, calibration, randomness):
        return super().release(answer[:64], calibration, randomness)


@attrs.frozen
class NarrowSum(Query):
    """Adds up in 32 bits."""

    name = "narrow-sum"
    integer = False
    answer_length = 1
    sensitivities: ClassVar = [dpf.Sensitivity("l1", 8, source="the bounds")]
    right: bool = False

    def count(self, block, **inputs):
        kind = np.float64 if self.right else np.float32
        return np.array([block.values("age").sum(dtype=kind)]).astype(np.float64)


# Readers that look at many rows


def read_in_blocks(cells: Any, schema: dpf.Schema) -> dpf.Table:
    """Read whole blocks of a thousand rows; of fewer rows all."""
    whole = {name: cells[name][: len(cells[name]) // 1000 * 1000 or None] for name in cells}
    return dpf.table_from_columns(whole, schema)


def read_once(cells: Any, schema: dpf.Schema) -> dpf.Table:
    """Leave out a row that was there before."""
    rows = dict.fromkeys(zip(*(map(repr, column) for column in cells.values()), strict=True))
    return dpf.table_from_columns({"ill": [row[0] == "True" for row in rows]}, schema)


def of_reading(read: Callable[[Any, dpf.Schema], dpf.Table]) -> Callable[[bool], list[str]]:
    def run(right: bool) -> list[str]:
        reader = Reader("planted", lambda cells, _: cells, dpf.table_from_columns if right else read)
        return list(check_reading(dpf.Schema([dpf.Boolean("ill")]), readers=[reader], tables=20).violations)

    return run


def of_search(make: Callable[[bool], Query], rows: int = 1) -> Callable[[bool], list[str]]:
    def run(right: bool) -> list[str]:
        found = search_sensitivity(make(right), SCHEMA, ADD, pairs=60, rows=rows)
        return [] if found.passed else [str(found)]

    return run


PLANTED: dict[str, Callable[[bool], list[str]]] = {
    **{f"a result with {what}": of_result(made) for what, made in RESULTS.items()},
    "a count that is logged": behaves(
        lambda right: Says(right=right, how=lambda rows: logging.getLogger("planted").info("%d rows", rows))
    ),
    "a count beside what is logged": behaves(
        lambda right: Says(
            right=right, how=lambda rows: logging.getLogger("planted").info("done", extra={"rows": rows})
        )
    ),
    "a count written on the terminal's own stream": behaves(
        lambda right: Says(right=right, how=lambda rows: sys.__stderr__.write(f"{rows} rows"))
    ),
    "a first table remembered in a global": behaves(RemembersFirst),
    "a first table remembered in a class": behaves(RemembersInClass),
    "a first table remembered in a cache": behaves(RemembersInCache),
    "a first table remembered by the miner": behaves(RemembersItself),
    "rows that a query keeps": behaves(lambda right: Counts(asked=KeepsRows(right=right))),
    "rows that a query writes on": behaves(lambda right: AsksAgain(asked=WritesOnRows(right=right))),
    "a cap on each block": of_search(CapsBlocks),
    "noise of a known seed": of_sampler(KnownSeed(1), Laplace(1)),
    "noise of a known seed, in private": of_sampler(KnownSeedInPrivate(1), Laplace(1)),
    "noise of another generator": of_sampler(OwnGenerator(1), Laplace(1)),
    "noise that different answers share": of_sampler(SharesNoise(1), DiscreteLaplace(1)),
    "outputs in the wrong order": of_sampler(Backwards(1), DiscreteLaplace(1)),
    "choices in the wrong order": of_sampler(ChoosesBackwards(1), PermuteAndFlip(1)),
    "noise that comes again": of_sampler(Tiled(1), DiscreteLaplace(1)),
    "noise for the last numbers only": of_sampler(Short(1), DiscreteLaplace(1)),
    "a choice among the first": of_sampler(FirstFew(1), PermuteAndFlip(1)),
    "sums in float32": of_search(NarrowSum),
    "a last block that is not read": of_reading(read_in_blocks),
    "a row that is read once": of_reading(read_once),
    "noise that is cut off": of_sampler(CutOff(1), DiscreteLaplace(1)),
    "noise that is cut off, density and all": of_claims(CutOffAsStated(1), DiscreteLaplace(1)),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bug_is_caught(bug, record_property):
    found = PLANTED[bug](False)
    record_property("planted bug", (bug, bool(found)))
    assert found, f"'{bug}' was not caught"


@pytest.mark.parametrize("bug", PLANTED)
def test_correct_version_passes(bug, record_property):
    found = PLANTED[bug](True)
    record_property("correct version", (bug, not found))
    assert found == []


def test_what_a_query_declares_for_a_unit_is_searched_though_no_unit_is_asked_for():
    for right in (True, False):
        miner = Counts(asked=UnitAsRow(right))
        found = dpf.verify.verify_examples(
            "x", {"one": dpf.Example(SCHEMA, miner)}, relations=[ADD], replays=200, runs=0
        )
        of_units = [one for one in found.sensitivities if "a unit of 3 rows" in one.query]
        assert [one.passed for one in of_units] == ([] if right else [False])
        assert found.passed is right


def test_two_values_that_hold_each_other_or_are_computed_later_are_the_same():
    ring, other = Model([1]), Model([1])
    ring.itself, other.itself = ring, other  # type: ignore[attr-defined]
    assert same(ring, other)
    one, computed = Model(np.array([1, 2])), Model(np.array([1, 2]))
    assert computed.rows == 3
    assert same(one, computed)
    assert not same(Histogram(SCHEMA["town"]), Histogram(SCHEMA["ill"]))
    assert same(np.arange(4)[:2], np.arange(2))  # a copy has no other array behind it


class Nothing:
    """Holds nothing, and is no value of attrs: a copy is the same."""


def test_two_values_that_hold_nothing_to_see_are_the_same_if_their_states_are():
    assert same(Nothing(), Nothing())
    assert same(np.random.default_rng(3), np.random.default_rng(3))
    drawn = np.random.default_rng(3)
    drawn.random()
    assert not same(np.random.default_rng(3), drawn)
    assert not same(iter(x for x in "a"), iter(x for x in "a"))  # nobody can tell
    assert not same(frozenset({1}), frozenset({2}))


class Plain(Query):
    """Honest: no value of attrs, and it remembers what it made of its public inputs."""

    name = "plain"
    sensitivities = histogram_sensitivities(2)
    answer_length = 2

    def __init__(self):
        self.made = {}

    def count(self, block, **inputs):
        wide = self.made.setdefault(tuple(sorted(inputs)), 2)
        return np.bincount(block.codes("ill"), minlength=wide)


class Stateless(Plain):
    """The same, and remembers nothing."""

    name = "stateless"

    def __init__(self):
        pass

    def count(self, block, **inputs):
        return np.bincount(block.codes("ill"), minlength=2)


@pytest.mark.parametrize("query", [Plain, Stateless])
def test_a_query_of_any_class_may_remember_what_is_public(query):
    @attrs.frozen
    class Asks(dpf.Miner):
        name = "asks"

        def plan(self, schema):
            return dpf.step("ill", query(), DiscreteLaplace(1))

        def mine(self, table):
            return table.release("ill")

    assert audit(Asks(), SCHEMA, "add-or-remove-one", seed=1, replays=400).passed


class InRange(DiscreteLaplace):
    """Honest: what is outside of a public range is put to its end, which is post-processing."""

    name = "in-range"

    def release(self, answer, calibration, randomness):
        return np.clip(super().release(answer, calibration, randomness), -30, 60)

    def release_many(self, answers, calibration, randomness):
        return [self.release(answer, calibration, randomness) for answer in answers]


class Cumulated(DiscreteLaplace):
    """Honest: each number has the noise of all before it, too, and the density says so."""

    name = "cumulated"

    def release(self, answer, calibration, randomness):
        zeros = np.zeros_like(answer)
        return answer + np.cumsum(super().release(zeros, calibration, randomness)).astype(zeros.dtype)

    def release_many(self, answers, calibration, randomness):
        return [self.release(answer, calibration, randomness) for answer in answers]

    def log_density(self, answer, output, calibration):
        noise = np.diff(np.subtract(output, answer), prepend=0)
        return super().log_density(np.zeros_like(noise), noise, calibration)


@pytest.mark.parametrize("mechanism", [InRange(1), Cumulated(1)])
def test_ranges_of_outputs_and_noise_that_adds_up_are_no_problems(mechanism):
    calibration = mechanism.calibrate(Histogram(SCHEMA["town"]).facts(), dpf.Relation.ADD_OR_REMOVE_ONE)
    assert list(draw_problems(mechanism, np.array([4, 9, 2]), calibration, 1.0)) == []


@pytest.mark.parametrize(
    ("mechanism", "problem"), [(CutOff(1), "its noise is cut off at 20"), (Tiled(1), "repeats itself")]
)
def test_what_is_wrong_with_draws_is_said(mechanism, problem):
    calibration = mechanism.calibrate(Histogram(SCHEMA["town"]).facts(), dpf.Relation.ADD_OR_REMOVE_ONE)
    assert problem in "; ".join(draw_problems(mechanism, np.array([4, 9, 2]), calibration, 1.0))


class Delta(CutOff):
    """Honest: noise that is cut off loses a delta, and neither a pure epsilon nor a rho is claimed."""

    name = "with-delta"


def test_noise_may_be_cut_off_where_only_a_delta_is_claimed():
    mechanism = Delta(1)
    calibration = mechanism.calibrate(Histogram(SCHEMA["town"]).facts(), dpf.Relation.ADD_OR_REMOVE_ONE)
    nothing = ByRelation(None, None)
    losses = attrs.evolve(calibration.losses, pure=nothing, zcdp=nothing)
    of_delta = attrs.evolve(calibration, losses=losses)
    assert list(draw_problems(mechanism, np.array([4, 9, 2]), of_delta, 1.0)) == []
