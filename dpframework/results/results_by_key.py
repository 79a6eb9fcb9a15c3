"""Results by released key: one result for each key, and one for all other rows together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.results.estimates import Estimate
from dpframework.results.frequencies import Frequencies
from dpframework.results.noisy_count_with_interval import Noisy
from dpframework.results.table_text import align_columns

if TYPE_CHECKING:
    import polars as pl

OTHER = "all others"
_PRINTED = 50  # the largest number of rows of a printed table
_COLUMNS = 8  # the largest number of counts in one of these rows

#: The result for one key.
OfKey: TypeAlias = "Frequencies | Estimate"


def _as_results(given: Iterable[OfKey]) -> tuple[OfKey, ...]:
    return tuple(given)


@final
@attrs.frozen
class ByKey:
    """A result for each released key, and one for all other rows.

    Attributes
    ----------
    keys
        The released keys, sorted.
    results
        The result for each key, and last the result for all other rows: rows whose key was not released, or that have
        no key.
    """

    keys: tuple[str, ...]
    results: tuple[OfKey, ...] = attrs.field(converter=_as_results)

    def __attrs_post_init__(self) -> None:
        """Refuse results of different classes, or a number of results that is not one more than the number of keys."""
        if len(self.results) != len(self.keys) + 1:
            raise InputError(
                f"{len(self.keys)} keys have {len(self.results)} results; one more result than keys is needed"
            )
        if len({type(one) for one in self.results}) > 1:
            raise InputError("the results of keys are of different classes; give results of one class")

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.keys)

    def __iter__(self) -> Iterator[str]:
        """Yield each key."""
        yield from self.keys

    def __getitem__(self, key: str) -> OfKey:
        """Return the result of a key.

        Raises
        ------
        KeyError
            If the key was not released. Some rows may have it nevertheless.
        """
        if key not in self.keys:
            raise KeyError(key)
        return self.results[self.keys.index(key)]

    @property
    def other(self) -> OfKey:
        """The result of all other rows."""
        return self.results[-1]

    def items(self) -> Iterator[tuple[str | None, OfKey]]:
        """Yield each key with its result. The key of all other rows is None."""
        yield from zip((*self.keys, None), self.results, strict=True)

    def to_frame(self, attribute: str = "key") -> pl.DataFrame:
        """Return the dataframes of all results in one. The first column has the key, which is null for `other`.

        Parameters
        ----------
        attribute
            The name of the first column.
        """
        import polars as pl

        frames = [
            one.to_frame().select(pl.lit(key, dtype=pl.String).alias(attribute), pl.all()) for key, one in self.items()
        ]
        return pl.concat(frames)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        kind = "mean" if isinstance(self.other, Estimate) else "counts"
        return {"of": kind, "results": [one.to_dict() for one in self.results]}

    @classmethod
    def read(cls, keys: tuple[str, ...], form: Mapping[str, Any]) -> ByKey:
        """Read the results of some keys from the output of `to_dict`."""
        kinds: Mapping[str, type[OfKey]] = {"mean": Estimate, "counts": Frequencies}
        kind = kinds[form["of"]]
        return cls(keys, [kind.from_dict(one) for one in form["results"]])

    def lines(self, attribute: str) -> list[str]:
        """Return the lines of a printed table."""
        rows = list(self.items())
        shown = rows if len(rows) <= _PRINTED else [*rows[: _PRINTED - 1], rows[-1]]
        heads = (attribute, *self._all_heads()[:_COLUMNS])
        lines: list[tuple[str, ...]] = [heads]
        for key, one in shown:
            if isinstance(one, Estimate):
                cells = [f"{one.value:.4g}", f"[{one.low:.4g}, {one.high:.4g}]"]
            else:
                cells = [f"{count:.0f}" for _, count, *_ in one.cells()[:_COLUMNS]]
            lines.append((OTHER if key is None else key, *cells))
        text = align_columns(lines)
        if len(rows) > len(shown) or len(self._all_heads()) > _COLUMNS:
            text.append("and more, in to_frame and to_json")
        if isinstance(self.other, Frequencies):
            within = Noisy.margin_of(self.other.variance)
            text.append(f"Columns: {', '.join(self.other.names)}. Each count is within ±{math.ceil(within)} (95 %).")
        return text

    def _all_heads(self) -> list[str]:
        if isinstance(self.other, Estimate):
            return [self.other.what, "95 %"]
        return [", ".join(labels) for labels, *_ in self.other.cells()]
