"""The literals and extensions that a schema allows in a redescription.

A redescription is a pair of descriptions, one on each side, that should hold for nearly the same rows. A description
joins literals by `and` and `or`. An extension adds one literal to one side.

Every literal is a range of known codes of one attribute, or all its known codes outside a range. The range is a value
of a Boolean or categorical attribute, or an interval between public cuts of a numeric one. A missing value satisfies no
literal, negated or not. Which literals and extensions there are follows from the schema. Only the methods `holds` read
rows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import (
    And,
    Attribute,
    Below,
    Description,
    Equals,
    InputError,
    Not,
    Numeric,
    Or,
    Schema,
    View,
    as_attributes,
    attributes_of_side,
)
from dpframework.tables import Block

Integers: TypeAlias = "NDArray[np.int64]"
MOST_CELLS = 50_000_000  # the most cells of all joint histograms together, which take 400 MB
MOST_CANDIDATES = 2_000_000_000  # the most pairs of literals; to score so many takes about ten seconds
UNEXTENDED = 0  # the position of the candidate that leaves a redescription as it is


@final
@attrs.frozen
class CodeRange:
    """A literal: a range of known codes of an attribute, or all its known codes outside a range.

    Attributes
    ----------
    attribute
        The attribute.
    first, last
        The first and the last known code of the range.
    negated
        Whether the literal holds outside the range, where the value is known.

    Examples
    --------
    >>> str(CodeRange(Numeric("age", 0, 9, cuts=[3, 6]), 1, 2, False).description)
    'age >= 3'
    """

    attribute: Attribute
    first: int
    last: int
    negated: bool

    @property
    def description(self) -> Description:
        """The literal as a description."""
        attribute = self.attribute
        if not isinstance(attribute, Numeric):
            value = Equals(attribute.name, attribute.labels[self.first])
            return Not(value) if self.negated else value
        cuts = attribute.interior_cuts
        ends: list[Description] = []
        if self.first > 0:
            start = Below(attribute.name, cuts[self.first - 1])
            ends.append(start if self.negated else Not(start))
        if self.last < len(cuts):
            end = Below(attribute.name, cuts[self.last])
            ends.append(Not(end) if self.negated else end)
        if len(ends) == 1:
            return ends[0]
        return Or(ends) if self.negated else And(ends)

    def holds(self, block: Block) -> NDArray[np.bool_]:
        """Tell for each row of a block whether the literal holds, as its description does."""
        codes = block.codes(self.attribute.name)
        inside = (codes >= self.first) & (codes <= self.last)
        return np.asarray((codes <= top_code(self.attribute)) & ~inside if self.negated else inside)


def top_code(attribute: Attribute) -> int:
    """Return the last code of a value that is not missing."""
    return attribute.size - 1 - (attribute.missing_code is not None)


def tests_of(attribute: Attribute) -> Integers:
    """Return every literal of an attribute as a row (first, last, negated), without two for the same set of codes."""
    top = top_code(attribute)
    if isinstance(attribute, Numeric):
        first, last = np.triu_indices(top + 1)
        proper = (first > 0) | (last < top)
        inner = (first > 0) & (last < top)  # the complement of a half-line is a half-line too
        kept = [np.stack([first[of], last[of], np.full(of.sum(), k)], axis=1) for k, of in enumerate((proper, inner))]
        return np.concatenate(kept).astype(np.int64)
    codes = {0: range(0), 1: range(1, 2)}.get(top, range(top + 1))
    return np.array([(code, code, negated) for code in codes for negated in (0, 1)], dtype=np.int64).reshape(-1, 3)


def literals_of(attribute: Attribute) -> list[CodeRange]:
    """Return every literal of an attribute.

    Examples
    --------
    >>> from dpframework.facts import Boolean
    >>> [str(literal.description) for literal in literals_of(Boolean("wolf"))]
    ['wolf = true', 'wolf != true']
    """
    return [CodeRange(attribute, first, last, bool(negated)) for first, last, negated in tests_of(attribute).tolist()]


def _number_of_literals(side: Iterable[Attribute]) -> int:
    """Return the number of literals of a side, without making them."""
    bins = [(top_code(a) + 1, isinstance(a, Numeric)) for a in side]
    return sum((n * (n + 1) + (n - 2) * (n - 1)) // 2 - 1 if numeric else 2 * n if n > 2 else 2 for n, numeric in bins)


@final
@attrs.frozen(slots=False)
class Language:
    """The literals that redescriptions of a table may use.

    All of it follows from the schema, so it is public.

    Attributes
    ----------
    left, right
        The attributes of each side, without those that have a single value. An attribute of both sides is used on one
        side only.
    """

    left: tuple[Attribute, ...] = attrs.field(converter=as_attributes)
    right: tuple[Attribute, ...] = attrs.field(converter=as_attributes)

    @classmethod
    def of_schema(
        cls, schema: Schema, left: Iterable[str] | None = None, right: Iterable[str] | None = None
    ) -> Language:
        """Return the language of a schema's two views, or of named attributes.

        Raises
        ------
        InputError
            If a side has no attribute with two values, if both sides have only the same attribute, or if there are too
            many pairs of values or of literals.
        """
        sides = []
        for view, names in ((View.LEFT, left), (View.RIGHT, right)):
            given = attributes_of_side(schema, view, names)
            usable = tuple(a for a in given if top_code(a) > 0)
            if not usable:
                what = (
                    f"the one attribute of the {view} view, '{given[0].name}', has"
                    if len(given) == 1
                    else (f"the attributes of the {view} view have")
                )
                raise InputError(f"{what} a single value; a side needs an attribute with two values or a cut")
            sides.append(usable)
        language = cls(*sides)
        if not len(language.pairs):
            raise InputError(f"both views have the attribute '{sides[0][0].name}' only; one side needs another")
        cells = int((language.tops[0] + 1).sum()) * int((language.tops[1] + 1).sum())
        candidates = _number_of_literals(language.left) * _number_of_literals(language.right)
        if cells > MOST_CELLS or candidates > MOST_CANDIDATES:
            raise InputError(
                f"the two views have {cells} pairs of values and {candidates} pairs of literals, more than the "
                f"{MOST_CELLS} and {MOST_CANDIDATES} that are allowed; give numeric attributes fewer bins, or "
                "leave out attributes with many values"
            )
        return language

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes of both sides."""
        return tuple(dict.fromkeys(a.name for side in self.sides for a in side))

    @property
    def sides(self) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
        """The attributes of the left and of the right side."""
        return self.left, self.right

    @functools.cached_property
    def tops(self) -> tuple[Integers, Integers]:
        """The largest code of each attribute of either side."""
        left, right = (np.array([a.size - 1 for a in side], dtype=np.int64) for side in self.sides)
        return left, right

    @functools.cached_property
    def known(self) -> tuple[Integers, Integers]:
        """The number of codes that are not missing, for each attribute of either side."""
        left, right = (np.array([top_code(a) + 1 for a in side], dtype=np.int64) for side in self.sides)
        return left, right

    @functools.cached_property
    def tests(self) -> tuple[Integers, Integers]:
        """The literals of either side as rows (position of the attribute in its side, first, last, negated)."""
        left, right = (
            np.concatenate([np.insert(tests_of(a), 0, k, axis=1) for k, a in enumerate(side)]) for side in self.sides
        )
        return left, right

    def literal(self, side: int, position: int) -> CodeRange:
        """Return a literal of the left side (0) or the right one (1)."""
        attribute, first, last, negated = self.tests[side][position].tolist()
        return CodeRange(self.sides[side][attribute], first, last, bool(negated))

    @functools.cached_property
    def starts(self) -> tuple[Integers, Integers]:
        """Where each attribute's literals start in its side, and where the last ones end."""
        left, right = (
            np.searchsorted(tests[:, 0], np.arange(len(side) + 1)).astype(np.int64)
            for tests, side in zip(self.tests, self.sides, strict=True)
        )
        return left, right

    @functools.cached_property
    def pairs(self) -> Integers:
        """The pairs of attributes of which initial pairs may consist, as positions in their sides, shape (pairs, 2)."""
        rows = [(i, j) for i, a in enumerate(self.left) for j, b in enumerate(self.right) if a.name != b.name]
        return np.array(rows, dtype=np.int64).reshape(-1, 2)

    @functools.cached_property
    def offsets(self) -> Integers:
        """Where each pair's joint histogram starts when all are joined in one line, and where the last one ends."""
        left, right = self.tops
        cells = (left[self.pairs[:, 0]] + 1) * (right[self.pairs[:, 1]] + 1)
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(cells)])

    @functools.cached_property
    def number_of_pairs(self) -> int:
        """The number of candidates for initial pairs."""
        return sum(self.sizes_of_pairs)

    @functools.cached_property
    def sizes_of_pairs(self) -> list[int]:
        """The number of candidates for initial pairs from each pair of attributes."""
        left, right = (np.diff(starts) for starts in self.starts)
        return [int(number) for number in left[self.pairs[:, 0]] * right[self.pairs[:, 1]]]

    @functools.cached_property
    def number_of_extensions(self) -> int:
        """The number of positions of extensions, including `UNEXTENDED` and those with attributes already used."""
        return 1 + 2 * (len(self.tests[0]) + len(self.tests[1]))

    def pair(self, pair: int, position: int) -> Redescribed:
        """Return the initial pair at a position among the candidates of one pair of attributes."""
        i, j = self.pairs[pair]
        first, beyond = self.starts[1][j : j + 2]
        left, right = divmod(position, int(beyond - first))
        return Redescribed(
            (JoinedPart(self.literal(0, int(self.starts[0][i]) + left), False),),
            (JoinedPart(self.literal(1, int(first) + right), False),),
        )

    def extend(self, redescribed: Redescribed, position: int) -> Redescribed:
        """Return a redescription with the extension at a position."""
        if position == UNEXTENDED:
            return redescribed
        position -= 1
        for k, field in enumerate(("left", "right")):
            number = len(self.tests[k])
            if position < 2 * number:
                part = JoinedPart(self.literal(k, position % number), position >= number)
                return attrs.evolve(redescribed, **{field: (*getattr(redescribed, field), part)})
            position -= 2 * number
        raise InputError("there is no extension at that position")

    def open_extensions(self, redescribed: Redescribed) -> NDArray[np.bool_]:
        """Tell which positions add an attribute that is on neither side yet, or leave the redescription as it is."""
        used = redescribed.attributes
        open_ = [np.ones(1, dtype=np.bool_)]
        for side, tests in zip(self.sides, self.tests, strict=True):
            free = np.array([a.name not in used for a in side])[tests[:, 0]]
            open_ += [free, free]
        return np.concatenate(open_)


