"""Bugs that show with values, amounts or comparisons of which neither an example nor the kit's first tests have one.

Each is planted beside its honest twin: a parameter of another type, a schema with many labels or rows, a unit of very
many rows, comparisons that leave out what matters, and mechanisms whose draws have the right distribution and yet can
be guessed, subtracted or put in order.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import Version
from verify.planted_bugs.test_beside_the_examples import ADD, FLAGS, PEOPLE, l1
from verify.planted_bugs.test_draws_in_other_settings import OneByOne
from verify.planted_bugs.test_first_plugins import failures
from verify.planted_bugs.test_other_parameters_and_sizes import Adds, Makes, OfUnit, asks

import dpframework as dpf
from dpframework.facts import positive
from dpframework.mechanisms import DiscreteLaplace, Exponential
from dpframework.mechanisms.randomness import Noise
from dpframework.queries import Histogram, Norm, Query
from dpframework.verify import check_sampler
from dpframework.verify.mechanisms.too_few_random_bits_check import CountedRandomness, gaussian_bits, laplace_bits
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.step_sensitivity_and_mechanism_checks import StepChecks
from dpframework.verify.miners.value_comparison import same
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import related_miners
from dpframework.verify.search_time_limit import Patience

BELOW_0 = dpf.Schema([dpf.Numeric("age", -8, 8, bins=2)])
FEW_ROWS = attrs.evolve(PEOPLE, max_rows=100)


@attrs.frozen
class CapsAges(Makes):
    """Add up ages from 0 up to a fraction, whose bound is that of 1."""

    right: Any
    cap: Fraction = attrs.field(default=Fraction(1), converter=positive)

    def query(self, schema):
        return Adds(self.cap if self.right else 1, lambda block: np.clip(block.values("age"), 0, float(self.cap)))


@attrs.frozen
class WeighsTowns(Makes):
    """Add up the weights of towns, of which none is above 1, and one may be below -1."""

    right: Any
    weights: Mapping[str, float] = attrs.field(factory=lambda: {"A": 1.0, "B": 0.5})

    def query(self, schema):
        weights = np.array([self.weights.get(label, 0.0) for label in schema["town"].labels])
        bound = max(1, *np.abs(weights)) if self.right else 1
        return Adds(bound, lambda block: weights[block.codes("town")])


@attrs.frozen
class CapsIfTold(Makes):
    """Add up ages, up to a cap if one is given, below which an age may lie far."""

    right: Any
    cap: float | None = None

    def query(self, schema):
        age = schema["age"]
        largest = max(abs(age.lower), abs(age.upper))
        if self.cap is None:
            return Adds(largest, lambda block: block.values("age"))
        bound = max(abs(self.cap), abs(age.lower)) if self.right else self.cap
        return Adds(bound, lambda block: np.minimum(block.values("age"), self.cap))


@attrs.frozen
class Weighted(Query):
    """Weighted counts, equal to others with other weights, since arrays cannot be compared."""

    name = "weighted"
    integer = False
    answer_length = 2
    bound: Fraction = attrs.field(converter=Fraction)
    weights: Any = attrs.field(eq=False, converter=np.array)

    @property
    def sensitivities(self):
        return l1(self.bound)

    def count(self, block, **inputs):
        return self.weights * np.bincount(block.codes("town"), minlength=3)[:2]


@attrs.frozen
class WeighsInOrder(Makes):
    """Count two towns with weights of at most 1, of which one may be below -1."""

    right: Any
    weights: tuple[float, ...] = (1.0, 0.5)

    def query(self, schema):
        if len(self.weights) != 2:
            raise dpf.InputError("give two weights")
        return Weighted(max(1, *map(abs, self.weights)) if self.right else 1, self.weights)


@attrs.frozen
class Packs(Makes):
    """Add up codes that leave room for 16 towns below a flag."""

    right: Any

    def query(self, schema):
        town = schema["town"]
        largest = town.size + 15 if self.right else 31
        return Adds(largest, lambda block: block.codes(town.name).astype(float) + 16.0 * (block.codes("ill") == 1))


@attrs.frozen
class SignedCodes(Query):
    """Counts towns by codes of 8 bits, with or without a sign, and fails where a code is below 0."""

    name = "signed-codes"
    size: int
    kind: type[Any]

    @property
    def answer_length(self):
        return self.size

    @property
    def sensitivities(self):
        return l1(1)

    def count(self, block, **inputs):
        return np.bincount(block.codes("town").astype(self.kind), minlength=self.size)


@attrs.frozen
class CountsBySigned(Makes):
    """Count towns by their codes."""

    right: Any

    def query(self, schema):
        return SignedCodes(schema["town"].size, np.int64 if self.right else np.int8)


@attrs.frozen
class LogOfRows(Query):
    """The sum over towns of n log2 n, with a bound for a number of rows."""

    name = "n-log-n"
    integer = False
    answer_length = 1
    rows: int

    @property
    def sensitivities(self):
        return l1(Fraction(float(np.log2(self.rows) + 1.4427)))

    def count(self, block, **inputs):
        return np.bincount(block.codes("town"), minlength=4)

    def answer(self, counts, **inputs):
        return np.array([float((counts * np.log2(np.maximum(counts, 1))).sum())])


@attrs.frozen
class Logs(Makes):
    """Release the sum of n log n, with the bound for as many rows as the example may have."""

    right: Any

    def query(self, schema):
        return LogOfRows(schema.row_bound if self.right else 100)


PLANTED: dict[str, tuple[Callable[[bool], dpf.Miner], dpf.Schema, str]] = {
    "a cap that is a fraction": (
        CapsAges,
        PEOPLE,
        "adds, with cap = Fraction(2, 1): l1 declared 1, largest found 2: DOES NOT HOLD",
    ),
    "weights in a dictionary": (
        WeighsTowns,
        PEOPLE,
        "adds, with weights = {'A': -3.0, 'B': 0.5}: l1 declared 1, largest found 3: DOES NOT HOLD",
    ),
    "a parameter that the example leaves out": (
        CapsIfTold,
        BELOW_0,
        "adds, with cap = 1.0: l1 declared 1, largest found 8: DOES NOT HOLD",
    ),
    "weights that a query's comparison leaves out": (
        WeighsInOrder,
        PEOPLE,
        "weighted, with weights = (-3.0, 0.5): l1 declared 1, largest found 3: DOES NOT HOLD",
    ),
    "right for up to 16 labels": (
        Packs,
        FLAGS,
        "adds, on the example's schema with 300 values of town: l1 declared 31, largest found 315: DOES NOT HOLD",
    ),
    "codes in 8 bits with a sign": (
        CountsBySigned,
        PEOPLE,
        "signed-codes, on the example's schema with 300 values of town: fails on a table with ValueError",
    ),
    "the logarithm of the example's number of rows": (
        Logs,
        FEW_ROWS,
        "n-log-n, on the example's schema with 1,000 times as many rows: l1 declared 8.08",
    ),
    "right for units of up to 31 rows": (
        lambda right: asks(OfUnit(lambda rows: rows if right else min(rows, 31))),
        FLAGS,
        "of-unit, of a unit of 1000 rows: l1 declared 31, largest found 1000: DOES NOT HOLD",
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_with_values_that_no_example_has_is_named(bug, record_property):
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


class Integers(OneByOne):
    """Adds integer noise, which a subclass makes, to whole numbers and to lattice points."""

    def release(self, answer, calibration, randomness):
        exact = calibration.on_lattice(answer)
        noisy = exact + self.noise(exact, calibration.lattice_scale, randomness)
        return noisy if calibration.unit == 1 else noisy * float(calibration.unit)


@attrs.frozen
class AtMost(Integers):
    """Draws noise of a scale of at most 50, so that counts stay useful."""

    name = "at-most"
    right: bool = True

    def release(self, answer, calibration, randomness):
        scale = calibration.lattice_scale
        exact = calibration.on_lattice(answer)
        noise = self.noise(exact, scale if self.right else min(scale, 50 / float(calibration.unit)), randomness)
        return (exact + noise) * (1 if calibration.unit == 1 else float(calibration.unit))


@attrs.frozen
class FewSeeds(Integers):
    """Draws from a generator of its own, which is keyed with 256 random bits, or seeded with 32."""

    name = "few-seeds"
    right: bool = True

    def noise(self, answer, scale, randomness):
        seed = randomness.words(4).tolist() if self.right else int(randomness.integers(2**32, 1)[0])
        draws = np.random.default_rng(seed).geometric(-np.expm1(-1 / scale), size=(2, answer.size))
        return (draws[0] - draws[1]).astype(np.int64).reshape(answer.shape)


@attrs.frozen
class FewRealSeeds(FewSeeds):
    """The same from the generator that it is handed for real arithmetic."""

    name = "few-real-seeds"
    assumptions = ("real-arithmetic",)

    def noise(self, answer, scale, randomness):
        source = randomness.generator
        seed = source.integers(2**32, size=8).tolist() if self.right else int(source.integers(2**32))
        draws = np.random.default_rng(seed).geometric(-np.expm1(-1 / scale), size=(2, answer.size))
        return (draws[0] - draws[1]).astype(np.int64).reshape(answer.shape)


@attrs.frozen
class Mirrored(Integers):
    """Draws the noise of the first half of a long answer, and takes it again, negated and backwards, for the rest."""

    name = "mirrored"
    right: bool = True

    def noise(self, answer, scale, randomness):
        drawn = randomness.discrete_laplace(answer.size, scale)
        if not self.right and answer.size >= 64:
            half = answer.size // 2
            drawn[answer.size - half :] = -drawn[:half][::-1]
        return drawn.reshape(answer.shape)


@attrs.frozen
class Antithetic(DiscreteLaplace):
    """Draws for half of the answers that are released together, and takes the negated noise for the others."""

    name = "antithetic"
    right: bool = True

    def release_many(self, answers, calibration, randomness):
        half = len(answers) if self.right else (len(answers) + 1) // 2
        first = super().release_many(answers[:half], calibration, randomness)
        noise = [output - answer for output, answer in zip(first, answers, strict=False)]
        return first + [answer - one for answer, one in zip(answers[half:], noise, strict=False)]


@attrs.frozen
class InOrder(Integers):
    """Puts out positions and noisy counts in the order of the noisy counts, or of the exact ones."""

    name = "in-order"
    right: bool = True

    def release(self, answer, calibration, randomness):
        noisy = np.ravel(Integers.release(self, answer, calibration, randomness))
        by = noisy if self.right else np.ravel(answer)
        return [(int(k), noisy[k].item()) for k in np.argsort(-by, kind="stable")]

    def log_density(self, answer, output, calibration):
        found = np.empty(np.size(answer), dtype=np.asarray(answer).dtype)
        for k, value in output:
            found[k] = value
        if self.right and [k for k, _ in output] != np.argsort(-found, kind="stable").tolist():
            return -np.inf
        return super().log_density(answer, found.reshape(np.shape(answer)), calibration)


@attrs.frozen
class ByChange(Exponential):
    """Chooses with noise for the spread of two scores, or for the change of one."""

    name = "by-change"
    right: bool = True

    def release(self, answer, calibration, randomness):
        scale = calibration.lattice_scale
        if not self.right:
            declared = calibration.facts.sensitivity(Norm.LINF)
            scale *= float(declared.add_or_remove_one / declared.spread.add_or_remove_one)
        return randomness.noisy_max(calibration.scores(answer), scale, Noise.GUMBEL)

    def release_many(self, answers, calibration, randomness):
        return [self.release(answer, calibration, randomness) for answer in answers]


DRAWN: dict[str, tuple[Callable[[bool], dpf.Mechanism], str]] = {
    "noise that has a widest scale": (
        lambda right: AtMost(1, right),
        "two counts, a sensitivity of 100, private randomness: the draws fit noise 30 % narrower than claimed",
    ),
    "a seed of 32 bits": (
        lambda right: FewSeeds(1, right),
        "the noise of an answer of 4096 numbers is made of 32 bits of the seeded randomness",
    ),
    "a seed of 32 bits for noise of real numbers": (
        lambda right: FewRealSeeds(1, right),
        "the noise of an answer of 4096 numbers is made of 64 bits of the seeded randomness, which can be guessed",
    ),
    "noise that is used twice in an answer": (
        lambda right: Mirrored(1, right),
        "two numbers of an answer of 4096 have the same noise, or the same with another sign",
    ),
    "noise that two answers share": (
        lambda right: Antithetic(1, right),
        "two answers that are drawn together have the same noise, or the same with another sign",
    ),
    "an order of the exact counts": (lambda right: InOrder(1, right), "different outputs add up to"),
    "noise for the change of one score": (
        lambda right: ByChange(1, right),
        "integer scores, scores that a row may lower, too, private randomness: the draws",
    ),
}


@pytest.mark.parametrize("bug", DRAWN)
def test_draws_that_can_be_guessed_or_are_too_close_are_named(bug, record_property):
    make, named = DRAWN[bug]
    found = check_sampler(make(False), draws=600)
    record_property("planted bug", (bug, not found.passed))
    assert any(named in what for what in found.wrong), str(found)


@pytest.mark.parametrize("bug", DRAWN)
def test_the_honest_twin_draws_what_it_states(bug, record_property):
    found = check_sampler(DRAWN[bug][0](True), draws=600)
    record_property("correct version", (bug, found.passed))
    assert found.passed, str(found)


@attrs.frozen
class ByLaw(Integers):
    """Draws in one of several ways, of which one draws half the noise; comparisons may leave out which."""

    name = "by-law"
    law: str = "direct"
    hidden: Mapping[str, str] = attrs.field(factory=dict, eq=False)

    def noise(self, answer, scale, randomness):
        halved = "halved" in (self.law, self.hidden.get("law"))
        return randomness.discrete_laplace(answer.size, scale / 2 if halved else scale).reshape(answer.shape)


@attrs.frozen
class CountsByLaw(dpf.Miner):
    """Count towns."""

    name = "counts-by-law"
    noise: dpf.Mechanism

    def plan(self, schema):
        return dpf.step("towns", Histogram(schema["town"]), self.noise)

    def mine(self, table):
        return table.release("towns")


@pytest.mark.parametrize(
    "laws",
    [
        [ByLaw(1, "direct"), ByLaw(1, "other"), ByLaw(1, "halved")],
        [ByLaw(1, hidden={}), ByLaw(1, hidden={"law": "halved"})],
        [ByLaw(1, hidden={"law": "halved"}), ByLaw(1, hidden={})],
    ],
    ids=["the third of three", "the second of two that are equal", "the first of two that are equal"],
)
def test_every_law_of_a_mechanism_is_sampled(laws):
    checks = StepChecks(100, 0, [])
    for law in laws:
        checks.check(Subject(CountsByLaw(law), FLAGS, ADD), Patience())
    narrower = [what for what in checks.problems() if "by-law: two counts" in what and "narrower" in what]
    assert len(narrower) == 1, checks.problems()


@attrs.frozen
class Pattern:
    """Two patterns are equal if their items are, whatever their support is, which nothing shows."""

    items: str
    support: int = attrs.field(eq=False, repr=False)


@pytest.mark.parametrize(
    "hold",
    [lambda one: {one}, lambda one: frozenset([one]), lambda one: {one: 1.5}, lambda one: collections.deque([one])],
    ids=["a set", "a frozen set", "a key", "a deque"],
)
def test_what_a_comparison_leaves_out_is_compared_in_every_collection(hold):
    assert same(hold(Pattern("ab", 3)), hold(Pattern("ab", 3)))
    assert not same(hold(Pattern("ab", 3)), hold(Pattern("ab", 4)))
    assert same(hold("ab"), hold("ab"))
    assert not same(hold(1), hold(True))


@attrs.frozen
class Various(dpf.Miner):
    """Parameters of more kinds."""

    name = "various"
    share: Fraction = Fraction(1, 3)
    price: Decimal = Decimal("0.5")
    weights: Mapping[str, Any] = attrs.field(factory=lambda: {"A": 2, "B": Fraction(1, 2)})
    words: Mapping[str, str] = attrs.field(factory=lambda: {"A": "few"})
    grid: Any = attrs.field(factory=lambda: np.array([1.5, -2.0]), eq=False)
    most: int | None = None
    part: float | None = None
    exact: bool | None = None
    of: str | None = None
    anything: Any = None

    def plan(self, schema):
        return dpf.step("towns", Histogram(schema["town"]), DiscreteLaplace(1))

    def mine(self, table):
        return table.release("towns")


def test_parameters_of_more_kinds_are_changed():
    found = [(how, miner) for how, miner in related_miners(Various(), FLAGS)]
    assert [how for how, _ in found] == [
        "with share = Fraction(2, 3)",
        "with share = Fraction(-5, 3)",
        "with price = Decimal('1.0')",
        "with price = Decimal('-2.0')",
        "with weights = {'A': -5, 'B': Fraction(1, 2)}",
        "with grid = array([-5., -2.])",
        "with most = 1",
        "with most = 2",
        "with part = 1.0",
        "with part = 2.0",
        "with exact = True",
        "with exact = False",
        "with of = 'town'",
        "with of = 'ill'",
    ]
    assert found[5][1].grid.tolist() == [-5.0, -2.0]
    assert Various().grid.tolist() == [1.5, -2.0]


def test_random_bits_are_counted_as_the_entropy_of_what_is_drawn():
    source = CountedRandomness(1)
    source.discrete_laplace(100, 3.0)
    assert source.noise_bits == pytest.approx(100 * laplace_bits(3.0))
    source.discrete_gaussian(100, 3.0)
    assert source.noise_bits == pytest.approx(100 * (laplace_bits(3.0) + gaussian_bits(3.0)))
    assert source.own_bits == 0
    source.words(2)
    source.integers(np.array([2, 8]), 2)
    source.integers(16, 3)
    assert source.own_bits == 2 * 64 + 1 + 3 + 3 * 4
    assert source.apart() is source
    fresh = CountedRandomness(1)
    for words in range(4):
        assert fresh.generator_words == min(words, 2)
        fresh.generator.integers(2**64, dtype=np.uint64)


@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0, 4.0, 5.0, 20.0])
def test_the_entropy_of_noise_is_that_of_its_probabilities(scale):
    support = np.arange(-4_000, 4_001)
    for entropy, logs in ((laplace_bits, -np.abs(support) / scale), (gaussian_bits, -(support**2) / (2 * scale**2))):
        shares = np.exp(logs) / np.exp(logs).sum()
        exact = -(shares[shares > 0] * np.log2(shares[shares > 0])).sum()
        assert entropy(scale) == pytest.approx(exact, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_data_frames_are_the_same_if_their_cells_are(library):
    frames = pytest.importorskip(library)
    one, again = (frames.DataFrame({"town": ["A", "B"], "rows": np.array([1.0, 2.0])}) for _ in range(2))
    assert same([one], [again])
    assert same(one["rows"], again["rows"])
    for other in ({"town": ["A", "B"], "rows": [1.0, 3.0]}, {"town": ["A", "B"], "rows": [1, 2]}, {"town": ["A", "B"]}):
        assert not same(one, frames.DataFrame(other))
    assert not same(one["rows"], one["town"])
