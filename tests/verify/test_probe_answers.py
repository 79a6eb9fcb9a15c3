"""The answers that a mechanism's loss is measured on: of every kind that it takes, and as far apart as is declared."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy import Relation
from dpframework.mechanisms import Mechanism
from dpframework.queries import KeyCounts, Norm, PiecewiseScores, QueryFacts
from dpframework.verify.answers import answers_of, shifts

SCORES = ["integer scores, monotonic", "integer scores, two-sided", "real scores, monotonic", "real scores, two-sided"]
TAKEN: dict[str, tuple[Mechanism, list[str]]] = {
    "discrete-laplace": (
        dpf.mechanisms.DiscreteLaplace(1),
        ["a count", "counts of disjoint cells", "a sum of weights up to 3"],
    ),
    "laplace": (
        dpf.mechanisms.Laplace(1),
        ["a count", "counts of disjoint cells", "a sum of weights up to 3", "a real number"],
    ),
    "gaussian": (
        dpf.mechanisms.Gaussian(1),
        ["a count", "counts of disjoint cells", "a sum of weights up to 3", "a real number"],
    ),
    "k-norm": (dpf.mechanisms.KNorm(1), ["two histograms of the same rows"]),
    "block-norm": (dpf.mechanisms.BlockNorm(1), ["two blocks of numbers"]),
    "permute-and-flip": (dpf.mechanisms.PermuteAndFlip(1), SCORES),
    "exponential": (dpf.mechanisms.Exponential(1), SCORES),
    "exponential-interval": (dpf.mechanisms.ExponentialInterval(1), SCORES),
    "partition-selection": (
        dpf.mechanisms.PartitionSelection(1, "1e-3"),
        ["a count", "counts of disjoint cells", "keys that nobody lists"],
    ),
}


def lengths(facts: QueryFacts, change: Any) -> dict[Norm, float]:
    """The length of a change in each norm."""
    size = np.abs(np.asarray(change, dtype=float))
    found = {Norm.L1: size.sum(), Norm.SQUARED_L2: (size**2).sum(), Norm.LINF: size.max()}
    if facts.histograms:
        parts = np.split(size, np.cumsum(facts.histograms)[:-1])
        found |= dict.fromkeys((Norm.HISTOGRAMS, Norm.BLOCKS), max(part.sum() for part in parts))
    return found


@pytest.mark.parametrize("name", TAKEN)
def test_a_mechanism_is_asked_with_each_kind_of_answer_that_it_takes(name: str) -> None:
    mechanism, texts = TAKEN[name]
    assert mechanism.name == name
    assert [asked.facts.text for asked in answers_of(mechanism)] == texts


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("name", TAKEN)
def test_answers_differ_by_as_much_as_is_declared_and_by_no_more(name: str, relation: Relation) -> None:
    mechanism, _ = TAKEN[name]
    for asked in answers_of(mechanism):
        calibration = mechanism.calibrate(asked.facts, relation)
        if calibration is None:
            assert (name, relation) == ("k-norm", Relation.ADD_OR_REMOVE_ONE)
            continue
        furthest: dict[Norm, float] = {}
        for one, other in asked.pairs(mechanism, calibration, relation):
            if isinstance(one, KeyCounts):
                before, after = (dict(zip(keys.keys, keys.counts.tolist(), strict=True)) for keys in (one, other))
                change: Any = [after.get(key, 0) - before.get(key, 0) for key in {*before, *after}]
            elif isinstance(one, PiecewiseScores):
                change = other.scores - one.scores
            else:
                assert one.dtype.kind == other.dtype.kind == ("i" if asked.facts.integer else "f")
                change = other - one
            for norm, length in lengths(asked.facts, change).items():
                furthest[norm] = max(furthest.get(norm, 0.0), length)
        for declared in asked.facts.sensitivities:
            most = declared.change.under(relation)
            assert most is not None
            assert furthest[declared.norm] == pytest.approx(float(most), rel=1e-5)


@pytest.mark.parametrize("relation", Relation)
def test_changes_of_whole_numbers_are_all_that_are_as_large_as_may_be_up_to_their_sign(relation: Relation) -> None:
    for mechanism, size in ((TAKEN["discrete-laplace"][0], 1), (TAKEN["gaussian"][0], 2), (TAKEN["exponential"][0], 3)):
        for asked in answers_of(mechanism):
            if not asked.facts.integer:
                continue
            own = min(size, asked.facts.answer_length or size)
            found = {tuple(map(int, change)) for change in shifts(asked.facts, relation, own)}
            expected = set()
            for change in itertools.product(range(-9, 10), repeat=own):
                if not any(change) or next(step for step in change if step) < 0:
                    continue
                told = lengths(asked.facts, change)
                ratios = [
                    Fraction(told[s.norm]) / bound
                    for s in asked.facts.sensitivities
                    if (bound := s.change.under(relation))
                ]
                spread = max(change) - min(change)
                ratios += [
                    spread / bound
                    for s in asked.facts.sensitivities
                    if s.norm is Norm.LINF and (bound := s.spread.under(relation))
                ]
                if max(ratios) == 1:
                    expected.add(change)
            assert found == expected
