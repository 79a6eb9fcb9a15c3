"""Read a table in files piece by piece, as workers do. One process can do so, to test that pieces change no result.

In a shuffle, pieces exchange what they know of the same ids (see `shuffle_by_id_hash`).
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from dpframework.tables.coded_table import Table
from dpframework.tables.column_encoding import EncodedColumn
from dpframework.tables.contribution_bounding import KEY_BYTES
from dpframework.tables.row_bound_shuffle import BoundedRows
from dpframework.tables.shuffle_by_id_hash import Shuffle, ShuffleFindings
from dpframework.tables.table_builder import RowFindings, require_found
from dpframework.tables.unit_aggregate_shuffle import RowsOfUnits
from dpframework.tables.unread_table_files import Piece, TableFiles
from dpframework.tables.view_join_shuffle import JoinedRows


def shuffle_of(files: TableFiles, pieces: Sequence[Piece]) -> Shuffle[Any] | None:
    """Return the shuffle that makes a table's rows from its pieces, or None if no row depends on rows of other pieces.

    Raises
    ------
    InputError
        If the unit does not fit the schema, or the unit has periods and it is not said which one is read.
    """
    files.unit.require_fits(files.schema)
    files.unit.require_span()
    key = secrets.token_bytes(KEY_BYTES) if files.key is None else files.key
    given = (attrs.evolve(files, path=(), key=None), files.shown, len(pieces), key)
    if files.right is not None:
        return JoinedRows(*given, left=sum(piece.side == 0 for piece in pieces))
    if files.schema.per_unit is not None:
        return RowsOfUnits(*given)
    return None if files.unit.id is None else BoundedRows(*given)


def read_in_pieces(
    files: TableFiles,
    number: int,
    buckets: int,
    shuffle: Callable[[TableFiles, Sequence[Piece]], Shuffle[Any] | None] = shuffle_of,
) -> Table:
    """Read a table piece by piece in this process.

    Parameters
    ----------
    files
        The table.
    number, buckets
        How many pieces there are at least, and how many buckets if the table is shuffled (see `Shuffle`).
    shuffle
        A function that returns the shuffle, as `shuffle_of` does.

    Raises
    ------
    InputError
        Where `read_table` raises it.
    """
    pieces = files.pieces(number)
    how = shuffle(files, pieces)
    if how is None:
        read = [piece.read() for piece in pieces]
    else:
        spread = [how.spread(piece, buckets) for piece in pieces]
        gathered = [how.gather([one.messages[k] for one in spread]) for k in range(buckets)]
        found = [*(one.found for one in spread), *(one for _, one in gathered)]
        how.require(functools.reduce(ShuffleFindings.__or__, found))
        read = [
            how.settle(piece, one.state, [answers[k] for answers, _ in gathered])
            for k, (piece, one) in enumerate(zip(pieces, spread, strict=True))
        ]
    require_found(files.schema, functools.reduce(RowFindings.__add__, (found for _, found in read)), files.sources)
    builder = files.builder(files.shown)
    for table, _ in read:
        columns = dict(zip(table.schema.names, table.columns, strict=True))
        encoded = {a: EncodedColumn(columns[a], table.values.get(a), table.keys.get(a)) for a in files.schema.names}
        builder.add({}, encoded)
    whole, keys = builder.part(files.unit, files.key if how is None else how.key), {}
    for name, column in whole.keys.items():
        firsts = [table.keys[name].firsts for table, _ in read]
        known = [one for one in firsts if one is not None]
        keys[name] = attrs.evolve(column, firsts=np.concatenate(known) if len(known) == len(firsts) else None)
    return attrs.evolve(whole, keys=keys)
