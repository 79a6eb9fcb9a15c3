"""What examples say of the most that can be lost of a loose claim."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpframework.basics import AdaptiveGridMiner
from dpframework.basics.keys_miner import KeysMiner
from dpframework.facts.privacy_losses import Relation
from dpframework.run.miner_base_and_examples import Miner
from dpframework.verify import audit
from dpframework.verify.miners.audit_subject import Subject

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


@pytest.mark.parametrize(("name", "ceiling"), [("plain", 0.85), ("rows-public", 0.9)])
def test_a_grid_reaches_the_ceiling_that_its_first_look_leaves(name: str, ceiling: float) -> None:
    example = AdaptiveGridMiner.examples()[name]
    report = audit(example.miner, example.schema, REPLACE, replays=6000)
    assert report.tightness == pytest.approx(ceiling, rel=1e-9)
    assert f"at most {ceiling:g} of the cost can be lost" in example.loose


@pytest.mark.parametrize(
    ("miner", "relation", "variances", "deltas"),
    [
        # a look at 0.3 of rho 1/8, and a count at the rest; what a count changes under replace-one, twice as much may
        (AdaptiveGridMiner, ADD, (1 / 0.075, 1 / 0.175), ("0.1", "0.03", "0.01")),
        (AdaptiveGridMiner, REPLACE, (1 / 0.0875, 1 / 0.0875), ("0.1", "0.03", "0.01")),
        (KeysMiner, REPLACE, (2, 2), ("0.1",)),
    ],
)
def test_gaussian_noise_loses_what_its_examples_say(
    miner: type[Miner], relation: Relation, variances: tuple[float, ...], deltas: tuple[str, ...]
) -> None:
    """Two counts change by 1 each: all values of their noise as far as 1e-20."""
    example = miner.examples()["zcdp"]
    subject = Subject(example.miner, example.schema, relation, delta=example.delta)
    for delta in deltas:
        claimed = subject.claim_at(Fraction(delta))
        assert claimed is not None
        share = _needed(variances, float(delta)) / float(claimed)
        assert f"{math.ceil(100 * share) / 100:g}" in example.loose


def _needed(variances: tuple[float, ...], delta: float) -> float:
    noise = np.arange(-50, 51)
    losses, chances = np.zeros(1), np.ones(1)
    for variance in variances:
        weights = np.exp(-(noise**2) / (2 * variance))
        losses = np.add.outer(losses, (2 * noise + 1) / (2 * variance)).ravel()
        chances = np.multiply.outer(chances, weights / weights.sum()).ravel()
    low, high = 0.0, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        beyond = float(chances @ np.maximum(0.0, -np.expm1(middle - np.maximum(losses, middle))))
        low, high = (middle, high) if beyond > delta else (low, middle)
    return high
