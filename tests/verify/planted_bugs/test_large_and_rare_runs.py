"""Bugs of miners and queries that no small table, no usual run and no example shows: planted, each beside its twin.

They show where all counts are large together, for millions of rows, between two constants of the code, in steps that
runs hardly ever reach, for later inputs, in parts under replace-one, in large blocks, and with parameters and schemas
that change what a run does and not what a query declares.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from verify.bug_version import require_named, require_no_problem
from verify.planted_bugs.test_beside_the_examples import ADD, FLAGS, PEOPLE, REPLACE, Asks, l1
from verify.planted_bugs.test_first_plugins import failures
from verify.planted_bugs.test_other_parameters_and_sizes import Adds, Makes

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential, Laplace
from dpframework.queries import CandidateScores, Count, Histogram, Norm, Query, Sensitivity, histogram_sensitivities
from dpframework.verify import audit, verify_examples
from dpframework.verify.miners.value_comparison import same
from dpframework.verify.plugin_code_constants import constants_of, words_compared_with
from dpframework.verify.queries.large_tables import irregular_sizes, pairs_of_every_kind
from dpframework.verify.tables.neighbours import Universe

PAD = threading.local()
WARDS = dpf.Schema([dpf.Categorical("ward", [f"w{k}" for k in range(90)]), dpf.Boolean("ill")])
OF_TEN = attrs.evolve(PEOPLE, rows=10)
UNEVEN = dpf.Schema([dpf.Numeric("age", 0, 9, cuts=[2, 3])])


@attrs.frozen
class Telling(Query):
    """Counts the values of an attribute, and leaves the exact counts where the miner finds them."""

    name = "telling"
    attribute: dpf.Attribute

    @property
    def answer_length(self):
        return self.attribute.size

    @property
    def sensitivities(self):
        return histogram_sensitivities(self.attribute.size)

    def count(self, block, **inputs):
        return np.bincount(block.codes(self.attribute.name), minlength=self.attribute.size)

    def answer(self, counts, **inputs):
        PAD.counts = counts
        return counts


@attrs.frozen
class Told(dpf.Miner):
    """Counts towns, and does something with the noisy counts, or with the exact ones; the base of those below."""

    name = "told"
    right: Any

    def plan(self, schema):
        half = DiscreteLaplace("0.5")
        return dpf.sequential(
            dpf.step("towns", Telling(schema["town"]), half), dpf.step("again", Histogram(schema["town"]), half)
        )

    def mine(self, table):
        noisy = table.release("towns").astype(float)
        exact = vars(PAD).pop("counts")
        return self.result(table, noisy, noisy if self.right else exact)

    def result(self, table: Any, noisy: Any, known: Any) -> Any:
        raise NotImplementedError


class StopsAtFewest(Told):
    """Goes on only if each town has fifty rows."""

    name = "stops-at-fewest"

    def result(self, table, noisy, known):
        return table.release("again") if known.min() >= 50 else noisy


class TwoLarge(Told):
    """Leaves out the third town where the first two are large."""

    name = "two-large"

    def result(self, table, noisy, known):
        return noisy[:2] if known[0] > 40 and known[1] > 40 else noisy


class Millions(Told):
    """Smooths counts of small tables."""

    name = "millions"

    def result(self, table, noisy, known):
        return noisy if known.sum() > 200_000 else (noisy + noisy.mean()) / 2


class Interpolates(Told):
    """Mixes two numbers, of which one counts only between 300 and 900."""

    name = "interpolates"

    def result(self, table, noisy, known):
        share = np.interp(noisy, [300.0, 600.0, 900.0], [0.0, 1.0, 0.0])
        return (1 - share) * noisy + share * known


class FillsIn(Told):
    """Spreads the rows without a town over the others."""

    name = "fills-in"

    def result(self, table, noisy, known):
        town = table.schema["town"]
        return noisy[:-1] + known[-1] / 3 if town.missing else noisy


@attrs.frozen
class Verbose(Told):
    """Prints the number of rows, if asked to."""

    name = "verbose"
    verbose: bool = False

    def result(self, table, noisy, known):
        if self.verbose:
            print(known.sum())
        return noisy


TOLD: dict[str, tuple[type[Told], str]] = {
    "a stop where every exact count is large": (StopsAtFewest, "on a neighbour, the run goes on to release"),
    "two exact counts that are large together": (TwoLarge, "on a neighbour, the run's result differs"),
    "a result that changes at 200,000 exact rows": (
        Millions,
        "on a neighbour of a table of 200,000 equal rows, the run's result differs",
    ),
    "an exact count mixed in between two constants": (Interpolates, "on a neighbour, the run's result differs"),
}


@pytest.mark.parametrize("bug", TOLD)
def test_a_run_that_looks_at_large_exact_counts_is_named(bug, record_property):
    make, named = TOLD[bug]
    found = [one.what for one in audit(make(right=False), PEOPLE, ADD, replays=1_000).violations]
    record_property("planted bug", (bug, bool(found)))
    assert any(named in what for what in found), found


@pytest.mark.parametrize("bug", TOLD)
def test_a_run_that_looks_at_noisy_counts_passes(bug, record_property):
    reports = [audit(TOLD[bug][0](right=True), PEOPLE, relation, replays=200) for relation in dpf.Relation]
    record_property("correct version", (bug, all(report.passed for report in reports)))
    assert [str(one) for report in reports for one in report.violations] == []


@attrs.frozen
class Wards(Query):
    """Counts wards, and one of ninety five times."""

    name = "wards"
    right: Any
    answer_length = 90
    sensitivities = histogram_sensitivities(90)  # type: ignore[assignment]

    def count(self, block, **inputs):
        counts = np.bincount(block.codes("ward"), minlength=90)[:90]
        counts[41] *= 1 if self.right else 5
        return counts


@attrs.frozen
class Seldom(dpf.Miner):
    """Counts wards if there are thousands of rows by a noisy count, given some wards or not."""

    name = "seldom"
    right: Any
    given: bool = False

    def plan(self, schema):
        half = DiscreteLaplace("0.5")
        wards = (OfGiven if self.given else Wards)(self.right)
        return dpf.sequential(
            dpf.step("rows", Count(), half),
            dpf.either(dpf.step("wards", wards, half), dpf.step("ill", Histogram(schema["ill"]), half)),
        )

    def mine(self, table):
        if table.release("rows") <= 3_000:
            return table.release("ill")
        return table.release("wards", chosen=np.arange(90)) if self.given else table.release("wards")


@attrs.frozen
class OfGiven(Wards):
    """The same of given wards."""

    name = "of-given"

    def count(self, block, *, chosen, **inputs):
        return super().count(block)[chosen]


@attrs.frozen
class Gain(CandidateScores):
    """Scores a town by its rows less those of the towns before it, each once or as often as it was chosen."""

    name = "gain"
    integer = True
    answer_length = 3
    right: Any
    sensitivities = (Sensitivity(Norm.LINF, 1, source="a newcomer"),)  # type: ignore[assignment]

    def candidates(self, **inputs):
        return ["A", "B", "C"]

    def count(self, block, **inputs):
        return np.bincount(block.codes("town"), minlength=4)[:3]

    def answer(self, counts, chosen=(), **inputs):
        return counts - sum(counts["ABC".index(one)] for one in (set(chosen) if self.right else chosen))


@attrs.frozen
class Greedy(dpf.Miner):
    """Chooses three towns, one after another, and spends most of its budget on counts."""

    name = "greedy"
    right: Any

    def plan(self, schema):
        return dpf.sequential(
            dpf.step("towns", Histogram(schema["town"]), DiscreteLaplace("0.9")),
            dpf.repeat(3, dpf.step("gain", Gain(self.right), Exponential(Fraction(1, 30)))),
        )

    def mine(self, table):
        chosen: list[str] = []
        for _ in range(3):
            chosen.append(table.release("gain", chosen=tuple(chosen)))
        return chosen, table.release("towns")


@attrs.frozen
class OfCounts(Query):
    """A number, or several, made of the counts of three towns."""

    name = "of-counts"
    of: Callable[[Any], Any] = attrs.field(eq=False)
    declared: tuple[Sensitivity, ...] = l1(1, 1)
    whole: bool = True
    length: int = 1

    @property
    def integer(self):  # type: ignore[override]
        return self.whole

    @property
    def answer_length(self):
        return self.length

    @property
    def sensitivities(self):
        return self.declared

    def count(self, block, **inputs):
        return np.bincount(block.codes("town"), minlength=3)[:3]

    def answer(self, counts, **inputs):
        return np.array(self.of(counts))


def fewest(right: bool) -> dpf.Miner:
    """Count the fewest rows of a town, three times those beyond a hundred."""
    return Asks(OfCounts(lambda n: [min(n) + (0 if right else 2 * max(min(n) - 100, 0))]), DiscreteLaplace(1))


def falls(right: bool) -> dpf.Miner:
    """Score towns by their rows, of which those that all have beyond eighty are taken from the last two."""

    def scores(counts: Any) -> Any:
        return counts - np.array([0, 1, 1]) * max(int(counts.min()) - 80, 0)

    rising = (Sensitivity(Norm.LINF, 1, fall=1 if right else 0, source="a newcomer"),)
    return Asks(OfCounts(scores, rising, length=3), Exponential(1))


def six_digits(right: bool) -> dpf.Miner:
    """Write counts with six digits."""
    return Asks(OfCounts(lambda n: [float(n[0] if right else f"{n[0]:.6g}")], l1(1, 1), whole=False), Laplace(1))


@attrs.frozen
class WidthInParts(dpf.Miner):
    """Adds up ages in parts, where the number of rows is public: an added row may add the upper bound."""

    name = "width-in-parts"
    right: Any

    def plan(self, schema):
        age = schema["age"]
        lower, upper = Fraction(age.lower), Fraction(age.upper)
        largest = max(abs(lower), abs(upper)) if self.right else upper - lower
        # a missing age adds 0
        wide = max(upper, Fraction()) - min(lower, Fraction()) if age.missing and self.right else upper - lower
        declared = l1(largest, wide)
        shares = OfCounts(lambda counts: counts / 10, l1(None, Fraction(1, 5)), whole=False, length=3)
        return dpf.sequential(
            dpf.step("shares", shares, Laplace(1)),
            dpf.parallel(dpf.step("ages", Ages(age, declared), Laplace(1)), by=schema["town"]),
        )

    def mine(self, table):
        return table.release("shares"), [part.release("ages") for part in table.partition("town")]


@attrs.frozen
class Ages(Query):
    """The sum of ages."""

    name = "ages"
    integer = False
    answer_length = 1
    of: dpf.Numeric
    declared: tuple[Sensitivity, ...]

    @property
    def sensitivities(self):
        return self.declared

    def count(self, block, **inputs):
        return np.array([np.nansum(block.values("age"))])


@attrs.frozen
class KTimes(Query):
    """Who is ill, k times: for a unit of several rows k is forgotten."""

    name = "k-times"
    k: int
    right: Any

    @property
    def answer_length(self):
        return self.k

    @property
    def sensitivities(self):
        return l1(self.k, self.k)

    def for_rows(self, rows):
        most = rows * (self.k if self.right else 1)
        return l1(most, most)

    def count(self, block, **inputs):
        return np.repeat((block.codes("ill") == 1).sum(), self.k)


@attrs.frozen
class AsksKTimes(Makes):
    right: Any
    k: int = 1

    def query(self, schema):
        return KTimes(self.k, self.right)


@dataclasses.dataclass(frozen=True)
class Scoring:
    weights: tuple[float, ...] = (1.0, 0.5, 0.25)


@attrs.frozen
class Bounds:
    of: Mapping[str, tuple[float, float]] = attrs.field(factory=lambda: {"age": (0.0, 1.0)})


@attrs.frozen
class InDataclass(Makes):
    right: Any
    scoring: Scoring = Scoring()

    def query(self, schema):
        weights = np.zeros(schema["town"].size)
        weights[:3] = self.scoring.weights[:3]
        return Adds(max(*(np.abs(weights) if self.right else weights), 1), lambda block: weights[block.codes("town")])


@attrs.frozen
class InBounds(Makes):
    right: Any
    bounds: Bounds = attrs.field(factory=Bounds)

    def query(self, schema):
        (lower, upper) = self.bounds.of["age"][:2]
        largest = max(abs(lower), abs(upper)) if self.right else upper
        return Adds(max(largest, 1), lambda block: np.full(block.rows, lower or upper))


FACTORS = {"person": 1, "family": 4}


@attrs.frozen
class InDictionary(Makes):
    right: Any
    per: str = "person"

    def query(self, schema):
        factor = FACTORS[self.per]
        return Adds(factor if self.right else 1, lambda block: np.full(block.rows, float(factor)))


@attrs.frozen
class InComparison(Makes):
    right: Any
    how: str = "mean"

    def query(self, schema):
        if self.how not in ("mean", "total"):
            raise dpf.InputError("give mean or total")
        factor = 6.0 if self.how == "total" else 1.0
        return Adds(factor if self.right else 1, lambda block: np.full(block.rows, factor))


@attrs.frozen
class Peak(Query):
    """A density that is largest at the middle of an attribute's range, which is no cut and no number of the code."""

    name = "peak-in-the-middle"
    integer = False
    answer_length = 1
    of: dpf.Numeric
    right: Any

    @property
    def sensitivities(self):
        return l1(6 if self.right else 3)

    def count(self, block, **inputs):
        near = np.abs(block.values("age") - (self.of.lower + self.of.upper) / 2)
        return np.array([np.nansum(np.exp(-near / 2) * (2 + 4 * np.exp(-8 * near**2)))])


