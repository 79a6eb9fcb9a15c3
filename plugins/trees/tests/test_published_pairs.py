"""How much a choice among pairs of trees by the published score can lose, by a second implementation."""

import itertools

import numpy as np
import pytest
from dpframework_trees import MCMCTreePair
from dpframework_trees.tree_pairs import largest_replacement

from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.author_witness_replay import replay_witness

ANIMALS, PLACES = list(itertools.product(range(2), range(2))), list(itertools.product(range(3), range(3)))
KINDS = list(itertools.product(ANIMALS, PLACES))
FIRST = np.array([[rain == 0, rain <= 1, zone == 0, zone == 1, zone == 2] for _, (rain, zone) in KINDS]).astype(int)
SECOND = np.array([animals for animals, _ in KINDS])
WOLF = np.array([wolf for (wolf, _), _ in KINDS])


def _cells(leaves: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The one cell of each kind of row, shape (kinds, ..., leaves, classes)."""
    return np.stack([np.stack([(leaves == i) & (classes == j) for j in range(2)], -1) for i in range(2)], -2) * 1.0


OF_FIRST = _cells(FIRST, WOLF[:, None])  # (kinds, first tests, leaves, classes)
OF_PAIR = _cells(SECOND[:, None, :], FIRST[:, :, None])  # (kinds, first tests, second tests, leaves, leaves)


def _purity(counts: np.ndarray) -> np.ndarray:
    return ((counts**2).sum(-1) / np.maximum(counts.sum(-1), 1)).sum(-1)


def log_chances(of_first: np.ndarray, of_pair: np.ndarray, rows: int) -> np.ndarray:
    """The logarithm of the chance of each pair of trees, where it costs an epsilon of 1."""
    first, second = _purity(of_first)[..., None] / max(rows, 1), _purity(of_pair) / max(rows, 1)
    weights = (first * (1 + second) / 2).reshape(*of_first.shape[:-3], -1) / 2
    return weights - np.log(np.exp(weights).sum(-1, keepdims=True))


def largest_losses(others: int) -> tuple[float, float]:
    """What a choice loses at most where a row is added and where one is replaced, beside so many other rows."""
    added = replaced = 0.0
    for shared in itertools.combinations_with_replacement(range(len(KINDS)), others):
        of_first, of_pair = OF_FIRST[[*shared]].sum(0), OF_PAIR[[*shared]].sum(0)
        with_row = log_chances(of_first + OF_FIRST, of_pair + OF_PAIR, others + 1)
        added = max(added, float(np.abs(with_row - log_chances(of_first, of_pair, others)).max()))
        replaced = max(replaced, float((with_row.max(0) - with_row.min(0)).max()))
    return added, replaced


def test_no_small_table_loses_more_than_the_witnesses_and_no_large_one_more_than_the_ceilings() -> None:
    """Other rows up to two are tried. For more, `redescribe/witnesses.py` bounds how far scores move apart."""
    small = [max(losses) for losses in zip(*map(largest_losses, range(3)), strict=True)]

    def added(rows: int) -> float:
        """How far two scores move apart at most, in rows + 1 times a half, where a row comes to so many."""
        purity, n = (rows - 1) / (rows + 1), rows
        falls = purity / 2 + (n * (2 * purity + 1) - purity**2) / (2 * (n + 1))
        return (1 + falls + 5 / 8) / (n + 1) / 2

    large = [max(map(added, range(3, 50))), max(map(largest_replacement, range(4, 50)))]
    assert large == pytest.approx([0.325, 0.417], abs=1e-3)
    example = MCMCTreePair.examples()["published"]
    for witness, loss, bound, ceiling in zip(example.witnesses, small, large, (0.67, 0.71), strict=True):
        shown = replay_witness(
            Subject(example.miner, example.schema, witness.relation), witness, np.random.default_rng(0)
        )
        assert shown.divergence is None
        assert shown.loss == pytest.approx(1 + loss, abs=1e-4)  # the counts have 1, and lose all of it
        assert f"{ceiling} of the claim" in example.loose or f"{ceiling} if a row is replaced" in example.loose
        assert 0.9 * ceiling < shown.loss / 2 < max(1 + loss, 1 + bound) / 2 < ceiling
