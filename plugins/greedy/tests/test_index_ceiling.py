"""How much a choice among Jaccard indices can lose, by a second implementation that tries all small tables."""

import itertools

import numpy as np
import pytest
from dpframework_greedy import SerenadeCS

from dpframework import Relation
from dpframework.verify.subject import Subject
from dpframework.verify.witness_replay import witnessed

EPSILON = 6  # of the choice of a pair: .6 of the example's 10
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
    return weights - np.log(np.exp(weights).sum(axis=-1, keepdims=True))


def largest_losses(most: int) -> tuple[float, float]:
    """What a choice loses at most where a row is added and where one is replaced, with up to so many other rows."""
    added = replaced = 0.0
    for shared in itertools.chain(
        *(itertools.combinations_with_replacement(range(len(KINDS)), n) for n in range(most + 1))
    ):
        both, either = BOTH[[*shared]].sum(axis=0), EITHER[[*shared]].sum(axis=0)
        with_row = log_chances(both + BOTH, either + EITHER, 1.5)
        added = max(added, float(np.abs(with_row - log_chances(both, either, 1.5)).max()))
        of_rows = log_chances(both + BOTH, either + EITHER, 2)
        replaced = max(replaced, float((of_rows.max(axis=0) - of_rows.min(axis=0)).max()))
    return added, replaced


def test_no_small_table_loses_more_than_the_ceiling_and_the_witnesses_attain_it() -> None:
    added, replaced = largest_losses(2)
    assert added == pytest.approx(largest_losses(1)[0]) == pytest.approx(0.80324 * EPSILON, abs=1e-4)
    assert replaced == pytest.approx(largest_losses(0)[1]) == pytest.approx(0.69260 * EPSILON, abs=1e-4)
    example = SerenadeCS.examples()["jaccard"]
    for witness, loss in zip(example.witnesses, (added, replaced), strict=True):
        subject = Subject(example.miner, example.schema, witness.relation)
        calibrated = next(step for step in subject.plan.steps() if step.name == "pairs")
        claim = subject.plan.calibration(calibrated).losses.pure.under(witness.relation)
        assert claim == EPSILON
        shown = witnessed(subject, witness, np.random.default_rng(0))
        assert shown.divergence is None
        # the counts have .05 of 10 each, twice, and lose all of it; the rest is the extension's, which has 3
        assert loss + 1 <= shown.loss + 1e-3 <= loss + 1 + 3
    assert [witness.relation for witness in example.witnesses] == list(Relation)
    assert "0.89" in example.loose
    assert 0.6 * added / EPSILON + 0.4 < 0.89
    assert "0.82" in example.loose
    assert 0.6 * replaced / EPSILON + 0.4 < 0.82
