"""Redescriptions: pairs of descriptions that hold for nearly the same rows, with what noisy counts say of them.

Everything here is post-processing of released counts, and costs no privacy. Intervals follow from the noise alone:
they say what the exact table may be, not what a population may be.

Source of Jaccard index and p-value: Galbrun and Miettinen, Redescription Mining, 2017. Assumes that the counts of a
redescription are independent and each one cell's release or a sum of such (discrete Laplace or discrete Gaussian).
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, final, overload

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.descriptions import Description, description_from_dict
from dpframework.facts.errors import InputError
from dpframework.facts.files import write_whole
from dpframework.results.noisy import CONFIDENCE, Noisy, as_noisy, error_of, heavy_deviation, quantile

_ERROR = 0.05  # the chance that a trusted mark is wrong, and the share of artefacts that pruning leaves
_STEPS = 60  # of Newton, more than are ever needed
_GRID = 2**50  # ends of intervals are multiples of 1 / _GRID: digits beyond are rounding
_SHOWN = 50  # rows of a printed table
_WIDTH = 34  # of a description in it, then it is wrapped


def _optional(number: Noisy | float | None) -> Noisy | None:
    return None if number is None else as_noisy(number)


def _apart(redescription: Any) -> Noisy:
    if redescription.left_only is None or redescription.right_only is None:
        raise InputError("a redescription needs 'apart', or both of 'left_only' and 'right_only'")
    return redescription.left_only + redescription.right_only  # type: ignore[no-any-return]


@final
@attrs.frozen
class Redescription:
    """Two descriptions, one of each view, and noisy counts of the rows that they hold for.

    Attributes
    ----------
    left, right
        The descriptions.
    both
        Rows for which both hold.
    left_only, right_only
        Rows for which one holds and the other does not; None where only their sum was released.
    apart
        Rows for which exactly one holds; without it, the sum of the former two. Its noise is independent of that of
        `both`.
    rows
        All rows: a noisy count, a public number, or None where unknown.

    Examples
    --------
    >>> from dpframework.facts.descriptions import Below, Equals
    >>> found = Redescription(Equals("smoker", "true"), Below("fev", 3), both=Noisy(400, 50), apart=Noisy(100, 50))
    >>> print(found)
    smoker = true  ~  fev < 3  (Jaccard 0.80 [0.78, 0.83], support 400 ± 16)
    """

    left: Description
    right: Description
    both: Noisy = attrs.field(kw_only=True, converter=as_noisy)
    left_only: Noisy | None = attrs.field(kw_only=True, default=None, converter=_optional)
    right_only: Noisy | None = attrs.field(kw_only=True, default=None, converter=_optional)
    apart: Noisy = attrs.field(kw_only=True, default=attrs.Factory(_apart, takes_self=True), converter=as_noisy)
    rows: Noisy | None = attrs.field(kw_only=True, default=None, converter=_optional)

    @property
    def support(self) -> Noisy:
        """Rows for which both descriptions hold."""
        return self.both

    @property
    def left_support(self) -> Noisy | None:
        """Rows for which the left description holds."""
        return None if self.left_only is None else self.both + self.left_only

    @property
    def right_support(self) -> Noisy | None:
        """Rows for which the right description holds."""
        return None if self.right_only is None else self.both + self.right_only

    @property
    def jaccard(self) -> float:
        """Rows for which both hold, of those for which one does: an estimate in [0, 1]; 0 where none seem to be."""
        both, apart = max(self.both.value, 0.0), max(self.apart.value, 0.0)
        return both / (both + apart) if both > 0 else 0.0

    def support_interval(self, level: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval of the support, as `Noisy.interval`, without what is below 0."""
        low, high = self.both.interval(level)
        return max(low, 0.0), max(high, 0.0)

    def jaccard_interval(self, level: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval that holds the exact Jaccard index with at least this probability.

        By Fieller's inversion: the exact index J solves (1 - J) both - J apart = 0, whose noise is known. The interval
        ends at the first j, from either side, at which that difference is within its noise.

        Raises
        ------
        InputError
            If the level is not between 0 and 1.
        """
        most = quantile(error_of(level))
        low, high = _least(self.both, self.apart, most), 1 - _least(self.apart, self.both, most)
        return min(low, self.jaccard), max(high, self.jaccard)  # equal up to rounding where the counts are exact

    @property
    def p_value(self) -> float | None:
        """The chance that independent sides with these supports share this many rows; None where any is unknown.

        The upper tail, at `both`, of a binomial distribution over `rows` with probability (left support / rows)
        (right support / rows), on counts that are rounded and made consistent. The noise is not in it: it describes
        the released counts as if they were exact.
        """
        if self.left_support is None or self.right_support is None or self.rows is None:
            return None
        both, left, right = (np.array(n.value) for n in (self.both, self.left_support, self.right_support))
        return float(p_values(both, left, right, self.rows.value))

    def trusted(self, candidates: int = 1) -> bool:
        """Tell whether, in spite of the noise, the exact Jaccard index is known to be at least half of the one shown.

        That is so if the lower end of its interval is, at the level 1 - 0.05 / candidates. Of all that were looked
        at, none is then trusted wrongly with probability 0.95.

        Parameters
        ----------
        candidates
            How many redescriptions were looked at on their noisy counts before this one was chosen, itself included.
        """
        return self._clearance() >= quantile(_ERROR / candidates)

    def _clearance(self) -> float:
        """Return the largest quantile of noise at which the Jaccard index is known to be at least half of that shown.

        At half the index shown, the difference of `jaccard_interval` is half of both.
        """
        if self.both.value <= 0:
            return -math.inf
        deviation, step = _noise(self.both, self.apart, self.jaccard / 2)
        return (self.both.value / 2 - step) / deviation if deviation > 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads; what follows from the counts is written beside them."""
        return {
            "left": self.left.to_dict(),
            "right": self.right.to_dict(),
            "text": [str(self.left), str(self.right)],
            **{name: _form(getattr(self, name)) for name in ("both", "left_only", "right_only", "apart", "rows")},
            "jaccard": self.jaccard,
            "jaccard_interval": list(self.jaccard_interval()),
            "support_interval": list(self.support_interval()),
            "p_value": self.p_value,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Redescription:
        """Read what `to_dict` wrote.

        Raises
        ------
        InputError
            If it is no redescription.
        """
        try:
            known = {name: form[name] for name in ("both", "left_only", "right_only", "apart", "rows")}
            counts: dict[str, Any] = {n: None if c is None else Noisy.from_dict(c) for n, c in known.items()}
            return cls(description_from_dict(form["left"]), description_from_dict(form["right"]), **counts)
        except InputError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError):
            raise InputError("this is not a redescription that dpframework wrote") from None

    def __str__(self) -> str:
        """Write both descriptions, the Jaccard index with its interval, and the support."""
        low, high = self.jaccard_interval()
        return (
            f"{self.left}  ~  {self.right}  (Jaccard {self.jaccard:.2f} [{low:.2f}, {high:.2f}], support {self.both})"
        )


def p_values(
    both: NDArray[np.float64], left: NDArray[np.float64], right: NDArray[np.float64], rows: float
) -> NDArray[np.float64]:
    """Return the p-value (see `Redescription.p_value`) of each of many redescriptions, from their noisy counts.

    Parameters
    ----------
    both, left, right
        Rows for which both descriptions hold, for which the left one and for which the right one does, of one shape.
    rows
        All rows.

    Examples
    --------
    >>> p_values(np.array([40.0, 24.0]), np.array([60.0, 60.0]), np.array([40.0, 40.0]), rows=100).round(4).tolist()
    [0.0003, 0.5386]
    """
    from scipy.stats import binom

    size = max(round(rows), 1)
    shared = np.clip(np.rint(both), 0, size)
    shares = (np.clip(np.rint(side), shared, size) / size for side in (left, right))
    return np.asarray(binom.sf(shared - 1, size, math.prod(shares)))


def _form(count: Noisy | None) -> dict[str, float] | None:
    return None if count is None else count.to_dict()


def _noise(both: Noisy, apart: Noisy, j: float) -> tuple[float, float]:
    """Return the deviation of the noise of (1 - j) both - j apart, and half of its larger step: noise is whole rows."""
    return _mixed(heavy_deviation(both.variance), heavy_deviation(apart.variance), j)


def _mixed(first: float, second: float, j: float) -> tuple[float, float]:
    """See `_noise`; the deviations of both counts are given."""
    step = max((1 - j) * (first > 0), j * (second > 0)) / 2
    return math.hypot((1 - j) * first, j * second), step


def _least(both: Noisy, apart: Noisy, most: float) -> float:
    """Return the first j in [0, 1] at which (1 - j) both - j apart is within reach of noise; 1 if it is nowhere.

    Of exact counts this difference is positive just if the Jaccard index is above j. It is linear in j and the reach
    of noise convex: before the first such j it is beyond that reach, and nowhere after. Newton's steps from 1 come
    down to it and never below, since what lies beyond is concave.
    """
    first, second = heavy_deviation(both.variance), heavy_deviation(apart.variance)
    j = 1.0
    if not both.value > most * first + 0.5 * (first > 0):
        return 0.0
    for _ in range(_STEPS):
        deviation, step = _mixed(first, second, j)
        beyond = (1 - j) * both.value - j * apart.value - most * deviation - step
        if beyond >= 0:
            break
        growth = (j * second**2 - (1 - j) * first**2) / deviation if deviation > 0 else 0.0
        more = 0.5 * (second > 0) if j * (second > 0) >= (1 - j) * (first > 0) else -0.5
        closer = j + beyond / (both.value + apart.value + most * growth + more)
        if not closer < j:
            break
        j = max(closer, 0.0)
    return math.floor(j * _GRID) / _GRID


def _ranked(redescriptions: Iterable[Redescription]) -> tuple[Redescription, ...]:
    """Sort by the lower end of the Jaccard interval, then by support; only ties are told apart by their texts."""
    most = quantile(error_of(CONFIDENCE))

    def of_counts(item: Redescription) -> tuple[float, float]:
        return -min(_least(item.both, item.apart, most), item.jaccard), -item.both.value

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
class Redescriptions(Sequence[Redescription]):
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
            clearance = min(clearance, item._clearance())
            tied = kept < len(items) and items[kept].both.value == item.both.value
            if not tied and clearance >= quantile(_ERROR * kept / self.candidates):
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
        shown = [_cells(item, trusted) for item, trusted in zip(self.items, self.trusted, strict=True)][:_SHOWN]
        lines = _table([_HEADINGS, *shown])
        if len(self.items) > _SHOWN:
            lines.append(f"and {len(self.items) - _SHOWN} more, in to_csv and to_json")
        return "\n".join([*lines, _LEGEND.format(candidates=self.candidates)])

    def __repr__(self) -> str:
        """Tell how many."""
        return f"<{len(self.items)} redescriptions of {self.candidates} candidates>"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        forms = [{**item.to_dict(), "trusted": t} for item, t in zip(self.items, self.trusted, strict=True)]
        return {"candidates": self.candidates, "redescriptions": forms}

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Redescriptions:
        """Read what `to_dict` wrote.

        Raises
        ------
        InputError
            If it is no result of a redescription miner.
        """
        try:
            return cls([Redescription.from_dict(item) for item in form["redescriptions"]], form["candidates"])
        except (KeyError, TypeError, AttributeError):
            raise InputError("these are not redescriptions that dpframework wrote") from None

    def to_csv(self, path_or_buffer: str | os.PathLike[str] | TextIO) -> None:
        """Write one line a redescription, to a file (whole or not at all) or to an open text file.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        text = io.StringIO()
        # quoted, since a label may hold any character
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(_COLUMNS)
        writer.writerows(_fields(item, trusted) for item, trusted in zip(self.items, self.trusted, strict=True))
        if isinstance(path_or_buffer, str | os.PathLike):
            write_whole(Path(path_or_buffer), text.getvalue())
        else:
            path_or_buffer.write(text.getvalue())

    def plot(self, ax: Any | None = None) -> Any:
        """Draw noisy Jaccard index against noisy support, with intervals, and return the matplotlib axes.

        Filled circles are trusted, open diamonds are not; left of the dashed line is what `pruned` leaves out.

        Parameters
        ----------
        ax
            Axes to draw on; without them, new ones.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError("plot needs matplotlib: pip install 'dpframework[plot]'") from error
        axes = pyplot.subplots()[1] if ax is None else ax
        for wanted, style in ((False, _OPEN), (True, _FILLED)):
            items = [item for item, trusted in zip(self.items, self.trusted, strict=True) if trusted is wanted]
            if items:
                x, y = [item.both.value for item in items], [item.jaccard for item in items]
                axes.errorbar(
                    x,
                    y,
                    xerr=_arms(x, [item.both.interval() for item in items]),
                    yerr=_arms(y, [item.jaccard_interval() for item in items]),
                    linestyle="none",
                    elinewidth=0.6,
                    markersize=5,
                    **style,
                )
        if self.items:
            axes.axvline(
                self.min_support_from_scatter(), color="0.4", linestyle="--", linewidth=1, label="left of it: pruned"
            )
            axes.legend()
        axes.set(xlabel="noisy support (rows)", ylabel="noisy Jaccard index", ylim=(-0.03, 1.03))
        return axes


_OPEN = {"marker": "D", "color": "0.55", "markerfacecolor": "none", "ecolor": "0.8", "label": "not trusted"}
_FILLED = {"marker": "o", "color": "#0b5394", "label": "trusted"}
_HEADINGS = ("left", "right", "Jaccard", "support", "p-value", "")
_LEGEND = (
    "Brackets: 95 % intervals, from the noise alone. *: trusted, the exact Jaccard index is at least half of the one\n"
    "shown (with 95 % confidence in all marks at once; {candidates} candidates were looked at)."
)
_COLUMNS = (
    *("left", "right", "jaccard", "jaccard_low", "jaccard_high", "support", "support_low", "support_high"),
    *("left_support", "right_support", "rows", "p_value", "trusted"),
)


def _cells(item: Redescription, trusted: bool) -> tuple[str, ...]:
    low, high = item.jaccard_interval()
    least, most = item.support_interval()
    return (
        str(item.left),
        str(item.right),
        f"{item.jaccard:.2f} [{low:.2f}, {high:.2f}]",
        f"{item.both.value:.0f} [{math.floor(least)}, {math.ceil(most)}]",
        _p_text(item.p_value),
        "*" if trusted else "",
    )


def _p_text(p: float | None) -> str:
    if p is None:
        return "-"
    return f"{p:.1e}" if p >= 1e-99 else "<1e-99"  # an underflow is not 0


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the columns; the cells of the first two are wrapped."""
    wrapped = [[*(textwrap.wrap(cell, _WIDTH) for cell in row[:2]), *([cell] for cell in row[2:])] for row in rows]
    widths = [max(len(line) for row in wrapped for line in row[k]) for k in range(len(_HEADINGS))]
    return [
        "  ".join(line.ljust(width) for line, width in zip(lines, widths, strict=True)).rstrip()
        for row in wrapped
        for lines in itertools.zip_longest(*row, fillvalue="")
    ]


def _fields(item: Redescription, trusted: bool) -> tuple[object, ...]:
    """Return what a line of CSV holds; what is unknown is empty."""
    supports = (item.left_support, item.right_support, item.rows)
    return (
        *(str(item.left), str(item.right), item.jaccard, *item.jaccard_interval()),
        *(item.both.value, *item.support_interval()),
        *("" if count is None else count.value for count in supports),
        "" if item.p_value is None else item.p_value,
        str(trusted).lower(),
    )


def _arms(centres: Sequence[float], intervals: Sequence[tuple[float, float]]) -> list[list[float]]:
    below = [centre - low for centre, (low, _) in zip(centres, intervals, strict=True)]
    above = [high - centre for centre, (_, high) in zip(centres, intervals, strict=True)]
    return [below, above]
