"""The rows that a table keeps of each privacy unit, at most k, chosen by facts of that unit alone.

A row's key is a keyed hash of its unit's id and of its place among that unit's own rows; each unit keeps the k rows of
the smallest keys, in the order of the table. So one unit more adds its own rows, at most k, and changes nothing else:
no other unit's ids, places or keys depend on it. (Neither the place in the table, which one row more shifts for all
below it, nor how many rows others have, is looked at.) That holds for any key. It is private so that nobody can write
rows that are sure to be kept.

A row without an id is left out: it is nobody's, so that no claim would cover it. Reading goes on, since a run that its
rows could stop would tell of them. An owner who asserts `data-fits-schema` is stopped by it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from dpframework.facts.policies import OutOfDomain
from dpframework.facts.unit import PrivacyUnit
from dpframework.tables.ids import Ids, ids_of, whole_numbers
from dpframework.tables.places_in_unit import RowPlaces
from dpframework.tables.silence import silenced

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

KEY_BYTES = 32
_ORDERED = 1 << 40  # above all places


@silenced(streams=True)
def kept_rows(
    ids: Any, unit: PrivacyUnit, *, policy: OutOfDomain = OutOfDomain.CLAMP, source: str = "table", key: bytes
) -> pl.Series:
    """Return the positions of the rows that a table keeps, in their order.

    Parameters
    ----------
    ids
        The column that names each row's unit, as `encode_column` takes one, or its `Ids`.
    unit
        Whom to protect, by how many rows.
    policy
        `OutOfDomain.ERROR` refuses rows without an id.
    source
        What errors call the table.
    key
        What rows are chosen by.

    Raises
    ------
    InputError
        If the column's type is none of ids.
    DoesNotFit
        If the policy is `OutOfDomain.ERROR`, and a row has no id.
    """
    return RowChoice.of(ids, unit, policy=policy, source=source, key=key).rows


@final
class RowChoice:
    """The choice of the rows that a table keeps of each unit, and of their order.

    The places of a unit's kept rows are in the order of another keyed hash of its id and of their place among the rows
    that it keeps: the first k of a unit are any k of them.

    Parameters
    ----------
    ids
        The id of each row that has one.
    present
        The positions of these rows.
    most
        How many rows of each unit are kept at most.
    key
        What they are chosen by.
    """

    def __init__(self, ids: pl.Series, present: pl.Series, most: int, key: bytes) -> None:
        from dpframework.tables.unit_kernels import places_in_units

        self._ids, self._present, self._most, self._key = ids, present, most, key
        self._codes = unit_codes(ids)
        self._places, self._sizes = places_in_units(self._codes)
        self._kept = self._choose()

    @classmethod
    def of(cls, ids: Any, unit: PrivacyUnit, *, policy: OutOfDomain, source: str, key: bytes) -> Self:
        """Choose by a column of ids, as `kept_rows` does."""
        named = ids_of(ids, f"{source}: the column of ids")
        if policy is OutOfDomain.ERROR:
            named.require_all(f"{source}: the id column '{unit.id}'")
        present = named.series.is_not_null().arg_true()
        return cls(named.series.gather(present), present, unit.rows, key)

    @property
    def rows(self) -> pl.Series:
        """The positions of the kept rows, in their order."""
        return self._present if self._kept is None else self._present.filter(self._kept)

    @property
    def codes(self) -> NDArray[np.uint32]:
        """The number of each kept row's unit (see `unit_codes`): each unit that has rows keeps some."""
        return self._codes if self._kept is None else self._codes[self._kept]

    def places(self) -> RowPlaces:
        """Return the place of each kept row within its unit, from 0. Nothing is hashed before places are read."""
        keys = self._unit_keys if self._kept is not None else functools.partial(unit_keys, self._key, self._unit_ids())
        return RowPlaces(functools.partial(_places, self.codes, self._most, self._number, keys))

    def _choose(self) -> NDArray[np.bool_] | None:
        """Return which rows are kept; None for all."""
        many = np.flatnonzero(self._sizes[self._codes] > self._most)
        if not len(many):
            return None
        kept = np.ones(len(self._codes), dtype=np.bool_)
        kept[many] = _choose(self._unit_keys, self._number[self._codes[many]], self._places[many], self._most)
        return kept

    @functools.cached_property
    def _several(self) -> NDArray[np.bool_]:
        """Whether each unit has several rows: of no other is anything chosen."""
        return self._sizes > 1

    @functools.cached_property
    def _number(self) -> NDArray[np.intp]:
        """The position of each unit of several rows among these."""
        return np.cumsum(self._several) - 1

    @functools.cached_property
    def _unit_keys(self) -> NDArray[np.uint64]:
        """The keys of units of several rows, made once for both choices."""
        return unit_keys(self._key, self._unit_ids())

    def _unit_ids(self) -> pl.Series:
        """Return the ids of units of several rows."""
        first = np.flatnonzero((self._places == 0) & self._several[self._codes])
        return self._ids.gather(first[np.argsort(self._codes[first])])


