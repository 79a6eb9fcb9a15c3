"""Descriptions, which are logical formulas over the attributes of one table, and the parts into which they divide rows.

A literal is a formula that tests one attribute. Descriptions are public, since they come from the schema and from
releases. They are evaluated row by row. `Cases` divides the rows into disjoint cells by a list of descriptions. A
literal that does not test for missing values neither holds nor fails on a missing value (Kleene's three-valued logic).
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.control_character_escapes import printable
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema
from dpframework.facts.value_checks import as_float

Mask = NDArray[np.bool_]


class KeyCodes(Protocol):
    """The keys of an open attribute, whose values nobody lists beforehand (see `Open`).

    Each row has the code of its key, or 0 if it has no key.
    """

    @property
    def codes(self) -> NDArray[np.unsignedinteger]:
        """Return the code of each row's key, or 0 for a row without a key."""

    def cells(self, keys: Sequence[str | None]) -> NDArray[np.unsignedinteger]:
        """Return for each row the first position of its key in `keys`, or `len(keys)` if it is not there."""


class Columns(Protocol):
    """The schema and one array of codes or raw values for each attribute, on which descriptions are evaluated."""

    @property
    def schema(self) -> Schema:
        """The attributes' facts."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def codes(self, name: str) -> NDArray[np.unsignedinteger]:
        """Return the integer codes of an attribute, one per row."""

    def values(self, name: str) -> NDArray[np.float64]:
        """Return the raw values of a numeric attribute, one per row, NaN where missing."""

    def keys(self, name: str) -> KeyCodes:
        """Return the keys of an open attribute, as one code per row."""


class Description(abc.ABC):
    """A logical formula over literals. A literal is the smallest description."""

    @abc.abstractmethod
    def holds(self, columns: Columns) -> Mask:
        """Tell for each row whether the formula holds. On a missing value only a test for missing values holds."""

    def fails(self, columns: Columns) -> Mask:
        """Tell for each row whether the negated formula holds. On a missing value no negated literal holds."""
        return ~self.holds(columns)

    @abc.abstractmethod
    def literals(self) -> tuple[Literal, ...]:
        """Return the literals in reading order."""

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `description_from_dict` reads."""


def as_descriptions(parts: Iterable[Description]) -> tuple[Description, ...]:
    """Return descriptions as a tuple, as the converter of an attrs field."""
    return tuple(parts)


@attrs.frozen
class Literal(Description):
    """A test on one attribute."""

    attribute: str

    def literals(self) -> tuple[Literal, ...]:
        """Return this literal alone."""
        return (self,)


@attrs.frozen
class Equals(Literal):
    """The attribute has this value, which is one of the labels that the schema lists, including "missing".

    For an open attribute the value is any key, known publicly or from a release. The test does not tell whether any row
    has that key.

    Examples
    --------
    >>> str(Equals("sex", "Male"))
    'sex = Male'
    """

    value: str

    def code(self, schema: Schema) -> int:
        """Return the value's code.

        Raises
        ------
        InputError
            If the attribute has no such value.
        """
        labels = schema[self.attribute].labels
        if self.value not in labels:
            raise InputError(f"attribute '{self.attribute}' has no value {self.value!r}; {nearest(self.value, labels)}")
        return labels.index(self.value)

    def holds(self, columns: Columns) -> Mask:
        """Tell for each row whether it has this value or, for an open attribute, the key of this value."""
        attribute = columns.schema[self.attribute]
        if isinstance(attribute, Open):
            return np.asarray(columns.keys(self.attribute).cells([attribute.key_of(self.value)]) == 0)
        return np.asarray(columns.codes(self.attribute) == self.code(columns.schema))

    def fails(self, columns: Columns) -> Mask:
        """Tell for each row whether its value is known and differs from this one."""
        if isinstance(columns.schema[self.attribute], Open):
            return np.asarray(columns.keys(self.attribute).codes != 0) & ~self.holds(columns)
        code, missing = self.code(columns.schema), columns.schema[self.attribute].missing_code
        codes = columns.codes(self.attribute)
        return np.asarray((codes != code) & (codes != missing) if missing not in (None, code) else codes != code)

    def to_dict(self) -> dict[str, Any]:
        """Return the form {"equals": [attribute, value]}."""
        return {"equals": [self.attribute, self.value]}

    def __str__(self) -> str:
        return printable(f"{self.attribute} = {self.value}")


def threshold_text(threshold: float) -> str:
    """Write a number to six digits if that is exact, else in full, so that two thresholds never read alike.

    Examples
    --------
    >>> threshold_text(30.0), threshold_text(1700033000.0)
    ('30', '1700033000.0')
    """
    short = f"{threshold:.6g}"
    return short if float(short) == threshold else repr(threshold)


