"""What queries declare, against their formulas: no less than is claimed, and of the score that runs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.formulas import Cells, Parts, ScoreClaims, as_formula, kernel_of, public, query_problem, scores_of
from dpframework.formulas.largest_change_search import tables_of
from dpframework.plan import Step, walk
from dpframework.plan.claim_standing import covers
from dpframework.queries import QuantileScores
from dpframework.redescriptions import MatchScores
from dpframework.redescriptions.match_scores import GIVEN_CAP
from dpframework.study.plugin_registry import registry


def scored_steps() -> Iterator[tuple[str, dpf.Schema, Any, Any, ScoreClaims]]:
    """Yield the queries of all miners' examples that score by formulas."""
    for name, brought in registry().miners.items():
        for example in brought.component.examples().values():
            for node in walk(example.miner.plan(example.schema)):
                if isinstance(node, Step):
                    for one in node.query.scored_formulas:
                        yield name, example.schema, node.query, node.mechanism, one


def test_queries_declare_no_less_than_is_claimed_of_their_formulas() -> None:
    seen = set()
    for name, schema, query, mechanism, one in scored_steps():
        facts = query.facts()
        if one.name == "entropy":  # of each coordinate of a vector, whose norms are derived by hand
            continue
        for declared in (facts.sensitivity(mechanism.norm), *facts.sensitivities):
            assert covers(facts, declared, one, schema.row_bound, exact=schema.rows is not None), (name, one.name)
            if one.name == "context-scores" and "theorems" in declared.source:  # as published, and twice too large
                continue
            less = attrs.evolve(
                declared,
                **{
                    part: _half(getattr(declared, part))
                    for part in ("add_or_remove_one", "rise", "fall", "replace_one")
                },
            )
            assert not covers(facts, less, one, schema.row_bound, exact=schema.rows is not None), (name, one.name)
        seen.add(one.name)
    assert {"norm", "max", "gini", "information-gain", "associations", "context-scores", "jaccard", "surplus"} <= seen
    assert {"match-scores", "match-scores: a known set", "pair gain", "pair product", "quantile-scores"} <= seen
    assert {"counts of disjoint cells", "bounded-sum"} <= seen


def _half(size: Fraction | None) -> Fraction | None:
    return None if size is None else size / 2


def test_queries_score_as_their_formulas_say() -> None:
    """The query that runs, against its formula: on random neighbours, also large ones."""
    compared = set()
    for name, _, _, _, one in scored_steps():
        if isinstance(one.shape, Parts | Cells):
            assert one.scorer is not None, (name, one.name)
            assert query_problem(one, 20) is None, (name, one.name)
            wrong = attrs.evolve(one, scorer=lambda counts, numbers, true=one.scorer: 1.01 * true(counts, numbers))
            assert query_problem(wrong, 80) is not None, (name, one.name)
            compared.add(one.name)
    assert len(compared) >= 11


@pytest.mark.parametrize("name", ["norm", "max", "gini", "information-gain"])
def test_the_kernel_of_a_criterion_is_its_formula(name: str) -> None:
    """On all tables of up to 8 rows and 3 classes, and on random ones with large counts."""
    from dpframework_trees.criteria import CRITERIA

    criterion, random = CRITERIA[name], np.random.default_rng(5)
    for tables in (tables_of(8, 3), random.integers(0, 10**5, (2000, 4)) * (random.random((2000, 4)) < 0.8)):
        kept = np.array([criterion.kernels.child_score(table) for table in tables])
        largest = np.maximum(tables.sum(axis=1), 1.0)
        assert (abs(kept - criterion.formula.of_parts(tables)) <= 1e-12 * largest * np.log2(largest + 1)).all()
        assert (
            abs(kept - scores_of(criterion.formula, tables[:, None, :])) <= 1e-12 * largest * np.log2(largest + 1)
        ).all()
    assert kernel_of(criterion.formula) is kernel_of(criterion.formula)


def test_the_formula_of_a_quantile_is_the_score_that_runs() -> None:
    query = QuantileScores(dpf.Numeric("age", 0, 20, bins=4), quantile="0.3")
    counts = np.random.default_rng(6).integers(0, 9, query.answer_length)
    (one,) = query.scored_formulas
    assert isinstance(one.shape, Cells)
    below = np.cumsum(counts) - counts
    cells = np.stack([below, counts, counts.sum() - below - counts], axis=1)
    assert np.allclose(query.answer(counts), one.shape.scores(cells))


def test_the_formula_of_a_match_is_the_score_that_runs() -> None:
    schema = dpf.Schema([dpf.Boolean("x", view="left"), dpf.Boolean("y", view="right")])
    rows = np.random.default_rng(7).random((2, 40)) < [[0.5], [0.4]]
    table = dpf.table_from_columns({"x": rows[0].tolist(), "y": rows[1].tolist()}, schema)
    engine = dpf.InMemory()
    for query, inputs in (
        (MatchScores([schema["x"]], [schema["y"]], cap=9), {}),
        (MatchScores([schema["x"]], [schema["y"]], cap=9, given_cap=True), {"cap": 5}),
        (MatchScores([schema["x"]], [schema["y"]], given_cap=True), {"cap": 7}),
        (MatchScores([schema["x"]], [schema["y"]], most=14), {}),
    ):
        scores = query.evaluate(engine, engine.load(table), **inputs)
        one, _ = query.scored_formulas
        assert isinstance(one.shape, Cells)
        formula = Cells(one.shape.cells, one.shape.body.replaced({GIVEN_CAP: as_formula(inputs.get("cap", 0))}))
        for score, same in zip(scores, (rows[0] == rows[1], rows[0] != rows[1]), strict=True):
            cells = [(same & rows[0]).sum(), (same & ~rows[0]).sum(), (~same).sum()]
            assert score == formula.scores(cells)


def test_the_formula_of_a_surplus_is_the_score_that_runs() -> None:
    from dpframework_greedy.surplus_score import Surplus

    both, only = np.random.default_rng(8).integers(0, 60, (2, 200))
    for index in (0.5, 0.75, 1.0):
        score = Surplus(50, index)
        (one,) = score.scored
        assert isinstance(one.shape, Cells)
        formula = Cells(one.shape.cells, one.shape.body.replaced({public("c", "1/2", 1): as_formula(index)}))
        assert np.allclose(score.of_supports(both, both + only), formula.scores(np.stack([both, only], axis=1)))
