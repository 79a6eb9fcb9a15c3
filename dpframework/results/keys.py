"""Released keys with noisy counts. Keys are values of an open attribute, whose values the schema does not list."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.notebook_html import html_text
from dpframework.facts.parameter_checks import finite_from_0, from_0_to_1
from dpframework.facts.value_checks import as_float, as_texts, as_whole_numbers
from dpframework.results.result import DrawableResult, Tabular
from dpframework.results.results_by_key import ByKey
from dpframework.results.table_text import TextTable

if TYPE_CHECKING:
    import polars as pl

_SHOWN = 50  # the largest number of keys in a printed table
_DRAWN = 40  # the largest number of bars in a plot


@final
@attrs.frozen
class ReleasedKeys(Mapping[str, int]):
    """The keys of one release, in alphabetical order, with their noisy counts.

    Attributes
    ----------
    texts
        The keys. They are sorted, so that their order reveals nothing about the rows.
    counts
        The noisy count of each key.

    Examples
    --------
    >>> towns = ReleasedKeys(["Oslo", "Rome"], [210, 38])
    >>> towns["Oslo"], "Turku" in towns, dict(towns)
    (210, False, {'Oslo': 210, 'Rome': 38})
    """

    texts: tuple[str, ...] = attrs.field(converter=as_texts)
    counts: tuple[int, ...] = attrs.field(converter=as_whole_numbers)

    def __attrs_post_init__(self) -> None:
        """Refuse unsorted or duplicate keys, and a number of counts that is not the number of keys."""
        if len(self.texts) != len(self.counts):
            raise InputError(f"{len(self.texts)} keys have {len(self.counts)} counts; one for each is needed")
        if list(self.texts) != sorted(set(self.texts)):
            raise InputError("released keys must be sorted, without duplicates")

    @classmethod
    def shown(cls, texts: Iterable[str], counts: Iterable[int]) -> ReleasedKeys:
        """Return the keys whose counts are not 0. `texts` must be sorted."""
        pairs = [(text, count) for text, count in zip(texts, counts, strict=True) if count]
        return cls([text for text, _ in pairs], [count for _, count in pairs])

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        """Yield each key."""
        return iter(self.texts)

    def __getitem__(self, key: str) -> int:
        """Return the count of a key.

        Raises
        ------
        KeyError
            If the key was not released. Some rows may have it nevertheless.
        """
        place = bisect.bisect_left(self.texts, key)
        if self.texts[place : place + 1] != (key,):
            raise KeyError(key)
        return self.counts[place]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {"keys": list(self.texts), "counts": list(self.counts)}


@final
@attrs.frozen
class KeyTable(Tabular, DrawableResult):
    """The keys of an open attribute that enough rows have, with their noisy counts.

    Attributes
    ----------
    attribute
        The name of the attribute.
    released
        The keys and their noisy counts.
    within
        In 95 % of releases, the noise of a count is at most this.
    half, always
        Two sizes of keys. A key of `half` rows is released with a probability of at least 1/2, and a key of `always`
        rows with a probability of at least `sure`. A key without rows is never released.
    sure
        The probability for `always`, which is 1 or nearly 1.
    unit
        The unit of the counts, such as "rows".
    each
        The results for each key and for all other rows; None if the miner's parameter `each` was not given.

    Examples
    --------
    >>> print(KeyTable("town", ReleasedKeys(["Oslo", "Rome"], [210, 38]), within=5, half=14, always=28))
    town  count  95 %
    Oslo  210    [205, 215]
    Rome  38     [33, 43]
    A key of 14 rows is shown half of the time, a key of 28 or more always, and a key without rows never. Brackets:
    95 % intervals, from the noise alone.
    """

    name_in_errors = "a table of keys"
    attribute: str
    released: ReleasedKeys
    within: float = attrs.field(converter=as_float, validator=finite_from_0("how far a count may be off"))
    half: int = attrs.field(converter=int, validator=finite_from_0("the rows of a key that is shown half of the time"))
    always: int = attrs.field(converter=int, validator=finite_from_0("the rows of a key that is always shown"))
    sure: float = attrs.field(default=1.0, converter=as_float, validator=from_0_to_1)
    unit: str = attrs.field(default="rows", converter=str)
    each: ByKey | None = attrs.field(default=None)

    def __attrs_post_init__(self) -> None:
        """Refuse results by key whose keys are not the released keys."""
        if self.each is not None and self.each.keys != self.released.texts:
            raise InputError("the results by key belong to other keys than the released ones")

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys, in alphabetical order."""
        return self.released.texts

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.released)

    def __getitem__(self, key: str) -> int:
        """Return the count of a key.

        Raises
        ------
        InputError
            If the key was not released. Some rows may have it nevertheless.
        """
        if key not in self.released:
            raise InputError(f"key {key!r} was not released; {nearest(str(key), self.keys)}")
        return self.released[key]

    def rows(self) -> list[tuple[str, int, float, float]]:
        """Return each key, its count and the 95 % interval. Bounds below 1 become 1, since a released key has a row."""
        return [(key, n, max(n - self.within, 1.0), max(n + self.within, 1.0)) for key, n in self.released.items()]

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with one row for each key: the key, its count, low and high."""
        import polars as pl

        rows = self.rows()
        columns: dict[str, Any] = {
            name: pl.Series([row[k] for row in rows], dtype=kind)
            for k, (name, kind) in enumerate(
                {self.attribute: pl.String, "count": pl.Int64, "low": pl.Float64, "high": pl.Float64}.items()
            )
        }
        return pl.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {
            "attribute": self.attribute,
            **self.released.to_dict(),
            "within": self.within,
            "half": self.half,
            "always": self.always,
            "sure": self.sure,
            "unit": self.unit,
        } | ({} if self.each is None else {"each": self.each.to_dict()})

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> KeyTable:
        """Build the result from its form (see `StoredResult.read`)."""
        released = ReleasedKeys(form["keys"], form["counts"])
        shown = form["within"], form["half"], form["always"]
        each = ByKey.read(released.texts, form["each"]) if "each" in form else None
        return cls(str(form["attribute"]), released, *shown, form["sure"], form["unit"], each)

    def largest_first(self) -> list[tuple[str, int]]:
        """Return the keys with their counts, the largest counts first. Keys with equal counts stay sorted."""
        return sorted(self.released.items(), key=lambda one: -one[1])

    def draw(self, axes: Any) -> None:
        """Draw the counts as bars with intervals. If there are many keys, draw the largest counts."""
        shown = self.largest_first()[:_DRAWN]
        counts = [count for _, count in shown]
        axes.barh(range(len(shown)), counts, xerr=self.within, color="#0b5394", ecolor="0.5")
        axes.set_yticks(range(len(shown)), [key for key, _ in shown])
        axes.invert_yaxis()
        axes.set(xlabel=f"noisy count ({self.unit})", ylabel=self.attribute)

    def _text_table(self) -> TextTable:
        rows = [(key, str(n), f"[{math.floor(low)}, {math.ceil(high)}]") for key, n, low, high in self.rows()[:_SHOWN]]
        always = "always" if self.sure == 1 else f"in {100 * self.sure:g} %"
        legend = (
            f"A key of {self.half} {self.unit} is shown half of the time, a key of {self.always} or more {always}, "
            f"and a key without {self.unit} never. Brackets: 95 % intervals, from the noise alone."
        )
        return TextTable((self.attribute, "count", "95 %"), rows, len(self) - _SHOWN, legend)

    def __str__(self) -> str:
        each = [] if self.each is None else ["", *self.each.lines(self.attribute)]
        return "\n".join([self._text_table().text(), *each])

    def _repr_html_(self) -> str:
        each = "" if self.each is None else html_text("\n".join(self.each.lines(self.attribute)))
        return self._text_table().html() + each
