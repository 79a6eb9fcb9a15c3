"""Choose at most k rows of each privacy unit. The choice depends on the unit's own id and rows alone.

Each row gets a key: a hash of its unit's id and of its place among that unit's own rows. Each unit keeps the k rows
with the smallest keys, in the order of the table. So one more unit adds at most k rows of its own and changes nothing
else, since no other unit's ids, places or keys depend on it. A row's place in the whole table is not used, since one
more row would shift it for all rows below. The number of other units' rows is not used either.

The hash also depends on a private key of the table, so that nobody can write rows that are sure to be kept. Whatever
this key is, one more unit adds at most k rows and changes nothing else.

A row without an id is left out, since it belongs to no unit and no claim would cover it. Reading goes on, because a run
that stopped would reveal that there is such a row. Reading stops only if the owner asserts the assumption
`data-fits-schema`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.tables.ids import Ids, ids_of, whole_numbers
from dpframework.tables.output_suppression import silenced
from dpframework.tables.places_in_unit import RowPlaces

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

KEY_BYTES = 32  # the length of a private key
#: This is added to the places that are hashed for the order of rows. It is larger than any place, so no number is
#: hashed both for the choice of rows and for their order.
_ORDER_OFFSET = 1 << 40


@silenced(streams=True)
def kept_rows(
    ids: Any, unit: PrivacyUnit, *, policy: OutOfDomain = OutOfDomain.CLAMP, source: str = "table", key: bytes
) -> pl.Series:
    """Return the positions of the rows that a table keeps, in their order.

    Parameters
    ----------
    ids
        The column that names each row's unit, in any form that `encode_column` takes, or its `Ids`.
    unit
        The unit to protect, and the most rows that it may have.
    policy
        With `OutOfDomain.ERROR`, a row without an id is refused.
    source
        The name of the table in errors.
    key
        The private key of the hash by which rows are chosen.

    Raises
    ------
    InputError
        If the column's type cannot hold ids.
    DoesNotFit
        If the policy is `OutOfDomain.ERROR`, and a row has no id.
    """
    return RowChoice.of(ids, unit, policy=policy, source=source, key=key).rows


@final
class RowChoice:
    """The choice of the rows that a table keeps of each unit, and of their places within the unit.

    The places of a unit's kept rows follow another keyed hash, of the unit's id and of each row's position among the
    unit's kept rows. So the rows at a unit's first k places are a random choice of k of its rows.

    Parameters
    ----------
    ids
        The id of each row that has one.
    present
        The positions of these rows in the table.
    most
        How many rows of each unit are kept at most.
    key
        The private key of the hash by which rows are chosen.
    """

    def __init__(self, ids: pl.Series, present: pl.Series, most: int, key: bytes) -> None:
        from dpframework.tables.unit_row_choice_kernels import places_in_units

        self._ids, self._present, self._most, self._key = ids, present, most, key
        self._codes = unit_codes(ids)
        self._places, self._sizes = places_in_units(self._codes)
        self._kept: NDArray[np.bool_] | None = None  # which rows are kept, None for all
        many = np.flatnonzero(self._sizes[self._codes] > self._most)
        if len(many):
            self._kept = np.ones(len(self._codes), dtype=np.bool_)
            chosen = _choose(self._unit_keys, self._number[self._codes[many]], self._places[many], self._most)
            self._kept[many] = chosen

    @classmethod
    def of(cls, ids: Any, unit: PrivacyUnit, *, policy: OutOfDomain, source: str, key: bytes) -> Self:
        """Choose rows by a column of ids, with the parameters of `kept_rows`."""
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
        """The number of each kept row's unit (see `unit_codes`). Every unit that has rows keeps at least one row."""
        return self._codes if self._kept is None else self._codes[self._kept]

    def places(self) -> RowPlaces:
        """Return the place of each kept row within its unit, from 0. Places are hashed only when they are read."""
        keys = self._unit_keys if self._kept is not None else functools.partial(unit_keys, self._key, self._unit_ids())
        return RowPlaces(functools.partial(_places, self.codes, self._most, self._number, keys))

    @functools.cached_property
    def _number(self) -> NDArray[np.intp]:
        """For each unit, by its code: its position among the units with several rows.

        For a unit with one row the number means nothing, since there is nothing to choose.
        """
        return np.cumsum(self._sizes > 1) - 1

    @functools.cached_property
    def _unit_keys(self) -> NDArray[np.uint64]:
        """The keys of the units with several rows. Rows and their places are chosen by the same keys of units."""
        return unit_keys(self._key, self._unit_ids())

    def _unit_ids(self) -> pl.Series:
        """Return the ids of the units with several rows, in the order of their codes."""
        first = np.flatnonzero((self._places == 0) & (self._sizes > 1)[self._codes])
        return self._ids.gather(first[np.argsort(self._codes[first])])