@attrs.frozen
class Below(Literal):
    """The numeric attribute is below a threshold. Codes are compared if the threshold is a public cut, else raw values.

    Examples
    --------
    >>> str(Below("age", 30))
    'age < 30'
    """

    threshold: float = attrs.field(converter=as_float)

    def numeric(self, schema: Schema) -> Numeric:
        """Return the attribute's facts.

        Raises
        ------
        InputError
            If the attribute is not numeric.
        """
        attribute = schema[self.attribute]
        if not isinstance(attribute, Numeric):
            raise InputError(f"attribute '{self.attribute}' is {attribute.kind}; a threshold needs a numeric one")
        return attribute

    def is_cut(self, schema: Schema) -> bool:
        """Tell whether the threshold is a public cut, so that codes tell which rows are below it."""
        return self.threshold in self.numeric(schema).interior_cuts

    def holds(self, columns: Columns) -> Mask:
        """Tell for each row whether it is below, by codes if the threshold is a public cut, else by raw values."""
        attribute = self.numeric(columns.schema)
        if self.is_cut(columns.schema):
            return np.asarray(columns.codes(self.attribute) <= attribute.interior_cuts.index(self.threshold))
        return np.asarray(columns.values(self.attribute) < self.threshold)

    def fails(self, columns: Columns) -> Mask:
        """Tell for each row whether its value is known and not below (see `holds` for what is compared)."""
        attribute = self.numeric(columns.schema)
        if self.threshold in attribute.interior_cuts:
            codes = columns.codes(self.attribute)
            above = np.asarray(codes > attribute.interior_cuts.index(self.threshold))
            return above if attribute.missing_code is None else above & (codes != attribute.missing_code)
        return np.asarray(columns.values(self.attribute) >= self.threshold)

    def to_dict(self) -> dict[str, Any]:
        """Return the form {"below": [attribute, threshold]}."""
        return {"below": [self.attribute, self.threshold]}

    def __str__(self) -> str:
        """Write `attribute < threshold`, to six digits if that is exact, else in full."""
        return f"{self.attribute} < {threshold_text(self.threshold)}"


@attrs.frozen
class Not(Description):
    """Holds where its part fails. A negated literal holds where the value is known and the literal does not hold."""

    part: Description

    def holds(self, columns: Columns) -> Mask:
        """Tell for each row whether the part fails."""
        return self.part.fails(columns)

    def fails(self, columns: Columns) -> Mask:
        """Tell for each row whether the part holds."""
        return self.part.holds(columns)

    def literals(self) -> tuple[Literal, ...]:
        """Return the part's literals."""
        return self.part.literals()

    def to_dict(self) -> dict[str, Any]:
        """Return the form {"not": part}."""
        return {"not": self.part.to_dict()}

    def __str__(self) -> str:
        if isinstance(self.part, Below):
            return f"{self.part.attribute} >= {threshold_text(self.part.threshold)}"
        part = self.part
        return printable(f"{part.attribute} != {part.value}") if isinstance(part, Equals) else f"not ({part})"


@attrs.frozen
class _Joined(Description):
    """Several descriptions, joined by one word."""

    word: ClassVar[str]
    of_none: ClassVar[bool]  # whether the formula holds if it has no parts
    fold: ClassVar[np.ufunc]

    parts: tuple[Description, ...] = attrs.field(converter=as_descriptions)

    def holds(self, columns: Columns) -> Mask:
        """Join the masks of the parts."""
        masks = [part.holds(columns) for part in self.parts]
        return np.asarray(self.fold.reduce(masks), dtype=np.bool_) if masks else np.full(columns.rows, self.of_none)

    def fails(self, columns: Columns) -> Mask:
        """Join the masks of the negated parts by the other word, as De Morgan's laws say."""
        masks = [part.fails(columns) for part in self.parts]
        fold = np.logical_or if self.of_none else np.logical_and
        return np.asarray(fold.reduce(masks), dtype=np.bool_) if masks else np.full(columns.rows, not self.of_none)

    def literals(self) -> tuple[Literal, ...]:
        """Return the parts' literals."""
        return tuple(literal for part in self.parts for literal in part.literals())

    def to_dict(self) -> dict[str, Any]:
        """Return the form {"and": parts} or {"or": parts}."""
        return {self.word: [part.to_dict() for part in self.parts]}

    def __str__(self) -> str:
        """Join the parts by the word. Parts of the other word stand in brackets."""
        texts = (f"({p})" if isinstance(p, _Joined) and p.word != self.word else str(p) for p in self.parts)
        return f" {self.word} ".join(texts) or ("always" if self.of_none else "never")


