"""Mistakes of those who write their first plugin, in the suite that `dpframework new` gives them.

Each stands beside its correct version: the suite must fail on the one with a sentence that names the mistake, and pass
on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from verify.bug_version import Version

import dpframework as dpf
from dpframework.facts.privacy_unit import ONE_ROW
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, Laplace
from dpframework.queries import CandidateScores, Count, Histogram, Norm, Query, Sensitivity, histogram_sensitivities
from dpframework.verify import MinerConformance, search_sensitivity
from dpframework.verify.conformance_suites import _subject

SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Numeric("age", 2, 8, cuts=[4])])
FLAGS = dpf.Schema([dpf.Boolean(f"flag{k}") for k in range(8)])
SEEN: list[Any] = []


@attrs.frozen
class First(dpf.Miner):
    """Ask one query with noise."""

    name = "first"
    query: Query
    noise: dpf.Mechanism
    right: bool = True

    def plan(self, schema):
        return dpf.step("asked", self.query, self.noise)

    def mine(self, table):
        return table.release("asked")


@attrs.frozen
class Asked(Query):
    """A query with given functions; the base of those with a bug of their own."""

    name = "asked"
    declared: tuple[Sensitivity, ...] = histogram_sensitivities(3)
    counted: Callable[[Any], Any] = attrs.field(default=lambda block: towns(block), eq=False)
    answered: Callable[[Any], Any] = attrs.field(default=lambda counts: counts, eq=False)
    length: int = 3
    whole: bool = True

    @property
    def integer(self):  # type: ignore[override]
        return self.whole

    @property
    def answer_length(self):  # type: ignore[override]
        return self.length

    @property
    def sensitivities(self):
        return self.declared

    def count(self, block, **inputs):
        return self.counted(block)

    def answer(self, counts, **inputs):
        return self.answered(counts)


def towns(block: Any) -> Any:
    return np.bincount(block.codes("town"), minlength=3)


def flags(block: Any) -> Any:
    return np.array([(block.codes(f"flag{k}") == 1).sum() for k in range(8)])


def ages(power: int) -> Callable[[Any], Any]:
    return lambda block: np.array([(block.values("age") ** power).sum()])


def l1(*bounds: Any) -> tuple[Sensitivity, ...]:
    return (Sensitivity(Norm.L1, *bounds, source="a beginner"),)


def l2(bound: Any) -> tuple[Sensitivity, ...]:
    return (Sensitivity(Norm.SQUARED_L2, bound, source="a beginner"),)


def number(declared: Any, counted: Any, answered: Any = lambda sums: sums) -> Query:
    return Asked(declared, counted, answered, length=1, whole=False)


def asks(query: Query, noise: dpf.Mechanism | None = None) -> dpf.Miner:
    return First(query, noise or DiscreteLaplace(1))


class HalfScale(DiscreteLaplace):
    """Halves the scale, since "the noise was so large"."""

    name = "half-scale"

    def release(self, answer, calibration, randomness):
        return super().release(answer, attrs.evolve(calibration, scale=calibration.scale / 2), randomness)

    def release_many(self, answers, calibration, randomness):
        return [self.release(answer, calibration, randomness) for answer in answers]


class QuarterRho(DiscreteLaplace):
    """Converts epsilon to rho as for a selection: epsilon^2 / 8, where additive noise has epsilon^2 / 2."""

    name = "quarter-rho"

    def losses(self, change, scale):
        true = super().losses(change, scale)
        return attrs.evolve(true, zcdp=true.zcdp.map(lambda rho: rho / 4))


class Deviation(Gaussian):
    """Takes the variance for the standard deviation, where that makes the noise smaller."""

    name = "deviation"

    def release(self, answer, calibration, randomness):
        return super().release(answer, attrs.evolve(calibration, scale=calibration.scale / 3), randomness)

    def release_many(self, answers, calibration, randomness):
        return [self.release(answer, calibration, randomness) for answer in answers]


class EventOfARow(Gaussian):
    """Takes the event of one row for that of a unit of several: the total in PLD is too small for people."""

    name = "event-of-a-row"

    def unit_event(self, calibration, relation):
        return super().unit_event(attrs.evolve(calibration, by=ONE_ROW), relation)


class OneNoise(DiscreteLaplace):
    """Draws one number for all counts of an answer."""

    name = "one-noise"

    def release(self, answer, calibration, randomness):
        return answer + randomness.discrete_laplace(1, calibration.lattice_scale)[0]

    def release_many(self, answers, calibration, randomness):
        return [self.release(answer, calibration, randomness) for answer in answers]


@attrs.frozen
class Twice(dpf.Miner):
    """Two counts, each of the whole epsilon or of a half."""

    name = "twice"
    epsilon: float = 1.0
    right: bool = True

    def plan(self, schema):
        each = DiscreteLaplace(self.epsilon / 2 if self.right else self.epsilon)
        return dpf.sequential(dpf.step("rows", Count(), each), dpf.step("towns", Histogram(schema["town"]), each))

    def mine(self, table):
        return table.release("rows"), table.release("towns")


@attrs.frozen
class TwiceRho(Twice):
    """The same under rho."""

    name = "twice-rho"
    epsilon: Any = None
    rho: float = 0.25

    def plan(self, schema):
        each = Gaussian(self.rho / 2 if self.right else self.rho)
        return dpf.sequential(dpf.step("rows", Count(), each), dpf.step("towns", Histogram(schema["town"]), each))


@attrs.frozen
class SeenTowns(CandidateScores):
    """Offers the towns that occur."""

    name = "seen-towns"
    integer = True
    answer_length = 3
    right: bool = True
    seen: list[str] = attrs.field(factory=list, eq=False)

    @property
    def sensitivities(self):
        return histogram_sensitivities(3)

    def candidates(self, **inputs):
        return SCHEMA["town"].labels if self.right else list(self.seen)

    def count(self, block, **inputs):
        return towns(block)

    def answer(self, counts, **inputs):
        if self.right:
            return counts
        self.seen[:] = [town for town, count in zip("ABC", counts, strict=True) if count] or ["A"]
        return counts[["ABC".index(town) for town in self.seen]]


@attrs.frozen
class Kept(Asked):
    """Keeps its last counts where the miner finds them."""

    name = "kept"

    def answer(self, counts, **inputs):
        SEEN[:] = [counts]
        return counts


@attrs.frozen
class Peeks(First):
    """Returns the number of rows, exact or from the noisy counts."""

    name = "peeks"

    def mine(self, table):
        counts = table.release("asked")
        return {"counts": counts, "rows": int(counts.sum() if self.right else SEEN[0].sum())}


@attrs.frozen
class Rounds(First):
    """As many rounds as there are towns in the schema, or in the rows."""

    name = "rounds"

    def plan(self, schema):
        return dpf.sequential(*(dpf.step(f"round{k}", self.query, self.noise) for k in range(3)))

    def mine(self, table):
        found = [table.release("round0")]
        last = 3 if self.right else int((SEEN[0] > 0).sum())
        return found + [table.release(f"round{k}") for k in range(1, last)]


@attrs.frozen
class Positions(Query):
    """The sum of the positions of the rows' labels, of an attribute of whatever schema there is."""

    name = "positions"
    integer = True
    answer_length = 1
    attribute: dpf.Attribute
    most: Callable[[dpf.Attribute], int] = attrs.field(eq=False)

    @property
    def attributes(self):
        return (self.attribute.name,)

    @property
    def sensitivities(self):
        return l1(self.most(self.attribute), self.most(self.attribute))

    def count(self, block, **inputs):
        return np.array([block.codes(self.attribute.name).astype(np.int64).sum()])


