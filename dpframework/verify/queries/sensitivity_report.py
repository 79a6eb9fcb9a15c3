"""The findings of a sensitivity search: the largest changes of an answer, compared with the declared ones."""

from __future__ import annotations

import math
from typing import Any, final

import attrs

from dpframework.facts.privacy_losses import Relation
from dpframework.verify.tables.neighbours import Rows

ROUNDING = 1e-9  # how much larger than declared a change may be, relative and absolute, since answers are rounded


@final
@attrs.frozen
class MeasuredChange:
    """One declared sensitivity, and the largest change that was found.

    Attributes
    ----------
    norm
        The norm of the change: "l1", "squared-l2", "linf", "histograms" or "blocks". "spread" stands for how far two
        coordinates may move apart, which a linf sensitivity declares. A norm with " rise" or " fall" stands for how far
        adding a row may raise or lower the answer. It is listed if the query declares a smaller bound on the rise or
        fall than on the change.
    declared
        The declared change.
    largest
        The largest change that was found.
    one, other
        The neighbours with the largest change, as texts of their rows.
    tables
        The same neighbours, as bytes: the kind of each row (see `Universe`).
    """

    norm: str
    declared: float
    largest: float
    one: tuple[str, ...]
    other: tuple[str, ...]
    tables: tuple[Rows, Rows] = attrs.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        shown = attrs.asdict(self, filter=lambda field, _: field.name != "tables")
        return {**shown, "holds": self.holds}

    @property
    def ratio(self) -> float:
        """The largest change that was found, divided by the declared one."""
        return self.largest / self.declared if self.declared else (math.inf if self.largest else 1.0)

    @property
    def holds(self) -> bool:
        """Whether no larger change than declared was found."""
        return self.largest <= self.declared * (1 + ROUNDING) + ROUNDING


@final
@attrs.frozen
class SensitivityReport:
    """The findings of a sensitivity search for one query under one relation.

    Attributes
    ----------
    query
        The query, in words.
    relation
        The neighbouring relation.
    measured
        One entry for each declared norm, for the spread of scores, and for each rise and fall that is declared to be
        less than the change.
    pairs
        How many pairs of neighbours were evaluated.
    wrong
        Other faults that were found, such as an answer whose length depends on the rows.
    most_rows
        The most rows that two neighbours of the search may share, apart from the simulated tables of billions of rows.
    """

    query: str
    relation: Relation
    measured: tuple[MeasuredChange, ...]
    pairs: int
    wrong: tuple[str, ...]
    most_rows: int

    @property
    def passed(self) -> bool:
        """Whether every declaration holds, and no other fault was found."""
        return not self.wrong and all(one.holds for one in self.measured)

    @property
    def ratio(self) -> float:
        """The largest ratio of a found change to the declared one. NaN if no declared change is above 0."""
        return max((one.ratio for one in self.measured if one.declared), default=math.nan)

    @property
    def tightness(self) -> float:
        """The smallest ratio of a found change to the declared one. NaN if no declared change is above 0.

        The search would miss a mistake most easily in the norm that has this ratio.
        """
        return min((one.ratio for one in self.measured if one.declared), default=math.nan)

    def merged(self, other: SensitivityReport) -> SensitivityReport:
        """Return the findings of two searches of one query together: the larger change in each norm, and all faults."""
        larger = [max(pair, key=lambda one: one.largest) for pair in zip(self.measured, other.measured, strict=True)]
        # The tables of `other` may have kinds of rows that this report's universe does not have, so they are dropped.
        measured = [attrs.evolve(one, tables=known.tables) for one, known in zip(larger, self.measured, strict=True)]
        wrong = tuple(dict.fromkeys((*self.wrong, *other.wrong)))
        most = max(self.most_rows, other.most_rows)
        return attrs.evolve(self, measured=tuple(measured), pairs=self.pairs + other.pairs, wrong=wrong, most_rows=most)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "query": self.query,
            "relation": self.relation.value,
            "measured": [one.to_dict() for one in self.measured],
            "pairs": self.pairs,
            "wrong": list(self.wrong),
            "most_rows": self.most_rows,
            "tightness": self.tightness if math.isfinite(self.tightness) else None,
            "passed": self.passed,
        }

    def __str__(self) -> str:
        """Write one line for each fault and each norm, and the two tables where a declaration does not hold."""
        lines = [f"{self.query}: {what}" for what in self.wrong]
        for one in self.measured:
            verdict = "holds" if one.holds else "DOES NOT HOLD"
            lines.append(
                f"{self.query}: {one.norm} declared {one.declared:.6g}, largest found {one.largest:.6g}: {verdict}"
            )
            if not one.holds:
                lines += [f"  one table: {row}" for row in one.one] + [f"  its neighbour: {row}" for row in one.other]
        return "\n".join(lines)
