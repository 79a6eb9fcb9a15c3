"""The opaque private table. It belongs to the data owner, and its methods print no row, value or count."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.attributes import Numeric
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.notebook_html import html_line
from dpframework.facts.open_attribute import Open
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.tables.column_encoding import encode_column, stored_dtype
from dpframework.tables.growing_column_arrays import read_only
from dpframework.tables.open_attribute_keys import KeyColumn, keys_of_texts
from dpframework.tables.output_suppression import silenced
from dpframework.tables.places_in_unit import RowPlaces, as_row_places
from dpframework.tables.plain_cell_series import quietly


def _lock_columns(columns: Iterable[NDArray[np.unsignedinteger]]) -> tuple[NDArray[np.unsignedinteger], ...]:
    return tuple(read_only(column) for column in columns)


def _lock_values(values: Mapping[str, NDArray[np.float64]]) -> Mapping[str, NDArray[np.float64]]:
    return MappingProxyType({name: read_only(array) for name, array in values.items()})


def _as_keys(keys: Mapping[str, KeyColumn]) -> Mapping[str, KeyColumn]:
    return MappingProxyType(dict(keys))


@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class Table:
    """A private table as codes of the values and bins that its schema lists.

    The number of rows is private too, so `len` does not work on a table, and its repr shows neither a row nor a count.

    Make one with `read_table`, `read_two_views`, `table_from_frame` or `Table.from_codes`.

    Attributes
    ----------
    schema
        The public facts about the table.
    columns
        The codes of each attribute of the schema, shape (rows,), contiguous and read-only, of the smallest unsigned
        type that holds them.
    values
        The raw values of each numeric attribute, by its name: float64, shape (rows,), read-only, NaN where missing.
        Attributes whose values are not kept are absent.
    unit
        The privacy unit that the table was read for. Each unit keeps at most `unit.rows` rows.
    key
        The secret key of the hash by which the rows of each unit were chosen. It may be None if no rows had to be
        chosen.
    unit_codes
        The number of each row's unit, shape (rows,). These numbers are needed to sample whole units, and to count a
        unit once for each of its keys. None where units are not known, or each unit has one row.
    keys
        The keys of each open attribute, by its name (see `KeyColumn`). The schema does not list the values of such an
        attribute. Its keys are the texts of its cells, and its codes are all 0.
    unit_places
        The place of each row within its unit, from 0, where `unit_codes` are known. It depends on the unit's own rows
        alone. A plan may count only the rows at each unit's first k places (see `queries.AtReleasedRows`).
    """

    schema: Schema
    columns: tuple[NDArray[np.unsignedinteger], ...] = attrs.field(converter=_lock_columns)
    values: Mapping[str, NDArray[np.float64]] = attrs.field(converter=_lock_values)
    unit: PrivacyUnit = ROW
    key: bytes | None = None
    unit_codes: NDArray[np.uint32] | None = attrs.field(default=None, converter=attrs.converters.optional(read_only))
    keys: Mapping[str, KeyColumn] = attrs.field(factory=dict, converter=_as_keys)
    unit_places: RowPlaces | None = attrs.field(default=None, converter=as_row_places)

    @property
    def rows(self) -> int:
        """The number of rows (private)."""
        return len(next(iter(self.columns)))

    @property
    def codes(self) -> NDArray[np.unsignedinteger]:
        """All codes in one new matrix, shape (attributes, rows), of the type of the widest column."""
        return np.stack(self.columns)

    def with_units(self, codes: ArrayLike | None) -> Table:
        """Return this table with other unit codes, one per row (see `unit_codes`). With None, it has no unit codes.

        If codes are given, the places of a unit's rows follow the order of the table.

        Raises
        ------
        InputError
            If there is not one whole number per row, or a unit has more rows than the table's unit may have.
        """
        if codes is None:
            keys = {name: column.of_units(None) for name, column in self.keys.items()}
            return attrs.evolve(self, unit_codes=None, unit_places=None, keys=keys)
        given = quietly(lambda: np.asarray(codes), "unit_codes must be an array of whole numbers")
        if given.shape != (self.rows,) or (given.size and not np.issubdtype(given.dtype, np.integer)):
            raise InputError("unit_codes must hold one whole number per row")
        numbered, counts = np.unique(given, return_inverse=True, return_counts=True)[1:]
        if counts.max(initial=0) > self.unit.rows:
            raise InputError(
                f"unit_codes give a unit more than {self.unit.rows} rows, the most that the table's unit may have; "
                "make the table with a unit that may have more rows"
            )
        whose = numbered.astype(np.uint32)
        return self.of_units(whose, RowPlaces(functools.partial(places_in_order, whose)))

    def of_units(self, codes: NDArray[np.uint32], places: RowPlaces) -> Table:
        """Return this table with the number of each row's unit, from 0 without gaps, and the places of its rows."""
        keys = {name: column.of_units(codes) for name, column in self.keys.items()}
        return attrs.evolve(self, unit_codes=codes, unit_places=places, keys=keys)

    def with_values(self, names: Collection[str] | None) -> Table:
        """Return this table with the raw values of only the named attributes. None keeps all raw values."""
        kept = self.values if names is None else {name: own for name, own in self.values.items() if name in names}
        return attrs.evolve(self, values=kept)

    def __repr__(self) -> str:
        """Show only the schema's number of attributes."""
        return f"Table({len(self.schema)} attributes; rows are private)"

    def _repr_html_(self) -> str:
        """Show only the schema, and neither a row nor the number of rows."""
        return f"{html_line(repr(self))}{self.schema._repr_html_()}"

    def __reduce__(self) -> tuple[type[Table], tuple[Any, ...]]:
        """Pickle the arguments of the class, so that an unpickled table is read-only again."""
        values, keys = dict(self.values), dict(self.keys)
        parts = (self.schema, self.columns, values, self.unit, self.key, self.unit_codes, keys, self.unit_places)
        return Table, parts

    @classmethod
    @silenced(streams=True)
    @typechecked
    def from_codes(
        cls,
        schema: Schema,
        codes: ArrayLike,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        unit: PrivacyUnit = ROW,
        keys: Mapping[str, Sequence[str | None]] | None = None,
    ) -> Table:
        """Make a table from codes, for generators and tests.

        The number of rows is not compared with the number in the schema, since a neighbouring table may have more or
        fewer rows. A table may have no rows.

        Parameters
        ----------
        schema
            The public facts about the table.
        codes
            Whole numbers, shape (attributes, rows), which are copied. The codes of each attribute are from 0 to its
            size minus 1.
        values
            Raw values of every numeric attribute, each of shape (rows,), in agreement with the codes, NaN where
            missing. They are copied. By default each value is the middle of its bin.
        unit
            The privacy unit. You must not give more than `unit.rows` rows of any unit.
        keys
            For every open attribute, the text of each row, or None for a missing one. The attribute's codes must all
            be 0.

        Raises
        ------
        InputError
            If a shape, type or range is wrong.

        Examples
        --------
        >>> table = Table.from_codes(Schema([Numeric("age", 0, 10, bins=2)]), [[0, 1, 1]])
        >>> table
        Table(1 attributes; rows are private)
        >>> table.values["age"]
        array([2.5, 7.5, 7.5])
        """
        given = quietly(lambda: np.asarray(codes), "codes must be an array of shape (attributes, rows)")
        if given.ndim != 2 or given.shape[0] != len(schema):
            raise InputError(f"codes must have the shape (attributes, rows), here ({len(schema)}, rows)")
        if given.size and not np.issubdtype(given.dtype, np.integer):
            raise InputError("codes must be whole numbers")
        for attribute, column in zip(schema, given, strict=True):
            size = 1 if isinstance(attribute, Open) else attribute.size
            if bool(np.any((column < 0) | (column >= size))):
                raise InputError(f"codes of '{attribute.name}' must be from 0 to {size - 1}")
        numeric = [attribute for attribute in schema if isinstance(attribute, Numeric)]
        columns = [np.array(own, dtype=stored_dtype(a)) for a, own in zip(schema, given, strict=True)]
        raw = {a.name: bin_middles(a)[columns[schema.index(a.name)]] for a in numeric}
        if values is not None:
            if set(values) != set(raw):
                raise InputError("values must hold one array for each numeric attribute and no others")
            raw = {a.name: _check_values(a, values[a.name], columns[schema.index(a.name)]) for a in numeric}
        return cls(schema, columns, raw, unit, keys=_check_keys(schema, keys or {}, given.shape[1]))


