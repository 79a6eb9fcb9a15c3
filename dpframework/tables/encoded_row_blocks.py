"""Blocks of encoded rows, which queries count on the data owner's side.

A cut divides the rows of a block into disjoint parts by the values of attributes (see
`dpframework.facts.row_partitions`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, NoReturn, TypeVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.logical_descriptions_of_rows import And, Below, Cases, Description, Equals, Not, Or
from dpframework.facts.open_attribute import Open
from dpframework.facts.row_partitions import NOTHING_DERIVED, AttributeSources, Cut, attributes_of, with_sources
from dpframework.facts.schema import Schema
from dpframework.tables.open_attribute_keys import KeyColumn
from dpframework.tables.places_in_unit import RowPlaces, as_row_places

#: The most rows of a tile (see `Block.tiles`). Arrays of this length, for a few columns, fit in the processor's cache.
TILE = 1 << 17
T = TypeVar("T", bound=np.generic)
Codes = NDArray[np.unsignedinteger]


@final
class PackedIndex:
    """The ascending positions of some rows in a block's arrays, kept as one bit for each row of the arrays.

    The bits take less memory than one int32 per position if more than one row in 32 is kept. Of all packed indices,
    only the one that was unpacked last stays unpacked in memory. So a count that reads several columns unpacks once.
    """

    __slots__ = ("_bits", "_index", "_length", "rows")
    _last: ClassVar[PackedIndex | None] = None

    def __init__(self, index: NDArray[np.int32], length: int) -> None:
        held = np.zeros(length, dtype=np.bool_)
        held[index] = True
        self._bits, self._length = np.packbits(held), length
        self.rows: int = len(index)
        self._index: NDArray[np.int32] | None = None

    @property
    def index(self) -> NDArray[np.int32]:
        """The positions, unpacked."""
        index = self._index
        if index is None:
            last, PackedIndex._last = PackedIndex._last, self
            if last is not None:
                last._index = None
            held = np.unpackbits(self._bits, count=self._length).view(np.bool_)
            index = self._index = np.flatnonzero(held).astype(np.int32)
        return index


def pack_index(index: NDArray[np.int32], length: int) -> NDArray[np.int32] | PackedIndex:
    """Return an ascending index into arrays of some length, packed if that takes less memory."""
    return PackedIndex(index, length) if 32 * len(index) > length else index


@final
class HiddenColumn:
    """A column that a query does not declare. It has a length and nothing else."""

    __slots__ = ("_length", "_name")

    def __init__(self, name: str, length: int) -> None:
        self._name, self._length = name, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, rows: slice) -> HiddenColumn:
        """Return the hidden column of a slice of the rows."""
        if not isinstance(rows, slice):
            self._refuse()
        return HiddenColumn(self._name, len(range(*rows.indices(self._length))))

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()

    def __array__(self, *given: Any, **named: Any) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise undeclared(self._name)


def undeclared(name: str) -> InputError:
    """Return the error for a query that reads an attribute without declaring it."""
    return InputError(
        f"the query reads attribute '{name}', which it does not declare; name in `attributes` all that it may read, or "
        "leave `attributes` empty if it may read any"
    )


def without_values(name: str) -> InputError:
    """Return the error for a query that reads raw values of an attribute for which the table keeps none."""
    return InputError(
        f"attribute '{name}' has no raw values: only a numeric attribute has them, and a table keeps them "
        "only if the miner names it in values_read"
    )


@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class Block:
    """Some rows of a private table, as integer codes of the values and bins that the schema lists.

    A part of a block is a block too: it shares the arrays, and `index` says which of their rows belong to it.

    Attributes
    ----------
    schema
        The schema of the codes. Derived attributes, computed from others (see `with_derived`), come last.
    columns
        Codes of the attributes that are not derived. Each attribute has one contiguous array, of the smallest unsigned
        type that holds its codes.
    raw
        Raw float64 values of numeric attributes, by name. Each array is as long as the columns.
    index
        The positions of this block's rows in the arrays, int32. The argument of the class is None for all rows, an
        array, or a `PackedIndex`.
    derived
        Codes of derived attributes, by name. Each array is as long as the columns.
    attribute_sources
        For each derived attribute, by its name, the attributes of the table that it depends on.
    unit_codes
        The number of each row's unit, an array as long as the columns. None if the table does not hold these numbers
        (see `Table.unit_codes`).
    unit_places
        The place of each row of the arrays among the rows of its unit, from 0. None where places are not known.
    key_columns
        The keys of each open attribute, by its name. They are the texts of its cells, and no schema lists them. Each
        `KeyColumn` is as long as the columns. The codes of open attributes are all 0.
    """

    schema: Schema
    columns: tuple[Codes, ...]
    raw: Mapping[str, NDArray[np.float64]]
    _index: NDArray[np.int32] | PackedIndex | None = None
    derived: Mapping[str, Codes] = attrs.field(factory=dict)
    attribute_sources: AttributeSources = NOTHING_DERIVED
    unit_codes: NDArray[np.uint32] | None = None
    unit_places: RowPlaces | None = attrs.field(default=None, converter=as_row_places)
    key_columns: Mapping[str, KeyColumn] = attrs.field(factory=dict)
    _shown: dict[frozenset[str], Block] = attrs.field(factory=dict, init=False)

    @property
    def rows(self) -> int:
        """The number of this block's rows (private)."""
        if self._index is None:
            return self.length
        return self._index.rows if isinstance(self._index, PackedIndex) else len(self._index)

    @property
    def length(self) -> int:
        """The number of rows of the arrays (private)."""
        return len(next(iter(self.columns)))

    @property
    def is_whole(self) -> bool:
        """Whether all rows of the arrays belong to this block."""
        return self._index is None

    @property
    def index(self) -> NDArray[np.int32]:
        """The positions of the rows (see the class). For a block of all rows each access makes a new array."""
        if self._index is None:
            return np.arange(self.length, dtype=np.int32)
        return self._index.index if isinstance(self._index, PackedIndex) else self._index

    def codes(self, name: str) -> Codes:
        """Return the read-only codes of an attribute for this block's rows, shape (rows,).

        Raises
        ------
        InputError
            If the attribute is open. The numbers that stand for its keys are no public codes: they depend on the rows.
        """
        if name in self.key_columns and isinstance(attribute := self.schema[name], Open):
            attribute.refuse()
        return self._own(self.whole_column(name))

    def whole_column(self, name: str) -> Codes:
        """Return the codes of an attribute for all rows of the arrays, even those that do not belong to this block."""
        return self.derived[name] if name in self.derived else self.columns[self.schema.index(name)]

    def values(self, name: str) -> NDArray[np.float64]:
        """Return the read-only raw values of a numeric attribute for this block's rows, shape (rows,)."""
        if name not in self.raw:
            raise without_values(name)
        return self._own(self.raw[name])

    def keys(self, name: str) -> KeyColumn:
        """Return the keys of an open attribute for this block's rows.

        Raises
        ------
        InputError
            If the attribute is not open.
        """
        if name not in self.key_columns:
            raise InputError(f"attribute '{name}' is {self.schema[name].kind}; only an open attribute has keys")
        column = self.key_columns[name]
        return column if self._index is None else column.take(self.index)

    def places_in_units(self) -> NDArray[np.unsignedinteger]:
        """Return the place of each of this block's rows within its unit, from 0, read-only, shape (rows,).

        Raises
        ------
        InputError
            If it is not known which unit each row belongs to.
        """
        if self.unit_places is None:
            raise InputError(
                "the places of rows within their units are not known; a query that reads them sets `places = True`, "
                "and needs a table that was read with the study's unit, on an engine that tells units apart"
            )
        return self._own(self.unit_places.array)

    def first_of_units(self, most: int) -> Block:
        """Return the part of this block whose rows have one of the first `most` places within their units."""
        return self.at(self.index[self.places_in_units() < most])

    def at(self, index: NDArray[np.int32] | PackedIndex) -> Block:
        """Return the part of this block whose rows are at some positions of the arrays."""
        return attrs.evolve(self, index=index)

    def showing(self, names: Collection[str]) -> Block:
        """Return this block with the codes and values of some attributes only. All other attributes are hidden.

        A derived attribute is shown if it is named, or if all attributes that it depends on are named. For the same
        names the same block is returned, so that it is made only once.
        """
        asked = frozenset(names)
        if asked in self._shown:
            return self._shown[asked]

        def show(columns: Mapping[str, Any]) -> dict[str, Any]:
            # Only the columns that are shown are looked up, since a column may be made on demand.
            return {n: columns[n] if n in known else HiddenColumn(n, self.length) for n in columns}

        known = {*asked, *(name for name, sources in self.attribute_sources.items() if sources <= asked)}
        own = dict(zip((a.name for a in self.schema), self.columns, strict=False))  # derived attributes come last
        columns = tuple(show(own).values())
        block = attrs.evolve(
            self, columns=columns, raw=show(self.raw), derived=show(self.derived), key_columns=show(self.key_columns)
        )
        return self._shown.setdefault(asked, block)

    def without_units(self, *, places: bool) -> Block:
        """Return this block without its rows' units. With `places`, the rows keep their places within their units."""
        if self.unit_codes is None and (places or self.unit_places is None):
            return self
        return attrs.evolve(self, unit_codes=None, unit_places=self.unit_places if places else None)

    def tiles(self, rows: int = TILE) -> Iterator[Block]:
        """Yield this block in one or more parts of at most `rows` consecutive rows. The parts share its arrays."""
        if self.rows <= rows:
            yield self
            return
        index = None if self._index is None else self.index
        for start in range(0, self.rows, rows):
            own = slice(start, start + rows)
            if index is not None:
                yield self.at(index[own])
                continue
            yield slice_arrays(self, own)

    def with_derived(self, attribute: Attribute, cases: Cases) -> Block:
        """Return this block with one more attribute. Its code is the number of the row's case (see `Cases`)."""
        column = np.zeros(self.length, dtype=np.uint32)
        column[slice(None) if self._index is None else self.index] = cells_of(cases, self)
        schema = attrs.evolve(self.schema, attributes=(*self.schema.attributes, attribute))
        attribute_sources = with_sources(self.attribute_sources, attribute, cases)
        derived = {**self.derived, attribute.name: column}
        return attrs.evolve(self, schema=schema, derived=derived, attribute_sources=attribute_sources)

    def _own(self, column: NDArray[T]) -> NDArray[T]:
        """Return a column's entries for this block's rows, or the column itself for all rows, read-only."""
        own = column.view() if self._index is None else column.take(self.index)  # twice as fast as column[index]
        own.flags.writeable = False
        return own

    def __repr__(self) -> str:
        """Show no row and no count."""
        return f"Block({len(self.schema)} attributes; rows are private)"