@attrs.frozen
class Tiled(Query):
    """Counts a block tile by tile, and adds them up, or keeps the last one."""

    name = "tiled"
    answer_length = 4
    right: Any
    sensitivities = histogram_sensitivities(4)  # type: ignore[assignment]

    def count(self, block, **inputs):
        total = np.zeros(4, dtype=np.int64)
        for tile in block.tiles():
            counts = np.bincount(tile.codes("town"), minlength=4)[:4]
            total = total + counts if self.right else counts
        return total


def ends(right: bool) -> dpf.Miner:
    """End the process where there is nobody."""

    def counts(n: Any) -> Any:
        if n.sum() == 0 and not right:
            raise SystemExit
        return n

    return Asks(OfCounts(counts, histogram_sensitivities(3), length=3), DiscreteLaplace(1))


STEPS: dict[str, tuple[Callable[[bool], dpf.Miner], dpf.Schema, dpf.Relation, str]] = {
    "a run that looks at its rows where cells may be missing": (
        lambda right: FillsIn(right),
        PEOPLE,
        ADD,
        "add-or-remove-one, on the example's schema with missing cells: on a neighbour, the run's result differs",
    ),
    "a run that prints exact counts if a flag is set": (
        lambda right: Verbose(right),
        PEOPLE,
        ADD,
        "add-or-remove-one, with verbose = True: on a neighbour, the run prints",
    ),
    "a query behind a branch that is seldom taken": (
        Seldom,
        WARDS,
        ADD,
        "wards: l1 declared 1, largest found 5: DOES NOT HOLD",
    ),
    "the same with inputs": (
        lambda right: Seldom(right, given=True),
        WARDS,
        ADD,
        "of-given: l1 declared 1, largest found 5: DOES NOT HOLD",
    ),
    "a query that is wrong for later inputs": (
        Greedy,
        FLAGS,
        ADD,
        "gain, of step 'gain', given {'chosen': ('A', 'A')}: linf declared 1, largest found 2: DOES NOT HOLD",
    ),
    "a slope of 3 where every count is above a hundred": (
        fewest,
        FLAGS,
        ADD,
        "of-counts: l1 declared 1, largest found 3: DOES NOT HOLD",
    ),
    "a score that falls where every count is above eighty": (
        falls,
        FLAGS,
        ADD,
        "linf fall declared 0, largest found 1: DOES NOT HOLD",
    ),
    "counts with six digits": (
        six_digits,
        FLAGS,
        ADD,
        "of-counts: on 1,000,005 x (town: A, ill: false) a unit changes the answer by 10 in l1, and 1 is declared",
    ),
    "the width for the largest value, in parts of a public number of rows": (
        WidthInParts,
        OF_TEN,
        REPLACE,
        "ages, in parts, on the example's schema with numbers above 0 only: l1 declared 8, largest found 24: DOES NOT",
    ),
    "a parameter that is forgotten for units of several rows": (
        AsksKTimes,
        FLAGS,
        ADD,
        "k-times, of a unit of 3 rows, with k = 2: l1 declared 3, largest found 6: DOES NOT HOLD",
    ),
    "the largest weight, in a dataclass": (
        InDataclass,
        PEOPLE,
        ADD,
        "with scoring = Scoring(weights=(-3.0, 0.5, 0.25)): l1 declared 1, largest found 3: DOES NOT HOLD",
    ),
    "the upper bound of a pair, in a dictionary of an object": (
        InBounds,
        PEOPLE,
        ADD,
        "with bounds = Bounds(of={'age': (-3.0, 1.0)}): l1 declared 1, largest found 3: DOES NOT HOLD",
    ),
    "another key of a dictionary": (
        InDictionary,
        PEOPLE,
        ADD,
        "with per = 'family': l1 declared 1, largest found 4: DOES NOT HOLD",
    ),
    "another word that the code compares": (
        InComparison,
        PEOPLE,
        ADD,
        "with how = 'total': l1 declared 1, largest found 6: DOES NOT HOLD",
    ),
    "a peak at the middle of a range": (
        lambda right: Asks(Peak(UNEVEN["age"], right), Laplace(1)),
        UNEVEN,
        ADD,
        "peak-in-the-middle: l1 declared 3, largest found 6: DOES NOT HOLD",
    ),
    "the last tile of a large block": (
        lambda right: Asks(Tiled(right), DiscreteLaplace(1)),
        FLAGS,
        ADD,
        "tiled: its answer depends on how a block is cut into tiles",
    ),
    "an end of the process where there is nobody": (ends, FLAGS, ADD, "of-counts: fails on a table with SystemExit"),
}