def _places(
    codes: NDArray[np.uint32],
    most: int,
    number: NDArray[np.intp],
    keys: NDArray[np.uint64] | Callable[[], NDArray[np.uint64]],
) -> NDArray[np.unsignedinteger]:
    """Return the places of rows (see `RowChoice.places`).

    `number` holds each unit's position among the units with several rows. `keys` are the keys of those units, or a
    function that returns them.
    """
    from dpframework.tables.unit_row_choice_kernels import places_in_units

    places, sizes = places_in_units(codes)
    found = np.zeros(len(codes), dtype=np.min_scalar_type(most - 1))
    # The only row of a unit has the place 0, so no key is computed for it.
    many = np.flatnonzero(sizes[codes] > 1)
    if len(many):
        found[many] = order_by_hash(keys() if callable(keys) else keys, number[codes[many]], places[many])
    return found


def order_by_hash(keys: NDArray[np.uint64], units: NDArray[Any], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each row within its unit, in the order of a keyed hash (see `RowChoice`).

    Parameters
    ----------
    keys
        The key of each unit (see `unit_keys`).
    units
        The position in `keys` of each row's unit, shape (rows,).
    places
        Each row's place among the rows of its unit in the order of the table.
    """
    from dpframework.tables.unit_row_choice_kernels import places_in_units

    # `kept_rows` hashes none of these numbers, so which rows are kept says nothing about their order.
    order = np.argsort(_row_keys(keys, units, places + _ORDER_OFFSET))  # equal keys are rare, and may have any order
    found = np.empty(len(units), dtype=np.int64)
    found[order] = places_in_units(units[order].astype(np.uint32))[0]
    return found


def choose_places(
    keys: NDArray[np.uint64], counts: NDArray[np.int64], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of its own rows each unit keeps, chosen as by `kept_rows`.

    Parameters
    ----------
    keys
        The key of each unit (see `unit_keys`).
    counts
        How many rows each unit has, shape (units,).
    most
        How many rows each unit keeps at most.

    Returns
    -------
    tuple
        For each row that is kept, the position of its unit, and the row's place among the unit's rows, from 0.
    """
    units, places = rows_of_each(counts)
    kept = _choose(keys, units, places, most)
    return units[kept], places[kept]


def rows_of_each(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the unit of each row and the row's place within its unit, for rows that are sorted by unit.

    `counts` holds the number of rows of each unit, shape (units,).

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
    """Return a number for each row, the same for rows of one unit and different for rows of different units.

    Units are numbered from 0 in the order of their ids as texts, so the numbers depend on the set of ids alone.

    Parameters
    ----------
    ids
        The id of each row, as the text that `ids_of` returns.
    """
    import polars as pl

    texts = ids.alias("id")
    numbers = whole_numbers(texts)
    own = texts if numbers is None else numbers
    # Sorting the units takes less time than `rank`, which would sort all rows.
    units = own.unique()
    in_order = units.sort() if numbers is None else units.gather(units.cast(pl.String).arg_sort())
    codes = in_order.to_frame().with_row_index("unit")
    return own.to_frame().join(codes, on="id", how="left", maintain_order="left")["unit"].to_numpy()


def number_units(ids: Ids) -> tuple[NDArray[np.intp], int]:
    """Return the number of each row's unit, -1 for a row without an id, and the number of units.

    Units are numbered in the order of their first rows. One more unit leaves the order of the others as it is.
    """
    import polars as pl

    rows = pl.DataFrame({"id": ids.series})
    units = rows.unique("id", maintain_order=True).drop_nulls().with_row_index("unit")
    whose = rows.join(units, on="id", how="left", maintain_order="left")["unit"]
    return whose.cast(pl.Int64).fill_null(-1).to_numpy().astype(np.intp, copy=False), units.height


def _choose(keys: NDArray[np.uint64], units: NDArray[Any], places: NDArray[np.int64], most: int) -> NDArray[np.bool_]:
    """Tell which rows have one of the `most` smallest keys of their unit. Equal keys are taken in row order."""
    from dpframework.tables.unit_row_choice_kernels import smallest_of_each

    return smallest_of_each(_row_keys(keys, units, places), units, most)


def unit_keys(key: bytes, ids: pl.Series) -> NDArray[np.uint64]:
    """Return the key of each unit, a keyed hash of its id, as two 64-bit words, shape (units, 2)."""
    hashed = [hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest() for one in ids]
    return np.frombuffer(b"".join(hashed), dtype="<u8").astype(np.uint64).reshape(-1, 2)


def _row_keys(keys: NDArray[np.uint64], units: NDArray[Any], places: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the key of each row, the hash of its place among its unit's rows under the key of its unit."""
    from dpframework.tables.unit_row_choice_kernels import siphash

    own = keys[units]
    return siphash(own[:, 0], own[:, 1], places.astype(np.uint64))
