"""A table with one number for each group of rows, and the number's confidence interval or its error in rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, final

import attrs

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.value_checks import as_texts
from dpframework.results.count_table_base import as_labels, labels_of_key
from dpframework.results.estimates import Estimate, QuantileEstimate
from dpframework.results.result import DrawableResult, Tabular
from dpframework.results.table_text import TextTable

if TYPE_CHECKING:
    import polars as pl

_PRINTED = 50  # the largest number of groups in a printed table
_DRAWN = 60  # the largest number of groups in a plot
_COLUMNS = ("value", "low", "high", "rows", "step")

#: The result of one group.
OfGroup: TypeAlias = "Estimate | QuantileEstimate"


def _as_results(given: Iterable[OfGroup]) -> tuple[OfGroup, ...]:
    return tuple(given)


@final
@attrs.frozen
class Groups(Tabular, DrawableResult):
    """One number for each group of rows.

    The groups follow from the schema: there is one group for each combination of labels, even if no row has these
    labels. Each interval holds with a probability of 95 % by itself. If all intervals hold at once with this
    probability, `note` says so.

    Attributes
    ----------
    names
        The names of the attributes that make the groups.
    what
        The name of the number, such as "mean of cost".
    groups
        The labels of each group, one for each name.
    results
        The result of each group. All have the same class.
    note
        The sentence below a table of estimates. If it is empty, a default sentence about intervals is shown.

    Examples
    --------
    >>> rows = [Estimate("mean of cost", 20.5, 19.1, 21.9), Estimate("mean of cost", 48.2, 47.9, 48.5)]
    >>> costs = Groups(["diagnosis"], "mean of cost", [["cold"], ["flu"]], rows)
    >>> print(costs)
    diagnosis  mean of cost  95 %
    cold       20.5          [19.1, 21.9]
    flu        48.20         [47.90, 48.50]
    Brackets: 95 % intervals, each by itself, from the noise alone.
    >>> costs["flu"].value
    48.2
    """

    name_in_errors = "a table of groups"
    names: tuple[str, ...] = attrs.field(converter=as_texts)
    what: str
    groups: tuple[tuple[str, ...], ...] = attrs.field(converter=as_labels)
    results: tuple[OfGroup, ...] = attrs.field(converter=_as_results)
    note: str = ""

    def __attrs_post_init__(self) -> None:
        if not self.groups or len(self.groups) != len(self.results):
            raise InputError(f"{len(self.groups)} groups have {len(self.results)} results; one for each is needed")
        if len(set(self.groups)) < len(self.groups) or any(len(group) != len(self.names) for group in self.groups):
            raise InputError(f"give each group once, with one label for each of {', '.join(self.names)}")
        if len({type(one) for one in self.results}) > 1:
            raise InputError("the results of groups are of different classes; give results of one class")

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.groups)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """Yield the labels of each group, as `groups[labels]` takes them."""
        yield from self.groups

    def __contains__(self, labels: str | tuple[str, ...]) -> bool:
        """Tell whether there is a group with these labels."""
        return labels_of_key(labels) in self.groups

    def __getitem__(self, labels: str | tuple[str, ...]) -> OfGroup:
        """Return the result of one group, by its label or by a tuple with the label of each attribute.

        Raises
        ------
        InputError
            If there is no such group. The message names the nearest group.
        """
        wanted = labels_of_key(labels)
        if wanted not in self.groups:
            known = [", ".join(group) for group in self.groups]
            raise InputError(f"there is no group {', '.join(wanted)!r}; {nearest(', '.join(wanted), known)}")
        return self.results[self.groups.index(wanted)]

    def items(self) -> Iterator[tuple[tuple[str, ...], OfGroup]]:
        """Yield the labels of each group with its result."""
        yield from zip(self.groups, self.results, strict=True)

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with one row for each group.

        The first columns are the attributes, as text. Estimates add the columns `value`, `low` and `high`. Quantiles
        add `value`, `rows` and `step`. If an attribute has one of these names, its column is called "group value", and
        so on.
        """
        import polars as pl

        heads = [f"group {name}" if name in _COLUMNS else name for name in self.names]
        known = [column for column in _COLUMNS if hasattr(self._first, column)]
        labels = {head: [group[k] for group in self.groups] for k, head in enumerate(heads)}
        numbers = {column: [float(getattr(one, column)) for one in self.results] for column in known}
        return pl.DataFrame({**labels, **numbers})

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {
            "names": list(self.names),
            "what": self.what,
            "groups": [list(group) for group in self.groups],
            "of": "quantiles" if isinstance(self._first, QuantileEstimate) else "estimates",
            "results": [one.to_dict() for one in self.results],
            "note": self.note,
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Groups:
        """Build the result from its form (see `StoredResult.read`)."""
        kinds: Mapping[str, type[OfGroup]] = {"quantiles": QuantileEstimate, "estimates": Estimate}
        kind = kinds[form["of"]]
        results = [kind.from_dict(one) for one in form["results"]]
        return cls(form["names"], str(form["what"]), form["groups"], results, str(form["note"]))

    def draw(self, axes: Any) -> None:
        """Draw the value and the interval of each of the first 60 groups, from top to bottom."""
        shown = list(itertools.islice(self.items(), _DRAWN))
        for at, (_, one) in enumerate(shown):
            axes.plot([one.value], [at], "o", color="#0b5394")
            if isinstance(one, Estimate):
                axes.plot([one.low, one.high], [at, at], color="0.5", zorder=0)
        axes.set_yticks(range(len(shown)), [", ".join(labels) for labels, _ in shown])
        axes.invert_yaxis()
        axes.set(xlabel=self.what)

    @property
    def _first(self) -> OfGroup:
        """The first result. All have the same class."""
        first, *_ = self.results
        return first

    def _text_table(self) -> TextTable:
        first = self._first
        last, legend = "95 %", self.note or "Brackets: 95 % intervals, each by itself, from the noise alone."
        if isinstance(first, QuantileEstimate):
            last = "off by at most"
            legend = (
                "With 95 % probability, for each group by itself, at most that many rows separate the value from the "
                f"exact quantile; values are rounded to steps of {first.step:.6g}."
            )
        rows = [(*labels, *one.texts) for labels, one in itertools.islice(self.items(), _PRINTED)]
        return TextTable((*self.names, self.what, last), rows, len(self) - _PRINTED, legend)
