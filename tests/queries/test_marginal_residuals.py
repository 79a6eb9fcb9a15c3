"""Residuals of marginals: exact, and their sensitivities by brute force over all pairs of rows."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import dpframework as dpf
from dpframework.basics.marginals_workload_noise_and_errors import Workload, all_sets, marginal_of
from dpframework.facts.errors import InputError
from dpframework.queries import Norm, Residuals, residual_changes
from dpframework.queries.residual_changes import change_by_replacement, is_bound, subsets

NORMS = (Norm.SQUARED_L2, Norm.L1, Norm.BLOCKS)


def attribute(name: str, size: int) -> dpf.Attribute:
    return dpf.Boolean(name) if size == 2 else dpf.Categorical(name, [str(v) for v in range(size)])


def query_of(sizes: tuple[int, ...], wanted: list[tuple[int, ...]], norm: Norm, seed: int = 0) -> Residuals:
    """Return the residuals of some sets and of all their subsets, with weights of no symmetry."""
    sets = sorted({part for one in wanted for part in subsets(one)}, key=lambda one: (len(one), one))
    rng = np.random.default_rng(seed)
    weights = [1] * len(sets) if norm is Norm.BLOCKS else rng.integers(1, 9, len(sets)).tolist()
    return Residuals([attribute(f"a{k}", size) for k, size in enumerate(sizes)], sets, weights, norm)


def answer_of_row(query: Residuals, row: tuple[int, ...]) -> Any:
    """Return the answer on a table of one row."""
    counts = []
    for one in query.sets:
        table = np.zeros([query.of[a].size for a in one], dtype=np.int64)
        table[tuple(row[a] for a in one)] = 1
        counts.append(table.ravel())
    return query.answer(np.concatenate(counts))


def length(query: Residuals, change: Any) -> int:
    if query.norm is Norm.SQUARED_L2:
        return int(np.square(change).sum())
    if query.norm is Norm.L1:
        return int(np.abs(change).sum())
    return max(int(np.abs(part).sum()) for part in np.split(change, np.cumsum(query.histograms)[:-1]))


CASES = [
    ((2, 3, 4), [(0, 1), (1, 2)]),
    ((2, 2, 2, 3), [(0, 1, 2), (3,)]),
    ((3, 3, 2), [(0, 1, 2)]),
    ((2, 2, 2, 2, 2), all_sets(5, 2)),
    ((5,), [(0,)]),
    ((2,), [()]),
    ((2, 3, 4, 2), [(0,), (1,), (2,), (3,)]),
]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("sizes", "wanted"), CASES)
def test_declared_sensitivities_are_the_largest_changes(
    sizes: tuple[int, ...], wanted: list[tuple[int, ...]], norm: Norm
) -> None:
    """An answer is a sum over rows: all rows are tried, and all pairs of them."""
    query = query_of(sizes, wanted, norm)
    answers = [answer_of_row(query, row) for row in itertools.product(*map(range, sizes))]
    (declared,) = query.sensitivities
    assert declared.norm is norm
    assert declared.add_or_remove_one == max(length(query, one) for one in answers)
    most = max((length(query, one - other) for one, other in itertools.combinations(answers, 2)), default=0)
    assert declared.change.replace_one == declared.replace_one == most
    assert len(answers[0]) == query.answer_length


@pytest.mark.parametrize("norm", [Norm.SQUARED_L2, Norm.L1])
def test_the_worst_neighbour_is_found_by_number_or_bounded(norm: Norm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among like attributes numbers suffice; they find what all sets of them do, and the bound is never below."""
    for size, number in ((2, 8), (3, 6)):
        of = tuple(attribute(f"a{k}", size) for k in range(number))
        workload = Workload(of, dict.fromkeys(all_sets(number, 2), 1.0), rows_known=False)
        query = (workload.gaussian() if norm is Norm.SQUARED_L2 else workload.laplace()[0]).query
        facts = query.sizes, query.sets, query.weights, norm
        by_number = change_by_replacement(*facts)
        change_by_replacement.cache_clear()
        assert query.sensitivities[0].source.endswith("all sets of attributes that differ were tried")
        with monkeypatch.context() as patched:
            patched.setattr(residual_changes, "_symmetric", lambda *_: False)
            assert change_by_replacement(*facts) == by_number
            change_by_replacement.cache_clear()
            patched.setattr(residual_changes, "MOST_TRIED", 1)
            assert is_bound(*facts[:3])
            assert "tried" not in query.sensitivities[0].source
            assert change_by_replacement(*facts) >= by_number
            assert "added up" in query.sensitivities[0].source
        change_by_replacement.cache_clear()
    pairs = query_of((2,) * 8, all_sets(8, 2), Norm.SQUARED_L2)
    equal = change_by_replacement(pairs.sizes, pairs.sets, (1,) * len(pairs.sets), Norm.SQUARED_L2)
    assert equal == 80  # four or five differ; eight that differ change 32


