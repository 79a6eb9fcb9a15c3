"""Costs of errors in DP-ID3: sensitivities by brute force and by proof, scores, and what is gained."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_trees import DPID3
from dpframework_trees.criteria import CRITERIA, Criterion, KnownRows
from dpframework_trees.queries import SplitScores, ThresholdScores, table_scores
from dpframework_trees.splits import Candidates
from proving import needs_solvers

import dpframework as dpf
from dpframework.formulas import audit, prove, query_problem

SCHEMA = dpf.Schema([dpf.Boolean("wet"), dpf.Numeric("age", 0, 8, cuts=[3, 5]), dpf.Categorical("ill", ["no", "yes"])])
KNOWN = KnownRows(100, exact=False)


def with_costs(*costs: int) -> Criterion:
    return attrs.evolve(CRITERIA["max"], costs=costs)


def table(rows: list[tuple[bool, float, str]]) -> dpf.Table:
    names = ("wet", "age", "ill")
    return dpf.table_from_columns(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), SCHEMA)


@pytest.mark.parametrize("costs", [(1, 3), (5, 2), (2, 2, 7)])
def test_no_row_moves_a_score_by_more_than_the_largest_cost_and_one_moves_it_by_that(costs: tuple[int, ...]) -> None:
    """Of two children with up to two rows of each class: a row that is added, and one that is replaced."""
    criterion, classes = with_costs(*costs), len(costs)
    declared = criterion.sensitivity(None)
    score = criterion.kernels.child_score
    spots = np.eye(2 * classes, dtype=np.int64)

    def of(counts: np.ndarray) -> float:
        return sum(score(child) for child in criterion.weigh(counts.reshape(2, classes)))

    added, replaced = [], 0.0
    for counts in itertools.product(range(3), repeat=2 * classes):
        before, after = of(np.array(counts)), [of(np.array(counts) + spot) for spot in spots]
        added += [one - before for one in after]
        replaced = max(replaced, max(after) - min(after))
    assert (max(added), min(added), replaced) == (declared.rise, declared.fall, declared.replace_one)
    assert (declared.rise, declared.fall) == (max(costs), 0)


def test_queries_score_splits_thresholds_and_noisy_tables_by_costs() -> None:
    rng = np.random.default_rng(1)
    wet, age, ill = rng.random(90) < 0.5, rng.uniform(0, 8, 90), rng.random(90) < 0.3
    given = table([(bool(w), float(a), "yes" if i else "no") for w, a, i in zip(wet, age, ill, strict=True)])
    criterion, engine = with_costs(1, 3), dpf.InMemory()
    loaded = engine.load(given)

    def plain(side: np.ndarray) -> float:
        return sum(max(int((~ill & one).sum()), 3 * int((ill & one).sum())) for one in (side, ~side))

    candidates = Candidates.of_schema(SCHEMA, ["wet", "age"], multiway=False, cuts=True)
    query = SplitScores(criterion, SCHEMA["ill"], KNOWN, len(candidates))
    found = query.evaluate(engine, loaded, candidates=candidates)
    assert sorted(found) == sorted(map(plain, (wet, age < 3, age < 5)))
    assert query.text == "max score (costs: no 1, yes 3) of each split for ill"
    tables = {
        name: np.array([[(~ill & (code == k)).sum(), (ill & (code == k)).sum()] for k in range(size)])
        for name, code, size in (("wet", wet, 2), ("age", (age >= 3).astype(int) + (age >= 5), 3))
    }
    assert (table_scores(candidates, tables, criterion) == found).all()
    thresholds = ThresholdScores(criterion, SCHEMA["ill"], KNOWN, SCHEMA["age"])
    pieces = thresholds.evaluate(engine, loaded, lower=0.0, upper=8.0)
    assert pieces.scores.tolist() == [plain(age < cut) for cut in [0.0, *np.sort(age + 1e-9)]]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"criterion": "max", "costs": [1, 0]}, "whole numbers from 1 to 1000"),
        ({"criterion": "max", "costs": [1, 2.5]}, "whole numbers from 1 to 1000"),
        ({"criterion": "max", "costs": []}, "whole numbers from 1 to 1000"),
        ({"criterion": "norm", "costs": [1, 3]}, "costs need the criterion 'max', not 'norm'"),
        ({"criterion": "max", "costs": [1, 2, 3]}, "costs has 3 numbers; 'ill' has 2 classes: no, yes"),
    ],
)
def test_costs_that_cannot_be_are_refused_in_a_sentence(given: dict[str, Any], says: str) -> None:
    with pytest.raises(dpf.InputError, match=says):
        DPID3("ill", 1, **given).plan(SCHEMA)


def test_costs_find_the_split_that_errors_of_one_class_need() -> None:
    """Of 400 wet rows 150 are ill, of 600 others none. With equal costs no leaf says "ill", and no split gains."""
    rows = [(k < 400, float(k % 8), "yes" if k < 150 else "no") for k in range(1000)]
    study = dpf.Study(SCHEMA, epsilon=100)
    study.add("tree", DPID3("ill", 100, max_depth=1, criterion="max", costs=(1, 3)))
    tree = study.run(table(rows), seed=3)["tree"].tree
    assert "wet" in str(tree.rules()[0].description)
    wet = table([(True, 1.0, "no")])
    assert tree.predict(wet).tolist() == ["no"]
    assert tree.predict(wet, costs=(1, 3)).tolist() == ["yes"]
    with pytest.raises(dpf.InputError, match="costs has 3 numbers; 'ill' has 2 classes"):
        tree.predict(wet, costs=(1, 1, 1))


@needs_solvers
def test_the_claims_of_costs_are_proved_and_audited() -> None:
    scored = with_costs(2, 1, 7).formula_claims
    for proof in prove(scored.shape, scored.claims):
        assert proof.verdict == "proved", proof.problem
        assert proof.argument is not None
        assert list(audit(proof.argument)) == []
    assert query_problem(scored) is None
    assert query_problem(attrs.evolve(scored, scorer=lambda counts, _: float(counts.max()))) is not None
