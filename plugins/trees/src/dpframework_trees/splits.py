"""Splits, and a node's candidate splits, which follow from the schema and the releases on its path alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, overload

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, Below, Cases, Equals, Literal, Numeric, Open, Schema

EQUALS, BELOW, MULTIWAY, OFF_GRID = 0, 1, 2, 3


@attrs.frozen
class Multiway:
    """A split into one child for each value of an attribute.

    Examples
    --------
    >>> str(Multiway("education"))
    'each education'
    """

    attribute: str

    def __str__(self) -> str:
        """Name the attribute."""
        return f"each {self.attribute}"


#: A split with a child for each value, or a test with two children.
Split: TypeAlias = "Multiway | Literal"


def cut_of(split: Split) -> str | Cases:
    """Return the cut for `PrivateTable.partition`, with one part for each child in the order of `child_labels`."""
    return split.attribute if isinstance(split, Multiway) else Cases([split])


@attrs.frozen(eq=False)
class Region:
    """The values that the path to a node leaves possible.

    A region is public, since the path was released.

    Attributes
    ----------
    schema
        The table's schema.
    starts
        The position in `possible` at which each attribute's codes start, then its length, shape (attributes + 1,).
    possible
        For each code of each attribute, whether a row of the node may have it, shape (codes of all attributes,).
    bounds
        For each numeric attribute, the interval of values that the path's off-grid thresholds leave possible.
    """

    schema: Schema
    starts: NDArray[np.int64]
    possible: NDArray[np.bool_]
    bounds: Mapping[str, tuple[float, float]]

    @classmethod
    def whole(cls, schema: Schema) -> Region:
        """Return the region of the root."""
        starts = code_starts(schema)
        bounds = {a.name: (a.lower, a.upper) for a in schema if isinstance(a, Numeric)}
        return cls(schema, starts, np.ones(starts[-1], dtype=np.bool_), bounds)

    def children(self, split: Split) -> list[Region]:
        """Return the regions that a split makes, in the order of its children."""
        attribute = self.schema[split.attribute]
        start = int(self.starts[self.schema.index(attribute.name)])
        if isinstance(split, Multiway):
            return [self._within(start, attribute.size, start + v, start + v + 1) for v in range(attribute.size)]
        if isinstance(split, Equals):
            code = start + attribute.labels.index(split.value)
            other = self.possible.copy()
            other[code] = False
            return [self._within(start, attribute.size, code, code + 1), attrs.evolve(self, possible=other)]
        assert isinstance(split, Below)
        assert isinstance(attribute, Numeric)
        if split.threshold in attribute.interior_cuts:
            end = start + attribute.interior_cuts.index(split.threshold) + 1
            below = self._within(start, attribute.size, start, end)
            return [below, self._within(start, attribute.size, end, start + attribute.size)]
        low, high = self.bounds[attribute.name]
        intervals = [(low, split.threshold), (split.threshold, high)]
        return [attrs.evolve(self, bounds={**self.bounds, attribute.name: interval}) for interval in intervals]

    def allows(self, name: str) -> bool:
        """Tell whether the region leaves any value of an attribute possible."""
        k = self.schema.index(name)
        return bool(self.possible[self.starts[k] : self.starts[k + 1]].any())

    def _within(self, start: int, size: int, first: int, end: int) -> Region:
        """Return the region in which the attribute at `start` has only the codes from `first` to `end` - 1."""
        possible = self.possible.copy()
        possible[start:first] = False
        possible[end : start + size] = False
        return attrs.evolve(self, possible=possible)


def code_starts(schema: Schema) -> NDArray[np.int64]:
    """Return where each attribute's codes start if the codes of all attributes form one array, then its length.

    An open attribute has no codes there, since its values are not listed.
    """
    sizes = [0 if isinstance(a, Open) else a.size for a in schema]
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])


@attrs.frozen(eq=False)
class Candidates(Sequence[Split]):
    """A sequence of candidate splits, stored as arrays with one entry for each. A split is made when it is read.

    Attributes
    ----------
    schema
        The table's schema.
    attributes
        Positions, in the schema, of the attributes that candidates may split on, shape (k,).
    sizes
        The number of codes of each of these attributes, shape (k,).
    owner
        The position in `attributes` of each candidate's attribute, shape (candidates,).
    kinds
        The kind of each candidate: EQUALS, BELOW, MULTIWAY, or OFF_GRID (a threshold that is not a public cut).
    codes
        For an EQUALS candidate its code, for a BELOW candidate the last code on its true side; 0 otherwise.
    thresholds
        The threshold of an OFF_GRID candidate; NaN otherwise.
    """

    schema: Schema
    attributes: NDArray[np.int64]
    sizes: NDArray[np.int64]
    owner: NDArray[np.int64]
    kinds: NDArray[np.int8]
    codes: NDArray[np.int64]
    thresholds: NDArray[np.float64]

    @classmethod
    def of_schema(cls, schema: Schema, names: Sequence[str], *, multiway: bool, cuts: bool) -> Candidates:
        """Return every candidate on some attributes.

        Parameters
        ----------
        schema
            The table's schema.
        names
            The attributes to split on.
        multiway
            Whether attributes that are not numeric are split into all their values, rather than by binary tests.
        cuts
            Whether the public cuts of numeric attributes are candidates.
        """
        owner, kinds, codes = [], [], []
        for k, name in enumerate(names):
            attribute = schema[name]
            if isinstance(attribute, Numeric):
                tests = range(len(attribute.interior_cuts)) if cuts else range(0)
                kind = BELOW
            elif multiway:
                tests, kind = range(1), MULTIWAY
            else:
                # With two codes both tests make the same split. For a Boolean, the test of "true" reads better.
                first = {1: 1, 2: 1}.get(attribute.size, 0)
                tests, kind = range(first, attribute.size), EQUALS
            owner += [k] * len(tests)
            kinds += [kind] * len(tests)
            codes += list(tests)
        return cls(
            schema,
            np.array([schema.index(name) for name in names], dtype=np.int64),
            np.array([schema[name].size for name in names], dtype=np.int64),
            np.array(owner, dtype=np.int64),
            np.array(kinds, dtype=np.int8),
            np.array(codes, dtype=np.int64),
            np.full(len(owner), np.nan),
        )

    @property
    def split_on(self) -> tuple[Attribute, ...]:
        """The attributes that some candidate splits on, in the order of `attributes`."""
        return tuple(self.schema.attributes[self.attributes[k]] for k in sorted(set(self.owner.tolist())))

    def possible(self, region: Region) -> Candidates:
        """Return the candidates with at least two children that rows of the region may fall in."""
        position = self.attributes[self.owner]
        first, end = region.starts[position], region.starts[position + 1]
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(region.possible)])
        left = before[end] - before[first]
        code = first + self.codes
        held = np.where(self.kinds == EQUALS, region.possible[code], before[code + 1] - before[first])
        return self._at(np.where(self.kinds == MULTIWAY, left >= 2, (held > 0) & (held < left)))

    def without(self, split: Split) -> Candidates:
        """Return the candidates that do not split on the attribute of a multiway split."""
        position = self.schema.index(split.attribute)
        return self._at(self.attributes[self.owner] != position) if len(self.owner) else self

    def without_tests(self, taken: Sequence[Literal]) -> Candidates:
        """Return the candidates on attributes of which no test has been taken.

        If there are no such candidates, return all but the taken tests. If all candidates are taken, return them all.
        """
        positions = [self.schema.index(test.attribute) for test in taken]
        others = ~np.isin(self.attributes[self.owner], positions)
        if others.any():
            return self._at(others)
        left = np.array([self[k] not in taken for k in range(len(self))])
        return self._at(left) if left.any() else self

    def with_thresholds(self, thresholds: Mapping[str, float]) -> Candidates:
        """Return these candidates, then one off-grid threshold for each numeric attribute in `thresholds`."""
        positions = np.array([self.schema.index(name) for name in thresholds], dtype=np.int64)
        new = len(positions)
        return attrs.evolve(
            self,
            attributes=np.concatenate([self.attributes, positions]),
            sizes=np.concatenate([self.sizes, [self.schema[name].size for name in thresholds]]).astype(np.int64),
            owner=np.concatenate([self.owner, len(self.attributes) + np.arange(new)]),
            kinds=np.concatenate([self.kinds, np.full(new, OFF_GRID, dtype=np.int8)]),
            codes=np.concatenate([self.codes, np.zeros(new, dtype=np.int64)]),
            thresholds=np.concatenate([self.thresholds, np.fromiter(thresholds.values(), dtype=np.float64, count=new)]),
        )

    def of_attribute(self, name: str) -> Candidates:
        """Return the candidates on one attribute."""
        return self._at(self.attributes[self.owner] == self.schema.index(name)) if len(self.owner) else self

    def with_one_cut(self, chosen: Mapping[str, Literal]) -> Candidates:
        """Return the candidates without the cuts of numeric attributes, except for the chosen cut of each."""
        keep = self.kinds != BELOW
        for name, literal in chosen.items():
            attribute = self.schema[name]
            assert isinstance(attribute, Numeric)
            assert isinstance(literal, Below)
            own = self.attributes[self.owner] == self.schema.index(name)
            keep |= own & (self.codes == attribute.interior_cuts.index(literal.threshold))
        return self._at(keep)

    def _at(self, keep: NDArray[np.bool_]) -> Candidates:
        return attrs.evolve(
            self,
            owner=self.owner[keep],
            kinds=self.kinds[keep],
            codes=self.codes[keep],
            thresholds=self.thresholds[keep],
        )

    def position(self, test: Literal) -> int:
        """Return the position of a test of a value or of a public cut among the candidates."""
        if isinstance(test, Below):
            code = test.numeric(self.schema).interior_cuts.index(test.threshold)
        else:
            assert isinstance(test, Equals)
            code = test.code(self.schema)
        of_attribute = self.attributes[self.owner] == self.schema.index(test.attribute)
        return int(np.flatnonzero(of_attribute & (self.codes == code))[0])

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.kinds)

    @overload
    def __getitem__(self, position: int) -> Split: ...

    @overload
    def __getitem__(self, position: slice) -> Sequence[Split]: ...

    def __getitem__(self, position: int | slice) -> Split | Sequence[Split]:
        """Return one split, or several for a slice."""
        if isinstance(position, slice):
            return [self[k] for k in range(*position.indices(len(self)))]
        attribute = self.schema.attributes[self.attributes[self.owner[position]]]
        match int(self.kinds[position]):
            case 0:
                return Equals(attribute.name, attribute.labels[self.codes[position]])
            case 1:
                assert isinstance(attribute, Numeric)
                return Below(attribute.name, attribute.interior_cuts[self.codes[position]])
            case 2:
                return Multiway(attribute.name)
        return Below(attribute.name, float(self.thresholds[position]))


def names_in(*tests: Candidates) -> tuple[str, ...]:
    """Return the names of the candidates' attributes, which a query for their scores may read."""
    return tuple(dict.fromkeys(attribute.name for some in tests for attribute in some.split_on))


def child_labels(split: Split, schema: Schema) -> tuple[str, ...]:
    """Return one text for each child of a split, in order.

    Examples
    --------
    >>> from dpframework.facts import Boolean
    >>> child_labels(Equals("ill", "true"), Schema([Boolean("ill")]))
    ('ill = true', 'ill != true')
    """
    if isinstance(split, Multiway):
        return tuple(f"{split.attribute} = {label}" for label in schema[split.attribute].labels)
    if isinstance(split, Below):
        return str(split), f"{split.attribute} >= {split.threshold:.6g}"
    return str(split), str(split).replace(" = ", " != ", 1)