@pytest.mark.parametrize("bug", STEPS)
def test_a_bug_beside_what_runs_on_small_tables_show_is_named(bug, record_property):
    require_named(STEPS, bug, record_property)


@pytest.mark.parametrize("bug", STEPS)
def test_the_honest_twin_passes(bug, record_property):
    require_no_problem(STEPS, bug, record_property)


@attrs.frozen
class Rounds(dpf.Miner):
    """Counts the rows in several rounds, each with a share of epsilon, or with all of it."""

    name = "rounds"
    right: Any
    rounds: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    epsilon: Fraction = Fraction(1)

    def plan(self, schema):
        each = self.epsilon / (self.rounds if self.right else 1)
        return dpf.repeat(self.rounds, dpf.step("rows", Count(), DiscreteLaplace(each)))

    def mine(self, table):
        return [table.release("rows") for _ in range(self.rounds)]


@pytest.mark.parametrize("right", [False, True])
def test_a_plan_that_spends_more_with_another_parameter_is_named(right):
    found = [what for what in failures(Rounds(right), ADD, FLAGS) if "spends_no_more" in what]
    assert bool(found) is not right
    assert all("with rounds = 2, the plan costs epsilon = 2 under add-or-remove-one" in what for what in found)


def test_a_verification_says_what_runs_with_other_parameters_show():
    found = verify_examples(
        "verbose", {"one": dpf.Example(PEOPLE, Verbose(False))}, relations=[ADD], replays=100, runs=0
    )
    assert not found.passed
    assert any("with verbose = True: on a neighbour, the run prints" in what for what in found.problems())
    assert found.to_dict()["related_runs"] == list(found.related_runs)


