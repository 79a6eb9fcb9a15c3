"""Serenade in all its variants, through the conformance suites that any plugin goes through."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from dpframework_greedy import SerenadeCS, SerenadeES
from dpframework_greedy.language import Language
from dpframework_greedy.noisy_row_scores import OpenSurplus, RelativeScore
from dpframework_greedy.queries import ExtensionScores, PairScores, RedescriptionCells
from dpframework_greedy.scores import Score
from dpframework_greedy.successive_choices import CandidatePool, Group, SuccessiveExponential
from dpframework_greedy.surplus_score import Surplus

import dpframework as dpf
from dpframework.queries import Norm, QueryFacts, Sensitivity
from dpframework.verify.conformance_suites import MechanismConformance, MinerConformance, QueryConformance
from dpframework.verify.mechanisms.probe_query_answers import Probe

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("wolf", view="left"),
        dpf.Numeric("height", 0, 9, cuts=[3, 6], view="left", missing=True),
        dpf.Numeric("rain", 0, 8, cuts=[4], view="right"),
        dpf.Categorical("zone", ["north", "middle", "south"], view="right"),
    ]
)
LANGUAGE = Language.of_schema(SCHEMA)
GROWN = LANGUAGE.extend(LANGUAGE.pair(1, 0), 3)
POOL = ((LANGUAGE.pair(0, 1), 0.9), (GROWN, 0.6))


class Toy(CandidatePool):
    """Two groups of scores, in steps of the noise's scale; a chosen candidate's score falls by one step."""

    def __init__(self, step: float, scores: tuple[tuple[float, ...], ...] = ((0, 1, 2), (1.5, -1))) -> None:
        self.step, self.own_scores = step, scores

    def groups(self) -> list[Group]:
        return [Group(k, scores) for k, scores in enumerate(self.own_scores)]

    def scores(self, group: Group, unit: float) -> tuple[np.ndarray, np.ndarray]:
        scores = np.rint(np.array(self.own_scores[group.number]) * self.step / unit).astype(np.int64)
        return np.arange(len(scores)), scores

    def log_weights(self, groups, unit: float, scale: float) -> np.ndarray:
        logs = [scale * np.log(np.exp(self.scores(group, unit)[1] / scale).sum()) for group in groups]
        return np.rint(logs).astype(np.int64)

    def after(self, group: Group, position: int) -> Toy:
        scores = [list(own) for own in self.own_scores]
        scores[group.number][position] -= 1
        return Toy(self.step, tuple(map(tuple, scores)))


FACTS = QueryFacts("toy", "toy pool", (), False, 5, [Sensitivity(Norm.LINF, 1, fall=0, source="a probe")])


JACCARD = 0.56  # 0.75 can be lost, or 0.6 if a row is replaced, see `Example.loose`


class TestSerenadeCS(MinerConformance):
    miner = SerenadeCS
    replays = 120
    min_tightness: ClassVar = {"jaccard": JACCARD}


class TestSerenadeES(MinerConformance):
    miner = SerenadeES
    replays = 200
    min_tightness: ClassVar = {"jaccard": JACCARD}


class TestQueries(QueryConformance):
    pairs = 350
    # The pool's lowest index to be surpassed is 0.6: a rise of 0.4, where 0.5 is declared for any index. For
    # "extensions, jaccard" two of eight seeds, and some versions of Hypothesis, find no more than 2/3; the others all.
    # For "pairs, counted rows" .95 is declared for any bounds if a row is replaced, and at these it is .63.
    min_tightness: ClassVar = {"extensions, surplus": 0.75, "extensions, jaccard": 0.65, "pairs, counted rows": 0.6}
    queries: ClassVar = {
        "pairs": (PairScores(LANGUAGE, Score.lowest(3, 12)), SCHEMA, {}),
        "pairs, jaccard": (PairScores(LANGUAGE, Score()), SCHEMA, {}),
        "extensions": (ExtensionScores(LANGUAGE, Score.lowest(2, 9), 2, 1), SCHEMA, {"pool": POOL}),
        "extensions, jaccard": (ExtensionScores(LANGUAGE, Score(), 2, 1), SCHEMA, {"pool": POOL}),
        "extensions, surplus": (ExtensionScores(LANGUAGE, Surplus(9), 2, 1), SCHEMA, {"pool": POOL}),
        "extensions, surplus over little": (
            ExtensionScores(LANGUAGE, Surplus(9), 1, 1),
            SCHEMA,
            {"pool": [(GROWN, 0.0)]},
        ),
        "pairs, counted rows": (PairScores(LANGUAGE, RelativeScore()), SCHEMA, {"supports": (1, 7)}),
        "extensions, counted rows": (
            ExtensionScores(LANGUAGE, OpenSurplus(), 1, 1),
            SCHEMA,
            {"pool": [(GROWN, 0.0)], "supports": (2, 9)},
        ),
        "cells": (RedescriptionCells(), SCHEMA, {"redescribed": GROWN}),
    }


class TestSuccessiveExponential(MechanismConformance):
    mechanisms: ClassVar = [
        SuccessiveExponential(2),
        SuccessiveExponential(3, rounds=3),
        SuccessiveExponential(3, 3, max_age=0),
    ]
    probes: ClassVar = [Probe(FACTS, Toy)]


def test_replays_are_of_the_exponential_mechanism_on_all_candidates_of_each_round() -> None:
    mechanism = SuccessiveExponential(3, rounds=2)
    calibration = mechanism.calibrate(FACTS, dpf.Relation.ADD_OR_REMOVE_ONE)
    assert calibration is not None
    b = float(calibration.scale)
    scores = np.array([0, 1, 2, 1.5, -1])
    first = scores[3] - np.log(np.exp(scores).sum())
    scores[3] -= 1
    second = scores[2] - np.log(np.exp(scores).sum())
    found = mechanism.log_density(Toy(b), np.array([[1, 0], [0, 2]]), calibration)
    assert found == pytest.approx(first + second, abs=1e-4)
    assert mechanism.log_density(Toy(b), np.array([[1, 0], [0, 3]]), calibration) == -np.inf
    assert mechanism.log_density(Toy(b), np.array([[1, 0]]), calibration) == -np.inf


def test_losses_are_those_of_every_round() -> None:
    mechanism = SuccessiveExponential("0.8", rounds=4)
    for relation in dpf.Relation:
        calibration = mechanism.calibrate(FACTS, relation)
        assert calibration is not None
        assert calibration.losses.pure.under(relation) == Fraction(4, 5)
        assert calibration.losses.zcdp.under(relation) == 4 * Fraction(1, 5) ** 2 / 8
