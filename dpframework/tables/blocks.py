"""Blocks of encoded rows for counting kernels, on the private side only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, NoReturn, TypeVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.cuts import NOTHING_DERIVED, Cut, MadeOf, attributes_of, with_sources
from dpframework.facts.descriptions import And, Below, Cases, Description, Equals, Not, Or
from dpframework.facts.errors import InputError
from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema
from dpframework.tables.keys import KeyColumn
from dpframework.tables.places_in_unit import RowPlaces, as_row_places

TILE = 1 << 17  # rows: what is made of a few columns of so many stays in the processor's cache
T = TypeVar("T", bound=np.generic)
Codes = NDArray[np.unsignedinteger]


@final
class PackedIndex:
    """The positions of some rows, ascending, kept as a bit for each row of the arrays.

    That takes less memory than an int32 each if more than one row in 32 is among them. The index that was unpacked last
    is kept, so that a count that reads several columns unpacks it once.
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
    """Return an ascending index of rows of arrays of a length in the form that takes less memory."""
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
        """Return the same for some rows in turn."""
        if not isinstance(rows, slice):
            self._refuse()
        return HiddenColumn(self._name, len(range(*rows.indices(self._length))))

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()

    def __array__(self, *given: Any, **named: Any) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InputError(
            f"the query reads attribute '{self._name}', which it does not declare; name in `attributes` all that it "
            "may read, or none, if that may be any"
        )


