"""Attributes, which give a column's public name, kind, domain and view but hold no data."""

from __future__ import annotations

import abc
import functools
import itertools
import math
from collections.abc import Iterable
from typing import Any, ClassVar, final

import attrs

from dpframework.facts.canonical_cells import Form, of_text
from dpframework.facts.choice_enum import Choice
from dpframework.facts.control_character_escapes import printable
from dpframework.facts.errors import InputError
from dpframework.facts.phrases import count_text
from dpframework.facts.value_checks import (
    finite_number,
    is_increasing,
    plain_number,
    positive_count,
    printable_name,
    require_list,
    visible_text,
)

MISSING_LABEL = "missing"
MOST_CODES = 1_000_000
"""The most values, or bins, that one attribute may have. Counts of more would be mostly noise and fill the memory."""
_MOST_SHOWN = 6  # the most values that a short text of a domain lists


class View(Choice, what="view"):
    """The side of an attribute in a two-view table, whose columns form a left and a right group."""

    LEFT = "left"
    RIGHT = "right"


def as_view(value: View | str | None) -> View | None:
    """Return a view, given as a `View` or by its name. None stays None."""
    return None if value is None else View.parse(value)


def _as_values(values: Iterable[str]) -> tuple[str, ...]:
    return require_list(values, "values")


def _as_cuts(cuts: Iterable[float]) -> tuple[float, ...]:
    return require_list(cuts, "cuts")


# Not slotted: the cached properties need an instance dictionary.
@attrs.frozen(slots=False)
class Attribute(abc.ABC):
    """A column's public facts, namely its name, kind, domain and view.

    Every value of the domain has a code from 0 to `size` - 1. Where missing values are allowed, the last code stands
    for them.

    Attributes
    ----------
    name
        The column's name, not blank.
    view
        The side in a two-view table, or None; `"left"` and `"right"` are accepted.
    missing
        Whether a value may be missing.

    Raises
    ------
    InputError
        If a fact is of the wrong type or out of range.
    """

    kind: ClassVar[str]

    name: str
    view: View | None = attrs.field(default=None, converter=as_view, kw_only=True)
    missing: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Check every fact, and say in the error which attribute is wrong."""
        printable_name(self.name, "an attribute's name")
        if not isinstance(self.missing, bool):
            raise InputError(f"attribute '{self.name}': missing must be true or false")
        try:
            self._check()
        except InputError as error:
            raise InputError(f"attribute '{self.name}': {error}") from None

    @abc.abstractmethod
    def _check(self) -> None:
        """Validate and normalise the facts of this kind. The caller adds the attribute's name to an error."""

    def _set(self, field: str, value: object) -> None:
        # A frozen instance may be written only here, while it is constructed and its facts are normalised.
        object.__setattr__(self, field, value)

    @abc.abstractmethod
    def _domain_labels(self) -> tuple[str, ...]:
        """Return one text for each code except the code of missing values."""

    @abc.abstractmethod
    def _domain_facts(self) -> dict[str, Any]:
        """Return the JSON-safe facts of this kind only."""

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """One readable, distinct text for each code, with "missing" for missing values."""
        return self._domain_labels() + ((MISSING_LABEL,) if self.missing else ())

    @property
    def cells(self) -> tuple[str, ...]:
        """The text that a file holds for each code: its label, but with invisible characters as they are."""
        return self.labels

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of codes, including the code of missing values."""

    @property
    def domain_text(self) -> str:
        """The public domain in a few words: its first values, and how many more there are."""
        more = [] if self.size <= _MOST_SHOWN else [f"and {self.size - _MOST_SHOWN} more"]
        return ", ".join([*self.labels[:_MOST_SHOWN], *more])

    @property
    def missing_code(self) -> int | None:
        """The code of a missing value, which is the last code, or None if no value may be missing."""
        return self.size - 1 if self.missing else None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts in a JSON-safe form, defaults left out, in the order of a schema file.

        Examples
        --------
        >>> Boolean("smokes", view="left").to_dict()
        {'name': 'smokes', 'kind': 'boolean', 'view': 'left'}
        """
        form: dict[str, Any] = {"name": self.name, "kind": self.kind, **self._domain_facts()}
        if self.missing:
            form["missing"] = True
        if self.view is not None:
            form["view"] = self.view.value
        return form


def as_attributes(given: Iterable[Attribute]) -> tuple[Attribute, ...]:
    """Return attributes as a tuple, as the converter of an attrs field."""
    return tuple(given)


@final
@attrs.frozen(slots=False)
class Boolean(Attribute):
    """An attribute that is false (code 0) or true (code 1).

    Examples
    --------
    >>> Boolean("smokes", missing=True).labels
    ('false', 'true', 'missing')
    """

    kind: ClassVar[str] = "boolean"

    def _check(self) -> None:
        """Accept, since a Boolean has no facts of its own."""

    def _domain_labels(self) -> tuple[str, ...]:
        return ("false", "true")

    def _domain_facts(self) -> dict[str, Any]:
        return {}

    @property
    def size(self) -> int:
        """2, or 3 where values may be missing."""
        return 2 + self.missing