@final
@attrs.frozen
class JoinedPart:
    """A literal of one side, and whether it is joined to the literals before it by `or` (else by `and`)."""

    literal: CodeRange
    by_or: bool


@final
@attrs.frozen
class Redescribed:
    """A redescription as it grows, with the literals of each side joined from left to right.

    Attributes
    ----------
    left, right
        The literals of each side, with the words that join them.
    """

    left: tuple[JoinedPart, ...]
    right: tuple[JoinedPart, ...]

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes of both sides."""
        return frozenset(part.literal.attribute.name for part in self.left + self.right)

    @property
    def descriptions(self) -> tuple[Description, Description]:
        """Both sides as descriptions."""
        return _join(self.left), _join(self.right)

    def holds(self, block: Block) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell for each row of a block whether each side holds."""
        return _holds(self.left, block), _holds(self.right, block)

    def __str__(self) -> str:
        """Write both sides."""
        left, right = self.descriptions
        return f"{left}  ~  {right}"


def _holds(parts: tuple[JoinedPart, ...], block: Block) -> NDArray[np.bool_]:
    held = parts[0].literal.holds(block)
    for part in parts[1:]:
        also = part.literal.holds(block)
        held = held | also if part.by_or else held & also
    return held


def _join(parts: tuple[JoinedPart, ...]) -> Description:
    joined = parts[0].literal.description
    for k, part in enumerate(parts[1:], start=1):
        kind: Any = Or if part.by_or else And
        again = k > 1 and parts[k - 1].by_or == part.by_or
        before = joined.parts if again and isinstance(joined, And | Or) else (joined,)
        joined = kind((*before, part.literal.description))
    return joined