@attrs.frozen(eq=False, repr=False)
class Block:
    """Some rows of a private table, as integer codes on the schema's grid.

    A part of a block is a block too: it shares the arrays, and `index` says which of their rows belong to it.

    Attributes
    ----------
    schema
        The schema of the codes, with derived attributes appended.
    columns
        Codes of the schema's own attributes: one contiguous array each, of the attribute's own type.
    raw
        Raw float64 values of numeric attributes, one array of that length each.
    index
        int32 positions, in the arrays, of the rows that belong to this block; given as None, all; or packed.
    derived
        Codes of derived attributes, one array of that length each.
    made_of
        The attributes of the table that each derived attribute depends on.
    unit_codes
        The number of each row's unit, an array of that length; None unless a plan samples units of several rows.
    unit_places
        The place of each row of the arrays among those of its unit; None where it is not known.
    key_columns
        The keys of open attributes, of that length each. Their codes are all 0.
    """

    schema: Schema
    columns: tuple[Codes, ...]
    raw: Mapping[str, NDArray[np.float64]]
    _index: NDArray[np.int32] | PackedIndex | None = None
    derived: Mapping[str, Codes] = attrs.field(factory=dict)
    made_of: MadeOf = NOTHING_DERIVED
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
        """Whether all rows of the arrays are this block's."""
        return self._index is None

    @property
    def index(self) -> NDArray[np.int32]:
        """The positions of the rows (see the class), made anew for a block of all rows, so ask for it once."""
        if self._index is None:
            return np.arange(self.length, dtype=np.int32)
        return self._index.index if isinstance(self._index, PackedIndex) else self._index

    def codes(self, name: str) -> Codes:
        """Return the read-only codes of an attribute for this block's rows, shape (rows,).

        Raises
        ------
        InputError
            If it is open: the numbers of its keys depend on the rows.
        """
        if name in self.key_columns and isinstance(attribute := self.schema[name], Open):
            attribute.refuse()
        return self._own(self.whole_column(name))

    def whole_column(self, name: str) -> Codes:
        """Return the codes of an attribute for all rows of the arrays, of which `index` says which are this block's."""
        return self.derived[name] if name in self.derived else self.columns[self.schema.index(name)]

    def values(self, name: str) -> NDArray[np.float64]:
        """Return the read-only raw values of a numeric attribute for this block's rows, shape (rows,)."""
        if name not in self.raw:
            raise InputError(
                f"attribute '{name}' has no raw values: only numeric attributes do, and of these those that the miner "
                "names in values_read, and that the table was read with"
            )
        return self._own(self.raw[name])

    def keys(self, name: str) -> KeyColumn:
        """Return the keys of an open attribute for this block's rows.

        Raises
        ------
        InputError
            If it is none.
        """
        if name not in self.key_columns:
            raise InputError(f"attribute '{name}' is {self.schema[name].kind}; only an open attribute has keys")
        column = self.key_columns[name]
        return column if self._index is None else column.take(self.index)

    def places_in_units(self) -> NDArray[np.unsignedinteger]:
        """Return the read-only place of each of this block's rows within its unit, from 0, shape (rows,).

        Raises
        ------
        InputError
            If nobody knows whose each row is.
        """
        if self.unit_places is None:
            raise InputError(
                "the table does not say which row of its unit each row is; read it with the study's unit, on an engine "
                "that tells units apart"
            )
        return self._own(self.unit_places.array)

    def first_of_units(self, most: int) -> Block:
        """Return the part of this block with the first rows of each unit, at most so many."""
        return self.at(self.index[self.places_in_units() < most])

    def at(self, index: NDArray[np.int32] | PackedIndex) -> Block:
        """Return the part of this block whose rows are at some positions of the arrays."""
        return attrs.evolve(self, index=index)

    def showing(self, names: Collection[str]) -> Block:
        """Return this block with the codes and values of some attributes. The others are hidden.

        A derived attribute is shown if it is named, or if all are that it depends on. The same block is returned for
        the same names: queries keep with it what they have counted.
        """
        asked = frozenset(names)
        if asked in self._shown:
            return self._shown[asked]

        def show(columns: Mapping[str, Any]) -> dict[str, Any]:
            # by name, since columns may be made on demand
            return {n: columns[n] if n in known else HiddenColumn(n, self.length) for n in columns}

        known = {*asked, *(name for name, sources in self.made_of.items() if sources <= asked)}
        own = dict(zip((a.name for a in self.schema), self.columns, strict=False))  # derived ones come last
        columns = tuple(show(own).values())
        block = attrs.evolve(
            self, columns=columns, raw=show(self.raw), derived=show(self.derived), key_columns=show(self.key_columns)
        )
        return self._shown.setdefault(asked, block)

    def tiles(self, rows: int = TILE) -> Iterator[Block]:
        """Yield this block in parts of consecutive rows that share its arrays, at least one."""
        if self.rows <= rows:
            yield self
            return
        index = None if self._index is None else self.index
        for start in range(0, self.rows, rows):
            own = slice(start, start + rows)
            yield self._slice(own) if index is None else self.at(index[own])

    def _slice(self, own: slice) -> Block:
        return Block(
            self.schema,
            tuple(column[own] for column in self.columns),
            {name: column[own] for name, column in self.raw.items()},
            derived={name: column[own] for name, column in self.derived.items()},
            made_of=self.made_of,
            unit_codes=None if self.unit_codes is None else self.unit_codes[own],
            unit_places=None if self.unit_places is None else self.unit_places[own],
            key_columns={name: column[own] for name, column in self.key_columns.items()},
        )

    def with_derived(self, attribute: Attribute, cases: Cases) -> Block:
        """Return this block with one more attribute, the case of each row."""
        column = np.zeros(self.length, dtype=np.uint32)
        column[slice(None) if self._index is None else self.index] = cells_of(cases, self)
        schema = attrs.evolve(self.schema, attributes=(*self.schema.attributes, attribute))
        made_of = with_sources(self.made_of, attribute, cases)
        derived = {**self.derived, attribute.name: column}
        return attrs.evolve(self, schema=schema, derived=derived, made_of=made_of)

    def _own(self, column: NDArray[T]) -> NDArray[T]:
        """Return a column's entries for this block's rows, or the column itself for all rows, read-only."""
        own = column.view() if self._index is None else column.take(self.index)  # twice as fast as column[index]
        own.flags.writeable = False
        return own

    def __repr__(self) -> str:
        """Show no row and no count."""
        return f"Block({len(self.schema)} attributes; rows are private)"


def cells_of(by: Cut, block: Block) -> NDArray[np.integer]:
    """Return the part of each row of a block by the attributes of the cut, never by position, -1 for no part."""
    if isinstance(by, Attribute):
        return np.asarray(block.codes(by.name))
    names = attributes_of(by)
    shown = block.showing(names) if names else block
    if (part_of := part_of_each_code(by, block.schema)) is not None and len(part_of) < block.rows:
        return part_of.take(shown.codes(*names))
    return _cells(by, shown)


def part_of_each_code(by: Cut, schema: Schema) -> NDArray[np.integer] | None:
    """Return the part of each code of an attribute, if the cut reads the codes of that attribute and nothing else."""
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
    """Tell whether a description is of codes: not of raw values, and no plugin's, which may read anything."""
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
