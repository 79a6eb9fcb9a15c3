"""The redescriptions that a miner found, ranked, pruned and stored, with a star if one is good in spite of noise."""

from __future__ import annotations

import collections
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, final, overload

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.files import write_whole
from dpframework.facts.notebook_html import html_line
from dpframework.redescriptions import redescription_displays
from dpframework.redescriptions.map_over_two_attributes import draw_map
from dpframework.redescriptions.redescription import ERROR, MOST_SHARE, Redescription
from dpframework.results.noisy_count_with_interval import CONFIDENCE, error_of, quantile
from dpframework.results.result import DrawableResult, axes_or_new, without_math

if TYPE_CHECKING:
    import polars as pl


def _as_tuple(redescriptions: Iterable[Redescription]) -> tuple[Redescription, ...]:
    return tuple(redescriptions)


@final
@attrs.frozen(repr=False)
class Redescriptions(Sequence[Redescription], DrawableResult):
    """The redescriptions that a miner found, starred ones first, then by the lower end of the Jaccard interval.

    Attributes
    ----------
    items
        The redescriptions.
    candidates
        How many redescriptions were compared by their noisy counts, these included. The more there were, the more of
        them look good by noise alone. By default the number of items.
    min_support, max_share
        Both sides of a starred redescription hold together for at least `min_support` rows, and neither side holds for
        more than the share `max_share` of all rows.
    reason
        The reason why nothing was found. Empty if something was found.

    Examples
    --------
    >>> from dpframework.facts.logical_descriptions_of_rows import Below, Equals
    >>> from dpframework.results.noisy_count_with_interval import Noisy
    >>> smoker, weak = Equals("smoker", "true"), Below("fev", 3)
    >>> counts = {"left_only": Noisy(60, 50), "right_only": Noisy(40, 50), "rows": 1000}
    >>> large = Redescription(smoker, weak, both=Noisy(400, 50), **counts)
    >>> small = Redescription(smoker, Below("fev", 2), both=Noisy(21, 50), apart=Noisy(4, 100))
    >>> found = Redescriptions([small, large], candidates=100)
    >>> print(found)
    left    right    Jaccard       support     sides  lift  p-value
    smoker  fev < 3  0.80          400         460    2.0   2.9e-46  *
                     [0.77, 0.84]  [384, 416]  440
    smoker  fev < 2  0.84          21          -      -     -
                     [0.34, 1.00]  [5, 37]
    Brackets: 95 % intervals, from the noise alone. Sides: the rows of the left side, above those of the
    right side. Lift: the rows of both sides, divided by those expected of independent sides.
    *: in spite of the noise, the p-value is at most 0.01, the supports are within their bounds, and the
    exact Jaccard index is at least half of the one shown (with 95 % confidence in all stars together;
    100 candidates were looked at).
    >>> found.pruned()
    <1 redescriptions of 100 candidates>
    >>> [len(one) for one in found.findings]
    [2]
    """

    name_in_errors = "a list of redescriptions"
    figure = redescription_displays.FIGURE
    items: tuple[Redescription, ...] = attrs.field(converter=_as_tuple)
    candidates: int = attrs.field(default=attrs.Factory(lambda self: len(self.items), takes_self=True))
    min_support: float = attrs.field(default=0.0, kw_only=True)
    max_share: float = attrs.field(default=MOST_SHARE, kw_only=True)
    reason: str = attrs.field(default="", kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.candidates < len(self.items):
            raise InputError(
                f"{len(self.items)} redescriptions cannot come from {self.candidates} candidates; count the "
                "redescriptions as candidates too"
            )
        # Set `among` before ranking, since the ends of intervals depend on it.
        told = [attrs.evolve(item, among=self.candidates) if item.shown_from > 0 else item for item in self.items]
        object.__setattr__(self, "items", told)
        ranks = [
            (not starred, -item.least_jaccard(error_of(CONFIDENCE)), -item.both.value)
            for item, starred in zip(told, self.starred, strict=True)
        ]
        tied = {rank for rank, number in collections.Counter(ranks).items() if number > 1}

        def order(pair: tuple[tuple[bool, float, float], Redescription]) -> tuple[Any, ...]:
            rank, item = pair
            # Writing the texts takes long, so only redescriptions of equal rank are ordered by their texts.
            return (rank, str(item.left), str(item.right), repr(item)) if rank in tied else (rank,)

        ranked = sorted(zip(ranks, told, strict=True), key=order)
        object.__setattr__(self, "items", tuple(item for _, item in ranked))

    @overload
    def __getitem__(self, index: int) -> Redescription: ...
    @overload
    def __getitem__(self, index: slice) -> Redescriptions: ...
    def __getitem__(self, index: int | slice) -> Redescription | Redescriptions:
        return attrs.evolve(self, items=self.items[index]) if isinstance(index, slice) else self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Redescription]:
        return iter(self.items)

    @property
    def starred(self) -> tuple[bool, ...]:
        """For each redescription whether it is starred. With probability 0.95 no star is wrong."""
        return tuple(item.starred(self.candidates, self.min_support, self.max_share) for item in self.items)

    def min_support_from_scatter(self) -> float:
        """Return the noisy support from which on few redescriptions are artefacts of noise.

        An artefact is a redescription whose noisy Jaccard index is more than twice the exact one. The k redescriptions
        of largest support are kept. Here k is the largest number such that all of these k would be trusted if they had
        been chosen from candidates / k redescriptions. Then at most about 5 % of the redescriptions kept are artefacts
        (Benjamini and Hochberg 1995, for counts that are independent or depend positively). For k = 1 this is the rule
        of `Redescription.trusted`. If there is no such k, nothing is kept.
        """
        items = sorted(self.items, key=lambda item: -item.both.value)
        least = math.floor(items[0].both.value) + 1.0 if items else 0.0
        clearance = math.inf
        for kept, item in enumerate(items, start=1):
            clearance = min(clearance, item.clearance())
            tied = kept < len(items) and items[kept].both.value == item.both.value
            if not tied and clearance >= quantile(ERROR * kept / self.candidates):
                least = item.both.value
        return least

    def pruned(self, min_support: float | None = None) -> Redescriptions:
        """Return the redescriptions of at least this noisy support, by default `min_support_from_scatter`."""
        least = self.min_support_from_scatter() if min_support is None else min_support
        return attrs.evolve(self, items=[item for item in self.items if item.both.value >= least])

    @property
    def findings(self) -> tuple[Redescriptions, ...]:
        """The redescriptions grouped by their attributes, the best of each group first.

        All redescriptions of a group have the same attributes on the left, and the same attributes on the right. They
        are, for example, a pair of tests, the pair of their negations, and other ways to join the same tests.
        """
        groups: dict[tuple[frozenset[str], ...], list[Redescription]] = {}
        for item in self.items:
            about = tuple(frozenset(one.attribute for one in side.literals()) for side in (item.left, item.right))
            groups.setdefault(about, []).append(item)
        return tuple(attrs.evolve(self, items=group) for group in groups.values())

    def folded(self) -> Redescriptions:
        """Return the best redescription of each of the `findings`. The others of a finding are its variants."""
        return attrs.evolve(self, items=[group[0] for group in self.findings])

    def _lines(self) -> list[redescription_displays.Finding]:
        """Return the lines of a table, one for each redescription or, if there are many, for each of the `findings`."""
        if len(self.items) <= redescription_displays.SHOWN:
            return [(item, mark, 0) for item, mark in zip(self.items, self.starred, strict=True)]
        return [(group.items[0], group.starred[0], len(group) - 1) for group in self.findings]

    def __str__(self) -> str:
        """Draw a table. If there are more than fifty redescriptions, each of the `findings` has one line."""
        if not self.items:
            why = f" {self.reason}" if self.reason else ""
            return (
                f"No redescriptions; {self.candidates} were looked at." if self.candidates else "No redescriptions."
            ) + why
        return redescription_displays.table(self._lines(), self.candidates)

    def _repr_html_(self) -> str:
        return redescription_displays.html(self._lines(), self.candidates) if self.items else html_line(str(self))

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with a row for each redescription and the columns of `to_csv`."""
        return redescription_displays.frame(self.items, self.starred)

    def __repr__(self) -> str:
        return f"<{len(self.items)} redescriptions of {self.candidates} candidates>"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        forms = [{**item.to_dict(), "trusted": t} for item, t in zip(self.items, self.starred, strict=True)]
        bounds = {"min_support": self.min_support, "max_share": self.max_share, "reason": self.reason}
        return {"candidates": self.candidates, **bounds, "redescriptions": forms}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Redescriptions:
        """See `StoredResult`."""
        bounds = {name: form[name] for name in ("min_support", "max_share", "reason") if name in form}
        return cls([Redescription.from_dict(item) for item in form["redescriptions"]], form["candidates"], **bounds)

    def to_csv(self, path_or_buffer: str | os.PathLike[str] | TextIO) -> None:
        """Write one line for each redescription, to a file (whole or not at all) or to an open text file.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        text = redescription_displays.lines(self.items, self.starred)
        if isinstance(path_or_buffer, str | os.PathLike):
            write_whole(Path(path_or_buffer), text, redescription_displays.CSV_FILE)
        else:
            path_or_buffer.write(text)

    def draw(self, axes: Any) -> None:
        """Draw the first redescriptions as pairs of bars, the left description's rows above the right's.

        The dark part of both bars stands for the rows of both descriptions, with a 95 % interval. Beside the bars
        stands the noisy Jaccard index, with a star where the redescription is starred.
        """
        redescription_displays.draw_bars(self.items, self.starred, axes)

    def plot_supports(self, ax: Any | None = None) -> Any:
        """Draw the noisy Jaccard index against the noisy support, with intervals, and return the matplotlib axes.

        Filled circles are starred redescriptions, open diamonds are others. `pruned` leaves out the points left of the
        dashed line.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        axes = axes_or_new(ax)
        redescription_displays.draw(self.items, self.starred, self.min_support_from_scatter(), axes)
        return without_math(axes)

    def plot_map(self, x: str, y: str, ax: Any | None = None) -> Any:
        """Draw the regions of the sides that test only two numeric attributes, such as a longitude and a latitude.

        A region shows where a description with public thresholds holds. No row is read, and none is shown. The legend
        has the other side of each redescription, with the noisy Jaccard index and a star where it is starred. Only the
        best redescription of each of the `findings` is considered, and the first four regions are drawn. Returns the
        matplotlib axes.

        Parameters
        ----------
        x, y
            Names of the attributes across and upwards.
        ax
            Axes to draw on. New ones are made if there are none.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        axes = axes_or_new(ax)
        best = self.folded()
        draw_map(best.items, best.starred, (x, y), axes)
        return without_math(axes)
