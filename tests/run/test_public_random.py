"""Public randomness: a stream of its own that runs record and repeat; a miner's other random numbers are named."""

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.mechanisms.randomness import SeededRandomness, SystemRandomness
from dpframework.run.gate import Gate
from dpframework.verify import MinerConformance
from dpframework.verify.miners.replay_audit import audit

SCHEMA = dpf.Schema([dpf.Categorical("c", ["x", "y", "z"])])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 0, 0, 1, 1, 2]])


@attrs.frozen
class Synthetic(dpf.Miner):
    """Draw rows that are distributed as a noisy histogram is, and a number that no two draws have in common."""

    name = "synthetic"
    elsewhere: bool = False

    def plan(self, schema):
        return dpf.step("counts", dpf.queries.Histogram(schema["c"]), DiscreteLaplace(1))

    def mine(self, table):
        rng = np.random.default_rng() if self.elsewhere else table.public_random()
        counts = np.maximum(table.release("counts"), 0) + 1
        return [*rng.choice(3, 8, p=counts / counts.sum()).tolist(), int(rng.integers(2**62))]

    @classmethod
    def examples(cls):
        return {"one": dpf.Example(SCHEMA, cls())}


@attrs.frozen
class Places(dpf.Miner):
    """Return noise, and public draws of several places."""

    name = "places"
    public: bool = True

    def plan(self, schema):
        steps = [dpf.step(name, dpf.queries.Count(), DiscreteLaplace(1)) for name in "ab"]
        return dpf.sequential(steps[0], dpf.sequential(steps[1], name="inner"))

    def mine(self, table):
        inner = table.scope("inner")
        public = [t.public_random().integers(2**62) for t in (table, table, inner)] if self.public else []
        return [table.release("a"), inner.release("b"), *map(int, public)]


def run(miner, **options):
    study = dpf.Study(SCHEMA, epsilon=9)
    study.add("m", miner)
    return study.run(TABLE, **options)


def test_public_draws_are_recorded_and_repeated(tmp_path, monkeypatch):
    first, again, other = (run(Places(), seed=seed) for seed in (1, 1, 2))
    assert first["m"] == again["m"]
    assert first.public_seed == again.public_seed != other.public_seed
    drawn = [*first["m"][2:], *other["m"][2:]]
    assert len(set(drawn)) == 6  # another for each call, place and run
    first.save(tmp_path / "out")
    assert dpf.Results.load(tmp_path / "out").public_seed == first.public_seed
    without = run(Places(public=False), seed=1)
    assert without.public_seed is None
    assert without["m"] == first["m"][:2]  # public draws take nothing from the stream of noise
    private = [run(Places()) for _ in range(2)]
    assert private[0].public_seed != private[1].public_seed
    assert private[0]["m"][2:] != private[1]["m"][2:]


def test_public_draws_and_noise_have_no_state_in_common():
    for randomness in (SystemRandomness(), SeededRandomness(7)):
        gate = Gate(dpf.InMemory(), randomness)
        before = str(randomness.generator.bit_generator.state)
        public = [gate.public_random(place) for place in ("a", "b")]
        drawn = [rng.integers(2**62, size=4).tolist() for rng in public]
        assert str(randomness.generator.bit_generator.state) == before
        seeds = [str(rng.bit_generator.state) for rng in (*public, randomness.generator)]
        assert len(set(seeds)) == 3
        assert randomness.generator.integers(2**62, size=4).tolist() not in drawn
        public_again = [np.random.default_rng(gate.public_seed), np.random.default_rng(7)]
        assert not any(rng.integers(2**62, size=4).tolist() in drawn for rng in public_again)
    seeds = [Gate(dpf.InMemory(), SystemRandomness()).public_seed for _ in range(20)]
    assert len(set(seeds)) == 20
    assert max(seeds).bit_length() > 100
    assert SeededRandomness(7).public_seed() != 7


def test_a_resumed_run_draws_the_same(ledger, tmp_path):
    study = dpf.Study(SCHEMA, epsilon=2)
    study.add("m", Places())
    ledger.approve("people", study.plan(), by="Ada")

    class Stops(dpf.Observer):
        seen = 0

        def released(self, release):
            Stops.seen += 1
            if Stops.seen == 2:
                raise KeyboardInterrupt

    def runs(observers):
        recorded = ledger.run("people", journal=tmp_path / "journal")
        return study.run(TABLE, observers=observers, ledger=recorded)

    seeds = []
    plain = Gate.public_random

    def noted(gate, path):
        seeds.append(gate.public_seed)
        return plain(gate, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gate, "public_random", noted)
        with pytest.raises(dpf.RunStopped):
            runs([Stops()])
        results = runs([])
    assert len(seeds) == 6
    assert set(seeds) == {int(results.public_seed, 16)}


def test_a_verification_repeats_public_draws_and_names_all_others():
    report = audit(Synthetic(), SCHEMA, "add-or-remove-one", replays=300)
    assert report.violations == ()
    assert report.tightness > 0.9
    report = audit(Synthetic(elsewhere=True), SCHEMA, "add-or-remove-one", replays=100)
    assert "take them from table.public_random()" in str(report.violations[0])


@attrs.frozen
class OwnNoise(DiscreteLaplace):
    """A mechanism that no hook brings."""

    name = "own-noise"


@attrs.frozen
class Hookless(Synthetic):
    """A miner of a mechanism that no hook brings."""

    name = "hookless"

    def plan(self, schema):
        return dpf.step("counts", dpf.queries.Histogram(schema["c"]), OwnNoise(1))


def test_a_mechanism_without_its_hook_passes_the_suite():
    class Suite(MinerConformance):
        miner = Hookless
        replays = 300

    for example in Hookless.examples().values():
        for test in (
            Suite().test_its_plan_follows_from_schema_and_parameters,
            Suite().test_its_plan_passes_the_checks,
            Suite().test_its_result_can_be_printed_and_written,
            Suite().test_blocks_of_rows_make_no_difference,
            Suite().test_no_transcript_loses_more_than_the_plan_claims,
        ):
            test(example, dpf.Relation.ADD_OR_REMOVE_ONE)


class Firsts(dpf.Query):
    """The first row of each block: no sum over blocks."""

    name = "firsts"
    sensitivities = (dpf.Sensitivity("l1", 3, source="a test"),)

    def count(self, block):
        return block.codes("c")[:1].astype(np.int64).sum()


@attrs.frozen
class OfBlocks(Synthetic):
    """A miner whose query does not add up over blocks."""

    name = "of-blocks"

    def plan(self, schema):
        return dpf.step("counts", Firsts(), DiscreteLaplace(10**6))

    def mine(self, table):
        return int(table.release("counts"))


def test_blocks_that_make_a_difference_are_a_sentence():
    for miner, sentence in (
        (OfBlocks(), r"the result from three blocks differs .* From one block: \d+; from three: \d+"),
        (Synthetic(elsewhere=True), r"two runs with the same seed differ: if the miner draws random numbers"),
    ):
        with pytest.raises(AssertionError, match=sentence):
            MinerConformance().test_blocks_of_rows_make_no_difference(
                dpf.Example(SCHEMA, miner), dpf.Relation.ADD_OR_REMOVE_ONE
            )