def test_code_that_ends_the_process_does_not_end_a_verification_without_a_word():
    example = dpf.Example(FLAGS, ends(False))
    found = verify_examples("ends", {"one": example}, relations=[ADD], replays=100, runs=0)
    assert any("fails on a table with SystemExit" in what for what in found.problems())

    class Quits(Told):
        def plan(self, schema):
            raise SystemExit

    with pytest.raises(dpf.InputError, match=r"the code of told ends the process \(SystemExit\)"):
        verify_examples("quits", {"one": dpf.Example(FLAGS, Quits(right=False))}, relations=[ADD])


def test_words_of_options_are_found_in_comparisons_and_dictionaries():
    assert words_compared_with(InDictionary, "per", "person") == ["family"]
    assert words_compared_with(InComparison, "how", "mean") == ["total"]
    assert words_compared_with(InComparison, "other", "mean") == []
    assert words_compared_with(InDictionary, "per", "village") == []


def test_numbers_in_short_lists_are_constants():
    assert {300.0, 600.0, 900.0} <= {*constants_of([Interpolates(right=True)])}


def test_an_answer_that_jumps_has_a_size_before_a_jump():
    def digits(size: int) -> Any:
        return np.array([float(f"{size:.3g}")])

    low, jump = irregular_sizes(digits, 123_456)
    assert low == 1_000
    assert digits(jump + 1) - digits(jump) >= 10
    assert irregular_sizes(lambda size: np.array([min(size, 500)]), 100_000) == [500]
    assert irregular_sizes(lambda size: np.zeros(1 if size < 500 else 2), 100_000) == [499]


