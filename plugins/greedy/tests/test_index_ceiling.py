"""How much a choice among Jaccard indices can lose, by a second implementation that tries small tables."""

import itertools
import math

import numpy as np
from dpframework_greedy import SerenadeCS

from dpframework import Relation
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.author_witness_replay import replay_witness

EPSILON = 90  # of the choice of a pair: .9 of the example's 100
SPREADS = (1.5, 2)  # of two indices, where a row is added and where one is replaced
SPANS = ((0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3))  # of the three bins of a height that is known
HEIGHTS, ZONES = (None, 0, 1, 2), range(3)
LEFT = np.array(
    [
        [wolf, not wolf, *(height is not None and low <= height < high for low, high in SPANS)]
        for wolf, height in itertools.product((True, False), HEIGHTS)
    ]
)
RIGHT = np.array(
    [
        [rain == 0, rain == 1, *(zone == k for k in ZONES), *(zone != k for k in ZONES)]
        for rain, zone in itertools.product(range(2), ZONES)
    ]
)
KINDS = list(itertools.product(LEFT, RIGHT))
BOTH = np.array([np.logical_and.outer(left, right).ravel() for left, right in KINDS])
EITHER = np.array([np.logical_or.outer(left, right).ravel() for left, right in KINDS])


def log_chances(both: np.ndarray, either: np.ndarray, spread: float) -> np.ndarray:
    """The logarithm of the chance of each pair, where scores move apart by so much at most."""
    weights = EPSILON / spread * both / np.maximum(either, 1)
    weights -= weights.max(axis=-1, keepdims=True)
    return weights - np.log(np.exp(weights).sum(axis=-1, keepdims=True))


def largest_losses(most: int) -> tuple[float, float]:
    """What a choice loses at most where a row is added and where one is replaced, with up to so many other rows."""
    added = replaced = 0.0
    for shared in itertools.chain(
        *(itertools.combinations_with_replacement(range(len(KINDS)), n) for n in range(most + 1))
    ):
        both, either = BOTH[[*shared]].sum(axis=0), EITHER[[*shared]].sum(axis=0)
        with_row = log_chances(both + BOTH, either + EITHER, SPREADS[0])
        added = max(added, float(np.abs(with_row - log_chances(both, either, SPREADS[0])).max()))
        of_rows = log_chances(both + BOTH, either + EITHER, SPREADS[1])
        replaced = max(replaced, float((of_rows.max(axis=0) - of_rows.min(axis=0)).max()))
    return added, replaced


def test_no_small_table_loses_more_than_the_ceiling_and_the_witnesses_come_near_it() -> None:
    largest = largest_losses(1)
    ceilings = [EPSILON / spread + math.log(len(BOTH[0])) for spread in SPREADS]
    for most, ceiling in zip(largest, ceilings, strict=True):
        assert 0.93 * ceiling < most <= ceiling
    example = SerenadeCS.examples()["jaccard"]
    for witness, loss, ceiling in zip(example.witnesses, largest, ceilings, strict=True):
        subject = Subject(example.miner, example.schema, witness.relation)
        calibrated = next(step for step in subject.plan.steps() if step.name == "pairs")
        claim = subject.plan.calibration(calibrated).losses.pure.under(witness.relation)
        assert claim == EPSILON
        shown = replay_witness(subject, witness, np.random.default_rng(0))
        assert shown.divergence is None
        assert 0.98 * loss <= shown.loss - 10 <= loss + 1e-9  # the counts have 10, and lose all of it
        said = "0.75" if witness.relation is Relation.ADD_OR_REMOVE_ONE else "0.6"
        assert said in example.loose
        assert 0.9 * float(said) * 100 < shown.loss < ceiling + 10 < float(said) * 100
    assert [witness.relation for witness in example.witnesses] == list(Relation)
