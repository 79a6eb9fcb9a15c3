"""The quality of redescriptions, measured by exact supports, Jaccard indices and p-values. Not private.

The reported numbers follow Mihelčić and Miettinen 2023, tables 3 to 5: the share of p-values up to 0.01, the median
true Jaccard index, the median error of the noisy index, and Spearman's correlation of the two indices. Quartiles are
reported too, since the figures of the paper on Serenade show them (Karjalainen, Galbrun and Miettinen 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.lab.evaluation.distinct_redescriptions_and_idle_literals import (
    DIFFERENT,
    are_different,
    count_idle_literals,
)
from dpframework.lab.evaluation.readable_rows_and_folds import columns_of
from dpframework.lab.evaluation.trial_record import NOT_PRIVATE
from dpframework.redescriptions.redescription import Redescription
from dpframework.redescriptions.redescriptions import Redescriptions
from dpframework.results.noisy_count_with_interval import Noisy
from dpframework.tables.coded_table import Table

SIGNIFICANT = 0.01
"""A significant redescription has at most this p-value."""
USEFUL_JACCARD = 0.6
"""A useful redescription has at least this exact Jaccard index."""
USEFUL_SHARE = 0.7
"""Each side of a useful redescription holds for at most this share of the rows."""
_BLOCK = 1 << 13  # how many rows are unpacked at a time when sets of rows are compared

Floats = NDArray[np.float64]


def exact_counts(found: Iterable[Redescription], table: Table) -> list[Redescription]:
    """Return redescriptions with exact counts, in the same order. Not private.

    Raises
    ------
    InputError
        If a description does not fit the table's schema.
    """
    columns = columns_of(table)
    exact = []
    for one in found:
        left, right = one.left.holds(columns), one.right.holds(columns)
        both, on_left, on_right = (int(np.count_nonzero(rows)) for rows in (left & right, left, right))
        exact.append(
            Redescription(
                one.left,
                one.right,
                both=Noisy(both, 0),
                left_only=Noisy(on_left - both, 0),
                right_only=Noisy(on_right - both, 0),
                rows=Noisy(columns.rows, 0),
            )
        )
    return exact


@final
@attrs.frozen(eq=False)
class RedescriptionQuality:
    """The quality of redescriptions on the rows themselves. All arrays have shape (redescriptions,). Not private.

    Attributes
    ----------
    noisy
        The noisy Jaccard index that each redescription shows.
    true
        The exact Jaccard index of each redescription.
    supports
        The number of rows for which both sides of each redescription hold.
    p_values
        The p-values, from exact counts (see `Redescription.p_value`).
    rows
        The number of rows of the table.
    useful
        Whether each redescription is useful. Four conditions must hold: its p-value is at most `SIGNIFICANT`; each of
        its sides holds for at most a share `USEFUL_SHARE` of the rows; its exact index is at least `USEFUL_JACCARD`;
        and its rows have a Jaccard index below `DIFFERENT` with the rows of each useful redescription before it.
    different
        Whether each redescription is useful and a finding of its own (see `distinct_redescriptions_and_idle_literals`).
    nothing
        How many literals of each redescription say nothing (see `distinct_redescriptions_and_idle_literals`).
    """

    noisy: Floats
    true: Floats
    supports: Floats
    p_values: Floats
    rows: int
    useful: NDArray[np.bool_]
    different: NDArray[np.bool_]
    nothing: NDArray[np.int64]

    @property
    def empty(self) -> float:
        """The share of redescriptions with a literal that says nothing. NaN without redescriptions."""
        return float(np.mean(self.nothing > 0)) if len(self.nothing) else math.nan

    @property
    def significant(self) -> float:
        """The share of redescriptions with a p-value up to `SIGNIFICANT`. NaN without redescriptions."""
        return float(np.mean(self.p_values <= SIGNIFICANT)) if len(self.true) else math.nan

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """The quartiles of the true Jaccard indices. NaN without redescriptions."""
        if not len(self.true):
            return math.nan, math.nan, math.nan
        low, middle, high = np.quantile(self.true, [0.25, 0.5, 0.75])
        return float(low), float(middle), float(high)

    @property
    def error(self) -> float:
        """The median absolute difference of noisy and true Jaccard indices. NaN without redescriptions."""
        return float(np.median(np.abs(self.noisy - self.true))) if len(self.true) else math.nan

    @property
    def spearman(self) -> float:
        """Spearman's correlation of noisy and true Jaccard indices.

        NaN for fewer than three redescriptions, or if all noisy indices or all true indices are equal.
        """
        if len(self.true) < 3 or min(np.ptp(self.true), np.ptp(self.noisy)) == 0:
            return math.nan
        from scipy.stats import spearmanr

        return float(spearmanr(self.noisy, self.true).statistic)

    def to_dict(self) -> dict[str, float]:
        """Return the measures by name."""
        low, middle, high = self.quartiles
        return {
            "count": float(len(self.true)),
            "useful": float(self.useful.sum()),
            "different": float(self.different.sum()),
            "empty": self.empty,
            "significant": self.significant,
            "jaccard": middle,
            "jaccard_low": low,
            "jaccard_high": high,
            "error": self.error,
            "spearman": self.spearman,
            "support": float(np.median(self.supports)) if len(self.supports) else math.nan,
        }

    def __str__(self) -> str:
        if not len(self.true):
            return f"no redescriptions\n{NOT_PRIVATE}"
        low, middle, high = self.quartiles
        return (
            f"{len(self.true)} redescriptions, {self.significant:.0%} with a p-value up to {SIGNIFICANT}; "
            f"{self.useful.sum()} useful, {self.different.sum()} different findings; "
            f"{self.empty:.0%} with a literal that says nothing\n"
            f"true Jaccard index: median {middle:.2f}, quartiles {low:.2f} and {high:.2f}\n"
            f"noisy Jaccard index: median error {self.error:.3f}, Spearman correlation {self.spearman:.2f}\n"
            f"{NOT_PRIVATE}"
        )

    def __repr__(self) -> str:
        return f"<quality of {len(self.true)} redescriptions: not private>"


def redescription_quality(found: Iterable[Redescription], table: Table) -> RedescriptionQuality:
    """Measure redescriptions on the rows that they were mined from. Not private.

    Raises
    ------
    InputError
        If a description does not fit the table's schema.
    """
    shown, columns = list(found), columns_of(table)
    exact = exact_counts(shown, table)
    most, useful = USEFUL_SHARE * table.rows, np.zeros(len(exact), dtype=np.bool_)

    before: list[NDArray[np.bool_]] = []
    for k, one in enumerate(exact):
        sides = [side.value for side in (one.left_support, one.right_support) if side is not None]
        if one.p_value is None or one.p_value > SIGNIFICANT or one.jaccard < USEFUL_JACCARD or max(sides) > most:
            continue
        rows = one.left.holds(columns) & one.right.holds(columns)
        if all((rows & other).sum() < DIFFERENT * (rows | other).sum() for other in before):
            useful[k] = True
            before.append(rows)
    return RedescriptionQuality(
        np.array([one.jaccard for one in shown], dtype=np.float64),
        np.array([one.jaccard for one in exact], dtype=np.float64),
        np.array([one.both.value for one in exact], dtype=np.float64),
        np.array([one.p_value for one in exact], dtype=np.float64),
        table.rows,
        useful,
        are_different(shown, useful, columns),
        count_idle_literals(shown, columns),
    )


@final
@attrs.frozen(eq=False)
class Matching:
    """The nearest found redescription for each redescription of a reference set. Not private.

    The similarity of two redescriptions is the Jaccard index of the sets of rows that they hold for, whatever their
    descriptions are.

    Attributes
    ----------
    best
        The position of the nearest found redescription for each one of the reference set, shape (reference,). It is -1
        if nothing was found.
    similarity
        The similarity of that nearest redescription, in [0, 1], shape (reference,).
    """

    best: NDArray[np.int64]
    similarity: Floats

    @property
    def mean(self) -> float:
        """The mean similarity. NaN if the reference set is empty."""
        return float(self.similarity.mean()) if len(self.similarity) else math.nan

    def recovered(self, threshold: float = 0.8) -> float:
        """Return the share of the reference set with a similarity of `threshold` or more. NaN if the set is empty."""
        return float(np.mean(self.similarity >= threshold)) if len(self.similarity) else math.nan

    def __str__(self) -> str:
        return (
            f"of {len(self.best)} reference redescriptions, {self.recovered():.0%} recovered (similarity 0.8 or more); "
            f"mean similarity {self.mean:.2f}\n{NOT_PRIVATE}"
        )

    def __repr__(self) -> str:
        return f"<matching of {len(self.best)} reference redescriptions: not private>"


def match_redescriptions(found: Sequence[Redescription], reference: Sequence[Redescription], table: Table) -> Matching:
    """Find the nearest redescription for each in a reference set (such as a set mined without privacy). Not private.

    Raises
    ------
    InputError
        If a description does not fit the table's schema.
    """
    if not len(found) or not len(reference):
        return Matching(np.full(len(reference), -1), np.zeros(len(reference)))
    first, second = _supports(reference, table), _supports(found, table)
    both = np.zeros((len(reference), len(found)))
    for start in range(0, table.rows, _BLOCK):
        block = slice(start // 8, (start + _BLOCK) // 8)
        one, other = (np.unpackbits(bits[:, block], axis=1).astype(np.float32) for bits in (first, second))
        both += one @ other.T
    sizes = [np.unpackbits(bits, axis=1).sum(axis=1, dtype=np.float64) for bits in (first, second)]
    either = sizes[0][:, None] + sizes[1] - both
    similarity = np.divide(both, either, out=np.zeros_like(both), where=either > 0)
    best = similarity.argmax(axis=1)
    return Matching(best, similarity[np.arange(len(best)), best])


def _supports(redescriptions: Sequence[Redescription], table: Table) -> NDArray[np.uint8]:
    """Return the rows for which each redescription holds, as packed bits, shape (redescriptions, rows / 8)."""
    columns = columns_of(table)
    return np.stack([np.packbits(one.left.holds(columns) & one.right.holds(columns)) for one in redescriptions])


def select_redescriptions(found: Redescriptions, which: str | float) -> list[Redescription]:
    """Return all redescriptions, the trusted ones, those that pruning leaves, or those with enough noisy support.

    Parameters
    ----------
    found
        The result of a miner.
    which
        "all", "trusted" (those with a star), "pruned" (see `Redescriptions.pruned`), or a number, for redescriptions
        whose noisy support is at least this number of rows.

    Raises
    ------
    InputError
        If `which` is none of these.
    """
    if which == "all":
        return list(found)
    if which == "trusted":
        return [one for one, sure in zip(found, found.starred, strict=True) if sure]
    if which == "pruned":
        return list(found.pruned())
    if isinstance(which, int | float) and not isinstance(which, bool):
        return [one for one in found if one.support.value >= which]
    raise InputError(
        f"keep is {which!r}; accepted are 'all', 'trusted', 'pruned', and a number (the smallest noisy support)"
    )
