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

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from dpframework.facts.policies import OutOfDomain
from dpframework.facts.unit import PrivacyUnit
from dpframework.tables.ids import Ids, ids_of, whole_numbers
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
    import polars as pl

    from dpframework.tables.unit_kernels import places_in_units

    named = ids_of(ids, f"{source}: the column of ids")
    if policy is OutOfDomain.ERROR:
        named.require_all(f"{source}: the id column '{unit.id}'")
    present = named.series.is_not_null().arg_true()
    codes = unit_codes(named, present)
    places, sizes = places_in_units(codes)
    many = np.flatnonzero(sizes[codes] > unit.rows)
    if not len(many):
        return present
    ids_of_large, whose = _larger_units(named.series.gather(present), codes, places, sizes > unit.rows)
    kept = np.ones(len(codes), dtype=np.bool_)
    kept[many] = _chosen(key, ids_of_large, whose, places[many], unit.rows)
    return present.filter(pl.Series(kept))


def hashed_places(ids: Any, rows: pl.Series, codes: NDArray[np.uint32], key: bytes, most: int) -> NDArray[Any]:
    """Return the place of each row that a table keeps among those of its unit, from 0, chosen by facts of the unit.

    Rows are in the order of another keyed hash of their unit's id and of their place among the rows that it keeps: the
    first k of a unit are any k of them.

    Parameters
    ----------
    ids, key
        As for `kept_rows`.
    rows
        The positions of the rows, as `kept_rows` returns them.
    codes
        The number of each one's unit, as `unit_codes` returns them.
    most
        How many rows a unit keeps at most.
    """
    from dpframework.tables.unit_kernels import places_in_units

    places, sizes = places_in_units(codes)
    found = np.zeros(len(codes), dtype=np.min_scalar_type(most - 1))
    many = np.flatnonzero(sizes[codes] > 1)
    if len(many):
        named = ids_of(ids, "the column of ids").series.gather(rows)
        own, whose = _larger_units(named, codes, places, sizes > 1)
        found[many] = hashed_order(key, own, whose, places[many])
    return found


def hashed_order(key: bytes, ids: pl.Series, units: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each row among those of its unit in the order of a keyed hash (see `hashed_places`).

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
    from dpframework.tables.unit_kernels import places_in_units

    # as messages that `kept_rows` hashes none of: which rows are kept tells nothing of their order
    order = np.argsort(_row_keys(key, ids, units, places + _ORDERED))  # of two equal keys in 2**64 any may be first
    found = np.empty(len(units), dtype=np.int64)
    found[order] = places_in_units(units[order].astype(np.uint32))[0]
    return found


def _larger_units(
    ids: pl.Series, codes: NDArray[np.uint32], places: NDArray[np.int64], large: NDArray[np.bool_]
) -> tuple[pl.Series, NDArray[np.int64]]:
    """Return the ids of some units, and the position among them of the unit of each of their rows.

    Parameters
    ----------
    ids
        The id of each row.
    codes
        The number of its unit.
    places
        Its place among the rows of its unit.
    large
        Which units are asked for, by their numbers.
    """
    number, asked = np.cumsum(large) - 1, large[codes]
    first = np.flatnonzero((places == 0) & asked)
    return ids.gather(first[np.argsort(codes[first])]), number[codes[asked]]


def chosen_places(
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
    ends = np.cumsum(counts)
    units = np.repeat(np.arange(len(counts)), counts)
    starts = np.repeat(ends - counts, counts)
    places = np.arange(len(units)) - starts
    kept = _chosen(key, ids, units, places, most)
    return units[kept], places[kept]


def unit_codes(ids: Any, rows: pl.Series) -> NDArray[np.uint32]:
    """Return a number for each of some rows, equal for rows of one unit and different for others.

    The numbers count the units of these rows, in the order of their ids as texts, and say nothing else.

    Parameters
    ----------
    ids
        As for `kept_rows`.
    rows
        Positions of rows that have an id.
    """
    import polars as pl

    texts = ids_of(ids, "the column of ids").series.gather(rows).rename("id")
    numbers = whole_numbers(texts)
    own = texts if numbers is None else numbers
    units = own.unique()  # fewer to sort than rows, which `rank` would sort
    in_order = units.sort() if numbers is None else units.gather(units.cast(pl.String).arg_sort())
    codes = in_order.to_frame().with_row_index("unit")
    return own.to_frame().join(codes, on="id", how="left", maintain_order="left")["unit"].to_numpy()


def numbered(ids: Ids) -> tuple[NDArray[np.intp], int]:
    """Return the number of each row's unit in the order of their first rows, -1 for a row without an id; and how many.

    A unit more is a number more, and the order of the others does not change.
    """
    import polars as pl

    rows = pl.DataFrame({"id": ids.series})
    units = rows.unique("id", maintain_order=True).drop_nulls().with_row_index("unit")
    whose = rows.join(units, on="id", how="left", maintain_order="left")["unit"]
    return whose.cast(pl.Int64).fill_null(-1).to_numpy().astype(np.intp, copy=False), units.height


def _chosen(
    key: bytes, ids: pl.Series, units: NDArray[np.int64], places: NDArray[np.int64], most: int
) -> NDArray[np.bool_]:
    """Tell which rows are among the `most` of the smallest keys of their unit, where equal keys are in row order."""
    from dpframework.tables.unit_kernels import first_of_each

    return first_of_each(np.argsort(_row_keys(key, ids, units, places), kind="stable"), units, most)


def _row_keys(key: bytes, ids: pl.Series, units: NDArray[Any], places: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the key of each row, from its unit's id, which `units` are positions of, and its place among its rows.

    A keyed hash of the id is the key of the unit, under which the place is hashed.
    """
    from dpframework.tables.siphash import siphash

    hashed = [hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest() for one in ids]
    unit_keys = np.frombuffer(b"".join(hashed), dtype="<u8").astype(np.uint64).reshape(-1, 2)[units]
    return siphash(unit_keys[:, 0], unit_keys[:, 1], places.astype(np.uint64))
