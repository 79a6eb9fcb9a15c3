"""A table with one row for each unit, made from rows that lie in several pieces.

A piece is a part of a table that one worker reads. A bucket stands for a group of units, and gets their rows from all
pieces (see `shuffle_by_id_hash`). A piece sends each bucket the columns that aggregates read, for the rows of the
bucket's units, in the order of rows. A bucket takes pieces in the order of the table, and so sees the rows of a unit in
order. So sums are rounded as when one process reads, and first and last values are the same. The bucket's answer to a
piece is the new rows of some units.

Counts do not depend on which piece holds the row of a unit. So another hash spreads units evenly over pieces. Samples
do depend on this, since rows must then be in the order of `read_table`. So if a plan samples, a unit's row is held by
the piece with the unit's first row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.schema_with_derived_columns import UnitRows
from dpframework.tables.column_encoding import EncodedColumn
from dpframework.tables.contribution_bounding import number_units
from dpframework.tables.ids import exact_ids
from dpframework.tables.reading import with_ids
from dpframework.tables.shuffle_by_id_hash import (
    Shuffle,
    ShuffleFindings,
    SpreadPiece,
    findings_of,
    frames_of,
    numbers_by_hash,
    pack_frames,
    require_all_fit,
)
from dpframework.tables.unit_accumulators import ColumnEncoder, UnitColumns

if TYPE_CHECKING:
    import polars as pl

    from dpframework.tables.coded_table import Table
    from dpframework.tables.table_builder import RowFindings
    from dpframework.tables.unread_table_files import Piece

_PLACE = ("piece", "row")  # columns with the place of a unit's first row


@final
@attrs.frozen(repr=False, field_transformer=hide_fields)
class RowsOfUnits(Shuffle[None]):
    """A shuffle that makes one row from all rows of each unit."""

    @property
    def _rows(self) -> UnitRows:
        """The aggregates that the schema's columns need."""
        rows = self.how.schema.per_unit
        assert rows is not None
        return rows.select(self.how.schema.columns)

    def spread(self, piece: Piece, buckets: int) -> SpreadPiece[None]:
        """See `Shuffle`."""
        import polars as pl

        how, read = self.how, self._rows.schema
        source, ids = with_ids(piece.source(self.name[0]), how.schema, how.unit, how.out_of_domain)
        whose, number = number_units(ids)
        names = ids.series.drop_nulls().unique(maintain_order=True)
        present = np.flatnonzero(whose >= 0)
        firsts = present[np.unique(whose[present], return_index=True)[1]]
        to = numbers_by_hash(names, self.key, buckets, b"bucket")
        within = np.empty(number, dtype=np.uint32)  # the position of each unit among the units of its bucket
        for k in range(buckets):
            within[to == k] = np.arange(int((to == k).sum()))
        encoder = ColumnEncoder(read, source, how.out_of_domain)
        blocks: list[list[pl.DataFrame]] = [[] for _ in range(buckets)]
        for place, encoded in encoder.blocks(len(ids)):
            here = whose[place]
            there = np.where(here < 0, -1, to[here]) if number else here
            columns = _frame(read.columns, encoded).with_columns(pl.Series("unit", within[here] if number else here))
            for k, own in enumerate(blocks):
                own.append(columns[np.flatnonzero(there == k)])
        listed = pl.DataFrame({"id": names, "row": firsts})
        messages = [pack_frames(listed[np.flatnonzero(to == k)], pl.concat(own)) for k, own in enumerate(blocks)]
        unfit = frozenset((name, way) for name, ways in encoder.unfit.items() for way in ways)
        return SpreadPiece(messages, None, ShuffleFindings(findings_of(ids), unfit))

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        """See `Shuffle`."""
        import polars as pl

        rows, schema, pairs = self._rows, self.how.schema, [frames_of(message) for message in messages]
        sizes = [listed.height for listed, _ in pairs]
        whole = pl.concat([listed for listed, _ in pairs])
        whose, number = number_units(exact_ids(whole["id"]))
        made = UnitColumns(rows, number)
        for (_, columns), own in zip(pairs, np.split(whose, np.cumsum(sizes)[:-1]), strict=True):
            made.add(own[columns["unit"].to_numpy()], _columns(rows.schema.columns, columns))
        firsts = np.unique(whose, return_index=True)[1]
        piece = np.repeat(np.arange(len(sizes)), sizes)[firsts]
        units = _frame(schema.columns, made.encode(schema)).with_columns(
            pl.Series("piece", piece), whole["row"].gather(firsts)
        )
        if not self.how.ordered:
            piece = numbers_by_hash(whole["id"].gather(firsts), self.key, self.pieces, b"piece")
        return [pack_frames(units[np.flatnonzero(piece == k)]) for k in range(self.pieces)], ShuffleFindings()

    def settle(self, piece: Piece, state: None, answers: Sequence[bytes]) -> tuple[Table, RowFindings]:
        """See `Shuffle`."""
        import polars as pl

        how = self.how
        units = pl.concat([frame for answer in answers for frame in frames_of(answer)]).sort(_PLACE)
        builder = how.builder(self.name)
        builder.add({}, _columns(how.schema.columns, units))
        return self._settle(builder)

    def _require(self, found: ShuffleFindings) -> None:
        super()._require(found)
        require_all_fit(self._rows.schema, found, self.name[0])


def _frame(attributes: Sequence[Attribute], columns: Mapping[str, EncodedColumn]) -> pl.DataFrame:
    """Return encoded columns as a frame. Derived columns never read open attributes (whose values are not listed)."""
    import polars as pl

    arrays: dict[str, NDArray[Any]] = {}
    for k, attribute in enumerate(attributes):
        column = columns[attribute.name]
        arrays[f"code{k}"] = column.codes
        if column.values is not None:
            arrays[f"value{k}"] = column.values
    return pl.DataFrame(arrays)


def _columns(attributes: Sequence[Attribute], frame: pl.DataFrame) -> dict[str, EncodedColumn]:
    """Return the encoded columns of a frame."""
    found = {}
    for k, attribute in enumerate(attributes):
        values = frame[f"value{k}"].to_numpy() if f"value{k}" in frame.columns else None
        found[attribute.name] = EncodedColumn(frame[f"code{k}"].to_numpy(), values)
    return found