def slice_arrays(block: Block, own: slice) -> Block:
    """Return the block of the rows in a slice of a block's arrays. All rows of the arrays must belong to the block."""
    return Block(
        block.schema,
        tuple(column[own] for column in block.columns),
        {name: column[own] for name, column in block.raw.items()},
        derived={name: column[own] for name, column in block.derived.items()},
        attribute_sources=block.attribute_sources,
        unit_codes=None if block.unit_codes is None else block.unit_codes[own],
        unit_places=None if block.unit_places is None else block.unit_places[own],
        key_columns={name: column[own] for name, column in block.key_columns.items()},
    )


def cells_of(by: Cut, block: Block) -> NDArray[np.integer]:
    """Return the number of the part that each row of a block belongs to under a cut, -1 for no part.

    A row's part depends on its values of the cut's attributes alone, never on its position.
    """
    if isinstance(by, Attribute):
        return np.asarray(block.codes(by.name))
    names = attributes_of(by)
    shown = block.showing(names) if names else block
    if (part_of := part_of_each_code(by, block.schema)) is not None and len(part_of) < block.rows:
        return part_of.take(shown.codes(*names))
    return _cells(by, shown)


def part_of_each_code(by: Cut, schema: Schema) -> NDArray[np.integer] | None:
    """Return the number of the part that each code of an attribute belongs to, -1 for no part, shape (codes,).

    Such an array exists only if the cut reads the codes of one attribute and nothing else. Otherwise return None.
    """
    names = attributes_of(by)
    if len(names) != 1 or isinstance(attribute := schema[names[0]], Open):
        return None
    codes = np.arange(attribute.size, dtype=np.min_scalar_type(attribute.size - 1))
    if isinstance(by, Attribute):
        return codes
    descriptions = by.descriptions if isinstance(by, Cases) else by
    if not all(_reads_codes(one, schema) for one in descriptions):
        return None
    return _cells(by, Block(Schema([attribute]), (codes,), {}))


def _reads_codes(description: Description, schema: Schema) -> bool:
    """Tell whether a description reads codes alone.

    Return False for a description of raw values, and for one that a plugin defines, since that may read anything.
    """
    kind = type(description)
    if isinstance(description, Below):
        return kind is Below and description.is_cut(schema)
    if isinstance(description, Not):
        return kind is Not and _reads_codes(description.part, schema)
    if isinstance(description, And | Or):
        return kind in (And, Or) and all(_reads_codes(part, schema) for part in description.parts)
    return kind is Equals


def _cells(by: Cases | tuple[Description, ...], block: Block) -> NDArray[np.integer]:
    if isinstance(by, Cases):
        return by.cells(block)
    cells = np.full(block.rows, -1, dtype=np.int64)
    for k, description in enumerate(by):
        cells[description.holds(block)] = k
    return cells
