"""Queries for the distances of marginals from a model, by which a marginal is selected, and for that marginal's counts.

All marginals that may be selected are counted once per block of rows. The counts are kept as long as the block.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, as_attributes
from dpframework.formulas import Cells, ScoreClaims, absolute, cells, public, score_claims
from dpframework.queries import CandidateScores, CellCounts, Norm, Sensitivity
from dpframework.tables import Block, Crosstab, JointCounts
from dpframework_tables.junction import Set
from dpframework_tables.merging import Merging

Integers = NDArray[np.int64]


def _sets(given: Iterable[Iterable[int]]) -> tuple[Set, ...]:
    return tuple(tuple(one) for one in given)


_CELLS = cells("left", "entered")
MOST_EXPECTED = 2**31  # more rows than any cell of a table has
_EXPECTED = [public(name, 0, MOST_EXPECTED) for name in ("expected_left", "expected_entered")]


def _off(counts: NDArray[Any], expected: NDArray[Any]) -> NDArray[Any]:
    """Return by how much each count differs from its expected count, which is public."""
    return np.asarray(np.abs(counts.astype(np.int64) - expected))


def _whole(expected: NDArray[np.floating[Any]]) -> Integers:
    """Round expected counts to whole numbers in the range of the claim, so that no distance overflows."""
    return np.asarray(np.rint(np.clip(np.nan_to_num(expected, nan=0.0), 0, MOST_EXPECTED)).astype(np.int64))


def _distance(counts: Integers, parameters: Mapping[str, Any]) -> float:
    return float(_off(counts, np.array([float(parameters[str(one)]) for one in _EXPECTED])).sum())


_DISTANCE = score_claims(
    "model-distance",
    Cells(_CELLS, absolute(_CELLS[0] - _EXPECTED[0]) + absolute(_CELLS[1] - _EXPECTED[1])),
    1,
    1,
    2,
    _distance,
)

_COUNTED: weakref.WeakKeyDictionary[Block, dict[object, Integers]] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


@final
@attrs.frozen
class ModelDistances(CandidateScores):
    """For each of some marginals, the l1 distance from a model's counts, minus what noise would add to it.

    The inputs at run time are the model, the marginals that may be selected (`possible`, their positions in `sets`) and
    the error that noise makes in a cell (`noise`, in rows). It is subtracted once for each cell of a marginal. The
    model is given in one of two ways. The first is the rows of each value of each attribute (`marginals`, one attribute
    after another); attributes are then taken to be independent. The second is rows drawn from the model (`drawn`, codes
    of shape (rows, attributes)), which stand for `rows_meant` rows. With `groups` (the group of each code, one
    attribute after another), marginals and model count groups (see `merging`).

    Attributes
    ----------
    of
        The attributes of the marginals.
    sets
        The marginals that may be selected, each as increasing positions in `of`.
    """

    name = "model-distances"
    integer = True
    of: tuple[Attribute, ...] = attrs.field(converter=as_attributes)
    sets: tuple[Set, ...] = attrs.field(converter=_sets)

    @property
    def text(self) -> str:
        """Say how many marginals are compared with the model."""
        return f"distance of each of {self.answer_length:,} marginals from a model"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes."""
        return tuple(a.name for a in self.of)

    @property
    def answer_length(self) -> int:
        """The most scores of an answer, one for each marginal."""
        return len(self.sets)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """Return the sensitivity, which is 1 when a row is added or removed and 2 when one is replaced.

        A score is the sum over a marginal's cells of `|count - expected|`, minus a public number. The expected counts
        and the groups follow from releases and public randomness, so they are the same on both tables. An added row is
        in one cell of each marginal, whose count it changes by 1. So a score rises or falls by at most 1, and one score
        may rise while another falls. A replaced row changes two counts of a marginal, or none.
        """
        source = "an l1 distance from a public table: one cell changes by 1, or two do"
        return (Sensitivity(Norm.LINF, 1, 2, source=source),)

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The claim about the two cells that a replaced row is in, before and after. It changes no other cell."""
        return (_DISTANCE,)

    def candidates(self, **inputs: Any) -> Sequence[tuple[str, ...]]:
        """Return the marginals that may be selected, as names of attributes."""
        return [tuple(self.of[a].name for a in self.sets[k]) for k in inputs["possible"]]

    def count(self, block: Block, **inputs: Any) -> Integers:
        """Return this block's counts of all marginals, one after another."""
        merging = _merging(self.of, inputs)
        key = (self.of, self.sets, merging.flat.tobytes())
        with _LOCK:
            kept = _COUNTED.setdefault(block, {})
            if key in kept:
                return kept[key]
        found = _join([merging.table(Crosstab([self.of[a] for a in one]).count(block), one) for one in self.sets])
        found.flags.writeable = False
        with _LOCK:
            kept[key] = found
        return found

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of each marginal, and how their counts are merged and joined."""
        merging = _merging(self.of, inputs)

        def merged(counts: Sequence[Integers]) -> Integers:
            return _join([merging.table(own, one) for own, one in zip(counts, self.sets, strict=True)])

        return JointCounts([Crosstab([self.of[a] for a in one]) for one in self.sets], merged)

    def answer(self, counts: Integers, **inputs: Any) -> Integers:
        """Return the scores of the marginals that may be selected."""
        sizes = _merging(self.of, inputs).sizes
        shapes = [tuple(sizes[a] for a in one) for one in self.sets]
        ends = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
        expected: _Independent | _Drawn
        if "drawn" in inputs:
            expected = _Drawn(np.asarray(inputs["drawn"]), int(inputs["rows_meant"]))
        else:
            flat = np.asarray(inputs["marginals"], dtype=np.float64)
            expected = _Independent(np.split(flat, np.cumsum(sizes)[:-1]))
        noise = int(inputs.get("noise", 0))
        found = np.zeros(len(inputs["possible"]), dtype=np.int64)
        for place, k in enumerate(inputs["possible"]):
            own = counts[ends[k] : ends[k + 1]]
            found[place] = _off(own, expected.of(self.sets[k], shapes[k])).sum() - noise * len(own)
        return found


def _merging(of: Sequence[Attribute], inputs: Mapping[str, Any]) -> Merging:
    """Return the groups that are given at run time, or groups of one code each."""
    sizes = [a.size for a in of]
    return Merging.of_flat(inputs["groups"], sizes) if "groups" in inputs else Merging.none(sizes)


def _join(counts: Iterable[Integers]) -> Integers:
    return np.concatenate([np.zeros(0, dtype=np.int64), *(own.ravel() for own in counts)])


@final
@attrs.frozen(eq=False)
class _Independent:
    """Expected counts if attributes are independent, rounded to whole rows."""

    marginals: Sequence[NDArray[np.float64]]

    def of(self, one: Set, shape: Sequence[int]) -> Integers:
        """Return the expected counts of a marginal."""
        table = np.ones(1)
        for a in one:
            own = self.marginals[a]
            table = np.multiply.outer(table, own / max(float(own.sum()), 1e-300)).ravel()
        return _whole(table * float(self.marginals[one[0]].sum()))


@final
class _Drawn:
    """Expected counts from rows that were drawn from a model."""

    def __init__(self, rows: NDArray[Any], meant: int) -> None:
        self.meant = meant
        self.columns = [rows[:, a].astype(np.int64) for a in range(rows.shape[1])]
        self.last: tuple[Set, Integers] = ((), np.zeros(0, dtype=np.int64))

    def of(self, one: Set, shape: Sequence[int]) -> Integers:
        """Return the counts of a marginal among the drawn rows, scaled to `meant` rows."""
        if self.last[0] != one[:-1]:  # marginals with the same first attributes follow each other
            cell = np.zeros(len(self.columns[0]), dtype=np.int64)
            for a, size in zip(one[:-1], shape, strict=False):
                cell = cell * size + self.columns[a]
            self.last = (one[:-1], cell)
        cell = self.last[1] * shape[-1] + self.columns[one[-1]]
        counts = np.bincount(cell, minlength=math.prod(shape))
        if self.meant == len(cell):
            return np.asarray(counts)
        return _whole(counts * (self.meant / len(cell)))


@final
@attrs.frozen
class NamedMarginal(CellCounts):
    """The marginal of some attributes that are named at run time (`marginal`), with cells in the order of codes.

    With `groups`, as in `ModelDistances`, it counts groups.

    Attributes
    ----------
    of
        The attributes that may be named.
    most
        The most cells that a marginal may have.
    """

    name = "named-marginal"
    of: tuple[Attribute, ...] = attrs.field(converter=as_attributes)
    most: int

    @property
    def text(self) -> str:
        """Say that the marginal was selected."""
        return "marginal that was selected"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes that the marginal may be of."""
        return tuple(a.name for a in self.of)

    @property
    def answer_length(self) -> int:
        """The most cells that a marginal may have."""
        return self.most

    def count(self, block: Block, **inputs: Any) -> Integers:
        """Return this block's counts of the cells."""
        return self._merge(self._crosstab(inputs["marginal"]).count(block), inputs)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table."""
        return JointCounts([self._crosstab(inputs["marginal"])], lambda counts: self._merge(counts[0], inputs))

    def _merge(self, counts: Integers, inputs: Mapping[str, Any]) -> Integers:
        place = {a.name: k for k, a in enumerate(self.of)}
        return _merging(self.of, inputs).table(counts, [place[name] for name in inputs["marginal"]]).ravel()

    def _crosstab(self, names: Iterable[str]) -> Crosstab:
        known = {a.name: a for a in self.of}
        return Crosstab([known[name] for name in names])