def _places(
    codes: NDArray[np.uint32],
    most: int,
    number: NDArray[np.intp],
    keys: NDArray[np.uint64] | Callable[[], NDArray[np.uint64]],
) -> NDArray[np.unsignedinteger]:
    """Return the places of rows (see `RowChoice.places`), with or without the keys of units of several rows."""
    from dpframework.tables.unit_kernels import places_in_units

    places, sizes = places_in_units(codes)
    found = np.zeros(len(codes), dtype=np.min_scalar_type(most - 1))
    # The only row of a unit has the place 0, so that no key is computed for it.
    many = np.flatnonzero(sizes[codes] > 1)
    if len(many):
        found[many] = _order_by_hash(keys() if callable(keys) else keys, number[codes[many]], places[many])
    return found


def order_by_hash(key: bytes, ids: pl.Series, units: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each row within its unit, in the order of a keyed hash (see `RowChoice`).

    Parameters
    ----------
    key
        What rows are chosen by.
    ids
        The id of each unit.
    units
        The position of each row's unit, shape (rows,).
    places
        Its place among the rows of its unit in the order of the table.
    """
    return _order_by_hash(unit_keys(key, ids), units, places)


def _order_by_hash(keys: NDArray[np.uint64], units: NDArray[Any], places: NDArray[np.int64]) -> NDArray[np.int64]:
    from dpframework.tables.unit_kernels import places_in_units

    # as messages that `kept_rows` hashes none of: which rows are kept tells nothing of their order
    order = np.argsort(_row_keys(keys, units, places + _ORDERED))  # of two equal keys in 2**64 any may be first
    found = np.empty(len(units), dtype=np.int64)
    found[order] = places_in_units(units[order].astype(np.uint32))[0]
    return found


def choose_places(
    key: bytes, ids: pl.Series, counts: NDArray[np.int64], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of its own rows each of some units keeps, as `kept_rows` chooses them.

    Parameters
    ----------
    key
        What rows are chosen by.
    ids
        The id of each unit.
    counts
        How many rows each has, shape (units,).
    most
        How many it keeps at most.

    Returns
    -------
    tuple
        For each row that is kept, the position of its unit, and its place among that unit's rows from 0.
    """
    units, places = rows_of_each(counts)
    kept = _choose(unit_keys(key, ids), units, places, most)
    return units[kept], places[kept]


def rows_of_each(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the unit of each row, and its place among the rows of its unit, where one unit's rows follow another's.

    Examples
    --------
    >>> rows_of_each(np.array([2, 3]))
    (array([0, 0, 1, 1, 1]), array([0, 1, 0, 1, 2]))
    """
    return np.repeat(np.arange(len(counts)), counts), ranges(np.zeros_like(counts), counts)


def ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of several ranges, one range after another.

    Examples
    --------
    >>> ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1] if len(ends) else 0)


def unit_codes(ids: pl.Series) -> NDArray[np.uint32]:
    """Return a number for each row, equal for rows of one unit and different for others.

    The numbers count the units of these rows, in the order of their ids as texts, and say nothing else.

    Parameters
    ----------
    ids
        The id of each row, a text as `ids_of` makes one.
    """
    import polars as pl

    texts = ids.alias("id")
    numbers = whole_numbers(texts)
    own = texts if numbers is None else numbers
    # `rank` sorts all rows; there are fewer units to sort.
    units = own.unique()
    in_order = units.sort() if numbers is None else units.gather(units.cast(pl.String).arg_sort())
    codes = in_order.to_frame().with_row_index("unit")
    return own.to_frame().join(codes, on="id", how="left", maintain_order="left")["unit"].to_numpy()


def number_units(ids: Ids) -> tuple[NDArray[np.intp], int]:
    """Return the number of each row's unit in the order of their first rows, -1 for a row without an id; and how many.

    A unit more is a number more, and the order of the others does not change.
    """
    import polars as pl

    rows = pl.DataFrame({"id": ids.series})
    units = rows.unique("id", maintain_order=True).drop_nulls().with_row_index("unit")
    whose = rows.join(units, on="id", how="left", maintain_order="left")["unit"]
    return whose.cast(pl.Int64).fill_null(-1).to_numpy().astype(np.intp, copy=False), units.height


def _choose(keys: NDArray[np.uint64], units: NDArray[Any], places: NDArray[np.int64], most: int) -> NDArray[np.bool_]:
    """Tell which rows are among the `most` of the smallest keys of their unit, where equal keys are in row order."""
    from dpframework.tables.unit_kernels import smallest_of_each

    return smallest_of_each(_row_keys(keys, units, places), units, most)


def unit_keys(key: bytes, ids: pl.Series) -> NDArray[np.uint64]:
    """Return the key of each unit, a keyed hash of its id, as two words, shape (units, 2)."""
    hashed = [hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest() for one in ids]
    return np.frombuffer(b"".join(hashed), dtype="<u8").astype(np.uint64).reshape(-1, 2)


def _row_keys(keys: NDArray[np.uint64], units: NDArray[Any], places: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the key of each row: its place among its unit's rows, hashed under the key of the unit at `units`."""
    from dpframework.tables.siphash import siphash

    own = keys[units]
    return siphash(own[:, 0], own[:, 1], places.astype(np.uint64))