@attrs.frozen
class And(_Joined):
    """Holds where all its parts hold. Without parts it holds everywhere."""

    word, of_none, fold = "and", True, np.logical_and


@attrs.frozen
class Or(_Joined):
    """Holds where at least one of its parts holds. Without parts it holds nowhere."""

    word, of_none, fold = "or", False, np.logical_or


def fixes(description: Description, attribute: Attribute, *, holds: bool = True) -> bool:
    """Tell whether all rows for which a description holds, or fails, have the same value of an attribute.

    A formula that joins tests by "and" holds only if each of them holds, so one test that fixes the attribute is
    enough. The same is true if a formula that joins tests by "or" fails. For all other formulas the result is False,
    and for numeric attributes, too, since these may be counted in other bins. False means that nothing is known.

    Parameters
    ----------
    description, attribute
        The formula and the attribute.
    holds
        True for the rows for which the formula holds, False for those for which its negation holds.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean, Categorical
    >>> town, ill = Categorical("town", ["A", "B", "C"]), Boolean("ill")
    >>> here = And([Equals("town", "B"), Not(Equals("ill", "true"))])
    >>> fixes(here, town), fixes(here, ill), fixes(Not(Equals("town", "B")), town)
    (True, True, False)
    """
    match description:
        case Equals(attribute=attribute.name, value=value) if not isinstance(attribute, Numeric):
            # The negated test holds for the other known values, so it fixes the attribute if just one is left.
            labels = attribute.labels
            is_known = attribute.missing_code is not None and value != labels[attribute.missing_code]
            return holds or len(labels) - is_known == 2
        case Not(part=part):
            return fixes(part, attribute, holds=not holds)
        case And(parts=parts) if holds:
            return any(fixes(part, attribute) for part in parts)
        case Or(parts=parts) if not holds:
            return any(fixes(part, attribute, holds=False) for part in parts)
    return False


def description_from_dict(form: Mapping[str, Any]) -> Description:
    """Read the output of `Description.to_dict`.

    Raises
    ------
    InputError
        If the form is not one of the known ones.

    Examples
    --------
    >>> description_from_dict({"not": {"equals": ["sex", "Male"]}})
    Not(part=Equals(attribute='sex', value='Male'))
    """
    match dict(form) if len(form) == 1 else {}:
        case {"equals": [str(attribute), str(value)]}:
            return Equals(attribute, value)
        case {"below": [str(attribute), (int() | float()) as threshold]}:
            return Below(attribute, threshold)
        case {"not": dict(part)}:
            return Not(description_from_dict(part))
        case {"and": list(parts)}:
            return And(description_from_dict(part) for part in parts)
        case {"or": list(parts)}:
            return Or(description_from_dict(part) for part in parts)
    raise InputError(
        "a description is written as one of 'equals', 'below', 'not', 'and', 'or'; write one such as "
        '{ equals = ["sex", "f"] } or { not = { below = ["age", 65] } }'
    )


@attrs.frozen
class Cases:
    """A division of rows into disjoint cells. A row is in the cell of the first description that holds for it.

    With n descriptions there are n + 1 cells. The last cell has the rows for which no description holds.

    Examples
    --------
    >>> Cases([Below("age", 30)]).labels
    ('age < 30', 'otherwise')
    """

    descriptions: tuple[Description, ...] = attrs.field(converter=as_descriptions)

    @property
    def labels(self) -> tuple[str, ...]:
        """One text for each cell."""
        return (*(str(d) for d in self.descriptions), "otherwise")

    def cells(self, columns: Columns) -> NDArray[np.unsignedinteger]:
        """Return the cell of each row, shape (rows,), in [0, len(descriptions)], in the smallest type."""
        if (keys := self._keys(columns.schema)) is not None:
            return columns.keys(keys[0].name).cells([keys[0].key_of(value) for value in keys[1]])
        cells = np.full(columns.rows, len(self.descriptions), dtype=np.min_scalar_type(len(self.descriptions)))
        for k in range(len(self.descriptions) - 1, -1, -1):  # backwards, so that the first that holds decides
            np.copyto(cells, k, where=self.descriptions[k].holds(columns), casting="unsafe")
        return cells

    def _keys(self, schema: Schema) -> tuple[Open, list[str]] | None:
        """Return the open attribute and the keys, if every description tests this one attribute for a key."""
        tests = [one for one in self.descriptions if isinstance(one, Equals)]
        if not tests or len(tests) < len(self.descriptions) or len({one.attribute for one in tests}) > 1:
            return None
        attribute = schema[tests[0].attribute]
        return (attribute, [one.value for one in tests]) if isinstance(attribute, Open) else None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {"cases": [d.to_dict() for d in self.descriptions]}