@pytest.mark.parametrize(
    ("sizes", "sets"),
    [
        *((sizes, [tuple(range(len(sizes)))]) for sizes in ((2, 3), (3, 3), (3, 4, 5), (2, 2, 2), (7,), (2, 6, 4))),
        ((2, 5, 3, 2, 9), [(0,), (1,), (2,), (3,), (4,)]),
        ((2, 5, 3, 2, 3, 4), [(0, 2), (3, 4, 5), (1,)]),
        ((2, 2, 2, 2), [(0, 1), (2, 3)]),
    ],
)
@pytest.mark.parametrize("norm", [Norm.L1, Norm.SQUARED_L2])
def test_of_blocks_that_share_no_attribute_the_largest_changes_add_up(
    sizes: tuple[int, ...], sets: list[tuple[int, ...]], norm: Norm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attribute of fewest values differs alone: of n values that adds the (n - 1)-th of what all others leave."""
    facts = (sizes, tuple(sets), (3, 1, 4, 1, 5)[: len(sets)], norm)
    change_by_replacement.cache_clear()
    added_up = change_by_replacement(*facts)
    with_rows = (sizes, ((), *facts[1]), (9, *facts[2]), norm)  # a row that is replaced changes no number of rows
    assert change_by_replacement(*with_rows) == added_up
    assert not is_bound(*facts[:3])
    monkeypatch.setattr(residual_changes, "MOST_TRIED", 1)
    assert not is_bound(*facts[:3])
    monkeypatch.undo()
    monkeypatch.setattr(residual_changes, "_are_disjoint", lambda _: False)
    change_by_replacement.cache_clear()
    assert change_by_replacement(*facts) == added_up  # all that may differ is tried
    change_by_replacement.cache_clear()


@pytest.mark.parametrize("norm", NORMS)
def test_marginals_are_sums_of_residuals(norm: Norm) -> None:
    query = query_of((2, 3, 4), [(0, 1), (1, 2)], norm)
    schema = dpf.Schema(query.of)
    rng = np.random.default_rng(3)
    codes = [rng.integers(0, size, 500) for size in query.sizes]
    import polars as pl

    columns = {a.name: [a.labels[code] for code in own] for a, own in zip(query.of, codes, strict=True)}
    columns["a0"] = [label == "true" for label in columns["a0"]]
    engine = dpf.InMemory()
    found = query.evaluate(engine, engine.load(dpf.table_from_frame(pl.DataFrame(columns), schema)))
    residuals = dict(zip(query.sets, query.residuals(found), strict=True))
    for one in query.sets:
        wanted = np.zeros([query.sizes[a] for a in one])
        np.add.at(wanted, tuple(codes[a] for a in one), 1 if one else 500)
        assert np.allclose(marginal_of(one, query.sizes, residuals, 0.0), wanted, atol=1e-9)
        for axis in range(len(one)):
            assert np.allclose(residuals[one].sum(axis=axis), 0, atol=1e-9)


def test_the_noise_of_a_residual_has_the_stated_variance() -> None:
    """Propagated exactly: the variance of a linear map of independent numbers."""
    for norm in NORMS:
        query = query_of((2, 3, 5), [(0, 1, 2)], norm)
        unit = np.eye(query.answer_length)
        columns = [np.concatenate([part.ravel() for part in query.residuals(one)]) for one in unit]
        exact = np.square(columns).sum(axis=0)
        stated = query.cell_variances([1.0] * len(query.sets))
        cells = [math.prod(query.sizes[a] for a in one) for one in query.sets]
        assert np.allclose(exact, np.repeat(stated, cells))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"of": [dpf.Categorical("a", ["x"])]}, "two values"),
        ({"sets": [(0,), (0,)]}, "each set once"),
        ({"sets": [(0, 2)]}, "positions"),
        ({"sets": [(1, 0)]}, "increasing"),
        ({"norm": "linf"}, "not in linf"),
        ({"weights": [0]}, "1 to"),
        ({"weights": [1 << 20]}, "1 to"),
    ],
)
def test_wrong_residuals_are_refused(changed: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"of": [attribute("a", 3), attribute("b", 2)], "sets": [(0,)], "weights": [1]} | changed
    with pytest.raises(InputError, match=words):
        Residuals(**arguments)