def places_in_order(units: NDArray[np.uint32]) -> NDArray[np.unsignedinteger]:
    """Return the place of each row within its unit, from 0, in the order of the rows, shape (rows,)."""
    from dpframework.tables.unit_row_choice_kernels import places_in_units

    places = places_in_units(units)[0]
    return places.astype(np.min_scalar_type(int(places.max(initial=0))))


def _check_keys(schema: Schema, given: Mapping[str, Sequence[str | None]], rows: int) -> dict[str, KeyColumn]:
    known = {attribute.name: attribute for attribute in schema if isinstance(attribute, Open)}
    if set(given) != set(known):
        raise InputError("keys must hold one list for each open attribute and no others")
    found = {name: keys_of_texts(known[name], texts) for name, texts in given.items()}
    if any(len(column) != rows for column in found.values()):
        raise InputError("keys must hold one text, or None, per row")
    return found


def bin_middles(attribute: Numeric) -> NDArray[np.float64]:
    """Return the middle of each bin by its code. The code for missing values has NaN."""
    edges = np.array(attribute.edges)
    middles = edges[:-1] + np.diff(edges) / 2
    return np.append(middles, np.nan) if attribute.missing else middles


def _check_values(attribute: Numeric, values: ArrayLike, codes: NDArray[np.unsignedinteger]) -> NDArray[np.float64]:
    where = f"values of attribute '{attribute.name}'"
    array = quietly(lambda: np.array(values, dtype=np.float64), f"{where} must be numbers")
    if array.shape != codes.shape:
        raise InputError(f"{where} must have one number per row")
    again = encode_column(attribute, array, out_of_domain=OutOfDomain.ERROR, source="values")
    if not np.array_equal(again.codes, codes):
        raise InputError(f"{where} do not lie in the bins of the codes; correct the values or the codes")
    return array
