"""Sources of randomness: what is drawn, and what says that it is private."""

from __future__ import annotations

import copy
import gc
import json
import math
import multiprocessing
import os
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from scipy import stats

import dpframework as dpf
from dpframework.mechanisms import opendp_samplers
from dpframework.mechanisms.randomness import (
    GeneratorNotHandedError,
    Noise,
    Randomness,
    Samplers,
    SeededRandomness,
    SystemRandomness,
)

SOURCES = {
    "seeded": lambda: SeededRandomness(11),
    "opendp": lambda: SystemRandomness(Samplers.OPENDP),
    "arrays": lambda: SystemRandomness(Samplers.ARRAYS),
}


@pytest.mark.parametrize("noise", Noise)
def test_a_seeded_choice_is_the_largest_of_all_scores_however_many_get_their_noise_at_a_time(
    noise: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = np.random.default_rng(1).integers(0, 9, 23)
    for seed in range(20):
        generator = np.random.default_rng(seed)
        drawn = (generator.gumbel if noise is Noise.GUMBEL else generator.exponential)(scale=3.0, size=len(scores))
        for at_once in (7, 23, 100):
            monkeypatch.setattr("dpframework.mechanisms.randomness.AT_ONCE", at_once)
            source = SeededRandomness(0)
            source._generator = np.random.default_rng(seed)
            assert source.noisy_max(scores, 3.0, noise) == np.argmax(scores + drawn)


def accepted(draws: Any, probabilities: dict[int, float]) -> bool:
    """Binomial tests a value, corrected for their number: wrongly false with probability at most 1e-6."""
    level = 1e-6 / len(probabilities)
    return all(
        stats.binomtest(int((draws == value).sum()), len(draws), p).pvalue >= level
        for value, p in probabilities.items()
    )


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_discrete_laplace(source: str, scale: float) -> None:
    draws = SOURCES[source]().discrete_laplace(8000, scale)
    assert draws.dtype == np.int64
    head = math.tanh(1 / (2 * scale))
    assert accepted(draws, {k: head * math.exp(-abs(k) / scale) for k in range(-3, 4)})


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("scale", [0.4, 1.0, 6.3])
def test_discrete_gaussian(source: str, scale: float) -> None:
    draws = SOURCES[source]().discrete_gaussian(8000, scale)
    weights = {k: math.exp(-(k**2) / (2 * scale**2)) for k in range(-100, 101)}
    total = sum(weights.values())
    assert accepted(draws, {k: weights[k] / total for k in range(-4, 5)})


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("noise", Noise)
def test_noisy_max(source: str, noise: Noise) -> None:
    randomness = SOURCES[source]()
    scores, scale = np.array([6, 2, 8]), 3.0
    draws = np.array([randomness.noisy_max(scores, scale, noise) for _ in range(5000)])
    scaled = (scores - 8) / scale
    if noise is Noise.GUMBEL:
        exact = np.exp(scaled) / np.exp(scaled).sum()
    else:
        exact = [math.exp(dpf.mechanisms.permute_and_flip_log_probability(scaled, k)) for k in range(3)]
    assert accepted(draws, dict(enumerate(map(float, exact))))


@pytest.mark.parametrize("source", SOURCES)
def test_no_draws_and_one_candidate(source: str) -> None:
    randomness = SOURCES[source]()
    assert randomness.discrete_laplace(0, 1.0).shape == (0,)
    assert randomness.discrete_gaussian(0, 1.0).shape == (0,)
    assert randomness.noisy_max(np.array([-5]), 1.0, Noise.GUMBEL) == 0


def test_a_seed_repeats_its_draws_and_is_not_private() -> None:
    one, two = SeededRandomness(7), SeededRandomness(np.int64(7))  # type: ignore[arg-type]
    assert one.discrete_laplace(50, 3.0).tolist() == two.discrete_laplace(50, 3.0).tolist()
    assert one.generator.random() == two.generator.random()
    assert not one.private


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(dpf.InputError, match="seed"):
        SeededRandomness(seed)


def test_system_draws_are_private_and_never_repeat() -> None:
    one, two = SystemRandomness(), SystemRandomness()
    assert one.private
    assert type(one.generator.bit_generator).__name__ == "ChaCha"
    assert one.generator is one.generator
    assert one.generator.random(4).tolist() != two.generator.random(4).tolist()
    assert one.discrete_laplace(64, 1e6).tolist() != one.discrete_laplace(64, 1e6).tolist()


def key_of(source: SystemRandomness) -> np.ndarray:
    return np.asarray(source.generator.bit_generator.state["state"]["keysetup"])


def test_the_key_has_256_bits_of_which_none_repeats() -> None:
    """Eight words of 32 bits, all new in each source; false alarms: 2**-27."""
    one, two = key_of(SystemRandomness()), key_of(SystemRandomness())
    assert len(one) * 32 == 256
    assert (one != 0).all()
    assert (one != two).all()


def test_every_bit_of_the_key_is_drawn() -> None:
    """Each is set in some of 64 sources and not in others; false alarms: 2**-54."""
    keys = np.array([key_of(SystemRandomness()) for _ in range(64)], dtype=np.uint64)
    assert np.bitwise_or.reduce(keys).tolist() == [2**32 - 1] * 8
    assert np.bitwise_and.reduce(keys).tolist() == [0] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_no_two_processes_draw_the_same_numbers_after_a_fork() -> None:
    """The source, and a generator that somebody holds: in two children and in their parent."""
    source, held = SystemRandomness(), SystemRandomness().generator  # the source of what is held is gone
    gc.collect()
    held.random()

    def drawn() -> list[int]:
        return [*held.integers(0, 2**62, 2).tolist(), *source.integers(2**62, 2).tolist(), *source.words(2).tolist()]

    seen = []
    for _ in range(2):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, json.dumps(drawn()).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            seen.append(json.load(told))
        assert os.waitpid(child, 0)[1] == 0
    seen.append(drawn())
    assert len({number for numbers in seen for number in numbers}) == 18


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_workers_and_copies_have_keys_of_their_own() -> None:
    source = SystemRandomness()
    source.generator.random()
    copies = [copy.copy(source), copy.deepcopy(source), pickle.loads(pickle.dumps(source))]
    numbers = [int(made.words(1)[0]) for made in (source, *copies)]
    if "fork" in multiprocessing.get_all_start_methods():
        for _ in range(2):  # one worker each
            with multiprocessing.get_context("fork").Pool(1) as pool:
                numbers.append(int(pool.apply(source.words, (1,))[0]))
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("source", SOURCES)
def test_integers_are_uniform_below_their_bounds(source: str) -> None:
    randomness = SOURCES[source]()
    draws = randomness.integers(5, 8000)
    assert accepted(draws, dict.fromkeys(range(5), 0.2))
    bounds = np.array([1, 2, 2**62] * 1000)
    each = randomness.integers(bounds, 3000)
    assert each.dtype == np.int64
    assert (each[::3] == 0).all()
    assert accepted(each[1::3], {0: 0.5, 1: 0.5})
    assert accepted(each[2::3] >> 61, {0: 0.5, 1: 0.5})
    words = randomness.words(4000)
    assert words.dtype == np.uint64
    for bit in (0, 31, 32, 63):
        assert accepted(words >> np.uint64(bit) & np.uint64(1), {0: 0.5, 1: 0.5})


class Told(Randomness):
    """A source whose words are given."""

    private = False
    generator = discrete_laplace = discrete_gaussian = noisy_max = integers = None

    def __init__(self, words: list[int]) -> None:
        self.left = words

    def words(self, size: int) -> Any:
        return np.array([self.left.pop(0) for _ in range(size)], dtype=np.uint64)


def exp_in_bits(exponent: Fraction, bits: int) -> int:
    """Return floor(2**bits exp(exponent)), from the series of exp."""
    total, term, k = Fraction(0), Fraction(1), 0
    while term > Fraction(1, 2 ** (bits + 40)):
        total, k = total + term, k + 1
        term = term * -exponent / k
    return int(2**bits / total)


@pytest.mark.parametrize("exponent", [Fraction(-1, 3), Fraction(-7), Fraction(-30, 7), Fraction(-1, 10**9)])
def test_a_uniform_number_is_compared_with_an_exponential_to_its_last_bit(exponent: Fraction) -> None:
    """Two words that agree with the exponential's first 128 bits, or differ by one in the last place."""
    exact = exp_in_bits(exponent, 192)
    first, second, third = exact >> 128, exact >> 64 & (2**64 - 1), exact & (2**64 - 1)
    for change in (-1, 1):
        told = Told([second, third + change])
        assert told.below_exp(exponent, first) is (change < 0)
        assert told.left == []
    assert Told([]).below_exp(exponent, first - 1)
    assert not Told([]).below_exp(exponent, first + 1)
    assert Told([]).below_exp(Fraction(0), 2**64 - 1)
    assert Told([]).below_exp(Fraction(1), 2**64 - 1)


def test_an_exponential_that_is_all_but_a_whole_number_is_told_from_it() -> None:
    """Exponents of some 40, which rounding to as many digits as are computed at first moves by more than that."""
    with localcontext(prec=100):
        logarithms = [Fraction((Decimal(k) / 2**64).ln()) for k in range(40, 140)]
    for k, logarithm in enumerate(logarithms, 40):
        for part in (1, 3):
            off = Fraction(part, 10**30)  # the exponential is k (1 + off) or k (1 - off), in 2**-64
            assert Told([0] * 9).below_exp(logarithm + off, k)
            assert not Told([0] * 9).below_exp(logarithm - off, k)


def test_only_who_assumes_real_arithmetic_is_handed_the_generator() -> None:
    for source in (SystemRandomness(), SeededRandomness(4)):
        handed = source.handed(["mcmc-converged"])
        assert handed.private is source.private
        with pytest.raises(GeneratorNotHandedError, match="'real-arithmetic'"):
            _ = handed.generator
        assert source.handed(["mcmc-converged", "real-arithmetic"]).generator is source.generator
        assert handed.handed([]).private is source.private
        for asked in ((2.0**40,), (2.0**20,)):
            assert handed.discrete_laplace(8, *asked).any()
            assert handed.discrete_gaussian(8, *asked).any()
        assert handed.noisy_max(np.array([0, 10**6]), 1.0, Noise.GUMBEL) == 1
        assert handed.integers(2**60, 3).all()
        assert handed.words(3).all()


def test_a_run_refuses_noise_from_the_generator_that_nobody_assumed() -> None:
    schema = dpf.Schema([dpf.Boolean("ill")])

    @attrs.frozen
    class Own(dpf.mechanisms.Laplace):
        name = "own"

        def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
            return answer + randomness.generator.laplace(scale=float(calibration.scale))

    @attrs.frozen
    class Says(Own):
        assumptions = ("real-arithmetic",)

    @attrs.frozen
    class Counts(dpf.Miner):
        name = "counts"
        given: Any

        def plan(self, schema: Any) -> Any:
            return dpf.step("count", dpf.queries.Count(), self.given)

        def mine(self, table: Any) -> Any:
            return float(table.release("count"))

    table = dpf.Table.from_codes(schema, np.zeros((1, 3), dtype=np.uint8))
    for mechanism, seed, words in ((Own(1), None, "GeneratorNotHandedError"), (Own(1), 1, "'real-arithmetic'")):
        study = dpf.Study(schema, epsilon=1)
        study.add("one", Counts(mechanism))
        with pytest.raises(dpf.InputError, match=words):
            study.run(table, seed=seed)
    study = dpf.Study(schema, epsilon=1, allow=["real-arithmetic"])
    study.add("one", Counts(Says(1)))
    assert math.isfinite(study.run(table)["one"])


def test_system_draws_have_their_own_noise_in_each_coordinate() -> None:
    draws = SystemRandomness().discrete_laplace(64, 1e6)
    assert len(set(draws.tolist())) > 32


@pytest.mark.parametrize("call", ["of the library", "of the binding"])
def test_opendp_is_called_with_or_without_its_conversions(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sure draws are the same, and others have the size that is asked for: another version may need the binding."""
    if call == "of the binding":
        monkeypatch.setattr(opendp_samplers, "_library", lambda: None)
    else:
        assert opendp_samplers._library() is not None
    scores = np.array([5, 1000, -3])
    for gumbel in (False, True):
        assert opendp_samplers.noisy_max(scores, 0.5, gumbel=gumbel) == 1
        assert opendp_samplers.noisy_max(scores[::-1], 0.5, gumbel=gumbel) == 1
        assert opendp_samplers.noisy_max(scores[1:], 0.5, gumbel=gumbel) == 0
    for kind in ("laplace", "gaussian"):
        drawn = opendp_samplers.noise(kind, 1e6, 50)
        assert drawn.dtype == np.int64
        assert len(set(drawn.tolist())) > 40
        assert 0 < np.abs(drawn).max() < 6e7
        assert drawn.flags.writeable
        assert opendp_samplers.noise(kind, 1.5, 0).tolist() == []


def test_what_opendp_refuses_is_raised() -> None:
    from opendp.mod import OpenDPException

    with pytest.raises(OpenDPException):
        opendp_samplers.noisy_max(np.zeros(0, dtype=np.int64), 1.0, gumbel=False)
    assert opendp_samplers.noisy_max(np.array([0, 10**6]), 1.0, gumbel=False) == 1


def test_the_generator_is_chacha_of_twenty_rounds() -> None:
    assert SystemRandomness().generator.bit_generator.state["state"]["rounds"] == 20


@pytest.mark.parametrize("source", SOURCES)
def test_every_bit_of_a_word_is_drawn(source: str) -> None:
    """Each is set in some of 64 words and not in others; false alarms: 2**-57."""
    words = SOURCES[source]().words(64)
    assert (words.dtype, words.shape) == (np.uint64, (64,))
    assert int(np.bitwise_or.reduce(words)) == 2**64 - 1
    assert int(np.bitwise_and.reduce(words)) == 0


def test_every_number_is_below_an_exponential_of_0_and_more() -> None:
    """Without another bit: 1 is no number below 1, and is never drawn."""
    for exponent in (Fraction(0), Fraction(1, 10**9), Fraction(5)):
        for word in (0, 2**63, 2**64 - 1):
            assert Told([]).below_exp(exponent, word)
    assert not Told([]).below_exp(Fraction(-1), 2**64 - 1)
    assert Told([]).below_exp(Fraction(-1), 0)


def test_seeds_begin_at_0() -> None:
    assert SeededRandomness(0).integers(10**9, 3).tolist() == np.random.default_rng(0).integers(0, 10**9, 3).tolist()


@pytest.mark.parametrize("scale", [0.999, 1.0, 1.5, 40.0])
def test_seeded_gaussian_noise_is_kept_about_as_often_as_it_is_proposed(scale: float) -> None:
    """Half of the proposals and more, for scales of about 1 and more: false alarms below 1e-9."""
    source = SeededRandomness(3)
    proposed: list[int] = []
    laplace = source.discrete_laplace

    def counted(size: int, of: float) -> Any:
        proposed.append(size)
        return laplace(size, of)

    source.discrete_laplace = counted  # type: ignore[method-assign]
    assert source.discrete_gaussian(5_000, scale).shape == (5_000,)
    assert sum(proposed) <= 2 * 5_000 + 8


@pytest.mark.parametrize("source", SOURCES)
def test_a_single_draw_is_as_random_as_many(source: str) -> None:
    """Of 60 draws of one number each, of a scale of 50: fewer than 20 values have a probability below 1e-9."""
    for draw in ("discrete_laplace", "discrete_gaussian"):
        drawn = [
            getattr(SeededRandomness(k) if source == "seeded" else SystemRandomness(), draw)(1, 50.0) for k in range(60)
        ]
        assert all(one.shape == (1,) and one.dtype == np.int64 for one in drawn)
        assert len({int(one[0]) for one in drawn}) >= 20
        assert len(SOURCES[source]().discrete_gaussian(7, 2.0)) == 7


def test_what_is_within_the_rounding_of_an_exponent_is_told_by_more_bits() -> None:
    """Exponents of some 40, and of some 10, so that 2**64 exp(exponent) is a whole number but for a part in 10**30."""
    for k in (*range(40, 140), *range(5 * 10**14, 5 * 10**14 + 100)):
        with localcontext(prec=100):
            exponent = Fraction((Decimal(k) / 2**64).ln())
        off = Fraction(1, 10**30)
        assert Told([0] * 9).below_exp(exponent + off, k)  # k, and nothing behind the point, is below k (1 + off)
        assert not Told([2**64 - 1] * 9).below_exp(
            exponent - off, k - 1
        )  # k less next to nothing is not below k (1 - off)


def test_each_source_apart_draws_other_words_and_moves_none_of_the_first() -> None:
    """As many as a query has keys are drawn from one, and later steps draw what they would have drawn."""
    source, again = SeededRandomness(5), SeededRandomness(5)
    drawn = [source.apart().words(4).tolist() for _ in range(3)]
    assert len({tuple(words) for words in drawn}) == 3
    assert [again.apart().words(4).tolist() for _ in range(3)] == drawn
    assert source.words(4).tolist() == SeededRandomness(5).words(4).tolist()
    assert source.words(4).tolist() not in drawn


def test_samplers_are_named_and_a_misspelt_name_is_answered_with_those_there_are() -> None:
    assert [Samplers.named(name).value for name in ("arrays", "opendp")] == ["arrays", "opendp"]
    with pytest.raises(dpf.InputError, match=r"^no samplers are called 'opndp'; there are opendp and arrays$"):
        Samplers.named("opndp")