@attrs.frozen
class DividesByNoise(dpf.Miner):
    """Say how many times as large as its noise a count is."""

    name = "divides-by-noise"
    epsilon: float = 1.0
    right: bool = True

    def plan(self, schema):
        return dpf.step("rows", Count(), DiscreteLaplace(self.epsilon))

    def mine(self, table):
        noise = table.calibration("rows").variance
        rows = table.release("rows")
        return rows / noise if noise > 0 or not self.right else float(rows)


@attrs.frozen
class SumsPositions(dpf.Miner):
    """Release that sum of the towns."""

    name = "sums-positions"
    most: Callable[[dpf.Attribute], int]

    def plan(self, schema):
        return dpf.step("sum", Positions(schema["town"], self.most), DiscreteLaplace(1))

    def mine(self, table):
        return table.release("sum")


class Public(Asked):
    """Counts, and keeps nothing."""


PLANTED: dict[str, tuple[Callable[[bool], dpf.Miner], str]] = {
    "the factor of replace-one forgotten": (
        lambda right: asks(Asked(l1(1, 2 if right else 1))),
        "replace-one: asked: l1 declared 1, largest found 2: DOES NOT HOLD",
    ),
    "the l2 norm for its square": (
        lambda right: asks(Asked(l2(8 if right else 3), flags, length=8), Gaussian("0.5")),
        "squared-l2 declared 3, largest found 8: DOES NOT HOLD",
    ),
    "l1 declared as large as linf": (
        lambda right: asks(Asked(l1(8 if right else 1), flags, length=8)),
        "l1 declared 1, largest found 8: DOES NOT HOLD",
    ),
    "a sum of squares that is not clamped": (
        lambda right: asks(number(l1(64 if right else 8), ages(2)), Laplace(1)),
        "l1 declared 8, largest found 64: DOES NOT HOLD",
    ),
    "the width of the range for the largest value": (
        lambda right: asks(number(l1(8 if right else 6), ages(1)), Laplace(1)),
        "l1 declared 6, largest found 8: DOES NOT HOLD",
    ),
    "min for max of the weights": (
        lambda right: asks(Asked(l1(max(1, 5) if right else min(1, 5)), answered=lambda c: c * [1, 5, 2])),
        "l1 declared 1, largest found 5: DOES NOT HOLD",
    ),
    "a falling score declared as rising": (
        lambda right: First(
            Asked(
                (Sensitivity(Norm.LINF, 1, fall=1 if right else 0, source="a beginner"),),
                answered=lambda counts: counts * [1, -1, 1],
            ),
            Exponential(1),
        ),
        "DOES NOT HOLD",
    ),
    "divided by noise that a large budget leaves out": (
        lambda right: DividesByNoise(right=right),
        "with {'epsilon': Fraction(1000000, 1)} it fails: ZeroDivisionError",
    ),
    "a mean divided by the private count": (
        lambda right: asks(
            number(
                l1(8 if right else 1, 8 if right else 1),
                lambda block: np.array([block.values("age").sum(), block.rows]),
                lambda sums: sums[:1] if right else sums[:1] / max(sums[1], 1),
            ),
            Laplace(1),
        ),
        "l1 declared 1, largest found",
    ),
    "the mean of nobody": (
        lambda right: asks(
            number(
                l1(8, 8),
                lambda block: np.array([block.values("age").sum(), float(block.rows)]),
                lambda sums: sums[:1] / (max(sums[1], 1.0) if right else np.float64(sums[1])),
            ),
            Laplace(1),
        ),
        "its answer holds nan, whose change no sensitivity can bound, on a table of no rows",
    ),
    "the last value for the last code, which a missing cell has": (
        lambda right: SumsPositions(lambda town: town.size - 1 if right else len(town.values) - 1),
        "positions, on the example's schema with missing cells: l1 declared 2, largest found 3: DOES NOT HOLD",
    ),
    "as many values as the example has": (
        lambda right: SumsPositions(lambda town: town.size - 1 if right else 2 + town.missing),
        "positions, on the example's schema with one more value: l1 declared 2, largest found 3: DOES NOT HOLD",
    ),
    "an answer of as many numbers as there are towns in the rows": (
        lambda right: asks(Asked(answered=lambda c: c if right else c[c > 0])),
        "the length of its answer depends on the rows",
    ),
    "fractions declared as whole numbers": (
        lambda right: asks(Asked(answered=lambda c: c if right else c / 2)),
        "declares integer answers but answered with floats",
    ),
    "half the scale": (lambda right: asks(Asked(), DiscreteLaplace(1) if right else HalfScale(1)), "half-scale: "),
    "the variance for the deviation": (
        lambda right: asks(Asked(), Gaussian("0.5") if right else Deviation("0.5")),
        "deviation: ",
    ),
    "the event of a row for that of a unit": (
        lambda right: asks(Asked(), Gaussian("0.5") if right else EventOfARow("0.5")),
        "asked, of a unit of 3 rows, add-or-remove-one: delta beyond the epsilon",
    ),
    "one noise for all counts": (
        lambda right: asks(Asked(), DiscreteLaplace(1) if right else OneNoise(1)),
        "one-noise: ",
    ),
    "epsilon used twice": (lambda right: Twice(right=Version(right)), "the plan costs epsilon = 2 under"),
    "rho used twice": (lambda right: TwiceRho(right=Version(right)), "the plan costs rho = 0.5 under"),
    "a rho of another mechanism": (
        lambda right: asks(Asked(), DiscreteLaplace(1) if right else QuarterRho(1)),
        "quarter-rho: asked, add-or-remove-one: rho times the order",
    ),
    "candidates from the rows": (lambda right: First(SeenTowns(right), Exponential(1)), "the candidates of "),
    "as many rounds as the rows have towns": (
        lambda right: Rounds(Kept(), DiscreteLaplace(1), right) if not right else Rounds(Public(), DiscreteLaplace(1)),
        "the run ends before 'audited/round",
    ),
    "an exact count in the result": (
        lambda right: Peeks(Kept(), DiscreteLaplace(1), right) if not right else Peeks(Public(), DiscreteLaplace(1)),
        "the run's result differs with the same releases",
    ),
}