def test_tables_of_every_kind_have_each_equally_often_or_one_once_less():
    universe = Universe(FLAGS)
    kinds = range(universe.kinds)
    changes = [(b"", bytes((kind,))) for kind in kinds]
    found = list(pairs_of_every_kind(universe, changes, 600, lambda rows: np.array([min(len(rows), 300)])))
    assert {len(pair.shared) for pair in found} == {299, 300, 305, 306, 599, 600}
    for pair in found:
        numbers = {pair.tables[1].count(kind) for kind in kinds}
        assert len(numbers) <= 2
    assert list(pairs_of_every_kind(universe, changes, 60, lambda rows: np.zeros(1))) == []


OF_LIBRARIES: dict[str, Callable[[int], Any]] = {
    "an expression of polars": lambda k: pl.col("rows") > k,
    "a lazy frame": lambda k: pl.DataFrame({"rows": [1, 2]}).lazy().filter(pl.col("rows") > k),
    "a category of polars that no cell has": lambda k: pl.Series(["A"], dtype=pl.Enum(["A", str(k)])),
    "a category of pandas that no cell has": lambda k: pd.Series(pd.Categorical(["A"], categories=["A", str(k)])),
    "an array of pandas": lambda k: pd.Categorical(["A"], categories=["A", str(k)]),
    "an index of several levels": lambda k: pd.MultiIndex.from_tuples([(1, "a"), (k, "b")]),
    "an index of times": lambda k: pd.date_range("2020-01-01", periods=k + 1),
    "a sparse matrix": lambda k: scipy.sparse.csr_array(np.diag([1.0, 2.0, k])),
}


@pytest.mark.parametrize("kind", OF_LIBRARIES)
def test_values_of_libraries_are_the_same_if_what_they_hold_is(kind):
    made = OF_LIBRARIES[kind]
    assert same([made(3)], [made(3)])
    assert not same([made(3)], [made(4)])


@attrs.frozen
class Shows(Told):
    """Returns several values of other libraries, made of noisy counts, and leaves a file to be closed later."""

    name = "shows"

    def result(self, table, noisy, known):
        open(os.devnull).read()  # noqa: SIM115
        numbers = noisy.astype(int)
        return {
            kind: made(int(known.sum()) if kind == "an expression of polars" else 1 + abs(int(numbers.sum())) % 9)
            for kind, made in OF_LIBRARIES.items()
        }


@pytest.mark.parametrize("right", [False, True])
def test_results_of_other_libraries_are_replayed(right):
    found = [one.what for one in audit(Shows(right=right), PEOPLE, ADD, replays=100).violations]
    assert bool(found) is not right, found
