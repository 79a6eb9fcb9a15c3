"""Redescriptions: what a miner found, ranked, trusted, pruned and kept."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, final, overload

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.files import write_whole
from dpframework.results import redescription_views as views
from dpframework.results.kept import Drawn
from dpframework.results.noisy import CONFIDENCE, error_of, quantile
from dpframework.results.redescription import ERROR, Redescription, least_jaccard


def _ranked(redescriptions: Iterable[Redescription]) -> tuple[Redescription, ...]:
    """Sort by the lower end of the Jaccard interval, then by support; only ties are told apart by their texts."""
    most = quantile(error_of(CONFIDENCE))

    def of_counts(item: Redescription) -> tuple[float, float]:
        return -min(least_jaccard(item.both, item.apart, most), item.jaccard), -item.both.value

    keyed = sorted(((of_counts(item), item) for item in redescriptions), key=lambda pair: pair[0])
    ranked: list[Redescription] = []
    for _, tied in itertools.groupby(keyed, key=lambda pair: pair[0]):
        ranked += sorted((item for _, item in tied), key=lambda item: (str(item.left), str(item.right)))
    return tuple(ranked)


def _count_all(found: Any, _: Any, candidates: int) -> None:
    if candidates < len(found.items):
        raise InputError(f"{len(found.items)} redescriptions cannot come from {candidates} candidates; count them in")


@final
@attrs.frozen(repr=False)
class Redescriptions(Sequence[Redescription], Drawn):
    """What a redescription miner found: best first, by the lower end of the Jaccard interval, then by support.

    Attributes
    ----------
    items
        The redescriptions.
    candidates
        How many redescriptions were looked at on their noisy counts, these included: the more, the more of them
        noise alone lets shine. Without it, the number of items.

    Examples
    --------
    >>> from dpframework.facts.descriptions import Below, Equals
    >>> from dpframework.results.noisy import Noisy
    >>> smoker, weak = Equals("smoker", "true"), Below("fev", 3)
    >>> counts = {"left_only": Noisy(60, 50), "right_only": Noisy(40, 50), "rows": 1000}
    >>> large = Redescription(smoker, weak, both=Noisy(400, 50), **counts)
    >>> small = Redescription(smoker, Below("fev", 2), both=Noisy(21, 50), apart=Noisy(4, 100))
    >>> found = Redescriptions([small, large], candidates=100)
    >>> print(found)
    left           right    Jaccard            support         p-value
    smoker = true  fev < 3  0.80 [0.77, 0.84]  400 [384, 416]  2.9e-46  *
    smoker = true  fev < 2  0.84 [0.34, 1.00]  21 [5, 37]      -
    Brackets: 95 % intervals, from the noise alone. *: trusted, the exact Jaccard index is at least half of the one
    shown (with 95 % confidence in all marks at once; 100 candidates were looked at).
    >>> found.pruned()
    <1 redescriptions of 100 candidates>
    """

    called = "a list of redescriptions"
    items: tuple[Redescription, ...] = attrs.field(converter=_ranked)
    candidates: int = attrs.field(
        default=attrs.Factory(lambda self: len(self.items), takes_self=True), validator=_count_all
    )

    @overload
    def __getitem__(self, index: int) -> Redescription: ...
    @overload
    def __getitem__(self, index: slice) -> Redescriptions: ...
    def __getitem__(self, index: int | slice) -> Redescription | Redescriptions:
        """Return one redescription, or those of a slice."""
        return attrs.evolve(self, items=self.items[index]) if isinstance(index, slice) else self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Redescription]:
        return iter(self.items)

    @property
    def trusted(self) -> tuple[bool, ...]:
        """For each whether it is trusted (see `Redescription.trusted`): with probability 0.95 no mark is wrong."""
        return tuple(item.trusted(self.candidates) for item in self.items)

    def min_support_from_scatter(self) -> float:
        """Return the least noisy support from which few redescriptions are artefacts of noise.

        An artefact shows more than twice its exact Jaccard index. The k redescriptions of largest support are kept,
        for the largest k at which each of them would be trusted if it had been chosen from candidates / k: then
        about 5 % of those kept are artefacts at most (Benjamini and Hochberg 1995, for counts that are independent
        or depend positively). For k = 1 that is the rule of `trusted`. If no k will do, nothing is kept.
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
        """Return those of at least this noisy support; without it, that of `min_support_from_scatter`."""
        least = self.min_support_from_scatter() if min_support is None else min_support
        return attrs.evolve(self, items=[item for item in self.items if item.both.value >= least])

    def __str__(self) -> str:
        """Draw a table, long descriptions wrapped; only of the first where there are many."""
        if not self.items:
            return f"No redescriptions; {self.candidates} were looked at." if self.candidates else "No redescriptions."
        return views.table(self.items, self.trusted, self.candidates)

    def __repr__(self) -> str:
        """Tell how many."""
        return f"<{len(self.items)} redescriptions of {self.candidates} candidates>"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        forms = [{**item.to_dict(), "trusted": t} for item, t in zip(self.items, self.trusted, strict=True)]
        return {"candidates": self.candidates, "redescriptions": forms}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Redescriptions:
        """See `Kept`."""
        return cls([Redescription.from_dict(item) for item in form["redescriptions"]], form["candidates"])

    def to_csv(self, path_or_buffer: str | os.PathLike[str] | TextIO) -> None:
        """Write one line a redescription, to a file (whole or not at all) or to an open text file.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        text = views.csv_text(self.items, self.trusted)
        if isinstance(path_or_buffer, str | os.PathLike):
            write_whole(Path(path_or_buffer), text)
        else:
            path_or_buffer.write(text)

    def draw(self, axes: Any) -> None:
        """Draw noisy Jaccard index against noisy support, with intervals.

        Filled circles are trusted, open diamonds are not; left of the dashed line is what `pruned` leaves out.
        """
        views.draw(self.items, self.trusted, self.min_support_from_scatter(), axes)