def failures(
    miner: dpf.Miner, relation: dpf.Relation, schema: dpf.Schema | None = None, least: float = 0.3
) -> Iterator[str]:
    """Run the suite that a plugin inherits on one miner, and yield what fails."""

    class OneExample(type(miner)):  # type: ignore[misc]
        """The miner, with one example."""

        @classmethod
        def examples(cls):
            return {"one": example}

    schema = schema or (FLAGS if getattr(getattr(miner, "query", None), "length", 0) == 8 else SCHEMA)
    example = dpf.Example(schema, OneExample(*(getattr(miner, field.name) for field in attrs.fields(type(miner)))))

    class Suite(MinerConformance):
        miner: ClassVar = OneExample
        replays: ClassVar = 100 if least < 0.6 else 400
        min_tightness: ClassVar = least

    if _subject(example, relation).delta_needed is None:
        return
    for name in sorted(
        (name for name in dir(Suite) if name.startswith("test_")), key=lambda name: "each_step" not in name
    ):
        if name != "test_its_plan_follows_from_schema_and_parameters":  # a class in a function cannot be pickled
            test = getattr(Suite(), name)
            try:
                test(*(example, relation)[: test.__func__.__code__.co_argcount - 1])
            except Exception as error:
                yield f"{name}: {error}"


