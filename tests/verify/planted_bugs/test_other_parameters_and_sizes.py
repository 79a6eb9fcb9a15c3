"""Bugs that show with other parameters, schemas, units, amounts and sizes than a plugin's examples have.

Each is planted beside its honest twin, in a new plugin's own suite. The examples are what a careful author might give:
a small schema, a lower bound of 0, bins of equal width, one attribute of each kind, epsilon = 1.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal

import attrs
import numpy as np
import pytest
from verify.bug_version import Version
from verify.planted_bugs.test_beside_the_examples import ADD, FLAGS, PEOPLE, Asks, l1
from verify.planted_bugs.test_draws_in_other_settings import OneByOne
from verify.planted_bugs.test_first_plugins import failures

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential, Laplace
from dpframework.queries import (
    CandidateScores,
    Count,
    Histogram,
    Norm,
    PiecewiseScores,
    Query,
    Sensitivity,
    histogram_sensitivities,
)
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts
from dpframework.verify import search_sensitivity
from dpframework.verify.queries.answers_in_other_process import CHILD
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import related_mechanisms, related_miners
from dpframework.verify.queries.schema_variants import related_schemas
from dpframework.verify.queries.simulated_large_tables import change_beyond_rounding

TOWNS = dpf.Schema([dpf.Categorical("town", list("ABCDEFGH"))])
GRADES = dpf.Schema([dpf.Categorical("grade", ["1", "2", "3"])])


@attrs.frozen
class Makes(dpf.Miner):
    """Ask a query that follows from the schema and some parameters; the base of miners that make theirs wrongly."""

    name = "makes"

    def query(self, schema: dpf.Schema) -> Query:
        raise NotImplementedError

    def plan(self, schema):
        query = self.query(schema)
        return dpf.step("asked", query, DiscreteLaplace(1) if query.integer else Laplace(1))

    def mine(self, table):
        return table.release("asked")


@attrs.frozen
class Adds(Query):
    """Adds up a number of each row, which a function gives, with a bound that another one gives."""

    name = "adds"
    integer = False
    answer_length = 1
    bound: Fraction = attrs.field(converter=Fraction)
    number: Callable[[Any], Any]

    @property
    def sensitivities(self):
        return l1(self.bound)

    def count(self, block, **inputs):
        return np.array([np.nansum(self.number(block))], dtype=np.float64)


@attrs.frozen
class Width(Makes):
    """Add up ages, with the width of their range for a bound: right where its lower end is 0, or below."""

    name = "width"
    right: Any

    def query(self, schema):
        age = schema["age"]
        lower, upper = Fraction(age.lower), Fraction(age.upper)
        return Adds(max(abs(lower), abs(upper)) if self.right else upper - lower, lambda block: block.values("age"))


@attrs.frozen
class Midpoints(Makes):
    """Add up the middles of bins, of which the last is declared as if all were equally wide."""

    name = "midpoints"
    right: Any

    def query(self, schema):
        edges = np.array(schema["age"].edges)
        middles = np.append((edges[:-1] + edges[1:]) / 2, 0.0)  # the last one is a missing cell's
        even = edges[-1] - (edges[-1] - edges[0]) / (2 * (len(edges) - 1))
        bound = max(abs(middles)) if self.right else max(even, abs(edges[0]))
        return Adds(bound, lambda block: middles[block.codes("age")])


@attrs.frozen
class Grades(Makes):
    """Add up labels that are numbers, with the largest for a bound."""

    name = "grades"
    right: Any

    def query(self, schema):
        labels = np.array([float(label) if label.lstrip("-").isdigit() else 0 for label in schema["grade"].labels])
        return Adds(max(abs(labels)) if self.right else max(labels), lambda block: labels[block.codes("grade")])


@attrs.frozen
class Histograms(Query):
    """A histogram of each of some attributes, of which as many as there are different ones are declared."""

    name = "histograms"
    of: Sequence[str]
    sizes: Sequence[int]
    right: Any

    @property
    def answer_length(self):
        return sum(self.sizes)

    @property
    def sensitivities(self):
        return l1(len(self.of) if self.right else len(set(self.of)))

    def count(self, block, **inputs):
        both = zip(self.of, self.sizes, strict=True)
        return np.concatenate([np.bincount(block.codes(name), minlength=size) for name, size in both])


@attrs.frozen
class OfAttributes(Makes):
    """Count the values of some attributes."""

    name = "of-attributes"
    of: tuple[str, ...]
    right: Any

    def query(self, schema):
        return Histograms(self.of, [schema[name].size for name in self.of], self.right)


@attrs.frozen
class OfAttribute(Makes):
    """Add up the codes or values of one attribute, with the number of its codes for a bound."""

    name = "of-attribute"
    of: str
    right: Any

    def query(self, schema):
        attribute = schema[self.of]
        if not isinstance(attribute, dpf.Numeric):
            return Adds(attribute.size, lambda block: block.codes(self.of).astype(float))
        bound = max(abs(attribute.lower), abs(attribute.upper)) if self.right else attribute.size
        return Adds(bound, lambda block: block.values(self.of))


class Unit(enum.Enum):
    """Of time."""

    DAYS = 1
    WEEKS = 7


@attrs.frozen
class Options(Makes):
    """Count rows, many times where one of the options says so."""

    name = "options"
    double: bool
    how: str = attrs.field(validator=[attrs.validators.instance_of(str), attrs.validators.in_(["once", "thrice"])])
    unit: Unit
    size: Literal["small", "large"]
    weight: float
    right: tuple[str, ...]

    def query(self, schema):
        times = {
            "double": 1 + self.double,
            "how": 3 if self.how == "thrice" else 1,
            "unit": self.unit.value,
            "size": 5 if self.size == "large" else 1,
            "weight": abs(self.weight),
        }
        declared = [max(self.weight, 1) if name == "weight" else 1 for name in times if name not in self.right]
        bound = np.prod([*declared, *(times[name] for name in self.right)])
        return Adds(bound, lambda block: np.full(block.rows, float(np.prod([*times.values()]))))


def options(wrong: str, right: bool) -> dpf.Miner:
    names = ("double", "how", "unit", "size", "weight")
    return Options(False, "once", Unit.DAYS, "small", 1.0, tuple(n for n in names if right or n != wrong))


@attrs.frozen
class OfUnit(Query):
    """Declares for a unit what a function says."""

    name = "of-unit"
    answer_length = 1
    declared: Callable[[int], int] = attrs.field(eq=False)

    @property
    def sensitivities(self):
        return l1(1, 1)

    def for_rows(self, rows):
        return l1(self.declared(rows), self.declared(rows))

    def count(self, block, **inputs):
        return np.array([block.codes("ill").sum()])


@attrs.frozen
class Narrow(Query):
    """Counts towns, and takes the sums through a number of 32 bits."""

    name = "narrow"
    answer_length = 3
    through: Callable[[Any], Any] = attrs.field(eq=False)

    @property
    def sensitivities(self):
        return histogram_sensitivities(3)

    def count(self, block, **inputs):
        return np.bincount(block.codes("town"), minlength=3)

    def answer(self, counts, **inputs):
        return self.through(counts)


@attrs.frozen
class Town(Query):
    """Counts one town, the seventh three times."""

    name = "town"
    answer_length = 1
    k: int
    right: Any

    @property
    def sensitivities(self):
        return l1(1, 1)

    def count(self, block, **inputs):
        return np.array([(block.codes("town") == self.k).sum() * (1 if self.right or self.k != 6 else 3)])


@attrs.frozen
class EachTown(dpf.Miner):
    """Count each town by a step of its own."""

    name = "each-town"
    right: Any

    def plan(self, schema):
        return dpf.sequential(*(dpf.step(f"town {k}", Town(k, self.right), DiscreteLaplace(1)) for k in range(8)))

    def mine(self, table):
        return [table.release(f"town {k}") for k in range(8)]


@attrs.frozen
class Tabled(Query):
    """Names a cross table that holds each row twice, which only a database would count."""

    name = "tabled"
    answer_length = 3
    right: Any

    @property
    def sensitivities(self):
        return histogram_sensitivities(3)

    def tables(self, **inputs):
        return JointCounts([Crosstab([FLAGS["town"]])], lambda counts: counts[0] * (1 if self.right else 2))

    def count(self, block, **inputs):
        return np.bincount(block.codes("town"), minlength=3)


@attrs.frozen
class SetOrder(CandidateScores):
    """Lists its candidates in the order of a set, which is another one in each process."""

    name = "set-order"
    integer = True
    of: dpf.Attribute
    right: Any

    @property
    def answer_length(self):
        return self.of.size

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.LINF, 1, 1, fall=0, source="an outsider"),)

    def candidates(self, **inputs):
        return list(self.of.labels) if self.right else list(set(self.of.labels))

    def count(self, block, **inputs):
        return np.bincount(block.codes(self.of.name), minlength=self.of.size)

    def answer(self, counts, **inputs):
        return np.array([counts[self.of.labels.index(label)] for label in self.candidates()])


@attrs.frozen
class SquaredEpsilon(DiscreteLaplace):
    """Divides by the square of epsilon, and claims epsilon."""

    name = "squared-epsilon"
    right: Any = True

    def scale(self, change):
        return change / (self.epsilon if self.right else self.epsilon**2)

    def losses(self, change, scale):
        return super().losses(change, scale if self.right else scale * self.epsilon)


@attrs.frozen
class WholeScale(OneByOne):
    """Draws with the whole number below the scale."""

    name = "whole-scale"
    right: Any = True

    def release(self, answer, calibration, randomness):
        scale = calibration.lattice_scale
        return answer + self.noise(answer, scale if self.right else float(max(int(scale), 1)), randomness)


def asks(query: Query, noise: dpf.Mechanism | None = None) -> dpf.Miner:
    return Asks(query, noise or DiscreteLaplace(1))


def odd(rows: int) -> int:
    """Return the largest odd number up to one."""
    return 2 * ((rows - 1) // 2) + 1


PLANTED: dict[str, tuple[Callable[[bool], dpf.Miner], dpf.Schema, str]] = {
    "the width for the largest value, where the lowest is 0": (
        Width,
        PEOPLE,
        "adds, on the example's schema with numbers above 0 only: l1 declared 8, largest found 24: DOES NOT HOLD",
    ),
    "middles of bins as if all were equally wide": (
        Midpoints,
        PEOPLE,
        "adds, on the example's schema with bins of other widths: l1 declared 6, largest found 7.96: DOES NOT HOLD",
    ),
    "the largest label for the largest absolute one": (
        Grades,
        GRADES,
        "adds, on the example's schema with one more value: l1 declared 3, largest found 7: DOES NOT HOLD",
    ),
    "an attribute that is named twice": (
        lambda right: OfAttributes(("town", "ill"), right),
        FLAGS,
        "histograms, with of = ('town', 'ill', 'ill'): l1 declared 2, largest found 3: DOES NOT HOLD",
    ),
    "another attribute than the example's": (
        lambda right: OfAttribute("town", right),
        PEOPLE,
        "adds, with of = 'age': l1 declared 2, largest found 8: DOES NOT HOLD",
    ),
    "a flag that the example leaves off": (
        lambda right: options("double", right),
        PEOPLE,
        "adds, with double = True: l1 declared 1, largest found 2: DOES NOT HOLD",
    ),
    "another option that a validator lists": (
        lambda right: options("how", right),
        PEOPLE,
        "adds, with how = 'thrice': l1 declared 1, largest found 3: DOES NOT HOLD",
    ),
    "another member of an enumeration": (
        lambda right: options("unit", right),
        PEOPLE,
        "adds, with unit = <Unit.WEEKS: 7>: l1 declared 1, largest found 7: DOES NOT HOLD",
    ),
    "another option that a type lists": (
        lambda right: options("size", right),
        PEOPLE,
        "adds, with size = 'large': l1 declared 1, largest found 5: DOES NOT HOLD",
    ),
    "one weight, which may be below 0": (
        lambda right: options("weight", right),
        PEOPLE,
        "adds, with weight = -3.0: l1 declared 1, largest found 3: DOES NOT HOLD",
    ),
    "right for units of an odd number of rows": (
        lambda right: asks(OfUnit(int if right else odd)),
        FLAGS,
        "of-unit, of a unit of 2 rows: l1 declared 1, largest found 2: DOES NOT HOLD",
    ),
    "right for units of up to ten rows": (
        lambda right: asks(OfUnit(lambda rows: rows if right else min(rows, 10))),
        FLAGS,
        "of-unit, of a unit of 20 rows: l1 declared 10, largest found 20: DOES NOT HOLD",
    ),
    "counts that pass through floats of 32 bits": (
        lambda right: asks(Narrow(lambda counts: counts if right else np.float32(counts).astype(np.int64))),
        FLAGS,
        "narrow: on 16,777,217 x (town: A, ill: false) a unit changes the answer by 2 in l1, and 1 is declared",
    ),
    "a hundredfold that wraps round at 32 bits": (
        lambda right: asks(
            Narrow(lambda counts: counts if right else (100 * counts).astype(np.int32).astype(np.int64) // 100)
        ),
        FLAGS,
        "narrow: on 21,474,836 x (town: A, ill: false) a unit changes the answer by 4.29497e+07 in l1, "
        "and 1 is declared",
    ),
    "the seventh of eight queries that have the same facts": (
        EachTown,
        TOWNS,
        "town, of step 'town 6': l1 declared 1, largest found 3: DOES NOT HOLD",
    ),
    "cross tables that hold each row twice": (
        lambda right: asks(Tabled(right)),
        FLAGS,
        "tabled: its answer differs when it is counted from the cross tables that it names",
    ),
    "a scale that is right for epsilon = 1": (
        lambda right: asks(Histogram(PEOPLE["town"]), SquaredEpsilon(1, right)),
        PEOPLE,
        "squared-epsilon, with epsilon = 2.25: histogram of town, add-or-remove-one: epsilon: 2.25 is claimed, 5.0625",
    ),
    "a scale that is rounded down": (
        lambda right: asks(Histogram(PEOPLE["town"]), WholeScale(1, right)),
        PEOPLE,
        "whole-scale, with epsilon = 0.556: two counts, private randomness: the draws fit noise 30 % narrower",
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_beside_the_examples_is_named(bug, record_property):
    make, schema, named = PLANTED[bug]
    found = []
    for what in failures(make(Version(False)), ADD, schema):
        found.append(what)
        if named in what:
            break
    record_property("planted bug", (bug, bool(found)))
    assert any(named in what for what in found), found


@pytest.mark.parametrize("relation", dpf.Relation)
@pytest.mark.parametrize("bug", PLANTED)
def test_the_honest_twin_passes_the_suite(bug, relation, record_property):
    make, schema, _ = PLANTED[bug]
    found = list(failures(make(Version(True)), relation, schema, least=0.0))
    record_property("correct version", (bug, not found))
    assert found == []


@pytest.mark.parametrize("right", [False, True])
def test_candidates_in_the_order_of_a_set_are_other_ones_in_a_new_process(right, monkeypatch):
    monkeypatch.delenv(CHILD, raising=False)  # in other tests no process is started
    found = list(failures(asks(SetOrder(TOWNS["town"], right), Exponential(1)), ADD, TOWNS))
    assert any(
        "set-order: lists other candidates in a new process, or lists them in another order" in what for what in found
    ) is (not right)
    assert right is (found == [])


@attrs.frozen
class Parameters(dpf.Miner):
    """Parameters of all kinds."""

    name = "parameters"
    k: int = attrs.field(default=2, validator=attrs.validators.le(2))
    depth: int = attrs.field(default=3, validator=attrs.validators.ge(0))
    share: float = 0.5
    weights: tuple[float, ...] = (1, 2.5)
    names: tuple[str, ...] = ("ill",)
    of: str = "ill"
    text: str = "a"
    none: tuple[int, ...] = ()
    exact: bool = True
    unit: Unit = Unit.DAYS
    size: Literal["small", "large"] = "small"
    how: str = attrs.field(default="once", validator=attrs.validators.in_(["once", "twice"]))
    epsilon: float = 1.0
    rho: float = 1.0
    delta: float = 1.0
    _hidden: int = 4

    def plan(self, schema):
        return dpf.step("rows", Count(), DiscreteLaplace(1))

    def mine(self, table):
        return table.release("rows")


def test_a_miner_is_tried_with_other_parameters_but_for_what_it_spends():
    found = dict(related_miners(Parameters(), FLAGS))
    expected: dict[str, dict[str, Any]] = {
        "with k = -5": {"k": -5},
        "with depth = 4": {"depth": 4},
        "with share = 1.0": {"share": 1.0},
        "with share = -2.0": {"share": -2.0},
        "with weights = (-6.0, 2.5)": {"weights": (-6.0, 2.5)},
        "with weights = (1, 2.5, 2.5)": {"weights": (1, 2.5, 2.5)},
        "with names = ('ill', 'ill')": {"names": ("ill", "ill")},
        "with of = 'town'": {"of": "town"},
        "with exact = False": {"exact": False},
        "with unit = <Unit.WEEKS: 7>": {"unit": Unit.WEEKS},
        "with size = 'large'": {"size": "large"},
        "with how = 'twice'": {"how": "twice"},
        "with _hidden = 5": {"hidden": 5},
        "with _hidden = -9": {"hidden": -9},
    }
    assert list(found) == list(expected)
    assert list(found.values()) == [Parameters(**given) for given in expected.values()]


def test_of_many_attributes_three_others_are_tried():
    many = dpf.Schema([dpf.Boolean(f"x{k}") for k in range(9)])
    found = [miner.of for _, miner in related_miners(Parameters(of="x1"), many) if miner.of != "x1"]
    assert found == ["x0", "x2", "x3"]


def test_related_schemas_have_numbers_above_0_and_uneven_bins():
    odd_one = dpf.Schema([dpf.Numeric("x", -2, 8, cuts=[4]), dpf.Numeric("y", 1, 9, bins=4), dpf.Boolean("ill")])
    related = dict(related_schemas(odd_one))
    above = related["on the example's schema with numbers above 0 only"]
    assert (above["x"].lower, above["x"].upper, above["x"].cuts) == (20, 30, (26,))
    assert (above["y"].lower, above["y"].upper, above["y"].bins) == (16, 24, 4)
    uneven = related["on the example's schema with bins of other widths"]
    assert uneven["x"].edges == pytest.approx((-2, 7.9, 8))
    assert uneven["y"].edges == pytest.approx((1, 8.92, 8.92 + 0.08 / 3, 8.92 + 0.16 / 3, 9))
    assert uneven["ill"] == dpf.Boolean("ill")
    narrow = dpf.Schema([dpf.Numeric("x", 2.0**60, 2.0**60 + 1024, bins=4)])
    assert "on the example's schema with bins of other widths" not in dict(related_schemas(narrow))


def test_a_value_more_is_a_number_where_all_are():
    for values, more in ((["1", "2.5"], "-6"), (["1", "b"], "one more é"), (["1", "inf"], "one more é")):
        (found,) = (s for how, s in related_schemas(dpf.Schema([dpf.Categorical("a", values)])) if "more value" in how)
        assert found["a"].values == (*values, more)


def test_a_mechanism_is_tried_with_less_and_with_more_to_spend():
    assert [(how, float(other.epsilon)) for how, other in related_mechanisms(DiscreteLaplace(2))] == [
        ("with epsilon = 1.11", pytest.approx(10 / 9)),
        ("with epsilon = 4.5", 4.5),
    ]
    assert [how for how, _ in related_mechanisms(dpf.mechanisms.Gaussian(rho=1))] == [
        "with rho = 0.556",
        "with rho = 2.25",
    ]


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (FLAGS, True),
        (attrs.evolve(FLAGS, max_rows=2**24 + 1), False),  # shares one row less with its neighbour
        (attrs.evolve(FLAGS, max_rows=2**24 + 2), True),
        (attrs.evolve(FLAGS, rows=20), False),
    ],
)
def test_no_more_rows_are_tried_than_a_schema_allows(schema, named):
    found = search_sensitivity(Narrow(lambda counts: np.float32(counts).astype(np.int64)), schema, ADD, pairs=60)
    assert found.passed is not named


def test_sums_of_real_numbers_may_round_off_in_64_bits():
    facts = Adds(8, len).facts()
    large = np.array([2.0**40, 1.0])
    assert change_beyond_rounding(large, large + 8.0, facts) == pytest.approx([8, 8], abs=0.02)
    assert change_beyond_rounding(large, large + 0.01, facts).tolist() == [0, 0]
    whole = Narrow(len).facts()
    assert change_beyond_rounding(np.array([2**40]), np.array([2**40 + 1]), whole).tolist() == [1]
    assert search_sensitivity(Adds(8, lambda block: block.values("age") * 0.999), PEOPLE, ADD, pairs=60).passed


def test_a_query_that_fails_on_billions_of_rows_only_is_named():
    def through(counts: Any) -> Any:
        if counts.sum() > 10**7:
            raise OverflowError("so many")
        return counts

    found = search_sensitivity(Narrow(through), FLAGS, ADD, pairs=60)
    assert found.wrong == ("fails on a table of billions with OverflowError: so many",)


@attrs.frozen
class Pieces(Query):
    """The number of rows with and without a flag, as the scores of two pieces of a public interval."""

    name = "pieces"
    integer = False
    answer_length = 1
    sensitivities = (Sensitivity("linf", 1, fall=0, source="one row changes one count by 1"),)
    through: Callable[[Any], Any]

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.bincount(block.codes("ill"), minlength=2)

    def answer(self, counts: Any, **inputs: Any) -> Any:
        return PiecewiseScores(np.array([0.0, 1.0, 2.0]), self.through(counts))


@pytest.mark.parametrize(
    ("through", "holds"), [(np.float64, True), (lambda counts: np.float32(counts).astype(np.float64), False)]
)
def test_scores_on_an_interval_are_tried_on_billions_of_rows(through, holds):
    found = search_sensitivity(Pieces(through), dpf.Schema([dpf.Boolean("ill")]), ADD, pairs=60)
    assert found.passed is holds, found.wrong
    assert [what.partition(" x ")[0] for what in found.wrong] == ([] if holds else ["on 16,777,217"])