@final
@attrs.frozen(slots=False)
class Categorical(Attribute):
    """An attribute with a public list of values. A value's code is its position.

    Attributes
    ----------
    values
        The texts of the values: at least one, and none blank. No two may spell the same value, such as "1" and "1.0".
        A value's label is its text with every invisible character written out, such as a line break as a backslash
        and an n.

    Examples
    --------
    >>> Categorical("sex", ["Female", "Male"], missing=True).labels
    ('Female', 'Male', 'missing')
    """

    kind: ClassVar[str] = "categorical"

    values: tuple[str, ...] = attrs.field(converter=_as_values)

    def _check(self) -> None:
        for value in self.values:
            visible_text(value, "each of its values")
        if not self.values:
            raise InputError("needs at least one value")
        if len(self.values) > MOST_CODES:
            raise InputError(f"has more than {MOST_CODES} values")
        known: dict[Form | None, str] = {}
        for value in self.values:
            form = of_text(value)
            if form in known:
                raise InputError(
                    f"value {value!r} is listed twice; list each once"
                    if known[form] == value
                    else f"values {known[form]!r} and {value!r} are one value in a table; keep one, or rename one"
                )
            known[form] = value
        if len(set(self._domain_labels())) < len(self.values):
            raise InputError("two of its values read alike once invisible characters are written out; rename one")
        if self.missing and MISSING_LABEL in self.values:
            raise InputError(f"value {MISSING_LABEL!r} is the label of missing values; rename the value")

    def _domain_labels(self) -> tuple[str, ...]:
        return tuple(map(printable, self.values))

    @property
    def cells(self) -> tuple[str, ...]:
        """The values as they were given, and then the label of missing values if they are allowed."""
        return self.values + self.labels[len(self.values) :]

    def _domain_facts(self) -> dict[str, Any]:
        return {"values": list(self.values)}

    @property
    def size(self) -> int:
        """The number of values, plus one where values may be missing."""
        return len(self.values) + self.missing


@final
@attrs.frozen(slots=False)
class Numeric(Attribute):
    """An attribute with public bounds and public cut points.

    The code of x is the number of cut points at or below x. So code k stands for the bin [c_k, c_{k+1}), where c_0 is
    `lower` and c_1 < c_2 < ... are the cut points. The last bin includes `upper`.

    Attributes
    ----------
    lower, upper
        The finite bounds of the range, both included. `lower` is less than `upper`.
    bins
        The number of bins of equal width, at least 1. Give either `bins` or `cuts`.
    cuts
        The cut points, strictly increasing and strictly between the bounds.

    Examples
    --------
    >>> age = Numeric("age", 17, 90, cuts=[25, 65])
    >>> age.labels
    ('[17, 25)', '[25, 65)', '[65, 90]')
    >>> Numeric("share", lower=0, upper=1, bins=4).interior_cuts
    (0.25, 0.5, 0.75)
    """

    kind: ClassVar[str] = "numeric"

    lower: float
    upper: float
    bins: int | None = None
    cuts: tuple[float, ...] = attrs.field(default=(), converter=_as_cuts)

    def _check(self) -> None:
        self._set("lower", finite_number(self.lower, "lower"))
        self._set("upper", finite_number(self.upper, "upper"))
        if not self.lower < self.upper:
            remedy = "exchange them" if self.lower > self.upper else "give the range of values that can occur"
            raise InputError(f"lower must be below upper, and they are {self.lower:g} and {self.upper:g}; {remedy}")
        if not math.isfinite(self.upper - self.lower):
            raise InputError("the width upper - lower must be finite")
        self._set("cuts", tuple(finite_number(cut, "each of its cuts") for cut in self.cuts))
        if (self.bins is None) == (not self.cuts):
            raise InputError("needs either bins (equal width) or cuts (a list of cut points), not both")
        if self.bins is not None:
            self._set("bins", positive_count(self.bins, "bins"))
            if self.bins > MOST_CODES:
                raise InputError(f"bins must be at most {MOST_CODES}")
            if not is_increasing(self.edges):
                raise InputError("has so many bins that some of their ends are the same floating-point number")
            return
        if len(self.cuts) >= MOST_CODES:
            raise InputError(f"has more than {MOST_CODES} bins")
        if not is_increasing(self.cuts):
            raise InputError("cuts must be strictly increasing")
        if not (self.lower < self.cuts[0] and self.cuts[-1] < self.upper):
            outside = next(cut for cut in (self.cuts[0], self.cuts[-1]) if not self.lower < cut < self.upper)
            raise InputError(
                f"cuts must lie strictly between lower and upper, and {outside:g} does not; leave it out, or change a "
                "bound"
            )

    @property
    def edges(self) -> tuple[float, ...]:
        """The ends of the bins, increasing, from the lower bound to the upper bound."""
        return (self.lower, *self.interior_cuts, self.upper)

    @functools.cached_property
    def interior_cuts(self) -> tuple[float, ...]:
        """The cut points strictly between the bounds, increasing. They are `cuts`, or are computed from `bins`."""
        if self.bins is None:
            return self.cuts
        width = (self.upper - self.lower) / self.bins
        return tuple(self.lower + width * k for k in range(1, self.bins))

    def _domain_labels(self) -> tuple[str, ...]:
        edges = self.edges
        # %g reads best; narrow bins far from zero need more digits for their labels to differ.
        for digits in range(6, 18):
            texts = [f"{edge:.{digits}g}" for edge in edges]
            if len(set(texts)) == len(texts):
                break
        inner = [f"[{a}, {b})" for a, b in itertools.pairwise(texts[:-1])]
        return (*inner, f"[{texts[-2]}, {texts[-1]}]")

    def _domain_facts(self) -> dict[str, Any]:
        grid = {"bins": self.bins} if self.bins is not None else {"cuts": [plain_number(cut) for cut in self.cuts]}
        return {"lower": plain_number(self.lower), "upper": plain_number(self.upper), **grid}

    @property
    def domain_text(self) -> str:
        """The bounds, and how many cut points lie between them."""
        return f"from {self.lower:g} to {self.upper:g}, {count_text(len(self.interior_cuts), 'cut')}"

    @property
    def size(self) -> int:
        """The number of bins, plus one where values may be missing."""
        return (len(self.cuts) + 1 if self.bins is None else self.bins) + self.missing