@pytest.mark.parametrize("bug", PLANTED)
def test_a_beginners_mistake_fails_the_suite_by_name(bug):
    make, named = PLANTED[bug]
    found = [next((what for what in failures(make(False), relation) if named in what), None) for relation in of(bug)]
    assert any(found), list(failures(make(False), dpf.Relation.ADD_OR_REMOVE_ONE))


@pytest.mark.parametrize("bug", PLANTED)
def test_the_correct_version_passes_the_suite(bug):
    for relation in of(bug):
        assert list(failures(PLANTED[bug][0](True), relation)) == []


def of(bug: str) -> tuple[dpf.Relation, ...]:
    """Return the relation under which a mistake shows."""
    return (dpf.Relation.REPLACE_ONE if "replace-one" in bug else dpf.Relation.ADD_OR_REMOVE_ONE,)


@pytest.mark.parametrize(
    ("answered", "problem"),
    [
        (
            lambda counts: counts / counts.sum(),
            "its answer holds nan, whose change no sensitivity can bound, on a table of no rows",
        ),
        (lambda counts: np.where(counts > 3, np.inf, counts), "its answer holds inf"),
        (lambda counts: np.append(counts, counts), "its answer holds 6 numbers, and it declares answer_length = 3"),
        (lambda counts: counts.astype(str), "its answer holds values of type <U"),
        (lambda counts: counts[counts > 0], "the length of its answer depends on the rows"),
        (lambda counts: counts + 0.5, "its answer holds 0.5, and it declares whole numbers"),
        (lambda counts: 0 * counts, "answers the same on all"),
    ],
)
def test_an_answer_that_cannot_be_measured_is_a_violation(answered, problem):
    with np.errstate(all="ignore"):
        found = search_sensitivity(Asked(answered=answered), SCHEMA, "add-or-remove-one", pairs=60)
    assert not found.passed
    assert problem in str(found)


def test_a_bound_that_one_row_attains_is_reached():
    """Of 256 kinds of rows a table holds 255 at most, and one alone has all flags."""
    found = search_sensitivity(Asked(l2(8), flags, length=8), FLAGS, "add-or-remove-one", pairs=60)
    assert found.tightness == 1
