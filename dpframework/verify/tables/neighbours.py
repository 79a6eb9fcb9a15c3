"""Small tables of the kinds of rows that a schema allows, and their neighbours.

Rows of the same kind have the same cells. The kinds are numbered from 0, and a table is a `bytes` value with one byte
per row, the number of its kind. Such tables are made up, so they may be shown.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.open_attribute import Open
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import ONE_ROW, UnitChange
from dpframework.facts.schema import Schema
from dpframework.tables.coded_table import Table
from dpframework.tables.column_encoding import EncodedColumn, stored_dtype
from dpframework.tables.derived_column_cells import with_derived
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.open_attribute_keys import KEY_CODES, NO_KEY, KeyBook, KeyColumn
from dpframework.tables.reading import table_from_columns

Rows: TypeAlias = bytes
Change: TypeAlias = tuple[Rows, Rows]  # the rows in only the first of two neighbours, and those in only the second
MOST_KINDS = 255  # the kind of a row is one byte
MOST_NUMBERS = 7  # how many given numbers a numeric attribute takes, at most
NO_NUMBERS: Mapping[str, Sequence[float]] = MappingProxyType({})
# The most units with unequal rows that are tried. With more, units of equal rows, which mostly show the largest loss,
# would be tried too seldom.
MOST_MIXED = 40
KEYS = ("b", "a", "c")  # the keys of an attribute whose values nobody lists, not in order; some rows have no key
SHOWN = 60  # how many letters of a key are shown
SAMPLED_ROWS = 6  # the most rows of tables from which a plan samples: so few that all samples can be listed


@final
class Universe:
    """The kinds of rows that a schema allows: all of them if they are few, else a sample.

    A numeric attribute takes its upper bound, and two values in each bin, so that queries on raw values see differences
    within bins, too. An open attribute, whose values nobody lists, takes a few keys, or none. A sample has rows with
    the first and the last values of attributes, since these often cause the largest changes. Derived columns are
    computed from the others, as in a table that is read.

    Parameters
    ----------
    schema
        The public facts.
    rows
        Kinds of rows that are used in place of those of the schema, each with one value for each column.
    numbers
        Further numbers that numeric attributes take, by the attributes' names. Numbers beyond the bounds are left out.
    texts
        Further texts that the cells of open attributes hold.

    Attributes
    ----------
    kinds
        How many kinds of rows there are.
    codes
        The code of each attribute in each kind of row, shape (attributes, kinds). For an open attribute it is the
        number of the key.
    sizes
        How many values each attribute takes, shape (attributes,), without derived attributes. None if `rows` are given.
    places
        The position, from 0, of each row's value among the values that its attribute takes, shape (attributes, kinds).
        None if `rows` are given.
    values_read
        The numeric attributes whose raw values were read from some block of this universe.
    """

    sizes: NDArray[np.int64] | None = None
    places: NDArray[np.int64] | None = None

    def __init__(
        self,
        schema: Schema,
        *,
        rows: Sequence[Mapping[str, Any]] = (),
        numbers: Mapping[str, Sequence[float]] = NO_NUMBERS,
        texts: Sequence[str] = (),
    ) -> None:
        self.schema, self.texts = schema, tuple(texts)
        self.values_read: set[str] = set()
        self._books: dict[str, KeyBook] = {}
        for own in schema:
            if isinstance(own, Open):  # the usual keys, and those of further texts
                more = [key for key in map(own.key_of, self.texts) if key is not None and key not in KEYS]
                self._books[own.name] = KeyBook((*KEYS, *more))
        if rows:
            columns = {name: [row[name] for row in rows] for name in schema.column_names}
            of_any_size = attrs.evolve(schema, rows=None, max_rows=None)  # the table holds each kind of row once
            table = table_from_columns(columns, of_any_size, source="a witness")
            self.kinds, self.codes, self._values = len(rows), table.codes.astype(np.int64), dict(table.values)
            for name, column in table.keys.items():
                self.codes[schema.index(name)], self._books[name] = column.codes, column.book
            return
        rng = np.random.default_rng(0)
        self._points = [
            (np.arange(len(self._books[own.name]) + 1), None)
            if isinstance(own, Open)
            else _points(own, rng, numbers.get(own.name, ()))
            for own in schema.columns
        ]
        self.sizes = np.array([len(codes) for codes, _ in self._points])
        if not self.sampled:
            self._take(np.array(list(itertools.product(*map(range, self.sizes)))).T)
            return
        drawn = np.stack([rng.integers(0, size, MOST_KINDS) for size in self.sizes])
        self._take(np.unique(np.concatenate([_extreme(self.sizes), drawn], axis=1)[:, :MOST_KINDS], axis=1))

    @property
    def sampled(self) -> bool:
        """Whether the schema allows more kinds of rows than this universe has."""
        return self.sizes is not None and math.prod(self.sizes.tolist()) > MOST_KINDS

    def among(self, places: NDArray[np.int64]) -> Universe:
        """Return a universe of other kinds of rows, whose `places` are given."""
        other: Universe = object.__new__(Universe)
        other.schema, other.texts, other.sizes, other.values_read = self.schema, self.texts, self.sizes, set()
        other._books, other._points = self._books, self._points
        other._take(places[:, :MOST_KINDS])
        return other

    def with_numbers(self, name: str, numbers: Sequence[float] | NDArray[np.float64]) -> Universe:
        """Return a universe with one kind of row for each of some numbers of a numeric attribute.

        All other cells hold the first value of their attribute. This universe must have been made without `rows`.
        """
        other: Universe = object.__new__(Universe)
        other.schema, other.texts, other._books, other.values_read = self.schema, self.texts, self._books, set()
        values = np.array(numbers, dtype=np.float64)
        number = self.schema.column_names.index(name)
        numeric = self.schema.columns[number]
        assert isinstance(numeric, Numeric)
        codes = np.searchsorted(numeric.interior_cuts, values, side="right")
        other._points = [*self._points[:number], (codes, values), *self._points[number + 1 :]]
        other.sizes = np.array([len(own) for own, _ in other._points])
        places = np.zeros((len(other._points), len(values)), dtype=np.int64)
        places[number] = np.arange(len(values))
        other._take(places)
        return other

    def _take(self, places: NDArray[np.int64]) -> None:
        points, columns = self._points, self.schema.columns
        self.places, self.kinds = places, places.shape[1]
        self.codes = np.stack([codes[k] for (codes, _), k in zip(points, places, strict=True)])
        self._values = {
            attribute.name: values[k]
            for attribute, (_, values), k in zip(columns, points, places, strict=True)
            if values is not None
        }
        of = zip(self.schema.column_names, self.codes.astype(np.uint32), strict=True)
        read = {name: EncodedColumn(own, self._values.get(name)) for name, own in of}
        made = with_derived(self.schema, read)
        self.codes = np.stack([made[name].codes.astype(np.int64) for name in self.schema.names])
        self._values |= {name: one.values for name, one in made.items() if one.values is not None}

    def block(
        self, rows: Rows, units: NDArray[np.int64] | None = None, places: NDArray[np.int64] | None = None
    ) -> Block:
        """Return the rows of a table as a block, between other rows that do not belong to the table.

        Parameters
        ----------
        rows
            The table.
        units
            The number of each row's unit. With these, a unit counts once for each of its keys.
        places
            The place of each row within its unit, from 0. By default each row is a unit, so all places are 0.
        """
        kinds = np.frombuffer(rows, dtype=np.uint8)
        numbers = {name: own.take(kinds, axis=0).ravel() for name, own in self._beside_another.items()}
        keys = {}
        for name, book in self._books.items():
            # The numbers of keys depend on the rows of a table. Here keys are numbered from the last row to the first,
            # so that a change of the last row changes all numbers.
            codes = numbers[name]
            present, first = np.unique(codes[::-1], return_index=True)
            in_order = [code for code in present[np.argsort(first)].tolist() if code != NO_KEY]
            renumbered = np.zeros(len(book) + 1, dtype=KEY_CODES)
            renumbered[in_order] = np.arange(1, len(in_order) + 1)
            keys[name] = KeyColumn(renumbered[codes], KeyBook(book.texts[code - 1] for code in in_order))
        if units is not None:  # the rows in between belong to other units
            whose = np.stack([units + len(kinds), units], axis=1).ravel()
            keys = {name: column.of_units(whose) for name, column in keys.items()}
        columns = tuple(np.zeros(len(own), np.uint8) if name in keys else own for name, own in numbers.items())
        index = np.arange(1, 2 * len(kinds), 2, dtype=np.int32)
        for column in columns:
            # As in a real table, columns are read-only, so a query that writes into them fails.
            column.flags.writeable = False
        last = 0 if places is None else int(places.max(initial=0))
        of_units = np.zeros(2 * len(kinds), dtype=np.min_scalar_type(last))
        of_units[1::2] = 0 if places is None else places
        of_units.flags.writeable = False
        values = _BesideAnother(self._values_beside_another, kinds, self.values_read)
        return Block(self.schema, columns, values, index, unit_places=of_units, key_columns=keys)

    @functools.cached_property
    def _beside_another(self) -> dict[str, NDArray[Any]]:
        """For each attribute, its code in another kind of row and then in the kind itself, shape (kinds, 2).

        A part of a table consists of some rows of a block. So a query that also reads the other rows of the block gives
        itself away here. The codes are as narrow as in a real table. So a query that multiplies them carelessly wraps
        round here, too.
        """
        beside = np.stack([np.roll(self.codes, -1, axis=1), self.codes], axis=2)
        kinds = {a.name: KEY_CODES if a.name in self._books else stored_dtype(a) for a in self.schema}
        return {name: own.astype(kind) for (name, kind), own in zip(kinds.items(), beside, strict=True)}

    @functools.cached_property
    def _values_beside_another(self) -> dict[str, NDArray[np.float64]]:
        """The raw values of each numeric attribute, arranged as the codes in `_beside_another`."""
        return {name: np.stack([np.roll(column, -1), column], axis=1) for name, column in self._values.items()}

    def table(self, rows: Rows) -> Table:
        """Return the rows as a `Table`, which a study can use."""
        kinds = np.frombuffer(rows, dtype=np.uint8)
        values = {name: column[kinds] for name, column in self._values.items()}
        codes = self.codes[:, kinds]
        of_open = {name: self.schema.index(name) for name in self._books}
        keys = {name: [self._key(name, code) for code in codes[k].tolist()] for name, k in of_open.items()}
        codes[list(of_open.values())] = 0
        return Table.from_codes(self.schema, codes, values, keys=keys)

    def _key(self, name: str, code: int) -> str | None:
        """Return the key with a given number of an open attribute, or None if the number stands for no key."""
        return None if code == NO_KEY else self._books[name].texts[code - 1]

    def describe(self, rows: Rows) -> list[str]:
        """Return one text for each kind of row in a table, with the number of its rows."""
        counts = {kind: rows.count(kind) for kind in dict.fromkeys(rows)}
        return [f"{number} x ({self._row(kind)})" for kind, number in counts.items()]

    def _row(self, kind: int) -> str:
        texts = []
        for k, attribute in enumerate(self.schema):
            raw = self._values.get(attribute.name)
            code = int(self.codes[k, kind])
            if attribute.name in self._books:
                shown = str(self._key(attribute.name, code))
                shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}... ({len(shown)} letters)"
            else:
                shown = attribute.labels[code]
            if raw is not None and not math.isnan(raw[kind]):
                shown = f"{raw[kind]:.6g}"
            texts.append(f"{attribute.name}: {shown}")
        return ", ".join(texts)


def _extreme(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of rows with first or last values, and of rows with equal places for all attributes.

    The result has shape (attributes, rows).
    """
    one, last, kinds = np.diag(sizes - 1), sizes[:, None] - 1, np.arange(min(sizes.max(), MOST_KINDS // 4))
    return np.concatenate([last, np.minimum(kinds, last), one, last - one], axis=1)[:, : MOST_KINDS // 2]


@final
class _BesideAnother(Mapping[str, NDArray[np.float64]]):
    """Columns of raw values, each made when it is read, since most queries read few of them."""

    def __init__(self, columns: Mapping[str, NDArray[np.float64]], kinds: NDArray[np.integer], read: set[str]) -> None:
        self._columns, self._kinds, self._read = columns, kinds, read

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        self._read.add(name)
        both = self._columns[name].take(self._kinds, axis=0).ravel()
        both.flags.writeable = False
        return both

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _points(
    attribute: Attribute, rng: np.random.Generator, numbers: Sequence[float]
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return codes of an attribute and, if it is numeric, a raw value for each code."""
    if not isinstance(attribute, Numeric):
        return np.arange(attribute.size), None
    edges = np.array(attribute.edges)
    bins = np.arange(len(edges) - 1)
    inside = edges[:-1] + np.diff(edges) * rng.uniform(0.1, 0.9, len(bins))
    codes = np.concatenate([bins, bins, bins[-1:]])
    values = np.concatenate([edges[:-1], inside, edges[-1:]])
    more = np.setdiff1d([x for x in numbers if attribute.lower <= x <= attribute.upper][:MOST_NUMBERS], values)
    codes = np.append(codes, np.searchsorted(attribute.interior_cuts, more, side="right"))
    values = np.append(values, more)
    if attribute.missing:
        codes, values = np.append(codes, attribute.size - 1), np.append(values, np.nan)
    return codes, values


@final
@attrs.frozen
class Pair:
    """Two neighbouring tables: the rows that they share, and the rows of one unit that each of them adds.

    Under add-or-remove-one the first table adds no rows.
    """

    shared: Rows
    one: Rows
    other: Rows

    @property
    def tables(self) -> tuple[Rows, Rows]:
        """Both tables, each with the unit's rows at its end."""
        return self.shared + self.one, self.shared + self.other


@final
@attrs.frozen
class Sizes:
    """The least and the largest number of rows that two neighbours may share, given the schema's public facts."""

    least: int
    most: int

    @classmethod
    def of(cls, schema: Schema, relation: Relation, most: int, rows: int = 1) -> Sizes:
        """Return the sizes of tables for which a claim must hold, with at most `most` shared rows.

        The rows of the unit in which the tables differ are not counted.

        Raises
        ------
        InputError
            If the schema's public number of rows needs more than `most` shared rows.
        """
        if schema.rows is not None:
            # Under replace-one, both tables have this number of rows. Under add-or-remove-one, one table has more.
            shared = max(schema.rows - (rows if relation is Relation.REPLACE_ONE else 0), 0)
            if shared > most:
                raise InputError(
                    f"the schema has rows = {schema.rows}; to verify on small tables, give a schema of {most} rows or "
                    "fewer"
                )
            return cls(shared, shared)
        if schema.max_rows is not None:
            most = min(most, schema.max_rows - rows)
        return cls(0, max(most, 0))


def changes(universe: Universe, relation: Relation, by: UnitChange = ONE_ROW) -> list[Change]:
    """Return every way in which two neighbours differ by one row. For units of several rows, return examples.

    Units whose rows are all equal come first, since a change that adds up over rows is largest for them. Then come
    units of different rows, which may lie in different parts of a table: all of them if they are few, else a fixed
    random choice. If replacing a unit may change the number of rows, there are also pairs in which one table lacks the
    unit.
    """
    kinds = [bytes((kind,)) for kind in range(universe.kinds)]
    alike = [kind * by.rows for kind in kinds]
    mixed = _mix(universe.kinds, by.rows)
    if relation is Relation.ADD_OR_REMOVE_ONE:
        return [(b"", unit) for unit in (*alike, *mixed)]
    pairs = list(itertools.combinations(alike, 2))
    others = [*mixed[1:], *mixed[:1]]
    pairs += [(one, other) for one, other in zip(mixed, others, strict=True) if one != other]
    pairs += [(alike[k % len(alike)], unit) for k, unit in enumerate(mixed)]
    return pairs + ([(b"", unit) for unit in (*alike, *mixed)] if by.resizes else [])


def _mix(kinds: int, rows: int) -> list[Rows]:
    """Return units whose rows are not all equal: all of them, or a random choice of at most `MOST_MIXED`."""
    if rows == 1 or kinds == 1:
        return []
    if math.comb(kinds + rows - 1, rows) <= MOST_MIXED:
        units = [bytes(unit) for unit in itertools.combinations_with_replacement(range(kinds), rows)]
    else:
        drawn = np.random.default_rng(rows).integers(0, kinds, (MOST_MIXED, rows))
        units = [bytes(sorted(unit)) for unit in drawn.tolist()]
    return list(dict.fromkeys(unit for unit in units if len(set(unit)) > 1))


def all_tables(kinds: Sequence[int], sizes: Sequence[int]) -> Iterator[Rows]:
    """Yield every table of these kinds of rows and these sizes, each in one order of its rows."""
    for size in sizes:
        for rows in itertools.combinations_with_replacement(kinds, size):
            yield bytes(rows)
